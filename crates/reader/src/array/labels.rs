//! Dimension labels: each is a one-dimensional dense array in the folder of the array that it labels.

use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::folder::LABELS;
use tilefs_format::schema::{ArrayType, DimensionLabel};

use super::{ArrayFolder, OpenedArray};

/// Labels have no labels; a deeper nesting is taken for an endless loop.
const MAX_DEPTH: usize = 4;

/// The array that holds a label, in the same window as the array that it labels.
pub struct LabelArray {
    /// The array of the labels.
    pub array: Arc<OpenedArray>,
    /// The number of the attribute with the label.
    pub attribute: usize,
}

impl OpenedArray {
    /// Opens the array of a label of this array's schema, and reads its schema.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a label outside the array's folder or within itself, [`Error::Damaged`] if there is
    /// no array or if it does not fit the labelled dimension.
    pub fn label(&self, label: &DimensionLabel) -> Result<LabelArray> {
        self.open_label(label).in_field(&label.name).in_array(self.path())
    }

    fn open_label(&self, label: &DimensionLabel) -> Result<LabelArray> {
        let place = path_in_array(label)
            .ok_or_else(|| Error::unsupported(format!("a label that is not in the array's folder: {}", label.uri)))?;
        let path = self.path().join(place);
        let storage = &self.context().storage;
        let around = [self.around.as_slice(), &[storage.canonical(self.path())]].concat();
        if around.contains(&storage.canonical(&path)) || around.len() > MAX_DEPTH {
            return Err(Error::damaged("a label within itself").in_array(&path));
        }
        let folder = ArrayFolder::open(self.folder().context.clone(), &path)?;
        // Labels have the same names in all arrays, so another array could have replaced this one.
        self.folder().directory().listing().check_in_place(&**storage)?;
        let mut array = OpenedArray::open(Arc::new(folder), self.window())?;
        array.around = around;
        let schema = array.schema();
        let attribute = schema.attribute_named(&label.attribute);
        let Some(attribute) = attribute.filter(|_| schema.array_type == ArrayType::Dense) else {
            let reason = format!("the label's array has no dense attribute {:?}", label.attribute);
            return Err(Error::damaged(reason).in_array(array.path()));
        };
        let labelled = self.schema().dimensions.get(label.dimension as usize);
        let (Some(labelled), [index]) = (labelled, schema.dimensions.as_slice()) else {
            return Err(Error::damaged("the label's array does not have exactly one dimension").in_array(array.path()));
        };
        if (labelled.datatype, &labelled.domain) != (index.datatype, &index.domain) {
            let reason = format!("the label's array has another domain than the dimension {}", labelled.name);
            return Err(Error::damaged(reason).in_array(array.path()));
        }
        Ok(LabelArray { array: Arc::new(array), attribute })
    }
}

/// Returns the path of a label's array relative to the folder of its array. An absolute URI is from the time when the
/// label was created; the part after the folder of labels is still valid.
fn path_in_array(label: &DimensionLabel) -> Option<String> {
    let parts: Vec<&str> = label.uri.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let start = if label.relative { 0 } else { parts.iter().rposition(|part| *part == LABELS)? };
    let stays = |part: &&str| *part != ".." && !part.contains('\0');
    let path = parts.get(start..).filter(|path| !path.is_empty() && path.iter().all(stays))?;
    Some(path.join("/"))
}

#[cfg(test)]
mod tests {
    use tilefs_format::datatype::Datatype;
    use tilefs_format::schema::{CellValNum, DataOrder};

    use super::*;

    #[test]
    fn labels_stay_in_their_array() {
        let place = |relative: bool, uri: &str| {
            path_in_array(&DimensionLabel {
                dimension: 0,
                name: "l".into(),
                relative,
                uri: uri.into(),
                attribute: "label".into(),
                order: DataOrder::Unordered,
                datatype: Datatype::Float64,
                cell_count: CellValNum::Fixed(1),
                external: false,
            })
        };
        assert_eq!(place(true, "__labels/l0"), Some("__labels/l0".into()));
        assert_eq!(place(true, "./__labels//l0/"), Some("__labels/l0".into()));
        assert_eq!(place(false, "file:///old/place/__labels/l0"), Some("__labels/l0".into()));
        assert_eq!(place(false, "s3://bucket/__labels/a/__labels/l1"), Some("__labels/l1".into()));
        for (relative, uri) in [
            (true, "../other"),
            (true, ""),
            (true, "."),
            (false, "file:///elsewhere"),
            (false, "file:///a/__labels/../../b"),
            (true, "a\0b"),
        ] {
            assert_eq!(place(relative, uri), None, "{uri}");
        }
    }
}
