//! The error of a first connection, and the errors of requests.

use std::fmt;
use std::io;

use playhouse::durable::StoreError;

/// The reason why an etcd cluster could not be used. No state was changed.
///
/// # Examples
///
/// ```
/// use playhouse_etcd::{ConnectError, EtcdOptions, EtcdStore};
///
/// let error = EtcdStore::connect(&EtcdOptions::new(["etcd.example"])).unwrap_err();
/// assert!(matches!(error, ConnectError::Options { .. }));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// The options have a fault.
    Options {
        /// The fault of the options. It names no password.
        why: String,
    },
    /// No endpoint has answered as a member of an etcd cluster with a leader.
    Io {
        /// The error of the last endpoint.
        error: io::Error,
    },
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Options { why } => write!(f, "the options of the connection to etcd are wrong: {why}"),
            ConnectError::Io { error } => write!(f, "the etcd cluster cannot be used: {error}"),
        }
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ConnectError::Options { .. } => None,
            ConnectError::Io { error } => Some(error),
        }
    }
}

/// The parts of messages with which etcd refuses a token, or asks for one.
const REFUSED_TOKENS: [&str; 4] = [
    "invalid auth token",
    "auth token is not provided",
    "user name is empty",
    // The users or roles were changed after a signed token was given.
    "revision of auth store is old",
];

/// An error of a request.
pub(crate) struct RequestError {
    /// The error, with the endpoint.
    pub(crate) error: io::Error,
    /// Whether the request has not reached etcd, so that it has no effect.
    pub(crate) is_unsent: bool,
    /// Whether etcd has refused the token of the user.
    pub(crate) is_unauthenticated: bool,
}

impl RequestError {
    pub(crate) fn of(endpoint: &str, error: ureq::Error) -> RequestError {
        use ureq::{Error, Timeout};
        let is_unsent = match &error {
            Error::Io(error) => error.kind() == io::ErrorKind::ConnectionRefused,
            Error::Timeout(timeout) => matches!(timeout, Timeout::Resolve | Timeout::Connect),
            Error::HostNotFound | Error::ConnectionFailed | Error::Rustls(_) | Error::Tls(_) => true,
            _ => false,
        };
        let kind = match &error {
            Error::Io(error) => error.kind(),
            Error::Timeout(_) => io::ErrorKind::TimedOut,
            Error::HostNotFound => io::ErrorKind::NotFound,
            _ => io::ErrorKind::Other,
        };
        let error = io::Error::new(kind, format!("{endpoint}: {error}"));
        RequestError { error, is_unsent, is_unauthenticated: false }
    }

    /// The error of an answer that etcd does not give.
    pub(crate) fn unexpected(endpoint: &str, what: impl fmt::Display) -> RequestError {
        let text = format!("{endpoint}: the answer is not one of etcd's gateway for JSON: {what}");
        RequestError {
            error: io::Error::new(io::ErrorKind::InvalidData, text),
            is_unsent: false,
            is_unauthenticated: false,
        }
    }

    /// The error that etcd reports, with the status of HTTP.
    pub(crate) fn reported(endpoint: &str, status: u16, message: &str) -> RequestError {
        let kind = match message {
            _ if message.contains("database space exceeded") => io::ErrorKind::StorageFull,
            _ if message.contains("permission denied") => io::ErrorKind::PermissionDenied,
            _ if message.contains("timed out") => io::ErrorKind::TimedOut,
            _ => io::ErrorKind::Other,
        };
        RequestError {
            error: io::Error::new(kind, format!("{endpoint}: etcd reports {message:?} (HTTP {status})")),
            is_unsent: false,
            is_unauthenticated: REFUSED_TOKENS.iter().any(|refusal| message.contains(refusal)),
        }
    }

    pub(crate) fn into_store(self, key: &str) -> StoreError {
        StoreError::Io { key: key.to_owned(), error: self.error }
    }
}
