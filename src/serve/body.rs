//! The bodies of replies, made piece by piece on a worker.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tilefs_reader::threads::cancellation::Token;
use tokio::sync::oneshot;

use super::connections::Busy;
use super::counts::Counts;
use super::site::Refusal;
use super::workers::Workers;

/// Makes the bytes of a body in sequence.
pub trait Pieces: Send {
    /// Returns the next bytes, at least one; `None` at the end.
    ///
    /// # Errors
    /// Fails if any of them cannot be made. The connection then ends before the promised length, so that the client
    /// notices.
    fn next(&mut self) -> Result<Option<Bytes>, Refusal>;
}

/// Cancels a request when it is dropped.
pub struct CancelOnDrop(pub Token);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// The body of a reply. Memory: the piece that is being made, the piece that is being sent, and what the HTTP library
/// still holds of the previous one.
pub struct ReplyBody {
    /// The piece that is already made.
    first: Option<Bytes>,
    /// The remaining bytes, if their number is known.
    left: Option<u64>,
    making: Option<Making>,
    counts: Arc<Counts>,
    // Dropped last: the connection becomes idle.
    _busy: Busy,
}

/// A piece and the maker of the next one, or the reason why there is no piece.
type Made = (Result<Option<Bytes>, Refusal>, Box<dyn Pieces>);

/// The rest of a body, whose next piece is being made.
struct Making {
    next: oneshot::Receiver<Made>,
    workers: Arc<Workers>,
    cancel: CancelOnDrop,
}

impl ReplyBody {
    /// Creates a body of these bytes followed by those of `rest`; `length` is their total number if it is known. Starts
    /// to make the next piece immediately.
    pub fn new(
        first: Bytes,
        length: Option<u64>,
        rest: Option<Box<dyn Pieces>>,
        workers: &Arc<Workers>,
        cancel: CancelOnDrop,
        counts: &Arc<Counts>,
        busy: Busy,
    ) -> Self {
        let making =
            rest.map(|rest| Making { next: make(rest, workers, &cancel), workers: Arc::clone(workers), cancel });
        let left = if making.is_some() { length } else { Some(first.len() as u64) };
        let first = if first.is_empty() { None } else { Some(first) };
        ReplyBody { first, left, making, counts: Arc::clone(counts), _busy: busy }
    }

    fn give(&mut self, bytes: Bytes) -> Poll<Option<Result<Frame<Bytes>, Refusal>>> {
        self.counts.sent(bytes.len());
        self.left = self.left.map(|left| left.saturating_sub(bytes.len() as u64));
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }
}

fn make(mut pieces: Box<dyn Pieces>, workers: &Workers, cancel: &CancelOnDrop) -> oneshot::Receiver<Made> {
    workers.run(cancel.0.clone(), move || (pieces.next(), pieces))
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Refusal;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Refusal>>> {
        if let Some(first) = self.first.take() {
            return self.give(first);
        }
        let Some(making) = &mut self.making else { return Poll::Ready(None) };
        let made = ready!(Pin::new(&mut making.next).poll(context));
        match made {
            Ok((Ok(Some(piece)), pieces)) => {
                making.next = make(pieces, &making.workers, &making.cancel);
                self.give(piece)
            }
            Ok((Ok(None), _)) => {
                self.making = None;
                Poll::Ready(None)
            }
            Ok((Err(refusal), _)) => {
                self.making = None;
                Poll::Ready(Some(Err(refusal)))
            }
            // The work panicked, and the log has the message.
            Err(_) => {
                self.making = None;
                Poll::Ready(Some(Err(Refusal::Failed("a reply was not made".to_owned()))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && (self.making.is_none() || self.left == Some(0))
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
