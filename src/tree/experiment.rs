//! `zarr/` of an experiment of TileDB-SOMA: its measurements as annotated data, so that anndata opens them as they are.
//!
//! * `zarr/ms/NAME` is the measurement NAME with the experiment's observations: `X` is the matrix `X/data`, `layers` are
//!   the other ones, `obs` and `var` the data frames, `obsm`, `obsp`, `varm` and `varp` the matrices of those. A matrix in
//!   `obsm` and `varm` that has all cells is an array. `uns` is what can be carried over of it.
//! * Where the experiment has one measurement, `zarr/` itself is that. One with the name `raw` does not count: it is what
//!   TileDB-SOMA makes of AnnData's `raw`, and is that.
//! * Where that cannot be, as when rows cannot be told by their place or a member is damaged, what is shown is the Zarr
//!   group of the group, as that of others, with the reason in its attribute `left_out`. What of annotated data has no
//!   place in AnnData is there, too.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use lru::LruCache;
use tilefs_export::zarr::{self, METADATA, anndata};
use tilefs_export::{FormatResult, Unrepresentable};
use tilefs_format::error::Result;
use tilefs_reader::array::{Array, Metadata, ObjectKind};
use tilefs_reader::group::Group;

use super::experiment_slices::Cut;
use super::experiment_uns::{Unstructured, unstructured};
use super::group_texts::NamedMembers;
use super::lazy::{LazyFile, LazyFolder};
use super::meta;
use super::node::{Entry, Folder, Node};
use super::open::open_folder;
use super::soma::{self, Element, MatrixAxes, MatrixAxis};
use super::zarr::{ANNOTATED, ZARR, group_folder};

/// What SOMA calls an experiment.
pub const EXPERIMENT: &str = "SOMAExperiment";

/// What SOMA calls a measurement.
pub const MEASUREMENT: &str = "SOMAMeasurement";

/// The group of an experiment's measurements.
pub const MEASUREMENTS: &str = "ms";

/// The collection of what is unstructured in a measurement.
const UNSTRUCTURED: &str = "uns";

/// The measurement that TileDB-SOMA makes of AnnData's `raw`, and AnnData's name of that.
const RAW: &str = "raw";

/// The matrix of a measurement that is AnnData's `X`.
const DATA: &str = "data";

/// Measurements whose folders are kept because they were looked at last.
const KEPT: usize = 16;

/// `zarr/` of an experiment. Members are opened when something in it is wanted.
pub struct ExperimentZarr {
    whole: Arc<dyn Folder>,
    /// The same as a group of groups and arrays.
    members: Arc<dyn Folder>,
    measurements: Option<Arc<dyn Folder>>,
}

impl ExperimentZarr {
    /// `plain` makes its Zarr group as a group of groups and arrays, given why it is not more.
    ///
    /// # Errors
    /// When its members cannot be told.
    pub fn new<P: Folder + 'static>(
        experiment: &Arc<Group>,
        modified: SystemTime,
        plain: impl Fn(Option<String>) -> P + Send + Sync + 'static,
    ) -> Result<Self> {
        let plain = Arc::new(plain);
        let members: Arc<dyn Folder> = Arc::new(plain(None));
        let measurements = match members.lookup(MEASUREMENTS)? {
            Some(Node::Folder(folder)) => Some(Arc::new(Measurements::new(experiment.clone(), folder, modified)) as _),
            _ => None,
        };
        let experiment = experiment.clone();
        let whole = LazyFolder::of_any(modified, move || {
            let made = only_measurement(&experiment).and_then(|only| match only {
                Ok(name) => annotated_data(&experiment, &name, &Cut::default()),
                Err(reason) => Ok(Err(reason)),
            });
            Ok(match reasoned(made)? {
                Ok(group) => Arc::new(group_folder(&Arc::new(group), modified)),
                Err(reason) => Arc::new(plain(Some(reason.to_string()))),
            })
        });
        Ok(ExperimentZarr { whole: Arc::new(whole), members, measurements })
    }
}

impl Folder for ExperimentZarr {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        if let (MEASUREMENTS, Some(measurements)) = (name, &self.measurements) {
            return Ok(Some(Node::Folder(measurements.clone())));
        }
        match self.whole.lookup(name)? {
            Some(node) => Ok(Some(node)),
            None => self.members.lookup(name),
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

/// `zarr/ms`: each measurement as annotated data.
struct Measurements {
    experiment: Arc<Group>,
    /// The Zarr group of the group.
    plain: Arc<dyn Folder>,
    modified: SystemTime,
    kept: Mutex<LruCache<String, Arc<dyn Folder>>>,
}

impl Measurements {
    fn new(experiment: Arc<Group>, plain: Arc<dyn Folder>, modified: SystemTime) -> Self {
        let kept = Mutex::new(LruCache::new(NonZeroUsize::new(KEPT).unwrap_or(NonZeroUsize::MIN)));
        Measurements { experiment, plain, modified, kept }
    }
}

impl Folder for Measurements {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let plain = match self.plain.lookup(name)? {
            Some(Node::Folder(plain)) => plain,
            other => return Ok(other),
        };
        if let Some(folder) = kept().get(name) {
            return Ok(Some(Node::Folder(folder.clone())));
        }
        let (experiment, modified, of_name) = (self.experiment.clone(), self.modified, name.to_owned());
        let folder: Arc<dyn Folder> = Arc::new(LazyFolder::of_any(modified, move || {
            Ok(match reasoned(annotated_data(&experiment, &of_name, &Cut::default()))? {
                Ok(group) => Arc::new(group_folder(&Arc::new(group), modified)),
                Err(reason) => explained(&experiment, &of_name, &plain, reason.to_string())?,
            })
        }));
        kept().put(name.to_owned(), folder.clone());
        Ok(Some(Node::Folder(folder)))
    }

    fn list(&self) -> Result<Vec<Entry>> {
        self.plain.list()
    }

    fn modified(&self) -> SystemTime {
        self.modified
    }

    fn memory(&self) -> usize {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().map(|(_, folder)| folder.memory()).sum()
    }
}

/// The same, but that what is wrong with something stored is a reason, too. What could not be read is none: it may be
/// read the next time.
fn reasoned<T>(made: Result<FormatResult<T>>) -> Result<FormatResult<T>> {
    match made {
        Err(error) if !error.is_passing() => Ok(Err(Unrepresentable::new(error.to_string()))),
        made => made,
    }
}

/// The Zarr group of a measurement that says why it is not annotated data.
struct Explained {
    of: Arc<dyn Folder>,
    metadata: Arc<Metadata>,
    reason: String,
}

impl Folder for Explained {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        if name != METADATA {
            return self.of.lookup(name);
        }
        let (metadata, reason) = (self.metadata.clone(), self.reason.clone());
        let text = move || Ok(zarr::of_group(&meta::for_formats(&metadata), Some((ANNOTATED, &reason))));
        Ok(Some(Node::File(Arc::new(LazyFile::text(self.modified(), text)))))
    }

    fn list(&self) -> Result<Vec<Entry>> {
        self.of.list()
    }

    fn modified(&self) -> SystemTime {
        self.of.modified()
    }
}

fn explained(experiment: &Group, name: &str, plain: &Arc<dyn Folder>, reason: String) -> Result<Arc<dyn Folder>> {
    Ok(match measurement(experiment, name)? {
        Some(measurement) => Arc::new(Explained { of: plain.clone(), metadata: measurement.metadata()?, reason }),
        None => plain.clone(),
    })
}

/// The name of the measurement that is all an experiment has but for `raw`, or why there is none.
pub fn only_measurement(experiment: &Group) -> Result<FormatResult<String>> {
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

/// The names of all measurements; none where there is no group of them.
pub fn measurement_names(experiment: &Group) -> Result<Vec<String>> {
    let Some(Object::Group(all)) = member(experiment, MEASUREMENTS)? else { return Ok(Vec::new()) };
    Ok(NamedMembers::new(all.members()?).names.into_iter().flatten().collect())
}

/// A member of a group.
pub enum Object {
    Array(Arc<Array>),
    Group(Group),
}

fn member(group: &Group, name: &str) -> Result<Option<Object>> {
    member_of(group, &NamedMembers::new(group.members()?), name)
}

/// As [`member`], for those who want several: the names of a group's members are given once.
pub fn member_of(group: &Group, members: &NamedMembers, name: &str) -> Result<Option<Object>> {
    let Some(path) = members.by_name.get(name).and_then(|&number| members.members.get(number)?.place.path()) else {
        return Ok(None);
    };
    Ok(match ObjectKind::of(&*group.context().storage, path)? {
        Some(ObjectKind::Array) => Some(Object::Array(open_folder(group.context().clone(), path, group.window())?)),
        Some(ObjectKind::Group) => Some(Object::Group(group.open_member(path)?)),
        None => None,
    })
}

/// The measurement of this name.
fn measurement(experiment: &Group, name: &str) -> Result<Option<Group>> {
    let Some(Object::Group(all)) = member(experiment, MEASUREMENTS)? else { return Ok(None) };
    Ok(match member(&all, name)? {
        Some(Object::Group(measurement)) => Some(measurement),
        _ => None,
    })
}

/// The data frame of this name in a group, cut to some rows, or why there is none.
fn data_frame(group: &Group, name: &str, rows: Option<&Range<u64>>) -> Result<FormatResult<soma::Frame>> {
    let Some(Object::Array(array)) = member(group, name)? else {
        return Ok(Err(Unrepresentable::new(format!("there is no data frame {name}"))));
    };
    let frame = match Element::of(array.schema()) {
        Some(Element::DataFrame) => soma::data_frame(&array, rows)?,
        _ => Err(Unrepresentable::new("it is no data frame")),
    };
    Ok(frame.map_err(|reason| Unrepresentable::new(format!("{name}: {reason}"))))
}

/// A measurement with the observations of its experiment, of both those that are wanted, or why it is none.
pub fn annotated_data(experiment: &Group, name: &str, cut: &Cut) -> Result<FormatResult<zarr::Group>> {
    let observations = match data_frame(experiment, "obs", cut.observations.as_ref())? {
        Ok(observations) => observations,
        Err(reason) => return Ok(Err(reason)),
    };
    let Some(measurement) = measurement(experiment, name)? else {
        return Ok(Err(Unrepresentable::new("it is no measurement")));
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
    for (layer, matrix) in builder.matrices(&measurement, "X", [&rows, &columns], Fullness::OfNoMeaning)? {
        match layer == DATA {
            true => builder.members.push(("X".to_owned(), matrix)),
            false => layers.push((layer, matrix)),
        }
    }
    builder.mapping("layers", layers);
    builder.add("obs", observations.group);
    builder.add("var", variables.group);
    let about = [
        ("obsm", [&rows, &any], Fullness::IsAnArray),
        ("obsp", [&rows, &rows], Fullness::OfNoMeaning),
        ("varm", [&columns, &any], Fullness::IsAnArray),
        ("varp", [&columns, &columns], Fullness::OfNoMeaning),
    ];
    for (name, axes, fullness) in about {
        let matrices = builder.matrices(&measurement, name, axes, fullness)?;
        builder.mapping(name, matrices);
    }
    if let Some(Object::Group(collection)) = member(&measurement, UNSTRUCTURED)? {
        let Unstructured { elements, left_out } = unstructured(&collection)?;
        builder.mapping(UNSTRUCTURED, elements);
        builder.left_out.extend(left_out.into_iter().map(|(name, why)| (format!("{UNSTRUCTURED}/{name}"), why)));
    }
    if name != RAW && only_measurement(experiment)?.is_ok_and(|only| only == name) {
        builder.raw(experiment, &rows)?;
    }
    let known = ["X", "var", "obsm", "obsp", "varm", "varp", UNSTRUCTURED];
    for other in NamedMembers::new(measurement.members()?).names.into_iter().flatten() {
        if !known.contains(&other.as_str()) {
            builder.left_out.push((other, "only matrices and data frames are shown here".to_owned()));
        }
    }
    Ok(Ok(anndata::annotated_data(builder.members, builder.left_out)))
}

/// What a matrix is that has a value in each of its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fullness {
    IsAnArray,
    OfNoMeaning,
}

struct Builder {
    members: Vec<(String, zarr::Node)>,
    left_out: Vec<(String, String)>,
}

impl Builder {
    fn add(&mut self, name: &str, group: zarr::Group) {
        self.members.push((name.to_owned(), zarr::Node::Group(Arc::new(group))));
    }

    /// Adds elements under a name, if there are any.
    fn mapping(&mut self, name: &str, elements: Vec<(String, zarr::Node)>) {
        if !elements.is_empty() {
            self.add(name, anndata::mapping(elements));
        }
    }

    /// The matrices in a group of this name, which need not be there.
    fn matrices(
        &mut self,
        around: &Group,
        name: &str,
        axes: MatrixAxes<'_>,
        fullness: Fullness,
    ) -> Result<Vec<(String, zarr::Node)>> {
        let Some(Object::Group(group)) = member(around, name)? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        let members = NamedMembers::new(group.members()?);
        for own in members.names.iter().flatten() {
            let matrix = match member_of(&group, &members, own)? {
                Some(Object::Array(array)) => matrix(&array, axes, fullness)?,
                _ => Err(Unrepresentable::new("it is no array")),
            };
            match matrix {
                Ok(matrix) => found.push((own.clone(), matrix)),
                Err(reason) => self.left_out.push((format!("{name}/{own}"), reason.to_string())),
            }
        }
        Ok(found)
    }

    /// What there was before variables were chosen, all of which it keeps: the measurement that is made of it, if there is
    /// one.
    fn raw(&mut self, experiment: &Group, rows: &MatrixAxis) -> Result<()> {
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
        let matrices = raw.matrices(&measurement, "X", [rows, &columns], Fullness::OfNoMeaning)?;
        let data = matrices.into_iter().find(|(layer, _)| layer == DATA);
        self.left_out.extend(raw.left_out.drain(..).map(|(name, reason)| (format!("{RAW}/{name}"), reason)));
        let Some((_, data)) = data else { return Ok(()) };
        raw.members.push(("X".to_owned(), data));
        raw.add("var", variables.group);
        self.add(RAW, anndata::raw(raw.members));
        Ok(())
    }
}

/// An array as a matrix, or why it is none.
fn matrix(array: &Arc<Array>, axes: MatrixAxes<'_>, fullness: Fullness) -> Result<FormatResult<zarr::Node>> {
    match Element::of(array.schema()) {
        Some(Element::SparseMatrix) => Ok(soma::sparse_matrix(array, axes)?.and_then(|matrix| {
            match fullness == Fullness::IsAnArray && soma::is_full(&matrix) {
                true => anndata::full(&matrix.values, matrix.shape),
                false => Ok(zarr::Node::Group(Arc::new(matrix.group()?))),
            }
        })),
        Some(Element::DenseMatrix) => soma::dense_matrix(array, axes),
        _ => Ok(Err(Unrepresentable::new("it is no matrix"))),
    }
}
