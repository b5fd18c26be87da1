//! `contents/FILE`: the file stored in a filestore array, under its own name and with its exact length.
//!
//! A filestore is a dense array of bytes, `contents` along `position`, whose metadata describe the file: `file_size`,
//! `original_file_name`, `file_extension`, `mime_type` (the C API's filestore functions). Its domain fits any file, so
//! `contents.bytes` covers whole tiles, with fill values after the end of the file.

use std::sync::Arc;
use std::time::SystemTime;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_export::number;
use tilefs_format::schema::ArraySchema;
use tilefs_reader::array::dense::{AxisSelection, Selection};
use tilefs_reader::array::{Metadata, OpenedArray};
use tilefs_vfs::node::lazy::LazyFile;
use tilefs_vfs::node::listing::Listing;

use crate::cells::dense::{DenseArray, DenseSubarray};
use crate::cells::{FieldId, Subarray};
use crate::domains::Domain;
use crate::fields::meta;
use crate::names::escape;
use crate::views::builder::FolderBuilder;
use crate::views::described::ORIGINAL;

const CONTENTS: &str = "contents";

/// The domain: files that TileDB's filestore wrote into arrays.
pub const DOMAIN: Domain = Domain { add_to_array: Some(add_to), ..Domain::NONE };

/// Adds `contents/` to the folder of a filestore array. Reads only the metadata, and only if the schema is that of a
/// filestore.
///
/// # Errors
/// Fails if something could not be read that may be readable the next time.
fn add_to(builder: &mut FolderBuilder, array: &Arc<OpenedArray>, modified: SystemTime) -> Result<()> {
    if !has_schema_of_filestore(array.schema()) {
        return Ok(());
    }
    match original(array, modified) {
        Ok(Some((name, file))) => builder.add_folder(CONTENTS, Listing::Always, |folder| {
            folder.add_of(name, &ORIGINAL.facts, Some(CONTENTS), file, Listing::Always);
        }),
        Ok(None) if array.metadata()?.get("original_file_name").is_some() => {
            builder.leave_out(CONTENTS, "the size of the file was never recorded: its metadata have no file_size");
        }
        Ok(None) => {}
        Err(error) if error.is_transient() => return Err(error),
        Err(error) => builder.leave_out(CONTENTS, error),
    }
    Ok(())
}

fn has_schema_of_filestore(schema: &ArraySchema) -> bool {
    let ([dimension], [attribute]) = (schema.dimensions.as_slice(), schema.attributes.as_slice()) else { return false };
    dimension.name == "position" && attribute.name == CONTENTS && attribute.cell_size() == Some(1)
}

/// Returns the name of the file and the file; `None` if the metadata do not describe one.
fn original(array: &Arc<OpenedArray>, modified: SystemTime) -> Result<Option<(String, LazyFile)>> {
    let metadata = array.metadata()?;
    if metadata.get("file_size").is_none() {
        return Ok(None);
    }
    let size = file_size(array, &metadata).in_field("file_size").in_array(array.path())?;
    let dense = Arc::new(DenseArray::new(array.clone())?);
    let selection = Selection::new(vec![AxisSelection::contiguous(0, size)])?;
    let subarray = Arc::new(DenseSubarray::new(dense, selection));
    let file = LazyFile::new(modified, move || subarray.values(FieldId::Attribute(0))).with_length(Some(size));
    let mime_type = metadata.get("mime_type").and_then(|value| value.bytes()).filter(|bytes| !bytes.is_empty());
    // The attribute name that desktops have agreed on.
    let attributes = mime_type.map(|bytes| ("user.mime_type".to_owned(), bytes.to_vec()));
    Ok(Some((file_name(&metadata), file.described_by(move || attributes.iter().cloned().collect()))))
}

fn file_size(array: &OpenedArray, metadata: &Metadata) -> Result<u64> {
    let stored = metadata.get("file_size").and_then(|value| number::integer(value.datatype, value.bytes()?));
    let size = stored.and_then(|size| u64::try_from(size).ok()).ok_or_else(|| Error::damaged("no size of a file"))?;
    match array.schema().dimensions.first().and_then(|dimension| dimension.last_position()) {
        Some(last) if size <= last.saturating_add(1) => Ok(size),
        _ => Err(Error::damaged(format!("a file of {size} bytes, which do not fit into the domain"))),
    }
}

/// Returns the file's own name without folders; `contents` with the file's extension if no name is stored. TileDB's
/// library stores the name and its extension apart, and as the extension of a name without one the path of the file.
fn file_name(metadata: &Metadata) -> String {
    let stored = |key: &str| meta::text_value(metadata, key).filter(|text| !text.is_empty());
    let name = stored("original_file_name");
    let last = name.as_deref().and_then(|name| name.trim_end_matches('/').rsplit('/').next());
    let last = last.filter(|last| !last.is_empty()).unwrap_or(CONTENTS);
    let extension = stored("file_extension").filter(|extension| !extension.contains('/'));
    let ending = extension.map(|extension| format!(".{}", extension.trim_start_matches('.')));
    // Other writers store the whole name.
    match ending.filter(|ending| ending.len() > 1 && !last.ends_with(ending.as_str())) {
        Some(ending) => escape(&format!("{last}{ending}")),
        None => escape(last),
    }
}

#[cfg(test)]
mod tests {
    use tilefs_format::datatype::Datatype;
    use tilefs_format::metadata::MetadataValue;

    use super::*;

    fn name(values: &[(&str, &str)]) -> String {
        let value = |text: &str| MetadataValue {
            datatype: Datatype::StringUtf8,
            count: text.len() as u32,
            bytes: text.as_bytes().to_vec(),
        };
        file_name(&values.iter().map(|(key, text)| (key.as_bytes().to_vec(), value(text))).collect())
    }

    #[test]
    fn files_have_their_own_name_if_stored() {
        assert_eq!(name(&[("original_file_name", "a b.txt"), ("file_extension", "txt")]), "a b.txt");
        // As TileDB's library 2.10 to 2.30 stores a.bin, x.tar.gz, UP.TXT, ..x, dir.d/noext and two.
        assert_eq!(name(&[("original_file_name", "a"), ("file_extension", "bin")]), "a.bin");
        assert_eq!(name(&[("original_file_name", "x.tar"), ("file_extension", "gz")]), "x.tar.gz");
        assert_eq!(name(&[("original_file_name", "UP"), ("file_extension", "TXT")]), "UP.TXT");
        assert_eq!(name(&[("original_file_name", "."), ("file_extension", "x")]), "%2E.x");
        assert_eq!(name(&[("original_file_name", "noext"), ("file_extension", "d/noext")]), "noext");
        assert_eq!(name(&[("original_file_name", "two"), ("file_extension", "")]), "two");
        assert_eq!(name(&[("original_file_name", "/home/me/a.txt")]), "a.txt");
        assert_eq!(name(&[("original_file_name", ".."), ("file_extension", "txt")]), "%2E..txt");
        assert_eq!(name(&[("original_file_name", ""), ("file_extension", "txt")]), "contents.txt");
        assert_eq!(name(&[("original_file_name", "/"), ("file_extension", ".pdf")]), "contents.pdf");
        assert_eq!(name(&[]), "contents");
    }
}
