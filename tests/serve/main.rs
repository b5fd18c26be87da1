//! `tilefs serve`: what clients get over HTTP and WebDAV is what the tree has, and hostile clients get an answer or are
//! cut off, in bounded memory.
//!
//! Requests are written byte by byte, without a library that would refuse to send what a hostile client sends.

#![cfg(feature = "serve")]

mod access;
mod browser;
mod client;
mod crowds;
mod files;
mod gone;
mod hostile;
mod listings;
mod proxies;
mod refresh;
mod running;
mod slow;
mod tools;
mod users;
mod webdav;
