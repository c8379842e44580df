//! The patterns, one file each: the size of a run, and the three implementations.
//!
//! The programs on actors and tasks are written as a user writes them. Each node of a pattern does the work with each message that counts
//! as an operation.

pub(crate) mod bursty;
pub(crate) mod clients;
pub(crate) mod gossip;
pub(crate) mod independent;
pub(crate) mod pipeline;
pub(crate) mod scatter;
pub(crate) mod skewed;
pub(crate) mod tree;

use playhouse::prelude::*;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::harness::outcome::Failure;

/// Returns options for an actor that may be on any worker.
fn spread() -> SpawnOptions {
    SpawnOptions::new().placement(Placement::Spread)
}

/// Returns the answer to an ask after the measured section.
fn answer<T>(answer: Result<T, AskError>) -> Result<T, Failure> {
    answer.map_err(|error| Failure::new(format!("no answer after the end: {error}")))
}

/// Waits for tasks to end, and returns their results.
fn results<T>(runtime: &Runtime, tasks: impl IntoIterator<Item = JoinHandle<T>>) -> Result<Vec<T>, Failure> {
    runtime.block_on(async {
        let mut results = Vec::new();
        for task in tasks {
            results.push(task.await.map_err(|error| Failure::new(format!("a task has no result: {error}")))?);
        }
        Ok(results)
    })
}
