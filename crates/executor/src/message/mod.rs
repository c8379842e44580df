//! Messages on their way: addresses, envelopes, sending, mailboxes, and what becomes of a message that is not handled at once.

pub(crate) mod address;
pub(crate) mod dead_letters;
pub(crate) mod deferred;
pub(crate) mod delivery;
pub(crate) mod envelope;
pub(crate) mod mailbox;
pub(crate) mod permit;
pub(crate) mod send;
