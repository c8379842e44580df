//! Theaters: actor systems that reach each other.
//!
//! Programs use `playhouse`, which re-exports this. The folders:
//!
//! - `node`: one theater of a cluster.
//! - `transport`: connections.
//! - [`session`]: the state of one end of a link, without any input or output.
//! - `link`: sending and receiving.
//! - `naming`: references to remote actors.
//! - `proxy`: the routes of their mail without a link.
//! - `migration`: actors that migrate.
//! - `diagnostics`: the inspector, figures, cycles of asks.
//! - `sim`: theaters on one thread, for tests.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod diagnostics;
mod error;
#[doc(hidden)]
pub mod fuzz;
mod link;
mod lock;
mod migration;
mod naming;
mod node;
mod proxy;
pub mod session;
mod sim;
pub mod transport;

pub use diagnostics::inspector::{
    ActorStats, INSPECTOR, Inspect, Inspector, LinkStats, MessageStats, Snapshot, StageStats, WorkerStats,
};
pub use error::{FindError, PublishError, TheaterError};
pub use migration::rebalance::{Rebalance, RebalanceGuard};
pub use naming::name_server::{
    CountNames, GetName, NameAsk, NameError, NameServer, NameServerClient, PutName, RemoveName, UpdateName,
};
pub use node::answer::{Find, Migration};
pub use node::builder::TheaterBuilder;
pub use node::cookie::{COOKIE_FILE, Cookie};
pub use node::peers::{LinkState, PeerState};
pub use node::theater::{EvacuationReport, Peer, Theater};
pub use sim::{NetworkStats, Simulation};
pub use transport::tls::Tls;
