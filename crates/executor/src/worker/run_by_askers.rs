//! Workers that are parked, and are run by threads that ask.
//!
//! A thread outside that awaits an ask waits until the receiver's worker has woken and handled the request, and is then
//! woken itself. Those 2 changes of threads take longer than most handlers. With
//! [`Config::lends`](crate::Config::lends), such a thread *borrows* a parked worker. It runs the worker on its own
//! stack until no work waits, and the worker stays parked. The answer is then usually ready when the ask is polled
//! first.
//!
//! # States
//!
//! A worker has one thread of its own. All changes are made under the lock of its inbox:
//!
//! ```text
//!            an asker sends                  nothing waits
//!   parked ─────────────────▶ awake, lent ─────────────────▶ parked
//!     │                         │     ▲                        (no thread was woken)
//!     │ others send,            │     └─ others send: no thread is woken
//!     │ a timer is due          │
//!     ▼                         │ too much waits, a timer is due, the system ends
//!   awake ◀─────────────────────┘ (the worker's thread is woken)
//! ```
//!
//! While a worker is lent, its own thread sleeps, even if it is woken. If the thread's timer becomes due during the
//! loan, the thread notes that, and the worker is handed over to it. The exploration in this module's tests shows two
//! things. At any time at most one thread runs the worker. No mail and no timer is left without a thread that sees to
//! it.
//!
//! For all other threads a lent worker is awake, and they steal from it and send to it as usual. A handler that is
//! stuck on a lent worker is a stuck handler: the monitor gives the worker's work to a new thread. The worker's former
//! thread then ends when the borrower has left it.
//!
//! # Limits of a loan
//!
//! A borrower runs the worker for about [`LASTS_NS`], and begins no message whose kind has taken longer than
//! [`LONG_NS`] lately. Asks and starts of handlers do not nest on its stack. It does not poll sockets: a worker that
//! waits in the reactor is woken. Threads that block ([`Ask::wait`]) do not borrow, because they may hold a lock that a
//! handler of another actor waits for.
//!
//! [`Ask::wait`]: ../playhouse_actor/struct.Ask.html#method.wait

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;

use crate::policy::decisions::Idle;
use crate::sync::jitter::seam;
use crate::sync::locks::lock;
use crate::worker::core::Core;
use crate::worker::exchange::NextWork;
use crate::worker::inbox::{Inbox, Presence};
use crate::worker::nested::NEST_MAX;
use crate::worker::system_core::SystemCore;
use crate::worker::{Worker, current};

/// An asker hands a worker over after this number of nanoseconds: a few times the time that it takes to wake a thread.
const LASTS_NS: u64 = 20_000;
/// The longest handlers that askers run, by their latest times. A longer handler gains less from running in the asker
/// than the other actors lose that wait for this thread.
const LONG_NS: u64 = 50_000;

thread_local! {
    /// This thread is about to send a request, and may borrow the receiver's worker.
    static ASKS: Cell<bool> = const { Cell::new(false) };
    /// The worker that the thread has borrowed by that request.
    static BORROWED: Cell<Option<Borrowed>> = const { Cell::new(None) };
    /// This thread has sent to a worker that another thread outside runs just now.
    static RUNS_ON_OTHER_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// A mark that this thread is about to send a request, or to start or cancel a timer. The thread borrows the worker
/// that it would otherwise wake.
#[derive(Debug)]
pub struct Borrowing(());

impl Borrowing {
    /// Begins. A thread that is itself a worker borrows none.
    pub fn begin() -> Borrowing {
        RUNS_ON_OTHER_THREAD.set(false);
        ASKS.set(current().is_none());
        Borrowing(())
    }

    /// Runs the borrowed worker, if any, and returns true then. If another thread has borrowed it, waits for a moment,
    /// or until `done`.
    pub fn run(self, done: impl Fn() -> bool) -> bool {
        /// The number of looks, about 0.1 µs apart. Another thread runs a worker for about a microsecond.
        const LOOKS: u32 = 20;
        if let Some(borrowed) = Borrowed::take() {
            borrowed.run(Worker::run_lent);
            return true;
        }
        if RUNS_ON_OTHER_THREAD.get() {
            for _ in 0..LOOKS {
                if done() {
                    break;
                }
                std::hint::spin_loop();
                std::hint::spin_loop();
            }
        }
        false
    }

    /// Runs no actors. The borrowed worker, if any, starts and cancels timers, and stays parked if no other work waits.
    pub fn run_no_actors(self) {
        if let Some(borrowed) = Borrowed::take() {
            borrowed.run(Worker::handle_timers);
        }
    }
}

impl Drop for Borrowing {
    fn drop(&mut self) {
        ASKS.set(false);
        // Reached after a panic.
        drop(Borrowed::take());
    }
}

/// Returns whether the next message is the one that [`Borrowing`] was begun for. Returns true once.
pub(crate) fn take_asks() -> bool {
    ASKS.replace(false)
}

/// The thread that a message wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wakes {
    /// No thread: one runs the worker already.
    Nobody,
    /// The sender, which runs the worker.
    Borrower,
    /// The worker's own thread.
    Thread,
}

/// The next step of a borrower that is about to give the worker back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GivesBack {
    /// No step: the worker is parked.
    Done,
    /// Mail has come, and the borrower goes on.
    GoesOn,
    /// The worker's own thread takes over.
    Returns,
}

/// The loan of a worker. All changes are made under the lock of its inbox, together with those of its presence.
#[derive(Debug, Default, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Loan {
    /// A thread outside runs the worker.
    is_lent: bool,
    /// A timer has become due during the loan.
    is_due: bool,
}

impl Loan {
    pub(crate) fn is_lent(&self) -> bool {
        self.is_lent
    }

    /// Notes that mail has come. `asks`: from a thread that would borrow the worker.
    pub(crate) fn wakes(&mut self, presence: &mut Presence, asks: bool) -> Wakes {
        if std::mem::replace(presence, Presence::Awake) != Presence::Parked {
            return Wakes::Nobody;
        }
        self.is_lent = asks;
        if asks { Wakes::Borrower } else { Wakes::Thread }
    }

    /// Notes that the worker's own thread, which has slept, was woken. Returns whether it sleeps on.
    pub(crate) fn sleeps_on(&mut self, is_due: bool) -> bool {
        self.is_due |= self.is_lent && is_due;
        self.is_lent
    }

    /// Notes that the borrower has found no work, and has made the worker idle.
    pub(crate) fn gives_back(&mut self, presence: &mut Presence) -> GivesBack {
        if self.is_due {
            GivesBack::Returns
        } else if *presence != Presence::Idle {
            GivesBack::GoesOn
        } else {
            *presence = Presence::Parked;
            self.is_lent = false;
            GivesBack::Done
        }
    }

    /// Notes that the borrower leaves the worker to its own thread, which is to be woken.
    pub(crate) fn returns(&mut self, presence: &mut Presence) {
        *presence = Presence::Awake;
        *self = Loan::default();
    }
}

/// The state besides [`Loan`] that a worker's own thread and its borrowers share.
#[derive(Default)]
pub(crate) struct Lending {
    /// A borrower has lost the worker to the monitor, and no longer touches it.
    is_lost: AtomicBool,
    /// The time at which the worker's thread, which is parked, wakes by itself, in nanoseconds of the system's clock.
    /// The thread of the worker writes it before it sleeps.
    pub(crate) due_ns: Cell<Option<u64>>,
    /// A borrower runs the worker. Only the thread that runs the worker uses this.
    pub(crate) is_borrowed: Cell<bool>,
    /// The worker's own thread, which writes this before it sleeps for the first time.
    thread: Cell<Option<Thread>>,
}

impl Lending {
    /// Notes that this thread is the worker's own.
    pub(crate) fn note_thread(&self) {
        self.thread.set(Some(std::thread::current()));
    }

    /// Returns whether the worker's own thread has lost the worker for good.
    pub(crate) fn is_lost(&self) -> bool {
        // Acquire: pairs with the Release of the borrower, which no longer touches the worker.
        self.is_lost.load(Ordering::Acquire)
    }
}

/// Notes that this thread has sent to a worker that is lent.
pub(crate) fn note_runs_on_other_thread() {
    RUNS_ON_OTHER_THREAD.set(true);
}

impl SystemCore {
    /// Returns the right of this asking thread to borrow `worker`, which is parked and whose inbox is locked. Returns
    /// `None` if the thread may not borrow.
    pub(crate) fn borrower(&self, worker: u16) -> Option<Borrowed> {
        if !self.config.lends || usize::from(worker) >= self.config.workers {
            return None;
        }
        // A worker whose thread has ended has seen this under the lock before.
        if self.shutdown.ending.load(Ordering::Relaxed) || self.simulation.is_some() {
            return None;
        }
        // In a thread that ends, the thread-local variable is gone.
        BORROWED.try_with(|_| ()).ok()?;
        lock(&self.threads.posts[usize::from(worker)]).clone().map(|worker| Borrowed { worker, was_run: false })
    }
}

/// A worker that this thread is to run. If the thread does not, the worker's own thread runs it.
pub(crate) struct Borrowed {
    worker: Arc<Worker>,
    was_run: bool,
}

impl Borrowed {
    /// Notes that the worker is lent to this thread.
    pub(crate) fn borrows(self) {
        BORROWED.set(Some(self));
    }

    fn take() -> Option<Borrowed> {
        BORROWED.try_with(Cell::take).ok().flatten()
    }

    fn run(mut self, run: impl FnOnce(&Worker)) {
        let worker = Arc::clone(&self.worker);
        worker.enter(|| {
            self.was_run = true;
            run(&worker);
        });
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if !self.was_run {
            self.worker.return_to_thread();
        }
    }
}

impl Worker {
    /// Runs until no work waits, or for a short while. In RUNTIME.
    fn run_lent(&self) {
        self.lending.is_borrowed.set(true);
        // Nested handlers would lie on the stack of the thread outside, which may be small.
        self.nested.set(NEST_MAX);
        // The same call follows an idle time (`idle.rs`).
        self.begin_to_learn();
        self.take_mail();
        self.flush();
        self.handled_at_idle.set(self.handled_in_all());
        // SAFETY: in RUNTIME; short borrow.
        let begun_ns = unsafe { self.core() }.checked_ns;
        let mut is_late = false;
        loop {
            seam(1_000);
            self.attend();
            if !self.advance() {
                match self.give_back() {
                    GivesBack::Done => return,
                    GivesBack::GoesOn => continue,
                    GivesBack::Returns => return self.leave_to_thread(),
                }
            }
            let next_ns = self.next_ns.get();
            if is_late || next_ns > LONG_NS || self.system.shutdown.ending.load(Ordering::Relaxed) {
                return self.leave_to_thread();
            }
            if self.run_some((LASTS_NS / next_ns.max(1)).max(1)) == NextWork::Detached {
                self.leave_detached();
                return self.lose();
            }
            let waits = self.advance() || self.shared().mail.is_up();
            is_late = waits && self.system.now_ns() - begun_ns > LASTS_NS;
        }
    }

    /// Takes the mail in, and runs none of its records. In RUNTIME.
    fn handle_timers(&self) {
        self.take_mail();
        self.flush();
        self.drop_cancelled();
        if self.give_back() != GivesBack::Done {
            self.leave_to_thread();
        }
    }

    /// Gives back the worker, which has no work. It stays parked.
    fn give_back(&self) -> GivesBack {
        self.publish_empty();
        if self.dirty.get() || self.advance() {
            return GivesBack::GoesOn;
        }
        self.system.wake_called(usize::MAX);
        let shared = self.shared();
        if shared.is_pressed() || shared.muted_on_me.load(Ordering::Relaxed) {
            // Other threads wait for its load to fall.
            self.weigh();
        }
        if !self.lower() {
            return GivesBack::GoesOn;
        }
        if self.system.shutdown.ending.load(Ordering::Relaxed) {
            return GivesBack::Returns;
        }
        // SAFETY: in RUNTIME; short borrow.
        let core: &mut Core = unsafe { self.core() };
        core.checked_ns = 0;
        core.loaded_since_ns = None;
        let due_ns = core.wheel.next_ns();
        let lending = &self.lending;
        let is_early = due_ns.is_some_and(|due| lending.due_ns.get().is_none_or(|parked| due < parked));
        if is_early || core.has_parked() {
            // Stages that are parked may have to go on when all others sleep.
            return GivesBack::Returns;
        }
        {
            let mut inbox = self.shared().lock();
            if self.ownership.signal.get() != 0 {
                inbox.presence = Presence::Awake;
            }
            let Inbox { loan, presence, .. } = &mut *inbox;
            match loan.gives_back(presence) {
                GivesBack::Done => {
                    self.is_not_borrowed();
                    inbox.polls = false;
                    self.system.idle.workers.insert(self.id, Idle::Parked);
                }
                other => {
                    self.note_departures(&inbox);
                    return other;
                }
            }
        }
        // From this point on, other threads run the worker.
        if self.system.active_less() {
            self.system.break_other_deadlocks();
        }
        GivesBack::Done
    }

    /// Leaves the work that this thread has begun to the worker's own thread. In RUNTIME.
    fn leave_to_thread(&self) {
        // The list of links with data to be written belongs to this thread.
        self.write_out();
        self.publish();
        self.is_not_borrowed();
        self.return_to_thread();
    }

    fn is_not_borrowed(&self) {
        self.lending.is_borrowed.set(false);
        self.nested.set(0);
    }

    /// Returns the worker to its own thread.
    fn return_to_thread(&self) {
        let thread = {
            let mut inbox = self.shared().lock();
            self.note_departures(&inbox);
            let Inbox { loan, presence, .. } = &mut *inbox;
            loan.returns(presence);
            inbox.thread.clone()
        };
        if let Some(thread) = thread {
            thread.unpark();
        }
    }

    /// Ends the loan of a worker whose work the monitor has given to another thread. This thread has finished its last
    /// message. The worker's own thread ends.
    fn lose(&self) {
        let thread = self.lending.thread.take();
        // Release: pairs with the Acquire of that thread.
        self.lending.is_lost.store(true, Ordering::Release);
        if let Some(thread) = thread {
            thread.unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{GivesBack, Loan, Wakes};
    use crate::worker::inbox::Presence;

    /// The step of the worker's own thread.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    enum Own {
        /// The thread runs the worker.
        Runs,
        /// The thread has found no work, and is about to sleep.
        Idle,
        Sleeps,
        /// The thread was woken, by its timer or by others, and is about to look.
        Woken {
            is_due: bool,
        },
    }

    /// The step of a thread outside, which sends once.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    enum Other {
        WillAsk,
        WillTell,
        /// The thread runs the worker that it has borrowed.
        Runs,
        /// The thread has found no work, and is about to give the worker back.
        GivesBack,
        /// The thread is about to wake the worker's own thread.
        Wakes,
        Over,
    }

    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct State {
        presence: u8,
        is_lent: bool,
        is_due: bool,
        mail: u8,
        own: Own,
        others: Vec<Other>,
        /// The own thread will not block when it parks next.
        token: bool,
        /// A timer of the worker is not due yet.
        timer_runs: bool,
        /// The timer is due, and no thread has seen to that.
        timer_waits: bool,
    }

    const PRESENCES: [Presence; 3] = [Presence::Awake, Presence::Idle, Presence::Parked];

    impl State {
        /// Changes presence and loan, as with the inbox locked.
        fn locked<R>(&mut self, f: impl FnOnce(&mut Loan, &mut Presence, bool) -> R) -> R {
            let mut loan = Loan { is_lent: self.is_lent, is_due: self.is_due };
            let mut presence = PRESENCES[usize::from(self.presence)];
            let result = f(&mut loan, &mut presence, self.mail > 0);
            (self.is_lent, self.is_due) = (loan.is_lent, loan.is_due);
            self.presence = PRESENCES.iter().position(|of| *of == presence).unwrap() as u8;
            result
        }

        fn presence(&self) -> Presence {
            PRESENCES[usize::from(self.presence)]
        }

        /// Takes the mail, or becomes idle if there is none.
        fn takes_or_lowers(&mut self) -> bool {
            if self.mail > 0 {
                self.mail = 0;
                self.presence = 0;
                return true;
            }
            self.presence = 1;
            false
        }

        /// Collects all states that may follow.
        fn next(&self) -> Vec<State> {
            let mut next = Vec::new();
            let mut step = |f: &dyn Fn(&mut State)| {
                let mut state = self.clone();
                f(&mut state);
                next.push(state);
            };
            if self.timer_runs {
                step(&|s| (s.timer_runs, s.timer_waits) = (false, true));
            }
            match self.own {
                Own::Runs => step(&|s| {
                    s.timer_waits = false;
                    if !s.takes_or_lowers() {
                        s.own = Own::Idle;
                    }
                }),
                Own::Idle => step(&|s| {
                    let sleeps = s.locked(|_, presence, _| {
                        let sleeps = *presence == Presence::Idle;
                        *presence = if sleeps { Presence::Parked } else { *presence };
                        sleeps
                    });
                    s.own = if sleeps { Own::Sleeps } else { Own::Runs };
                }),
                Own::Sleeps => {
                    if self.token {
                        step(&|s| (s.token, s.own) = (false, Own::Woken { is_due: false }));
                    }
                    if self.timer_waits && !self.is_due {
                        step(&|s| s.own = Own::Woken { is_due: true });
                    }
                }
                Own::Woken { is_due } => step(&|s| {
                    let (sleeps_on, is_awake) =
                        s.locked(|loan, presence, _| (loan.sleeps_on(is_due), *presence == Presence::Awake));
                    let runs = !sleeps_on && (is_due || is_awake);
                    if runs {
                        s.presence = 0;
                    }
                    s.own = if runs { Own::Runs } else { Own::Sleeps };
                }),
            }
            for (at, other) in self.others.iter().enumerate() {
                match other {
                    Other::WillAsk | Other::WillTell => step(&|s| {
                        s.mail += 1;
                        let asks = s.others[at] == Other::WillAsk;
                        s.others[at] = match s.locked(|loan, presence, _| loan.wakes(presence, asks)) {
                            Wakes::Nobody => Other::Over,
                            Wakes::Borrower => Other::Runs,
                            Wakes::Thread => Other::Wakes,
                        };
                    }),
                    Other::Runs => {
                        step(&|s| {
                            if !s.takes_or_lowers() {
                                s.others[at] = Other::GivesBack;
                            }
                        });
                        // The queue is too long for a loan.
                        step(&|s| {
                            s.locked(|loan, presence, _| loan.returns(presence));
                            s.others[at] = Other::Wakes;
                        });
                    }
                    Other::GivesBack => step(&|s| match s.locked(|loan, presence, _| loan.gives_back(presence)) {
                        GivesBack::Done => s.others[at] = Other::Over,
                        GivesBack::GoesOn => s.others[at] = Other::Runs,
                        GivesBack::Returns => {
                            s.locked(|loan, presence, _| loan.returns(presence));
                            s.others[at] = Other::Wakes;
                        }
                    }),
                    Other::Wakes => step(&|s| (s.token, s.others[at]) = (true, Other::Over)),
                    Other::Over => {}
                }
            }
            next
        }

        fn check(&self) {
            let own = matches!(self.own, Own::Runs | Own::Idle);
            let borrowers = self.others.iter().filter(|other| matches!(other, Other::Runs | Other::GivesBack)).count();
            assert!(usize::from(own) + borrowers <= 1, "two threads run the worker: {self:?}");
            assert_eq!(self.is_lent, borrowers == 1, "{self:?}");
            if self.next().is_empty() {
                assert!(self.mail == 0 && !self.timer_waits, "nobody sees to it: {self:?}");
                assert_eq!(self.presence(), Presence::Parked, "{self:?}");
            }
        }
    }

    // GUARANTEE: Tasks run actors
    #[test]
    fn at_most_one_thread_runs_a_lent_worker_and_leaves_no_work_behind() {
        use Other::{WillAsk, WillTell};
        let mut found = BTreeSet::new();
        for others in [vec![WillAsk; 3], vec![WillAsk, WillAsk, WillTell], vec![WillAsk, WillTell, WillTell]] {
            let (presence, own) = (0, Own::Runs);
            let (is_lent, is_due, mail, token, timer_runs, timer_waits) = (false, false, 0, false, true, false);
            let mut open = vec![State { presence, is_lent, is_due, mail, own, others, token, timer_runs, timer_waits }];
            while let Some(state) = open.pop() {
                if found.insert(state.clone()) {
                    state.check();
                    open.extend(state.next());
                }
            }
        }
        assert!(found.len() > 1_000, "{} states", found.len());
        assert!(found.iter().any(|state| state.is_lent && state.is_due));
    }
}
