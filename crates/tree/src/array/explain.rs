//! README.txt, schema.json, schema.txt and fragments.tsv in an array's folder.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use tilefs_base::error::{Error, Result};
use tilefs_export::{Labels, Metadatum};
use tilefs_format::scalar::Range;
use tilefs_reader::array::{OpenedArray, undecodable_fields};
use tilefs_select::time;
use tilefs_threads::cancellation;
use tilefs_vfs::node::Node;
use tilefs_vfs::node::lazy::{FixedFolder, LazyFile};

use crate::cells::MAX_PART_ROWS;
use crate::cells::axis_summary::AxisSummary;
use crate::cells::dense::CoveredBox;
use crate::domains;
use crate::fields::FieldFolder;
use crate::fields::enums;
use crate::fields::meta;
use crate::fields::rasters::image_part;
use crate::texts::{
    CellsSummary, Description, FragmentLine, FragmentsTsv, raster_json, readme, schema_json, schema_text, views_txt,
};
use crate::views::builder::{FileList, FolderBuilder};
use crate::views::described::EXPLANATION;

/// The unlisted folder of information about the tree itself.
pub const OWN: &str = ".tilefs";

/// The file in it that names every view.
pub const VIEWS: &str = "views.txt";

/// The unlisted file of facts for programs that draw the cells of a dense array.
const RASTERS: &str = "raster.json";

/// Maximum number of warnings shown.
const MAX_WARNINGS: usize = 100;

/// Minimum number of shown cells for which unwritten ones are worth mentioning.
const LARGE: u128 = 1 << 20;

/// Ratio of shown to written cells from which `nonempty/` is recommended.
const MUCH_LARGER: u128 = 10;

/// The folders of an array that contain files of all its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldFolderKind {
    /// The folder of the array itself.
    Whole,
    /// A folder of this name in it that shows the same except for the history: `nonempty/`, `by-row/`.
    Variant(&'static str),
    /// The folder of a slice, with its path: `slice/0..9`.
    Slice(String),
}

/// The folder of the non-empty domain.
pub trait NonEmptyPart: Send + Sync {
    /// Returns the source of its explanatory files.
    ///
    /// # Errors
    /// Fails if a footer cannot be read, or the box is larger than any file.
    fn explanations(&self) -> Result<&Explanations>;
}

/// Writes one of the explanatory texts.
type Write = fn(&Description<'_>) -> String;

/// The source of the explanatory files of one folder, once its other files are known.
pub struct Explanations {
    fields: FieldFolder,
    covers: CoveredBox,
    kind: FieldFolderKind,
    /// The folder of the non-empty domain in this one, if there is one.
    nonempty: Option<Arc<dyn NonEmptyPart>>,
    files: OnceLock<FileList>,
}

impl Explanations {
    /// Adds the explanatory files, so that they come first in the folder; they are written when read.
    pub fn add_files(
        builder: &mut FolderBuilder,
        fields: &FieldFolder,
        covers: CoveredBox,
        kind: FieldFolderKind,
        nonempty: Option<Arc<dyn NonEmptyPart>>,
    ) -> Arc<Self> {
        let explanations =
            Arc::new(Explanations { fields: fields.clone(), covers, kind, nonempty, files: OnceLock::new() });
        let texts = [("README.txt", readme as Write), ("schema.json", schema_json), ("schema.txt", schema_text)];
        for (name, write) in texts {
            let this = explanations.clone();
            let file = LazyFile::transient_text(fields.modified, move || {
                let (description, lasts) = this.description();
                cancellation::check()?;
                Ok((write(&description), lasts))
            });
            builder.add(name, &EXPLANATION.facts, file);
        }
        if !fields.schema().is_sparse() && fields.schema().dimensions.len() > 1 {
            let own = fields.clone();
            let file = LazyFile::text(fields.modified, move || raster_json(&own));
            builder.folder.add_unlisted(RASTERS, Node::File(Arc::new(file)));
        }
        if !matches!(explanations.kind, FieldFolderKind::Slice(_)) {
            let array = fields.subarray.array().clone();
            let file = LazyFile::text(fields.modified, move || fragments_text(&array));
            builder.add("fragments.tsv", &EXPLANATION.facts, file);
        }
        if explanations.kind == FieldFolderKind::Whole {
            let this = explanations.clone();
            let mut own = FixedFolder::new(fields.modified);
            let file = LazyFile::transient_text(fields.modified, move || {
                let (description, lasts) = this.description();
                cancellation::check()?;
                Ok((views_txt(&description), lasts))
            });
            own.add_file(VIEWS, file);
            builder.folder.add_unlisted(OWN, Node::Folder(Arc::new(own)));
        }
        explanations
    }

    /// Returns the fields whose files are in the folder.
    pub fn fields(&self) -> &FieldFolder {
        &self.fields
    }

    /// Returns the list of files of the folder, once it is known.
    pub fn files(&self) -> Option<&FileList> {
        self.files.get()
    }

    /// Sets the list of files of the folder.
    pub fn set_files(&self, files: FileList) {
        // A folder is built once, so the first list is kept.
        let _ = self.files.set(files);
    }

    /// Returns the description of the non-empty domain if the shown cells are far more, and whether the result is
    /// final.
    fn written(&self) -> Result<Option<(Description<'_>, bool)>> {
        let (Some(nonempty), Some(shape)) = (&self.nonempty, self.fields.subarray.known_shape()) else {
            return Ok(None);
        };
        let cells = |shape: &[u64]| shape.iter().fold(1u128, |product, &length| product.saturating_mul(length.into()));
        let shown = cells(&shape);
        if shown < LARGE {
            return Ok(None);
        }
        let explanations = nonempty.explanations()?;
        let written = explanations.fields.subarray.known_shape().map_or(0, |shape| cells(&shape));
        Ok((written > 0 && shown / MUCH_LARGER >= written).then(|| explanations.description()))
    }

    /// Returns which cells the files hold.
    fn cells(&self, findings: &mut Problems) -> CellsSummary {
        let array = self.fields.subarray.array();
        match self.fields.subarray.selection() {
            Some(selection) => CellsSummary::Dense {
                axes: selection
                    .axes()
                    .iter()
                    .zip(&array.schema().dimensions)
                    .map(|(a, d)| AxisSummary::of(a, d))
                    .collect(),
                covers: self.covers,
            },
            None => {
                let rows = findings.known(self.fields.subarray.row_count().map(Some));
                let non_empty = match self.kind {
                    FieldFolderKind::Slice(_) => Ok(None),
                    FieldFolderKind::Whole | FieldFolderKind::Variant(_) => non_empty_domain(array),
                };
                let matrix = match self.kind {
                    FieldFolderKind::Slice(_) => Ok(None),
                    FieldFolderKind::Whole | FieldFolderKind::Variant(_) => domains::matrix_lengths(array),
                };
                CellsSummary::Sparse { rows, non_empty: findings.known(non_empty), matrix: findings.known(matrix) }
            }
        }
    }

    /// Returns the description for the texts, and whether it is final: data that could not be read may be readable the
    /// next time.
    fn description(&self) -> (Description<'_>, bool) {
        let array = self.fields.subarray.array();
        let schema = array.schema();
        let warnings = array.folder().directory().remarks();
        let mut findings = Problems { warnings, known: HashSet::new(), last: true };
        let future = findings.known(array.future_commits().map(Some)).unwrap_or_default();
        findings.warnings.extend(time::future_commits(&future));
        undecodable_fields(schema).iter().for_each(|error| findings.warn(error));
        let enumerations = enumerations_of(array, &mut findings);
        let metadata = self.metadata(&mut findings);
        let cells = self.cells(&mut findings);
        let written = findings.known(self.written()).map(|(description, lasts)| {
            findings.last &= lasts;
            Box::new(description)
        });
        let image = match (&self.kind, &cells) {
            (FieldFolderKind::Whole, CellsSummary::Dense { .. }) => findings.known(image_part(&self.fields)),
            _ => None,
        };
        findings.last &= self.fields.shown.lists_values().1;
        let (files, not_listed) = self.files.get().map(FileList::describe).unwrap_or_default();
        let description = Description {
            path: array.path().to_string(),
            schema,
            cells,
            selection: match &self.kind {
                FieldFolderKind::Slice(path) => Some(path.clone()),
                FieldFolderKind::Whole | FieldFolderKind::Variant(_) => None,
            },
            image,
            written,
            annotated: match self.kind {
                FieldFolderKind::Slice(_) => None,
                FieldFolderKind::Whole | FieldFolderKind::Variant(_) => self.fields.form.zarr.map(|form| form.what),
            },
            window: array.window(),
            last_commit: array.last_commit(),
            fragments: array.fragment_count(),
            files: Arc::new(files),
            not_listed: Arc::new(not_listed),
            enumerations,
            metadata,
            warnings: findings.shown(),
            has_slices: !matches!(self.kind, FieldFolderKind::Slice(_)),
            has_history: self.kind == FieldFolderKind::Whole,
            is_long_table: self.fields.has_one_axis()
                && self.fields.subarray.row_count().is_ok_and(|rows| rows.most() > MAX_PART_ROWS),
        };
        (description, findings.last)
    }

    /// Returns the metadata for the texts; adds what is wrong with them to the findings.
    fn metadata(&self, findings: &mut Problems) -> Vec<Metadatum> {
        let metadata = match self.fields.subarray.array().metadata() {
            Ok(metadata) => {
                findings.warnings.extend(meta::left_out(&metadata));
                meta::for_formats(&metadata)
            }
            Err(error) => {
                findings.warn(&error);
                Vec::new()
            }
        };
        if let Ok(told) = self.fields.told() {
            findings.warnings.extend(told.remarks.iter().cloned());
        }
        metadata
    }
}

/// Returns the enumerations of an array's attributes, each once.
fn enumerations_of(array: &OpenedArray, findings: &mut Problems) -> Vec<Arc<Labels>> {
    let mut enumerations = Vec::new();
    let mut known = HashSet::new();
    for (number, attribute) in array.schema().attributes.iter().enumerate() {
        if attribute.enumeration.as_deref().is_some_and(|name| known.insert(name)) {
            enumerations.extend(findings.known(enums::labels(array, number)));
        }
    }
    enumerations
}

/// Problems found while describing an array, to be shown in the texts.
struct Problems {
    warnings: Vec<String>,
    /// Those about errors.
    known: HashSet<String>,
    /// Whether the next attempt would give the same result.
    last: bool,
}

impl Problems {
    fn warn(&mut self, error: &Error) {
        self.last &= !error.is_transient();
        let warning = error.to_string();
        if self.known.insert(warning.clone()) {
            self.warnings.push(warning);
        }
    }

    /// Returns a result, or turns its error into a warning.
    fn known<T>(&mut self, found: Result<Option<T>>) -> Option<T> {
        found.unwrap_or_else(|error| {
            self.warn(&error);
            None
        })
    }

    /// Returns the warnings, truncated if there are very many.
    fn shown(&mut self) -> Vec<String> {
        let all = self.warnings.len();
        let mut shown = std::mem::take(&mut self.warnings);
        if all > MAX_WARNINGS {
            shown.truncate(MAX_WARNINGS);
            shown.push(format!("{} more; tilefs verify lists them all", all - MAX_WARNINGS));
        }
        shown
    }
}

/// Returns the smallest box around the cells of all visible fragments, as far as their footers are known to hold; `None` if
/// a side of it is unknown.
fn non_empty_domain(array: &OpenedArray) -> Result<Option<Vec<Range>>> {
    array.read_outlines();
    let mut whole: Option<Vec<Range>> = None;
    for fragment in 0..array.fragment_count() {
        let outline = array.outline(fragment)?;
        let ranges = outline.facts.covering_ranges().filter(|ranges| !ranges.iter().any(Range::is_open));
        let Some(ranges) = ranges else { return Ok(None) };
        match &mut whole {
            None => whole = Some(ranges),
            Some(whole) => {
                for (whole, range) in whole.iter_mut().zip(ranges) {
                    if range.low.compare(&whole.low).is_lt() {
                        whole.low = range.low;
                    }
                    if range.high.compare(&whole.high).is_gt() {
                        whole.high = range.high;
                    }
                }
            }
        }
    }
    Ok(whole)
}

/// Returns a line for each visible fragment, oldest first. Reads only footers.
fn fragments_text(array: &OpenedArray) -> Result<String> {
    array.read_outlines();
    let mut text = FragmentsTsv::new(array.schema());
    for fragment in 0..array.fragment_count() {
        let outline = array.outline(fragment)?;
        let times = array.fragment_times(fragment);
        text.add(&FragmentLine {
            name: array.fragment_name(fragment),
            start: times.map_or(0, |times| times.t1),
            end: times.map_or(0, |times| times.t2),
            format_version: outline.facts.version,
            dense: outline.facts.dense,
            cells: array.fragment_cells(fragment).ok(),
            bytes: outline.facts.stored_bytes,
            non_empty: outline.facts.non_empty_ranges().as_deref(),
        });
    }
    Ok(text.finish())
}
