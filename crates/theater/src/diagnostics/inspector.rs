//! An actor that says how its theater is: what `playhouse top` asks.
//!
//! Nothing here is known to the rest: it asks what anybody in the program could ask. Nothing is counted for it while nobody
//! asks: the first question has the handlers timed and the queues counted, and that ends when no other one has come for a
//! while.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use playhouse_actor::wire::{Remote, WireForm};
use playhouse_actor::{
    ActivityCounter, Actor, ActorId, Context, Counters, Handler, HandlerTimes, Message, Placement, ShortType,
    SpawnOptions, System, TimedHandlers, TimerKey, name_of,
};
use playhouse_executor::WorkerState;
use serde::{Deserialize, Serialize};

use crate::error::TheaterError;
use crate::node::core::TheaterCore;
use crate::node::peers::LinkState;
use crate::node::theater::Theater;

/// What an [`Inspector`] is published as.
pub const INSPECTOR: &str = "playhouse.inspector";
/// Nobody has asked for so long: nothing is counted any more.
const PATIENCE: Duration = Duration::from_secs(5);
/// Who asks again sooner gets the same answer.
const WINDOW_MIN: Duration = Duration::from_millis(200);
/// So many are shown by each measure.
const SHOWN_MAX: usize = 50;

/// Says how its theater is. Started and published by [`TheaterBuilder::inspected`](crate::TheaterBuilder::inspected).
pub struct Inspector {
    theater_core: Weak<TheaterCore>,
    watch: Option<Watch>,
}

impl std::fmt::Debug for Inspector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Inspector")
    }
}

/// As long as somebody asks.
struct Watch {
    look: ActivityCounter,
    _timed: TimedHandlers,
    /// What was so at the beginning of the present window.
    since: Duration,
    messages: HashMap<(&'static str, &'static str), (u64, Duration)>,
    workers: Vec<Counters>,
    answer: Snapshot,
    ends: TimerKey,
}

/// Asks an [`Inspector`] how its theater is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Inspect;

/// Nobody has asked for a while.
#[derive(Clone, Copy, Debug)]
struct Enough;

/// How a theater is, and what it has done since an [`Inspector`] was asked last: in the *window*. What is counted in the
/// window is so for all who ask at the same time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Snapshot {
    /// Where others may call.
    pub address: Option<SocketAddr>,
    /// Its cluster.
    pub cluster: String,
    /// The number of its process.
    pub process: u32,
    /// For how long it has run.
    pub uptime: Duration,
    /// How long the window is. Zero: nobody had asked for a while, and there is none yet.
    pub window: Duration,
    /// Actors that live.
    pub actors_alive: u64,
    /// Actors that have come from other theaters, and that have left for some, so far.
    pub migrations: (u64, u64),
    /// The executor's counters so far, by name.
    pub counters: BTreeMap<String, u64>,
    /// Its workers; behind them those of dedicated actors.
    pub workers: Vec<WorkerStats>,
    /// Stages where something happened in the window, or waits: the 50 with the most.
    pub stages: Vec<StageStats>,
    /// The actors that took most time, handled most messages, or have most messages waiting: 50 of each.
    pub actors: Vec<ActorStats>,
    /// Types of messages, by the type of who handles them, that took most time or were most often: 50 of each.
    pub messages: Vec<MessageStats>,
    /// The theaters it is linked with.
    pub links: Vec<LinkStats>,
}

/// What a worker does.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct WorkerStats {
    /// Messages handled in the window.
    pub handled: u64,
    /// How much of the window it was in handlers, from 0 to 1.
    pub busy: f64,
    /// Messages that wait for it, estimated from their bytes.
    pub queued: u64,
    /// Stages that it runs.
    pub stages: u64,
    /// Stages of it that wait, since they have sent to somebody who is overloaded.
    pub muted: u64,
    /// It sleeps.
    pub parked: bool,
    /// Who sends to it is slowed.
    pub overloaded: bool,
    /// Thefts, parks and takeovers (a handler was stuck) in the window.
    pub steals: u64,
    /// How often it went to sleep in the window.
    pub parks: u64,
    /// How often a stuck handler cost it its thread, so far.
    pub takeovers: u64,
}

/// What is done on a stage.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StageStats {
    /// Its number.
    pub stage: u16,
    /// Who runs it.
    pub worker: u64,
    /// Messages handled in the window.
    pub handled: u64,
    /// Messages that wait.
    pub queued: u64,
}

/// What an actor does.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ActorStats {
    /// The type.
    pub actor: String,
    /// Its name, or where it has none, its number.
    pub name: String,
    /// Its stage.
    pub stage: u16,
    /// Messages handled in the window.
    pub handled: u64,
    /// How long that took.
    pub busy: Duration,
    /// Messages that wait for it in its worker's queue.
    pub queued: u64,
}

/// What is done with messages of one type by actors of one type.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct MessageStats {
    /// The actor's type.
    pub actor: String,
    /// The message's type.
    pub message: String,
    /// Handled in the window.
    pub handled: u64,
    /// How long that took.
    pub busy: Duration,
    /// Handled since handlers are timed.
    pub total: u64,
    /// Half of those took longer.
    pub median: Duration,
    /// One in a hundred took longer.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
}

/// How a link is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LinkStats {
    /// Where the other theater can be called, if it can.
    pub address: Option<SocketAddr>,
    /// What the link is at.
    pub state: LinkState,
    /// For how long it has been connected, or has not been.
    pub for_so_long: Duration,
    /// Packets that the other end has not acknowledged, ...
    pub packets: u64,
    /// ... and their bytes.
    pub bytes: u64,
    /// Asks, watches and the like that the other end has not answered.
    pub unanswered: u64,
}

impl Message for Inspect {
    type Reply = Snapshot;
    const WIRE: Option<WireForm<Inspect>> = Some(WireForm::named("playhouse.Inspect"));
}

impl Message for Enough {
    type Reply = ();
}

impl Actor for Inspector {}

impl Remote for Inspector {
    fn wire_name() -> &'static str {
        "playhouse.Inspector"
    }
}

playhouse_actor::remote!(also Inspector: Inspect);

impl Handler<Inspect> for Inspector {
    fn handle(&mut self, _: Inspect, ctx: &mut Context<Self>) -> Snapshot {
        let Some(theater_core) = self.theater_core.upgrade() else { return Snapshot::default() };
        let ends = ctx.send_after(PATIENCE, Enough);
        match &mut self.watch {
            None => self.watch = Some(Watch::begin(&theater_core, ends)),
            Some(watch) => {
                ctx.cancel(std::mem::replace(&mut watch.ends, ends));
                if ctx.now() - watch.since >= WINDOW_MIN {
                    watch.take(&theater_core);
                }
            }
        }
        // For the next answer.
        theater_core.system.core().ask_for_census();
        self.watch.as_ref().map_or_else(Snapshot::default, |watch| watch.answer.clone())
    }
}

impl Handler<Enough> for Inspector {
    fn handle(&mut self, _: Enough, _: &mut Context<Self>) {
        self.watch = None;
    }
}

/// The first of each order; `lines` are put in the last one.
fn keep_first<T, K: Ord>(lines: &mut Vec<T>, orders: &[fn(&T) -> K]) {
    let mut kept = Vec::new();
    for order in orders {
        lines.sort_by_key(|line| Reverse(order(line)));
        let rest = lines.split_off(lines.len().min(SHOWN_MAX));
        kept.append(lines);
        *lines = rest;
    }
    *lines = kept;
}

impl Inspector {
    /// Starts one in `theater_core`, and publishes it.
    pub(crate) fn start_in(theater_core: &Arc<TheaterCore>) -> Result<(), TheaterError> {
        let options = SpawnOptions::new().placement(Placement::Dedicated);
        let inspector = Inspector { theater_core: Arc::downgrade(theater_core), watch: None };
        let inspector = theater_core.system.try_spawn_with(options, inspector);
        let inspector = inspector.map_err(|error| TheaterError::System(error.to_string()))?;
        theater_core.registry.replace(INSPECTOR.to_owned(), inspector.id(), Inspector::wire_name());
        Ok(())
    }
}

impl Watch {
    fn begin(theater_core: &Arc<TheaterCore>, ends: TimerKey) -> Watch {
        let (look, timed) = (theater_core.system.look(), theater_core.system.time_handlers());
        look.take();
        let mut watch = Watch {
            look,
            _timed: timed,
            since: theater_core.system.now(),
            messages: HashMap::new(),
            workers: theater_core.system.stats().per_worker,
            answer: Snapshot::default(),
            ends,
        };
        watch.done(&theater_core.system.handler_times());
        watch.take(theater_core);
        watch.answer.window = Duration::ZERO;
        watch
    }

    /// The lines of messages of the window, which ends.
    fn done(&mut self, times: &[HandlerTimes]) -> Vec<MessageStats> {
        let mut lines = Vec::new();
        for times in times {
            let (count, total) =
                self.messages.insert((times.actor, times.message), (times.count, times.total)).unwrap_or_default();
            lines.push(MessageStats {
                actor: ShortType(times.actor).to_string(),
                message: ShortType(times.message).to_string(),
                handled: times.count - count,
                busy: times.total.saturating_sub(total),
                total: times.count,
                median: times.quantile(0.5),
                p99: times.quantile(0.99),
                max: times.max,
            });
        }
        lines
    }

    /// Ends the window, and begins another.
    fn take(&mut self, theater_core: &Arc<TheaterCore>) {
        let system = &theater_core.system;
        let now = system.now();
        let window = now - std::mem::replace(&mut self.since, now);
        let stats = system.stats();
        let states = system.core().worker_states();
        let doings = self.look.take();
        let mut messages = self.done(&system.handler_times());
        keep_first(&mut messages, &[|line| line.busy.as_nanos(), |line| u128::from(line.handled)]);

        let mut actors: HashMap<_, ActorStats> = HashMap::new();
        let line = |who, actor| {
            let (name, id) = (name_of(ActorId::of(who)), ActorId::of(who));
            let name = name.map_or_else(|| format!("{id}"), |name| name.to_string());
            ActorStats { actor: ShortType(actor).to_string(), name, stage: who.stage(), ..ActorStats::default() }
        };
        for (who, (actor, handled, busy)) in doings.actors {
            let entry = actors.entry(who).or_insert_with(|| line(who, actor));
            (entry.handled, entry.busy) = (handled, busy);
        }
        let mut queued = BTreeMap::<u16, u64>::new();
        for state in &states {
            for (who, actor, waiting) in &state.census.actors {
                actors.entry(*who).or_insert_with(|| line(*who, actor)).queued += waiting;
            }
            for (stage, waiting) in &state.census.stages {
                *queued.entry(*stage).or_default() += waiting;
            }
        }
        let mut actors: Vec<_> = actors.into_values().collect();
        let orders: [fn(&ActorStats) -> u128; 3] =
            [|line| line.busy.as_nanos(), |line| u128::from(line.handled), |line| u128::from(line.queued)];
        keep_first(&mut actors, &orders);

        let mut stages: Vec<_> = states
            .iter()
            .enumerate()
            .flat_map(|(worker, state)| state.stages.iter().map(move |stage| (*stage, worker as u64)))
            .map(|(stage, worker)| StageStats {
                stage,
                worker,
                handled: doings.stages.get(&stage).copied().unwrap_or(0),
                queued: queued.get(&stage).copied().unwrap_or(0),
            })
            .filter(|line| line.handled + line.queued > 0)
            .collect();
        keep_first(&mut stages, &[|line| line.handled + line.queued]);

        let workers = self.workers(system, &stats.per_worker, &states, (window, &doings.busy));
        self.workers = stats.per_worker;
        let links = Theater { theater_core: Arc::clone(theater_core) }.peers().into_iter().map(|peer| {
            let state = peer.state();
            LinkStats {
                address: peer.address(),
                state: state.link,
                for_so_long: state.for_so_long,
                packets: state.packets as u64,
                bytes: state.bytes as u64,
                unanswered: state.unanswered as u64,
            }
        });
        self.answer = Snapshot {
            address: theater_core.listens,
            cluster: theater_core.settings.cluster.clone(),
            process: std::process::id(),
            uptime: now,
            window,
            actors_alive: stats.total.spawned.saturating_sub(stats.total.stopped),
            migrations: theater_core.directory.migrations(),
            counters: stats.total.pairs().into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            workers,
            stages,
            actors,
            messages,
            links: links.collect(),
        };
    }

    fn workers(
        &self,
        system: &System,
        counters: &[Counters],
        states: &[WorkerState],
        (window, busy): (Duration, &BTreeMap<u16, Duration>),
    ) -> Vec<WorkerStats> {
        let line = |(worker, state): (usize, &WorkerState)| {
            let [before, now] = [&self.workers[..], counters].map(|all| all.get(worker).copied().unwrap_or_default());
            let busy = busy.get(&(worker as u16)).map_or(0.0, Duration::as_secs_f64);
            WorkerStats {
                handled: now.received.saturating_sub(before.received),
                busy: if window.is_zero() { 0.0 } else { (busy / window.as_secs_f64()).min(1.0) },
                queued: state.queued,
                // Not those of links; a dedicated actor has one of its own.
                stages: state.stages.iter().filter(|stage| usize::from(**stage) < system.stages()).count() as u64
                    + u64::from(worker >= system.workers()),
                muted: state.muted_stages as u64,
                parked: state.parked,
                overloaded: state.overloaded,
                steals: now.steals.saturating_sub(before.steals),
                parks: now.parks.saturating_sub(before.parks),
                takeovers: now.takeovers,
            }
        };
        states.iter().enumerate().map(line).collect()
    }
}
