//! A running server: its sockets, threads and end.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::listen;
use rustix::process::{Resource, getrlimit};
use tilefs_format::error::{Error, Result};
use tilefs_reader::statistics;
use tilefs_threads as threads;
use tokio::sync::watch;

use super::connection::connections::Connections;
use super::exchange::Service;
use super::http::access::AccessRules;
use super::listener::Listener;
use super::refresh;
use super::site::Site;
use crate::read_ahead::{ReadAhead, Window};
use crate::refresh::{RefreshTrigger, channel};
use crate::reports::ASKED_FOR;
use tilefs_tree::ServedTree;

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
    /// The token that clients must present, if any.
    pub token: Option<String>,
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
    /// [`Error::Usage`] if the address cannot be used, or a thread cannot be started.
    pub fn start(tree: impl ServedTree + 'static, options: &ServeOptions) -> Result<HttpServer> {
        let failed = |what: &str, error: io::Error| Error::usage(format!("{what}: {error}"));
        let unusable = |error| failed(&format!("cannot listen on {}", options.listen), error);
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
        let no_thread = |error| failed("cannot start a thread", error);
        refresh::start(Arc::downgrade(&site), triggers, options.refresh).map_err(no_thread)?;

        let access = AccessRules::new(options.token.as_deref(), is_local_only(&address, options.cors.as_deref()));
        let service = Service::new(Arc::clone(&site), access, options.cors.clone(), options.client_timeout);
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
                Err(error) => return Err(no_thread(error)),
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

/// Returns whether only programs of this machine should reach a server at this address, and no web page that gives its
/// own name that address. Where pages of any origin may read, none needs to.
fn is_local_only(address: &SocketAddr, cors: Option<&str>) -> bool {
    is_loopback(address) && cors != Some("*")
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
