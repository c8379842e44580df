//! ChatApp: a world of clients, directories and chats, with tuning knobs that make it any kind of actor program.
//!
//! Design, knobs and rules of the game are those of Blessing et al., *Run, Actor, Run* (AGERE 2019), §6 and §3.5. The
//! knobs are in a [`Scenario`]; `scenarios/*.toml` are the built-in ones.
//!
//! # Actors
//!
//! | actor | how many | what it does |
//! |---|---|---|
//! | world | 1 | the external world: starts each phase in the directories, and waits for its end in all of them |
//! | directory | `directories` | creates and owns the clients whose id modulo `directories` is its index; looks handles up (the only way for a client to get the handle of another); starts its clients and collects their answers |
//! | client | `clients` | one move per turn: nothing, new chat, leave, post |
//! | chat | as many as are started | its members and its history; forwards posts; stops when the last member has left |
//!
//! # The protocol
//!
//! The world goes through the phases *open*, *meet*, *turn 1 … n*, *close*. In each phase it tells every directory to
//! begin; the directory tells each of its clients; and answers come back the same way. A client answers when all consequences
//! of its move have been answered. A phase has therefore ended when the world has its last answer: no message of the phase is
//! in flight. The world counts real messages, and never reads the runtime's counters.
//!
//! ```text
//! open    world ─phase→ directory ─phase_done→ world                    (the directory creates its clients)
//! meet    world ─phase→ directory ─meet→ client …                       …─done→ directory ─phase_done→ world
//!           a roll per older client:  ─lookup→ directory ─found→ client ─befriend→ older client ─befriended→ client
//! turn    world ─phase→ directory ─make_move→ client …                  …─done→ directory ─phase_done→ world
//!           new chat, per friend invited:  ─lookup→ directory ─found→ client ─invite→ friend ─join→ chat
//!                                          ─joined→ friend ─accepted→ client
//!           leave:  ─leave→ chat ─left→ client        (last one out:  ─leave→ chat ─closed→ creator ─left→ client)
//!           post:   ─post→ chat ─deliver→ each member ─acknowledge→ chat ─posted→ client
//! close   world ─phase→ directory ─log_out→ client, a few at a time …   …─offline→ directory ─phase_done→ world
//!           per chat it started that is open:  ─finish→ chat ─finished→ client
//! ```
//!
//! # Why no count depends on the schedule
//!
//! Every run of a scenario makes the same moves, sends the same number of messages of each kind, and ends in the same
//! state, on any number of workers. A client's move is a function of its dice, its friends and its list of chats, and is
//! independent of all events of the same turn:
//!
//! - *Friends* are ids. Requests arrive in any order; the list is put in order before the first turn.
//! - *Chats that it may post to or leave* are those it was in when the turn began. Invitations that arrive during a turn
//!   are kept apart, wherever in the turn the client's own move falls, and are appended, in the order of the chats' ids, when
//!   the client's next move begins. A chat's id is its turn and its creator, which start at most one chat per turn.
//! - *Members that a post goes to* are those of the chat when the turn began. Joins come only in the turn in which a chat is
//!   started, in which no client can post to it; leaves are noted, and take effect when the chat gets its first message of
//!   a later turn. That message finds every change of earlier turns noted, because each was answered before its turn
//!   ended; and each message that could find it too early carries its turn.
//! - *The last leaver* depends on the schedule, but the existence of one and the number of its messages do not.
//! - *History* is kept by turn and poster, not by arrival.
//! - *Busy work* begins with a number made of the client and the turn.
//! - *Counts of actors* are only ever summed.
//!
//! The dice are a 32-bit congruential generator per client (`harness::random`), and all else is integers or basic IEEE
//! arithmetic: the counts are the same on every platform.
//!
//! # Over several theaters
//!
//! [`SpreadWorld`] plays a world in several theaters (`spread.rs`): directories, clients and chats are mobile, and a migrator sends
//! them from one theater to another (`migrator.rs`, `migration_plan.rs`). Each theater holds their common data already
//! (`local_context.rs`). Members also check the order of the posts of each chat, which are numbered.
//!
//! # Driven from outside
//!
//! [`driven`] plays a world whose clients get their moves over TCP instead of rolling their dice. World, directories and
//! clients exchange the same messages, except that other messages replace *meet* and *make_move* and carry the orders.
//!
//! # The check
//!
//! Chats count the deliveries that they owe (posts times members), clients the posts that they receive, and chats the
//! acknowledgements; each with the
//! sum of a 64-bit hash over (chat, turn, poster, payload, member). The three must agree at the end, to the last message
//! ([`Delivery::verdict`]). If posts hold graphs of objects (`graph.rs`), a member walks through the graph, and the result of
//! the walk is part of that hash; the chat takes the result that the poster expects. The objects are counted, too ([`Graphs::verdict`]). Independently, each move's account of the messages it caused, summed up turn by turn,
//! must agree with the senders' counts by kind. A message that is never answered stops the world; the system is then idle before
//! it has ended. [`run()`] notices that, and collects the counts of the actors.
//!
//! # Rejected
//!
//! - *Posts to the members at their arrival* (the paper's programs): counts depend on the schedule.
//! - *A barrier to all chats at the end of each turn*: a message per chat per turn, also to the million idle chats.
//! - *Turn ends by quiescence of the runtime*: measures the runtime's idle detection, not the actors' conversation.

mod built_in;
mod chat;
mod client;
mod counts;
mod dice;
mod directory;
pub mod driven;
mod graph;
mod growth;
mod local_context;
mod messages;
mod migration_plan;
mod migrator;
mod payload;
mod reader;
mod report;
mod run;
mod scenario;
mod spread;
mod table;
mod tally;
mod world;

pub use built_in::{BUILT_IN, BuiltIn};
pub use counts::{Delivery, Graphs, Growth, Messages, Moves, Totals};
pub use graph::OBJECT_BYTES;
pub use growth::{Memory, SAMPLES, Sample, Slope};
pub use migration_plan::Order;
pub use migrator::MigrationCounts;
pub use reader::{Problem, ScenarioError};
pub use report::{Actors, Check, DeliveryCounts, Report};
pub use run::{Fault, FaultKind, Options, Progress, RunError, run, run_in};
pub use scenario::{
    Behaviour, CLIENTS, Connectedness, DIRECTORIES, FRIENDSHIPS_MAX, HISTORY, MESSAGE_BYTES, MessageShape, OBJECTS,
    POSTED_BYTES_PER_TURN_MAX, Scenario, TURNS, WORK_AMOUNT, WorkKind, WorkShare,
};
pub use spread::{Census, SpreadWorld, Watch};
pub use table::{plural, thousands};
