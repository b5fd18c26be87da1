//! What SOMA adds to the folder of an experiment: annotated data, and parts of it.

use std::sync::{Arc, OnceLock};

use tilefs_base::error::Result;
use tilefs_export::zarr::ZarrVersion;
use tilefs_vfs::node::lazy::LazyFolder;
use tilefs_vfs::node::{Folder, Node};

use crate::domains::soma::cell_ranger::{TENX, cell_ranger_folders};
use crate::domains::soma::cut::Cut;
use crate::domains::soma::experiment::{EXPERIMENT, ExperimentZarr, MEASUREMENT};
use crate::domains::soma::h5ad::{H5AD, experiment_h5ad};
use crate::domains::soma::slices::{SLICE, experiment_slices};
use crate::domains::soma::spatial::{SPATIALDATA, has_scenes, spatial_store};
use crate::domains::soma::{array_form, matrix_lengths, object_type};
use crate::domains::{DescribedViews, Domain, GroupDomain, GroupUses, GroupView, PlainZarr, ShownGroup};

/// The domain: SOMA's experiments, measurements, data frames and matrices.
pub const DOMAIN: Domain = Domain {
    groups: "Experiments of TileDB-SOMA",
    group_views: &VIEWS,
    of_group: Some(|group| Box::new(SomaGroup { shown: group, spatial: OnceLock::new() })),
    array_form: Some(array_form),
    matrix_lengths: Some(matrix_lengths),
    ..Domain::NONE
};

/// The views of an experiment.
const VIEWS: [GroupView; 9] = [
    GroupView {
        path: "zarr",
        reader: "annotated data (open the folder): anndata, scanpy, zarr",
        lacks: "what AnnData has no place for, which its attribute left_out names",
    },
    GroupView {
        path: "zarr/ms/NAME",
        reader: "one measurement of several: anndata",
        lacks: "the other measurements, but raw, and what left_out names",
    },
    GroupView {
        path: "h5ad/NAME.h5ad",
        reader: "a measurement as a file: anndata, scanpy, R, cellxgene; cp copies it",
        lacks: "dates, and what zarr/ms/NAME cannot hold",
    },
    GroupView {
        path: "10x/NAME/",
        reader: "a measurement as Cell Ranger's folder, genes by cells: Seurat, DropletUtils, scanpy",
        lacks: "other columns, other layers, dense matrices and embeddings",
    },
    GroupView {
        path: "10x/NAME/plain/",
        reader: "the same without .gz, with genes.tsv: older readers",
        lacks: "what 10x/NAME/ cannot hold",
    },
    GroupView {
        path: "slice/obs=0..99,var=0..99/zarr",
        reader: "some observations and variables: anndata",
        lacks: "several ranges of an axis, and what zarr cannot hold",
    },
    GroupView {
        path: "slice/obs=0..99,var=0..99/h5ad/NAME.h5ad",
        reader: "the same as a file",
        lacks: "several ranges of an axis, and what h5ad/NAME.h5ad cannot hold",
    },
    GroupView {
        path: "slice/obs=0..99,var=0..99/10x/NAME/",
        reader: "the same as Cell Ranger's folder",
        lacks: "several ranges of an axis, and what 10x/NAME/ cannot hold",
    },
    GroupView {
        path: SPATIALDATA,
        reader: "scenes and measurements (open the folder): spatialdata",
        lacks: "other geometries than points, circles and polygons, images without channels, spaces of three axes, and \
                which shapes the rows of a table are (soma_joinid of a shape is the number of its row)",
    },
];

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

/// What README.txt says about the scenes of an experiment.
const OF_SCENES: &str = "\
Its scenes, with the measurements, for spatialdata:
    python3 -c 'import spatialdata; print(spatialdata.read_zarr(\"spatialdata\"))'
";

/// What README.txt says about a measurement.
const OF_MEASUREMENT: &str = "\
As annotated data, for anndata and scanpy, it is in the folder of the experiment around it, which has the
observations: zarr, or where there are several measurements zarr/ms/NAME.
";

/// A group that may be an experiment. Memory: what its scenes are, once `spatialdata/` is used.
struct SomaGroup {
    shown: ShownGroup,
    /// `spatialdata/`, which is made once, because that may take reading geometries.
    spatial: OnceLock<Arc<LazyFolder>>,
}

impl SomaGroup {
    fn object_type(&self) -> Result<Option<String>> {
        Ok(object_type(&*self.shown.group.metadata()?))
    }

    fn is_experiment(&self) -> Result<bool> {
        Ok(self.object_type()?.as_deref() == Some(EXPERIMENT))
    }

    /// Returns `spatialdata/` of an experiment with scenes.
    fn spatial(&self) -> &Arc<LazyFolder> {
        self.spatial.get_or_init(|| {
            let shown = self.shown.clone();
            Arc::new(LazyFolder::new(shown.modified, move || spatial_store(&shown)))
        })
    }
}

impl GroupDomain for SomaGroup {
    fn view(&self, name: &str) -> Result<Option<Node>> {
        if ![SLICE, H5AD, TENX, SPATIALDATA].contains(&name) || !self.is_experiment()? {
            return Ok(None);
        }
        if name == SPATIALDATA {
            return Ok(has_scenes(&self.shown.group)?.then(|| Node::Folder(self.spatial().clone())));
        }
        let (group, modified) = (self.shown.group.clone(), self.shown.modified);
        Ok(Some(Node::Folder(match name {
            SLICE => Arc::new(experiment_slices(group, modified)),
            TENX => Arc::new(cell_ranger_folders(group, Cut::default(), modified)),
            _ => Arc::new(experiment_h5ad(group, Cut::default(), modified)),
        })))
    }

    fn listed(&self) -> (Vec<&'static str>, bool) {
        match self.is_experiment() {
            Ok(true) => {}
            found => return (Vec::new(), found.is_ok()),
        }
        let shows_all = self.shown.options.shown.are_all();
        let spatial = shows_all && has_scenes(&self.shown.group).unwrap_or(false);
        let all = shows_all.then_some(TENX).into_iter().chain(spatial.then_some(SPATIALDATA));
        ([H5AD].into_iter().chain(all).collect(), true)
    }

    fn zarr(&self, version: ZarrVersion, plain: &PlainZarr) -> Result<(Option<Arc<dyn Folder>>, bool)> {
        if !self.is_experiment()? {
            return Ok((None, true));
        }
        let zarr = ExperimentZarr::new(&self.shown.group, self.shown.modified, version, plain.clone())?;
        Ok((Some(Arc::new(zarr)), true))
    }

    fn describe_views(&self, views: &mut DescribedViews) -> Result<()> {
        if self.is_experiment()? {
            let has_scenes = has_scenes(&self.shown.group)?;
            let own = VIEWS.iter().filter(|view| has_scenes || view.path != SPATIALDATA);
            own.for_each(|view| views.add_at(view.path, view));
        }
        Ok(())
    }

    fn describe_uses(&self, uses: &mut GroupUses, _may_open: bool) -> Result<()> {
        match self.object_type()?.as_deref() {
            Some(EXPERIMENT) => {
                uses.whole += OF_EXPERIMENT;
                if has_scenes(&self.shown.group)? {
                    uses.whole += OF_SCENES;
                }
            }
            Some(MEASUREMENT) => uses.whole += OF_MEASUREMENT,
            _ => {}
        }
        Ok(())
    }
}
