//! Workloads that measure messages between the actors of one system.

#[cfg(feature = "whole")]
pub(crate) mod asks;
pub(crate) mod balance;
pub(crate) mod big;
pub(crate) mod chameneos;
pub(crate) mod count;
pub(crate) mod executor;
pub(crate) mod flood;
pub(crate) mod matrix;
pub(crate) mod pairs;
pub(crate) mod pingpong;
pub(crate) mod repeat;
pub(crate) mod rings;
pub(crate) mod send;
#[cfg(feature = "whole")]
pub(crate) mod web;
