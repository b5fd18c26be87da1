//! The array's metadata about its table, for readers of Parquet and Arrow: the pandas frame that was stored, and the
//! geometry columns.

use tilefs_base::error::{Error, Result};
use tilefs_export::parquet::StructColumn;
use tilefs_export::tables::geometry_layout::CoordinateRanges;
use tilefs_export::tables::geoparquet;
use tilefs_export::tables::pandas;
use tilefs_export::tables::reach::{PlacedGeometries, Reach};
use tilefs_export::{Column, Metadatum};
use tilefs_format::scalar::Scalar;
use tilefs_reader::array::OpenedArray;

use crate::cells::sparse::SparseSubarray;
use crate::cells::{FieldId, Subarray as _};
use crate::fields::FieldFolder;
use crate::fields::meta;

/// Texts of a file's metadata, each after its key.
pub type NotesByKey = Vec<(String, String)>;

/// Returns the metadata of the file of a table, by key. Columns that are geometries according to the array's metadata
/// get the type of geometries.
pub fn notes(fields: &FieldFolder, columns: &mut [Column]) -> NotesByKey {
    let metadata = metadata(fields);
    geoparquet::retype_geometries(columns, &metadata);
    let geometries = geoparquet::metadata(columns, &metadata);
    by_key(pandas_frame(fields, &metadata).metadata(columns), geometries)
}

/// Like [`notes`], for a Parquet file: adds the geometries of points to the columns, and returns the boxes around all
/// geometries, if it has them. Their bounds take a pass over them, unless an earlier mount has saved them.
///
/// # Errors
/// Fails if the storage does not answer. Geometries that are damaged or missing have no bounds.
pub fn notes_in_parquet(fields: &FieldFolder, columns: &mut Vec<Column>) -> Result<(NotesByKey, Option<StructColumn>)> {
    let metadata = metadata(fields);
    geoparquet::retype_geometries(columns, &metadata);
    let frame = pandas_frame(fields, &metadata).metadata_in_parquet(columns);
    let ranges = || {
        known_ranges(fields).unwrap_or_else(|error| {
            log::warn!("a table has no bounds of its geometries: {error}");
            CoordinateRanges::new()
        })
    };
    let (geometries, boxes) = geoparquet::in_parquet(columns, &metadata, ranges, |placed| reach(fields, placed))?;
    Ok((by_key(frame, geometries), boxes))
}

/// Returns how far geometries reach from their places, possibly saved by an earlier mount; `None` if they cannot be read.
fn reach(fields: &FieldFolder, placed: &PlacedGeometries) -> Result<Option<Reach>> {
    let made = ("reach of geometries", placed.rows());
    let saved = &fields.context().saved;
    match saved.get_or_make_of(made, placed, Reach::decode, Reach::encode, PlacedGeometries::reach) {
        Ok(reach) => Ok(Some(reach)),
        Err(error) if error.is_transient() && !matches!(error, Error::Missing { .. }) => Err(error),
        Err(error) => {
            log::warn!("a table has no bounds of its geometries: {error}");
            Ok(None)
        }
    }
}

/// The features of a table.
pub struct Features {
    pub geometries: Column,
    pub identifiers: Option<Column>,
    pub properties: Vec<Column>,
}

/// Divides the columns of a table; `None` if they have no geometries.
pub fn features(fields: &FieldFolder, mut columns: Vec<Column>) -> Option<Features> {
    let metadata = metadata(fields);
    geoparquet::retype_geometries(&mut columns, &metadata);
    let geometries = geoparquet::take_geometries(&mut columns, &metadata)?;
    let identifiers = geoparquet::identifiers(&columns, &metadata).cloned();
    Some(Features { geometries, identifiers, properties: columns })
}

/// Returns the array's metadata. Those that cannot be read are logged and ignored: no other column depends on them.
fn metadata(fields: &FieldFolder) -> Vec<Metadatum> {
    match fields.subarray.array().metadata() {
        Ok(metadata) => meta::for_formats(&metadata),
        Err(error) => {
            log::warn!("a table has no metadata about its index and geometries: {error}");
            Vec::new()
        }
    }
}

/// Returns the description of the table for pandas.
fn pandas_frame(fields: &FieldFolder, metadata: &[Metadatum]) -> pandas::PandasFrame {
    pandas::PandasFrame::of(metadata, fields.schema().is_sparse())
}

fn by_key(frame: String, geometries: Option<String>) -> NotesByKey {
    let geometries = geometries.map(|geometries| (geoparquet::KEY.to_owned(), geometries));
    [(pandas::KEY.to_owned(), frame)].into_iter().chain(geometries).collect()
}

/// Returns the ranges of the coordinates of a sparse array, if footers tell that the table has all of its rows.
fn known_ranges(fields: &FieldFolder) -> Result<CoordinateRanges> {
    let array = fields.subarray.array();
    if !array.schema().is_sparse() {
        return Ok(CoordinateRanges::new());
    }
    let count = SparseSubarray::new(array.clone(), false).row_count()?.exact();
    let has_all = count.is_some() && fields.subarray.row_count()?.exact() == count;
    let mut ranges = Vec::new();
    for id in fields.dimensions().filter(|_| has_all) {
        let FieldId::Dimension(number) = id else { continue };
        if let Some(range) = range_of_floats(array, number)? {
            ranges.push((fields.user_name(id).into_owned(), range));
        }
    }
    Ok(ranges)
}

/// Returns the least and the greatest coordinate of all cells along a dimension of FLOAT64; `None` for other types.
fn range_of_floats(array: &OpenedArray, dimension: usize) -> Result<Option<[f64; 2]>> {
    let mut found: Option<[f64; 2]> = None;
    for fragment in 0..array.fragment_count() {
        let outline = array.outline(fragment)?;
        let range = outline.facts.non_empty_range(dimension);
        let Some((Scalar::Float64(low), Scalar::Float64(high))) = range.map(|range| (range.low, range.high)) else {
            return Ok(None);
        };
        found = Some(found.map_or([low, high], |[least, most]| [least.min(low), most.max(high)]));
    }
    Ok(found)
}
