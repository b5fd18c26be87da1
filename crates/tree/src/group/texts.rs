//! The texts that describe a group: README.txt, `.group/members.tsv` and `.group/group.json`.

use std::fmt::Write;
use std::time::UNIX_EPOCH;

use serde_json::{Map, Value, json};
use tilefs_format::error::Result;
use tilefs_format::group::MemberType;
use tilefs_reader::array::{Metadata, ObjectKind};
use tilefs_reader::group::{Group, Member, MemberPlace};

use crate::domains::bioimaging::{self, PICTURE, Picture, TIFF};
use crate::domains::cf::{FILE, GroupDataset, NETCDF};
use crate::domains::soma;
use crate::domains::soma::experiment::{EXPERIMENT, MEASUREMENT};
use crate::domains::vcf::group::dataset_of;
use crate::fields::meta;
use crate::node::names::escape;
use crate::node::quoting::{heading, in_line, list_of_folders};
use crate::objects::members::NamedMembers;
use crate::options::OpenOptions;
use crate::select::time::{extended, future_commits};
use crate::texts::{view_line, with_large_integers_as_text};

/// The state of a member whose folder exists but is not an array or a group.
pub const NEITHER: &str = "neither an array nor a group";

/// Maximum number of members for which README.txt states whether they are one dataset, which requires opening them.
const MAX_EXAMINED: usize = 64;

/// What README.txt says about a dataset of TileDB-VCF.
const VARIANTS: &str = "\
Variants as VCF files, one for each sample (SAMPLE stands for its name):
    head vcf/samples.txt
    bcftools stats vcf/SAMPLE.vcf
The same compressed in blocks, with an index, so that only the blocks of a region are read:
    bcftools view vcf/SAMPLE.vcf.gz 1:12000-13000
The same as BCF, with an index:
    bcftools view vcf/SAMPLE.bcf 1:12000-13000
Or only what overlaps the region, from the tiles of the region:
    cat vcf/slice/1:12000-13000/SAMPLE.vcf
All samples merged into one file, in a region or as a whole, or only samples A and B (without a mount: tilefs cat):
    bcftools view vcf/merged/1:12000-13000.vcf.gz
    bcftools view vcf/samples=A,B/merged/all.vcf
All records as a table with a column for each INFO and FORMAT field, in files of up to a million rows. The samples that
carry a first alternative allele (a record that is there again at a later position has another real_start_pos):
    duckdb -c \"SELECT count(DISTINCT sample) FROM 'data/parquet/parts/*.parquet' WHERE list_contains(fmt_GT, 1)\"
    head data/text/cells.tsv
";

/// The row of one member in the tables.
struct Row {
    /// Its folder in the tree, or the name it would have if it is missing.
    name: String,
    kind: &'static str,
    uri: String,
    /// The folder in which it was found; empty if it is missing.
    path: String,
    /// `ok`, or the error.
    state: String,
    /// Whether the result is final; false if the folder could not be examined.
    lasts: bool,
}

/// Examines the folder of each member, without opening any.
fn rows(group: &Group) -> Result<Vec<Row>> {
    let members = NamedMembers::new(group.members()?);
    let storage = &*group.context().storage;
    let row = |(member, name): (&Member, &Option<String>)| {
        let kind = member.place.path().map_or(Ok(None), |path| ObjectKind::of(storage, path));
        Row {
            name: name.clone().unwrap_or_else(|| escape(&member.name)),
            kind: match (&kind, member.member_type) {
                (Ok(Some(ObjectKind::Array)), _) => "array",
                (Ok(Some(ObjectKind::Group)), _) => "group",
                (_, MemberType::Array) => "array",
                (_, MemberType::Group) => "group",
                (_, MemberType::Unknown) => "unknown",
            },
            uri: member.uri.clone(),
            path: member.place.path().map_or(String::new(), |path| path.to_string()),
            state: match (&member.place, &kind) {
                (MemberPlace::Missing(reason), _) => reason.clone(),
                (_, Err(error)) => error.to_string(),
                (_, Ok(None)) => NEITHER.to_owned(),
                (MemberPlace::Moved(_), _) => "ok: found by the end of its URI".to_owned(),
                (MemberPlace::Stored(_), _) => "ok".to_owned(),
            },
            lasts: kind.is_ok(),
        }
    };
    let rows = members.members.iter().zip(&members.names).map(row).collect();
    group.check_in_place()?;
    Ok(rows)
}

/// Returns one line for each member: its folder in the tree (or the name it would have if it is missing), its kind, its
/// URI as stored, the folder in which it was found, and `ok` or the error. Also returns whether the text is final.
pub fn members_tsv(group: &Group) -> Result<(String, bool)> {
    let (mut lines, mut lasts) = ("name\ttype\turi\tpath\tstate\n".to_owned(), true);
    for row in rows(group)? {
        lasts &= row.lasts;
        lines += &[&row.name, row.kind, &row.uri, &row.path, &row.state].map(in_line).join("\t");
        lines.push('\n');
    }
    Ok((lines, lasts))
}

/// Returns all information about the group itself, for programs, and whether it is final.
pub fn group_json(group: &Group, options: &OpenOptions) -> Result<(String, bool)> {
    let rows = rows(group)?;
    let mut lasts = rows.iter().all(|row| row.lasts);
    let path = format!("{TIFF}/{PICTURE}");
    let (mut files, mut not_listed) = (Vec::new(), Vec::new());
    match bioimaging::picture_state(group, options) {
        Picture::NoPyramid => {}
        Picture::Present => files.push(json!({"path": path, "format": "OME-TIFF"})),
        Picture::LeftOut(reason, is_final) => {
            lasts &= is_final;
            not_listed.push(json!({"path": path, "reason": reason}));
        }
    }
    let members = rows
        .into_iter()
        .map(|row| json!({"name": row.name, "type": row.kind, "uri": row.uri, "path": row.path, "state": row.state}));
    let mut space = meta::MAX_JSON;
    let stored = group.metadata()?;
    let metadata: Map<String, Value> = stored
        .iter()
        .map(|(key, value)| {
            (String::from_utf8_lossy(key).into_owned(), Value::Object(meta::described(value, &mut space)))
        })
        .collect();
    let all = json!({
        "object": "group",
        "path": group.path().to_string(),
        "from": group.window().start,
        "at": group.window().end,
        "commits": group.commit_times()?,
        "members": members.collect::<Vec<_>>(),
        "metadata": metadata,
        "files": files,
        "not_listed": not_listed,
        "warnings": warnings(group, &stored)?,
    });
    Ok((serde_json::to_string_pretty(&with_large_integers_as_text(all)).unwrap_or_default() + "\n", lasts))
}

/// Returns `.tilefs/views.txt`: every view of the group, one per line. Also returns whether the text is final.
pub fn views(group: &Group, options: &OpenOptions) -> Result<(String, bool)> {
    let (mut lasts, mut picture) = (true, String::new());
    match bioimaging::picture_state(group, options) {
        Picture::NoPyramid => {}
        Picture::Present => {
            picture = view_line(&format!("{TIFF}/{PICTURE}"), "OME-TIFF: tifffile, Bio-Formats, QuPath, GDAL")
        }
        Picture::LeftOut(reason, is_final) => {
            lasts = is_final;
            picture = view_line(&format!("{TIFF}/{PICTURE}"), &format!("not here: {reason}"));
        }
    }
    let is_experiment = soma::object_type(&*group.metadata()?).as_deref() == Some(EXPERIMENT);
    let zarr = match is_experiment {
        true => view_line("zarr", "annotated data (open the folder): anndata, scanpy, zarr"),
        false => view_line("zarr", "a Zarr group of all arrays (open the folder): xarray, zarr, dask, napari"),
    };
    let others = [
        ("MEMBER/", "an array or a group, with a .tilefs/views.txt of its own"),
        (".group/members.tsv", "the members and where they are"),
        (".group/group.json", "all information about the group: jq"),
        (".group/meta/KEY", "metadata"),
        (".history/TIME/", "the group as of a time"),
    ];
    let others = others.map(|(name, what)| view_line(name, what)).concat();
    let more = match is_experiment {
        true => {
            view_line("zarr/ms/NAME", "one measurement of several: anndata")
                + &view_line("h5ad/NAME.h5ad", "a measurement as a file: anndata, scanpy, R, cellxgene; cp copies it")
                + &view_line("slice/obs=0..99,var=0..99/zarr", "some observations and variables: anndata")
                + &view_line("slice/obs=0..99,var=0..99/h5ad/NAME.h5ad", "the same as a file")
        }
        false => String::new(),
    };
    let variants = match dataset_of(group) {
        Ok(Some(_)) => {
            view_line("vcf/SAMPLE.vcf", "the variants of a sample as VCF: bcftools, GATK, plink, R")
                + &view_line("vcf/SAMPLE.vcf.gz", "the same in BGZF, with a .tbi: bcftools -r, tabix, pysam, cyvcf2")
                + &view_line("vcf/SAMPLE.bcf", "the same as BCF, with a .csi: bcftools, pysam, cyvcf2")
                + &view_line(
                    "vcf/slice/1:12000-13000/SAMPLE.vcf",
                    "the variants that overlap a region, also as .vcf.gz and .bcf",
                )
                + &view_line("vcf/merged/all.vcf.gz", "all samples merged, as bcftools merge -m none does")
                + &view_line("vcf/merged/1:12000-13000.vcf.gz", "the same of a region")
                + &view_line("vcf/samples=A,B/", "the same for some samples")
                + &view_line("vcf/samples.txt", "the names of all samples")
                + &view_line(
                    "data/parquet/parts/*.parquet",
                    "all records, a column for each INFO and FORMAT field: SQL",
                )
        }
        Ok(None) => String::new(),
        Err(error) => {
            lasts &= !error.is_transient();
            view_line("vcf", &format!("not here: {error}"))
        }
    };
    Ok((zarr + &more + &variants + &picture + &others, lasts))
}

/// Returns sentences about what is left out of the group's own details and metadata.
fn warnings(group: &Group, metadata: &Metadata) -> Result<Vec<String>> {
    let future = future_commits(&group.future_commits()?);
    Ok(future.into_iter().chain(meta::left_out(metadata)).collect())
}

/// Returns README.txt, which describes the folder and its uses. Also returns whether the text is final.
pub fn readme(group: &Group, options: &OpenOptions) -> Result<(String, bool)> {
    let members = NamedMembers::new(group.members()?);
    let mut text = heading(&format!("{}: a TileDB group, as plain files", in_line(&group.path().shown_name())));
    let there: Vec<&str> = members.names.iter().flatten().map(String::as_str).collect();
    let missing = members.names.len() - there.len();
    let number = |count: usize| if count == 1 { "1 member".to_owned() } else { format!("{count} members") };
    text += &number(there.len());
    if missing > 0 {
        text += &format!("; {missing} more cannot be shown, see .group/members.tsv");
    }
    text += &format!(".\n{}\n", in_line(&group.path().to_string()));
    let last_commit = group.commit_times()?.into_iter().rfind(|&time| time <= group.window().end);
    if let Some(last) = last_commit {
        text += &format!("Last changed {}.\n", extended(last));
    }
    if group.window().end < u64::MAX {
        text += &format!("Shown as of {}.\n", extended(group.window().end));
    }
    let metadata = group.metadata()?;
    for warning in warnings(group, &metadata)? {
        text += &format!("WARNING: {}\n", in_line(&warning));
    }
    text.push('\n');
    text += &list_of_folders(&there);
    let annotated = match soma::object_type(&metadata).as_deref() {
        Some(EXPERIMENT) => {
            "All of it as annotated data, for anndata and scanpy (of several measurements zarr/ms/NAME is one):\n\
             \x20   python3 -c 'import anndata; print(anndata.read_zarr(\"zarr\"))'\n\
             Each measurement as an .h5ad file:\n\
             \x20   ls h5ad\n\
             Some observations and variables of it, by soma_joinid:\n\
             \x20   python3 -c 'import anndata; print(anndata.read_zarr(\"slice/obs=0..9/zarr\"))'\n"
        }
        Some(MEASUREMENT) => {
            "As annotated data, for anndata and scanpy, it is in the folder of the experiment around it, which has the\n\
             observations: zarr, or where there are several measurements zarr/ms/NAME.\n"
        }
        _ => "",
    };
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "\nThe folder of an array has a README.txt of its own. Arrays are opened when their folder is entered.\n\n\
         What you can do here\n--------------------\n\
         What the members are, where they are, and what is wrong with those that are missing:\n\
         \x20   column -ts \"$(printf '\\t')\" .group/members.tsv\n\
         {annotated}"
    );
    if !metadata.is_empty() {
        text += "The group's metadata, a file for each key, and all of it as JSON:\n\
                 \x20   ls .group/meta\n\
                 \x20   cat .group/meta.json\n";
    }
    if last_commit.is_some() {
        text += "The group as it was: a folder for each of its commits, with its members as of then:\n\
                 \x20   ls .history\n";
    }
    let mut lasts = true;
    if there.len() <= MAX_EXAMINED {
        match GroupDataset::of(group, UNIX_EPOCH) {
            Ok((Some(_), _)) => {
                let _ = write!(
                    text,
                    "All of it as the dataset that TileDB-CF wrote, for xarray, ncdump and NCO:\n\
                     \x20   ncdump -h {NETCDF}/{FILE}\n\
                     \x20   python3 -c 'import xarray; print(xarray.open_zarr(\"zarr\"))'\n"
                );
            }
            Ok((None, is_final)) => lasts &= is_final,
            // The next attempt may find one.
            Err(_) => lasts = false,
        }
    }
    match dataset_of(group) {
        Ok(Some(_)) => text += VARIANTS,
        Ok(None) => {}
        Err(error) => {
            lasts &= !error.is_transient();
            let _ = write!(text, "\nThere is no vcf/: {}.\n", in_line(&error.to_string()));
        }
    }
    let file = format!("{TIFF}/{PICTURE}");
    match bioimaging::picture_state(group, options) {
        Picture::NoPyramid => {}
        Picture::Present => {
            let _ = write!(
                text,
                "All levels of the pyramid as one OME-TIFF, for tifffile, Bio-Formats (ImageJ, QuPath) and GDAL:\n\
                 \x20   gdalinfo {file}\n\
                 The same as OME-Zarr, for napari and Neuroglancer:\n\
                 \x20   ls zarr\n"
            );
        }
        Picture::LeftOut(reason, is_final) => {
            lasts &= is_final;
            let _ = write!(text, "\nThere is no {file}: {}.\n", in_line(&reason));
        }
    }
    Ok((text, lasts))
}
