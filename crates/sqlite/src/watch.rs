//! Watches: threads that ask SQLite whether another connection has committed.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use playhouse::durable::{Changed, LedgerWatch};
use rusqlite::Connection;

/// The time between two questions.
const INTERVAL: Duration = Duration::from_millis(50);

/// The time between two questions while SQLite fails.
const INTERVAL_OF_ERRORS: Duration = Duration::from_secs(1);

/// Begins to call `changed` after commits of other connections. The watch owns `connection`.
pub(crate) fn begin(connection: Connection, changed: Changed) -> io::Result<LedgerWatch> {
    // Asked before this function returns: commits from now on are noticed.
    let mut seen = version(&connection).map_err(io::Error::other)?;
    let (end, ended) = channel::<()>();
    let thread = std::thread::Builder::new().name("playhouse-sqlite-watch".to_owned()).spawn(move || {
        let mut interval = INTERVAL;
        while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
            let now = version(&connection);
            interval = if now.is_ok() { INTERVAL } else { INTERVAL_OF_ERRORS };
            match now {
                Ok(now) if now == seen => {}
                Ok(now) => {
                    seen = now;
                    changed();
                }
                // The reader learns what is wrong.
                Err(_) => changed(),
            }
        }
    })?;
    Ok(LedgerWatch::new(End { end: Some(end), thread: Some(thread) }))
}

/// Ends the thread when it is dropped, and waits until the thread has closed its connection.
struct End {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for End {
    fn drop(&mut self) {
        // The thread sees that the channel is closed.
        self.end = None;
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _it_has_panicked = thread.join();
        }
    }
}

/// Returns a number that changes with each commit of another connection.
fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "data_version", |row| row.get(0))
}
