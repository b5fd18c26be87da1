//! Fetches the coordinates that a merge or a search is about to read, of all tiles and fragments at once, where requests
//! are waits: read as they come, each would be a round trip by itself.

use std::ops::Range;

use tilefs_format::error::Result;

use super::files::FixedFile;
use super::stream::FragmentSource;
use crate::array::tiles::TileUnit;
use crate::read::{Batches, Decoding, Unit};
use crate::storage::{is_far, together};

/// The part of the cache's budget that coordinates may take which are fetched before they are read.
const CACHE_SHARE: u64 = 8;

/// Fetches those coordinates of some cells of each fragment into the cache that are read to find rows, with `compares` by
/// comparing cells. What does not fit into a part of it is left to
/// the reader, and so is damage, which the reader meets again and can place.
///
/// # Errors
/// Those of the storage, which the reader would only meet once more.
pub fn coordinates(cells: &[(&FragmentSource<'_>, Range<u64>)], compares: bool) -> Result<()> {
    let Some((first, _)) = cells.first() else { return Ok(()) };
    let (array, context) = (first.array, first.array.context());
    if !is_far(&*context.storage, array.path()) {
        return Ok(());
    }
    // Finding the units opens the files.
    let found = together(&*context.storage, array.path(), cells.iter().collect(), |(source, positions)| {
        units(source, positions.clone(), compares).unwrap_or_default()
    });
    let most = context.budget() as u64 / CACHE_SHARE;
    let mut bytes = 0u64;
    let fits = |unit: &TileUnit| {
        bytes = bytes.saturating_add(unit.size());
        bytes <= most
    };
    // The first tile of every fragment comes before the second of any: it is read first.
    let longest = found.iter().map(Vec::len).max().unwrap_or(0);
    let by_turns = (0..longest).flat_map(|turn| found.iter().filter_map(move |units| units.get(turn)));
    let units: Vec<TileUnit> = by_turns.cloned().take_while(fits).collect();
    Batches::new(&context.fetcher, &units, Decoding::OnManyThreads).fetch_before_reading()
}

/// The units of the coordinates of some cells of a fragment, tile by tile. Strings are left to the reader: where they are
/// is known once their offsets have been read.
fn units(source: &FragmentSource<'_>, positions: Range<u64>, compares: bool) -> Result<Vec<TileUnit>> {
    let axes = source.dimensions_to_read(compares).filter(|&axis| !source.plan.axes[axis].is_text());
    let files = axes.map(|axis| FixedFile::of_dimension(source.array, source.fragment, axis));
    let files: Vec<FixedFile> = files.collect::<Result<_>>()?;
    let mut units = Vec::new();
    let count = positions.end.saturating_sub(positions.start);
    source.cells.for_each_tile(positions.start, count, |_, cells| {
        files.iter().try_for_each(|file| file.units(cells, &mut units))
    })?;
    Ok(units)
}
