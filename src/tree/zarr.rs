//! `zarr/`: an array as a Zarr group, whose arrays are folders of chunks.

use std::sync::Arc;
use std::time::SystemTime;

use super::builder::FolderBuilder;
use super::fields::FieldFolder;
use super::lazy::{FixedFolder, LazyFile, LazyFolder};
use super::meta;
use super::names::OF_GROUPS;
use super::node::{Entry, EntryKind, Folder, Node};
use super::rasters::{self, Rasters};
use super::subarray::{DenseBoxes, FieldId, column};
use super::texts::Format;
use crate::array::Metadata;
use crate::error::{Error, Result};
use crate::export::boxes::{BoxedColumns, Boxes, Rows};
use crate::export::zarr::{self, Array, CHUNKS, METADATA};

/// The name of the folder.
pub const ZARR: &str = "zarr";

/// The names of more chunks along an axis are found and not listed.
const MOST_LISTED: u64 = 1 << 18;

/// Adds the Zarr group of an array.
pub fn add_to(builder: &mut FolderBuilder, fields: &FieldFolder) {
    for id in fields.attributes().chain(fields.dimensions()) {
        if let Err(reason) = zarr::check(&fields.describe(id)) {
            builder.leave_out(&format!("{ZARR}/{}", fields.names.of_field(id)), reason);
        }
    }
    let this = fields.clone();
    let make = move || Ok(group_folder(&Arc::new(zarr::zarr(&columns(&this)?)), this.modified));
    builder.add_unlisted_whole(ZARR, METADATA, Format::Zarr, Arc::new(LazyFolder::new(fields.modified, make)));
}

/// All that is shown, box by box, as the formats that say much of it are given it. No cell is read.
fn columns(fields: &FieldFolder) -> Result<BoxedColumns> {
    let fields = &rasters::without_padding(fields)?;
    let rasters = Rasters::of(fields)?;
    let sparse = fields.schema().is_sparse();
    let shape = fields.subarray.shape()?;
    let rows = |id: FieldId, count: u64| -> Result<Arc<dyn Boxes>> {
        let field = rasters.describe_all(id)?;
        let (subarray, described) = (fields.subarray.clone(), field.clone());
        Ok(Arc::new(Rows::new(field, count, move || column(&*subarray, id, described.clone()))))
    };
    let of_dimension = |(axis, id): (usize, FieldId)| -> Result<Arc<dyn Boxes>> {
        match (rasters.coordinates(axis), shape.get(if sparse { 0 } else { axis })) {
            (Some(coordinates), _) if !sparse => Ok(Arc::new(Rows::of(coordinates, 1 << 20))),
            (_, Some(&count)) => rows(id, count),
            _ => Err(Error::internal("a dimension without a length")),
        }
    };
    let of_attribute = |id: FieldId| -> Result<Arc<dyn Boxes>> {
        match shape.first() {
            Some(&count) if sparse => rows(id, count),
            _ => Ok(Arc::new(DenseBoxes::new(fields.subarray.clone(), id, rasters.describe_all(id)?)?)),
        }
    };
    Ok(BoxedColumns {
        sparse,
        dimensions: fields.dimensions().enumerate().map(of_dimension).collect::<Result<_>>()?,
        attributes: fields.attributes().map(of_attribute).collect::<Result<_>>()?,
        metadata: rasters.notes.of_array.clone(),
        georeference: rasters.georeference_of_all()?,
    })
}

/// The folder of a group, with all that is in it.
fn group_folder(group: &Arc<zarr::Group>, modified: SystemTime) -> FixedFolder {
    let mut folder = FixedFolder::new(modified);
    let this = zarr::Node::Group(group.clone());
    folder.add_file(METADATA, LazyFile::text(modified, move || Ok(this.metadata())));
    for (name, member) in &group.members {
        match member {
            zarr::Node::Group(inner) => folder.add_folder(name, group_folder(inner, modified)),
            zarr::Node::Array(array) => folder.add_folder(name, array_folder(array, modified)),
        }
    }
    folder
}

fn array_folder(array: &Arc<Array>, modified: SystemTime) -> FixedFolder {
    let mut folder = FixedFolder::new(modified);
    let this = zarr::Node::Array(array.clone());
    folder.add_file(METADATA, LazyFile::text(modified, move || Ok(this.metadata())));
    folder.add(CHUNKS, ChunkFolder::node(array, Vec::new(), modified));
    folder
}

/// A group as a Zarr group, whose members are what its own have under this name.
pub struct ZarrOfMembers<M> {
    members: Arc<dyn Folder>,
    metadata: Arc<M>,
}

impl<M: Fn() -> Result<Arc<Metadata>> + Send + Sync + 'static> ZarrOfMembers<M> {
    /// `members` is the folder of the group.
    pub fn new(members: Arc<dyn Folder>, metadata: M) -> Self {
        ZarrOfMembers { members, metadata: Arc::new(metadata) }
    }
}

impl<M: Fn() -> Result<Arc<Metadata>> + Send + Sync + 'static> Folder for ZarrOfMembers<M> {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        if name == METADATA {
            let metadata = self.metadata.clone();
            let text = move || Ok(zarr::of_group(&meta::for_formats(&*metadata()?)));
            return Ok(Some(Node::File(Arc::new(LazyFile::text(self.modified(), text)))));
        }
        match self.members.lookup(name)? {
            Some(Node::Folder(member)) if !OF_GROUPS.contains(&name) => member.lookup(ZARR),
            _ => Ok(None),
        }
    }

    fn list(&self) -> Result<Vec<Entry>> {
        let about = Entry { name: METADATA.to_owned(), kind: EntryKind::File };
        let members = self.members.list()?.into_iter().filter(|entry| !OF_GROUPS.contains(&entry.name.as_str()));
        Ok([about].into_iter().chain(members).collect())
    }

    fn modified(&self) -> SystemTime {
        self.members.modified()
    }
}

/// The chunks of an array whose first numbers are these.
struct ChunkFolder {
    array: Arc<Array>,
    numbers: Vec<u64>,
    /// How many chunks there are along the next axis.
    length: u64,
    modified: SystemTime,
}

impl ChunkFolder {
    /// The folder of the chunks that begin with these numbers; the chunk where they are all it has.
    fn node(array: &Arc<Array>, numbers: Vec<u64>, modified: SystemTime) -> Node {
        let array = array.clone();
        if let Some(&length) = array.grid().get(numbers.len()) {
            return Node::Folder(Arc::new(ChunkFolder { array, numbers, length, modified }));
        }
        let length = array.chunk_bytes();
        let make = move || array.chunk(&numbers)?.ok_or_else(|| Error::internal("a chunk outside of its grid"));
        let file = LazyFile::new(modified, make);
        Node::File(Arc::new(match length {
            Some(length) => file.with_length(length),
            None => file,
        }))
    }
}

impl Folder for ChunkFolder {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        // As they are listed: no sign, no zeros in front.
        let number = name.parse::<u64>().ok().filter(|&number| number < self.length && number.to_string() == name);
        Ok(number.map(|number| {
            let numbers = self.numbers.iter().copied().chain([number]).collect();
            ChunkFolder::node(&self.array, numbers, self.modified)
        }))
    }

    fn list(&self) -> Result<Vec<Entry>> {
        if self.length > MOST_LISTED {
            return Err(Error::unsupported(format!("a list of {} chunks; each is found by its name", self.length)));
        }
        let is_last = self.numbers.len() + 1 == self.array.grid().len();
        let kind = if is_last { EntryKind::File } else { EntryKind::Folder };
        Ok((0..self.length).map(|number| Entry { name: number.to_string(), kind }).collect())
    }

    fn modified(&self) -> SystemTime {
        self.modified
    }
}
