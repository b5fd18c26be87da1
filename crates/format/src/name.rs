//! Timestamped names: the names of fragments, schemas, metadata and commit files contain their time range (the format's
//! "Timestamped name").

use tilefs_base::error::{Error, Locate, Result};

/// The three historical forms of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameForm {
    /// `__uuid_t` or `__uuid_x_t`: fragments of format versions 1 and 2.
    One,
    /// `__t1_t2_uuid`: fragments of versions 3 and 4; schemas and metadata of all versions.
    Two,
    /// `__t1_t2_uuid_v`: everything that has its own version, since version 5.
    Three,
}

/// The parts of a timestamped name. Times are milliseconds since the Unix epoch, `t1 <= t2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimestampedName {
    /// The start time in milliseconds since 1970.
    pub t1: u64,
    /// The end time in milliseconds since 1970.
    pub t2: u64,
    /// The version in form three. Forms two and one have none: 4 and 2 are upper bounds.
    pub version: u32,
    /// The form of the name.
    pub form: NameForm,
}

impl TimestampedName {
    /// Parses the name of a file that lists commits. Its times are those of the first and the last commit in the list,
    /// which need not be sorted by time; this function sorts the two.
    pub fn parse_of_list(name: &str) -> Option<Self> {
        let parsed = split(stem(name))?;
        Some(TimestampedName { t1: parsed.t1.min(parsed.t2), t2: parsed.t1.max(parsed.t2), ..parsed })
    }

    /// Parses the last component of the path `name`, ignoring its extension; `None` if it is not a timestamped name.
    ///
    /// # Errors
    /// [`Error::Damaged`] for a time range that ends before it starts.
    pub fn parse(name: &str) -> Result<Option<Self>> {
        match split(stem(name)) {
            Some(parsed) if parsed.t1 > parsed.t2 => {
                Err(Error::damaged(format!("time range {} to {} in a name", parsed.t1, parsed.t2)).in_file(name))
            }
            parsed => Ok(parsed),
        }
    }
}

/// Returns the last component of a path without its extension.
pub fn stem(name: &str) -> &str {
    let last = name.rsplit('/').next().unwrap_or(name);
    last.rsplit_once('.').map_or(last, |(stem, _)| stem)
}

fn split(stem: &str) -> Option<TimestampedName> {
    let mut parts = [""; 4];
    let mut count = 0;
    for part in stem.strip_prefix("__")?.split('_') {
        *parts.get_mut(count)? = part;
        count += 1;
    }
    // A UUID is 32 hexadecimal digits. Its length is enough to tell the forms apart, so its digits are not checked.
    match parts[..count] {
        [t1, t2, _uuid, version] => Some(TimestampedName {
            t1: milliseconds(t1)?,
            t2: milliseconds(t2)?,
            version: digits(version)?.parse().ok()?,
            form: NameForm::Three,
        }),
        [t1, t2, uuid] if uuid.len() == 32 => {
            Some(TimestampedName { t1: milliseconds(t1)?, t2: milliseconds(t2)?, version: 4, form: NameForm::Two })
        }
        // A fragment that 1.4 or 1.5 consolidated has the time of the consolidation in the middle; the last field
        // counts.
        [_uuid, t] | [_uuid, _, t] => {
            let t = milliseconds(t)?;
            Some(TimestampedName { t1: t, t2: t, version: 2, form: NameForm::One })
        }
        _ => None,
    }
}

fn digits(text: &str) -> Option<&str> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then_some(text)
}

/// Parses a time: decimal digits that fit a signed 64-bit integer.
fn milliseconds(text: &str) -> Option<u64> {
    digits(text)?.parse::<i64>().ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const UUID: &str = "0123456789abcdef0123456789abcdef";

    fn parse(name: &str) -> Option<(u64, u64, u32, NameForm)> {
        TimestampedName::parse(name).unwrap().map(|name| (name.t1, name.t2, name.version, name.form))
    }

    #[test]
    fn the_three_forms() {
        assert_eq!(parse(&format!("__10_20_{UUID}_22")), Some((10, 20, 22, NameForm::Three)));
        assert_eq!(parse(&format!("__commits/__10_20_{UUID}_22.wrt")), Some((10, 20, 22, NameForm::Three)));
        assert_eq!(parse(&format!("__10_20_{UUID}")), Some((10, 20, 4, NameForm::Two)));
        assert_eq!(parse(&format!("__{UUID}_1543000000000")), Some((1543000000000, 1543000000000, 2, NameForm::One)));
        assert_eq!(parse(&format!("__{UUID}_1543000000999_1543000000000")), parse(&format!("__{UUID}_1543000000000")));
        assert_eq!(parse(&format!("__0_0_{UUID}_4294967295")), Some((0, 0, u32::MAX, NameForm::Three)));
    }

    #[test]
    fn other_names_are_none() {
        for name in
            ["", "_", "__", "__schema", "__fragment_meta", "__array_schema.tdb", "__lock.tdb", "__1_2_3_4_5", "a_b_c"]
        {
            assert_eq!(parse(name), None, "{name}");
        }
        assert_eq!(parse(&format!("__-1_2_{UUID}_5")), None);
        assert_eq!(parse(&format!("__+1_2_{UUID}_5")), None);
        assert_eq!(parse(&format!("__1_2_{UUID}_v")), None);
        assert_eq!(parse(&format!("__1_2_{UUID}_4294967296")), None);
        assert_eq!(parse(&format!("__1_9223372036854775808_{UUID}")), None);
        assert_eq!(parse(&format!("{UUID}_0")), None);
    }

    #[test]
    fn backward_ranges_are_damage() {
        assert!(TimestampedName::parse(&format!("__2_1_{UUID}_5")).is_err());
        assert!(TimestampedName::parse(&format!("__2_1_{UUID}")).is_err());
        let of_list = TimestampedName::parse_of_list(&format!("__2_1_{UUID}_5.con"));
        assert_eq!(of_list.map(|name| (name.t1, name.t2, name.version)), Some((1, 2, 5)));
    }

    proptest! {
        #[test]
        fn never_panics(name in "[_0-9a-f./]{0,60}|\\PC{0,40}") {
            let _ = TimestampedName::parse(&name);
        }

        #[test]
        fn round_trips(t1 in 0..=i64::MAX as u64, more in 0u64..1000, version in any::<u32>()) {
            let t2 = t1.saturating_add(more).min(i64::MAX as u64);
            prop_assert_eq!(parse(&format!("__{t1}_{t2}_{UUID}_{version}.ok")), Some((t1, t2, version, NameForm::Three)));
        }
    }
}
