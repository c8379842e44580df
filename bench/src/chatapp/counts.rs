//! The counts of the actors, and their sums.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::migration_plan::Order;

macro_rules! counters {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[doc = $doc:literal])* $field:ident,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct $name {
            $($(#[doc = $doc])* pub $field: u64,)*
        }

        impl $name {
            /// Each counter with its name, in the order of declaration.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($field), self.$field)),*].into_iter()
            }
        }

        /// Addition wraps: the checksums among the counters are sums of hashes.
        impl AddAssign<&$name> for $name {
            fn add_assign(&mut self, other: &$name) {
                $(self.$field = self.$field.wrapping_add(other.$field);)*
            }
        }
    };
}

counters! {
    /// Messages by kind, counted by their senders.
    pub struct Messages {
        /// World to directory: begin a phase.
        phase,
        /// Directory to world: the phase has ended in this directory.
        phase_done,
        /// Directory to client: make your friends.
        meet,
        /// Directory to client: make your move.
        make_move,
        /// Directory to client: log out.
        log_out,
        /// Client to directory: the client's part of the phase has ended, with all its consequences.
        done,
        /// Client to directory: offline.
        offline,
        /// Client to directory: a request for the client with this id.
        lookup,
        /// Directory to client: this one.
        found,
        /// Client to client: be my friend.
        befriend,
        /// Client to client: I am.
        befriended,
        /// Client to client: join this chat.
        invite,
        /// Client to chat: let me in.
        join,
        /// Chat to client: you are in.
        joined,
        /// Client to client: I am in the chat that you invited me to.
        accepted,
        /// Client to chat: let me out.
        leave,
        /// Chat (its creator, when it closes) to client: you are out.
        left,
        /// Chat to its creator: every member has left.
        closed,
        /// Client to chat: tell the others.
        post,
        /// Chat to member: a message was posted.
        deliver,
        /// Member to chat: I have it.
        acknowledge,
        /// Chat to client: every member has the post.
        posted,
        /// Client to chat: the world ends; a request for the counts.
        finish,
        /// Chat to client: this.
        finished,
    }
}

impl Messages {
    /// Returns the number of all messages.
    pub fn total(&self) -> u64 {
        self.named().map(|(_, count)| count).sum()
    }
}

counters! {
    /// The moves, by their result.
    pub struct Moves {
        /// The die said: nothing.
        nothing,
        /// A chat was started.
        new_chat,
        /// A chat was left.
        leave,
        /// A message was posted.
        post,
        /// The die said leave or post, and the client was in no chat.
        no_chat,
    }
}

counters! {
    /// The counts of chats and clients about the delivery of posts. See [`Delivery::verdict`].
    pub struct Delivery {
        /// Posts that chats took (counted by the chats).
        posts,
        /// Posts times the members of their chat at the time (counted by the chats).
        expected,
        /// Sum over those of the hash of (chat, turn, poster, payload, member) (by the chats).
        expected_sum,
        /// Receipts (counted by the clients).
        received,
        /// Sum of the same hash of the received posts (by the clients).
        received_sum,
        /// Acknowledgements that came back (counted by the chats).
        acknowledged,
        /// Sum of the hashes that the acknowledgements carried (by the chats).
        acknowledged_sum,
        /// Posts that clients made (counted by the clients).
        posted,
    }
}

impl Delivery {
    /// Checks that every post reached every member of its chat exactly once.
    ///
    /// The sums are of 64-bit hashes that name the post, its content and the receiver: a message that was lost, doubled,
    /// changed or given to the wrong client changes them even where the numbers agree.
    ///
    /// # Errors
    /// Describes the disagreement, with both sides' numbers.
    pub fn verdict(&self) -> Result<(), String> {
        let pairs = [
            ("posts made by clients, and taken by chats", self.posted, self.posts),
            ("deliveries that chats owed, and receipts of clients", self.expected, self.received),
            ("deliveries that chats owed, and acknowledgements", self.expected, self.acknowledged),
            ("checksum of deliveries owed, and of receipts", self.expected_sum, self.received_sum),
            ("checksum of deliveries owed, and of acknowledgements", self.expected_sum, self.acknowledged_sum),
        ];
        let wrong: Vec<String> = pairs
            .iter()
            .filter(|(_, left, right)| left != right)
            .map(|(what, left, right)| {
                if what.starts_with("checksum") {
                    format!("{what}: {left:#018x}, {right:#018x}")
                } else {
                    let difference = i128::from(*right) - i128::from(*left);
                    format!("{what}: {left}, {right} ({difference:+})")
                }
            })
            .collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
    }
}

counters! {
    /// The objects of the graphs that were posted.
    pub struct Graphs {
        /// Objects of posts, times the members of their chat at the time (counted by the chats).
        expected,
        /// Objects that members walked through, each once in each post (counted by the clients).
        walked,
    }
}

impl Graphs {
    /// Checks that every member reached every object of its posts, and no other. The checksums of [`Delivery::verdict`] cover
    /// the content of the objects and their links.
    ///
    /// # Errors
    /// Describes the disagreement, with both sides' numbers.
    pub fn verdict(&self) -> Result<(), String> {
        let Graphs { expected, walked } = *self;
        match i128::from(walked) - i128::from(expected) {
            0 => Ok(()),
            difference => {
                Err(format!("objects posted to members, and objects walked: {expected}, {walked} ({difference:+})"))
            }
        }
    }
}

counters! {
    /// The growth of the world.
    pub struct Growth {
        /// Friendships made at the start.
        friendships,
        /// Chats that were started.
        chats_started,
        /// Chats that closed because every member had left.
        chats_closed,
        /// Invitations that were followed.
        joins,
        /// Chats left.
        leaves,
        /// Memberships at the end, over all clients.
        memberships,
    }
}

/// The sums of the actors' counts. Sums are independent of the order of arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Messages by kind.
    pub messages: Messages,
    /// Moves by outcome.
    pub moves: Moves,
    /// The delivery of posts.
    pub delivery: Delivery,
    /// Chats, friendships, memberships.
    pub growth: Growth,
    /// The objects of posts.
    pub graphs: Graphs,
    /// Sum of hashes of every client's final state and work.
    pub state_sum: u64,
    /// The order of the posts at the members, checked in worlds of several theaters.
    pub order: Order,
}

impl AddAssign<&Totals> for Totals {
    fn add_assign(&mut self, other: &Totals) {
        self.messages += &other.messages;
        self.moves += &other.moves;
        self.delivery += &other.delivery;
        self.growth += &other.growth;
        self.graphs += &other.graphs;
        self.state_sum = self.state_sum.wrapping_add(other.state_sum);
        self.order.wrong += other.order.wrong;
        self.order.over_a_move += other.order.over_a_move;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_names_the_numbers_that_disagree() {
        let mut delivery =
            Delivery { posts: 2, posted: 2, expected: 10, received: 10, acknowledged: 10, ..Delivery::default() };
        assert_eq!(delivery.verdict(), Ok(()));
        delivery.received = 9;
        let error = delivery.verdict().unwrap_err();
        assert!(error.contains("10, 9 (-1)"), "{error}");
        delivery.received = 10;
        delivery.received_sum = 1;
        let error = delivery.verdict().unwrap_err();
        assert!(error.contains("0x0000000000000001"), "{error}");
    }
}
