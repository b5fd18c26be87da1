//! The numbers of groups and datasets.

/// An object of a [`Tree`](crate::Tree).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub(crate) usize);

impl ObjectId {
    /// The root group, which contains all other objects.
    pub const ROOT: ObjectId = ObjectId(0);

    /// Returns the number of the object in the order in which objects were added. The root group has 0.
    pub fn index(self) -> usize {
        self.0
    }
}
