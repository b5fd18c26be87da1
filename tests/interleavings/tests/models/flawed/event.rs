//! An event that threads wait for, with deliberate flaws.

use tilefs_interleavings::sync::{Condvar, Mutex};

#[derive(Default)]
pub struct Event {
    has_happened: Mutex<bool>,
    changed: Condvar,
}

impl Event {
    pub fn wait(&self) {
        let mut has_happened = self.has_happened.lock().unwrap();
        while !*has_happened {
            has_happened = self.changed.wait(has_happened).unwrap();
        }
    }

    /// Flaw: takes any wake-up as the event.
    pub fn wait_once(&self) {
        let mut has_happened = self.has_happened.lock().unwrap();
        if !*has_happened {
            has_happened = self.changed.wait(has_happened).unwrap();
        }
        assert!(*has_happened, "it has not happened");
    }

    pub fn set(&self) {
        *self.has_happened.lock().unwrap() = true;
        self.changed.notify_all();
    }

    /// Flaw: wakes nobody.
    pub fn set_silently(&self) {
        *self.has_happened.lock().unwrap() = true;
    }

    /// Flaw: either wake-up is enough.
    pub fn set_twice(&self) {
        *self.has_happened.lock().unwrap() = true;
        self.changed.notify_one();
        self.changed.notify_one();
    }
}
