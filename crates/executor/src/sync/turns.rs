//! The right to drive a simulated system: one thread has it at a time.
//!
//! A thread *drives* when it runs the workers of a simulated system, or of several. It does so in *turns*, for example
//! one step of one worker. The rules:
//!
//! 1. *Exclusion.* A thread touches workers only within a turn, and it has the right to drive during all of its turn.
//!    The right passes from thread to thread under a mutex, and each turn therefore sees all changes of earlier turns.
//! 2. *Waiting.* A thread waits while another one has the right. Waiting threads get it in the order in which they
//!    came. A thread that drives for long [gives way](Drive::give_way) between two turns. Each waiting thread therefore
//!    gets the right although the system may never become idle.
//! 3. *Nesting.* Between turns, the thread with the right may ask for it again. Within a turn it runs actors. An actor
//!    that asks for the right would wait for its own thread, which is a panic. A thread with one right that asks for
//!    another one and would have to wait panics, too, because threads could wait for each other in a circle. The only
//!    exception is a driver of several systems, which takes the rights of these in its turns. A circle contains at
//!    least one request of another kind.
//! 4. *Panics.* The right ends with the value that stands for it, also when a panic unwinds the thread.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::panic_any;
use std::sync::{Condvar, Mutex};
use std::thread::ThreadId;

use crate::sync::locks::{lock, wait};

/// The number of turns after which a thread gives way to others.
const TURNS_MAX: u32 = 64;

thread_local! {
    /// The number of [`Drive`]s and [`Turn`]s on this thread's stack.
    static RIGHTS: Cell<u32> = const { Cell::new(0) };
}

/// The lock that tells which thread drives.
pub struct DriverLock {
    nested: &'static str,
    state: Mutex<State>,
    passed_on: Condvar,
}

#[derive(Default)]
struct State {
    /// The thread with the right, the number of its requests for it, and whether it is within a turn.
    owner: Option<Owner>,
    /// The numbers of the threads that wait, in the order in which they came.
    waiting: VecDeque<u64>,
    next: u64,
}

struct Owner {
    thread: ThreadId,
    depth: u32,
    in_turn: bool,
}

impl DriverLock {
    /// Creates a lock without an owner. `nested` is the text of the panic of an actor that asks for the right: "a
    /// simulated system was asked to run from inside one of its own actors".
    pub const fn new(nested: &'static str) -> DriverLock {
        let state = State { owner: None, waiting: VecDeque::new(), next: 0 };
        DriverLock { nested, state: Mutex::new(state), passed_on: Condvar::new() }
    }

    /// Waits for the right to drive.
    ///
    /// # Panics
    /// In a turn of this thread; and if another thread has the right while this one drives other systems.
    pub fn drive(&self) -> Drive<'_> {
        self.acquire(true).unwrap_or_else(|why| panic_any(why));
        Drive { lock: self, turns: 0 }
    }

    /// Takes the right to drive if no thread has it, and no thread waits for it.
    pub(crate) fn try_drive(&self) -> Option<Drive<'_>> {
        let mut state = lock(&self.state);
        if state.owner.is_some() || !state.waiting.is_empty() {
            return None;
        }
        state.owner = Some(Owner { thread: std::thread::current().id(), depth: 1, in_turn: false });
        drop(state);
        RIGHTS.set(RIGHTS.get() + 1);
        Some(Drive { lock: self, turns: 0 })
    }

    /// Waits for the right to drive, and begins a turn.
    ///
    /// # Panics
    /// In a turn of this thread.
    pub fn turn(&self) -> Turn<'_> {
        self.try_turn().unwrap_or_else(|| panic_any(self.nested))
    }

    /// Does the same as [`DriverLock::turn`], but returns `None` in a turn of this thread.
    pub(crate) fn try_turn(&self) -> Option<Turn<'_>> {
        self.acquire(false).ok()?;
        if let Some(owner) = &mut lock(&self.state).owner {
            owner.in_turn = true;
        }
        Some(Turn(self))
    }

    /// Returns as soon as this thread has the right. `is_first`: this thread does not ask for it as the driver of
    /// several systems.
    ///
    /// # Errors
    /// Returns a text that says why this thread may not wait.
    fn acquire(&self, is_first: bool) -> Result<(), &'static str> {
        let this = std::thread::current().id();
        let mut state = lock(&self.state);
        if let Some(owner) = state.owner.as_mut().filter(|owner| owner.thread == this) {
            if owner.in_turn {
                return Err(self.nested);
            }
            owner.depth += 1;
            RIGHTS.set(RIGHTS.get() + 1);
            return Ok(());
        }
        if state.owner.is_some() || !state.waiting.is_empty() {
            if is_first && RIGHTS.get() > 0 {
                return Err(CIRCLE);
            }
            let number = state.next;
            state.next += 1;
            state.waiting.push_back(number);
            while state.owner.is_some() || state.waiting.front() != Some(&number) {
                state = if cfg!(tsan) {
                    // The reason is the same as in `lock`.
                    drop(state);
                    std::thread::yield_now();
                    lock(&self.state)
                } else {
                    wait(&self.passed_on, state)
                };
            }
            state.waiting.pop_front();
        }
        state.owner = Some(Owner { thread: this, depth: 1, in_turn: false });
        RIGHTS.set(RIGHTS.get() + 1);
        Ok(())
    }

    fn release(&self, ends_turn: bool) {
        RIGHTS.set(RIGHTS.get() - 1);
        let mut state = lock(&self.state);
        let Some(owner) = &mut state.owner else { return };
        if ends_turn {
            owner.in_turn = false;
        }
        owner.depth -= 1;
        if owner.depth == 0 {
            state.owner = None;
            if !state.waiting.is_empty() {
                drop(state);
                self.passed_on.notify_all();
            }
        }
    }
}

const CIRCLE: &str = "a thread that runs one simulated system was asked to run another one, which another thread runs: \
                      the two could wait for each other";

/// The right to drive, for several turns.
pub struct Drive<'a> {
    lock: &'a DriverLock,
    turns: u32,
}

impl Drive<'_> {
    /// Begins a turn.
    ///
    /// # Panics
    /// In a turn of this thread.
    pub fn turn(&self) -> Turn<'_> {
        self.lock.turn()
    }

    /// Notes that a turn is over. If this thread has had many, and other threads wait, those come first.
    pub fn give_way(&mut self) {
        self.turns += 1;
        if self.turns < TURNS_MAX {
            return;
        }
        self.turns = 0;
        // A thread with another right may not wait.
        if RIGHTS.get() == 1 && !lock(&self.lock.state).waiting.is_empty() {
            self.lock.release(false);
            // This thread waits behind those that wait now. It may, because it has no right.
            let _ = self.lock.acquire(false);
        }
    }
}

impl Drop for Drive<'_> {
    fn drop(&mut self) {
        self.lock.release(false);
    }
}

/// A turn of the thread that drives.
pub struct Turn<'a>(&'a DriverLock);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.release(true);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc::channel;

    use super::*;

    fn text_of(call: impl FnOnce()) -> String {
        let panic = catch_unwind(AssertUnwindSafe(call)).expect_err("it panics");
        panic.downcast::<&str>().expect("a panic with a text").to_string()
    }

    /// Returns when `threads` threads wait for the lock.
    fn await_waiting(driving: &DriverLock, threads: usize) {
        while lock(&driving.state).waiting.len() < threads {
            std::thread::yield_now();
        }
    }

    #[test]
    fn one_thread_at_a_time_has_a_turn_and_all_get_theirs() {
        let (driving, inside) = (DriverLock::new("it"), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut drive = driving.drive();
                    for _ in 0..TURNS_MAX * 50 {
                        let turn = drive.turn();
                        assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                        inside.fetch_sub(1, Ordering::Relaxed);
                        drop(turn);
                        drive.give_way();
                    }
                });
            }
        });
        assert!(lock(&driving.state).owner.is_none());
    }

    #[test]
    fn a_thread_that_drives_forever_yields() {
        let driving = DriverLock::new("it");
        let (done, is_done) = channel();
        std::thread::scope(|scope| {
            let mut drive = driving.drive();
            scope.spawn(|| {
                drop(driving.drive());
                done.send(()).unwrap();
            });
            await_waiting(&driving, 1);
            while is_done.try_recv().is_err() {
                drive.give_way();
            }
        });
    }

    #[test]
    fn the_right_may_be_asked_for_again_between_turns_and_not_within_one() {
        let driving = DriverLock::new("it");
        let drive = driving.drive();
        drop(driving.drive().turn());
        let turn = drive.turn();
        for call in [|driving: &DriverLock| drop(driving.drive()), |driving: &DriverLock| drop(driving.turn())] {
            assert_eq!(text_of(|| call(&driving)), "it");
        }
        assert!(driving.try_turn().is_none());
        drop(turn);
        assert!(driving.try_turn().is_some());
    }

    #[test]
    fn the_right_is_taken_without_waiting_where_nobody_has_it() {
        let driving = DriverLock::new("it");
        let drive = driving.try_drive().expect("nobody has it");
        assert!(driving.try_drive().is_none(), "this thread has it");
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(driving.try_drive().is_none(), "another thread has it"));
        });
        drop(drive);
        drop(driving.try_drive().expect("nobody has it any more").turn());
        drop(driving.drive().turn());
        assert_eq!(RIGHTS.get(), 0);
    }

    #[test]
    fn a_panic_ends_the_right() {
        let driving = DriverLock::new("it");
        text_of(|| {
            let drive = driving.drive();
            let _turn = drive.turn();
            drop(driving.turn());
        });
        assert_eq!(RIGHTS.get(), 0);
        std::thread::scope(|scope| {
            scope.spawn(|| drop(driving.drive().turn()));
        });
    }

    #[test]
    fn a_thread_with_one_right_does_not_wait_for_another_one() {
        let (one, other) = (DriverLock::new("one"), DriverLock::new("other"));
        let (done, is_done) = channel::<()>();
        let (has, is_had) = channel();
        std::thread::scope(|scope| {
            scope.spawn({
                let other = &other;
                move || {
                    let _drive = other.drive();
                    has.send(()).unwrap();
                    let _ = is_done.recv();
                }
            });
            is_had.recv().unwrap();
            let drive = one.drive();
            let text = text_of(|| drop(other.drive()));
            assert_eq!(text, CIRCLE);
            drop((drive, done));
            // Without a right, it waits.
            drop(other.drive());
        });
    }
}
