//! Theaters that migrate their mobile actors by themselves.
//!
//! One actor for each active [`Rebalance`] inspects the theater at intervals, and migrates some actors. It observes the load of this theater and the
//! reported load of the others. It also observes samples of the actors that the workers of this theater run, and the number of messages to each actor
//! from each theater. Missing knowledge makes it careful rather than exact:
//!
//! *Load.* A theater that is busier than the least busy one by more than the margin gives it actors with at most half of the difference. Therefore
//! neither is the busier one afterwards, and nothing swings. An actor whose load alone exceeds half of the difference stays.
//!
//! *Traffic.* An actor goes to the theater that sends more of its messages than all others together, by more than the margin. Only received messages are
//! counted, because a sender is also answered. Two actors that talk to each other might change places for ever. Therefore each inspection is skipped
//! with probability 1/2: sooner or later one of the two goes alone.
//!
//! A group, which migrates as a whole, counts as one actor: its first member that lives in this theater.

use std::collections::HashMap;
use std::fmt;

use std::sync::{Arc, Weak};
use std::time::Duration;

use playhouse_actor::wire::Codec;
use playhouse_actor::{Actor, ActorId, ActorRef, Context, Handler, Message};
use playhouse_executor::Sampler;
use rand::Rng;
use rand::seq::SliceRandom;

use crate::link::Link;
use crate::link::traffic::Counts;
use crate::node::core::TheaterCore;

/// A policy by which a theater migrates its mobile actors by itself: see [`Theater::rebalance`](crate::Theater::rebalance).
///
/// # Examples
///
/// ```
/// # use playhouse_theater::*;
/// # use std::time::Duration;
/// # let theater = Theater::builder().start()?;
/// // Every second, up to 16 mobile actors move to linked theaters with less work.
/// let guard = theater.rebalance(Rebalance::load().every(Duration::from_secs(1)).moves_max(16));
/// drop(guard); // no actor moves any more
/// # theater.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    Traffic,
}

/// Fewer messages are no reason to migrate an actor.
const MESSAGES_MIN: u64 = 32;
/// With fewer samples nothing is estimated: the balancer waits for more.
const SAMPLES_MIN: u64 = 16;

impl Rebalance {
    fn new(goal: Goal, margin: f64) -> Rebalance {
        Rebalance { goal, every: Duration::from_secs(1), margin, moves_max: 64 }
    }

    /// Evens load: actors go from a theater that is busy to the least busy one that it has a link with.
    ///
    /// Load is the share of time for which the workers always had something to do, from 0 to 1. Samples tell which actors take the time; no actor
    /// migrates before there are 16 samples.
    pub fn load() -> Rebalance {
        Rebalance::new(Goal::Load, 0.2)
    }

    /// Brings actors together that talk to each other: an actor goes to the theater that most of its messages come from. An actor with fewer than 32
    /// messages from that theater since the last inspection stays.
    pub fn by_traffic() -> Rebalance {
        Rebalance::new(Goal::Traffic, 0.5)
    }

    /// Sets the time between two inspections. Default: 1 s.
    ///
    /// # Panics
    /// Panics if `time` is zero.
    pub fn every(mut self, time: Duration) -> Rebalance {
        assert!(!time.is_zero(), "the interval between two inspections is 0: it must be longer");
        self.every = time;
        self
    }

    /// Sets the least improvement that is a reason to migrate. Of load: the difference between two theaters (default 0.2). Of traffic: the surplus of
    /// messages from the other theater over those from all remaining ones, as a share of the latter (default 0.5: half as many again).
    ///
    /// # Panics
    /// Panics if `margin` is negative, or not a number.
    pub fn margin(mut self, margin: f64) -> Rebalance {
        assert!(margin >= 0.0, "a margin of {margin}: it must be 0 or more");
        self.margin = margin;
        self
    }

    /// Sets the number of actors that migrate after one inspection at most. Default: 64.
    pub fn moves_max(mut self, actors: usize) -> Rebalance {
        self.moves_max = actors;
        self
    }
}

/// A [`Rebalance`] that is active until this guard is dropped.
///
/// # Examples
///
/// ```
/// # use playhouse_theater::*;
/// struct Server {
///     theater: Theater,
///     _rebalances: RebalanceGuard, // for as long as the server lives
/// }
///
/// fn server(theater: Theater) -> Server {
///     let guard = theater.rebalance(Rebalance::by_traffic());
///     Server { theater, _rebalances: guard }
/// }
/// ```
#[must_use = "the rebalancing ends when this guard is dropped"]
pub struct RebalanceGuard(ActorRef<Rebalancer>);

impl fmt::Debug for RebalanceGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RebalanceGuard({})", self.0)
    }
}

impl Drop for RebalanceGuard {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl TheaterCore {
    /// Has this theater migrate its mobile actors to others by itself, until the returned guard is dropped.
    pub(crate) fn rebalance(self: &Arc<Self>, balance: Rebalance) -> RebalanceGuard {
        if balance.goal == Goal::Traffic {
            self.link_table.traffic.count(true);
        }
        let sampler = self.system.core().sample();
        RebalanceGuard(self.system.spawn(Rebalancer {
            theater_core: Arc::downgrade(self),
            balance,
            sampler,
            samples: HashMap::new(),
            loads: HashMap::new(),
            handled: 0,
        }))
    }
}

/// The actor that inspects the theater and migrates actors.
struct Rebalancer {
    theater_core: Weak<TheaterCore>,
    balance: Rebalance,
    sampler: Arc<Sampler>,
    samples: HashMap<ActorId, u64>,
    /// The loads that other theaters have reported since the last inspection.
    loads: HashMap<u64, f64>,
    /// The number of messages handled in this theater before the last inspection.
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
            && self.balance.goal == Goal::Traffic
        {
            theater_core.link_table.traffic.count(false);
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
                Goal::Traffic => self.follow_traffic(&theater_core, &samples),
            };
            for (actor, link) in moves {
                // An actor that cannot migrate is told, and stays.
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
                // A theater that does not answer gets no actors.
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
        let Some(link) = theater_core.link_table.link(theater).filter(|link| !link.is_lost()) else {
            return Vec::new();
        };
        let all: u64 = samples.values().sum();
        // In samples: `here` is the load that all of them represent.
        let mut left = (here - there) / 2.0 / here * all as f64;
        let mut actors: Vec<(ActorId, u64)> = samples.iter().map(|(actor, count)| (*actor, *count)).collect();
        actors.shuffle(&mut rand::rng());
        let mut moves = Vec::new();
        for (actor, count) in actors {
            if moves.len() < self.balance.moves_max && count as f64 <= left && is_local(theater_core, actor) {
                left -= count as f64;
                moves.push((actor, Arc::clone(&link)));
            }
        }
        moves
    }

    fn follow_traffic(
        &mut self,
        theater_core: &TheaterCore,
        samples: &HashMap<ActorId, u64>,
    ) -> Vec<(ActorId, Arc<Link>)> {
        let mut counted = Counts::new();
        for (actor, from) in theater_core.link_table.traffic.take() {
            let all = counted.entry(theater_core.first_of(actor)).or_default();
            from.into_iter().for_each(|(theater, count)| *all.entry(theater).or_default() += count);
        }
        let handled = theater_core.system.stats().total.received;
        let of_all = handled - std::mem::replace(&mut self.handled, handled);
        let all: u64 = samples.values().sum();
        if rand::rng().random() {
            return Vec::new();
        }
        let mut moves = Vec::new();
        for (actor, from) in counted {
            let Some((&theater, &most)) = from.iter().max_by_key(|(_, count)| **count) else { continue };
            // Local messages are not counted, but can be estimated: the actor's sampled messages, less the remote ones.
            let guessed = of_all as f64 * samples.get(&actor).map_or(0.0, |count| *count as f64 / all as f64);
            let remote: u64 = from.values().sum();
            let others = (guessed - remote as f64).max(0.0) + (remote - most) as f64;
            if most < MESSAGES_MIN
                || (most as f64) <= others * (1.0 + self.balance.margin)
                || !is_local(theater_core, actor)
            {
                continue;
            }
            if let Some(link) = theater_core.link_table.link(theater).filter(|link| !link.is_lost()) {
                moves.push((actor, link));
            }
            if moves.len() == self.balance.moves_max {
                break;
            }
        }
        moves
    }
}

/// Returns whether the actor is a mobile one that lives in this theater.
fn is_local(theater_core: &TheaterCore, actor: ActorId) -> bool {
    let address = actor.address();
    !address.is_stale() && !address.is_away() && theater_core.registry.migration_vtable(actor).is_some()
}
