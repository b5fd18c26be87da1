//! A running server: its sockets, threads and end.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::listen;
use rustix::process::{Resource, getrlimit};
use tilefs_base::statistics;
use tilefs_threads as threads;
use tilefs_vfs::ServedTree;
use tilefs_vfs::read_ahead::{ReadAhead, Window};
use tilefs_vfs::refresh::{RefreshTrigger, channel};
use tilefs_vfs::reports::ASKED_FOR;
use tokio::sync::watch;

use super::connection::connections::Connections;
use super::exchange::Service;
use super::http::access::{AccessRules, WithoutToken};
use super::listener::Listener;
use super::refresh;
use super::site::Site;

/// Maximum number of open connections. Each may hold two pieces of a reply; see [`super::connection::buffers`] for their memory.
const MAX_CONNECTIONS: u64 = 512;

/// Descriptors that storage and everything else need.
const OTHER_DESCRIPTORS: u64 = 400;

/// Fewest connections, however few descriptors there are.
const LEAST_CONNECTIONS: u64 = 16;

/// Maximum number of connections that the kernel accepts before we do.
const BACKLOG: i32 = 1024;

/// Maximum number of threads that drive connections. They copy bytes and wait.
const MAX_THREADS: usize = 4;

/// Options of a server.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The address to listen on; port 0 is any free one.
    pub listen: SocketAddr,
    /// The token of clients that may read, if there is one.
    pub token: Option<String>,
    /// A token besides this one that opens the server once.
    pub pass: Option<String>,
    pub without_token: WithoutToken,
    /// The origin whose pages may read, or `*`; `None` for only the pages of this server.
    pub cors: Option<String>,
    /// How long a client may take to send a request, or send none, and how long it may take nothing of its reply.
    pub client_timeout: Duration,
    /// Interval of automatic refreshes; `None` to refresh only on demand.
    pub refresh: Option<Duration>,
    /// Number of prefetch threads.
    pub read_ahead_workers: usize,
    /// Limits of prefetching for all open files together; well below the cache budget.
    pub read_ahead_window: Window,
    /// Whether files that are requested as a whole are prefetched from the first byte: for storage with latency.
    pub expects_whole_reads: bool,
}

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {0}: another program uses this port; give another with --listen, or --port 0")]
    InUse(SocketAddr),
    #[error("cannot listen on {0}: {1}")]
    Unusable(SocketAddr, io::Error),
    #[error("cannot start a thread: {0}")]
    NoThread(io::Error),
}

/// A running server. Dropping it stops it.
pub struct HttpServer {
    address: SocketAddr,
    site: Arc<Site>,
    refresh: RefreshTrigger,
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

impl HttpServer {
    /// Listens and serves a tree. When this returns, the server answers.
    ///
    /// # Errors
    /// If the address cannot be used, or a thread cannot be started.
    pub fn start(tree: impl ServedTree + 'static, options: &ServeOptions) -> Result<HttpServer, ServeError> {
        let unusable = |error: io::Error| match error.kind() {
            ErrorKind::AddrInUse => ServeError::InUse(options.listen),
            _ => ServeError::Unusable(options.listen, error),
        };
        let socket = TcpListener::bind(options.listen).map_err(unusable)?;
        // The standard library's backlog is 128. If more connections arrive at once, the kernel ignores them for a
        // second.
        listen(&socket, BACKLOG).map_err(|error| unusable(error.into()))?;
        socket.set_nonblocking(true).map_err(unusable)?;
        let address = socket.local_addr().map_err(unusable)?;

        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let most = descriptors.saturating_sub(OTHER_DESCRIPTORS).clamp(LEAST_CONNECTIONS, MAX_CONNECTIONS);
        let connections = Connections::new(most as usize);
        let (refresh, triggers) = channel();
        let read_ahead = ReadAhead::new(options.read_ahead_workers, options.read_ahead_window);
        let missing = options.refresh.map(|_| refresh.clone());
        let site =
            Site::new(Arc::new(tree), read_ahead, options.expects_whole_reads, Arc::clone(&connections), missing);
        refresh::start(Arc::downgrade(&site), triggers, options.refresh).map_err(ServeError::NoThread)?;

        let (access, port) = (access_rules(options, &address), address.port());
        let service = Service::new(Arc::clone(&site), access, port, options.cors.clone(), options.client_timeout);
        let (stop, stopped) = watch::channel(false);
        // From here on, dropping the server stops its threads.
        let mut server = HttpServer { address, site, refresh, stop, threads: Vec::new() };
        for number in 0..threads::cores().clamp(1, MAX_THREADS) {
            let listener = Listener {
                socket: socket.try_clone().map_err(unusable)?,
                service: Arc::clone(&service),
                connections: Arc::clone(&connections),
                stop: stopped.clone(),
            };
            let run = move || {
                if let Err(error) = listener.run() {
                    log::error!("cannot accept connections: {error}");
                }
            };
            match threads::start(format!("http-{number}"), run) {
                Ok(thread) => server.threads.push(thread),
                // One thread is enough.
                Err(_) if number > 0 => break,
                Err(error) => return Err(ServeError::NoThread(error)),
            }
        }
        Ok(server)
    }

    /// Returns the address that the server listens on, with its port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Triggers a refresh to the stored data.
    pub fn refresh(&self) {
        self.refresh.trigger();
    }

    /// Logs the current statistics.
    pub fn log_statistics(&self) {
        log::info!(target: ASKED_FOR, "statistics: {}", statistics::line(&self.site.statistics()));
    }

    /// Accepts no more connections, waits a few seconds for the replies that are being sent, and closes everything.
    /// Requests that hang on storage are cancelled and not waited for.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.stop.send_replace(true);
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                log::error!("internal error, please report it: a thread of connections panicked");
            }
        }
    }
}

/// Returns who may read from a server at this address.
fn access_rules(options: &ServeOptions, address: &SocketAddr) -> AccessRules {
    // Only programs of this machine should get in without a token, and no web page that gives its own name this
    // machine's address. Where pages of any origin may read, none needs to.
    let is_for_this_machine = options.without_token == WithoutToken::OwnUser || is_loopback(address);
    let only_local_names = is_for_this_machine && options.cors.as_deref() != Some("*");
    let (token, pass) = (options.token.as_deref(), options.pass.as_deref());
    AccessRules::new(token, pass, options.without_token, only_local_names, address.port())
}

/// Returns whether only this machine can connect to an address.
pub fn is_loopback(address: &SocketAddr) -> bool {
    // An IPv4 address may be written as one of IPv6.
    address.ip().to_canonical().is_loopback()
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.end();
    }
}
