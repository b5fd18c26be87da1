//! System calls that a signal interrupted are made again, a limited number of times: a broken file system may say that
//! of every call.

use std::io;

use rustix::io::Errno;
use tilefs_threads::cancellation;

/// More interruptions of one call are an error: signals do not come that often.
const MOST: u32 = 100;

/// The interruptions of a system call so far.
#[derive(Debug, Default)]
pub struct Interruptions(u32);

impl Interruptions {
    /// Counts one.
    ///
    /// # Errors
    /// If there were too many, or if the request was cancelled.
    pub fn count(&mut self) -> io::Result<()> {
        self.0 += 1;
        if self.0 > MOST || cancellation::is_cancelled() { Err(Errno::INTR.into()) } else { Ok(()) }
    }
}

/// Makes a system call, again if it is interrupted.
///
/// # Errors
/// Those of the call, and its interruption if that does not end.
pub fn retry_interrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut interruptions = Interruptions::default();
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => interruptions.count()?,
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupted_calls_are_repeated_up_to_a_limit() {
        let call = |failing: u32| {
            let mut calls = 0;
            retry_interrupted(|| {
                calls += 1;
                if calls <= failing { Err(Errno::INTR.into()) } else { Ok(calls) }
            })
        };
        assert_eq!(call(7).unwrap(), 8);
        assert_eq!(call(u32::MAX).unwrap_err().kind(), io::ErrorKind::Interrupted);
    }
}
