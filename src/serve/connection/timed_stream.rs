//! A connection whose client must keep taking bytes: a write that makes no progress for a while ends it.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use rustix::net::{SendFlags, Shutdown, send, shutdown};
use tokio::time::{Instant, Sleep, sleep};

use super::peer::Peer;

/// Maximum number of bytes that are read at once: requests are short.
const READ: usize = 4 << 10;

/// A connection. Reading has its own limit of time, in the HTTP library.
pub struct TimedStream {
    peer: Arc<Peer>,
    /// Maximum time for which the client may take nothing while there are bytes for it.
    timeout: Duration,
    /// The end of that time, while a write waits.
    deadline: Pin<Box<Sleep>>,
    /// Whether the last write is waiting for the client.
    is_waiting: bool,
}

impl TimedStream {
    pub fn new(peer: Arc<Peer>, timeout: Duration) -> Self {
        TimedStream { peer, timeout, deadline: Box::pin(sleep(timeout)), is_waiting: false }
    }

    fn set_waiting(&mut self, is_waiting: bool) {
        self.is_waiting = is_waiting;
        self.peer.set_blocked(is_waiting);
    }

    /// Returns the result of a write that begins with these bytes, or an error if it has waited for too long.
    fn limited(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            if self.is_waiting {
                self.set_waiting(false);
            }
            return written;
        }
        if !self.is_waiting {
            let deadline = Instant::now() + self.timeout;
            self.deadline.as_mut().reset(deadline);
        }
        self.set_waiting(true);
        ready!(self.deadline.as_mut().poll(context));
        self.set_waiting(false);
        // The kernel wakes a writer when a third of its buffer is free, which may be a megabyte. A client may take less
        // than that in this time; then there is room for more bytes nevertheless.
        let sent = send(&self.peer.stream, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        Poll::Ready(sent.map_err(|_| ErrorKind::TimedOut.into()))
    }

    /// Writes these bytes without the first ones that were sent early.
    fn write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let early = self.peer.sent_early().min(bytes.len());
        let rest = bytes.get(early..).unwrap_or_default();
        let written = self.when_ready(context, |peer| peer.stream.try_write(rest));
        let written = ready!(self.limited(context, rest, written))?;
        self.peer.note_written(early);
        Poll::Ready(Ok(early + written))
    }

    /// Repeats a write until it does something other than wait.
    fn when_ready(
        &self,
        context: &mut Context<'_>,
        write: impl Fn(&Peer) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.peer.stream.poll_write_ready(context))?;
            match write(&self.peer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }
}

impl Read for TimedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let mut bytes = [0; READ];
        let most = buffer.remaining().min(READ);
        let bytes = bytes.get_mut(..most).unwrap_or_default();
        loop {
            ready!(self.peer.stream.poll_read_ready(context))?;
            match self.peer.stream.try_read(bytes) {
                Ok(count) => {
                    buffer.put_slice(bytes.get(..count).unwrap_or_default());
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl Write for TimedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = parts.iter().find(|part| !part.is_empty()).map_or(&[][..], |first| first);
        if self.peer.sent_early() > 0 {
            return self.write(context, first);
        }
        let written = self.when_ready(context, |peer| peer.stream.try_write_vectored(parts));
        self.limited(context, first, written)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(shutdown(&self.peer.stream, Shutdown::Write)?))
    }
}
