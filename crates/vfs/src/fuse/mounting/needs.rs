//! Estimates the address space needed to serve a mount, for processes with a limit.

/// Stack size of a thread.
const STACK: u64 = 2 << 20;

/// Address space of a request thread: its stack, the 16 MiB request buffer of the FUSE library, and a reply buffer.
const REQUEST_THREAD: u64 = STACK + (16 << 20) + (1 << 20);

/// Memory needed besides the cache: names, handles, and the stored bytes of units being decoded.
const OTHER_MEMORY: u64 = 64 << 20;

/// Parts of a mount that need address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Threads other than request threads.
    pub other_threads: usize,
    /// Cache budget in bytes.
    pub cache_size: u64,
}

impl Needs {
    /// Returns the bytes needed in total with `threads` request threads.
    pub fn with_threads(self, threads: usize) -> u64 {
        let stacks = (self.other_threads as u64).saturating_mul(STACK);
        let taking_requests = (threads as u64).saturating_mul(REQUEST_THREAD);
        self.cache_size.saturating_add(OTHER_MEMORY).saturating_add(stacks).saturating_add(taking_requests)
    }

    /// Returns how many of `wanted` request threads fit into `left` bytes of address space.
    pub fn affordable_threads(self, wanted: usize, left: u64) -> usize {
        let affordable = left.saturating_sub(self.with_threads(0)) / REQUEST_THREAD;
        wanted.min(usize::try_from(affordable).unwrap_or(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn affordable_threads_fit() {
        let needs = Needs { other_threads: 6, cache_size: 16 << 20 };
        assert_eq!(needs.affordable_threads(5, u64::MAX), 5);
        assert_eq!(needs.affordable_threads(5, needs.with_threads(5)), 5);
        assert_eq!(needs.affordable_threads(5, needs.with_threads(5) - 1), 4);
        assert_eq!(needs.affordable_threads(5, needs.with_threads(0)), 0);
        assert_eq!(needs.affordable_threads(5, 0), 0);
        let endless = Needs { cache_size: u64::MAX, ..needs };
        assert_eq!(endless.affordable_threads(5, 1 << 40), 0);
    }
}
