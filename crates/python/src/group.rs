//! Groups.

use std::sync::Arc;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tilefs_base::error::{Error, Result};
use tilefs_format::folder::ObjectKind;
use tilefs_reader::OpenedObject;
use tilefs_reader::group::MemberPlace;
use tilefs_threads::PerProcess;

use crate::array::PythonArray;
use crate::call;
use crate::context::ProcessContext;
use crate::metadata::{self, PyMetadataValue};

/// A group of arrays and groups.
#[pyclass(frozen, name = "Group", module = "tilefs._tilefs")]
pub struct PythonGroup {
    context: Arc<ProcessContext>,
    group: PerProcess<tilefs_reader::OpenedGroup>,
}

impl PythonGroup {
    pub fn new(group: tilefs_reader::OpenedGroup, context: Arc<ProcessContext>) -> Self {
        PythonGroup { context, group: PerProcess::of(group) }
    }

    /// Returns the group of this process.
    fn here(&self) -> Result<&tilefs_reader::OpenedGroup> {
        self.group.get_or_make(|parents| {
            let parents = parents.ok_or_else(|| Error::internal("a group that no process has opened"))?;
            Ok(parents.in_context(self.context.get()?.clone()))
        })
    }
}

#[pymethods]
impl PythonGroup {
    fn uri(&self, py: Python<'_>) -> PyResult<String> {
        call::run_short(py, || Ok(self.here()?.path().to_string()))
    }

    /// Returns the time whose state is read, in milliseconds since 1970.
    fn time(&self, py: Python<'_>) -> PyResult<u64> {
        call::run_short(py, || Ok(self.here()?.window().end))
    }

    /// Returns the name, the kind, the URI, and the reason if it is missing, of each member.
    #[expect(clippy::type_complexity, reason = "a list of tuples in Python")]
    fn members(&self, py: Python<'_>) -> PyResult<Vec<(String, Option<&'static str>, String, Option<String>)>> {
        let members = call::run(py, || self.here()?.members())?;
        let shown = members.iter().map(|member| {
            let kind = member.kind.map(ObjectKind::name);
            let (uri, missing) = match &member.place {
                MemberPlace::Stored(folder) | MemberPlace::Moved(folder) => (folder.to_string(), None),
                MemberPlace::Missing(reason) => (member.uri.clone(), Some(reason.clone())),
            };
            (member.name.clone(), kind, uri, missing)
        });
        Ok(shown.collect())
    }

    /// Returns the path of the group, the same for all names of it.
    fn canonical(&self, py: Python<'_>) -> PyResult<String> {
        call::run(py, || {
            let group = self.here()?;
            Ok(group.context().storage.canonical(group.path()).to_string())
        })
    }

    /// Opens a member by its number.
    fn open_member(&self, py: Python<'_>, number: usize) -> PyResult<Py<PyAny>> {
        let opened = call::run(py, || {
            let group = self.here()?;
            let members = group.members()?;
            let member = members.get(number).ok_or_else(|| Error::usage("the group has no such member"))?;
            group.open_object(member)
        })?;
        shown(py, opened, self.context.clone())
    }

    fn metadata_keys<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        Ok(metadata::keys(py, &*call::run(py, || self.here()?.metadata())?))
    }

    fn metadata_value<'py>(&self, py: Python<'py>, key: &[u8]) -> PyResult<Option<PyMetadataValue<'py>>> {
        metadata::value(py, &call::run(py, || self.here()?.metadata())?, key)
    }
}

/// Returns the Python object of an array or a group that was opened in a context.
pub fn shown(py: Python<'_>, object: OpenedObject, context: Arc<ProcessContext>) -> PyResult<Py<PyAny>> {
    match object {
        OpenedObject::Array(array) => PythonArray::new(array, context).into_py_any(py),
        OpenedObject::Group(group) => PythonGroup::new(*group, context).into_py_any(py),
    }
}
