//! fragments.tsv: one line per visible fragment.

use tilefs_format::scalar::Range;
use tilefs_format::schema::ArraySchema;

use super::quoting::in_line;
use crate::tree::grammar::range_text;
use crate::tree::time;

/// The properties of one fragment.
#[derive(Debug, Clone, PartialEq)]
pub struct FragmentFacts<'a> {
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

/// Returns the text of the file: a line with the names of the columns, then the fragments in the order given. Columns
/// are separated by tabs; unknown values are empty. The non-empty domain is written as a selection, so that `slice/`
/// followed by it is the fragment's box.
pub fn fragments_tsv<'a>(schema: &ArraySchema, fragments: impl IntoIterator<Item = FragmentFacts<'a>>) -> String {
    let mut text = String::from(
        "first_time\tlast_time\tfirst_ms\tlast_ms\ttype\tcells\tbytes\tnon_empty_domain\tformat_version\tname\n",
    );
    let known = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    for fragment in fragments {
        let ranges = fragment.non_empty.unwrap_or_default().iter().zip(&schema.dimensions);
        let ranges: Vec<String> = ranges.map(|(range, dimension)| range_text(dimension.datatype, range)).collect();
        let columns = [
            time::extended(fragment.start),
            time::extended(fragment.end),
            fragment.start.to_string(),
            fragment.end.to_string(),
            if fragment.dense { "dense" } else { "sparse" }.to_owned(),
            known(fragment.cells),
            fragment.bytes.to_string(),
            ranges.join(","),
            fragment.format_version.to_string(),
            in_line(fragment.name),
        ];
        text += &columns.join("\t");
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use tilefs_format::scalar::Scalar;

    use super::*;
    use crate::tree::texts::testing;

    #[test]
    fn a_line_per_fragment() {
        let schema = testing::dense_schema();
        let range = |low, high| Range { low: Scalar::Signed(low), high: Scalar::Signed(high) };
        let domain = [range(-5, 4), range(0, 2)];
        let one = FragmentFacts {
            name: "__1_2_a_22",
            start: 0,
            end: 1_706_696_100_000,
            format_version: 22,
            dense: true,
            cells: Some(30),
            bytes: 1000,
            non_empty: Some(&domain),
        };
        let other = FragmentFacts { dense: false, cells: None, bytes: 0, non_empty: None, ..one.clone() };
        let text = fragments_tsv(&schema, [one, other]);
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
