//! The store.

use std::fmt;
use std::sync::Arc;

use playhouse::durable::{Changed, Ledger, LedgerWatch, Saved, Store, StoreError, check_key, check_revision};

use crate::client::{Client, Repeat};
use crate::error::ConnectError;
use crate::message::{Bytes, Compare, KeyValue, Number, Operation, Range, RangeAnswer, Txn, TxnAnswer};
use crate::options::EtcdOptions;
use crate::watch;

/// The largest size of a state in etcd: 1 MiB. etcd accepts requests of at most 1.5 MiB, unless it is configured otherwise.
///
/// # Examples
///
/// ```
/// assert_eq!(playhouse_etcd::STATE_BYTES_MAX, 1_048_576);
/// ```
pub const STATE_BYTES_MAX: usize = 1 << 20;

/// The number of keys that one request asks for.
const KEYS_OF_REQUEST: u64 = 10_000;

/// A store of states in an etcd cluster, which any number of processes and machines may use at one time. Clones are
/// handles to the same connections.
///
/// A save is durable when it returns: most members of the cluster have it in their logs. Loads see the latest save of any
/// process: they are linearizable.
///
/// etcd keeps all its keys in memory, and is made for some GiB at most. A state has at most [`STATE_BYTES_MAX`] bytes.
/// A store in etcd suits the few states that the members of a cluster share, and not the states of many actors.
///
/// # Connections
/// Requests go to the gateway for JSON of one member. If this member does not answer, a load goes to the next one. A
/// save or removal goes to the next one only if no connection to the first one was made. A connection may take 2 s and
/// the answer of one member 10 s, or the [limit](EtcdOptions::request_limit) of the options. Then the request fails with [`StoreError::Io`], whose kind is
/// [`TimedOut`](std::io::ErrorKind::TimedOut).
///
/// A save or removal that fails with [`StoreError::Io`] may have taken effect. It may also take effect later, if the
/// members or the network were paused. The state must then still have the expected revision, or still be missing.
///
/// # As a ledger
/// A [watch](Ledger::watch) has one thread, and one connection to the watch of etcd. It also asks once a second whether
/// any key in etcd has changed, also one of another namespace, because a connection may be lost without a sign.
///
/// # Examples
///
/// ```no_run
/// use playhouse::durable::Store;
/// use playhouse_etcd::{EtcdOptions, EtcdStore};
///
/// let store = EtcdStore::connect(&EtcdOptions::new(["http://127.0.0.1:2379"]))?;
/// let revision = store.save("leader", 0, b"127.0.0.1:7000")?;
/// assert_eq!(store.load("leader")?.map(|saved| saved.revision), Some(revision));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct EtcdStore {
    client: Arc<Client>,
    namespace: Arc<str>,
}

impl fmt::Debug for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdStore").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl EtcdStore {
    /// Connects to a cluster.
    ///
    /// # Errors
    /// [`ConnectError`], also if the cluster has no leader or refuses the user.
    pub fn connect(options: &EtcdOptions) -> Result<EtcdStore, ConnectError> {
        let store = EtcdStore { client: Arc::new(Client::new(options)?), namespace: options.namespace.as_str().into() };
        store.load("connected").map(drop).map_err(|error| match error {
            StoreError::Io { error, .. } => ConnectError::Io { error },
            other => ConnectError::Io { error: std::io::Error::other(other) },
        })?;
        Ok(store)
    }

    /// Returns the key in etcd.
    fn name(&self, key: &str) -> Bytes {
        Bytes(format!("{}{key}", self.namespace).into_bytes())
    }

    /// Returns the range in etcd of the keys that begin with `prefix`, without its end.
    fn range(&self, prefix: &str) -> (Vec<u8>, Vec<u8>) {
        let Bytes(from) = self.name(prefix);
        let mut to = from.clone();
        match to.last_mut() {
            // A byte of UTF-8 is below 255.
            Some(last) => *last += 1,
            // etcd takes this range for all keys, and accepts no empty key.
            None => return (vec![0], vec![0]),
        }
        (from, to)
    }

    /// Executes an operation if the state has the expected revision. Returns the revision of the change.
    fn change(&self, key: &str, expected: u64, operation: Option<Operation>) -> Result<u64, StoreError> {
        // No key has a revision above the largest of etcd.
        let mod_revision = Number(expected.min(i64::MAX as u64));
        let txn = Txn {
            compare: [Compare { key: self.name(key), target: "MOD", result: "EQUAL", mod_revision }],
            success: operation.into_iter().collect(),
            failure: [Operation::Range(Range { key: self.name(key), keys_only: true, ..Range::default() })],
        };
        let answer: TxnAnswer =
            self.client.call("/v3/kv/txn", &txn, Repeat::Unsafe).map_err(|error| error.into_store(key))?;
        if answer.succeeded {
            return Ok(answer.header.revision.0);
        }
        let found = answer.responses.into_iter().filter_map(|answer| answer.response_range).flat_map(|range| range.kvs);
        let found = found.map(|found| found.mod_revision.0).next().unwrap_or(0);
        check_revision(key, expected, found)?;
        // etcd compares and reads in one transaction.
        let error = std::io::Error::new(std::io::ErrorKind::InvalidData, "etcd has refused the revision that it has");
        Err(StoreError::Io { key: key.to_owned(), error })
    }
}

impl Store for EtcdStore {
    fn load(&self, key: &str) -> Result<Option<Saved>, StoreError> {
        check_key(key)?;
        let range = Range { key: self.name(key), ..Range::default() };
        let answer: RangeAnswer =
            self.client.call("/v3/kv/range", &range, Repeat::Safe).map_err(|error| error.into_store(key))?;
        let saved = |found: KeyValue| Saved { revision: found.mod_revision.0, bytes: found.value.0 };
        Ok(answer.kvs.into_iter().next().map(saved))
    }

    fn save(&self, key: &str, expected: u64, bytes: &[u8]) -> Result<u64, StoreError> {
        check_key(key)?;
        if bytes.len() > STATE_BYTES_MAX {
            return Err(StoreError::TooLarge { key: key.to_owned(), bytes: bytes.len(), max: STATE_BYTES_MAX });
        }
        self.change(key, expected, Some(Operation::Put { key: self.name(key), value: Bytes(bytes.to_vec()) }))
    }

    fn remove(&self, key: &str, expected: u64) -> Result<(), StoreError> {
        check_key(key)?;
        let removal = (expected != 0).then(|| Operation::Delete { key: self.name(key) });
        self.change(key, expected, removal).map(drop)
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let mut keys = Vec::new();
        let (mut from, to) = self.range(prefix);
        loop {
            let range = Range {
                key: Bytes(from),
                range_end: Some(Bytes(to.clone())),
                limit: Number(KEYS_OF_REQUEST),
                keys_only: true,
            };
            let answer: RangeAnswer =
                self.client.call("/v3/kv/range", &range, Repeat::Safe).map_err(|error| error.into_store(prefix))?;
            let last = answer.kvs.last().map(|last| last.key.0.clone());
            for found in answer.kvs {
                let key = found.key.0.get(self.namespace.len()..).map(|key| String::from_utf8(key.to_vec()));
                let Some(Ok(key)) = key else {
                    let what = format!("the key \"{}\" is no text", found.key.0.escape_ascii());
                    return Err(StoreError::Damaged { key: prefix.to_owned(), what });
                };
                keys.push(key);
            }
            match last {
                // The next key in the order of bytes.
                Some(mut last) if answer.more => {
                    last.push(0);
                    from = last;
                }
                _ => return Ok(keys),
            }
        }
    }

    fn state_bytes_max(&self) -> usize {
        STATE_BYTES_MAX
    }
}

impl Ledger for EtcdStore {
    fn watch(&self, prefix: &str, changed: Changed) -> Result<LedgerWatch, StoreError> {
        let (from, to) = self.range(prefix);
        watch::begin(Arc::clone(&self.client), from, to, changed)
            .map_err(|error| StoreError::Io { key: prefix.to_owned(), error })
    }
}
