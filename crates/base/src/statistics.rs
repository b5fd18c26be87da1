//! Counters of a running mount as names and values, and their text formats.
//!
//! Each module counts its own work and reports it as [`Statistic`]s; the caller concatenates them.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A monotonic counter. Threads add to it without locking.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to the counter.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Returns the sum.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A monotonic sum of durations.
#[derive(Debug, Default)]
pub struct Stopwatch(Counter);

impl Stopwatch {
    /// Adds to the sum of times.
    pub fn add(&self, time: Duration) {
        self.0.add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Returns the sum.
    pub fn get(&self) -> Duration {
        Duration::from_nanos(self.0.get())
    }
}

/// One value at one time. Statistics of the same name are adjacent, each with its own label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statistic {
    /// Lower-case words joined by underscores, the unit last.
    pub name: &'static str,
    /// The label's name and value, which distinguish statistics of the same name.
    pub label: Option<(&'static str, &'static str)>,
    /// Description: a sentence without its full stop.
    pub help: &'static str,
    /// The present value.
    pub value: Value,
}

/// The value and kind of a statistic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// A count of events or bytes since the start.
    Total(u64),
    /// Time spent since the start.
    Time(Duration),
    /// A current quantity.
    Now(u64),
}

impl Statistic {
    /// Describes a value that is not one of several kinds.
    pub fn new(name: &'static str, help: &'static str, value: Value) -> Self {
        Statistic { name, label: None, help, value }
    }

    /// Makes it one of several kinds, which a label tells apart.
    pub fn of(self, label: &'static str, kind: &'static str) -> Self {
        Statistic { label: Some((label, kind)), ..self }
    }

    /// Formats the value padded to the longest possible one, so that the length of a text never changes.
    fn padded(&self) -> String {
        match self.value {
            Value::Total(count) | Value::Now(count) => format!("{count:>20}"),
            Value::Time(time) => format!("{:>20}", seconds(time)),
        }
    }

    fn is_zero(&self) -> bool {
        match self.value {
            Value::Total(count) | Value::Now(count) => count == 0,
            Value::Time(time) => time.is_zero(),
        }
    }
}

/// Formats seconds with six decimals.
fn seconds(time: Duration) -> String {
    format!("{}.{:06}", time.as_secs(), time.subsec_micros())
}

/// Formats a JSON object of names and values; labelled values are in an object by label. The length is constant.
pub fn json(statistics: &[Statistic]) -> String {
    let lines: Vec<String> = by_name(statistics)
        .map(|same| {
            let name = same[0].name;
            let values: Vec<String> = same
                .iter()
                .map(|one| match one.label {
                    Some((_, kind)) => format!("    \"{kind}\": {}", one.padded()),
                    None => one.padded(),
                })
                .collect();
            match same[0].label {
                Some(_) => format!("  \"{name}\": {{\n{}\n  }}", values.join(",\n")),
                None => format!("  \"{name}\": {}", values.concat()),
            }
        })
        .collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

/// Formats the Prometheus text exposition. The length is constant.
pub fn prometheus(statistics: &[Statistic]) -> String {
    let mut text = String::new();
    for same in by_name(statistics) {
        let Statistic { name, help, value, .. } = &same[0];
        let (end, kind) = match value {
            Value::Total(_) | Value::Time(_) => ("_total", "counter"),
            Value::Now(_) => ("", "gauge"),
        };
        let _ = write!(text, "# HELP tilefs_{name}{end} {help}.\n# TYPE tilefs_{name}{end} {kind}\n");
        for one in same {
            let label = one.label.map(|(label, kind)| format!("{{{label}=\"{kind}\"}}")).unwrap_or_default();
            let _ = writeln!(text, "tilefs_{name}{end}{label} {}", one.padded());
        }
    }
    text
}

/// Formats one line for people, without zeros.
pub fn line(statistics: &[Statistic]) -> String {
    let shown = statistics.iter().filter(|one| !one.is_zero()).map(|one| {
        let value = one.padded();
        let value = value.trim_start();
        match one.label {
            Some((_, kind)) => format!("{}.{kind}={value}", one.name),
            None => format!("{}={value}", one.name),
        }
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// Groups adjacent statistics of the same name.
fn by_name(statistics: &[Statistic]) -> impl Iterator<Item = &[Statistic]> {
    statistics.chunk_by(|one, next| one.name == next.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(hits: u64, time: Duration) -> Vec<Statistic> {
        let hits_of = |kind| Statistic::new("hits", "Found", Value::Total(hits)).of("cache", kind);
        vec![
            hits_of("tiles"),
            hits_of("indexes"),
            Statistic::new("decode_seconds", "Time", Value::Time(time)),
            Statistic::new("open_files", "Files", Value::Now(3)),
        ]
    }

    #[test]
    fn prometheus_has_a_type_for_each_name_and_a_label_for_each_kind() {
        let text = prometheus(&some(7, Duration::from_micros(1_500_001)));
        let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        let expected = [
            "# HELP tilefs_hits_total Found.",
            "# TYPE tilefs_hits_total counter",
            "tilefs_hits_total{cache=\"tiles\"} 7",
            "tilefs_hits_total{cache=\"indexes\"} 7",
            "# HELP tilefs_decode_seconds_total Time.",
            "# TYPE tilefs_decode_seconds_total counter",
            "tilefs_decode_seconds_total 1.500001",
            "# HELP tilefs_open_files Files.",
            "# TYPE tilefs_open_files gauge",
            "tilefs_open_files 3",
        ];
        assert_eq!(words, expected.map(|line| line.split(' ').collect::<Vec<_>>()));
    }

    #[test]
    fn json_is_json() {
        let value: serde_json::Value = serde_json::from_str(&json(&some(7, Duration::from_millis(1500)))).unwrap();
        let expected = r#"{"hits": {"tiles": 7, "indexes": 7}, "decode_seconds": 1.5, "open_files": 3}"#;
        assert_eq!(value, serde_json::from_str::<serde_json::Value>(expected).unwrap());
    }

    #[test]
    fn texts_have_the_same_length_for_all_values() {
        let (none, many) = (some(0, Duration::ZERO), some(u64::MAX, Duration::from_nanos(u64::MAX)));
        assert_eq!(json(&none).len(), json(&many).len());
        assert_eq!(prometheus(&none).len(), prometheus(&many).len());
        assert_eq!(line(&none), "open_files=3");
        assert!(line(&many).starts_with("hits.tiles=18446744073709551615 hits.indexes=18446744073709551615 "));
    }
}
