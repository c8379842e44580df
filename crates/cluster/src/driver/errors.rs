//! The errors of the driver.

use std::fmt;
use std::io;

use playhouse_actor::SpawnError;
use playhouse_theater::PublishError;

use crate::membership::ConfigError;

/// The reason why a theater cannot join a cluster.
///
/// # Examples
///
/// ```
/// use playhouse_cluster::{Cluster, ClusterOptions, JoinError};
/// use playhouse_theater::Theater;
/// use playhouse_toolbox::durable::MemoryStore;
///
/// let theater = Theater::builder().start()?;
/// match Cluster::join(&theater, MemoryStore::new(), ClusterOptions::new()) {
///     Err(JoinError::NoAddress) => println!("the theater listens nowhere"),
///     other => panic!("{other:?}"),
/// }
/// # theater.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum JoinError {
    /// The theater listens nowhere, and other members cannot reach it.
    NoAddress,
    /// The options are not possible.
    Options(ConfigError),
    /// The theater is a member already.
    Member(PublishError),
    /// The threads for the ledger could not be started.
    Threads(io::Error),
    /// The actor of the member could not be started.
    Actor(SpawnError),
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JoinError::NoAddress => {
                f.write_str("a theater that listens nowhere cannot join a cluster: set its address with `listen`")
            }
            JoinError::Options(error) => error.fmt(f),
            JoinError::Member(error) => write!(f, "the theater is a member already: {error}"),
            JoinError::Threads(error) => write!(f, "the threads for the ledger could not be started: {error}"),
            JoinError::Actor(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for JoinError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            JoinError::NoAddress => None,
            JoinError::Options(error) => Some(error),
            JoinError::Member(error) => Some(error),
            JoinError::Threads(error) => Some(error),
            JoinError::Actor(error) => Some(error),
        }
    }
}
