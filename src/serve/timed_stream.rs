//! A connection whose client must keep taking bytes: a write that makes no progress for a while ends it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use rustix::net::{SendFlags, send};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

/// A connection. Reading has its own limit of time, in the HTTP library.
pub struct TimedStream {
    stream: TokioIo<TcpStream>,
    /// Maximum time for which the client may take nothing while there are bytes for it.
    timeout: Duration,
    /// The end of that time, while a write waits.
    deadline: Pin<Box<Sleep>>,
    /// Whether the last write is waiting for the client.
    is_waiting: bool,
}

impl TimedStream {
    pub fn new(stream: TcpStream, timeout: Duration) -> Self {
        TimedStream { stream: TokioIo::new(stream), timeout, deadline: Box::pin(sleep(timeout)), is_waiting: false }
    }

    /// Returns the result of a write of these bytes, or an error if it has waited for too long.
    fn limited(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.is_waiting = false;
            return written;
        }
        if !self.is_waiting {
            self.is_waiting = true;
            let deadline = Instant::now() + self.timeout;
            self.deadline.as_mut().reset(deadline);
        }
        ready!(self.deadline.as_mut().poll(context));
        self.is_waiting = false;
        // The kernel wakes a writer when a third of its buffer is free, which may be a megabyte. A client may take less
        // than that in this time; then there is room for more bytes nevertheless.
        let sent = send(self.stream.inner(), bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        Poll::Ready(sent.map_err(|_| io::ErrorKind::TimedOut.into()))
    }
}

impl Read for TimedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for TimedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.limited(context, bytes, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        let first = parts.iter().find(|part| !part.is_empty());
        self.limited(context, first.map_or(&[], |first| first), written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
