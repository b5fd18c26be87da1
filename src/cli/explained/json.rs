//! An explanation as JSON: the same facts as the text.

use serde_json::{Map, Value, json};
use tilefs_format::scalar::Scalar;
use tilefs_reader::array::origin::{
    CellFate, CellOrigin, CellPlace, Deletion, FragmentState, MapForm, OtherCell, StoredValue, UnreadFragment,
    fragment_states,
};
use tilefs_reader::array::sparse::RowCount;
use tilefs_reader::array::{FieldId, OpenedArray};
use tilefs_tree::array::explanation::{Explanation, FieldOrigin, FieldSource};
use tilefs_tree::wording::filters::pipeline_json;
use tilefs_tree::wording::value::{datatype_text, scalar_json, values_json};

use super::names;

/// The most fragments that are listed.
const MAX_FRAGMENTS: usize = 10_000;

/// Returns the object that describes a file at a path.
pub fn of(path: &str, explanation: &Explanation) -> Value {
    let array = &*explanation.array;
    let runs = explanation.runs.iter().map(|run| {
        let place = run.place.as_ref().map(|cell| place(array, cell));
        json!({ "first": run.first, "count": run.count, "from": place })
    });
    let mut found = json!({
        "path": path,
        "array": array.path().to_string(),
        "view": explanation.view,
        "are_rows": explanation.are_rows,
        "count": explanation.count.exact(),
        "cell": explanation.cell,
        "notes": explanation.notes,
        "fields": explanation.fields.iter().map(|one| field(array, one)).collect::<Vec<_>>(),
    });
    if let RowCount::AtMost(most) = explanation.count {
        found["count_at_most"] = most.into();
    }
    if explanation.cell.is_none() {
        found["runs"] = runs.collect();
        found["fragments"] = fragments(array);
        if let Some(hidden) = &explanation.hidden {
            add_others(&mut found, "hidden", array, hidden);
        }
    }
    found
}

fn field(array: &OpenedArray, field: &FieldOrigin) -> Value {
    let value = field.value.as_ref().filter(|_| !field.is_null).map(|bytes| values_json(field.datatype, bytes));
    let source = match field.source {
        FieldSource::Stored => "stored",
        FieldSource::Fill => "fill",
        FieldSource::Computed => "computed",
    };
    let kind = if matches!(field.id, FieldId::Attribute(_)) { "attribute" } else { "dimension" };
    let mut found = json!({
        "name": field.name,
        "kind": kind,
        "type": datatype_text(field.datatype),
        "value": value,
        "is_null": field.is_null,
        "source": source,
        "stored": field.stored.iter().map(stored).collect::<Vec<_>>(),
    });
    if let Some(origin) = &field.origin {
        found["coordinates"] = coordinates(array, &origin.coordinates);
        found["from"] = origin.shown.as_ref().map_or(Value::Null, |cell| place(array, cell));
        if let Some(map) = &origin.map {
            let form = match map.form {
                MapForm::Slab => "slab",
                MapForm::Interleaved => "interleaved",
                MapForm::Scattered => "scattered",
            };
            let rows = [map.rows.start, map.rows.end];
            found["map"] = json!({ "segment": map.segment, "segments": map.segments, "rows": rows, "form": form });
        }
        add_others(&mut found, "others", array, origin);
    }
    found
}

fn stored(stored: &StoredValue) -> Value {
    let StoredValue { part, file, filters, tile_bytes, bytes, chunk_count, chunks, fetched, value } = stored;
    let chunks = chunks.iter().map(|chunk| {
        json!({
            "number": chunk.number,
            "offset": chunk.offset,
            "metadata": chunk.metadata,
            "filtered": chunk.filtered,
            "decoded": [chunk.decoded.start, chunk.decoded.end],
        })
    });
    let fetched = fetched.iter().map(|one| json!({ "offset": one.offset, "length": one.length }));
    json!({
        "part": names::part(*part),
        "file": file.to_string(),
        "filters": pipeline_json(filters),
        "tile_bytes": tile_bytes,
        "bytes": [bytes.start, bytes.end],
        "chunk_count": chunk_count,
        "chunks": chunks.collect::<Vec<_>>(),
        "fetched": fetched.collect::<Vec<_>>(),
        "error": value.as_ref().err().map(ToString::to_string),
    })
}

fn add_others(found: &mut Value, key: &str, array: &OpenedArray, origin: &CellOrigin) {
    let other = |OtherCell { coordinates: at, place: cell, fate: became }: &OtherCell| {
        let mut other = place(array, cell);
        other["coordinates"] = coordinates(array, at);
        other["fate"] = fate(array, became);
        other
    };
    found[key] = origin.others.iter().map(other).collect();
    found[format!("{key}_complete")] = origin.is_complete.into();
    let unread = |one: &UnreadFragment| json!({ "fragment": names::fragment(array, one.fragment), "error": one.error.to_string() });
    found["unread"] = origin.unread.iter().map(unread).collect();
}

fn fragments(array: &OpenedArray) -> Value {
    let states = fragment_states(array);
    let fragment = |(number, state): (usize, &FragmentState)| {
        let mut found = fragment(array, number);
        found["state"] = state_json(array, *state);
        found
    };
    states.iter().enumerate().take(MAX_FRAGMENTS).map(fragment).collect()
}

fn fragment(array: &OpenedArray, number: usize) -> Value {
    let (from, to) = names::times(array, number);
    json!({ "fragment": names::fragment(array, number), "times": [from, to] })
}

fn state_json(array: &OpenedArray, state: FragmentState) -> Value {
    let by = match state {
        FragmentState::Replaced(Some(by)) => Some(names::fragment(array, by)),
        _ => None,
    };
    json!({ "reason": names::state(state), "by": by })
}

fn place(array: &OpenedArray, place: &CellPlace) -> Value {
    let mut found = fragment(array, place.fragment);
    found["tile"] = place.tile.into();
    found["cell"] = place.cell.into();
    found["cells_in_tile"] = place.in_tile.into();
    found["time"] = place.time.into();
    found
}

fn fate(array: &OpenedArray, fate: &CellFate) -> Value {
    match fate {
        CellFate::Shown => json!({ "reason": "shown" }),
        CellFate::Overwritten(by) => json!({ "reason": "overwritten", "by": place(array, by) }),
        CellFate::Tied(by) => json!({ "reason": "tied", "by": place(array, by) }),
        CellFate::NotSelected => json!({ "reason": "not_selected" }),
        CellFate::Deleted(Deletion::Condition { commit, time }) => {
            json!({ "reason": "deleted", "commit": commit, "time": time })
        }
        CellFate::Deleted(Deletion::Recorded { time }) => json!({ "reason": "deleted", "commit": null, "time": time }),
        CellFate::OutsideOfTime(time) => json!({ "reason": "outside_of_time", "time": time }),
        CellFate::InFragment(state) => state_json(array, *state),
        CellFate::WithoutValue => json!({ "reason": "without_value" }),
    }
}

fn coordinates(array: &OpenedArray, coordinates: &[Scalar]) -> Value {
    let schema = array.schema();
    let named = coordinates.iter().zip(&schema.dimensions).enumerate().map(|(number, (coordinate, dimension))| {
        (schema.dimension_name(number).into_owned(), scalar_json(dimension.datatype, coordinate))
    });
    Value::Object(named.collect::<Map<_, _>>())
}
