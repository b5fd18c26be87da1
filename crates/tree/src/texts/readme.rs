//! README.txt: a description of the folder and its uses.

use tilefs_format::datatype::Kind;
use tilefs_format::scalar::Range;
use tilefs_format::schema::{Attribute, CellValNum};
use tilefs_select::range_text;
use tilefs_select::time;
use tilefs_vfs::node::quoting::{heading, in_line};

use super::commands::{IN_NONEMPTY, commands};
use super::description::{CellsSummary, Description};
use crate::cells::axis_summary::AxisSummary;
use crate::cells::dense::CoveredBox;
use crate::views::VIEWS;
use crate::views::commands::called;
use crate::views::facts::ViewFacts;
use crate::views::files::FileFacts;
use crate::views::lines::LINES;
use crate::views::parquet::{PARQUET, PARQUET_MICROSECONDS};
use crate::views::raw::{COORDINATES, OFFSETS, RAW, VALIDITY};
use crate::views::zarr::ZARR_VIEW;
use crate::wording::size::{counted, rows_text};
use crate::wording::value::datatype_text;

/// Maximum number of attributes or dimensions that are named; schema.txt has them all.
const MAX_FIELDS: usize = 40;

/// Returns the text of README.txt.
pub fn readme(description: &Description<'_>) -> String {
    let mut text = title(description);
    text += &fields(description);
    text += &which_file(description);
    text += &what_to_do(description);
    text += &copies(description);
    text += &other_files(description);
    text
}

fn title(description: &Description<'_>) -> String {
    let schema = description.schema;
    let name = in_line(description.name());
    let mut text = match &description.selection {
        Some(selection) => heading(&format!("{name}, {}: part of a TileDB array, as plain files", in_line(selection))),
        None => heading(&format!("{name}: a TileDB array, as plain files")),
    };
    let names: Vec<String> = schema.dimension_names().take(MAX_FIELDS).map(|name| in_line(&name)).collect();
    let names = names.join(", ");
    text += &match &description.cells {
        CellsSummary::Dense { axes, .. } => format!("A dense array of {} cells ({names})", lengths(axes)),
        CellsSummary::Sparse { rows: Some(rows), .. } => format!("A sparse array of {} ({names})", rows_text(*rows)),
        CellsSummary::Sparse { rows: None, .. } => format!("A sparse array ({names})"),
    };
    text += &format!(
        ", {}, {}, format version {}.\n{}\n",
        counted(schema.attributes.len() as u64, "attribute"),
        counted(description.fragments as u64, "fragment"),
        schema.version,
        in_line(&description.path),
    );
    if let Some(last) = description.last_commit {
        text += &format!("Last written {}.\n", time::extended(last));
    }
    if description.window.end < u64::MAX {
        text += &format!("Shown as of {}.\n", time::extended(description.window.end));
    }
    if let CellsSummary::Dense { covers: CoveredBox::NonEmpty, .. } = description.cells {
        text += "The files cover only the box that has been written to.\n";
    }
    if let Some(CellsSummary::Dense { axes, .. }) = description.written.as_deref().map(|written| &written.cells) {
        let end = |axis: &AxisSummary, number: usize| {
            let datatype = schema.dimensions.get(number)?.datatype;
            let (low, high) = (axis.first.clone()?, axis.last.clone()?);
            Some(range_text(datatype, &Range { low, high }))
        };
        let ranges: Vec<String> = axes.iter().enumerate().filter_map(|(number, axis)| end(axis, number)).collect();
        text += &format!(
            "All written cells lie within {} of these, {}: {IN_NONEMPTY} shows only those.\n",
            lengths(axes),
            ranges.join(",")
        );
    }
    if let Some(image) = &description.image {
        text += &format!(
            "The raster is {} lines of {} pixels. The other cells only pad the last tiles; \
             islice/{}/ leaves them out.\n",
            image.lines, image.samples, image.selection
        );
    }
    for warning in &description.warnings {
        text += &format!("WARNING: {}\n", in_line(warning));
    }
    if !description.warnings.is_empty() {
        text += "tilefs explain ARRAY FILE --row N says which fragment, tile and bytes a value of a file comes from.\n";
    }
    text + "\n"
}

/// Returns `100 x 200`.
fn lengths(axes: &[AxisSummary]) -> String {
    axes.iter().map(|axis| axis.length.to_string()).collect::<Vec<_>>().join(" x ")
}

fn fields(description: &Description<'_>) -> String {
    let schema = description.schema;
    let mut rows = Vec::new();
    for (dimension, name) in schema.dimensions.iter().zip(schema.dimension_names()).take(MAX_FIELDS) {
        let domain = match &dimension.domain {
            Some(domain) => range_text(dimension.datatype, domain),
            None => "any text".to_owned(),
        };
        let paths = paths(description, &name);
        rows.push([in_line(&name), datatype_text(dimension.datatype), domain, paths]);
    }
    for attribute in schema.attributes.iter().take(MAX_FIELDS) {
        let values = match attribute.cell_count {
            CellValNum::Fixed(1) => String::new(),
            CellValNum::Fixed(count) => format!("{count} per cell"),
            CellValNum::Variable => "any number per cell".to_owned(),
        };
        let values = match (attribute.nullable, values.is_empty()) {
            (true, true) => "nullable".to_owned(),
            (true, false) => format!("{values}, nullable"),
            (false, _) => values,
        };
        let name = if attribute.name.is_empty() { "(anonymous)".to_owned() } else { called(attribute) };
        rows.push([name, datatype_text(attribute.datatype), values, paths(description, &attribute.name)]);
    }
    let mut text = table(&rows);
    let left = schema.dimensions.len().saturating_sub(MAX_FIELDS) + schema.attributes.len().saturating_sub(MAX_FIELDS);
    if left > 0 {
        text += &format!("and {left} more: see schema.txt\n");
    }
    text += "\nNumbers are little-endian, ";
    text += match description.cells {
        CellsSummary::Dense { .. } => "cells in row-major order: the last dimension varies fastest.\n",
        CellsSummary::Sparse { .. } => "one row per cell; all files have their rows in the same order.\n",
    };
    let is_time = |one: &Attribute| one.datatype.time_unit().is_some();
    if schema.attributes.iter().any(is_time) || schema.dimensions.iter().any(|one| one.datatype.time_unit().is_some()) {
        text += "Dates and times are counts of the unit in their type, dates since 1970-01-01 (UTC).\n";
    }
    if schema.attributes.iter().any(|one| one.nullable) {
        text += "Where NAME.valid.u8 has a 0 the value is null.\n";
    }
    let is_text = |one: &Attribute| one.is_variable() && one.datatype.kind() == Kind::Bytes;
    if schema.attributes.iter().any(is_text) {
        text += "In NAME.txt a line break inside a value is a space; NAME.bytes with NAME.offsets.u64 is exact.\n";
    }
    text
}

/// Returns the raw files and coordinate files of a field.
fn paths(description: &Description<'_>, field: &str) -> String {
    let basic: [&ViewFacts; 5] = [&RAW.facts, &COORDINATES.facts, &OFFSETS.facts, &LINES.facts, &VALIDITY.facts];
    let files = description.files_of(field).filter(|file| file.is_listed() && basic.contains(&file.view));
    files.map(|file| in_line(&file.path)).collect::<Vec<_>>().join("  ")
}

/// Formats columns of equal width, two spaces apart.
fn table(rows: &[[String; 4]]) -> String {
    let mut widths = [0; 4];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            // Limit the width, so that one long name does not widen the table.
            *width = cell.chars().count().min(40).max(*width);
        }
    }
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        text += format!("    {}", cells.collect::<Vec<_>>().join("  ")).trim_end();
        text.push('\n');
    }
    text
}

/// Returns the best existing file for each job.
fn which_file(description: &Description<'_>) -> String {
    let (shown, folder) = match &description.written {
        Some(written) => (&**written, IN_NONEMPTY),
        None => (description, ""),
    };
    let mut jobs: Vec<_> = VIEWS.iter().filter_map(|view| Some((view.facts.job?, &view.facts))).collect();
    jobs.sort_by_key(|(job, _)| job.place);
    let mut text = String::new();
    for (job, view) in jobs {
        let files = || shown.files.iter().filter(|file| file.view == view);
        // Prefer values to a mask of nulls.
        let values = files().find(|file| !file.path.ends_with(".valid.npy"));
        let Some(first) = values.or_else(|| files().next()) else { continue };
        // With dates that Spark does not support.
        let has_nanoseconds = || shown.files.iter().any(|file| file.view == &PARQUET_MICROSECONDS.facts);
        let job = if view == &PARQUET.facts && has_nanoseconds() {
            "Tables and queries: DuckDB, Polars, pandas"
        } else if view == &ZARR_VIEW.facts && description.annotated.is_some() {
            "Annotated data: anndata, scanpy"
        } else {
            job.task
        };
        let path = in_line(opened(&first.path));
        let others = if files().nth(1).is_some() { "  ..." } else { "" };
        text += &format!("    {job:<48}  {folder}{path}{others}\n");
    }
    if text.is_empty() {
        return text;
    }
    format!("\nWhich file for what\n-------------------\n{text}")
}

/// Returns the path that a program needs to open a file: for some files, their folder.
fn opened(path: &str) -> &str {
    path.strip_suffix("/zarr.json").or(path.strip_suffix("/.zgroup")).unwrap_or(path)
}

fn what_to_do(description: &Description<'_>) -> String {
    let mut text = String::from("\nWhat you can do here\n--------------------\n");
    for one in commands(description) {
        text += &format!("{}:\n    {}\n", one.purpose, one.command);
    }
    if description.has_slices && description.selection.is_none() {
        text += "slice/ takes coordinates, with both ends of a range; islice/ takes positions, as NumPy does.\n\
                 tilefs man paths has all forms, and tilefs info ARRAY --slice SELECTION explains one.\n";
    }
    text
}

fn copies(description: &Description<'_>) -> String {
    if description.written.is_some() {
        return format!(
            "\nBefore copying\n--------------\n\
             cp -r, find -exec and grep -r on this folder read all cells, written or not. For one copy of what was written:\n\
             \x20   cp -r {IN_NONEMPTY}*.* {IN_NONEMPTY}dims DESTINATION\n"
        );
    }
    let listed = || description.files.iter().filter(|file| file.is_listed());
    let holds = |file: &&FileFacts| file.is_listed() && file.view.holds_values;
    // A netCDF file or a table holds all attributes, a raw file one.
    let of_all: Vec<&FileFacts> = description.files.iter().filter(|file| file.field.is_none()).filter(holds).collect();
    let count = |one: &Attribute| description.files_of(&one.name).filter(holds).count() + of_all.len();
    let most = description.schema.attributes.iter().map(|one| (count(one), one)).max_by_key(|(count, _)| *count);
    let Some((_, attribute)) = most.filter(|(count, _)| *count > 1) else { return String::new() };
    let files: Vec<&FileFacts> = description.files_of(&attribute.name).filter(holds).chain(of_all).collect();
    let mut text = String::from("\nBefore copying\n--------------\n");
    let paths: Vec<String> = files.iter().map(|file| in_line(&file.path)).collect();
    text += &format!(
        "cp -r, find -exec and grep -r on this folder read the values of {} {} times:\n    {}\n",
        called(attribute),
        files.len(),
        paths.join("  ")
    );
    let beside = |file: &FileFacts| !file.path.contains('/') || file.path.starts_with("dims/");
    let sum = |fits: &dyn Fn(&FileFacts) -> bool| {
        listed().filter(|file| fits(file)).try_fold(0u64, |sum, file| sum.checked_add(file.bytes?))
    };
    match (sum(&|_| true), sum(&beside)) {
        (Some(all), Some(once)) => {
            text += &format!("That is {} in all. One copy of every value is {}:\n", size(all), size(once));
        }
        _ => text += "For one copy:\n",
    }
    // Files have extensions, and folders have none.
    text += "    cp -r ./*.* dims DESTINATION\n";
    match (description.has_slices, description.has_history) {
        (_, true) => text += "slice/, islice/ and .history/ are not walked into.\n",
        (true, false) => text += "slice/ and islice/ are not walked into.\n",
        (false, false) => {}
    }
    text
}

fn other_files(description: &Description<'_>) -> String {
    let mut text = String::new();
    if !description.not_listed.is_empty() {
        text += "\nNot here\n--------\n";
        for (path, reason) in description.not_listed.iter().take(MAX_FIELDS) {
            text += &format!("{}: {}\n", in_line(path), in_line(reason));
        }
    }
    text
}

/// Returns `80 bytes`, `20 kB`, `1.5 GB`.
fn size(bytes: u64) -> String {
    let mut number = bytes as f64;
    for unit in ["bytes", "kB", "MB", "GB", "TB", "PB"] {
        if number < 1000.0 {
            let digits = usize::from(number < 10.0 && unit != "bytes");
            return format!("{number:.digits$} {unit}");
        }
        number /= 1000.0;
    }
    format!("{number:.0} EB")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tilefs_reader::array::sparse::RowCount;

    use super::*;
    use crate::fields::rasters::ImagePart;
    use crate::texts::testing;
    use crate::views::files::Files;
    use crate::views::{arrow, described, grid, matrix_market, parquet};
    use tilefs_vfs::node::listing::Listing;

    #[test]
    fn a_dense_array_is_described_in_full() {
        let schema = testing::dense_schema();
        let text = readme(&testing::dense(&schema));
        let wanted = r#"climate: a TileDB array, as plain files
=======================================

A dense array of 100 x 50 cells (y, x), 3 attributes, 3 fragments, format version 22.
/data/climate
Last written 2024-01-31T10:13:20.000Z.
Shown as of 2024-01-31T10:15:00.000Z.

    y            int32         -5..94                         dims/y.i32
    x            int32         0..49                          dims/x.i32
    temp         float32                                      temp.f32
    (anonymous)  datetime_day                                 data.i64
    it's         string_utf8   any number per cell, nullable  it's.bytes  it's.offsets.u64  it's.txt  it's.valid.u8

Numbers are little-endian, cells in row-major order: the last dimension varies fastest.
Dates and times are counts of the unit in their type, dates since 1970-01-01 (UTC).
Where NAME.valid.u8 has a 0 the value is null.
In NAME.txt a line break inside a value is a space; NAME.bytes with NAME.offsets.u64 is exact.

Which file for what
-------------------
    Arrays in memory: NumPy                           npy/temp.npy
    Everything in one file: xarray, NCO, ncview       netcdf/array.nc
    Rasters: GDAL, QGIS                               temp.vrt

What you can do here
--------------------
Shape, types and filters:
    cat schema.txt
The first ten values of temp:
    od -An -tf4 -N40 temp.f32
One cell, by its coordinates:
    od -An -tf4 slice/-5,0/temp.f32
The first values of it's, one per line:
    head -3 'it'\''s.txt'
The first rows of temp as text:
    head -3 text/temp.txt
The mean of temp:
    awk '{for (i = 1; i <= NF; i++) if ($i ~ /inf/) f[$i]; else if ($i !~ /N/) {n++; s += $i}} END {for (k in f) m = m k; if (m ~ /f./) print "nan"; else if (m) print m; else if (n) printf "%.10g\n", s / n}' text/temp.txt
temp in NumPy, without a copy:
    python3 -c 'import numpy; print(numpy.load("npy/temp.npy", mmap_mode="r"))'
temp in R:
    Rscript -e 'readBin("temp.f32", "numeric", n=10, size=4, endian="little")'
temp as a raster in GDAL and QGIS:
    gdalinfo temp.vrt
All of it as netCDF, for ncdump, ncview, xarray, NCO:
    ncdump -h netcdf/array.nc
A part of it: a folder like this one:
    ls slice/-5..4,0..9
The array as it was: a folder for each commit:
    ls .history
slice/ takes coordinates, with both ends of a range; islice/ takes positions, as NumPy does.
tilefs man paths has all forms, and tilefs info ARRAY --slice SELECTION explains one.

Before copying
--------------
cp -r, find -exec and grep -r on this folder read the values of temp 4 times:
    temp.f32  npy/temp.npy  text/temp.txt  netcdf/array.nc
For one copy:
    cp -r ./*.* dims DESTINATION
slice/, islice/ and .history/ are not walked into.

Not here
--------
data.i64.hdr: ENVI has no dates
"#;
        assert_eq!(text, wanted);
    }

    #[test]
    fn a_sparse_array_is_described_in_full() {
        let schema = testing::sparse_schema();
        let text = readme(&testing::sparse(&schema));
        for line in [
            "points: a TileDB array, as plain files",
            "A sparse array (rows, when, name), 2 attributes, 1 fragment, format version 22.",
            "WARNING: the attribute c is stored with a filter that is not supported: WEBP",
            "    head -3 text/cells.tsv",
            "    ls slice/2..9",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        }
        assert!(!text.contains("slice/1"), "{text}");
    }

    #[test]
    fn rows_and_the_best_files_are_named() {
        let mut schema = testing::sparse_schema();
        schema.attributes[0].enumeration = Some("kinds".to_owned());
        let mut description = testing::sparse(&schema);
        description.cells = CellsSummary::Sparse { rows: Some(RowCount::Exactly(1234)), non_empty: None, matrix: None };
        let unlisted = |path: &str, view: &'static ViewFacts, field: Option<&str>| FileFacts {
            path: path.to_owned(),
            view,
            field: field.map(Into::into),
            bytes: None,
            listing: Listing::Never,
            listing_of_folder: Listing::Always,
        };
        let more = [
            unlisted("arrow/cells.arrow", &arrow::ARROW.facts, None),
            unlisted("parquet/cells.parquet", &parquet::PARQUET.facts, None),
            unlisted("text/a.mtx", &matrix_market::MATRIX_MARKET.facts, Some("a")),
            unlisted("text/a.txt", &grid::GRID.facts, Some("a")),
            unlisted("enums/kinds.txt", &described::LABELS.facts, None),
        ];
        description.files = Arc::new(Files::new(description.files.iter().cloned().chain(more).collect()));
        let text = readme(&description);
        assert!(text.contains("A sparse array of 1234 rows (rows, when, name)"), "{text}");
        let which = text.split("Which file for what").nth(1).unwrap();
        for path in ["arrow/cells.arrow", "parquet/cells.parquet", "text/cells.tsv", "text/a.mtx", "enums/kinds.txt"] {
            let (list, commands) = which.split_once("What you can do here").unwrap();
            assert!(list.contains(path) && commands.contains(path), "{path}\n{text}");
        }
        assert!(!text.contains("mean"), "{text}");
    }

    #[test]
    fn enormous_domains_offer_only_written_cells() {
        let schema = testing::dense_schema();
        let mut description = testing::dense(&schema);
        let written = Description { has_history: false, ..testing::dense(&schema) };
        description.written = Some(Box::new(written));
        if let CellsSummary::Dense { axes, .. } = &mut description.cells {
            axes[0].length = 1 << 40;
        }
        let text = readme(&description);
        assert!(
            text.contains("All written cells lie within 100 x 50 of these, -5..94,0..49: nonempty/ shows"),
            "{text}"
        );
        let commands = text.split("What you can do here\n").nth(1).unwrap();
        let commands: Vec<&str> = commands.lines().filter(|line| line.starts_with("    ")).collect();
        assert!(commands.len() > 8, "{text}");
        assert!(commands.iter().all(|line| line.contains("nonempty/")), "{text}");
    }

    #[test]
    fn commands_for_a_padded_raster_read_the_raster_alone() {
        let schema = testing::dense_schema();
        let mut description = testing::dense(&schema);
        description.image = Some(ImagePart { lines: 90, samples: 40, selection: "0:90,0:40".to_owned() });
        let text = readme(&description);
        assert!(text.contains("The raster is 90 lines of 40 pixels."), "{text}");
        let commands = text.split("What you can do here\n").nth(1).unwrap();
        for values in
            ["-N40 islice/0:90,0:40/temp.f32", "islice/0:90,0:40/text/temp.txt", "islice/0:90,0:40/npy/temp.npy"]
        {
            assert!(commands.contains(values), "{values}\n{text}");
        }
        // These omit the padding themselves, or show one cell.
        for elsewhere in ["    gdalinfo temp.vrt\n", " slice/-5,0/temp.f32\n", "    cat schema.txt\n"] {
            assert!(commands.contains(elsewhere), "{elsewhere}\n{text}");
        }
    }

    #[test]
    fn sizes_are_added_where_they_are_known() {
        let schema = testing::dense_schema();
        let mut description = testing::dense(&schema);
        let known = description.files.iter().filter(|file| file.bytes.is_some()).cloned();
        description.files = Arc::new(Files::new(known.collect()));
        let text = readme(&description);
        assert!(text.contains("That is 267 kB in all. One copy of every value is 106 kB:\n"), "{text}");
        assert_eq!([0, 999, 1500, 20_000].map(size), ["0 bytes", "999 bytes", "1.5 kB", "20 kB"]);
        assert_eq!(size(u64::MAX), "18 EB");
    }

    #[test]
    fn an_array_of_hostile_names_has_a_readme_of_few_lines() {
        let mut schema = testing::dense_schema();
        schema.attributes[0].name = "a\nb\u{1b}[31m".repeat(50);
        for number in 0..1000 {
            let attribute = tilefs_format::schema::fixture::attribute(
                &number.to_string(),
                tilefs_format::datatype::Datatype::Int8,
                CellValNum::Fixed(1),
            );
            schema.attributes.push(attribute);
        }
        let text = readme(&testing::dense(&schema));
        assert!(text.lines().count() < 100);
        assert!(!text.contains('\u{1b}'));
    }
}
