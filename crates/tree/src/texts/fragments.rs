//! fragments.tsv: one line per visible fragment.

use std::fmt::{Display, Write};

use tilefs_format::scalar::Range;
use tilefs_format::schema::ArraySchema;
use tilefs_select::range_text;
use tilefs_select::time;
use tilefs_vfs::node::quoting::in_line;

/// The properties of one fragment.
#[derive(Debug, Clone, PartialEq)]
pub struct FragmentLine<'a> {
    pub name: &'a str,
    /// Milliseconds since 1970, both ends included.
    pub start: u64,
    pub end: u64,
    pub format_version: u32,
    pub dense: bool,
    /// `None` if the metadata do not contain it.
    pub cells: Option<u64>,
    /// Total size of the files of its tiles.
    pub bytes: u64,
    /// A range per dimension; `None` for a fragment without cells.
    pub non_empty: Option<&'a [Range]>,
}

/// The text of the file: a line with the names of the columns, then the fragments in the order in which they are added.
/// Columns are separated by tabs; unknown values are empty. The non-empty domain is written as a selection, so that
/// `slice/` followed by it is the fragment's box.
pub struct FragmentsTsv<'a> {
    schema: &'a ArraySchema,
    text: String,
}

impl<'a> FragmentsTsv<'a> {
    /// Begins the text with its first line.
    pub fn new(schema: &'a ArraySchema) -> Self {
        let text =
            "first_time\tlast_time\tfirst_ms\tlast_ms\ttype\tcells\tbytes\tnon_empty_domain\tformat_version\tname\n";
        FragmentsTsv { schema, text: text.to_owned() }
    }

    /// Adds the line of a fragment.
    pub fn add(&mut self, fragment: &FragmentLine<'_>) {
        let ranges = fragment.non_empty.unwrap_or_default().iter().zip(&self.schema.dimensions);
        let ranges: Vec<String> = ranges.map(|(range, dimension)| range_text(dimension.datatype, range)).collect();
        let columns: [&dyn Display; 10] = [
            &time::extended(fragment.start),
            &time::extended(fragment.end),
            &fragment.start,
            &fragment.end,
            &if fragment.dense { "dense" } else { "sparse" },
            &fragment.cells.map_or_else(String::new, |cells| cells.to_string()),
            &fragment.bytes,
            &ranges.join(","),
            &fragment.format_version,
            &in_line(fragment.name),
        ];
        for (number, column) in columns.into_iter().enumerate() {
            let separator = if number == 0 { "" } else { "\t" };
            // Writing to a string cannot fail.
            let _ = write!(self.text, "{separator}{column}");
        }
        self.text.push('\n');
    }

    /// Returns the text.
    pub fn finish(mut self) -> String {
        self.text.shrink_to_fit();
        self.text
    }
}

#[cfg(test)]
mod tests {
    use tilefs_format::scalar::Scalar;

    use super::*;
    use crate::texts::testing;

    #[test]
    fn a_line_per_fragment() {
        let schema = testing::dense_schema();
        let range = |low, high| Range { low: Scalar::Signed(low), high: Scalar::Signed(high) };
        let domain = [range(-5, 4), range(0, 2)];
        let one = FragmentLine {
            name: "__1_2_a_22",
            start: 0,
            end: 1_706_696_100_000,
            format_version: 22,
            dense: true,
            cells: Some(30),
            bytes: 1000,
            non_empty: Some(&domain),
        };
        let other = FragmentLine { dense: false, cells: None, bytes: 0, non_empty: None, ..one.clone() };
        let mut text = FragmentsTsv::new(&schema);
        [one, other].iter().for_each(|fragment| text.add(fragment));
        let text = text.finish();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.len() == lines[0].len()));
        assert_eq!(
            lines[1],
            [
                "1970-01-01T00:00:00.000Z",
                "2024-01-31T10:15:00.000Z",
                "0",
                "1706696100000",
                "dense",
                "30",
                "1000",
                "-5..4,0..2",
                "22",
                "__1_2_a_22"
            ]
        );
        assert_eq!(lines[2][4..8], ["sparse", "", "0", ""]);
    }
}
