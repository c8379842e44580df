//! Tests of the store on a real server, in one program.

mod conformance;
mod connections;
mod contention;
mod encryption;
mod server;
