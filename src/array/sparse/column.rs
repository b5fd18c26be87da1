//! One file of a sparse array's fixed-size column: coordinates, values or validity, a cell for each row.

use std::sync::Arc;

use super::files::FixedFile;
use super::gather::{DROPPED, Gathered, Stretches, interleave};
use super::rows::{MixedRows, Rows};
use super::view::SparseView;
use crate::array::Array;
use crate::array::fragment::FieldFile;
use crate::error::{Error, Locate, Result};

/// Rows of a column, all of one size. Reads are independent of each other and may run at once.
pub struct FixedColumn {
    view: Arc<SparseView>,
    kind: Kind,
    cell_size: usize,
}

#[derive(Debug, Clone)]
enum Kind {
    Dimension(usize),
    /// By its number in the array's schema; with the cell that fragments without it have.
    Attribute(usize, FieldFile, Vec<u8>),
}

impl FixedColumn {
    /// The coordinates along a dimension of fixed size.
    ///
    /// # Errors
    /// [`Error::Internal`] when there is no such dimension.
    pub fn of_dimension(view: Arc<SparseView>, dimension: usize) -> Result<Self> {
        let wanted = view.array().schema().dimensions.get(dimension).filter(|wanted| !wanted.is_variable());
        let cell_size = wanted.map(|wanted| wanted.datatype.size());
        let cell_size = cell_size.ok_or_else(|| Error::internal(format!("no fixed-size dimension {dimension}")))?;
        Ok(FixedColumn { view, kind: Kind::Dimension(dimension), cell_size })
    }

    /// The values of an attribute of fixed size, by its number in the array's schema.
    ///
    /// # Errors
    /// [`Error::Internal`] when there is no such attribute.
    pub fn of_attribute(view: Arc<SparseView>, attribute: usize) -> Result<Self> {
        let wanted = view.array().schema().attributes.get(attribute).filter(|wanted| !wanted.is_variable());
        let fill = wanted.map(|wanted| wanted.fill.clone());
        let fill = fill.ok_or_else(|| Error::internal(format!("no fixed-size attribute {attribute}")))?;
        let cell_size = fill.len().max(1);
        Ok(FixedColumn { view, kind: Kind::Attribute(attribute, FieldFile::Data, fill), cell_size })
    }

    /// The validity bytes of a nullable attribute, by its number in the array's schema.
    ///
    /// # Errors
    /// [`Error::Internal`] when there is no such attribute.
    pub fn of_validity(view: Arc<SparseView>, attribute: usize) -> Result<Self> {
        let wanted = view.array().schema().attributes.get(attribute).filter(|wanted| wanted.nullable);
        let fill = wanted.map(|wanted| vec![wanted.fill_validity]);
        let fill = fill.ok_or_else(|| Error::internal(format!("no nullable attribute {attribute}")))?;
        Ok(FixedColumn { view, kind: Kind::Attribute(attribute, FieldFile::Validity, fill), cell_size: 1 })
    }

    /// How many rows there are.
    ///
    /// # Errors
    /// As [`SparseView::row_count`].
    pub fn row_count(&self) -> Result<u64> {
        self.view.row_count()
    }

    /// Bytes of one row, at least 1.
    pub fn cell_size(&self) -> usize {
        self.cell_size
    }

    /// Fills `out` with whole rows from row `first`.
    ///
    /// # Errors
    /// Any damage in what is needed for these rows.
    pub fn read(&self, first: u64, out: &mut [u8]) -> Result<()> {
        let size = self.cell_size;
        let count = (out.len() / size) as u64;
        let mut files = Files::new(self);
        let (mut cells, mut gathered) = (Vec::new(), Gathered::default());
        let mut rest = out;
        self.view.map()?.for_each(first, count, |rows| {
            let (out, behind) = std::mem::take(&mut rest).split_at_mut(rows.count() as usize * size);
            rest = behind;
            match rows {
                Rows::Run { fragment, position, rows } => files.read(fragment, position, rows, out),
                Rows::Mixed(mixed) => {
                    files.read_parts(mixed, &mut cells)?;
                    interleave(mixed, &cells, size, out);
                    Ok(())
                }
                Rows::Scattered(addresses) => {
                    gathered.set_scattered(addresses);
                    files.read_scattered(&gathered, &mut cells, out)
                }
            }
        })
    }

    /// Decodes what `count` rows from row `first` need into the cache.
    ///
    /// # Errors
    /// As [`FixedColumn::read`].
    pub fn prepare(&self, first: u64, count: u64) -> Result<()> {
        let mut files = Files::new(self);
        let stretches = Stretches::of(self.view.map()?, first, count)?;
        stretches.iter().try_for_each(|stretch| files.prepare(stretch.fragment, stretch.position, stretch.cells))
    }
}

/// The files of a column in the fragments that one read needs.
struct Files<'a> {
    column: &'a FixedColumn,
    array: &'a Array,
    open: Vec<Option<FixedFile>>,
}

impl<'a> Files<'a> {
    fn new(column: &'a FixedColumn) -> Self {
        let array = &**column.view.array();
        Files { column, array, open: Vec::new() }
    }

    fn get(&mut self, fragment: u32) -> Result<&FixedFile> {
        let number = fragment as usize;
        if self.open.len() <= number {
            self.open.resize_with(number + 1, || None);
        }
        if self.open[number].is_none() {
            let file = match &self.column.kind {
                Kind::Dimension(dimension) => FixedFile::of_dimension(self.array, number, *dimension),
                Kind::Attribute(attribute, file, fill) => {
                    FixedFile::of_attribute(self.array, number, *attribute, *file, fill)
                }
            };
            self.open[number] = Some(file.in_fragment(self.array.fragment_name(number)).in_array(self.array.path())?);
        }
        self.open[number].as_ref().ok_or_else(|| Error::damaged("no such fragment"))
    }

    /// Fills `out` with consecutive cells of a fragment.
    fn read(&mut self, fragment: u32, position: u64, cells: u64, out: &mut [u8]) -> Result<()> {
        let (column, size, array) = (self.column, self.column.cell_size, self.array);
        let view = &column.view;
        let file = self.get(fragment)?;
        let all = &view.basis().cells[fragment as usize];
        let axis = match &column.kind {
            Kind::Dimension(dimension) => view.basis().plan.axes.get(*dimension),
            Kind::Attribute(..) => None,
        };
        let read = all.for_each_tile(position, cells, |before, cells| {
            let start = before as usize * size;
            let out = &mut out[start..start + cells.count as usize * size];
            file.read(cells, out)?;
            match axis.and_then(|axis| Some((axis, axis.find_outside(out)?))) {
                Some((axis, cell)) => {
                    let place = format!("tile {}, cell {}", cells.tile, cells.first + cell as u64);
                    let error = Error::damaged(format!("{place}: a coordinate outside the domain"));
                    Err(match file.path() {
                        Some(path) => error.in_field(&axis.name).in_file(path),
                        None => error.in_field(&axis.name),
                    })
                }
                None => Ok(()),
            }
        });
        read.in_fragment(array.fragment_name(fragment as usize)).in_array(array.path())
    }

    /// Reads the cells of mixed rows, part by part.
    fn read_parts(&mut self, mixed: &MixedRows, cells: &mut Vec<u8>) -> Result<()> {
        let size = self.column.cell_size;
        cells.resize(mixed.codes.len() * size, 0);
        let mut rest = cells.as_mut_slice();
        for part in mixed.parts.iter().filter(|part| part.cells > 0) {
            let (own, behind) = rest.split_at_mut(part.cells as usize * size);
            self.read(part.fragment, part.position, part.cells, own)?;
            rest = behind;
        }
        Ok(())
    }

    fn read_scattered(&mut self, gathered: &Gathered, cells: &mut Vec<u8>, out: &mut [u8]) -> Result<()> {
        let size = self.column.cell_size;
        for (stretch, rows) in gathered.iter() {
            cells.resize(stretch.cells as usize * size, 0);
            self.read(stretch.fragment, stretch.position, stretch.cells, cells)?;
            for (cell, row) in cells.chunks_exact(size).zip(rows).filter(|(_, row)| **row != DROPPED) {
                let start = *row as usize * size;
                out[start..start + size].copy_from_slice(cell);
            }
        }
        Ok(())
    }

    fn prepare(&mut self, fragment: u32, position: u64, cells: u64) -> Result<()> {
        let view = &self.column.view;
        let file = self.get(fragment)?;
        view.basis().cells[fragment as usize].for_each_tile(position, cells, |_, cells| file.prepare(cells))
    }
}
