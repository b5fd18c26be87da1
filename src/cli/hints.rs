//! What to type instead: for arguments that fit no command, and paths that a shell has not expanded.

use std::env;
use std::ffi::OsString;
use std::path::Path;

use tilefs_storage::is_object_uri;
use tilefs_tree::{TreeOptions, is_object};
use tilefs_vfs::node::quoting::{path_word, shell_word};

/// Words that others use for the commands here.
const OTHER_WORDS: [(&str, &[&str]); 5] = [
    ("info", &["show", "schema", "describe", "stat"]),
    ("ls", &["list", "dir", "tree"]),
    ("cat", &["get", "read", "dump", "print"]),
    ("verify", &["check", "fsck", "validate"]),
    ("umount", &["detach", "eject"]),
];

/// Returns what to type for a first word that is neither a command nor a path.
pub fn for_word(word: &str) -> Option<String> {
    if matches!(word, "stats" | "statistics") {
        return Some(
            "there is no command 'stats': a mount and a server have their statistics in a file; \
             type `cat MNT/.tilefs/stats.json`"
                .to_owned(),
        );
    }
    let (command, _) = OTHER_WORDS.iter().find(|(_, words)| words.contains(&word))?;
    Some(format!("there is no command '{word}', and no such array; type `tilefs {command}`"))
}

/// Returns what to type for `tilefs cat` with one word: the array and the file in it are two.
pub fn for_cat(arguments: &[OsString]) -> Option<String> {
    let word = arguments.iter().skip(2).find(|word| !word.as_encoded_bytes().starts_with(b"-"))?;
    let typed = Path::new(word);
    if word.to_str().is_some_and(is_object_uri) {
        return None;
    }
    let options = TreeOptions::default();
    let shown = |path: &Path| shell_word(&path.display().to_string());
    if is_object(typed, &options) {
        let array = shown(typed);
        return Some(format!(
            "PATH is missing: `tilefs ls {array}` lists the files, and `tilefs cat {array} PATH` prints one"
        ));
    }
    let array =
        typed.ancestors().skip(1).find(|around| !around.as_os_str().is_empty() && is_object(around, &options))?;
    let file = typed.strip_prefix(array).ok()?.to_str()?;
    Some(format!("the array and the file in it are two words: type `tilefs cat {} {}`", shown(array), path_word(file)))
}

/// Returns what to type for a value behind `--refresh` that is none, which the parser has refused.
pub fn for_refresh(arguments: &[OsString], refusal: &str) -> Option<String> {
    let value = arguments.windows(2).find(|pair| pair[0] == "--refresh")?[1].to_str()?;
    let is_refused = refusal.contains(&format!("unexpected argument '{value}'"));
    is_refused.then(|| format!("--refresh takes whole seconds, not '{value}': type --refresh=30"))
}

/// Returns what to type for a path that begins with `~`, which a shell has not replaced.
pub fn for_home(path: &Path) -> Option<String> {
    let rest = path.strip_prefix("~").ok()?;
    if path.exists() {
        return None;
    }
    let home = env::var_os("HOME").filter(|home| !home.is_empty())?;
    let meant = Path::new(&home).join(rest);
    Some(format!(
        "a shell replaces ~ only at the beginning of a word and without quotes; type {}",
        shell_word(&meant.display().to_string())
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn other_words_lead_to_commands() {
        assert!(for_word("stats").is_some_and(|hint| hint.contains("cat MNT/.tilefs/stats.json")));
        assert!(for_word("list").is_some_and(|hint| hint.ends_with("type `tilefs ls`")));
        assert_eq!(for_word("dem.tdb"), None);
    }

    #[test]
    fn a_file_in_an_array_is_two_words() {
        let folder = tempfile::tempdir().unwrap();
        let array = folder.path().join("my array");
        std::fs::create_dir_all(array.join("__schema")).unwrap();
        let typed = |rest: &str| for_cat(&["tilefs".into(), "cat".into(), array.join(rest).into_os_string()]);
        let shown = format!("'{}'", array.display());
        assert!(typed("slice/0,1/t.f32").unwrap().ends_with(&format!("type `tilefs cat {shown} slice/0,1/t.f32`")));
        assert!(typed("-t $x").unwrap().ends_with(&format!("type `tilefs cat {shown} './-t $x'`")));
        let alone = for_cat(&["tilefs".into(), "cat".into(), array.clone().into_os_string()]);
        assert!(alone.unwrap().contains(&format!("`tilefs ls {shown}`")));
        assert_eq!(for_cat(&words("tilefs cat nothing/here")), None);
        assert_eq!(for_cat(&words("tilefs cat s3://bucket/array/file")), None);
    }

    #[test]
    fn seconds_and_homes_are_told() {
        let refusal = "error: unexpected argument 'abc' found";
        assert!(for_refresh(&words("tilefs mount a m --refresh abc"), refusal).is_some());
        assert_eq!(for_refresh(&words("tilefs mount --refresh a m abc"), refusal), None);
        if env::var_os("HOME").is_some_and(|home| !home.is_empty()) {
            assert!(for_home(Path::new("~/no such array")).is_some_and(|hint| hint.ends_with("/no such array'")));
        }
        assert_eq!(for_home(Path::new("a/~")), None);
    }
}
