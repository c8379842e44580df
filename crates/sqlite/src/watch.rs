//! Watches: threads that ask SQLite whether another connection has committed.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use playhouse::durable::{Changed, LedgerWatch};
use rusqlite::Connection;

/// The time between two questions.
const INTERVAL: Duration = Duration::from_millis(50);

/// Begins to call `changed` after commits of other connections than `connection`, which nobody else uses.
pub(crate) fn begin(connection: Connection, changed: Changed) -> io::Result<LedgerWatch> {
    // Asked before this function returns: commits from now on are noticed.
    let mut seen = version(&connection).map_err(io::Error::other)?;
    let (end, ended) = channel::<()>();
    std::thread::Builder::new().name("playhouse-sqlite-watch".to_owned()).spawn(move || {
        while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
            match version(&connection) {
                Ok(now) if now == seen => {}
                Ok(now) => {
                    seen = now;
                    changed();
                }
                // The reader finds out what is wrong.
                Err(_) => changed(),
            }
        }
    })?;
    Ok(LedgerWatch::new(End(end)))
}

/// Ends the thread when it is dropped, because its channel is closed then.
struct End(#[expect(dead_code, reason = "its drop is the message")] Sender<()>);

/// Returns a number that changes with each commit of another connection.
fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "data_version", |row| row.get(0))
}
