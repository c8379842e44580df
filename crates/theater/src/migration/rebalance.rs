//! Theaters that send their mobile actors elsewhere by themselves.
//!
//! One actor for each [`Rebalance`] that is on looks around now and then, and moves some actors. It knows what it can see from
//! here: how busy this theater is and the others say they are, whom the workers of this one run (samples), and how many
//! messages came to whom from which theater. What it does not know makes it careful rather than exact:
//!
//! *Load.* A theater that is busier than the least busy one by more than the margin gives it actors with at most half of the
//! difference: so neither is the busier one afterwards, and nothing swings. An actor that is more than half of the difference
//! by itself stays.
//!
//! *Talk.* An actor goes where more of its messages come from than from everywhere else together, by more than the margin; it
//! is only counted what it is sent, since who talks is also answered. Two that talk might change places for ever. So each
//! look is left out by chance, every second time: sooner or later one of the two goes alone.
//!
//! A group, which moves as a whole, counts as one actor: its first one that lives here.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use playhouse_actor::wire::Codec;
use playhouse_actor::{Actor, ActorId, ActorRef, Context, Handler, Message};
use playhouse_executor::Sampler;
use rand::Rng;
use rand::seq::SliceRandom;

use crate::link::Link;
use crate::node::core::TheaterCore;
use crate::node::theater::Theater;

/// How a theater is to send its mobile actors elsewhere by itself: see [`Theater::rebalance`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Rebalance {
    goal: Goal,
    every: Duration,
    margin: f64,
    moves_max: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goal {
    Load,
    Talk,
}

/// So few messages are no reason to move.
const MESSAGES_MIN: u64 = 32;
/// From so few samples nothing is guessed: it is waited for more.
const SAMPLES_MIN: u64 = 16;

impl Rebalance {
    fn new(goal: Goal, margin: f64) -> Rebalance {
        Rebalance { goal, every: Duration::from_secs(1), margin, moves_max: 64 }
    }

    /// Evens load: actors go from a theater that is busy to the least busy one that it has a link with.
    ///
    /// Load is the share of time for which the workers had always something to do, from 0 to 1. Which actors take the time is sampled; nobody moves before
    /// there are 16 samples.
    pub fn load() -> Rebalance {
        Rebalance::new(Goal::Load, 0.2)
    }

    /// Brings actors together that talk to each other: an actor goes to the theater that most of its messages come from. An actor with fewer
    /// than 32 messages from that theater since the last look stays.
    pub fn by_traffic() -> Rebalance {
        Rebalance::new(Goal::Talk, 0.5)
    }

    /// The time between two looks. Default: 1 s.
    ///
    /// # Panics
    /// Where it is zero.
    pub fn every(mut self, time: Duration) -> Rebalance {
        assert!(!time.is_zero(), "a balance that looks around all the time leaves none for anything else");
        self.every = time;
        self
    }

    /// What is better by less is left as it is. Of load: the difference between two theaters (default 0.2). Of talk: how many
    /// more messages come from there than from elsewhere, as a share of the latter (default 0.5: half as many again).
    ///
    /// # Panics
    /// Where it is negative, or no number.
    pub fn margin(mut self, margin: f64) -> Rebalance {
        assert!(margin >= 0.0, "a margin of {margin}: it must be 0 or more");
        self.margin = margin;
        self
    }

    /// So many actors move after one look at most. Default: 64.
    pub fn moves_max(mut self, actors: usize) -> Rebalance {
        self.moves_max = actors;
        self
    }
}

/// A [`Rebalance`] that is on, until this is dropped.
#[must_use = "the balance is off again when this is dropped"]
pub struct RebalanceGuard(ActorRef<Rebalancer>);

impl fmt::Debug for RebalanceGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Balancing({})", self.0)
    }
}

impl Drop for RebalanceGuard {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Theater {
    /// Has this theater send its mobile actors to others by itself, until what is returned is dropped. It sends actors away and
    /// fetches none: each theater that is to give some needs its own. What is promised of actors that move holds.
    ///
    /// Both kinds may be on at once.
    pub fn rebalance(&self, balance: Rebalance) -> RebalanceGuard {
        if balance.goal == Goal::Talk {
            self.theater_core.directory.talk.count(true);
        }
        let sampler = self.theater_core.system.core().sample();
        RebalanceGuard(self.theater_core.system.spawn(Rebalancer {
            theater_core: Arc::downgrade(&self.theater_core),
            balance,
            sampler,
            samples: HashMap::new(),
            loads: HashMap::new(),
            handled: 0,
        }))
    }
}

/// How busy this theater is.
#[derive(Debug)]
pub(crate) struct Meter {
    since: Instant,
    busy_ns: u64,
    load: f64,
}

impl Meter {
    pub(crate) fn new() -> Meter {
        Meter { since: Instant::now(), busy_ns: 0, load: 0.0 }
    }

    /// From 0 to 1, in the last tenth of a second or longer.
    pub(crate) fn read(&mut self, system: &playhouse_actor::System) -> f64 {
        const AT_LEAST: Duration = Duration::from_millis(100);
        let elapsed = self.since.elapsed();
        if elapsed >= AT_LEAST {
            let busy_ns = system.stats().total.busy_ns;
            let all_ns = elapsed.as_nanos() as f64 * system.workers() as f64;
            self.load = ((busy_ns - self.busy_ns) as f64 / all_ns).min(1.0);
            (self.since, self.busy_ns) = (Instant::now(), busy_ns);
        }
        self.load
    }
}

/// Looks around.
struct Rebalancer {
    theater_core: Weak<TheaterCore>,
    balance: Rebalance,
    sampler: Arc<Sampler>,
    samples: HashMap<ActorId, u64>,
    /// What the others have said since the last look.
    loads: HashMap<u64, f64>,
    /// Messages handled here before the last look.
    handled: u64,
}

#[derive(Clone)]
struct Look;
impl Message for Look {
    type Reply = ();
}

struct TrafficReport {
    theater: u64,
    load: f64,
}
impl Message for TrafficReport {
    type Reply = ();
}

impl Actor for Rebalancer {
    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.send_every(self.balance.every, Look);
        self.ask_others(ctx);
    }

    fn stopped(&mut self, _: &mut Context<Self>) {
        if let Some(theater_core) = self.theater_core.upgrade()
            && self.balance.goal == Goal::Talk
        {
            theater_core.directory.talk.count(false);
        }
    }
}

impl Handler<TrafficReport> for Rebalancer {
    fn handle(&mut self, TrafficReport { theater, load }: TrafficReport, _: &mut Context<Self>) {
        self.loads.insert(theater, load);
    }
}

impl Handler<Look> for Rebalancer {
    fn handle(&mut self, _: Look, ctx: &mut Context<Self>) {
        let Some(theater_core) = self.theater_core.upgrade() else { return };
        for sample in self.sampler.take() {
            *self.samples.entry(ActorId::of(sample)).or_default() += 1;
        }
        if self.samples.values().sum::<u64>() >= SAMPLES_MIN {
            let mut samples: HashMap<ActorId, u64> = HashMap::new();
            for (actor, count) in std::mem::take(&mut self.samples) {
                *samples.entry(theater_core.first_of(actor)).or_default() += count;
            }
            let moves = match self.balance.goal {
                Goal::Load => self.even_load(&theater_core, &samples),
                Goal::Talk => self.follow_talk(&theater_core, &samples),
            };
            for (actor, link) in moves {
                // Who cannot go is told, and stays.
                theater_core.migrate(actor, link, Box::new(drop));
            }
        }
        self.ask_others(ctx);
    }
}

impl Rebalancer {
    fn ask_others(&mut self, ctx: &mut Context<Self>) {
        self.loads.clear();
        if self.balance.goal != Goal::Load {
            return;
        }
        let this = ctx.this();
        for link in self.theater_core.upgrade().iter().flat_map(|theater_core| theater_core.all_links()) {
            let theater = link.incarnation;
            link.ask_load(Box::new(move |answer| {
                // Who does not answer is not asked to take anything.
                if let Some(Ok(load)) = answer.ok().map(|(codec, bytes): (Codec, &[u8])| codec.read(bytes)) {
                    this.tell(TrafficReport { theater, load });
                }
            }));
        }
    }

    fn even_load(&self, theater_core: &TheaterCore, samples: &HashMap<ActorId, u64>) -> Vec<(ActorId, Arc<Link>)> {
        let here = theater_core.load();
        let coolest = self.loads.iter().min_by(|(_, one), (_, other)| one.total_cmp(other));
        let Some((&theater, &there)) = coolest.filter(|(_, there)| here - **there > self.balance.margin) else {
            return Vec::new();
        };
        let Some(link) = theater_core.directory.link(theater).filter(|link| !link.is_lost()) else { return Vec::new() };
        let all: u64 = samples.values().sum();
        // In samples: `here` is what all of them stand for.
        let mut left = (here - there) / 2.0 / here * all as f64;
        let mut actors: Vec<(ActorId, u64)> = samples.iter().map(|(actor, count)| (*actor, *count)).collect();
        actors.shuffle(&mut rand::rng());
        let mut moves = Vec::new();
        for (actor, count) in actors {
            if moves.len() < self.balance.moves_max && count as f64 <= left && is_here(theater_core, actor) {
                left -= count as f64;
                moves.push((actor, Arc::clone(&link)));
            }
        }
        moves
    }

    fn follow_talk(
        &mut self,
        theater_core: &TheaterCore,
        samples: &HashMap<ActorId, u64>,
    ) -> Vec<(ActorId, Arc<Link>)> {
        let mut heard = Counts::new();
        for (actor, from) in theater_core.directory.talk.take() {
            let all = heard.entry(theater_core.first_of(actor)).or_default();
            from.into_iter().for_each(|(theater, count)| *all.entry(theater).or_default() += count);
        }
        let handled = theater_core.system.stats().total.received;
        let of_all = handled - std::mem::replace(&mut self.handled, handled);
        let all: u64 = samples.values().sum();
        if rand::rng().random() {
            return Vec::new();
        }
        let mut moves = Vec::new();
        for (actor, from) in heard {
            let Some((&theater, &most)) = from.iter().max_by_key(|(_, count)| **count) else { continue };
            // What comes from here is not counted, but can be guessed: what the actor was seen to handle, less the rest.
            let guessed = of_all as f64 * samples.get(&actor).map_or(0.0, |count| *count as f64 / all as f64);
            let far: u64 = from.values().sum();
            let others = (guessed - far as f64).max(0.0) + (far - most) as f64;
            if most < MESSAGES_MIN
                || (most as f64) <= others * (1.0 + self.balance.margin)
                || !is_here(theater_core, actor)
            {
                continue;
            }
            if let Some(link) = theater_core.directory.link(theater).filter(|link| !link.is_lost()) {
                moves.push((actor, link));
            }
            if moves.len() == self.balance.moves_max {
                break;
            }
        }
        moves
    }
}

/// Whether it is a mobile actor that lives here.
fn is_here(theater_core: &TheaterCore, actor: ActorId) -> bool {
    let address = actor.address();
    !address.is_stale() && !address.is_away() && theater_core.registry.migration_vtable(actor).is_some()
}

/// How many messages came for whom from which theater.
#[derive(Debug, Default)]
pub(crate) struct Talk {
    /// So many want to know.
    counts: std::sync::atomic::AtomicUsize,
    heard: std::sync::Mutex<Counts>,
}

type Counts = HashMap<ActorId, HashMap<u64, u64>>;

impl Talk {
    fn count(&self, on: bool) {
        // Relaxed: a few messages more or less are counted.
        if on {
            self.counts.fetch_add(1, Ordering::Relaxed);
        } else if self.counts.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.take();
        }
    }

    fn take(&self) -> Counts {
        std::mem::take(&mut *self.heard.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// A message came from `theater` for `actor`.
    #[inline]
    pub(crate) fn note(&self, actor: ActorId, theater: u64) {
        if self.counts.load(Ordering::Relaxed) > 0 {
            let mut heard = self.heard.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            *heard.entry(actor).or_default().entry(theater).or_default() += 1;
        }
    }
}
