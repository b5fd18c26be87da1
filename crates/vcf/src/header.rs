//! The header of a VCF file: its lines, and the dictionary that maps the numbers of filters to names.

use std::collections::{HashMap, HashSet};

use tilefs_base::error::{Error, Result};
use tilefs_base::inputs::{Recorded, Recorder};
use tilefs_threads::cancellation;

use super::check_text;

/// The filter that every header has under this number, even if no line defines it.
pub(super) const PASS: (u32, &[u8]) = (0, b"PASS");

/// The line with which htslib defines [`PASS`].
pub(super) const PASS_LINE: &[u8] = b"##FILTER=<ID=PASS,Description=\"All filters passed\">\n";

/// The start of the line of column names, which ends a header.
const COLUMNS: &[u8] = b"#CHROM";

/// The names of the columns that every VCF file has.
const FIXED_COLUMNS: &[u8] = b"#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO";

/// Number of lines after which cancellation is checked: a header may define millions of contigs.
pub(super) const LINES_OF_A_CHECK: usize = 1 << 12;

/// A header as TileDB-VCF stores it. Memory: its text, and a few words for each line that defines a filter or a field.
///
/// Names of filters, INFO and FORMAT fields share one dictionary. htslib numbers the names from 1, because `PASS` is 0,
/// in the order in which lines first define them; an `IDX` in a line gives the number of its name explicitly.
#[derive(Debug, Clone)]
pub struct Header {
    /// The lines before the column names, each with its line break.
    lines: Vec<u8>,
    filters: HashMap<u32, Vec<u8>>,
    info: HashMap<Vec<u8>, Definition>,
    format: HashMap<Vec<u8>, Definition>,
}

/// The definition of an INFO or FORMAT field, as far as merging needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Definition {
    pub count: ValueCount,
    /// Whether the values are integers or floats.
    pub is_numeric: bool,
}

/// The number of values of a field: `Number` in its definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum ValueCount {
    /// `A`: one for each alternative allele.
    PerAlternative,
    /// `R`: one for each allele.
    PerAllele,
    /// `G`: one for each genotype.
    PerGenotype,
    /// A fixed number, or any number.
    Other,
}

impl Definition {
    /// The definition assumed for a field that no line defines.
    const NONE: Definition = Definition { count: ValueCount::Other, is_numeric: false };

    fn of(attributes: &[u8]) -> Self {
        let count = match attribute(attributes, b"Number") {
            Some(b"A") => ValueCount::PerAlternative,
            Some(b"R") => ValueCount::PerAllele,
            Some(b"G") => ValueCount::PerGenotype,
            _ => ValueCount::Other,
        };
        let is_numeric = matches!(attribute(attributes, b"Type"), Some(b"Integer" | b"Float"));
        Definition { count, is_numeric }
    }
}

impl Recorded for Header {
    fn record(&self, recorder: &mut Recorder) {
        // The others are parsed from the lines.
        let Self { lines, filters: _, info: _, format: _ } = self;
        recorder.add::<Self>(lines);
    }
}

impl Header {
    /// Parses the text of a header.
    ///
    /// # Errors
    /// Fails for a line that is no header line, and if two names have the same number.
    pub fn parse(text: &[u8]) -> Result<Self> {
        // Some writers store the NUL that ends a C string.
        let text = text.strip_suffix(b"\0").unwrap_or(text);
        let mut dictionary = Dictionary::new();
        let mut header = Header::empty();
        for (number, line) in text.split(|&byte| byte == b'\n').enumerate() {
            if number.is_multiple_of(LINES_OF_A_CHECK) {
                cancellation::check()?;
            }
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.starts_with(COLUMNS) {
                break;
            }
            if header.lines.is_empty() && !line.starts_with(b"##fileformat=") {
                return Err(Error::damaged("a VCF header that does not begin with ##fileformat="));
            }
            if line.is_empty() {
                continue;
            }
            if !line.starts_with(b"##") {
                return Err(Error::damaged("a line of a VCF header that does not begin with ##"));
            }
            header.define(line, &mut dictionary)?;
            header.lines.extend_from_slice(line);
            header.lines.push(b'\n');
        }
        if header.lines.is_empty() {
            return Err(Error::damaged("an empty VCF header"));
        }
        header.filters.entry(PASS.0).or_insert_with(|| PASS.1.to_vec());
        Ok(header)
    }

    fn empty() -> Self {
        Header { lines: Vec::new(), filters: HashMap::new(), info: HashMap::new(), format: HashMap::new() }
    }

    /// Returns the header of a merge of files with these headers, as `bcftools merge` makes it. It has the lines of the
    /// first header, with `PASS` after the first line. Each further header adds its lines that define a new name or
    /// have a new key. Numbers of names (`IDX`) are left out.
    ///
    /// # Errors
    /// Fails for names that a header cannot contain.
    pub(super) fn merged<'h>(headers: impl Iterator<Item = &'h Header>) -> Result<Header> {
        let (mut merged, mut dictionary) = (Header::empty(), Dictionary::new());
        // The keys of lines; for lines that define a name, the key and the name.
        let mut known = HashSet::from([b"FILTER=<PASS".to_vec()]);
        let mut seen = HashSet::new();
        for header in headers.filter(|header| seen.insert(std::ptr::from_ref(*header))) {
            let mut lines = header.lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
            let format = lines.next().unwrap_or(b"##fileformat=VCFv4.2");
            if merged.lines.is_empty() {
                merged.lines = [format, b"\n", PASS_LINE].concat();
                merged.define(PASS_LINE.trim_ascii_end(), &mut dictionary)?;
            }
            let (mut keys, mut own) = (Vec::new(), HashSet::new());
            for (number, line) in lines.enumerate() {
                if number.is_multiple_of(LINES_OF_A_CHECK) {
                    cancellation::check()?;
                }
                let line = match structured(line) {
                    Some((kind, attributes)) => {
                        let Some(name) = attribute(attributes, b"ID") else { continue };
                        if !known.insert([kind, b"=<", name].concat()) {
                            continue;
                        }
                        without_number(line)
                    }
                    None => {
                        let key = line.split(|&byte| byte == b'=').next().unwrap_or(line);
                        if known.contains(key) || !own.insert(line) {
                            continue;
                        }
                        keys.push(key.to_vec());
                        line.to_vec()
                    }
                };
                merged.define(&line, &mut dictionary)?;
                merged.lines.extend_from_slice(&line);
                merged.lines.push(b'\n');
            }
            known.extend(keys);
        }
        if merged.lines.is_empty() {
            merged.lines = [b"##fileformat=VCFv4.2\n", PASS_LINE].concat();
        }
        Ok(merged)
    }

    /// Adds the name that a line defines, if it defines one.
    fn define(&mut self, line: &[u8], dictionary: &mut Dictionary) -> Result<()> {
        let Some((key, attributes)) = structured(line) else { return Ok(()) };
        let kind = match key {
            b"FILTER" | b"INFO" | b"FORMAT" | b"contig" => key,
            _ => return Ok(()),
        };
        let Some(name) = attribute(attributes, b"ID") else { return Ok(()) };
        if kind == b"contig" {
            return check_text(name, b"", "the name of a contig").map(|_| ());
        }
        let explicit = match attribute(attributes, b"IDX") {
            Some(text) => Some(
                str::from_utf8(text)
                    .ok()
                    .and_then(|text| text.parse().ok())
                    .ok_or_else(|| Error::damaged("an IDX in a VCF header that is not a number"))?,
            ),
            None => None,
        };
        let number = dictionary.number(name, explicit)?;
        match kind {
            b"FILTER" => {
                self.filters.insert(number, check_text(name, b"; ", "the name of a filter")?.to_vec());
            }
            b"INFO" => _ = self.info.entry(name.to_vec()).or_insert_with(|| Definition::of(attributes)),
            _ => _ = self.format.entry(name.to_vec()).or_insert_with(|| Definition::of(attributes)),
        }
        Ok(())
    }

    /// Returns the lines before the column names, without their line breaks.
    pub(super) fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty())
    }

    /// Returns the filters with their numbers, sorted by number.
    pub(super) fn filters(&self) -> Vec<(u32, Vec<u8>)> {
        let mut filters: Vec<(u32, Vec<u8>)> =
            self.filters.iter().map(|(number, name)| (*number, name.clone())).collect();
        filters.sort_unstable();
        filters
    }

    /// Returns the definition of an INFO field.
    pub(super) fn info(&self, name: &[u8]) -> Definition {
        self.info.get(name).copied().unwrap_or(Definition::NONE)
    }

    /// Returns the definition of a FORMAT field.
    pub(super) fn format(&self, name: &[u8]) -> Definition {
        self.format.get(name).copied().unwrap_or(Definition::NONE)
    }

    /// Returns the definitions of INFO and those of FORMAT fields, sorted by name.
    pub(super) fn definitions(&self) -> [Vec<(&[u8], Definition)>; 2] {
        [&self.info, &self.format].map(|fields| {
            let mut sorted: Vec<_> = fields.iter().map(|(name, definition)| (name.as_slice(), *definition)).collect();
            sorted.sort_unstable();
            sorted
        })
    }

    /// Returns the names of the contigs in the order of their lines. A contig that is defined twice is listed twice.
    pub fn contigs(&self) -> impl Iterator<Item = &[u8]> {
        self.contig_lines().filter_map(|attributes| attribute(attributes, b"ID"))
    }

    /// Returns the length of a contig, if its line gives one.
    pub fn contig_length(&self, name: &[u8]) -> Option<u64> {
        let attributes = self.contig_lines().find(|attributes| attribute(attributes, b"ID") == Some(name))?;
        str::from_utf8(attribute(attributes, b"length")?).ok()?.parse().ok()
    }

    /// Returns the attributes of the lines that define contigs.
    fn contig_lines(&self) -> impl Iterator<Item = &[u8]> {
        self.lines().filter_map(structured).filter(|(kind, _)| *kind == b"contig").map(|(_, attributes)| attributes)
    }

    /// Returns the filter with a number.
    ///
    /// # Errors
    /// Fails if the header defines no filter with this number.
    pub fn filter(&self, number: u32) -> Result<&[u8]> {
        let found = self.filters.get(&number).map(Vec::as_slice);
        found.ok_or_else(|| Error::damaged(format!("the filter number {number}, which the header does not define")))
    }

    /// Returns whether the header defines the INFO field `END`.
    pub(crate) fn defines_end(&self) -> bool {
        self.defines_info(b"END")
    }

    /// Returns whether the header defines the INFO field `END` as an integer. If it defines the field twice, the first
    /// definition counts.
    pub(crate) fn defines_integer_end(&self) -> bool {
        let mut of_info = self.lines().filter_map(structured).filter(|(kind, _)| *kind == b"INFO");
        let end = of_info.find(|(_, attributes)| attribute(attributes, b"ID") == Some(b"END"));
        end.is_some_and(|(_, attributes)| attribute(attributes, b"Type") == Some(b"Integer"))
    }

    /// Returns whether the header defines an INFO field.
    pub(super) fn defines_info(&self, name: &[u8]) -> bool {
        self.info.contains_key(name)
    }

    /// Returns the header of a file with one sample or none: its lines, and the line of column names.
    ///
    /// # Errors
    /// Fails if the name of the sample is not valid as a column name.
    pub fn text(&self, sample: Option<&[u8]>) -> Result<Vec<u8>> {
        self.text_of(sample.as_slice())
    }

    /// Returns the header of a file with some samples: its lines, and the line of column names.
    ///
    /// # Errors
    /// Fails if the name of a sample is not valid as a column name.
    pub fn text_of(&self, samples: &[impl AsRef<[u8]>]) -> Result<Vec<u8>> {
        let mut text = [&self.lines, FIXED_COLUMNS].concat();
        if !samples.is_empty() {
            text.extend_from_slice(b"\tFORMAT");
        }
        for sample in samples {
            text.push(b'\t');
            text.extend_from_slice(check_text(sample.as_ref(), b"", "the name of a sample")?);
        }
        text.push(b'\n');
        Ok(text)
    }
}

/// The numbers of the names of filters and fields.
pub(super) struct Dictionary {
    numbers: HashMap<Vec<u8>, u32>,
    names: HashMap<u32, Vec<u8>>,
    next: u32,
}

impl Dictionary {
    pub(super) fn new() -> Self {
        let (number, name) = PASS;
        Dictionary {
            numbers: HashMap::from([(name.to_vec(), number)]),
            names: HashMap::from([(number, name.to_vec())]),
            next: number + 1,
        }
    }

    /// Returns the number of a name. A new name gets the number `explicit`, or the next number if that is `None`.
    pub(super) fn number(&mut self, name: &[u8], explicit: Option<u32>) -> Result<u32> {
        if let Some(&known) = self.numbers.get(name) {
            return Ok(known);
        }
        let number = explicit.unwrap_or(self.next);
        if self.names.contains_key(&number) {
            return Err(Error::damaged(format!("two names of a VCF header with the number {number}")));
        }
        self.names.insert(number, name.to_vec());
        self.numbers.insert(name.to_vec(), number);
        self.next = self.next.max(number.saturating_add(1));
        Ok(number)
    }
}

/// Splits `##KEY=<...>` into the key and the text between the brackets.
pub(super) fn structured(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.strip_prefix(b"##")?;
    let equals = line.iter().position(|&byte| byte == b'=')?;
    let (key, value) = line.split_at(equals);
    Some((key, value.strip_prefix(b"=<")?.strip_suffix(b">")?))
}

/// Returns a line that defines a name, without the name's number.
pub(super) fn without_number(line: &[u8]) -> Vec<u8> {
    let number = structured(line).and_then(|(_, attributes)| attribute(attributes, b"IDX"));
    let text = number.map(|number| [b",IDX=", number].concat());
    let place = text.as_ref().and_then(|text| line.windows(text.len()).rposition(|window| window == text.as_slice()));
    match (place, text) {
        (Some(place), Some(text)) => [&line[..place], &line[place + text.len()..]].concat(),
        _ => line.to_vec(),
    }
}

/// Returns the value of an attribute in `ID=a,Description="b, c"`, without quotes.
pub(super) fn attribute<'a>(attributes: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    let mut rest = attributes;
    while let Some(equals) = rest.iter().position(|&byte| byte == b'=') {
        let (key, value) = (&rest[..equals], &rest[equals + 1..]);
        let (value, after) = match value.strip_prefix(b"\"") {
            Some(quoted) => {
                let end = closing_quote(quoted)?;
                (&quoted[..end], &quoted[end + 1..])
            }
            None => value.split_at(value.iter().position(|&byte| byte == b',').unwrap_or(value.len())),
        };
        if key.trim_ascii() == wanted {
            return Some(value);
        }
        rest = after.strip_prefix(b",").unwrap_or(after);
    }
    None
}

/// Returns the position of the quote that ends a text in which a backslash escapes the next character.
fn closing_quote(text: &[u8]) -> Option<usize> {
    let mut is_escaped = false;
    text.iter().position(|&byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &[u8] = b"##fileformat=VCFv4.2\n\
        ##FILTER=<ID=PASS,Description=\"All filters passed\">\n\
        ##ALT=<ID=NON_REF,Description=\"Any\">\n\
        ##INFO=<ID=DP,Number=1,Type=Integer,Description=\"Depth, \\\"all\\\", ID=x\">\n\
        ##FILTER=<ID=q10,Description=\"Quality\">\n\
        ##FORMAT=<ID=DP,Number=1,Type=Integer,Description=\"Depth\">\n\
        ##FORMAT=<Description=\"a,b\",ID=s50,Number=1,Type=String>\n\
        ##FILTER=<ID=s50,Description=\"Also a FORMAT\">\n\
        ##INFO=<ID=END,Number=1,Type=Integer,Description=\"End\">\n\
        ##contig=<ID=20,length=62435964>\n\
        ##contig=<ID=chr1,length=5>\n\
        ##contig=<ID=20,length=7>\n\
        ##reference=file:///x.fasta\n\
        #CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n";

    #[test]
    fn names_are_numbered_in_the_order_of_their_lines() {
        let header = Header::parse(TEXT).unwrap();
        assert_eq!(header.filter(0).unwrap(), b"PASS");
        assert_eq!(header.filter(2).unwrap(), b"q10");
        assert_eq!(header.filter(3).unwrap(), b"s50");
        for number in [1, 4, 5, u32::MAX] {
            assert!(header.filter(number).is_err(), "{number}");
        }
        assert_eq!(header.contigs().collect::<Vec<_>>(), [&b"20"[..], b"chr1", b"20"]);
        assert_eq!(header.contig_length(b"20"), Some(62_435_964));
        assert_eq!(header.contig_length(b"2"), None);
        assert!(header.defines_end());
    }

    #[test]
    fn explicit_numbers_count() {
        let header = Header::parse(b"##fileformat=VCFv4.2\n##FILTER=<ID=a,IDX=7>\n##FILTER=<ID=b>\n").unwrap();
        assert_eq!((header.filter(7).unwrap(), header.filter(8).unwrap()), (&b"a"[..], &b"b"[..]));
        assert_eq!(header.filter(0).unwrap(), b"PASS");
        for wrong in ["##FILTER=<ID=a,IDX=0>", "##FILTER=<ID=a,IDX=x>", "##FILTER=<ID=a,IDX=3>\n##INFO=<ID=b,IDX=3>"] {
            let text = format!("##fileformat=VCFv4.2\n{wrong}\n");
            assert!(Header::parse(text.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn headers_are_merged() {
        let header = |text: &str| Header::parse(text.as_bytes()).unwrap();
        let first = header(
            "##fileformat=VCFv4.1\n##source=a\n##source=b\n##INFO=<ID=DP,Number=1,Type=Integer,IDX=7>\n\
             ##contig=<ID=2>\n##x=<no=id>\n",
        );
        let second = header(
            "##fileformat=VCFv4.3\n##FILTER=<ID=PASS,Description=\"x\">\n##source=c\n##other=d\n\
             ##INFO=<ID=DP,Number=2,Type=Float>\n##FORMAT=<ID=DP,Number=G,Type=Float>\n##contig=<ID=1>\n##contig=<ID=2>\n",
        );
        let merged = Header::merged([&first, &second, &first].into_iter()).unwrap();
        let text = String::from_utf8(merged.text_of(&["a", "b"]).unwrap()).unwrap();
        assert_eq!(
            text,
            "##fileformat=VCFv4.1\n##FILTER=<ID=PASS,Description=\"All filters passed\">\n##source=a\n##source=b\n\
             ##INFO=<ID=DP,Number=1,Type=Integer>\n##contig=<ID=2>\n##other=d\n\
             ##FORMAT=<ID=DP,Number=G,Type=Float>\n##contig=<ID=1>\n\
             #CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\ta\tb\n"
        );
        assert_eq!(merged.contigs().collect::<Vec<_>>(), [b"2", b"1"]);
        assert_eq!(merged.contig_length(b"1"), None);
        assert_eq!(merged.info(b"DP"), Definition { count: ValueCount::Other, is_numeric: true });
        assert_eq!(merged.format(b"DP").count, ValueCount::PerGenotype);
        assert!(Header::merged(std::iter::empty()).unwrap().lines.ends_with(PASS_LINE));
    }

    #[test]
    fn the_text_ends_with_the_columns() {
        let header = Header::parse(TEXT).unwrap();
        assert_eq!(header.text(None).unwrap(), TEXT);
        let with = header.text(Some(b"NA 1")).unwrap();
        assert_eq!(with, [&TEXT[..TEXT.len() - 1], b"\tFORMAT\tNA 1\n"].concat());
        assert!(header.text(Some(b"a\tb")).is_err());
    }

    #[test]
    fn what_is_no_header_is_an_error() {
        for wrong in [&b""[..], b"\0", b"#CHROM\tPOS\n", b"##INFO=<ID=a>\n", b"##fileformat=VCFv4.2\nx\n"] {
            assert!(Header::parse(wrong).is_err());
        }
        assert!(Header::parse(b"##fileformat=VCFv4.2\n##FILTER=<ID=a;b>\n").is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_header_or_an_error(mut bytes: Vec<u8>, at in 0..TEXT.len(), flip: u8) {
            let _ = Header::parse(&bytes);
            bytes.splice(0..0, *b"##fileformat=\n");
            let _ = Header::parse(&bytes);
            let mut altered = TEXT.to_vec();
            altered[at] ^= flip;
            let _ = Header::parse(&altered);
        }
    }
}
