//! The store.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use playhouse::durable::{
    Changed, Ledger, LedgerWatch, Saved, Store, StoreError, check_key, check_revision, check_state,
};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::error::{OpenError, store_error};
use crate::watch;

/// The number in a database's header that says whose it is: "PlHs" in ASCII.
const APPLICATION_ID: i64 = 0x506c_4873;

/// The number of the format, which the header has as `user_version`.
const FORMAT: i64 = 1;

/// The longest wait for another connection that writes.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(5);

/// One row for each state. The keys are blobs, because these are ordered by their bytes. `last` is the last revision
/// that was given to any key, so that a state that is created after a removal has a higher one.
const TABLES: &str = "
    CREATE TABLE state (key BLOB PRIMARY KEY, revision INTEGER NOT NULL, bytes BLOB NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE revision (last INTEGER NOT NULL) STRICT;
    INSERT INTO revision VALUES (0);
";

/// A store of states in an SQLite database, which several threads and several processes of one machine may use at one
/// time. Clones are handles to the same connection.
///
/// A save is durable when it returns: the database has a write-ahead log and `synchronous = FULL`. Its cost is mostly
/// that of one `fsync`. Reads see the latest save of any process, and do not wait for writers. A write waits at most 5 s
/// for the writes of other connections, and fails with [`StoreError::Io`] then.
///
/// # The file
/// The path is on a local disk, because a write-ahead log needs memory that all processes share: network file systems
/// are not supported. Beside the file `states.db`, SQLite keeps `states.db-wal` and `states.db-shm`. A copy of the file
/// alone is complete only if no process has it open. The last process that closes it removes the two others.
///
/// # As a ledger
/// A [watch](Ledger::watch) asks SQLite every 50 ms, on a thread of its own, whether any connection has committed. Its
/// calls come for the changes of all keys.
///
/// # Examples
///
/// ```
/// use playhouse::durable::{Durable, Store};
/// use playhouse::prelude::*;
/// use playhouse::resource::ResourcePool;
/// use playhouse_sqlite::SqliteStore;
///
/// # let path = std::env::temp_dir().join(format!("playhouse-doc-{}.db", std::process::id()));
/// let system = System::start()?;
/// let pool = ResourcePool::start(&system, 2, 100)?;
/// let store = SqliteStore::open(&path)?;
///
/// let mut visits = Durable::open(&pool, store.clone(), "visits", 0_u64).wait()?;
/// visits.update(|visits| *visits += 1).wait()?;
/// assert_eq!(store.keys("")?, ["visits"]);
/// # system.shutdown()?;
/// # drop((visits, store));
/// # for end in ["", "-wal", "-shm"] { std::fs::remove_file(format!("{}{end}", path.display())).ok(); }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct SqliteStore {
    path: Arc<Path>,
    connection: Arc<Mutex<Connection>>,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.path).finish()
    }
}

impl SqliteStore {
    /// Opens the database at `path`, and creates it if there is none. The folder must exist.
    ///
    /// # Errors
    /// [`OpenError`]: the file cannot be opened, or is a database of another program or of another version.
    pub fn open(path: impl AsRef<Path>) -> Result<SqliteStore, OpenError> {
        let path: Arc<Path> = path.as_ref().into();
        let connection = open(&path)?;
        Ok(SqliteStore { path, connection: Arc::new(Mutex::new(connection)) })
    }

    /// Returns the path of the database.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A panic during an operation rolls its transaction back.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `write` within a transaction that no other writer is in, if `key` has the revision `expected`.
    fn write<R>(
        &self,
        key: &str,
        expected: u64,
        write: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<R>,
    ) -> Result<R, StoreError> {
        let failed = |error| store_error(key, error);
        let mut connection = self.connection();
        // Dropping the transaction rolls it back.
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let found = transaction
            .prepare_cached("SELECT revision FROM state WHERE key = ?")
            .and_then(|mut found| found.query_row([key.as_bytes()], |row| row.get(0)).optional())
            .map_err(failed)?;
        check_revision(key, expected, found.unwrap_or(0))?;
        let written = write(&transaction).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        Ok(written)
    }
}

impl Store for SqliteStore {
    fn load(&self, key: &str) -> Result<Option<Saved>, StoreError> {
        check_key(key)?;
        let connection = self.connection();
        let saved =
            connection.prepare_cached("SELECT revision, bytes FROM state WHERE key = ?").and_then(|mut saved| {
                let read = |row: &rusqlite::Row<'_>| Ok(Saved { revision: row.get(0)?, bytes: row.get(1)? });
                saved.query_row([key.as_bytes()], read).optional()
            });
        saved.map_err(|error| store_error(key, error))
    }

    fn save(&self, key: &str, expected: u64, bytes: &[u8]) -> Result<u64, StoreError> {
        check_key(key)?;
        check_state(key, bytes)?;
        self.write(key, expected, |transaction| {
            let mut next = transaction.prepare_cached("UPDATE revision SET last = last + 1 RETURNING last")?;
            let revision: u64 = next.query_row([], |row| row.get(0))?;
            let mut save = transaction.prepare_cached("INSERT OR REPLACE INTO state VALUES (?, ?, ?)")?;
            save.execute(params![key.as_bytes(), revision, bytes])?;
            Ok(revision)
        })
    }

    fn remove(&self, key: &str, expected: u64) -> Result<(), StoreError> {
        check_key(key)?;
        self.write(key, expected, |transaction| {
            transaction.prepare_cached("DELETE FROM state WHERE key = ?")?.execute([key.as_bytes()]).map(drop)
        })
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let connection = self.connection();
        let listed = || {
            let mut keys = connection
                .prepare_cached("SELECT key FROM state WHERE key >= ?1 AND (?2 IS NULL OR key < ?2) ORDER BY key")?;
            let keys = keys.query_map(params![prefix.as_bytes(), behind(prefix)], |row| row.get::<_, Vec<u8>>(0))?;
            keys.collect::<rusqlite::Result<Vec<_>>>()
        };
        let keys = listed().map_err(|error| store_error(prefix, error))?;
        let text = |key: Vec<u8>| {
            String::from_utf8(key).map_err(|error| StoreError::Damaged {
                key: prefix.to_owned(),
                what: format!("the key \"{}\" is no text", error.as_bytes().escape_ascii()),
            })
        };
        keys.into_iter().map(text).collect()
    }
}

impl Ledger for SqliteStore {
    fn watch(&self, prefix: &str, changed: Changed) -> Result<LedgerWatch, StoreError> {
        let connection = open(&self.path)
            .map_err(|error| StoreError::Io { key: prefix.to_owned(), error: std::io::Error::other(error) })?;
        watch::begin(connection, changed).map_err(|error| StoreError::Io { key: prefix.to_owned(), error })
    }
}

/// Returns the first text behind all that begin with `prefix`, in the order of bytes. Returns `None` for the empty
/// prefix. A byte of UTF-8 is below 255.
fn behind(prefix: &str) -> Option<Vec<u8>> {
    let mut behind = prefix.as_bytes().to_vec();
    *behind.last_mut()? += 1;
    Some(behind)
}

/// Opens a connection to the database, and creates it if there is none.
fn open(path: &Path) -> Result<Connection, OpenError> {
    let failed = |error| OpenError::Sqlite { path: path.to_owned(), error };
    let mut connection = Connection::open(path).map_err(failed)?;
    connection.busy_timeout(LOCK_WAIT_MAX).map_err(failed)?;
    if !is_ours(&connection, path)? {
        // Several processes may create the database at one time.
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive).map_err(failed)?;
        if !is_ours(&transaction, path)? {
            create(&transaction).map_err(failed)?;
        }
        transaction.commit().map_err(failed)?;
    }
    connection.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
    Ok(connection)
}

/// Returns whether the database was created by this crate. Returns false if it is new.
fn is_ours(connection: &Connection, path: &Path) -> Result<bool, OpenError> {
    let failed = |error| OpenError::Sqlite { path: path.to_owned(), error };
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(failed);
    let path = || -> PathBuf { path.to_owned() };
    match (number("application_id")?, number("user_version")?) {
        (APPLICATION_ID, FORMAT) => Ok(true),
        (APPLICATION_ID, found) => Err(OpenError::Format { path: path(), found, known: FORMAT }),
        (0, 0) => {
            let tables = "SELECT EXISTS (SELECT 1 FROM sqlite_schema)";
            let is_used = connection.query_row(tables, [], |row| row.get(0)).map_err(failed)?;
            if is_used { Err(OpenError::Foreign { path: path() }) } else { Ok(false) }
        }
        _ => Err(OpenError::Foreign { path: path() }),
    }
}

fn create(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch(TABLES)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", FORMAT)
}
