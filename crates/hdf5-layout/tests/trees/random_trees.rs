//! Any tree is a file that h5py and HDF5's own programs read, and its ranges are parts of the whole.

use std::sync::Mutex;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use tempfile::TempDir;

use crate::random::models;
use crate::readers::{H5py, has_programs, run_all};

fn runner(cases: u32) -> TestRunner {
    TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() })
}

#[test]
fn h5py_reads_back_any_tree() {
    let Some(h5py) = H5py::start() else { return };
    let h5py = Mutex::new(h5py);
    let test = |model: crate::model::Model| {
        let bytes = model.store().bytes();
        h5py.lock().unwrap().read(&model, &bytes).map_err(TestCaseError::fail)
    };
    runner(200).run(&models(), test).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn the_programs_of_hdf5_accept_any_tree() {
    if !has_programs() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let test = |model: crate::model::Model| {
        let mut stored = model.store();
        let bytes = stored.bytes();
        let dump = run_all(&model, &stored, &bytes, folder.path());
        let datasets = model.0.iter().filter(|object| object.dataset.is_some()).count();
        prop_assert!(dump.matches("DATASET \"").count() >= datasets, "{}", dump);
        Ok(())
    };
    runner(8).run(&models(), test).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn ranges_are_parts_of_the_whole() {
    let test = |(model, places): (crate::model::Model, Vec<(u64, u64)>)| {
        let mut stored = model.store();
        let whole = stored.bytes();
        for (start, length) in places {
            let start = start % (whole.len() as u64 + 1);
            let end = (start + length).min(whole.len() as u64);
            prop_assert_eq!(&stored.read(start..end), &whole[start as usize..end as usize], "{}..{}", start, end);
        }
        prop_assert!(stored.largest_collection <= 1 << 16);
        Ok(())
    };
    let places = prop::collection::vec((any::<u64>(), prop_oneof![0..40_u64, 0..200_000_u64]), 20);
    runner(200).run(&(models(), places), test).unwrap_or_else(|error| panic!("{error}"));
}
