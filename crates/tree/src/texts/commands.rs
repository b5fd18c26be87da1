//! The commands in README.txt: those of the views, and those for parts and times of an array.

use tilefs_format::scalar::Scalar;
use tilefs_select::{coordinate_text, range_text};
use tilefs_vfs::node::quoting::{literal, shell_word};

use super::description::{CellsSummary, Description};
use crate::views::VIEWS;
use crate::views::commands::{Command, FileFinder, is_number, od};
use crate::views::raw::RAW;
use crate::views::view::CommandTask;

/// The path of the folder of the non-empty domain.
pub const IN_NONEMPTY: &str = "nonempty/";

/// Returns the commands for an array, each for the first attribute that has the required files. If far fewer cells were
/// written than are shown, the commands use the written ones.
pub fn commands(description: &Description<'_>) -> Vec<Command> {
    let shown = description.written.as_deref().unwrap_or(description);
    let finder = finder_of(description, shown);
    let mut commands = vec![Command::new("Shape, types and filters", format!("cat {}schema.txt", finder.folder))];
    // Without cells, all other commands would print nothing.
    if shown.shape().is_none_or(|shape| !shape.contains(&0)) {
        let mut tasks: Vec<_> = VIEWS.iter().flat_map(|view| view.commands).collect();
        tasks.sort_by_key(|(task, _)| *task);
        for (task, write) in tasks {
            match task {
                // The parts of a long table serve readers better.
                CommandTask::FirstRows | CommandTask::Frame | CommandTask::Query if description.is_long_table => {}
                _ => commands.extend(write(&finder)),
            }
            match task {
                CommandTask::FirstValues => commands.extend(one_cell(shown, &finder)),
                CommandTask::FirstLines if shown.is_long_table => commands.extend(parts(&finder)),
                _ => {}
            }
        }
        commands.extend(part(shown, &finder));
    }
    commands.extend(history(shown));
    commands
}

/// Returns what finds the files that the commands use: `shown` has them.
fn finder_of<'d>(description: &'d Description<'_>, shown: &'d Description<'_>) -> FileFinder<'d> {
    let folder = if description.written.is_some() { IN_NONEMPTY } else { "" };
    let image = description.image.as_ref().filter(|_| description.written.is_none());
    let values = image.map_or_else(|| folder.to_owned(), |image| format!("islice/{}/", image.selection));
    FileFinder { schema: shown.schema, files: &shown.files, folder, values, annotated: shown.annotated }
}

/// Returns commands for the parts of a long table.
fn parts(finder: &FileFinder<'_>) -> Vec<Command> {
    let path = |path: &str| format!("{}{path}", finder.folder);
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

/// Returns a command for the first cell, by its coordinates.
fn one_cell(description: &Description<'_>, finder: &FileFinder<'_>) -> Option<Command> {
    let (attribute, file) = finder.find(&RAW.facts, is_number)?;
    let folder = slice_of_one(description)?;
    let path = format!("{}slice/{folder}/{}", finder.folder, file.path);
    Some(Command::new(
        "One cell, by its coordinates",
        format!("od -An {} {}", od(attribute.datatype)?, shell_word(&path)),
    ))
}

/// Returns the name in `slice/` of the first cell.
fn slice_of_one(description: &Description<'_>) -> Option<String> {
    let CellsSummary::Dense { axes, .. } = &description.cells else { return None };
    if !description.has_slices || description.selection.is_some() {
        return None;
    }
    let axes = axes.iter().zip(&description.schema.dimensions);
    let firsts = axes.map(|(axis, dimension)| Some(coordinate_text(dimension.datatype, axis.first.as_ref()?)));
    Some(firsts.collect::<Option<Vec<_>>>()?.join(","))
}

/// Returns a command for a part of the array: up to its first ten coordinates along each axis.
fn part(description: &Description<'_>, finder: &FileFinder<'_>) -> Option<Command> {
    if !description.has_slices || description.selection.is_some() {
        return None;
    }
    let schema = description.schema;
    let folder = match &description.cells {
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
        format!("ls {}", shell_word(&format!("{}slice/{folder}", finder.folder))),
    ))
}

/// Returns a command for earlier states of the whole array.
fn history(description: &Description<'_>) -> Option<Command> {
    let whole = description.has_history && description.selection.is_none() && description.last_commit.is_some();
    whole.then(|| Command::new("The array as it was: a folder for each commit", "ls .history".to_owned()))
}

/// Returns the tenth coordinate, counted from `first`.
fn tenth(first: &Scalar) -> Option<Scalar> {
    match first {
        Scalar::Signed(first) => first.checked_add(9).map(Scalar::Signed),
        Scalar::Unsigned(first) => first.checked_add(9).map(Scalar::Unsigned),
        _ => None,
    }
}
