//! The rooms of `web` on actix: distributed to as many arbiters as workers, beside the threads of axum.

use std::sync::Arc;

use actix::prelude::*;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use playhouse_peers_web::{LIMIT, MAILBOX, Posts, ROOMS, own, serve};

fn main() {
    // Arbiters belong to a system, which holds them together and runs nothing itself.
    let _system = System::new();
    serve("actix", env!("ACTIX_VERSION"), |workers| {
        let arbiters: Vec<_> = (0..workers).map(|_| Arbiter::new().handle()).collect();
        let room = |number| Room::start_in_arbiter(&arbiters[number % workers], |_| Room(Posts::default()));
        let rooms: Rooms = (0..ROOMS).map(room).collect();
        Router::new().route("/rooms/{id}", get(read_of).post(post_to)).with_state(rooms)
    })
}

struct Room(Posts);

impl Actor for Room {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(MAILBOX);
    }
}

#[derive(Message)]
#[rtype(result = "u64")]
struct Post(String);

#[derive(Message)]
#[rtype(result = "Vec<String>")]
struct Read;

impl Handler<Post> for Room {
    type Result = u64;

    fn handle(&mut self, Post(text): Post, _: &mut Context<Self>) -> u64 {
        self.0.add(text)
    }
}

impl Handler<Read> for Room {
    type Result = Vec<String>;

    fn handle(&mut self, _: Read, _: &mut Context<Self>) -> Vec<String> {
        self.0.last()
    }
}

type Rooms = Arc<[Addr<Room>]>;

async fn post_to(State(rooms): State<Rooms>, Path(id): Path<usize>, text: String) -> Result<String, Failed> {
    Ok(rooms[id % ROOMS].send(Post(own(&text))).timeout(LIMIT).await?.to_string())
}

async fn read_of(State(rooms): State<Rooms>, Path(id): Path<usize>) -> Result<Json<Vec<String>>, Failed> {
    Ok(Json(rooms[id % ROOMS].send(Read).timeout(LIMIT).await?))
}

struct Failed(MailboxError);

impl From<MailboxError> for Failed {
    fn from(error: MailboxError) -> Self {
        Self(error)
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let status = match self.0 {
            MailboxError::Timeout => StatusCode::GATEWAY_TIMEOUT,
            MailboxError::Closed => StatusCode::INTERNAL_SERVER_ERROR,
        };
        (status, self.0.to_string()).into_response()
    }
}
