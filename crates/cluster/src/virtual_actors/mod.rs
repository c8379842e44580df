//! Virtual actors: actors under keys, which are activated where they are needed.
//!
//! [`Cluster::actor`](crate::Cluster::actor) returns a [`Virtual`] for a kind and a key. The hash of both is the number of a slot. The owner of the
//! slot activates the actor at its first message, and passivates it after an idle time or when the slot is handed over.
//!
//! - `actor`: the trait of virtual actors, and what their factories and hooks get.
//! - `options`: the options of a kind.
//! - `register`: the kinds of a member.
//! - `virtual_ref`: the value that programs send to.
//! - `call`: messages on their way to an activation.
//! - `active`: an activation as its callers see it.
//! - `directory`: the actor of a kind in each theater, which activates and routes.
//! - `entries`: the activations of a directory, by key and by slot.
//! - `peers`: the directories of the other members.
//! - `waiting`: calls that have no receiver at present.
//!
//! # Decisions
//!
//! *One directory for each kind and theater.* It is an actor, and concurrent first calls therefore meet in its mailbox: a key has at most one
//! activation. The directory of a member that does not own a slot forwards calls to the directory of the owner.
//!
//! *The check of the lease belongs to the message.* A call carries the slot and the epoch of its activation. The activation's worker compares them with
//! [`Cluster::runs`](crate::Cluster::runs) immediately before the handler begins. A cached call, a call over a link and a call that has waited in the
//! mailbox are therefore checked alike. A call that may not run goes back to the directory. One window is left: a handler that has begun continues after
//! the end of the lease. Hooks, timers, answers to the actor's own asks, and messages to its `ActorRef` are not checked at all. A store
//! that checks the revision accepts one of two owners' saves.
//!
//! *A pause keeps the state.* The activations of a member without a lease stay, and their calls wait in the directory. They go on when the member has a
//! lease again. The end of a life kills them.
//!
//! *No message is lost to a passivation.* An activation that passivates refuses calls from one moment on. These calls, and those in its mailbox, go
//! back to the directory, and wait there until the actor has ended. The directory then activates it again, or forwards the calls to the next owner.
//!
//! *The cache has no time.* A [`Virtual`] forgets an activation when the epoch of its slot is another one, or when the activation takes no calls any more.
//!
//! *Versions end loops.* A forwarded call has the version of its sender's view. A directory with an earlier view keeps the call until it has adopted that
//! one. Two directories with the same view agree on the owner.
//!
//! # What happens to a message
//!
//! - A call is handled at most once. The directory sends a call again only if no handler has begun it.
//! - An ask ends with the answer or with an error. While its slot has no open owner it waits for at most
//!   [`VirtualOptions::wait`], and fails with [`AskError::Unreachable`](playhouse_actor::AskError::Unreachable), which has the reason. An ask to a
//!   theater that is lost fails with [`AskError::TheaterLost`](playhouse_actor::AskError::TheaterLost).
//! - A tell that is not handled is a dead letter of the theater that gives it up. A tell to a theater that is lost is lost with it.
//! - Messages of one sender to one key keep their order while they take the same way. The first ones, which activate the actor, and those that have
//!   waited in a directory may come behind later ones.

mod active;
mod actor;
mod call;
mod directory;
mod entries;
mod options;
mod peers;
mod register;
mod virtual_ref;
mod waiting;

pub use actor::{Activation, Passivation, PassivationReason, VirtualActor, VirtualMessage};
pub use call::{Call, Route, entry};
pub use options::VirtualOptions;
pub use register::RegisterError;
pub use virtual_ref::Virtual;
