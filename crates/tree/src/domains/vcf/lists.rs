//! The user's files for datasets of variants: lists of samples and regions, to which paths below `vcf/` refer by name,
//! and the reference genome. `samples=@cases` refers to the file `cases.txt`, `slice/@exons/` to the regions of
//! `exons.bed`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use tilefs_base::error::{Error, Result};
use tilefs_vcf::ReferenceGenome;
use tilefs_vcf::dataset::regions::{Region, disjoint};

use crate::names::LONGEST;

/// The prefix of the name of a list in a path.
pub const LIST: char = '@';

/// The user's named lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VariantLists {
    samples: BTreeMap<String, Vec<Vec<u8>>>,
    regions: BTreeMap<String, Vec<Region>>,
}

/// The reference genome of the user's datasets, if there is one.
#[derive(Debug, Clone, Default)]
pub struct VariantReference(pub Option<Arc<ReferenceGenome>>);

impl VariantReference {
    /// Opens the reference genome in a FASTA file.
    ///
    /// # Errors
    /// As for [`ReferenceGenome::open`].
    pub fn open(file: &Path) -> Result<Self> {
        Ok(VariantReference(Some(Arc::new(ReferenceGenome::open(file)?))))
    }
}

impl VariantLists {
    /// Adds a file with the name of one sample per line.
    ///
    /// # Errors
    /// Fails if the file cannot be read, contains no sample, or has the name of another list.
    pub fn add_samples(&mut self, file: &Path) -> Result<()> {
        let lines = read(file)?;
        let samples: Vec<Vec<u8>> = lines.into_iter().filter(|line| !line.is_empty()).collect();
        add(&mut self.samples, file, samples)
    }

    /// Adds a file of regions in the format of `bcftools --regions-file`: tab-separated columns with contig, first and
    /// last position. Positions count from 1, both included; in a file `*.bed` they count from 0, and the last is
    /// excluded.
    ///
    /// # Errors
    /// Fails if the file cannot be read, has a line that is not a region, contains no region, or has the name of
    /// another list.
    pub fn add_regions(&mut self, file: &Path) -> Result<()> {
        let is_bed = file.extension().is_some_and(|extension| extension == "bed");
        let mut regions = Vec::new();
        for (number, line) in read(file)?.into_iter().enumerate() {
            let is_comment = [&b"#"[..], b"track", b"browser"].iter().any(|start| line.starts_with(start));
            if line.is_empty() || is_comment {
                continue;
            }
            let region = region(&line, is_bed).ok_or_else(|| {
                let place = format!("line {} of {}", number + 1, file.display());
                Error::usage(format!("{place} is not a region: contig, first and last position, separated by tabs"))
            })?;
            regions.push(region);
        }
        add(&mut self.regions, file, disjoint(regions))
    }

    /// Returns the samples of a list.
    pub fn samples(&self, name: &str) -> std::result::Result<&[Vec<u8>], String> {
        let found = self.samples.get(name).map(Vec::as_slice);
        found.ok_or_else(|| format!("no list of samples {name}; give its file with --samples-file"))
    }

    /// Returns the regions of a list.
    pub fn regions(&self, name: &str) -> std::result::Result<&[Region], String> {
        let found = self.regions.get(name).map(Vec::as_slice);
        found.ok_or_else(|| format!("no list of regions {name}; give its file with --regions-file"))
    }

    /// Returns the names of all lists of regions.
    pub fn names_of_regions(&self) -> impl Iterator<Item = &str> {
        self.regions.keys().map(String::as_str)
    }

    /// Returns the names of all lists of samples.
    pub fn names_of_samples(&self) -> impl Iterator<Item = &str> {
        self.samples.keys().map(String::as_str)
    }
}

/// The longest line of a list in bytes. A device or a binary file soon has a longer one.
const MAX_LINE: u64 = 64 << 10;

/// The most bytes of a list: the regions of a genome in some ten million lines.
const MAX_LIST: u64 = 256 << 20;

/// Returns the lines of a file, without line breaks.
fn read(file: &Path) -> Result<Vec<Vec<u8>>> {
    let refused = |reason: String| Error::usage(format!("cannot read {}: {reason}", file.display()));
    let mut reader = BufReader::new(File::open(file).map_err(|error| refused(error.to_string()))?);
    let (mut lines, mut length) = (Vec::new(), 0);
    loop {
        let mut line = Vec::new();
        let read = reader.by_ref().take(MAX_LINE + 2).read_until(b'\n', &mut line);
        if read.map_err(|error| refused(error.to_string()))? == 0 {
            return Ok(lines);
        }
        length += line.len() as u64;
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() as u64 > MAX_LINE {
            return Err(refused(format!("line {} has more than {MAX_LINE} bytes", lines.len() + 1)));
        }
        if length > MAX_LIST {
            return Err(refused(format!("it has more than {MAX_LIST} bytes")));
        }
        lines.push(line.to_vec());
    }
}

/// Adds a list. The name of the file, up to the first dot, is the name of the list.
fn add<T>(lists: &mut BTreeMap<String, Vec<T>>, file: &Path, list: Vec<T>) -> Result<()> {
    let name = file.file_name().and_then(|name| name.to_str()).and_then(|name| name.split('.').next());
    // The name is listed behind `samples=@`.
    let name = name.filter(|name| !name.is_empty() && !name.contains([',', '%']) && name.len() <= LONGEST);
    let name = name.ok_or_else(|| Error::usage(format!("{} has no name that a path can have", file.display())))?;
    if list.is_empty() {
        return Err(Error::usage(format!("{} is an empty list", file.display())));
    }
    match lists.insert(name.to_owned(), list) {
        None => Ok(()),
        Some(_) => Err(Error::usage(format!("two lists {name}; {} is the second", file.display()))),
    }
}

fn region(line: &[u8], is_bed: bool) -> Option<Region> {
    let mut columns = line.split(|&byte| byte == b'\t');
    let contig = columns.next().filter(|contig| !contig.is_empty())?.to_vec();
    let mut position = || str::from_utf8(columns.next()?).ok()?.parse::<u32>().ok();
    let first = position()?;
    let positions = match is_bed {
        true => first..=position()?.checked_sub(1)?,
        // The last position is optional.
        false => first.checked_sub(1)?..=position().unwrap_or(first).checked_sub(1)?,
    };
    (!positions.is_empty()).then_some(Region { contig, positions })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &tempfile::TempDir, name: &str, text: &str) -> std::path::PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn files_are_lists() {
        let (folder, mut lists) = (tempfile::tempdir().unwrap(), VariantLists::default());
        lists.add_samples(&file(&folder, "cases.v2.txt", "a\r\nb c\n\n")).unwrap();
        assert_eq!(lists.samples("cases").unwrap(), [b"a".to_vec(), b"b c".to_vec()]);
        lists
            .add_regions(&file(&folder, "exons.bed", "track x\n#\nchr1\t9\t20\tname\nchr1\t0\t1\nchr1\t15\t30\n"))
            .unwrap();
        let chr1 = |positions| Region { contig: b"chr1".to_vec(), positions };
        assert_eq!(lists.regions("exons").unwrap(), [chr1(0..=0), chr1(9..=29)]);
        lists.add_regions(&file(&folder, "sites.tsv", "chr1\t10\t20\nchr1\t5\n")).unwrap();
        assert_eq!(lists.regions("sites").unwrap(), [chr1(4..=4), chr1(9..=19)]);
        assert!(lists.samples("exons").is_err() && lists.regions("cases").is_err());
    }

    #[test]
    fn files_without_end_are_refused() {
        let mut lists = VariantLists::default();
        for refused in [lists.add_samples(Path::new("/dev/zero")), lists.add_regions(Path::new("/dev/zero"))] {
            let error = refused.unwrap_err().to_string();
            assert_eq!(error, "cannot read /dev/zero: line 1 has more than 65536 bytes");
        }
        let folder = tempfile::tempdir().unwrap();
        let lines = format!("{}\n", "a".repeat(MAX_LINE as usize)).repeat(4097);
        let error = lists.add_samples(&file(&folder, "long.txt", &lines)).unwrap_err().to_string();
        assert!(error.ends_with("it has more than 268435456 bytes"), "{error}");
        assert!(lists.add_samples(&file(&folder, "one.txt", &"a".repeat(MAX_LINE as usize))).is_ok());
        assert!(lists.add_samples(&file(&folder, "two.txt", &"a".repeat(MAX_LINE as usize + 1))).is_err());
    }

    #[test]
    fn other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("a.bed", "chr1 1 2\n"),
            ("b.bed", "chr1\t5\t5\n"),
            ("c.tsv", "chr1\t0\t5\n"),
            ("d.bed", "chr1\t-1\t5\n"),
            ("e.bed", ""),
            (".bed", "chr1\t1\t5\n"),
        ] {
            assert!(VariantLists::default().add_regions(&file(&folder, name, text)).is_err(), "{name}");
        }
        let mut lists = VariantLists::default();
        let twice = file(&folder, "x.txt", "a\n");
        assert!(lists.add_samples(&twice).is_ok() && lists.add_samples(&twice).is_err());
        assert!(lists.add_samples(&folder.path().join("none")).is_err());
        assert!(lists.add_samples(&file(&folder, &"x".repeat(LONGEST + 1), "a\n")).is_err());
    }
}
