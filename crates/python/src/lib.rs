//! The extension module `tilefs._tilefs`, on which the Python package in `python/` is built.
//!
//! * `array.rs`: boxes of dense arrays as NumPy arrays, rows of sparse arrays as Arrow streams
//! * `group.rs`: members and metadata of groups; `objects.rs`: which folders hold arrays and groups
//! * `matrix.rs`: sparse matrices of TileDB-SOMA, in the form that SciPy has
//! * `tree.rs`: the files of the tree, for fsspec
//! * `rows.rs`: the Arrow stream; `arrow_file.rs`: reads its batches; `numpy_memory.rs`: reads into the memory of a
//!   NumPy array
//! * `options.rs`, `call.rs`, `errors.rs`: options, calls without the interpreter's lock that signals end, exceptions
//! * `context.rs`: what objects that were opened together share; a forked child has its own

#![deny(missing_docs)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

mod array;
mod array_per_process;
mod arrow_file;
mod call;
mod checked_text;
mod context;
mod errors;
mod group;
mod matrix;
mod metadata;
mod numpy_memory;
mod objects;
mod open;
mod options;
mod rows;
mod tree;

/// The module; its users are the files in `python/src/tilefs`, which document everything.
#[pyo3::pymodule]
mod _tilefs {
    use pyo3::prelude::*;
    use pyo3::types::PyDict;
    use tilefs_threads as threads;

    #[pymodule_export]
    use super::array::PythonArray;
    #[pymodule_export]
    use super::call::Cancellation;
    #[pymodule_export]
    use super::group::PythonGroup;
    #[pymodule_export]
    use super::matrix::{Matrix, why_not_numbered};
    #[pymodule_export]
    use super::objects::{object_type, objects};
    #[pymodule_export]
    use super::open::open;
    #[pymodule_export]
    use super::options::Options;
    #[pymodule_export]
    use super::rows::Rows;
    #[pymodule_export]
    use super::tree::PythonTree;

    #[pyfunction]
    fn note_fork() {
        threads::note_fork();
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let in_child = PyDict::new(module.py());
        in_child.set_item("after_in_child", module.getattr("note_fork")?)?;
        module.py().import("os")?.call_method("register_at_fork", (), Some(&in_child))?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
