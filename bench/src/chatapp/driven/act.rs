//! The move of a client in a turn, as a driver orders it.

use std::fmt;

use crate::chatapp::chat::turn_of;

/// A client's move, as a driver says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Nothing.
    Nothing,
    /// The client should leave or post, but is in no chat: it does nothing, and counts it.
    NoChat,
    /// Start a chat, and invite these friends, by rising id.
    NewChat(Box<[u32]>),
    /// Leave this chat.
    Leave(u64),
    /// Post this number of bytes, all equal, and a graph of objects to this chat.
    Post {
        /// The chat: its first turn (high half), and the client that started it (low half).
        chat: u64,
        /// The bytes.
        size: u32,
        /// The value of each byte.
        byte: u8,
        /// The objects of the graph; 0 for none.
        objects: u32,
    },
}

/// A chat as recordings name it: its first turn, and the client that started it.
pub(super) struct Chat(pub u64);

impl fmt::Display for Chat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", turn_of(self.0), self.0 as u32)
    }
}
