//! The store.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use playhouse::durable::{
    Changed, Ledger, LedgerWatch, Saved, Store, StoreError, check_key, check_revision, check_state,
};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::error::{OpenError, store_error};
use crate::open::{identity, open};
use crate::watch;

/// A store of states in an SQLite database, which several threads and several processes of one machine may use at one
/// time. Clones are handles to the same connection.
///
/// A save is durable when it returns: the database has a write-ahead log and `synchronous = FULL`. Its cost is mostly
/// that of one `fsync`. Loads see the latest save of any process, and do not wait for writers.
///
/// Writes wait for each other: first those through clones of one store, and then at most 5 s for those of other
/// connections. After that time a write fails with [`StoreError::Io`], whose kind is
/// [`WouldBlock`](std::io::ErrorKind::WouldBlock), and nothing has changed. A process that is stopped in the middle of a
/// save therefore makes the writes of all others fail until it goes on or ends.
///
/// # The file
/// The path is on a local disk, because a write-ahead log needs memory that all processes share: network file systems
/// are not supported. Beside the file `states.db`, SQLite keeps `states.db-wal` and `states.db-shm`, until the last
/// process has closed the database. The log grows while a process reads for long, and is cut to 16 MiB later.
///
/// While any process has the database open, no program may delete, rename, replace or link one of the 3 files, and no
/// process that has it open may read or copy them in another way: on Unix, that drops the locks of the process. For a
/// copy, use the command `VACUUM INTO` of the program `sqlite3`. A process that has opened the store must not fork and go on in both.
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
    shared: Arc<Shared>,
}

/// The connections of a store. No code of a user runs while one is locked.
struct Shared {
    path: Box<Path>,
    /// The bytes that tell the database from others.
    identity: Vec<u8>,
    reader: Mutex<Connection>,
    writer: Mutex<Connection>,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.shared.path).finish()
    }
}

impl SqliteStore {
    /// Opens the database at `path`, and creates it if there is none. The folder must exist.
    ///
    /// # Errors
    /// [`OpenError`]: the file cannot be opened, is read-only, or is a file of another program or of another version.
    pub fn open(path: impl AsRef<Path>) -> Result<SqliteStore, OpenError> {
        let path = path.as_ref();
        let absolute = std::path::absolute(path).map_err(|error| OpenError::Io { path: path.to_owned(), error })?;
        let failed = |error| OpenError::Sqlite { path: absolute.clone(), error };
        let (writer, reader) = (open(&absolute, true)?, open(&absolute, false)?);
        let (identity, other) = (identity(&writer).map_err(failed)?, identity(&reader).map_err(failed)?);
        if identity != other {
            let error = std::io::Error::other("the file was replaced while it was opened");
            return Err(OpenError::Io { path: absolute, error });
        }
        let (reader, writer) = (Mutex::new(reader), Mutex::new(writer));
        Ok(SqliteStore { shared: Arc::new(Shared { path: absolute.into(), identity, reader, writer }) })
    }

    /// Returns the absolute path of the database.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Calls `write` within a transaction that no other writer is in, if `key` has the revision `expected`.
    fn write<R>(
        &self,
        key: &str,
        expected: u64,
        write: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<R>,
    ) -> Result<R, StoreError> {
        let failed = |error| store_error(key, error);
        let mut connection = lock(&self.shared.writer);
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
        let connection = lock(&self.shared.reader);
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
            let mut save = transaction.prepare_cached(
                "INSERT INTO state (key, revision, bytes) VALUES (?1, ?2, ?3)
                 ON CONFLICT (key) DO UPDATE SET revision = ?2, bytes = ?3",
            )?;
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
        let connection = lock(&self.shared.reader);
        let listed = || {
            let mut keys =
                connection.prepare_cached("SELECT key FROM state WHERE key >= ? AND key < ? ORDER BY key")?;
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
        let failed = |error| StoreError::Io { key: prefix.to_owned(), error };
        let connection = open(&self.shared.path, false).map_err(|error| failed(std::io::Error::other(error)))?;
        if identity(&connection).map_err(|error| store_error(prefix, error))? != self.shared.identity {
            return Err(failed(std::io::Error::other("the file of the database was replaced after it was opened")));
        }
        watch::begin(connection, changed).map_err(failed)
    }
}

fn lock(connection: &Mutex<Connection>) -> MutexGuard<'_, Connection> {
    // A transaction that is dropped, also by a panic, is rolled back.
    connection.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the first bytes behind all texts that begin with `prefix`. A byte of UTF-8 is below 255.
fn behind(prefix: &str) -> Vec<u8> {
    let mut behind = prefix.as_bytes().to_vec();
    match behind.last_mut() {
        Some(last) => *last += 1,
        None => behind.push(0xff),
    }
    behind
}
