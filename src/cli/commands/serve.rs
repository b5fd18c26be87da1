//! `tilefs serve`: an array or a group over HTTP and WebDAV.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use tilefs::serve::{HttpServer, ServeOptions, WithoutToken, is_loopback};
use tilefs_storage::make_room_for_files;
use tilefs_threads as threads;
use tilefs_tree::Links;
use tilefs_vfs::fuse::Signals;
use tilefs_vfs::read_ahead::Window;

use crate::cli::failure::Failure;
use crate::cli::options::{TreeArguments, parse_interval};
use crate::cli::{array, output, service};

const EXAMPLES: &str = "\
Examples:
  tilefs serve dem.tdb                                  for your programs on this machine
  tilefs serve dem.tdb --listen 0.0.0.0:8080 --token S  for everybody who knows S
  curl -O http://127.0.0.1:8080/elevation.f32
  gdalinfo /vsicurl/http://127.0.0.1:8080/tiff/elevation.tif
  rclone ls \":webdav,url='http://127.0.0.1:8080/':\"";

/// The address and the port of `--listen` where they are left out.
const USUAL_HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const USUAL_PORT: u16 = 8080;

/// The time of `--client-timeout`, unless another is given.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(30);

/// Serve the files of an array or a group over HTTP and read-only WebDAV, until ctrl-C
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Serve {
    /// The folder of the array or group
    array: PathBuf,

    /// The address to listen on; the default is reached only from this machine. Port 0 is any free one. Either part may
    /// be left out
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080", value_parser = parse_address)]
    listen: SocketAddr,

    /// The port alone, as with --listen PORT
    #[arg(short = 'p', long, value_name = "PORT", conflicts_with = "listen")]
    port: Option<u16>,

    /// The address alone, as with --listen ADDRESS
    #[arg(long, value_name = "ADDRESS", conflicts_with = "listen", value_parser = parse_host)]
    host: Option<IpAddr>,

    /// Answer only requests with this token: `Authorization: Bearer TOKEN`, the password TOKEN of any user, or ?token=TOKEN
    #[arg(long, value_name = "TOKEN", env = "TILEFS_TOKEN", hide_env_values = true, value_parser = parse_token)]
    token: Option<String>,

    /// Answer everybody who reaches the server. Without this and --token, only your own programs on this machine can read
    #[arg(long, conflicts_with = "token")]
    allow_other: bool,

    /// Let web pages of this origin read the files; of any origin if none is given
    #[arg(long, value_name = "ORIGIN", num_args = 0..=1, require_equals = true, default_missing_value = "*",
          value_parser = parse_origin)]
    cors: Option<String>,

    /// Close the connection of a client that sends no whole request, or takes nothing of a reply, for this long
    #[arg(long, value_name = "SECONDS", default_value_t = CLIENT_TIMEOUT.as_secs() as u32, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    client_timeout: u32,

    /// Follow symbolic links and members of groups that lead out of the array or group
    #[arg(long)]
    follow_links: bool,

    /// Look for changes of the array at this interval, 10 seconds if not given, and show them to later requests
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "10",
          value_parser = parse_interval)]
    refresh: Option<u32>,

    #[command(flatten)]
    tree: TreeArguments,
}

impl Serve {
    pub fn run(&self) -> Result<(), Failure> {
        self.tree.start_log();
        let how = ServeOptions {
            listen: self.address(),
            token: self.token.clone(),
            without_token: match (&self.token, self.allow_other) {
                (Some(_), _) => WithoutToken::Nobody,
                (None, true) => WithoutToken::Everybody,
                (None, false) => WithoutToken::OwnUser,
            },
            cors: self.cors.clone(),
            client_timeout: Duration::from_secs(self.client_timeout.into()),
            refresh: self.refresh.map(|seconds| Duration::from_secs(seconds.into())),
            ..local_options()
        };
        serve(&self.array, &self.tree, how, self.follow_links, str::to_owned, |_| ())
    }
}

/// Returns the options of a server for this user on this machine, on any free port.
pub fn local_options() -> ServeOptions {
    ServeOptions {
        listen: SocketAddr::new(USUAL_HOST, 0),
        token: None,
        pass: None,
        without_token: WithoutToken::OwnUser,
        cors: None,
        client_timeout: CLIENT_TIMEOUT,
        refresh: None,
        read_ahead_workers: 0,
        read_ahead_window: Window::LOCAL,
        expects_whole_reads: false,
    }
}

/// Serves until a signal. Once the server answers, `printed` returns what to print of its URL, and `started` gets it.
pub fn serve(
    array: &Path,
    arguments: &TreeArguments,
    how: ServeOptions,
    follows_links: bool,
    printed: impl FnOnce(&str) -> String,
    started: impl FnOnce(&str),
) -> Result<(), Failure> {
    // Before any thread starts, as for a mount.
    make_room_for_files();
    let signals = Signals::hold()?;
    let mut options = arguments.options()?;
    // Other users of this machine can connect, and must not see more than is served.
    options.reading.links = if follows_links { Links::Anywhere } else { Links::Within };
    options.is_watched = how.refresh.is_some();
    threads::start_team(options.reading.threads);
    let tree = array::open_tree(array, &options)?;
    let how = ServeOptions {
        read_ahead_workers: array::read_ahead_workers(array, &options),
        read_ahead_window: array::read_ahead_window(array, &options),
        expects_whole_reads: array::is_remote(array),
        ..how
    };
    signals.wait();
    let server = HttpServer::start(tree, &how).map_err(|error| Failure::failed(error.to_string()))?;
    if !is_loopback(&server.address()) {
        match how.without_token {
            WithoutToken::Everybody => ::log::warn!("everybody who reaches {} can read this", server.address()),
            WithoutToken::OwnUser => {
                ::log::warn!("only you can read this, on this machine; others can with --token TOKEN or --allow-other")
            }
            WithoutToken::Nobody => {}
        }
    }
    let url = format!("http://{}/", server.address());
    if output::print(&format!("serving {} at {}\n", array.display(), printed(&url))).is_err() {
        // Without standard output, as a service, the log has the address, and nothing secret.
        ::log::info!("serving {} at {url}", array.display());
    }
    service::ready();
    started(&url);
    signals.until_end(|| server.refresh(), || server.log_statistics());
    server.stop();
    Ok(())
}

impl Serve {
    /// Returns the address to listen on.
    fn address(&self) -> SocketAddr {
        SocketAddr::new(self.host.unwrap_or(self.listen.ip()), self.port.unwrap_or(self.listen.port()))
    }
}

/// Parses `ADDRESS:PORT`, in which either part may be left out: `8080`, `:8080`, `localhost`, `[::1]`.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let wrong = || "write it as ADDRESS:PORT, for instance 127.0.0.1:8080 or [::1]:8080".to_owned();
    let port = text.strip_prefix(':').unwrap_or(text);
    if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(SocketAddr::new(USUAL_HOST, port.parse().map_err(|_| wrong())?));
    }
    if let Ok(mut addresses) = text.to_socket_addrs() {
        return addresses.next().ok_or_else(|| "this name has no address".to_owned());
    }
    // A colon is part of an address only in those of IPv6.
    let is_host = text.parse::<IpAddr>().is_ok() || text.starts_with('[') || !text.contains(':');
    let host = if is_host { parse_host(text).ok() } else { None };
    host.map(|host| SocketAddr::new(host, USUAL_PORT)).ok_or_else(wrong)
}

/// Parses an address or a name, without a port.
fn parse_host(text: &str) -> Result<IpAddr, String> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let wrong = |_| "write an address or a name without a port, for instance 0.0.0.0 or localhost".to_owned();
    let mut addresses = (bare, 0).to_socket_addrs().map_err(wrong)?;
    addresses.next().map(|address| address.ip()).ok_or_else(|| "this name has no address".to_owned())
}

fn parse_token(text: &str) -> Result<String, String> {
    let is_token = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_token
        .then(|| text.to_owned())
        .ok_or_else(|| "give one or more visible ASCII characters without spaces".to_owned())
}

fn parse_origin(text: &str) -> Result<String, String> {
    let is_origin = text == "*" || (text.contains("://") && text.bytes().all(|byte| byte.is_ascii_graphic()));
    is_origin.then(|| text.to_owned()).ok_or_else(|| "write it as https://example.org".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked_before_anything_starts() {
        assert_eq!(parse_address("127.0.0.1:0").unwrap().port(), 0);
        assert!(
            parse_address("[::1]:80").unwrap().is_ipv6() && parse_address("localhost:80").unwrap().ip().is_loopback()
        );
        for (part, whole) in [
            ("8101", "127.0.0.1:8101"),
            (":8101", "127.0.0.1:8101"),
            ("0.0.0.0", "0.0.0.0:8080"),
            ("::1", "[::1]:8080"),
            ("[::1]", "[::1]:8080"),
        ] {
            assert_eq!(parse_address(part).unwrap().to_string(), whole, "{part}");
        }
        for wrong in ["", ":", ":x", "99999", "127.0.0.1:99999", "http://127.0.0.1:1", "127.0.0.1:"] {
            assert!(parse_address(wrong).is_err(), "{wrong}");
        }
        assert!(parse_host("[::1]").unwrap().is_ipv6() && parse_host("127.0.0.1:80").is_err());
        assert!(parse_token("s3cret").is_ok() && parse_token("").is_err() && parse_token("a b\n").is_err());
        assert!(parse_origin("*").is_ok() && parse_origin("https://a.example").is_ok());
        assert!(parse_origin("a.example").is_err() && parse_origin("https://a\r\nx: y").is_err());
    }
}
