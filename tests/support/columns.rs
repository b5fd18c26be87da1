//! Cells as bytes in the form of the manifests: nulls masked, sparse rows sorted.

use std::cmp::Ordering;

use sha2::{Digest, Sha256};

/// The cells of one field.
#[derive(Clone)]
pub struct Column {
    pub name: String,
    pub datatype: String,
    /// Bytes per cell; `None` if there are `offsets`.
    pub cell_size: Option<usize>,
    pub is_dimension: bool,
    pub values: Vec<u8>,
    /// The start of each cell in `values`.
    pub offsets: Option<Vec<u64>>,
    /// One byte per cell, 0 for null.
    pub validity: Option<Vec<u8>>,
}

impl Column {
    pub fn cells(&self) -> usize {
        match (&self.offsets, self.cell_size) {
            (Some(offsets), _) => offsets.len(),
            (None, Some(size)) => self.values.len() / size.max(1),
            (None, None) => 0,
        }
    }

    /// Returns the bytes of a cell.
    pub fn cell(&self, number: usize) -> &[u8] {
        match &self.offsets {
            Some(offsets) => {
                let end = offsets.get(number + 1).map_or(self.values.len(), |&end| end as usize);
                self.values.get(offsets[number] as usize..end).unwrap_or_default()
            }
            None => {
                let size = self.cell_size.unwrap_or(0);
                &self.values[number * size..(number + 1) * size]
            }
        }
    }

    fn is_null(&self, number: usize) -> bool {
        self.validity.as_ref().is_some_and(|validity| validity[number] == 0)
    }

    /// Returns a column of the cells with these numbers, with nulls zeroed (fixed size) or empty.
    pub fn masked(&self, numbers: impl Iterator<Item = usize>) -> Column {
        let mut out = Column {
            values: Vec::new(),
            offsets: self.offsets.as_ref().map(|_| Vec::new()),
            validity: self.validity.as_ref().map(|_| Vec::new()),
            ..self.clone()
        };
        for number in numbers {
            if let Some(offsets) = &mut out.offsets {
                offsets.push(out.values.len() as u64);
            }
            if let (Some(to), Some(from)) = (&mut out.validity, &self.validity) {
                to.push(from[number]);
            }
            match (self.is_null(number), self.cell_size) {
                (false, _) => out.values.extend_from_slice(self.cell(number)),
                (true, Some(size)) => out.values.resize(out.values.len() + size, 0),
                (true, None) => {}
            }
        }
        out
    }

    pub fn offset_bytes(&self) -> Option<Vec<u8>> {
        self.offsets.as_ref().map(|offsets| offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect())
    }
}

/// Returns dense cells in the form of the manifests.
pub fn canonical_dense(columns: &[Column]) -> Vec<Column> {
    columns.iter().map(|column| column.masked(0..column.cells())).collect()
}

/// Returns sparse rows in the form of the manifests: sorted by the dimensions (numbers numerically, text bytewise),
/// ties by the attributes' (validity, bytes). Also returns the number of each row among the sorted ones.
pub fn canonical_sparse(columns: &[Column]) -> (Vec<Column>, Vec<u32>) {
    let rows = columns.first().map_or(0, Column::cells);
    let masked = canonical_dense(columns);
    let mut sorted: Vec<usize> = (0..rows).collect();
    sorted.sort_by(|&a, &b| compare_rows(&masked, a, b));
    let mut place = vec![0; rows];
    for (to, &from) in sorted.iter().enumerate() {
        place[from] = to as u32;
    }
    (masked.iter().map(|column| column.masked(sorted.iter().copied())).collect(), place)
}

pub fn compare_rows(columns: &[Column], a: usize, b: usize) -> Ordering {
    let dims = columns.iter().filter(|column| column.is_dimension);
    let attrs = columns.iter().filter(|column| !column.is_dimension);
    let by_dims = dims.map(|column| compare_values(&column.datatype, column.cell(a), column.cell(b)));
    let by_attrs = attrs.map(|column| {
        let key = |row| (!column.is_null(row), column.cell(row));
        key(a).cmp(&key(b))
    });
    by_dims.chain(by_attrs).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// Compares two values of a datatype, numerically if it is a number's or a time's.
pub fn compare_values(datatype: &str, a: &[u8], b: &[u8]) -> Ordering {
    match (number_of(datatype, a), number_of(datatype, b)) {
        (Some(Number::Integer(a)), Some(Number::Integer(b))) => a.cmp(&b),
        (Some(Number::Real(a)), Some(Number::Real(b))) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        _ => a.cmp(b),
    }
}

/// A value that can be compared and shown.
pub enum Number {
    Integer(i128),
    Real(f64),
}

/// Decodes the bytes of one value as a number; `None` for text and blobs.
pub fn number_of(datatype: &str, bytes: &[u8]) -> Option<Number> {
    use Number::{Integer, Real};
    Some(match datatype {
        "INT8" => Integer(i8::from_le_bytes(bytes.try_into().ok()?).into()),
        "UINT8" | "BOOL" => Integer(u8::from_le_bytes(bytes.try_into().ok()?).into()),
        "INT16" => Integer(i16::from_le_bytes(bytes.try_into().ok()?).into()),
        "UINT16" => Integer(u16::from_le_bytes(bytes.try_into().ok()?).into()),
        "INT32" => Integer(i32::from_le_bytes(bytes.try_into().ok()?).into()),
        "UINT32" => Integer(u32::from_le_bytes(bytes.try_into().ok()?).into()),
        "UINT64" => Integer(u64::from_le_bytes(bytes.try_into().ok()?).into()),
        "FLOAT32" => Real(f32::from_le_bytes(bytes.try_into().ok()?).into()),
        "FLOAT64" => Real(f64::from_le_bytes(bytes.try_into().ok()?)),
        _ if datatype == "INT64" || datatype.starts_with("DATETIME_") || datatype.starts_with("TIME_") => {
            Integer(i64::from_le_bytes(bytes.try_into().ok()?).into())
        }
        _ => return None,
    })
}

/// Returns the size of one value of a datatype in bytes.
pub fn size_of(datatype: &str) -> usize {
    match datatype {
        "INT16" | "UINT16" | "STRING_UTF16" | "STRING_UCS2" => 2,
        "INT32" | "UINT32" | "FLOAT32" | "STRING_UTF32" | "STRING_UCS4" => 4,
        "INT64" | "UINT64" | "FLOAT64" => 8,
        _ if datatype.starts_with("DATETIME_") || datatype.starts_with("TIME_") => 8,
        _ => 1,
    }
}

/// Returns the digest of a slice: the values, offsets and validity of each column in order.
pub fn digest(columns: &[Column]) -> String {
    let mut sha = Sha256::new();
    for column in columns {
        sha.update(&column.values);
        sha.update(column.offset_bytes().unwrap_or_default());
        sha.update(column.validity.as_deref().unwrap_or_default());
    }
    hex(&sha.finalize())
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
