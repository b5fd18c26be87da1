//! The contents of a file: groups, datasets and attributes.

use std::collections::HashSet;

use crate::attribute::AttributeMessage;
use crate::dataset::Dataset;
use crate::error::{Error, Problem, Result};
use crate::object_id::ObjectId;

/// The objects of a file, in the order in which they were added, which is also the creation order in the file.
#[derive(Debug, Clone)]
pub struct Tree {
    objects: Vec<TreeObject>,
}

/// A group or dataset, with its attributes.
#[derive(Debug, Clone)]
pub(crate) struct TreeObject {
    parent: usize,
    pub name: String,
    pub kind: NodeKind,
    pub attributes: Vec<(String, AttributeMessage)>,
    /// Names of attributes and, for a group, of members.
    attribute_names: HashSet<String>,
    member_names: HashSet<String>,
}

#[derive(Debug, Clone)]
pub(crate) enum NodeKind {
    Group { members: Vec<ObjectId> },
    Dataset(Box<Dataset>),
}

impl TreeObject {
    fn new(parent: usize, name: &str, kind: NodeKind) -> Self {
        TreeObject {
            parent,
            name: name.to_owned(),
            kind,
            attributes: Vec::new(),
            attribute_names: HashSet::new(),
            member_names: HashSet::new(),
        }
    }
}

impl Default for Tree {
    fn default() -> Self {
        Tree::new()
    }
}

impl Tree {
    /// Creates an empty root group.
    pub fn new() -> Self {
        Tree { objects: vec![TreeObject::new(0, "", NodeKind::Group { members: Vec::new() })] }
    }

    /// Adds an empty group to a group.
    ///
    /// # Errors
    /// Fails if `parent` is not a group, the name is invalid, or the group contains it already.
    pub fn group(&mut self, parent: ObjectId, name: &str) -> Result<ObjectId> {
        self.add(parent, name, NodeKind::Group { members: Vec::new() })
    }

    /// Adds a dataset to a group.
    ///
    /// # Errors
    /// As for [`Tree::group`]; also fails if HDF5 does not support the dataset.
    pub fn dataset(&mut self, parent: ObjectId, name: &str, dataset: Dataset) -> Result<ObjectId> {
        dataset.check().map_err(|problem| Error::new(self.path_within(parent, name), problem))?;
        self.add(parent, name, NodeKind::Dataset(Box::new(dataset)))
    }

    /// Adds an attribute to an object.
    ///
    /// # Errors
    /// Fails if there is no such object, the name is invalid, the object has it already, or its value does not fit its
    /// type and dataspace.
    pub fn attribute(&mut self, object: ObjectId, name: &str, attribute: AttributeMessage) -> Result<()> {
        let check = check_name(name, false).and_then(|()| attribute.check(name));
        check.map_err(|problem| Error::new(self.path(object), problem))?;
        let to = self.object_mut(object)?;
        if !to.attribute_names.insert(name.to_owned()) {
            return Err(Error::new(self.path(object), Problem::NameTwice { name: name.to_owned() }));
        }
        to.attributes.push((name.to_owned(), attribute));
        Ok(())
    }

    /// Returns the path of an object, `/` for the root group.
    pub fn path(&self, object: ObjectId) -> String {
        let mut names = Vec::new();
        let mut at = object.0;
        // A parent was added before its members.
        while let Some(object) = self.objects.get(at).filter(|_| at > 0) {
            names.push(object.name.as_str());
            at = object.parent;
        }
        names.reverse();
        format!("/{}", names.join("/"))
    }

    pub(crate) fn objects(&self) -> &[TreeObject] {
        &self.objects
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = ObjectId> + use<> {
        (0..self.objects.len()).map(ObjectId)
    }

    pub(crate) fn dataset_mut(&mut self, id: ObjectId) -> Result<&mut Dataset> {
        let no_dataset = Error::new(self.path(id), Problem::NoSuchObject { wanted: "dataset" });
        match self.objects.get_mut(id.0).map(|object| &mut object.kind) {
            Some(NodeKind::Dataset(dataset)) => Ok(dataset),
            _ => Err(no_dataset),
        }
    }

    pub(crate) fn dataset_of(&self, id: ObjectId) -> Option<&Dataset> {
        match &self.objects.get(id.0)?.kind {
            NodeKind::Dataset(dataset) => Some(dataset),
            NodeKind::Group { .. } => None,
        }
    }

    fn object_mut(&mut self, id: ObjectId) -> Result<&mut TreeObject> {
        let nothing = Problem::NoSuchObject { wanted: "object" };
        self.objects.get_mut(id.0).ok_or_else(|| Error::new("/", nothing))
    }

    fn add(&mut self, parent: ObjectId, name: &str, kind: NodeKind) -> Result<ObjectId> {
        check_name(name, true).map_err(|problem| Error::new(self.path(parent), problem))?;
        let path = self.path(parent);
        let new = ObjectId(self.objects.len());
        let Some(TreeObject { kind: NodeKind::Group { members }, member_names, .. }) = self.objects.get_mut(parent.0)
        else {
            return Err(Error::new(path, Problem::NoSuchObject { wanted: "group" }));
        };
        if !member_names.insert(name.to_owned()) {
            return Err(Error::new(path, Problem::NameTwice { name: name.to_owned() }));
        }
        members.push(new);
        self.objects.push(TreeObject::new(parent.0, name, kind));
        Ok(new)
    }

    fn path_within(&self, parent: ObjectId, name: &str) -> String {
        let parent = self.path(parent);
        format!("{}/{name}", parent.trim_end_matches('/'))
    }
}

/// Checks that a name is valid for a link, which is a part of paths, or for an attribute.
fn check_name(name: &str, is_link: bool) -> std::result::Result<(), Problem> {
    let is_wrong = name.is_empty() || name.contains('\0') || is_link && (name == "." || name.contains('/'));
    if is_wrong {
        return Err(Problem::Name { name: name.to_owned() });
    }
    // The rest of the message must fit after the name.
    if name.len() > 0xff00 {
        return Err(Problem::TooLarge { what: "a name".to_owned(), limit: 0xff00 });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataspace::Dataspace;
    use crate::datatype::Datatype;

    #[test]
    fn refuses_invalid_and_duplicate_names() {
        let mut tree = Tree::new();
        for name in ["", ".", "a/b", "a\0b", &"a".repeat(0xffff)] {
            assert!(tree.group(ObjectId::ROOT, name).is_err(), "{name:.20}");
        }
        let group = tree.group(ObjectId::ROOT, "group").unwrap();
        let twice = tree.group(ObjectId::ROOT, "group").unwrap_err();
        assert_eq!(twice.to_string(), "/: the name \"group\" is used twice");
        tree.attribute(group, "a/b", AttributeMessage::text("text")).unwrap();
        assert!(tree.attribute(group, "a/b", AttributeMessage::text("text")).is_err());
    }

    #[test]
    fn only_groups_have_members() {
        let mut tree = Tree::new();
        let dataset = Dataset::new(Datatype::signed(1), Dataspace::Scalar);
        let scalar = tree.dataset(ObjectId::ROOT, "scalar", dataset).unwrap();
        assert!(tree.group(scalar, "below").is_err());
        assert!(tree.group(ObjectId(7), "nowhere").is_err());
    }

    #[test]
    fn errors_name_the_object() {
        let mut tree = Tree::new();
        let group = tree.group(ObjectId::ROOT, "a").unwrap();
        let wrong = Dataset::new(Datatype::signed(3), Dataspace::Scalar);
        assert_eq!(tree.dataset(group, "b", wrong).unwrap_err().object, "/a/b");
    }
}
