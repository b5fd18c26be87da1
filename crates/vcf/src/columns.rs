//! The fields of records as columns of a table: `info_DP`, `fmt_GT`.
//!
//! | definition | column | in text tables |
//! |---|---|---|
//! | `Integer`, `Float`, one value | int32, float32 | the number |
//! | `Integer`, `Float`, any other number of values | a list, in which values can be missing | as in VCF: `7,.` |
//! | `Flag` | boolean, false where a record does not have it | `true`, `false` |
//! | `String`, `Character`, one value | text | the text |
//! | `String`, `Character`, any other number of values | a list of texts | as in VCF: `a,b` |
//! | FORMAT `GT` | a list of the numbers of alleles, and beside it whether they are phased | as in VCF: `0\|1` |
//! | different types in different headers | text, or a list of texts | as in VCF |
//!
//! A field that a record lacks, or whose only value is missing, is null. One further column holds the fields that no
//! header defines, and those whose values do not match their definition, as a text in VCF's notation: htslib accepts
//! both, and TileDB-VCF stores them.

use std::collections::{HashMap, HashSet};

use tilefs_base::error::{Error, Locate, Result};
use tilefs_export::Field;
use tilefs_export::column::computed::{CellKind, Cells, ComputedField, Notation};
use tilefs_format::datatype::Datatype;

use super::definitions::{DefinedField, Definitions, FieldKind, FieldType, ValueType};
use super::fields::{self, FieldValue, FieldValues, MISSING_TEXT, unpadded};
use super::record::GENOTYPE;

/// The content of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnContent {
    /// The values of a field, by its number.
    Values(usize),
    /// Whether the alleles of a genotype are phased: true if all are, and null if there are fewer than two.
    Phased(usize),
    /// The fields that have no column, or whose values do not fit their column.
    Other,
}

/// The columns of a dataset's INFO or FORMAT fields. Memory: a few words for each.
#[derive(Debug, Clone)]
pub struct FieldColumns {
    kind: FieldKind,
    fields: Vec<DefinedField>,
    numbers: HashMap<Vec<u8>, usize>,
    columns: Vec<ComputedField>,
    shown: Vec<ColumnContent>,
    /// For each field, the number of the column with its values; for genotypes, also the number of the column with
    /// their phase.
    of_fields: Vec<(usize, Option<usize>)>,
    notation: Notation,
}

impl FieldColumns {
    /// Creates the columns of a kind. Their names are `info_NAME` or `fmt_NAME`. `taken` contains the names of all
    /// other columns, and receives the new ones.
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
            shown.push(ColumnContent::Values(number));
            if let Some(name) = phase_name {
                let field = Field::new(name, Datatype::Bool).with_nullable(true);
                columns.push(ComputedField { field, kind: CellKind::Value(1) });
                shown.push(ColumnContent::Phased(number));
            }
            of_fields.push((place, phase));
        }
        let field = Field::new(free(format!("{prefix}other")), Datatype::StringUtf8).with_nullable(true);
        columns.push(ComputedField { field, kind: CellKind::Text });
        shown.push(ColumnContent::Other);
        let numbers = fields.iter().enumerate().map(|(number, field)| (field.name.clone(), number)).collect();
        FieldColumns { kind, fields, numbers, columns, shown, of_fields, notation }
    }

    /// Returns the columns.
    pub fn columns(&self) -> &[ComputedField] {
        &self.columns
    }

    /// Appends the fields of a record to the column `only`, or to all columns if `only` is `None`; `cells` has an entry
    /// for each column that is appended to. `stored` holds the fields without an attribute of their own, `extracted`
    /// the other fields by name.
    ///
    /// # Errors
    /// Fails for values that are not what TileDB-VCF stores; the error names the field.
    pub fn append(
        &self,
        stored: &[u8],
        extracted: &[(&[u8], &[u8])],
        only: Option<usize>,
        cells: &mut [Cells],
    ) -> Result<()> {
        let rows = cells.first().map_or(0, Cells::count);
        let mut other = Vec::new();
        // Most records have their fields in the same order.
        let mut next = 0;
        let mut add = |FieldValue { name, values }: FieldValue<'_>| {
            let number = match self.fields.get(next) {
                Some(field) if field.name == name => Some(next),
                _ => self.numbers.get(name).copied(),
            };
            next = number.map_or(next, |number| number + 1);
            let place = number.filter(|number| self.fields.get(*number).is_some_and(|field| field.of.fits(values)));
            let Some((column, phase)) = place.and_then(|number| self.of_fields.get(number)) else {
                let is_wanted = only.is_none_or(|only| self.shown.get(only) == Some(&ColumnContent::Other));
                return if is_wanted { append_other(self.kind, name, values, &mut other) } else { Ok(()) };
            };
            for column in [Some(*column), *phase].into_iter().flatten() {
                let Some(cells) = place_of(column, only).and_then(|place| cells.get_mut(place)) else { continue };
                if cells.count() > rows {
                    return Err(Error::damaged("a field that a record has twice"));
                }
                self.push(column, values, cells)?;
            }
            Ok(())
        };
        fields::for_each_field(stored, |field| {
            let name = field.name;
            add(field).map_err(|error| in_field(error, name))
        })?;
        for &(name, bytes) in extracted {
            let found = fields::extracted(bytes).and_then(|values| match values {
                Some(values) => add(FieldValue { name, values }),
                None => Ok(()),
            });
            found.map_err(|error| in_field(error, name))?;
        }
        let shown = match only {
            None => &self.shown[..],
            Some(only) => self.shown.get(only..=only).unwrap_or_default(),
        };
        for (shown, cells) in shown.iter().zip(cells) {
            match shown {
                ColumnContent::Other if !other.is_empty() => {
                    check_utf8(&other)?;
                    cells.push(&other);
                }
                _ if cells.count() > rows => {}
                ColumnContent::Values(field) if self.type_of(*field)?.value == ValueType::Flag => cells.push(&[0]),
                _ => cells.push_null(),
            }
        }
        Ok(())
    }

    fn type_of(&self, field: usize) -> Result<FieldType> {
        self.fields.get(field).map(|field| field.of).ok_or_else(|| Error::internal("no such field"))
    }

    /// Appends values of a field to the cells of a column that shows it.
    fn push(&self, column: usize, values: FieldValues<'_>, cells: &mut Cells) -> Result<()> {
        let field = match self.shown.get(column) {
            Some(ColumnContent::Values(field)) => *field,
            Some(ColumnContent::Phased(_)) => return push_phase(values, cells),
            _ => return Err(Error::internal("a column of no field")),
        };
        let FieldType { value, is_list } = self.type_of(field)?;
        match (value, self.notation) {
            (ValueType::Flag, _) => {
                cells.push(&[1]);
                Ok(())
            }
            (ValueType::Integer | ValueType::Float, _) if !is_list => push_number(values, cells),
            (ValueType::Integer | ValueType::Float, Notation::Lists) => push_numbers(values, cells),
            (ValueType::Genotype, Notation::Lists) => push_genotype(values, cells),
            (ValueType::Genotype, Notation::Texts) => cells.push_text(|out| values.append_genotype(out)),
            (ValueType::Text, Notation::Lists) if is_list => push_texts(values, cells),
            (ValueType::Text, Notation::Lists) => push_utf8(values, cells),
            (_, Notation::Texts) => push_text(values, cells),
        }
    }
}

/// Returns the index of a column's cells among the cells of the wanted columns.
fn place_of(column: usize, only: Option<usize>) -> Option<usize> {
    match only {
        None => Some(column),
        Some(only) => (only == column).then_some(0),
    }
}

fn in_field(error: Error, name: &[u8]) -> Error {
    error.in_field(&String::from_utf8_lossy(name))
}

/// Returns the datatype of the values of a column, and the kind of its cells.
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

impl FieldType {
    /// Returns whether stored values have this type, and whether the field allows their number.
    fn fits(self, values: FieldValues<'_>) -> bool {
        match (self.value, values) {
            (ValueType::Text, _)
            | (ValueType::Flag, FieldValues::Flag)
            | (ValueType::Genotype, FieldValues::Integers(_)) => true,
            (ValueType::Integer, FieldValues::Integers(_)) | (ValueType::Float, FieldValues::Floats(_)) => {
                self.is_list || values.each_number().is_some_and(|mut numbers| numbers.nth(1).is_none())
            }
            _ => false,
        }
    }
}

/// Returns whether the only value is missing: a dot in VCF.
fn is_missing(values: FieldValues<'_>) -> bool {
    match values {
        FieldValues::Flag => false,
        FieldValues::Text(text) => matches!(unpadded(text), MISSING_TEXT | b"."),
        FieldValues::Integers(_) | FieldValues::Floats(_) => {
            values.each_number().is_some_and(|mut numbers| numbers.next() == Some(None) && numbers.next().is_none())
        }
    }
}

fn push_number(values: FieldValues<'_>, cells: &mut Cells) -> Result<()> {
    match values.each_number().into_iter().flatten().next() {
        None | Some(None) => cells.push_null(),
        Some(Some(number)) => cells.push(&number),
    }
    Ok(())
}

fn push_numbers(values: FieldValues<'_>, cells: &mut Cells) -> Result<()> {
    match is_missing(values) {
        true => cells.push_null(),
        false => cells.push_list(values.each_number().into_iter().flatten()),
    }
    Ok(())
}

fn push_genotype(values: FieldValues<'_>, cells: &mut Cells) -> Result<()> {
    let alleles = values.alleles().into_iter().flatten().collect::<Result<Vec<_>>>()?;
    cells.push_list(alleles.into_iter().map(|(allele, _)| allele.map(i32::to_le_bytes)));
    Ok(())
}

fn push_phase(values: FieldValues<'_>, cells: &mut Cells) -> Result<()> {
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
fn push_text(values: FieldValues<'_>, cells: &mut Cells) -> Result<()> {
    cells.push_text(|out| {
        if is_missing(values) {
            return Ok(false);
        }
        append(values, out).map(|()| true)
    })
}

/// Like [`push_text`], for formats whose texts must be UTF-8.
fn push_utf8(values: FieldValues<'_>, cells: &mut Cells) -> Result<()> {
    if let FieldValues::Text(text) = values {
        check_utf8(text)?;
    }
    push_text(values, cells)
}

fn push_texts(values: FieldValues<'_>, cells: &mut Cells) -> Result<()> {
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
fn append(values: FieldValues<'_>, out: &mut Vec<u8>) -> Result<()> {
    match values {
        FieldValues::Flag => out.extend_from_slice(b"true"),
        _ => _ = values.append(b"", out)?,
    }
    Ok(())
}

fn append_other(kind: FieldKind, name: &[u8], values: FieldValues<'_>, out: &mut Vec<u8>) -> Result<()> {
    if !out.is_empty() {
        out.push(b';');
    }
    out.extend_from_slice(name);
    out.push(b'=');
    let has_values = match (kind, name) {
        (FieldKind::Format, GENOTYPE) => values.append_genotype(out)?,
        _ => values.append(b";", out)?,
    };
    if !has_values {
        out.pop();
    }
    Ok(())
}

pub(super) fn check_utf8(text: &[u8]) -> Result<()> {
    match std::str::from_utf8(text) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::unsupported("a text that is not UTF-8; the attribute's raw files have its bytes")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::fields::testing::{FieldExample, stored};
    use super::*;

    const HEADER: &[u8] = b"##fileformat=VCFv4.2\n\
        ##INFO=<ID=DP,Number=1,Type=Integer>\n##INFO=<ID=AF,Number=A,Type=Float>\n##INFO=<ID=DB,Number=0,Type=Flag>\n\
        ##INFO=<ID=ANN,Number=.,Type=String>\n##INFO=<ID=T,Number=1,Type=String>\n##INFO=<ID=Q,Number=1,Type=Float>\n\
        ##FORMAT=<ID=GT,Number=1,Type=String>\n##FORMAT=<ID=AD,Number=R,Type=Integer>\n";

    fn columns(kind: FieldKind, notation: Notation) -> FieldColumns {
        let mut definitions = Definitions::default();
        definitions.add(HEADER).unwrap();
        FieldColumns::new(&definitions, kind, notation, &mut HashSet::from(["info_T".to_owned()]))
    }

    fn empty(columns: &FieldColumns) -> Vec<Cells> {
        columns.columns().iter().map(|column| Cells::new(column.kind)).collect()
    }

    /// The cells of a record, by the names of their columns.
    fn cells(kind: FieldKind, notation: Notation, record: &[u8]) -> Result<HashMap<String, Cells>> {
        let columns = columns(kind, notation);
        let mut all = empty(&columns);
        columns.append(record, &[], None, &mut all)?;
        Ok(columns.columns().iter().map(|column| column.field.name.clone()).zip(all).collect())
    }

    #[test]
    fn a_record_is_a_cell_of_each_column() {
        let half = 0.5f32.to_bits();
        let record = stored(&[
            ("AF", FieldExample::Floats(vec![half, 0x7f80_0001])),
            ("X", FieldExample::Integers(vec![1, 2])),
            ("DB", FieldExample::Flag),
            ("ANN", FieldExample::Text(b"a,.,b\0".to_vec())),
            ("T", FieldExample::Text(b".".to_vec())),
            ("Y", FieldExample::Flag),
            ("DP", FieldExample::Integers(vec![7, i32::MIN + 1])),
        ]);
        let of = |column: &str, made: &HashMap<String, Cells>| made[column].clone();
        let lists = cells(FieldKind::Info, Notation::Lists, &record).unwrap();
        let mut wanted = Cells::new(CellKind::Numbers(4));
        wanted.push_list([Some(0.5f32.to_le_bytes()), None].into_iter());
        assert_eq!(of("info_AF", &lists), wanted);
        let mut wanted = Cells::new(CellKind::Texts);
        wanted.push_list([Some("a"), None, Some("b")].into_iter());
        assert_eq!(of("info_ANN", &lists), wanted);
        let of_bytes = |kind, bytes: Option<&[u8]>| {
            let mut wanted = Cells::new(kind);
            match bytes {
                None => wanted.push_null(),
                Some(bytes) => wanted.push(bytes),
            }
            wanted
        };
        assert_eq!(of("info_DB", &lists), of_bytes(CellKind::Value(1), Some(&[1])));
        assert_eq!(of("info_T_", &lists), of_bytes(CellKind::Text, None));
        assert_eq!(of("info_DP", &lists), of_bytes(CellKind::Value(4), Some(&[7, 0, 0, 0])));
        assert_eq!(of("info_Q", &lists), of_bytes(CellKind::Value(4), None));
        assert_eq!(of("info_other", &lists), of_bytes(CellKind::Text, Some(b"X=1,2;Y")));
        let texts = cells(FieldKind::Info, Notation::Texts, &record).unwrap();
        assert_eq!(of("info_AF", &texts), of_bytes(CellKind::Text, Some(b"0.5,.")));
        assert_eq!(of("info_ANN", &texts), of_bytes(CellKind::Text, Some(b"a,.,b")));
        assert_eq!(of("info_T_", &texts), of_bytes(CellKind::Text, None));
    }

    #[test]
    fn genotypes_are_alleles_and_their_phase() {
        let made = |alleles: &[i32], notation| {
            let record = stored(&[("GT", FieldExample::Integers(alleles.to_vec()))]);
            let all = cells(FieldKind::Format, notation, &record).unwrap();
            (all["fmt_GT"].clone(), all["fmt_GT_phased"].clone())
        };
        for (alleles, list, phased, text) in [
            (&[2, 5][..], &[Some(0), Some(1)][..], Some(1), "0|1"),
            (&[4, 0], &[Some(1), None], Some(0), "1/."),
            (&[4, 7, 8], &[Some(1), Some(2), Some(3)], Some(0), "1|2/3"),
            (&[4, i32::MIN + 1], &[Some(1)], None, "1"),
            (&[0], &[None], None, "."),
        ] {
            let mut wanted = Cells::new(CellKind::Numbers(4));
            wanted.push_list(list.iter().map(|allele: &Option<i32>| allele.map(i32::to_le_bytes)));
            let mut phase = Cells::new(CellKind::Value(1));
            match phased {
                None => phase.push_null(),
                Some(phased) => phase.push(&[phased]),
            }
            assert_eq!(made(alleles, Notation::Lists), (wanted, phase.clone()), "{text}");
            let mut wanted = Cells::new(CellKind::Text);
            wanted.push(text.as_bytes());
            assert_eq!(made(alleles, Notation::Texts), (wanted, phase), "{text}");
        }
    }

    #[test]
    fn values_that_headers_define_otherwise_are_in_a_column_of_their_own() {
        let number = |values: &[i32]| FieldExample::Integers(values.to_vec());
        let text = |text: &[u8]| FieldExample::Text(text.to_vec());
        for (kind, column, name, values, shown) in [
            (FieldKind::Info, "info_DP", "DP", number(&[1, 2]), "DP=1,2"),
            (FieldKind::Info, "info_DP", "DP", text(b"1"), "DP=1"),
            (FieldKind::Info, "info_AF", "AF", number(&[1]), "AF=1"),
            (FieldKind::Info, "info_DB", "DB", number(&[1]), "DB=1"),
            (FieldKind::Format, "fmt_GT", "GT", text(b"0/1"), "GT=0/1"),
            (FieldKind::Format, "fmt_AD", "AD", FieldExample::Flag, "AD"),
            // In INFO, GT is a field as any other.
            (FieldKind::Info, "info_DP", "GT", number(&[5]), "GT=5"),
            (FieldKind::Info, "info_DP", "GT", FieldExample::Floats(vec![0.5f32.to_bits()]), "GT=0.5"),
        ] {
            for notation in [Notation::Lists, Notation::Texts] {
                let made = cells(kind, notation, &stored(&[(name, values.clone())])).unwrap();
                let other = if kind == FieldKind::Info { "info_other" } else { "fmt_other" };
                let mut wanted = Cells::new(CellKind::Text);
                wanted.push(shown.as_bytes());
                assert_eq!(made[other], wanted);
                let without = cells(kind, notation, &stored(&[])).unwrap();
                assert_eq!(made[column], without[column]);
            }
        }
    }

    #[test]
    fn malformed_values_are_errors_that_name_the_field() {
        let number = |values: &[i32]| FieldExample::Integers(values.to_vec());
        let text = |text: &[u8]| FieldExample::Text(text.to_vec());
        for (name, values, kind) in [
            ("T", text(b"a\tb"), FieldKind::Info),
            ("ANN", text(b"\xff"), FieldKind::Info),
            ("GT", number(&[-4]), FieldKind::Format),
            ("GT", FieldExample::Floats(vec![5]), FieldKind::Format),
            ("GT", text(b"a/b"), FieldKind::Format),
        ] {
            let record = stored(&[("X", FieldExample::Flag), (name, values.clone())]);
            let error = cells(kind, Notation::Lists, &record).unwrap_err();
            assert_eq!(error.place().and_then(|place| place.field.clone()).as_deref(), Some(name), "{values:?}");
        }
        let twice = stored(&[("DP", number(&[1])), ("DP", number(&[1]))]);
        for wrong in [&twice[..], &twice[..twice.len() - 1], &[], &[1, 0, 0, 0], &[0, 0, 0, 0, 0]] {
            assert!(cells(FieldKind::Info, Notation::Texts, wrong).is_err());
        }
        // Fields other than the wanted one are not decoded as text.
        let columns = columns(FieldKind::Info, Notation::Lists);
        let record = stored(&[("T", text(b"\t")), ("DB", FieldExample::Flag)]);
        let only = columns.columns().iter().position(|column| column.field.name == "info_DB");
        columns.append(&record, &[], only, &mut [Cells::new(CellKind::Value(1))]).unwrap();
    }

    fn any_record() -> impl Strategy<Value = Vec<u8>> {
        let values = prop_oneof![
            Just(FieldExample::Flag),
            proptest::collection::vec(prop_oneof![any::<i32>(), Just(i32::MIN), 0..9], 0..4)
                .prop_map(FieldExample::Integers),
            proptest::collection::vec(prop_oneof![any::<u32>(), Just(0x7f80_0001u32)], 0..4)
                .prop_map(FieldExample::Floats),
            "[a.,é]{0,5}".prop_map(|text| FieldExample::Text(text.into_bytes())),
        ];
        let names = ["DP", "AF", "DB", "ANN", "T", "Q", "X", "GT", "AD"];
        let fields = proptest::collection::vec((proptest::sample::select(names.to_vec()), values), 0..5);
        prop_oneof![fields.prop_map(|fields| stored(&fields)), any::<Vec<u8>>()]
    }

    proptest! {
        /// A column has the same cells whether it is computed alone or with all others.
        #[test]
        fn each_column_is_that_of_all(records in proptest::collection::vec(any_record(), 0..4), is_info: bool, are_lists: bool) {
            let kind = if is_info { FieldKind::Info } else { FieldKind::Format };
            let columns = columns(kind, if are_lists { Notation::Lists } else { Notation::Texts });
            let mut all = empty(&columns);
            for record in &records {
                if columns.append(record, &[], None, &mut all).is_err() {
                    return Ok(());
                }
            }
            for (number, (column, wanted)) in columns.columns().iter().zip(&all).enumerate() {
                let mut alone = [Cells::new(column.kind)];
                for record in &records {
                    columns.append(record, &[], Some(number), &mut alone).unwrap();
                }
                prop_assert_eq!(&alone[0], wanted);
                prop_assert_eq!(wanted.count(), records.len() as u64);
            }
        }
    }
}
