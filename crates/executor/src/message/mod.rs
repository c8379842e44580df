//! Messages before they are handled: addresses, envelopes, sending, mailboxes, and messages that are not handled at
//! once.

pub(crate) mod address;
pub(crate) mod away;
pub(crate) mod dead_letters;
pub(crate) mod envelope;
pub(crate) mod mailbox_bound;
