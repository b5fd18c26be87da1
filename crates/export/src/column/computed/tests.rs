//! Checks of the contents of computed columns: against the cells themselves, in any part, and how often they are
//! computed.

use std::sync::atomic::{AtomicU64, Ordering};

use tilefs_base::content::Content;
use tilefs_format::datatype::Datatype;

use super::*;
use crate::column::Column;
use crate::content::offsets::Offsets;
use crate::content::validity::Validity;
use crate::testing::{assert_random_access, elements_of_row, lists_of_nullable, read_all};

/// Columns of each kind, computed from the number of a row; `stored` bytes for each row.
struct OfNumbers {
    rows: u64,
    stored: u64,
    columns: Vec<ComputedField>,
    computed: Arc<AtomicU64>,
    /// A row that fails.
    broken: Option<u64>,
}

impl OfNumbers {
    fn new(rows: u64, stored: u64) -> Self {
        let column = |name: &str, datatype, kind| {
            let field = Field::new(name, datatype).with_nullable(name != "number");
            ComputedField { field, kind }
        };
        let columns = vec![
            column("number", Datatype::Int32, CellKind::Value(4)),
            column("text", Datatype::StringUtf8, CellKind::Text),
            column("numbers", Datatype::Int32, CellKind::Numbers(4)),
            column("texts", Datatype::StringUtf8, CellKind::Texts),
        ];
        OfNumbers { rows, stored, columns, computed: Arc::default(), broken: None }
    }
}

fn push(column: usize, row: usize, cells: &mut Cells) {
    match column {
        0 => cells.push(&(row as i32).to_le_bytes()),
        1 if row % 3 == 1 => cells.push_null(),
        1 => cells.push(&vec![b'x'; row % 7]),
        column => match elements_of_row(row) {
            None => cells.push_null(),
            Some(elements) if column == 2 => {
                cells
                    .push_list(elements.into_iter().map(|element| element.map(|number| (number as i32).to_le_bytes())));
            }
            Some(elements) => {
                cells.push_list(elements.into_iter().map(|element| element.map(|number| format!("ß{number}"))));
            }
        },
    }
}

impl Compute for OfNumbers {
    fn rows(&self) -> u64 {
        self.rows
    }

    fn columns(&self) -> &[ComputedField] {
        &self.columns
    }

    fn positions(&self, rows: Range<u64>) -> Result<Vec<u64>> {
        Ok((rows.start..=rows.end).map(|row| row * self.stored).collect())
    }

    fn compute(&self, rows: Range<u64>, column: Option<usize>, cells: &mut [Cells]) -> Result<()> {
        self.computed.fetch_add(rows.end - rows.start, Ordering::Relaxed);
        if self.broken.is_some_and(|broken| rows.contains(&broken)) {
            return Err(Error::damaged("a broken row"));
        }
        let columns = column.map_or(0..self.columns.len(), |column| column..column + 1);
        for (column, cells) in columns.zip(cells) {
            rows.clone().for_each(|row| push(column, row as usize, cells));
        }
        Ok(())
    }

    fn record(&self, recorder: &mut Recorder) {
        recorder.add_unknown();
    }

    fn read_ahead(&self, _rows: Range<u64>, _column: usize) -> Result<()> {
        Ok(())
    }
}

/// The contents of a column.
fn contents(column: &Column) -> Vec<Arc<dyn Content>> {
    let elements = column.elements.iter().flat_map(|elements| {
        elements.offsets.iter().map(Offsets::content).chain([elements.validity.content()]).collect::<Vec<_>>()
    });
    let own = column.offsets.iter().map(Offsets::content).chain(column.validity.as_ref().map(Validity::content));
    [column.values.clone()].into_iter().chain(own).chain(elements).collect()
}

#[test]
fn contents_are_those_of_the_cells() {
    for (rows, stored) in [(0, 0), (1, 5), (9, 1 << 19), (3000, 0), (2500, 300), (20, 3 << 20)] {
        let computed = ComputedColumns::new(Box::new(OfNumbers::new(rows, stored)));
        let columns = computed.columns().unwrap();
        assert_eq!(columns.len(), 4);
        for (number, column) in columns.iter().enumerate() {
            let kind = OfNumbers::new(rows, stored).columns[number].kind;
            let mut cells = Cells::new(kind);
            (0..rows as usize).for_each(|row| push(number, row, &mut cells));
            let wanted = cells.into_column("a");
            let wanted = if number == 0 { Column { validity: None, ..wanted } } else { wanted };
            column.check().unwrap();
            let (found, wanted) = (contents(column), contents(&wanted));
            assert_eq!(found.len(), wanted.len());
            for (found, wanted) in found.iter().zip(&wanted) {
                assert!(read_all(found) == read_all(wanted), "{rows} rows, column {number}");
                assert_random_access(found);
            }
        }
        let lists = read_all(&*lists_of_nullable("a", rows as usize, false).values);
        assert!(read_all(&*columns[2].values) == lists);
    }
}

#[test]
fn blocks_end_after_some_rows_or_bytes() {
    let blocks = |rows, stored| ComputedColumns::new(Box::new(OfNumbers::new(rows, stored))).blocks().unwrap();
    assert_eq!(blocks(0, 7), [0]);
    assert_eq!(blocks(2500, 0), [0, 1024, 2048, 2500]);
    // A row of more than a MiB is a block of its own.
    assert_eq!(blocks(3, 2 << 20), [0, 1, 2, 3]);
    assert_eq!(blocks(5, 400 << 10), [0, 2, 4, 5]);
    let many = blocks(1 << 28, 0);
    assert!(many.len() as u64 <= MAX_BLOCKS + 1, "{}", many.len());
}

#[test]
fn columns_are_computed_once_to_be_measured_and_once_to_be_read() {
    let numbers = OfNumbers::new(5000, 100);
    let computed = numbers.computed.clone();
    let columns = ComputedColumns::new(Box::new(numbers));
    let columns = columns.columns().unwrap();
    assert_eq!(computed.load(Ordering::Relaxed), 5000);
    for content in contents(&columns[3]) {
        read_all(&*content);
    }
    assert_eq!(computed.load(Ordering::Relaxed), 10_000);
}

#[test]
fn an_error_of_a_row_is_one_of_the_columns() {
    let columns = ComputedColumns::new(Box::new(OfNumbers { broken: Some(4000), ..OfNumbers::new(5000, 0) }));
    let error = columns.columns().map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("a broken row"), "{error}");
}
