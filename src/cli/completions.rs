//! `tilefs completions`: prints the completions of command lines for a shell.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::failure::Failure;
use super::{CommandLine, output};

/// Print completions for a shell: source them, or save them where the shell looks for them
#[derive(Debug, Args)]
pub struct Completions {
    shell: Shell,
}

impl Completions {
    pub fn run(&self) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut CommandLine::command(), "tilefs", &mut script);
        output::print(&String::from_utf8_lossy(&script))
    }
}
