//! What a client is told to do in a turn.

use std::fmt;

use crate::chatapp::chat::turn_of;

/// A client's move, as a driver says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Nothing.
    Nothing,
    /// It wants to leave or to post, and is in no chat: nothing, too, but counted as that.
    NoChat,
    /// Start a chat, and invite these friends, by rising id.
    NewChat(Box<[u32]>),
    /// Leave this chat.
    Leave(u64),
    /// Post so many bytes, each the same, and a graph of objects to this chat.
    Post {
        /// The chat: the turn that it was started in (high half), and who started it (low half).
        chat: u64,
        /// The bytes.
        size: u32,
        /// What each of them is.
        byte: u8,
        /// The objects of the graph; 0 for none.
        objects: u32,
    },
}

/// A chat as recordings name it: the turn that it was started in, and who started it.
pub(super) struct Chat(pub u64);

impl fmt::Display for Chat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", turn_of(self.0), self.0 as u32)
    }
}
