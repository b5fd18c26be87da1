//! `tilefs verify`: is everything that is stored still readable?

use std::path::PathBuf;

use clap::Args;

use super::array;
use super::failure::Failure;
use super::options::{Logging, Opening};

/// Read everything that is stored and check it; exit status 1 if anything is wrong
#[derive(Debug, Args)]
pub struct Verify {
    /// The folder of the array or group
    array: PathBuf,

    #[command(flatten)]
    opening: Opening,

    #[command(flatten)]
    logging: Logging,
}

impl Verify {
    pub fn run(&self) -> Result<(), Failure> {
        self.logging.start();
        array::verify(&self.array, &self.opening.options(&[])?)
    }
}
