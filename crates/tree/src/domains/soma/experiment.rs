//! `zarr/` of a TileDB-SOMA experiment: its measurements as annotated data, which anndata opens directly.
//!
//! * `zarr/ms/NAME` is the measurement NAME with the experiment's observations: `X` is the matrix `X/data`, `layers`
//!   are the other matrices, `obs` and `var` the data frames, and `obsm`, `obsp`, `varm` and `varp` their matrices. A
//!   matrix in `obsm` or `varm` that has all cells becomes a dense array. `uns` contains the part of the unstructured
//!   data that can be converted.
//! * If the experiment has one measurement, `zarr/` itself is that measurement. A measurement `raw` does not count:
//!   TileDB-SOMA makes it from AnnData's `raw`, and it is shown as such.
//! * If that is impossible, for example because rows are not numbered consecutively or a member is damaged, `zarr/` is
//!   the Zarr group of the TileDB group, like that of other groups, with the reason in its attribute `left_out`. The
//!   same attribute lists the members that have no place in AnnData.

use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use tilefs_base::error::Result;
use tilefs_export::zarr::{ZarrGroup, ZarrNode, ZarrVersion, anndata};
use tilefs_export::{FormatResult, Unrepresentable};
use tilefs_reader::OpenedObject;
use tilefs_reader::array::{Metadata, OpenedArray};
use tilefs_reader::group::OpenedGroup;
use tilefs_vfs::node::lazy::LazyFolder;
use tilefs_vfs::node::named::NamedFolder;
use tilefs_vfs::node::{Entry, Folder, Node};

use crate::domains::PlainZarr;
use crate::domains::soma::cut::Cut;
use crate::domains::soma::uns::{Unstructured, unstructured};
use crate::domains::soma::{self, Element, MatrixAxes, MatrixAxis};
use crate::objects::members::NamedMembers;
use crate::views::zarr::{ZARR, file_of_group, group_folder};

/// SOMA's name of an experiment.
pub const EXPERIMENT: &str = "SOMAExperiment";

/// SOMA's name of a measurement.
pub const MEASUREMENT: &str = "SOMAMeasurement";

/// The data frame of an experiment's observations.
pub const OBSERVATIONS: &str = "obs";

/// The group of an experiment's measurements.
const MEASUREMENTS: &str = "ms";

/// The collection of unstructured data of a measurement.
const UNSTRUCTURED: &str = "uns";

/// The measurement that TileDB-SOMA makes from AnnData's `raw`; both have this name.
const RAW: &str = "raw";

/// The matrix of a measurement that is AnnData's `X`.
pub const DATA: &str = "data";

/// Number of recently used measurements whose folders are kept.
const KEPT: usize = 16;

/// `zarr/` of an experiment, or of a slice of one. A member is opened when something in it is needed.
pub struct ExperimentZarr {
    whole: LazyFolder,
    /// The experiment as a group of groups and arrays; `None` for a slice.
    members: Option<Arc<dyn Folder>>,
    measurements: Option<Arc<NamedFolder>>,
}

impl ExperimentZarr {
    /// Creates the folder. `plain` makes the Zarr group of the TileDB group; its argument is the reason why the
    /// experiment is not annotated data.
    ///
    /// # Errors
    /// Fails if the experiment's members cannot be determined.
    pub fn new(
        experiment: &Arc<OpenedGroup>,
        modified: SystemTime,
        version: ZarrVersion,
        plain: PlainZarr,
    ) -> Result<Self> {
        let members = plain(None);
        let measurements = match members.lookup(MEASUREMENTS)? {
            Some(Node::Folder(plain)) => {
                let cut = Cut::default();
                Some(Arc::new(measurements(experiment.clone(), cut, version, Some(plain), modified)))
            }
            _ => None,
        };
        let experiment = experiment.clone();
        let whole = LazyFolder::of_any(modified, move || {
            let made = only_measurement(&experiment).and_then(|only| match only {
                Ok(name) => annotated_data(&experiment, &name, &Cut::default()),
                Err(reason) => Ok(Err(reason)),
            });
            Ok(match reasoned(made)? {
                Ok(group) => Arc::new(group_folder(&Arc::new(group), version, modified)),
                Err(reason) => plain(Some(reason.to_string())),
            })
        });
        Ok(ExperimentZarr { whole, members: Some(members), measurements })
    }

    /// Creates the folder of a slice. A measurement that cannot be annotated data is an error.
    pub fn of_slice(experiment: &Arc<OpenedGroup>, cut: Cut, modified: SystemTime) -> Self {
        let version = ZarrVersion::Third;
        let measurements = measurements(experiment.clone(), cut.clone(), version, None, modified);
        let measurements = Some(Arc::new(measurements));
        let experiment = experiment.clone();
        let whole = LazyFolder::new(modified, move || {
            let group = annotated_data(&experiment, &only_measurement(&experiment)??, &cut)??;
            Ok(group_folder(&Arc::new(group), version, modified))
        });
        ExperimentZarr { whole, members: None, measurements }
    }
}

impl Folder for ExperimentZarr {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        if let (MEASUREMENTS, Some(measurements)) = (name, &self.measurements) {
            return Ok(Some(Node::Folder(measurements.clone())));
        }
        match (self.whole.lookup(name)?, &self.members) {
            (None, Some(members)) => members.lookup(name),
            (found, _) => Ok(found),
        }
    }

    fn list(&self) -> Result<Vec<Entry>> {
        self.whole.list()
    }

    fn modified(&self) -> SystemTime {
        self.whole.modified()
    }

    fn memory(&self) -> usize {
        self.whole.memory() + self.measurements.as_ref().map_or(0, |folder| folder.memory())
    }
}

/// Returns `zarr/ms`: each measurement as annotated data. `plain` is the Zarr group of the TileDB group; `None` for a slice.
fn measurements(
    experiment: Arc<OpenedGroup>,
    cut: Cut,
    version: ZarrVersion,
    plain: Option<Arc<dyn Folder>>,
    modified: SystemTime,
) -> NamedFolder {
    let (all, listed) = (experiment.clone(), plain.clone());
    let folders = NamedFolder::new(modified, move |name| {
        let plain = match &plain {
            Some(plain) => match plain.lookup(name)? {
                Some(Node::Folder(plain)) => Some(plain),
                other => return Ok(other.ok_or(None)),
            },
            None if measurement_names(&experiment)?.iter().any(|known| known == name) => None,
            None => return Ok(Err(None)),
        };
        let (experiment, cut, name) = (experiment.clone(), cut.clone(), name.to_owned());
        Ok(Ok(Node::Folder(Arc::new(LazyFolder::of_any(modified, move || {
            let made = annotated_data(&experiment, &name, &cut);
            let group = match &plain {
                None => made??,
                Some(plain) => match reasoned(made)? {
                    Ok(group) => group,
                    Err(reason) => return explained(&experiment, &name, version, plain, reason.to_string()),
                },
            };
            Ok(Arc::new(group_folder(&Arc::new(group), version, modified)))
        })))))
    });
    folders.keeping(KEPT).listing(move || match &listed {
        Some(plain) => plain.list(),
        None => Ok(measurement_names(&all)?.into_iter().map(Entry::folder).collect()),
    })
}

/// Turns an error about stored data into a reason for omission. A transient error stays an error: the next attempt may
/// succeed.
pub fn reasoned<T>(made: Result<FormatResult<T>>) -> Result<FormatResult<T>> {
    match made {
        Err(error) if !error.is_transient() => Ok(Err(Unrepresentable::new(error.to_string()))),
        made => made,
    }
}

/// The Zarr group of a measurement, with the reason why it is not annotated data.
struct Explained {
    of: Arc<dyn Folder>,
    version: ZarrVersion,
    metadata: Arc<Metadata>,
    reason: String,
}

impl Folder for Explained {
    fn inner(&self) -> Option<&dyn Folder> {
        Some(&*self.of)
    }

    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        let (metadata, reason) = (self.metadata.clone(), self.reason.clone());
        let read = move || Ok((metadata.clone(), Some(reason.clone())));
        match file_of_group(name, self.version, self.modified(), read) {
            None => self.of.lookup(name),
            file => Ok(file),
        }
    }

    fn list(&self) -> Result<Vec<Entry>> {
        self.of.list()
    }

    fn modified(&self) -> SystemTime {
        self.of.modified()
    }
}

fn explained(
    experiment: &OpenedGroup,
    name: &str,
    version: ZarrVersion,
    plain: &Arc<dyn Folder>,
    reason: String,
) -> Result<Arc<dyn Folder>> {
    Ok(match measurement(experiment, name)? {
        Some(measurement) => {
            Arc::new(Explained { of: plain.clone(), version, metadata: measurement.metadata()?, reason })
        }
        None => plain.clone(),
    })
}

/// Returns the name of the only measurement besides `raw`, or the reason why there is none.
fn only_measurement(experiment: &OpenedGroup) -> Result<FormatResult<String>> {
    let names = measurement_names(experiment)?;
    if names.is_empty() {
        return Ok(Err(Unrepresentable::new(format!("there is nothing in a group {MEASUREMENTS}"))));
    }
    let mut own = names.iter().filter(|name| names.len() == 1 || *name != RAW);
    Ok(match (own.next(), own.next()) {
        (Some(name), None) => Ok(name.clone()),
        _ => Err(Unrepresentable::new(format!(
            "there are {} measurements, of which AnnData has one: see {ZARR}/{MEASUREMENTS}",
            names.len()
        ))),
    })
}

/// Returns the names of all measurements; none if the group of measurements is missing.
pub fn measurement_names(experiment: &OpenedGroup) -> Result<Vec<String>> {
    let Some(OpenedObject::Group(all)) = member(experiment, MEASUREMENTS)? else { return Ok(Vec::new()) };
    Ok(NamedMembers::new(all.members()?).names.into_iter().flatten().collect())
}

pub fn member(group: &OpenedGroup, name: &str) -> Result<Option<OpenedObject>> {
    NamedMembers::new(group.members()?).open(group, name)
}

/// Returns the measurement of this name.
pub fn measurement(experiment: &OpenedGroup, name: &str) -> Result<Option<OpenedGroup>> {
    let Some(OpenedObject::Group(all)) = member(experiment, MEASUREMENTS)? else { return Ok(None) };
    Ok(match member(&all, name)? {
        Some(OpenedObject::Group(measurement)) => Some(*measurement),
        _ => None,
    })
}

/// Returns the data frame of this name in a group, restricted to some rows, or the reason why there is none.
fn data_frame(group: &OpenedGroup, name: &str, rows: Option<&Range<u64>>) -> Result<FormatResult<soma::Frame>> {
    let Some(OpenedObject::Array(array)) = member(group, name)? else {
        return Ok(Err(Unrepresentable::new(format!("there is no data frame {name}"))));
    };
    let frame = match Element::of(array.schema()) {
        Some(Element::DataFrame) => soma::data_frame(&array, rows)?,
        _ => Err(Unrepresentable::new("it is not a data frame")),
    };
    Ok(frame.map_err(|reason| Unrepresentable::new(format!("{name}: {reason}"))))
}

/// Returns a measurement with the observations of its experiment, restricted to `cut`, or the reason why that is
/// impossible.
pub fn annotated_data(experiment: &OpenedGroup, name: &str, cut: &Cut) -> Result<FormatResult<ZarrGroup>> {
    let observations = match data_frame(experiment, OBSERVATIONS, cut.observations.as_ref())? {
        Ok(observations) => observations,
        Err(reason) => return Ok(Err(reason)),
    };
    let Some(measurement) = measurement(experiment, name)? else {
        return Ok(Err(Unrepresentable::new("it is not a measurement")));
    };
    let variables = match data_frame(&measurement, "var", cut.variables.as_ref())? {
        Ok(variables) => variables,
        Err(reason) => return Ok(Err(reason)),
    };
    let axis = |all: u64, cut: &Option<Range<u64>>| {
        let cut = cut.as_ref().map(|range| range.start..range.end.min(all));
        MatrixAxis { length: Some(all), cut }
    };
    let (rows, columns) = (axis(observations.all, &cut.observations), axis(variables.all, &cut.variables));
    let any = MatrixAxis::default();
    let mut builder = Builder { members: Vec::new(), left_out: Vec::new() };
    let mut layers = Vec::new();
    for (layer, matrix) in builder.matrices(&measurement, "X", [&rows, &columns], FullMatrix::AsSparse)? {
        match layer == DATA {
            true => builder.members.push(("X".to_owned(), matrix)),
            false => layers.push((layer, matrix)),
        }
    }
    builder.mapping("layers", layers);
    builder.add(OBSERVATIONS, observations.group);
    builder.add("var", variables.group);
    let about = [
        ("obsm", [&rows, &any], FullMatrix::AsDense),
        ("obsp", [&rows, &rows], FullMatrix::AsSparse),
        ("varm", [&columns, &any], FullMatrix::AsDense),
        ("varp", [&columns, &columns], FullMatrix::AsSparse),
    ];
    for (name, axes, full) in about {
        let matrices = builder.matrices(&measurement, name, axes, full)?;
        builder.mapping(name, matrices);
    }
    if let Some(OpenedObject::Group(collection)) = member(&measurement, UNSTRUCTURED)? {
        let Unstructured { elements, left_out } = unstructured(&collection)?;
        builder.mapping(UNSTRUCTURED, elements);
        builder.left_out.extend(left_out.into_iter().map(|(name, why)| (format!("{UNSTRUCTURED}/{name}"), why)));
    }
    if name != RAW && only_measurement(experiment)?.is_ok_and(|only| only == name) {
        builder.raw(experiment, &rows)?;
    }
    builder.leave_out_others(experiment, &measurement)?;
    Ok(Ok(anndata::annotated_data(builder.members, builder.left_out)))
}

/// The representation of a sparse matrix that has a value in each of its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FullMatrix {
    AsDense,
    AsSparse,
}

struct Builder {
    members: Vec<(String, ZarrNode)>,
    left_out: Vec<(String, String)>,
}

impl Builder {
    fn add(&mut self, name: &str, group: ZarrGroup) {
        self.members.push((name.to_owned(), ZarrNode::Group(Arc::new(group))));
    }

    /// Adds elements under a name, if there are any.
    fn mapping(&mut self, name: &str, elements: Vec<(String, ZarrNode)>) {
        if !elements.is_empty() {
            self.add(name, anndata::mapping(elements));
        }
    }

    /// Returns the matrices in a group of this name, which need not exist.
    fn matrices(
        &mut self,
        around: &OpenedGroup,
        name: &str,
        axes: MatrixAxes<'_>,
        full: FullMatrix,
    ) -> Result<Vec<(String, ZarrNode)>> {
        let Some(OpenedObject::Group(group)) = member(around, name)? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        let members = NamedMembers::new(group.members()?);
        for own in members.names.iter().flatten() {
            let matrix = match members.open(&group, own)? {
                Some(OpenedObject::Array(array)) => matrix(&array, axes, full)?,
                _ => Err(Unrepresentable::new("it is not an array")),
            };
            match matrix {
                Ok(matrix) => found.push((own.clone(), matrix)),
                Err(reason) => self.left_out.push((format!("{name}/{own}"), reason.to_string())),
            }
        }
        Ok(found)
    }

    /// Notes which members of an experiment and its measurement are not shown.
    fn leave_out_others(&mut self, experiment: &OpenedGroup, measurement: &OpenedGroup) -> Result<()> {
        let known = ["X", "var", "obsm", "obsp", "varm", "varp", UNSTRUCTURED];
        for other in NamedMembers::new(measurement.members()?).names.into_iter().flatten() {
            if !known.contains(&other.as_str()) {
                self.left_out.push((other, "only matrices and data frames are shown here".to_owned()));
            }
        }
        for other in NamedMembers::new(experiment.members()?).names.into_iter().flatten() {
            if other != OBSERVATIONS && other != MEASUREMENTS {
                let reason = format!(
                    "AnnData has no place for what is in an experiment beside {OBSERVATIONS} and {MEASUREMENTS}"
                );
                self.left_out.push((other, reason));
            }
        }
        Ok(())
    }

    /// Adds AnnData's `raw`, the data before variables were selected: the measurement that TileDB-SOMA makes from it,
    /// if there is one.
    fn raw(&mut self, experiment: &OpenedGroup, rows: &MatrixAxis) -> Result<()> {
        let Some(measurement) = measurement(experiment, RAW)? else { return Ok(()) };
        let variables = match data_frame(&measurement, "var", None)? {
            Ok(variables) => variables,
            Err(reason) => {
                self.left_out.push((RAW.to_owned(), reason.to_string()));
                return Ok(());
            }
        };
        let mut raw = Builder { members: Vec::new(), left_out: Vec::new() };
        let columns = MatrixAxis { length: Some(variables.all), cut: None };
        let matrices = raw.matrices(&measurement, "X", [rows, &columns], FullMatrix::AsSparse)?;
        let (data, layers): (Vec<_>, Vec<_>) = matrices.into_iter().partition(|(layer, _)| layer == DATA);
        let omitted = |name: String| (name, "AnnData's raw data are one matrix and its variables".to_owned());
        raw.left_out.extend(layers.into_iter().map(|(layer, _)| omitted(format!("X/{layer}"))));
        for other in NamedMembers::new(measurement.members()?).names.into_iter().flatten() {
            if other != "X" && other != "var" {
                raw.left_out.push(omitted(other));
            }
        }
        self.left_out.extend(raw.left_out.drain(..).map(|(name, reason)| (format!("{RAW}/{name}"), reason)));
        let Some((_, data)) = data.into_iter().next() else { return Ok(()) };
        raw.members.push(("X".to_owned(), data));
        raw.add("var", variables.group);
        self.add(RAW, anndata::raw(raw.members));
        Ok(())
    }
}

/// Returns an array as a matrix, or the reason why it is not one.
fn matrix(array: &Arc<OpenedArray>, axes: MatrixAxes<'_>, full: FullMatrix) -> Result<FormatResult<ZarrNode>> {
    match Element::of(array.schema()) {
        Some(Element::SparseMatrix) => Ok(soma::sparse_matrix(array, axes)?.and_then(|matrix| {
            match full == FullMatrix::AsDense && soma::is_full(&matrix) {
                true => anndata::full(&matrix.values, matrix.shape),
                false => Ok(ZarrNode::Group(Arc::new(matrix.group()?))),
            }
        })),
        Some(Element::DenseMatrix) => soma::dense_array(array, axes),
        _ => Ok(Err(Unrepresentable::new("it is not a matrix"))),
    }
}
