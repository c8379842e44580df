//! Memory: records of messages, segments of records, cells of actors, and the futures of suspended handlers.
//!
//! [`raw_address`] names a cell. [`deferred`] holds the messages that wait at a cell, and [`stub_route`] tells whether
//! a stub forwards its mail.

pub(crate) mod cell;
pub(crate) mod deferred;
pub(crate) mod prefetch;
pub(crate) mod raw_address;
pub(crate) mod record;
pub(crate) mod segment;
pub(crate) mod slab;
pub(crate) mod stub_route;
pub(crate) mod suspended;
