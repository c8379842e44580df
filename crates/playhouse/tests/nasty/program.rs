//! Programs: their parts, and the way they are drawn.

use std::fmt;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

/// An action that a program may do, and that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ingredient {
    /// `started`, `stopped` or `terminated` panics.
    HookPanics,
    /// `stopped` spawns an actor.
    StoppedSpawns,
    /// The dead-letter hook panics.
    DeadLetterHookPanics,
    /// The dead-letter hook sends, spawns or stops.
    DeadLetterHookSends,
    /// The `Drop` of a message panics.
    MessageDropPanics,
    /// The `Drop` of a message sends, spawns or stops.
    MessageDropSends,
    /// The `Drop` of a state panics.
    StateDropPanics,
    /// The `Drop` of a state sends, spawns or stops.
    StateDropSends,
    /// The `Drop` of an async handler's value panics.
    FutureDropPanics,
    /// The `Drop` of an async handler's value sends, spawns or stops.
    FutureDropSends,
    /// The waker of a future of another executor panics.
    WakerPanics,
    /// The waker of a future of another executor sends, spawns or stops.
    WakerSends,
    /// The `Drop` of such a waker panics.
    WakerDropPanics,
    /// The `Drop` of such a waker sends, spawns or stops.
    WakerDropSends,
    /// A timer is set with a message that has a script in its `Drop`.
    TimerMessageDrops,
    /// A handler, a hook or a `Drop` blocks until the monitor takes over.
    Takeover,
    /// Actors have threads of their own.
    Dedicated,
    /// Mailboxes are bounded.
    Bounded,
    /// Threads outside send while the system is shut down.
    Racing,
    /// Hooks and `Drop`s do something while the system is shut down.
    EndScripts,
}

impl Ingredient {
    pub const ALL: [Ingredient; 20] = [
        Ingredient::HookPanics,
        Ingredient::StoppedSpawns,
        Ingredient::DeadLetterHookPanics,
        Ingredient::DeadLetterHookSends,
        Ingredient::MessageDropPanics,
        Ingredient::MessageDropSends,
        Ingredient::StateDropPanics,
        Ingredient::StateDropSends,
        Ingredient::FutureDropPanics,
        Ingredient::FutureDropSends,
        Ingredient::WakerPanics,
        Ingredient::WakerSends,
        Ingredient::WakerDropPanics,
        Ingredient::WakerDropSends,
        Ingredient::TimerMessageDrops,
        Ingredient::Takeover,
        Ingredient::Dedicated,
        Ingredient::Bounded,
        Ingredient::Racing,
        Ingredient::EndScripts,
    ];
}

/// The places at which a script runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Handler,
    AsyncHandler,
    Answer,
    Started,
    Stopped,
    Terminated,
    MessageDrop,
    StateDrop,
    FutureDrop,
    DeadLetter,
    Waker,
    WakerDrop,
    Thread,
}

pub type Script = Vec<Step>;

/// The steps of a script. Numbers are taken modulo the size of the list that they index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    Tell {
        to: u8,
        mail: u8,
    },
    TellUrgent {
        to: u8,
        mail: u8,
    },
    TryTell {
        to: u8,
        mail: u8,
    },
    /// A foreign thread tells.
    TellAbroad {
        to: u8,
        mail: u8,
    },
    /// Awaited in an async handler, waited for in a thread, continued in a handler, and taken back at once in a `Drop`.
    Ask {
        to: u8,
        mail: u8,
        within: Option<u8>,
    },
    /// Polled once with a waker of another executor, and kept.
    Shelve {
        to: u8,
        mail: u8,
        within: Option<u8>,
        waker: u8,
    },
    DropShelved,
    Spawn {
        actor: u8,
    },
    Stop {
        who: u8,
    },
    Drain {
        who: u8,
    },
    Kill {
        who: u8,
    },
    StopSelf,
    Fail,
    Panic,
    After {
        mail: u8,
        ms: u8,
    },
    Every {
        mail: u8,
        ms: u8,
    },
    Spaced {
        mail: u8,
        ms: u8,
    },
    Cancel {
        timer: u8,
    },
    Watch {
        who: u8,
    },
    Block {
        ms: u8,
    },
    /// Lets others run: the thread, or an async handler's worker.
    Yield,
    /// Waits for a foreign thread that wakes a clone of the waker.
    WakeAbroad,
    /// Keeps a clone of the waker for later.
    KeepWaker,
    WakeKept {
        waker: u8,
    },
    DropKept,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Placed {
    Near,
    Stage(u8),
    Dedicated,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActorScript {
    pub placed: Placed,
    pub bound: Option<u8>,
    pub started: Script,
    pub stopped: Script,
    pub terminated: Script,
    pub drop: Script,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MailScript {
    /// Its handler is async.
    pub waits: bool,
    /// It lies in a box of its own.
    pub large: bool,
    pub handle: Script,
    /// The script of its `Drop`.
    pub drop: Script,
    /// The script in the `Drop` of a value that its async handler holds.
    pub future_drop: Script,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakerScript {
    pub wake: Script,
    pub drop: Script,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    pub workers: u8,
    pub stages: u8,
    /// The seed of a simulated system.
    pub seed: Option<u64>,
    /// The maximum of steps and messages until every script stops.
    pub fuel: u16,
    /// The same maximum while the system is shut down.
    pub end_fuel: u16,
    /// The system is shut down while threads outside still send.
    pub racing: bool,
    pub actors: Vec<ActorScript>,
    pub mails: Vec<MailScript>,
    pub wakers: Vec<WakerScript>,
    pub dead_letter: Script,
    pub threads: Vec<Script>,
}

/// Blocks of this length cause a takeover of the worker's actors.
const LONG_MS: u8 = 10;

impl Step {
    fn sends(&self) -> bool {
        use Step::{
            Ask, Drain, DropKept, DropShelved, Kill, Shelve, Spawn, Stop, Tell, TellAbroad, TellUrgent, TryTell,
            WakeKept,
        };
        matches!(
            self,
            Tell { .. }
                | TellUrgent { .. }
                | TryTell { .. }
                | TellAbroad { .. }
                | Ask { .. }
                | Shelve { .. }
                | DropShelved
                | Spawn { .. }
                | Stop { .. }
                | Drain { .. }
                | Kill { .. }
                | WakeKept { .. }
                | DropKept
        )
    }

    /// Returns the ingredients of this step at `place`.
    fn ingredients(&self, place: Place, mails: &[bool]) -> Vec<Ingredient> {
        use Ingredient as I;
        let mut found = Vec::new();
        match self {
            Step::Panic => found.extend(match place {
                Place::Started | Place::Stopped | Place::Terminated => Some(I::HookPanics),
                Place::DeadLetter => Some(I::DeadLetterHookPanics),
                Place::MessageDrop => Some(I::MessageDropPanics),
                Place::StateDrop => Some(I::StateDropPanics),
                Place::FutureDrop => Some(I::FutureDropPanics),
                Place::Waker => Some(I::WakerPanics),
                Place::WakerDrop => Some(I::WakerDropPanics),
                _ => None,
            }),
            Step::Block { ms } if *ms >= LONG_MS => found.push(I::Takeover),
            Step::After { mail, .. } | Step::Every { mail, .. } | Step::Spaced { mail, .. }
                if mails[usize::from(*mail) % mails.len()] =>
            {
                found.push(I::TimerMessageDrops);
            }
            Step::Spawn { .. } if place == Place::Stopped => found.push(I::StoppedSpawns),
            _ => {}
        }
        if self.sends() {
            found.extend(match place {
                Place::DeadLetter => Some(I::DeadLetterHookSends),
                Place::MessageDrop => Some(I::MessageDropSends),
                Place::StateDrop => Some(I::StateDropSends),
                Place::FutureDrop => Some(I::FutureDropSends),
                Place::Waker => Some(I::WakerSends),
                Place::WakerDrop => Some(I::WakerDropSends),
                _ => None,
            });
        }
        found
    }
}

impl Program {
    fn scripts(&mut self) -> impl Iterator<Item = (Place, &mut Script)> {
        let Program { actors, mails, wakers, dead_letter, threads, .. } = self;
        let actors = actors.iter_mut().flat_map(|actor| {
            [
                (Place::Started, &mut actor.started),
                (Place::Stopped, &mut actor.stopped),
                (Place::Terminated, &mut actor.terminated),
                (Place::StateDrop, &mut actor.drop),
            ]
        });
        let mails = mails.iter_mut().flat_map(|mail| {
            let handler = if mail.waits { Place::AsyncHandler } else { Place::Handler };
            [
                (handler, &mut mail.handle),
                (Place::MessageDrop, &mut mail.drop),
                (Place::FutureDrop, &mut mail.future_drop),
            ]
        });
        let wakers =
            wakers.iter_mut().flat_map(|waker| [(Place::Waker, &mut waker.wake), (Place::WakerDrop, &mut waker.drop)]);
        let threads = threads.iter_mut().map(|script| (Place::Thread, script));
        actors.chain(mails).chain(wakers).chain(threads).chain([(Place::DeadLetter, dead_letter)])
    }

    /// Takes `ingredients` out.
    pub fn without(mut self, ingredients: &[Ingredient]) -> Program {
        let is_out = |ingredient| ingredients.contains(&ingredient);
        let mut drops: Vec<bool> = Vec::new();
        // First the `Drop`s of messages, because timers may have messages with empty ones.
        for only_drops in [true, false] {
            for (place, script) in self.scripts() {
                if only_drops == (place == Place::MessageDrop) {
                    script.retain(|step| {
                        let mails: &[bool] = if only_drops { &[false] } else { &drops };
                        !step.ingredients(place, mails).into_iter().any(is_out)
                    });
                }
            }
            drops = self.mails.iter().map(|mail| !mail.drop.is_empty()).collect();
        }
        for actor in &mut self.actors {
            if is_out(Ingredient::Dedicated) && actor.placed == Placed::Dedicated {
                actor.placed = Placed::Near;
            }
            actor.bound = actor.bound.filter(|_| !is_out(Ingredient::Bounded));
        }
        self.racing &= !is_out(Ingredient::Racing);
        if is_out(Ingredient::EndScripts) {
            self.end_fuel = 0;
        }
        self
    }
}

impl fmt::Display for Program {
    /// Writes one line that `NASTY_PROGRAM` takes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).expect("a program is plain data"))
    }
}

/// Draws a step that needs no context.
fn bare_step() -> impl Strategy<Value = Step> {
    let n = || 0..12_u8;
    let both = || (0..12_u8, 0..12_u8);
    prop_oneof![
        10 => both().prop_map(|(to, mail)| Step::Tell { to, mail }),
        2 => both().prop_map(|(to, mail)| Step::TellUrgent { to, mail }),
        2 => both().prop_map(|(to, mail)| Step::TryTell { to, mail }),
        2 => both().prop_map(|(to, mail)| Step::TellAbroad { to, mail }),
        8 => (both(), option::of(0..8_u8)).prop_map(|((to, mail), within)| Step::Ask { to, mail, within }),
        4 => (both(), option::of(0..8_u8), n())
            .prop_map(|((to, mail), within, waker)| Step::Shelve { to, mail, within, waker }),
        1 => Just(Step::DropShelved),
        5 => n().prop_map(|actor| Step::Spawn { actor }),
        1 => n().prop_map(|who| Step::Stop { who }),
        1 => n().prop_map(|who| Step::Drain { who }),
        1 => n().prop_map(|who| Step::Kill { who }),
        2 => Just(Step::Panic),
        1 => prop_oneof![9 => 0..2_u8, 1 => LONG_MS..30_u8].prop_map(|ms| Step::Block { ms }),
        2 => Just(Step::Yield),
        2 => n().prop_map(|waker| Step::WakeKept { waker }),
        1 => Just(Step::DropKept),
    ]
}

/// Draws a step of a handler or a hook.
fn step() -> impl Strategy<Value = Step> {
    let n = || 0..12_u8;
    let timed = || (0..12_u8, 0..6_u8);
    let own = prop_oneof![
        1 => Just(Step::StopSelf),
        1 => Just(Step::Fail),
        4 => timed().prop_map(|(mail, ms)| Step::After { mail, ms }),
        2 => timed().prop_map(|(mail, ms)| Step::Every { mail, ms: ms + 1 }),
        2 => timed().prop_map(|(mail, ms)| Step::Spaced { mail, ms: ms + 1 }),
        4 => n().prop_map(|timer| Step::Cancel { timer }),
        3 => n().prop_map(|who| Step::Watch { who }),
        4 => Just(Step::WakeAbroad),
        3 => Just(Step::KeepWaker),
    ];
    prop_oneof![3 => bare_step(), 2 => own]
}

/// Draws a script that is empty 3 times of 5.
fn rare(script: impl Strategy<Value = Script>) -> impl Strategy<Value = Script> {
    option::weighted(0.4, script).prop_map(Option::unwrap_or_default)
}

fn hook() -> impl Strategy<Value = Script> {
    rare(vec(step(), 1..=4))
}

fn bare() -> impl Strategy<Value = Script> {
    rare(vec(bare_step(), 1..=3))
}

fn actor() -> impl Strategy<Value = ActorScript> {
    let placed = prop_oneof![
        6 => Just(Placed::Near),
        6 => (0..16_u8).prop_map(Placed::Stage),
        1 => Just(Placed::Dedicated),
    ];
    let bound = option::weighted(0.2, 1..4_u8);
    (placed, bound, hook(), hook(), hook(), bare()).prop_map(|(placed, bound, started, stopped, terminated, drop)| {
        ActorScript { placed, bound, started, stopped, terminated, drop }
    })
}

fn mail() -> impl Strategy<Value = MailScript> {
    (any::<bool>(), prop::bool::weighted(0.2), vec(step(), 0..=6), bare(), bare())
        .prop_map(|(waits, large, handle, drop, future_drop)| MailScript { waits, large, handle, drop, future_drop })
}

/// Draws a program with all ingredients.
pub fn program() -> impl Strategy<Value = Program> {
    let numbers =
        (1..=4_u8, 1..=8_u8, option::weighted(0.4, any::<u64>()), 50..1000_u16, 0..60_u16, prop::bool::weighted(0.3));
    let waker = (vec(bare_step(), 0..=3), bare()).prop_map(|(wake, drop)| WakerScript { wake, drop });
    let threads = vec(vec(bare_step(), 4..=24), 1..=3);
    let scripts = (vec(actor(), 1..=8), vec(mail(), 1..=8), vec(waker, 1..=2), bare(), threads);
    (numbers, scripts).prop_map(|(numbers, (actors, mails, wakers, dead_letter, threads))| {
        let (workers, more_stages, seed, fuel, end_fuel, racing) = numbers;
        Program {
            workers,
            stages: workers + more_stages - 1,
            seed,
            fuel,
            end_fuel,
            racing: racing && seed.is_none(),
            actors,
            mails,
            wakers,
            dead_letter,
            threads,
        }
    })
}
