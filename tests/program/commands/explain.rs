//! `tilefs explain`: the JSON has the facts of the text, for cells, bytes, groups and derived files. Whether they are right is
//! tested in `tests/tree/origins.rs`.

use std::fs;

use serde_json::Value;
use tilefs_fixtures::fixtures;

use super::{printed, tilefs};

fn demo() -> String {
    fixtures().join("demo").display().to_string()
}

fn text(arguments: &[&str]) -> String {
    String::from_utf8(printed(arguments)).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_slice(&printed(&[arguments, &["--json"]].concat())).unwrap()
}

#[test]
fn a_byte_a_cell_and_a_slice_have_the_same_origin() {
    let (demo, cell) = (demo(), 42 * 200 + 17);
    let sliced = json(&["explain", &demo, "slice/42,17/temp.f32"]);
    let of = |more: &[&str]| json(&[&["explain", demo.as_str()], more].concat())["fields"].clone();
    assert_eq!(sliced["fields"][0]["value"], f64::from(15.97f32));
    assert_eq!(sliced["fields"][0]["coordinates"], serde_json::json!({ "y": 42, "x": 17 }));
    assert_eq!(of(&["temp.f32", "--byte", &(4 * cell + 3).to_string()]), sliced["fields"]);
    assert_eq!(of(&["temp.f32", "--row", &cell.to_string()]), sliced["fields"]);
    assert_eq!(of(&["npy/temp.npy", "--byte", &(128 + 4 * cell).to_string()]), sliced["fields"]);
    let column_major = 17 * 100 + 42;
    assert_eq!(of(&["F/temp.f32", "--byte", &(4 * column_major).to_string()]), sliced["fields"]);
    let stored = &sliced["fields"][0]["stored"][0];
    let (offset, length) = (&stored["fetched"][0]["offset"], &stored["fetched"][0]["length"]);
    let file = fs::metadata(stored["file"].as_str().unwrap()).unwrap();
    assert!(offset.as_u64().unwrap() + length.as_u64().unwrap() <= file.len());
    let text = text(&["explain", &demo, "slice/42,17/temp.f32"]);
    let fragment = sliced["fields"][0]["from"]["fragment"].as_str().unwrap();
    for fact in ["temp = 15.97", "at y=42, x=17", fragment, &format!("fetched: {length} bytes at {offset}"), "ZSTD"] {
        assert!(text.contains(fact), "{fact}: {text}");
    }
}

#[test]
fn values_of_no_cell_say_so_and_name_the_fragments() {
    let demo = demo();
    for (path, byte, note) in [
        ("npy/temp.npy", "5", "byte 5 is in the header of 128 bytes"),
        ("netcdf/array.nc", "5", "made from several cells or from none"),
    ] {
        let explained = json(&["explain", &demo, path, "--byte", byte]);
        assert!(explained["notes"][0].as_str().unwrap().contains(note), "{explained}");
        assert_eq!((explained["fragments"].as_array().unwrap().len(), &explained["cell"]), (2, &Value::Null));
    }
    let computed = json(&["explain", &demo, "dims/x.i64", "--row", "3"]);
    assert_eq!((&computed["fields"][0]["source"], &computed["fields"][0]["value"]), (&"computed".into(), &3.into()));
    let huge = fixtures().join("huge").display().to_string();
    let fill = json(&["explain", &huge, "slice/0,0/v.i32"]);
    assert_eq!((&fill["fields"][0]["source"], &fill["fields"][0]["value"]), (&"fill".into(), &(-1).into()));
    let long = fixtures().join("long").display().to_string();
    let table = json(&["explain", &long, "slice/0..9/text/cells.tsv", "--row", "7"]);
    let fields: Vec<_> =
        table["fields"].as_array().unwrap().iter().map(|field| (&field["name"], &field["value"])).collect();
    assert_eq!(fields, [(&"i".into(), &7.into()), (&"v".into(), &7.into())]);
}

#[test]
fn what_cannot_be_explained_says_why() {
    let demo = demo();
    for (arguments, status, reason) in [
        (vec!["explain", &demo, "temp.f32", "--row", "20000"], 2, "there is no cell 20000: there are 20000, from 0 on"),
        (vec!["explain", &demo, "temp.f32", "--byte", "80000"], 2, "there is no cell 20000"),
        (vec!["explain", &demo, "tmp.f32"], 1, "did you mean temp.f32?"),
        (vec!["explain", &demo, "temp.f32", "--row", "1", "--byte", "1"], 2, "cannot be used with"),
    ] {
        let output = tilefs(&arguments);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            (output.status.code(), complaint.contains(reason)),
            (Some(status), true),
            "{arguments:?}: {complaint}"
        );
    }
    let folder = fixtures().join("arrays").display().to_string();
    let output = tilefs(&["explain", &folder, "dense"]);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && complaint.contains("of several arrays or of none"), "{complaint}");
    let of_member = json(&["explain", &folder, "dense/overlap", "--row", "0"]);
    let alone = json(&["explain", &fixtures().join("arrays/dense/overlap").display().to_string(), "--row", "0"]);
    assert_eq!(of_member["fields"], alone["fields"]);
}
