//! Friendships and memberships: every move is checked against them before an actor receives it.

use super::act::{Act, Chat};
use crate::chatapp::chat::chat_id;
use crate::chatapp::graph::OBJECT_BYTES;
use crate::chatapp::messages::Engage;
use crate::chatapp::scenario::{FRIENDSHIPS_MAX, MESSAGE_BYTES, OBJECTS, POSTED_BYTES_PER_TURN_MAX, Scenario};

/// The state of a world between two turns, as a view of all of it.
pub(super) struct Ledger {
    pub clients: u32,
    pub turns: u32,
    /// The next step: 0 for the set-up, or a turn; one more than the number of turns when only the end is left.
    next: u32,
    /// By client: the clients that have befriended it, by rising id.
    friends: Vec<Vec<u32>>,
    /// By client: the chats that it may post to or leave, in the order of its dice.
    chats: Vec<Vec<u64>>,
}

impl Ledger {
    pub fn new(scenario: &Scenario) -> Ledger {
        Ledger::of(scenario.clients, scenario.turns)
    }

    pub fn of(clients: u32, turns: u32) -> Ledger {
        Ledger { clients, turns, next: 0, friends: Vec::new(), chats: Vec::new() }
    }

    pub fn next(&self) -> u32 {
        self.next
    }

    pub fn friends(&self, id: u32) -> &[u32] {
        &self.friends[id as usize]
    }

    pub fn chats(&self, id: u32) -> &[u64] {
        &self.chats[id as usize]
    }

    /// Returns whether the client exists.
    pub fn check_client(&self, id: u32) -> Result<(), String> {
        match id < self.clients {
            true => Ok(()),
            false => Err(format!("there is no client {id}; there are clients from 0 to {}", self.clients - 1)),
        }
    }

    /// Checks that a client may befriend these clients, in addition to the number of friendships of others.
    pub fn check_engage(&self, id: u32, engage: &Engage, others: usize) -> Result<(), String> {
        if let Some(younger) = engage.friends.iter().find(|friend| **friend >= id) {
            return Err(format!("client {id} cannot befriend {younger}: friends are older, with a lower id"));
        }
        check_rising(&engage.friends)?;
        let friendships = others + engage.friends.len();
        if friendships as f64 > 2.0 * FRIENDSHIPS_MAX {
            return Err(format!(
                "these are {friendships} friendships; at most {:.0} are allowed",
                2.0 * FRIENDSHIPS_MAX
            ));
        }
        Ok(())
    }

    /// Checks that a client may do this in the next turn.
    pub fn check(&self, id: u32, act: &Act) -> Result<(), String> {
        match act {
            Act::Nothing | Act::NoChat => Ok(()),
            Act::NewChat(invited) => {
                let friends = self.friends(id);
                match invited.iter().find(|friend| friends.binary_search(friend).is_err()) {
                    Some(other) => Err(format!("client {id} cannot invite {other}, which is not its friend")),
                    None => check_rising(invited),
                }
            }
            Act::Leave(chat) => self.check_member(id, *chat),
            Act::Post { chat, size, objects, .. } => {
                if !MESSAGE_BYTES.contains(size) {
                    return Err(format!("a post has from 0 to {} bytes, not {size}", MESSAGE_BYTES.end()));
                }
                if !OBJECTS.contains(objects) {
                    return Err(format!("a post has from 0 to {} objects, not {objects}", OBJECTS.end()));
                }
                self.check_member(id, *chat)
            }
        }
    }

    /// The bytes that a move posts, those of its objects included.
    pub fn posted(act: &Act) -> u64 {
        match act {
            Act::Post { size, objects, .. } => u64::from(*size) + u64::from(*objects) * u64::from(OBJECT_BYTES),
            Act::Nothing | Act::NoChat | Act::NewChat(_) | Act::Leave(_) => 0,
        }
    }

    /// Checks that the posts of a turn may hold this number of bytes.
    pub fn check_posted(bytes: u64) -> Result<(), String> {
        match bytes as f64 <= 2.0 * POSTED_BYTES_PER_TURN_MAX {
            true => Ok(()),
            false => Err(format!(
                "the posts of this turn hold {bytes} bytes, with {OBJECT_BYTES} for each object; at most {:.0} are allowed",
                2.0 * POSTED_BYTES_PER_TURN_MAX
            )),
        }
    }

    fn check_member(&self, id: u32, chat: u64) -> Result<(), String> {
        match self.chats(id).contains(&chat) {
            true => Ok(()),
            false => Err(format!("client {id} was not in chat {} when turn {} began", Chat(chat), self.next)),
        }
    }

    /// Notes that the clients have met.
    pub fn meet(&mut self, engagements: &[(u32, Engage)]) {
        self.friends = vec![Vec::new(); self.clients as usize];
        self.chats = vec![Vec::new(); self.clients as usize];
        for (id, engage) in engagements {
            // By rising id, like the input.
            engage.friends.iter().for_each(|older| self.friends[*older as usize].push(*id));
        }
        self.next = 1;
    }

    /// Notes that the next turn was played.
    pub fn play(&mut self, acts: &[(u32, Act)]) {
        let mut joined: Vec<(u32, u64)> = Vec::new();
        for (id, act) in acts {
            match act {
                Act::NewChat(invited) => {
                    let chat = chat_id(self.next, *id);
                    joined.push((*id, chat));
                    joined.extend(invited.iter().map(|friend| (*friend, chat)));
                }
                Act::Leave(left) => {
                    let chats = &mut self.chats[*id as usize];
                    let at = chats.iter().position(|chat| chat == left).expect("INVARIANT: acts were checked");
                    chats.swap_remove(at);
                }
                Act::Nothing | Act::NoChat | Act::Post { .. } => {}
            }
        }
        // To each, in the order of the chats' ids.
        joined.sort_unstable();
        joined.into_iter().for_each(|(id, chat)| self.chats[id as usize].push(chat));
        self.next += 1;
    }
}

fn check_rising(ids: &[u32]) -> Result<(), String> {
    match ids.windows(2).find(|pair| pair[0] >= pair[1]) {
        Some(pair) => Err(format!("ids rise: {} cannot come behind {}", pair[1], pair[0])),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posts_hold_their_bytes_and_their_objects() {
        let post = |size, objects| Act::Post { chat: 1, size, byte: 0, objects };
        assert_eq!(Ledger::posted(&post(10, 0)), 10);
        assert_eq!(Ledger::posted(&post(10, 1_000_000)), 48_000_010);
        assert_eq!(Ledger::posted(&Act::Leave(1)), 0);
        assert_eq!(Ledger::check_posted(1 << 35), Ok(()));
        let what = Ledger::check_posted((1 << 35) + 1).unwrap_err();
        assert!(what.contains("34359738369 bytes, with 48 for each object; at most 34359738368"), "{what}");
    }
}
