//! The command line of `tilefs`.
//!
//! * [`commands`]: the commands, one file each
//! * [`arguments`]: expands the short forms of `tilefs mount`
//! * [`options`]: the options for opening arrays and for the log; [`cloud`], with the feature of that name: for object
//!   stores
//! * [`array`]: opens arrays
//! * [`explained`]: where values come from, as text and as JSON
//! * [`printable`]: escapes stored names for a terminal
//! * [`output`]: standard output; [`closed_output`] detects whether there is one
//! * [`failure`]: one line for people, one exit status for scripts

mod arguments;
mod array;
mod closed_output;
#[cfg(feature = "cloud")]
mod cloud;
mod commands;
mod explained;
mod failure;
mod hints;
mod log;
mod log_file;
mod memory;
mod options;
mod output;
mod printable;
mod service;
mod size;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use arguments::Arguments;
use commands::{cat, completions, explain, info, ls, man, mount, umount, verify};
#[cfg(feature = "serve")]
use commands::{open, serve};
use failure::Failure;
use tilefs_storage::make_room_for_files;
use tilefs_threads as threads;
use tilefs_threads::address_space;
use tilefs_vfs::fuse::background;
use tilefs_vfs::reports::reason_of_panic;

const EXAMPLES: &str = "\
Examples:
  tilefs ARRAY MNT                      mount; ls MNT, cat MNT/temp.f32, numpy.memmap all work
  tilefs umount MNT                     unmount
  tilefs info ARRAY                     shape, types, filters
  tilefs ls -l ARRAY                    the files, without mounting
  tilefs cat ARRAY temp.f32 > temp.f32  the bytes of one file, without mounting
  tilefs open ARRAY                     look at it in the browser
  tilefs serve ARRAY                    the same files over HTTP and WebDAV
  tilefs ARRAY MNT --at 2024-01-31      as it was at the end of that day (UTC)
";

/// Mounts a TileDB array or group as a read-only folder of plain files.
///
/// Every attribute becomes a flat file that any program can read, every slice a path.
#[derive(Debug, Parser)]
#[command(name = "tilefs", version, after_help = format!("{EXAMPLES}\n{}", failure::STATUSES), subcommand_required = true, arg_required_else_help = true)]
struct CommandLine {
    #[command(subcommand)]
    command: ChosenCommand,
}

#[derive(Debug, Subcommand)]
enum ChosenCommand {
    Mount(mount::Mount),
    Umount(umount::Umount),
    Info(info::Info),
    Ls(ls::Ls),
    Cat(cat::Cat),
    Explain(explain::Explain),
    #[cfg(feature = "serve")]
    Serve(serve::Serve),
    #[cfg(feature = "serve")]
    Open(open::Open),
    Verify(verify::Verify),
    Completions(completions::Completions),
    Man(man::Man),
}

/// Runs the command with these arguments, which start with the name of the program.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    address_space::use_sparingly(threads::cores());
    // While there is only one thread.
    make_room_for_files();
    report_panics_in_the_log();
    match parse(arguments).and_then(|command| match command {
        None => Ok(()),
        Some(ChosenCommand::Mount(mount)) => mount.run(),
        Some(ChosenCommand::Umount(umount)) => umount.run(),
        Some(ChosenCommand::Info(info)) => info.run(),
        Some(ChosenCommand::Ls(ls)) => ls.run(),
        Some(ChosenCommand::Cat(cat)) => cat.run(),
        Some(ChosenCommand::Explain(explain)) => explain.run(),
        #[cfg(feature = "serve")]
        Some(ChosenCommand::Serve(serve)) => serve.run(),
        #[cfg(feature = "serve")]
        Some(ChosenCommand::Open(open)) => open.run(),
        Some(ChosenCommand::Verify(verify)) => verify.run(),
        Some(ChosenCommand::Completions(completions)) => completions.run(CommandLine::command()),
        Some(ChosenCommand::Man(man)) => man.run(),
    }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if background::is_server() {
                background::report_failure(failure.status, &failure.message);
            } else {
                failure.report();
            }
            ExitCode::from(failure.status)
        }
    }
}

/// Parses the command; `None` if there is nothing left to do.
fn parse(arguments: Vec<OsString>) -> Result<Option<ChosenCommand>, Failure> {
    let arguments = match arguments::expand(arguments)? {
        Arguments::Run(arguments) => arguments,
        Arguments::NothingToDo => return Ok(None),
    };
    let command = arguments::command_in(&arguments);
    match CommandLine::try_parse_from(&arguments) {
        Ok(line) => Ok(Some(line.command)),
        Err(error) if !error.use_stderr() => {
            // Help or the version.
            output::check()?;
            error.print()?;
            Ok(None)
        }
        Err(error) if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            Err(Failure { status: failure::WRONG_USAGE, message: String::new() })
        }
        Err(error) => {
            let report = error.render().to_string();
            let is_incomplete = error.kind() == clap::error::ErrorKind::MissingRequiredArgument;
            let hint = match command {
                Some("cat") if is_incomplete => hints::for_cat(&arguments),
                _ => hints::for_refresh(&arguments, &report),
            };
            Err(Failure::usage(hint.unwrap_or_else(|| failure::one_line(&report, command))))
        }
    }
}

/// Logs a panic, which is a bug in tilefs; it ends one request, not the program.
fn report_panics_in_the_log() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(|place| format!(" at {place}")).unwrap_or_default();
        let reason = reason_of_panic(panic.payload());
        ::log::error!("internal error{place}, please report it: {reason}");
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(line: &str) -> Result<Option<ChosenCommand>, Failure> {
        parse(line.split_whitespace().map(OsString::from).collect())
    }

    fn mount(line: &str) -> mount::Mount {
        match command(line) {
            Ok(Some(ChosenCommand::Mount(mount))) => mount,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn command_line_definition_is_consistent() {
        use clap::CommandFactory;
        CommandLine::command().debug_assert();
    }

    #[test]
    fn manual_describes_every_command_and_option() {
        use clap::CommandFactory;
        let manual = include_str!("../../man/tilefs.1").replace("\\-", "-");
        for command in CommandLine::command().get_subcommands() {
            assert!(manual.contains(&format!(".B {}\n", command.get_name())), "{}", command.get_name());
            let told = command.get_arguments().filter(|argument| !argument.is_hide_set());
            for (argument, option) in told.filter_map(|argument| Some((argument, argument.get_long()?))) {
                let about = |part: &&str| part.contains(&format!("--{option}"));
                let parts: Vec<&str> = manual.split(".TP\n").filter(about).collect();
                assert!(!parts.is_empty(), "--{option}");
                let values = argument.get_possible_values();
                for value in values.iter().filter(|_| argument.get_action().takes_values()) {
                    let name = value.get_name();
                    assert!(parts.iter().any(|part| part.contains(name)), "--{option} {name}");
                }
            }
        }
    }

    #[test]
    fn all_forms_of_mounting_are_equivalent() {
        for line in [
            "tilefs mount a m -f",
            "tilefs a m -f",
            "tilefs -f a m",
            "tilefs a --mount m -f",
            "tilefs --mount=m a -f",
            "tilefs a m -o ro,noatime,foreground",
            "tilefs a m -o rw,foreground,dev,suid",
            "/usr/sbin/mount.tilefs a m -o rw,foreground",
        ] {
            let mount = mount(line);
            assert_eq!((mount.array(), mount.mountpoint()), ("a".as_ref(), "m".as_ref()), "{line}");
            assert!(mount.is_foreground(), "{line}");
        }
        assert!(!mount("tilefs a m").is_foreground());
    }

    #[test]
    fn wrong_usage_is_one_line_and_status_2() {
        for (line, part) in [
            ("tilefs mount a", "MNT"),
            ("tilefs mount", "ARRAY"),
            ("tilefs a m x", "unexpected argument 'x'"),
            ("tilefs a m --mount n", "cannot be used with"),
            ("tilefs a m --nonsense", "--nonsense"),
            ("tilefs a m --cache-size 12Q", "12Q"),
            ("tilefs a m --at yesterday", "yesterday"),
            ("tilefs a m --slice nothing", "NAME=SELECTION"),
            ("tilefs a m --extent all", "all"),
            ("tilefs a m -o bogus", "bogus"),
            ("tilefs a m -o rw", "read-only"),
            ("tilefs a m -o ro,cache_siz=1G", "did you mean cache_size?"),
            ("tilefs a m --cach-size 1G", "; a similar argument exists: '--cache-size'"),
            ("tilefs cat a --ordr row x", "'--order'"),
            ("tilefs a m --extent nonempt", "'nonempty'"),
            ("tilefs mnt a m", "did you mean `tilefs mount`?"),
            ("tilefs inf a", "did you mean `tilefs info`?"),
            ("tilefs unmount m", "did you mean `tilefs umount`?"),
            ("tilefs a m --nonsense", "(see `tilefs mount --help`)"),
            ("tilefs cat a --nonsense x", "(see `tilefs cat --help`)"),
            ("tilefs --nonsense", "(see `tilefs mount --help`)"),
            ("tilefs --at 2024 cat a f", "options follow the command, as in `tilefs cat ... --at`"),
            ("tilefs --at=2024 ls a", "options follow the command, as in `tilefs ls ... --at`"),
            ("tilefs -v info a", "options follow the command, as in `tilefs info ... -v`"),
            ("tilefs umount", "MNT"),
            ("tilefs cat a", "PATH"),
            ("tilefs stats a", "type `cat MNT/.tilefs/stats.json`"),
            ("tilefs list a", "type `tilefs ls`"),
            ("tilefs a m --refresh abc", "type --refresh=30"),
            ("tilefs mount a m --refresh 1.5", "type --refresh=30"),
            ("tilefs a m --refresh=abc", "whole seconds"),
        ] {
            let failure = command(line).expect_err(line);
            assert_eq!(failure.status, 2, "{line}");
            assert!(failure.message.contains(part), "{line}: {}", failure.message);
            assert!(!failure.message.contains('\n'), "{line}: {}", failure.message);
        }
    }

    #[test]
    fn help_and_version_succeed() {
        for line in ["tilefs --version", "tilefs -h", "tilefs help mount", "tilefs cat --help"] {
            assert!(matches!(command(line), Ok(None)), "{line}");
        }
    }
}
