//! Watches: tasks that listen for notifications, and ask whether any transaction has committed.

use std::time::Duration;

use playhouse::durable::Changed;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use tokio_postgres::{AsyncMessage, Client};

use crate::connection::{Connection, Connector};
use crate::error::RequestError;

/// The time between two questions, and between two attempts to connect again.
const INTERVAL: Duration = Duration::from_secs(1);

/// A connection that listens.
pub(crate) struct Listening {
    connection: Connection,
    /// The keys of the notifications. It ends with the connection.
    keys: UnboundedReceiver<String>,
    /// The transactions whose effects were visible.
    seen: String,
}

impl Listening {
    /// Begins to listen. Changes from now on are noticed.
    pub(crate) async fn begin(connector: &Connector) -> Result<Listening, RequestError> {
        let (tell, keys) = unbounded_channel();
        let connection = connector
            .connect(move |message| {
                if let AsyncMessage::Notification(notification) = message {
                    let _the_watch_has_ended = tell.send(notification.payload().to_owned());
                }
            })
            .await?;
        let listen = connection.client.batch_execute("LISTEN playhouse_state");
        connector.within(listen).await?;
        let seen = visible(connector, &connection.client).await?;
        Ok(Listening { connection, keys, seen })
    }

    /// Calls `changed` after changes, until the connection fails.
    async fn run(&mut self, connector: &Connector, prefix: &str, changed: &Changed) -> Result<(), RequestError> {
        loop {
            let deadline = Instant::now() + INTERVAL;
            while let Ok(key) = timeout_at(deadline, self.keys.recv()).await {
                match key {
                    // The key of a notification for many keys is empty.
                    Some(key) if key.is_empty() || key.starts_with(prefix) => changed(),
                    Some(_) => {}
                    // The connection has failed, and the question says why.
                    None => {
                        sleep_until(deadline).await;
                        break;
                    }
                }
            }
            let now = visible(connector, &self.connection.client).await?;
            if now != self.seen {
                self.seen = now;
                changed();
            }
        }
    }
}

/// Returns a text that is the same as long as no transaction has committed.
async fn visible(connector: &Connector, client: &Client) -> Result<String, RequestError> {
    let row = client.query_one("SELECT pg_current_snapshot()::text", &[]);
    Ok(connector.within(row).await?.get(0))
}

/// Calls `changed` after changes, and connects again after failures.
pub(crate) async fn watch(mut listening: Listening, connector: Connector, prefix: String, changed: Changed) {
    loop {
        let _it_connects_again = listening.run(&connector, &prefix, &changed).await;
        listening = loop {
            // The reader learns what is wrong, and sees what was changed without a notification.
            changed();
            sleep(INTERVAL).await;
            if let Ok(listening) = Listening::begin(&connector).await {
                break listening;
            }
        };
        changed();
    }
}
