//! Writes recordings: the choices of a scenario's dice.

use std::io::{self, Write};

use super::act::{Act, Chat};
use super::ledger::Ledger;
use super::script::{FORMAT, Header, kind_of};
use crate::chatapp::dice::{Choice, MoveDice};
use crate::chatapp::messages::Engage;
use crate::chatapp::scenario::{MessageShape, Scenario};
use crate::harness::random::Dice;

/// A description of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Turns.
    pub turns: u32,
    /// Moves in which a client does something, or would if it were in a chat.
    pub moves: u64,
    /// Requests to be friends.
    pub friendships: u64,
}

/// Writes the recording of a scenario, and tells `observer` of each turn that was written.
///
/// It needs the memory of all friendships and memberships, and no actor. The bytes depend on nothing but the scenario.
///
/// # Errors
/// `out` does not take it.
pub fn record(scenario: &Scenario, out: &mut impl Write, mut observer: impl FnMut(u32)) -> io::Result<Recorded> {
    let move_dice = MoveDice::of(scenario);
    let mut ledger = Ledger::new(scenario);
    let mut recorded = Recorded { turns: scenario.turns, moves: 0, friendships: 0 };
    writeln!(out, "{FORMAT}\n{}", Header::of(scenario))?;

    let mut dice = Vec::with_capacity(scenario.clients as usize);
    let mut engagements = Vec::with_capacity(scenario.clients as usize);
    for id in 0..scenario.clients {
        let mut own = Dice::of_client(scenario.seed, id);
        let work = scenario.work_of(&mut own);
        let mut friends = Vec::new();
        while let Some(older) = own.next_success(move_dice.befriend, friends.last().map_or(0, |last| last + 1), id) {
            friends.push(older);
        }
        let (kind, amount) = kind_of(work);
        write!(out, "client {id} {kind} {amount}")?;
        write_ids(out, &friends)?;
        recorded.friendships += friends.len() as u64;
        engagements.push((id, Engage { work, friends: friends.into() }));
        dice.push(own);
    }
    writeln!(out, "ready")?;
    ledger.meet(&engagements);
    drop(engagements);

    let mut acts = Vec::new();
    for turn in 1..=scenario.turns {
        writeln!(out, "turn {turn}")?;
        for (id, dice) in (0..).zip(&mut dice) {
            let act = act(scenario, &move_dice, &ledger, id, dice);
            if act != Act::Nothing {
                write_act(out, id, &act)?;
                acts.push((id, act));
            }
        }
        writeln!(out, "end {turn}")?;
        recorded.moves += acts.len() as u64;
        ledger.play(&acts);
        acts.clear();
        observer(turn);
    }
    writeln!(out, "close")?;
    out.flush()?;
    Ok(recorded)
}

/// Returns the choice of a client's dice.
fn act(scenario: &Scenario, move_dice: &MoveDice, ledger: &Ledger, id: u32, dice: &mut Dice) -> Act {
    let chats = ledger.chats(id);
    match move_dice.choose(dice, chats.len()) {
        Choice::Nothing => Act::Nothing,
        Choice::NoChat => Act::NoChat,
        Choice::NewChat => {
            let invited = ledger.friends(id).iter().copied().filter(|_| dice.happens(move_dice.invite));
            Act::NewChat(invited.collect())
        }
        Choice::Leave { at } => Act::Leave(chats[at]),
        Choice::Post { at, byte } => {
            let MessageShape { size, objects, .. } = scenario.message;
            Act::Post { chat: chats[at], size, byte, objects }
        }
    }
}

fn write_act(out: &mut impl Write, id: u32, act: &Act) -> io::Result<()> {
    match act {
        Act::Nothing => Ok(()),
        Act::NoChat => writeln!(out, "none {id}"),
        Act::NewChat(invited) => {
            write!(out, "chat {id}")?;
            write_ids(out, invited)
        }
        Act::Leave(chat) => writeln!(out, "leave {id} {}", Chat(*chat)),
        Act::Post { chat, size, byte, objects: 0 } => writeln!(out, "post {id} {} {size} {byte}", Chat(*chat)),
        Act::Post { chat, size, byte, objects } => writeln!(out, "post {id} {} {size} {byte} {objects}", Chat(*chat)),
    }
}

fn write_ids(out: &mut impl Write, ids: &[u32]) -> io::Result<()> {
    ids.iter().try_for_each(|id| write!(out, " {id}"))?;
    writeln!(out)
}
