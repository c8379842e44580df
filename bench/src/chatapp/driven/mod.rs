//! A world that is driven from outside: each client's moves come over TCP, turn by turn, instead of from its dice.
//!
//! This is the external driver that *Run, Actor, Run* (AGERE 2019, §6.3) leaves to future work; a run with it needs no random
//! number at all (rule R3). A *recording* holds the friendships, the work of each client, the move of each client in each turn, and
//! the size of each post. [`record`] writes one from a scenario, with the choices of its dice. Driven by that recording, a world has
//! the same counts, and ends in the same state, as with its dice. [`Server`] plays a world, [`drive`] feeds it a recording and
//! measures from outside.
//!
//! # Recordings
//!
//! A recording is text: lines of at most [`LINE_BYTES_MAX`] bytes, each ended by a newline, words separated by one space, numbers in
//! decimal without signs. The same scenario gives the same bytes.
//!
//! ```text
//! playhouse-chatapp 1                             the format and its version
//! scenario 0x8c6f… clients 500 turns 30 small     the scenario: fingerprint, numbers, name
//! client 0 compute 62                             each client, by rising id: its work per move
//! client 1 memory 4096 0                             and the older clients that it befriends, by rising id
//! …
//! ready
//! turn 1                                          then the turns, each once, from the first one on
//! chat 3 7 9 12                                   client 3 starts a chat and invites these friends, by rising id
//! post 5 1.3 64 165                               client 5 posts 64 bytes, each 165, to the chat that client 3 started in turn 1
//! post 7 1.3 64 31 100                            client 7, too, with a graph of 100 objects
//! leave 9 1.3                                     client 9 leaves that chat
//! none 10                                         client 10 wants to leave or to post, and is in no chat
//! end 1                                           a client without a line does nothing; by rising id, each at most once
//! …
//! close                                           all log out
//! ```
//!
//! A client is a friend of each client that befriended it, and may invite it. A client may post to or leave the chats that it was in
//! when the turn began. The client that starts a chat, and the invited ones, are in it from the next turn on.
//!
//! # The protocol
//!
//! The driver sends a recording. The server answers with single lines:
//!
//! ```text
//! playhouse-chatapp 1 0x8c6f… clients 500 turns 30 next 0 small     at once, before the driver sends anything
//! done 0 1893022 4410                                               after `ready`, and after each `end`: the ended step (0: the set-up),
//!                                                                   its nanoseconds in the world, its messages
//! report {…}                                                        after `close`: the report, as JSON; the connection ends
//! error 17 the problem and the allowed values                       in the place of any of those, with the line of the connection
//!                                                                   that it is about (0: with none); the connection ends
//! ```
//!
//! `next` is the step that the world waits for: 0 for the set-up, or a turn. A driver that finds a begun world goes on from there, and
//! leaves out the played steps, from the set-up on. A server plays one world at a time, for one driver at a time, and a new one after
//! `close`.
//!
//! A set-up or a turn is played as a whole or not at all, after any error and any end of the connection, because all of it is checked
//! before any of it reaches an actor.
//!
//! # Rejected
//!
//! - *Directories that listen each for themselves* (the paper's idea): a turn would begin and end at a different time in each
//!   directory, and a driver would have to split its moves by the directories of the world.
//! - *Moves by the client's list of chats*, as dice choose: every driver would have to keep such lists in the same order.
//! - *Bytes instead of text*: half the size, but a person could not read, write or change a recording.

mod act;
mod author;
mod driver;
mod ledger;
mod played;
mod script;
mod server;

pub use act::Act;
pub use author::{Recorded, record};
pub use driver::{Drive, DriveError, Recording, drive};
pub use script::LINE_BYTES_MAX;
pub use server::{Event, SILENCE_MAX, Server, ServerError};
