//! Fragment metadata of format versions 1 and 2: one generic tile.

use tilefs_base::error::{Locate, Result};

use super::FragmentField;
use super::facts::{FragmentFacts, counts, parse_ranges};
use super::rtree::{PageReader, RTree, RTreeLayout};
use super::sections::u64_list;
use crate::cursor::Cursor;
use crate::packed_ranges::PackedRanges;
use crate::schema::ArraySchema;
use crate::version::check_version;

/// All metadata of a fragment of version 1 or 2.
#[derive(Debug, Clone, PartialEq)]
pub struct EarlyFragment {
    /// The facts that newer formats have in the footer.
    pub facts: FragmentFacts,
    /// One box per tile of a sparse fragment.
    pub mbrs: RTree<Box<[u8]>>,
    /// The attributes, then the coordinates; see [`EarlyFragment::field`].
    pub fields: Vec<EarlyField>,
}

/// File sizes in bytes and tile offsets of one field. A list may be empty if the field has no data. Nothing has been
/// checked against the number of tiles or the files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EarlyField {
    /// Length of the file of values or offsets, in bytes.
    pub file_size: u64,
    /// Length of the file of variable-length values, in bytes.
    pub var_file_size: u64,
    /// Offsets of the tiles in the data file.
    pub tile_offsets: Vec<u64>,
    /// Offsets of the tiles in the `_var` file.
    pub var_offsets: Vec<u64>,
    /// Unfiltered sizes of the tiles in the `_var` file.
    pub var_sizes: Vec<u64>,
}

impl EarlyFragment {
    /// Reads the payload of the metadata file's only generic tile. These versions do not store whether a fragment is
    /// sparse: `has_coordinates` is whether its folder has `__coords.tdb`.
    ///
    /// # Errors
    /// [`Error::Damaged`](tilefs_base::error::Error::Damaged) if the bytes contradict the schema or each other,
    /// [`Error::Unsupported`](tilefs_base::error::Error::Unsupported) for unknown versions.
    pub fn parse(payload: &[u8], has_coordinates: bool, schema: &ArraySchema) -> Result<Self> {
        let mut cursor = Cursor::new(payload);
        let version = cursor.u32("version")?;
        check_version(version).in_field("version").at(0)?;
        if version > 2 {
            return Err(
                cursor.error("version", format!("metadata of version {version} in a fragment of version 1 or 2"))
            );
        }
        let non_empty_domain = parse_domain(&mut cursor, schema)?;
        let mbrs = parse_mbrs(&mut cursor, version, schema)?;
        skip_bounding_coordinates(&mut cursor, schema)?;
        let (attribute_count, dimension_count) = counts(schema)?;
        let attributes = attribute_count as usize;
        let mut fields = vec![EarlyField::default(); attributes + 1];
        for field in &mut fields {
            field.tile_offsets = u64_list(&mut cursor, "tile offsets")?;
        }
        for field in fields.iter_mut().take(attributes) {
            field.var_offsets = u64_list(&mut cursor, "var offsets")?;
        }
        for field in fields.iter_mut().take(attributes) {
            field.var_sizes = u64_list(&mut cursor, "var sizes")?;
        }
        let last_tile_cells = cursor.u64("last tile cell number")?;
        for field in &mut fields {
            field.file_size = cursor.u64("file sizes")?;
        }
        for field in fields.iter_mut().take(attributes) {
            field.var_file_size = cursor.u64("var file sizes")?;
        }
        cursor.expect_end("end of metadata")?;
        let sizes = fields.iter().flat_map(|field| [field.file_size, field.var_file_size]);
        let mut facts = FragmentFacts {
            version,
            dense: !has_coordinates,
            non_empty_domain,
            sparse_tiles: mbrs.tiles(),
            last_tile_cells,
            has_timestamps: false,
            has_delete_metadata: false,
            rtree_offset: 0,
            processed_conditions_offset: 0,
            stored_bytes: sizes.fold(0, u64::saturating_add),
            attribute_count,
            dimension_count,
        };
        facts.check(schema)?;
        Ok(EarlyFragment { facts, mbrs, fields })
    }

    /// Returns the entry of a field; `None` if the fragment has no such field.
    pub fn field(&self, field: FragmentField) -> Option<&EarlyField> {
        self.fields.get(self.facts.slot(field)?)
    }
}

/// Reads the non-empty domain: its size in bytes and the ranges. Size 0 means that there is none.
fn parse_domain(cursor: &mut Cursor<'_>, schema: &ArraySchema) -> Result<Option<PackedRanges>> {
    let bytes = cursor.str64("non-empty domain")?;
    if bytes.is_empty() {
        return Ok(None);
    }
    let mut inner = Cursor::new(bytes);
    let ranges = parse_ranges(&mut inner, schema)?;
    inner.expect_end("non-empty domain")?;
    Ok(Some(ranges))
}

/// Reads the list of boxes, as a tree of one level.
fn parse_mbrs(cursor: &mut Cursor<'_>, version: u32, schema: &ArraySchema) -> Result<RTree<Box<[u8]>>> {
    let rest = cursor.clone().bytes(cursor.remaining(), "MBRs")?;
    let mut reader = PageReader::new(rest);
    let layout = RTreeLayout::read_list(&mut reader, version, schema)?;
    let length = usize::try_from(reader.position()).unwrap_or(usize::MAX);
    Ok(RTree { layout, bytes: cursor.bytes(length, "MBRs")?.into() })
}

/// Skips the first and last coordinates of each tile, which later versions dropped.
fn skip_bounding_coordinates(cursor: &mut Cursor<'_>, schema: &ArraySchema) -> Result<()> {
    let size: usize = schema.dimensions.iter().map(|dimension| 2 * dimension.datatype.size()).sum();
    let count = cursor.u64("bounding coordinates")?;
    let count = cursor.checked_count(count, size, "bounding coordinates")?;
    cursor.bytes(count.saturating_mul(size), "bounding coordinates").map(|_| ())
}
