//! The fields of records as columns of a table: `info_DP`, `fmt_GT`.
//!
//! | definition | column | in text tables |
//! |---|---|---|
//! | `Integer`, `Float`, one value | int32, float32 | the number |
//! | `Integer`, `Float`, any other number of values | a list of them, in which values can be missing | as in VCF: `7,.` |
//! | `Flag` | boolean, false where a record does not have it | `true`, `false` |
//! | `String`, `Character`, one value | text | the text |
//! | `String`, `Character`, any other number of values | a list of texts | as in VCF: `a,b` |
//! | FORMAT `GT` | a list of the numbers of alleles, and beside it whether they are phased | as in VCF: `0\|1` |
//! | different types in different headers | text, or a list of texts | as in VCF |
//!
//! A field that a record does not have, or whose only value is missing, is null. The fields of a record that no header
//! defines are a text in one further column, as in VCF.

use std::collections::{HashMap, HashSet};

use tilefs_format::datatype::Datatype;
use tilefs_format::error::{Error, Locate, Result};

use super::definitions::{DefinedField, Definitions, FieldKind, FieldType, Filters, ValueType};
use super::fields::{self, FieldValue, MISSING_TEXT, Values, unpadded};
use super::record::{GENOTYPE, allele_list, filter_numbers, one_text};
use crate::column::Field;
use crate::computed::{CellKind, Cells, ComputedField};

/// How lists are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// As lists, for formats that have them.
    Lists,
    /// As texts, in the notation of VCF.
    Texts,
}

/// What a column shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// The values of a field, by its number.
    Values(usize),
    /// Whether the alleles of a genotype are phased: true if all are, and null if there are fewer than two.
    Phased(usize),
    /// All fields that no header defines.
    Undefined,
}

/// The columns of the INFO or of the FORMAT fields of a dataset. Memory: a few words for each.
#[derive(Debug, Clone)]
pub struct FieldColumns {
    fields: Vec<DefinedField>,
    numbers: HashMap<Vec<u8>, usize>,
    columns: Vec<ComputedField>,
    shown: Vec<Shown>,
    /// The number of the column of each field's values, and of genotypes that of their phase.
    of_fields: Vec<(usize, Option<usize>)>,
    notation: Notation,
}

impl FieldColumns {
    /// Creates the columns of a kind. Their names are `info_NAME` or `fmt_NAME`; `taken` has all names that columns have
    /// already, and receives those of these.
    pub fn new(definitions: &Definitions, kind: FieldKind, notation: Notation, taken: &mut HashSet<String>) -> Self {
        let prefix = match kind {
            FieldKind::Info => "info_",
            FieldKind::Format => "fmt_",
        };
        let fields = definitions.fields(kind).to_vec();
        let mut free = |name: String| {
            let mut name = name;
            while !taken.insert(name.clone()) {
                name.push('_');
            }
            name
        };
        let names: Vec<String> =
            fields.iter().map(|field| free(format!("{prefix}{}", String::from_utf8_lossy(&field.name)))).collect();
        let (mut columns, mut shown, mut of_fields) = (Vec::new(), Vec::new(), Vec::new());
        for (number, (field, name)) in fields.iter().zip(names).enumerate() {
            let (datatype, cell) = stored_as(field.of, notation);
            let is_nullable = field.of.value != ValueType::Flag;
            let place = columns.len();
            let phase = (field.of.value == ValueType::Genotype).then_some(place + 1);
            let phase_name = phase.map(|_| free(format!("{name}_phased")));
            columns.push(ComputedField { field: Field::new(name, datatype).with_nullable(is_nullable), kind: cell });
            shown.push(Shown::Values(number));
            if let Some(name) = phase_name {
                let field = Field::new(name, Datatype::Bool).with_nullable(true);
                columns.push(ComputedField { field, kind: CellKind::Value(1) });
                shown.push(Shown::Phased(number));
            }
            of_fields.push((place, phase));
        }
        let field = Field::new(free(format!("{prefix}undefined")), Datatype::StringUtf8).with_nullable(true);
        columns.push(ComputedField { field, kind: CellKind::Text });
        shown.push(Shown::Undefined);
        let numbers = fields.iter().enumerate().map(|(number, field)| (field.name.clone(), number)).collect();
        FieldColumns { fields, numbers, columns, shown, of_fields, notation }
    }

    /// Returns the columns.
    pub fn columns(&self) -> &[ComputedField] {
        &self.columns
    }

    /// Appends the fields of a record to one of the columns, or to all if `only` is `None`; there are as many `cells` as
    /// columns wanted. `stored` is the value of all fields that have no attribute of their own, `extracted` has the
    /// others by their names.
    ///
    /// # Errors
    /// Fails for values that are not what TileDB-VCF stores, or that are not of the type of their column; the error
    /// names the field.
    pub fn append(
        &self,
        stored: &[u8],
        extracted: &[(&[u8], &[u8])],
        only: Option<usize>,
        cells: &mut [Cells],
    ) -> Result<()> {
        let rows = cells.first().map_or(0, Cells::count);
        let mut undefined = Vec::new();
        let found = fields::fields(stored)?.into_iter().map(Ok);
        let extracted = extracted.iter().filter_map(|&(name, bytes)| {
            let values = fields::extracted(bytes).map_err(|error| error.in_field(&String::from_utf8_lossy(name)));
            values.map(|values| values.map(|values| FieldValue { name, values })).transpose()
        });
        for field in found.chain(extracted) {
            let FieldValue { name, values } = field?;
            let place = self.numbers.get(name).and_then(|&number| self.of_fields.get(number));
            let shown = match place {
                Some((column, phase)) => [Some(*column), *phase],
                None if only.is_none_or(|only| self.shown.get(only) == Some(&Shown::Undefined)) => {
                    append_undefined(name, values, &mut undefined).map_err(|error| in_field(error, name))?;
                    continue;
                }
                None => continue,
            };
            for column in shown.into_iter().flatten() {
                let Some(cells) = place_of(column, only).and_then(|place| cells.get_mut(place)) else { continue };
                if cells.count() > rows {
                    return Err(in_field(Error::damaged("a field that a record has twice"), name));
                }
                self.push(column, values, cells).map_err(|error| in_field(error, name))?;
            }
        }
        for (column, shown) in self.shown.iter().enumerate() {
            let Some(cells) = place_of(column, only).and_then(|place| cells.get_mut(place)) else { continue };
            match shown {
                Shown::Undefined if !undefined.is_empty() => {
                    check_utf8(&undefined)?;
                    cells.push(&undefined);
                }
                _ if cells.count() > rows => {}
                Shown::Values(field) if self.type_of(*field)?.value == ValueType::Flag => cells.push(&[0]),
                _ => cells.push_null(),
            }
        }
        Ok(())
    }

    fn type_of(&self, field: usize) -> Result<FieldType> {
        self.fields.get(field).map(|field| field.of).ok_or_else(|| Error::internal("no such field"))
    }

    /// Appends values of a field to the cells of a column that shows it.
    fn push(&self, column: usize, values: Values<'_>, cells: &mut Cells) -> Result<()> {
        let field = match self.shown.get(column) {
            Some(Shown::Values(field)) => *field,
            Some(Shown::Phased(_)) => return push_phase(values, cells),
            _ => return Err(Error::internal("a column of no field")),
        };
        let FieldType { value, is_list } = self.type_of(field)?;
        match (value, self.notation) {
            (ValueType::Flag, _) if values == Values::Flag => {
                cells.push(&[1]);
                Ok(())
            }
            (ValueType::Integer | ValueType::Float, notation) if value.holds(values) => match (is_list, notation) {
                (false, _) => push_number(values, cells),
                (true, Notation::Lists) => push_numbers(values, cells),
                (true, Notation::Texts) => push_text(values, cells),
            },
            (ValueType::Genotype, Notation::Lists) if value.holds(values) => push_genotype(values, cells),
            (ValueType::Genotype, Notation::Texts) if value.holds(values) => {
                cells.push_text(|out| values.append_genotype(b"", out))
            }
            (ValueType::Text, Notation::Lists) if is_list => push_texts(values, cells),
            (ValueType::Text, Notation::Lists) => push_utf8(values, cells),
            (ValueType::Text, Notation::Texts) => push_text(values, cells),
            _ => Err(Error::damaged(format!("{}, where headers define {}", kind_of(values), value.name()))),
        }
    }
}

/// Returns the place of a column's cells among those that are wanted.
fn place_of(column: usize, only: Option<usize>) -> Option<usize> {
    match only {
        None => Some(column),
        Some(only) => (only == column).then_some(0),
    }
}

fn in_field(error: Error, name: &[u8]) -> Error {
    error.in_field(&String::from_utf8_lossy(name))
}

/// Returns the type of a column's values, and what its cells are.
fn stored_as(of: FieldType, notation: Notation) -> (Datatype, CellKind) {
    let text = Datatype::StringUtf8;
    match (of.value, of.is_list, notation) {
        (ValueType::Flag, ..) => (Datatype::Bool, CellKind::Value(1)),
        (_, true, Notation::Texts) => (text, CellKind::Text),
        (ValueType::Integer, false, _) => (Datatype::Int32, CellKind::Value(4)),
        (ValueType::Float, false, _) => (Datatype::Float32, CellKind::Value(4)),
        (ValueType::Integer | ValueType::Genotype, ..) => (Datatype::Int32, CellKind::Numbers(4)),
        (ValueType::Float, ..) => (Datatype::Float32, CellKind::Numbers(4)),
        (ValueType::Text, true, _) => (text, CellKind::Texts),
        (ValueType::Text, false, _) => (text, CellKind::Text),
    }
}

impl ValueType {
    /// Returns whether stored values have this type.
    fn holds(self, values: Values<'_>) -> bool {
        match self {
            ValueType::Flag => values == Values::Flag,
            ValueType::Integer | ValueType::Genotype => matches!(values, Values::Integers(_)),
            ValueType::Float => matches!(values, Values::Floats(_)),
            ValueType::Text => true,
        }
    }

    fn name(self) -> &'static str {
        match self {
            ValueType::Flag => "a flag",
            ValueType::Integer => "integers",
            ValueType::Float => "floats",
            ValueType::Text => "a text",
            ValueType::Genotype => "a genotype",
        }
    }
}

fn kind_of(values: Values<'_>) -> &'static str {
    match values {
        Values::Flag => "a flag",
        Values::Integers(_) => "integers",
        Values::Floats(_) => "floats",
        Values::Text(_) => "a text",
    }
}

/// Returns whether the only value is missing: a dot in VCF.
fn is_missing(values: Values<'_>) -> bool {
    match values {
        Values::Flag => false,
        Values::Text(text) => matches!(unpadded(text), MISSING_TEXT | b"."),
        Values::Integers(_) | Values::Floats(_) => {
            values.each_number().is_some_and(|mut numbers| numbers.next() == Some(None) && numbers.next().is_none())
        }
    }
}

fn push_number(values: Values<'_>, cells: &mut Cells) -> Result<()> {
    let mut numbers = values.each_number().into_iter().flatten();
    match (numbers.next(), numbers.next()) {
        (None | Some(None), None) => cells.push_null(),
        (Some(Some(number)), None) => cells.push(&number),
        _ => return Err(Error::damaged("several values, where headers define one")),
    }
    Ok(())
}

fn push_numbers(values: Values<'_>, cells: &mut Cells) -> Result<()> {
    match is_missing(values) {
        true => cells.push_null(),
        false => cells.push_list(values.each_number().into_iter().flatten()),
    }
    Ok(())
}

fn push_genotype(values: Values<'_>, cells: &mut Cells) -> Result<()> {
    let alleles = values.alleles().into_iter().flatten().collect::<Result<Vec<_>>>()?;
    cells.push_list(alleles.into_iter().map(|(allele, _)| allele.map(i32::to_le_bytes)));
    Ok(())
}

fn push_phase(values: Values<'_>, cells: &mut Cells) -> Result<()> {
    let (mut alleles, mut is_phased) = (0, true);
    for allele in values.alleles().into_iter().flatten() {
        is_phased &= allele?.1 || alleles == 0;
        alleles += 1;
    }
    match alleles {
        0 | 1 => cells.push_null(),
        _ => cells.push(&[u8::from(is_phased)]),
    }
    Ok(())
}

/// Appends values as VCF shows them.
fn push_text(values: Values<'_>, cells: &mut Cells) -> Result<()> {
    cells.push_text(|out| {
        if is_missing(values) {
            return Ok(false);
        }
        append(values, out).map(|()| true)
    })
}

/// As [`push_text`], for formats whose texts are UTF-8.
fn push_utf8(values: Values<'_>, cells: &mut Cells) -> Result<()> {
    if let Values::Text(text) = values {
        check_utf8(text)?;
    }
    push_text(values, cells)
}

fn push_texts(values: Values<'_>, cells: &mut Cells) -> Result<()> {
    if is_missing(values) {
        cells.push_null();
        return Ok(());
    }
    let mut text = Vec::new();
    append(values, &mut text)?;
    check_utf8(&text)?;
    let texts = text.split(|&byte| byte == b',').map(|text| (text != b".").then_some(text));
    cells.push_list(texts.filter(|_| !text.is_empty()));
    Ok(())
}

/// Appends values as VCF shows them, a flag as `true`.
fn append(values: Values<'_>, out: &mut Vec<u8>) -> Result<()> {
    match values {
        Values::Flag => out.extend_from_slice(b"true"),
        _ => _ = values.append(b"", out)?,
    }
    Ok(())
}

fn append_undefined(name: &[u8], values: Values<'_>, out: &mut Vec<u8>) -> Result<()> {
    if !out.is_empty() {
        out.push(b';');
    }
    out.extend_from_slice(name);
    out.push(b'=');
    let has_values = match name {
        GENOTYPE => values.append_genotype(b";", out)?,
        _ => values.append(b";", out)?,
    };
    if !has_values {
        out.pop();
    }
    Ok(())
}

fn check_utf8(text: &[u8]) -> Result<()> {
    match std::str::from_utf8(text) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::unsupported("a text that is not UTF-8; the attribute's raw files have its bytes")),
    }
}

/// Appends the alleles of a record, as they are stored: a list, the reference first.
///
/// # Errors
/// Fails for other bytes than a text that a NUL ends.
pub fn push_alleles(stored: &[u8], notation: Notation, cells: &mut Cells) -> Result<()> {
    let alleles = allele_list(stored)?;
    match notation {
        Notation::Lists => {
            check_utf8(stored)?;
            cells.push_list(alleles.into_iter().map(Some));
        }
        Notation::Texts => cells.push(&alleles.join(&b',')),
    }
    Ok(())
}

/// Appends the identifier of a record, as it is stored; a record without one has a dot.
///
/// # Errors
/// Fails for other bytes than a text that a NUL ends.
pub fn push_id(stored: &[u8], notation: Notation, cells: &mut Cells) -> Result<()> {
    let id = one_text(stored, b" ")?;
    if notation == Notation::Lists {
        check_utf8(id)?;
    }
    cells.push(id);
    Ok(())
}

/// Appends the names of the filters of a record, given their numbers as they are stored; null for a record without any.
///
/// # Errors
/// Fails for other bytes than numbers of these filters.
pub fn push_filters(stored: &[u8], filters: &Filters, notation: Notation, cells: &mut Cells) -> Result<()> {
    let names = filter_numbers(stored)?.map(|number| filters.name(number)).collect::<Result<Vec<_>>>()?;
    match notation {
        _ if names.is_empty() => cells.push_null(),
        Notation::Lists => {
            names.iter().try_for_each(|name| check_utf8(name))?;
            cells.push_list(names.into_iter().map(Some));
        }
        Notation::Texts => cells.push(&names.join(&b';')),
    }
    Ok(())
}
