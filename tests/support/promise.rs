//! Checks that everything in a manifest was compared: a comparison that finds nothing to compare would pass.

use super::check::HISTORY;
use super::manifest::{Object, Read, Schema};
use super::report::Report;

/// Returns a line for each kind of check of which the report has fewer than the manifest requires.
pub fn missing(objects: &[Object], report: &Report) -> Vec<String> {
    let readable = || objects.iter().filter(|object| object.newest_error.is_none());
    let reads = || readable().flat_map(|object| object.reads.iter().map(move |read| (object, read)));
    let of_cells = |dense: bool, sliced: bool, windowed: bool| {
        let is_such = |(object, read): &(&Object, &Read)| {
            let schema = read.schema.as_ref().or(object.schema.as_ref());
            read.members.is_none()
                && is_comparable(read)
                && schema.is_some_and(|schema| schema.dense == dense)
                && (read.fields.is_none(), read.fields.is_some() && read.window.is_some()) == (sliced, windowed)
        };
        reads().filter(is_such).count()
    };
    let enumerations = |(object, read): (&Object, &Read)| {
        let schema: Option<&Schema> = read.schema.as_ref().or(object.schema.as_ref());
        schema.filter(|_| read.name == "full" && read.members.is_none()).map_or(0, |schema| schema.enumerations.len())
    };
    let metadata = |(_, read): (&Object, &Read)| read.metadata.as_ref().map_or(0, Vec::len);
    let in_order = |(_, read): &(&Object, &Read)| {
        (read.row_order.is_some() || read.row_order_digest.is_some()) && is_comparable(read)
    };
    let of_groups = |moved: bool| {
        readable().filter(|one| one.is_group && one.moved == moved).map(|group| group.reads.len()).sum::<usize>()
    };
    let promised = [
        ("objects", readable().count()),
        ("objects that libtiledb cannot open", objects.len() - readable().count()),
        ("dense arrays", of_cells(true, false, false)),
        ("dense arrays in a window of time", of_cells(true, false, true)),
        ("dense slices", of_cells(true, true, false)),
        ("sparse arrays", of_cells(false, false, false)),
        ("sparse arrays in a window of time", of_cells(false, false, true)),
        ("sparse slices", of_cells(false, true, false)),
        ("groups", of_groups(false)),
        ("groups that were moved", of_groups(true)),
        ("metadata", reads().filter(|(_, read)| read.newest_error.is_none()).map(metadata).sum()),
        (HISTORY, reads().filter(|(_, read)| read.window.is_some()).count()),
        ("enumerations", reads().map(enumerations).sum()),
        ("row orders", reads().filter(in_order).count()),
    ];
    let short = promised.into_iter().filter(|(kind, promised)| report.count(kind) < *promised);
    short.map(|(kind, promised)| format!("{promised} {kind} are promised, {} checked", report.count(kind))).collect()
}

/// Returns whether libtiledb can do the read, and its result is undisputed.
fn is_comparable(read: &Read) -> bool {
    read.newest_error.is_none() && !read.disputed
}
