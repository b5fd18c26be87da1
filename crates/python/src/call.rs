//! Runs work for Python without the interpreter's lock, so that other Python threads run meanwhile, and so that Ctrl-C
//! ends it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use tilefs_base::error::{Error, Result};
use tilefs_threads as threads;
use tilefs_threads::cancellation::{self, Token};

use crate::errors::exception;

/// How often the main thread checks whether Python has received a signal.
pub const LOOK_FOR_SIGNALS: Duration = Duration::from_millis(50);

/// A read that decodes this many bytes takes long.
pub const LONG: u64 = 4 << 20;

/// Cancels calls that other threads make, so that the main thread can end them after a signal.
#[pyclass(frozen, module = "tilefs._tilefs")]
pub struct Cancellation(pub Token);

#[pymethods]
impl Cancellation {
    #[new]
    fn new() -> Self {
        Cancellation(Token::new())
    }

    /// Ends the calls soon, with an error.
    fn cancel(&self) {
        self.0.cancel();
    }
}

/// Runs work that may take long. Python handles signals only in the main thread: called there, this function runs the
/// work on another thread and waits for signals meanwhile.
///
/// # Errors
/// As for [`run_short`], and the exception that a signal raised.
pub fn run<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    if !is_main_thread(py)? {
        return run_short(py, work);
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

/// Runs `work` as [`run`] does, unless it `is_short`: starting a thread takes longer than a small read of a local file.
///
/// # Errors
/// As for [`run`].
pub fn run_unless<T: Send>(py: Python<'_>, is_short: bool, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    if is_short { run_short(py, work) } else { run(py, work) }
}

/// Runs work that takes a moment, without the interpreter's lock. Errors and panics become exceptions.
///
/// # Errors
/// These exceptions.
pub fn run_short<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    py.detach(|| guarded(work)).map_err(|error| exception(py, &error))
}

/// Runs `work`, as part of the calls that `cancellation` ends.
///
/// # Errors
/// As for [`run`].
pub fn run_under<T: Send>(
    py: Python<'_>,
    cancellation: Option<&Cancellation>,
    work: impl FnOnce() -> Result<T> + Send,
) -> PyResult<T> {
    let Some(Cancellation(token)) = cancellation else { return run(py, work) };
    run_short(py, || token.cover(|| cancellation::check().and_then(|()| work())))
}

/// Runs `work`. Panics become errors.
///
/// # Errors
/// Those of `work`; [`Error::Internal`] for a panic.
pub fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(Error::internal(reason(&*panic))))
}

/// Returns this thread if it is the one in which Python handles signals.
///
/// # Errors
/// None that are expected.
pub fn main_thread(py: Python<'_>) -> PyResult<Option<ThreadId>> {
    Ok(is_main_thread(py)?.then(|| thread::current().id()))
}

/// Returns whether a signal has raised an exception. This is for calls of other libraries, which could not pass it on:
/// Python raises a `KeyboardInterrupt` again as soon as it runs, and prints any other exception. Call it only in
/// [`main_thread`]: another thread might wait for one that holds the interpreter's lock.
pub fn is_interrupted() -> bool {
    Python::attach(|py| {
        let Err(exception) = py.check_signals() else { return false };
        if exception.is_instance_of::<PyKeyboardInterrupt>(py) {
            let again = py.import("_thread").and_then(|thread| thread.call_method0("interrupt_main"));
            again.map_or_else(|error| error.write_unraisable(py, None), drop);
        } else {
            exception.write_unraisable(py, None);
        }
        true
    })
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
