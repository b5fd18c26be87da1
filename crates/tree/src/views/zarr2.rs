//! `zarr2/`: the contents of `zarr/` for readers that support only version 2 of Zarr. Each folder is one of `zarr/`
//! with other metadata files, and the same chunks without the folder around them.

use std::sync::Arc;
use std::time::SystemTime;

use tilefs_export::Content;
use tilefs_export::zarr::second::{self, Described, ONLY_CHUNK, described};
use tilefs_export::zarr::{CHUNKS, METADATA};
use tilefs_format::error::{Error, Result};

use crate::node::lazy::LazyFile;
use crate::node::{Entry, EntryKind, Folder, Node};
use tilefs_reader::array::SingleFlight;

use crate::views::view::{Add, Job, Shown, View};
use crate::views::zarr::ZARR;

/// The name of the folder.
pub const ZARR2: &str = "zarr2";

/// The same group in version 2.
pub static ZARR2_VIEW: View = View {
    name: "Zarr, version 2",
    folder: ZARR2,
    files: &[second::GROUP],
    reader: "the same in version 2 of Zarr: zarr-python before 3, anndata before 0.11, GDAL",
    job: Some(Job::new(13, "The same for Zarr 2: older anndata, xarray, GDAL")),
    holds_values: true,
    shown: Shown::WithAll,
    add: Add::Whole(|builder, _, _| {
        // A folder under construction has nodes that are known, so looking one up reads nothing.
        if let Ok(Some(Node::Folder(zarr))) = builder.folder.lookup(ZARR) {
            builder.add_unlisted_whole(ZARR2, second::GROUP, &ZARR2_VIEW, Arc::new(SecondVersion::new(zarr)));
        }
    }),
    ..View::PLAIN
};

/// A group or an array of version 3 in version 2. Memory: that of its metadata, once used.
pub struct SecondVersion {
    of: Arc<dyn Folder>,
    described: SingleFlight<Arc<Described>>,
}

impl SecondVersion {
    /// Creates the folder; `of` is the folder of a group or an array of version 3. Reads nothing.
    pub fn new(of: Arc<dyn Folder>) -> Self {
        SecondVersion { of, described: SingleFlight::new() }
    }

    fn described(&self) -> Result<Arc<Described>> {
        self.described.get_or_retry(|| self.describe()).cloned()
    }

    fn describe(&self) -> Result<Arc<Described>> {
        let Some(Node::File(file)) = self.of.lookup(METADATA)? else {
            return Err(Error::internal("a folder of Zarr without metadata"));
        };
        let content = file.open()?;
        let mut text = vec![0; usize::try_from(content.len()).unwrap_or(0)];
        content.read_at(0, &mut text)?;
        let found = serde_json::from_slice(&text).ok().and_then(|metadata| described(&metadata));
        found.map(Arc::new).ok_or_else(|| Error::internal("Zarr metadata that version 2 cannot express"))
    }
}

impl Folder for SecondVersion {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        let described = self.described()?;
        if let Some((_, text)) = described.files.iter().find(|(known, _)| *known == name) {
            let text: Arc<dyn Content> = Arc::new(text.clone().into_bytes());
            return Ok(Some(Node::File(Arc::new(LazyFile::new(self.modified(), move || Ok(text.clone()))))));
        }
        if name == METADATA {
            return Ok(None);
        }
        if !described.is_array {
            return Ok(match self.of.lookup(name)? {
                Some(Node::Folder(member)) => Some(Node::Folder(Arc::new(SecondVersion::new(member)))),
                _ => None,
            });
        }
        match self.of.lookup(CHUNKS)? {
            Some(Node::Folder(chunks)) => chunks.lookup(name),
            only => Ok(only.filter(|_| name == ONLY_CHUNK)),
        }
    }

    fn why_absent(&self, name: &str) -> Option<String> {
        self.of.why_absent(name)
    }

    fn list(&self) -> Result<Vec<Entry>> {
        let described = self.described()?;
        let file = |name: &str| Entry { name: name.to_owned(), kind: EntryKind::File };
        let own = described.files.iter().map(|(name, _)| file(name));
        let others = match (described.is_array, described.is_scalar) {
            (false, _) => self.of.list()?.into_iter().filter(|entry| entry.name != METADATA).collect(),
            (true, true) => vec![file(ONLY_CHUNK)],
            (true, false) => match self.of.lookup(CHUNKS)? {
                Some(Node::Folder(chunks)) => chunks.list()?,
                _ => Vec::new(),
            },
        };
        Ok(own.chain(others).collect())
    }

    fn modified(&self) -> SystemTime {
        self.of.modified()
    }

    fn source(&self) -> Option<u64> {
        self.of.source()
    }

    fn memory(&self) -> usize {
        let texts = self.described.get().map_or(0, |known| known.files.iter().map(|(_, text)| text.len()).sum());
        self.of.memory().saturating_add(texts)
    }
}
