//! `vcf/` of a TileDB-VCF dataset: each sample as a VCF file, and merges of samples, whole or in a region.
//!
//! `vcf/SAMPLE.vcf` has the records of the sample, `vcf/slice/1:12000-13000/SAMPLE.vcf` those that overlap a region.
//! `vcf/merged/all.vcf` has all samples, `vcf/merged/1:12000-13000.vcf` all samples in a region. `vcf/samples=A,B/` has
//! the same files for chosen samples. Each file is also available in BGZF (`.vcf.gz`), for readers that seek by
//! position with the indexes `.vcf.gz.tbi` and `.vcf.gz.csi`, and as BCF (`.bcf`, with the index `.bcf.csi`).
//! `vcf/samples.txt` has the names of all samples.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::SystemTime;

use tilefs_format::error::Result;
use tilefs_reader::percent;

use super::lazy::LazyFile;
use super::listing::Sizing;
use super::names::escape;
use super::node::{Entry, EntryKind, Folder, NODE, Node};
use super::options::OpenOptions;
use super::variant_forms::{FindRecords, Form, KeptFiles, LISTED};
use super::variant_lists::LIST;
use super::variant_regions::{self, Region};
use super::variant_text::VariantText;
use super::variants::{Sample, VariantDataset};

/// The name of the folder.
pub const VCF: &str = "vcf";

/// The folder of regions.
const SLICE: &str = "slice";

/// The folder of merged samples, and its file with all records.
const MERGED: &str = "merged";
const EVERYTHING: &str = "all";

/// The file with the names of all samples, one per line.
pub const SAMPLES: &str = "samples.txt";

/// The prefix of the name of a folder of chosen samples.
const CHOSEN: &str = "samples=";

/// A choice of samples of a dataset.
#[derive(Clone)]
struct Samples {
    dataset: Arc<VariantDataset>,
    /// Contains the lists that paths refer to.
    options: Arc<OpenOptions>,
    /// The samples in the order of the path; `None` for all samples.
    chosen: Option<Arc<Vec<Sample>>>,
}

impl Samples {
    fn sample(&self, name: &[u8]) -> Result<Option<Sample>> {
        match &self.chosen {
            Some(chosen) => Ok(chosen.iter().find(|sample| sample.name == name).cloned()),
            None => self.dataset.sample(name),
        }
    }

    fn all(&self) -> Result<Arc<Vec<Sample>>> {
        match &self.chosen {
            Some(chosen) => Ok(chosen.clone()),
            None => Ok(Arc::new(self.dataset.all_samples()?)),
        }
    }

    /// Returns the samples in a comma-separated list, or the reason if it is invalid.
    fn named(&self, list: &str) -> Result<std::result::Result<Self, String>> {
        let mut chosen: Vec<Sample> = Vec::new();
        let names = match list.strip_prefix(LIST) {
            Some(name) => match self.options.variant_lists.samples(name) {
                Ok(names) => names.to_vec(),
                Err(reason) => return Ok(Err(reason)),
            },
            None => match list.split(',').map(percent::unescape).collect() {
                Ok(names) => names,
                Err(_) => return Ok(Err(format!("a broken escape in {list:?}"))),
            },
        };
        let mut known = HashSet::new();
        for name in names {
            let shown = String::from_utf8_lossy(&name);
            match self.sample(&name)? {
                Some(sample) if !known.contains(&name) => chosen.push(sample),
                Some(_) => return Ok(Err(format!("the sample {shown} is named twice"))),
                None => return Ok(Err(format!("no sample {shown}; {VCF}/{SAMPLES} has the names"))),
            }
            known.insert(name);
        }
        Ok(Ok(Samples { chosen: Some(Arc::new(chosen)), ..self.clone() }))
    }

    /// Returns the regions in a text, or the reason if it is invalid.
    fn regions(&self, text: &str) -> std::result::Result<Vec<Region>, String> {
        match text.strip_prefix(LIST) {
            Some(name) => self.options.variant_lists.regions(name).map(<[Region]>::to_vec),
            None => variant_regions::parse_list(text),
        }
    }
}

/// The folder of some samples, with all their records or those in regions.
pub struct VariantFiles {
    samples: Samples,
    regions: Option<Arc<Vec<Region>>>,
    modified: SystemTime,
    kept: KeptFiles,
}

impl VariantFiles {
    /// Creates the folder of all records.
    pub fn new(dataset: Arc<VariantDataset>, options: Arc<OpenOptions>, modified: SystemTime) -> Self {
        Self::of(Samples { dataset, options, chosen: None }, None, modified)
    }

    fn of(samples: Samples, regions: Option<Arc<Vec<Region>>>, modified: SystemTime) -> Self {
        VariantFiles { samples, regions, modified, kept: KeptFiles::new(modified) }
    }

    /// Returns the file of a sample in one of its forms, if there is such a sample.
    fn file(&self, name: &str) -> Result<Option<Arc<LazyFile>>> {
        let Some((form, stem)) = Form::of_name(name) else { return Ok(None) };
        // Each sample has only one file name.
        let Ok(sample) = percent::unescape(stem) else { return Ok(None) };
        if file_stem(&sample) != stem {
            return Ok(None);
        }
        let Some(sample) = self.samples.sample(&sample)? else { return Ok(None) };
        let (dataset, regions) = (self.samples.dataset.clone(), self.regions.clone());
        let find: FindRecords = Arc::new(move |encoding| {
            let regions = regions.as_ref().map(|regions| regions.as_slice());
            Ok(Arc::new(VariantText::of_sample(dataset.clone(), &sample, regions, encoding)?))
        });
        Ok(Some(self.kept.file(stem, form, &find)))
    }

    fn folder(&self, name: &str) -> Result<Option<Node>> {
        if self.regions.is_some() {
            return Ok(None);
        }
        let (samples, modified) = (self.samples.clone(), self.modified);
        Ok(Some(Node::Folder(match name {
            SLICE => Arc::new(VariantSlices { samples, modified }),
            MERGED => Arc::new(MergedFiles { samples, modified, kept: KeptFiles::new(modified) }),
            _ => match name.strip_prefix(CHOSEN).filter(|_| self.samples.chosen.is_none()) {
                Some(list) => match samples.named(list)? {
                    Ok(samples) => Arc::new(VariantFiles::of(samples, None, modified)),
                    Err(_) => return Ok(None),
                },
                None => return Ok(None),
            },
        })))
    }
}

impl Folder for VariantFiles {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        if name == SAMPLES && self.regions.is_none() {
            let samples = self.samples.clone();
            let make = move || Ok(Arc::new(sample_lines(&samples.all()?)) as _);
            return Ok(Some(Node::File(Arc::new(LazyFile::new(self.modified, make)))));
        }
        match self.file(name)? {
            Some(file) => Ok(Some(Node::File(file))),
            None => self.folder(name),
        }
    }

    fn why_absent(&self, name: &str) -> Option<String> {
        let list = name.strip_prefix(CHOSEN)?;
        self.samples.named(list).ok()?.err()
    }

    /// Lists the files of all samples, unless there are so many records that measuring the files would take long. In
    /// that case files can only be looked up by name.
    fn list(&self) -> Result<Vec<Entry>> {
        let of_file = |name: String| Entry { name, kind: EntryKind::File };
        let mut entries = Vec::new();
        if self.regions.is_none() {
            entries.push(of_file(SAMPLES.to_owned()));
        }
        if self.regions.is_none() && self.samples.chosen.is_none() {
            let lists = self.samples.options.variant_lists.names_of_samples();
            entries.extend(lists.map(|name| Entry { name: format!("{CHOSEN}{LIST}{name}"), kind: EntryKind::Folder }));
        }
        let rows = self.samples.dataset.row_count()?;
        if Sizing::Cells.is_listed(rows.most(), rows.exact().is_some()) {
            let samples = self.samples.all()?;
            let of_sample = |sample: &Sample| {
                let stem = file_stem(&sample.name);
                LISTED.map(|ending| format!("{stem}{ending}"))
            };
            entries.extend(samples.iter().flat_map(of_sample).map(of_file));
        }
        Ok(entries)
    }

    fn modified(&self) -> SystemTime {
        self.modified
    }

    fn memory(&self) -> usize {
        NODE + self.kept.memory()
    }
}

/// `merged/`: all samples in one file, `all.vcf` or that of a region. Files can be looked up by name, but are not
/// listed.
struct MergedFiles {
    samples: Samples,
    modified: SystemTime,
    kept: KeptFiles,
}

impl MergedFiles {
    /// Returns the regions in the name of a file; `None` for all records.
    fn regions(&self, stem: &str) -> std::result::Result<Option<Vec<Region>>, String> {
        match stem {
            EVERYTHING => Ok(None),
            _ => self.samples.regions(stem).map(Some),
        }
    }
}

impl Folder for MergedFiles {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        let Some((form, stem)) = Form::of_name(name) else { return Ok(None) };
        let Ok(regions) = self.regions(stem) else { return Ok(None) };
        let samples = self.samples.clone();
        let find: FindRecords = Arc::new(move |encoding| {
            let (is_all, regions) = (samples.chosen.is_none(), regions.as_deref());
            let records = VariantText::merged(samples.dataset.clone(), &samples.all()?, is_all, regions, encoding)?;
            Ok(Arc::new(records))
        });
        Ok(Some(Node::File(self.kept.file(stem, form, &find))))
    }

    fn why_absent(&self, name: &str) -> Option<String> {
        let (_, stem) = Form::of_name(name)?;
        self.regions(stem).err()
    }

    fn list(&self) -> Result<Vec<Entry>> {
        Ok(Vec::new())
    }

    fn modified(&self) -> SystemTime {
        self.modified
    }

    fn memory(&self) -> usize {
        NODE + self.kept.memory()
    }
}

/// Returns the name of a sample's files, without their endings.
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

fn sample_lines(samples: &[Sample]) -> Vec<u8> {
    samples.iter().flat_map(|sample| sample.name.iter().copied().chain([b'\n'])).collect()
}

/// `slice/`: a folder for each region. They are looked up by name; only named lists of regions are listed.
struct VariantSlices {
    samples: Samples,
    modified: SystemTime,
}

impl Folder for VariantSlices {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        let Ok(regions) = self.samples.regions(name) else { return Ok(None) };
        let files = VariantFiles::of(self.samples.clone(), Some(Arc::new(regions)), self.modified);
        Ok(Some(Node::Folder(Arc::new(files))))
    }

    fn why_absent(&self, name: &str) -> Option<String> {
        self.samples.regions(name).err()
    }

    /// Lists the user's named lists of regions.
    fn list(&self) -> Result<Vec<Entry>> {
        let lists = self.samples.options.variant_lists.names_of_regions();
        Ok(lists.map(|name| Entry { name: format!("{LIST}{name}"), kind: EntryKind::Folder }).collect())
    }

    fn modified(&self) -> SystemTime {
        self.modified
    }
}
