//! Arrays of the fixtures, and the values that libtiledb read from them.

use std::fs;

use super::harness::tilefs;
use support::manifest::{Expected, Object, load};

/// Returns the array or group whose path ends like this.
pub fn object(name: &str) -> Object {
    let manifest = tilefs_fixtures::fixtures().join("manifest.json");
    load(&manifest, "").into_iter().find(|object| object.place.ends_with(name)).unwrap()
}

/// Returns the values that libtiledb read from a field.
pub fn expected(object: &Object, name: &str) -> Vec<u8> {
    let full = object.reads.iter().find(|read| read.name == "full").unwrap();
    let field = full.fields.iter().flatten().find(|field| field.name == name).unwrap();
    match &field.values {
        Expected::File(file) => fs::read(file).unwrap(),
        Expected::Sha256(_) => panic!("of {name} only the digest is known"),
    }
}

/// Returns the raw file of each attribute whose values have a fixed size, and its expected bytes. Leaves out nullable
/// attributes, because libtiledb does not define the values of nulls.
pub fn attributes(object: &Object) -> Vec<(String, Vec<u8>)> {
    let output = tilefs(&["ls".as_ref(), object.place.as_os_str()]);
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    let attributes = &object.schema.as_ref().unwrap().attrs;
    attributes
        .iter()
        .filter(|attribute| attribute.cells.is_some() && !attribute.nullable)
        .map(|attribute| {
            let name = &attribute.name;
            let is_raw = |file: &&str| {
                let end = file.strip_prefix(name.as_str()).and_then(|rest| rest.strip_prefix('.'));
                end.is_some_and(|end| {
                    matches!(end.as_bytes(), [b'i' | b'u' | b'f', b'0'..=b'9', ..] | b"bool" | b"bytes")
                        && !end.ends_with(".hdr")
                })
            };
            (listed.lines().find(is_raw).unwrap().to_owned(), expected(object, name))
        })
        .collect()
}

/// Returns the first of these attributes.
pub fn first_attribute(object: &Object) -> (String, Vec<u8>) {
    attributes(object).remove(0)
}
