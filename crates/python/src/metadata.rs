//! Metadata of arrays and groups.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tilefs_base::error::{Error, Result};
use tilefs_export::npy;
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::text;
use tilefs_reader::Metadata;

use crate::call;

/// A value: its bytes or text, NumPy's type of one number (`None` for bytes and text), and the type in TileDB.
pub type PyMetadataValue<'py> = (Bound<'py, PyAny>, Option<String>, &'static str);

/// Returns all keys, in byte order.
pub fn keys<'py>(py: Python<'py>, metadata: &Metadata) -> Vec<Bound<'py, PyBytes>> {
    metadata.iter().map(|(key, _)| PyBytes::new(py, key)).collect()
}

/// Returns the value of a key; `None` if there is no such key. Reads a large value.
pub fn value<'py>(py: Python<'py>, metadata: &Arc<Metadata>, key: &[u8]) -> PyResult<Option<PyMetadataValue<'py>>> {
    let Some((_, value)) = metadata.iter().find(|(known, _)| *known == key) else { return Ok(None) };
    let bytes = call::run_unless(py, value.bytes().is_some(), || -> Result<Vec<u8>> {
        if let Some(bytes) = value.bytes() {
            return Ok(bytes.to_vec());
        }
        let length = usize::try_from(value.len()).map_err(|_| Error::unsupported("a value larger than memory"))?;
        let mut bytes = Vec::new();
        tilefs_base::memory::resize(&mut bytes, length, "a value of the metadata")?;
        value.read_at(0, &mut bytes)?;
        Ok(bytes)
    })?;
    let datatype = value.datatype;
    if datatype.kind() != Kind::Bytes {
        return Ok(Some((PyBytes::new(py, &bytes).into_any(), Some(npy::dtype(datatype)), datatype.name())));
    }
    // As in TileDB-Py, ASCII is bytes, other text is text, and anything else bytes.
    let is_ascii = matches!(datatype, Datatype::StringAscii | Datatype::Char);
    let shown = match text::decode(datatype, &bytes).filter(|_| !is_ascii) {
        Some(text) => text.into_pyobject(py)?.into_any(),
        None => PyBytes::new(py, &bytes).into_any(),
    };
    Ok(Some((shown, None, datatype.name())))
}
