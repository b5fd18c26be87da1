//! Parallel listing of a folder: decides which pages to request next and merges them.
//!
//! A store returns a thousand names per page, and each page has the token of the next: a million names would be a
//! thousand sequential requests. But names of fragments and commits begin with a timestamp, and a store that lists in
//! order can start after any name. So the unlisted rest after a page is split at intermediate timestamps, and the
//! pieces are requested concurrently. If a piece has more than one page, its rest is split again. The first half of the
//! pieces span as much time as the page before, because fragments are mostly written at an even pace; each later piece
//! spans twice as much time as the piece before it.
//!
//! The pieces cover each name exactly once, whatever the timestamps are: a name that exists from beginning to end of
//! the listing is found, as in a sequential listing. If a store returns names outside a piece or out of order, the
//! folder is listed again sequentially.

use std::collections::BTreeMap;
use std::time::Duration;

use tilefs_storage::{Listed, ListedKind, ListedObject};

use super::progress::ListingProgress;

/// One page of a listing.
pub struct ListedPage {
    pub objects: Vec<ListedObject>,
    /// Names of folders with a slash at the end, as the store orders them; none if the listing is recursive.
    pub folders: Vec<String>,
    /// The continuation token, if there is another page.
    pub next: Option<String>,
}

/// A range of names in the order of the store, where a folder's name ends with a slash.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameSpan {
    /// Exclusive lower bound; empty at the start of the folder.
    pub after: String,
    /// Inclusive upper bound; `None` at the end of the folder.
    up_to: Option<String>,
    /// Continuation token from the previous page.
    pub token: Option<String>,
    /// Milliseconds between the first and the last timestamp of the previous page.
    pace: Option<u64>,
}

/// A listing in progress. Memory: the names.
pub struct PagedListing {
    spans: Vec<NameSpan>,
    names: BTreeMap<String, ListedKind>,
    progress: ListingProgress,
    /// Maximum number of concurrent requests.
    most: usize,
    /// Milliseconds since 1970.
    now: u64,
}

impl PagedListing {
    /// Starts a listing with up to `most` concurrent requests; 1 for a store that does not list in order. Each request
    /// may take `io_timeout`.
    pub fn new(io_timeout: Duration, most: usize, now: u64) -> Self {
        PagedListing {
            spans: vec![NameSpan::default()],
            names: BTreeMap::new(),
            progress: ListingProgress::new(io_timeout),
            most,
            now,
        }
    }

    /// Returns the spans to request next; none at the end.
    pub fn spans(&self) -> &[NameSpan] {
        &self.spans
    }

    /// Returns the number of names so far.
    pub fn count(&self) -> usize {
        self.names.len()
    }

    /// Adds the next page of each span.
    ///
    /// # Errors
    /// A message that says why the listing is aborted.
    pub fn take(&mut self, pages: Vec<ListedPage>) -> Result<(), String> {
        let mut rests = Vec::new();
        let mut is_in_order = true;
        for (span, page) in std::mem::take(&mut self.spans).into_iter().zip(pages) {
            is_in_order &= self.most == 1 || span.is_in_order(&page);
            rests.extend(self.take_page(span, page)?);
        }
        if !is_in_order {
            (self.most, rests) = (1, vec![NameSpan::default()]);
        }
        let each = self.most / rests.len().max(1);
        self.spans = rests.into_iter().flat_map(|rest| rest.cut(each, self.now)).collect();
        Ok(())
    }

    /// Adds one page; returns the rest of its span.
    fn take_page(&mut self, mut span: NameSpan, page: ListedPage) -> Result<Option<NameSpan>, String> {
        let before = self.names.len();
        let bytes = page.keys().map(str::len).sum();
        let (first, last) = (page.keys().min().map(str::to_owned), page.keys().max().map(str::to_owned));
        let end = span.up_to.take();
        let is_within = |key: &str| end.as_deref().is_none_or(|end| key <= end);
        let is_at_end = last.as_deref().zip(end.as_deref()).is_some_and(|(last, end)| last >= end);
        for object in page.objects.into_iter().filter(|object| is_within(&object.path)) {
            self.names.entry(object.path).or_insert(ListedKind::Object { length: Some(object.length) });
        }
        for folder in page.folders.iter().filter(|folder| is_within(folder)) {
            self.names.insert(folder.trim_end_matches('/').into(), ListedKind::Folder);
        }
        let Some(next) = page.next.filter(|_| !is_at_end) else { return Ok(None) };
        if span.token.as_ref() == Some(&next) {
            return Err("the store repeats an answer of the listing".to_owned());
        }
        self.progress.add(self.names.len() - before, bytes)?;
        let times = first.as_deref().and_then(time_of).zip(last.as_deref().and_then(time_of));
        let pace = times.map(|(first, last)| last.saturating_sub(first));
        Ok(Some(NameSpan { after: last.unwrap_or(span.after), up_to: end, token: Some(next), pace }))
    }

    /// Returns all names in byte order.
    pub fn finish(self) -> Vec<Listed> {
        self.names.into_iter().map(|(name, kind)| Listed { name, kind }).collect()
    }
}

impl ListedPage {
    /// Returns the keys of the objects and folders, as the store orders them.
    fn keys(&self) -> impl Iterator<Item = &str> {
        self.objects.iter().map(|object| object.path.as_str()).chain(self.folders.iter().map(String::as_str))
    }
}

impl NameSpan {
    /// Returns whether the next page starts after a name and not at a continuation token.
    pub fn begins_behind_a_name(&self) -> bool {
        self.token.is_none() && !self.after.is_empty()
    }

    /// Returns whether the names of a page ascend and lie after the start of this span.
    fn is_in_order(&self, page: &ListedPage) -> bool {
        page.keys().all(|key| key > self.after.as_str())
            && page.objects.is_sorted_by(|a, b| a.path < b.path)
            && page.folders.is_sorted_by(|a, b| a < b)
    }

    /// Splits this span into about `count` pieces at timestamps, as the module describes. The first piece keeps the
    /// continuation token.
    fn cut(mut self, count: usize, now: u64) -> Vec<NameSpan> {
        let last_time = self.up_to.as_deref().map_or(Some(now), time_of);
        let (Some(first), Some(last)) = (time_of(&self.after), last_time) else { return vec![self] };
        // A little less than an answer spans, so that a piece is in one even where the pace differs a little.
        let pace = self.pace.map_or(1, |pace| (pace - pace / 16).max(1));
        let even = count / 2;
        let offsets = (1..count).map(|number| match number.checked_sub(even) {
            None => pace.saturating_mul(number as u64),
            Some(doubled) => pace.saturating_mul(even.max(1) as u64).saturating_mul(1 << doubled.min(63)),
        });
        let times = offsets.map(|offset| first.saturating_add(offset)).take_while(|time| *time < last);
        let mut pieces = Vec::new();
        for cut in times.map(|time| format!("__{time}")) {
            if cut > self.after && self.up_to.as_ref().is_none_or(|end| cut < *end) {
                let behind = NameSpan { after: cut.clone(), up_to: self.up_to.take(), token: None, pace: None };
                self.up_to = Some(cut);
                pieces.push(std::mem::replace(&mut self, behind));
            }
        }
        pieces.push(self);
        pieces
    }
}

/// Parses the timestamp that a TileDB name begins with.
fn time_of(name: &str) -> Option<u64> {
    name.strip_prefix("__")?.split('_').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ops::Bound;

    use proptest::prelude::*;

    use super::*;

    const NOW: u64 = 1_700_000_000_000;

    /// Keys of a store that lists in order, with a page size: names, and folders with a trailing slash.
    struct Store {
        keys: BTreeSet<String>,
        in_answer: usize,
        /// Whether it can start a listing after a name.
        knows_names: bool,
    }

    impl Store {
        fn answer(&self, span: &NameSpan) -> ListedPage {
            let from = match &span.token {
                Some(token) => token.clone(),
                None if self.knows_names => span.after.clone(),
                None => String::new(),
            };
            let mut keys = self.keys.range::<String, _>((Bound::Excluded(from), Bound::Unbounded));
            let some: Vec<&String> = keys.by_ref().take(self.in_answer).collect();
            let next = keys.next().and(some.last()).map(|last| (*last).clone());
            let (folders, objects): (Vec<&String>, Vec<&String>) = some.into_iter().partition(|key| key.ends_with('/'));
            ListedPage {
                objects: objects.into_iter().map(|key| ListedObject { path: key.clone(), length: 1 }).collect(),
                folders: folders.into_iter().cloned().collect(),
                next,
            }
        }
    }

    fn names(keys: impl IntoIterator<Item = String>) -> BTreeSet<String> {
        keys.into_iter().map(|key| key.trim_end_matches('/').to_owned()).collect()
    }

    /// Lists a store while `change` is called between the requests; also returns the number of rounds.
    fn listed(mut store: Store, most: usize, mut change: impl FnMut(&mut BTreeSet<String>)) -> (BTreeSet<String>, u32) {
        let (mut listing, mut rounds) = (PagedListing::new(Duration::from_secs(60), most, NOW), 0);
        while !listing.spans().is_empty() {
            assert!(listing.spans().len() <= most);
            let mut pages = Vec::new();
            for span in listing.spans() {
                pages.push(store.answer(span));
                change(&mut store.keys);
            }
            listing.take(pages).unwrap();
            rounds += 1;
        }
        let names = listing.finish();
        assert!(names.is_sorted_by(|a, b| a.name < b.name));
        (names.into_iter().map(|one| one.name).collect(), rounds)
    }

    /// Names with timestamps, and some others.
    fn key() -> impl Strategy<Value = String> {
        let time = prop_oneof![0u64..2000, NOW - 100_000..NOW, Just(NOW), NOW..NOW + 9, 0..2 * NOW];
        prop_oneof![
            8 => (time, "[a-c]{1,2}", "(|/|.wrt)").prop_map(|(time, id, end)| format!("__{time}_{time}_{id}{end}")),
            1 => "(__[0-9a-z]{1,3}|[a-z.]{1,3})/?",
        ]
    }

    proptest! {
        #[test]
        fn parallel_and_sequential_listings_agree(
            keys in prop::collection::btree_set(key(), 0..200),
            in_answer in 1usize..30,
            most in 2usize..40,
            knows_names in prop::bool::weighted(0.8),
        ) {
            let store = |knows_names| Store { keys: keys.clone(), in_answer, knows_names };
            let expected = names(keys.clone());
            prop_assert_eq!(listed(store(true), 1, |_| {}).0, expected.clone());
            prop_assert_eq!(listed(store(knows_names), most, |_| {}).0, expected);
        }

        #[test]
        fn stable_names_are_listed_while_others_change(
            permanent in prop::collection::btree_set(key(), 0..100),
            transient in prop::collection::vec((key(), any::<bool>()), 0..100),
            in_answer in 1usize..10,
            most in 2usize..40,
        ) {
            let at_first = transient.iter().filter(|(_, is_there)| *is_there).map(|(key, _)| key.clone());
            let keys = permanent.iter().cloned().chain(at_first).collect();
            let mut changes = transient.iter();
            let (found, _) = listed(Store { keys, in_answer, knows_names: true }, most, |keys| {
                if let Some((key, is_there)) = changes.next().filter(|(key, _)| !permanent.contains(key)) {
                    if *is_there { keys.remove(key) } else { keys.insert(key.clone()) };
                }
            });
            prop_assert!(names(permanent.clone()).is_subset(&found));
            let all = names(permanent.into_iter().chain(transient.into_iter().map(|(key, _)| key)));
            prop_assert!(found.is_subset(&all));
        }
    }

    #[test]
    fn many_names_take_few_rounds() {
        // Within one hour of two years; on average the last page of a piece is partly filled.
        let keys =
            (0..100_000).map(|number| format!("__{0}_{0}_{number:032x}_22/", NOW - 63_000_000_000 + 36 * number));
        let store =
            |most| listed(Store { keys: keys.clone().collect(), in_answer: 1000, knows_names: true }, most, |_| {});
        let (found, rounds) = store(32);
        assert_eq!(found.len(), 100_000);
        assert!(rounds <= 12, "{rounds}");
        assert_eq!(store(1).1, 100);
    }

    #[test]
    fn names_at_an_even_pace_take_fewer_still() {
        for (count, step, most) in [(10_000u64, 1, 3), (10_000, 60_000, 3), (1_000_000, 10, 50)] {
            let keys =
                (0..count).map(|number| format!("__{0}_{0}_{number:032x}_22/", 1_600_000_000_000 + step * number));
            let store = Store { keys: keys.collect(), in_answer: 1000, knows_names: true };
            let (found, rounds) = listed(store, 32, |_| {});
            assert_eq!(found.len(), count as usize);
            assert!(rounds <= most, "{rounds} rounds for {count} names");
        }
    }

    #[test]
    fn one_answer_is_one_request() {
        let keys: BTreeSet<String> = (0..1000).map(|number| format!("__{number}_{number}_ab")).collect();
        assert_eq!(listed(Store { keys, in_answer: 1000, knows_names: true }, 32, |_| {}).1, 1);
    }

    #[test]
    fn a_repeated_page_aborts_the_listing() {
        let mut listing = PagedListing::new(Duration::from_secs(60), 8, NOW);
        let page = || {
            let objects = vec![ListedObject { path: "__5_5_ab".to_owned(), length: 1 }];
            ListedPage { objects, folders: Vec::new(), next: Some("again".to_owned()) }
        };
        let why = (0..300).find_map(|_| {
            let pages = listing.spans().iter().map(|_| page()).collect();
            listing.take(pages).err()
        });
        assert!(why.unwrap().contains("repeats an answer"));
    }
}
