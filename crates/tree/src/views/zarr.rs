//! `zarr/`: an array as a Zarr group, whose arrays are folders of chunks. `zarr2/`: the same for readers that support
//! only version 2 of Zarr.

use std::sync::Arc;
use std::time::SystemTime;

use tilefs_base::error::{Error, Result};
use tilefs_export::Column;
use tilefs_export::column::AuxiliaryCoordinates;
use tilefs_export::column::boxes::{BoxedColumns, BoxedRows, Boxes};
use tilefs_export::column::samples::with_channels;
use tilefs_export::zarr::second::{self, ONLY_CHUNK};
use tilefs_export::zarr::{self, CHUNKS, METADATA, ZarrArray, ZarrGroup, ZarrNode, ZarrVersion};
use tilefs_reader::array::Metadata;
use tilefs_vfs::node::lazy::{FixedFolder, LazyFile, LazyFolder};
use tilefs_vfs::node::named::NamedFolder;
use tilefs_vfs::node::quoting::{literal, shell_word};
use tilefs_vfs::node::{Entry, EntryKind, Folder, NODE, Node};

use crate::cells::{DenseBoxes, FieldId, column};
use crate::fields::FieldFolder;
use crate::fields::array_form::ZarrForm;
use crate::fields::meta;
use crate::fields::rasters::{self, Rasters};
use crate::names::OF_GROUPS;
use crate::sizing::Sizing;
use crate::views::builder::FolderBuilder;
use crate::views::chunk_series::ChunkSeries;
use crate::views::commands::{Command, FileFinder};
use crate::views::facts::{ReadmeTask, Shown, ViewFacts};
use crate::views::view::{Add, CommandTask, View};

/// The name of the folder of version 3.
pub const ZARR: &str = "zarr";

/// The name of the folder of version 2.
pub const ZARR2: &str = "zarr2";

/// The name under which a group records why it is not annotated data.
const ANNOTATED: &str = "AnnData";

/// The name under which a group records why adjacent samples have no axis of their own.
const CHANNELS: &str = "channels";

/// Maximum number of listed chunks along an axis; the others are found by name.
const MAX_LISTED: u64 = 1 << 18;

/// The whole as a group of Zarr, version 3.
pub static ZARR_VIEW: View = View {
    facts: ViewFacts {
        name: "Zarr",
        folder: ZARR,
        files: &[METADATA],
        media_type: "application/json",
        reader: "a Zarr group (open the folder): xarray, zarr, dask, anndata, napari",
        lacks: "numbers of varying count, and text that is not UTF-8",
        job: Some(ReadmeTask::new(12, "Chunks on many cores: dask, xarray, Zarr")),
        holds_values: true,
        shown: Shown::With("zarr"),
        ..ViewFacts::PLAIN
    },
    add: Add::Whole(|builder, fields, is_slice| {
        note_missing_arrays(builder, fields, is_slice, ZARR);
        builder.add_unlisted_whole(ZARR, METADATA, &ZARR_VIEW.facts, folder(fields, is_slice, ZarrVersion::Third));
    }),
    commands: &[(CommandTask::Chunks, open)],
    ..View::PLAIN
};

/// The same group in version 2: the same chunks, described by other files.
pub static ZARR2_VIEW: View = View {
    facts: ViewFacts {
        name: "Zarr, version 2",
        folder: ZARR2,
        files: &[second::GROUP],
        reader: "the same in version 2 of Zarr: zarr-python before 3, anndata before 0.11, GDAL",
        lacks: "numbers of varying count, and text that is not UTF-8",
        job: Some(ReadmeTask::new(13, "The same for Zarr 2: older anndata, xarray, GDAL")),
        holds_values: true,
        shown: Shown::WithAll,
        ..ViewFacts::PLAIN
    },
    add: Add::Whole(|builder, fields, is_slice| {
        note_missing_arrays(builder, fields, is_slice, ZARR2);
        let folder = folder(fields, is_slice, ZarrVersion::Second);
        builder.add_unlisted_whole(ZARR2, second::GROUP, &ZARR2_VIEW.facts, folder);
    }),
    ..View::PLAIN
};

/// Notes the fields of which the group in a folder has no array.
fn note_missing_arrays(builder: &mut FolderBuilder, fields: &FieldFolder, is_slice: bool, folder: &str) {
    let check = form(fields, is_slice).map_or(zarr::check as fn(&_) -> _, |form| form.check);
    for id in fields.attributes().chain(fields.dimensions()) {
        if let Err(reason) = check(&fields.describe(id)) {
            builder.leave_out(&format!("{folder}/{}", fields.names.of_field(id)), reason);
        }
    }
}

/// Returns the name of the folder of a version.
fn name_of(version: ZarrVersion) -> &'static str {
    match version {
        ZarrVersion::Second => ZARR2,
        ZarrVersion::Third => ZARR,
    }
}

/// Returns the form of an array: a whole array is in the form of its domain, everything else a group of columns.
fn form(fields: &FieldFolder, is_slice: bool) -> Option<ZarrForm> {
    fields.form.zarr.filter(|_| !is_slice)
}

/// Returns the folder of the Zarr group of an array, or of a slice of it.
fn folder(fields: &FieldFolder, is_slice: bool, version: ZarrVersion) -> Arc<dyn Folder> {
    let form = form(fields, is_slice);
    let this = fields.clone();
    let samples = fields.form.samples.filter(|_| !is_slice);
    let make = move || Ok(group_folder(&Arc::new(group(&this, form, samples)?), version, this.modified));
    let whole = Arc::new(LazyFolder::new(fields.modified, make));
    match fields.schema().is_sparse() {
        true => Arc::new(ZarrOfTable { fields: fields.clone(), version, is_annotated: form.is_some(), whole }),
        false => whole,
    }
}

fn open(finder: &FileFinder<'_>) -> Option<Command> {
    let file = finder.any(&ZARR_VIEW.facts)?;
    let path = finder.path(file);
    let folder = literal(path.strip_suffix("/zarr.json").unwrap_or(&path));
    if let Some(element) = finder.annotated {
        let program = format!("import anndata, zarr; print(anndata.io.read_elem(zarr.open({folder}, mode=\"r\")))");
        let purpose = format!("All of it as {element} for anndata and scanpy, in Zarr");
        return Some(Command::new(purpose, format!("python3 -c {}", shell_word(&program))));
    }
    let program = format!("import xarray; print(xarray.open_zarr({folder}))");
    let purpose = "All of it as a Zarr group, for xarray and dask: a chunk for each tile";
    Some(Command::new(purpose, format!("python3 -c {}", shell_word(&program))))
}

/// The Zarr group of a table. A shape requires the number of rows, so before very many rows are counted, the group
/// shows only its own metadata, without the metadata of its arrays, and the names of its arrays. Reading the metadata
/// of an array counts the rows.
struct ZarrOfTable {
    fields: FieldFolder,
    version: ZarrVersion,
    /// Whether it may be in AnnData's form, which is not known before its rows are counted.
    is_annotated: bool,
    whole: Arc<LazyFolder>,
}

impl ZarrOfTable {
    /// Returns the maximum number of rows, if it is more than is counted for a listing.
    fn uncounted_rows(fields: &FieldFolder) -> Result<Option<u64>> {
        let rows = fields.subarray.row_count()?;
        Ok(Some(rows.most()).filter(|most| !Sizing::Count.is_listed(*most, rows.exact().is_some())))
    }

    /// Returns the group as it would be with `rows` rows.
    fn outline(&self, rows: u64) -> Result<ZarrGroup> {
        Ok(zarr::zarr(&columns_of(&self.fields, vec![rows])?))
    }
}

impl Folder for ZarrOfTable {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        let Some(rows) = Self::uncounted_rows(&self.fields)? else { return self.whole.lookup(name) };
        if self.is_annotated {
            return self.whole.lookup(name);
        }
        let outline = self.outline(rows)?;
        let is_member = outline.members.iter().any(|(member, _)| member == name);
        if let Some(&file) = self.version.files_of_group().iter().find(|file| **file == name) {
            let (fields, outline) = (self.fields.clone(), ZarrNode::Group(Arc::new(outline)));
            let make = move || match Self::uncounted_rows(&fields)? {
                Some(_) => Ok((outline.own_text(file), false)),
                None => Ok((ZarrNode::Group(Arc::new(group(&fields, None, None)?)).text(file), true)),
            };
            return Ok(Some(Node::File(Arc::new(LazyFile::transient_text(self.modified(), make)))));
        }
        let member = || uncounted_member(self.fields.clone(), self.whole.clone(), name.to_owned());
        Ok(is_member.then(|| Node::Folder(Arc::new(member()))))
    }

    fn list(&self) -> Result<Vec<Entry>> {
        let Some(rows) = Self::uncounted_rows(&self.fields)? else { return self.whole.list() };
        if self.is_annotated {
            return Ok(Vec::new());
        }
        let members = self.outline(rows)?.members;
        let members = members.into_iter().map(|(name, _)| Entry::folder(name));
        Ok(files_of_group(self.version).chain(members).collect())
    }

    fn modified(&self) -> SystemTime {
        self.fields.modified
    }

    fn memory(&self) -> usize {
        NODE + self.whole.memory()
    }
}

/// Returns the folder of an array in a group whose rows were not counted. It lists nothing before the rows are counted; a
/// look-up in it counts them.
fn uncounted_member(fields: FieldFolder, whole: Arc<LazyFolder>, name: String) -> NamedFolder {
    let modified = fields.modified;
    let counted = Arc::new(move || -> Result<Option<Arc<dyn Folder>>> {
        Ok(match whole.lookup(&name)? {
            Some(Node::Folder(folder)) => Some(folder),
            _ => None,
        })
    });
    let to_list = counted.clone();
    let find = move |name: &str| Ok(counted()?.map_or(Ok(None), |folder| folder.lookup(name))?.ok_or(None));
    NamedFolder::new(modified, find).listing(move || match ZarrOfTable::uncounted_rows(&fields)? {
        Some(_) => Ok(Vec::new()),
        None => to_list()?.map_or(Ok(Vec::new()), |folder| folder.list()),
    })
}

/// Returns the group of an array, with the reason why it is not in this form. `samples` adjacent values of a pixel have an
/// axis of their own.
fn group(fields: &FieldFolder, form: Option<ZarrForm>, samples: Option<u64>) -> Result<ZarrGroup> {
    let reason = match form.map(|form| (form.make)(fields.subarray.array())).transpose()? {
        Some(Ok(group)) => return Ok(group),
        Some(Err(reason)) => Some(reason),
        None => None,
    };
    if let Some(samples) = samples {
        return Ok(match with_channels(columns(fields)?, samples) {
            Ok(columns) => zarr::zarr(&columns),
            Err(reason) => {
                let mut group = zarr::zarr(&columns(fields)?);
                group.leave_out(CHANNELS, reason.to_string());
                group
            }
        });
    }
    let mut group = zarr::zarr(&columns(fields)?);
    if let Some(reason) = reason {
        group.leave_out(ANNOTATED, reason.to_string());
    }
    Ok(group)
}

/// Returns everything shown, box by box, with all descriptions. Reads no cell.
fn columns(fields: &FieldFolder) -> Result<BoxedColumns> {
    let fields = &rasters::without_padding(fields)?;
    columns_of(fields, fields.subarray.shape()?)
}

/// Like [`columns`], for cells of this shape.
fn columns_of(fields: &FieldFolder, shape: Vec<u64>) -> Result<BoxedColumns> {
    let rasters = Rasters::of(fields)?;
    let sparse = fields.schema().is_sparse();
    let rows = |id: FieldId, count: u64| -> Result<Arc<dyn Boxes>> {
        let field = rasters.describe_all(id)?;
        let (subarray, described) = (fields.subarray.clone(), field.clone());
        Ok(Arc::new(BoxedRows::new(field, count, move || column(&*subarray, id, described.clone()))))
    };
    let of_label = |column: Column| -> Arc<dyn Boxes> { Arc::new(BoxedRows::of(column, 1 << 20)) };
    let (mut dimensions, mut auxiliary) = (Vec::new(), Vec::new());
    for (axis, id) in fields.dimensions().enumerate() {
        let coordinates = rasters.coordinates(axis)?;
        dimensions.push(match (coordinates.main, shape.get(if sparse { 0 } else { axis })) {
            (Some(coordinates), _) => of_label(coordinates),
            (None, Some(&count)) => rows(id, count)?,
            (None, None) => return Err(Error::internal("a dimension without a length")),
        });
        let further = coordinates.auxiliary.into_iter().map(of_label);
        auxiliary.extend(further.map(|column| AuxiliaryCoordinates { axis, column }));
    }
    let of_attribute = |id: FieldId| -> Result<Arc<dyn Boxes>> {
        match shape.first() {
            Some(&count) if sparse => rows(id, count),
            _ => Ok(Arc::new(DenseBoxes::new(fields.subarray.clone(), id, rasters.describe_all(id)?)?)),
        }
    };
    Ok(BoxedColumns {
        sparse,
        dimensions,
        auxiliary,
        attributes: fields.attributes().map(of_attribute).collect::<Result<_>>()?,
        metadata: rasters.told.notes.of_array.clone(),
        georeference: rasters.georeference_of_all()?,
    })
}

/// Lists the files that describe a group.
fn files_of_group(version: ZarrVersion) -> impl Iterator<Item = Entry> {
    version.files_of_group().iter().map(|&name| Entry::file(name))
}

/// Returns the folder of a group, with everything in it.
pub(crate) fn group_folder(group: &Arc<ZarrGroup>, version: ZarrVersion, modified: SystemTime) -> FixedFolder {
    let mut folder = described(&ZarrNode::Group(group.clone()), version, modified);
    for (name, member) in &group.members {
        match member {
            ZarrNode::Group(inner) => folder.add_folder(name, group_folder(inner, version, modified)),
            ZarrNode::Array(array) => folder.add(name, Node::Folder(array_folder(array, version, modified))),
        }
    }
    folder
}

/// Returns a folder of the files that describe a group or an array.
fn described(node: &ZarrNode, version: ZarrVersion, modified: SystemTime) -> FixedFolder {
    let mut folder = FixedFolder::new(modified);
    for &file in node.files(version) {
        let node = node.clone();
        folder.add_file(file, LazyFile::text(modified, move || Ok(node.text(file))));
    }
    folder
}

fn array_folder(array: &Arc<ZarrArray>, version: ZarrVersion, modified: SystemTime) -> Arc<dyn Folder> {
    let mut files = described(&ZarrNode::Array(array.clone()), version, modified);
    let chunks = chunks(&Arc::new(ChunkSeries::new(array.clone())), Vec::new(), modified);
    match (version, chunks) {
        (ZarrVersion::Second, Node::Folder(chunks)) => return Arc::new(ChunksBesideFiles { files, chunks }),
        (ZarrVersion::Second, only) => files.add(ONLY_CHUNK, only),
        (ZarrVersion::Third, chunks) => files.add(CHUNKS, chunks),
    }
    Arc::new(files)
}

/// The folder of an array in version 2, which has no folder of its own for the chunks.
struct ChunksBesideFiles {
    files: FixedFolder,
    chunks: Arc<dyn Folder>,
}

impl Folder for ChunksBesideFiles {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        match self.files.lookup(name)? {
            None => self.chunks.lookup(name),
            file => Ok(file),
        }
    }

    fn list(&self) -> Result<Vec<Entry>> {
        Ok(self.files.list()?.into_iter().chain(self.chunks.list()?).collect())
    }

    fn modified(&self) -> SystemTime {
        self.files.modified()
    }

    fn memory(&self) -> usize {
        self.files.memory()
    }
}

/// A TileDB group as a Zarr group, whose members are those of its own folder.
pub struct ZarrOfMembers<M> {
    members: Arc<dyn Folder>,
    metadata: Arc<M>,
    version: ZarrVersion,
    /// The reason why it is not annotated data, if that could be expected.
    not_annotated: Option<String>,
}

impl<M: Fn() -> Result<Arc<Metadata>> + Send + Sync + 'static> ZarrOfMembers<M> {
    /// Creates the group; `members` is the folder of the TileDB group.
    pub fn new(members: Arc<dyn Folder>, metadata: M, version: ZarrVersion) -> Self {
        ZarrOfMembers { members, metadata: Arc::new(metadata), version, not_annotated: None }
    }

    /// Records the reason why it is not annotated data, if there is one.
    pub fn not_annotated(mut self, reason: Option<String>) -> Self {
        self.not_annotated = reason;
        self
    }
}

impl<M: Fn() -> Result<Arc<Metadata>> + Send + Sync + 'static> Folder for ZarrOfMembers<M> {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        let (metadata, reason) = (self.metadata.clone(), self.not_annotated.clone());
        if let Some(file) =
            file_of_group(name, self.version, self.modified(), move || Ok((metadata()?, reason.clone())))
        {
            return Ok(Some(file));
        }
        match self.members.lookup(name)? {
            Some(Node::Folder(member)) if !OF_GROUPS.contains(&name) => member.lookup(name_of(self.version)),
            _ => Ok(None),
        }
    }

    fn list(&self) -> Result<Vec<Entry>> {
        let members = self.members.list()?.into_iter().filter(|entry| !OF_GROUPS.contains(&entry.name.as_str()));
        Ok(files_of_group(self.version).chain(members).collect())
    }

    fn modified(&self) -> SystemTime {
        self.members.modified()
    }

    fn place(&self) -> Option<Arc<[u8]>> {
        self.members.place()
    }
}

/// Returns the file of this name that describes a TileDB group, if there is one. `read` returns the metadata of the
/// group, and the reason why it is not annotated data, if that could be expected.
pub(crate) fn file_of_group(
    name: &str,
    version: ZarrVersion,
    modified: SystemTime,
    read: impl Fn() -> Result<(Arc<Metadata>, Option<String>)> + Send + Sync + 'static,
) -> Option<Node> {
    let &file = version.files_of_group().iter().find(|file| **file == name)?;
    let text = move || {
        let (metadata, reason) = read()?;
        let left_out = reason.as_deref().map(|reason| (ANNOTATED, reason));
        let group = zarr::of_group(&meta::for_formats(&metadata), left_out);
        Ok(ZarrNode::Group(Arc::new(group)).own_text(file))
    };
    Some(Node::File(Arc::new(LazyFile::text(modified, text))))
}

/// Returns the folder of the chunks of an array whose numbers begin with `numbers`, or the chunk itself if the numbers are
/// complete.
fn chunks(series: &Arc<ChunkSeries>, numbers: Vec<u64>, modified: SystemTime) -> Node {
    let series = series.clone();
    let Some(&length) = series.grid().get(numbers.len()) else {
        let length = series.array().chunk_bytes();
        let file = LazyFile::new(modified, move || series.open(&numbers));
        return Node::File(Arc::new(file.with_length(length)));
    };
    let is_last = numbers.len() + 1 == series.grid().len();
    let folder = NamedFolder::new(modified, move |name| {
        // Only in the form in which they are listed: no sign, no leading zeros.
        let number = name.parse::<u64>().ok().filter(|&number| number < length && number.to_string() == name);
        let of_number = |number| chunks(&series, numbers.iter().copied().chain([number]).collect(), modified);
        Ok(number.map(of_number).ok_or(None))
    });
    Node::Folder(Arc::new(folder.listing(move || {
        if length > MAX_LISTED {
            return Err(Error::unsupported(format!("a list of {length} chunks; each is found by its name")));
        }
        let kind = if is_last { EntryKind::File } else { EntryKind::Folder };
        Ok((0..length).map(|number| Entry { name: number.to_string(), kind }).collect())
    })))
}
