//! The client at the other end of a connection: whether it is still there.
//!
//! The kernel reports that a client has reset the connection. If the client has only stopped sending, it may be gone or
//! may still wait for its reply, and nothing that it sent tells which (`shutdown(SHUT_WR)` and `close` look the same).
//! So the server begins to send the reply before it is made: each one begins with the bytes `HTTP/1.`. The system of a
//! client that is gone answers the first of them with a reset; one that waits takes it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendFlags, send, sockopt};
use tokio::net::TcpStream;

use super::connections::Connection;
use super::owner;

/// The beginning of every reply.
const BEGINNING: &[u8] = b"HTTP/1.";

/// How often a client whose reply is being made should be looked at.
pub const LOOK: Duration = Duration::from_millis(250);

/// After this time without any byte from the client, its system is asked whether it still knows the connection.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// The client of a connection.
pub struct Peer {
    pub stream: TcpStream,
    pub connection: Arc<Connection>,
    /// Number of bytes of [`BEGINNING`] that were sent before the reply was made.
    sent_early: AtomicUsize,
    /// Whether bytes of an earlier reply wait for the client to take them.
    is_blocked: AtomicBool,
    /// Whether the client is a program of this process's user on this machine, once somebody has asked.
    is_own: OnceLock<bool>,
}

/// Whether a client is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientState {
    /// It can send another request.
    There,
    /// It sends nothing more. It may wait for its reply.
    Silent,
    Gone,
}

impl Peer {
    pub fn new(stream: TcpStream, connection: Arc<Connection>) -> Arc<Self> {
        // Small replies should not wait for more bytes.
        let _ = stream.set_nodelay(true);
        // Finds clients whose machine or network is gone while a reply is being made.
        let _ = sockopt::set_socket_keepalive(&stream, true);
        let _ = sockopt::set_tcp_keepidle(&stream, KEEP_ALIVE);
        let _ = sockopt::set_tcp_keepintvl(&stream, KEEP_ALIVE / 3);
        let _ = sockopt::set_tcp_keepcnt(&stream, 3);
        let (sent_early, is_blocked, is_own) = (AtomicUsize::new(0), AtomicBool::new(false), OnceLock::new());
        Arc::new(Peer { stream, connection, sent_early, is_blocked, is_own })
    }

    /// Returns whether the client is known to be a program of this process's user on this machine. The kernel is asked
    /// once.
    pub fn is_own(&self) -> bool {
        *self.is_own.get_or_init(|| match (self.stream.peer_addr(), self.stream.local_addr()) {
            (Ok(client), Ok(server)) => owner::is_own(client, server),
            _ => false,
        })
    }

    /// Looks whether the client is there.
    pub fn presence(&self) -> ClientState {
        let mut polled = [PollFd::new(&self.stream, PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        if poll(&mut polled, Some(&now)).is_err() {
            // Interrupted by a signal: the next look tells.
            return ClientState::There;
        }
        let [polled] = polled;
        let events = polled.revents();
        if events.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            ClientState::Gone
        } else if events.contains(PollFlags::RDHUP) {
            ClientState::Silent
        } else {
            ClientState::There
        }
    }

    /// Sends the next byte of the beginning of a reply that is being made, if there is one. Must be called only between
    /// the request and the first byte of its reply.
    pub fn probe(&self) {
        let sent = self.sent_early.load(Ordering::Relaxed);
        // If earlier bytes still wait, the client's system answers those.
        if self.is_blocked.load(Ordering::Relaxed) {
            return;
        }
        let Some(byte) = BEGINNING.get(sent..=sent) else { return };
        if send(&self.stream, byte, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) == Ok(1) {
            self.sent_early.store(sent + 1, Ordering::Relaxed);
        }
    }

    /// Returns how many of the next bytes of replies were sent early.
    pub fn sent_early(&self) -> usize {
        self.sent_early.load(Ordering::Relaxed)
    }

    /// Notes that the next bytes of replies were written without the first `early` ones, which were sent before.
    pub fn note_written(&self, early: usize) {
        self.sent_early.fetch_sub(early, Ordering::Relaxed);
    }

    /// Notes whether bytes wait for the client to take them.
    pub fn set_blocked(&self, is_blocked: bool) {
        if self.is_blocked.swap(is_blocked, Ordering::Relaxed) && !is_blocked {
            self.connection.go_on();
        }
        if is_blocked {
            self.connection.stall();
        }
    }
}

/// When to probe a client while the first bytes of its reply are being made.
#[derive(Default)]
pub struct Watch {
    /// Number of looks since it is silent.
    silent: u32,
}

impl Watch {
    /// Looks at the client; returns whether it is gone. Is to be called once every [`LOOK`].
    pub fn is_gone(&mut self, peer: &Peer) -> bool {
        match peer.presence() {
            ClientState::Gone => return true,
            ClientState::There => return false,
            ClientState::Silent => {}
        }
        self.silent = self.silent.saturating_add(1);
        // At once, and then each time that it has been silent for twice as long: the bytes last for 16 seconds. Later,
        // the client's system forgets a connection that was closed, and tells us so when it is asked (`KEEP_ALIVE`).
        if self.silent.is_power_of_two() {
            peer.probe();
        }
        false
    }
}
