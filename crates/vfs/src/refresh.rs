//! When to look for changes: on demand, after each interval, and again after a failure.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::Duration;

/// Minimum interval between refreshes.
const PAUSE: Duration = Duration::from_millis(100);

/// Delay after a failed refresh, doubled after each further failure. While an array is being replaced, it does not
/// exist for a moment.
const RETRY: Duration = Duration::from_millis(200);

/// Maximum retry delay.
const MAX_RETRY: Duration = Duration::from_secs(10);

/// Triggers refreshes. Triggers that arrive while one is pending are merged with it.
#[derive(Debug, Clone)]
pub struct RefreshTrigger(SyncSender<()>);

/// The refreshes that were triggered.
#[derive(Debug)]
pub struct Triggered(Receiver<()>);

/// The outcome of a refresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefreshOutcome {
    /// The current state is visible.
    Done,
    /// The storage did not answer; try again soon.
    Failed,
    /// The tree is no longer in use.
    Ended,
}

/// Creates a trigger, and the refreshes that it triggers.
pub fn channel() -> (RefreshTrigger, Triggered) {
    let (sender, receiver) = mpsc::sync_channel(1);
    (RefreshTrigger(sender), Triggered(receiver))
}

impl RefreshTrigger {
    /// Triggers a refresh. It stays pending until somebody waits for it.
    pub fn trigger(&self) {
        // Fails if one is pending already, or if nobody will ever wait for it.
        let _ = self.0.try_send(());
    }
}

impl Triggered {
    /// Calls `refresh` on demand and, if an interval is given, after each interval, until it returns
    /// [`RefreshOutcome::Ended`] or all triggers are dropped. Blocks, because storage may hang: run it on a thread of its
    /// own.
    pub fn run(self, interval: Option<Duration>, mut refresh: impl FnMut() -> RefreshOutcome) {
        let mut retry: Option<Duration> = None;
        loop {
            let received = match interval.into_iter().chain(retry).min() {
                Some(wait) => self.0.recv_timeout(wait),
                None => self.0.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            if received == Err(RecvTimeoutError::Disconnected) {
                return;
            }
            retry = match refresh() {
                RefreshOutcome::Done => None,
                RefreshOutcome::Failed => Some(retry.map_or(RETRY, |before| (2 * before).min(MAX_RETRY))),
                RefreshOutcome::Ended => return,
            };
            thread::sleep(PAUSE);
            if retry.is_some() {
                // The failed refresh itself may have triggered another.
                let _ = self.0.try_recv();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_are_merged_and_failures_are_tried_again() {
        let (trigger, triggered) = channel();
        trigger.trigger();
        trigger.trigger();
        let mut outcomes = [RefreshOutcome::Failed, RefreshOutcome::Failed, RefreshOutcome::Done].into_iter();
        let mut count = 0;
        triggered.run(None, || {
            count += 1;
            // After a success the loop waits for a trigger, which the test sends below.
            let outcome = outcomes.next().unwrap_or(RefreshOutcome::Ended);
            if outcome == RefreshOutcome::Done {
                trigger.trigger();
            }
            outcome
        });
        assert_eq!(count, 4);
    }

    #[test]
    fn refreshing_ends_with_the_last_trigger() {
        let (trigger, triggered) = channel();
        drop(trigger);
        triggered.run(None, || RefreshOutcome::Done);
    }
}
