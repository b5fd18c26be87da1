//! The names of files of fields, which collide with no folder or file of a view: both follow from the list of views.

use std::sync::LazyLock;

use tilefs_format::schema::ArraySchema;

use crate::fields::FieldNames;
use crate::names::{OF_ARRAYS, ReservedNames};
use crate::views::{VIEWS, View, folders};

/// Returns the names in the folder of an array that are not of a field, and the endings of the files of attributes.
pub fn reserved() -> &'static ReservedNames {
    static RESERVED: LazyLock<ReservedNames> = LazyLock::new(|| ReservedNames {
        in_array: OF_ARRAYS.iter().copied().chain(folders()).collect(),
        endings: VIEWS.iter().flat_map(|view| endings(view)).collect(),
    });
    &RESERVED
}

/// Returns the file names of an array's fields.
pub fn field_names(schema: &ArraySchema) -> FieldNames {
    FieldNames::of(schema, reserved())
}

/// Returns the endings of a view's files of a field, in which `EXT` stands for the type.
fn endings(view: &'static View) -> impl Iterator<Item = &'static str> {
    let files = view.facts.files.iter().filter(|_| view.declare_of_field().is_some());
    files.filter_map(|file| file.strip_prefix("NAME"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::UNIX_EPOCH;

    use tilefs_base::error::Result;
    use tilefs_export::column::extension::of_datatype;
    use tilefs_reader::array::FieldId;

    use super::*;
    use crate::cells::Subarray;
    use crate::cells::dense::{DenseArray, DenseSubarray, Extent};
    use crate::cells::sparse::SparseSubarray;
    use crate::domains;
    use crate::fields::FieldFolder;
    use crate::options::TreeOptions;
    use crate::shown::ShownViews;
    use crate::views::builder::{DeclareFiles, Declared, FilesOfField};

    /// Returns the names of the files that views declare for the fields of a fixture, each with the field.
    fn declared(name: &str) -> Result<Vec<(FieldId, String, String)>> {
        let path = tilefs_fixtures::fixtures().join("arrays").join(name);
        let array = crate::open::open_array(&path, &TreeOptions::default())?;
        let (names, form) = (Arc::new(field_names(array.schema())), domains::array_form(array.schema()));
        let subarray: Arc<dyn Subarray> = match array.schema().is_sparse() {
            true => Arc::new(SparseSubarray::new(array.clone(), false)),
            false => {
                let dense = Arc::new(DenseArray::new(array.clone())?);
                let (selection, _) = dense.default_selection(Extent::Domain)?;
                Arc::new(DenseSubarray::new(dense, selection))
            }
        };
        let (modified, shown, told) = (UNIX_EPOCH, ShownViews::NONE, Arc::default());
        let fields = FieldFolder { subarray, names, modified, shown, form, told };
        let views: Vec<DeclareFiles> = VIEWS.iter().filter_map(|view| view.declare_of_field()).collect();
        let mut found = Vec::new();
        for id in fields.attributes().chain(fields.dimensions()) {
            let extension = format!(".{}", of_datatype(id.datatype(array.schema())));
            for one in FilesOfField::declared(&fields, id, &views) {
                let file = match one {
                    Declared::File(file) => file.name,
                    Declared::Absent { name, .. } => name,
                };
                found.push((id, file.strip_prefix(fields.names.of_field(id)).unwrap().to_owned(), extension.clone()));
            }
        }
        Ok(found)
    }

    #[test]
    fn every_ending_that_a_view_gives_is_reserved() {
        let mut endings = 0;
        let fixtures = ["types_numbers", "types_text", "types_times", "nullable", "var", "table"]
            .map(|name| format!("dense/{name}"));
        for name in fixtures.into_iter().chain(["sparse/deletes".to_owned()]) {
            for (id, ending, extension) in declared(&name).unwrap() {
                let is_it = |known: &&str| known.replace(".EXT", &extension) == ending;
                assert!(reserved().endings.iter().any(is_it), "{name} {id:?}: {ending}");
                endings += 1;
            }
        }
        assert!(endings > 100, "{endings} endings");
        for known in [".EXT", ".EXT.hdr", ".offsets.u64", ".valid.u8", ".txt", ".npy", ".valid.npy", ".tif"] {
            assert!(reserved().endings.contains(&known), "{known}");
        }
    }
}
