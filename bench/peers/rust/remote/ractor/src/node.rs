//! The connections of this process with others.

use std::convert::Infallible;
use std::fmt::Display;
use std::fs::File;
use std::future::pending;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use ractor_cluster::node::NodeConnectionMode;
use ractor_cluster::{NetworkStream, NodeServer, NodeServerMessage, client_connect};
use tokio::net::TcpListener;

use super::*;

/// The time within which another process must start, or answer.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// The cookie of the nodes of a run. Other users cannot read the environment of a process.
const COOKIE: &str = "PLAYHOUSE_PEER_COOKIE";

fn said(error: impl Display) -> String {
    error.to_string()
}

/// Starts the other processes of a workload, and connects with them.
pub async fn start_all(workload: &str, size: Size, workers: usize) -> Result<(), String> {
    let mut secret = [0; 16];
    File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut secret)).map_err(said)?;
    let cookie: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let (size, workers) = (size.pick("smoke", "default"), workers.to_string());
    let mut addresses: Vec<String> = Vec::new();
    for position in 0..partner::partners(workload) {
        let position = position.to_string();
        let others = addresses.iter().map(String::as_str);
        let words: Vec<&str> = [workload, size, &*workers, &*position].into_iter().chain(others).collect();
        let mut command = partner::again(&words)?;
        command.env(COOKIE, &cookie);
        addresses.push(partner::start(command)?);
    }
    start("first", cookie, &addresses).await?;
    Ok(())
}

/// Starts the node of this process, connected with these.
async fn start(name: &str, cookie: String, others: &[String]) -> Result<ActorRef<NodeServerMessage>, String> {
    let host = Ipv4Addr::LOCALHOST;
    let mode = Some(NodeConnectionMode::Isolated);
    let server = NodeServer::new(0, cookie, name.to_owned(), host.to_string(), None, mode);
    let (server, _) = Actor::spawn(None, server.with_listen_addr(host.into()), ()).await.map_err(said)?;
    for other in others {
        client_connect(&server, other).await.map_err(said)?;
    }
    Ok(server)
}

/// Accepts connections. The node listens, too, but does not report its port.
async fn listen(server: ActorRef<NodeServerMessage>) -> Result<SocketAddr, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(said)?;
    let local_addr = listener.local_addr().map_err(said)?;
    tokio::spawn(async move {
        while let Ok((stream, peer_addr)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            let stream = Box::new(NetworkStream::Raw { peer_addr, local_addr, stream });
            tell(&server, NodeServerMessage::ConnectionOpened { stream, is_server: true });
        }
    });
    Ok(local_addr)
}

/// Waits for the only actor of a group.
pub async fn find<M: Message>(group: &str) -> Result<ActorRef<M>, String> {
    let asked = Instant::now();
    loop {
        if let Some(actor) = known(group) {
            return Ok(actor);
        }
        if asked.elapsed() > ANSWER_LIMIT {
            return Err(format!("`{group}` does not become known"));
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// The one actor of a group.
fn known<M: Message>(group: &str) -> Option<ActorRef<M>> {
    ractor::pg::get_members(&group.to_owned()).into_iter().next().map(ActorRef::from)
}

/// Returns the only actor of a group, after it was found.
pub fn found<M: Message>(group: &str) -> ActorRef<M> {
    known(group).unwrap_or_else(|| fail(&format!("`{group}` is not known any more")))
}

/// Is another process of a workload, with so many workers and at this position, which connects with those before it.
pub fn serve(words: &[String]) -> Result<Infallible, String> {
    let [workload, size, workers, position, others @ ..] = words else {
        return Err("another process is told workload, size, workers, position and the addresses of others".to_owned());
    };
    let number = |word: &String| word.parse().map_err(|_| format!("`{word}` is no number"));
    let (size, workers, position) = (Size::named(size)?, number(workers)?, number(position)?);
    let cookie = std::env::var(COOKIE).map_err(said)?;
    runtime(workers).block_on(async {
        let server = start(&format!("partner{position}"), cookie, others).await?;
        println!("{}", listen(server).await?);
        match workload.as_str() {
            "rpingpong" => messages::rpingpong::join().await?,
            "rthroughput" => messages::rthroughput::join().await?,
            "rcreate" => creation::join().await?,
            _ => rings::join(workload, size, position).await?,
        }
        pending().await
    })
}
