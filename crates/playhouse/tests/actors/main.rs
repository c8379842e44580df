//! Tests of actors in one process. They are one program, because 1 program is built in less time than 17.

#[path = "../support/mod.rs"]
mod support;

mod asks;
mod async_handlers;
mod basics;
mod crashes;
mod cycles;
mod ended;
mod features;
mod guards;
mod lifecycle;
mod mailboxes;
mod names;
mod observing;
mod panics;
mod receive_timeout;
mod recipients;
mod reentrant;
mod remote_forms;
mod replies;
mod streams;
mod supervision;
mod supervision_trees;
mod timers;
mod watch;
