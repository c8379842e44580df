//! Tests of the store on real members, in one program.

mod conformance;
mod members;
mod server;
mod watches;
