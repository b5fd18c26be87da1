//! Decodes everything that is stored in an array and collects what is damaged.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::folder::Outline;
use super::fragment::FieldFile;
use super::sparse::visible_deletes;
use super::{Array, ArrayFolder};
use crate::error::{Error, Locate, Result};
use crate::format::fragment::Field;
use crate::format::pipeline::Filter;

/// Offsets of variable-size cells are checked in parts of this many.
const OFFSETS_AT_ONCE: u64 = 4096;

/// What was checked so far. Threads add to it while another may show it.
#[derive(Debug, Default)]
pub struct Progress {
    pub fragments: AtomicU64,
    pub tiles: AtomicU64,
    /// Decoded.
    pub bytes: AtomicU64,
    /// Tiles of the above whose filters carry a checksum or an authentication tag.
    pub checked_tiles: AtomicU64,
}

/// The files of one field, and how many tiles each has.
struct FieldTiles {
    field: Field,
    name: String,
    is_variable: bool,
    is_nullable: bool,
}

/// Decodes every tile of every visible fragment of an array on all cores, and its metadata on the way; and the array's
/// own metadata, enumerations, labels and delete conditions.
/// Gives the damage found, in no order. Memory is that of the cache and of one tile a core.
pub fn verify(array: &Array, progress: &Progress) -> Vec<Error> {
    verify_once(array, progress, &mut HashSet::new())
}

/// As [`verify`], without the arrays in the folders that were `visited`: several labels may be one array.
fn verify_once(array: &Array, progress: &Progress, visited: &mut HashSet<PathBuf>) -> Vec<Error> {
    if !visited.insert(array.context().storage.canonical(array.path())) {
        return Vec::new();
    }
    let damage = Mutex::new(Vec::new());
    let add = |error: Error| damage.lock().unwrap_or_else(PoisonError::into_inner).push(error);
    if let Err(error) = array.metadata().and_then(|metadata| metadata.verify()) {
        add(error.in_array(array.path()));
    }
    for (name, _) in &array.schema().enumerations {
        if let Err(error) = array.enumeration(name) {
            add(error);
        }
    }
    if let Err(error) = visible_deletes(array) {
        add(error);
    }
    for label in &array.schema().labels {
        match array.label(label) {
            Ok(label) => verify_once(&label.array, progress, visited).into_iter().for_each(add),
            Err(error) => add(error),
        }
    }
    let folder = array.folder();
    (0..array.fragment_count()).into_par_iter().for_each(|fragment| {
        let number = array.number(fragment);
        let name = array.fragment_name(fragment);
        let place = |error: Error| error.in_fragment(name).in_array(array.path());
        match folder.outline(number) {
            Err(error) => add(place(error)),
            Ok(outline) => {
                if !outline.facts.dense
                    && let Err(error) = folder.mbrs(number)
                {
                    add(place(error));
                }
                fields_of(&outline).into_par_iter().for_each(|field| {
                    verify_field(folder, number, &outline, &field, progress, &|error: Error| {
                        add(place(error.in_field(&field.name)));
                    });
                });
            }
        }
        progress.fragments.fetch_add(1, Ordering::Relaxed);
    });
    damage.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The fields that a fragment has files of.
fn fields_of(outline: &Outline) -> Vec<FieldTiles> {
    let fixed =
        |field: Field, name: &str| FieldTiles { field, name: name.to_owned(), is_variable: false, is_nullable: false };
    let attributes = outline.schema.attributes.iter().enumerate().map(|(number, attribute)| FieldTiles {
        is_variable: attribute.is_variable(),
        is_nullable: attribute.nullable,
        ..fixed(Field::Attribute(number), &attribute.name)
    });
    let dimensions = outline.schema.dimensions.iter().enumerate().map(|(number, dimension)| FieldTiles {
        is_variable: dimension.is_variable(),
        ..fixed(Field::Dimension(number), &dimension.name)
    });
    let others = [
        (Field::Coordinates, "coordinates"),
        (Field::Timestamps, "timestamps"),
        (Field::DeleteTimestamps, "delete timestamps"),
        (Field::DeleteConditionIndex, "delete conditions"),
    ];
    let coordinates = dimensions.chain(others.map(|(field, name)| fixed(field, name)));
    let coordinates = coordinates.filter(|one| !outline.facts.dense && outline.facts.slot(one.field).is_some());
    attributes.chain(coordinates).collect()
}

fn verify_field(
    folder: &ArrayFolder,
    fragment: usize,
    outline: &Outline,
    field: &FieldTiles,
    progress: &Progress,
    add: &(impl Fn(Error) + Sync),
) {
    let tiles = match outline.facts.tile_count(&outline.schema) {
        Ok(tiles) => tiles,
        Err(error) => return add(error),
    };
    // The offsets are as many as the tiles, or there is nothing to go through.
    if let Err(error) = folder.tiles(fragment, field.field, FieldFile::Data) {
        return add(error);
    }
    (0..tiles).into_par_iter().for_each(|tile| {
        let Some(cells) = outline.facts.cells_in_tile(&outline.schema, tile) else {
            return add(Error::damaged(format!("tile {tile} has no number of cells")));
        };
        for file in [FieldFile::Data, FieldFile::Validity] {
            if file == FieldFile::Validity && !field.is_nullable {
                continue;
            }
            let decoded = match file {
                FieldFile::Data if field.is_variable => verify_var_tile(folder, fragment, outline, field, tile, cells),
                _ => verify_tile(folder, fragment, outline, field.field, file, tile, cells),
            };
            match decoded {
                Ok(bytes) => {
                    progress.tiles.fetch_add(1, Ordering::Relaxed);
                    progress.bytes.fetch_add(bytes, Ordering::Relaxed);
                    if is_checked(folder, fragment, outline, field.field, file) {
                        progress.checked_tiles.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Err(error) => add(error),
            }
        }
    });
}

/// Decodes the chunks of a tile one by one; gives the bytes they decode to.
fn verify_tile(
    folder: &ArrayFolder,
    fragment: usize,
    outline: &Outline,
    field: Field,
    file: FieldFile,
    tile: u64,
    cells: u64,
) -> Result<u64> {
    let (_, _, cell_size) = folder.filtering(fragment, outline, field, file)?;
    let size = cells.checked_mul(cell_size as u64).ok_or_else(|| Error::damaged("a tile of more than 2^64 bytes"))?;
    let tiles = folder.tiles(fragment, field, file)?;
    let mut start = 0;
    while start < size {
        start = tiles.prepare(tile, size, start)?;
    }
    Ok(size)
}

fn verify_var_tile(
    folder: &ArrayFolder,
    fragment: usize,
    outline: &Outline,
    field: &FieldTiles,
    tile: u64,
    cells: u64,
) -> Result<u64> {
    let (_, datatype, _) = folder.filtering(fragment, outline, field.field, FieldFile::Var)?;
    let tiles = folder.var_tiles(fragment, field.field, datatype.size())?;
    let size = tiles.size(tile)?;
    if tiles.is_whole(tile, cells)? {
        tiles.tile(tile, cells)?;
        return Ok(size + 8 * cells);
    }
    let mut reader = tiles.reader(tile, cells)?;
    let mut offsets = [0; OFFSETS_AT_ONCE as usize + 1];
    let mut first = 0;
    while first < cells {
        // Each part begins with the last of the one before, so that all are compared with their neighbours.
        let count = OFFSETS_AT_ONCE.min(cells - first);
        reader.offsets(first, &mut offsets[..count as usize + 1])?;
        first += count;
    }
    tiles.prepare_values(tile, cells, 0, size)?;
    Ok(size + 8 * cells)
}

fn is_checked(folder: &ArrayFolder, fragment: usize, outline: &Outline, field: Field, file: FieldFile) -> bool {
    let checks = |filter: &Filter| matches!(filter, Filter::ChecksumMd5 | Filter::ChecksumSha256);
    folder.context.key.is_some()
        || folder
            .filtering(fragment, outline, field, file)
            .is_ok_and(|(pipeline, _, _)| pipeline.filters.iter().any(checks))
}
