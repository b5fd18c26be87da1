//! Damaged tiles below an HDF5 file: reads that need them fail with an error that names the tile's place, and every
//! other byte is right.

use std::fs;
use std::path::{Path, PathBuf};

use support::paths::file;
use support::vcf::opened;
use tempfile::TempDir;
use tilefs_base::error::Error;

/// Bytes read at a time: few, so that the surroundings of a damaged place are read separately.
const PIECE: usize = 64;

/// Copies a fixture; returns its folder, and the stored file of an attribute of its last fragment.
fn copied(name: &str, attribute: &str) -> (TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("array");
    support::stored::copy_folder(&tilefs_fixtures::fixtures().join(name), &path);
    let fragments = fs::read_dir(path.join("__fragments")).unwrap().map(|entry| entry.unwrap().path());
    let stored = fragments.max().unwrap().join(attribute);
    (folder, path, stored)
}

/// The bytes read at a place, or the number and the text of the error.
type Piece = Result<Vec<u8>, (i32, String)>;

/// Reads a file piece by piece; returns a single error if it cannot be opened.
fn pieces(array: &Path, path: &str) -> Vec<Piece> {
    let told = |error: Error| (tilefs_vfs::fuse::errno(&error), error.to_string());
    let content = match file(&opened(array), path).open() {
        Ok(content) => content,
        Err(error) => return vec![Err(told(error))],
    };
    let starts = (0..content.len()).step_by(PIECE);
    let read = |start: u64| {
        let mut piece = vec![0; PIECE.min((content.len() - start) as usize)];
        content.read_at(start, &mut piece).map(|()| piece).map_err(told)
    };
    starts.map(read).collect()
}

#[test]
fn damaged_tiles_are_errors_of_the_hdf5_files_that_show_them() {
    for (name, attribute) in [("arrays/dense/dims_3", "a0.tdb"), ("demo", "a0.tdb"), ("arrays/dense/var", "a0_var.tdb")]
    {
        for path in ["hdf5/array.h5", "netcdf4/array.nc"] {
            let (_folder, array, stored) = copied(name, attribute);
            let sound = pieces(&array, path);
            let mut bytes = fs::read(&stored).unwrap();
            // The header of the last chunk lies in the second half; the first half is intact.
            let middle = bytes.len() / 2;
            bytes.truncate(middle);
            fs::write(&stored, bytes).unwrap();
            let damaged = pieces(&array, path);
            // The layout of a file requires the lengths of all values of variable length.
            let is_laid_out = !attribute.contains("var");
            assert_eq!(damaged.len() == sound.len(), is_laid_out, "{name} {path}");
            let (mut wrong, mut right) = (0, 0);
            for (found, wanted) in damaged.into_iter().zip(sound) {
                match found {
                    Ok(piece) => {
                        assert!(piece == wanted.unwrap(), "{name} {path}");
                        right += 1;
                    }
                    Err((errno, told)) => {
                        let fragment = stored.parent().unwrap().file_name().unwrap().to_str().unwrap();
                        assert_eq!(errno, libc::EIO, "{name} {path}: {told}");
                        let is_placed = told.contains("array /") && told.contains(fragment) && told.contains(attribute);
                        assert!(is_placed, "{name} {path}: {told}");
                        wrong += 1;
                    }
                }
            }
            assert!(wrong > 0 && (right > 0) == is_laid_out, "{name} {path}: {wrong} errors, {right} pieces");
        }
    }
}
