//! The stored geometries of a column, which are read in blocks of rows, and their kinds.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::inputs::{Recorded, Recorder};
use tilefs_base::memory;
use tilefs_base::output::Output;
use tilefs_threads::cancellation;

use crate::column::Column;
use crate::content::offsets::Offsets;
use crate::content::validity::{RowValidity, Validity};
use crate::geo::wkb::{Geometry, GeometryKind, WkbError};

/// Number of geometries that are read together.
pub(super) const BLOCK_ROWS: u64 = 1024;

/// Size in bytes of the geometries that are read together; a longer one is read alone.
const READ_TOGETHER: u64 = 1 << 20;

/// Visits the geometry of a row; `None` is a null.
pub(super) type VisitGeometry<'v> = dyn FnMut(u64, Option<&[u8]>) -> Result<()> + 'v;

/// The geometries of a column of well-known binary.
pub(super) struct StoredGeometries {
    name: String,
    values: Arc<dyn Content>,
    offsets: Offsets,
    validity: Option<Validity>,
    pub(super) rows: u64,
}

impl Recorded for StoredGeometries {
    fn record(&self, recorder: &mut Recorder) {
        let Self { name: _, values, offsets, validity, rows } = self;
        recorder.add::<Self>((rows, validity.is_some()));
        Content::record(values, recorder);
        offsets.record(recorder);
        validity.iter().for_each(|validity| validity.record(recorder));
    }
}

impl StoredGeometries {
    /// Returns the geometries of a column; `None` if its values are of fixed size.
    pub(super) fn of(column: &Column) -> Option<Self> {
        Some(StoredGeometries {
            name: column.field.name.clone(),
            values: column.values.clone(),
            offsets: column.offsets.clone()?,
            validity: column.validity.clone(),
            rows: column.cells(),
        })
    }

    /// Returns the rows of a block.
    pub(super) fn block(&self, number: u64) -> Range<u64> {
        let first = number * BLOCK_ROWS;
        first..(first + BLOCK_ROWS).min(self.rows)
    }

    /// Passes the geometries of some rows to `visit`, each with the number of its row; `None` is a null.
    ///
    /// # Errors
    /// Those of `visit`; fails if the geometries cannot be read.
    pub(super) fn for_each(&self, rows: Range<u64>, visit: &mut VisitGeometry<'_>) -> Result<()> {
        self.visit(rows, visit).in_field(&self.name)
    }

    fn visit(&self, rows: Range<u64>, visit: &mut VisitGeometry<'_>) -> Result<()> {
        let count = (rows.end - rows.start) as usize;
        let mut offsets = vec![0; count + 1];
        self.offsets.read_into(rows.start, &mut offsets)?;
        if !offsets.is_sorted() || offsets.last().is_some_and(|&end| end > self.values.len()) {
            return Err(Error::damaged("offsets of geometries that decrease, or lie outside"));
        }
        let validity = RowValidity::of(self.validity.as_ref(), rows.clone())?;
        let (mut first, mut bytes) = (0, Vec::new());
        while first < count {
            let start = offsets[first];
            let together = offsets[first + 1..].partition_point(|end| end - start <= READ_TOGETHER).max(1);
            let length = usize::try_from(offsets[first + together] - start).unwrap_or(usize::MAX);
            memory::resize(&mut bytes, length, "a geometry")?;
            self.values.read_at(start, &mut bytes)?;
            for row in first..first + together {
                let geometry = &bytes[(offsets[row] - start) as usize..(offsets[row + 1] - start) as usize];
                // GDAL stores a feature without a geometry as one of no bytes.
                let is_there = !validity.is_null(row) && !geometry.is_empty();
                visit(rows.start + row as u64, is_there.then_some(geometry))?;
            }
            first += together;
        }
        Ok(())
    }

    /// Prefetches the geometries of the blocks with some rows.
    ///
    /// # Errors
    /// As for [`StoredGeometries::for_each`].
    pub(super) fn read_ahead(&self, rows: Range<u64>) -> Result<()> {
        let end = rows.end.next_multiple_of(BLOCK_ROWS).min(self.rows);
        let rows = rows.start / BLOCK_ROWS * BLOCK_ROWS..end;
        let [start, end] = [self.offsets.at(rows.start)?, self.offsets.at(rows.end)?];
        self.offsets.read(8 * rows.start, Output::Ahead(8 * (rows.end - rows.start + 1)))?;
        RowValidity::default().read(self.validity.as_ref(), rows, &Output::Ahead(0))?;
        self.values.read(start, Output::Ahead(end.saturating_sub(start)))
    }
}

/// Returns the geometry of a row; `None` for a curve.
///
/// # Errors
/// [`Error::Damaged`] if the bytes are no geometry.
pub(super) fn geometry_of(bytes: &[u8], row: u64) -> Result<Option<Geometry>> {
    match Geometry::read(bytes) {
        Ok(geometry) => Ok(Some(geometry)),
        Err(WkbError::Curve) => Ok(None),
        Err(reason) => Err(Error::damaged(format!("the geometry of row {row}, which is {}", reason.what()))),
    }
}

/// The kinds of the geometries in a column.
#[derive(Debug, Default)]
pub struct FoundGeometries {
    has_polygons: bool,
    /// Whether any is null, a curve or something else.
    has_others: bool,
    has_heights: bool,
}

impl FoundGeometries {
    /// Reads the geometries of a column of well-known binary, all of them.
    ///
    /// # Errors
    /// Fails if the values or their offsets cannot be read; [`Error::Damaged`] for values that are no geometries.
    pub fn of(column: &Column) -> Result<Self> {
        let mut found = FoundGeometries::default();
        let Some(geometries) = StoredGeometries::of(column) else { return Ok(found) };
        for number in 0..geometries.rows.div_ceil(BLOCK_ROWS) {
            cancellation::check()?;
            geometries.for_each(geometries.block(number), &mut |row, bytes| {
                match bytes.map_or(Ok(None), |bytes| geometry_of(bytes, row))? {
                    Some(geometry) => found.add(&geometry),
                    None => found.has_others = true,
                }
                Ok(())
            })?;
        }
        Ok(found)
    }

    fn add(&mut self, geometry: &Geometry) {
        match geometry.kind {
            GeometryKind::Polygon | GeometryKind::MultiPolygon => self.has_polygons = true,
            _ => self.has_others = true,
        }
        geometry.for_each_vertex(&mut |vertex| self.has_heights |= vertex.z.is_some());
    }

    /// Returns whether there are geometries, and all are polygons or several polygons in a plane.
    pub fn are_polygons(&self) -> bool {
        self.has_polygons && !self.has_others && !self.has_heights
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Field;
    use tilefs_format::datatype::Datatype;

    /// Numbers of 32 bits and coordinates in the order of little-endian bytes, after the mark of that order.
    fn wkb(kind: u32, counts: &[u32], coordinates: &[f64]) -> Vec<u8> {
        let mut bytes = vec![1];
        [kind].iter().chain(counts).for_each(|number| bytes.extend(number.to_le_bytes()));
        coordinates.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        bytes
    }

    fn found(geometries: &[Vec<u8>]) -> Result<FoundGeometries> {
        let ends = geometries.iter().scan(0, |end, one| {
            *end += one.len() as u64;
            Some(*end)
        });
        let offsets: Vec<u8> = [0].into_iter().chain(ends).flat_map(u64::to_le_bytes).collect();
        let field = Field::new("shape", Datatype::GeomWkb).with_values_per_cell(None);
        let count = geometries.len() as u64;
        FoundGeometries::of(&Column::variable(field, vec![count], Arc::new(geometries.concat()), Arc::new(offsets)))
    }

    #[test]
    fn polygons_are_told_from_other_geometries() {
        let polygon = wkb(3, &[1, 4], &[0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
        let several = [wkb(6, &[1], &[]), polygon.clone()].concat();
        let in_space = wkb(1003, &[1, 4], &[0.0; 12]);
        let (point, curve) = (wkb(1, &[], &[1.0, 2.0]), wkb(10, &[0], &[]));
        let many = [vec![polygon.clone(); 2000], vec![several.clone()]].concat();
        assert!(found(&many[..1]).unwrap().are_polygons() && found(&many).unwrap().are_polygons());
        assert!(!found(&[]).unwrap().are_polygons(), "there is none");
        for other in [point, curve, in_space] {
            assert!(!found(&[many.clone(), vec![other]].concat()).unwrap().are_polygons());
        }
        let damaged = found(&[polygon.clone(), polygon[..20].to_vec()]).unwrap_err().to_string();
        assert!(damaged.contains("row 1") && damaged.contains("shape"), "{damaged}");
    }
}
