//! The rooms of `web` behind a lock each, without actors: the time that the server takes by itself.

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Path, State};
use axum::routing::get;
use axum::{Json, Router};
use playhouse_peers_web::{Posts, ROOMS, own, serve};

fn main() {
    serve("locks", env!("CARGO_PKG_VERSION"), |_| {
        let rooms: Rooms = (0..ROOMS).map(|_| Mutex::default()).collect();
        Router::new().route("/rooms/{id}", get(read_of).post(post_to)).with_state(rooms)
    })
}

type Rooms = Arc<[Mutex<Posts>]>;

async fn post_to(State(rooms): State<Rooms>, Path(id): Path<usize>, text: String) -> String {
    rooms[id % ROOMS].lock().unwrap_or_else(PoisonError::into_inner).add(own(&text)).to_string()
}

async fn read_of(State(rooms): State<Rooms>, Path(id): Path<usize>) -> Json<Vec<String>> {
    Json(rooms[id % ROOMS].lock().unwrap_or_else(PoisonError::into_inner).last())
}
