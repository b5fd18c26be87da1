//! `10x/` of an experiment of TileDB-SOMA: each measurement as the files that Cell Ranger of 10x Genomics writes, which
//! scanpy, Seurat and DropletUtils read.
//!
//! `10x/NAME/` has `matrix.mtx.gz`, a line `gene cell value` for each cell of the matrix `X/data`; `barcodes.tsv.gz`, the
//! names of the observations; and `features.tsv.gz`, the identifiers, names and types of the variables. As in Cell Ranger's
//! own files, names are as they are, without quotes: R's `readLines`, and `read.delim` with `quote = ""`, would take
//! quotes for parts of names. So a name with a tab or a line break is an error. The blocks of gzip are stored, so that any
//! part of a file is found without the parts before it. `10x/NAME/plain/` has the same as text, with the names of Cell
//! Ranger 2. If a measurement cannot have this form, opening its files is an error.

use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use tilefs_base::content::Content;
use tilefs_base::error::Result;
use tilefs_export::column::Labels;
use tilefs_export::content::compose::Repeat;
use tilefs_export::text::matrix_market::{MatrixDomain, matrix_market};
use tilefs_export::text::{self, Style};
use tilefs_export::{Column, Field, Unrepresentable};
use tilefs_format::datatype::Datatype;
use tilefs_reader::array::OpenedArray;
use tilefs_reader::group::OpenedGroup;
use tilefs_vcf::Bgzf;
use tilefs_vfs::node::lazy::{FixedFolder, LazyFile};
use tilefs_vfs::node::named::NamedFolder;
use tilefs_vfs::node::{Entry, Node};

use crate::cells::sparse::SparseSubarray;
use crate::cells::{FieldId, Subarray, column};
use crate::domains::soma::cut::Cut;
use crate::domains::soma::experiment::{DATA, OBSERVATIONS, measurement, measurement_names, member};
use crate::domains::soma::{
    self, INDEXES, JOINID, MatrixAxis, coordinates_of, index_name, position, selected, selection_of, value_field,
};
use crate::fields::FieldFolder;
use crate::fields::array_form::ArrayForm;
use crate::fields::columns::labelled_column_of;
use crate::shown::ShownViews;
use crate::views::names::field_names;
use crate::views::tables::measured;

/// The name of the folder.
pub const TENX: &str = "10x";

/// The folder of the files that are not compressed.
const PLAIN: &str = "plain";

/// Columns of variables that hold identifiers, such as those of Ensembl, where the names are symbols; the first that a
/// data frame has is used.
const IDENTIFIERS: [&str; 5] = ["gene_ids", "gene_id", "feature_id", "ensembl_id", "ensembl_ids"];

/// Columns of variables that hold their types.
const TYPES: [&str; 2] = ["feature_types", "feature_type"];

/// The type of variables that have none.
const GENES: &str = "Gene Expression";

/// Returns the folder for all observations and variables, or for those of a slice.
pub fn cell_ranger_folders(experiment: Arc<OpenedGroup>, cut: Cut, modified: SystemTime) -> NamedFolder {
    let all = experiment.clone();
    let folders = NamedFolder::new(modified, move |name| {
        if !measurement_names(&experiment)?.iter().any(|known| known == name) {
            return Ok(Err(None));
        }
        let part = CutMeasurement { experiment: experiment.clone(), name: name.to_owned(), cut: cut.clone() };
        Ok(Ok(Node::Folder(Arc::new(part.folder(modified)))))
    });
    folders.listing(move || Ok(measurement_names(&all)?.into_iter().map(Entry::folder).collect()))
}

/// Makes one of the texts.
type MakeMeasurementText = fn(&CutMeasurement) -> Result<Arc<dyn Content>>;

/// A measurement, or a part of one.
struct CutMeasurement {
    experiment: Arc<OpenedGroup>,
    name: String,
    cut: Cut,
}

impl CutMeasurement {
    fn folder(self, modified: SystemTime) -> FixedFolder {
        let part = Arc::new(self);
        let texts: [(&str, &str, MakeMeasurementText); 3] = [
            ("matrix.mtx", "matrix.mtx", CutMeasurement::matrix),
            ("barcodes.tsv", "barcodes.tsv", CutMeasurement::barcodes),
            ("features.tsv", "genes.tsv", CutMeasurement::features),
        ];
        let (mut folder, mut plain) = (FixedFolder::new(modified), FixedFolder::new(modified));
        for (new, old, text) in texts {
            let (of_new, of_old) = (part.clone(), part.clone());
            let compressed = move || Ok(Arc::new(Bgzf::new(text(&of_new)?)) as Arc<dyn Content>);
            folder.add_file(format!("{new}.gz"), LazyFile::new(modified, compressed));
            plain.add_file(old, LazyFile::new(modified, move || text(&of_old)));
        }
        folder.add_unlisted(PLAIN, Node::Folder(Arc::new(plain)));
        folder
    }

    fn observations(&self) -> Result<AxisNames> {
        AxisNames::new(array_of(&self.experiment, OBSERVATIONS)?, self.cut.observations.clone())
    }

    fn variables(&self) -> Result<AxisNames> {
        AxisNames::new(array_of(&self.measurement()?, "var")?, self.cut.variables.clone())
    }

    fn measurement(&self) -> Result<OpenedGroup> {
        Ok(measurement(&self.experiment, &self.name)?.ok_or_else(|| Unrepresentable::new("it is not a measurement"))?)
    }

    fn barcodes(&self) -> Result<Arc<dyn Content>> {
        let names = self.observations()?;
        names.text(&[names.index()?])
    }

    fn features(&self) -> Result<Arc<dyn Content>> {
        let names = self.variables()?;
        let index = names.index()?;
        let identifiers = names.column(&IDENTIFIERS)?.unwrap_or_else(|| index.clone());
        let types = names.column(&TYPES)?.unwrap_or_else(|| genes(index.cells()));
        names.text(&[identifiers, index, types])
    }

    /// Returns the matrix with a row for each variable, sorted by column.
    fn matrix(&self) -> Result<Arc<dyn Content>> {
        let axes = [self.observations()?.axis, self.variables()?.axis];
        let matrices = match member(&self.measurement()?, "X")? {
            Some(tilefs_reader::OpenedObject::Group(matrices)) => matrices,
            _ => return Err(Unrepresentable::new("the measurement has no X").into()),
        };
        let array = array_of(&matrices, DATA)?;
        // Checks the form of the array, and that it has no cells beyond the observations and variables.
        soma::sparse_matrix(&array, [&axes[0], &axes[1]])??;
        let mut cells: Arc<dyn Subarray> = Arc::new(SparseSubarray::new(array.clone(), true));
        if let Some(selection) = selection_of([&axes[0], &axes[1]]) {
            cells = selected(&*cells, &selection)?;
        }
        let range = |axis: &MatrixAxis| axis.cut.clone().unwrap_or(0..axis.length.unwrap_or(0));
        let [observations, variables] = [range(&axes[0]), range(&axes[1])];
        let domain = MatrixDomain {
            first: [variables.start.into(), observations.start.into()],
            lengths: [variables.end - variables.start, observations.end - observations.start],
        };
        let (id, field) = value_field(array.schema())?;
        let [rows, columns] = [coordinates_of(&*cells, 1)?, coordinates_of(&*cells, 0)?];
        Ok(matrix_market(&rows, &columns, &column(&*cells, id, field)?, domain)?)
    }
}

/// The names of observations or variables: rows of a data frame.
struct AxisNames {
    fields: FieldFolder,
    /// The number of rows, and the selected ones.
    axis: MatrixAxis,
}

impl AxisNames {
    fn new(array: Arc<OpenedArray>, cut: Option<Range<u64>>) -> Result<Self> {
        let all = soma::data_frame(&array, cut.as_ref())??.all;
        let cut = cut.map(|cut| cut.start..cut.end.min(all));
        let mut subarray: Arc<dyn Subarray> = Arc::new(SparseSubarray::new(array.clone(), true));
        if let Some(cut) = &cut {
            subarray = selected(&*subarray, &format!("{JOINID}={}..{}", cut.start, cut.end.saturating_sub(1)))?;
        }
        let (names, shown) = (Arc::new(field_names(array.schema())), ShownViews::NONE);
        let (modified, form, told) = (SystemTime::UNIX_EPOCH, ArrayForm::default(), Arc::default());
        let fields = FieldFolder { subarray, names, shown, modified, form, told };
        Ok(AxisNames { fields, axis: MatrixAxis { length: Some(all), cut } })
    }

    /// Returns the names of the rows; their numbers if they have no names.
    fn index(&self) -> Result<Column> {
        let array = self.fields.subarray.array();
        let named = index_name(&*array.metadata()?).and_then(|name| position(array.schema(), &name));
        let number = named.or_else(|| INDEXES.iter().find_map(|name| position(array.schema(), name)));
        labelled_column_of(&self.fields, number.map_or(FieldId::Dimension(0), FieldId::Attribute))
    }

    /// Returns the first of these columns that the data frame has.
    fn column(&self, names: &[&str]) -> Result<Option<Column>> {
        let attributes = &self.fields.schema().attributes;
        let number = names.iter().find_map(|name| attributes.iter().position(|attribute| attribute.name == *name));
        number.map(|number| labelled_column_of(&self.fields, FieldId::Attribute(number))).transpose()
    }

    /// Returns columns as lines of cells between tabs.
    fn text(&self, columns: &[Column]) -> Result<Arc<dyn Content>> {
        let table = text::table_without_header(columns, Style::Plain)?.table;
        Ok(Arc::new(measured(self.fields.context(), &table)?))
    }
}

/// Returns an array of a group.
fn array_of(group: &OpenedGroup, name: &str) -> Result<Arc<OpenedArray>> {
    match member(group, name)? {
        Some(tilefs_reader::OpenedObject::Array(array)) => Ok(array),
        _ => Err(Unrepresentable::new(format!("there is no array {name}")).into()),
    }
}

/// Returns a column that says that all variables are genes.
fn genes(count: u64) -> Column {
    let labels = Labels {
        name: TYPES[0].to_owned(),
        datatype: Datatype::StringAscii,
        ordered: false,
        values: vec![GENES.as_bytes().to_vec()],
    };
    let field = Field::new(TYPES[0], Datatype::UInt8).with_labels(Arc::new(labels));
    Column::fixed(field, vec![count], Arc::new(Repeat::zeros(count)))
}

#[cfg(test)]
mod tests {
    use tilefs_reader::array::{Context, TimeWindow};
    use tilefs_storage::LocalStorage;

    use super::*;
    use tilefs_vfs::node::Folder;

    /// Bytes of text in a full block of gzip, and of the block around them.
    const TEXT: usize = 0xff00;
    const AROUND: usize = 18 + 5 + 8;

    /// The empty block at the end of a file.
    const END: [u8; 28] =
        [0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 6, 0, b'B', b'C', 2, 0, 0x1b, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];

    fn folder(path: &str) -> Arc<dyn Folder> {
        let context = Arc::new(Context::new(Arc::new(LocalStorage::new()), 64 << 20, 1, None));
        let place = tilefs_fixtures::corpus().join("real/pbmc_soma");
        let experiment = Arc::new(OpenedGroup::open(context, &place.as_path().into(), TimeWindow::until(u64::MAX)));
        let all = cell_ranger_folders(experiment, Cut::default(), SystemTime::UNIX_EPOCH);
        let mut folder: Arc<dyn Folder> = Arc::new(all);
        for name in path.split('/') {
            let Some(Node::Folder(inner)) = folder.lookup(name).unwrap() else { panic!("{name} is no folder") };
            folder = inner;
        }
        folder
    }

    fn bytes(folder: &dyn Folder, name: &str) -> Vec<u8> {
        let Some(Node::File(file)) = folder.lookup(name).unwrap() else { panic!("{name} is no file") };
        let content = file.open().unwrap();
        let mut bytes = vec![0; content.len() as usize];
        content.read_at(0, &mut bytes).unwrap();
        bytes
    }

    /// Returns the text of stored blocks of gzip; checks every other byte but the checksums.
    fn text_of_blocks(mut file: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        while file != END {
            let (head, rest) = file.split_at(18);
            assert_eq!(&head[..16], &END[..16]);
            let size = usize::from(u16::from_le_bytes([head[16], head[17]])) + 1;
            let (block, next) = rest.split_at(size - 18);
            let length = u16::from_le_bytes([block[1], block[2]]);
            // The last and only block of its stream, stored: its length, and the complement.
            assert_eq!((block[0], u16::from_le_bytes([block[3], block[4]])), (1, !length));
            assert_eq!(size, usize::from(length) + AROUND);
            let stored = &block[5..5 + usize::from(length)];
            assert!(stored.len() == TEXT || next == END, "only the last block is shorter");
            assert_eq!(block[block.len() - 4..], u32::from(length).to_le_bytes());
            text.extend_from_slice(stored);
            file = next;
        }
        text
    }

    #[test]
    fn files_are_stored_blocks_of_the_plain_texts() {
        let (compressed, plain) = (folder("RNA"), folder("RNA/plain"));
        for (new, old) in
            [("matrix.mtx.gz", "matrix.mtx"), ("barcodes.tsv.gz", "barcodes.tsv"), ("features.tsv.gz", "genes.tsv")]
        {
            let (file, text) = (bytes(&*compressed, new), bytes(&*plain, old));
            assert_eq!(file.len(), text.len() + text.len().div_ceil(TEXT) * AROUND + END.len(), "{new}");
            assert!(text_of_blocks(&file) == text, "{new}");
        }
    }

    #[test]
    fn the_matrix_has_a_row_for_each_feature_and_a_column_for_each_barcode() {
        let plain = folder("RNA/plain");
        let text = |name| String::from_utf8(bytes(&*plain, name)).unwrap();
        let (matrix, barcodes, genes) = (text("matrix.mtx"), text("barcodes.tsv"), text("genes.tsv"));
        let mut lines = matrix.lines();
        let header = lines.next().unwrap();
        assert!(header.starts_with("%%MatrixMarket matrix coordinate ") && header.ends_with(" general"), "{header}");
        let numbers = |line: &str| line.split_whitespace().map(|word| word.parse::<f64>().unwrap()).collect::<Vec<_>>();
        let sizes = numbers(lines.find(|line| !line.starts_with('%')).unwrap());
        let cells: Vec<Vec<f64>> = lines.map(numbers).collect();
        assert_eq!(sizes, [genes.lines().count() as f64, barcodes.lines().count() as f64, cells.len() as f64]);
        assert!(cells.iter().all(|cell| (1.0..=sizes[0]).contains(&cell[0]) && (1.0..=sizes[1]).contains(&cell[1])));
        assert!(
            cells.is_sorted_by(|one, next| (one[1], one[0]) < (next[1], next[0])),
            "cells are not sorted by column"
        );
        assert!(genes.lines().all(|line| line.split('\t').count() == 3 && line.ends_with("\tGene Expression")));
        assert!(barcodes.lines().all(|line| !line.is_empty() && !line.contains('\t')));
    }
}
