//! The extension module `tilefs._tilefs`, on which the Python package in `python/` is built.
//!
//! * `array.rs`: boxes of dense arrays as NumPy arrays, rows of sparse arrays as Arrow streams
//! * `group.rs`: members and metadata of groups
//! * `tree.rs`: the files of the tree, for fsspec
//! * `rows.rs`: the Arrow stream; `arrow_file.rs`: reads its batches; `numpy_memory.rs`: reads into the memory of a
//!   NumPy array
//! * `options.rs`, `call.rs`, `errors.rs`, `fork.rs`: options, calls without the interpreter's lock, exceptions, and
//!   forked processes

#![deny(missing_docs)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

mod array;
mod arrow_file;
mod call;
mod errors;
mod fork;
mod group;
mod metadata;
mod numpy_memory;
mod open;
mod options;
mod rows;
mod tree;

/// The module; its users are the files in `python/src/tilefs`, which document everything.
#[pyo3::pymodule]
mod _tilefs {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::array::Array;
    #[pymodule_export]
    use super::group::Group;
    #[pymodule_export]
    use super::open::open;
    #[pymodule_export]
    use super::options::Options;
    #[pymodule_export]
    use super::rows::Rows;
    #[pymodule_export]
    use super::tree::Tree;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
