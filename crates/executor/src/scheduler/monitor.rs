//! The monitor: a handler that is stuck stops only itself (kumar §6.2, fair scheduling by lazy thread creation).
//!
//! Once in a tick the monitor checks whether each worker has made progress. A worker without progress is told to end
//! its gulp at the next message; gulps are therefore bounded in time without a look at the clock. A worker without
//! progress for longer has a handler that computes, blocks or sleeps. A new thread then takes over its *work* (queue,
//! logs, timers, inbox). Only the stage of the stuck handler stays with the old thread until the handler returns.
//!
//! # When no thread can be started
//!
//! The monitor starts the new thread before it takes anything. If that fails (a limit on processes or memory), the
//! worker keeps its work: nothing is lost, the handler's return ends the standstill, and the monitor tries again at
//! each tick. A thread whose takeover has failed waits for the next attempt, and ends when the worker has made
//! progress. The counter `takeovers_failed` tells the operator.
//!
//! # The protocol
//!
//! The worker's thread M and the monitor share two words of M: `claimed` + `phase` (written by M), and REVOKED in the
//! signal (written by the monitor).
//!
//! - M, before each record: store `claimed`; light fence; read the signal.
//! - M, before touching core, queue structure or logs' structure: store phase = RUNTIME; light fence; read the signal.
//! - Monitor: raise REVOKED; heavy fence; read phase, then claimed.
//!
//! By the asymmetric fence, either M sees REVOKED at its next claim or entry into RUNTIME, or the monitor sees that
//! claim or that phase. Cases, as the monitor sees them:
//!
//! - *phase is RUNTIME, or no record is claimed*: M is not stuck. The monitor lowers REVOKED and leaves. If M saw it, M
//!   asks for the handoff lock, which the monitor holds during its decision, and finds that the work was not taken.
//! - *phase is USER and c is claimed, but c's stage is another worker's*: M has run c, given its stage away, and
//!   claimed no record since. M is not stuck; the monitor leaves.
//! - *phase is USER and c is claimed*: before M claims another record or enters RUNTIME, it looks at the signal, and
//!   then stops at the handoff lock. Queue and core therefore stand still. Everything behind c is taken. M may be
//!   before c's handler, in it, or behind it. Before: M claimed c and has not yet looked; it sees REVOKED, asks for the
//!   lock, learns that c was left to it, and runs c. Behind: M claims c', sees REVOKED, and learns that c' was taken.
//!   In each case the new worker holds c's stage until M has finished with that stage.
//! - The same, but *c was deferred* (`deferred_starts.rs`): M has moved c to the core, and will not run it. c goes
//!   along with the core, and M is behind c.
//! - The logs: M appends without looking at the signal. A record is whole before `tail` is moved over it. The monitor
//!   therefore takes the records before `tail` and sets `end` to null. M's next append takes the slow path, enters
//!   RUNTIME, and sees REVOKED. From then on M sends through the inboxes like any outside thread, after it has posted
//!   the one record that may have been under way. If M never sends again, the monitor finds that record at a later
//!   tick.
//! - *User code* never runs under the handoff lock, because it could wait for M, or ask for the lock. On the monitor's
//!   thread the observer runs, with the hooks for slow handlers. Sends of these wait for no worker
//!   ([`without_waiting`](crate::worker::outside_delivery::without_waiting)). Their messages are therefore put into the
//!   inboxes even if the system has been closed, and none is bounced (`post_anyway`). User code that M runs in RUNTIME
//!   (a timer's task) keeps the worker. Drops of dead letters, controls and hooks run in USER, below a claimed record;
//!   that record's stage is held as for a handler.
//! - *State of M that the monitor reads* is either atomic or changed by M in RUNTIME only. The exception is `run_at`,
//!   which M sets in USER: the monitor computes the position from the claim. M may read `later` in USER: the monitor
//!   does not change it.
//! - *The kernel refuses the heavy fence* (a seccomp filter that the program has installed since): the monitor can
//!   believe neither phase nor claim. It lowers REVOKED and leaves, as if M were not stuck. This is safe, because
//!   nothing was taken: if M has seen REVOKED, it asks for the handoff lock and finds that it still has the work. All
//!   workers are then woken to change to full fences, each between two gulps and in RUNTIME, by storing `full_fence`
//!   (Release). The monitor revokes a worker that it sees changed (Acquire) with a full fence of its own. The claims
//!   and phases from before the change are visible to the monitor by that pair. Each later one is followed by a full
//!   fence, and the guarantee holds again. A handler that is stuck in a worker without full fences keeps its worker
//!   until it returns.
//! - *Nested handlers* (short-circuit asks, near starts) are claimed in `nest_stages` like records. M stores the stage;
//!   light fence; reads the signal, and runs the handler only if REVOKED is not raised. The monitor reads `nest_stages`
//!   after the phase and the claim. It therefore sees the stage of each nested handler that runs, and the new worker
//!   holds that stage too. M removes the stage when the handler has ended (Release). If the monitor reads the removal
//!   (Acquire), the new worker sees all that the handler has written. If the monitor still reads the stage of a handler
//!   that has just ended, one more stage of this worker is held for a while. M removes the stages before it enters
//!   RUNTIME, where stages are given away. A stage that the monitor reads is therefore always this worker's. The stage
//!   stands beside the nested call and is not read from the actor's cell: the nested handler may end its actor, and the
//!   vacant cell says stage 0, or already belongs to a new actor. Stage 0 of another worker would be held for ever.

use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::load::bounds::OVERLOADED_BYTES;
use crate::load::mute_deadlocks::MuteDeadlocks;
use crate::memory::raw_address::Lane;
use crate::memory::record::Record;
use crate::memory::segment::{Chain, Segment, for_each_between};
use crate::sync::asymmetric_fence;
use crate::sync::jitter::{self, seam};
use crate::sync::locks::lock;
use crate::sync::worker_requests::Signal;
use crate::worker::Worker;
use crate::worker::after_takeover::HandoffState;
use crate::worker::core::{Core, Parked, Reason};
use crate::worker::message_queue::Cursor;
use crate::worker::run_by_askers::Loan;
use crate::worker::system_core::SystemCore;
use crate::worker::threads::WorkerThread;

/// Returns the monitor's interval.
fn tick() -> Duration {
    if jitter::is_on() { Duration::from_micros(200) } else { Duration::from_millis(2) }
}

/// Ticks after which workers with stages that are muted for another system check whether these may go on, even without
/// a call.
const MUTED_FOR_OTHERS_TICKS: u64 = 5;

/// Returns the ticks without progress after which a worker's work is taken over, while no other handler is stuck. The
/// number doubles with each stuck handler, because long computations are not to multiply threads.
fn stuck_ticks() -> u32 {
    if jitter::is_on() { 2 } else { 5 }
}

/// Returns the largest number of doublings: one second and a quarter.
fn stuck_doublings_max() -> u32 {
    if jitter::is_on() { 3 } else { 7 }
}

impl Worker {
    /// Tries to take the work of this worker's thread. Called by the monitor only.
    fn take_over(&self) -> Option<Takeover> {
        let mut handoff = lock(&self.handoff);
        let claimed = self.revoke_claim()?;
        // From this point on the thread touches neither queue nor core.
        for log in &self.logs {
            log.stop();
        }
        // SAFETY: the thread has claimed that record last, or now another one behind it, and will learn that the latter
        // was taken. Its work was revoked, and its logs are stopped.
        let (behind, queue, outgoing, mut core) = unsafe {
            let behind = self.position_behind(claimed);
            let (queue, outgoing) = (self.seize_queue(behind, &mut handoff), self.seize_logs(&mut handoff));
            (behind, queue, outgoing, self.detach_stages(claimed, &mut handoff))
        };
        // Messages that this thread sent to others are posted before any other thread runs its stages (I2).
        for chain in outgoing {
            // SAFETY: whole records, each handed over once.
            chain.consume(None, |record| unsafe { self.system.post_anyway(Lane::Normal, record) });
        }
        let sent = core.mail.waiting(self.bytes_run_to(behind)).min(queue[Lane::Normal as usize].bytes as u64);
        Some(Takeover { core, queue, sent })
    }

    /// Raises REVOKED and returns the record that the thread has claimed. Returns `None`, with REVOKED lowered again,
    /// if the thread does not stand in a handler of one of this worker's stages. Under the handoff lock.
    fn revoke_claim(&self) -> Option<NonNull<Record>> {
        let claimed = self.ownership.revoke(self.has_full_fences())?;
        seam(2);
        // SAFETY: the claimed record stays readable; the core stands still, because the thread asks for the handoff
        // lock before it touches the core again.
        if unsafe { (*self.core.get()).is_parked(claimed.as_ref().stage()) } {
            // The thread is about to park the record, or has just done so. It is in no handler, and must not be left
            // with the record. The record is behind others that were parked (I2), or another worker runs its stage
            // (I1).
            self.ownership.signal.clear(Signal::REVOKED);
            return None;
        }
        // SAFETY: the claimed record stays readable.
        if self.system.routing.route[unsafe { claimed.as_ref() }.stage() as usize].load(Ordering::Acquire) != self.id {
            // The record was run, and then its stage was given away: the thread stands before its next claim. That
            // stage is not this worker's to be held, because its present worker would be told of its return (I1).
            // (Acquire: pairs with the Release of the worker that moved the stage. The stage does not come back during
            // this check, because this thread would take it in.)
            self.ownership.signal.clear(Signal::REVOKED);
            return None;
        }
        Some(claimed)
    }

    /// Moves the deferred starts, and the records of the queue from `behind` on, to chains by lanes.
    ///
    /// # Safety
    /// The thread's work was revoked with the claim before `behind`, and its logs are stopped; under the handoff lock.
    unsafe fn seize_queue(&self, behind: Cursor, handoff: &mut HandoffState) -> [Chain; 3] {
        let mut queue = [const { Chain::new() }; 3];
        // SAFETY: the thread stands still. Deferred starts come first, because messages to the actors that they start
        // go behind them.
        queue[Lane::Normal as usize] = unsafe { (*self.core.get()).deferred_starts.take(u64::MAX, None) };
        let log = &self.logs[self.id as usize];
        let taken_to = log.tail.load(Ordering::Acquire);
        // SAFETY: the thread stands still; records before the tail are whole, and moved out once.
        self.for_each_from(behind, taken_to, &mut |record| unsafe {
            if !record.as_ref().is_buried() {
                let (lane, size) = (record.as_ref().lane() as usize, record.as_ref().bytes());
                queue[lane].push_bytes(record.as_ptr().cast(), size, None);
            }
        });
        // SAFETY: the thread stands still: it changes `later` in RUNTIME only. The thread may read it in USER
        // (`nothing_waits_for`), and the monitor therefore leaves it unchanged.
        let later = unsafe { &*self.later.get() };
        for segment in std::iter::once(behind.segment).chain(later.iter().map(|cursor| cursor.segment)) {
            if segment != log.first.get() {
                handoff.segments.push(segment);
            }
        }
        handoff.taken = vec![std::ptr::null_mut(); self.logs.len()];
        handoff.taken[self.id as usize] = taken_to;
        queue
    }

    /// Moves the records of the logs for other workers to a chain for each log.
    ///
    /// # Safety
    /// The same as for [`Worker::seize_queue`], which was called.
    unsafe fn seize_logs(&self, handoff: &mut HandoffState) -> Vec<Chain> {
        let mut outgoing = Vec::new();
        for (dest, log) in self.logs.iter().enumerate() {
            if dest == self.id as usize || log.is_closed() {
                continue;
            }
            let tail = log.tail.load(Ordering::Acquire);
            let mut chain = Chain::new();
            let mut segment = log.first.get();
            // SAFETY: the log's structure stands still; records before the tail are whole and moved out once.
            unsafe {
                while !segment.is_null() {
                    let body = Segment::body(segment);
                    let end = if segment == log.last.get() { tail } else { body.add((*segment).used) };
                    for_each_between(body, end, &mut |record| {
                        chain.push_bytes(record.as_ptr().cast(), record.as_ref().bytes(), None)
                    });
                    segment = (*segment).next;
                }
            }
            handoff.taken[dest] = tail;
            seam(2);
            outgoing.push(chain);
        }
        outgoing
    }

    /// Leaves `claimed` and the stages of its handlers to the thread, and takes the core, in which these stages are
    /// parked from now on.
    ///
    /// # Safety
    /// The same as for [`Worker::seize_logs`].
    unsafe fn detach_stages(&self, claimed: NonNull<Record>, handoff: &mut HandoffState) -> Box<Core> {
        // SAFETY: the claimed record stays readable while its thread runs it.
        let mut stages = vec![unsafe { claimed.as_ref() }.stage()];
        // Acquire: pairs with the Release in the drop of `Nest`.
        let nested = self.nest_stages.iter().map(|nested| nested.load(Ordering::Acquire));
        stages.extend(nested.filter(|nested| *nested > 0).map(|nested| (nested - 1) as u16));
        stages.sort_unstable();
        stages.dedup();
        handoff.detached = true;
        handoff.left = Some(claimed);
        handoff.stages.clone_from(&stages);
        // SAFETY: made by Box::into_raw in `Worker::new`; the thread, being in USER, will not use it again.
        let mut core = unsafe { Box::from_raw(self.core.replace(std::ptr::null_mut())) };
        for stage in &stages {
            match core.parked.get_mut(stage) {
                Some(parked) => {
                    if let Reason::Muted { stuck: false, .. } = parked.reason {
                        self.shared().muted_stages.fetch_sub(1, Ordering::Relaxed);
                    }
                    if parked.reason == Reason::Paused {
                        self.system.quiescence.paused.fetch_sub(1, Ordering::AcqRel);
                    }
                    if parked.reason != Reason::Detached {
                        self.system.open_less();
                    }
                    parked.detach();
                }
                None => {
                    core.parked.insert(*stage, Parked::new(Reason::Detached, Some(OVERLOADED_BYTES)));
                }
            }
            self.system.routing.full[*stage as usize].note_stuck();
        }
        core
    }
}

struct Takeover {
    core: Box<Core>,
    queue: [Chain; 3],
    /// The bytes that others have sent: they still count as this worker's load, and not as its own messages.
    sent: u64,
}

/// The monitor's notes about a worker.
struct Watched {
    claimed: *mut Record,
    beat: u64,
    ticks: u32,
    /// A thread that was started to go on with the worker's work, and has not got it yet.
    thread: Option<WorkerThread>,
    /// The work of the stuck handler could not be taken over, and the counter has counted that.
    failed: bool,
}

impl Watched {
    fn new(claimed: *mut Record, beat: u64) -> Watched {
        Watched { claimed, beat, ticks: 0, thread: None, failed: false }
    }

    /// Notes that the work cannot be taken over at this tick.
    fn fail(&mut self, worker: &Worker) {
        self.thread = None;
        if !std::mem::replace(&mut self.failed, true) {
            worker.shared().ledgers.note(|counters| counters.takeovers_failed += 1);
        }
    }
}

/// Runs the monitor thread.
pub(crate) fn watch(system: &Weak<SystemCore>) {
    let mut watched: Vec<Watched> = Vec::new();
    let mut stuck: Vec<Arc<Worker>> = Vec::new();
    let mut deadlocks = MuteDeadlocks::default();
    let mut asymmetric = true;
    let mut looks = 0_u64;
    let mut quiet = 0;
    loop {
        {
            let Some(system) = system.upgrade() else { return };
            if system.shutdown.ending.load(Ordering::Acquire)
                && stuck.is_empty()
                && system.threads.alive.load(Ordering::Acquire) == 0
            {
                return;
            }
            if std::mem::replace(&mut asymmetric, asymmetric_fence::asymmetric()) && !asymmetric {
                // The workers change to full fences at their next checkup.
                system.worker_table.made().for_each(|(id, _)| system.rouse(id));
            }
            watched.resize_with(system.worker_table.len(), || Watched::new(std::ptr::null_mut(), 0));
            for (id, seen) in watched.iter_mut().enumerate() {
                let Some(worker) = lock(&system.threads.posts[id]).clone() else {
                    continue;
                };
                look(&system, &worker, seen, &mut stuck);
                worker.running.look(&system);
            }
            stuck.retain(|worker| {
                worker.running.look(&system);
                let mut handoff = lock(&worker.handoff);
                worker.post_rest(&mut handoff);
                !handoff.stages.is_empty()
            });
            deadlocks.look(&system);
            looks += 1;
            if looks.is_multiple_of(MUTED_FOR_OTHERS_TICKS) {
                system.rouse_muted_of_other_systems();
            }
            // All workers that could wake the called workers may be in handlers that do not return.
            system.wake_called(usize::MAX);
            quiet = system.pause_monitor(tick(), stuck.is_empty(), quiet);
        }
    }
}

fn look(system: &Arc<SystemCore>, worker: &Arc<Worker>, seen: &mut Watched, stuck: &mut Vec<Arc<Worker>>) {
    let (claimed, beat) = (worker.ownership.claimed(), worker.beat.load(Ordering::Relaxed));
    if !worker.ownership.is_user() || claimed.is_null() {
        *seen = Watched::new(claimed, beat);
        return;
    }
    // A slice of time is over. The signal bounds gulps in time, and has the worker look at the clock.
    worker.ownership.signal.raise(Signal::TICK);
    if (claimed, beat) != (seen.claimed, seen.beat) {
        *seen = Watched::new(claimed, beat);
        return;
    }
    seen.ticks += 1;
    let doublings = (system.threads.detached.load(Ordering::Relaxed) as u32).min(stuck_doublings_max());
    if seen.ticks < stuck_ticks() << doublings || worker.id as usize >= system.config.workers {
        return;
    }
    if !worker.has_full_fences() && !asymmetric_fence::asymmetric() {
        return seen.fail(worker);
    }
    // The thread first: without a thread, no work is taken.
    let thread = seen.thread.take().map_or_else(|| system.start_thread(worker.id), Ok);
    let Ok(thread) = thread else { return seen.fail(worker) };
    let Some(takeover) = worker.take_over() else {
        seen.thread = Some(thread);
        return;
    };
    *seen = Watched::new(claimed, beat);
    stuck.push(Arc::clone(worker));
    system.threads.stuck.note(worker);
    system.threads.detached.fetch_add(1, Ordering::Relaxed);
    system.worker_table[worker.id as usize].ledgers.note(|counters| counters.takeovers += 1);
    let signal = Arc::<Signal>::default();
    {
        // A thread that raises a signal does it under this lock, and from this point on at the new thread's signal.
        let mut inbox = system.worker_table[worker.id as usize].lock();
        signal.raise(worker.ownership.signal.get() & !Signal::REVOKED);
        inbox.signal = Arc::clone(&signal);
        inbox.loan = Loan::default();
    }
    seam(2);
    let successor = Arc::new(Worker::new(system, worker.id, signal, takeover.core));
    successor.enter(|| {
        successor.admit(takeover.queue);
        successor.note_mail(takeover.sent);
    });
    thread.run(successor);
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};
    use std::time::{Duration, Instant};

    use crate::sync::locks::lock;
    use crate::worker::current;
    use crate::worker::nested::Nest;
    use crate::*;

    /// The longest wait for the monitor.
    const LIMIT: Duration = Duration::from_secs(60);

    struct Plain;
    impl Resident for Plain {
        type Extra = ();
        fn name() -> &'static str {
            "Plain"
        }
        fn ended(&mut self, _: Option<Box<()>>, _: Ending, _: &mut Cx<Self>) {}
        fn crashed(crash: Crash, _: &mut ControlCx<Self>) {
            panic!("{crash:?}");
        }
    }

    /// Calls the function in a handler.
    struct Do<F>(F);
    impl<F: FnOnce() + Send + 'static> Envelope<Plain> for Do<F> {
        fn run(self, _: &mut Plain, _: &mut Cx<Plain>) {
            (self.0)();
        }
        fn bounce(self, why: Undelivered) {
            panic!("{why:?}");
        }
    }

    /// Calls the function in a handler, or when the message is bounced.
    struct DoAnyway<F>(F);
    impl<F: FnOnce() + Send + 'static> Envelope<Plain> for DoAnyway<F> {
        fn run(self, _: &mut Plain, _: &mut Cx<Plain>) {
            (self.0)();
        }
        fn bounce(self, _: Undelivered) {
            (self.0)();
        }
    }

    /// Waits until the monitor has taken over the worker of this thread. Returns the stages that stay with the thread.
    fn be_taken_over() -> Vec<u16> {
        let worker = current().unwrap();
        let deadline = Instant::now() + LIMIT;
        while worker.handoff_kept() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        lock(&worker.handoff).stages.clone()
    }

    /// Ends `child` within a nested call, waits until the monitor has taken the worker over, and sends the stages that
    /// stay with the thread.
    fn end_nested(child: Address<Plain>, held: &Sender<Vec<u16>>) {
        let worker = current().unwrap();
        let nest = Nest::enter(worker, 0, child.raw().cell, child.raw().stage());
        worker.end(child.raw().cell, Ending::Stopped);
        held.send(be_taken_over()).unwrap();
        drop(nest);
    }

    // GUARANTEE: A stuck handler stops only itself
    #[test]
    fn a_takeover_holds_the_stage_of_a_nested_actor_that_has_just_ended_and_no_other_one() {
        let config = Config { workers: 2, stages: 2, ..Config::new() };
        let system = SystemCore::start(config).unwrap();
        let (send, held) = channel();
        let child = system.spawn(Plain, StageChoice::At(1), Do(|| ())).ok().unwrap();
        system.run_until_idle();
        let _ = system.spawn(Plain, StageChoice::At(1), Do(move || end_nested(child, &send))).ok().unwrap();
        // Stage 0 belongs to the other worker.
        assert_eq!(held.recv_timeout(LIMIT).unwrap(), [1]);
        system.run_until_idle();
        assert_eq!(system.end(LIMIT, &mut |_, _, _| {}), (1, 0));
    }

    #[test]
    fn a_dead_letter_whose_drop_is_stuck_holds_up_the_stage_of_its_actor_only() {
        let config = Config { workers: 1, stages: 2, ..Config::new() };
        let system = SystemCore::start(config).unwrap();
        let (send, held) = channel();
        let actors = [0, 1].map(|stage| system.spawn(Plain, StageChoice::At(stage), Do(|| ())).ok().unwrap());
        let [gone, other] = actors;
        gone.send(Do(move || current().unwrap().end(gone.raw().cell, Ending::Stopped)));
        system.run_until_idle();
        gone.send(DoAnyway(move || {
            // No other thread could let it go on.
            let (go_on, goes_on) = channel();
            other.send(Do(move || go_on.send(()).unwrap()));
            send.send((be_taken_over(), goes_on.recv_timeout(LIMIT))).unwrap();
        }));
        assert_eq!(held.recv_timeout(LIMIT).unwrap(), (vec![0], Ok(())));
        system.run_until_idle();
        assert_eq!(system.end(LIMIT, &mut |_, _, _| {}), (1, 0));
    }

    #[test]
    fn a_takeover_in_a_closed_system_runs_no_user_code_on_the_monitor_s_thread() {
        let config = Config { workers: 2, stages: 2, ..Config::new() };
        let system = SystemCore::start(config).unwrap();
        let (send, came) = channel();
        let receiver = system.spawn(Plain, StageChoice::At(1), Do(|| ())).ok().unwrap();
        let sender = system.spawn(Plain, StageChoice::At(0), Do(|| ())).ok().unwrap();
        system.run_until_idle();
        let of_system = std::sync::Arc::clone(&system);
        let (held, is_held) = channel();
        sender.send(Do(move || {
            // This stays in the log of the other worker.
            receiver.send(DoAnyway(move || send.send(std::thread::current().name().map(str::to_owned)).unwrap()));
            of_system.shutdown.closed.store(true, std::sync::atomic::Ordering::Release);
            of_system.shutdown.ending.store(true, std::sync::atomic::Ordering::Release);
            held.send(be_taken_over()).unwrap();
        }));
        assert_eq!(is_held.recv_timeout(LIMIT).unwrap(), [0]);
        assert_eq!(system.end(LIMIT, &mut |_, _, _| {}), (2, 0));
        // The other worker has handled the message, or the thread that has ended the system has bounced it.
        let by = came.try_recv().expect("it was not lost");
        assert_ne!(by, Some(format!("playhouse-{}-monitor", system.id())));
    }

    #[test]
    fn a_monitor_that_has_slept_while_nothing_was_under_way_sees_that_a_handler_is_stuck() {
        let config = Config { workers: 1, stages: 2, ..Config::new() };
        let system = SystemCore::start(config).unwrap();
        let [blocked, other] = [0, 1].map(|stage| system.spawn(Plain, StageChoice::At(stage), Do(|| ())).ok().unwrap());
        for _ in 0..2 {
            let deadline = Instant::now() + LIMIT;
            while !system.threads.monitor_sleeps.load(std::sync::atomic::Ordering::SeqCst) {
                assert!(Instant::now() < deadline, "it does not sleep");
                std::thread::yield_now();
            }
            let ((go_on, goes_on), (send, went_on)) = (channel(), channel());
            blocked.send(Do(move || send.send(goes_on.recv_timeout(LIMIT)).unwrap()));
            // Only another thread of the worker can run this.
            other.send(Do(move || go_on.send(()).unwrap()));
            assert_eq!(went_on.recv_timeout(LIMIT).unwrap(), Ok(()));
            system.run_until_idle();
        }
        assert_eq!(system.end(LIMIT, &mut |_, _, _| {}), (2, 0));
    }
}
