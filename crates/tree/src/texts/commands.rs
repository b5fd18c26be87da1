//! The commands in README.txt: they work as printed, in this folder, with its real names.

use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::schema::{Attribute, CellValNum};

use super::description::{CellsSummary, Description, FileFacts};
use super::format::Format;
use super::quoting::{literal, path_word, shell_word};
use crate::select::{coordinate_text, range_text};

/// The path of the folder of the non-empty domain.
pub const IN_NONEMPTY: &str = "nonempty/";

/// A purpose, and the command that serves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub purpose: String,
    pub command: String,
}

/// Returns the commands for an array, each for the first attribute that has the required files. If far fewer cells were
/// written than are shown, the commands use the written ones.
pub fn commands(description: &Description<'_>) -> Vec<Command> {
    let finder = FileFinder::of(description);
    let mut commands = vec![Command::new("Shape, types and filters", format!("cat {}schema.txt", finder.folder))];
    // Without cells, all other commands would print nothing.
    if finder.description.shape().is_none_or(|shape| !shape.contains(&0)) {
        commands.extend(finder.first_values());
        commands.extend(finder.one_cell());
        commands.extend(finder.lines());
        commands.extend(finder.parts());
        if !description.is_long_table {
            commands.extend(finder.table());
            commands.extend(finder.arrow());
            commands.extend(finder.parquet());
        }
        commands.extend(finder.matrix());
        commands.extend(finder.labels());
        commands.extend(finder.sum());
        commands.extend(finder.numpy());
        commands.extend(finder.r());
        commands.extend(finder.gdal());
        commands.extend(finder.netcdf());
        commands.extend(finder.zarr());
        commands.extend(finder.part());
    }
    commands.extend(finder.history());
    commands
}

/// Returns a text literal of SQL.
fn sql_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

impl Command {
    fn new(purpose: impl Into<String>, command: String) -> Self {
        Command { purpose: purpose.into(), command }
    }
}

/// Finds the files that each command needs.
struct FileFinder<'d, 'a> {
    description: &'d Description<'a>,
    /// The folder of the description's files, with a final slash; empty for the current folder.
    folder: &'static str,
    /// The folder of the files with meaningful values: those of a raster without its padding.
    values: String,
}

impl<'d, 'a> FileFinder<'d, 'a> {
    fn of(description: &'d Description<'a>) -> Self {
        if let Some(written) = &description.written {
            return FileFinder { description: written, folder: IN_NONEMPTY, values: IN_NONEMPTY.to_owned() };
        }
        let image = description.image.as_ref();
        let values = image.map_or_else(String::new, |image| format!("islice/{}/", image.selection));
        FileFinder { description, folder: "", values }
    }

    /// Returns the path of a file that is explanatory, or that omits padding itself.
    fn path(&self, file: &FileFacts) -> String {
        format!("{}{}", self.folder, file.path)
    }

    /// Returns the path of a file of values.
    fn values(&self, file: &FileFacts) -> String {
        format!("{}{}", self.values, file.path)
    }

    /// Returns the first attribute that has a file of this format and fits, and the file. Attributes with codes come
    /// last.
    fn find(&self, format: Format, fits: impl Fn(&Attribute) -> bool) -> Option<(&'d Attribute, &'d FileFacts)> {
        let attributes = || self.description.schema.attributes.iter().filter(|one| fits(one));
        let values = attributes().filter(|one| one.enumeration.is_none());
        values.chain(attributes()).find_map(|attribute| {
            let mut files = self.description.files_of(&attribute.name);
            let file = files.find(|file| file.format == format && !file.is_slow());
            file.map(|file| (attribute, file))
        })
    }

    /// Returns the first file of this format.
    fn any(&self, format: Format) -> Option<&'d FileFacts> {
        self.description.files.iter().find(|file| file.format == format && !file.is_slow())
    }

    /// Returns commands for the parts of a long table.
    fn parts(&self) -> Vec<Command> {
        if !self.description.is_long_table {
            return Vec::new();
        }
        let path = |path: &str| format!("{}{path}", self.folder);
        let count = "awk 'END {print NR}'";
        let each = "awk 'FNR > 1 {n++} END {print n}'";
        let query = format!("SELECT count(*) FROM read_parquet('{}')", path("parquet/parts/*.parquet"));
        let program = format!("import duckdb; print(duckdb.sql({}))", literal(&query));
        vec![
            Command::new(
                "The first rows as a table; all other parts are as quick to read",
                format!("head -3 {}", path("text/parts/000000000000000.tsv")),
            ),
            Command::new(
                "All rows as one stream, without the names of columns",
                format!("cat {} | {count}", path("text/parts-without-header/*.tsv")),
            ),
            Command::new(
                "The parts in parallel, four at a time",
                format!("printf '%s\\0' {} | xargs -0 -n 1 -P 4 {each}", path("text/parts/*.tsv")),
            ),
            Command::new(
                "A query of all parts, which reads the columns and rows that it needs",
                format!("python3 -c {}", shell_word(&program)),
            ),
        ]
    }

    fn first_values(&self) -> Option<Command> {
        let (attribute, file) = self.find(Format::Raw, is_number)?;
        let command = format!(
            "od -An {} -N{} {}",
            od(attribute.datatype)?,
            10 * attribute.datatype.size(),
            path_word(&self.values(file))
        );
        let what = if attribute.enumeration.is_some() { "codes" } else { "values" };
        Some(Command::new(format!("The first ten {what} of {}", called(attribute)), command))
    }

    fn one_cell(&self) -> Option<Command> {
        let (attribute, file) = self.find(Format::Raw, is_number)?;
        let folder = self.slice_of_one()?;
        let path = format!("{}slice/{folder}/{}", self.folder, file.path);
        Some(Command::new(
            "One cell, by its coordinates",
            format!("od -An {} {}", od(attribute.datatype)?, shell_word(&path)),
        ))
    }

    /// Returns the name in `slice/` of the first cell.
    fn slice_of_one(&self) -> Option<String> {
        let CellsSummary::Dense { axes, .. } = &self.description.cells else { return None };
        if !self.description.has_slices || self.description.selection.is_some() {
            return None;
        }
        let axes = axes.iter().zip(&self.description.schema.dimensions);
        let firsts = axes.map(|(axis, dimension)| Some(coordinate_text(dimension.datatype, axis.first.as_ref()?)));
        Some(firsts.collect::<Option<Vec<_>>>()?.join(","))
    }

    fn lines(&self) -> Option<Command> {
        let (attribute, file) = self.find(Format::Lines, |_| true)?;
        let purpose = format!("The first values of {}, one per line", called(attribute));
        Some(Command::new(purpose, format!("head -3 {}", path_word(&self.values(file)))))
    }

    fn table(&self) -> Option<Command> {
        if let Some(file) = self.any(Format::Tsv).filter(|file| file.is_listed()) {
            return Some(Command::new("The first rows as a table", format!("head -3 {}", path_word(&self.path(file)))));
        }
        let (attribute, file) = self.find(Format::Grid, |_| true)?;
        let purpose = format!("The first rows of {} as text", called(attribute));
        Some(Command::new(purpose, format!("head -3 {}", path_word(&self.values(file)))))
    }

    fn arrow(&self) -> Option<Command> {
        let file = self.any(Format::Arrow)?;
        let path = literal(&self.path(file));
        let program = format!("import pyarrow.feather as f; print(f.read_table({path}, memory_map=True).schema)");
        let purpose = "The table as an Arrow file, for pyarrow, Polars, DuckDB and R, without a copy";
        Some(Command::new(purpose, format!("python3 -c {}", shell_word(&program))))
    }

    fn parquet(&self) -> Option<Command> {
        let file = self.any(Format::Parquet)?;
        let query = format!("SELECT count(*) FROM {}", sql_text(&self.path(file)));
        let program = format!("import duckdb; print(duckdb.sql({}))", literal(&query));
        let purpose = "A query of the table, which reads the columns and rows that it needs";
        Some(Command::new(purpose, format!("python3 -c {}", shell_word(&program))))
    }

    fn matrix(&self) -> Option<Command> {
        let (attribute, file) = self.find(Format::MatrixMarket, |_| true)?;
        let purpose = format!("{} as a matrix, for scipy.io.mmread, scanpy and R's readMM", called(attribute));
        Some(Command::new(purpose, format!("head -3 {}", path_word(&self.path(file)))))
    }

    fn labels(&self) -> Option<Command> {
        let file = self.any(Format::Labels)?;
        let command = format!("head -3 {}", path_word(&self.path(file)));
        Some(Command::new("What codes stand for: line k + 1 is the label of code k", command))
    }

    /// Returns a command that computes a mean. Codes have none; dates and times are left out because text does not show
    /// them as numbers. The command skips `NA`, for null, and `NaN`.
    fn sum(&self) -> Option<Command> {
        let is_quantity =
            |one: &Attribute| is_number(one) && one.enumeration.is_none() && one.datatype.time_unit().is_none();
        let (attribute, file) = self.find(Format::Grid, is_quantity)?;
        let program = "{for (i = 1; i <= NF; i++) if ($i !~ /N/) {n++; s += $i}} END {if (n) print s / n}";
        let command = format!("awk '{program}' {}", path_word(&self.values(file)));
        Some(Command::new(format!("The mean of {}", called(attribute)), command))
    }

    fn numpy(&self) -> Option<Command> {
        let (attribute, file) = self.find(Format::Npy, |one| !one.is_variable())?;
        let program = format!("import numpy; print(numpy.load({}, mmap_mode=\"r\"))", literal(&self.values(file)));
        let purpose = format!("{} in NumPy, without a copy", called(attribute));
        Some(Command::new(purpose, format!("python3 -c {}", shell_word(&program))))
    }

    fn r(&self) -> Option<Command> {
        let single = |one: &Attribute| one.cell_count == CellValNum::Fixed(1);
        let (attribute, file) = self.find(Format::Raw, |one| is_number(one) && single(one) && r_type(one).is_some())?;
        let (what, rest) = r_type(attribute)?;
        let size = attribute.datatype.size();
        let path = literal(&self.values(file));
        let program = format!("readBin({path}, {what}, n=10, size={size}, endian=\"little\"{rest})");
        Some(Command::new(format!("{} in R", called(attribute)), format!("Rscript -e {}", shell_word(&program))))
    }

    fn gdal(&self) -> Option<Command> {
        let (attribute, file) = self.find(Format::VirtualRaster, |_| true)?;
        let purpose = format!("{} as a raster in GDAL and QGIS", called(attribute));
        Some(Command::new(purpose, format!("gdalinfo {}", path_word(&self.path(file)))))
    }

    fn netcdf(&self) -> Option<Command> {
        let file = self.any(Format::NetCdf)?;
        Some(Command::new(
            "All of it as netCDF, for ncdump, ncview, xarray, NCO",
            format!("ncdump -h {}", path_word(&self.path(file))),
        ))
    }

    fn zarr(&self) -> Option<Command> {
        let file = self.any(Format::Zarr)?;
        let path = self.path(file);
        let folder = literal(path.strip_suffix("/zarr.json").unwrap_or(&path));
        if let Some(element) = self.description.annotated() {
            let program = format!("import anndata, zarr; print(anndata.io.read_elem(zarr.open({folder}, mode=\"r\")))");
            let purpose = format!("All of it as {element} for anndata and scanpy, in Zarr");
            return Some(Command::new(purpose, format!("python3 -c {}", shell_word(&program))));
        }
        let program = format!("import xarray; print(xarray.open_zarr({folder}))");
        let purpose = "All of it as a Zarr group, for xarray and dask: a chunk for each tile";
        Some(Command::new(purpose, format!("python3 -c {}", shell_word(&program))))
    }

    /// Returns a command for a part of the array: up to its first ten coordinates along each axis.
    fn part(&self) -> Option<Command> {
        if !self.description.has_slices || self.description.selection.is_some() {
            return None;
        }
        let schema = self.description.schema;
        let folder = match &self.description.cells {
            CellsSummary::Dense { axes, .. } => {
                let axes = axes.iter().zip(&schema.dimensions);
                let ranges: Vec<String> = axes
                    .map(|(axis, dimension)| {
                        let text = |end| coordinate_text(dimension.datatype, end);
                        match (axis.first.as_ref(), axis.last.as_ref()) {
                            (Some(first), Some(last)) if axis.length > 10 && axis.step == Some(1) => {
                                let tenth = tenth(first).unwrap_or_else(|| last.clone());
                                format!("{}..{}", text(first), text(&tenth))
                            }
                            _ => "..".to_owned(),
                        }
                    })
                    .collect();
                ranges.join(",")
            }
            CellsSummary::Sparse { non_empty, .. } => {
                let (range, dimension) = non_empty.as_ref()?.first().zip(schema.dimensions.first())?;
                range_text(dimension.datatype, range)
            }
        };
        Some(Command::new(
            "A part of it: a folder like this one",
            format!("ls {}", shell_word(&format!("{}slice/{folder}", self.folder))),
        ))
    }

    fn history(&self) -> Option<Command> {
        let description = self.description;
        let whole = description.has_history && description.selection.is_none() && description.last_commit.is_some();
        whole.then(|| Command::new("The array as it was: a folder for each commit", "ls .history".to_owned()))
    }
}

/// Returns the tenth coordinate, counted from `first`.
fn tenth(first: &tilefs_format::scalar::Scalar) -> Option<tilefs_format::scalar::Scalar> {
    use tilefs_format::scalar::Scalar;
    match first {
        Scalar::Signed(first) => first.checked_add(9).map(Scalar::Signed),
        Scalar::Unsigned(first) => first.checked_add(9).map(Scalar::Unsigned),
        _ => None,
    }
}

/// Returns the attribute's name in a sentence.
pub fn called(attribute: &Attribute) -> String {
    match attribute.name.as_str() {
        "" => "the attribute".to_owned(),
        name => super::quoting::in_line(name),
    }
}

fn is_number(attribute: &Attribute) -> bool {
    attribute.datatype.kind() != Kind::Bytes && !attribute.is_variable()
}

/// Returns the option of `od` that prints values of a type.
fn od(datatype: Datatype) -> Option<String> {
    let letter = match datatype.kind() {
        Kind::Signed => 'd',
        Kind::Unsigned => 'u',
        Kind::Float => 'f',
        Kind::Bytes => return None,
    };
    Some(format!("-t{letter}{}", datatype.size()))
}

/// Returns the arguments of `readBin` for a type; it has no unsigned numbers of four bytes and no integers of eight.
fn r_type(attribute: &Attribute) -> Option<(&'static str, &'static str)> {
    match (attribute.datatype.kind(), attribute.datatype.size()) {
        (Kind::Float, _) => Some(("\"numeric\"", "")),
        (Kind::Signed, 1 | 2 | 4) => Some(("\"integer\"", "")),
        (Kind::Unsigned, 1 | 2) => Some(("\"integer\"", ", signed=FALSE")),
        _ => None,
    }
}
