//! The tree over HTTP/1.1 and read-only WebDAV, for programs without FUSE. It knows no arrays, only the interface of
//! [`tilefs_tree`].
//!
//! * [`HttpServer`]: listens, and answers until it is stopped
//! * [`ServeOptions`], [`WithoutToken`]: the address, who may read, and prefetching
//!
//! The path of a request:
//!
//! 1. `listener.rs` accepts connections, and `connection/connections.rs` bounds their number: one that keeps the server
//!    waiting makes room for a new one.
//! 2. `exchange.rs` takes a request from the HTTP library, checks with `http/access.rs` whether it may read (for
//!    which `connection/owner.rs` finds its user), and hands it
//!    to a thread of `connection/workers.rs`, because reading an array blocks. It ends requests that take long if there
//!    are many.
//! 3. `answer.rs` decides the reply (`message.rs`): a file (`files.rs`), or in `folder/` a listing (`listing.rs`, `page.rs`),
//!    properties (`dav.rs`) or the page for browsers (`application.rs`). `site.rs` finds the nodes.
//! 4. `connection/body.rs` sends the reply piece by piece. A worker makes the next piece while the one before is being sent, so a
//!    slow client occupies no thread.
//!
//! A request is cancelled when its client is gone: `connection/peer.rs` finds that out while a piece is being made, and the HTTP
//! library when it sends one. Dropping the reply cancels its token.

mod answer;
mod coding;
mod connection;
mod exchange;
mod files;
mod folder;
mod http;
mod listener;
mod message;
mod refresh;
mod served_file;
mod server;
mod site;

pub use http::access::WithoutToken;
pub use server::{HttpServer, ServeError, ServeOptions, is_loopback};
