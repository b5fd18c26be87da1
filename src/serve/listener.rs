//! Accepts connections on a thread, and drives them.

use std::io;
use std::net;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioTimer;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::connection::connections::{Connection, Connections};
use super::connection::peer::Peer;
use super::connection::timed_stream::TimedStream;
use super::exchange::Service;

/// Maximum size of the head of a request. Also limits how much of a reply the HTTP library takes before it sends it.
const MAX_HEAD: usize = 16 << 10;

/// Maximum number of headers.
const MAX_HEADERS: usize = 64;

/// How long an idle connection may take to close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a new connection may wait for room. Connections that should close do so earlier.
const ADMIT_TIMEOUT: Duration = Duration::from_secs(2);

/// The reply to a connection for which there is no room: that many clients are taking bytes of their replies.
const NO_ROOM: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// After a request to stop, how long replies may take.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// Delay after a failure to accept: descriptors may have run out.
const PAUSE: Duration = Duration::from_millis(100);

/// A thread's share of a server.
pub struct Listener {
    pub socket: net::TcpListener,
    pub service: Arc<Service>,
    pub connections: Arc<Connections>,
    /// Becomes `true` when the server should stop.
    pub stop: watch::Receiver<bool>,
}

impl Listener {
    /// Accepts and serves connections until the server should stop and replies have ended or taken too long.
    ///
    /// # Errors
    /// If the system refuses what driving connections needs.
    pub fn run(self) -> io::Result<()> {
        // A single thread that we start ourselves: a multi-threaded runtime panics if it cannot start its threads.
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let result = runtime.block_on(self.accept_all());
        // Drops the connections, which cancels their requests.
        runtime.shutdown_background();
        result
    }

    async fn accept_all(self) -> io::Result<()> {
        let socket = TcpListener::from_std(self.socket)?;
        let mut stop = self.stop;
        loop {
            let stream = {
                let stopped = pin!(stop.wait_for(|stop| *stop));
                match select(pin!(socket.accept()), stopped).await {
                    Either::Left((Ok((stream, _)), _)) => stream,
                    Either::Left((Err(error), _)) => {
                        self.service.site.errors.report("cannot accept a connection", &error.to_string());
                        sleep(PAUSE).await;
                        continue;
                    }
                    Either::Right(_) => break,
                }
            };
            let admitted = {
                let stopped = pin!(stop.wait_for(|stop| *stop));
                match select(pin!(timeout(ADMIT_TIMEOUT, self.connections.admit())), stopped).await {
                    Either::Left((Ok(Some(connection)), _)) => connection,
                    Either::Left((Err(_), _)) => {
                        // Dropped if the client does not take it at once.
                        let _ = stream.try_write(NO_ROOM);
                        continue;
                    }
                    _ => break,
                }
            };
            let service = Arc::clone(&self.service);
            Handle::current().spawn(drive(stream, admitted, service));
        }
        drop(socket);
        self.connections.close_all();
        let _ = timeout(STOP_TIMEOUT, self.connections.wait_for_end()).await;
        Ok(())
    }
}

/// Serves one connection to its end.
async fn drive(stream: TcpStream, connection: Arc<Connection>, service: Arc<Service>) {
    let (peer, client_timeout) = (Peer::new(stream, Arc::clone(&connection)), service.client_timeout);
    let own = Arc::clone(&peer);
    let replies = service_fn(move |request| Arc::clone(&service).reply(Arc::clone(&own), request));
    let mut http = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(client_timeout)
            .max_buf_size(MAX_HEAD)
            .max_headers(MAX_HEADERS)
            // A client that sends nothing more may wait for its reply; `peer.rs` finds out.
            .half_close(true)
            .serve_connection(TimedStream::new(peer, client_timeout), replies)
    );
    let outcome = match select(http.as_mut(), pin!(connection.asked_to_close())).await {
        Either::Left((outcome, _)) => outcome,
        Either::Right(_) if connection.is_fresh() || connection.is_cut() => Ok(()),
        Either::Right(_) => {
            // If a request has just begun, its reply is the last one.
            http.as_mut().graceful_shutdown();
            let end = timeout(CLOSE_TIMEOUT, http.as_mut()).await;
            match end {
                Ok(outcome) => outcome,
                Err(_) if connection.is_waiting() => Ok(()),
                Err(_) => until_cut(&connection, http.as_mut()).await,
            }
        }
    };
    if let Err(error) = outcome {
        log::debug!("a connection ended: {error}");
    }
}

/// Serves a connection that is about to close until its reply has ended, or it is cut off.
async fn until_cut<E>(connection: &Connection, mut http: impl Future<Output = Result<(), E>> + Unpin) -> Result<(), E> {
    loop {
        match select(&mut http, pin!(connection.asked_to_close())).await {
            Either::Left((outcome, _)) => return outcome,
            Either::Right(_) if connection.is_cut() => return Ok(()),
            Either::Right(_) => {}
        }
    }
}
