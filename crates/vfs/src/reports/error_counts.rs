//! Counts the errors of a mount or a server by their kinds.

use tilefs_base::error::Error;
use tilefs_base::statistics::{Counter, Statistic, Value};

/// A counter for each of [`Error::KINDS`].
#[derive(Debug, Default)]
pub struct ErrorCounts([Counter; Error::KINDS.len()]);

impl ErrorCounts {
    /// Counts an error of one of [`Error::KINDS`].
    pub fn add(&self, kind: &str) {
        if let Some((_, counter)) = Error::KINDS.iter().zip(&self.0).find(|(known, _)| **known == kind) {
            counter.add(1);
        }
    }

    pub fn statistics(&self) -> impl Iterator<Item = Statistic> {
        Error::KINDS.iter().zip(&self.0).map(|(kind, counter)| {
            Statistic::new("errors", "Requests that failed", Value::Total(counter.get())).of("kind", kind)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_own_counter() {
        let counts = ErrorCounts::default();
        for (number, kind) in Error::KINDS.iter().enumerate() {
            (0..=number).for_each(|_| counts.add(kind));
        }
        let values: Vec<Value> = counts.statistics().map(|one| one.value).collect();
        assert_eq!(values, (1..=7).map(Value::Total).collect::<Vec<_>>());
        assert!(Error::KINDS.contains(&Error::damaged("").kind()) && Error::KINDS.contains(&Error::usage("").kind()));
    }
}
