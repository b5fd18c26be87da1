//! PLINK's files of a dataset of TileDB-VCF: plink2 and plink1.9 find the frequencies and genotypes that bcftools finds in
//! the merged samples.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use tilefs_vfs::Folder;

use super::merged::{cohorts, dataset, samples};
use support::paths::node;
use support::skip::python_with;
use support::vcf::{bytes, has, opened, printed, text};

/// A site: contig, position, name, reference, alternative allele; and the number of the alternative and of all alleles
/// of complete genotypes.
type Site = (Vec<String>, [usize; 2]);

/// Writes the files of PLINK with a path; returns their common path without ending.
fn write(root: &Arc<dyn Folder>, path: &str, folder: &Path) -> String {
    let to = folder.join("own").to_str().unwrap().to_owned();
    for ending in [".bed", ".bim", ".fam"] {
        fs::write(format!("{to}{ending}"), bytes(root, &format!("{path}{ending}"))).unwrap();
    }
    to
}

/// Returns the sites with one alternative allele in a file, as bcftools reads it.
fn sites(path: &str) -> Vec<Site> {
    let query = "%CHROM\\t%POS\\t%ID\\t%REF\\t%ALT[\\t%GT]\\n";
    let lines = printed("bcftools", &["query", "-f", query, path]);
    let site = |line: &str| {
        let mut columns: Vec<String> = line.split('\t').map(str::to_owned).collect();
        let genotypes = columns.split_off(5);
        let others =
            columns[4].split(',').enumerate().filter(|(_, allele)| !["<NON_REF>", "<*>", "."].contains(allele));
        let others: Vec<(usize, String)> = others.map(|(number, allele)| (number + 1, allele.to_owned())).collect();
        let [(number, other)] = others.as_slice() else { return None };
        columns[4] = other.clone();
        let mut counts = [0, 0];
        for genotype in genotypes {
            let mut alleles: Vec<Option<usize>> =
                genotype.split(['/', '|']).map(|allele| allele.parse().ok()).collect();
            if alleles.len() == 1 {
                alleles.push(alleles[0]);
            }
            if alleles.len() == 2 && alleles.iter().all(|allele| [Some(0), Some(*number)].contains(allele)) {
                counts[0] += alleles.iter().filter(|allele| **allele == Some(*number)).count();
                counts[1] += 2;
            }
        }
        Some((columns, counts))
    };
    lines.lines().filter_map(site).collect()
}

/// Returns the sites of PLINK's files, with the counts that plink2 finds.
fn sites_of_plink(stem: &str) -> Vec<Site> {
    let made = format!("{stem}.found");
    printed("plink2", &["--bfile", stem, "--freq", "counts", "--allow-extra-chr", "--out", &made]);
    let counts = fs::read_to_string(format!("{made}.acount")).unwrap();
    let bim = fs::read_to_string(format!("{stem}.bim")).unwrap();
    let sites = bim.lines().zip(counts.lines().skip(1)).map(|(site, counts)| {
        let [contig, name, _, position, other, reference] = site.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let found: Vec<&str> = counts.split('\t').collect();
        assert_eq!(found[1..4], [name, reference, other], "{site}");
        let [count, all] = [found[4], found[5]].map(|count| count.parse().unwrap());
        ([contig, position, name, reference, other].map(str::to_owned).to_vec(), [count, all])
    });
    assert_eq!(bim.lines().count() + 1, counts.lines().count());
    sites.collect()
}

#[test]
fn plink_finds_the_frequencies_that_bcftools_finds() {
    let Some(python) = python_with("tiledb") else { return };
    if !has("bcftools") || !has("plink2") || !has("plink1.9") {
        return;
    }
    let mut found = 0;
    for seed in 2000..2000 + cohorts() {
        let folder = tempfile::tempdir().unwrap();
        let root = dataset(&python, folder.path(), ["4", "3", "2"][seed as usize % 3], seed);
        let merged = folder.path().join("merged.vcf");
        let chosen = samples(&root)[1..].join(",");
        for (of, stem) in [("", "all"), ("", "chr10:20-45"), (&*format!("samples={chosen}/"), "chr1:1-90,chr2")] {
            fs::write(&merged, bytes(&root, &format!("vcf/{of}merged/{stem}.vcf"))).unwrap();
            let wanted = sites(merged.to_str().unwrap());
            let own = write(&root, &format!("vcf/{of}plink/{stem}"), folder.path());
            let names: Vec<String> = fs::read_to_string(format!("{own}.fam"))
                .unwrap()
                .lines()
                .map(|line| line.split('\t').nth(1).unwrap().to_owned())
                .collect();
            assert_eq!(
                names,
                printed("bcftools", &["query", "-l", merged.to_str().unwrap()]).lines().collect::<Vec<_>>()
            );
            // PLINK has no file without a site.
            if wanted.is_empty() {
                assert_eq!(fs::read(format!("{own}.bim")).unwrap(), b"");
                continue;
            }
            assert_eq!(sites_of_plink(&own), wanted, "cohort {seed}, {of}{stem}");
            found += wanted.len();
            // The first release reads the same genotypes.
            printed("plink1.9", &["--bfile", &own, "--recode", "vcf-iid", "--keep-allele-order", "--out", &own]);
            let again: Vec<Vec<String>> =
                sites(&format!("{own}.vcf")).into_iter().map(|(site, _)| site[1..].to_vec()).collect();
            assert_eq!(again.len(), wanted.len());
        }
    }
    assert!(found > 200, "{found} sites");
}

/// With complete genotypes of two alleles, the frequencies are those of `bcftools +fill-tags`.
#[test]
fn frequencies_of_complete_genotypes_are_those_of_bcftools() {
    let Some(python) = python_with("tiledb") else { return };
    if !has("bcftools") || !has("plink2") || Command::new("bcftools").args(["+fill-tags", "-v"]).output().is_err() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let root = dataset(&python, folder.path(), "4", 2100);
    let [merged, complete] =
        ["merged.vcf", "complete.vcf"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    fs::write(&merged, bytes(&root, "vcf/merged/all.vcf")).unwrap();
    printed("bcftools", &["+fill-tags", &merged, "-o", &complete, "--", "-t", "AF,AN"]);
    let query = "%CHROM\\t%POS\\t%ID\\t%REF\\t%ALT\\t%AN\\t%AF[\\t%GT]\\n";
    let lines = printed("bcftools", &["query", "-f", query, &complete]);
    let mut own = sites_of_plink(&write(&root, "vcf/plink/all", folder.path()));
    let mut compared = 0;
    for line in lines.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let is_complete = |genotype: &&str| {
            let alleles: Vec<bool> = genotype.split(['/', '|']).map(|allele| allele == ".").collect();
            alleles.len() == 2 && alleles[0] == alleles[1]
        };
        let Some(place) = own.iter().position(|(site, _)| *site == columns[..5]) else { continue };
        let (_, [count, all]) = own.remove(place);
        if all > 0 && columns[7..].iter().all(is_complete) {
            assert_eq!(all.to_string(), columns[5], "{line}");
            let frequency: f64 = columns[6].parse().unwrap();
            assert!((count as f64 / all as f64 - frequency).abs() < 1e-5, "{count} of {all}: {line}");
            compared += 1;
        }
    }
    assert!(compared > 3, "{compared} sites");
}

#[test]
fn names_that_plink_cannot_hold_are_a_read_error() {
    let root = opened(&tilefs_fixtures::fixtures().join("variants/v4"));
    let fam = support::paths::file(&root, "vcf/plink/all.fam");
    assert!(fam.open().map(|_| ()).unwrap_err().to_string().contains("\"B 2\""));
    assert_eq!(text(&root, "vcf/samples=NA%2F1/plink/all.fam"), "0\tNA/1\t0\t0\t0\t-9\n");
    assert_eq!(bytes(&root, "vcf/plink/all.bed")[..3], [0x6c, 0x1b, 0x01]);
    for none in ["vcf/plink/all.vcf", "vcf/plink/1:0.bed", "vcf/plink/1:0.fam", "vcf/merged/all.bed"] {
        assert!(node(&root, none).is_none(), "{none}");
    }
}
