//! The bodies of replies, made piece by piece on a worker.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tilefs_threads::cancellation::Token;
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep, timeout};

use super::connections::Busy;
use super::counts::Counts;
use super::peer::{ClientState, LOOK, Peer};
use super::workers::Workers;
use crate::serve::http::refusal::Refusal;

/// How long a request waits while too many others are being answered.
const ROOM: Duration = Duration::from_secs(2);

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

/// A request whose reply is not complete. Dropping it cancels the work for it.
pub struct Ongoing {
    pub cancel: CancelOnDrop,
    pub peer: Arc<Peer>,
    /// How long a client that sends nothing more may be without a byte of a reply that has begun.
    patience: Duration,
    // Dropped last: the connection waits for a request again.
    busy: Option<Busy>,
}

impl Ongoing {
    pub fn new(peer: Arc<Peer>, patience: Duration) -> Self {
        Ongoing { cancel: CancelOnDrop(Token::new()), peer, patience, busy: None }
    }

    /// Counts the connection among the busy ones, see [`Connection::begin`](super::connections::Connection::begin).
    /// Waits for room; returns whether there was any in time.
    pub async fn begin(&mut self, is_exempt: bool) -> bool {
        let (connection, start) = (Arc::clone(&self.peer.connection), Instant::now());
        loop {
            self.busy = connection.begin(is_exempt);
            if self.busy.is_some() || start.elapsed() >= ROOM {
                return self.busy.is_some();
            }
            // Meanwhile, a client may have taken nothing for so long that it makes room.
            let _ = timeout(LOOK, connection.room()).await;
        }
    }

    /// Returns whether the client does not wait for the next piece of its reply, which has been made for this long.
    fn is_deserted(&self, made_for: Duration) -> bool {
        match self.peer.presence() {
            ClientState::There => false,
            ClientState::Silent => made_for >= self.patience,
            ClientState::Gone => true,
        }
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
    ongoing: Ongoing,
}

/// A piece and the maker of the next one, or the reason why there is no piece.
type Made = (Result<Option<Bytes>, Refusal>, Box<dyn Pieces>);

/// The rest of a body, whose next piece is being made.
struct Making {
    next: oneshot::Receiver<Made>,
    workers: Arc<Workers>,
    /// Since when the body waits for the piece, and when to look at the client next.
    wait: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl ReplyBody {
    /// Creates a body of these bytes followed by those of `rest`; `length` is their total number if it is known. Starts
    /// to make the next piece immediately.
    pub fn new(
        first: Bytes,
        length: Option<u64>,
        rest: Option<Box<dyn Pieces>>,
        workers: &Arc<Workers>,
        counts: &Arc<Counts>,
        ongoing: Ongoing,
    ) -> Self {
        let making = rest.map(|rest| Making {
            next: make(rest, workers, &ongoing.cancel),
            workers: Arc::clone(workers),
            wait: None,
        });
        let left = if making.is_some() { length } else { Some(first.len() as u64) };
        let first = if first.is_empty() { None } else { Some(first) };
        ReplyBody { first, left, making, counts: Arc::clone(counts), ongoing }
    }

    /// Looks at the client from time to time while a piece is being made. Returns whether it is gone.
    fn is_deserted(&mut self, context: &mut Context<'_>) -> bool {
        let Some(making) = &mut self.making else { return false };
        let (since, look) = making.wait.get_or_insert_with(|| (Instant::now(), Box::pin(sleep(LOOK))));
        while look.as_mut().poll(context).is_ready() {
            if self.ongoing.is_deserted(since.elapsed()) {
                return true;
            }
            look.as_mut().reset(Instant::now() + LOOK);
        }
        false
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

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Refusal>>> {
        let this = self.get_mut();
        if let Some(first) = this.first.take() {
            return this.give(first);
        }
        let Some(making) = &mut this.making else { return Poll::Ready(None) };
        let Poll::Ready(made) = Pin::new(&mut making.next).poll(context) else {
            if this.is_deserted(context) {
                this.making = None;
                return Poll::Ready(Some(Err(Refusal::Cancelled)));
            }
            return Poll::Pending;
        };
        match made {
            Ok((Ok(Some(piece)), pieces)) => {
                making.next = make(pieces, &making.workers, &this.ongoing.cancel);
                making.wait = None;
                this.give(piece)
            }
            Ok((Ok(None), _)) => {
                this.making = None;
                Poll::Ready(None)
            }
            Ok((Err(refusal), _)) => {
                this.making = None;
                Poll::Ready(Some(Err(refusal)))
            }
            // The work panicked, and the log has the message.
            Err(_) => {
                this.making = None;
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
