//! Notifications of changes, which the watches of all processes receive.

use std::collections::BTreeSet;
use std::mem;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio_postgres::Client;

use crate::schema::Statements;

/// The shortest time between two notifications of one store.
///
/// PostgreSQL lets transactions with notifications commit one after another only. Saves therefore carry none: the store
/// sends them later, in transactions of their own, which write nothing.
pub(crate) const INTERVAL: Duration = Duration::from_millis(20);

/// The number of keys above which one notification stands for all of them.
const KEYS_MAX: usize = 100;

/// The payload that stands for any key. It is the prefix of all keys, and no key itself.
pub(crate) const ANY_KEY: &str = "";

/// The changed keys that no notification was sent for.
#[derive(Default)]
pub(crate) struct Unsent(Mutex<Keys>);

#[derive(Default)]
struct Keys {
    changed: BTreeSet<String>,
    /// Whether a task sends them.
    is_sending: bool,
}

impl Unsent {
    /// Adds a key. Returns whether the caller has to start the task that sends.
    pub(crate) fn add(&self, key: &str) -> bool {
        let mut keys = self.lock();
        if !keys.changed.contains(ANY_KEY) {
            keys.changed.insert(key.to_owned());
        }
        if keys.changed.len() > KEYS_MAX {
            keys.changed = BTreeSet::from([ANY_KEY.to_owned()]);
        }
        !mem::replace(&mut keys.is_sending, true)
    }

    /// Takes the keys that are to be sent now. The task that sends ends when there are none.
    pub(crate) fn take(&self) -> Vec<String> {
        let mut keys = self.lock();
        keys.is_sending = !keys.changed.is_empty();
        mem::take(&mut keys.changed).into_iter().collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Keys> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends notifications. If this fails, watches see the changes when they ask.
pub(crate) async fn send(client: &Client, statements: &Statements, keys: &[String]) {
    let _watches_ask = client.execute(&statements.notify, &[&keys]).await;
}
