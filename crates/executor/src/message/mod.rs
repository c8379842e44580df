//! Messages: typed addresses, envelopes and their contexts, the bounds of mailboxes, and dead letters.
//! [`crate::dispatch`] sends and runs them, and `worker::message_queue` holds those that wait.

pub(crate) mod address;
pub(crate) mod away;
pub(crate) mod dead_letters;
pub(crate) mod envelope;
pub(crate) mod mailbox_bound;
