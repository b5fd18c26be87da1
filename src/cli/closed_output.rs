//! Detects whether standard output was closed when the program started.
//!
//! Rust's runtime opens `/dev/null` in place of a closed standard stream before `main` begins, so that no other file
//! gets its number. Output would then be lost with exit status 0. Only code that runs before the runtime can detect
//! this.
//!
//! Invariant of the `unsafe` code: [`look`] runs once, on the only thread, before `main`. It makes one system call that
//! takes no pointer, and stores one flag.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Returns whether the program was started with standard output closed, as by `tilefs ... >&-`.
pub fn was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}

/// The C library calls the functions in this section before it enters Rust's runtime.
#[used]
// SAFETY: the section holds pointers to functions of the C calling convention, which this is.
#[unsafe(link_section = ".init_array")]
static BEFORE_THE_RUNTIME: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: F_GETFD reads a flag of a descriptor; a descriptor that is not open gives an error.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    WAS_CLOSED.store(flags == -1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    #[test]
    fn open_standard_output_is_not_reported_closed() {
        assert!(!super::was_closed());
    }
}
