//! Media types, by the ending of a name.
//!
//! Nothing is served as a type that a browser runs: the files of a filestore array may be anybody's.

use tilefs_tree::views::media_type;

/// Types by ending, of files that are not views. The first match counts.
const TYPES: [(&str, &str); 6] = [
    (".json", "application/json"),
    (".txt", "text/plain; charset=utf-8"),
    (".prom", "text/plain; version=0.0.4"),
    (".h5ad", "application/x-hdf5"),
    (".png", "image/png"),
    (".jpg", "image/jpeg"),
];

/// Returns the media type of a file.
pub fn of_file(name: &str) -> &'static str {
    TYPES.iter().find(|(ending, _)| name.ends_with(ending)).map_or_else(|| media_type(name), |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use tilefs_tree::views::facts::BYTES;

    use super::*;

    #[test]
    fn the_ending_decides_and_nothing_is_run() {
        assert_eq!(of_file("temp.f32"), BYTES);
        assert_eq!(of_file("cells.parquet"), "application/vnd.apache.parquet");
        assert_eq!(of_file("zarr.json"), "application/json");
        for name in ["a.html", "a.svg", "a.js", "a.xml", "a.vrt", "a.pdf", "a"] {
            assert_eq!(of_file(name), BYTES);
        }
    }
}
