//! `tilefs open`: the page of an array or a group in the browser.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use clap::Args;
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use tilefs::serve::{ServeOptions, WithoutToken};
use tilefs_base::hex::hex;

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

    /// Answer everybody who reaches the server. Without this, others than you need the token in the printed address
    #[arg(long)]
    allow_other: bool,

    #[command(flatten)]
    tree: TreeArguments,
}

impl Open {
    pub fn run(&self) -> Result<(), Failure> {
        self.tree.start_log();
        if self.allow_other {
            let how = ServeOptions { without_token: WithoutToken::Everybody, ..local_options() };
            return serve(&self.array, &self.tree, how, false, str::to_owned, open_browser);
        }
        // Where the browser's user cannot be told, as behind a proxy, the address lets it in. Everybody sees the arguments
        // of programs, so the browser gets an address that works once.
        let (token, pass) = (random()?, random()?);
        let how = ServeOptions { token: Some(token.clone()), pass: Some(pass.clone()), ..local_options() };
        let printed = |url: &str| format!("{url}?token={token}");
        serve(&self.array, &self.tree, how, false, printed, |url| open_browser(&format!("{url}?token={pass}")))
    }
}

/// Returns 32 random hexadecimal digits.
fn random() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    match getrandom(&mut bytes, GetRandomFlags::empty()) {
        Ok(16) => Ok(hex(&bytes)),
        Ok(_) | Err(Errno::INTR) => random(),
        Err(error) => Err(Failure::failed(format!("cannot make a token: {error}"))),
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
