//! Dispatch: sending messages, and running them on their actors.
//!
//! [`send`] appends a message to a log, or puts it into an inbox; [`address_sends`] are the methods for it. [`thunks`]
//! run the message, [`inline_call`] runs it on the sender's stack, and [`async_handler`] polls handlers that wait.
//! [`actor_end`] ends actors. [`loose_record`] has the room for a record outside of logs, [`permit`] runs messages for
//! bounded mailboxes, and [`control`] has the requests to a cell that need its worker.

pub(crate) mod actor_end;
pub(crate) mod address_sends;
pub(crate) mod async_handler;
pub(crate) mod control;
pub(crate) mod inline_call;
pub(crate) mod loose_record;
pub(crate) mod permit;
pub(crate) mod send;
pub(crate) mod thunks;
