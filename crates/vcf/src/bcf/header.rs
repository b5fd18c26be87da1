//! The header of a BCF file: that of the VCF file, with the number of each defined name in `IDX`.
//!
//! The names of filters, INFO and FORMAT fields share one dictionary of strings, in which `PASS` is 0; contigs have
//! another. Both are numbered by the order in which lines first define the names. Records of TileDB-VCF contain names,
//! or numbers that are looked up in the stored header, so that header's numbers need not be preserved.

use std::collections::HashMap;

use tilefs_base::error::{Error, Result};
use tilefs_threads::cancellation;

use super::super::check_text;
use super::super::header::{Dictionary, LINES_OF_A_CHECK, PASS, PASS_LINE, attribute, structured, without_number};
use super::BcfValueType;

/// The first bytes of a file: the format and its version.
const MAGIC: &[u8] = b"BCF\x02\x02";

/// The number of columns before the samples.
const COLUMNS_BEFORE: usize = 9;

/// Maximum number of samples of a record, which has 24 bits.
const MAX_SAMPLES: usize = (1 << 24) - 1;

/// The header of a BCF file. Memory: its bytes, and a few words for each name.
#[derive(Debug)]
pub struct BcfHeader {
    bytes: Vec<u8>,
    names: HashMap<Vec<u8>, DictionaryName>,
    contigs: HashMap<Vec<u8>, i32>,
    samples: usize,
}

/// A name in the dictionary of strings, and the types of the fields with this name.
#[derive(Debug, Clone, Copy)]
struct DictionaryName {
    number: i32,
    info: Option<BcfValueType>,
    format: Option<BcfValueType>,
}

impl BcfHeader {
    /// Creates the header for a VCF header that includes the line of column names. `more_contigs` are contigs of
    /// records that the header lacks; those whose names are not valid in a header are left out.
    ///
    /// # Errors
    /// Fails for a header of 2^31 bytes or more, and for 2^24 samples or more.
    pub fn new(head: &[u8], more_contigs: &[Vec<u8>]) -> Result<Self> {
        let mut header =
            BcfHeader { bytes: [MAGIC, &[0; 4]].concat(), names: HashMap::new(), contigs: HashMap::new(), samples: 0 };
        let start = header.bytes.len();
        let mut dictionary = Dictionary::new();
        header.name(PASS.1, &mut dictionary)?;
        let lines = || head.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        let defines_pass = lines().any(|line| {
            structured(line).is_some_and(|(kind, rest)| kind == b"FILTER" && attribute(rest, b"ID") == Some(PASS.1))
        });
        for (number, line) in lines().enumerate() {
            if number.is_multiple_of(LINES_OF_A_CHECK) {
                cancellation::check()?;
            }
            if line.starts_with(b"##") {
                header.add_line(line, &mut dictionary)?;
                if number == 0 && !defines_pass {
                    header.add_line(PASS_LINE.trim_ascii_end(), &mut dictionary)?;
                }
                continue;
            }
            for name in more_contigs.iter().filter(|name| check_text(name, b",<>\"= ", "").is_ok()) {
                header.add_line(&[b"##contig=<ID=", name.as_slice(), b">"].concat(), &mut dictionary)?;
            }
            header.samples = line.split(|&byte| byte == b'\t').count().saturating_sub(COLUMNS_BEFORE);
            header.bytes.extend_from_slice(line);
            header.bytes.push(b'\n');
        }
        if header.samples > MAX_SAMPLES {
            return Err(Error::unsupported(format!("a BCF file with {} samples", header.samples)));
        }
        header.bytes.push(0);
        let length = i32::try_from(header.bytes.len() - start);
        let length = length.map_err(|_| Error::unsupported("a BCF file with a header of 2^31 bytes"))?;
        header.bytes[start - 4..start].copy_from_slice(&length.to_le_bytes());
        Ok(header)
    }

    /// Returns the bytes of the file before its records.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the number of contigs.
    pub(in super::super) fn contig_count(&self) -> usize {
        self.contigs.len()
    }

    /// Returns the number of samples.
    pub(super) fn samples(&self) -> usize {
        self.samples
    }

    /// Returns the number of a contig.
    pub(super) fn contig(&self, name: &[u8]) -> Result<i32> {
        let found = self.contigs.get(name).copied();
        found.ok_or_else(|| undefined("the contig", name))
    }

    /// Returns the number of a filter.
    pub(super) fn filter(&self, name: &[u8]) -> Result<i32> {
        let found = self.names.get(name).map(|name| name.number);
        found.ok_or_else(|| undefined("the filter", name))
    }

    /// Returns the number of an INFO field, and the type of its values.
    pub(super) fn info(&self, name: &[u8]) -> Result<(i32, BcfValueType)> {
        let found = self.names.get(name).and_then(|name| Some((name.number, name.info?)));
        found.ok_or_else(|| undefined("the INFO field", name))
    }

    /// Returns the number of a FORMAT field, and the type of its values.
    pub(super) fn format(&self, name: &[u8]) -> Result<(i32, BcfValueType)> {
        let found = self.names.get(name).and_then(|name| Some((name.number, name.format?)));
        found.ok_or_else(|| undefined("the FORMAT field", name))
    }

    /// Returns the entry of a name in the dictionary of strings. A new name gets the next number.
    fn name(&mut self, name: &[u8], dictionary: &mut Dictionary) -> Result<&mut DictionaryName> {
        let number = dictionary.number(name, None)?;
        let number = i32::try_from(number).map_err(|_| Error::unsupported("a BCF file with 2^31 names"))?;
        Ok(self.names.entry(name.to_vec()).or_insert(DictionaryName { number, info: None, format: None }))
    }

    /// Appends a line. If it defines a name, adds the name's number.
    fn add_line(&mut self, line: &[u8], dictionary: &mut Dictionary) -> Result<()> {
        let defined = structured(line).and_then(|(key, rest)| Some((key, attribute(rest, b"ID")?, rest)));
        let number = match defined {
            Some((b"contig", name, _)) => {
                let next = i32::try_from(self.contigs.len());
                let next = next.map_err(|_| Error::unsupported("a BCF file with 2^31 contigs"))?;
                Some(*self.contigs.entry(name.to_vec()).or_insert(next))
            }
            Some((b"FILTER", name, _)) => Some(self.name(name, dictionary)?.number),
            Some((b"INFO", name, rest)) => {
                let name = self.name(name, dictionary)?;
                name.info.get_or_insert_with(|| BcfValueType::of(rest));
                Some(name.number)
            }
            Some((b"FORMAT", name, rest)) => {
                let name = self.name(name, dictionary)?;
                name.format.get_or_insert_with(|| BcfValueType::of(rest));
                Some(name.number)
            }
            _ => None,
        };
        match number {
            Some(number) => {
                let line = without_number(line);
                self.bytes.extend_from_slice(line.strip_suffix(b">").unwrap_or(&line));
                self.bytes.extend_from_slice(format!(",IDX={number}>\n").as_bytes());
            }
            None => {
                self.bytes.extend_from_slice(line);
                self.bytes.push(b'\n');
            }
        }
        Ok(())
    }
}

impl BcfValueType {
    /// Returns the type in the attributes of a definition; unknown types are texts.
    fn of(attributes: &[u8]) -> Self {
        match attribute(attributes, b"Type") {
            Some(b"Flag") => BcfValueType::Flag,
            Some(b"Integer") => BcfValueType::Integer,
            Some(b"Float") => BcfValueType::Float,
            _ => BcfValueType::Text,
        }
    }
}

fn undefined(what: &str, name: &[u8]) -> Error {
    let name = String::from_utf8_lossy(name);
    Error::unsupported(format!("{what} {name} in BCF, which numbers what the header defines; the .vcf has it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_give_names_their_numbers() {
        let head = b"##fileformat=VCFv4.2\n\
            ##INFO=<ID=DP,Number=1,Type=Integer,Description=\"a, >\",IDX=7>\n\
            ##FORMAT=<ID=GT,Number=1,Type=String>\n##FILTER=<ID=q10>\n##FORMAT=<ID=DP,Type=Float>\n\
            ##contig=<ID=2,length=5>\n##contig=<ID=1>\n##contig=<ID=2>\n##x=y\n##ALT=<ID=DEL>\n\
            #CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\ta\tb\n";
        let header = BcfHeader::new(head, &[b"3".to_vec(), b"a,b".to_vec()]).unwrap();
        let (start, text) = header.bytes().split_at(9);
        let text = str::from_utf8(text).unwrap();
        assert_eq!(start, [MAGIC, &(text.len() as u32).to_le_bytes()].concat());
        assert_eq!(
            text,
            "##fileformat=VCFv4.2\n##FILTER=<ID=PASS,Description=\"All filters passed\",IDX=0>\n\
             ##INFO=<ID=DP,Number=1,Type=Integer,Description=\"a, >\",IDX=1>\n\
             ##FORMAT=<ID=GT,Number=1,Type=String,IDX=2>\n##FILTER=<ID=q10,IDX=3>\n##FORMAT=<ID=DP,Type=Float,IDX=1>\n\
             ##contig=<ID=2,length=5,IDX=0>\n##contig=<ID=1,IDX=1>\n##contig=<ID=2,IDX=0>\n##x=y\n##ALT=<ID=DEL>\n\
             ##contig=<ID=3,IDX=2>\n\
             #CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\ta\tb\n\0"
        );
        assert_eq!(header.samples(), 2);
        assert_eq!(
            (header.info(b"DP").unwrap(), header.format(b"DP").unwrap()),
            ((1, BcfValueType::Integer), (1, BcfValueType::Float))
        );
        assert_eq!((header.filter(b"PASS").unwrap(), header.contig(b"3").unwrap()), (0, 2));
        for missing in [header.info(b"GT").is_err(), header.format(b"q10").is_err(), header.contig(b"a,b").is_err()] {
            assert!(missing);
        }
        // If a header has the line already, it is not added.
        let own = BcfHeader::new(b"##fileformat=VCFv4.2\n##FILTER=<ID=q>\n##FILTER=<ID=PASS,Description=\"x\">\n", &[]);
        let text = String::from_utf8(own.unwrap().bytes()[9..].to_vec()).unwrap();
        assert_eq!(text, "##fileformat=VCFv4.2\n##FILTER=<ID=q,IDX=1>\n##FILTER=<ID=PASS,Description=\"x\",IDX=0>\n\0");
    }
}
