//! `.tilefs/views.txt`: every form in which an array can be read, listed or not, with the programs that read it.

use tilefs_vfs::node::quoting::in_line;

use super::description::Description;
use crate::views::files::FileFacts;
use crate::views::folders_of_parts;

/// The column at which names end, unless they are longer.
const NAMES: usize = 32;

/// Returns the text: a line for each file, and one for each folder that has all of them again for other cells.
pub fn views_txt(description: &Description<'_>) -> String {
    let mut lines: Vec<String> = description.files.iter().map(of_file).collect();
    let mut add = |name: &str, what: &str| lines.push(line(name, what));
    if description.has_one_axis() {
        folders_of_parts().iter().for_each(|(name, about)| add(name, about));
    }
    match description.schema.is_sparse() {
        true => add("by-row/", "all of these, rows sorted by coordinates"),
        false => add("nonempty/", "all of these for the box that was written to"),
    }
    for (name, what) in [
        ("slice/SELECTION/", "all of these for a part of the array, by coordinates"),
        ("islice/SELECTION/", "all of these for a part of the array, by 0-based positions"),
        (".history/TIME/", "all of these as of a time"),
    ] {
        add(name, what);
    }
    let not_here = description.not_listed.iter();
    let not_here: Vec<String> = not_here.map(|(path, reason)| line(path, &format!("not here: {reason}"))).collect();
    lines.concat() + &not_here.concat()
}

/// Returns a line of such a text.
pub fn line(name: &str, what: &str) -> String {
    format!("{:<NAMES$}  {}\n", in_line(name), in_line(what))
}

fn of_file(file: &FileFacts) -> String {
    line(&file.path, file.view.reader)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{dense, dense_schema, sparse, sparse_schema};
    use super::*;

    #[test]
    fn every_file_has_a_line_listed_or_not() {
        let schema = dense_schema();
        let description = dense(&schema);
        let text = views_txt(&description);
        for file in description.files.iter() {
            assert!(text.lines().any(|line| line.split("  ").next() == Some(&*in_line(&file.path))), "{}", file.path);
        }
        assert!(text.contains("\ntemp.vrt  ") && text.contains("\nnonempty/  ") && !text.contains("by-row"), "{text}");
        let schema = sparse_schema();
        let text = views_txt(&sparse(&schema));
        assert!(text.contains("\nby-row/  ") && text.contains("\nparquet/parts/  "), "{text}");
    }
}
