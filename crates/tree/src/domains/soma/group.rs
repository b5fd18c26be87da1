//! What SOMA adds to the folder of an experiment: annotated data, and parts of it.

use std::sync::Arc;

use tilefs_export::zarr::ZarrVersion;
use tilefs_format::error::Result;

use crate::domains::soma::cell_ranger::{CellRangerFolders, TENX};
use crate::domains::soma::cut::Cut;
use crate::domains::soma::experiment::{EXPERIMENT, ExperimentZarr, MEASUREMENT};
use crate::domains::soma::h5ad::{ExperimentH5ad, H5AD};
use crate::domains::soma::slices::{ExperimentSlices, SLICE};
use crate::domains::soma::{array_form, matrix_lengths, object_type};
use crate::domains::{Domain, GroupDomain, GroupUses, GroupViews, PlainZarr, ShownGroup};
use crate::node::{Folder, Node};
use crate::texts::view_line;

/// The domain: SOMA's experiments, measurements, data frames and matrices.
pub const DOMAIN: Domain = Domain {
    of_group: Some(|group| Box::new(SomaGroup(group))),
    array_form: Some(array_form),
    matrix_lengths: Some(matrix_lengths),
    ..Domain::NONE
};

/// What README.txt says about an experiment.
const OF_EXPERIMENT: &str = "\
All of it as annotated data, for anndata and scanpy (of several measurements zarr/ms/NAME is one):
    python3 -c 'import anndata; print(anndata.read_zarr(\"zarr\"))'
Each measurement as an .h5ad file:
    ls h5ad
Each measurement as Cell Ranger's folder, for Seurat, DropletUtils and scanpy.read_10x_mtx:
    ls 10x
Some observations and variables of it, by soma_joinid:
    python3 -c 'import anndata; print(anndata.read_zarr(\"slice/obs=0..9/zarr\"))'
";

/// What README.txt says about a measurement.
const OF_MEASUREMENT: &str = "\
As annotated data, for anndata and scanpy, it is in the folder of the experiment around it, which has the
observations: zarr, or where there are several measurements zarr/ms/NAME.
";

/// A group that may be an experiment.
struct SomaGroup(ShownGroup);

impl SomaGroup {
    fn object_type(&self) -> Result<Option<String>> {
        Ok(object_type(&*self.0.group.metadata()?))
    }

    fn is_experiment(&self) -> Result<bool> {
        Ok(self.object_type()?.as_deref() == Some(EXPERIMENT))
    }
}

impl GroupDomain for SomaGroup {
    fn view(&self, name: &str) -> Result<Option<Node>> {
        if ![SLICE, H5AD, TENX].contains(&name) || !self.is_experiment()? {
            return Ok(None);
        }
        let (group, modified) = (self.0.group.clone(), self.0.modified);
        Ok(Some(Node::Folder(match name {
            SLICE => Arc::new(ExperimentSlices::new(group, modified)),
            TENX => Arc::new(CellRangerFolders::new(group, Cut::default(), modified)),
            _ => Arc::new(ExperimentH5ad::new(group, Cut::default(), modified)),
        })))
    }

    fn listed(&self) -> Result<Vec<&'static str>> {
        let is_experiment = self.is_experiment().unwrap_or(false);
        let all = self.0.options.shown.are_all().then_some(TENX);
        Ok([H5AD].into_iter().chain(all).filter(|_| is_experiment).collect())
    }

    fn zarr(&self, version: ZarrVersion, plain: &PlainZarr) -> Result<(Option<Arc<dyn Folder>>, bool)> {
        if !self.is_experiment()? {
            return Ok((None, true));
        }
        let zarr = ExperimentZarr::new(&self.0.group, self.0.modified, version, plain.clone())?;
        Ok((Some(Arc::new(zarr)), true))
    }

    fn describe_views(&self, views: &mut GroupViews) -> Result<()> {
        if self.is_experiment()? {
            views.zarr = Some(view_line("zarr", "annotated data (open the folder): anndata, scanpy, zarr"));
            for (name, what) in [
                ("zarr/ms/NAME", "one measurement of several: anndata"),
                ("h5ad/NAME.h5ad", "a measurement as a file: anndata, scanpy, R, cellxgene; cp copies it"),
                ("10x/NAME/", "a measurement as Cell Ranger's folder, genes by cells: Seurat, DropletUtils, scanpy"),
                ("10x/NAME/plain/", "the same without .gz, with genes.tsv: older readers"),
                ("slice/obs=0..99,var=0..99/zarr", "some observations and variables: anndata"),
                ("slice/obs=0..99,var=0..99/h5ad/NAME.h5ad", "the same as a file"),
                ("slice/obs=0..99,var=0..99/10x/NAME/", "the same as Cell Ranger's folder"),
            ] {
                views.lines += &view_line(name, what);
            }
        }
        Ok(())
    }

    fn describe_uses(&self, uses: &mut GroupUses, _may_open: bool) -> Result<()> {
        uses.whole += match self.object_type()?.as_deref() {
            Some(EXPERIMENT) => OF_EXPERIMENT,
            Some(MEASUREMENT) => OF_MEASUREMENT,
            _ => "",
        };
        Ok(())
    }
}
