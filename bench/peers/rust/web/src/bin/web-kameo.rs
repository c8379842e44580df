//! The rooms of `web` on kameo: tasks of the runtime that axum runs on.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use kameo::error::{Infallible, SendError};
use kameo::mailbox;
use kameo::prelude::*;
use playhouse_peers_web::{LIMIT, MAILBOX, Posts, ROOMS, own, serve};

/// The longest time that a request waits for room in a mailbox.
const MAILBOX_LIMIT: Duration = Duration::from_millis(1);

fn main() {
    serve("kameo", env!("KAMEO_VERSION"), |_| {
        let room = || Room::spawn_with_mailbox(Room(Posts::default()), mailbox::bounded(MAILBOX));
        let rooms: Rooms = (0..ROOMS).map(|_| room()).collect();
        Router::new().route("/rooms/{id}", get(read_of).post(post_to)).with_state(rooms)
    })
}

#[derive(Actor)]
struct Room(Posts);

#[messages]
impl Room {
    #[message]
    fn post(&mut self, text: String) -> u64 {
        self.0.add(text)
    }

    #[message]
    fn read(&self) -> Vec<String> {
        self.0.last()
    }
}

type Rooms = Arc<[ActorRef<Room>]>;

async fn post_to(State(rooms): State<Rooms>, Path(id): Path<usize>, text: String) -> Result<String, Failed> {
    let ask = rooms[id % ROOMS].ask(Post { text: own(&text) }).mailbox_timeout(MAILBOX_LIMIT).reply_timeout(LIMIT);
    Ok(ask.await?.to_string())
}

async fn read_of(State(rooms): State<Rooms>, Path(id): Path<usize>) -> Result<Json<Vec<String>>, Failed> {
    Ok(Json(rooms[id % ROOMS].ask(Read).mailbox_timeout(MAILBOX_LIMIT).reply_timeout(LIMIT).await?))
}

struct Failed(StatusCode, String);

impl<M> From<SendError<M, Infallible>> for Failed {
    fn from(error: SendError<M, Infallible>) -> Self {
        let status = match error {
            SendError::MailboxFull(_) => StatusCode::SERVICE_UNAVAILABLE,
            SendError::Timeout(_) => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self(status, error.to_string())
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        (self.0, self.1).into_response()
    }
}
