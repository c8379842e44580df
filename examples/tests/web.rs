//! A server with axum, as in the guide: it answers from actors, and ends before the actors do.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use playhouse::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Barrier;

struct Room {
    posts: Vec<String>,
    /// Opened when the server must stop. The server then stops while a request waits.
    stops: Arc<Barrier>,
}

#[actor]
impl Room {
    #[message]
    async fn post(&mut self, text: String) -> String {
        self.stops.wait().await;
        self.posts.push(text);
        self.posts.join(", ")
    }
}

async fn add(State(room): State<ActorRef<Room>>, Path(_): Path<u32>, text: String) -> Result<String, StatusCode> {
    room.ask(Post(text)).within(Duration::from_secs(60)).await.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)
}

async fn request(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = "POST /rooms/7 HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

// GUARANTEE: A shutdown is awaited
#[test]
fn a_server_that_ends_answers_what_its_actors_were_asked() {
    tokio::runtime::Runtime::new().unwrap().block_on(serve_and_end());
}

async fn serve_and_end() {
    let system = System::builder().tokio(tokio::runtime::Handle::current()).start().unwrap();
    let stops = Arc::new(Barrier::new(2));
    let room = system.spawn(Room { posts: Vec::new(), stops: Arc::clone(&stops) });
    let app = Router::new().route("/rooms/{room}", post(add)).with_state(room);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = tokio::spawn(request(listener.local_addr().unwrap()));
    let signal = async move {
        let _ = stops.wait().await;
    };
    axum::serve(listener, app).with_graceful_shutdown(signal).await.unwrap();
    let answer = client.await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("hello"), "{answer}");
    assert_eq!(system.shutdown_async(Duration::from_secs(5)).await.unwrap().undelivered, 0);
}
