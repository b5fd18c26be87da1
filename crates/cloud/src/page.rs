//! Preprocessing of one page of a listing before it is parsed.
//!
//! A bucket may hold objects whose keys the client library rejects: `d/x//y`, `d/x/../y`, or keys with control
//! characters. One such key would fail the whole page. So they are removed here, and the caller decides whether they
//! matter: an unrelated object beside an array does not, a part of the array does.
//!
//! Consoles, Hadoop and sync tools make objects that stand for folders: their keys end with a slash, and they hold
//! nothing. The client library would take `d/__meta/` for an object `d/__meta`. They are removed here, too.

use std::borrow::Cow;

use memchr::memmem::Finder;
use object_store::path::Path;

/// The XML elements of S3, Google and Azure that hold a key, and the element inside that is the key.
const ELEMENTS: [(&str, &str); 4] =
    [("Contents", "Key"), ("CommonPrefixes", "Prefix"), ("Blob", "Name"), ("BlobPrefix", "Name")];

/// The elements that a listing of S3 or Google, and of Azure, is.
const ROOTS: [&str; 2] = ["ListBucketResult", "EnumerationResults"];

/// Bytes at the start of an answer in which its root element begins.
const PROLOGUE: usize = 1 << 10;

/// Maximum number of removed keys reported per page; a page has a thousand.
const MAX_REMOVED_KEYS: usize = 1000;

/// Checks that an answer is a whole page, and tells where the listing continues unless it ends. The client library
/// takes any XML for a listing, such as the page of a proxy, and missing elements for its end.
///
/// # Errors
/// The reason if it is not.
pub fn check_page(answer: &[u8]) -> Result<(), &'static str> {
    let has = |bytes: &[u8], text: &str| Finder::new(text).find(bytes).is_some();
    let start = answer.get(..PROLOGUE).unwrap_or(answer);
    let Some(root) = ROOTS.iter().find(|root| has(start, &format!("<{root}"))) else {
        return Err("the answer is not a listing");
    };
    let end = answer.trim_ascii_end();
    if !end.ends_with(format!("</{root}>").as_bytes()) && !end.ends_with(b"/>") {
        return Err("the listing ends early");
    }
    if has(answer, "<IsTruncated>true</IsTruncated>") && !has(answer, "</NextContinuationToken>") {
        return Err("the store says that there are more names, but not how to ask for them");
    }
    Ok(())
}

/// Removes objects that stand for folders from a page, and objects and folders with unusable keys; returns the unusable
/// keys. Other text passes unchanged.
pub fn remove_unusable_keys(answer: Vec<u8>) -> (Vec<u8>, Vec<String>) {
    let Ok(text) = std::str::from_utf8(&answer) else { return (answer, Vec::new()) };
    let mut unnameable: Vec<(usize, usize)> = Vec::new();
    let mut keys = Vec::new();
    for (element, key) in ELEMENTS {
        let (open, close) = (format!("<{element}>"), format!("</{element}>"));
        let (open, close, key_open) = (Finder::new(&open), Finder::new(&close), format!("<{key}"));
        let mut from = 0;
        while let Some(start) = open.find(&answer[from..]).map(|at| from + at) {
            let Some(end) = close.find(&answer[start..]).map(|at| start + at + close.needle().len()) else { break };
            let found = key_of(&text[start..end], &key_open);
            if found.as_ref().is_some_and(|key| stands_for_folder(element, key, &text[start..end])) {
                unnameable.push((start, end));
            } else if let Some(key) = found.filter(|key| !is_usable(key)) {
                unnameable.push((start, end));
                if keys.len() < MAX_REMOVED_KEYS {
                    keys.push(key.into_owned());
                }
            }
            from = end;
        }
    }
    if unnameable.is_empty() {
        return (answer, keys);
    }
    unnameable.sort_unstable();
    let mut kept = Vec::with_capacity(answer.len());
    let mut from = 0;
    for (start, end) in unnameable {
        kept.extend_from_slice(&answer[from.min(start)..start]);
        from = end;
    }
    kept.extend_from_slice(&answer[from..]);
    (kept, keys)
}

/// Returns whether a key in a folder's listing is part of an array or group: all names and folders that TileDB makes
/// begin with two underscores.
pub fn is_of_tiledb(folder: &str, key: &str) -> bool {
    let own = |name: &str| name.starts_with("__");
    let below = key.strip_prefix(folder).unwrap_or(key).trim_start_matches('/');
    own(below) || folder.rsplit('/').next().is_some_and(own)
}

/// Returns whether an element with this key lists an object that stands for a folder. Azure also lists the folders of
/// accounts with a hierarchical namespace as objects.
fn stands_for_folder(element: &str, key: &str, text: &str) -> bool {
    match element {
        "Contents" => key.ends_with('/'),
        "Blob" => key.ends_with('/') || text.contains("<ResourceType>directory</ResourceType>"),
        _ => false,
    }
}

/// Returns whether a key is that of a folder without a name.
pub fn is_unnamed_folder(key: &str) -> bool {
    key.ends_with("//")
}

/// Returns whether the client library accepts a key.
fn is_usable(key: &str) -> bool {
    // Nearly all keys are that simple, and there may be millions.
    let mut last = b'/';
    let is_simple = key.bytes().all(|byte| {
        let is_behind_slash = std::mem::replace(&mut last, byte) == b'/';
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || matches!(byte, b'/' | b'.') && !is_behind_slash
    });
    is_simple || Path::parse(key).is_ok()
}

/// Returns the key in the text of an element, where the tag of the key begins with `open`.
fn key_of<'a>(element: &'a str, open: &str) -> Option<Cow<'a, str>> {
    let (_, rest) = element.split_once(open)?;
    // Azure marks a name that is not valid XML text with an attribute, and percent-encodes it.
    let (_, rest) = rest.split_once('>')?;
    let (key, _) = rest.split_once('<')?;
    Some(unescaped(key))
}

/// Decodes XML character references.
fn unescaped(text: &str) -> Cow<'_, str> {
    let mut parts = text.split('&');
    let first = parts.next().unwrap_or_default();
    if first.len() == text.len() {
        return Cow::Borrowed(text);
    }
    let mut plain = first.to_owned();
    for part in parts {
        let (reference, rest) = part.split_once(';').unwrap_or(("", part));
        let number = |digits: &str, radix| u32::from_str_radix(digits, radix).ok().and_then(char::from_u32);
        let character = match reference.strip_prefix('#') {
            Some(digits) => digits.strip_prefix(['x', 'X']).map_or_else(|| number(digits, 10), |hex| number(hex, 16)),
            None => match reference {
                "amp" => Some('&'),
                "lt" => Some('<'),
                "gt" => Some('>'),
                "quot" => Some('"'),
                "apos" => Some('\''),
                _ => None,
            },
        };
        plain.extend(character);
        plain.push_str(rest);
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn listing(keys: &[&str]) -> String {
        let objects = keys.iter().map(|key| format!("<Contents><Key>{key}</Key><Size>1</Size></Contents>"));
        format!("<ListBucketResult><Name>b</Name>{}</ListBucketResult>", objects.collect::<String>())
    }

    fn left(text: &str) -> String {
        String::from_utf8(remove_unusable_keys(text.as_bytes().to_vec()).0).unwrap()
    }

    #[test]
    fn tiledb_names_are_recognized() {
        for (folder, key) in [
            ("d", "d/__schema/x//y"),
            ("d/__commits", "d/__commits/\u{1}"),
            ("", "__meta//"),
            ("a\tb", "a\tb/__schema/s"),
        ] {
            assert!(is_of_tiledb(folder, key), "{folder} {key}");
        }
        for (folder, key) in [("d", "d/x//y"), ("d", "d//"), ("", "a\tb/__schema/s"), ("d/e", "d/e/f/__g//")] {
            assert!(!is_of_tiledb(folder, key), "{folder} {key}");
        }
    }

    #[test]
    fn unusable_keys_are_removed() {
        let odd = ["d/x//y", "d/x/../y", "d/./y", "d/tab&#9;", "d/&#x1;", "d/..", "d/bell\u{7}"];
        let plain = ["d/__schema/__1_1_0", "d/a &amp; b", "d/&lt;c&gt;", "d/ä"];
        for odd in odd {
            assert_eq!(left(&listing(&[plain[0], odd, plain[1]])), listing(&plain[..2]), "{odd}");
        }
        assert_eq!(left(&listing(&odd)), listing(&[]));
        let (_, keys) = remove_unusable_keys(listing(&odd).into_bytes());
        assert_eq!(keys[..5], ["d/x//y", "d/x/../y", "d/./y", "d/tab\t", "d/\u{1}"]);
        assert_eq!(left(&listing(&plain)), listing(&plain));
    }

    #[test]
    fn objects_that_stand_for_folders_are_removed_and_not_reported() {
        let plain = ["d/__schema/__1_1_0", "d/e"];
        for folder in ["d/", "d/__meta/", "d/__fragments//", "d//", "d/x/../"] {
            let (left, keys) = remove_unusable_keys(listing(&[plain[0], folder, plain[1]]).into_bytes());
            assert_eq!((left, keys), (listing(&plain).into_bytes(), Vec::new()), "{folder}");
        }
        let blob = |name: &str, kind: &str| {
            format!("<Blob><Name>{name}</Name><Properties><ResourceType>{kind}</ResourceType></Properties></Blob>")
        };
        let (file, folder) = (blob("d/__meta/x", "file"), blob("d/__meta", "directory"));
        assert_eq!(left(&format!("<Blobs>{folder}{file}</Blobs>")), format!("<Blobs>{file}</Blobs>"));
        let prefix = "<CommonPrefixes><Prefix>d/__meta/</Prefix></CommonPrefixes>";
        assert_eq!(left(prefix), prefix);
    }

    proptest! {
        #[test]
        fn usable_keys_are_those_that_the_library_accepts(key in "[a_./-]{0,8}|[a/. \\x00-\\xff]{0,6}") {
            prop_assert_eq!(is_usable(&key), Path::parse(&key).is_ok());
        }
    }

    #[test]
    fn folders_and_azure_names_are_handled() {
        let text = "<CommonPrefixes><Prefix>d//</Prefix></CommonPrefixes><CommonPrefixes><Prefix>d/e/</Prefix>\
                    </CommonPrefixes>";
        assert_eq!(left(text), "<CommonPrefixes><Prefix>d/e/</Prefix></CommonPrefixes>");
        let text = "<Blobs><Blob><Name>a//b</Name></Blob><BlobPrefix><Name>a/../</Name></BlobPrefix><Blob><Name \
                    Encoded=\"true\">a%02</Name></Blob></Blobs>";
        assert_eq!(left(text), "<Blobs><Blob><Name Encoded=\"true\">a%02</Name></Blob></Blobs>");
    }

    #[test]
    fn what_is_no_whole_page_is_refused() {
        for whole in [
            "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"x\"></ListBucketResult>\n",
            "<ListBucketResult/>",
            "<EnumerationResults><Blobs/><NextMarker/></EnumerationResults>",
            "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>a</NextContinuationToken>\
             </ListBucketResult>",
        ] {
            assert_eq!(check_page(whole.as_bytes()), Ok(()), "{whole}");
        }
        for other in [
            "",
            "<html><body>Sign in</body></html>",
            "<Error><Code>SlowDown</Code></Error>",
            "<ListBucketResult><Contents><Key>a</Key></Contents>",
            "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        ] {
            assert!(check_page(other.as_bytes()).is_err(), "{other}");
        }
    }

    #[test]
    fn other_text_passes_unchanged() {
        for text in
            ["", "<Contents>", "<Contents></Contents>", "<Contents><Key>a//b", "no XML", "<Contents><Key></Contents>"]
        {
            assert_eq!(left(text), text);
        }
        assert_eq!(remove_unusable_keys(vec![0xff, b'<']).0, [0xff, b'<']);
    }
}
