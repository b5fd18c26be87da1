//! `vcf/` of a dataset of TileDB-VCF: each sample as a VCF file, whole or in a region.
//!
//! `vcf/SAMPLE.vcf` has the records of the sample, `vcf/slice/1:12000-13000/SAMPLE.vcf` those that overlap a region.
//! `SAMPLE.vcf.gz` beside it is the same in BGZF, for readers that look for records by position in the index
//! `SAMPLE.vcf.gz.tbi`. `vcf/samples.txt` has the names of all samples.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use lru::LruCache;
use tilefs_export::vcf;
use tilefs_format::error::Result;
use tilefs_reader::percent;

use super::lazy::LazyFile;
use super::listing::Sizing;
use super::names::escape;
use super::node::{Entry, EntryKind, File, Folder, NODE, Node};
use super::variant_rows::{ALL, Region, SampleFile};
use super::variants::VariantDataset;

/// The name of the folder.
pub const VCF: &str = "vcf";

/// The endings of its files: the text, the text in BGZF, and the index of the latter.
const ENDINGS: [(Form, &str); 3] = [(Form::Text, ".vcf"), (Form::Bgzf, ".vcf.gz"), (Form::Index, ".vcf.gz.tbi")];

/// A form of the file of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Form {
    Text,
    Bgzf,
    /// Found by name only: making it reads the whole text.
    Index,
}

/// The folder of regions.
const SLICE: &str = "slice";

/// The names of all samples, a line each.
pub const SAMPLES: &str = "samples.txt";

/// Number of recently used files whose measured lengths are kept.
const KEPT: usize = 16;

/// The folder, for all records or those of a region. Memory: the positions of the lines of recently used files, 32 bytes
/// per 32 KiB.
pub struct VariantFiles {
    dataset: Arc<VariantDataset>,
    region: Option<Arc<Region>>,
    modified: SystemTime,
    kept: Mutex<LruCache<(String, Form), Arc<LazyFile>>>,
}

impl VariantFiles {
    /// Creates the folder of all records.
    pub fn new(dataset: Arc<VariantDataset>, modified: SystemTime) -> Self {
        Self::of(dataset, None, modified)
    }

    fn of(dataset: Arc<VariantDataset>, region: Option<Arc<Region>>, modified: SystemTime) -> Self {
        let kept = Mutex::new(LruCache::new(NonZeroUsize::new(KEPT).unwrap_or(NonZeroUsize::MIN)));
        VariantFiles { dataset, region, modified, kept }
    }

    /// Returns a form of the file of a sample; `stem` is the name of its files without ending.
    fn file(&self, stem: &str, sample: &[u8], form: Form) -> Result<Option<Arc<LazyFile>>> {
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (stem.to_owned(), form);
        if let Some(file) = kept().get(&key) {
            return Ok(Some(file.clone()));
        }
        let text = match form {
            Form::Text => None,
            Form::Bgzf | Form::Index => match self.file(stem, sample, Form::Text)? {
                Some(text) => Some(text),
                None => return Ok(None),
            },
        };
        let Some(sample) = self.dataset.sample(sample)? else { return Ok(None) };
        let (dataset, region) = (self.dataset.clone(), self.region.clone());
        let records = move || SampleFile::new(dataset.clone(), sample.clone(), region.as_deref());
        let file = Arc::new(match (form, text) {
            (Form::Index, Some(text)) => {
                LazyFile::new(self.modified, move || Ok(Arc::new(vcf::tabix(&*text.open()?)?) as _))
            }
            (Form::Bgzf, Some(text)) => {
                LazyFile::new(self.modified, move || Ok(Arc::new(vcf::Bgzf::new(text.open()?)) as _))
                    .with_forward(move || Ok(vcf::BgzfForward::new(records()?.forward()?)))
            }
            _ => {
                let records = Arc::new(records);
                let whole = records.clone();
                LazyFile::new(self.modified, move || whole()?.content()).with_forward(move || records()?.forward())
            }
        });
        kept().put(key, file.clone());
        Ok(Some(file))
    }
}

impl Folder for VariantFiles {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        match (name, &self.region) {
            (SLICE, None) => {
                let slices = VariantSlices { dataset: self.dataset.clone(), modified: self.modified };
                return Ok(Some(Node::Folder(Arc::new(slices))));
            }
            (SAMPLES, None) => {
                let dataset = self.dataset.clone();
                let make = move || Ok(Arc::new(sample_lines(&dataset.samples()?)) as _);
                return Ok(Some(Node::File(Arc::new(LazyFile::new(self.modified, make)))));
            }
            _ => {}
        }
        let ending = ENDINGS.iter().find_map(|(form, ending)| Some((*form, name.strip_suffix(ending)?)));
        let Some((form, stem)) = ending else { return Ok(None) };
        // Each sample has one name.
        match percent::unescape(stem) {
            Ok(sample) if file_stem(&sample) == stem => {
                Ok(self.file(stem, &sample, form)?.map(|file| Node::File(file)))
            }
            _ => Ok(None),
        }
    }

    /// Lists the files of all samples, unless there are so many records that their sizes would take long to find: the
    /// files are then found by name.
    fn list(&self) -> Result<Vec<Entry>> {
        let of_file = |name: String| Entry { name, kind: EntryKind::File };
        let mut entries = Vec::new();
        if self.region.is_none() {
            entries.push(of_file(SAMPLES.to_owned()));
        }
        let rows = self.dataset.row_count()?;
        if Sizing::Cells.is_listed(rows.most(), rows.exact().is_some()) {
            let samples = self.dataset.samples()?;
            let endings = || ENDINGS.iter().filter(|(form, _)| *form != Form::Index);
            let of_sample = |sample: &Vec<u8>| {
                let stem = file_stem(sample);
                endings().map(move |(_, ending)| format!("{stem}{ending}"))
            };
            entries.extend(samples.iter().flat_map(of_sample).map(of_file));
        }
        Ok(entries)
    }

    fn modified(&self) -> SystemTime {
        self.modified
    }

    fn memory(&self) -> usize {
        NODE * (1 + self.kept.lock().unwrap_or_else(PoisonError::into_inner).len())
    }
}

/// Returns the name of a sample's files without their ending.
fn file_stem(sample: &[u8]) -> String {
    match str::from_utf8(sample) {
        Ok(name) => escape(name),
        Err(_) => {
            let mut escaped = String::new();
            percent::escape(sample, &mut escaped);
            escaped
        }
    }
}

fn sample_lines(samples: &[Vec<u8>]) -> Vec<u8> {
    samples.iter().flat_map(|sample| sample.iter().copied().chain([b'\n'])).collect()
}

/// `slice/`: its folders are regions. They are found by name, and never listed.
struct VariantSlices {
    dataset: Arc<VariantDataset>,
    modified: SystemTime,
}

impl Folder for VariantSlices {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        let Ok(region) = Region::parse(name) else { return Ok(None) };
        let files = VariantFiles::of(self.dataset.clone(), Some(Arc::new(region)), self.modified);
        Ok(Some(Node::Folder(Arc::new(files))))
    }

    fn why_absent(&self, name: &str) -> Option<String> {
        Region::parse(name).err()
    }

    fn list(&self) -> Result<Vec<Entry>> {
        Ok(Vec::new())
    }

    fn modified(&self) -> SystemTime {
        self.modified
    }
}

impl Region {
    /// Parses a region as bcftools writes it: `1`, `1:12000`, `1:12000-` or `1:12000-13000`, with positions from 1, both
    /// ends included. The contig may have percent escapes, and colons.
    fn parse(text: &str) -> std::result::Result<Self, String> {
        let is_positions = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
        let (contig, positions) = match text.rsplit_once(':').filter(|(_, positions)| is_positions(positions)) {
            Some((contig, positions)) => (contig, Some(positions)),
            None => (text, None),
        };
        let position = |text: &str| {
            let position = text.parse::<u32>().ok().and_then(|position| position.checked_sub(1));
            position.ok_or_else(|| format!("{text:?} is not a position; write a region as 1:12000-13000"))
        };
        let positions = match positions.map(|positions| (positions, positions.split_once('-'))) {
            None => ALL,
            Some((only, None)) => position(only)?..=position(only)?,
            Some((_, Some((low, "")))) => position(low)?..=u32::MAX,
            Some((_, Some((low, high)))) => position(low)?..=position(high)?,
        };
        if positions.is_empty() {
            return Err(format!("{text} ends before it begins"));
        }
        let contig =
            percent::unescape(contig).map_err(|at| format!("the escape at byte {at} of {text:?} is broken"))?;
        Ok(Region { contig, positions })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_those_of_bcftools() {
        let region = |contig: &str, positions| Ok(Region { contig: contig.as_bytes().to_vec(), positions });
        assert_eq!(Region::parse("1:12000-13000"), region("1", 11_999..=12_999));
        assert_eq!(Region::parse("chrX"), region("chrX", 0..=u32::MAX));
        assert_eq!(Region::parse("chrX:7"), region("chrX", 6..=6));
        assert_eq!(Region::parse("chrX:7-"), region("chrX", 6..=u32::MAX));
        assert_eq!(Region::parse("HLA*01:a:5-6"), region("HLA*01:a", 4..=5));
        assert_eq!(Region::parse("a%2Fb%3A1"), region("a/b:1", 0..=u32::MAX));
        for wrong in ["1:0", "1:5-4", "1:5-x", "1:5-6-7", "1:99999999999", "%zz"] {
            assert!(Region::parse(wrong).is_err(), "{wrong}");
        }
    }
}
