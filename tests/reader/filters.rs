//! Decodes the tiles in tests/fixtures/filters, which libtiledb filtered, and compares them with the
//! cells that libtiledb reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use tilefs_base::error::Error;
use tilefs_format::filter::{Key, Scratch};

use crate::filter_vectors::{Vector, decode_into, vectors};

/// Decodes a tile of a vector, unchanged or changed by a test.
fn decode(vector: &Vector, tile: &[u8], scratch: &mut Scratch) -> Result<(Vec<u8>, Option<Vec<u64>>), Error> {
    let mut cells = vec![0xee; vector.cells.len()];
    let mut offsets = vector.offsets.as_ref().map(|offsets| vec![u64::MAX; offsets.len()]);
    decode_into(&vector.decoder(), tile, &mut cells, offsets.as_deref_mut(), scratch)?;
    Ok((cells, offsets))
}

#[test]
fn every_vector_decodes_to_the_cells_that_libtiledb_reads() {
    let mut scratch = Scratch::new();
    let mut failures = Vec::new();
    let mut filters = BTreeMap::new();
    for vector in vectors() {
        for filter in &vector.pipeline.filters {
            *filters.entry(filter.name()).or_insert(0) += 1;
        }
        match decode(&vector, &vector.tile, &mut scratch) {
            Err(error) => failures.push(format!("{}: {error}", vector.name)),
            Ok((cells, offsets)) => {
                if cells != vector.cells || offsets != vector.offsets {
                    failures.push(format!("{}: other cells", vector.name));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    assert_eq!(filters.len(), 18, "filters that have vectors: {filters:?}");
}

#[test]
fn a_wrong_key_is_an_error_of_the_key() {
    let mut scratch = Scratch::new();
    let mut tried = 0;
    for mut vector in vectors().into_iter().filter(|vector| vector.context.key.is_some()) {
        vector.context.key = Some(Arc::new(Key::parse(&[7; 32]).unwrap()));
        // An empty chunk may have no encrypted part.
        if !vector.cells.is_empty() {
            let result = decode(&vector, &vector.tile, &mut scratch);
            assert!(matches!(result, Err(Error::Key { .. })), "{}: {result:?}", vector.name);
            tried += 1;
        }
    }
    assert!(tried > 20);
}

/// Every truncation and every changed byte of the small vectors gives an error or some cells, and never a panic. If a
/// checksum or the encryption covers everything, changed data must be an error.
#[test]
fn damage_never_panics_and_checksums_find_it() {
    let mut scratch = Scratch::new();
    let (mut cut_short, mut found) = (0, 0);
    for vector in vectors().iter().filter(|vector| vector.tile.len() < 220).step_by(3) {
        for cut in 0..vector.tile.len() {
            assert!(decode(vector, &vector.tile[..cut], &mut scratch).is_err(), "{} cut at {cut}", vector.name);
            cut_short += 1;
        }
        let sealed =
            vector.context.key.is_some() || vector.name.starts_with("sha256") || vector.name.starts_with("md5");
        for at in 0..vector.tile.len() {
            for change in [1, 0x80, 0xff] {
                let mut tile = vector.tile.clone();
                tile[at] ^= change;
                match decode(vector, &tile, &mut scratch) {
                    Ok((cells, _)) => assert!(!sealed || cells == vector.cells, "{} changed at {at}", vector.name),
                    Err(_) => found += usize::from(sealed),
                }
            }
        }
    }
    assert!(cut_short > 1000 && found > 1000, "{cut_short} cut, {found} found by what seals them");
}
