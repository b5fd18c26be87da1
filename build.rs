//! Takes the page for browsers into the program, if `npm run build` in `web/` has made it.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The files of the page, compressed.
const FILES: [&str; 2] = ["page.js.gz", "page.css.gz"];

fn main() -> io::Result<()> {
    let made = Path::new("web/dist");
    println!("cargo::rerun-if-changed=build.rs");
    // A folder that does not exist would count as changed at every build.
    if made.exists() {
        println!("cargo::rerun-if-changed={}", made.display());
    }
    let Some(out) = env::var_os("OUT_DIR").map(PathBuf::from) else {
        return Err(io::Error::other("cargo sets OUT_DIR"));
    };
    let is_complete = FILES.iter().all(|name| made.join(name).is_file());
    for name in FILES {
        // Empty files stand for a page that was not made.
        let bytes = if is_complete { fs::read(made.join(name))? } else { Vec::new() };
        fs::write(out.join(name), bytes)?;
    }
    Ok(())
}
