//! Failures and counts.

use std::collections::BTreeMap;

/// The results of some checks.
#[derive(Default)]
pub struct Report {
    /// The number of checks and of failures, by kind of check.
    counts: BTreeMap<&'static str, (usize, usize)>,
    failures: Vec<Failure>,
}

struct Failure {
    object: String,
    read: String,
    field: String,
    what: String,
}

/// Number of failures that are printed in full; the rest are counted.
const SHOWN: usize = 40;

impl Report {
    pub fn passed(&mut self, kind: &'static str) {
        self.counts.entry(kind).or_default().0 += 1;
    }

    pub fn failed(&mut self, kind: &'static str, object: &str, read: &str, field: &str, what: impl Into<String>) {
        let count = self.counts.entry(kind).or_default();
        count.0 += 1;
        count.1 += 1;
        let [object, read, field] = [object, read, field].map(str::to_owned);
        self.failures.push(Failure { object, read, field, what: what.into() });
    }

    pub fn joined_with(mut self, other: Report) -> Report {
        for (kind, (made, failed)) in other.counts {
            let count = self.counts.entry(kind).or_default();
            count.0 += made;
            count.1 += failed;
        }
        self.failures.extend(other.failures);
        self
    }

    /// Counts another report as one check, which fails if anything in the report failed.
    pub fn add_as(&mut self, kind: &'static str, other: Report) {
        let count = self.counts.entry(kind).or_default();
        count.0 += 1;
        count.1 += usize::from(other.failures() > 0);
        self.failures.extend(other.failures);
    }

    pub fn count(&self, kind: &str) -> usize {
        self.counts.get(kind).map_or(0, |count| count.0)
    }

    pub fn failures(&self) -> usize {
        self.failures.len()
    }

    /// Prints everything; all failures if there are few or `all` is wanted.
    pub fn print(&mut self, title: &str, all: bool) {
        println!("\n{title}");
        for (kind, (made, failed)) in &self.counts {
            println!("  {made:6} {kind}{}", if *failed > 0 { format!(", {failed} FAILED") } else { String::new() });
        }
        self.failures.sort_by(|a, b| (&a.object, &a.read, &a.field).cmp(&(&b.object, &b.read, &b.field)));
        let shown = if all { self.failures.len() } else { SHOWN };
        let mut last = "";
        for failure in self.failures.iter().take(shown) {
            if failure.object != last {
                println!("  {}", failure.object);
                last = &failure.object;
            }
            println!("    {} {}: {}", failure.read, failure.field, failure.what);
        }
        if self.failures.len() > shown {
            let mut objects: Vec<&str> = self.failures.iter().map(|failure| failure.object.as_str()).collect();
            objects.dedup();
            println!(
                "  ... {} failures in {} objects; TILEFS_CASE=<part of a path> shows all of some",
                self.failures.len(),
                objects.len()
            );
        }
    }
}
