//! The error of an opening, and the errors of SQLite as those of a store.

use std::fmt;
use std::io;
use std::path::PathBuf;

use playhouse::durable::StoreError;
use rusqlite::ErrorCode;

/// The reason why a database could not be opened. No state was changed.
///
/// # Examples
///
/// ```
/// use playhouse_sqlite::{OpenError, SqliteStore};
///
/// let folder = std::env::temp_dir();
/// let error = SqliteStore::open(&folder).unwrap_err();
/// assert!(matches!(error, OpenError::Sqlite { .. }));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The path is empty, or the file is read-only or was replaced.
    Io {
        /// The given path.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// SQLite cannot open, create or lock the file.
    Sqlite {
        /// The path of the database.
        path: PathBuf,
        /// The error of SQLite.
        error: rusqlite::Error,
    },
    /// The file is no database, or one of another program.
    Foreign {
        /// The path of the database.
        path: PathBuf,
    },
    /// The database has a format that this version does not know.
    Format {
        /// The path of the database.
        path: PathBuf,
        /// The number of the found format.
        found: i64,
        /// The number of the format that this version reads and writes.
        known: i64,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Io { path, error } => write!(f, "{:?} cannot be opened as a database: {error}", path.display()),
            OpenError::Sqlite { path, error } => {
                write!(f, "{} cannot be opened as a database: {error}", path.display())
            }
            OpenError::Foreign { path } => write!(
                f,
                "{} is a file of another program: choose the path of a new file, or of a database that a `SqliteStore` has made",
                path.display()
            ),
            OpenError::Format { path, found, known } => write!(
                f,
                "{} has format {found}, and this version of playhouse-sqlite knows format {known}: open it with the version that has written it",
                path.display()
            ),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenError::Io { error, .. } => Some(error),
            OpenError::Sqlite { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// Returns the error of an operation on `key`.
pub(crate) fn store_error(key: &str, error: rusqlite::Error) -> StoreError {
    let key = key.to_owned();
    if let rusqlite::Error::QueryReturnedNoRows
    | rusqlite::Error::IntegralValueOutOfRange(..)
    | rusqlite::Error::FromSqlConversionFailure(..)
    | rusqlite::Error::InvalidColumnType(..) = error
    {
        return StoreError::Damaged { key, what: format!("SQLite reports: {error}") };
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Damaged { key, what: format!("SQLite reports: {error}") }
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StoreError::Io { key, error: io::Error::new(io::ErrorKind::WouldBlock, error) }
        }
        Some(ErrorCode::DiskFull) => StoreError::Io { key, error: io::Error::new(io::ErrorKind::StorageFull, error) },
        _ => StoreError::Io { key, error: io::Error::other(error) },
    }
}
