//! Work that a thread lends to other threads while it waits for them.
//!
//! The work borrows from its lender's stack, while the threads that run it live as long as the process. The standard
//! library lends like this only to threads that [`std::thread::scope`] starts and joins, which costs a thread start for
//! each loan.
//!
//! Invariant of the `unsafe` code: the work is called only by a borrower that was counted while the loan was open, and
//! [`lend`] neither returns nor unwinds before the loan is closed and no borrower is counted. So the work outlives every
//! call. Nothing outside this file can break that: a [`Loan`] may be kept for longer, but then [`Loan::borrow`] does
//! nothing.
#![allow(unsafe_code)]

use std::mem::transmute;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Lent work, as its borrowers hold it.
pub struct Loan {
    /// Valid while the loan is open or has borrowers. The lifetime is longer than the true one, which has no name here.
    work: NonNull<dyn Fn() + Sync + 'static>,
    state: Mutex<LoanState>,
    returned: Condvar,
}

#[derive(Default)]
struct LoanState {
    /// Number of threads that currently run the work.
    borrowers: usize,
    is_closed: bool,
    has_panicked: bool,
}

// SAFETY: other threads get at the work only as `&(dyn Fn() + Sync)`, which may be shared between threads, and only
// while it is valid.
unsafe impl Send for Loan {}
// SAFETY: as above.
unsafe impl Sync for Loan {}

/// Calls `lender` with a loan of `work`, closes the loan, and waits until no borrower runs the work any more; also if
/// `lender` panics. Returns the result of `lender`, and whether the work panicked in a borrower.
pub fn lend<T>(work: &(dyn Fn() + Sync), lender: impl FnOnce(&Arc<Loan>) -> T) -> (T, bool) {
    // SAFETY: only the lifetime changes, and only that of a pointer, which need not be valid.
    let work = unsafe { transmute::<NonNull<dyn Fn() + Sync + '_>, NonNull<dyn Fn() + Sync + 'static>>(work.into()) };
    let loan = Arc::new(Loan { work, state: Mutex::default(), returned: Condvar::new() });
    let closing = CloseOnDrop(&loan);
    let result = lender(&loan);
    drop(closing);
    let has_panicked = loan.lock().has_panicked;
    (result, has_panicked)
}

impl Loan {
    /// Runs the work on this thread, unless the loan is closed.
    pub fn borrow(&self) {
        let mut state = self.lock();
        if state.is_closed {
            return;
        }
        state.borrowers += 1;
        drop(state);
        // SAFETY: this borrower is counted, and was while the loan was open, so the lender waits.
        let work = unsafe { self.work.as_ref() };
        let outcome = catch_unwind(AssertUnwindSafe(work));
        let mut state = self.lock();
        state.has_panicked |= outcome.is_err();
        state.borrowers -= 1;
        // Only then the lender waits. Notifying costs a system call even if it does not.
        let is_awaited = state.is_closed && state.borrowers == 0;
        drop(state);
        if is_awaited {
            self.returned.notify_one();
        }
    }

    /// Closes the loan and waits for its borrowers.
    fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        while state.borrowers > 0 {
            state = self.returned.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, LoanState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes a loan on drop, during unwinding as well.
struct CloseOnDrop<'a>(&'a Loan);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Barrier, mpsc};
    use std::thread;

    use super::*;

    /// Calls `work` on this thread and `others` more, started by `run_with`.
    type Run<'a> = &'a dyn Fn(usize, &(dyn Fn() + Sync));

    /// Lends to threads that are not scoped: the compiler does not know that they end before the work does.
    fn by_loan(others: usize, work: &(dyn Fn() + Sync)) {
        let threads = lend(work, |loan| {
            let (begun, all_begun) = mpsc::channel();
            let threads: Vec<_> = (0..others)
                .map(|_| {
                    let (loan, begun) = (Arc::clone(loan), begun.clone());
                    thread::spawn(move || {
                        begun.send(()).unwrap();
                        loan.borrow();
                    })
                })
                .collect();
            work();
            all_begun.iter().take(others).count();
            threads
        });
        threads.0.into_iter().for_each(|thread| thread.join().unwrap());
    }

    /// The safe twin.
    fn by_scoped_threads(others: usize, work: &(dyn Fn() + Sync)) {
        thread::scope(|scope| {
            (0..others).for_each(|_| drop(scope.spawn(work)));
            work();
        });
    }

    /// Whoever comes takes numbers until none is left: both ways take the same ones, into memory of the lender's stack.
    #[test]
    fn lent_work_does_what_scoped_threads_do() {
        let total = |run: Run<'_>, others, end| {
            let (next, taken) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
            run(others, &|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= end {
                        return;
                    }
                    taken.lock().unwrap().push(number);
                }
            });
            let mut taken = taken.into_inner().unwrap();
            taken.sort_unstable();
            taken
        };
        for (others, end) in [(0, 5), (1, 40), (3, 7), (3, 90)] {
            let expected = total(&by_scoped_threads, others, end);
            assert_eq!(expected, (0..end).collect::<Vec<_>>());
            assert_eq!(total(&by_loan, others, end), expected);
        }
    }

    /// The work is gone by the time that the loan is borrowed.
    #[test]
    fn a_closed_loan_does_nothing() {
        let loan = {
            let calls = AtomicUsize::new(0);
            let work = || {
                calls.fetch_add(1, Ordering::Relaxed);
            };
            let (loan, _) = lend(&work, |loan| {
                loan.borrow();
                Arc::clone(loan)
            });
            assert_eq!(calls.into_inner(), 1);
            loan
        };
        thread::spawn(move || loan.borrow()).join().unwrap();
    }

    /// A borrower is inside while the lender panics or returns: the work stays valid until it has left.
    #[test]
    fn the_lender_waits_for_borrowers_even_if_it_panics() {
        for panics in [false, true] {
            let (entered, left) = (Barrier::new(2), AtomicUsize::new(0));
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                let value = vec![7; 100];
                let work = || {
                    entered.wait();
                    (0..200).for_each(|_| thread::yield_now());
                    left.store(value.iter().sum(), Ordering::Relaxed);
                };
                lend(&work, |loan| {
                    let loan = Arc::clone(loan);
                    thread::spawn(move || loan.borrow());
                    entered.wait();
                    assert!(!panics, "on purpose");
                })
            }));
            assert_eq!((outcome.is_err(), left.into_inner()), (panics, 700));
        }
    }

    #[test]
    fn a_panic_of_a_borrower_is_reported() {
        let ((), has_panicked) = lend(&|| panic!("on purpose"), |loan| loan.borrow());
        assert!(has_panicked);
        let ((), has_panicked) = lend(&|| {}, |loan| loan.borrow());
        assert!(!has_panicked);
    }
}
