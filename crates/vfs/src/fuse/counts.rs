//! Counts requests by kind, and errors.

use tilefs_base::statistics::{Counter, Statistic, Value};

use crate::reports::ErrorCounts;

/// The kind of a kernel request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    Lookup,
    Forget,
    GetAttributes,
    Open,
    Read,
    Release,
    OpenFolder,
    ReadFolder,
    ReleaseFolder,
    FileSystem,
    ExtendedAttribute,
    ListExtendedAttributes,
    Access,
}

impl RequestKind {
    /// All kinds in order of their discriminants, with their FUSE names.
    const ALL: [(RequestKind, &'static str); 13] = [
        (RequestKind::Lookup, "lookup"),
        (RequestKind::Forget, "forget"),
        (RequestKind::GetAttributes, "getattr"),
        (RequestKind::Open, "open"),
        (RequestKind::Read, "read"),
        (RequestKind::Release, "release"),
        (RequestKind::OpenFolder, "opendir"),
        (RequestKind::ReadFolder, "readdir"),
        (RequestKind::ReleaseFolder, "releasedir"),
        (RequestKind::FileSystem, "statfs"),
        (RequestKind::ExtendedAttribute, "getxattr"),
        (RequestKind::ListExtendedAttributes, "listxattr"),
        (RequestKind::Access, "access"),
    ];
}

/// The counters of one mount.
#[derive(Debug, Default)]
pub struct RequestCounts {
    requests: [Counter; RequestKind::ALL.len()],
    pub errors: ErrorCounts,
    read: Counter,
    refreshes: Counter,
}

impl RequestCounts {
    /// Counts a request.
    pub fn request(&self, kind: RequestKind) {
        if let Some(counter) = self.requests.get(kind as usize) {
            counter.add(1);
        }
    }

    /// Counts bytes returned by reads.
    pub fn read(&self, bytes: usize) {
        self.read.add(bytes as u64);
    }

    /// Counts a refresh that changed something.
    pub fn refresh(&self) {
        self.refreshes.add(1);
    }

    pub fn statistics(&self) -> Vec<Statistic> {
        let requests = RequestKind::ALL.iter().zip(&self.requests).map(|((_, name), counter)| {
            Statistic::new("requests", "Requests of the kernel", Value::Total(counter.get())).of("kind", name)
        });
        let read = Statistic::new("read_bytes", "Bytes returned to the kernel", Value::Total(self.read.get()));
        let help = "Refreshes that showed changes";
        let refreshes = Statistic::new("refreshes", help, Value::Total(self.refreshes.get()));
        requests.chain([read, refreshes]).chain(self.errors.statistics()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_own_counter() {
        let counts = RequestCounts::default();
        for (number, (kind, _)) in RequestKind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, number);
            (0..=number).for_each(|_| counts.request(*kind));
        }
        let values: Vec<Value> =
            counts.statistics().iter().filter(|one| one.name == "requests").map(|one| one.value).collect();
        assert_eq!(values, (1..=13).map(Value::Total).collect::<Vec<_>>());
    }
}
