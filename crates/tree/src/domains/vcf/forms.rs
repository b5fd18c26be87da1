//! The forms of a VCF file of a dataset: text, text in BGZF, BCF, and the indexes of the latter two; and those of the
//! files of PLINK.

use std::sync::Arc;
use std::time::SystemTime;

use tilefs_base::error::Result;
use tilefs_base::lru_cache::LruCache;
use tilefs_vcf::file::{Encoding, VariantText};
use tilefs_vcf::{Bgzf, BgzfForward, IndexFormat};
use tilefs_vfs::node::lazy::{LazyFile, Remark};
use tilefs_vfs::node::{File, NODE};

/// Number of recently used files whose measured lengths are cached.
const KEPT: usize = 16;

/// The part of a variant file: its records, or an index of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FilePart {
    /// The plain records.
    Whole,
    /// The records in BGZF.
    Bgzf,
    /// The index of the file in BGZF.
    Index(IndexFormat),
}

/// The form of a file: its encoding, and the part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileForm {
    encoding: Encoding,
    part: FilePart,
}

const fn form(encoding: Encoding, part: FilePart) -> FileForm {
    FileForm { encoding, part }
}

/// The endings of the forms.
const ENDINGS: [(FileForm, &str); 6] = [
    (form(Encoding::Text, FilePart::Whole), ".vcf"),
    (form(Encoding::Text, FilePart::Bgzf), ".vcf.gz"),
    (form(Encoding::Text, FilePart::Index(IndexFormat::Tbi)), ".vcf.gz.tbi"),
    (form(Encoding::Text, FilePart::Index(IndexFormat::Csi)), ".vcf.gz.csi"),
    (form(Encoding::Bcf, FilePart::Bgzf), ".bcf"),
    (form(Encoding::Bcf, FilePart::Index(IndexFormat::Csi)), ".bcf.csi"),
];

/// The endings of PLINK's files that are made of records.
const PLINK_ENDINGS: [(FileForm, &str); 2] =
    [(form(Encoding::Bed, FilePart::Whole), ".bed"), (form(Encoding::Bim, FilePart::Whole), ".bim")];

/// The endings of listed files. Measuring any other form would take another pass over all records.
pub const LISTED: [&str; 2] = [".vcf", ".vcf.gz"];

impl FileForm {
    /// Returns the form of a file, and its name without ending.
    pub fn of_name(name: &str) -> Option<(Self, &str)> {
        Self::with_ending(&ENDINGS, name)
    }

    /// Returns the form of a file of PLINK, and its name without ending.
    pub fn of_plink_name(name: &str) -> Option<(Self, &str)> {
        Self::with_ending(&PLINK_ENDINGS, name)
    }

    fn with_ending<'n>(endings: &[(FileForm, &str)], name: &'n str) -> Option<(Self, &'n str)> {
        endings.iter().find_map(|(form, ending)| Some((*form, name.strip_suffix(ending)?)))
    }
}

/// Opens the records of a file.
pub type FindRecords = Arc<dyn Fn(Encoding) -> Result<Arc<VariantText>> + Send + Sync>;

/// Recently used files. Memory: the positions of the lines of each, 32 bytes per 32 KiB or less.
pub struct KeptFiles {
    modified: SystemTime,
    kept: LruCache<(String, FileForm), (Arc<LazyFile>, Remark)>,
}

impl KeptFiles {
    pub fn new(modified: SystemTime) -> Self {
        KeptFiles { modified, kept: LruCache::new(KEPT) }
    }

    /// Returns a form of the file with a name, given without its ending. `find` opens its records when they are first
    /// needed.
    pub fn file(&self, stem: &str, form: FileForm, find: &FindRecords) -> Arc<LazyFile> {
        self.file_and_remark(stem, form, find).0
    }

    fn file_and_remark(&self, stem: &str, form: FileForm, find: &FindRecords) -> (Arc<LazyFile>, Remark) {
        let key = (stem.to_owned(), form);
        if let Some(kept) = self.kept.get(&key) {
            return kept;
        }
        let FileForm { encoding, part } = form;
        let find_records = find.clone();
        let find_in = move || find_records(encoding);
        let in_sequence = find_in.clone();
        // All forms share the measured lengths, and the remark.
        let whole = || self.file_and_remark(stem, FileForm { encoding, part: FilePart::Whole }, find);
        let (file, remark) = match part {
            FilePart::Whole => {
                let remark = Remark::default();
                let [of_content, of_sequence] = [remark.clone(), remark.clone()];
                let file = LazyFile::new(self.modified, move || find_in()?.content(&of_content))
                    .with_forward(move || in_sequence()?.forward(&of_sequence));
                (file, remark)
            }
            FilePart::Bgzf => {
                let (whole, remark) = whole();
                let of_sequence = remark.clone();
                let file = LazyFile::new(self.modified, move || Ok(Arc::new(Bgzf::new(whole.open()?)) as _))
                    .with_forward(move || Ok(BgzfForward::new(in_sequence()?.forward(&of_sequence)?)));
                (file, remark)
            }
            FilePart::Index(format) => {
                let (whole, remark) = whole();
                let make = move || Ok(Arc::new(find_in()?.index(&*whole.open()?, format)?) as _);
                (LazyFile::new(self.modified, make), remark)
            }
        };
        let made = (Arc::new(file.with_remark(remark.clone())), remark);
        self.kept.put(key, made.clone());
        made
    }

    /// Returns the approximate memory in bytes of the cached nodes.
    pub fn memory(&self) -> usize {
        NODE * self.kept.count()
    }
}
