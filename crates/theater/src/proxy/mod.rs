//! The routes of a stub's mail to a theater without a link: messages wait, and have the theater called, or have the actor located.
//!
//! [`Proxy`](crate::link::proxy::Proxy) is the route over a link.

mod kept_message;
pub(crate) mod locate;
pub(crate) mod pending_proxies;
pub(crate) mod pending_proxy;
