//! Durable states and ledgers of [Playhouse](playhouse) actors in [etcd](https://etcd.io).
//!
//! An [`EtcdStore`] is a [`Store`](playhouse::durable::Store) and a [`Ledger`](playhouse::durable::Ledger). The processes
//! of many machines may use the same keys. etcd 3.4 is the oldest supported version.

#![forbid(unsafe_code)]
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod client;
mod error;
mod message;
mod options;
mod store;
mod watch;

pub use self::error::ConnectError;
pub use self::options::EtcdOptions;
pub use self::store::{EtcdStore, STATE_BYTES_MAX};
