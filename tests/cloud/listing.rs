//! Listings of many pages from a slow store, while names appear and disappear.

use std::collections::BTreeSet;
use std::io::Write;
use std::ops::Bound;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tilefs_cloud::AnyStorage;
use tilefs_storage::{LocalStorage, Storage, StoreKey};

use super::cloud_options;
use super::hostile::{Hostile, send};

/// The latency of the store.
const DELAY: Duration = Duration::from_millis(50);

/// The names in the only folder of a store; names of folders end with a slash. With each response a name appears and
/// another one disappears, as if others committed meanwhile.
struct Names {
    permanent: BTreeSet<String>,
    transient: BTreeSet<String>,
    all: BTreeSet<String>,
    answers: usize,
    /// The number of requests in flight, and its maximum.
    waiting: (usize, usize),
}

fn name(number: usize, id: &str) -> String {
    let time = 1_650_000_000_000 + 3000 * number;
    format!("__{time}_{time}_{number:030x}{id}_22")
}

impl Names {
    fn new(count: usize) -> Self {
        let end = |number: usize| if number.is_multiple_of(3) { "/" } else { ".wrt" };
        let permanent: BTreeSet<String> = (0..count).map(|number| name(number, "aa") + end(number)).collect();
        Names { all: permanent.clone(), permanent, transient: BTreeSet::new(), answers: 0, waiting: (0, 0) }
    }

    /// Returns a page of a listing as S3 writes it.
    fn answer(&mut self, query: &[(String, String)], prefix: &str) -> String {
        let get = |name: &str| query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let from = get("continuation-token").or(get("start-after").and_then(|key| key.strip_prefix(prefix)));
        let from = from.unwrap_or_default().to_owned();
        let behind = (Bound::Excluded(from), Bound::Unbounded);
        let keys: Vec<&String> = self.all.range::<String, _>(behind).take(1001).collect();
        let next = keys.get(999).filter(|_| keys.len() > 1000).map(|last| (*last).clone());
        let next = next.map_or(String::new(), |next| {
            format!("<IsTruncated>true</IsTruncated><NextContinuationToken>{next}</NextContinuationToken>")
        });
        let key = |key: &&String| match key.ends_with('/') {
            true => format!("<CommonPrefixes><Prefix>{prefix}{key}</Prefix></CommonPrefixes>"),
            false => format!(
                "<Contents><Key>{prefix}{key}</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified>\
                 <ETag>&quot;e&quot;</ETag><Size>0</Size></Contents>"
            ),
        };
        let keys: String = keys.iter().take(1000).map(key).collect();
        self.answers += 1;
        let new = name(7919 * self.answers % self.permanent.len(), "bb") + ".wrt";
        self.all.insert(new.clone());
        self.transient.insert(new);
        if self.answers.is_multiple_of(2)
            && let Some(gone) = self.transient.pop_first()
        {
            self.all.remove(&gone);
        }
        format!("<?xml version=\"1.0\"?><ListBucketResult><Name>bucket</Name>{next}{keys}</ListBucketResult>")
    }
}

/// Returns the names and values of a query.
fn query_of(target: &str) -> Vec<(String, String)> {
    let (_, query) = target.split_once('?').unwrap_or_default();
    let plain = |text: &str| text.replace("%2F", "/").replace("%2f", "/");
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), plain(value))).collect()
}

/// Lists a folder of this many names; returns the number of pages, and the maximum number of requests in flight.
fn list(count: usize) -> (usize, usize) {
    let names = Arc::new(Mutex::new(Names::new(count)));
    let shared = Arc::clone(&names);
    let store = Hostile::start(move |request, _, out: &mut dyn Write| {
        {
            let waiting = &mut shared.lock().unwrap().waiting;
            *waiting = (waiting.0 + 1, waiting.1.max(waiting.0 + 1));
        }
        thread::sleep(DELAY);
        let answer = {
            let mut names = shared.lock().unwrap();
            names.waiting.0 -= 1;
            names.answer(&query_of(request.second()), "array/__commits/")
        };
        send(out, "200 OK", "", &answer)
    });
    let storage = AnyStorage::new(LocalStorage::new(), cloud_options(&store.url()));
    let begin = Instant::now();
    let listed = storage.list(&StoreKey::from("s3://bucket/array/__commits")).unwrap();
    println!("{count} names: {:?}", begin.elapsed());
    assert!(listed.is_sorted_by(|a, b| a.name < b.name));
    let names = names.lock().unwrap();
    let found: BTreeSet<String> =
        listed.iter().map(|one| if one.is_folder() { one.name.clone() + "/" } else { one.name.clone() }).collect();
    assert!(names.permanent.is_subset(&found), "{} of {count}", found.len());
    let others = found.difference(&names.permanent);
    assert!(others.into_iter().all(|name| name.contains("bb_22")));
    (names.answers, names.waiting.1)
}

#[test]
fn folders_of_many_names_are_listed_at_once_while_others_commit() {
    let (answers, at_once) = list(40_000);
    assert!((41..200).contains(&answers) && at_once > 8, "{answers} answers, {at_once} at once");
    assert!(list(1500).0 < 40);
    assert_eq!(list(10), (1, 1));
}
