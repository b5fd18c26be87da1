//! README.txt, schema.json, schema.txt and fragments.tsv in an array's folder.

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use super::array::last_commit;
use super::builder::{FileList, FolderBuilder};
use super::enums;
use super::fields::FieldFolder;
use super::made::MadeFile;
use super::meta;
use super::texts::{
    AxisShown, CellsShown, Covers, Description, Format, FragmentFacts, fragments_tsv, readme, schema_json, schema_text,
};
use crate::array::{Array, undecodable_fields};
use crate::error::{Error, Result};

/// So many warnings are shown.
const MOST_WARNINGS: usize = 100;

/// Writes one of the explaining texts.
type Write = fn(&Description<'_>) -> String;

/// What the explaining files of one folder are made from, once the other files are known.
pub struct Explained {
    fields: FieldFolder,
    covers: Covers,
    selection: Option<String>,
    files: OnceLock<FileList>,
}

impl Explained {
    /// Adds the explaining files, so that they come first in the folder; they are written when they are read.
    pub fn add_files(
        builder: &mut FolderBuilder,
        fields: &FieldFolder,
        covers: Covers,
        selection: Option<String>,
    ) -> Arc<Self> {
        let explained = Arc::new(Explained { fields: fields.clone(), covers, selection, files: OnceLock::new() });
        let texts = [("README.txt", readme as Write), ("schema.json", schema_json), ("schema.txt", schema_text)];
        for (name, write) in texts {
            let this = explained.clone();
            let file = MadeFile::passing_text(fields.modified, move || {
                let (description, lasts) = this.description();
                Ok((write(&description), lasts))
            });
            builder.add(name, Format::Explanation, None, file);
        }
        if explained.selection.is_none() {
            let array = fields.shown.array().clone();
            let file = MadeFile::passing_text(fields.modified, move || fragments_text(&array));
            builder.add("fragments.tsv", Format::Explanation, None, file);
        }
        explained
    }

    /// Tells which files the folder has.
    pub fn know(&self, files: FileList) {
        // The first list stays: a folder is built once.
        let _ = self.files.set(files);
    }

    /// What the texts tell, and whether it lasts: what could not be read may be the next time.
    fn description(&self) -> (Description<'_>, bool) {
        let array = self.fields.shown.array();
        let schema = array.schema();
        let mut warnings: Vec<String> = undecodable_fields(schema).iter().map(Error::to_string).collect();
        warnings.extend_from_slice(array.folder().directory().warnings());
        let mut lasts = true;
        let mut warn = |error: Error| {
            lasts &= !error.is_passing();
            warnings.push(error.to_string());
        };
        let mut enumerations = Vec::new();
        let mut known = HashSet::new();
        for (number, attribute) in schema.attributes.iter().enumerate() {
            if !attribute.enumeration.as_deref().is_some_and(|name| known.insert(name)) {
                continue;
            }
            match enums::labels(array, number) {
                Ok(labels) => enumerations.extend(labels),
                Err(error) => warn(error),
            }
        }
        let metadata = match array.metadata() {
            Ok(metadata) => {
                warnings.extend(meta::left_out(&metadata));
                meta::for_formats(&metadata)
            }
            Err(error) => {
                warn(error);
                Vec::new()
            }
        };
        let all = warnings.len();
        if all > MOST_WARNINGS {
            warnings.truncate(MOST_WARNINGS);
            warnings.push(format!("{} more; tilefs verify tells them all", all - MOST_WARNINGS));
        }
        let cells = match self.fields.shown.selection() {
            Some(selection) => CellsShown::Dense {
                axes: selection.axes().iter().zip(&schema.dimensions).map(|(a, d)| AxisShown::of(a, d)).collect(),
                covers: self.covers,
            },
            None => CellsShown::Sparse {
                rows: self.fields.shown.known_shape().and_then(|shape| shape.first().copied()),
                non_empty: None,
            },
        };
        let FileList { files, not_listed } = self.files.get().cloned().unwrap_or_default();
        let description = Description {
            path: array.path().display().to_string(),
            schema,
            cells,
            selection: self.selection.clone(),
            window: array.window(),
            last_commit: last_commit(array),
            fragments: array.fragment_count(),
            files,
            not_listed,
            enumerations,
            metadata,
            warnings,
            has_slices: self.selection.is_none(),
            has_history: self.selection.is_none(),
        };
        (description, lasts)
    }
}

/// A line for each visible fragment, oldest first; and whether that lasts.
fn fragments_text(array: &Array) -> Result<(String, bool)> {
    let mut outlines = Vec::with_capacity(array.fragment_count());
    for fragment in 0..array.fragment_count() {
        outlines.push(array.outline(fragment)?);
    }
    let lasts = Cell::new(true);
    let known = |number: Result<u64>| match number {
        Ok(number) => Some(number),
        Err(error) => {
            lasts.set(lasts.get() && !error.is_passing());
            None
        }
    };
    let facts = outlines.iter().enumerate().map(|(fragment, outline)| {
        let facts = &outline.facts;
        let name = array.fragment_name(fragment);
        let times = array.fragment_times(fragment);
        FragmentFacts {
            name,
            start: times.map_or(0, |times| times.t1),
            end: times.map_or(0, |times| times.t2),
            format_version: facts.version,
            dense: facts.dense,
            cells: known(array.fragment_cells(fragment)),
            bytes: known(array.fragment_bytes(fragment)),
            non_empty: facts.non_empty_domain.as_deref(),
        }
    });
    let text = fragments_tsv(array.schema(), facts);
    Ok((text, lasts.get()))
}
