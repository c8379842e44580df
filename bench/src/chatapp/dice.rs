//! Decisions of the dice.

use super::scenario::Scenario;
use crate::harness::random::{Chance, Dice};

/// The probabilities of the scenario as thresholds: one roll decides between the behaviours.
pub(super) struct MoveDice {
    /// A roll below this starts a chat;
    new_chat_below: u64,
    /// one from there to below this leaves a chat;
    leave_below: u64,
    /// one from there to below this posts; any other does nothing.
    post_below: u64,
    pub befriend: Chance,
    pub invite: Chance,
}

/// The decision of a client's dice for a move. Chats are given by their index among those that the client may post to or leave.
pub(super) enum Choice {
    Nothing,
    /// The client should leave or post, but is in no chat.
    NoChat,
    NewChat,
    Leave {
        at: usize,
    },
    Post {
        at: usize,
        byte: u8,
    },
}

impl MoveDice {
    pub fn of(scenario: &Scenario) -> MoveDice {
        let threshold = |percent: f64| Chance::of_percent(percent.min(100.0)).threshold();
        let behaviour = scenario.behaviour;
        MoveDice {
            new_chat_below: threshold(behaviour.new_chat),
            leave_below: threshold(behaviour.new_chat + behaviour.leave),
            post_below: threshold(behaviour.new_chat + behaviour.leave + behaviour.post),
            befriend: Chance::of_percent(scenario.connectedness.befriend),
            invite: Chance::of_percent(scenario.connectedness.invite),
        }
    }

    /// Chooses the move of a client that may post to or leave this number of chats.
    #[inline]
    pub fn choose(&self, dice: &mut Dice, chats: usize) -> Choice {
        let roll = u64::from(dice.roll());
        if roll < self.new_chat_below {
            Choice::NewChat
        } else if roll >= self.post_below {
            Choice::Nothing
        } else if chats == 0 {
            Choice::NoChat
        } else if roll < self.leave_below {
            Choice::Leave { at: dice.pick(chats) }
        } else {
            let at = dice.pick(chats);
            Choice::Post { at, byte: dice.roll().to_be_bytes()[0] }
        }
    }
}
