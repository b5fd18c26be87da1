//! Which files `ls` shows: `ls -l` requests the size of each, and some sizes take a long pass; and what some files show is
//! listed elsewhere.

use std::fmt;
use std::sync::Arc;

/// A condition for a listing, which is evaluated at the time of listing.
type Condition = Arc<dyn Fn() -> bool + Send + Sync>;

/// Whether `ls` shows a file. Unlisted files are found by name.
#[derive(Clone)]
pub enum Listing {
    Always,
    Never,
    If(ListingConditions),
}

/// The conditions under which `ls` shows a file; those that it has must all hold.
#[derive(Clone, Default)]
pub struct ListingConditions {
    /// Whether a listing should have the file.
    is_wanted: Option<Condition>,
    /// Whether the size of the file takes no long pass.
    is_quick: Option<Condition>,
}

impl ListingConditions {
    fn hold(&self) -> bool {
        // Whether a file is quick may take counting rows.
        [&self.is_wanted, &self.is_quick].into_iter().flatten().all(|holds| holds())
    }
}

impl Listing {
    /// Shows a file if a condition holds, which says whether a listing should have the file.
    pub fn if_wanted(holds: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Listing::If(ListingConditions { is_wanted: Some(Arc::new(holds)), is_quick: None })
    }

    /// Shows a file if a condition holds, which says whether the size of the file takes no long pass.
    pub fn if_quick(holds: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Listing::If(ListingConditions { is_wanted: None, is_quick: Some(Arc::new(holds)) })
    }

    /// Shows what both show.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Listing::Never, _) | (_, Listing::Never) => Listing::Never,
            (Listing::Always, shown) | (shown, Listing::Always) => shown,
            (Listing::If(one), Listing::If(other)) => Listing::If(ListingConditions {
                is_wanted: both(one.is_wanted, other.is_wanted),
                is_quick: both(one.is_quick, other.is_quick),
            }),
        }
    }

    /// Shows what one of both shows.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (Listing::Always, _) | (_, Listing::Always) => Listing::Always,
            (Listing::Never, shown) | (shown, Listing::Never) => shown,
            (Listing::If(one), Listing::If(other)) => Listing::if_wanted(move || one.hold() || other.hold()),
        }
    }

    pub fn is_listed(&self) -> bool {
        match self {
            Listing::Always => true,
            Listing::Never => false,
            Listing::If(conditions) => conditions.hold(),
        }
    }

    /// Returns whether the size of the file may take a pass over very many cells.
    pub fn is_slow(&self) -> bool {
        match self {
            Listing::Always | Listing::Never => false,
            Listing::If(conditions) => conditions.is_quick.as_ref().is_some_and(|is_quick| !is_quick()),
        }
    }
}

/// Returns a condition that holds if those of the two that there are hold.
fn both(one: Option<Condition>, other: Option<Condition>) -> Option<Condition> {
    match (one, other) {
        (Some(one), Some(other)) => Some(Arc::new(move || one() && other())),
        (one, other) => one.or(other),
    }
}

impl fmt::Debug for Listing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Listing::Always => "Always",
            Listing::Never => "Never",
            Listing::If(_) => "If",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_are_combined() {
        let every = || {
            let conditions = [false, true].map(|holds| Listing::if_quick(move || holds)).into_iter();
            let wanted = [false, true].map(|holds| Listing::if_wanted(move || holds));
            [Listing::Never, Listing::Always].into_iter().chain(conditions).chain(wanted)
        };
        for one in every() {
            for other in every() {
                let [is_one, is_other] = [one.is_listed(), other.is_listed()];
                assert_eq!(one.clone().and(other.clone()).is_listed(), is_one && is_other, "{one:?} {other:?}");
                assert_eq!(one.clone().or(other.clone()).is_listed(), is_one || is_other, "{one:?} {other:?}");
            }
        }
        // A file that is quick and not wanted is not slow.
        let hidden = Listing::if_wanted(|| false);
        assert!(!hidden.is_slow() && !hidden.clone().and(Listing::if_quick(|| true)).is_slow());
        assert!(hidden.and(Listing::if_quick(|| false)).is_slow() && !Listing::Never.is_slow());
    }
}
