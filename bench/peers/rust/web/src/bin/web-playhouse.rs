//! The rooms of `web` on Playhouse, whose workers are run by the tasks that ask where they sleep.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use playhouse::prelude::*;
use playhouse_peers::fail;
use playhouse_peers_web::{LIMIT, MAILBOX, Posts, ROOMS, own, serve};

fn main() {
    serve("playhouse", env!("PLAYHOUSE_VERSION"), |workers| {
        let system = System::builder().workers(workers).run_by_askers(true).start();
        let system = system.unwrap_or_else(|error| fail(&error.to_string()));
        let options = SpawnOptions::new().mailbox(Mailbox::bounded(MAILBOX)).placement(Placement::Spread);
        let rooms: Rooms = (0..ROOMS).map(|_| system.spawn_with(options.clone(), Room(Posts::default()))).collect();
        // It lives until the process ends.
        std::mem::forget(system);
        Router::new().route("/rooms/{id}", get(read_of).post(post_to)).with_state(rooms)
    })
}

struct Room(Posts);

#[actor]
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
    Ok(rooms[id % ROOMS].ask(Post(own(&text))).within(LIMIT).await?.to_string())
}

async fn read_of(State(rooms): State<Rooms>, Path(id): Path<usize>) -> Result<Json<Vec<String>>, Failed> {
    Ok(Json(rooms[id % ROOMS].ask(Read).within(LIMIT).await?))
}

struct Failed(AskError);

impl From<AskError> for Failed {
    fn from(error: AskError) -> Self {
        Self(error)
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let status = match self.0 {
            AskError::Full => StatusCode::SERVICE_UNAVAILABLE,
            AskError::Deadline { .. } => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        (status, self.0.to_string()).into_response()
    }
}
