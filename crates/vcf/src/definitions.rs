//! The INFO and FORMAT fields of all files of a dataset, as defined by their headers, and the names of their filters.

use std::collections::HashMap;

use tilefs_base::error::{Error, Result};

use super::Header;
use super::header::{attribute, structured};
use super::record::GENOTYPE;

/// INFO or FORMAT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldKind {
    /// A field of a record.
    Info,
    /// A field of a sample.
    Format,
}

/// The type of a field's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueType {
    Flag,
    Integer,
    Float,
    /// A text. Also a field that headers define differently, or not at all.
    Text,
    /// Alleles: the FORMAT field `GT`, whatever its definition says.
    Genotype,
}

/// The type of a field, and whether a record may have several values of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FieldType {
    pub value: ValueType,
    pub is_list: bool,
}

/// A field and its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DefinedField {
    pub name: Vec<u8>,
    pub of: FieldType,
}

/// The filters of a header, each with its number, in the order of the numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Filters(Vec<(u32, Vec<u8>)>);

/// The combined definitions of many headers. Memory: each field once, and the filters of each distinct list.
///
/// A field that headers define with different types becomes text; one that any header defines as a list becomes a list.
#[derive(Debug, Clone, Default)]
pub struct Definitions {
    info: Fields,
    format: Fields,
    filters: Vec<Filters>,
    /// The number of each of the `filters`.
    numbers: HashMap<Filters, usize>,
}

#[derive(Debug, Clone, Default)]
struct Fields {
    /// The fields, in the order of their first definition.
    all: Vec<DefinedField>,
    numbers: HashMap<Vec<u8>, usize>,
}

impl FieldType {
    /// The type of a field that no header defines.
    const UNDEFINED: FieldType = FieldType { value: ValueType::Text, is_list: false };

    fn of(kind: FieldKind, name: &[u8], attributes: &[u8]) -> Self {
        let value = match attribute(attributes, b"Type") {
            _ if kind == FieldKind::Format && name == GENOTYPE => ValueType::Genotype,
            Some(b"Integer") => ValueType::Integer,
            Some(b"Float") => ValueType::Float,
            Some(b"Flag") => ValueType::Flag,
            _ => ValueType::Text,
        };
        let is_single = matches!(attribute(attributes, b"Number"), Some(b"0" | b"1") | None);
        FieldType { value, is_list: value == ValueType::Genotype || value != ValueType::Flag && !is_single }
    }

    fn united(self, other: Self) -> Self {
        let value = if self.value == other.value { self.value } else { ValueType::Text };
        FieldType { value, is_list: self.is_list || other.is_list }
    }
}

impl Fields {
    fn add(&mut self, name: &[u8], of: FieldType) {
        match self.numbers.get(name).and_then(|&number| self.all.get_mut(number)) {
            Some(known) => known.of = known.of.united(of),
            None => {
                self.numbers.insert(name.to_vec(), self.all.len());
                self.all.push(DefinedField { name: name.to_vec(), of });
            }
        }
    }
}

impl Definitions {
    /// Adds the definitions of a header; returns the number of its [`Definitions::filters`].
    ///
    /// # Errors
    /// As for [`Header::parse`].
    pub fn add(&mut self, header: &[u8]) -> Result<usize> {
        let header = Header::parse(header)?;
        let mut own = [Fields::default(), Fields::default()];
        let kinds = [(FieldKind::Info, &b"INFO"[..]), (FieldKind::Format, b"FORMAT")];
        for (key, attributes) in header.lines().filter_map(structured) {
            let Some(name) = attribute(attributes, b"ID").filter(|name| !name.is_empty()) else { continue };
            for ((kind, wanted), own) in kinds.iter().zip(&mut own) {
                // If a header defines a field twice, the first definition counts.
                if key == *wanted && !own.numbers.contains_key(name) {
                    own.add(name, FieldType::of(*kind, name, attributes));
                }
            }
        }
        for (own, all) in own.into_iter().zip([&mut self.info, &mut self.format]) {
            own.all.iter().for_each(|field| all.add(&field.name, field.of));
        }
        let filters = Filters(header.filters());
        if let Some(&known) = self.numbers.get(&filters) {
            return Ok(known);
        }
        self.numbers.insert(filters.clone(), self.filters.len());
        self.filters.push(filters);
        Ok(self.filters.len() - 1)
    }

    /// Adds a field that has an attribute of its own, which no header needs to define.
    pub fn add_stored(&mut self, kind: FieldKind, name: &[u8]) {
        let fields = match kind {
            FieldKind::Info => &mut self.info,
            FieldKind::Format => &mut self.format,
        };
        if !fields.numbers.contains_key(name) {
            fields.add(name, FieldType::UNDEFINED);
        }
    }

    /// Returns the number of fields of both kinds.
    pub fn field_count(&self) -> usize {
        self.info.all.len() + self.format.all.len()
    }

    /// Returns the filters of all headers; headers with the same filters share an entry.
    pub fn filters(&self) -> &[Filters] {
        &self.filters
    }

    /// Returns the fields of a kind in the order of their first definitions.
    pub(super) fn fields(&self, kind: FieldKind) -> &[DefinedField] {
        match kind {
            FieldKind::Info => &self.info.all,
            FieldKind::Format => &self.format.all,
        }
    }
}

impl Filters {
    /// Returns the name of the filter with a number.
    ///
    /// # Errors
    /// Fails if the header defines no filter with this number.
    pub fn name(&self, number: u32) -> Result<&[u8]> {
        let found = self.0.binary_search_by_key(&number, |(number, _)| *number).ok().and_then(|at| self.0.get(at));
        let found = found.map(|(_, name)| name.as_slice());
        found.ok_or_else(|| Error::damaged(format!("the filter number {number}, which the header does not define")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definitions(headers: &[&str]) -> Definitions {
        let mut all = Definitions::default();
        for header in headers {
            all.add(format!("##fileformat=VCFv4.2\n{header}").as_bytes()).unwrap();
        }
        all
    }

    #[test]
    fn types_follow_from_definitions() {
        let all = definitions(&["##INFO=<ID=DP,Number=1,Type=Integer>\n##INFO=<ID=AF,Number=A,Type=Float>\n\
             ##INFO=<ID=DB,Number=0,Type=Flag>\n##INFO=<ID=X,Number=.,Type=String>\n##INFO=<ID=C,Number=1,Type=Character>\n\
             ##FORMAT=<ID=GT,Number=1,Type=String>\n##FORMAT=<ID=AD,Number=R,Type=Integer>\n\
             ##INFO=<ID=GT,Number=1,Type=String>\n##INFO=<ID=DP,Number=2,Type=Float>\n"]);
        let of = |kind, name: &str| {
            all.fields(kind).iter().find(|field| field.name == name.as_bytes()).map(|f| (f.of.value, f.of.is_list))
        };
        assert_eq!(of(FieldKind::Info, "DP"), Some((ValueType::Integer, false)));
        assert_eq!(of(FieldKind::Info, "AF"), Some((ValueType::Float, true)));
        assert_eq!(of(FieldKind::Info, "DB"), Some((ValueType::Flag, false)));
        assert_eq!(of(FieldKind::Info, "X"), Some((ValueType::Text, true)));
        assert_eq!(of(FieldKind::Info, "C"), Some((ValueType::Text, false)));
        assert_eq!(of(FieldKind::Info, "GT"), Some((ValueType::Text, false)));
        assert_eq!(of(FieldKind::Format, "GT"), Some((ValueType::Genotype, true)));
        assert_eq!(of(FieldKind::Format, "AD"), Some((ValueType::Integer, true)));
        assert_eq!(of(FieldKind::Format, "DP"), None);
        assert_eq!(all.field_count(), 8);
    }

    #[test]
    fn what_headers_define_differently_is_text() {
        let mut all = definitions(&[
            "##INFO=<ID=A,Number=1,Type=Integer>\n##INFO=<ID=B,Number=1,Type=Float>\n",
            "##FILTER=<ID=q10>\n##INFO=<ID=B,Number=2,Type=Float>\n##INFO=<ID=A,Number=1,Type=Float>\n##INFO=<ID=C>\n",
            "##INFO=<ID=Z,Number=1,Type=Integer>\n",
        ]);
        all.add_stored(FieldKind::Info, b"A");
        all.add_stored(FieldKind::Info, b"D");
        let text = FieldType { value: ValueType::Text, is_list: false };
        let wanted = [("A", text), ("B", FieldType { value: ValueType::Float, is_list: true }), ("C", text)];
        let rest = [("Z", FieldType { value: ValueType::Integer, is_list: false }), ("D", text)];
        let wanted: Vec<DefinedField> =
            wanted.into_iter().chain(rest).map(|(name, of)| DefinedField { name: name.into(), of }).collect();
        assert_eq!(all.fields(FieldKind::Info), wanted);
        // The first and the third header have the same filters.
        let [first, second] = all.filters() else { panic!("{:?}", all.filters()) };
        assert_eq!((first.name(0).unwrap(), second.name(1).unwrap()), (&b"PASS"[..], &b"q10"[..]));
        assert!(first.name(1).is_err() && second.name(2).is_err());
        assert!(all.add(b"no header").is_err());
    }
}
