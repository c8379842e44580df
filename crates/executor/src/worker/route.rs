//! The route of one worker: its private record of the worker that runs each stage.
//!
//! Each inbox counts its *departures*: the number of times that stages have left its worker. A worker that hands mail
//! over locks the receiver's inbox and compares the departures with the count that it saw before. Equal counts mean
//! that no stage has left the receiver since the sender read the private entries that name the receiver. Those entries
//! are then right, and the receiver runs the stages of all of the mail. If the counts differ, the sender checks each
//! record of the mail. At the end of the flush, the sender reads the entries that name the receiver again.
//!
//! A move of a stage therefore costs time only on its two workers and on the workers that send to the old one. All
//! workers share no counter of moves.
//!
//! INVARIANT: `seen[w]` was read before each entry that names `w`. While the departures of `w` equal `seen[w]`, `w`
//! therefore runs every stage whose entry names `w`.
//!
//! The module is pure. Its tests explore the protocol with 3 workers and 3 stages. The other side of the protocol is in
//! `exchange.rs` (flush, delivery, adoption), `steal.rs` and `idle.rs`. The argument that messages keep their order is
//! in `exchange.rs`.

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Route {
    me: u16,
    /// The worker of each stage. Between two flushes, an entry changes only while all logs to other workers are closed.
    workers: Box<[u16]>,
    /// The departures of each worker, as of a time before the entries that name it were read.
    seen: Box<[u64]>,
    /// Workers whose entries the next update reads again, with their departures.
    left: Vec<(u16, u64)>,
    /// Stages that have come to this worker. The next update reads their entries again.
    came: Vec<u16>,
}

impl Route {
    /// Creates the route of worker `me`. The caller has read `departures`, the counts of all workers, before `workers`.
    pub(crate) fn new(me: u16, departures: Box<[u64]>, workers: Box<[u16]>) -> Route {
        Route { me, workers, seen: departures, left: Vec::new(), came: Vec::new() }
    }

    /// # Safety
    /// The system has a stage with this number.
    #[inline(always)]
    pub(crate) unsafe fn worker_of(&self, stage: u16) -> u16 {
        // SAFETY: `workers` has an entry for each stage, and the caller guarantees that the stage exists.
        unsafe { *self.workers.get_unchecked(stage as usize) }
    }

    /// Returns whether all entries that name `worker` are right. `departures` is the count in its inbox, which the
    /// caller has locked.
    pub(crate) fn is_current(&self, worker: u16, departures: u64) -> bool {
        self.seen[usize::from(worker)] == departures
    }

    /// Notes that stages have left `worker`. The next update reads the entries that name it again.
    #[cold]
    pub(crate) fn note_departures(&mut self, worker: u16, departures: u64) {
        match self.left.iter_mut().find(|(left, _)| *left == worker) {
            Some(noted) => noted.1 = departures,
            None => self.left.push((worker, departures)),
        }
    }

    /// Notes stages that have come while logs to other workers may hold records for them. The next update reads their
    /// entries again.
    pub(crate) fn note_arrivals(&mut self, stages: &[u16]) {
        self.came.extend(stages);
    }

    /// Enters stages that have come. All records that were sent to them come into the queue before this worker runs any
    /// record. All logs to other workers are closed.
    pub(crate) fn arrive(&mut self, stages: &[u16]) {
        for stage in stages {
            self.workers[usize::from(*stage)] = self.me;
        }
    }

    /// Reads the noted entries again. The caller does this only while all logs to other workers are closed. It then
    /// takes its mail into the queue before it runs any record.
    pub(crate) fn update(&mut self, mut truth: impl FnMut(u16) -> u16) {
        for (worker, departures) in std::mem::take(&mut self.left) {
            for (stage, entry) in self.workers.iter_mut().enumerate() {
                if *entry == worker {
                    *entry = truth(stage as u16);
                }
            }
            self.seen[usize::from(worker)] = departures;
        }
        for stage in std::mem::take(&mut self.came) {
            self.workers[usize::from(stage)] = truth(stage);
        }
    }

    /// Enters that this worker has adopted the stage from `from`, whose inbox it has locked. `departures` is the count
    /// of `from` after that.
    pub(crate) fn adopt(&mut self, stage: u16, from: u16, departures: u64) {
        // If stages had left `from` before that, an update still has to read their entries, and `seen` keeps its value.
        if self.is_current(from, departures - 1) {
            self.seen[usize::from(from)] = departures;
        }
        self.workers[usize::from(stage)] = self.me;
    }

    /// Enters that this worker has given the stage to `to`. `departures` is this worker's own count after that.
    pub(crate) fn give(&mut self, stage: u16, to: u16, departures: u64) {
        self.workers[usize::from(stage)] = to;
        self.seen[usize::from(self.me)] = departures;
    }

    /// Returns those of the first `stages` stages that this worker runs.
    pub(crate) fn own(&self, stages: usize) -> impl Iterator<Item = u16> + '_ {
        (0..).zip(&self.workers[..stages]).filter(|(_, worker)| **worker == self.me).map(|(stage, _)| stage)
    }
}

#[cfg(test)]
mod tests {
    //! All interleavings of workers that send, flush, take mail, give stages away, adopt, become idle and wake. Each
    //! step happens under the locks that the executor holds for it, and uses the executor's own [`Route`].

    use std::collections::HashSet;
    use std::hash::{DefaultHasher, Hash, Hasher};

    use super::Route;

    const WORKERS: usize = 3;
    /// Stages with 1 actor each. The sender sends numbers to itself, to the relay and to the receiver. The relay
    /// forwards each number to the receiver.
    const STAGES: usize = 3;
    const SENDER: u16 = 0;
    const RELAY: u16 = 1;
    const RECEIVER: u16 = 2;
    const NUMBERS: u8 = 2;
    /// The largest number of moves of stages.
    const MOVES: u8 = 2;

    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    struct Record {
        from: u16,
        stage: u16,
        number: u8,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    enum Phase {
        /// The worker may run records.
        Running,
        /// The worker hands over its logs.
        Flushing {
            take_mail: bool,
        },
        /// Stages have moved. The worker posts, one by one, the records for the worker that the stages have left.
        Rerouting {
            take_mail: bool,
            of_handler: bool,
        },
        Idle,
    }

    /// A move within an update: before look number `look` (from 0) at the true route, the stage's worker gives the
    /// stage to `to`.
    #[derive(Clone, Copy)]
    struct Moved {
        look: usize,
        stage: u16,
        to: usize,
    }

    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    struct Worker {
        phase: Phase,
        route: Route,
        stale: bool,
        queue: Vec<Record>,
        logs: [Vec<Record>; WORKERS],
        rerouted: Vec<Record>,
        // The lock of the worker's inbox guards the fields below.
        idle: bool,
        inbox: Vec<Record>,
        arrivals: Vec<u16>,
        departures: u64,
    }

    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    struct World {
        workers: [Worker; WORKERS],
        truth: [u16; STAGES],
        moves: u8,
        /// The last number that each actor has handled, first by receiver, then by sender.
        handled: [[u8; STAGES]; STAGES],
    }

    impl Worker {
        fn is_clean(&self) -> bool {
            self.logs.iter().all(Vec::is_empty) && self.rerouted.is_empty()
        }

        fn note_arrivals(&mut self) {
            let arrivals = std::mem::take(&mut self.arrivals);
            if self.is_clean() {
                self.route.arrive(&arrivals);
            } else if !arrivals.is_empty() {
                self.route.note_arrivals(&arrivals);
                self.stale = true;
            }
        }

        fn note_departures(&mut self, me: u16) {
            if !self.route.is_current(me, self.departures) {
                self.route.note_departures(me, self.departures);
                self.stale = true;
            }
        }

        fn take_mail(&mut self, me: u16) {
            self.idle = false;
            self.queue.append(&mut self.inbox);
            self.note_departures(me);
            self.note_arrivals();
        }
    }

    impl World {
        fn new() -> World {
            let truth = [0, 1, 1];
            let worker = |me| Worker {
                phase: Phase::Running,
                route: Route::new(me, vec![0; WORKERS].into(), truth.to_vec().into()),
                stale: false,
                queue: Vec::new(),
                logs: [const { Vec::new() }; WORKERS],
                rerouted: Vec::new(),
                idle: false,
                inbox: Vec::new(),
                arrivals: Vec::new(),
                departures: 0,
            };
            let mut workers = [worker(0), worker(1), worker(2)];
            workers[0].queue.push(Record { from: SENDER, stage: SENDER, number: 1 });
            World { workers, truth, moves: 0, handled: [[0; STAGES]; STAGES] }
        }

        fn send(&mut self, at: usize, record: Record) {
            let worker = &mut self.workers[at];
            // SAFETY: each record names one of the `STAGES` stages.
            let dest = usize::from(unsafe { worker.route.worker_of(record.stage) });
            if dest == at {
                worker.queue.push(record);
            } else {
                worker.logs[dest].push(record);
            }
        }

        fn handle(&mut self, at: usize) {
            let record = self.workers[at].queue.remove(0);
            assert_eq!(usize::from(self.truth[usize::from(record.stage)]), at, "I1: another worker runs the stage");
            let Record { from, stage, number } = record;
            let last = &mut self.handled[usize::from(stage)][usize::from(from)];
            assert_eq!(number, *last + 1, "I2: a number was overtaken, lost or doubled");
            *last = number;
            match stage {
                // The sender sends to the relay and to the receiver in turn.
                SENDER => {
                    let to = if number % 2 == 1 { RELAY } else { RECEIVER };
                    self.send(at, Record { from: SENDER, stage: to, number: number.div_ceil(2) });
                    if number < 2 * NUMBERS {
                        self.send(at, Record { from: SENDER, stage: SENDER, number: number + 1 });
                    }
                }
                RELAY => self.send(at, Record { from: RELAY, stage: RECEIVER, number }),
                _ => {}
            }
        }

        fn is_done(&self) -> bool {
            let last = |to: u16, from: u16| self.handled[usize::from(to)][usize::from(from)];
            [last(RELAY, SENDER), last(RECEIVER, SENDER), last(RECEIVER, RELAY)] == [NUMBERS; 3]
        }

        /// Hands over the log of `dest`. Returns false if the worker has to post the records one by one.
        fn deliver(&mut self, at: usize, dest: usize) -> bool {
            let chain = std::mem::take(&mut self.workers[at].logs[dest]);
            let departures = self.workers[dest].departures;
            let worker = &mut self.workers[at];
            if !worker.route.is_current(dest as u16, departures) {
                worker.route.note_departures(dest as u16, departures);
                worker.stale = true;
                if chain.iter().any(|record| usize::from(self.truth[usize::from(record.stage)]) != dest) {
                    worker.rerouted = chain;
                    return false;
                }
            }
            self.workers[dest].inbox.extend(chain);
            self.workers[dest].idle = false;
            true
        }

        /// Adopts the stages of the records in the log of `dest`, which is idle. Returns false if this is not allowed.
        fn adopt(&mut self, at: usize, dest: usize) -> bool {
            let chain = self.workers[at].logs[dest].clone();
            let there = &self.workers[dest];
            let all_there = chain.iter().all(|record| usize::from(self.truth[usize::from(record.stage)]) == dest);
            if !there.idle || !there.inbox.is_empty() || !there.arrivals.is_empty() || !all_there || self.moves >= MOVES
            {
                return false;
            }
            self.moves += 1;
            let departures = there.departures;
            let worker = &mut self.workers[at];
            if !worker.route.is_current(dest as u16, departures) {
                worker.route.note_departures(dest as u16, departures);
                worker.stale = true;
            }
            worker.logs[dest].clear();
            for record in chain {
                worker.route.adopt(record.stage, dest as u16, departures + 1);
                self.truth[usize::from(record.stage)] = at as u16;
                worker.queue.push(record);
            }
            self.workers[dest].departures += 1;
            true
        }

        fn give(&mut self, from: usize, to: usize, stage: u16) {
            self.moves += 1;
            let of_stage = |records: &mut Vec<Record>| -> Vec<Record> {
                let (stolen, kept) = records.drain(..).partition(|record| record.stage == stage);
                *records = kept;
                stolen
            };
            let victim = &mut self.workers[from];
            let mut stolen = of_stage(&mut victim.queue);
            stolen.append(&mut of_stage(&mut victim.inbox));
            victim.queue.append(&mut victim.inbox);
            victim.note_arrivals();
            victim.departures += 1;
            victim.route.give(stage, to as u16, victim.departures);
            self.truth[usize::from(stage)] = to as u16;
            self.workers[to].inbox.extend(stolen);
            self.workers[to].arrivals.push(stage);
            self.workers[to].idle = false;
        }

        /// Collects all states that one step leads to.
        fn next(&self, to: &mut Vec<World>) {
            for at in 0..WORKERS {
                let worker = &self.workers[at];
                let others = (0..WORKERS).filter(|other| *other != at);
                let mut step = |f: &mut dyn FnMut(&mut World) -> bool| {
                    let mut world = self.clone();
                    if f(&mut world) {
                        to.push(world);
                    }
                };
                match worker.phase {
                    Phase::Running => {
                        if !worker.queue.is_empty() {
                            step(&mut |world| {
                                world.handle(at);
                                true
                            });
                        }
                        // A flush with nothing to do changes nothing.
                        if !worker.is_clean() || worker.stale {
                            step(&mut |world| {
                                world.workers[at].phase = Phase::Flushing { take_mail: false };
                                true
                            });
                        }
                        if !worker.inbox.is_empty() || !worker.arrivals.is_empty() {
                            step(&mut |world| {
                                world.workers[at].take_mail(at as u16);
                                true
                            });
                        }
                        // A handler hands over a log that is full.
                        for dest in others.clone().filter(|dest| !worker.logs[*dest].is_empty()) {
                            step(&mut |world| {
                                if !world.deliver(at, dest) {
                                    world.workers[at].phase = Phase::Rerouting { take_mail: false, of_handler: true };
                                }
                                true
                            });
                        }
                        if worker.is_clean() {
                            let own =
                                (0..STAGES as u16).filter(|stage| usize::from(self.truth[usize::from(*stage)]) == at);
                            for stage in own.filter(|_| self.moves < MOVES) {
                                for thief in others.clone() {
                                    step(&mut |world| {
                                        world.give(at, thief, stage);
                                        true
                                    });
                                }
                            }
                            if worker.queue.is_empty() && worker.inbox.is_empty() && worker.arrivals.is_empty() {
                                step(&mut |world| {
                                    (world.workers[at].phase, world.workers[at].idle) = (Phase::Idle, true);
                                    true
                                });
                            }
                        }
                    }
                    Phase::Flushing { take_mail } => {
                        let mut all_closed = true;
                        for dest in others.filter(|dest| !worker.logs[*dest].is_empty()) {
                            all_closed = false;
                            step(&mut |world| {
                                if !world.deliver(at, dest) {
                                    world.workers[at].phase = Phase::Rerouting { take_mail, of_handler: false };
                                }
                                true
                            });
                            step(&mut |world| {
                                world.workers[at].phase = Phase::Flushing { take_mail: true };
                                world.adopt(at, dest)
                            });
                        }
                        if all_closed {
                            // Other workers may move 1 stage between the looks at the true route.
                            let mut moved = vec![None];
                            if worker.stale && self.moves < MOVES {
                                for look in 0..STAGES {
                                    for stage in 0..STAGES as u16 {
                                        moved.extend((0..WORKERS).map(|to| Some(Moved { look, stage, to })));
                                    }
                                }
                            }
                            for moved in moved {
                                step(&mut |world| world.end_flush(at, take_mail, moved));
                            }
                        }
                    }
                    Phase::Rerouting { take_mail, of_handler } => step(&mut |world| {
                        let worker = &mut world.workers[at];
                        if worker.rerouted.is_empty() {
                            worker.phase = if of_handler { Phase::Running } else { Phase::Flushing { take_mail } };
                            return true;
                        }
                        let record = worker.rerouted.remove(0);
                        let dest = &mut world.workers[usize::from(world.truth[usize::from(record.stage)])];
                        dest.inbox.push(record);
                        dest.idle = false;
                        true
                    }),
                    Phase::Idle => step(&mut |world| {
                        let worker = &mut world.workers[at];
                        // The worker flushes before it does anything else.
                        worker.phase = Phase::Flushing { take_mail: false };
                        if worker.inbox.is_empty() && worker.arrivals.is_empty() {
                            worker.idle = false;
                            worker.note_departures(at as u16);
                        } else {
                            worker.take_mail(at as u16);
                        }
                        true
                    }),
                }
            }
        }

        /// Ends a flush of worker `at`. Returns false if `moved` is not possible.
        fn end_flush(&mut self, at: usize, take_mail: bool, moved: Option<Moved>) -> bool {
            let mut take_mail = take_mail;
            if self.workers[at].stale {
                let mut route = self.workers[at].route.clone();
                let (mut looks, mut possible) = (0, moved.is_none());
                route.update(|stage| {
                    if let Some(Moved { look, stage, to }) = moved
                        && look == looks
                    {
                        let from = usize::from(self.truth[usize::from(stage)]);
                        let giver = &self.workers[from];
                        if from != at && from != to && giver.phase == Phase::Running && giver.is_clean() {
                            possible = true;
                            self.give(from, to, stage);
                        }
                    }
                    looks += 1;
                    self.truth[usize::from(stage)]
                });
                if !possible {
                    return false;
                }
                self.workers[at].route = route;
                self.workers[at].stale = false;
                take_mail = true;
            }
            if take_mail {
                self.workers[at].take_mail(at as u16);
            }
            self.workers[at].phase = Phase::Running;
            true
        }
    }

    #[test]
    fn no_interleaving_of_moves_and_sends_changes_an_order_or_loses_a_message() {
        // The set holds fingerprints, because the states themselves take gigabytes. Two of ten million states have an equal one with a probability
        // of 3 in a million.
        let fingerprint = |world: &World| {
            let mut hasher = DefaultHasher::new();
            world.hash(&mut hasher);
            hasher.finish()
        };
        let mut seen = HashSet::from([fingerprint(&World::new())]);
        let mut open = vec![World::new()];
        let mut next = Vec::new();
        let mut ends = 0;
        while let Some(world) = open.pop() {
            world.next(&mut next);
            for world in next.drain(..) {
                if world.is_done() {
                    ends += 1;
                } else if seen.insert(fingerprint(&world)) {
                    open.push(world);
                }
            }
        }
        println!("{} states, {ends} ends", seen.len());
        assert!(ends > 0);
    }
}
