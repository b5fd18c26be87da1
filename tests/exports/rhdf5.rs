//! The R package rhdf5 on the HDF5 file of a mounted array: its values are those of the raw files.

use std::process::Command;

use crate::mounted::Mounted;
use crate::tools::{has, run};
use support::skip::{Need, skipped};

/// Compares the values of `hdf5/array.h5` with the raw files. The first axis of R is the last one of HDF5.
const SCRIPT: &str = r#"
suppressMessages(library(rhdf5))
compare <- function(part, rows, columns) {
  file <- paste0("mnt/", part, "hdf5/array.h5")
  raw <- function(name, what) readBin(paste0("mnt/", part, name), what, rows * columns + 1, size = 4, endian = "little")
  temp <- h5read(file, "temp")
  cell <- h5read(file, "cell")
  stopifnot(identical(dim(temp), c(columns, rows)), identical(dim(cell), c(columns, rows)))
  stopifnot(identical(as.vector(temp), raw("temp.f32", "numeric")), identical(as.vector(cell), raw("cell.i32", "integer")))
  # A part of it, without the rest.
  stopifnot(identical(as.vector(h5read(file, "cell", index = list(2:5, 3))), cell[2:5, 3]))
}
compare("", 100L, 200L)
compare("slice/10..19,x=5..104..3/", 10L, 34L)
cat("same\n")
"#;

#[test]
fn rhdf5_reads_the_values_of_the_hdf5_file() {
    if !has("Rscript") {
        return;
    }
    let asked = "quit(status = !requireNamespace('rhdf5', quietly = TRUE))";
    if !Command::new("Rscript").args(["-e", asked]).status().is_ok_and(|status| status.success()) {
        skipped(Need::Programs, "R has no package rhdf5");
        return;
    }
    let Some(demo) = Mounted::new("demo") else { return };
    assert_eq!(run(&demo.path(""), "Rscript", &["-e", SCRIPT]), "same\n");
}
