//! Models of the protocols, checked by loom over all interleavings (with shrunken constants).
//!
//! `worker/ownership.rs` and `sync/worker_requests.rs` are the executor's own files. This program compiles them with loom's atomics, and with full fences
//! on both sides in the place of the asymmetric one. Full fences are at least as strong as the guarantee that `membarrier` gives to each pair of a
//! light and a heavy fence. A bug that loom finds is therefore a bug of the executor, too. The kernel promises that the light side may be a compiler
//! fence. One model is of a kernel that breaks this promise. The models of parking, muting and flushing restate their protocols in a few lines. The
//! executor's protocols are lock-based, too, and the models check the order of their steps.

#![allow(dead_code)]

/// The modules of the executor that its files name.
mod sync {
    pub(crate) use crate::worker_requests_file as worker_requests;

    pub(crate) mod primitives {
        pub(crate) use loom::sync::Arc;
        pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
    }

    /// In this model, threads without full fences have none at all, because the kernel refuses the barrier that would
    /// make up for them.
    pub(crate) mod asymmetric_fence {
        use loom::sync::atomic::{Ordering, fence};

        pub(crate) fn light<const FULL: bool>() {
            if FULL {
                fence(Ordering::SeqCst);
            }
        }

        pub(crate) fn heavy(full: bool) -> bool {
            fence(Ordering::SeqCst);
            full
        }
    }
}

#[path = "../src/worker/ownership.rs"]
mod ownership;
#[path = "../src/sync/worker_requests.rs"]
mod worker_requests_file;

use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex, Notify};
use loom::thread;

use ownership::Ownership;
use sync::asymmetric_fence;
use sync::worker_requests::Signal;

/// The number of records of the model. The model counts the runs of each record.
const RECORDS: usize = 2;

struct HandoffState {
    detached: bool,
    left: *mut AtomicUsize,
}

// SAFETY: the threads compare the pointer, and never read through it.
unsafe impl Send for HandoffState {}

struct Worker {
    ownership: Ownership<AtomicUsize>,
    full_fence: AtomicBool,
    handoff: Mutex<HandoffState>,
    /// Stands for queue and core: `true` while a thread is in RUNTIME or has taken the work.
    core_busy: AtomicBool,
    runs: Vec<AtomicUsize>,
    /// The records in a recycled segment: the monitor must not believe a claim on one of them.
    recycled: Vec<AtomicBool>,
}

impl Worker {
    fn new(full_fence: bool) -> Worker {
        Worker {
            ownership: Ownership::new(Arc::default()),
            full_fence: AtomicBool::new(full_fence),
            handoff: Mutex::new(HandoffState { detached: false, left: std::ptr::null_mut() }),
            core_busy: AtomicBool::new(false),
            runs: (0..RECORDS).map(|_| AtomicUsize::new(0)).collect(),
            recycled: (0..RECORDS).map(|_| AtomicBool::new(false)).collect(),
        }
    }

    fn record(&self, index: usize) -> *mut AtomicUsize {
        std::ptr::from_ref(&self.runs[index]).cast_mut()
    }

    fn claim(&self, record: *mut AtomicUsize) -> u32 {
        match self.full_fence.load(Ordering::Relaxed) {
            true => self.ownership.claim::<true>(record),
            false => self.ownership.claim::<false>(record),
        }
    }

    fn enter(&self) -> bool {
        let free = match self.full_fence.load(Ordering::Relaxed) {
            true => self.ownership.enter::<true>(),
            false => self.ownership.enter::<false>(),
        };
        if free || !self.handoff.lock().unwrap().detached {
            return true;
        }
        self.ownership.leave();
        false
    }

    fn use_core(&self) {
        assert!(!self.core_busy.swap(true, Ordering::AcqRel), "two at the core");
        self.core_busy.store(false, Ordering::Release);
    }

    /// Runs the worker's thread: like `run_records`, with one entry into RUNTIME from within a handler. It changes to full fences behind
    /// the first record, like `check_fence`.
    fn work(&self) {
        let mut next = 0;
        self.ownership.begin();
        while next < RECORDS {
            let record = self.record(next);
            if self.claim(record) != 0 {
                if !self.enter() {
                    if self.handoff.lock().unwrap().left == record {
                        self.runs[next].fetch_add(1, Ordering::Relaxed);
                    }
                    return;
                }
                self.use_core();
                self.ownership.signal.clear(Signal::TICK);
                self.ownership.begin();
                continue;
            }
            self.runs[next].fetch_add(1, Ordering::Relaxed);
            if next == 0 {
                // The handler needs the core, for a timer or for a full log.
                if self.enter() {
                    self.use_core();
                    self.ownership.leave();
                }
                // The segment ends: the worker gives it back, and the next gulp begins.
                if !self.enter() {
                    return;
                }
                self.recycled[0].store(true, Ordering::Relaxed);
                if !self.full_fence.load(Ordering::Relaxed) {
                    self.full_fence.store(true, Ordering::Release);
                }
                self.ownership.begin();
            }
            next += 1;
        }
        if self.enter() {
            self.use_core();
        }
    }

    /// Runs the monitor, which takes the work if it can, and runs the records behind the claimed one.
    fn take_over(&self) {
        let mut handoff = self.handoff.lock().unwrap();
        let full = self.full_fence.load(Ordering::Acquire);
        let Some(claimed) = self.ownership.revoke(full) else { return };
        assert!(!self.core_busy.swap(true, Ordering::AcqRel), "taken while the thread was at the core");
        handoff.detached = true;
        handoff.left = claimed.as_ptr();
        let claimed = (0..RECORDS).find(|index| self.record(*index) == claimed.as_ptr()).unwrap();
        assert!(!self.recycled[claimed].load(Ordering::Acquire), "an old claim was believed");
        let from = claimed + 1;
        for run in &self.runs[from..] {
            run.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn runs_each_record_once(full_fence: bool) {
    loom::model(move || {
        let worker = Arc::new(Worker::new(full_fence));
        let monitor = {
            let worker = Arc::clone(&worker);
            thread::spawn(move || worker.take_over())
        };
        worker.work();
        monitor.join().unwrap();
        for run in &worker.runs {
            assert_eq!(run.load(Ordering::Relaxed), 1);
        }
        // A thread that has lost the worker gives no segment back.
        let left = worker.handoff.lock().unwrap().left;
        let believed = (0..RECORDS).find(|index| worker.record(*index) == left);
        assert!(
            !believed.is_some_and(|index| worker.recycled[index].load(Ordering::Relaxed)),
            "an old claim was believed"
        );
    });
}

// GUARANTEE: Takeover of a stuck thread's work (I1)
#[test]
fn a_taken_worker_s_records_run_exactly_once_and_its_core_has_one_user() {
    runs_each_record_once(true);
}

// GUARANTEE: Takeover of a stuck thread's work (I1)
/// The kernel refuses the barrier from the beginning of the model on, and the worker learns that behind its first record.
#[test]
fn a_worker_is_taken_over_only_with_fences_on_both_sides() {
    runs_each_record_once(false);
}

// GUARANTEE: Takeover of a stuck thread's work (I1)
/// A log as in `send.rs`. Records are whole before the tail moves. The monitor takes a prefix, and the thread takes the
/// rest.
#[test]
fn a_log_that_is_taken_loses_and_repeats_nothing() {
    const APPENDS: usize = 3;
    loom::model(|| {
        let ownership = Arc::new(Ownership::<usize>::new(Arc::default()));
        let handoff = Arc::new(Mutex::new((false, 0usize)));
        let tail = Arc::new(AtomicUsize::new(0));
        let open = Arc::new(AtomicBool::new(true));
        let posted = Arc::new(Mutex::new(Vec::new()));
        let mut stuck = 7usize;
        let stuck: *mut usize = &raw mut stuck;
        ownership.begin();
        assert_eq!(ownership.claim::<true>(stuck), 0);

        let monitor = {
            let (ownership, handoff, tail, open, posted) =
                (ownership.clone(), handoff.clone(), tail.clone(), open.clone(), posted.clone());
            thread::spawn(move || {
                let mut handoff = handoff.lock().unwrap();
                assert!(ownership.revoke(true).is_some(), "the handler is in USER all the time");
                open.store(false, Ordering::Relaxed);
                let taken = tail.load(Ordering::Acquire);
                posted.lock().unwrap().extend(0..taken);
                *handoff = (true, taken);
            })
        };
        // The handler appends while the log is open. If the log is closed, the handler takes the slow path.
        let mut sent = 0;
        while sent < APPENDS {
            if open.load(Ordering::Relaxed) {
                tail.store(sent + 1, Ordering::Release);
            } else {
                // `end` is null: the slow path. A closed log means that the monitor has raised REVOKED before.
                assert!(!ownership.enter::<true>());
                let mut handoff = handoff.lock().unwrap();
                assert!(handoff.0);
                let mut posted = posted.lock().unwrap();
                posted.extend(handoff.1..tail.load(Ordering::Relaxed));
                handoff.1 = sent + 1;
                tail.store(sent + 1, Ordering::Relaxed);
                posted.push(sent);
                ownership.leave();
            }
            sent += 1;
        }
        monitor.join().unwrap();
        // The monitor's next tick finds the records that were appended after its look.
        let handoff = handoff.lock().unwrap();
        let mut posted = posted.lock().unwrap();
        posted.extend(handoff.1..tail.load(Ordering::Acquire));
        assert_eq!(*posted, (0..APPENDS).collect::<Vec<_>>());
    });
}

// GUARANTEE: Takeover of a stuck thread's work (I1)
/// Nested handlers as in `dispatch/inline_call.rs`. Another thread runs a stage that the monitor does not find claimed,
/// and never at the same time as the handler.
#[test]
fn a_nested_handler_s_stage_stays_with_its_thread_or_has_one_user() {
    loom::model(|| {
        let ownership = Arc::new(Ownership::<usize>::new(Arc::default()));
        let nest = Arc::new(AtomicUsize::new(0));
        // Stands for the state of the nested actor. Loom reports accesses that no order separates.
        let state = Arc::new(loom::cell::UnsafeCell::new(0));
        let mut outer = 7usize;
        let outer: *mut usize = &raw mut outer;
        ownership.begin();
        assert_eq!(ownership.claim::<true>(outer), 0);
        let monitor = {
            let (ownership, nest, state) = (ownership.clone(), nest.clone(), state.clone());
            thread::spawn(move || {
                assert!(ownership.revoke(true).is_some(), "the handler is in USER all the time");
                if nest.load(Ordering::Acquire) == 0 {
                    // SAFETY: the monitor found no claim on the stage. The model checks that no handler uses the state
                    // then.
                    state.with_mut(|state| unsafe { *state += 1 });
                }
            })
        };
        // The handler makes two nested calls in a row.
        for _ in 0..2 {
            nest.store(1, Ordering::Relaxed);
            asymmetric_fence::light::<true>();
            if ownership.signal.get() & Signal::REVOKED == 0 {
                // SAFETY: this thread has claimed the stage, and the monitor does not run a claimed stage.
                state.with_mut(|state| unsafe { *state += 1 });
            }
            nest.store(0, Ordering::Release);
        }
        monitor.join().unwrap();
    });
}

// GUARANTEE: A worker parks while mail arrives (I3)
/// Parking as in `scheduler/idle.rs` and `delivery.rs`. The worker lowers its presence in two steps, each under the lock of its
/// inbox. Senders raise the flag after they give that lock back. Only a parked worker does not count as active.
#[test]
fn a_parked_worker_is_woken_for_its_mail() {
    const MESSAGES: usize = 2;
    #[derive(Clone, Copy, PartialEq)]
    enum Presence {
        Awake,
        Idle,
        Parked,
    }
    let mut model = loom::model::Builder::new();
    // The model checks interleavings with at most 3 preemptions. All interleavings take minutes (and pass).
    model.preemption_bound = Some(3);
    model.check(|| {
        let inbox = Arc::new(Mutex::new((0usize, Presence::Awake)));
        let flag = Arc::new(AtomicBool::new(false));
        let active = Arc::new(AtomicUsize::new(1));
        // Stands for the thread's token: loom's own `unpark` wakes threads that wait for a lock, too.
        let token = Arc::new(Notify::new());
        let sender = {
            let (inbox, flag, active, token) = (inbox.clone(), flag.clone(), active.clone(), token.clone());
            thread::spawn(move || {
                for _ in 0..MESSAGES {
                    let mut locked = inbox.lock().unwrap();
                    locked.0 += 1;
                    if std::mem::replace(&mut locked.1, Presence::Awake) == Presence::Parked {
                        active.fetch_add(1, Ordering::AcqRel);
                        token.notify();
                    }
                    // A thread that asks for active workers never overlooks waiting mail.
                    assert!(active.load(Ordering::Acquire) > 0);
                    drop(locked);
                    flag.store(true, Ordering::Release);
                }
            })
        };
        // The worker: the flag is a hint, and the lock decides. Loom would report a lost wake-up as a deadlock.
        let mut taken = 0;
        while taken < MESSAGES {
            if flag.load(Ordering::Relaxed) {
                let mut inbox = inbox.lock().unwrap();
                flag.store(false, Ordering::Relaxed);
                taken += std::mem::take(&mut inbox.0);
                continue;
            }
            {
                let mut inbox = inbox.lock().unwrap();
                if inbox.0 > 0 {
                    flag.store(true, Ordering::Relaxed);
                    continue;
                }
                inbox.1 = Presence::Idle;
            }
            if !flag.load(Ordering::Relaxed) {
                let mut locked = inbox.lock().unwrap();
                if locked.1 == Presence::Idle {
                    locked.1 = Presence::Parked;
                    drop(locked);
                    active.fetch_sub(1, Ordering::AcqRel);
                    while inbox.lock().unwrap().1 == Presence::Parked && !flag.load(Ordering::Relaxed) {
                        token.wait();
                    }
                }
            }
            let mut locked = inbox.lock().unwrap();
            if std::mem::replace(&mut locked.1, Presence::Awake) == Presence::Parked {
                active.fetch_add(1, Ordering::AcqRel);
            }
        }
        sender.join().unwrap();
        assert_eq!(active.load(Ordering::Acquire), 1);
    });
}

// GUARANTEE: A stage is muted while its receiver recovers (I4)
/// Muting as in `backpressure/overload.rs`: either the muter sees that the receiver is relieved, or the receiver sees
/// the muter.
#[test]
fn a_muted_stage_is_never_forgotten() {
    loom::model(|| {
        let overloaded = Arc::new(AtomicBool::new(true));
        let muted_on_me = Arc::new(AtomicBool::new(false));
        let roused = Arc::new(AtomicBool::new(false));
        let receiver = {
            let (overloaded, muted_on_me, roused) = (overloaded.clone(), muted_on_me.clone(), roused.clone());
            thread::spawn(move || {
                overloaded.swap(false, Ordering::SeqCst);
                if muted_on_me.swap(false, Ordering::SeqCst) {
                    roused.store(true, Ordering::SeqCst);
                }
            })
        };
        muted_on_me.swap(true, Ordering::SeqCst);
        let muted = overloaded.fetch_or(false, Ordering::SeqCst);
        receiver.join().unwrap();
        assert!(!muted || roused.load(Ordering::SeqCst), "muted, and nobody will say that it is over");
    });
}

// GUARANTEE: A stage moves while others write to it (I2)
/// A stage changes its worker under both locks. A flush checks the epoch under the receiver's lock: see
/// `worker/exchange.rs`.
#[test]
fn a_flush_never_leaves_a_record_with_a_worker_that_has_lost_its_stage() {
    loom::model(|| {
        // Worker 0 gives the stage to worker 1; a sender with the old route flushes one record, then a second one.
        let inboxes: Arc<Vec<Mutex<Vec<u32>>>> = Arc::new((0..2).map(|_| Mutex::new(Vec::new())).collect());
        let route = Arc::new(AtomicUsize::new(0));
        let epoch = Arc::new(AtomicUsize::new(0));
        let giver = {
            let (inboxes, route, epoch) = (inboxes.clone(), route.clone(), epoch.clone());
            thread::spawn(move || {
                let mut mine = inboxes[0].lock().unwrap();
                let mut theirs = inboxes[1].lock().unwrap();
                theirs.append(&mut mine);
                route.store(1, Ordering::Release);
                epoch.fetch_add(1, Ordering::AcqRel);
            })
        };
        let (mut known_route, mut known_epoch) = (0, 0);
        for message in 0..2 {
            let inbox = inboxes[known_route].lock().unwrap();
            if epoch.load(Ordering::Acquire) == known_epoch {
                let mut inbox = inbox;
                inbox.push(message);
            } else {
                drop(inbox);
                loop {
                    let worker = route.load(Ordering::Acquire);
                    let mut inbox = inboxes[worker].lock().unwrap();
                    if route.load(Ordering::Acquire) == worker {
                        inbox.push(message);
                        break;
                    }
                }
            }
            known_epoch = epoch.load(Ordering::Acquire);
            known_route = route.load(Ordering::Acquire);
        }
        giver.join().unwrap();
        let owner = route.load(Ordering::Acquire);
        assert_eq!(*inboxes[owner].lock().unwrap(), [0, 1]);
        assert!(inboxes[1 - owner].lock().unwrap().is_empty());
    });
}
