//! The parsers of texts in metadata and requests.

use serde_json::Value;
use tilefs_base::json;
use tilefs_export::Metadatum;
use tilefs_export::geo::pam::Pam;
use tilefs_export::geo::wkt::CoordinateSystem;
use tilefs_export::geo::{projjson, projjson_of_wkt};
use tilefs_export::pyramid::Pyramid;
use tilefs_export::tables::pandas::PandasFrame;
use tilefs_threads::cancellation;

use super::steps::grow_with_the_input;

/// Returns texts for all numbers below `count`.
fn each(count: usize, text: impl Fn(usize) -> String) -> String {
    (0..count).map(text).collect()
}

/// A form of XML, made of so many parts.
type Form = (&'static str, usize, fn(usize) -> String);

/// Forms of elements; the number is a size that the limits allow four times.
const ELEMENTS: [Form; 12] = [
    ("nested namespaces", 60, |n| each(n, |i| format!("<a xmlns:p{i}=\"u{i}\">")) + &"</a>".repeat(n)),
    ("nested default namespaces", 60, |n| each(n, |i| format!("<a xmlns=\"u{i}\">")) + &"</a>".repeat(n)),
    ("too deep", 10_000, |n| each(n, |i| format!("<a xmlns:p{i}=\"u{i}\">")) + &"</a>".repeat(n)),
    ("wide", 1000, |n| "<a/>".repeat(n)),
    ("wide namespaces", 1000, |n| each(n, |i| format!("<a xmlns:p{i}=\"u\"/>"))),
    ("attributes", 60, |n| format!("<a {}/>", each(n, |i| format!("b{i}='c' ")))),
    ("many attributes", 20, |n| format!("<a {}/>", each(8, |i| format!("b{i}='c' "))).repeat(n)),
    ("too many attributes", 10_000, |n| format!("<a {}/>", each(n, |i| format!("b{i}='c' ")))),
    ("text", 10_000, |n| format!("<a>{}</a>", "x&amp;".repeat(n))),
    ("prefixes", 1000, |n| each(n, |i| format!("<p{i}:a/>"))),
    ("comments", 1000, |n| "<!-- -->".repeat(n)),
    ("no end", 10_000, |n| "<a>".repeat(n)),
];

/// Forms of what GDAL writes.
const OF_GDAL: [Form; 9] = [
    ("items", 1000, |n| format!("<Metadata>{}</Metadata>", each(n, |i| format!("<MDI key='k{i}'>v</MDI>")))),
    ("domains", 1000, |n| each(n, |i| format!("<Metadata domain='d{i}'><MDI key='k'>v</MDI></Metadata>"))),
    ("documents", 1000, |n| each(n, |i| format!("<Metadata domain='d{i}' format='xml'><a><b/></a></Metadata>"))),
    ("bands", 1000, |n| each(n, |i| format!("<PAMRasterBand band='{}'><Scale>2</Scale></PAMRasterBand>", i + 1))),
    ("last bands", 500, |n| {
        let last = "<PAMDataset><PAMRasterBand band='65536'/></PAMDataset>";
        each(n, |i| format!("<Subdataset name='a{i}'>{last}</Subdataset>"))
    }),
    ("subdatasets in each other", 40, |n| {
        "<Subdataset name='a'><PAMDataset>".repeat(n) + &"</PAMDataset></Subdataset>".repeat(n)
    }),
    ("points", 1000, |n| format!("<GCPList>{}</GCPList>", "<GCP Pixel='1' Line='2' X='3' Y='4'/>".repeat(n))),
    ("colours", 1000, |n| {
        format!("<PAMRasterBand><ColorTable>{}</ColorTable></PAMRasterBand>", "<Entry c1='1'/>".repeat(n))
    }),
    ("a table", 1000, |n| {
        let rows = "<Row><F>1</F></Row>".repeat(n);
        format!("<PAMRasterBand><GDALRasterAttributeTable>{rows}</GDALRasterAttributeTable></PAMRasterBand>")
    }),
];

#[test]
fn descriptions_of_rasters() {
    for (name, size, make) in ELEMENTS.into_iter().chain(OF_GDAL) {
        let document = |size| format!("<PAMDataset>{}</PAMDataset>", make(size));
        grow_with_the_input(name, size, document, |text| drop(Pam::parse(&text)));
    }
}

#[test]
fn descriptions_of_images() {
    for (name, size, make) in ELEMENTS {
        let metadata = |size| {
            let original = format!("<OME>{}<Pixels PhysicalSizeX='2'/></OME>", make(size));
            let levels = serde_json::json!([{"level": 0, "name": "l", "axes": "YX", "shape": [4, 4]}]);
            [
                Metadatum::text("dataset_type", "BIOIMG".to_owned()),
                Metadatum::text("levels", levels.to_string()),
                Metadatum::text("original_metadata", serde_json::json!({"ome_metadata": original}).to_string()),
            ]
        };
        grow_with_the_input(name, size, metadata, |metadata| drop(Pyramid::of(&metadata)));
    }
    let levels = |size| {
        let level = |i| serde_json::json!({"level": i, "name": format!("l{i}"), "axes": "YX", "shape": [4, 4]});
        let levels: Vec<Value> = (0..size).map(level).collect();
        [
            Metadatum::text("dataset_type", "BIOIMG".to_owned()),
            Metadatum::text("levels", Value::from(levels).to_string()),
        ]
    };
    grow_with_the_input("levels", 500, levels, |metadata| drop(Pyramid::of(&metadata)));
}

/// Forms of JSON.
const VALUES: [Form; 7] = [
    ("a list", 1000, |n| format!("[0{}]", ",0".repeat(n))),
    ("an object", 1000, |n| format!("{{\"a\":0{}}}", each(n, |i| format!(",\"k{i}\":0")))),
    ("the same key", 1000, |n| format!("{{\"a\":0{}}}", ",\"a\":0".repeat(n))),
    ("nested", 30, |n| "[".repeat(n) + &"]".repeat(n)),
    ("too deep", 10_000, |n| "[".repeat(n)),
    ("too many", 100_000, |n| format!("[0{}]", ",0".repeat(n))),
    ("text", 10_000, |n| format!("\"{}\"", "\\u0041".repeat(n))),
];

#[test]
fn values() {
    for (name, size, make) in VALUES {
        // Beyond the limit, the work is less.
        grow_with_the_input(name, size, make, |text| drop(json::parse::<Value>(&text, cancellation::check)));
    }
    let types = |size| [Metadatum::text("__pandas_attribute_repr", format!("{{{}}}", types_of(size)))];
    grow_with_the_input("types", 500, types, |metadata| drop(PandasFrame::of(&metadata, true)));
}

fn types_of(columns: usize) -> String {
    (0..columns).map(|i| format!("\"a{i}\":\"int64\"")).collect::<Vec<_>>().join(",")
}

#[test]
fn coordinate_systems() {
    const FORMS: [Form; 5] = [
        ("nested", 20, |n| "COMPD_CS[\"a\",".repeat(n) + "GEOGCS[\"b\"]" + &"]".repeat(n)),
        ("too deep", 10_000, |n| "PROJCS[".repeat(n)),
        ("values", 1000, |n| format!("GEOGCS[\"a\"{}]", ",1".repeat(n))),
        ("elements", 1000, |n| format!("PROJCS[\"a\"{}]", ",PARAMETER[\"b\",1]".repeat(n))),
        ("text", 10_000, |n| format!("GEOGCS[\"{}\"]", "x".repeat(n))),
    ];
    for (name, size, make) in FORMS {
        let uses = |text: String| {
            let system = CoordinateSystem::parse(&text);
            let read =
                system.map(|system| (system.unit().is_some(), system.datum().is_some(), system.name().is_some()));
            assert!(read.is_none_or(|(_, _, is_named)| is_named));
        };
        grow_with_the_input(name, size, make, uses);
    }
    // Each axis and each parameter of the result has a copy of its unit.
    const CONVERTED: [Form; 5] = [
        ("parameters", 8, |n| projected(n, "US survey foot")),
        ("a long unit", 60, |n| projected(30, &"x".repeat(n))),
        ("a unit that is too long", 300, |n| projected(30, &"x".repeat(n))),
        ("parameters and a long unit", 100, |n| projected(n, &"x".repeat(n))),
        ("parts", 200, |n| format!("COMPD_CS[\"a\"{}]", each(n, |_| format!(",{}", projected(1, "foot"))))),
    ];
    for (name, size, make) in FORMS.into_iter().chain(CONVERTED) {
        grow_with_the_input(name, size, make, |text| drop(projjson_of_wkt::projjson(&text)));
    }
    assert!(projjson_of_wkt::projjson(&projected(30, "foot")).is_some());
    const OF_PROJ: [Form; 3] = [
        ("bound", 25, |n| "{\"type\":\"BoundCRS\",\"name\":\"a\",\"source_crs\":".repeat(n) + "{}" + &"}".repeat(n)),
        ("members", 500, |n| system(&format!("\"members\":[{}]", list(n, "{\"name\":\"m\"}")))),
        ("unknown", 500, |n| system(&format!("\"members\":[],\"x\":[{}]", list(n, "{\"name\":\"m\"}")))),
    ];
    for (name, size, make) in OF_PROJ {
        grow_with_the_input(name, size, make, |text| drop(projjson::well_known_text(&text)));
    }
}

/// Returns a projected system of the first version with so many parameters in a unit.
fn projected(parameters: usize, unit: &str) -> String {
    format!(
        "PROJCS[\"a\",GEOGCS[\"b\",DATUM[\"c\",SPHEROID[\"d\",1,2]],UNIT[\"degree\",0.0174532925199433]],\
         PROJECTION[\"Mercator_1SP\"]{},UNIT[\"{unit}\",0.3]]",
        ",PARAMETER[\"false_easting\",1]".repeat(parameters)
    )
}

fn list(count: usize, value: &str) -> String {
    vec![value; count].join(",")
}

/// Returns a geographic system with something in its ensemble.
fn system(within: &str) -> String {
    format!(
        "{{\"type\":\"GeographicCRS\",\"name\":\"a\",\"datum_ensemble\":{{\"name\":\"b\",\"accuracy\":\"2\",{within}}},\
         \"coordinate_system\":{{\"subtype\":\"ellipsoidal\",\"axis\":[]}}}}"
    )
}
