//! Whether standard output was closed when the program started.
//!
//! The runtime of Rust opens `/dev/null` in place of a closed standard stream before `main` begins, so that no other file
//! gets its number. What a command prints would vanish there with exit status 0. Only what runs before the runtime can
//! see the difference.
//!
//! Invariant of the `unsafe` code: [`look`] runs once, on the only thread, before `main`. It makes one system call that
//! takes no pointer, and stores one flag.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether whoever started this program closed standard output, as `tilefs ... >&-` does.
pub fn was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}

/// The C library calls the functions of this section before it enters the runtime of Rust.
#[used]
// SAFETY: the section holds pointers to functions of the C calling convention, which this is.
#[unsafe(link_section = ".init_array")]
static BEFORE_THE_RUNTIME: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: F_GETFD reads a flag of a descriptor; the number of none that is open is answered with an error.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    WAS_CLOSED.store(flags == -1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_open_standard_output_is_no_closed_one() {
        assert!(!super::was_closed());
    }
}
