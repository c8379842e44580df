//! The driver of a membership: one actor in each theater.
//!
//! [`MemberActor`](member::MemberActor) owns the machine. It passes on messages, results and times, and carries out the effects. It is found under one
//! name in each theater. The same code runs in a simulation.
//!
//! - `cluster`: the handle that a program has.
//! - `member`: the actor.
//! - `carry_out`: the effects of the machine.
//! - `peers`: the routes to the other members, and the detector of failures.
//! - `kinds`: the kinds of virtual actors that were registered.
//! - `ledger_port`: the requests to the ledger.
//! - `letters`: the messages between the actors, and their bytes.
//! - `requests`: the messages that programs send to the actor.
//! - `report`: one log line for each change of the view.
//! - `slot_users`: the actors that use slots: they learn of slots that open and close, and confirm that a slot is unused.
//! - `state`: the state that the threads of the program read.
//! - `clock`: the clock.
//!
//! # Decisions
//!
//! *A thread of its own.* The actor is dedicated. A stage is muted while one of its actors sends to a full link or an overloaded actor. A member that
//! shared a stage with such an actor would neither answer nor renew its lease, and a slow peer would pause the slots of the others. The cost: workers
//! that make no progress do not end the lease, although they read the links. A theater whose workers are all held for half a lease hears nobody.
//!
//! *No asks between members.* An answer waits for room on a full link, and pauses its stage. Letters pass a full link, and the stage of
//! the link that waits for room. Otherwise one slow actor would stop the letters of its theater's peers. A lost letter costs a period, because the
//! machine repeats what it needs. Few letters wait on a broken link, because a member that does not answer is looked up before the next ask.
//!
//! *An id for each life.* A member that was declared dead joins again in the same process. Its id is therefore no incarnation of a theater, but a hash
//! of the incarnation and of the time of the join.
//!
//! *Refusals.* Only the end that called first restores a broken link, so that the other end would not notice that the caller's process has ended. A
//! member that is silent or without a connection is called in any case, several times in each period.

mod carry_out;
pub(crate) mod clock;
pub(crate) mod cluster;
pub(crate) mod errors;
pub(crate) mod kinds;
mod ledger_port;
mod letters;
pub(crate) mod member;
pub(crate) mod options;
mod peers;
mod report;
pub(crate) mod requests;
pub(crate) mod slot_users;
pub(crate) mod state;
