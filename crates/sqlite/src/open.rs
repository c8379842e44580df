//! Connections: how a database is opened, recognised and created.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use crate::error::OpenError;

/// The longest wait for another connection that writes.
pub(crate) const LOCK_WAIT_MAX: Duration = Duration::from_secs(5);

/// The application id in the header of the databases of this crate: "PlHs" in ASCII.
const APPLICATION_ID: i64 = 0x506c_4873;

/// The number of the format, which the header has as `user_version`.
const FORMAT: i64 = 1;

/// The size of a database's header. A shorter file is no database, and may be text.
const HEADER_BYTES: u64 = 100;

/// A write-ahead log is cut to this size when it starts anew.
const LOG_BYTES: i64 = 16 << 20;

/// One row for each state. The keys are blobs, because these are ordered by their bytes. They have an index of their own,
/// because the search in an index reads no states. `last` is the last revision that was given to any key, so that a
/// state that is created after a removal has a higher one. `database` tells this database from others.
const TABLES: &str = "
    CREATE TABLE state (
        id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, revision INTEGER NOT NULL, bytes BLOB NOT NULL
    ) STRICT;
    CREATE TABLE revision (last INTEGER NOT NULL, database BLOB NOT NULL) STRICT;
    INSERT INTO revision VALUES (0, randomblob(16));
";

/// Opens a connection to the database at an absolute path, and creates the database if there is none and `creates`.
pub(crate) fn open(path: &Path, creates: bool) -> Result<Connection, OpenError> {
    let failed = |error| OpenError::Sqlite { path: path.to_owned(), error };
    if std::fs::metadata(path).is_ok_and(|found| (1..HEADER_BYTES).contains(&found.len())) {
        return Err(OpenError::Foreign { path: path.to_owned() });
    }
    // Without `SQLITE_OPEN_URI`: a path is a path.
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    flags.set(OpenFlags::SQLITE_OPEN_CREATE, creates);
    let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(LOCK_WAIT_MAX).map_err(failed)?;
    if connection.is_readonly("main").map_err(failed)? {
        let error = io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only");
        return Err(OpenError::Io { path: path.to_owned(), error });
    }
    let is_new = {
        // One transaction, because another process may create the database at this time.
        let reads = connection.transaction().map_err(failed)?;
        !is_ours(&reads, path)?
    };
    if is_new {
        let creation = connection.transaction_with_behavior(TransactionBehavior::Exclusive).map_err(failed)?;
        if !is_ours(&creation, path)? {
            if !creates {
                return Err(OpenError::Foreign { path: path.to_owned() });
            }
            create(&creation).map_err(failed)?;
        }
        creation.commit().map_err(failed)?;
    }
    write_ahead(&connection).map_err(failed)?;
    for (pragma, value) in
        [("synchronous", 2), ("fullfsync", 1), ("checkpoint_fullfsync", 1), ("journal_size_limit", LOG_BYTES)]
    {
        connection.pragma_update(None, pragma, value).map_err(failed)?;
    }
    // Syncs what a killed process has written to the log and not synced, because readers see it from now on.
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).map_err(failed)?;
    Ok(connection)
}

/// Changes to a write-ahead log. SQLite does not wait for others where a reader becomes a writer, as here.
fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let deadline = Instant::now() + LOCK_WAIT_MAX;
    loop {
        let mode = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match mode {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(_) => {
                return Err(rusqlite::Error::InvalidParameterName(
                    "the file system takes no write-ahead log".to_owned(),
                ));
            }
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(error),
        }
    }
}

/// Returns whether the database was created by this crate. Returns false if it is new.
fn is_ours(transaction: &Transaction<'_>, path: &Path) -> Result<bool, OpenError> {
    let failed = |error| OpenError::Sqlite { path: path.to_owned(), error };
    let number = |name: &str| transaction.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(failed);
    match (number("application_id")?, number("user_version")?) {
        (APPLICATION_ID, FORMAT) => Ok(true),
        (APPLICATION_ID, found) => Err(OpenError::Format { path: path.to_owned(), found, known: FORMAT }),
        (0, 0) => {
            let tables = "SELECT EXISTS (SELECT 1 FROM sqlite_schema)";
            let is_used = transaction.query_row(tables, [], |row| row.get(0)).map_err(failed)?;
            if is_used { Err(OpenError::Foreign { path: path.to_owned() }) } else { Ok(false) }
        }
        _ => Err(OpenError::Foreign { path: path.to_owned() }),
    }
}

fn create(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch(TABLES)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", FORMAT)
}

/// Returns the bytes that tell this database from others.
pub(crate) fn identity(connection: &Connection) -> rusqlite::Result<Vec<u8>> {
    connection.query_row("SELECT database FROM revision", [], |row| row.get(0))
}
