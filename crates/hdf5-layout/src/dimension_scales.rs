//! Dimension scales (HDF5 Dimension Scale Specification): coordinates of axes, supported by netCDF-4 and h5py.

use crate::attribute::AttributeMessage;
use crate::error::{Error, Problem, Result};
use crate::object_id::ObjectId;
use crate::tree::{NodeKind, Tree};

impl Tree {
    /// Makes a dataset a dimension scale of this name, which becomes the name of the axis.
    ///
    /// # Errors
    /// Fails if there is no such dataset.
    pub fn make_scale(&mut self, dataset: ObjectId, name: &str) -> Result<()> {
        self.dataset_mut(dataset)?.scale = Some(name.to_owned());
        Ok(())
    }

    /// Attaches a dimension scale to an axis of a dataset.
    ///
    /// # Errors
    /// Fails if `dataset` has no such axis or is a scale itself, or if `scale` is not one.
    pub fn attach_scale(&mut self, dataset: ObjectId, axis: usize, scale: ObjectId) -> Result<()> {
        if self.dataset_of(scale).is_none_or(|scale| scale.scale.is_none()) {
            return Err(Error::new(self.path(scale), Problem::NoSuchObject { wanted: "dimension scale" }));
        }
        let path = self.path(dataset);
        let to = self.dataset_mut(dataset)?;
        let rank = to.dataspace.shape().len();
        if axis >= rank || to.scale.is_some() {
            return Err(Error::new(path, Problem::NoSuchObject { wanted: "axis that takes a scale" }));
        }
        to.scales.resize(rank, Vec::new());
        if let Some(scales) = to.scales.get_mut(axis).filter(|scales| !scales.contains(&scale)) {
            scales.push(scale);
        }
        Ok(())
    }

    /// Returns the attributes that describe scales, for each object.
    pub(crate) fn scale_attributes(&self) -> Vec<Vec<(String, AttributeMessage)>> {
        let mut found: Vec<Vec<(String, AttributeMessage)>> = vec![Vec::new(); self.objects().len()];
        let mut uses: Vec<Vec<(ObjectId, u32)>> = vec![Vec::new(); self.objects().len()];
        for (id, attributes) in self.ids().zip(&mut found) {
            let Some(dataset) = self.dataset_of(id) else { continue };
            if let Some(name) = &dataset.scale {
                attributes.push(("CLASS".to_owned(), AttributeMessage::fixed_text("DIMENSION_SCALE")));
                attributes.push(("NAME".to_owned(), AttributeMessage::fixed_text(name)));
            }
            if !dataset.scales.is_empty() {
                attributes
                    .push(("DIMENSION_LIST".to_owned(), AttributeMessage::dimension_list(dataset.scales.clone())));
            }
            for (axis, scales) in dataset.scales.iter().enumerate() {
                for scale in scales {
                    if let Some(uses) = uses.get_mut(scale.index()) {
                        // There are at most 32 axes.
                        uses.push((id, axis as u32));
                    }
                }
            }
        }
        for (attributes, uses) in found.iter_mut().zip(uses) {
            if !uses.is_empty() {
                attributes.push(("REFERENCE_LIST".to_owned(), AttributeMessage::reference_list(uses)));
            }
        }
        found
    }

    /// Returns whether an object is a dataset.
    pub(crate) fn is_dataset(&self, id: ObjectId) -> bool {
        matches!(self.objects().get(id.index()).map(|object| &object.kind), Some(NodeKind::Dataset(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Dataset;
    use crate::dataspace::Dataspace;
    use crate::datatype::Datatype;

    #[test]
    fn records_attachments_on_both_sides() {
        let mut tree = Tree::new();
        let mut add = |name: &str, shape: &[u64]| {
            let dataset = Dataset::new(Datatype::signed(4), Dataspace::Simple(shape.to_vec()));
            tree.dataset(ObjectId::ROOT, name, dataset).unwrap()
        };
        let (x, values) = (add("x", &[3]), add("values", &[2, 3]));
        assert!(tree.attach_scale(values, 1, x).is_err());
        tree.make_scale(x, "x").unwrap();
        tree.attach_scale(values, 1, x).unwrap();
        tree.attach_scale(values, 1, x).unwrap();
        assert!(tree.attach_scale(values, 2, x).is_err());
        assert!(tree.attach_scale(x, 0, x).is_err());
        assert!(tree.make_scale(ObjectId::ROOT, "root").is_err());
        let attributes = tree.scale_attributes();
        let names: Vec<&str> = attributes[x.index()].iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["CLASS", "NAME", "REFERENCE_LIST"]);
        let expected = AttributeMessage::dimension_list(vec![vec![], vec![x]]);
        assert_eq!(attributes[values.index()], [("DIMENSION_LIST".to_owned(), expected)]);
        assert_eq!(attributes[x.index()][2].1, AttributeMessage::reference_list(vec![(values, 1)]));
    }
}
