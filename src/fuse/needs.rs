//! How much address space serving a mount takes, where that is limited.

/// The address space of a thread's stack.
const STACK: u64 = 2 << 20;

/// That of a thread which takes requests: its stack, the 16 MiB into which the protocol library reads them, and the
/// reply that it makes.
const TAKING_REQUESTS: u64 = STACK + (16 << 20) + (1 << 20);

/// What serving needs beyond the cache: names, handles, and the stored bytes of what is being decoded.
const BESIDE_THE_CACHE: u64 = 64 << 20;

/// What serves a mount, and needs a part of the address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Threads beside those that take requests.
    pub other_threads: usize,
    /// The budget of what was decoded, in bytes.
    pub cache_size: u64,
}

impl Needs {
    /// The address space in bytes that so many threads which take requests need, and all else.
    pub fn with_threads(self, threads: usize) -> u64 {
        let stacks = (self.other_threads as u64).saturating_mul(STACK);
        let taking_requests = (threads as u64).saturating_mul(TAKING_REQUESTS);
        self.cache_size.saturating_add(BESIDE_THE_CACHE).saturating_add(stacks).saturating_add(taking_requests)
    }

    /// How many of `wanted` threads that take requests fit into so many bytes of address space.
    pub fn affordable_threads(self, wanted: usize, left: u64) -> usize {
        let affordable = left.saturating_sub(self.with_threads(0)) / TAKING_REQUESTS;
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
