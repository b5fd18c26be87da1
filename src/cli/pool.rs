//! The threads that decode: as many as were asked for, or as the system lets us have.

use std::sync::mpsc;
use std::thread;

use rayon::{ThreadBuilder, ThreadPoolBuilder};

use super::failure::Failure;
use tilefs::storage::make_room_for_files;

/// Starts the threads that decode. To be called once, before anything is read: a pool that starts by itself panics
/// where a limit of processes or of address space is met.
///
/// # Errors
/// Where `needed` says that threads of one's own are needed, and there can be none. Else the calling thread decodes.
pub fn start(wanted: usize, needed: bool) -> Result<(), Failure> {
    make_room_for_files();
    let mut waiting = Vec::with_capacity(wanted);
    for number in 0..wanted.max(1) {
        let (sender, receiver) = mpsc::channel::<ThreadBuilder>();
        let work = move || receiver.recv().into_iter().for_each(ThreadBuilder::run);
        match thread::Builder::new().name(format!("decode-{number}")).spawn(work) {
            Ok(_) => waiting.push(sender),
            Err(error) if waiting.is_empty() && needed => {
                return Err(Failure::failed(format!(
                    "cannot start a thread: {error}; raise the limits of processes (`ulimit -u`) and of address space \
                     (`ulimit -v`)"
                )));
            }
            Err(error) => {
                log::warn!("only {} of {wanted} threads that decode can be started: {error}", waiting.len());
                break;
            }
        }
    }
    let pool = match waiting.len() {
        0 => ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global(),
        threads => ThreadPoolBuilder::new()
            .num_threads(threads)
            .spawn_handler(|thread| match waiting.pop().map(|sender| sender.send(thread)) {
                Some(Ok(())) => Ok(()),
                _ => Err(std::io::Error::other("a thread has gone")),
            })
            .build_global(),
    };
    pool.map_err(|error| Failure::failed(format!("cannot start the threads that decode: {error}")))
}
