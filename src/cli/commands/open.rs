//! `tilefs open`: the page of an array or a group in the browser.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use clap::Args;

use super::serve::{local_options, serve};
use crate::cli::failure::Failure;
use crate::cli::options::TreeArguments;

const EXAMPLES: &str = "\
Examples:
  tilefs open dem.tdb          look at it in the browser, until ctrl-C
  BROWSER= tilefs open dem.tdb print the address only";

/// Show an array or a group in the browser: serves it to this machine on a free port, until ctrl-C
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Open {
    /// The folder of the array or group
    array: PathBuf,

    #[command(flatten)]
    tree: TreeArguments,
}

impl Open {
    pub fn run(&self) -> Result<(), Failure> {
        self.tree.start_log();
        serve(&self.array, &self.tree, local_options(), false, open_browser)
    }
}

/// Opens a URL in the program that `BROWSER` names or, where there are windows, in the desktop's browser. The URL has
/// been printed, so nothing is lost if that fails.
fn open_browser(url: &str) {
    let has_windows = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| env::var_os(name).is_some());
    let Some(browser) = env::var_os("BROWSER").or_else(|| has_windows.then(|| "xdg-open".into())) else { return };
    if browser.is_empty() {
        return;
    }
    // The shell ends at once, and the browser goes on by itself.
    let mut command = Command::new("sh");
    command.args(["-c", "\"$0\" \"$1\" &"]).arg(&browser).arg(url);
    let opened = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if let Err(error) = opened {
        log::info!("cannot open a browser: {error}");
    }
}
