//! Limits the number of open connections, and of busy connections, whose requests are being answered. A connection
//! beyond a limit makes the server close the connection whose client has kept the server waiting for longest.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// One in this many connections is reserved for clients that have not sent a whole request yet.
const RESERVED: usize = 16;

/// How long a client must have taken nothing of its reply before it may be cut off in favour of another client.
const STALLED: Duration = Duration::from_secs(1);

/// The limits of open connections. Memory per connection: that of its reply (`body.rs`), and some 20 KiB.
pub struct Connections {
    most: usize,
    /// Maximum number of busy connections. All other connections wait for a request and can be closed, so there is
    /// always room for a new connection.
    most_busy: usize,
    permits: Arc<Semaphore>,
    state: Mutex<ConnectionsState>,
}

#[derive(Default)]
struct ConnectionsState {
    /// The connections without a whole request, in the order in which they began to wait for a request.
    waiting: BTreeMap<u64, Arc<LimitedConnection>>,
    /// The busy connections whose clients take nothing of their replies, and since when; longest stalled first.
    stalled: BTreeMap<u64, (Instant, Arc<LimitedConnection>)>,
    /// Number of busy connections, including the stalled ones.
    busy: usize,
    next: u64,
    /// Whether connections close as soon as they wait for a request.
    are_closing: bool,
    /// Notified when a busy connection has become free.
    room: Arc<Notify>,
}

/// The state of a connection that the limits read.
#[derive(Default)]
struct LimitedConnection {
    /// Notified when the connection should close.
    close: Notify,
    /// Changed only while the state of all connections is locked.
    place: Mutex<CountedAs>,
}

/// The limit under which a connection counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum CountedAs {
    #[default]
    Nowhere,
    /// The connection is among those without a whole request, under this number.
    Waiting(u64),
    /// The connection is busy.
    Busy,
    /// The connection is busy, and its client takes nothing; its number among the stalled connections.
    Stalled(u64),
    /// The connection has a request that does not count as busy, because the request is answered at once.
    Exempt,
    /// The connection is being cut off.
    Cut,
}

/// An open connection, until dropped. It waits for a request at first.
pub struct Connection {
    connections: Arc<Connections>,
    shared: Arc<LimitedConnection>,
    had_requests: AtomicBool,
    _permit: OwnedSemaphorePermit,
}

/// A whole request of a connection that is being answered, until dropped.
pub struct Busy(Arc<Connection>);

impl Connections {
    /// Allows `most` connections.
    pub fn new(most: usize) -> Arc<Self> {
        let most = most.clamp(1, u32::MAX as usize);
        let most_busy = most.saturating_sub((most / RESERVED).max(1)).max(1);
        Arc::new(Connections { most, most_busy, permits: Arc::new(Semaphore::new(most)), state: Mutex::default() })
    }

    /// Returns the number of open connections.
    pub fn count(&self) -> usize {
        self.most.saturating_sub(self.permits.available_permits())
    }

    /// Waits until there is room for another connection. If there is little room, asks the connection that has been
    /// without a whole request for longest to close. If there is no room and no such connection, cuts off the
    /// connection that has been stalled for longest.
    pub async fn admit(self: &Arc<Self>) -> Option<Arc<Connection>> {
        let permit = match Arc::clone(&self.permits).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                self.state().make_room();
                // The semaphore is never closed.
                Arc::clone(&self.permits).acquire_owned().await.ok()?
            }
        };
        if self.permits.available_permits() < self.most / RESERVED {
            // Make room now, so that the next connection need not wait.
            self.state().close_waiting();
        }
        let connection = Arc::new(Connection {
            connections: Arc::clone(self),
            shared: Arc::default(),
            had_requests: AtomicBool::new(false),
            _permit: permit,
        });
        connection.rest();
        Some(connection)
    }

    /// Asks all connections to close as soon as they wait for a request.
    pub fn close_all(&self) {
        let mut state = self.state();
        state.are_closing = true;
        state.waiting.values().for_each(|one| one.close.notify_one());
    }

    /// Waits until no connection is open.
    pub async fn wait_for_end(&self) {
        // The number fits a u32 when it is set. The semaphore is never closed.
        let _ = self.permits.acquire_many(self.most as u32).await;
    }

    fn state(&self) -> MutexGuard<'_, ConnectionsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionsState {
    /// Makes room for a connection, if one can be closed.
    fn make_room(&mut self) {
        if !self.close_waiting() {
            self.cut_stalled();
        }
    }

    /// Asks the connection that has been without a whole request for longest to close. Returns whether it exists.
    fn close_waiting(&mut self) -> bool {
        let Some((_, longest)) = self.waiting.pop_first() else { return false };
        // The connection still waits for a request, and may get a request before it closes.
        *longest.place() = CountedAs::Nowhere;
        longest.close.notify_one();
        true
    }

    /// Cuts off the connection that has been stalled for longest, if for at least [`STALLED`]. Returns whether it did.
    fn cut_stalled(&mut self) -> bool {
        let has_stalled = self.stalled.first_key_value().is_some_and(|(_, (since, _))| since.elapsed() >= STALLED);
        let longest = if has_stalled { self.stalled.pop_first() } else { None };
        let Some((_, (_, longest))) = longest else { return false };
        *longest.place() = CountedAs::Cut;
        self.busy = self.busy.saturating_sub(1);
        longest.close.notify_one();
        true
    }

    /// Takes a connection out of its place, and returns the place.
    fn remove(&mut self, shared: &LimitedConnection) -> CountedAs {
        let place = std::mem::take(&mut *shared.place());
        match place {
            CountedAs::Waiting(number) => drop(self.waiting.remove(&number)),
            CountedAs::Stalled(number) => drop(self.stalled.remove(&number)),
            CountedAs::Nowhere | CountedAs::Busy | CountedAs::Exempt | CountedAs::Cut => {}
        }
        if matches!(place, CountedAs::Busy | CountedAs::Stalled(_)) {
            self.busy = self.busy.saturating_sub(1);
            self.room.notify_one();
        }
        place
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

impl LimitedConnection {
    fn place(&self) -> MutexGuard<'_, CountedAs> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Marks the connection as busy with a whole request until the result is dropped. If too many connections are busy,
    /// cuts off the longest stalled one, or returns `None` if none is. An exempt request does not count as busy.
    pub fn begin(self: &Arc<Self>, is_exempt: bool) -> Option<Busy> {
        let mut state = self.connections.state();
        if !is_exempt && state.busy >= self.connections.most_busy && !state.cut_stalled() {
            return None;
        }
        if state.remove(&self.shared) == CountedAs::Cut {
            *self.shared.place() = CountedAs::Cut;
            return None;
        }
        state.busy += usize::from(!is_exempt);
        *self.shared.place() = if is_exempt { CountedAs::Exempt } else { CountedAs::Busy };
        self.had_requests.store(true, Ordering::Relaxed);
        Some(Busy(Arc::clone(self)))
    }

    /// Waits until fewer connections are busy. May return earlier.
    pub async fn room(&self) {
        let room = Arc::clone(&self.connections.state().room);
        room.notified().await;
    }

    /// Notes that the client takes nothing of its reply.
    pub fn stall(&self) {
        let mut state = self.connections.state();
        let mut place = self.shared.place();
        if *place == CountedAs::Busy {
            let number = state.number();
            *place = CountedAs::Stalled(number);
            state.stalled.insert(number, (Instant::now(), Arc::clone(&self.shared)));
        }
    }

    /// Notes that the client has taken bytes again.
    pub fn go_on(&self) {
        let mut state = self.connections.state();
        let mut place = self.shared.place();
        if let CountedAs::Stalled(number) = *place {
            state.stalled.remove(&number);
            *place = CountedAs::Busy;
        }
    }

    /// Returns whether the connection has never had a whole request.
    pub fn is_fresh(&self) -> bool {
        !self.had_requests.load(Ordering::Relaxed)
    }

    /// Returns whether no request of the connection is being answered.
    pub fn is_waiting(&self) -> bool {
        matches!(*self.shared.place(), CountedAs::Waiting(_) | CountedAs::Nowhere)
    }

    /// Returns whether the connection is cut off in favour of another client.
    pub fn is_cut(&self) -> bool {
        *self.shared.place() == CountedAs::Cut
    }

    /// Waits until the connection should close.
    pub async fn asked_to_close(&self) {
        self.shared.close.notified().await;
    }

    /// Adds the connection to those without a request, as the youngest.
    fn rest(&self) {
        let mut state = self.connections.state();
        if state.remove(&self.shared) == CountedAs::Cut {
            *self.shared.place() = CountedAs::Cut;
            return;
        }
        let number = state.number();
        state.waiting.insert(number, Arc::clone(&self.shared));
        *self.shared.place() = CountedAs::Waiting(number);
        if state.are_closing {
            self.shared.close.notify_one();
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.connections.state().remove(&self.shared);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.rest();
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn now<T>(future: impl Future<Output = T>) -> Option<T> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => Some(done),
            Poll::Pending => None,
        }
    }

    fn admit(connections: &Arc<Connections>) -> Option<Arc<Connection>> {
        now(connections.admit()).flatten()
    }

    fn asked(connections: &[Arc<Connection>]) -> Vec<bool> {
        connections.iter().map(|one| now(one.asked_to_close()).is_some()).collect()
    }

    #[test]
    fn the_one_without_a_request_for_longest_makes_room() {
        let connections = Connections::new(3);
        let admitted: Vec<_> = (0..3).map(|_| admit(&connections).unwrap()).collect();
        // The first has had a request since, so the second has been without one for longest; the third has one.
        drop(admitted[0].begin(false));
        let busy = admitted[2].begin(false);
        assert_eq!(connections.count(), 3);
        assert!(admit(&connections).is_none(), "there is no room yet");
        assert_eq!(asked(&admitted), [false, true, false]);
        assert!(admit(&connections).is_none());
        assert_eq!(asked(&admitted), [true, false, false]);
        assert!(admit(&connections).is_none());
        assert_eq!(asked(&admitted), [false; 3], "a busy one is left alone");
        assert!(!admitted[2].is_fresh() && admitted[1].is_fresh());
        drop(admitted);
        assert_eq!(connections.count(), 1, "the busy one holds itself");
        drop(busy);
        assert_eq!(connections.count(), 0);
    }

    #[test]
    fn requests_never_take_the_last_connections() {
        let connections = Connections::new(64);
        let admitted: Vec<_> = (0..64).map(|_| admit(&connections).unwrap()).collect();
        assert_eq!(asked(&admitted).iter().filter(|asked| **asked).count(), 4, "the next four need not wait");
        let mut busy: Vec<_> = admitted.iter().filter_map(|one| one.begin(false)).collect();
        assert_eq!(busy.len(), 60, "one in {RESERVED} is reserved");
        assert!(admitted[63].begin(false).is_none() && admitted[63].is_fresh());
        assert!(admitted[63].begin(true).is_some(), "a request that is exempt begins nevertheless");
        // Those without a request are closed as before.
        assert!(admit(&connections).is_none());
        assert_eq!(asked(&admitted).iter().position(|asked| *asked), Some(60));
        assert!(now(admitted[63].room()).is_none());
        busy.pop();
        assert!(now(admitted[63].room()).is_some());
        assert!(admitted[63].begin(false).is_some());
        assert_eq!(connections.state().busy, 59);
    }

    #[test]
    fn the_client_that_has_taken_nothing_for_longest_makes_room_for_a_request() {
        let connections = Connections::new(3);
        let admitted: Vec<_> = (0..3).map(|_| admit(&connections).unwrap()).collect();
        let busy = [admitted[0].begin(false), admitted[1].begin(false)];
        admitted[1].stall();
        admitted[0].stall();
        admitted[2].stall();
        assert!(admitted[2].begin(false).is_none(), "they have stalled only now");
        let long_ago = Instant::now().checked_sub(2 * STALLED).unwrap();
        connections.state().stalled.values_mut().for_each(|(since, _)| *since = long_ago);
        let third = admitted[2].begin(false);
        assert!(third.is_some() && admitted[1].is_cut());
        assert_eq!(asked(&admitted), [false, true, false]);
        // One that goes on is not stalled.
        admitted[0].go_on();
        assert!(connections.state().stalled.is_empty());
        assert_eq!(connections.state().busy, 2);
        drop(busy);
        assert!(admitted[1].is_cut() && admitted[1].begin(true).is_none(), "it stays cut off");
        drop(third);
        let state = connections.state();
        assert_eq!((state.busy, state.waiting.len()), (0, 2));
    }

    #[test]
    fn closed_connections_leave_nothing_behind() {
        let connections = Connections::new(2);
        for number in 0..1000 {
            let connection = admit(&connections).unwrap();
            let busy = connection.begin(number % 3 == 0);
            connection.stall();
            if number % 2 == 0 {
                drop(busy);
            }
        }
        let state = connections.state();
        assert!(state.waiting.is_empty() && state.stalled.is_empty() && state.busy == 0);
        drop(state);
        assert!(now(connections.wait_for_end()).is_some());
        let open = admit(&connections).unwrap();
        assert!(now(connections.wait_for_end()).is_none());
        let busy = open.begin(false);
        connections.close_all();
        assert!(now(open.asked_to_close()).is_none());
        drop(busy);
        assert!(now(open.asked_to_close()).is_some());
    }
}
