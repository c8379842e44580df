//! Memory: records of messages, segments of records, cells of actors, and the futures of async handlers.

pub(crate) mod cell;
pub(crate) mod future;
pub(crate) mod record;
pub(crate) mod segment;
pub(crate) mod slab;
