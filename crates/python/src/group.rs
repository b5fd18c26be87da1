//! Groups.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tilefs_format::error::Error;
use tilefs_format::group::MemberType;
use tilefs_reader::group::MemberPlace;

use crate::fork::Kept;
use crate::metadata::{self, MetadataValue};
use crate::{call, open};

/// A group of arrays and groups.
#[pyclass(frozen, module = "tilefs._tilefs")]
pub struct Group(Kept<Arc<tilefs_reader::Group>>);

impl Group {
    pub fn new(group: Arc<tilefs_reader::Group>) -> Self {
        Group(Kept::new(group))
    }
}

#[pymethods]
impl Group {
    fn uri(&self) -> String {
        self.0.path().to_string()
    }

    /// Returns the time whose state is read, in milliseconds since 1970.
    fn time(&self) -> u64 {
        self.0.window().end
    }

    /// Returns the name, the kind, the URI, and the reason if it is missing, of each member.
    #[expect(clippy::type_complexity, reason = "a list of tuples in Python")]
    fn members(&self, py: Python<'_>) -> PyResult<Vec<(String, Option<&'static str>, String, Option<String>)>> {
        let members = call::run_long(py, || self.0.members())?;
        let shown = members.iter().map(|member| {
            let kind = match member.member_type {
                MemberType::Array => Some("array"),
                MemberType::Group => Some("group"),
                MemberType::Unknown => None,
            };
            let (uri, missing) = match &member.place {
                MemberPlace::Stored(folder) | MemberPlace::Moved(folder) => (folder.to_string(), None),
                MemberPlace::Missing(reason) => (member.uri.clone(), Some(reason.clone())),
            };
            (member.name.clone(), kind, uri, missing)
        });
        Ok(shown.collect())
    }

    /// Opens a member by its number.
    fn open_member(&self, py: Python<'_>, number: usize) -> PyResult<Py<PyAny>> {
        let opened = call::run_long(py, || {
            let members = self.0.members()?;
            let member = members.get(number).ok_or_else(|| Error::usage("the group has no such member"))?;
            self.0.open_object(member)
        })?;
        open::shown(py, opened)
    }

    fn metadata_keys<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        Ok(metadata::keys(py, &*call::run_long(py, || self.0.metadata())?))
    }

    fn metadata_value<'py>(&self, py: Python<'py>, key: &[u8]) -> PyResult<Option<MetadataValue<'py>>> {
        metadata::value(py, &call::run_long(py, || self.0.metadata())?, key)
    }
}
