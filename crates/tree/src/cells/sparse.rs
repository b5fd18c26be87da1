//! A sparse array, or the rows of it that a selection selects, as files.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_base::inputs::{Recorded, Recorder};
use tilefs_base::output::Output;
use tilefs_export::column::ColumnStatistics;
use tilefs_export::content::raw::{FixedCells, RawFile};
use tilefs_export::content::validity::Validity;
use tilefs_export::content::var::{VarOffsets, VarValues};
use tilefs_export::number;
use tilefs_export::parquet::TileRows;
use tilefs_reader::array::OpenedArray;
use tilefs_reader::array::origin::{self, CellOrigin, CellRun};
use tilefs_reader::array::sparse::{
    CoordinateRange, FixedColumn, RowCondition, RowCount, RowStatistics, SparseView, Unmerged, VarColumn,
};
use tilefs_select::bounds::integer_ends;
use tilefs_select::{self as select, Addressing, SelectedRows};
use tilefs_threads::single_flight::SingleFlight;

use crate::cells::label_search::selectable;
use crate::cells::{FieldId, Subarray};

/// The selected coordinates along each dimension, in the array reader's form.
type Ranges = Vec<Option<Vec<CoordinateRange>>>;

/// The rows of a sparse array. Its footers are read when the first row, or the number of rows, is needed.
pub struct SparseSubarray {
    array: Arc<OpenedArray>,
    /// `None` selects all rows.
    ranges: Option<Ranges>,
    /// Conditions on attributes.
    conditions: Vec<RowCondition>,
    /// Whether rows are sorted by coordinates instead of in the array's order.
    by_row: bool,
    view: SingleFlight<Arc<SparseView>>,
    /// Variable-length fields that were opened; they keep the positions of their values.
    var_columns: Mutex<HashMap<FieldId, Arc<VarColumn>>>,
}

impl SparseSubarray {
    /// Creates the subarray of all rows; `by_row` sorts them by coordinates.
    pub fn new(array: Arc<OpenedArray>, by_row: bool) -> Self {
        Self::of(array, None, by_row)
    }

    /// Creates the subarray of the cells whose coordinates lie in these ranges, for each dimension (`None` for all of
    /// it), sorted by coordinates.
    pub fn selected(array: Arc<OpenedArray>, ranges: Vec<Option<Vec<CoordinateRange>>>) -> Self {
        Self::of(array, Some(ranges), true)
    }

    fn of(array: Arc<OpenedArray>, ranges: Option<Ranges>, by_row: bool) -> Self {
        SparseSubarray {
            array,
            ranges,
            conditions: Vec::new(),
            by_row,
            view: SingleFlight::new(),
            var_columns: Mutex::default(),
        }
    }

    fn view(&self) -> Result<Arc<SparseView>> {
        let make = || {
            let mut view = Arc::new(SparseView::new(self.array.clone())?);
            if let Some(ranges) = &self.ranges {
                view = Arc::new(view.select(ranges)?);
            }
            if !self.conditions.is_empty() {
                view = Arc::new(view.matching(self.conditions.clone())?);
            }
            if self.by_row {
                view = Arc::new(view.by_row_order());
            }
            Ok(view)
        };
        self.view.get_or_retry(make).cloned()
    }

    /// Returns whether the rows are certain to be sorted by coordinates, with the last dimension most significant.
    ///
    /// # Errors
    /// Any damage in footers.
    pub fn is_column_major(&self) -> Result<bool> {
        Ok(self.view()?.is_column_major())
    }

    /// Returns the number of matrix rows in a band, if the cells are certain to be ordered by band, and within a band
    /// by column, instead of by row.
    ///
    /// # Errors
    /// Any damage in footers.
    pub fn band_of_rows(&self) -> Result<Option<u64>> {
        Ok(self.view()?.band_of_rows())
    }

    /// Returns the same rows fragment by fragment, and the first row of each fragment; `None` if footers do not show
    /// that every cell is a row. Rows of a matrix with the same first coordinate are in the order of the second.
    ///
    /// # Errors
    /// Any damage in footers.
    pub fn unmerged(&self) -> Result<Option<(Self, Vec<u64>)>> {
        let unmerged = self.view()?.unmerged()?;
        Ok(unmerged.map(|Unmerged { view, starts }| {
            (SparseSubarray { view: Arc::new(view).into(), ..Self::of(self.array.clone(), None, false) }, starts)
        }))
    }

    /// Returns how many bands of matrix rows the boxes of the fragments touch, each fragment on its own; `None` if
    /// unknown.
    ///
    /// # Errors
    /// Any damage in footers.
    pub fn bands_of_fragments(&self) -> Result<Option<u64>> {
        self.view()?.bands_of_fragments()
    }

    fn is_variable(&self, field: FieldId) -> bool {
        let schema = self.array.schema();
        match field {
            FieldId::Attribute(number) => schema.attributes[number].is_variable(),
            FieldId::Dimension(number) => schema.dimensions[number].is_variable(),
        }
    }

    fn var_column(&self, field: FieldId) -> Result<Arc<VarColumn>> {
        let view = self.view()?;
        let columns = || self.var_columns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = columns().get(&field) {
            return Ok(known.clone());
        }
        let column = Arc::new(match field {
            FieldId::Attribute(number) => VarColumn::of_attribute(view, number)?,
            FieldId::Dimension(number) => VarColumn::of_dimension(view, number)?,
        });
        // Another thread may have made one meanwhile, which already has the positions of its values.
        Ok(columns().entry(field).or_insert(column).clone())
    }
}

impl Subarray for SparseSubarray {
    fn array(&self) -> &Arc<OpenedArray> {
        &self.array
    }

    fn shape(&self) -> Result<Vec<u64>> {
        Ok(vec![self.view()?.row_count()?])
    }

    /// Returns the bounds of the domain or, if these are not useful, of the non-empty domain.
    fn bounds(&self, dimension: usize) -> Result<Option<(i128, i128)>> {
        let schema = self.array.schema();
        let current = schema.current_domain.as_ref().and_then(|ranges| ranges.get(dimension));
        let Some(range) = current.or(schema.dimensions[dimension].domain.as_ref()) else { return Ok(None) };
        let Some(domain) = integer_ends(range) else { return Ok(None) };
        // Wider bounds let no format use a narrower type than 64 bits.
        if number::is_exact(domain.0) && number::is_exact(domain.1) {
            return Ok(Some(domain));
        }
        let mut found: Option<(i128, i128)> = None;
        for fragment in 0..self.array.fragment_count() {
            let outline = self.array.outline(fragment)?;
            let ends = outline.facts.non_empty_range(dimension).and_then(|range| integer_ends(&range));
            let Some((low, high)) = ends else { return Ok(Some(domain)) };
            found = Some(found.map_or((low, high), |(least, most)| (least.min(low), most.max(high))));
        }
        Ok(found.or(Some(domain)))
    }

    fn row_count(&self) -> Result<RowCount> {
        self.view()?.known_row_count()
    }

    fn record(&self, recorder: &mut Recorder) {
        let Self { array: _, ranges: _, conditions: _, by_row: _, view: _, var_columns: _ } = self;
        match self.view() {
            Ok(view) => view.record(recorder),
            Err(_) => recorder.add_unknown(),
        }
    }

    fn known_shape(&self) -> Option<Vec<u64>> {
        None
    }

    fn memory(&self) -> usize {
        self.view.get().map_or(0, |view| view.memory())
    }

    fn tile_rows(&self) -> Result<Option<Arc<dyn TileRows>>> {
        Ok(Some(self.view()?))
    }

    fn statistics(&self, field: FieldId) -> Result<Option<Arc<dyn ColumnStatistics>>> {
        let statistics = RowStatistics::new(self.view()?, field);
        Ok(statistics.map(|statistics| Arc::new(statistics) as Arc<dyn ColumnStatistics>))
    }

    fn sorted_by(&self) -> Result<Vec<usize>> {
        // A part of sorted rows is a view that does not sort.
        Ok(if self.by_row { (0..self.array.schema().dimensions.len()).collect() } else { self.view()?.sorted_by() })
    }

    fn values(&self, field: FieldId) -> Result<Arc<dyn Content>> {
        if self.is_variable(field) {
            return Ok(Arc::new(VarValues::new(self.var_column(field)?)?));
        }
        let column = match field {
            FieldId::Attribute(number) => FixedColumn::of_attribute(self.view()?, number)?,
            FieldId::Dimension(number) => FixedColumn::of_dimension(self.view()?, number)?,
        };
        Ok(Arc::new(RawFile(CountedColumn::new(column)?)))
    }

    fn offsets(&self, field: FieldId) -> Result<Arc<dyn Content>> {
        Ok(Arc::new(RawFile(VarOffsets::new(self.var_column(field)?)?)))
    }

    fn origin(&self, row: u64) -> Result<Option<(String, u64)>> {
        let cell = self.view()?.stored_cell(row)?;
        Ok(cell.map(|(fragment, cell)| (self.array.fragment_name(fragment).to_owned(), cell)))
    }

    fn cell_origin(&self, _attribute: usize, cell: u64) -> Result<Option<CellOrigin>> {
        let view = self.view()?;
        origin::origin_of_row(&view, cell)
    }

    fn runs(&self, _attribute: usize, most: usize) -> Result<Vec<CellRun>> {
        let view = self.view()?;
        origin::runs_of_rows(&view, 0, most)
    }

    fn hidden(&self) -> Result<Option<CellOrigin>> {
        let Some(ranges) = &self.ranges else { return Ok(None) };
        let view = self.view()?;
        origin::hidden_cells(&view, ranges)
    }

    fn is_part(&self) -> bool {
        self.ranges.is_some()
    }

    fn validity(&self, field: FieldId) -> Result<Validity> {
        let FieldId::Attribute(number) = field else {
            return Err(Error::internal("coordinates are never null"));
        };
        Ok(Arc::new(RawFile(CountedColumn::new(FixedColumn::of_validity(self.view()?, number)?)?)).into())
    }

    fn part_starts(&self, most: u64) -> Result<Vec<u64>> {
        Ok(self.view()?.parts(most)?.iter().map(|part| part.before).collect())
    }

    fn part_of_rows(&self, number: usize, most: u64) -> Result<Arc<dyn Subarray>> {
        let view = self.view()?;
        let part = view.parts(most)?.get(number).ok_or_else(|| Error::internal("no such part"))?;
        let part = view.part(part)?;
        let view = Arc::new(part).into();
        Ok(Arc::new(SparseSubarray { view, ..Self::of(self.array.clone(), None, self.by_row) }))
    }

    fn select(&self, selection: &str, by: Addressing) -> select::error::Result<Arc<dyn Subarray>> {
        let SelectedRows { ranges, conditions } = select::rows(selection, by, &selectable(&self.array), &self.array)?;
        let is_by_attributes_only = !conditions.is_empty() && ranges.iter().all(Option::is_none);
        let ranges = (!is_by_attributes_only).then_some(ranges);
        Ok(Arc::new(SparseSubarray { conditions, ..Self::of(self.array.clone(), ranges, self.by_row) }))
    }
}

/// A column whose rows were counted.
struct CountedColumn {
    column: FixedColumn,
    rows: u64,
    decoded_per_row: u64,
}

impl CountedColumn {
    fn new(column: FixedColumn) -> Result<Self> {
        let (rows, decoded_per_row) = (column.row_count()?, column.decoded_per_row()?);
        Ok(CountedColumn { column, rows, decoded_per_row })
    }
}

impl FixedCells for CountedColumn {
    fn record(&self, recorder: &mut Recorder) {
        let Self { column, rows: _, decoded_per_row: _ } = self;
        column.record(recorder);
    }

    fn count(&self) -> u64 {
        self.rows
    }

    fn cell_size(&self) -> usize {
        self.column.cell_size()
    }

    fn read(&self, first: u64, out: Output<'_>) -> Result<()> {
        self.column.read(first, out)
    }

    fn read_once(&self, first: u64, out: &mut [u8]) -> Result<()> {
        self.column.read_once(first, out)
    }

    fn decoded_per_cell(&self) -> u64 {
        self.decoded_per_row
    }
}
