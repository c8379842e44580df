//! The store.

use std::fmt;
use std::future::Future;
use std::hash::BuildHasher;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use playhouse::durable::{
    Changed, Ledger, LedgerWatch, Saved, Store, StoreError, check_key, check_revision, check_state,
};
use tokio::task::AbortHandle;
use tokio::time::sleep;

use crate::connection::{Connector, REQUEST_TIME_MAX, Session, Slot};
use crate::engine::Engine;
use crate::error::{ConnectError, RequestError};
use crate::notify::{self, Unsent};
use crate::schema;
use crate::watch::{self, Listening};

/// The number of connections of a store. Each executes one statement at a time, and the statements of several commit
/// with one write of the server's log.
const CONNECTIONS: usize = 4;

/// The number of times that a statement is tried again because of others at the same time.
const ATTEMPTS: usize = 10;

/// A store of states in a PostgreSQL database, which any number of processes and machines may use at one time. Clones are
/// handles to the same connections.
///
/// A save is durable when it returns: it waits for the server's log, and for the synchronous replicas that the server is
/// configured with. Loads see the latest save of any process.
///
/// # Connections
/// A store has at most 4 connections, and each watch has 1. They are made when they are needed, and made again after
/// they have failed. All run on one thread of the store. A connection to one host may take 5 s, or the `connect_timeout`
/// of the parameters, and the same time again until it is ready. A statement on it may take 10 s, or the limit of [`PostgresStore::connect_within`]. After that time the
/// request fails with [`StoreError::Io`], whose kind is [`TimedOut`](std::io::ErrorKind::TimedOut).
///
/// A save or removal that fails with [`StoreError::Io`] may have taken effect. It may also take effect later, if the
/// server or the network was paused. The state must then still have the expected revision, or still be missing.
///
/// With several hosts in the parameters, the store uses the one that accepts writes. It never reads from a standby.
/// A proxy that pools connections, such as PgBouncer, is not supported: sessions have settings.
///
/// With `sslmode=require`, connections are encrypted, and the certificate of the server is verified for the name of its
/// host. The root certificates are those of the system, or those in the file that the variable `SSL_CERT_FILE` names.
/// With any other `sslmode`, connections are not encrypted.
///
/// # Tables
/// [`PostgresStore::connect`] creates the tables `playhouse_state` and `playhouse_format` and the sequence
/// `playhouse_revision` in the schema that is first in the `search_path`, if they are missing. The role needs the
/// privilege to create them, or to use them.
///
/// # As a ledger
/// Changes are told of by `NOTIFY`, at most every 20 ms for each store. A [watch](Ledger::watch) also asks once a second
/// whether any transaction has committed, also one on other tables, because the process that made a change may end before
/// it notifies.
///
/// # Examples
///
/// ```no_run
/// use playhouse::durable::{Durable, Store};
/// use playhouse::prelude::*;
/// use playhouse::resource::ResourcePool;
/// use playhouse_postgres::PostgresStore;
///
/// let system = System::start()?;
/// let pool = ResourcePool::start(&system, 2, 100)?;
/// let store = PostgresStore::connect("host=db.example user=app dbname=app sslmode=require")?;
///
/// let mut visits = Durable::open(&pool, store.clone(), "visits", 0_u64).wait()?;
/// visits.update(|visits| *visits += 1).wait()?;
/// assert_eq!(store.keys("")?, ["visits"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct PostgresStore {
    shared: Arc<Shared>,
    // Dropped last: its thread drops what the requests use.
    engine: Arc<Engine>,
}

/// The parts of a store that its requests use.
struct Shared {
    connector: Connector,
    slots: [Slot; CONNECTIONS],
    unsent: Unsent,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PostgresStore(..)")
    }
}

impl PostgresStore {
    /// Connects to a database, and creates the tables of the store if they are missing.
    ///
    /// The parameters are a [text of `libpq`](https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING),
    /// either `host=db.example user=app dbname=app` or `postgresql://app@db.example/app`. The host may be the folder of a
    /// Unix socket. The parameters that [`tokio_postgres::Config`] lists are supported. No parameter is read from the
    /// environment.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn connect(parameters: &str) -> Result<PostgresStore, ConnectError> {
        PostgresStore::connect_within(parameters, REQUEST_TIME_MAX)
    }

    /// Connects as [`connect`](PostgresStore::connect) does, with another longest time for each statement than 10 s. The
    /// server gives a statement up after four fifths of it.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn connect_within(parameters: &str, request_limit: Duration) -> Result<PostgresStore, ConnectError> {
        let connector = Connector::new(parameters, request_limit)?;
        let engine = Arc::new(Engine::start().map_err(|error| ConnectError::Io { error })?);
        let shared = Arc::new(Shared { connector, slots: Default::default(), unsent: Unsent::default() });
        let first = Arc::clone(&shared);
        let connected = engine.run(async move {
            let connection = first.connector.connect(drop).await?;
            first.connector.within(schema::create(&connection.client)).await?;
            first.slots[0].session(&first.connector).await.map(drop)
        });
        connected.unwrap_or(Err(RequestError::Panicked)).map_err(RequestError::into_connect)?;
        Ok(PostgresStore { shared, engine })
    }

    /// Executes a request on the connection for `key`, and again if the server has rolled it back because of others.
    fn request<T, R>(&self, key: &str, request: R) -> Result<T, StoreError>
    where
        T: Send + 'static,
        R: Fn(Arc<Session>) -> Request<T> + Send + Sync + 'static,
    {
        let shared = Arc::clone(&self.shared);
        let slot = slot_of(key);
        let outcome = self.engine.run(async move {
            for _ in 0..ATTEMPTS {
                match shared.attempt(slot, &request).await {
                    Err(error) if error.is_rolled_back() => {}
                    outcome => return outcome,
                }
            }
            Err(RequestError::Contended)
        });
        outcome.unwrap_or(Err(RequestError::Panicked)).map_err(|error| error.into_store(key))
    }

    /// Writes, until the outcome is certain: a new revision, or another revision in the store.
    fn write(&self, key: &str, expected: u64, bytes: Option<&[u8]>) -> Result<Option<u64>, StoreError> {
        let name = Arc::<[u8]>::from(key.as_bytes());
        let new = bytes.map(Arc::<[u8]>::from);
        for _ in 0..ATTEMPTS {
            let (name, new) = (Arc::clone(&name), new.clone());
            let written = self.request(key, move |session| {
                let (name, new) = (Arc::clone(&name), new.clone());
                Box::pin(async move { write(&session, &name, expected, new.as_deref()).await })
            })?;
            match written {
                Written::Revision(revision) => {
                    self.notify(key);
                    return Ok(Some(revision));
                }
                Written::Nothing { found } => {
                    check_revision(key, expected, found)?;
                    if expected == 0 && bytes.is_none() {
                        return Ok(None);
                    }
                    // Another process has changed the state between the statements: it had another revision before.
                }
            }
        }
        Err(RequestError::Contended.into_store(key))
    }

    /// Tells watches of a change, soon.
    fn notify(&self, key: &str) {
        if self.shared.unsent.add(key) {
            let shared = Arc::clone(&self.shared);
            self.engine.handle().spawn(async move {
                loop {
                    let keys = shared.unsent.take();
                    if keys.is_empty() {
                        return;
                    }
                    if let Ok(session) = shared.slots[0].session(&shared.connector).await {
                        let sent = notify::send(&session.connection.client, &session.statements, &keys);
                        let _watches_ask = tokio::time::timeout(shared.connector.request_limit, sent).await;
                    }
                    sleep(notify::INTERVAL).await;
                }
            });
        }
    }
}

/// A request in execution.
type Request<T> = Pin<Box<dyn Future<Output = Result<T, tokio_postgres::Error>> + Send>>;

impl Shared {
    async fn attempt<T>(&self, slot: usize, request: impl Fn(Arc<Session>) -> Request<T>) -> Result<T, RequestError> {
        let session = self.slots[slot].session(&self.connector).await?;
        let outcome = self.connector.within(request(Arc::clone(&session))).await;
        if matches!(outcome, Err(RequestError::TimedOut(_))) {
            self.slots[slot].close(&session).await;
        }
        outcome
    }
}

/// Returns the number of the connection for a key. The statements on one key take one connection, because they would
/// wait for each other on several.
fn slot_of(key: &str) -> usize {
    let hash = std::hash::BuildHasherDefault::<std::hash::DefaultHasher>::default().hash_one(key);
    (hash % CONNECTIONS as u64) as usize
}

/// The outcome of a write.
enum Written {
    /// The state has this revision, or had it when it was removed.
    Revision(u64),
    /// Nothing was changed, because the state had another revision. Then it has the revision `found`; 0 means none.
    Nothing { found: u64 },
}

/// Saves or removes a state.
async fn write(
    session: &Session,
    key: &[u8],
    expected: u64,
    bytes: Option<&[u8]>,
) -> Result<Written, tokio_postgres::Error> {
    let Session { connection, statements } = session;
    let client = &connection.client;
    // No state has a revision above the largest of PostgreSQL.
    let revision = i64::try_from(expected).unwrap_or(-1);
    let changed = match bytes {
        Some(bytes) if expected == 0 => client.query_opt(&statements.create, &[&key, &bytes]).await?,
        Some(bytes) => client.query_opt(&statements.replace, &[&key, &bytes, &revision]).await?,
        None if expected == 0 => None,
        None => client.query_opt(&statements.remove, &[&key, &revision]).await?,
    };
    if let Some(row) = changed {
        return Ok(Written::Revision(row.try_get::<_, i64>(0)? as u64));
    }
    let found = client.query_opt(&statements.revision, &[&key]).await?;
    Ok(Written::Nothing { found: found.map_or(Ok(0), |row| row.try_get::<_, i64>(0))? as u64 })
}

impl Store for PostgresStore {
    fn load(&self, key: &str) -> Result<Option<Saved>, StoreError> {
        check_key(key)?;
        let name = key.as_bytes().to_vec();
        self.request(key, move |session| {
            let name = name.clone();
            Box::pin(async move {
                let found = session.connection.client.query_opt(&session.statements.load, &[&name]).await?;
                let saved = |row: tokio_postgres::Row| {
                    Ok(Saved { revision: row.try_get::<_, i64>(0)? as u64, bytes: row.try_get(1)? })
                };
                found.map(saved).transpose()
            })
        })
    }

    fn save(&self, key: &str, expected: u64, bytes: &[u8]) -> Result<u64, StoreError> {
        check_key(key)?;
        check_state(key, bytes)?;
        let revision = self.write(key, expected, Some(bytes))?;
        Ok(revision.expect("a save that changes nothing has failed"))
    }

    fn remove(&self, key: &str, expected: u64) -> Result<(), StoreError> {
        check_key(key)?;
        self.write(key, expected, None).map(drop)
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let (from, to) = (prefix.as_bytes().to_vec(), behind(prefix));
        let rows = self.request(prefix, move |session| {
            let (from, to) = (from.clone(), to.clone());
            Box::pin(async move { session.connection.client.query(&session.statements.keys, &[&from, &to]).await })
        })?;
        let text = |row: tokio_postgres::Row| {
            let damaged = |what| StoreError::Damaged { key: prefix.to_owned(), what };
            let key: &[u8] = row.try_get(0).map_err(|error| damaged(error.to_string()))?;
            let text = str::from_utf8(key);
            text.map(str::to_owned).map_err(|_| damaged(format!("the key \"{}\" is no text", key.escape_ascii())))
        };
        rows.into_iter().map(text).collect()
    }
}

impl Ledger for PostgresStore {
    fn watch(&self, prefix: &str, changed: Changed) -> Result<LedgerWatch, StoreError> {
        let connector = self.shared.connector.clone();
        let begun = self.engine.run(async move { Listening::begin(&connector).await });
        let listening = begun.unwrap_or(Err(RequestError::Panicked)).map_err(|error| error.into_store(prefix))?;
        let watching = watch::watch(listening, self.shared.connector.clone(), prefix.to_owned(), changed);
        let task = self.engine.handle().spawn(watching).abort_handle();
        Ok(LedgerWatch::new(Watching { task, _engine: Arc::clone(&self.engine) }))
    }
}

/// Ends the task of a watch when it is dropped. The thread goes on as long as there is a watch.
struct Watching {
    task: AbortHandle,
    _engine: Arc<Engine>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.task.abort();
    }
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
