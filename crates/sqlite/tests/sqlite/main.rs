//! Tests of the store, in one program.

mod conformance;
mod files;
mod folder;
#[cfg(unix)]
mod processes;
