//! Memory: records of messages, segments of records, cells of actors, and the futures of async handlers.

pub(crate) mod cell;
pub(crate) mod deferred;
pub(crate) mod prefetch;
pub(crate) mod raw_address;
pub(crate) mod record;
pub(crate) mod segment;
pub(crate) mod slab;
pub(crate) mod stub_route;
pub(crate) mod suspended;
