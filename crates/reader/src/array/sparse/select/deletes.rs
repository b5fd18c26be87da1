//! The delete conditions of an array, and the cells of a fragment that they keep.
//!
//! A file stores the negation of the condition that the user gave: cells for which the stored condition holds are kept.
//! libtiledb evaluates it in two-valued logic, without a third value for null. A comparison with a field that the
//! fragment lacks is false, and also discards what an "or" has gathered. Both rules decide which rows a user sees, so
//! this file follows them.

use std::cmp::Ordering;
use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::memory;
use tilefs_format::condition::{Combination, Condition, Operator, ValueCondition};
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::fragment::FragmentField;

use super::cells::TileCells;
use super::files::{FixedFile, append_strings, string_tiles};
use crate::array::OpenedArray;
use crate::array::directory::ConditionBytes;
use crate::array::folder::outline::FieldFile;
use crate::array::metadata_tiles::generic_tile::{decode_inline_tile, read_generic_tile};
use crate::array::order::key::AxisColumn;
use crate::array::tiles::var_tiles::VarTiles;

/// One delete commit.
#[derive(Debug, Clone)]
pub struct Delete {
    /// The name under which a fragment lists this delete once consolidation has applied it.
    pub marker: String,
    /// Cells written after this time are kept.
    pub time: u64,
    pub condition: Arc<Condition>,
}

/// Returns the deletes in the array's window, oldest first.
///
/// # Errors
/// Any damage in a delete's file, which includes a condition on a field that no schema of the array has;
/// [`Error::Unsupported`] for update commits.
pub fn visible_deletes(array: &OpenedArray) -> Result<Vec<Delete>> {
    let (context, folder) = (array.context(), array.folder());
    let mut deletes = Vec::new();
    for entry in folder.directory().visible_conditions(array.window()) {
        if entry.marker.ends_with(".upd") {
            return Err(Error::unsupported("an update commit").in_file(&entry.marker).in_array(array.path()));
        }
        let payload = match &entry.stored {
            ConditionBytes::File(path) => read_generic_tile(context, path, 0),
            ConditionBytes::Inline(bytes) => decode_inline_tile(context, bytes),
        };
        let condition = payload.and_then(|payload| Condition::parse(&payload));
        let checked = condition.and_then(|condition| check_fields(array, &condition).map(|()| condition));
        let condition = checked.in_file(&entry.marker).in_array(array.path())?;
        deletes.push(Delete { marker: entry.marker.clone(), time: entry.times.t1, condition: Arc::new(condition) });
    }
    Ok(deletes)
}

/// Checks that each field of a condition is in a schema of the array. A fragment may lack the field, because the field
/// was added or dropped later: that is no damage.
fn check_fields(array: &OpenedArray, condition: &Condition) -> Result<()> {
    let folder = array.folder();
    let mut unknown = condition.fields();
    unknown.retain(|field| !array.schema().has_field(field));
    for entry in folder.directory().schemas().iter().rev() {
        if unknown.is_empty() {
            break;
        }
        let schema = folder.schema(&entry.name)?;
        unknown.retain(|field| !schema.has_field(field));
    }
    match unknown.first() {
        None => Ok(()),
        Some(field) => {
            let reason = "a delete condition on a field that no schema of the array has";
            Err(Error::damaged(reason).in_field(field))
        }
    }
}

/// A delete condition, applied to the cells of one fragment.
pub struct FragmentCondition<'a> {
    array: &'a OpenedArray,
    fragment: usize,
    condition: &'a Condition,
    /// Cells written after this time are kept whatever the condition says. `Some` if each cell has its own time.
    time: Option<u64>,
}

impl<'a> FragmentCondition<'a> {
    /// # Errors
    /// [`Error::Damaged`] if the condition compares values of another size than the fragment's cells have.
    pub fn new(array: &'a OpenedArray, fragment: usize, delete: &'a Delete, by_cell: bool) -> Result<Self> {
        let outline = array.outline(fragment)?;
        delete.condition.check(&outline.schema).in_file(&delete.marker)?;
        let time = by_cell.then_some(delete.time);
        Ok(FragmentCondition { array, fragment, condition: &delete.condition, time })
    }

    /// Clears in `kept` the cells of a tile that the delete removes. `times` are the times of these cells.
    ///
    /// # Errors
    /// Any damage in the fields that the condition needs.
    pub fn apply(&self, cells: TileCells, times: &[u64], kept: &mut [bool]) -> Result<()> {
        let Some(time) = self.time else {
            return self.node(self.condition, cells, Combination::And, kept);
        };
        // "Newer than the delete, or the condition holds". An "or" at the top of the condition merges with this one.
        let mut result: Vec<bool> = times.iter().map(|cell| *cell > time).collect();
        match self.condition {
            Condition::Expression { combination: Combination::Or, children } => {
                for child in children {
                    self.node(child, cells, Combination::Or, &mut result)?;
                }
            }
            other => self.node(other, cells, Combination::Or, &mut result)?,
        }
        combine(Combination::And, kept, &result);
        Ok(())
    }

    /// Combines, for each cell, the result of a node with the result so far in `known`.
    fn node(&self, node: &Condition, cells: TileCells, with: Combination, known: &mut [bool]) -> Result<()> {
        match node {
            Condition::Value(value) => self.value(value, cells, with, known),
            // Within an "and", a nested "and" needs no result of its own.
            Condition::Expression { combination: Combination::And, children } if with == Combination::And => {
                children.iter().try_for_each(|child| self.node(child, cells, Combination::And, known))
            }
            Condition::Expression { combination, children } => {
                let inner = if *combination == Combination::Or { Combination::Or } else { Combination::And };
                let mut result = vec![inner == Combination::And; known.len()];
                for child in children {
                    self.node(child, cells, inner, &mut result)?;
                }
                if *combination == Combination::Not {
                    result.iter_mut().for_each(|cell| *cell = !*cell);
                }
                combine(with, known, &result);
                Ok(())
            }
        }
    }

    fn value(&self, value: &ValueCondition, cells: TileCells, with: Combination, known: &mut [bool]) -> Result<()> {
        let result = match value.operator {
            Operator::AlwaysTrue => vec![true; known.len()],
            Operator::AlwaysFalse => vec![false; known.len()],
            _ => match self.compare(value, cells).in_field(&value.field)? {
                Some(result) => result,
                None => {
                    // As in libtiledb, this is more than `false`: it also discards what an "or" has gathered so far.
                    known.fill(false);
                    return Ok(());
                }
            },
        };
        combine(with, known, &result);
        Ok(())
    }

    /// Returns the result of a comparison for each cell; `None` if the fragment lacks the field.
    fn compare(&self, value: &ValueCondition, cells: TileCells) -> Result<Option<Vec<bool>>> {
        let (array, fragment) = (self.array, self.fragment);
        let outline = array.outline(fragment)?;
        let schema = &outline.schema;
        if let Some(number) = schema.dimensions.iter().position(|dimension| dimension.name == value.field) {
            let dimension = &schema.dimensions[number];
            let column = match dimension.is_variable() {
                true => ComparedCells::Var(self.var_cells(&string_tiles(array, fragment, number)?, cells)?),
                false => {
                    let file = FixedFile::of_dimension(array, fragment, number)?;
                    ComparedCells::Fixed(
                        fixed_cells(&file, cells, dimension.datatype.size())?,
                        dimension.datatype.size(),
                    )
                }
            };
            return column.test(value, dimension.datatype).map(Some);
        }
        let Some(number) = schema.attributes.iter().position(|attribute| attribute.name == value.field) else {
            return Ok(None);
        };
        let (attribute, folder) = (&schema.attributes[number], array.folder());
        let (own, field) = (array.number(fragment), FragmentField::Attribute(number));
        let validity_bytes = match attribute.nullable {
            false => None,
            true => {
                let tiles = folder.tiles(own, field, FieldFile::Validity)?;
                Some(fixed_cells(&FixedFile::Own { tiles, cell_size: 1 }, cells, 1)?)
            }
        };
        let mut result = match attribute.cell_size() {
            Some(size) if value.value().is_empty() && is_equality(value.operator) => {
                // A comparison with a value of no bytes tests for null.
                let wants_valid = value.operator == Operator::NotEqual;
                let bytes = validity_bytes.unwrap_or_else(|| vec![1; cells.count as usize]);
                debug_assert!(size > 0);
                return Ok(Some(bytes.iter().map(|byte| (*byte != 0) == wants_valid).collect()));
            }
            Some(size) => {
                let tiles = folder.tiles(own, field, FieldFile::Data)?;
                let bytes = fixed_cells(&FixedFile::Own { tiles, cell_size: size }, cells, size)?;
                ComparedCells::Fixed(bytes, size).test(value, attribute.datatype)?
            }
            None => {
                let tiles = folder.var_tiles(own, field, attribute.datatype.size())?;
                ComparedCells::Var(self.var_cells(&tiles, cells)?).test(value, attribute.datatype)?
            }
        };
        // A comparison with null is never true, so any comparison deletes the cells that are null.
        if let Some(bytes) = validity_bytes {
            result.iter_mut().zip(bytes).for_each(|(cell, byte)| *cell &= byte != 0);
        }
        Ok(Some(result))
    }

    fn var_cells(&self, tiles: &VarTiles, cells: TileCells) -> Result<AxisColumn> {
        let mut column = AxisColumn::default();
        append_strings(&self.array.context().fetcher, tiles, cells, &mut column)?;
        Ok(column)
    }
}

fn is_equality(operator: Operator) -> bool {
    matches!(operator, Operator::Equal | Operator::NotEqual)
}

fn combine(with: Combination, known: &mut [bool], result: &[bool]) {
    let cells = known.iter_mut().zip(result);
    match with {
        Combination::And => cells.for_each(|(known, result)| *known &= result),
        _ => cells.for_each(|(known, result)| *known |= result),
    }
}

fn fixed_cells(file: &FixedFile, cells: TileCells, size: usize) -> Result<Vec<u8>> {
    let mut bytes = memory::zeros(cells.count, size, "what a delete condition looks at")?;
    file.read(cells, &mut bytes)?;
    Ok(bytes)
}

/// The cells that a condition compares.
enum ComparedCells {
    /// The cells, and the size of one.
    Fixed(Vec<u8>, usize),
    Var(AxisColumn),
}

impl ComparedCells {
    fn test(&self, condition: &ValueCondition, datatype: Datatype) -> Result<Vec<bool>> {
        if let ComparedCells::Fixed(_, size) = self
            && datatype.kind() != Kind::Bytes
            && *size != datatype.size()
        {
            return Err(Error::unsupported("a delete condition on cells of several numbers"));
        }
        if matches!(condition.operator, Operator::In | Operator::NotIn) {
            let is_wanted = condition.operator == Operator::In;
            return Ok(self.cells().map(|cell| is_member(condition, cell, datatype) == is_wanted).collect());
        }
        match self {
            ComparedCells::Fixed(bytes, _) if datatype.kind() != Kind::Bytes => {
                Ok(test_numbers(bytes, condition, datatype))
            }
            _ => Ok(self.cells().map(|cell| holds(condition, |value| Some(cell.cmp(value)))).collect()),
        }
    }

    /// Iterates over the bytes of each cell.
    fn cells(&self) -> Box<dyn Iterator<Item = &[u8]> + '_> {
        match self {
            ComparedCells::Fixed(bytes, size) => Box::new(bytes.chunks_exact((*size).max(1))),
            ComparedCells::Var(column) => {
                Box::new((0..column.offsets.len().saturating_sub(1)).map(|cell| column.text(cell)))
            }
        }
    }
}

/// Returns whether a cell is a member of a condition's set. The two zeros are the same number, and NaN is in no set.
fn is_member(condition: &ValueCondition, cell: &[u8], datatype: Datatype) -> bool {
    let number = match (datatype.kind(), cell) {
        (Kind::Float, [a, b, c, d]) => Some(f32::from_le_bytes([*a, *b, *c, *d]).into()),
        (Kind::Float, [a, b, c, d, e, f, g, h]) => Some(f64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h])),
        _ => None,
    };
    match number {
        Some(number) if number.is_nan() => false,
        Some(0.0) => {
            let mut zeros = [[0; 8]; 2];
            zeros[1][cell.len() - 1] = 0x80;
            zeros.iter().any(|zero| condition.has_member(&zero[..cell.len()]))
        }
        _ => condition.has_member(cell),
    }
}

fn test_numbers(bytes: &[u8], condition: &ValueCondition, datatype: Datatype) -> Vec<bool> {
    match (datatype.kind(), datatype.size()) {
        (Kind::Signed, 1) => test(bytes, condition, i8::from_le_bytes),
        (Kind::Signed, 2) => test(bytes, condition, i16::from_le_bytes),
        (Kind::Signed, 4) => test(bytes, condition, i32::from_le_bytes),
        (Kind::Signed, _) => test(bytes, condition, i64::from_le_bytes),
        (Kind::Float, 4) => test(bytes, condition, f32::from_le_bytes),
        (Kind::Float, _) => test(bytes, condition, f64::from_le_bytes),
        (_, 1) => test(bytes, condition, u8::from_le_bytes),
        (_, 2) => test(bytes, condition, u16::from_le_bytes),
        (_, 4) => test(bytes, condition, u32::from_le_bytes),
        (..) => test(bytes, condition, u64::from_le_bytes),
    }
}

/// Compares numbers of one type. The caller has checked that the condition's values have the size of this type.
fn test<const SIZE: usize, T: PartialOrd>(
    bytes: &[u8],
    condition: &ValueCondition,
    parse: impl Fn([u8; SIZE]) -> T,
) -> Vec<bool> {
    let (cells, _) = bytes.as_chunks();
    let compare = |cell: &T, value: &[u8]| cell.partial_cmp(&parse(value.try_into().ok()?));
    cells.iter().map(|cell| parse(*cell)).map(|cell| holds(condition, |value| compare(&cell, value))).collect()
}

/// Returns whether a condition on a single value holds for a cell, given how the cell compares with that value. If the
/// two have no order, only "not equal" holds.
fn holds(condition: &ValueCondition, compare: impl Fn(&[u8]) -> Option<Ordering>) -> bool {
    let single = || compare(condition.value());
    match condition.operator {
        Operator::Less => single().is_some_and(Ordering::is_lt),
        Operator::LessOrEqual => single().is_some_and(Ordering::is_le),
        Operator::Greater => single().is_some_and(Ordering::is_gt),
        Operator::GreaterOrEqual => single().is_some_and(Ordering::is_ge),
        Operator::Equal => single() == Some(Ordering::Equal),
        Operator::NotEqual => single() != Some(Ordering::Equal),
        // Sets have no single value to compare with.
        Operator::In | Operator::NotIn => false,
        Operator::AlwaysTrue => true,
        Operator::AlwaysFalse => false,
    }
}
