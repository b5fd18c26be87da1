//! Where the values in an array's files come from, as `tilefs explain` tells it: finds the cell of a row or of a byte, and
//! asks the reader for its origin.

use std::sync::Arc;

use tilefs_base::error::{Error, Result};
use tilefs_base::search::partition_point;
use tilefs_export::npy::{self, Order};
use tilefs_reader::array::FieldId;
use tilefs_reader::array::origin::{CellOrigin, ValuePart, stored_values};
use tilefs_reader::array::sparse::RowCount;
use tilefs_vfs::Folder;

use crate::array::explain::Explanations;
use crate::array::explanation::{AskedPart, Explanation, FieldOrigin, FieldSource, Origins};
use crate::fields::FieldFolder;
use crate::fields::columns::column_of;
use crate::views::VIEWS;
use crate::views::column_major::COLUMN_MAJOR;
use crate::views::facts::ViewFacts;
use crate::views::view::CellBytes;

/// The most fields of a cell that are explained together.
const MAX_FIELDS: usize = 256;

/// The most runs of cells that are told.
const MAX_RUNS: usize = 24;

/// Bytes of an offset.
const OFFSET: u64 = 8;

/// Returns what tells where the values in the files of a folder come from, if they are those of an array.
pub fn of(folder: &dyn Folder) -> Option<Arc<dyn Origins>> {
    let explanations = folder.subject()?.downcast::<Explanations>().ok()?;
    Some(explanations)
}

impl Origins for Explanations {
    fn explain(&self, path: &str, asked: AskedPart) -> Result<Explanation> {
        ExplainedFile::of(self, path)?.explain(asked)
    }
}

/// A file of an array's folder, or the folder itself.
struct ExplainedFile<'a> {
    path: &'a str,
    fields: &'a FieldFolder,
    view: Option<&'static ViewFacts>,
    cell_bytes: CellBytes,
    /// The fields whose values are in the file.
    ids: Vec<FieldId>,
    notes: Vec<String>,
}

impl<'a> ExplainedFile<'a> {
    fn of(explanations: &'a Explanations, path: &'a str) -> Result<Self> {
        let fields = explanations.fields();
        let (files, _) = explanations.files().map(|files| files.describe()).unwrap_or_default();
        let known = files.iter().find(|file| file.path == path);
        let folder = path.split('/').next().unwrap_or_default();
        let of_folder = || VIEWS.iter().map(|view| &view.facts).find(|facts| facts.folder == folder && path != folder);
        let view = known.map(|file| file.view).or_else(of_folder);
        let named = known.and_then(|file| file.field.clone());
        let has_name = |id: &FieldId| named.as_deref().is_some_and(|name| *fields.user_name(*id) == *name);
        // An attribute and a dimension may have the same name; beside each other, the attribute's file is found.
        let attribute = fields.attributes().find(|id| has_name(id) && !path.starts_with("dims/"));
        let one = attribute.or_else(|| fields.dimensions().find(has_name));
        let mut notes = Vec::new();
        let ids = match one {
            Some(id) => vec![id],
            None => {
                let mut all: Vec<FieldId> = fields.dimensions().chain(fields.attributes()).collect();
                if all.len() > MAX_FIELDS {
                    notes.push(format!(
                        "{} of {} fields are explained; give the file of another one",
                        MAX_FIELDS,
                        all.len()
                    ));
                    all.truncate(MAX_FIELDS);
                }
                all
            }
        };
        let of_view = VIEWS.iter().find(|one| Some(&one.facts) == view);
        let cell_bytes = of_view.filter(|_| one.is_some()).map_or(CellBytes::Derived, |view| view.cell_bytes);
        Ok(ExplainedFile { path, fields, view, cell_bytes, ids, notes })
    }

    fn explain(mut self, asked: AskedPart) -> Result<Explanation> {
        let subarray = &self.fields.subarray;
        let asked_cell = match asked {
            AskedPart::Cell(cell) => Some(cell),
            AskedPart::Byte(byte) => self.cell_of_byte(byte)?,
            AskedPart::Whole => None,
        };
        let mut runs = Vec::new();
        if asked_cell.is_none() && self.axis_of_file().is_none() {
            let attribute = self.ids.iter().find_map(|id| match id {
                FieldId::Attribute(number) => Some(*number),
                FieldId::Dimension(_) => None,
            });
            // First, because the map that this makes has the number of rows.
            runs = subarray.runs(attribute.unwrap_or(0), MAX_RUNS)?;
        }
        let count = match self.axis_of_file() {
            Some(axis) => RowCount::Exactly(subarray.shape()?.get(axis).copied().unwrap_or(0)),
            None => subarray.row_count()?,
        };
        let is_only_one = asked == AskedPart::Whole && count == RowCount::Exactly(1);
        let cell = asked_cell.or(is_only_one.then_some(0));
        let (mut fields, mut hidden) = (Vec::new(), None);
        match cell {
            Some(cell) => {
                fields = self.explain_cell(cell, count)?;
                runs.clear();
            }
            None => {
                hidden = subarray.hidden()?;
                if hidden.is_none() && subarray.are_rows() && subarray.is_part() {
                    self.notes.push("too many cells are selected to tell which of them are hidden".to_owned());
                }
            }
        }
        let (array, are_rows, view) = (subarray.array().clone(), subarray.are_rows(), self.view.map(|view| view.name));
        Ok(Explanation { array, view, are_rows, count, cell, notes: self.notes, fields, hidden, runs })
    }

    /// Returns the axis whose coordinates the file has, if it is one of a dense array.
    fn axis_of_file(&self) -> Option<usize> {
        match self.ids.as_slice() {
            [FieldId::Dimension(axis)] if !self.fields.subarray.are_rows() => Some(*axis),
            _ => None,
        }
    }

    fn explain_cell(&self, cell: u64, count: RowCount) -> Result<Vec<FieldOrigin>> {
        let what = if self.fields.subarray.are_rows() { "row" } else { "cell" };
        let past = || match count {
            RowCount::Exactly(count) => {
                Error::usage(format!("there is no {what} {cell}: there are {count}, from 0 on"))
            }
            RowCount::AtMost(_) => Error::usage(format!("there is no {what} {cell}")),
        };
        if cell >= count.most() {
            return Err(past());
        }
        let mut shared = None;
        let explained = self.ids.iter().map(|id| self.explain_field(*id, cell, &mut shared));
        explained.map(|found| found?.ok_or_else(past)).collect()
    }

    /// Returns the origin of a field's value; `None` past the last cell. `shared` is the origin of all fields of a row,
    /// once it is known.
    fn explain_field(
        &self,
        id: FieldId,
        cell: u64,
        shared: &mut Option<Arc<CellOrigin>>,
    ) -> Result<Option<FieldOrigin>> {
        let (subarray, field) = (&self.fields.subarray, self.fields.describe(id));
        let (name, datatype) = (self.fields.user_name(id).into_owned(), field.datatype);
        let attribute = match id {
            FieldId::Attribute(number) => Some(number),
            FieldId::Dimension(axis) if !subarray.are_rows() => {
                let Some(value) = self.computed(axis, cell, shared)? else { return Ok(None) };
                let (source, stored) = (FieldSource::Computed, Vec::new());
                let value = Some(value);
                return Ok(Some(FieldOrigin {
                    id,
                    name,
                    datatype,
                    source,
                    origin: None,
                    stored,
                    value,
                    is_null: false,
                }));
            }
            FieldId::Dimension(_) => None,
        };
        let origin = match shared.clone().filter(|_| subarray.are_rows()) {
            Some(known) => known,
            None => match subarray.cell_origin(attribute.unwrap_or(0), cell)? {
                Some(origin) => Arc::new(origin),
                None => return Ok(None),
            },
        };
        *shared = Some(origin.clone());
        let stored = match &origin.shown {
            Some(place) => stored_values(subarray.array(), id, place)?,
            None => Vec::new(),
        };
        let part =
            |part: ValuePart| stored.iter().find(|one| one.part == part).map(|one| one.value.as_ref().ok().cloned());
        let fill = attribute.and_then(|number| self.fields.schema().attributes.get(number));
        let (value, is_null, source) = match (part(ValuePart::Values), stored.is_empty(), fill) {
            (None, true, Some(attribute)) => {
                let is_null = attribute.nullable && attribute.fill_validity == 0;
                (Some(attribute.fill.clone()), is_null, FieldSource::Fill)
            }
            // Damage in any part makes the value unreadable.
            _ if stored.iter().any(|one| one.value.is_err()) => (None, false, FieldSource::Stored),
            (value, ..) => {
                let is_null = part(ValuePart::Validity).flatten().is_some_and(|bytes| bytes == [0]);
                (value.flatten(), is_null, FieldSource::Stored)
            }
        };
        Ok(Some(FieldOrigin { id, name, datatype, source, origin: Some(origin), stored, value, is_null }))
    }

    /// Returns a coordinate of a dense array: that of a position along the axis if the file has nothing else, or else
    /// that of a cell.
    fn computed(&self, axis: usize, cell: u64, shared: &mut Option<Arc<CellOrigin>>) -> Result<Option<Vec<u8>>> {
        let subarray = &self.fields.subarray;
        let id = FieldId::Dimension(axis);
        let datatype = self.fields.describe(id).datatype;
        if self.axis_of_file().is_some() {
            let mut bytes = vec![0; datatype.size()];
            subarray.values(id)?.read_at(cell.saturating_mul(datatype.size() as u64), &mut bytes)?;
            return Ok(Some(bytes));
        }
        if shared.is_none() {
            *shared = subarray.cell_origin(0, cell)?.map(Arc::new);
        }
        let coordinate = shared.as_ref().and_then(|origin| origin.coordinates.get(axis));
        coordinate.map(|coordinate| coordinate.to_bytes(datatype)).transpose()
    }

    /// Returns the cell that a byte of the file is of; `None` with a note if it is of no single cell.
    fn cell_of_byte(&mut self, byte: u64) -> Result<Option<u64>> {
        let ([id], false) = (self.ids.as_slice(), self.cell_bytes == CellBytes::Derived) else {
            self.notes.push(
                "the bytes of this file are made from several cells or from none; ask for one with --row".to_owned(),
            );
            return Ok(None);
        };
        let (id, field) = (*id, self.fields.describe(*id));
        let is_mask = self.path.ends_with(".valid.npy");
        let size = if is_mask { Some(1) } else { field.cell_size() };
        let cell = match (self.cell_bytes, size) {
            (CellBytes::Offsets, _) => Some(byte / OFFSET),
            (CellBytes::Validity, _) => Some(byte),
            (CellBytes::Values, Some(size)) => byte.checked_div(size),
            (CellBytes::Values, None) => self.cell_of_value(id, byte)?,
            (CellBytes::NumPy, Some(size)) => {
                let header = self.numpy_header(id, is_mask)?;
                let behind = byte.checked_sub(header);
                if behind.is_none() {
                    let note = format!(
                        "byte {byte} is in the header of {header} bytes, which comes from the schema and no cell"
                    );
                    self.notes.push(note);
                }
                behind.and_then(|behind| behind.checked_div(size))
            }
            _ => None,
        };
        if self.path.starts_with(&format!("{}/", COLUMN_MAJOR.facts.folder)) {
            let shape = self.fields.subarray.shape()?;
            return Ok(cell.map(|cell| row_major(cell, &shape)));
        }
        Ok(cell)
    }

    /// Returns the cell whose value of variable length has a byte; the number of cells past the end.
    fn cell_of_value(&self, id: FieldId, byte: u64) -> Result<Option<u64>> {
        let offsets = self.fields.subarray.offsets(id)?;
        let cells = (offsets.len() / OFFSET).saturating_sub(1);
        let end_of = |cell: u64| {
            let mut bytes = [0; OFFSET as usize];
            offsets.read_at(cell.saturating_add(1).saturating_mul(OFFSET), &mut bytes)?;
            Ok(u64::from_le_bytes(bytes) <= byte)
        };
        Ok(Some(partition_point(0..cells, end_of)?))
    }

    /// Returns the length of the header of a NumPy file.
    fn numpy_header(&self, id: FieldId, is_mask: bool) -> Result<u64> {
        let column = column_of(self.fields, id)?;
        let content = match is_mask {
            true => npy::validity(&column, Order::RowMajor)?,
            false => npy::npy(&column, Order::RowMajor)?,
        };
        let size = if is_mask { 1 } else { self.fields.describe(id).cell_size().unwrap_or(1) };
        let cells = match self.axis_of_file() {
            Some(axis) => self.fields.subarray.shape()?.get(axis).copied().unwrap_or(0),
            None => self.fields.subarray.shape()?.iter().copied().fold(1, u64::saturating_mul),
        };
        Ok(content.len().saturating_sub(cells.saturating_mul(size)))
    }
}

/// Returns the number in row-major order of a cell whose number has the first axis fastest.
fn row_major(cell: u64, shape: &[u64]) -> u64 {
    let (mut rest, mut number) = (cell, 0u64);
    let mut stride = shape.iter().copied().fold(1, u64::saturating_mul);
    for &length in shape {
        stride /= length.max(1);
        number = number.saturating_add((rest % length.max(1)).saturating_mul(stride));
        rest /= length.max(1);
    }
    // Past the last cell, it stays so.
    if rest > 0 { u64::MAX } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_their_numbers_in_row_major_order() {
        let shape = [2, 3, 4];
        for (number, (x, y, z)) in
            (0..2).flat_map(|x| (0..3).flat_map(move |y| (0..4).map(move |z| (x, y, z)))).enumerate()
        {
            assert_eq!(row_major(x + 2 * (y + 3 * z), &shape), number as u64);
        }
        assert_eq!((row_major(24, &shape), row_major(0, &[])), (u64::MAX, 0));
    }
}
