//! Datasets: the type, the dataspace, and the storage of the elements.

use crate::dataspace::{Dataspace, product};
use crate::datatype::Datatype;
use crate::error::Problem;
use crate::global_heap::HeapPlan;
use crate::object_id::ObjectId;

/// A dataset without its values, which the caller provides.
#[derive(Debug, Clone)]
pub struct Dataset {
    pub(crate) datatype: Datatype,
    pub(crate) dataspace: Dataspace,
    pub(crate) chunk_shape: Option<Vec<u64>>,
    /// The axes without a maximum length.
    pub(crate) unlimited: Vec<usize>,
    pub(crate) fill_value: Option<Vec<u8>>,
    pub(crate) heap: Option<HeapPlan>,
    /// Whether no element was ever written.
    pub(crate) is_unwritten: bool,
    /// The name of the dimension scale, if the dataset is one.
    pub(crate) scale: Option<String>,
    /// The dimension scales of each axis.
    pub(crate) scales: Vec<Vec<ObjectId>>,
}

impl Dataset {
    /// Creates a dataset with contiguous elements in row-major order.
    pub fn new(datatype: Datatype, dataspace: Dataspace) -> Self {
        Dataset {
            datatype,
            dataspace,
            chunk_shape: None,
            unlimited: Vec::new(),
            fill_value: None,
            heap: None,
            is_unwritten: false,
            scale: None,
            scales: Vec::new(),
        }
    }

    /// Stores the elements in chunks of this shape. The chunks are in row-major order of their grid, and the elements
    /// in row-major order within a chunk. Chunks on the edge are stored in full, with arbitrary elements
    /// past the edge.
    #[must_use]
    pub fn chunked(self, chunk_shape: Vec<u64>) -> Self {
        Dataset { chunk_shape: Some(chunk_shape), ..self }
    }

    /// Declares that the dataset can grow along these axes without limit. Only chunked datasets can.
    #[must_use]
    pub fn unlimited(self, axes: Vec<usize>) -> Self {
        Dataset { unlimited: axes, ..self }
    }

    /// Sets the value of unwritten elements, as the bytes of one element.
    #[must_use]
    pub fn fill_value(self, bytes: Vec<u8>) -> Self {
        Dataset { fill_value: Some(bytes), ..self }
    }

    /// Marks all elements as unwritten: the file contains none, and each is the fill value.
    #[must_use]
    pub fn unwritten(self) -> Self {
        Dataset { is_unwritten: true, ..self }
    }

    /// Sets the plan of the elements in the global heap, in the order in which they are stored.
    #[must_use]
    pub fn heap(self, heap: HeapPlan) -> Self {
        Dataset { heap: Some(heap), ..self }
    }

    /// Checks that HDF5 supports such a dataset.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        let size = self.datatype.size()?;
        let elements = self.dataspace.elements()?;
        if let Some(chunk_shape) = &self.chunk_shape {
            check_chunks(self.dataspace.shape(), chunk_shape, size)?;
        } else if !self.unlimited.is_empty() {
            return Err(Problem::Chunk { reason: "none, in a dataset that can grow" });
        }
        let rank = self.dataspace.shape().len();
        if self.unlimited.iter().any(|axis| *axis >= rank) {
            return Err(Problem::Rank { rank, wanted: "more than the number of each axis that can grow" });
        }
        if let Some(fill_value) = &self.fill_value {
            let (bytes, wanted) = (fill_value.len() as u64, u64::from(size));
            if self.datatype.has_variable_length() {
                return Err(Problem::Datatype { reason: "a fill value of variable length" });
            }
            if bytes != wanted {
                return Err(Problem::ValueLength { what: "the fill value".to_owned(), bytes, wanted });
            }
        }
        let stored = self.stored_elements()?;
        self.stored_bytes()?;
        let in_heap = self.heap.as_ref().map_or(0, HeapPlan::elements);
        let is_in_heap = self.datatype.has_variable_length() && !self.is_unwritten;
        let wanted = if is_in_heap { stored } else { 0 };
        if in_heap != wanted {
            let what = "the plan of the global heap, in elements,".to_owned();
            return Err(Problem::ValueLength { what, bytes: in_heap, wanted });
        }
        debug_assert!(elements <= stored);
        Ok(())
    }

    /// Returns the number of chunks along each axis; `None` if the elements are contiguous.
    pub(crate) fn chunk_grid(&self) -> Option<Vec<u64>> {
        let chunks = self.chunk_shape.as_ref()?;
        Some(self.dataspace.shape().iter().zip(chunks).map(|(length, chunk)| length.div_ceil(*chunk)).collect())
    }

    /// Returns the number of chunks.
    pub(crate) fn chunks(&self) -> Result<u64, Problem> {
        self.chunk_grid().map_or(Ok(0), |grid| product(&grid))
    }

    /// Returns the size of a chunk in bytes.
    pub(crate) fn chunk_bytes(&self) -> Result<u64, Problem> {
        let elements = product(self.chunk_shape.as_deref().unwrap_or(&[]))?;
        elements.checked_mul(u64::from(self.datatype.size()?)).ok_or_else(too_many)
    }

    /// Returns the number of stored elements, including those past the edge.
    pub(crate) fn stored_elements(&self) -> Result<u64, Problem> {
        match &self.chunk_shape {
            Some(chunk) => self.chunks()?.checked_mul(product(chunk)?).ok_or_else(too_many),
            None => self.dataspace.elements(),
        }
    }

    /// Returns the size in bytes of the elements as the dataset stores them; elements in the global heap count as their
    /// IDs.
    pub(crate) fn stored_bytes(&self) -> Result<u64, Problem> {
        self.stored_elements()?.checked_mul(u64::from(self.datatype.size()?)).ok_or_else(too_many)
    }
}

fn too_many() -> Problem {
    Problem::TooLarge { what: "a dataset".to_owned(), limit: u64::MAX }
}

fn check_chunks(shape: &[u64], chunk: &[u64], size: u32) -> Result<(), Problem> {
    if shape.is_empty() || chunk.len() != shape.len() {
        return Err(Problem::Rank { rank: chunk.len(), wanted: "as many chunk lengths as axes, and at least one" });
    }
    if chunk.contains(&0) {
        return Err(Problem::Chunk { reason: "a length of 0" });
    }
    if chunk.iter().zip(shape).any(|(chunk, length)| chunk > length && *length > 0) {
        return Err(Problem::Chunk { reason: "longer than the dataset" });
    }
    let bytes = product(chunk)?.checked_mul(u64::from(size)).filter(|bytes| *bytes <= u64::from(u32::MAX));
    if bytes.is_none() || chunk.iter().any(|length| *length > u64::from(u32::MAX)) {
        return Err(Problem::Chunk { reason: "4 GiB or more" });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dataset(shape: &[u64], chunk: &[u64]) -> Dataset {
        Dataset::new(Datatype::signed(4), Dataspace::Simple(shape.to_vec())).chunked(chunk.to_vec())
    }

    #[test]
    fn counts_whole_chunks_on_the_edge() {
        let edge = dataset(&[5, 7], &[2, 4]);
        assert_eq!(edge.check(), Ok(()));
        assert_eq!(edge.chunk_grid(), Some(vec![3, 2]));
        assert_eq!((edge.chunks(), edge.chunk_bytes(), edge.stored_bytes()), (Ok(6), Ok(32), Ok(192)));
        assert_eq!(dataset(&[0, 7], &[2, 4]).stored_bytes(), Ok(0));
    }

    #[test]
    fn refuses_unsupported_chunks() {
        assert!(dataset(&[5], &[0]).check().is_err());
        assert!(dataset(&[5], &[6]).check().is_err());
        assert!(dataset(&[5], &[1, 1]).check().is_err());
        assert!(dataset(&[1 << 30], &[1 << 30]).check().is_err());
        assert_eq!(dataset(&[1 << 30], &[(1 << 30) - 1]).check(), Ok(()));
        let scalar = Dataset::new(Datatype::signed(4), Dataspace::Scalar).chunked(vec![]);
        assert!(scalar.check().is_err());
    }

    #[test]
    fn only_axes_in_chunks_can_grow() {
        assert_eq!(dataset(&[5, 7], &[1, 7]).unlimited(vec![0]).check(), Ok(()));
        assert!(dataset(&[5, 7], &[1, 7]).unlimited(vec![2]).check().is_err());
        let contiguous = Dataset::new(Datatype::signed(4), Dataspace::vector(5)).unlimited(vec![0]);
        assert!(contiguous.check().is_err());
    }

    #[test]
    fn requires_a_heap_for_variable_length() {
        let texts = Dataset::new(Datatype::text(), Dataspace::vector(2));
        assert!(texts.clone().check().is_err());
        let mut heap = HeapPlan::new();
        heap.push(3).unwrap();
        assert!(texts.clone().heap(heap.clone()).check().is_err());
        heap.push(0).unwrap();
        assert_eq!(texts.heap(heap).check(), Ok(()));
    }
}
