//! Media types, by the ending of a name.
//!
//! Nothing is served as a type that a browser runs: the files of a filestore array may be anybody's.

/// Types by ending. The first match counts.
const TYPES: [(&str, &str); 16] = [
    (".json", "application/json"),
    (".txt", "text/plain; charset=utf-8"),
    (".hdr", "text/plain; charset=utf-8"),
    (".nhdr", "text/plain; charset=utf-8"),
    (".mhd", "text/plain; charset=utf-8"),
    (".prom", "text/plain; version=0.0.4"),
    (".tsv", "text/tab-separated-values; charset=utf-8"),
    (".csv", "text/csv; charset=utf-8"),
    (".parquet", "application/vnd.apache.parquet"),
    (".arrow", "application/vnd.apache.arrow.file"),
    (".nc", "application/x-netcdf"),
    (".h5", "application/x-hdf5"),
    (".h5ad", "application/x-hdf5"),
    (".tif", "image/tiff"),
    (".png", "image/png"),
    (".jpg", "image/jpeg"),
];

/// The type of everything else.
const BYTES: &str = "application/octet-stream";

/// Returns the media type of a file.
pub fn of_file(name: &str) -> &'static str {
    TYPES.iter().find(|(ending, _)| name.ends_with(ending)).map_or(BYTES, |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
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
