//! An actor that reports the state of its theater: the source of `playhouse top`.
//!
//! No other module knows it, and it uses only what each program can use. Nothing is counted for it while no question comes. The first
//! question starts the timing of handlers and the counting of queues. Both end if no further question comes for a while.

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
use crate::theater::Theater;
use crate::theater::builder::{OnStarted, TheaterBuilder};
use crate::theater::peers::LinkState;

/// The name that an [`Inspector`] is published under.
pub const INSPECTOR: &str = "playhouse.inspector";
/// Time without a question after which nothing is counted any more.
const IDLE_TIME_MAX: Duration = Duration::from_secs(5);
/// Questions within this time of the last one get the same answer.
const WINDOW_MIN: Duration = Duration::from_millis(200);
/// Maximum number of lines shown by each measure.
const SHOWN_MAX: usize = 50;

/// Reports the state of its theater. Started and published by [`TheaterBuilder::inspected`](crate::TheaterBuilder::inspected).
///
/// # Examples
///
/// ```
/// # use playhouse_theater::*;
/// let theater = Theater::builder().listen("127.0.0.1:0").inspected(true).start()?;
/// let observer = Theater::builder().start()?;
/// let name = format!("playhouse://{}/{INSPECTOR}", theater.address().expect("it listens"));
/// let inspector = observer.find::<Inspector>(&name).wait()?;
/// let seen: Snapshot = inspector.ask(Inspect).wait()?;
/// println!("{} actors", seen.actors_alive);
/// # observer.shutdown()?;
/// # theater.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Inspector {
    theater_core: Weak<TheaterCore>,
    watch: Option<Watch>,
}

impl std::fmt::Debug for Inspector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Inspector")
    }
}

/// The counting that lasts as long as questions come.
struct Watch {
    look: ActivityCounter,
    _timed: TimedHandlers,
    /// The counts at the beginning of the present window.
    since: Duration,
    messages: HashMap<(&'static str, &'static str), (u64, Duration)>,
    workers: Vec<Counters>,
    answer: Snapshot,
    ends: TimerKey,
}

/// Asks an [`Inspector`] for the state of its theater.
///
/// # Examples
///
/// ```
/// # use playhouse_theater::*;
/// # use playhouse_actor::{ActorRef, AskError};
/// async fn actors_alive(inspector: ActorRef<Inspector>) -> Result<u64, AskError> {
///     Ok(inspector.ask(Inspect).await?.actors_alive)
/// }
/// ```
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Inspect;

/// Tells the inspector that no question has come for a while.
#[derive(Clone, Copy, Debug)]
struct Enough;

/// The state of a theater, and its work since the last question to an [`Inspector`]: in the *window*. All callers that ask at the
/// same time get the counts of the same window.
///
/// # Examples
///
/// ```
/// # use playhouse_theater::*;
/// fn describe(seen: &Snapshot) -> String {
///     format!("{} actors, {} links, up for {:?}", seen.actors_alive, seen.links.len(), seen.uptime)
/// }
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Snapshot {
    /// The address that other theaters may call.
    pub address: Option<SocketAddr>,
    /// Its cluster.
    pub cluster: String,
    /// The number of its process.
    pub process: u32,
    /// The time for which it has run.
    pub uptime: Duration,
    /// The length of the window. Zero: there is none yet, because no question had come for a while.
    pub window: Duration,
    /// Number of actors alive.
    pub actors_alive: u64,
    /// Numbers of actors that have come from other theaters, and that have left for some, so far.
    pub migrations: (u64, u64),
    /// The executor's counters so far, by name.
    pub counters: BTreeMap<String, u64>,
    /// Its workers, followed by the workers of dedicated actors.
    pub workers: Vec<WorkerStats>,
    /// Stages with work in the window or waiting messages: the 50 with the most.
    pub stages: Vec<StageStats>,
    /// The actors with the most time, the most handled messages, or the most waiting messages: 50 of each.
    pub actors: Vec<ActorStats>,
    /// Types of messages, by the type of their receivers, with the most time or the highest number: 50 of each.
    pub messages: Vec<MessageStats>,
    /// The theaters it is linked with.
    pub links: Vec<LinkStats>,
}

/// The work of a worker.
///
/// # Examples
///
/// ```
/// # use playhouse_theater::*;
/// fn busiest(seen: &Snapshot) -> Option<&WorkerStats> {
///     seen.workers.iter().max_by(|one, other| one.busy.total_cmp(&other.busy))
/// }
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
#[serde(rename = "WorkerLine")]
pub struct WorkerStats {
    /// Messages handled in the window.
    pub handled: u64,
    /// The share of the window that it spent in handlers, from 0 to 1.
    pub busy: f64,
    /// Messages that wait for it, estimated from their bytes.
    pub queued: u64,
    /// Number of stages that it runs.
    pub stages: u64,
    /// Number of its stages that are muted, because they have sent to an overloaded actor.
    pub muted: u64,
    /// It sleeps.
    pub parked: bool,
    /// Senders to it are slowed.
    pub overloaded: bool,
    /// Number of steals in the window.
    pub steals: u64,
    /// Number of times that it went to sleep in the window.
    pub parks: u64,
    /// Number of times that a stuck handler cost it its thread, so far.
    pub takeovers: u64,
}

/// The work of a stage.
///
/// # Examples
///
/// ```
/// # use playhouse_theater::*;
/// fn queued(seen: &Snapshot, worker: u64) -> u64 {
///     seen.stages.iter().filter(|stage| stage.worker == worker).map(|stage| stage.queued).sum()
/// }
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
#[serde(rename = "StageLine")]
pub struct StageStats {
    /// Its number.
    pub stage: u16,
    /// The worker that runs it.
    pub worker: u64,
    /// Messages handled in the window.
    pub handled: u64,
    /// Messages that wait.
    pub queued: u64,
}

/// The work of an actor.
///
/// # Examples
///
/// ```
/// # use playhouse_theater::*;
/// fn busiest(seen: &Snapshot) -> Option<&ActorStats> {
///     seen.actors.iter().max_by_key(|actor| actor.busy)
/// }
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
#[serde(rename = "ActorLine")]
pub struct ActorStats {
    /// The type.
    pub actor: String,
    /// Its name, or its number if it has no name.
    pub name: String,
    /// Its stage.
    pub stage: u16,
    /// Messages handled in the window.
    pub handled: u64,
    /// The time that handling them took.
    pub busy: Duration,
    /// Messages that wait for it in its worker's queue.
    pub queued: u64,
}

/// The work of actors of one type for messages of one type.
///
/// # Examples
///
/// ```
/// # use playhouse_theater::*;
/// fn slowest(seen: &Snapshot) -> Option<&MessageStats> {
///     seen.messages.iter().max_by_key(|message| message.p99)
/// }
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
#[serde(rename = "MessageLine")]
pub struct MessageStats {
    /// The actor's type.
    pub actor: String,
    /// The message's type.
    pub message: String,
    /// Handled in the window.
    pub handled: u64,
    /// The time that handling them took.
    pub busy: Duration,
    /// Handled since the timing of handlers began.
    pub total: u64,
    /// The median of their times.
    pub median: Duration,
    /// The 99th percentile of their times.
    pub p99: Duration,
    /// The longest of their times.
    pub max: Duration,
}

/// The state of a link.
///
/// # Examples
///
/// ```
/// # use playhouse_theater::*;
/// fn broken(seen: &Snapshot) -> impl Iterator<Item = &LinkStats> {
///     seen.links.iter().filter(|link| link.state != LinkState::Linked)
/// }
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(rename = "LinkLine")]
pub struct LinkStats {
    /// The address of the other theater, if it has one.
    pub address: Option<SocketAddr>,
    /// The phase of the link.
    pub state: LinkState,
    /// The time for which it has been connected, or without a connection.
    pub for_so_long: Duration,
    /// Number of packets that the other end has not acknowledged.
    pub packets: u64,
    /// The bytes of those packets.
    pub bytes: u64,
    /// Asks, watches and similar requests that the other end has not answered.
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
        let ends = ctx.send_after(IDLE_TIME_MAX, Enough);
        match &mut self.watch {
            None => self.watch = Some(Watch::begin(&theater_core, ends)),
            Some(watch) => {
                ctx.cancel(std::mem::replace(&mut watch.ends, ends));
                if ctx.now() - watch.since >= WINDOW_MIN {
                    watch.take(&theater_core);
                }
            }
        }
        // The census serves the next answer.
        theater_core.system.core().ask_for_census();
        self.watch.as_ref().map_or_else(Snapshot::default, |watch| watch.answer.clone())
    }
}

impl Handler<Enough> for Inspector {
    fn handle(&mut self, _: Enough, _: &mut Context<Self>) {
        self.watch = None;
    }
}

/// Keeps the first lines of each order; `lines` end up in the last order.
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

impl TheaterBuilder {
    /// Sets whether `playhouse top` and other programs may inspect this theater. They ask an [`Inspector`], which is published as
    /// [`playhouse.inspector`](crate::INSPECTOR) and has a thread of its own (not in simulation). Only theaters that may link
    /// with this one may ask it. Nothing is counted while no question comes. Default: no.
    pub fn inspected(mut self, inspected: bool) -> Self {
        self.on_started = inspected.then_some(Inspector::start_in as OnStarted);
        self
    }
}

impl Inspector {
    /// Starts an inspector in `theater_core`, and publishes it.
    fn start_in(theater_core: &Arc<TheaterCore>) -> Result<(), TheaterError> {
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

    /// Returns the lines of messages for the window, which ends.
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
                // The stages of links are not counted; a dedicated actor has a stage of its own.
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
