//! Prefetches the coordinates that a merge or a search is about to read, for all tiles and fragments concurrently, if
//! each request is a round trip.

use std::ops::Range;

use tilefs_base::error::Result;
use tilefs_storage::together;

use crate::array::sparse::select::files::FixedFile;
use crate::array::sparse::select::stream::FragmentSource;
use crate::array::tiles::unit::TileUnit;
use crate::read::{Batches, Decoding, Unit};

/// Prefetches the coordinates of some cells of each fragment that must be read to find rows. `compares`: cells are
/// compared with each other. Coordinates beyond a share of the cache's budget are left to the reader. So is damage: the
/// reader meets it again, and can name its place.
///
/// # Errors
/// Those of the storage, which the reader would otherwise meet.
pub fn coordinates(cells: &[(&FragmentSource<'_>, Range<u64>)], compares: bool) -> Result<()> {
    let Some((first, _)) = cells.first() else { return Ok(()) };
    let (array, context) = (first.array, first.array.context());
    if !context.storage.is_remote(array.path()) {
        return Ok(());
    }
    // Finding the units opens the files.
    let found = together(&*context.storage, array.path(), cells.iter().collect(), |(source, positions)| {
        units(source, positions.clone(), compares).unwrap_or_default()
    });
    let most = context.budget().fetched_coordinates() as u64;
    let mut bytes = 0u64;
    let fits = |unit: &TileUnit| {
        bytes = bytes.saturating_add(unit.size());
        bytes <= most
    };
    // Fetch the first tile of every fragment before the second of any: the merge reads them in this order.
    let longest = found.iter().map(Vec::len).max().unwrap_or(0);
    let by_turns = (0..longest).flat_map(|turn| found.iter().filter_map(move |units| units.get(turn)));
    let units: Vec<TileUnit> = by_turns.cloned().take_while(fits).collect();
    Batches::new(&context.fetcher, &units, Decoding::OnManyThreads).fetch_before_reading()
}

/// Returns the units of the coordinates of some cells of a fragment, tile by tile. Leaves out strings: their place is
/// unknown until their offsets have been read.
fn units(source: &FragmentSource<'_>, positions: Range<u64>, compares: bool) -> Result<Vec<TileUnit>> {
    let axes = source.dimensions_to_read(compares).filter(|&axis| !source.plan.axes[axis].is_text());
    let files = axes.map(|axis| FixedFile::of_dimension(source.array, source.fragment, axis));
    let files: Vec<FixedFile> = files.collect::<Result<_>>()?;
    let mut units = Vec::new();
    let count = positions.end.saturating_sub(positions.start);
    source.cells.for_each_tile(positions.start, count, |_, cells| {
        files.iter().try_for_each(|file| file.units(&[cells], &mut units))
    })?;
    Ok(units)
}
