//! Tests of theaters on the loopback. They are one program, because building one takes less time than building fifteen.

#[path = "../messages/mod.rs"]
#[macro_use]
mod messages;
#[path = "../clerks/mod.rs"]
#[allow(dead_code, reason = "other tests use all of it")]
mod clerks;
#[path = "../faulty/mod.rs"]
#[allow(dead_code, reason = "other tests use all of it")]
mod faulty;
#[path = "../numbers/mod.rs"]
#[allow(dead_code, reason = "other tests use all of it")]
mod numbers;
#[path = "../spoiled/mod.rs"]
#[allow(dead_code, reason = "other tests use all of it")]
mod spoiled;
#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "other tests use all of it")]
mod support;

mod acceptor;
mod advertised;
mod calls;
mod cycles;
mod faults;
mod forwards;
mod goodbye;
mod groups;
mod inspector;
mod links;
mod migrations;
mod names;
mod recalls;
mod supervision;
mod timers;
mod tls;
mod watched;
mod wires;
