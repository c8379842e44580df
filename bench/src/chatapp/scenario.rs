//! The scenario of a ChatApp world: the tuning knobs of §6.2, read from TOML.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::graph::OBJECT_BYTES;
use super::reader::{Problem, Reader, ScenarioError, Section};
use crate::harness::busy_work::Work;
use crate::harness::random::{Chance, Dice};

/// The allowed numbers of turns.
pub const TURNS: RangeInclusive<u32> = 1..=10_000_000;
/// The allowed numbers of clients.
pub const CLIENTS: RangeInclusive<u32> = 1..=10_000_000;
/// The allowed numbers of directories (and no more than the number of clients).
pub const DIRECTORIES: RangeInclusive<u32> = 1..=100_000;
/// The allowed sizes of a posted message, in bytes.
pub const MESSAGE_BYTES: RangeInclusive<u32> = 0..=16_777_216;
/// The allowed numbers of objects in the graph of a posted message.
pub const OBJECTS: RangeInclusive<u32> = 0..=1_000_000;
/// The allowed numbers of posts that a chat keeps.
pub const HISTORY: RangeInclusive<u32> = 0..=1_000_000;
/// The allowed amounts of busy work per move: steps, or bytes.
pub const WORK_AMOUNT: RangeInclusive<u32> = 0..=1_000_000_000;
/// The most friend requests that a world may be expected to make when it starts.
pub const FRIENDSHIPS_MAX: f64 = 100_000_000.0;
/// The most bytes that the posts of one turn may be expected to hold, with [`OBJECT_BYTES`](super::OBJECT_BYTES) for each object.
pub const POSTED_BYTES_PER_TURN_MAX: f64 = 16.0 * 1024.0 * 1024.0 * 1024.0;

/// A ChatApp world: the numbers of its actors and their behaviour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// The name it is reported under: the built-in name or the file.
    pub name: String,
    /// The number of turns; every client makes one move in each.
    pub turns: u32,
    /// The number of clients.
    pub clients: u32,
    /// The number of directories for the clients.
    pub directories: u32,
    /// The seed of every client's dice.
    pub seed: u32,
    /// The probabilities of the moves.
    pub behaviour: Behaviour,
    /// The density of friendships and invitations.
    pub connectedness: Connectedness,
    /// The content of posts.
    pub message: MessageShape,
    /// The busy work of a move, by share of the clients; clients of no share do none.
    pub work: Vec<WorkShare>,
}

/// The probability of each behaviour in a move, in percent; for the remainder of 100 the client does nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Behaviour {
    /// Start a chat and invite friends to it.
    pub new_chat: f64,
    /// Leave a chat.
    pub leave: f64,
    /// Post a message to a chat.
    pub post: f64,
}

/// The density of friendships and invitations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Connectedness {
    /// The probability that a client befriends each older client, in percent.
    pub befriend: f64,
    /// The probability that each friend is invited to a new chat, in percent.
    pub invite: f64,
}

/// The content of posts, and the length of the history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MessageShape {
    /// The bytes of a posted message.
    pub size: u32,
    /// The objects of the graph in a post; with 0 there is no graph.
    pub objects: u32,
    /// The number of latest posts that a chat keeps.
    pub history: u32,
}

/// The kinds of busy work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkKind {
    /// Arithmetic; `amount` is in steps.
    Compute,
    /// Allocation and memory traffic; `amount` is in bytes.
    Memory,
}

/// The busy work of a share of the clients.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkShare {
    /// The share of the clients that do it, in percent.
    pub share: f64,
    /// The kind of work.
    pub kind: WorkKind,
    /// The average amount per move of a client.
    pub amount: u32,
    /// The greatest deviation of a client's own amount from the average, in percent of it.
    pub spread: f64,
}

impl Scenario {
    /// Reads a scenario; `file` is its name in errors and in the report.
    ///
    /// # Errors
    /// Every unknown key, wrong type, impossible size and contradiction of the text, all at once.
    pub fn from_toml(file: &str, text: &str) -> Result<Scenario, ScenarioError> {
        let mut reader = Reader::new(file, text);
        let table = reader.parse()?;
        let mut root = reader.root(table.get_ref());
        let r = &mut reader;
        let turns = root.integer(r, "turns", TURNS, None);
        let clients = root.integer(r, "clients", CLIENTS, None);
        let directories = root.integer(r, "directories", DIRECTORIES, Some(1));
        let seed = root.integer(r, "seed", 0..=u32::MAX, Some(1));

        let mut section = root.section(r, "behaviour");
        let nothing = section.percent(r, "nothing");
        let behaviour = Behaviour {
            new_chat: section.percent(r, "new_chat").unwrap_or(0.0),
            leave: section.percent(r, "leave").unwrap_or(0.0),
            post: section.percent(r, "post").unwrap_or(0.0),
        };
        section.close(r);

        let mut section = root.section(r, "connectedness");
        let connectedness = Connectedness {
            befriend: section.percent(r, "befriend").unwrap_or(0.0),
            invite: section.percent(r, "invite").unwrap_or(0.0),
        };
        section.close(r);

        let mut section = root.section(r, "message");
        let message = MessageShape {
            size: section.integer(r, "size", MESSAGE_BYTES, Some(0)),
            objects: section.integer(r, "objects", OBJECTS, Some(0)),
            history: section.integer(r, "history", HISTORY, Some(16)),
        };
        section.close(r);

        let work = root.sections(r, "work").into_iter().map(|section| WorkShare::read(r, section)).collect();
        root.close(r);

        let scenario = Scenario {
            name: file.to_owned(),
            turns,
            clients,
            directories,
            seed,
            behaviour,
            connectedness,
            message,
            work,
        };
        for (key, because, what) in scenario.contradictions(nothing) {
            if !because.iter().any(|key| r.has_failed(key)) {
                r.reject(&key, what);
            }
        }
        reader.finish(scenario)
    }

    /// Checks a scenario that was made or changed in code.
    ///
    /// # Errors
    /// Every contradiction between its fields.
    pub fn check(&self) -> Result<(), ScenarioError> {
        let problems: Vec<Problem> = self
            .contradictions(None)
            .into_iter()
            .map(|(key, _, what)| Problem { line: None, key, value: None, what })
            .collect();
        if problems.is_empty() { Ok(()) } else { Err(ScenarioError { file: self.name.clone(), problems }) }
    }

    /// Returns the contradictions between values: `(key to blame, related keys, description)`.
    fn contradictions(&self, nothing: Option<f64>) -> Vec<(String, Vec<&'static str>, String)> {
        let mut found = Vec::new();
        let mut blame = |key: &str, because: &[&'static str], what: String| {
            found.push((key.to_owned(), because.to_vec(), what));
        };
        if self.turns == 0 || self.clients == 0 {
            blame("turns", &["turns", "clients"], "a world needs at least one turn and one client".to_owned());
        }
        if self.directories == 0 || self.directories > self.clients {
            let what = format!("must be from 1 to the number of clients, which is {}", self.clients);
            blame("directories", &["clients", "directories"], what);
        }
        let Behaviour { new_chat, leave, post } = self.behaviour;
        let sum = new_chat + leave + post;
        let keys = ["behaviour", "behaviour.new_chat", "behaviour.leave", "behaviour.post", "behaviour.nothing"];
        if sum > 100.0 + ROUNDING {
            let what = format!("new_chat, leave and post must sum to at most 100, and sum to {sum}");
            blame(if post > 0.0 { "behaviour.post" } else { "behaviour.leave" }, &keys, what);
        } else if let Some(nothing) = nothing
            && (sum + nothing - 100.0).abs() > ROUNDING
        {
            let rest = 100.0 - sum;
            let what = format!("must be {rest}, which new_chat, leave and post leave over of 100, or be left out");
            blame("behaviour.nothing", &keys, what);
        }
        let clients = f64::from(self.clients);
        let friendships = clients * (clients - 1.0) / 2.0 * self.connectedness.befriend / 100.0;
        if friendships > FRIENDSHIPS_MAX {
            let most = FRIENDSHIPS_MAX / (clients * (clients - 1.0) / 2.0) * 100.0;
            let what = format!(
                "makes about {friendships:.0} friendships among {} clients; at most {FRIENDSHIPS_MAX:.0} are allowed, so it \
                 must be from 0 to {most:.6}",
                self.clients
            );
            blame("connectedness.befriend", &["clients", "connectedness", "connectedness.befriend"], what);
        }
        let posts = clients * post / 100.0;
        let MessageShape { size, objects, .. } = self.message;
        let keys = ["clients", "message", "message.size", "message.objects", "behaviour", "behaviour.post"];
        let (of_bytes, of_objects) = (posts * f64::from(size), posts * f64::from(objects) * f64::from(OBJECT_BYTES));
        let posted = of_bytes + of_objects;
        if of_bytes > POSTED_BYTES_PER_TURN_MAX {
            let most = (POSTED_BYTES_PER_TURN_MAX / posts).floor();
            let what = format!(
                "makes about {of_bytes:.0} bytes of posts per turn; at most {POSTED_BYTES_PER_TURN_MAX:.0} are allowed, so it \
                 must be from 0 to {most:.0}"
            );
            blame("message.size", &keys, what);
        } else if posted > POSTED_BYTES_PER_TURN_MAX {
            let most = ((POSTED_BYTES_PER_TURN_MAX - of_bytes) / posts / f64::from(OBJECT_BYTES)).floor();
            let what = format!(
                "makes about {posted:.0} bytes of posts per turn, with {size} bytes and {OBJECT_BYTES} for each object; at most \
                 {POSTED_BYTES_PER_TURN_MAX:.0} are allowed, so it must be from 0 to {most:.0}"
            );
            blame("message.objects", &keys, what);
        }
        let shares: f64 = self.work.iter().map(|work| work.share).sum();
        if shares > 100.0 + ROUNDING {
            let what = format!("the shares must sum to at most 100, and sum to {shares}");
            blame(&format!("work[{}].share", self.work.len() - 1), &["work"], what);
        }
        for (at, work) in self.work.iter().enumerate() {
            if work.kind == WorkKind::Memory && work.amount > WORK_BYTES_MAX {
                let what = format!("must be from 0 to {WORK_BYTES_MAX} bytes for work of the kind \"memory\"");
                blame(&format!("work[{at}].amount"), &["work"], what);
            }
        }
        found
    }

    /// The work of a client, decided by its own dice.
    pub(super) fn work_of(&self, dice: &mut Dice) -> Work {
        let mut roll = u64::from(dice.roll());
        for work in &self.work {
            let share = Chance::of_percent(work.share).threshold();
            if roll < share {
                return work.of_client(dice);
            }
            roll -= share;
        }
        Work::Idle
    }
}

/// The most bytes of work per move.
pub(super) const WORK_BYTES_MAX: u32 = 268_435_456;

/// The tolerance for sums of decimal fractions.
const ROUNDING: f64 = 1e-6;

impl WorkShare {
    fn read<'a>(reader: &mut Reader<'a>, mut section: Section<'a>) -> WorkShare {
        let kinds = [("compute", WorkKind::Compute), ("memory", WorkKind::Memory)];
        let share = section.percent(reader, "share");
        // A share that cannot be read must not make the sum of the shares wrong as well.
        let otherwise = if reader.has_failed(&section.path_of("share")) { 0.0 } else { 100.0 };
        let work = WorkShare {
            share: share.unwrap_or(otherwise),
            kind: section.choice(reader, "kind", &kinds),
            amount: section.integer(reader, "amount", WORK_AMOUNT, None),
            spread: section.percent(reader, "spread").unwrap_or(0.0),
        };
        section.close(reader);
        work
    }

    fn of_client(&self, dice: &mut Dice) -> Work {
        let reach = (f64::from(self.amount) * self.spread / 100.0) as u32;
        let amount = self.amount - reach + dice.pick(2 * reach as usize + 1) as u32;
        match self.kind {
            WorkKind::Compute => Work::Compute(amount),
            WorkKind::Memory => Work::Memory(amount),
        }
    }
}
