//! Descriptions for the tests of the texts.

use std::sync::Arc;

use tilefs_export::{Labels, Metadatum};
use tilefs_format::datatype::Datatype;
use tilefs_format::pipeline::{Filter, Pipeline};
use tilefs_format::scalar::{Range, Scalar};
use tilefs_format::schema::{ArraySchema, CellValNum, fixture};
use tilefs_reader::array::TimeWindow;
use tilefs_vfs::node::listing::Listing;

use super::description::*;
use crate::cells::axis_summary::AxisSummary;
use crate::cells::dense::CoveredBox;
use crate::views::facts::ViewFacts;
use crate::views::files::{FileFacts, Files};
use crate::views::{datasets, grid, headers, lines, npy, raw, text_tables};

/// `y` from -5 to 94 by 10 and `x` from 0 to 49 by 25; `temp`, the anonymous attribute of dates, the nullable text
/// `it's`.
pub fn dense_schema() -> ArraySchema {
    let mut schema = ArraySchema {
        dimensions: vec![fixture::dimension("y", -5, 94, 10), fixture::dimension("x", 0, 49, 25)],
        attributes: vec![
            fixture::attribute("temp", Datatype::Float32, CellValNum::Fixed(1)),
            fixture::attribute("", Datatype::DateTimeDay, CellValNum::Fixed(1)),
            fixture::attribute("it's", Datatype::StringUtf8, CellValNum::Variable),
        ],
        ..fixture::dense()
    };
    schema.attributes[0].filters =
        Pipeline { max_chunk_size: 65536, filters: vec![Filter::Byteshuffle, Filter::Zstd { level: 7 }] };
    schema.attributes[2].nullable = true;
    schema.attributes[2].enumeration = Some("kinds".to_owned());
    schema.enumerations = vec![("kinds".to_owned(), "file".to_owned())];
    schema
}

fn file(path: &str, view: &'static ViewFacts, field: Option<&str>, bytes: Option<u64>) -> FileFacts {
    FileFacts {
        path: path.to_owned(),
        view,
        field: field.map(Into::into),
        bytes,
        listing: Listing::Always,
        listing_of_folder: Listing::Always,
    }
}

fn files<const COUNT: usize>(files: [FileFacts; COUNT]) -> Arc<Files> {
    Arc::new(Files::new(files.into()))
}

/// All of [`dense_schema`], 100 by 50 cells.
pub fn dense(schema: &ArraySchema) -> Description<'_> {
    let axis = |low: i64, length: u64| AxisSummary {
        length,
        first: Some(Scalar::Signed(low)),
        last: Some(Scalar::Signed(low + length as i64 - 1)),
        step: Some(1),
    };
    let labels = Labels {
        name: "kinds".to_owned(),
        datatype: Datatype::StringUtf8,
        ordered: false,
        values: vec![b"T cell".to_vec(), "ß".into()],
    };
    Description {
        path: "/data/climate".to_owned(),
        schema,
        cells: CellsSummary::Dense { axes: vec![axis(-5, 100), axis(0, 50)], covers: CoveredBox::Domain },
        image: None,
        written: None,
        selection: None,
        annotated: None,
        window: TimeWindow::until(1_706_696_100_000),
        last_commit: Some(1_706_696_000_000),
        fragments: 3,
        files: files([
            file("temp.f32", &raw::RAW.facts, Some("temp"), Some(20_000)),
            file("temp.f32.hdr", &headers::ENVI.facts, Some("temp"), Some(300)),
            FileFacts { listing: Listing::Never, ..file("temp.vrt", &headers::VRT.facts, Some("temp"), Some(600)) },
            file("data.i64", &raw::RAW.facts, Some(""), Some(40_000)),
            file("it's.bytes", &raw::RAW.facts, Some("it's"), None),
            file("it's.offsets.u64", &raw::OFFSETS.facts, Some("it's"), Some(40_008)),
            file("it's.txt", &lines::LINES.facts, Some("it's"), None),
            file("it's.valid.u8", &raw::VALIDITY.facts, Some("it's"), Some(5000)),
            file("dims/y.i32", &raw::COORDINATES.facts, Some("y"), Some(400)),
            file("dims/x.i32", &raw::COORDINATES.facts, Some("x"), Some(200)),
            file("npy/temp.npy", &npy::NPY.facts, Some("temp"), Some(20_128)),
            file("text/temp.txt", &grid::GRID.facts, Some("temp"), Some(80_000)),
            file("netcdf/array.nc", &datasets::NETCDF.facts, None, Some(60_500)),
        ]),
        not_listed: Arc::new(vec![("data.i64.hdr".to_owned(), "ENVI has no dates".to_owned())]),
        enumerations: vec![Arc::new(labels)],
        metadata: vec![Metadatum::text("title", "Air \"temperature\"\n")],
        warnings: Vec::new(),
        has_slices: true,
        has_history: true,
        is_long_table: false,
    }
}

/// A point cloud with dates.
pub fn sparse_schema() -> ArraySchema {
    let mut schema = fixture::sparse();
    schema.dimensions[1].name = "when".to_owned();
    schema.dimensions[1].datatype = Datatype::DateTimeDay;
    schema.dimensions.push(fixture::string_dimension("name"));
    schema
}

/// All of [`sparse_schema`]; its rows have not been counted.
pub fn sparse(schema: &ArraySchema) -> Description<'_> {
    let range = |low, high| Range { low: Scalar::Signed(low), high: Scalar::Signed(high) };
    let text = |text: &str| Scalar::Text(text.into());
    Description {
        path: "/data/points/".to_owned(),
        schema,
        cells: CellsSummary::Sparse {
            rows: None,
            non_empty: Some(vec![range(2, 9), range(0, 98), Range { low: text("a"), high: text("z,") }]),
            matrix: None,
        },
        image: None,
        written: None,
        selection: None,
        annotated: None,
        window: TimeWindow::ALL,
        last_commit: None,
        fragments: 1,
        files: files([
            file("a.f64", &raw::RAW.facts, Some("a"), None),
            file("b.bytes", &raw::RAW.facts, Some("b"), None),
            file("b.txt", &lines::LINES.facts, Some("b"), None),
            file("dims/rows.i32", &raw::COORDINATES.facts, Some("rows"), None),
            file("text/cells.tsv", &text_tables::TSV.facts, None, None),
        ]),
        not_listed: Arc::default(),
        enumerations: Vec::new(),
        metadata: Vec::new(),
        warnings: vec!["the attribute c is stored with a filter that is not supported: WEBP".to_owned()],
        has_slices: true,
        has_history: false,
        is_long_table: false,
    }
}
