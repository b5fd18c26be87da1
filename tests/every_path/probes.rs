//! Names that no folder lists: slices, regions, times, and names that an object may lack for a reason.

use std::collections::BTreeSet;

use tilefs_tree::views;

use crate::walk::Scope;

/// Names that an array or group has or lacks; if it lacks one, the reason is compared.
const VIEWS: [&str; 21] = [
    "npy", "text", "netcdf", "netcdf4", "hdf5", "arrow", "parquet", "zarr", "zarr2", "tiff", "fits", "nifti", "F",
    "dims", "enums", "meta", "by-row", "nonempty", "h5ad", "10x", "vcf",
];

/// Coordinates: one, all, texts, a step, lists of several axes, and three that are wrong.
const SELECTIONS: [&str; 7] = ["first", "..", "A..n", "first..last..3,first", "nothing=1", "5..", "1+x"];

/// Positions: a few, backwards, none.
const POSITIONS: [&str; 4] = ["1:3", "::-2", "0,::2", "99999999999"];

const ORDERED_SELECTIONS: [&str; 1] = ["first"];

const REGIONS: [&str; 3] = ["1:1-1000000", "1,chr1:10-", "1:9-1"];

/// The forms of a file of variants.
const VARIANTS: [&str; 6] = [".vcf", ".vcf.gz", ".vcf.gz.tbi", ".vcf.gz.csi", ".bcf", ".bcf.csi"];

/// The slice of an experiment, which has annotated data of some observations and variables.
const EXPERIMENT: &str = "obs=0..2,var=1..4";

/// Returns names to look up in a folder besides those that it lists.
pub fn probes(name: &str, path: &str, scope: Scope, is_object: bool, listed: &[String]) -> Vec<String> {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let forms = |stem: &str| VARIANTS.map(|ending| format!("{stem}{ending}")).to_vec();
    let is_of_variants = path.split('/').any(|name| name == "vcf");
    match (name, scope) {
        _ if is_object && scope == Scope::Whole => [&owned(&VIEWS)[..], &owned(&[".tilefs", ".history"])].concat(),
        ("slice", _) if is_of_variants => owned(&REGIONS),
        ("merged", _) if is_of_variants => {
            [forms("all"), REGIONS.map(|region| format!("{region}.bcf")).to_vec()].concat()
        }
        _ if is_of_variants => of_variants(name, listed, forms),
        ("slice", Scope::Whole) => [&owned(&SELECTIONS)[..], &[EXPERIMENT.to_owned()]].concat(),
        ("slice", Scope::Part) => owned(&ORDERED_SELECTIONS),
        ("islice", Scope::Whole) => owned(&POSITIONS),
        (".history", _) => times(listed),
        ("parts" | "parts-without-header", _) => first_parts(),
        (EXPERIMENT, _) => owned(&["zarr", "zarr2", "h5ad", "10x"]),
        _ => Vec::new(),
    }
}

/// Returns the names of the first part of a table in all views; a folder of parts has one or more of them.
fn first_parts() -> Vec<String> {
    let endings: BTreeSet<&str> = views::VIEWS.iter().flat_map(|view| view.parts).map(|parts| parts.ending).collect();
    endings.into_iter().map(|ending| format!("000000000000000.{ending}")).collect()
}

/// Returns the files of the first samples, and the folders of `vcf/` or of a choice of samples in it.
fn of_variants(name: &str, listed: &[String], forms: impl Fn(&str) -> Vec<String>) -> Vec<String> {
    let samples: Vec<&str> = listed.iter().filter_map(|name| name.strip_suffix(".vcf.gz")).take(2).collect();
    let mut names: Vec<String> = samples.iter().flat_map(|sample| forms(sample)).collect();
    if name == "vcf" {
        names.extend(["slice", "merged", "samples=nobody"].map(str::to_owned));
        names.extend(samples.first().map(|first| format!("samples={first}")));
    } else if name.starts_with("samples=") {
        names.push("merged".to_owned());
    }
    names
}

/// Returns a window of times, a whole year, a time before everything, and something that is no time.
fn times(listed: &[String]) -> Vec<String> {
    let window = listed.first().zip(listed.last()).map(|(first, last)| format!("{first}..{last}"));
    window.into_iter().chain(["2010", "1971", "yesterday"].map(str::to_owned)).collect()
}
