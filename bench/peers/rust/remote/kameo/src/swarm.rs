//! The connections with other processes: libp2p over TCP, not encrypted, and without discovery.

use std::collections::HashSet;
use std::convert::Infallible;
use std::time::Duration;

use kameo::remote::{self, messaging};
use libp2p::futures::StreamExt;
use libp2p::identity::Keypair;
use libp2p::multiaddr::Protocol;
use libp2p::swarm::{Swarm, SwarmEvent};
use libp2p::{Multiaddr, SwarmBuilder, plaintext, tcp, yamux};

/// The bound of open requests on a connection, incoming ones included: further requests are lost. The bound of yamux is the same.
const STREAMS: usize = 512;
/// Of a connection on which nothing is sent.
const IDLE: Duration = Duration::from_secs(3_600);
/// Of a request: longer than all that are under way take.
const REQUEST_LIMIT: Duration = Duration::from_secs(60);

/// Listens on a port of the loopback that the system picks, and connects with these others. Returns where it listens.
pub async fn join(others: &[Multiaddr]) -> Result<Multiaddr, String> {
    let mut swarm = build().map_err(|error| error.to_string())?;
    swarm.behaviour().init_global();
    swarm.listen_on("/ip4/127.0.0.1/tcp/0".parse().expect("an address")).map_err(|error| error.to_string())?;
    let mut missing = HashSet::new();
    for other in others {
        let mut address = other.clone();
        let Some(Protocol::P2p(peer)) = address.pop() else {
            return Err(format!("`{other}` does not end with who is there"));
        };
        swarm.add_peer_address(peer, address);
        missing.insert(peer);
        swarm.dial(other.clone()).map_err(|error| error.to_string())?;
    }
    let mut listens_at = None;
    let listens_at = loop {
        match swarm.select_next_some().await {
            SwarmEvent::NewListenAddr { address, .. } => listens_at = Some(address),
            SwarmEvent::ConnectionEstablished { peer_id, .. } => {
                missing.remove(&peer_id);
            }
            SwarmEvent::OutgoingConnectionError { error, .. } => return Err(error.to_string()),
            _ => {}
        }
        if let Some(address) = listens_at.take_if(|_| missing.is_empty()) {
            break address.with(Protocol::P2p(*swarm.local_peer_id()));
        }
    };
    tokio::spawn(drive(swarm));
    Ok(listens_at)
}

fn build() -> Result<Swarm<remote::Behaviour>, Box<dyn std::error::Error>> {
    let messages = messaging::Config::default().with_max_concurrent_streams(STREAMS).with_request_timeout(REQUEST_LIMIT);
    let swarm = SwarmBuilder::with_new_identity()
        .with_tokio()
        .with_tcp(
            tcp::Config::default(),
            |key: &Keypair| Ok::<_, Infallible>(plaintext::Config::new(key)),
            yamux::Config::default,
        )?
        .with_behaviour(|key| remote::Behaviour::new(key.public().to_peer_id(), messages))?
        .with_swarm_config(|config| config.with_idle_connection_timeout(IDLE));
    Ok(swarm.build())
}

/// Ends this process where a message is not delivered.
async fn drive(mut swarm: Swarm<remote::Behaviour>) {
    loop {
        let wrong = match swarm.select_next_some().await {
            SwarmEvent::Behaviour(remote::Event::Messaging(messaging::Event::TellResult {
                result: Err(error),
                ..
            })) => {
                format!("a message is not delivered: {error}")
            }
            SwarmEvent::Behaviour(remote::Event::Messaging(messaging::Event::OutboundFailure { error, .. })) => {
                format!("a message is lost: {error}")
            }
            _ => continue,
        };
        super::fail(&wrong)
    }
}
