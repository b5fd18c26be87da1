//! Limits the number of open connections. If it is exceeded, the connection that has been idle for longest is closed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Limits the open connections. Memory for each: that of its reply (`body.rs`), and some 20 KiB.
pub struct Connections {
    most: usize,
    permits: Arc<Semaphore>,
    idle: Mutex<Idle>,
}

/// The connections without a request, in the order in which they became idle.
#[derive(Default)]
struct Idle {
    by_age: BTreeMap<u64, Arc<Notify>>,
    next: u64,
    /// Whether connections close as soon as they are idle.
    are_closing: bool,
}

/// An open connection, until dropped. It is idle at first.
pub struct Connection {
    connections: Arc<Connections>,
    /// Notified when it should close.
    close: Arc<Notify>,
    /// Its place among the idle ones.
    place: Mutex<Option<u64>>,
    had_requests: AtomicBool,
    _permit: OwnedSemaphorePermit,
}

/// A request of a connection that is being answered, until dropped.
pub struct Busy(Arc<Connection>);

impl Connections {
    /// Allows `most` connections.
    pub fn new(most: usize) -> Arc<Self> {
        let most = most.clamp(1, u32::MAX as usize);
        Arc::new(Connections { most, permits: Arc::new(Semaphore::new(most)), idle: Mutex::default() })
    }

    /// Returns the number of open connections.
    pub fn count(&self) -> usize {
        self.most.saturating_sub(self.permits.available_permits())
    }

    /// Waits until there is room for another connection. If there is none, asks the one that has been idle for longest
    /// to close.
    pub async fn admit(self: &Arc<Self>) -> Option<Arc<Connection>> {
        let permit = match Arc::clone(&self.permits).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                let oldest = self.idle().by_age.pop_first();
                if let Some((_, close)) = oldest {
                    close.notify_one();
                }
                // The semaphore is never closed.
                Arc::clone(&self.permits).acquire_owned().await.ok()?
            }
        };
        let connection = Arc::new(Connection {
            connections: Arc::clone(self),
            close: Arc::default(),
            place: Mutex::default(),
            had_requests: AtomicBool::new(false),
            _permit: permit,
        });
        connection.rest();
        Some(connection)
    }

    /// Asks all connections to close as soon as they are idle.
    pub fn close_all(&self) {
        let mut idle = self.idle();
        idle.are_closing = true;
        idle.by_age.values().for_each(|close| close.notify_one());
    }

    /// Waits until no connection is open.
    pub async fn wait_for_end(&self) {
        // The number fits a u32 when it is set. The semaphore is never closed.
        let _ = self.permits.acquire_many(self.most as u32).await;
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Marks the connection as busy until the result is dropped.
    pub fn begin(self: &Arc<Self>) -> Busy {
        self.had_requests.store(true, Ordering::Relaxed);
        self.stir();
        Busy(Arc::clone(self))
    }

    /// Returns whether the connection has never had a request.
    pub fn is_fresh(&self) -> bool {
        !self.had_requests.load(Ordering::Relaxed)
    }

    /// Returns whether the connection has no request.
    pub fn is_idle(&self) -> bool {
        self.place().is_some()
    }

    /// Waits until the connection should close.
    pub async fn asked_to_close(&self) {
        self.close.notified().await;
    }

    /// Adds the connection to the idle ones, as the youngest.
    fn rest(&self) {
        let mut idle = self.connections.idle();
        let place = idle.next;
        idle.next += 1;
        idle.by_age.insert(place, Arc::clone(&self.close));
        if idle.are_closing {
            self.close.notify_one();
        }
        *self.place() = Some(place);
    }

    /// Removes the connection from the idle ones.
    fn stir(&self) {
        let mut idle = self.connections.idle();
        if let Some(place) = self.place().take() {
            idle.by_age.remove(&place);
        }
    }

    fn place(&self) -> MutexGuard<'_, Option<u64>> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.stir();
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

    #[test]
    fn the_longest_idle_one_makes_room() {
        let connections = Connections::new(3);
        let admitted: Vec<_> = (0..3).map(|_| now(connections.admit()).flatten().unwrap()).collect();
        // The first has been busy since, so the second has been idle for longest; the third is busy.
        drop(admitted[0].begin());
        let _busy = admitted[2].begin();
        assert_eq!(connections.count(), 3);
        let asked = || admitted.iter().map(|one| now(one.asked_to_close()).is_some()).collect::<Vec<_>>();
        assert!(now(connections.admit()).is_none(), "there is no room yet");
        assert_eq!(asked(), [false, true, false]);
        assert!(now(connections.admit()).is_none());
        assert_eq!(asked(), [true, false, false]);
        assert!(now(connections.admit()).is_none());
        assert_eq!(asked(), [false; 3], "a busy one is left alone");
        assert!(!admitted[2].is_fresh() && admitted[1].is_fresh());
        drop(admitted);
        assert_eq!(connections.count(), 1, "the busy one holds itself");
    }

    #[test]
    fn closed_connections_leave_nothing_behind() {
        let connections = Connections::new(2);
        for _ in 0..1000 {
            let connection = now(connections.admit()).flatten().unwrap();
            drop(connection.begin());
        }
        assert!(connections.idle().by_age.is_empty());
        assert!(now(connections.wait_for_end()).is_some());
        let open = now(connections.admit()).flatten().unwrap();
        assert!(now(connections.wait_for_end()).is_none());
        let busy = open.begin();
        connections.close_all();
        assert!(now(open.asked_to_close()).is_none());
        drop(busy);
        assert!(now(open.asked_to_close()).is_some());
    }
}
