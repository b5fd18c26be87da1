//! `tilefs man`: shows the manual pages, which are part of the program, even if none are installed.

use std::io::{self, IsTerminal, Write};
use std::process::{Command, Stdio};

use clap::{Args, ValueEnum};

use crate::cli::failure::Failure;
use crate::cli::output;

const EXAMPLES: &str = "\
Examples:
  tilefs man                            the commands and options
  tilefs man paths                      the tree, and the grammar of selections
  tilefs man --roff paths > tilefs-paths.7";

/// Show the manual, even if it is not installed
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Man {
    /// The page
    #[arg(value_name = "PAGE", default_value = "tilefs")]
    page: ManualPage,

    /// Print its source, for installing as man1/tilefs.1 or man7/tilefs-paths.7
    #[arg(long)]
    roff: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ManualPage {
    /// Commands and options, tilefs(1)
    Tilefs,
    /// The tree and selections, tilefs-paths(7)
    #[value(alias = "tilefs-paths")]
    Paths,
}

impl ManualPage {
    fn source(self) -> &'static str {
        match self {
            ManualPage::Tilefs => include_str!("../../../man/tilefs.1"),
            ManualPage::Paths => include_str!("../../../man/tilefs-paths.7"),
        }
    }

    /// The page as text, which scripts/render_manuals.sh renders.
    fn text(self) -> &'static str {
        match self {
            ManualPage::Tilefs => include_str!("../../../man/tilefs.txt"),
            ManualPage::Paths => include_str!("../../../man/tilefs-paths.txt"),
        }
    }
}

impl Man {
    pub fn run(&self) -> Result<(), Failure> {
        let source = self.page.source();
        if self.roff {
            return output::print(source);
        }
        if io::stdout().is_terminal() && shown_by_man(source) {
            return Ok(());
        }
        match output::print(self.page.text()) {
            // The reader has closed the pipe.
            Err(failure) if failure.status == 0 => Ok(()),
            printed => printed,
        }
    }
}

/// Shows a page with man(1), with its fonts and pager; returns `false` if that fails.
fn shown_by_man(source: &str) -> bool {
    let started = Command::new("man").args(["-l", "-"]).stdin(Stdio::piped()).stderr(Stdio::null()).spawn();
    let Ok(mut man) = started else { return false };
    if let Some(mut input) = man.stdin.take() {
        // If man cannot read a page this way, its exit status says so.
        let _ = input.write_all(source.as_bytes());
    }
    man.wait().is_ok_and(|status| status.success())
}
