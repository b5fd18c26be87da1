//! Each test alters one byte of the footers, R-trees, tile offsets and other lists of sparse fragments, in every layout
//! of the format, if no checksum covers it. The rows are then those of the array, or an error that takes no extra
//! memory. A slice trusts the boxes in the R-tree; if that gives it other rows, verification finds the damage.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use support::corpora::corpus;
use support::metadata_file::{generic_tiles, replace_generic_tile};
use support::parallel;
use support::stored::generic_tile;
use tilefs_base::error::{Error, Result};
use tilefs_format::scalar::Scalar;
use tilefs_reader::array::decode_inline_tile;
use tilefs_reader::array::sparse::CoordinateRange;
use tilefs_reader::array::verify::{Progress, verify};
use tilefs_reader::array::{ArrayFolder, Context, OpenedArray, TimeWindow};
use tilefs_storage::{MemoryStorage, StoreKey};

/// Arrays of each layout: one generic tile with everything, a footer without its length, one file with the coordinates
/// of all dimensions, a file for each dimension, a footer with its length and the name of the schema.
const ARRAYS: [&str; 6] = [
    "writers/arrays/1.6/twice_0",
    "writers/arrays/1.7/limits_4",
    "writers/arrays/2.2/limits_1",
    "writers/arrays/2.3/limits_4",
    "writers/arrays/2.9/limits_2",
    "arrays/sparse/bands_row",
];

/// The changes of bytes, in rotation: flipping each bit of every byte would take eight times as long.
const BITS: [u8; 5] = [0x01, 0x80, 0x10, 0xff, 0x02];

#[test]
fn whatever_is_forged_in_an_index_gives_no_other_rows() {
    let mut arrays: Vec<PathBuf> = ARRAYS.iter().map(|name| tilefs_fixtures::fixtures().join(name)).collect();
    arrays.push(corpus().join("arrays/v02/sparse_1d"));
    for array in arrays {
        let whole = Whole::of(&array);
        let altered = whole.alter();
        let outcomes = parallel::map(&altered, |(place, storage)| whole.read(place, storage));
        let count = |wanted: Outcome| outcomes.iter().filter(|outcome| **outcome == wanted).count();
        let (same, refused, found) = (count(Outcome::Same), count(Outcome::Refused), count(Outcome::FoundByVerify));
        println!("{}: {same} give the rows, {refused} an error, {found} slices differ", array.display());
        assert_eq!(same + refused + found, altered.len());
        assert!(refused > 100 && same > 50, "what is altered is not read");
        // Most other bytes belong to numbers on which no row depends: sums, bounds of values.
        assert!(found < altered.len() / 50, "slices differ for more than boxes of tiles");
    }
}

/// The outcome of a read with altered metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Same,
    Refused,
    /// A slice has other rows, and verification finds damage.
    FoundByVerify,
}

type Rows = Vec<Vec<Vec<u8>>>;
type Ranges = Vec<Option<Vec<CoordinateRange>>>;

/// An unaltered array, and the rows read from it.
struct Whole {
    storage: MemoryStorage,
    root: StoreKey,
    rows: Rows,
    slices: Vec<(Ranges, Rows)>,
}

impl Whole {
    fn of(path: &Path) -> Self {
        let root = StoreKey::from("/array");
        let storage = MemoryStorage::load(path, &root).unwrap();
        let array = open(&storage, &root).unwrap();
        let all = rows(&array, None).unwrap();
        assert!(all.len() > 10);
        // For each dimension, one coordinate and the first half.
        let dimensions = &array.schema().dimensions;
        let mut slices = Vec::new();
        for (number, dimension) in dimensions.iter().enumerate() {
            let middle = Scalar::parse(dimension.datatype, &all[all.len() / 2][number]).unwrap();
            for low in [dimension.domain.as_ref().unwrap().low.clone(), middle.clone()] {
                let mut ranges: Ranges = vec![None; dimensions.len()];
                ranges[number] = Some(vec![CoordinateRange { low: Some(low), high: Some(middle.clone()), step: 1 }]);
                let chosen = rows(&array, Some(&ranges)).unwrap();
                assert!(!chosen.is_empty() && chosen.iter().all(|row| all.contains(row)));
                slices.push((ranges, chosen));
            }
        }
        Whole { storage, root, rows: all, slices }
    }

    /// Returns copies in each of which one byte of the newest fragment's metadata is altered, with a description of the
    /// byte.
    fn alter(&self) -> Vec<(String, MemoryStorage)> {
        let metadata = |key: &StoreKey| key.name() == Some(b"__fragment_metadata.tdb");
        let key = self.storage.keys().into_iter().filter(metadata).max().unwrap();
        let bytes = self.storage.bytes(&key).unwrap().to_vec();
        let sections = generic_tiles(&bytes);
        let footer = sections.last().unwrap().1;
        let context = Context::new(Arc::new(MemoryStorage::new()), 1 << 20, 1, None);
        let mut altered = Vec::new();
        let mut add = |place: String, bytes: Vec<u8>| {
            let storage = self.storage.clone();
            storage.put(key.clone(), bytes);
            altered.push((place, storage));
        };
        for (number, &(start, end)) in sections.iter().enumerate() {
            let payload = decode_inline_tile(&context, &bytes[start..end]).unwrap();
            for at in 0..payload.len() {
                let mut payload = payload.clone();
                payload[at] ^= BITS[at % BITS.len()];
                let place = format!("section {number}, byte {at}");
                let mut bytes = bytes.clone();
                replace_generic_tile(&mut bytes, start, &generic_tile(&payload));
                add(place, bytes);
            }
        }
        for at in footer..bytes.len() {
            for bits in [BITS[at % BITS.len()], BITS[(at + 1) % BITS.len()]] {
                let mut bytes = bytes.clone();
                bytes[at] ^= bits;
                add(format!("footer, byte {}", at - footer), bytes);
            }
        }
        altered
    }

    fn read(&self, place: &str, storage: &MemoryStorage) -> Outcome {
        let is_right = |due: &Rows, found: Result<Rows>| match found {
            Ok(found) => Some(found == *due),
            Err(error) => {
                assert!(!error.to_string().contains("not enough memory"), "{place}: {error}");
                None
            }
        };
        let read = |ranges| open(storage, &self.root).and_then(|array| rows(&array, ranges));
        let of_all = is_right(&self.rows, read(None));
        assert_ne!(of_all, Some(false), "{place}: other rows");
        let of_slices: Vec<Option<bool>> =
            self.slices.iter().map(|(ranges, due)| is_right(due, read(Some(ranges)))).collect();
        if of_slices.contains(&Some(false)) {
            let array = open(storage, &self.root).unwrap();
            assert!(!verify(&array, &Progress::default()).places.is_empty(), "{place}: other rows, and no damage");
            return Outcome::FoundByVerify;
        }
        if of_all.is_none() || of_slices.contains(&None) { Outcome::Refused } else { Outcome::Same }
    }
}

fn open(storage: &MemoryStorage, root: &StoreKey) -> Result<Arc<OpenedArray>> {
    let context = Arc::new(Context::new(Arc::new(storage.clone()), 1 << 20, 1, None));
    Ok(Arc::new(OpenedArray::open(Arc::new(ArrayFolder::open(context, root)?), TimeWindow::ALL)?))
}

/// Returns the values of each row, sorted.
fn rows(array: &Arc<OpenedArray>, ranges: Option<&Ranges>) -> Result<Rows> {
    let mut reader = array.rows()?;
    if let Some(ranges) = ranges {
        reader = reader.select(ranges)?;
    }
    let mut rows = Vec::new();
    for batch in reader.batches()? {
        let batch = batch?;
        for row in 0..batch.len() {
            let values = batch.all_columns().iter().map(|column| match column.get(row) {
                Some(value) => Ok(value.to_vec()),
                None if column.is_null(row) => Ok(Vec::new()),
                None => Err(Error::internal("a batch without one of its rows")),
            });
            rows.push(values.collect::<Result<_>>()?);
        }
    }
    rows.sort();
    Ok(rows)
}
