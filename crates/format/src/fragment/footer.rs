//! The footer of fragment metadata, format versions 3 to 23: its place in the file, and its content.

use std::ops::Range as ByteRange;

use tilefs_base::error::{Error, Locate, Result};

use super::FragmentField;
use super::facts::{FragmentFacts, counts, parse_ranges};
use crate::cursor::Cursor;
use crate::schema::{ArraySchema, FIRST_SCHEMA};
use crate::version::check_version;

/// The longest footer that is accepted, enough for a hundred thousand fields. A longer one is damage.
const MAX_FOOTER: u64 = 1 << 24;

/// The parts of a footer that readers need.
#[derive(Debug, Clone, PartialEq)]
pub struct FragmentFooter {
    /// The facts about the whole fragment.
    pub facts: FragmentFacts,
    /// One record per slot; [`FragmentFooter::record`] finds the one of a field. Large for arrays of many fields: keep
    /// `facts` and drop the records until the fragment is read.
    pub records: Box<[FieldRecord]>,
    /// The offset of the generic tile of the fragment's statistics, from version 12.
    pub statistics_offset: Option<u64>,
}

/// The file sizes of one field in bytes, and the offsets of its sections, generic tiles, in the metadata file.
///
/// The writer recorded them; nothing has been checked against the files. Numbers that the version or the field does not
/// have are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FieldRecord {
    /// Length of the file of values or offsets, in bytes.
    pub file_size: u64,
    /// Length of the file of variable-length values, in bytes.
    pub var_file_size: u64,
    /// Length of the file of validities, in bytes.
    pub validity_file_size: u64,
    /// Section of the offsets of the tiles in the data file.
    pub tile_offsets: u64,
    /// Section of the offsets of the tiles in the `_var` file.
    pub var_offsets: u64,
    /// Section of the unfiltered sizes of the tiles in the `_var` file.
    pub var_sizes: u64,
    /// Section of the offsets of the tiles in the `_validity` file.
    pub validity_offsets: u64,
    /// Section of the minimum of each tile, from version 11.
    pub tile_minima: u64,
    /// Section of the maximum of each tile, from version 11.
    pub tile_maxima: u64,
    /// Section of the sum of each tile, from version 11.
    pub tile_sums: u64,
    /// Section of the number of nulls of each tile, from version 11.
    pub tile_null_counts: u64,
}

impl FieldRecord {
    /// Bytes of the field's files together.
    fn stored_bytes(&self) -> u64 {
        self.file_size.saturating_add(self.var_file_size).saturating_add(self.validity_file_size)
    }
}

/// Returns the byte range of the footer in a metadata file of `file_size` bytes.
///
/// `name_version` is the version in the fragment's name, `last_8` the last 8 bytes of the file. From version 10, these
/// are the length of the footer, and no schema is needed. Before, the array's [`FIRST_SCHEMA`] is required, because a
/// footer of fixed-size dimensions does not store its length.
///
/// # Errors
/// [`Error::Damaged`] if the footer does not fit the file; [`Error::Unsupported`] for unknown versions.
pub fn footer_range(
    name_version: u32,
    first_schema: Option<&ArraySchema>,
    file_size: u64,
    last_8: [u8; 8],
) -> Result<ByteRange<u64>> {
    check_version(name_version).in_field("version")?;
    if name_version < 3 {
        return Err(Error::damaged(format!("no footer in format version {name_version}")));
    }
    let computed = match first_schema {
        _ if name_version >= 10 => None,
        Some(schema) => computed_size(name_version, schema)?,
        None => return Err(Error::damaged(format!("fragment of version {name_version} without {FIRST_SCHEMA}"))),
    };
    let (size, end) = match computed {
        Some(size) => (size, Some(file_size)),
        None => (u64::from_le_bytes(last_8), file_size.checked_sub(8)),
    };
    end.and_then(|end| Some(end.checked_sub(size)?..end)).filter(|_| size > 0 && size <= MAX_FOOTER).ok_or_else(|| {
        Error::damaged(format!("no footer of that size in a file of {file_size} bytes")).in_field("footer size")
    })
}

/// Returns the length of a footer that does not store it: versions 3 to 9 without string dimensions. `None` with string
/// dimensions.
fn computed_size(version: u32, schema: &ArraySchema) -> Result<Option<u64>> {
    let mut domain = 0u64;
    for dimension in &schema.dimensions {
        if dimension.is_variable() {
            return Ok(None);
        }
        domain += 2 * dimension.datatype.size() as u64;
    }
    let (attributes, dimensions) = counts(schema)?;
    let attributes = u64::from(attributes);
    let slots = if version < 5 { attributes + 1 } else { attributes + 1 + u64::from(dimensions) };
    let var_slots = if version < 5 { attributes } else { slots };
    let validity_slots = if version < 7 { 0 } else { slots };
    // Version, two flags, domain, two counts, file sizes, R-tree, section offsets.
    let sizes = slots + var_slots + validity_slots;
    let sections = slots + 2 * var_slots + validity_slots;
    Ok(Some(6 + domain + 16 + 8 * sizes + 8 + 8 * sections))
}

/// Reads the name of the schema that a footer refers to: [`FIRST_SCHEMA`] before version 10. Parsing the rest of the
/// footer requires that schema.
///
/// # Errors
/// [`Error::Damaged`] for an empty name or one that is not a file name, [`Error::Unsupported`] for unknown versions.
pub fn schema_name(footer: &[u8]) -> Result<&str> {
    let mut cursor = Cursor::new(footer);
    let version = footer_version(&mut cursor)?;
    if version < 10 { Ok(FIRST_SCHEMA) } else { stored_schema_name(&mut cursor) }
}

fn stored_schema_name<'a>(cursor: &mut Cursor<'a>) -> Result<&'a str> {
    let name = cursor.str64("schema name")?;
    match std::str::from_utf8(name) {
        Ok(text) if !text.is_empty() && text != "." && text != ".." && !text.contains(['/', '\\', '\0']) => Ok(text),
        _ => Err(cursor.error("schema name", format!("schema name {:?}", name.escape_ascii().to_string()))),
    }
}

fn footer_version(cursor: &mut Cursor<'_>) -> Result<u32> {
    let version = cursor.u32("version")?;
    check_version(version).in_field("version").at(0)?;
    if version < 3 {
        return Err(cursor.error("version", format!("no footer in format version {version}")));
    }
    Ok(version)
}

impl FragmentFooter {
    /// Reads a footer. `name_version` is the version in the fragment's name, `schema` the schema that [`schema_name`]
    /// names. Bytes after the last known field are ignored: some libraries append more than the version defines.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the bytes end early or contradict the name, the schema or each other;
    /// [`Error::Unsupported`] for unknown versions.
    pub fn parse(footer: &[u8], name_version: u32, schema: &ArraySchema) -> Result<Self> {
        let mut cursor = Cursor::new(footer);
        let version = footer_version(&mut cursor)?;
        // Names without a version belong to versions 3 and 4, and are parsed as 4.
        if version != name_version && !(name_version == 4 && version == 3) {
            return Err(cursor.error("version", format!("footer of version {version}, name of version {name_version}")));
        }
        if version >= 10 {
            stored_schema_name(&mut cursor)?;
        }
        let dense = cursor.u8("dense")? != 0;
        let null_domain = cursor.u8("null non-empty domain")? != 0;
        let mut parsed = if null_domain {
            without_domain(cursor, version, dense, schema)?
        } else {
            let domain = parse_ranges(&mut cursor, schema)?;
            let mut parsed = parse_after_domain(&mut cursor, version, dense, schema)?;
            parsed.facts.non_empty_domain = Some(domain);
            parsed
        };
        parsed.facts.check(schema)?;
        Ok(parsed)
    }

    /// Returns the record of a field; `None` if the fragment has no such field.
    pub fn record(&self, field: FragmentField) -> Option<&FieldRecord> {
        self.records.get(self.facts.slot(field)?)
    }
}

/// Reads a footer that is marked as having no non-empty domain. Some writers still store zeros in place of fixed-size
/// ranges, which the format does not have: the length of the footer tells the two forms apart.
fn without_domain(cursor: Cursor<'_>, version: u32, dense: bool, schema: &ArraySchema) -> Result<FragmentFooter> {
    let is_whole = |cursor: &Cursor<'_>| cursor.is_at_end() || (version == 11 && cursor.remaining() == 8);
    let mut bare = cursor.clone();
    if let Ok(parsed) = parse_after_domain(&mut bare, version, dense, schema)
        && is_whole(&bare)
    {
        return Ok(parsed);
    }
    let mut padded = cursor.clone();
    parse_ranges(&mut padded, schema)?;
    let parsed = parse_after_domain(&mut padded, version, dense, schema)?;
    if is_whole(&padded) { Ok(parsed) } else { Err(cursor.error("null non-empty domain", "length that does not fit")) }
}

/// Reads the fields after the non-empty domain, which is left `None`.
fn parse_after_domain(
    cursor: &mut Cursor<'_>,
    version: u32,
    dense: bool,
    schema: &ArraySchema,
) -> Result<FragmentFooter> {
    let (attribute_count, dimension_count) = counts(schema)?;
    let mut facts = FragmentFacts {
        version,
        dense,
        non_empty_domain: None,
        sparse_tiles: cursor.u64("number of sparse tiles")?,
        last_tile_cells: cursor.u64("last tile cell number")?,
        has_timestamps: version >= 14 && cursor.u8("has timestamps")? != 0,
        has_delete_metadata: version >= 15 && cursor.u8("has delete metadata")? != 0,
        rtree_offset: 0,
        processed_conditions_offset: 0,
        stored_bytes: 0,
        attribute_count,
        dimension_count,
    };
    let slots = cursor.checked_count(facts.slot_count() as u64, 8, "file sizes")?;
    let var_slots = if version < 5 { attribute_count as usize } else { slots };
    let validity_slots = if version < 7 { 0 } else { slots };
    let mut records = vec![FieldRecord::default(); slots];
    let mut fill = |cursor: &mut Cursor<'_>, count: usize, field: &str, set: fn(&mut FieldRecord, u64)| -> Result<()> {
        records.iter_mut().take(count).try_for_each(|record| {
            set(record, cursor.u64(field)?);
            Ok(())
        })
    };
    fill(cursor, slots, "file sizes", |record, size| record.file_size = size)?;
    fill(cursor, var_slots, "var file sizes", |record, size| record.var_file_size = size)?;
    fill(cursor, validity_slots, "validity file sizes", |record, size| record.validity_file_size = size)?;
    facts.rtree_offset = cursor.u64("R-tree offset")?;
    fill(cursor, slots, "tile offsets", |record, offset| record.tile_offsets = offset)?;
    fill(cursor, var_slots, "var offsets", |record, offset| record.var_offsets = offset)?;
    fill(cursor, var_slots, "var sizes", |record, offset| record.var_sizes = offset)?;
    fill(cursor, validity_slots, "validity offsets", |record, offset| record.validity_offsets = offset)?;
    if version >= 11 {
        fill(cursor, slots, "tile minima", |record, offset| record.tile_minima = offset)?;
        fill(cursor, slots, "tile maxima", |record, offset| record.tile_maxima = offset)?;
        fill(cursor, slots, "tile sums", |record, offset| record.tile_sums = offset)?;
        fill(cursor, slots, "tile null counts", |record, offset| record.tile_null_counts = offset)?;
    }
    facts.stored_bytes = records.iter().map(FieldRecord::stored_bytes).fold(0, u64::saturating_add);
    let statistics_offset = if version >= 12 { Some(cursor.u64("fragment statistics")?) } else { None };
    if version >= 16 {
        facts.processed_conditions_offset = cursor.u64("processed conditions")?;
    }
    if version >= 23 {
        optional_sections(cursor, schema)?;
    }
    Ok(FragmentFooter { facts, records: records.into(), statistics_offset })
}

/// Skips the optional sections. Readers need none of them and must ignore unknown ones.
fn optional_sections(cursor: &mut Cursor<'_>, schema: &ArraySchema) -> Result<()> {
    let count = cursor.u32("optional sections")?;
    for _ in 0..cursor.checked_count(u64::from(count), 12, "optional sections")? {
        let identifier = cursor.u64("optional section")?;
        let section = cursor.str32("optional section")?;
        // Section 0 stores the offsets of the global-order bounds, two per dimension.
        if identifier == 0 && section.len() != 16 * schema.dimensions.len() {
            return Err(cursor.error("global-order bounds", format!("{} bytes", section.len())));
        }
    }
    Ok(())
}
