//! The fields of records, with what is known of their names.

use std::collections::HashMap;
use std::sync::Arc;

use tilefs_base::error::Result;

use super::super::fields::{FieldHeads, FieldValue, FieldValues};
use super::super::header::Definition;
use super::super::known_names::KnownNames;
use super::super::record::{END, GENOTYPE, for_each_extracted};
use super::super::{Header, Record};

/// The INFO fields that are counted from the genotypes of all samples.
pub(super) const ALLELE_NUMBER: &[u8] = b"AN";
pub(super) const ALLELE_COUNT: &[u8] = b"AC";

/// A file to merge.
#[derive(Debug, Clone)]
pub struct MergedFile {
    /// Its header.
    pub header: Arc<Header>,
    /// The name of its sample, if it has a column.
    pub sample: Option<Vec<u8>>,
}

/// A field of a record.
#[derive(Debug, Clone)]
pub(super) struct KnownField<'a> {
    pub(super) name: &'a [u8],
    pub(super) values: FieldValues<'a>,
    pub(super) known: FieldDefinitions,
}

/// The result of looking up the name of a field: its number, its role, and its definitions.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldDefinitions {
    /// The number of the name.
    pub(super) number: usize,
    pub(super) role: Role,
    /// Its definition in the record's header, and that in the merged header.
    pub(super) own: Definition,
    pub(super) merged: Definition,
}

/// Fields that are merged in their own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Genotype,
    End,
    /// An INFO field that is always summed.
    Summed,
    /// An INFO field that is summed if there are no genotypes to count it in.
    Counted,
    Other,
}

impl Role {
    pub(super) fn of_info(name: &[u8]) -> Self {
        match name {
            END => Role::End,
            b"DP" | b"DP4" => Role::Summed,
            ALLELE_NUMBER | ALLELE_COUNT => Role::Counted,
            _ => Role::Other,
        }
    }

    pub(super) fn of_format(name: &[u8]) -> Self {
        if name == GENOTYPE { Role::Genotype } else { Role::Other }
    }
}

/// A record that is part of a line, and its fields.
pub(super) struct LineRecord<'r, 'a, 'm> {
    pub(super) file: &'m MergedFile,
    pub(super) record: &'r Record<'a>,
    pub(super) map: &'r [usize],
    pub(super) info: &'r [KnownField<'a>],
    pub(super) format: &'r [KnownField<'a>],
}

/// The numbers of names of fields.
pub(super) struct FieldNumbers(HashMap<Vec<u8>, usize>);

/// The number of the name `END`, which records may have without storing it.
pub(super) const END_NUMBER: usize = 0;

impl FieldNumbers {
    pub(super) fn new() -> Self {
        FieldNumbers(HashMap::from([(END.to_vec(), END_NUMBER)]))
    }

    pub(super) fn number(&mut self, name: &[u8]) -> usize {
        let next = self.0.len();
        *self.0.entry(name.to_vec()).or_insert(next)
    }
}

/// The fields of a kind of the record before: most records have the same names in the same places.
#[derive(Default)]
pub(super) struct KnownFields {
    /// Those that are stored together.
    together: FieldHeads<FieldDefinitions>,
    /// Those that have attributes of their own.
    extracted: KnownNames<FieldDefinitions>,
}

impl KnownFields {
    /// Appends the fields of a record: those that are stored together, then those that have attributes of their own.
    /// `find` returns the role and both definitions of a name that the record before did not have in its place.
    ///
    /// # Errors
    /// Fails if the bytes are malformed.
    pub(super) fn add<'a>(
        &mut self,
        together: &'a [u8],
        extracted: &[(&'a [u8], &'a [u8])],
        numbers: &mut FieldNumbers,
        fields: &mut Vec<KnownField<'a>>,
        find: impl Fn(&[u8]) -> (Role, [Definition; 2]),
    ) -> Result<()> {
        let mut find = |name: &[u8]| {
            let (role, [own, merged]) = find(name);
            FieldDefinitions { number: numbers.number(name), role, own, merged }
        };
        self.together.for_each_field(together, &mut find, |FieldValue { name, values }, known| {
            fields.push(KnownField { name, values, known });
            Ok(())
        })?;
        let mut place = 0;
        for_each_extracted(extracted, |FieldValue { name, values }| {
            let known = self.extracted.get(place, name, || Ok(find(name)))?;
            place += 1;
            fields.push(KnownField { name, values, known });
            Ok(())
        })
    }
}
