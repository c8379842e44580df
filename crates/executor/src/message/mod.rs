//! Messages before they are handled: addresses, envelopes, sending, mailboxes, and messages that are not handled at
//! once.

pub(crate) mod address;
pub(crate) mod dead_letters;
pub(crate) mod deferred;
pub(crate) mod delivery;
pub(crate) mod envelope;
pub(crate) mod mailbox_bound;
pub(crate) mod permit;
pub(crate) mod send;
