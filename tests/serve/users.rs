//! Other users of this machine: without a token, they read nothing of a server that one user has started. Needs root, to be
//! several users.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::client::{Program, demo, eventually, get};
use support::skip::{Need, is_root, skipped};

/// The user who starts servers, and others.
const OWN: u32 = 1500;
const OTHERS: [u32; 2] = [1600, 0];

/// The program and an array where every user can run and only the own one can read them.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Option<Place> {
        if !is_root() {
            skipped(Need::Root, "only root can be several users");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::copy(env!("CARGO_BIN_EXE_tilefs"), folder.path().join("tilefs")).unwrap();
        support::stored::copy_folder(&demo(), &folder.path().join("private"));
        let owned = Command::new("chown").args(["-R", &OWN.to_string()]).arg(folder.path().join("private")).status();
        assert!(owned.unwrap().success());
        std::fs::set_permissions(folder.path().join("private"), std::fs::Permissions::from_mode(0o700)).unwrap();
        Some(Place { folder })
    }

    fn array(&self) -> PathBuf {
        self.folder.path().join("private")
    }

    /// Runs a command of the own user that serves the array.
    fn start(&self, command: &str, options: &[&str]) -> Program {
        let mut program = Command::new(self.folder.path().join("tilefs"));
        program.arg(command).arg(self.array()).args(options).args(["--index-dir", "none"]).uid(OWN).gid(OWN);
        Program::run(program.env("BROWSER", "").env_remove("TILEFS_TOKEN").current_dir("/"))
    }
}

/// Returns what curl of a user prints.
fn curl(user: u32, arguments: &[&str]) -> String {
    let mut command = Command::new("curl");
    command.args(["-s", "--noproxy", "*", "-m", "30"]).args(arguments).uid(user).gid(user).current_dir("/");
    String::from_utf8_lossy(&command.output().expect("curl starts").stdout).into_owned()
}

/// Returns the status of a user's request.
fn status(user: u32, url: &str) -> String {
    curl(user, &["-o", "/dev/null", "-w", "%{http_code}", url])
}

#[test]
fn only_the_user_who_started_a_server_reads_without_a_token() {
    let Some(place) = Place::new() else { return };
    for (listen, hosts) in [
        ("127.0.0.1:0", &["127.0.0.1", "[::ffff:127.0.0.1]"][..]),
        ("[::1]:0", &["[::1]"]),
        ("[::ffff:127.0.0.1]:0", &["127.0.0.1", "[::ffff:127.0.0.1]"]),
        ("0.0.0.0:0", &["127.0.0.1", "127.0.0.2"]),
        ("[::]:0", &["[::1]", "127.0.0.1"]),
    ] {
        let only_own = place.start("serve", &["--listen", listen]);
        let for_all = place.start("serve", &["--allow-other", "--listen", listen]);
        for host in hosts {
            let url = |server: &Program| format!("http://{host}:{}/temp.f32", server.address.port());
            assert_eq!(status(OWN, &url(&only_own)), "200", "{listen} {host}");
            assert_eq!(status(OWN, &url(&for_all)), "200", "{listen} {host}");
            for other in OTHERS {
                assert_eq!(status(other, &url(&only_own)), "403", "{listen} {host} {other}");
                assert_eq!(status(other, &url(&for_all)), "200", "{listen} {host} {other}");
            }
        }
    }
}

/// The kernel keeps the socket of a client that has closed it for a while, as that of root.
#[test]
fn a_connection_that_is_closed_at_once_is_nobodys() {
    if !is_root() {
        return skipped(Need::Root, "only root can be several users");
    }
    // Of root.
    let server = Program::start(&demo(), &[]);
    let stats = || get(server.address, "/.tilefs/stats.json").json();
    let sent = stats()["sent_bytes"].as_u64().unwrap();
    let port = server.address.port();
    for _ in 0..20 {
        let request = "GET /temp.f32 HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n";
        let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; printf '{request}' >&3; exec 3>&-");
        let done = Command::new("bash").args(["-c", &script]).uid(1600).gid(1600).current_dir("/").output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }
    eventually("all are refused", || stats()["denied"] == 20);
    assert!(stats()["sent_bytes"].as_u64().unwrap() - sent < 80_000);
}

/// What lets in others is the token in the address that `open` prints.
#[test]
fn the_address_that_open_prints_lets_in_others() {
    let Some(place) = Place::new() else { return };
    let server = place.start("open", &[]);
    let (root, token) = server.printed.split_once("?token=").unwrap();
    let file = format!("{root}temp.f32");
    assert_eq!(status(OWN, &file), "200");
    for other in OTHERS {
        assert_eq!(status(other, &file), "401");
        assert_eq!(status(other, &format!("{file}?token={token}0")), "401");
        for _ in 0..2 {
            assert_eq!(status(other, &format!("{file}?token={token}")), "200");
        }
        assert_eq!(
            curl(other, &["-u", &format!("any:{token}"), &file, "-o", "/dev/null", "-w", "%{http_code}"]),
            "200"
        );
        // A browser of another user goes on without the token in its address.
        let jar = place.folder.path().join("jar").display().to_string();
        let pages = ["-L", "-c", &jar, "-b", &jar, "-H", "Accept: text/html", "-o", "/dev/null"];
        let seen = curl(0, &[&pages[..], &["-w", "%{http_code} %{url_effective}", &server.printed]].concat());
        assert_eq!(seen, format!("200 {root}"));
        assert_eq!(curl(0, &[&pages[..], &["-w", "%{http_code}", root]].concat()), "200");
    }
}

/// Everybody sees the arguments of the browser: its address works once.
#[test]
fn the_address_that_the_browser_gets_lets_in_one() {
    let Some(place) = Place::new() else { return };
    let (browser, opened) = (place.folder.path().join("browser"), place.array().join("opened"));
    let script = format!("#!/bin/sh\nprintf '%s' \"$1\" > '{0}.new'\nmv '{0}.new' '{0}'\n", opened.display());
    std::fs::write(&browser, script).unwrap();
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut program = Command::new(place.folder.path().join("tilefs"));
    program.arg("open").arg(place.array()).args(["--index-dir", "none"]).uid(OWN).gid(OWN).env("BROWSER", &browser);
    let server = Program::run(program.current_dir("/"));
    eventually("the browser starts", || Path::new(&opened).exists());
    let url = std::fs::read_to_string(&opened).unwrap();
    assert_eq!([status(1600, &url), status(1600, &url), status(OWN, &url)], ["200", "401", "200"]);
    assert!(server.address.ip().is_loopback());
}
