//! One record of one sample as a line of VCF.

use tilefs_base::error::{Error, Locate, Result};

use super::fields::{self, FieldValue};
use super::line::{InfoField, Line, LineValue, MISSING, RecordPlace, SampleFields, separate};
use super::{Header, check_text};

/// The name of the field with the genotype, which must come first in VCF.
pub(super) const GENOTYPE: &[u8] = b"GT";

/// The INFO field with the last position of a record.
pub(super) const END: &[u8] = b"END";

/// A record as stored in its cell.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// The name of the contig.
    pub contig: &'a [u8],
    /// The first position on the contig, counted from 0.
    pub start: u32,
    /// The last position, counted from 0.
    pub end: u32,
    /// The bits of the quality, a float.
    pub quality: u32,
    /// The reference allele and the alternative ones, separated by commas; a NUL ends them.
    pub alleles: &'a [u8],
    /// The identifier; a NUL ends it.
    pub id: &'a [u8],
    /// The number of filters, then the number of each in the header's dictionary; all are 32-bit.
    pub filters: &'a [u8],
    /// The INFO fields, without those that have attributes of their own.
    pub info: &'a [u8],
    /// The FORMAT fields, without those that have attributes of their own.
    pub format: &'a [u8],
    /// The INFO fields that have attributes of their own: name and stored value.
    pub extracted_info: &'a [(&'a [u8], &'a [u8])],
    /// The FORMAT fields that have attributes of their own: name and stored value.
    pub extracted_format: &'a [(&'a [u8], &'a [u8])],
}

impl<'a> Record<'a> {
    /// Returns the record as a line of a file with one sample, or without samples if `has_sample` is false.
    ///
    /// INFO and FORMAT fields are in stored order, followed by those with attributes of their own; `GT` comes first.
    /// Early releases of TileDB-VCF did not store `END`: it is added if the header defines it and the record does not
    /// end where its reference allele does.
    ///
    /// # Errors
    /// Fails for values that TileDB-VCF does not write (the error names the attribute), and for texts that VCF does not
    /// allow.
    pub fn line<'l>(&self, header: &'l Header, has_sample: bool) -> Result<Line<'l>>
    where
        'a: 'l,
    {
        self.check_contig()?;
        let id = self.id_text().in_file(self.place("id"))?;
        let samples = match has_sample {
            true => {
                Some(Box::new(OneSample(self.format_fields().in_file(self.place("fmt"))?)) as Box<dyn SampleFields>)
            }
            false => None,
        };
        Ok(Line {
            contig: self.contig,
            start: self.start,
            ids: Some(id).filter(|id| *id != MISSING).into_iter().collect(),
            alleles: self.allele_list().in_file(self.place("alleles"))?,
            quality: self.quality,
            filters: self.filter_names(header).in_file(self.place("filter_ids"))?,
            info: self.info_fields(header).in_file(self.place("info"))?,
            samples,
        })
    }

    /// Returns the place of an attribute of the record, for errors.
    pub(super) fn place(&self, attribute: &'static str) -> RecordPlace<'a, &'static str> {
        RecordPlace { column: attribute, contig: self.contig, start: self.start }
    }

    /// Rejects a record without a contig.
    pub(super) fn check_contig(&self) -> Result<()> {
        match self.contig.is_empty() {
            true => Err(Error::damaged("a record of a contig without a name")),
            false => check_text(self.contig, b"", "the name of a contig").map(|_| ()),
        }
    }

    /// Returns the identifier; `.` if there is none.
    pub(super) fn id_text(&self) -> Result<&'a [u8]> {
        id_text(self.id)
    }

    /// Returns the alleles, the reference first.
    pub(super) fn allele_list(&self) -> Result<Vec<&'a [u8]>> {
        allele_list(self.alleles)
    }

    /// Returns the names of the filters.
    pub(super) fn filter_names<'h>(&self, header: &'h Header) -> Result<Vec<&'h [u8]>> {
        filter_numbers(self.filters)?.map(|number| header.filter(number)).collect()
    }

    /// Calls `visit` with each INFO field; `END` may be missing, see [`Record::lacks_end`].
    pub(super) fn for_each_info(&self, visit: impl FnMut(FieldValue<'a>) -> Result<()>) -> Result<()> {
        for_each_field(self.info, self.extracted_info, visit)
    }

    /// Calls `visit` with each FORMAT field in stored order; `GT` need not come first, although VCF requires it.
    pub(super) fn for_each_format(&self, visit: impl FnMut(FieldValue<'a>) -> Result<()>) -> Result<()> {
        for_each_field(self.format, self.extracted_format, visit)
    }

    /// Returns whether `END` must be added if the record lacks it: the header defines it, and the record does not end
    /// where its reference allele does.
    pub(super) fn lacks_end(&self, header: &Header) -> bool {
        let alleles = self.alleles.strip_suffix(b"\0").unwrap_or(self.alleles);
        let reference = reference_length(alleles).max(1) as u64;
        u64::from(self.start) + reference != u64::from(self.end) + 1 && header.defines_end()
    }

    fn info_fields(&self, header: &Header) -> Result<Vec<InfoField<'a>>> {
        let mut all = Vec::new();
        let mut has_end = false;
        self.for_each_info(|FieldValue { name, values }| {
            has_end |= name == END;
            all.push((name, LineValue::Stored(values)));
            Ok(())
        })?;
        if !has_end && self.lacks_end(header) {
            all.push((END, LineValue::Integers(vec![i64::from(self.end) + 1])));
        }
        Ok(all)
    }

    /// Returns the FORMAT fields, `GT` first.
    fn format_fields(&self) -> Result<Vec<FieldValue<'a>>> {
        let mut all = Vec::new();
        self.for_each_format(|field| {
            all.push(field);
            Ok(())
        })?;
        if let Some(genotype) = all.iter().position(|field| field.name == GENOTYPE) {
            all[..=genotype].rotate_right(1);
        }
        Ok(all)
    }
}

/// The FORMAT fields of a file with one sample.
struct OneSample<'a>(Vec<FieldValue<'a>>);

impl SampleFields for OneSample<'_> {
    fn names(&self) -> Vec<&[u8]> {
        self.0.iter().map(|field| field.name).collect()
    }

    fn for_each_value(&self, field: usize, visit: &mut dyn FnMut(&LineValue<'_>) -> Result<()>) -> Result<()> {
        self.0.get(field).map_or(Ok(()), |field| visit(&value_of(field)))
    }

    fn append(&self, out: &mut Vec<u8>) -> Result<()> {
        if self.0.is_empty() {
            out.extend_from_slice(b".\t.");
            return Ok(());
        }
        separate(&self.0, b':', out, |field, out| out.extend_from_slice(field.name));
        for (number, field) in self.0.iter().enumerate() {
            out.push(if number > 0 { b':' } else { b'\t' });
            if !value_of(field).append(b":", out)? {
                out.extend_from_slice(MISSING);
            }
        }
        Ok(())
    }
}

/// Returns the value of a FORMAT field.
fn value_of<'a>(field: &FieldValue<'a>) -> LineValue<'a> {
    match field.name {
        GENOTYPE => LineValue::Genotype(field.values),
        _ => LineValue::Stored(field.values),
    }
}

fn reference_length(alleles: &[u8]) -> usize {
    alleles.iter().position(|&byte| byte == b',').unwrap_or(alleles.len())
}

/// Calls `visit` with the fields of a kind: those that are stored together, then those with attributes of their own.
fn for_each_field<'a>(
    together: &'a [u8],
    extracted: &[(&'a [u8], &'a [u8])],
    mut visit: impl FnMut(FieldValue<'a>) -> Result<()>,
) -> Result<()> {
    fields::for_each_field(together, &mut visit)?;
    for_each_extracted(extracted, visit)
}

/// Calls `visit` with each field that has an attribute of its own.
pub(super) fn for_each_extracted<'a>(
    extracted: &[(&'a [u8], &'a [u8])],
    mut visit: impl FnMut(FieldValue<'a>) -> Result<()>,
) -> Result<()> {
    for &(name, bytes) in extracted {
        if let Some(values) = fields::extracted(bytes)? {
            visit(FieldValue { name, values })?;
        }
    }
    Ok(())
}

/// Parses the stored alleles of a record; the reference comes first. A record without alleles has one empty text.
pub(super) fn allele_list(stored: &[u8]) -> Result<Vec<&[u8]>> {
    let mut alleles: Vec<&[u8]> = one_text(stored, b" ")?.split(|&byte| byte == b',').collect();
    if alleles.len() > 1 && alleles.iter().any(|allele| allele.is_empty()) {
        return Err(Error::damaged("an empty allele"));
    }
    // Only the reference allele may be a dot.
    if let [_, b"."] = alleles.as_slice() {
        alleles.pop();
    }
    Ok(alleles)
}

/// Parses the stored identifier of a record, which is `.` if there is none.
pub(super) fn id_text(stored: &[u8]) -> Result<&[u8]> {
    let id = one_text(stored, b" ")?;
    if id.is_empty() {
        return Err(Error::damaged("an empty identifier"));
    }
    Ok(id)
}

/// Parses the stored filters of a record: their count, then their numbers.
pub(super) fn filter_numbers(stored: &[u8]) -> Result<impl Iterator<Item = u32>> {
    let (numbers, rest) = stored.as_chunks::<4>();
    let mut numbers = numbers.iter().map(|bytes| u32::from_le_bytes(*bytes));
    let count = numbers.next().and_then(|count| usize::try_from(count).ok());
    match count == Some(numbers.len()) && rest.is_empty() {
        true => Ok(numbers),
        false => Err(Error::damaged("a list of filters with another length than it says")),
    }
}

/// Returns a text without the NUL that ends it.
fn one_text<'a>(stored: &'a [u8], ends: &[u8]) -> Result<&'a [u8]> {
    let text = stored.strip_suffix(b"\0").ok_or_else(|| Error::damaged("a text that does not end"))?;
    check_text(text, ends, "a text")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::fields::testing::{FieldExample, stored};
    use super::*;

    const HEADER: &[u8] = b"##fileformat=VCFv4.2\n##FILTER=<ID=q10>\n##FILTER=<ID=s50>\n##INFO=<ID=END>\n";

    fn line(record: &Record<'_>) -> Result<String> {
        let mut out = Vec::new();
        record.line(&Header::parse(HEADER).unwrap(), true)?.append(&mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    fn numbers(numbers: &[u32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    #[test]
    fn a_record_is_a_line() {
        let filters = numbers(&[2, 2, 1]);
        let info = stored(&[
            ("DB", FieldExample::Flag),
            ("AF", FieldExample::Floats(vec![0.25f32.to_bits(), 0.5f32.to_bits()])),
            ("END", FieldExample::Integers(vec![104])),
            ("E", FieldExample::Text(Vec::new())),
        ]);
        let format = stored(&[
            ("AD", FieldExample::Integers(vec![7, i32::MIN])),
            ("FT", FieldExample::Text(b"PASS".to_vec())),
            ("GT", FieldExample::Integers(vec![2, 5])),
            ("GP", FieldExample::Floats(Vec::new())),
        ]);
        let (none, depth) = ([0], FieldExample::Integers(vec![9]).bytes());
        let record = Record {
            contig: b"chr1",
            start: 99,
            end: 103,
            quality: 30.5f32.to_bits(),
            alleles: b"A,<DEL>,C\0",
            id: b"rs1;rs2\0",
            filters: &filters,
            info: &info,
            format: &format,
            extracted_info: &[(b"MQ", &none), (b"DP", &depth)],
            extracted_format: &[(b"DP", &depth), (b"GQ", &none)],
        };
        assert_eq!(
            line(&record).unwrap(),
            "chr1\t100\trs1;rs2\tA\t<DEL>,C\t30.5\ts50;q10\tDB;AF=0.25,0.5;END=104;E;DP=9\t\
             GT:AD:FT:GP:DP\t0|1:7,.:PASS:.:9\n"
        );
        let mut without = Vec::new();
        record.line(&Header::parse(HEADER).unwrap(), false).unwrap().append(&mut without).unwrap();
        assert!(without.ends_with(b"E;DP=9\n"));
        let empty = Record {
            quality: fields::MISSING_FLOAT,
            alleles: b"A\0",
            id: b".\0",
            end: 99,
            filters: &[0; 4],
            info: &[0; 4],
            format: &[0; 4],
            extracted_info: &[],
            extracted_format: &[],
            ..record
        };
        assert_eq!(line(&empty).unwrap(), "chr1\t100\t.\tA\t.\t.\t.\t.\t.\t.\n");
        let numbered = Record { extracted_format: &[(b"GT", &depth)], ..empty };
        assert_eq!(line(&numbered).unwrap(), "chr1\t100\t.\tA\t.\t.\t.\t.\tGT\t3\n");
        // The writer left out an END although it differs from the end of the reference allele.
        assert_eq!(line(&Record { end: 199, ..empty }).unwrap(), "chr1\t100\t.\tA\t.\t.\t.\tEND=200\t.\t.\n");
        assert_eq!(line(&Record { end: 100, alleles: b"AC\0", ..empty }).unwrap().matches("END").count(), 0);
        let last = Record { start: u32::MAX, end: u32::MAX, ..empty };
        assert!(line(&last).unwrap().starts_with("chr1\t4294967296\t"));
    }

    #[test]
    fn malformed_values_are_errors_that_name_the_record() {
        let sound = Record {
            contig: b"1",
            start: 0,
            end: 0,
            quality: 0,
            alleles: b"A,C\0",
            id: b".\0",
            filters: &[0; 4],
            info: &[0; 4],
            format: &[0; 4],
            extracted_info: &[],
            extracted_format: &[],
        };
        assert!(line(&sound).is_ok());
        let attribute_of = |record: Record<'_>| {
            let error = line(&record).unwrap_err();
            let place = error.place().unwrap().file.clone().unwrap_or_default();
            place.strip_suffix(" of the record at 1:1").unwrap_or_default().to_owned()
        };
        let unknown = numbers(&[1, 3]);
        let broken = stored(&[("A", FieldExample::Text(b"x;y".to_vec()))]);
        assert_eq!(attribute_of(Record { alleles: b"A,C", ..sound }), "alleles");
        assert_eq!(attribute_of(Record { alleles: b"A\tC\0", ..sound }), "alleles");
        for alleles in [&b",\0"[..], b",C\0", b"A,\0", b"A,,C\0", b",.\0"] {
            assert_eq!(attribute_of(Record { alleles, ..sound }), "alleles", "{alleles:?}");
        }
        assert!(line(&Record { alleles: b"\0", ..sound }).unwrap().starts_with("1\t1\t.\t.\t.\t"));
        for id in [&b""[..], b"\0", b"a b\0"] {
            assert_eq!(attribute_of(Record { id, ..sound }), "id", "{id:?}");
        }
        for genotype in [FieldExample::Floats(vec![5, 4]), FieldExample::Flag, FieldExample::Text(b"a/b".to_vec())] {
            let format = stored(&[("GT", genotype)]);
            assert_eq!(attribute_of(Record { format: &format, ..sound }), "fmt");
        }
        assert!(line(&Record { contig: b"", ..sound }).is_err());
        for filters in [&[0; 3][..], &[0; 5], &[1, 0, 0, 0], &[], &unknown] {
            assert_eq!(attribute_of(Record { filters, ..sound }), "filter_ids", "{filters:?}");
        }
        assert_eq!(attribute_of(Record { info: &broken, ..sound }), "info");
        assert_eq!(attribute_of(Record { info: &[1, 0, 0, 0], ..sound }), "info");
        assert_eq!(attribute_of(Record { format: &[0; 5], ..sound }), "fmt");
        assert_eq!(attribute_of(Record { extracted_format: &[(b"DP", &[])], ..sound }), "fmt");
        let too_long = stored(&[("DP", FieldExample::Integers(vec![7]))]);
        let place = line(&Record { info: &too_long[..15], ..sound }).unwrap_err().place().cloned().unwrap();
        assert_eq!((place.field.as_deref(), place.offset), (Some("values of a field"), Some(15)));
        assert!(line(&Record { contig: b"a\n", ..sound }).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_one_line_or_an_error(
            alleles: Vec<u8>, id in "[ -~]{0,4}", filters in proptest::collection::vec(0u32..4, 0..4),
            info: Vec<u8>, format: Vec<u8>, extracted: Vec<u8>, start: u32, end: u32, quality: u32,
        ) {
            let (filters, id) = (numbers(&filters), format!("{id}\0"));
            let with_count = |bytes: &[u8]| [&[1, 0, 0, 0], bytes].concat();
            let (info, format) = (with_count(&info), with_count(&format));
            let mut out = Vec::new();
            let record = Record {
                contig: b"1", start, end, quality, alleles: &alleles, id: id.as_bytes(), filters: &filters,
                info: &info, format: &format,
                extracted_info: &[(b"X", &extracted)], extracted_format: &[(b"Y", &extracted)],
            };
            let header = Header::parse(HEADER).unwrap();
            if record.line(&header, true).and_then(|line| line.append(&mut out)).is_ok() {
                prop_assert_eq!(out.iter().filter(|&&byte| byte == b'\n').count(), 1);
                prop_assert_eq!(out.iter().filter(|&&byte| byte == b'\t').count(), 9);
            }
        }
    }
}
