//! `tilefs completions`: prints the completions of command lines for a shell.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::cli::failure::Failure;
use crate::cli::output;

/// Print completions for a shell: source them, or save them where the shell looks for them
#[derive(Debug, Args)]
pub struct Completions {
    shell: Shell,
}

impl Completions {
    /// Prints the completions of the program's command line.
    pub fn run(&self, mut program: Command) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut program, "tilefs", &mut script);
        output::print(&String::from_utf8_lossy(&script))
    }
}
