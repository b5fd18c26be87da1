//! Connections and the work for their requests: how many there are, whether the client is still there, threads, memory,
//! and the bodies of replies.

pub mod body;
pub mod buffers;
pub mod connections;
pub mod counts;
pub mod owner;
pub mod peer;
pub mod timed_stream;
pub mod workers;
