//! The short forms of `tilefs mount`: without the name of the command, as run by mount(8), and with options after `-o`.
//! They are expanded to the long form before parsing, so every option has one meaning and one check.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::failure::Failure;
use super::hints::for_word;

/// The commands; any other first argument is an array to mount, or an option of `mount`.
const COMMANDS: [&str; 12] =
    ["mount", "umount", "serve", "open", "info", "ls", "cat", "explain", "verify", "completions", "man", "help"];

/// Options of mount(8) to ignore, separated by spaces: they hold anyway, or are meant for mount(8) itself.
const IGNORED: &str = "\
    ro defaults auto noauto user nouser users owner group _netdev nofail dev nodev suid nosuid exec noexec \
    atime noatime diratime nodiratime relatime norelatime strictatime nostrictatime sync async dirsync \
    default_permissions silent loud iversion noiversion lazytime nolazytime mand nomand symfollow \
    nosymfollow";

/// Options that are tilefs flags without a value.
const FLAGS: [&str; 7] = ["allow_other", "allow_root", "anonymous", "direct_io", "follow_links", "foreground", REFRESH];

/// Options that are tilefs flags with a value.
const VALUES: [&str; 24] = [
    "cache_size",
    "threads",
    "at",
    "from",
    "key_file",
    "slice",
    "samples_file",
    "regions_file",
    "reference",
    "show",
    "extent",
    "order",
    "uid",
    "gid",
    "umask",
    "log_level",
    "log_file",
    "config",
    "io_timeout",
    "disk_cache",
    "disk_cache_size",
    "index_dir",
    "index_size",
    REFRESH,
];

/// A flag with an optional value: a number, which may follow it.
const REFRESH: &str = "refresh";

/// SELinux labels, which mount(8) may pass; they go to the kernel.
const LABELS: [&str; 4] = ["context", "fscontext", "defcontext", "rootcontext"];

/// Prefix of the names of TileDB's settings for object stores.
const SETTING: &str = "vfs.";

/// The commands that open arrays and accept only these settings after `-o`.
const READERS: [&str; 6] = ["info", "ls", "cat", "explain", "verify", "serve"];

/// mount(8) passes this if `ro` was not given; users do not ask for it.
const WRITABLE: &str = "rw";

/// The result of expanding the command line.
#[derive(Debug, PartialEq, Eq)]
pub enum Arguments {
    /// The arguments in long form, starting with the name of the program.
    Run(Vec<OsString>),
    /// mount(8) asked only for a dry run.
    NothingToDo,
}

/// Expands arguments, which start with the name of the program, to the long form.
///
/// # Errors
/// Fails for an unknown option after `-o`, and for a first word that is no existing array but similar to a command.
pub fn expand(arguments: Vec<OsString>) -> Result<Arguments, Failure> {
    let mut arguments = arguments.into_iter();
    let program = arguments.next().unwrap_or_else(|| "tilefs".into());
    let name = Path::new(&program).file_name().unwrap_or_default();
    let rest: Vec<OsString> = arguments.collect();
    if name.as_bytes().starts_with(b"mount.") {
        return expand_helper(rest);
    }
    let is_mount = match rest.first() {
        None => false,
        Some(first) if first == "mount" => true,
        Some(first) => {
            let asks = ["-h", "--help", "-V", "--version"];
            !COMMANDS.iter().chain(&asks).any(|known| first == known)
        }
    };
    if is_mount
        && let Some(hint) =
            rest.first().filter(|first| !Path::new(first).exists()).and_then(|first| for_word(first.to_str()?))
    {
        return Err(Failure::usage(hint));
    }
    if is_mount
        && let Some(first) = rest.first()
        && let Some(command) = misspelt_command(first)
    {
        return Err(Failure::usage(format!(
            "there is no command '{}', and no such array; did you mean `tilefs {command}`?",
            first.display()
        )));
    }
    if is_mount && let Some(message) = options_before_command(&rest) {
        return Err(Failure::usage(message));
    }
    let mut expanded = vec![OsString::from("tilefs")];
    if is_mount {
        expanded.push("mount".into());
        let rest = if rest.first().is_some_and(|first| first == "mount") { &rest[1..] } else { &rest[..] };
        expanded.extend(expand_options(rest, false)?);
    } else {
        let is_reader = rest.first().is_some_and(|first| READERS.iter().any(|command| first == command));
        expanded.extend(if is_reader { expand_options(&rest, false)? } else { rest });
    }
    Ok(Arguments::Run(expanded))
}

/// Returns the command that expanded arguments name, if there is such a command.
pub fn command_in(expanded: &[OsString]) -> Option<&'static str> {
    let typed = expanded.get(1)?;
    COMMANDS.iter().copied().find(|command| typed == command)
}

/// Returns the message for a command behind options, which would otherwise be taken for an array or a folder to mount.
/// A path of that name, or a value of an option, is no command.
fn options_before_command(rest: &[OsString]) -> Option<String> {
    let first = rest.first()?.to_str().filter(|first| first.starts_with('-') && *first != "--")?;
    let mut previous = first;
    for argument in rest.get(1..)?.iter().take_while(|argument| *argument != "--") {
        let typed = argument.to_str().unwrap_or_default();
        let is_value = previous.strip_prefix("--").is_some_and(|name| takes_value(&name.replace('-', "_")));
        if COMMANDS.contains(&typed) && !is_value && previous != "-o" && !Path::new(typed).exists() {
            let option = first.split('=').next().unwrap_or(first);
            return Some(format!("options follow the command, as in `tilefs {typed} ... {option}`"));
        }
        previous = typed;
    }
    None
}

/// Returns whether the next argument is the value of an option.
fn takes_value(name: &str) -> bool {
    VALUES.iter().chain(&["mount", "set"]).any(|known| name == *known)
}

/// Expands the arguments of a mount(8) helper: `mount.tilefs SOURCE MNT [-sfnv] [-N namespace] [-t type] [-o options]`.
fn expand_helper(rest: Vec<OsString>) -> Result<Arguments, Failure> {
    let mut kept = Vec::new();
    let mut rest = rest.into_iter();
    while let Some(argument) = rest.next() {
        match argument.as_bytes() {
            b"-f" => return Ok(Arguments::NothingToDo),
            b"-s" | b"-n" | b"-v" | b"-r" | b"-w" => {}
            b"-N" | b"-t" => {
                rest.next();
            }
            _ => kept.push(argument),
        }
    }
    let mut expanded: Vec<OsString> = vec!["tilefs".into(), "mount".into()];
    expanded.extend(expand_options(&kept, true)?);
    Ok(Arguments::Run(expanded))
}

/// Returns the command to which a first word is similar, if it is not a command, an option or an existing path.
fn misspelt_command(first: &OsStr) -> Option<&'static str> {
    let typed = first.to_str().filter(|typed| !typed.starts_with('-') && !COMMANDS.contains(typed))?;
    if Path::new(first).exists() { None } else { nearest(typed, &COMMANDS) }
}

/// Returns the name with the fewest wrong letters, at most two.
fn nearest<'a>(typed: &str, names: &[&'a str]) -> Option<&'a str> {
    let distance = |name: &str| strsim::damerau_levenshtein(typed, name);
    let found = names.iter().copied().min_by_key(|name| distance(name))?;
    (distance(found) <= 2 && distance(found) < typed.chars().count()).then_some(found)
}

/// Replaces `-o a,b=c` by `--a --b=c`. `by_mount` says whether mount(8) made the list.
fn expand_options(arguments: &[OsString], by_mount: bool) -> Result<Vec<OsString>, Failure> {
    let mut expanded = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            expanded.push(argument.clone());
            expanded.extend(rest.cloned());
            break;
        }
        match argument.as_bytes().strip_prefix(b"-o") {
            Some(b"") => {
                let list = rest.next().ok_or_else(|| Failure::usage("-o needs a list of options"))?;
                expand_list(list.as_bytes(), by_mount, &mut expanded)?;
            }
            Some(list) => expand_list(list, by_mount, &mut expanded)?,
            None if argument.to_str().and_then(|flag| flag.strip_prefix("--")) == Some(REFRESH) => {
                // An array or a folder with such a name can be given as ./10.
                let number = rest.as_slice().first().and_then(|next| next.to_str());
                let number = number.filter(|next| !next.is_empty() && next.bytes().all(|byte| byte.is_ascii_digit()));
                expanded.push(number.map_or(argument.clone(), |number| format!("--{REFRESH}={number}").into()));
                if number.is_some() {
                    rest.next();
                }
            }
            None => expanded.push(argument.clone()),
        }
    }
    Ok(expanded)
}

fn expand_list(list: &[u8], by_mount: bool, expanded: &mut Vec<OsString>) -> Result<(), Failure> {
    let options = split(list);
    // mount.fuse3(8) passes on the list from mount(8), with these two options at the end, which users do not type.
    let by_mount = by_mount || options.ends_with(&[b"dev".to_vec(), b"suid".to_vec()]);
    for option in options {
        let equals = option.iter().position(|&byte| byte == b'=');
        let (name, value) = match equals {
            Some(place) => (&option[..place], Some(&option[place + 1..])),
            None => (option.as_slice(), None),
        };
        let name = String::from_utf8_lossy(name);
        let has = |names: &[&str]| names.contains(&name.as_ref());
        let is_remark = ["x-", "X-", "comment"].iter().any(|start| name.starts_with(start));
        match value {
            None if name.is_empty() || IGNORED.split(' ').any(|ignored| name == ignored) => {}
            Some(value) if name.starts_with(SETTING) => {
                let mut flag = OsString::from(format!("--set={name}="));
                flag.push(OsStr::from_bytes(value));
                expanded.push(flag);
            }
            None if name == WRITABLE && by_mount => {}
            None if name == WRITABLE => {
                return Err(Failure::usage("the mount option rw: arrays are mounted read-only; give ro"));
            }
            _ if is_remark || has(&["fsname", "subtype"]) => {}
            None if has(&FLAGS) => expanded.push(format!("--{}", name.replace('_', "-")).into()),
            Some(_) if has(&LABELS) => {
                let mut flag = OsString::from("--selinux-label=");
                flag.push(OsStr::from_bytes(&option));
                expanded.push(flag);
            }
            Some(value) if has(&VALUES) => {
                let mut flag = OsString::from(format!("--{}=", name.replace('_', "-")));
                flag.push(OsStr::from_bytes(value));
                expanded.push(flag);
            }
            None if has(&VALUES) => return Err(Failure::usage(format!("the mount option {name} needs a value"))),
            _ => {
                let known: Vec<&str> = FLAGS.iter().chain(&VALUES).copied().collect();
                let guess = nearest(&name, &known).map_or(String::new(), |name| format!("did you mean {name}? "));
                return Err(Failure::usage(format!(
                    "unknown mount option '{}'; {guess}known are {}, {}",
                    String::from_utf8_lossy(&option),
                    FLAGS.join(", "),
                    VALUES.map(|name| format!("{name}=…")).join(", ")
                )));
            }
        }
    }
    Ok(())
}

/// Splits at commas; a backslash escapes the next byte.
fn split(list: &[u8]) -> Vec<Vec<u8>> {
    let mut options = vec![Vec::new()];
    let mut bytes = list.iter();
    let mut is_quoted = false;
    while let Some(&byte) = bytes.next() {
        let byte = match byte {
            b'"' => {
                is_quoted = !is_quoted;
                byte
            }
            b',' if !is_quoted => {
                options.push(Vec::new());
                continue;
            }
            b'\\' => *bytes.next().unwrap_or(&b'\\'),
            byte => byte,
        };
        if let Some(option) = options.last_mut() {
            option.push(byte);
        }
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(line: &[&str]) -> Vec<String> {
        match expand(line.iter().map(OsString::from).collect()) {
            Ok(Arguments::Run(arguments)) => {
                arguments.into_iter().map(|argument| argument.into_string().unwrap()).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn commands_are_kept_and_other_arguments_mounted() {
        assert_eq!(expanded(&["./tilefs", "man", "-o", "a"]), ["tilefs", "man", "-o", "a"]);
        let settings = ["tilefs", "ls", "s3://b/a", "-o", "vfs.s3.region=x,vfs.s3.scheme=http"];
        assert_eq!(expanded(&settings)[2..], ["s3://b/a", "--set=vfs.s3.region=x", "--set=vfs.s3.scheme=http"]);
        assert_eq!(expanded(&["tilefs", "--help"]), ["tilefs", "--help"]);
        assert_eq!(expanded(&["tilefs"]), ["tilefs"]);
        assert_eq!(expanded(&["tilefs", "info.tdb", "m"]), ["tilefs", "mount", "info.tdb", "m"]);
        assert_eq!(expanded(&["tilefs", "--", "info", "m"]), ["tilefs", "mount", "--", "info", "m"]);
    }

    #[test]
    fn options_of_mount_become_flags() {
        assert_eq!(
            expanded(&["tilefs", "a", "m", "-o", "ro,nosuid,x-systemd.automount,allow_other,cache_size=1G", "-oat=5"]),
            ["tilefs", "mount", "a", "m", "--allow-other", "--cache-size=1G", "--at=5"]
        );
        assert_eq!(
            expanded(&["tilefs", "a", "m", "-o", r"slice=corner=0..9\,0..9,comment=hello,fsname=x"]),
            ["tilefs", "mount", "a", "m", "--slice=corner=0..9,0..9"]
        );
        assert_eq!(expanded(&["tilefs", "--", "a", "-oro"]), ["tilefs", "mount", "--", "a", "-oro"]);
    }

    #[test]
    fn mount_may_run_it_as_a_helper() {
        assert_eq!(
            expanded(&["/sbin/mount.tilefs", "/data/info", "/mnt", "-s", "-n", "-t", "tilefs", "-o", "rw,at=5"]),
            ["tilefs", "mount", "/data/info", "/mnt", "--at=5"]
        );
        let fake = ["mount.tilefs", "a", "m", "-f"].map(OsString::from).to_vec();
        assert_eq!(expand(fake), Ok(Arguments::NothingToDo));
    }

    #[test]
    fn unknown_options_are_named() {
        for (list, part) in [("ro,bogus", "'bogus'"), ("cache_size", "needs a value"), ("ro=1", "'ro=1'")] {
            let failure = expand(["tilefs", "a", "m", "-o", list].map(OsString::from).to_vec()).unwrap_err();
            assert!(failure.message.contains(part), "{}", failure.message);
        }
        assert!(expand(["tilefs", "a", "m", "-o"].map(OsString::from).to_vec()).is_err());
    }
}
