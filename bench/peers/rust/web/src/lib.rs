//! The part that the servers of `web` share: the state of a room, the limits, and the line that says where a server listens.
//!
//! The actors and the handlers of requests are written as each runtime wants them. All servers have the same two routes: a POST to
//! `/rooms/{id}` adds a text and answers with the number of the room's posts, a GET answers with the last posts as JSON.

use std::collections::VecDeque;
use std::time::Duration;
use std::{io, thread};

use axum::Router;
use playhouse_peers::{end_with_input, fail};
use tokio::net::TcpListener;

/// The rooms of a server.
pub const ROOMS: usize = 10_000;

/// The most messages that wait in the mailbox of a room.
pub const MAILBOX: usize = 64;

/// The longest time that a request waits for the answer of a room.
pub const LIMIT: Duration = Duration::from_secs(2);

/// The state of a room.
#[derive(Default)]
pub struct Posts {
    last: VecDeque<String>,
    count: u64,
}

impl Posts {
    /// The most texts that a room keeps.
    const KEPT: usize = 20;

    /// Adds a text, and returns how many were added so far.
    pub fn add(&mut self, text: String) -> u64 {
        if self.last.len() == Self::KEPT {
            self.last.pop_front();
        }
        self.last.push_back(text);
        self.count += 1;
        self.count
    }

    /// Returns the texts that the room keeps.
    pub fn last(&self) -> Vec<String> {
        self.last.iter().cloned().collect()
    }
}

/// Copies the text of a request. The original has the buffer of its connection, some kilobytes, and a room would keep these.
pub fn own(text: &str) -> String {
    text.to_owned()
}

/// Reads `SERVER --workers N`, calls `app` with the number of workers, says where the server listens, and serves. The process ends with
/// its standard input.
pub fn serve(peer: &str, version: &str, app: impl FnOnce(usize) -> Router) -> ! {
    thread::spawn(end_with_input);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let workers = match words[..] {
        [server, "--workers", workers] if server == peer => workers.parse().ok(),
        _ => None,
    };
    let Some(workers) = workers else {
        fail(&format!("usage: web-{peer} {peer} --workers N"));
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build();
    let runtime = runtime.unwrap_or_else(|error| fail(&format!("tokio does not start: {error}")));
    // Actors of kameo are tasks of this runtime.
    let _entered = runtime.enter();
    let app = app(workers);
    let served: io::Result<()> = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        println!(r#"{{"peer":"{peer}","version":"{version}","address":"{address}"}}"#);
        axum::serve(listener, app).await
    });
    fail(&format!("the server has ended: {served:?}"))
}
