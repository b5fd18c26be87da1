//! Counts requests by kind, errors, and bytes.

use hyper::Method;
use tilefs_base::statistics::{Counter, Statistic, Value};
use tilefs_vfs::reports::ErrorCounts;

/// The methods that are counted by name.
const METHODS: [&str; 4] = ["GET", "HEAD", "OPTIONS", "PROPFIND"];

/// All kinds of requests: these methods, and everything else.
const KINDS: [&str; METHODS.len() + 1] = ["get", "head", "options", "propfind", "other"];

/// The counters of a server.
#[derive(Debug, Default)]
pub struct Counts {
    requests: [Counter; KINDS.len()],
    pub errors: ErrorCounts,
    denied: Counter,
    refused: Counter,
    sent: Counter,
    refreshes: Counter,
}

impl Counts {
    /// Counts a request.
    pub fn request(&self, method: &Method) {
        let known = METHODS.iter().position(|known| *known == method.as_str());
        self.requests[known.unwrap_or(METHODS.len())].add(1);
    }

    /// Counts a request without the right to read.
    pub fn denied(&self) {
        self.denied.add(1);
    }

    /// Counts a request for which there were no means.
    pub fn refused(&self) {
        self.refused.add(1);
    }

    /// Counts bytes of replies.
    pub fn sent(&self, bytes: usize) {
        self.sent.add(bytes as u64);
    }

    /// Counts a refresh that changed something.
    pub fn refresh(&self) {
        self.refreshes.add(1);
    }

    pub fn statistics(&self) -> Vec<Statistic> {
        let requests = KINDS.iter().zip(&self.requests).map(|(kind, counter)| {
            Statistic::new("requests", "Requests of clients", Value::Total(counter.get())).of("kind", kind)
        });
        let total = |name, help, counter: &Counter| Statistic::new(name, help, Value::Total(counter.get()));
        let others = [
            total("sent_bytes", "Bytes of the bodies of replies", &self.sent),
            total("denied", "Requests without the token, or for another host", &self.denied),
            total("refused", "Requests that were refused because too many were being answered", &self.refused),
            total("refreshes", "Refreshes that showed changes", &self.refreshes),
        ];
        requests.chain(others).chain(self.errors.statistics()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_method_has_its_own_counter() {
        let counts = Counts::default();
        for (number, method) in METHODS.iter().chain(&["PUT"]).enumerate() {
            (0..=number).for_each(|_| counts.request(&Method::from_bytes(method.as_bytes()).unwrap()));
        }
        let values: Vec<Value> =
            counts.statistics().iter().filter(|one| one.name == "requests").map(|one| one.value).collect();
        assert_eq!(values, (1..=5).map(Value::Total).collect::<Vec<_>>());
    }
}
