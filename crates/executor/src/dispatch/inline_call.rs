//! Handlers that run on another handler's stack: short-circuit asks, and the starts of near children.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use crate::dispatch::actor_end::KindOf;
use crate::dispatch::loose_record::Loose;
use crate::dispatch::thunks::Deliverable;
use crate::memory::cell::Cell;
use crate::memory::raw_address::RawAddress;
use crate::memory::record::{Op, Outcome};
use crate::message::address::Address;
use crate::message::envelope::{Cx, Envelope, Resident};
use crate::sync::worker_requests::Signal;
use crate::user_code::crash::Crash;
use crate::user_code::during;
use crate::worker::nested::{NEST_MAX, Nest};
use crate::worker::{Worker, current};

/// The children whose starts run nested below one start. With more children, the starts of the rest become messages. A
/// single handler then does not build a tree of any size while other workers find nothing to steal.
const FAMILY_MAX: u32 = 256;

/// Runs `mail` on the caller's stack if no program can tell the difference; otherwise gives it back.
///
/// The receiver must be resident on this worker, neither running nor suspended, and no message may wait for it in this
/// worker's queue. Running it now is then one of the orders in which the queue could have run (macro-step semantics:
/// its handler sees no message of the caller that it would not have seen).
pub(crate) fn call_now<S: Resident, D: Deliverable<S>>(to: RawAddress, mail: D) -> Result<(), D> {
    let Some(worker) = current() else { return Err(mail) };
    let depth = worker.nested.get();
    let Some(claimed) = NonNull::new(worker.ownership.claimed()) else { return Err(mail) };
    // SAFETY: cells are never freed.
    let header = unsafe { to.cell.as_ref() };
    if worker.system_id != to.system()
        || worker.route_of(to.stage()) != Some(worker.id)
        || header.tag() != to.identity()
        || depth == NEST_MAX
        || !worker.ownership.is_user()
        || worker.ownership.signal.get() & Signal::REVOKED != 0
        || worker.parked.get()
        || worker.should_offer_calls()
        // SAFETY: the claimed record stays readable until the next one is claimed.
        || unsafe { claimed.as_ref() }.cell == to.cell
        || worker.nest[..depth].iter().any(|cell| cell.load(Ordering::Relaxed) == to.cell.as_ptr())
        // SAFETY: the claimed record stays readable until the next one is claimed; read by the thread itself.
        || !worker.nothing_waits_for(unsafe { worker.position_behind(claimed) }, to.cell)
    {
        return Err(mail);
    }
    let nest = Nest::enter(worker, depth, to.cell, to.stage());
    if worker.ownership.signal.get() & Signal::REVOKED != 0 {
        return Err(mail);
    }
    worker.ledger.short_circuits.add(1);
    let mut loose = Loose::new();
    let record = loose.write(mail, to.cell, to.identity());
    // SAFETY: this worker runs the receiver's stage, no handler of it is on the stack, and the record is run once.
    let result = catch_unwind(AssertUnwindSafe(|| unsafe { (record.as_ref().thunk)(record, Op::Run) }));
    match result {
        // SAFETY: this worker runs the receiver's stage; the record lies in `loose`, and was not consumed.
        Ok(Outcome::Waits) => unsafe { worker.wait_for_guard(record) },
        Ok(outcome) => worker.settle(to.cell, outcome),
        Err(panic) => worker.crash(to.cell, Crash::Panic(panic.into())),
    }
    drop(nest);
    Ok(())
}

/// The number of nested calls between two looks at the clock.
const LOOK_CALLS: u64 = 64;
/// The time in a gulp after which asks become messages while a worker is idle, in nanoseconds from the first look.
const NESTED_NS_MAX: u64 = 20_000;

impl Worker {
    #[inline(always)]
    fn occupy<S: Resident>(&self, state: S, stage: u16) -> RawAddress {
        let kind = KindOf::<S>::KIND;
        // SAFETY: the allocator is used by this thread only; a cell taken from it is vacant and of the right class.
        let cell = unsafe {
            let cell = (*self.allocator.get()).take(kind.class, stage);
            Cell::occupy(cell, state, kind, stage, self.system_id);
            cell
        };
        self.ledger.spawned.add(1);
        RawAddress::of(cell)
    }

    /// Returns whether asks become messages instead of nested calls. They do while a worker is idle and this worker's
    /// signal is up. Nested calls that last too long raise the signal. The branches of a tree of asks on one stack then
    /// become messages. The waiting handlers are suspended, the stack unwinds, and the worker can share the messages
    /// after its gulp.
    #[inline]
    fn should_offer_calls(&self) -> bool {
        if self.system.idle.workers.any().is_none() {
            return false;
        }
        if self.ownership.signal.get() != 0 {
            return true;
        }
        self.ledger.short_circuits.get().is_multiple_of(LOOK_CALLS) && self.has_nested_long()
    }

    #[cold]
    fn has_nested_long(&self) -> bool {
        let now_ns = self.system.now_ns();
        match self.nested_since_ns.get() {
            0 => self.nested_since_ns.set(now_ns),
            since_ns if now_ns - since_ns > NESTED_NS_MAX => self.ownership.signal.raise(Signal::TICK),
            _ => {}
        }
        self.ownership.signal.get() != 0
    }
}

/// Spawns on a stage of the running worker and runs `start` at once. No other actor knows the new actor, and none can
/// therefore tell that from a message. Gives both back if this thread runs no worker with stages for children.
#[inline]
pub(crate) fn spawn_near<S: Resident, E: Envelope<S>>(state: S, start: E) -> Result<Address<S>, (S, E)> {
    let Some(worker) = current() else { return Err((state, start)) };
    let Some(stage) = worker.near_stage() else { return Err((state, start)) };
    let raw = worker.occupy(state, stage);
    if worker.ownership.is_user() {
        worker.newborns.note(raw.cell, worker.logs[usize::from(worker.id)].tail.load(Ordering::Relaxed));
    }
    let depth = worker.nested.get();
    let family = if depth == 0 { 0 } else { worker.family.get() + 1 };
    worker.family.set(family);
    let enter = || {
        // Any signal: the handler has run for a while, or another thread waits for this worker's next exchange.
        if depth == NEST_MAX || family > FAMILY_MAX || worker.ownership.signal.get() != 0 || !worker.ownership.is_user()
        {
            // An observed worker runs no handler within another.
            let in_start = (1..NEST_MAX).contains(&depth) || worker.in_deferred_start.get();
            return Err((in_start, None));
        }
        let nest = Nest::enter(worker, depth, raw.cell, stage);
        if worker.ownership.signal.get() & Signal::REVOKED == 0 { Ok(nest) } else { Err((false, Some(nest))) }
    };
    let nest = match enter() {
        Ok(nest) => nest,
        Err((may_be_deferred, _nest)) => {
            // SAFETY: the address has not been given away.
            unsafe { raw.typed::<S>().send_first(start, may_be_deferred) };
            return Ok(raw.typed());
        }
    };
    // SAFETY: the cell was just occupied on a stage of this worker, and no handler of it runs.
    let state = unsafe { Cell::state::<S>(raw.cell) };
    let mut cx = Cx::new(raw.cell);
    let started = catch_unwind(AssertUnwindSafe(|| during(E::describe, || start.run(state, &mut cx))));
    cx.note_failure(E::describe);
    match started {
        Ok(()) if cx.outcome() == Outcome::Continue => {}
        Ok(()) => worker.settle(raw.cell, cx.outcome()),
        Err(panic) => worker.crash(raw.cell, Crash::Panic(panic.into())),
    }
    drop(nest);
    Ok(raw.typed())
}
