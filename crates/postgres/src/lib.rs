//! Durable states and ledgers of [Playhouse](playhouse) actors in a PostgreSQL database.
//!
//! A [`PostgresStore`] is a [`Store`](playhouse::durable::Store) and a [`Ledger`](playhouse::durable::Ledger). The
//! processes of many machines may use the same database. PostgreSQL 13 is the oldest supported version.

#![forbid(unsafe_code)]
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod connection;
mod engine;
mod error;
mod notify;
mod schema;
mod store;
mod watch;

pub use self::error::ConnectError;
pub use self::store::PostgresStore;
