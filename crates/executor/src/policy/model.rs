//! A model of the scheduler, for more workers than a machine has. It has virtual workers, virtual time, and the
//! decisions of [`policy`]. Its costs were measured on a machine with 2 cores.
//!
//! Each worker follows `exchange.rs`, `steal.rs` and `idle.rs`: it flushes, takes mail, shares work, and runs a gulp.
//! An idle worker asks another worker for stages, watches, and parks. The model leaves out trials of short work, the
//! times of messages by kind, timers, backpressure, the memory of more than one socket, and other programs.
//!
//! # Costs by the number of workers
//!
//! W is the number of workers, and S the number of stages (16 W without other settings). The table counts the cache
//! lines that more than one worker writes. A line is private if one worker writes it and one other worker reads it.
//!
//! | event | shared cache lines written | growth with W |
//! |---|---|---|
//! | a message between actors of one worker | none | none |
//! | a message to an actor of another worker | none; it writes the private lines of its record | none |
//! | a log is handed over | 2: the receiver's inbox with its lock, the receiver's mail flag | a gulp writes at most min(messages, W) logs; with random receivers and a large W, each log holds 1 message |
//! | a worker goes from one gulp to the next | none; it reads one line of the idle set for each 64 workers (3 words), and writes one line that only others read | it reads ⌈W / 64⌉ lines |
//! | a worker becomes idle and busy again | 2: its inbox, the idle set; it reads the lines of at most 16 other workers, and a request for stages writes the inbox of one of them | none; 64 workers share a line of the idle set |
//! | a worker parks and is woken | 4: its inbox, the idle set, `active`, `parked` | none; all workers write the last two |
//! | a stage moves | 5: both inboxes, both mail flags, the stage's line of the route (32 stages per line) | none; all workers share no counter of moves |
//! | the next hand-over to the worker that the stage has left | none | each sender reads its private route once, 2 S bytes: 2 KiB for 64 workers, 8 KiB for 256 |
//! | an async handler is suspended and resumed | none; each worker has its own counter | none |
//! | an ask is awaited | none; the asker writes its own node and reads the asked actor's node. The first ask of a cell also writes one counter of all workers, and the first ask to an actor writes the header of its cell. Only an ask that finds a cycle takes a lock of all workers | none; an ask of an actor that was itself asked, to an actor that waits, takes the lock of each node along the path |
//! | a timer starts and fires | none | none |
//! | the monitor ticks (each 2 ms) | the signal of each worker that runs handlers | it reads 5 lines per worker: 320 for 64 workers, 1,280 for 256 |
//! | the system becomes idle | none; the last worker reads one counter per worker | it reads W lines once |
//!
//! # Results
//!
//! With 10 µs of work per message, the model reaches these fractions of a linear speed-up:
//!
//! | workers | 2 | 8 | 64 | 256 |
//! |---|---|---|---|---|
//! | gossip, 10,000 tokens | 0.98 | 0.97 | 0.97 | 0.97 |
//! | scatter–gather, 100 actors per worker | 0.97 | 0.89 | 0.82 | 0.57 |
//!
//! In scatter–gather, 1 master sends all requests and adds up all answers. From about 100 workers on, the master is
//! the limit.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use super::decisions::{self, Backlog, Idle};
use super::idle_share::IdleShare;

/// Costs in nanoseconds, measured with 2 workers.
mod cost {
    /// A message besides its work. (A request and its answer on 1 worker, without work, take 45 to 60, sends included.)
    pub(super) const MESSAGE: u64 = 12;
    /// A send from a handler.
    pub(super) const SEND: u64 = 20;
    /// The fixed part of the exchange between two gulps.
    pub(super) const EXCHANGE: u64 = 50;
    /// The hand-over of a log: 2 cache misses and a lock.
    pub(super) const FLUSH: u64 = 200;
    /// Taking mail.
    pub(super) const MAIL: u64 = 200;
    /// A record that another core has written, fetched ahead. (In gossip without work, every other message crosses.
    /// Each message takes 17, as on 1 worker.)
    pub(super) const COLD: u64 = 15;
    /// Giving stages away. `GIVE_RECORD` is added for each record that the worker looks at.
    pub(super) const GIVE: u64 = 1_500;
    pub(super) const GIVE_RECORD: u64 = 5;
    /// The time until a watching worker has seen its mail.
    pub(super) const SEEN: u64 = 150;
    /// The time until a parked worker runs.
    pub(super) const WAKE: u64 = 20_000;
    /// The call that wakes a parked worker.
    pub(super) const UNPARK: u64 = 5_000;
    /// A request to another worker for work.
    pub(super) const ASK: u64 = 200;
    pub(super) const WATCH: u64 = 40_000;
}

const STAGES_PER_WORKER: usize = 16;
/// The largest number of victims that a thief looks at.
const LOOKED_AT_MAX: usize = 16;
/// The largest number of records that a victim looks at.
const LOOKED_AT_RECORDS_MAX: usize = 512;
/// The number of records that a handler writes to a log between two checks whether the receiving worker is idle.
const BURST: usize = 12;

type Actor = u32;

#[derive(Clone, Copy)]
struct Message {
    to: Actor,
    /// Nanoseconds that its handler works.
    work: u64,
}

impl Message {
    fn ns(&self) -> u64 {
        self.work + cost::MESSAGE
    }
}

/// The actors' handlers. A handler calls `send` for each message that it sends.
trait Program {
    fn handle(&mut self, message: Message, send: &mut dyn FnMut(Message));
    fn is_done(&self) -> bool;
    fn stage_of(&self, actor: Actor, stages: usize) -> usize {
        actor as usize % stages
    }
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Runs,
    Watches { until: u64 },
    Parked,
}

impl State {
    fn idle(self) -> Option<Idle> {
        match self {
            State::Runs => None,
            State::Watches { .. } => Some(Idle::Watching),
            State::Parked => Some(Idle::Parked),
        }
    }
}

struct Worker {
    state: State,
    idle_share: IdleShare,
    queue: VecDeque<Message>,
    logs: BTreeMap<usize, Vec<Message>>,
    inbox: Vec<Message>,
    /// Messages that are left in the present gulp.
    left: u64,
    asked: bool,
    average_ns: f64,
    /// The worker gives nothing away before this time.
    gives_at: u64,
    /// The worker does nothing before this time. Events that were scheduled earlier are void.
    at: u64,
    worked: u64,
    gulps: u64,
    /// Its number of gulps when it last handed mail to a watching worker.
    handed_over: u64,
    /// The number of messages that it has run since its last idle time.
    messages: u64,
    /// Its number of gulps when it last woke another worker.
    woke_at: u64,
}

struct Model<P> {
    program: P,
    workers: Vec<Worker>,
    route: Vec<usize>,
    events: BinaryHeap<Reverse<(u64, usize)>>,
    random: u64,
    now: u64,
    /// The numbers of watching and of parked workers.
    idle: [usize; 2],
    /// Workers that have mail and still sleep.
    called: Vec<usize>,
}

impl<P: Program> Model<P> {
    fn run(program: P, workers: usize, first: impl Iterator<Item = Message>) -> (u64, P, u64) {
        let worker = |_| Worker {
            state: State::Runs,
            idle_share: IdleShare::BEGIN.changed(0, false),
            queue: VecDeque::new(),
            logs: BTreeMap::new(),
            inbox: Vec::new(),
            left: 0,
            asked: false,
            average_ns: 50.0,
            gives_at: 0,
            at: 0,
            worked: 0,
            gulps: 0,
            handed_over: 0,
            messages: 0,
            woke_at: u64::MAX,
        };
        let stages = workers * STAGES_PER_WORKER;
        let mut model = Model {
            program,
            workers: (0..workers).map(worker).collect(),
            route: (0..stages).map(|stage| stage % workers).collect(),
            events: (0..workers).map(|at| Reverse((0, at))).collect(),
            random: 0x9e37_79b9_7f4a_7c15,
            now: 0,
            idle: [0; 2],
            called: Vec::new(),
        };
        for message in first {
            let at = model.runs(message.to);
            model.workers[at].queue.push_back(message);
        }
        while !model.program.is_done() {
            let Reverse((now, at)) = model.events.pop().expect("some worker runs until all is done");
            if now == model.workers[at].at {
                model.now = now;
                let busy_until = model.step(at);
                model.schedule(at, busy_until);
            }
        }
        (model.now, model.program, model.workers.iter().map(|worker| worker.worked).sum())
    }

    fn stage_of(&self, actor: Actor) -> usize {
        self.program.stage_of(actor, self.route.len())
    }

    fn runs(&self, actor: Actor) -> usize {
        self.route[self.stage_of(actor)]
    }

    fn schedule(&mut self, at: usize, time: u64) {
        self.workers[at].at = time;
        if time != u64::MAX {
            self.events.push(Reverse((time, at)));
        }
    }

    /// Estimates the time of the next message. The model knows kinds of messages by their work.
    fn next_ns(&self, at: usize) -> u64 {
        let worker = &self.workers[at];
        worker.queue.front().map_or(0, Message::ns).max(worker.average_ns as u64)
    }

    fn backlog(&self, at: usize) -> Backlog {
        Backlog { ns: self.workers[at].queue.len() as u64 * self.next_ns(at), is_short: false }
    }

    fn idle_share(&self, at: usize) -> f64 {
        self.workers[at].idle_share.at(self.now)
    }

    /// Returns the part of the work of `victim` that goes to `thief`.
    fn part(&self, victim: usize, thief: usize) -> f64 {
        decisions::part(self.idle_share(victim), self.idle_share(thief), self.backlog(victim).ns)
    }

    fn adopts(&self, at: usize, to: usize, idle: Idle) -> bool {
        let Worker { gulps, handed_over, messages, .. } = self.workers[at];
        let pair = decisions::Pair {
            idle,
            cores_busy: false,
            takes_turns: decisions::takes_turns(gulps - handed_over, messages),
            idle_shares: self.idle_share(at) + self.idle_share(to),
        };
        decisions::adopts(self.backlog(at), pair, cost::WAKE)
    }

    fn idle(&self) -> Option<Idle> {
        [Idle::Watching, Idle::Parked].into_iter().find(|idle| self.idle[*idle as usize] > 0)
    }

    fn set_state(&mut self, at: usize, state: State) {
        let worker = &mut self.workers[at];
        if let Some(idle) = worker.state.idle() {
            self.idle[idle as usize] -= 1;
        }
        if worker.state.idle().is_some() != state.idle().is_some() {
            worker.idle_share = worker.idle_share.changed(self.now, state.idle().is_some());
        }
        worker.state = state;
        if let Some(idle) = state.idle() {
            self.idle[idle as usize] += 1;
        }
    }

    /// Puts mail from worker `from` into the inbox of `to` at `time`. Returns the nanoseconds that `from` needs for the
    /// wake-up.
    fn call(&mut self, from: usize, to: usize, mail: Vec<Message>, time: u64) -> u64 {
        self.workers[to].inbox.extend(mail);
        let state = self.workers[to].state;
        self.set_state(to, State::Runs);
        match state {
            State::Runs => 0,
            State::Watches { .. } => {
                self.schedule(to, time + cost::SEEN);
                0
            }
            // `from` wakes 1 worker per gulp itself. Workers that are awake wake the others.
            State::Parked if self.workers[from].woke_at == self.workers[from].gulps => {
                self.called.push(to);
                self.workers[to].at = u64::MAX;
                0
            }
            State::Parked => {
                self.workers[from].woke_at = self.workers[from].gulps;
                self.schedule(to, time + cost::WAKE);
                cost::UNPARK
            }
        }
    }

    /// Hands over the messages that worker `at` has sent. Returns the time after that.
    fn flush(&mut self, at: usize, mut now: u64) -> u64 {
        for (to, log) in std::mem::take(&mut self.workers[at].logs) {
            now += cost::FLUSH;
            if let Some(idle) = self.workers[to].state.idle()
                && self.workers[to].inbox.is_empty()
                && self.adopts(at, to, idle)
            {
                for message in &log {
                    let stage = self.stage_of(message.to);
                    self.route[stage] = at;
                }
                self.workers[at].queue.extend(log);
                continue;
            }
            // Each message goes to the present worker of its stage, because stages may have moved.
            let mut mail: BTreeMap<usize, Vec<Message>> = BTreeMap::new();
            for message in log {
                mail.entry(self.runs(message.to)).or_default().push(message);
            }
            for (to, mail) in mail {
                if to == at {
                    self.workers[at].queue.extend(mail);
                } else {
                    if self.workers[to].state.idle() == Some(Idle::Watching) {
                        self.workers[at].handed_over = self.workers[at].gulps;
                    }
                    now += self.call(at, to, mail, now);
                }
            }
        }
        now
    }

    /// Gives a part of the queue to `to`. Returns the time after that.
    fn give(&mut self, at: usize, to: usize, now: u64) -> u64 {
        let mut waiting: BTreeMap<u16, u64> = BTreeMap::new();
        for message in self.workers[at].queue.iter().take(LOOKED_AT_RECORDS_MAX) {
            *waiting.entry(self.stage_of(message.to) as u16).or_default() += message.work + cost::MESSAGE;
        }
        let looked_at = self.workers[at].queue.len().min(LOOKED_AT_RECORDS_MAX) as u64;
        let now = now + cost::GIVE_RECORD * looked_at;
        let mut stages: Vec<(u64, u16)> = waiting.into_iter().map(|(stage, work)| (work, stage)).collect();
        let given = decisions::split(&mut stages, self.part(at, to));
        if given.is_empty() {
            self.workers[at].gives_at = now + cost::GIVE_RECORD * looked_at * decisions::PAUSE_FACTOR;
            return now;
        }
        let now = now + cost::GIVE + cost::GIVE_RECORD * self.workers[at].queue.len() as u64;
        for stage in &given {
            self.route[usize::from(*stage)] = to;
        }
        let stages = self.route.len();
        let goes = |message: &Message| given.contains(&(self.program.stage_of(message.to, stages) as u16));
        let (stolen, kept): (Vec<_>, Vec<_>) = self.workers[at].queue.iter().copied().partition(goes);
        self.workers[at].queue = kept.into();
        now + self.call(at, to, stolen, now)
    }

    /// Runs worker `at` between two gulps or within a gulp. Returns the time at which it goes on.
    fn step(&mut self, at: usize) -> u64 {
        let now = self.now;
        match self.workers[at].state {
            State::Parked => return u64::MAX,
            State::Watches { until } if now >= until => {
                self.set_state(at, State::Parked);
                return u64::MAX;
            }
            State::Watches { until } => return until,
            State::Runs => {}
        }
        if self.workers[at].left > 0 && !self.workers[at].asked && !self.workers[at].queue.is_empty() {
            return self.run_one(at, now);
        }
        self.exchange(at, now)
    }

    fn exchange(&mut self, at: usize, now: u64) -> u64 {
        let mut now = self.flush(at, now + cost::EXCHANGE);
        for _ in 0..decisions::WAKES.min(self.called.len()) {
            let to = self.called.remove(0);
            now += cost::UNPARK;
            self.schedule(to, now + cost::WAKE);
        }
        let worker = &mut self.workers[at];
        worker.asked = false;
        worker.gulps += 1;
        if !worker.inbox.is_empty() {
            now += cost::MAIL + cost::COLD * worker.inbox.len() as u64;
            let inbox = std::mem::take(&mut worker.inbox);
            // Other workers may have adopted stages while this worker was idle. It forwards their messages.
            for message in inbox {
                let to = self.runs(message.to);
                if to == at {
                    self.workers[at].queue.push_back(message);
                } else {
                    now += self.call(at, to, vec![message], now);
                }
            }
        }
        if let Some(idle) = self.idle()
            && now >= self.workers[at].gives_at
        {
            let count = self.workers.len();
            let mut others = (1..count).map(|turn| (at + turn) % count);
            let to = others.find(|to| self.workers[*to].state.idle() == Some(idle));
            let waiting = self.backlog(at);
            if let Some(to) = to
                && decisions::is_worth_sharing(waiting, self.part(at, to), 0, idle, cost::WAKE)
            {
                now = self.give(at, to, now);
            }
        }
        if self.workers[at].queue.is_empty() {
            return self.rest(at, now);
        }
        let some_idle = self.idle().is_some();
        self.workers[at].left = decisions::gulp_messages(self.next_ns(at), some_idle, 512);
        now
    }

    fn rest(&mut self, at: usize, now: u64) -> u64 {
        let until = now + cost::WATCH;
        self.set_state(at, State::Watches { until });
        self.workers[at].messages = 0;
        let count = self.workers.len();
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let first = (self.random >> 33) as usize;
        let looked_at = (0..LOOKED_AT_MAX.min(count - 1)).map(|turn| (at + 1 + (first + turn) % (count - 1)) % count);
        let victim = looked_at
            .filter(|victim| self.workers[*victim].state == State::Runs)
            .max_by_key(|victim| self.backlog(*victim).ns);
        if let Some(victim) = victim
            && decisions::asks(self.backlog(victim), self.part(victim, at))
        {
            self.workers[victim].asked = true;
            return until + cost::ASK;
        }
        until
    }

    fn run_one(&mut self, at: usize, now: u64) -> u64 {
        let message = self.workers[at].queue.pop_front().expect("the queue is not empty");
        self.workers[at].left -= 1;
        let mut sent = Vec::new();
        self.program.handle(message, &mut |message| sent.push(message));
        let mut now = now + cost::MESSAGE + message.work;
        let some_idle = self.idle().is_some();
        for message in sent {
            now += cost::SEND;
            let to = self.runs(message.to);
            if to == at {
                self.workers[at].queue.push_back(message);
                continue;
            }
            let log = self.workers[at].logs.entry(to).or_default();
            log.push(message);
            let is_burst = some_idle && log.len().is_multiple_of(BURST);
            if is_burst
                && let Some(idle) = self.workers[to].state.idle()
                && !self.adopts(at, to, idle)
            {
                let log = self.workers[at].logs.remove(&to).expect("the handler has written to this log");
                now += cost::FLUSH;
                now += self.call(at, to, log, now);
            }
        }
        let worker = &mut self.workers[at];
        let took = (now - self.now) as f64;
        worker.average_ns += (took - worker.average_ns) / 8.0;
        worker.worked += message.work;
        worker.messages += 1;
        now
    }
}

/// Tokens that go from actor to actor at random.
struct Gossip {
    hops: u64,
    actors: u32,
    random: u64,
}

impl Program for Gossip {
    fn handle(&mut self, message: Message, send: &mut dyn FnMut(Message)) {
        self.hops = self.hops.saturating_sub(1);
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        send(Message { to: (self.random >> 20) as u32 % self.actors, work: message.work });
    }

    fn is_done(&self) -> bool {
        self.hops == 0
    }
}

/// A master that sends a request to each worker actor, and begins the next round when all have answered.
struct Scatter {
    workers: u32,
    work: u64,
    open: u32,
    rounds: u32,
}

impl Program for Scatter {
    fn handle(&mut self, message: Message, send: &mut dyn FnMut(Message)) {
        if message.to > 0 {
            return send(Message { to: 0, work: 0 });
        }
        self.open = self.open.saturating_sub(1);
        if self.open == 0 && self.rounds > 0 {
            self.rounds -= 1;
            self.open = self.workers;
            (1..=self.workers).for_each(|to| send(Message { to, work: self.work }));
        }
    }

    fn is_done(&self) -> bool {
        self.rounds == 0 && self.open == 0
    }
}

fn gossip(workers: usize, work: u64) -> f64 {
    let hops = 40_000 * workers as u64;
    let tokens = (0..10_000).map(|token| Message { to: token, work });
    let (time, _, worked) =
        Model::run(Gossip { hops, actors: 10_000, random: 88_172_645_463_325_252 }, workers, tokens);
    worked as f64 / time as f64
}

fn scatter(workers: usize, work: u64) -> f64 {
    let program = Scatter { workers: 100 * workers as u32, work, open: 0, rounds: 20 };
    let (time, _, worked) = Model::run(program, workers, [Message { to: 0, work: 0 }].into_iter());
    worked as f64 / time as f64
}

#[test]
fn with_ten_microseconds_of_work_sixty_four_workers_are_used() {
    for (name, speed_up) in [("gossip", gossip as fn(usize, u64) -> f64), ("scatter", scatter)] {
        let one = speed_up(1, 10_000);
        for workers in [1, 2, 8, 64, 256] {
            let many = speed_up(workers, 10_000);
            println!(
                "{name}: {workers} workers: {:.1} times, {:.2} of linear",
                many / one,
                many / one / workers as f64
            );
            assert!(workers != 64 || many / one >= 0.8 * workers as f64, "{name}: {workers} workers");
        }
    }
}
