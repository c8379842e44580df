//! Actors in other theaters: stubs, wire forms of what is sent to them, and requests that are taken back.

pub(crate) mod nesting;
pub(crate) mod recall;
pub(crate) mod route;
pub(crate) mod shape;
pub mod stub;
pub mod wire;
