//! `vcf/` of a TileDB-VCF dataset: each sample as a VCF file, and merges of samples, whole or in a region.
//!
//! `vcf/SAMPLE.vcf` has the records of the sample, `vcf/slice/1:12000-13000/SAMPLE.vcf` those that overlap a region.
//! `vcf/merged/all.vcf` has all samples, `vcf/merged/1:12000-13000.vcf` all samples in a region; `vcf/multiallelic/` has
//! them with multiallelic sites joined, and `vcf/plink/` those with one alternative allele for PLINK. `vcf/samples=A,B/`
//! has the same files for chosen samples. Each file is also available in BGZF (`.vcf.gz`), for readers that seek by
//! position with the indexes `.vcf.gz.tbi` and `.vcf.gz.csi`, and as BCF (`.bcf`, with the index `.bcf.csi`).
//! `vcf/samples.txt` has the names of all samples. `vcf/sites/` has the files of samples, whole and in regions, with a
//! record for each site of a gVCF block, given the reference genome.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::SystemTime;

use tilefs_base::error::Result;
use tilefs_base::misspelt::wrong_letters;
use tilefs_base::percent;
use tilefs_threads::single_flight::SingleFlight;
use tilefs_vcf::dataset::arrays::{Sample, VariantDataset};
use tilefs_vcf::dataset::contigs::has_records;
use tilefs_vcf::dataset::regions::{self, WrittenRegion};
use tilefs_vcf::file::VariantText;
use tilefs_vcf::{LineRule, ReferenceGenome, fam};
use tilefs_vfs::node::lazy::LazyFile;
use tilefs_vfs::node::named::NamedFolder;
use tilefs_vfs::node::{Entry, Folder, NODE, Node};

use crate::domains::vcf::forms::{FileForm, FindRecords, KeptFiles, LISTED};
use crate::domains::vcf::lists::{LIST, VariantLists};
use crate::names::{escape, escape_bytes, is_shortened};
use crate::sizing::Sizing;

/// The name of the folder.
pub const VCF: &str = "vcf";

/// The folder of regions.
const SLICE: &str = "slice";

/// The folders of merged samples: with a line for records that share an allele, and with a line for records of the same
/// kind.
const MERGED: &str = "merged";
const MULTIALLELIC: &str = "multiallelic";

/// The folder of PLINK's files of merged samples, and the ending of the file with the samples.
const PLINK: &str = "plink";
const FAM: &str = ".fam";

/// The folder of files with a record for each site of a block, and the reason why it is missing.
const SITES: &str = "sites";
const NO_REFERENCE: &str =
    "the bases at the sites of blocks are not in the dataset; name the FASTA file of the reference with --reference";

/// The file of merged samples with all records.
const EVERYTHING: &str = "all";

/// The file with the names of all samples, one per line.
const SAMPLES: &str = "samples.txt";

/// The prefix of the name of a folder of chosen samples.
const CHOSEN: &str = "samples=";

/// A choice of samples of a dataset.
#[derive(Clone)]
struct ChosenSamples {
    dataset: Arc<VariantDataset>,
    /// The lists that paths refer to.
    lists: Arc<VariantLists>,
    /// The reference genome, if the user has named its file.
    reference: Option<Arc<ReferenceGenome>>,
    /// The samples in the order of the path; `None` for all samples.
    chosen: Option<Arc<Vec<Sample>>>,
    /// The samples whose names are too long for a file, by the names of their files without endings.
    shortened: Arc<SingleFlight<HashMap<String, Sample>>>,
    /// Names that missing ones are compared with: the first [`MOST_COMPARED`].
    compared: Arc<SingleFlight<Vec<String>>>,
}

/// Maximum number of names of samples that a missing name is compared with.
const MOST_COMPARED: usize = 10_000;

impl ChosenSamples {
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

    /// Returns the sample name that a path writes as `written`; `None` for invalid escapes, or a cut name of no sample.
    fn unescaped(&self, written: &str) -> Result<Option<Vec<u8>>> {
        if !is_shortened(written) {
            return Ok(percent::unescape(written).ok());
        }
        let shortened = self.shortened.get_or_retry(|| {
            let all = self.dataset.all_samples()?.into_iter();
            let with_stems = all.map(|sample| (escape_bytes(&sample.name), sample));
            Ok(with_stems.filter(|(stem, _)| is_shortened(stem)).collect())
        })?;
        Ok(shortened.get(written).map(|sample| sample.name.clone()))
    }

    /// Returns the samples in a comma-separated list, or the reason if it is invalid.
    fn named(&self, list: &str) -> Result<std::result::Result<Self, String>> {
        let mut chosen: Vec<Sample> = Vec::new();
        let names = match list.strip_prefix(LIST) {
            Some(name) => match self.lists.samples(name) {
                Ok(names) => names.to_vec(),
                Err(reason) => return Ok(Err(reason)),
            },
            None => match list.split(',').map(|written| self.unescaped(written)).collect::<Result<Option<_>>>()? {
                Some(names) => names,
                None => return Ok(Err(format!("a broken escape in {list:?}"))),
            },
        };
        let mut known = HashSet::new();
        for name in names {
            let shown = String::from_utf8_lossy(&name);
            match self.sample(&name)? {
                Some(sample) if !known.contains(&name) => chosen.push(sample),
                Some(_) => return Ok(Err(format!("the sample {shown} is named twice"))),
                None => return Ok(Err(self.no_sample(&shown)?)),
            }
            known.insert(name);
        }
        Ok(Ok(ChosenSamples { chosen: Some(Arc::new(chosen)), ..self.clone() }))
    }

    /// Returns the reason why there is nothing for a name that no sample has, with the nearest name.
    fn no_sample(&self, name: &str) -> Result<String> {
        let known = self.compared.get_or_retry(|| {
            let all = self.dataset.all_samples()?.into_iter();
            Ok(all.filter_map(|sample| String::from_utf8(sample.name).ok()).take(MOST_COMPARED).collect())
        })?;
        let rated = known.iter().filter_map(|known| Some((wrong_letters(name, known)?, known)));
        let near = rated.min().map(|(_, known)| format!("the nearest name is {}; ", escape(known)));
        Ok(format!("no sample {name}; {}{VCF}/{SAMPLES} has the names", near.unwrap_or_default()))
    }

    /// Returns the regions in a text, or the reason if it is invalid.
    fn regions(&self, text: &str) -> Result<std::result::Result<Vec<WrittenRegion>, String>> {
        let written = match text.strip_prefix(LIST) {
            Some(name) => match self.lists.regions(name) {
                Ok(regions) => return Ok(Ok(regions.iter().cloned().map(WrittenRegion::from).collect())),
                Err(reason) => Err(reason),
            },
            None => regions::parse_list(text, |contig| self.may_have(contig))?,
        };
        for (contig, reason) in written.iter().flatten().filter_map(WrittenRegion::must_be) {
            if !self.may_have(contig)? {
                return Ok(Err(reason.to_owned()));
            }
        }
        Ok(written)
    }

    /// Returns whether there is a contig: one that the header of the first sample names, or that has records.
    fn may_have(&self, contig: &[u8]) -> Result<bool> {
        if let Some(numbered) = self.dataset.numbered()? {
            return Ok(numbered.contigs.length(contig).is_some());
        }
        let header = self.all()?.first().map(|first| self.dataset.header(first)).transpose()?;
        let is_named = header.is_some_and(|header| header.contigs().any(|name| name == contig));
        Ok(is_named || has_records(&self.dataset, self.chosen.as_ref().map(|chosen| chosen.as_slice()), contig)?)
    }
}

/// The folder of some samples, with all their records or those in regions.
pub struct VariantFiles {
    samples: ChosenSamples,
    regions: Option<Arc<Vec<WrittenRegion>>>,
    /// The reference genome, if each site of a block is a record.
    sites: Option<Arc<ReferenceGenome>>,
    modified: SystemTime,
    kept: KeptFiles,
}

impl VariantFiles {
    /// Creates the folder of all records.
    pub fn new(
        dataset: Arc<VariantDataset>,
        lists: Arc<VariantLists>,
        reference: Option<Arc<ReferenceGenome>>,
        modified: SystemTime,
    ) -> Self {
        let samples = ChosenSamples {
            dataset,
            lists,
            reference,
            chosen: None,
            shortened: Arc::default(),
            compared: Arc::default(),
        };
        Self::of(samples, None, None, modified)
    }

    fn of(
        samples: ChosenSamples,
        regions: Option<Arc<Vec<WrittenRegion>>>,
        sites: Option<Arc<ReferenceGenome>>,
        modified: SystemTime,
    ) -> Self {
        VariantFiles { samples, regions, sites, modified, kept: KeptFiles::new(modified) }
    }

    /// Returns the file of a sample in one of its forms, if there is such a sample.
    fn file(&self, name: &str) -> Result<Option<Arc<LazyFile>>> {
        let Some((form, stem)) = FileForm::of_name(name) else { return Ok(None) };
        // Each sample has only one file name.
        let Some(sample) = self.samples.unescaped(stem)? else { return Ok(None) };
        if escape_bytes(&sample) != stem {
            return Ok(None);
        }
        let Some(sample) = self.samples.sample(&sample)? else { return Ok(None) };
        let (dataset, regions, sites) = (self.samples.dataset.clone(), self.regions.clone(), self.sites.clone());
        let find: FindRecords = Arc::new(move |encoding| {
            let regions = regions.as_ref().map(|regions| regions.as_slice());
            Ok(Arc::new(VariantText::of_sample(dataset.clone(), &sample, regions, encoding, sites.clone())?))
        });
        Ok(Some(self.kept.file(stem, form, &find)))
    }

    fn folder(&self, name: &str) -> Result<Option<Node>> {
        if self.regions.is_some() {
            return Ok(None);
        }
        let (samples, modified) = (self.samples.clone(), self.modified);
        Ok(Some(Node::Folder(match name {
            SLICE => Arc::new(slices(samples, self.sites.clone(), modified)),
            _ if self.sites.is_some() => return Ok(None),
            SITES => match samples.reference.clone() {
                Some(reference) => Arc::new(VariantFiles::of(samples, None, Some(reference), modified)),
                None => return Ok(None),
            },
            MERGED => Arc::new(MergedFiles::new(samples, LineRule::SharedAllele, modified)),
            MULTIALLELIC => Arc::new(MergedFiles::new(samples, LineRule::SameKind, modified)),
            PLINK => Arc::new(PlinkFiles(MergedFiles::new(samples, LineRule::SharedAllele, modified))),
            _ => match name.strip_prefix(CHOSEN).filter(|_| self.samples.chosen.is_none()) {
                Some(list) => match samples.named(list)? {
                    Ok(samples) => Arc::new(VariantFiles::of(samples, None, None, modified)),
                    Err(_) => return Ok(None),
                },
                None => return Ok(None),
            },
        })))
    }
}

impl Folder for VariantFiles {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        if name == SAMPLES && self.regions.is_none() && self.sites.is_none() {
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
        if name == SITES && self.regions.is_none() && self.sites.is_none() {
            return self.samples.reference.is_none().then(|| NO_REFERENCE.to_owned());
        }
        if let Some(list) = name.strip_prefix(CHOSEN) {
            return self.samples.named(list).ok()?.err();
        }
        // Other names that are missing are no files of samples.
        let (_, stem) = FileForm::of_name(name)?;
        let sample = self.samples.unescaped(stem).ok()??;
        self.samples.no_sample(&String::from_utf8_lossy(&sample)).ok()
    }

    /// Lists the files of all samples, unless there are so many records that measuring the files would take long. In
    /// that case files can only be looked up by name. So can those with the sites of blocks, which are much larger.
    fn list(&self) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        if self.sites.is_some() {
            return Ok(entries);
        }
        if self.regions.is_none() {
            entries.push(Entry::file(SAMPLES));
        }
        if self.regions.is_none() && self.samples.chosen.is_none() {
            let lists = self.samples.lists.names_of_samples();
            entries.extend(lists.map(|name| Entry::folder(format!("{CHOSEN}{LIST}{name}"))));
        }
        let rows = self.samples.dataset.row_count()?;
        if Sizing::Cells.is_listed(rows.most(), rows.exact().is_some()) {
            let samples = self.samples.all()?;
            let of_sample = |sample: &Sample| {
                let stem = escape_bytes(&sample.name);
                LISTED.map(|ending| format!("{stem}{ending}"))
            };
            entries.extend(samples.iter().flat_map(of_sample).map(Entry::file));
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

/// `merged/` or `multiallelic/`: all samples in one file, `all.vcf` or the file of a region. Files can be looked up by
/// name, but are not listed.
struct MergedFiles {
    samples: ChosenSamples,
    rule: LineRule,
    modified: SystemTime,
    kept: KeptFiles,
}

impl MergedFiles {
    fn new(samples: ChosenSamples, rule: LineRule, modified: SystemTime) -> Self {
        MergedFiles { samples, rule, modified, kept: KeptFiles::new(modified) }
    }

    /// Returns the regions in the name of a file, or the reason if it is invalid; `None` for all records.
    fn regions(&self, stem: &str) -> Result<std::result::Result<Option<Vec<WrittenRegion>>, String>> {
        match stem {
            EVERYTHING => Ok(Ok(None)),
            _ => Ok(self.samples.regions(stem)?.map(Some)),
        }
    }

    /// Returns a form of the file with a name, given without its ending, if the name is valid.
    fn file(&self, form: FileForm, stem: &str) -> Result<Option<Node>> {
        let Ok(regions) = self.regions(stem)? else { return Ok(None) };
        let (samples, rule) = (self.samples.clone(), self.rule);
        let find: FindRecords = Arc::new(move |encoding| {
            let (is_all, regions) = (samples.chosen.is_none(), regions.as_deref());
            let dataset = samples.dataset.clone();
            Ok(Arc::new(VariantText::merged(dataset, &samples.all()?, is_all, rule, regions, encoding)?))
        });
        Ok(Some(Node::File(self.kept.file(stem, form, &find))))
    }
}

impl Folder for MergedFiles {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        let Some((form, stem)) = FileForm::of_name(name) else { return Ok(None) };
        self.file(form, stem)
    }

    fn why_absent(&self, name: &str) -> Option<String> {
        let (_, stem) = FileForm::of_name(name)?;
        self.regions(stem).ok()?.err()
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

/// `plink/`: the sites of `merged/` that have one alternative allele, and the genotypes of all samples, for PLINK: the
/// files `all.bed`, `all.bim` and `all.fam`, or those of a region. Files can be looked up by name, but are not listed.
struct PlinkFiles(MergedFiles);

impl PlinkFiles {
    /// Returns the name of a file without its ending.
    fn stem(name: &str) -> Option<&str> {
        name.strip_suffix(FAM).or_else(|| Some(FileForm::of_plink_name(name)?.1))
    }
}

impl Folder for PlinkFiles {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        if let Some((form, stem)) = FileForm::of_plink_name(name) {
            return self.0.file(form, stem);
        }
        let Some(stem) = name.strip_suffix(FAM) else { return Ok(None) };
        if self.0.regions(stem)?.is_err() {
            return Ok(None);
        }
        let samples = self.0.samples.clone();
        let make = move || {
            let all = samples.all()?;
            Ok(Arc::new(fam(all.iter().filter(|one| one.has_column()).map(|one| one.name.as_slice()))?) as _)
        };
        Ok(Some(Node::File(Arc::new(LazyFile::new(self.0.modified, make)))))
    }

    fn why_absent(&self, name: &str) -> Option<String> {
        self.0.regions(Self::stem(name)?).ok()?.err()
    }

    fn list(&self) -> Result<Vec<Entry>> {
        Ok(Vec::new())
    }

    fn modified(&self) -> SystemTime {
        self.0.modified
    }

    fn memory(&self) -> usize {
        self.0.memory()
    }
}

fn sample_lines(samples: &[Sample]) -> Vec<u8> {
    samples.iter().flat_map(|sample| sample.name.iter().copied().chain([b'\n'])).collect()
}

/// Returns `slice/`: a folder for each region. They are looked up by name; only the user's named lists of regions are
/// listed.
fn slices(samples: ChosenSamples, sites: Option<Arc<ReferenceGenome>>, modified: SystemTime) -> NamedFolder {
    let lists = samples.lists.clone();
    let folders = NamedFolder::new(modified, move |name| {
        let files = |regions| VariantFiles::of(samples.clone(), Some(Arc::new(regions)), sites.clone(), modified);
        Ok(samples.regions(name)?.map(|regions| Node::Folder(Arc::new(files(regions)))).map_err(Some))
    });
    folders.listing(move || Ok(lists.names_of_regions().map(|name| Entry::folder(format!("{LIST}{name}"))).collect()))
}
