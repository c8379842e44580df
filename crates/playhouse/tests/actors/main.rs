//! What actors of one process promise. One program, because building one takes less time than building seventeen.

#[path = "../support/mod.rs"]
mod support;

mod asks;
mod async_handlers;
mod basics;
mod cycles;
mod features;
mod guards;
mod lifecycle;
mod mailboxes;
mod names;
mod observing;
mod panics;
mod receive_timeout;
mod remote_forms;
mod supervision;
mod supervision_trees;
mod timers;
mod watch;
