//! schema.txt: an array for people, in the style of `ncdump -h`.

use tilefs_format::datatype::Datatype;
use tilefs_format::pipeline::Pipeline;
use tilefs_format::schema::{Attribute, CellValNum, Dimension};
use tilefs_reader::array::sparse::RowCount;
use tilefs_select::time;
use tilefs_select::{coordinate_text, range_text};
use tilefs_threads::cancellation;
use tilefs_vfs::node::quoting::{in_line, quoted};

use super::description::{CellsSummary, Description};
use super::json::layout_name;
use crate::cells::axis_summary::AxisSummary;
use crate::cells::dense::CoveredBox;
use crate::wording::filters::pipeline_text;
use crate::wording::value::{datatype_text, values_text};

/// Maximum number of values or characters that are shown.
const MOST: usize = 60;

/// Maximum number of labels of an enumeration that are shown.
const MAX_LABELS: usize = 20;

/// Returns the text of schema.txt.
pub fn schema_text(description: &Description<'_>) -> String {
    let schema = description.schema;
    let mut lines = IndentedLines::default();
    let kind = if schema.is_sparse() { "sparse" } else { "dense" };
    let path = in_line(&description.path);
    lines.line(0, &format!("{kind} array {} {{  // {path}", in_line(description.name())));
    if let Some(selection) = &description.selection {
        lines.line(0, &format!("// {}", in_line(selection)));
    }
    for warning in &description.warnings {
        lines.line(0, &format!("// warning: {}", in_line(warning)));
    }
    lines.line(0, "dimensions:");
    for (number, dimension) in schema.dimensions.iter().enumerate() {
        let axis = match &description.cells {
            CellsSummary::Dense { axes, .. } => axes.get(number),
            CellsSummary::Sparse { .. } => None,
        };
        lines.line(1, &dimension_line(description, number, dimension, axis));
    }
    lines.line(0, "variables:");
    for attribute in schema.attributes.iter().take_while(|_| !cancellation::is_cancelled()) {
        attribute_lines(&mut lines, description, attribute);
    }
    for number in 0..schema.dimensions.len() {
        dimension_lines(&mut lines, description, number);
    }
    enumeration_lines(&mut lines, description);
    array_lines(&mut lines, description);
    if !description.metadata.is_empty() {
        lines.line(0, "");
        lines.line(0, "// metadata:");
    }
    for one in &description.metadata {
        let value = values_text(one.datatype, &one.value, MOST);
        lines.fact(1, "", &in_line(&one.key), &value);
    }
    lines.line(0, "}");
    lines.text
}

/// Returns `y = 100 ;  // int32 -5..94, tiles of 10`.
fn dimension_line(
    description: &Description<'_>,
    number: usize,
    dimension: &Dimension,
    axis: Option<&AxisSummary>,
) -> String {
    let datatype = dimension.datatype;
    let mut notes = vec![match &dimension.domain {
        Some(domain) => format!("{} {}", datatype_text(datatype), range_text(datatype, domain)),
        None => format!("{}, of any length", datatype_text(datatype)),
    }];
    notes.extend(unit_text(datatype));
    if let Some(current) = description.schema.current_domain.as_ref().and_then(|ranges| ranges.get(number)) {
        notes.push(format!("currently {}", range_text(datatype, current)));
    }
    match dimension.unwrapped_extent() {
        // A number of units, not a date.
        Some(extent) => notes.push(format!("tiles of {extent}")),
        None if dimension.domain.is_some() => notes.push("not cut into tiles".to_owned()),
        None => {}
    }
    if let Some(axis) = axis {
        notes.extend(shown_text(axis, dimension));
    }
    let count = axis.map(|axis| format!(" = {}", axis.length)).unwrap_or_default();
    format!("{}{count} ;  // {}", in_line(&description.schema.dimension_name(number)), notes.join(", "))
}

/// Returns the coordinates that the files show, if these are not the whole domain.
fn shown_text(axis: &AxisSummary, dimension: &Dimension) -> Option<String> {
    let (Some(first), Some(last)) = (&axis.first, &axis.last) else { return Some("nothing shown".to_owned()) };
    if dimension
        .domain
        .as_ref()
        .is_some_and(|domain| domain.low == *first && domain.high == *last && axis.step == Some(1))
    {
        return None;
    }
    let text = |end| coordinate_text(dimension.datatype, end);
    Some(match axis.step {
        Some(_) if first == last => format!("shown: {}", text(first)),
        Some(1) => format!("shown: {}..{}", text(first), text(last)),
        Some(step) => format!("shown: {}..{}..{step}", text(first), text(last)),
        None => format!("shown: {} coordinates from {} to {}", axis.length, text(first), text(last)),
    })
}

fn attribute_lines(lines: &mut IndentedLines, description: &Description<'_>, attribute: &Attribute) {
    let name = in_line(&attribute.name);
    let datatype = attribute.datatype;
    let values = match attribute.cell_count {
        CellValNum::Fixed(1) => String::new(),
        CellValNum::Fixed(count) => format!("[{count}]"),
        CellValNum::Variable => "[]".to_owned(),
    };
    let declared = if name.is_empty() { "(anonymous)" } else { name.as_str() };
    lines.line(1, &format!("{}{values} {declared}({}) ;", datatype_text(datatype), axes(description)));
    if let Some(unit) = unit_text(datatype) {
        lines.fact(2, &name, "units", &quoted(&unit, MOST));
    }
    if attribute.nullable {
        lines.fact(2, &name, "nullable", "true");
    }
    let fill = match attribute.nullable && attribute.fill_validity == 0 {
        true => "null".to_owned(),
        false => values_text(datatype, &attribute.fill, MOST),
    };
    lines.fact(2, &name, "fill", &fill);
    if let Some(enumeration) = &attribute.enumeration {
        lines.fact(2, &name, "enumeration", &quoted(enumeration, MOST));
    }
    lines.filters(2, &name, "filters", &attribute.filters);
    files_line(lines, description, &name, &attribute.name);
}

fn dimension_lines(lines: &mut IndentedLines, description: &Description<'_>, number: usize) {
    let Some(dimension) = description.schema.dimensions.get(number) else { return };
    let user_name = description.schema.dimension_name(number);
    let name = in_line(&user_name);
    let along = match &description.cells {
        CellsSummary::Dense { .. } => name.clone(),
        CellsSummary::Sparse { .. } => axes(description),
    };
    let values = if dimension.is_variable() { "[]" } else { "" };
    lines.line(1, &format!("{}{values} {name}({along}) ;", datatype_text(dimension.datatype)));
    if let Some(unit) = unit_text(dimension.datatype) {
        lines.fact(2, &name, "units", &quoted(&unit, MOST));
    }
    // The coordinates of a dense array are not stored.
    if description.schema.is_sparse() {
        lines.filters(2, &name, "filters", description.schema.coordinate_filters(dimension));
    }
    files_line(lines, description, &name, &user_name);
}

fn files_line(lines: &mut IndentedLines, description: &Description<'_>, shown: &str, field: &str) {
    let files: Vec<String> = description.files_of(field).map(|file| quoted(&file.path, 255)).collect();
    if !files.is_empty() {
        lines.fact(2, shown, "files", &files.join(", "));
    }
}

fn enumeration_lines(lines: &mut IndentedLines, description: &Description<'_>) {
    for (number, labels) in description.enumerations.iter().enumerate() {
        if number == 0 {
            lines.line(0, "enumerations:");
        }
        let mut shown: Vec<String> =
            labels.values.iter().take(MAX_LABELS).map(|one| values_text(labels.datatype, one, MOST)).collect();
        if labels.values.len() > shown.len() {
            shown.push(format!("... ({} in all)", labels.values.len()));
        }
        let ordered = if labels.ordered { "ordered " } else { "" };
        let kind = datatype_text(labels.datatype);
        lines.line(1, &format!("{ordered}{kind} {} = {} ;", in_line(&labels.name), shown.join(", ")));
    }
}

fn array_lines(lines: &mut IndentedLines, description: &Description<'_>) {
    let schema = description.schema;
    lines.line(0, "");
    lines.line(0, "// array:");
    let mut fact = |key: &str, value: String| lines.fact(1, "", key, &value);
    fact("format_version", schema.version.to_string());
    fact("tile_order", quoted(layout_name(schema.tile_order), MOST));
    fact("cell_order", quoted(layout_name(schema.cell_order), MOST));
    match &description.cells {
        CellsSummary::Dense { covers, .. } => {
            fact("file_order", quoted("row-major", MOST));
            let covered = match covers {
                CoveredBox::Domain => "the domain",
                CoveredBox::CurrentDomain => "the current domain",
                CoveredBox::NonEmpty => "the non-empty domain",
                CoveredBox::Selection => "the selection",
            };
            fact("files_cover", quoted(covered, MOST));
        }
        CellsSummary::Sparse { rows, non_empty, matrix } => {
            fact("capacity", schema.capacity.to_string());
            fact("allows_duplicates", schema.allows_duplicates.to_string());
            match rows {
                Some(RowCount::Exactly(rows)) => fact("rows", rows.to_string()),
                Some(RowCount::AtMost(most)) => fact("rows_at_most", most.to_string()),
                None => {}
            }
            if let Some([rows, columns]) = matrix {
                fact("matrix", quoted(&format!("{rows} x {columns}"), MOST));
            }
            if let Some(ranges) = non_empty {
                let ranges = ranges.iter().zip(&schema.dimensions);
                let ranges: Vec<String> = ranges.map(|(range, one)| range_text(one.datatype, range)).collect();
                fact("non_empty_domain", quoted(&ranges.join(","), 1000));
            }
        }
    }
    fact("fragments", description.fragments.to_string());
    if let Some(last) = description.last_commit {
        fact("last_commit", quoted(&time::extended(last), MOST));
    }
    if description.window.end < u64::MAX {
        fact("as_of", quoted(&time::extended(description.window.end), MOST));
    }
    if description.window.start > 0 {
        fact("written_since", quoted(&time::extended(description.window.start), MOST));
    }
    let has_variable =
        schema.attributes.iter().any(Attribute::is_variable) || schema.dimensions.iter().any(Dimension::is_variable);
    let has_nullable = schema.attributes.iter().any(|one| one.nullable);
    for (name, filters, counts) in [
        ("offset_filters", &schema.offsets_filters, has_variable),
        ("validity_filters", &schema.validity_filters, has_nullable),
    ] {
        if counts {
            lines.filters(1, "", name, filters);
        }
    }
}

/// Returns the dimensions along which cells of an attribute lie.
fn axes(description: &Description<'_>) -> String {
    match &description.cells {
        CellsSummary::Sparse { .. } => "cells".to_owned(),
        CellsSummary::Dense { .. } => {
            let names: Vec<String> =
                description.schema.dimension_names().take(MOST).map(|name| in_line(&name)).collect();
            let all = description.schema.dimensions.len();
            let more = (all > names.len()).then(|| format!("... ({all} in all)"));
            let names: Vec<String> = names.into_iter().chain(more).collect();
            names.join(", ")
        }
    }
}

/// Returns `days since 1970-01-01`.
fn unit_text(datatype: Datatype) -> Option<String> {
    let unit = datatype.time_unit()?.name();
    Some(if datatype.is_datetime() { format!("{unit} since 1970-01-01") } else { format!("{unit} since midnight") })
}

/// The text under construction.
#[derive(Default)]
struct IndentedLines {
    text: String,
}

impl IndentedLines {
    fn line(&mut self, depth: usize, text: &str) {
        let indented = format!("{}{text}", "        ".repeat(depth));
        self.text.push_str(indented.trim_end());
        self.text.push('\n');
    }

    /// Adds `temp:fill = 1 ;`.
    fn fact(&mut self, depth: usize, of: &str, key: &str, value: &str) {
        self.line(depth, &format!("{of}:{key} = {value} ;"));
    }

    fn filters(&mut self, depth: usize, of: &str, key: &str, pipeline: &Pipeline) {
        if !pipeline.filters.is_empty() {
            self.fact(depth, of, key, &quoted(&pipeline_text(pipeline), 1000));
        }
    }
}

#[cfg(test)]
mod tests {
    use tilefs_format::scalar::Scalar;

    use super::*;
    use crate::texts::testing;

    #[test]
    fn a_dense_array_is_described_in_full() {
        let schema = testing::dense_schema();
        let text = schema_text(&testing::dense(&schema));
        let wanted = r#"dense array climate {  // /data/climate
dimensions:
        y = 100 ;  // int32 -5..94, tiles of 10
        x = 50 ;  // int32 0..49, tiles of 25
variables:
        float32 temp(y, x) ;
                temp:fill = nan ;
                temp:filters = "BYTESHUFFLE, ZSTD(level=7)" ;
                temp:files = "temp.f32", "temp.f32.hdr", "temp.vrt", "npy/temp.npy", "text/temp.txt" ;
        datetime_day (anonymous)(y, x) ;
                :units = "days since 1970-01-01" ;
                :fill = NaT ;
                :files = "data.i64" ;
        string_utf8[] it's(y, x) ;
                it's:nullable = true ;
                it's:fill = null ;
                it's:enumeration = "kinds" ;
                it's:files = "it's.bytes", "it's.offsets.u64", "it's.txt", "it's.valid.u8" ;
        int32 y(y) ;
                y:files = "dims/y.i32" ;
        int32 x(x) ;
                x:files = "dims/x.i32" ;
enumerations:
        string_utf8 kinds = "T cell", "ß" ;

// array:
        :format_version = 22 ;
        :tile_order = "row-major" ;
        :cell_order = "row-major" ;
        :file_order = "row-major" ;
        :files_cover = "the domain" ;
        :fragments = 3 ;
        :last_commit = "2024-01-31T10:13:20.000Z" ;
        :as_of = "2024-01-31T10:15:00.000Z" ;

// metadata:
        :title = "Air \"temperature\"\n" ;
}
"#;
        assert_eq!(text, wanted);
    }

    #[test]
    fn a_sparse_array_is_described_in_full() {
        let schema = testing::sparse_schema();
        let text = schema_text(&testing::sparse(&schema));
        for line in [
            "sparse array points {  // /data/points/",
            "// warning: the attribute c is stored with a filter that is not supported: WEBP",
            "        rows ;  // int32 1..10, tiles of 4",
            "        when ;  // datetime_day 1970-01-01..1970-04-10, days since 1970-01-01, tiles of 7",
            "        name ;  // string_ascii, of any length",
            "        float64 a(cells) ;",
            "        string_ascii[] name(cells) ;",
            "        :non_empty_domain = \"2..9,1970-01-01..1970-04-09,a..z%2C\" ;",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        }
    }

    #[test]
    fn slices_state_their_coordinates() {
        let schema = testing::dense_schema();
        let mut slice = testing::dense(&schema);
        let signed = |value| Some(Scalar::Signed(value));
        let axis = |length, first, last, step| AxisSummary { length, first, last, step };
        slice.selection = Some("slice/0..20..5,3+9".to_owned());
        let axes = vec![axis(5, signed(0), signed(20), Some(5)), axis(2, signed(3), signed(9), None)];
        slice.cells = CellsSummary::Dense { axes, covers: CoveredBox::Selection };
        let text = schema_text(&slice);
        assert!(text.contains("// slice/0..20..5,3+9\n"));
        assert!(text.contains("y = 5 ;  // int32 -5..94, tiles of 10, shown: 0..20..5\n"));
        assert!(text.contains("x = 2 ;  // int32 0..49, tiles of 25, shown: 2 coordinates from 3 to 9\n"));
    }
}
