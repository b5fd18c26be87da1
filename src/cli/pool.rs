//! The threads that decode: as many as were asked for, or as the system lets us have.

use super::failure::Failure;
use tilefs::threads::{self, Pool};

/// Starts the threads that decode. To be called once, before anything is read.
///
/// # Errors
/// Where `needed` says that threads of one's own are needed, and there can be none. Else the calling thread decodes.
pub fn start(wanted: usize, needed: bool) -> Result<(), Failure> {
    let Pool { threads, refused } = threads::start_pool(wanted)
        .map_err(|error| Failure::failed(format!("cannot start the threads that decode: {error}")))?;
    match refused {
        Some(error) if threads == 0 && needed => Err(Failure::failed(format!(
            "cannot start a thread: {error}; raise the limits of processes (`ulimit -u`) and of address space (`ulimit \
             -v`)"
        ))),
        Some(error) => {
            log::warn!("only {threads} of {wanted} threads that decode can be started: {error}");
            Ok(())
        }
        None => Ok(()),
    }
}
