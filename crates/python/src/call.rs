//! Runs work for Python without the interpreter's lock, so that other Python threads run meanwhile.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use pyo3::prelude::*;
use tilefs_format::error::{Error, Result};
use tilefs_reader::threads;
use tilefs_reader::threads::cancellation::Token;

use crate::errors::exception;
use crate::fork;

/// How often the main thread checks whether Python has received a signal.
const LOOK_FOR_SIGNALS: Duration = Duration::from_millis(50);

/// A read of this many bytes takes long.
pub const LONG: usize = 4 << 20;

/// Runs work that takes long or may wait for a network, so that Ctrl-C ends it. Python handles signals only in the main
/// thread: called there, this function runs the work on another thread and waits for signals meanwhile.
///
/// # Errors
/// As for [`run`], and the exception that a signal raised.
pub fn run_long<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    if !is_main_thread(py)? {
        return run(py, work);
    }
    let outcome = py.detach(|| {
        let (token, (sender, done)) = (Token::new(), mpsc::channel());
        let work = || {
            // The receiver waits for it.
            let _ = sender.send(token.cover(|| guarded(work)));
        };
        threads::with("python", work, || {
            loop {
                match done.recv_timeout(LOOK_FOR_SIGNALS) {
                    Ok(outcome) => return Ok(outcome),
                    Err(RecvTimeoutError::Timeout) => {
                        if let Err(exception) = Python::attach(|py| py.check_signals()) {
                            token.cancel();
                            return Err(exception);
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => {
                        return Ok(Err(Error::usage("the system does not let this process have another thread")));
                    }
                }
            }
        })
    });
    outcome?.map_err(|error| exception(py, &error))
}

/// Runs `work`, which is short unless `is_long`, without the interpreter's lock.
///
/// # Errors
/// As for [`run_long`].
pub fn run_for<T: Send>(py: Python<'_>, is_long: bool, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    // Starting a thread takes longer than a small read of a local file.
    if is_long { run_long(py, work) } else { run(py, work) }
}

/// Runs `work` without the interpreter's lock. Errors and panics become exceptions.
///
/// # Errors
/// These exceptions, and one in a forked child process.
pub fn run<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    py.detach(|| guarded(work)).map_err(|error| exception(py, &error))
}

/// Runs `work`. Panics become errors. In a forked child process, it returns an error at once.
///
/// # Errors
/// Those of `work`; [`Error::Internal`] for a panic; [`Error::Usage`] in a forked child process.
pub fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    fork::check()?;
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(Error::internal(reason(&*panic))))
}

fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    let main = threading.call_method0("main_thread")?.getattr("ident")?;
    threading.call_method0("get_ident")?.eq(main)
}

fn reason(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_owned())
}
