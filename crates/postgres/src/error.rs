//! The error of a first connection, and the errors of PostgreSQL as those of a store.

use std::fmt;
use std::io;

use playhouse::durable::StoreError;
use tokio_postgres::error::SqlState;

/// The reason why a database could not be used. No state was changed.
///
/// # Examples
///
/// ```
/// use playhouse_postgres::{ConnectError, PostgresStore};
///
/// let error = PostgresStore::connect("port=http").unwrap_err();
/// assert!(matches!(error, ConnectError::Parameters { .. }));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// The text of the connection parameters has a fault.
    Parameters {
        /// The fault of the text. It names no password.
        why: String,
    },
    /// No server has accepted the connection, the server has refused to create the tables, or it has not answered in
    /// time.
    Io {
        /// The error of the connection.
        error: io::Error,
    },
    /// The server is older than PostgreSQL 13.
    Version {
        /// The version that the server reports.
        found: String,
    },
    /// The tables have a format that this version does not know.
    Format {
        /// The number of the found format.
        found: i32,
        /// The number of the format that this version reads and writes.
        known: i32,
    },
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Parameters { why } => write!(
                f,
                "the parameters of the connection to PostgreSQL are wrong: {why}: write for example \"host=db.example user=app dbname=app\""
            ),
            ConnectError::Io { error } => write!(f, "the PostgreSQL database cannot be used: {error}"),
            ConnectError::Version { found } => {
                write!(f, "the server runs PostgreSQL {found}: use PostgreSQL 13 or newer")
            }
            ConnectError::Format { found, known } => write!(
                f,
                "the tables have format {found}, and this version of playhouse-postgres knows format {known}: use the version that has written them"
            ),
        }
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ConnectError::Io { error } => Some(error),
            _ => None,
        }
    }
}

/// An error of a request.
pub(crate) enum RequestError {
    /// The server, or the connection to it, has failed.
    Postgres(tokio_postgres::Error),
    /// The server has not answered in time.
    TimedOut(&'static str),
    /// The server was found unfit for a store.
    Unfit(ConnectError),
    /// Other processes have changed the state again and again.
    Contended,
    /// The task of the request has panicked.
    Panicked,
}

impl From<tokio_postgres::Error> for RequestError {
    fn from(error: tokio_postgres::Error) -> RequestError {
        RequestError::Postgres(error)
    }
}

impl RequestError {
    /// Returns whether the server has rolled back the statement because of another one at the same time.
    pub(crate) fn is_rolled_back(&self) -> bool {
        let RequestError::Postgres(error) = self else { return false };
        matches!(error.code(), Some(&(SqlState::T_R_SERIALIZATION_FAILURE | SqlState::T_R_DEADLOCK_DETECTED)))
    }

    /// Returns the error as one of the system.
    pub(crate) fn into_io(self) -> io::Error {
        let error = match self {
            RequestError::Postgres(error) => error,
            RequestError::TimedOut(what) => return io::Error::new(io::ErrorKind::TimedOut, what),
            RequestError::Unfit(ConnectError::Io { error }) => return error,
            RequestError::Unfit(error) => return io::Error::other(error),
            RequestError::Contended => {
                return io::Error::new(
                    io::ErrorKind::WouldBlock,
                    "other processes have changed the state in each attempt",
                );
            }
            RequestError::Panicked => return io::Error::other("the task of the request has panicked"),
        };
        let kind = match error.code() {
            Some(&SqlState::DISK_FULL) => io::ErrorKind::StorageFull,
            Some(&SqlState::INSUFFICIENT_PRIVILEGE) => io::ErrorKind::PermissionDenied,
            Some(&(SqlState::QUERY_CANCELED | SqlState::LOCK_NOT_AVAILABLE)) => io::ErrorKind::TimedOut,
            Some(_) => io::ErrorKind::Other,
            None if error.is_closed() => io::ErrorKind::ConnectionReset,
            None => io::ErrorKind::Other,
        };
        io::Error::new(kind, with_causes(&error))
    }

    /// Returns the error as that of a first connection.
    pub(crate) fn into_connect(self) -> ConnectError {
        match self {
            RequestError::Unfit(error) => error,
            other => ConnectError::Io { error: other.into_io() },
        }
    }

    /// Returns the error as that of an operation on `key`.
    pub(crate) fn into_store(self, key: &str) -> StoreError {
        StoreError::Io { key: key.to_owned(), error: self.into_io() }
    }
}

/// Returns the texts of an error and of its causes. The text of the outermost one alone says little.
pub(crate) fn with_causes(error: &tokio_postgres::Error) -> String {
    if let Some(reported) = error.as_db_error() {
        return format!("the server reports {} (SQLSTATE {})", reported.message(), reported.code().code());
    }
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.ends_with(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}
