//! An explanation as lines of text.

use tilefs_format::scalar::Scalar;
use tilefs_reader::array::OpenedArray;
use tilefs_reader::array::origin::{
    CellFate, CellOrigin, CellPlace, CellRun, Deletion, FragmentState, MapForm, OtherCell, StoredValue, fragment_states,
};
use tilefs_reader::array::sparse::RowCount;
use tilefs_tree::array::explanation::{Explanation, FieldOrigin, FieldSource};
use tilefs_tree::select::time;
use tilefs_tree::wording::filters::pipeline_text;
use tilefs_tree::wording::value::values_text;

use super::names;

/// The most values or characters of a value that are printed.
const MAX_VALUE: usize = 60;

/// The most lines of one list.
const MAX_LINES: usize = 100;

/// Returns the lines about the file at a path.
pub fn of(path: &str, explanation: &Explanation) -> String {
    let array = &*explanation.array;
    let mut text = vec![headline(path, explanation)];
    text.extend(explanation.notes.iter().map(|note| format!("  {note}")));
    let mut shown: Option<&CellOrigin> = None;
    for field in &explanation.fields {
        add_field(&mut text, array, field, shown);
        shown = field.origin.as_deref().or(shown);
    }
    if explanation.cell.is_none() {
        add_runs(&mut text, explanation);
        if let Some(hidden) = &explanation.hidden {
            add_others(&mut text, array, hidden, "selected cells that are not shown");
        }
        add_fragments(&mut text, array);
    }
    text.push(String::new());
    text.join("\n")
}

fn headline(path: &str, explanation: &Explanation) -> String {
    let (one, all) = if explanation.are_rows { ("row", "rows") } else { ("cell", "cells") };
    let name = if path.is_empty() { "the array" } else { path };
    let view = explanation.view.map_or(String::new(), |view| format!(" ({view})"));
    let count = match explanation.count {
        RowCount::Exactly(count) => count.to_string(),
        RowCount::AtMost(most) => format!("at most {most}"),
    };
    match explanation.cell {
        Some(cell) => format!("{name}{view}: {one} {cell} of {count}"),
        None => format!("{name}{view}: {count} {all}"),
    }
}

fn add_field(text: &mut Vec<String>, array: &OpenedArray, field: &FieldOrigin, shown: Option<&CellOrigin>) {
    let value = match &field.value {
        _ if field.is_null => "null".to_owned(),
        Some(bytes) => values_text(field.datatype, bytes, MAX_VALUE),
        None => "not readable".to_owned(),
    };
    let from = match field.source {
        FieldSource::Stored => "",
        FieldSource::Fill => ", the fill value: no fragment has a value of this cell",
        FieldSource::Computed => ", computed from the domain: coordinates of dense arrays are not stored",
    };
    // The attributes of a cell mostly have the same origin.
    let is_same = |shown: &CellOrigin, origin: &CellOrigin| {
        std::ptr::eq(shown, origin)
            || (&shown.coordinates, &shown.shown, &shown.others) == (&origin.coordinates, &origin.shown, &origin.others)
    };
    let is_new = |origin: &&CellOrigin| !shown.is_some_and(|shown| is_same(shown, origin));
    let origin = field.origin.as_deref().filter(is_new);
    if let Some(origin) = origin {
        text.push(format!("  at {}", coordinates(array, &origin.coordinates)));
        if let Some(shown) = &origin.shown {
            text.push(format!("  from {}", place(array, shown)));
        }
        text.extend(origin.map.as_ref().map(|map| {
            let form = match map.form {
                MapForm::Slab => "consecutive cells of one fragment",
                MapForm::Interleaved => "cells of fragments that interleave",
                MapForm::Scattered => "cells in an order of their own",
            };
            let last = map.rows.end.saturating_sub(1);
            format!(
                "  in segment {} of {} of the map of rows: rows {} to {last}, {form}",
                map.segment, map.segments, map.rows.start
            )
        }));
    }
    text.push(format!("  {} = {value}{from}", field.name));
    field.stored.iter().for_each(|stored| add_stored(text, array, stored));
    if let Some(origin) = origin {
        add_others(text, array, origin, "other cells with these coordinates");
    }
}

fn add_stored(text: &mut Vec<String>, array: &OpenedArray, stored: &StoredValue) {
    let StoredValue { part, file, filters, tile_bytes, bytes, chunk_count, chunks, fetched, value } = stored;
    let folder = format!("{}/", array.path());
    let file = file.to_string();
    let file = file.strip_prefix(&folder).unwrap_or(&file);
    text.push(format!("    {} in {file}", names::part(*part)));
    text.push(format!(
        "      bytes {} to {} of a tile of {tile_bytes}; filters: {}",
        bytes.start,
        bytes.end,
        pipeline_text(filters)
    ));
    for chunk in chunks {
        text.push(format!(
            "      chunk {} of {chunk_count}: bytes {} to {}, stored at {} with {} bytes of metadata and {} of data",
            chunk.number, chunk.decoded.start, chunk.decoded.end, chunk.offset, chunk.metadata, chunk.filtered
        ));
    }
    let fetched =
        fetched.iter().map(|fetched| format!("      fetched: {} bytes at {}", fetched.length, fetched.offset));
    text.extend(fetched);
    if let Err(error) = value {
        text.push(format!("      not readable: {error}"));
    }
}

fn add_others(text: &mut Vec<String>, array: &OpenedArray, origin: &CellOrigin, title: &str) {
    if !origin.others.is_empty() {
        text.push(format!("  {title}:"));
    }
    for OtherCell { coordinates: at, place: cell, fate } in origin.others.iter().take(MAX_LINES) {
        let at = if origin.coordinates.is_empty() { format!("{} in ", coordinates(array, at)) } else { String::new() };
        text.push(format!("    {at}{}: {}", place(array, cell), fate_text(array, fate)));
    }
    let more = origin.others.len().saturating_sub(MAX_LINES);
    if more > 0 || !origin.is_complete {
        let more = if origin.is_complete { more.to_string() } else { format!("{more} or") };
        text.push(format!("    {more} more"));
    }
    for unread in &origin.unread {
        let name = names::fragment(array, unread.fragment);
        text.push(format!("  fragment {name} could not be searched: {}", unread.error));
    }
}

fn add_runs(text: &mut Vec<String>, explanation: &Explanation) {
    if explanation.runs.is_empty() {
        return;
    }
    text.push("  where they come from:".to_owned());
    let mut end = 0;
    for CellRun { first, count, place: cell } in &explanation.runs {
        let last = first.saturating_add(count.saturating_sub(1));
        let cells = if count == &1 { first.to_string() } else { format!("{first} to {last}") };
        let from = cell.as_ref().map_or("the fill value".to_owned(), |cell| {
            let last = if count == &1 {
                String::new()
            } else {
                format!(" to {}", cell.cell.saturating_add(count.saturating_sub(1)))
            };
            format!("{}{last}", place(&explanation.array, cell))
        });
        text.push(format!("    {cells}: {from}"));
        end = end.max(last.saturating_add(1));
    }
    if explanation.count.most() > end {
        text.push("    ...".to_owned());
    }
}

fn add_fragments(text: &mut Vec<String>, array: &OpenedArray) {
    let states = fragment_states(array);
    text.push(format!("  fragments ({} of {} count):", array.fragment_count(), states.len()));
    for (number, state) in states.iter().enumerate().take(MAX_LINES) {
        let reason = match state {
            FragmentState::Counts(_) => String::new(),
            _ => format!(": {}", names::reason(array, *state)),
        };
        text.push(format!("    {} of {}{reason}", names::fragment(array, number), names::when(array, number)));
    }
    if states.len() > MAX_LINES {
        text.push(format!("    {} more", states.len() - MAX_LINES));
    }
}

fn place(array: &OpenedArray, place: &CellPlace) -> String {
    let own = place.time.map_or(String::new(), |written| format!(", written at {}", time::extended(written)));
    let (name, when) = (names::fragment(array, place.fragment), names::when(array, place.fragment));
    format!("fragment {name} of {when}{own}: tile {}, cell {}", place.tile, place.cell)
}

fn fate_text(array: &OpenedArray, fate: &CellFate) -> String {
    match fate {
        CellFate::Shown => "shown, too: a row of its own".to_owned(),
        CellFate::Overwritten(by) => format!("overwritten by {}", place(array, by)),
        CellFate::Tied(by) => {
            format!("written at the same time as tile {}, cell {}, which TileDB reads", by.tile, by.cell)
        }
        CellFate::NotSelected => "its attributes are not those that are selected".to_owned(),
        CellFate::Deleted(Deletion::Condition { commit, time }) => {
            format!("deleted by the condition in {commit} of {}", time::extended(*time))
        }
        CellFate::Deleted(Deletion::Recorded { time }) => {
            format!("deleted at {}, as a consolidation recorded", time::extended(*time))
        }
        CellFate::OutsideOfTime(time) => format!("written at {}, which is not asked for", time::extended(*time)),
        CellFate::InFragment(state) => names::reason(array, *state),
        CellFate::WithoutValue => "its fragment has no values of this attribute".to_owned(),
    }
}

fn coordinates(array: &OpenedArray, coordinates: &[Scalar]) -> String {
    let schema = array.schema();
    let shown = coordinates.iter().zip(&schema.dimensions).enumerate().map(|(number, (coordinate, dimension))| {
        let datatype = dimension.datatype;
        let bytes = coordinate.to_bytes(datatype).unwrap_or_default();
        format!("{}={}", schema.dimension_name(number), values_text(datatype, &bytes, MAX_VALUE))
    });
    shown.collect::<Vec<_>>().join(", ")
}
