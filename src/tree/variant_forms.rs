//! The forms of a VCF file of a dataset: its text, the text in BGZF, and the indexes of the latter.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use lru::LruCache;
use tilefs_export::vcf::{self, IndexFormat};
use tilefs_export::{Content, Forward};
use tilefs_format::error::Result;

use super::lazy::LazyFile;
use super::node::{File, NODE};

/// Number of recently used files whose measured lengths are kept.
const KEPT: usize = 16;

/// A form of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    Text,
    Bgzf,
    /// Found by name only: making one reads the whole text.
    Index(IndexFormat),
}

/// The endings of the forms.
pub const ENDINGS: [(Form, &str); 4] = [
    (Form::Text, ".vcf"),
    (Form::Bgzf, ".vcf.gz"),
    (Form::Index(IndexFormat::Tbi), ".vcf.gz.tbi"),
    (Form::Index(IndexFormat::Csi), ".vcf.gz.csi"),
];

impl Form {
    /// Returns the form of a file, and its name without ending.
    pub fn of_name(name: &str) -> Option<(Self, &str)> {
        ENDINGS.iter().find_map(|(form, ending)| Some((*form, name.strip_suffix(ending)?)))
    }
}

/// Records that are a VCF file.
pub trait VcfRecords: Send + Sync {
    /// Returns the text. Its length takes a pass over all records, unless an earlier mount has saved what it found.
    ///
    /// # Errors
    /// Fails if a record cannot be read or shown.
    fn content(self: Arc<Self>) -> Result<Arc<dyn Content>>;

    /// Returns the same bytes in sequence: the first ones before any but the first records are read.
    ///
    /// # Errors
    /// Fails if the header cannot be a text.
    fn forward(self: Arc<Self>) -> Result<Box<dyn Forward>>;

    /// Returns the index of the text in BGZF. It is made of all lines, unless an earlier mount has saved it.
    ///
    /// # Errors
    /// As for [`vcf::tabix`].
    fn index(&self, text: &dyn Content, format: IndexFormat) -> Result<Vec<u8>>;
}

/// Finds the records of a file.
pub type FindRecords = Arc<dyn Fn() -> Result<Arc<dyn VcfRecords>> + Send + Sync>;

/// Recently used files. Memory: the positions of the lines of each, 32 bytes per 32 KiB or less.
pub struct KeptFiles {
    modified: SystemTime,
    kept: Mutex<LruCache<(String, Form), Arc<LazyFile>>>,
}

impl KeptFiles {
    pub fn new(modified: SystemTime) -> Self {
        let kept = Mutex::new(LruCache::new(NonZeroUsize::new(KEPT).unwrap_or(NonZeroUsize::MIN)));
        KeptFiles { modified, kept }
    }

    /// Returns a form of the file with a name, which lacks the ending. `find` returns its records; it is called when they
    /// are first needed.
    pub fn file(&self, stem: &str, form: Form, find: &FindRecords) -> Arc<LazyFile> {
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (stem.to_owned(), form);
        if let Some(file) = kept().get(&key) {
            return file.clone();
        }
        let (whole, sequence) = (find.clone(), find.clone());
        let file = match form {
            Form::Text => {
                LazyFile::new(self.modified, move || whole()?.content()).with_forward(move || sequence()?.forward())
            }
            Form::Bgzf => {
                let text = self.file(stem, Form::Text, find);
                LazyFile::new(self.modified, move || Ok(Arc::new(vcf::Bgzf::new(text.open()?)) as _))
                    .with_forward(move || Ok(vcf::BgzfForward::new(sequence()?.forward()?)))
            }
            Form::Index(format) => {
                let text = self.file(stem, Form::Text, find);
                LazyFile::new(self.modified, move || Ok(Arc::new(whole()?.index(&*text.open()?, format)?) as _))
            }
        };
        let file = Arc::new(file);
        kept().put(key, file.clone());
        file
    }

    /// Returns the approximate memory in bytes of the nodes that are kept.
    pub fn memory(&self) -> usize {
        NODE * self.kept.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}
