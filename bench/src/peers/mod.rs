//! Peers: the same benchmarks on other actor runtimes, and on Playhouse in a program of its own.

#[cfg(feature = "whole")]
pub mod peer;
pub mod self_peer;

#[cfg(feature = "whole")]
mod run;
