//! Theaters: actor systems that reach each other.
//!
//! Programs use `playhouse`, which re-exports this. The folders:
//!
//! - `sim`: theaters on one thread, for tests.
//! - `diagnostics`: the inspector and figures.
//! - `theater`: theaters as programs use them, put together of the parts below.
//! - `migration`: actors that migrate.
//! - `node`: one theater of a cluster.
//! - `proxy`: the routes of stubs without a link.
//! - `link`: sending and receiving.
//! - `naming`: names of actors, and their known residences.
//! - [`session`]: the state of one end of a link, without any input or output.
//! - `transport`: connections.
//!
//! Each folder uses only folders below it.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod diagnostics;
mod error;
#[doc(hidden)]
pub mod files;
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
mod theater;
pub mod transport;

pub use diagnostics::inspector::{
    ActorStats, INSPECTOR, Inspect, Inspector, LinkStats, MessageStats, Snapshot, StageStats, WorkerStats,
};
pub use error::{FindError, PublishError, TheaterError};
pub use migration::rebalance::{Rebalance, RebalanceGuard};
pub use naming::name_server::{
    CountNames, GetName, NameAsk, NameError, NameServer, NameServerClient, PutName, RemoveName, UpdateName,
};
pub use node::cookie::{COOKIE_FILE, Cookie};
pub use sim::{NetworkStats, Simulation};
pub use theater::answer::{Find, Migration};
pub use theater::builder::TheaterBuilder;
pub use theater::peers::{LinkState, PeerState};
pub use theater::{EvacuationReport, Peer, Theater};
pub use transport::tls::Tls;
