//! Which views of domains a group lists. If it lists one, which holds the values of the members, the arrays below the
//! group list only their raw files: a recursive copy would have the same values once more in each other form.
//!
//! This is determined when an array is listed or described, not when it is opened: it may take opening other members.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tilefs_reader::group::OpenedGroup;
use tilefs_threads::cancellation;

use crate::domains::GroupDomain;
use crate::objects::members::NamedMembers;
use crate::shown::{GroupAround, ShownViews};

/// A result that is not final is kept for this time, so that a listing of many files determines it once.
const KEPT: Duration = Duration::from_secs(1);

/// The views that a group lists, at its current time. Memory: what domains hold of the group.
pub struct ListedViews {
    /// The views that are listed outside of the group.
    outer: ShownViews,
    current: Mutex<CurrentGroup>,
}

/// A group at one time, and its domains.
#[derive(Clone)]
struct CurrentGroup {
    group: Arc<OpenedGroup>,
    domains: Arc<[Box<dyn GroupDomain>]>,
    known: Option<KnownListing>,
}

/// Whether a group lists any view, and until when that is known; `None` if it is final.
#[derive(Clone, Copy)]
struct KnownListing {
    lists_any: bool,
    until: Option<Instant>,
}

impl ListedViews {
    pub fn new(outer: ShownViews, group: Arc<OpenedGroup>, domains: Arc<[Box<dyn GroupDomain>]>) -> Self {
        ListedViews { outer, current: Mutex::new(CurrentGroup { group, domains, known: None }) }
    }

    /// Replaces the group by the same one at a later time. Members that are still open follow.
    pub fn replace(&self, group: Arc<OpenedGroup>, domains: Arc<[Box<dyn GroupDomain>]>) {
        *self.current() = CurrentGroup { group, domains, known: None };
    }

    fn current(&self) -> MutexGuard<'_, CurrentGroup> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GroupAround for ListedViews {
    fn lists_values(&self) -> (bool, bool) {
        // A group around often knows it from its metadata alone.
        let (is_outer, outer_lasts) = self.outer.group_lists_values();
        if is_outer {
            return (true, outer_lasts);
        }
        let current = self.current().clone();
        if let Some(known) = current.known.filter(|known| known.until.is_none_or(|until| Instant::now() < until)) {
            return (known.lists_any, known.until.is_none() && outer_lasts);
        }
        let (lists_any, lasts) = match current.group.members().map(NamedMembers::new) {
            Ok(members) => {
                let (views, lasts) = listed_views(&current.domains, &members);
                (!views.is_empty(), lasts)
            }
            Err(_) => (false, false),
        };
        // A cancelled request may have found only some of the views.
        if cancellation::check().is_ok() {
            let until = if lasts { None } else { Instant::now().checked_add(KEPT) };
            let mut now = self.current();
            if Arc::ptr_eq(&now.group, &current.group) {
                now.known = Some(KnownListing { lists_any, until });
            }
        }
        (lists_any, lasts && outer_lasts)
    }
}

/// Returns the views of domains that a group with these members lists, and whether the result is final.
pub fn listed_views(domains: &[Box<dyn GroupDomain>], members: &NamedMembers) -> (Vec<&'static str>, bool) {
    let (mut all, mut all_last) = (Vec::new(), true);
    for domain in domains {
        let (views, lasts) = domain.listed();
        // A member of that name hides the view.
        all.extend(views.into_iter().filter(|view| !members.by_name.contains_key(*view)));
        all_last &= lasts;
    }
    (all, all_last)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::thread;

    use tilefs_reader::array::{Context, TimeWindow};
    use tilefs_storage::MemoryStorage;

    use super::*;
    use tilefs_base::error::Result;
    use tilefs_vfs::node::Node;

    /// A group that lists a view once it can be read.
    #[derive(Default)]
    struct KnownLater {
        is_readable: AtomicBool,
        asked: AtomicUsize,
    }

    impl GroupDomain for Arc<KnownLater> {
        fn view(&self, _name: &str) -> Result<Option<Node>> {
            Ok(None)
        }

        fn listed(&self) -> (Vec<&'static str>, bool) {
            self.asked.fetch_add(1, Ordering::Relaxed);
            let is_readable = self.is_readable.load(Ordering::Relaxed);
            (is_readable.then_some("whole").into_iter().collect(), is_readable)
        }
    }

    #[test]
    fn a_group_is_asked_again_until_it_is_certain() {
        let (storage, place) = (MemoryStorage::new(), tilefs_storage::StoreKey::from("s3://bucket/group"));
        storage.put(place.join("__tiledb_group.tdb"), vec![]);
        let context = Arc::new(Context::new(Arc::new(storage), 1 << 20, 1, None));
        let group = || Arc::new(OpenedGroup::open(context.clone(), &place, TimeWindow::ALL));
        let (known, later): (Arc<KnownLater>, Arc<KnownLater>) = Default::default();
        let domains = |domain: &Arc<KnownLater>| -> Arc<[Box<dyn GroupDomain>]> {
            Arc::new([Box::new(domain.clone()) as Box<dyn GroupDomain>])
        };
        let listed = Arc::new(ListedViews::new(ShownViews::NONE, group(), domains(&known)));
        let inner = ListedViews::new(ShownViews::NONE.below(listed.clone()), group(), domains(&later));
        // All files of one listing ask once.
        for _ in 0..10 {
            assert_eq!(listed.lists_values(), (false, false));
        }
        assert!(known.asked.load(Ordering::Relaxed) < 10);
        known.is_readable.store(true, Ordering::Relaxed);
        while !listed.lists_values().0 {
            thread::sleep(Duration::from_millis(20));
        }
        assert_eq!((listed.lists_values(), inner.lists_values()), ((true, true), (true, true)));
        let asked = [&known, &later].map(|domain| domain.asked.load(Ordering::Relaxed));
        assert_eq!(asked[1], 0, "the group around knows it");
        assert_eq!(known.asked.load(Ordering::Relaxed), asked[0]);
        // The group is another one after a refresh.
        listed.replace(group(), domains(&later));
        assert_eq!(listed.lists_values(), (false, false));
    }
}
