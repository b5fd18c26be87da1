//! Some computed cells of a column, in memory.

/// The kind of the cells of a computed column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellKind {
    /// One value of this many bytes.
    Value(u32),
    /// A text of any length.
    Text,
    /// A list of numbers of this many bytes, any of which can be null.
    Numbers(u32),
    /// A list of texts, any of which can be null.
    Texts,
}

impl CellKind {
    /// Returns whether a cell is a list.
    pub(super) fn is_list(self) -> bool {
        matches!(self, CellKind::Numbers(_) | CellKind::Texts)
    }

    /// Returns the number of values in each cell; `None` if it varies.
    pub(super) fn values_per_cell(self) -> Option<u32> {
        matches!(self, CellKind::Value(_)).then_some(1)
    }
}

/// Consecutive cells of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cells {
    kind: CellKind,
    pub(super) values: Vec<u8>,
    /// The end offset of each cell, in bytes or, for lists, in elements. Empty for single values.
    pub(super) ends: Vec<u64>,
    /// One byte per cell, 0 for null.
    pub(super) validity_bytes: Vec<u8>,
    /// The end offset of each text in lists, in bytes.
    pub(super) element_ends: Vec<u64>,
    /// One byte per element of lists, 0 for null.
    pub(super) element_validity_bytes: Vec<u8>,
}

impl Cells {
    /// Creates no cells.
    pub fn new(kind: CellKind) -> Self {
        let (values, ends, validity_bytes) = (Vec::new(), Vec::new(), Vec::new());
        Cells { kind, values, ends, validity_bytes, element_ends: Vec::new(), element_validity_bytes: Vec::new() }
    }

    /// Returns the number of cells.
    pub fn count(&self) -> u64 {
        self.validity_bytes.len() as u64
    }

    /// Appends a null.
    pub fn push_null(&mut self) {
        match self.kind {
            CellKind::Value(size) => self.values.resize(self.values.len() + size as usize, 0),
            CellKind::Text | CellKind::Numbers(_) | CellKind::Texts => self.end_cell(),
        }
        self.validity_bytes.push(0);
    }

    /// Appends a cell of these bytes: one value, or a text.
    pub fn push(&mut self, bytes: &[u8]) {
        self.values.extend_from_slice(bytes);
        if self.kind == CellKind::Text {
            self.end_cell();
        }
        self.validity_bytes.push(1);
    }

    /// Appends a text, which `append` writes behind the bytes of the texts before it, or null if `append` returns
    /// `false`.
    ///
    /// # Errors
    /// The errors of `append`; the cells then cannot be used any more.
    pub fn push_text<E>(&mut self, append: impl FnOnce(&mut Vec<u8>) -> Result<bool, E>) -> Result<(), E> {
        let before = self.values.len();
        let is_there = append(&mut self.values)?;
        if !is_there {
            self.values.truncate(before);
        }
        self.end_cell();
        self.validity_bytes.push(u8::from(is_there));
        Ok(())
    }

    /// Appends a list.
    pub fn push_list<E: AsRef<[u8]>>(&mut self, elements: impl Iterator<Item = Option<E>>) {
        for element in elements {
            self.element_validity_bytes.push(u8::from(element.is_some()));
            match (self.kind, element) {
                (_, Some(element)) => self.values.extend_from_slice(element.as_ref()),
                (CellKind::Numbers(size), None) => self.values.resize(self.values.len() + size as usize, 0),
                (_, None) => {}
            }
            if self.kind == CellKind::Texts {
                self.element_ends.push(self.values.len() as u64);
            }
        }
        self.end_cell();
        self.validity_bytes.push(1);
    }

    fn end_cell(&mut self) {
        self.ends.push(match self.kind {
            CellKind::Value(_) | CellKind::Text => self.values.len() as u64,
            CellKind::Numbers(_) | CellKind::Texts => self.element_validity_bytes.len() as u64,
        });
    }

    /// Returns whether the cells are lists.
    pub(super) fn is_list(&self) -> bool {
        self.kind.is_list()
    }

    pub(super) fn size(&self) -> Size {
        Size { bytes: self.values.len() as u64, elements: self.element_validity_bytes.len() as u64 }
    }

    /// Returns the approximate memory in bytes.
    pub(super) fn memory(&self) -> usize {
        let numbers = self.ends.capacity() + self.element_ends.capacity();
        let bytes = self.values.capacity() + self.validity_bytes.capacity() + self.element_validity_bytes.capacity();
        size_of::<Self>() + bytes + size_of::<u64>() * numbers
    }
}

/// The length of some cells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    pub bytes: u64,
    pub elements: u64,
}

#[cfg(test)]
impl Cells {
    /// Returns the cells as a nullable column of 32-bit integers or texts.
    pub fn into_column(self, name: &str) -> crate::Column {
        use std::sync::Arc;

        use tilefs_format::datatype::Datatype;

        use crate::column::{Column, Elements, Field};
        use crate::content::offsets::Offsets;

        let is_text = matches!(self.kind, CellKind::Text | CellKind::Texts);
        let datatype = if is_text { Datatype::StringUtf8 } else { Datatype::Int32 };
        let field = Field::new(name, datatype).with_values_per_cell(self.kind.values_per_cell());
        let offsets = |ends: &[u64]| -> Offsets {
            Arc::new([0].iter().chain(ends).flat_map(|end| end.to_le_bytes()).collect::<Vec<u8>>()).into()
        };
        let (shape, values) = (vec![self.count()], Arc::new(self.values));
        let validity = Arc::new(self.element_validity_bytes).into();
        let column = match self.kind {
            CellKind::Value(_) => Column::fixed(field, shape, values),
            CellKind::Text => Column::variable(field, shape, values, offsets(&self.ends)),
            CellKind::Numbers(_) => {
                let elements = Elements { offsets: None, validity };
                Column::variable(field, shape, values, offsets(&self.ends)).with_elements(elements)
            }
            CellKind::Texts => {
                let elements = Elements { offsets: Some(offsets(&self.element_ends)), validity };
                Column::variable(field, shape, values, offsets(&self.ends)).with_elements(elements)
            }
        };
        column.with_validity(Arc::new(self.validity_bytes))
    }
}
