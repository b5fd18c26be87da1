//! Recognises the groups that are datasets of TileDB-VCF: they have an array of variant calls, `data`, and an array of the
//! headers of the source files, `vcf_headers`, which may be in the group `metadata` instead.

use std::sync::Arc;

use tilefs_base::error::{Error, Result};
use tilefs_reader::OpenedObject;
use tilefs_reader::array::OpenedArray;
use tilefs_reader::group::OpenedGroup;
use tilefs_threads::single_flight::SingleFlight;
use tilefs_vcf::dataset::arrays::{VariantDataset, is_calls, is_statistics};
use tilefs_vfs::node::Node;
use tilefs_vfs::node::quoting::in_line;

use crate::domains::vcf::files::{VCF, VariantFiles};
use crate::domains::vcf::lists::VariantReference;
use crate::domains::vcf::tables::CallTable;
use crate::domains::{DescribedViews, Domain, GroupDomain, GroupUses, GroupView, ShownGroup};
use crate::fields::array_form::{ArrayForm, TableForm};
use crate::objects::members::NamedMembers;

const DATA: &str = "data";
const HEADERS: &str = "vcf_headers";
const METADATA: &str = "metadata";

/// The array with the number of each allele at each position, if a dataset has one.
const FREQUENCIES: &str = "variant_stats";

/// The domain: datasets of TileDB-VCF.
pub const DOMAIN: Domain = Domain {
    groups: "Datasets of TileDB-VCF",
    group_views: &VIEWS,
    of_group: Some(|group| Box::new(VcfGroup { shown: group, files: SingleFlight::new() })),
    // The texts of the statistics of alleles are stored as CHAR.
    array_form: Some(|schema| is_statistics(schema).then(|| of_table(TableForm::WithTexts))),
    ..Domain::NONE
};

fn of_table(table: TableForm) -> ArrayForm {
    ArrayForm { table: Some(table), ..ArrayForm::default() }
}

/// A group that may be a dataset. Memory: its arrays.
struct VcfGroup {
    shown: ShownGroup,
    /// `vcf/`, if the group is a dataset, once determined.
    files: SingleFlight<Option<Arc<VariantFiles>>>,
}

impl VcfGroup {
    fn files(&self) -> Result<Option<Arc<VariantFiles>>> {
        let ShownGroup { group, options, modified, .. } = &self.shown;
        let VariantReference(reference) = &*options.of_domains.get();
        let files = |dataset| {
            let (lists, reference) = (options.of_domains.get(), reference.clone());
            Arc::new(VariantFiles::new(Arc::new(dataset), lists, reference, *modified))
        };
        self.files.get_or_retry(|| Ok(dataset_of(group)?.map(files))).cloned()
    }
}

impl GroupDomain for VcfGroup {
    fn view(&self, name: &str) -> Result<Option<Node>> {
        if name != VCF {
            return Ok(None);
        }
        Ok(self.files()?.map(|files| Node::Folder(files)))
    }

    fn listed(&self) -> (Vec<&'static str>, bool) {
        match self.files() {
            Ok(files) => (files.is_some().then_some(VCF).into_iter().collect(), true),
            Err(error) => (Vec::new(), !error.is_transient()),
        }
    }

    fn member_form(&self, array: &Arc<OpenedArray>) -> Result<Option<ArrayForm>> {
        let dataset = dataset_of_calls(&self.shown.group, array)?;
        Ok(dataset.map(|dataset| of_table(TableForm::Computed(Arc::new(CallTable::new(dataset))))))
    }

    fn describe_views(&self, views: &mut DescribedViews) -> Result<()> {
        match self.files() {
            Ok(Some(_)) => views.add(&VIEWS),
            Ok(None) => {}
            Err(error) => views.add_absent(VCF, &error.to_string(), !error.is_transient()),
        }
        Ok(())
    }

    fn describe_uses(&self, uses: &mut GroupUses, _may_open: bool) -> Result<()> {
        match self.files() {
            Ok(Some(_)) => {
                uses.views += USES;
                if NamedMembers::new(self.shown.group.members()?).by_name.contains_key(FREQUENCIES) {
                    uses.views += USES_OF_FREQUENCIES;
                }
            }
            Ok(None) => {}
            Err(error) => {
                uses.lasts &= !error.is_transient();
                uses.views += &format!("\nThere is no {VCF}/: {}.\n", in_line(&error.to_string()));
            }
        }
        Ok(())
    }
}

/// The views of a dataset.
const VIEWS: [GroupView; 12] = [
    GroupView {
        path: "vcf/SAMPLE.vcf",
        reader: "the variants of a sample as VCF: bcftools, GATK, plink, R",
        lacks: "what TileDB-VCF does not store: further digits of floats, and the places in INFO and FORMAT of fields with attributes of their own",
    },
    GroupView {
        path: "vcf/SAMPLE.vcf.gz",
        reader: "the same in BGZF, with a .tbi: bcftools -r, tabix, pysam, cyvcf2",
        lacks: "in its .tbi, positions from 2^29 on, which a .csi has; and what vcf/SAMPLE.vcf cannot hold",
    },
    GroupView {
        path: "vcf/SAMPLE.bcf",
        reader: "the same as BCF, with a .csi: bcftools, pysam, cyvcf2",
        lacks: "fields that the header does not define, and numbers beyond 32 bits, which are errors; and what vcf/SAMPLE.vcf cannot hold",
    },
    GroupView {
        path: "vcf/slice/1:12000-13000/SAMPLE.vcf",
        reader: "the variants that overlap a region, also as .vcf.gz and .bcf",
        lacks: "what vcf/SAMPLE.vcf cannot hold",
    },
    GroupView {
        path: "vcf/merged/all.vcf.gz",
        reader: "all samples merged, as bcftools merge -m none does",
        lacks: "INFO of other samples than the first that has a field, but for DP, DP4, AN and AC; and values that do not fit the alleles of their record, which are errors",
    },
    GroupView {
        path: "vcf/merged/1:12000-13000.vcf.gz",
        reader: "the same of a region",
        lacks: "what vcf/merged/all.vcf.gz cannot hold",
    },
    GroupView {
        path: "vcf/multiallelic/all.vcf.gz",
        reader: "all samples merged, as bcftools merge does without options",
        lacks: "what vcf/merged/all.vcf.gz cannot hold",
    },
    GroupView {
        path: "vcf/plink/all.bed",
        reader: "sites with one alternative allele, with .bim and .fam: plink2 --bfile",
        lacks: "other sites, families, phenotypes, phases, qualities, and names with spaces, which are errors",
    },
    GroupView {
        path: "vcf/sites/SAMPLE.vcf",
        reader: "a record for each site of a gVCF block, with --reference: bcftools, readers of genotypes by position",
        lacks: "the extent of blocks, sites past the end of the reference, and what vcf/SAMPLE.vcf cannot hold",
    },
    GroupView {
        path: "vcf/samples=A,B/",
        reader: "the same for some samples",
        lacks: "what the same files of all samples cannot hold",
    },
    GroupView {
        path: "vcf/samples.txt",
        reader: "the names of all samples",
        lacks: "the headers of samples, which vcf/SAMPLE.vcf has",
    },
    GroupView {
        path: "data/parquet/parts/*.parquet",
        reader: "all records, a column for each INFO and FORMAT field: SQL",
        lacks: "the phases of single alleles, and the types of fields that headers define differently, which are text",
    },
];

/// What README.txt says about a dataset of TileDB-VCF.
const USES: &str = "\
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
Likewise with sites of several alleles on one line, and for PLINK:
    bcftools view vcf/multiallelic/all.vcf.gz
    plink2 --bfile vcf/plink/all --freq --out /tmp/all
All records as a table with a column for each INFO and FORMAT field, in files of up to a million rows. The samples that
carry a first alternative allele (a record that is there again at a later position has another real_start_pos):
    duckdb -c \"SELECT count(DISTINCT sample) FROM 'data/parquet/parts/*.parquet' WHERE list_contains(fmt_GT, 1)\"
    head data/text/cells.tsv
";

/// What README.txt says about the numbers of alleles.
const USES_OF_FREQUENCIES: &str = "\
The frequency of each allele, as TileDB-VCF counted it (ref is the reference, and positions count from 0):
    duckdb -c \"SELECT contig, pos, allele, sum(ac) / sum(sum(ac)) OVER (PARTITION BY contig, pos) FROM \
'variant_stats/parquet/parts/*.parquet' GROUP BY contig, pos, allele\"
";

/// Returns the dataset of a group, if the group has the members of one. Opens both arrays, and reads no cell.
///
/// # Errors
/// Fails if the members, a schema or the metadata cannot be read, and for layouts other than 2, 3 and 4.
fn dataset_of(group: &OpenedGroup) -> Result<Option<VariantDataset>> {
    let members = NamedMembers::new(group.members()?);
    let has = |name: &str| members.by_name.contains_key(name);
    if !has(DATA) || !(has(HEADERS) || has(METADATA)) {
        return Ok(None);
    }
    let Some(OpenedObject::Array(data)) = members.open(group, DATA)? else { return Ok(None) };
    if !is_calls(data.schema()) {
        return Ok(None);
    }
    let headers = match members.open(group, HEADERS)? {
        Some(OpenedObject::Array(headers)) => headers,
        _ => {
            let Some(OpenedObject::Group(inner)) = members.open(group, METADATA)? else { return Ok(None) };
            let members = NamedMembers::new(inner.members()?);
            let Some(OpenedObject::Array(headers)) = members.open(&inner, HEADERS)? else { return Ok(None) };
            headers
        }
    };
    VariantDataset::new(data, headers)
}

/// Returns the dataset that a group is, if this member is the array of its variant calls. Logs a dataset whose headers
/// are damaged.
///
/// # Errors
/// Fails if something could not be read that may be readable the next time. Missing headers cost the calls nothing.
fn dataset_of_calls(group: &OpenedGroup, array: &Arc<OpenedArray>) -> Result<Option<VariantDataset>> {
    if !is_calls(array.schema()) {
        return Ok(None);
    }
    match dataset_of(group) {
        Ok(found) => Ok(found.filter(|dataset| dataset.data.path() == array.path())),
        Err(error) if error.is_transient() && !matches!(error, Error::Missing { .. }) => Err(error),
        Err(error) => {
            log::warn!("{}: tables show the fields of variants as they are stored: {error}", array.path());
            Ok(None)
        }
    }
}
