//! Durable states and ledgers of [Playhouse](playhouse) actors in an SQLite database.
//!
//! A [`SqliteStore`] is a [`Store`](playhouse::durable::Store) and a [`Ledger`](playhouse::durable::Ledger). Several
//! processes of one machine may open the same database.

#![forbid(unsafe_code)]
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod error;
mod open;
mod store;
mod watch;

pub use self::error::OpenError;
pub use self::store::SqliteStore;
