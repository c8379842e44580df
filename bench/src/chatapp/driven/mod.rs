//! A world that is driven from outside: each client's moves come over TCP, turn by turn, instead of from its dice.
//!
//! This is the external driver that *Run, Actor, Run* (AGERE 2019, §6.3) leaves to future work, so that a run needs no random
//! number at all (rule R3): who is whose friend, what work each client does, who moves how in which turn, and how large each post is
//! is said by a *recording*. [`record`] writes one from a scenario: what its dice would choose. Driven by that, a world has the
//! same counts, and ends in the same state, as when it is left to its dice. [`Server`] plays a world, [`drive`] feeds it a recording
//! and measures from outside.
//!
//! # Recordings
//!
//! A recording is text: lines of at most [`LINE_BYTES_MAX`] bytes, each ended by a newline, words parted by one space, numbers in
//! decimal without signs. The same scenario gives the same bytes.
//!
//! ```text
//! playhouse-chatapp 1                             the format and its version
//! scenario 0x8c6f… clients 500 turns 30 small     what it is for: fingerprint, numbers, name
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
//! end 1                                           who is not named does nothing; by rising id, each at most once
//! …
//! close                                           all log out
//! ```
//!
//! Clients are friends of those who befriended them, and may invite those. Chats that a client may post to or leave are those that
//! it was in when the turn began; who starts or is invited to one is in it from the next turn on.
//!
//! # The protocol
//!
//! What a driver sends is a recording. The server answers with a line, and with nothing else:
//!
//! ```text
//! playhouse-chatapp 1 0x8c6f… clients 500 turns 30 next 0 small     at once, before the driver says anything
//! done 0 1893022 4410                                               after `ready`, and after each `end`: what has ended (0: the set-up),
//!                                                                   the nanoseconds that took in the world, the messages it took
//! report {…}                                                        after `close`: the report, as JSON; the connection ends
//! error 17 what is wrong and what would be right                    in the place of any of those, with the line of the connection
//!                                                                   that it is about (0: with none); the connection ends
//! ```
//!
//! `next` is what the world waits for: 0 for the set-up, or a turn. Who finds a world that others have begun goes on there, and leaves
//! out what was played, from the set-up on. A server plays one world at a time, for one driver at a time, and a new one after `close`.
//!
//! Whatever is wrong with what a driver sends, and wherever its connection ends: of a set-up or a turn that was not sent whole
//! nothing is played. It is all checked before anything of it reaches an actor.
//!
//! # Rejected
//!
//! - *Directories that listen each for themselves* (the paper's idea): a turn would begin and end at as many times as there are
//!   directories, and who drives had to part its moves as the world happens to be parted.
//! - *Moves by the client's list of chats*, as dice choose: a driver of another make had to keep such lists in the same order.
//! - *Bytes instead of text*: half the size, and nobody could read, write or change a recording by hand.

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
