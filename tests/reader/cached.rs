//! Cells that are cached read as cells that are not, for all dense arrays of the fixtures and the corpus.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use support::corpora::corpus;
use tilefs_reader::array::FieldFile;
use tilefs_reader::array::dense::{AxisSelection, DenseColumn, DenseView, Selection};
use tilefs_reader::{OpenedObject, ReaderOptions};

/// The most cells of a column that are compared.
const MOST_CELLS: u64 = 100_000;

/// The number of random parts of a column that are read twice.
const PARTS: u64 = 40;

#[test]
fn cached_cells_read_as_others() {
    let mut compared = 0;
    for array in [tilefs_fixtures::fixtures(), &corpus()].into_iter().flat_map(dense_arrays_below) {
        let view = Arc::new(array);
        let schema = view.array().schema().clone();
        for (number, attribute) in schema.attributes.iter().enumerate() {
            let Some(cell_size) = attribute.cell_size() else { continue };
            let axes = view.grid().axes.iter().map(|axis| AxisSelection::contiguous(0, axis.size)).collect();
            let Ok(selection) = Selection::new(axes).map(Arc::new) else { continue };
            let fill = attribute.fill.clone();
            assert_eq!(fill.len(), cell_size);
            let column = DenseColumn::new(view.clone(), selection, number, FieldFile::Data, fill).unwrap();
            let cells = column.cells().min(MOST_CELLS);
            let mut whole = vec![0; cells as usize * cell_size];
            if column.read(0, &mut whole).is_err() {
                continue;
            }
            let mut random = 88_172_645_463_325_252u64;
            for part in 0..PARTS.min(cells) {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let first = (random >> 20) % cells;
                let count = (1 << (part % 17)).min(cells - first);
                let expected = &whole[first as usize * cell_size..(first + count) as usize * cell_size];
                for read in ["first", "second"] {
                    let mut out = vec![0xa5; expected.len()];
                    column.read(first, &mut out).unwrap();
                    assert!(out == expected, "the {read} read of {count} cells from {first} of {}", attribute.name);
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 10_000, "{compared} reads");
}

/// Returns the dense arrays in a folder and its subfolders that can be opened.
fn dense_arrays_below(folder: &Path) -> Vec<DenseView> {
    let mut arrays = Vec::new();
    if folder.join("__schema").is_dir()
        && let Ok(OpenedObject::Array(array)) = ReaderOptions::default().open(folder)
        && let Ok(view) = DenseView::new(array)
    {
        arrays.push(view);
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let folders: Vec<PathBuf> = folders.map(|entry| entry.path()).collect();
    arrays.extend(folders.iter().flat_map(|folder| dense_arrays_below(folder)));
    arrays
}
