//! New NumPy arrays whose memory tilefs fills.
//!
//! Python's limited interface before 3.11 has no buffers, so the address comes from NumPy's `__array_interface__`.
//!
//! The invariant: the memory that is written belongs to an array that this file has just created with `numpy.empty`. It
//! is contiguous and has `nbytes` bytes, which are checked; nobody else has a reference to the array before it is
//! filled, so nobody else reads, writes, resizes or frees the memory meanwhile.
#![allow(unsafe_code)]

use std::ptr;
use std::slice;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tilefs_base::error::Result;

use crate::call;

/// Returns a new NumPy array of a shape and type whose bytes are those that `fill` writes. It has to write all of them,
/// and does so without the interpreter's lock. `is_short` says whether that takes a moment, whatever the length.
///
/// # Errors
/// NumPy's exceptions for a shape that does not fit into memory, and those of `fill`.
pub fn filled<'py>(
    py: Python<'py>,
    shape: &[u64],
    dtype: &str,
    is_short: bool,
    fill: impl FnOnce(&mut [u8]) -> Result<()> + Send,
) -> PyResult<Bound<'py, PyAny>> {
    let [array] = all_filled(py, [(shape, dtype)], is_short, |[bytes]| fill(bytes))?;
    Ok(array)
}

/// As [`filled`], for several arrays that are filled together.
///
/// # Errors
/// As for [`filled`].
pub fn all_filled<'py, const N: usize>(
    py: Python<'py>,
    kinds: [(&[u64], &str); N],
    is_short: bool,
    fill: impl FnOnce([&mut [u8]; N]) -> Result<()> + Send,
) -> PyResult<[Bound<'py, PyAny>; N]> {
    let mut arrays = Vec::with_capacity(N);
    let mut places = [(0, 0); N];
    for ((shape, dtype), place) in kinds.into_iter().zip(&mut places) {
        let array = py.import("numpy")?.call_method1("empty", (PyTuple::new(py, shape)?, dtype))?;
        *place = place_of(&array)?;
        arrays.push(array);
    }
    let length = places.iter().fold(0u64, |all, (_, length)| all.saturating_add(*length as u64));
    let fill = move || {
        fill(places.map(|(address, length)| {
            if length == 0 {
                return &mut [][..];
            }
            let start: *mut u8 = ptr::with_exposed_provenance_mut(address);
            // SAFETY: the array holds `length` contiguous bytes from `start` on, and lives until this function returns. No
            // other reference to it exists, so nobody else uses these bytes; the arrays are different ones. NumPy's
            // allocator is foreign code, so for the compiler the bytes have some value, although nobody has written them.
            unsafe { slice::from_raw_parts_mut(start, length) }
        }))
    };
    call::run_unless(py, is_short && length < call::LONG, fill)?;
    arrays.try_into().map_err(|_| PyRuntimeError::new_err("another number of arrays than was asked for"))
}

/// Returns the address and the length of the memory of a new array.
fn place_of(array: &Bound<'_, PyAny>) -> PyResult<(usize, usize)> {
    let length: usize = array.getattr("nbytes")?.extract()?;
    let interface = array.getattr("__array_interface__")?;
    let (address, is_read_only): (usize, bool) = interface.get_item("data")?.extract()?;
    // NumPy gives strides only for arrays that are not contiguous in row-major order.
    if is_read_only || !interface.get_item("strides")?.is_none() || (address == 0 && length > 0) {
        return Err(PyRuntimeError::new_err("numpy.empty returned an array that cannot be filled"));
    }
    Ok((address, length))
}
