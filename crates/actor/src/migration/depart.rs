//! The requests to the cell of an actor that leaves: its state is written, and the migration is committed or aborted.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use playhouse_executor::{AwayCx, Control, ControlCx, StubRoute, Undelivered};

use crate::actor::HasIdentity;
use crate::actor::migrate_error::MigrateError;
use crate::actor::reference::ActorRef;
use crate::actor::watcher::HasWatches;
use crate::actor::{ActorId, ActorState, Watcher};
use crate::ask::reentrant::HasWaiters;
use crate::codec::Codec;
use crate::message::clock::Pace;
use crate::message::forward::HasForwarder;
use crate::message::forward::{ForwardedMessage, Forwarder, guarded};
use crate::migration::hooks::{MigratingHook, MigrationFailedHook};
use crate::migration::offer::{Offer, PackedTimer, PreparedActor};
use crate::remote::registry::Mobile;
use crate::remote::slot::HasRemote;
use crate::supervise::child::HasChild;
use crate::supervise::remote::SupervisedRemotely;
use crate::timer::HasTimers;
use crate::timer::receive_timeout::Idle;
use crate::timer::timers::Timers;
use crate::watch::Watch;

pub(super) struct Prepare {
    pub(super) offer: Offer,
    /// `true` if a stub sends the request once more behind the mail, because the actor may be about to arrive.
    pub(super) asks_again: bool,
}

impl<A: Mobile> Control<ActorState<A>> for Prepare {
    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        if !cx.is_calm() {
            // Queues behind the waiting handler, or the undecided crash.
            return cx.address().send_control_in_order(self);
        }
        if let Some(offer) = depart(self.offer, cx) {
            cx.freeze();
            offer_or_stay(offer, cx);
        }
    }

    fn bounce(self, _: Undelivered) {
        let _ = (self.offer)(Err(MigrateError::Stopped));
    }

    fn send_on(self, cx: &mut AwayCx<ActorState<A>>) {
        if self.asks_again {
            return cx.address().send_control_behind(Prepare { asks_again: false, ..self });
        }
        let _ = (self.offer)(Err(MigrateError::Elsewhere));
    }
}

/// Calls the hook. Returns the offer if the actor leaves. Otherwise the actor ends or crashes, and the offer receives
/// the error.
///
/// # Panics
/// If the hook panics.
pub(super) fn depart<A: Mobile>(offer: Offer, cx: &mut ControlCx<ActorState<A>>) -> Option<Offer> {
    let panic = catch_unwind(AssertUnwindSafe(|| cx.run(MigratingHook))).err();
    let why = match panic {
        None if !cx.is_ending() => return Some(offer),
        None if !cx.has_failed() => MigrateError::Stopped,
        _ => MigrateError::Crashed,
    };
    let _ = offer(Err(why));
    if let Some(panic) = panic {
        resume_unwind(panic);
    }
    None
}

pub(super) fn offer_or_stay<A: Mobile>(taken: Offer, cx: &mut ControlCx<ActorState<A>>) {
    if let Err(why) = offer(taken, cx) {
        forget_leave(&mut cx.extra().timer_slot().timers);
        cx.thaw();
        cx.run(MigrationFailedHook(why));
    }
}

fn offer<A: Mobile>(offer: Offer, cx: &mut ControlCx<ActorState<A>>) -> Result<(), MigrateError> {
    let who = ActorRef::new(cx.address());
    let extra = cx.extra();
    let watch = extra.child().as_mut().and_then(|child| child.begin_migration(who));
    extra.watches().watchers.extend(watch);
    let supervisor_link = extra.child().as_ref().map(|child| child.supervisor_link());
    let now = playhouse_executor::with_current_system(|system| system.map_or(Duration::ZERO, |system| system.now()));
    let name = cx.extra().identity().name.clone();
    let watching = cx.extra().remote().watching.clone();
    let last_timer = cx.extra().timer_slot().last;
    let mut clocks = Vec::new();
    for (id, timer) in &mut cx.extra().timer_slot().timers {
        let times = timer.clock.times();
        let fired = times.fired();
        if times.pace != Pace::Once || fired == 0 {
            timer.left_at = Some(fired);
            clocks.push((*id, Arc::clone(&timer.clock), timer.kept));
        }
    }
    let writers: Vec<_> =
        clocks.iter().map(|(_, clock, _)| move |codec: Codec, out: &mut Vec<u8>| clock.write(codec, out)).collect();
    let timers: Vec<_> = clocks
        .iter()
        .zip(&writers)
        .map(|((id, clock, kept), write)| {
            let (message, name) = clock.message_type();
            let times = clock.times();
            PackedTimer { id: *id, left: times.left(now), pace: times.pace, kept: *kept, message, name, write }
        })
        .collect();
    let receive_timeout = cx.extra().timer_slot().idle.as_ref().map(|idle| idle.after);
    let actor = &cx.state().expect("a frozen actor awaits nothing").actor;
    let state = guarded(|codec, out| codec.write(actor, out));
    let name = name.as_ref().map(|name| &**name.text());
    offer(Ok(PreparedActor {
        state: &state,
        name,
        supervisor_link,
        watching: &watching,
        last_timer,
        timers: &timers,
        receive_timeout,
    }))
}

fn forget_leave(timers: &mut Timers) {
    for timer in timers.values_mut() {
        timer.left_at = None;
    }
}

pub(super) struct Abort(pub(super) MigrateError);

impl<A: Mobile> Control<ActorState<A>> for Abort {
    fn passes(&self) -> bool {
        true
    }

    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        if cx.is_frozen() {
            forget_leave(&mut cx.extra().timer_slot().timers);
            cx.thaw();
            cx.run(MigrationFailedHook(self.0));
        }
    }

    fn send_on(self, _: &mut AwayCx<ActorState<A>>) {}
}

pub(super) struct Commit(pub(super) Arc<dyn Forwarder>, pub(super) Arc<StubRoute>);

impl<A: Mobile> Control<ActorState<A>> for Commit {
    fn passes(&self) -> bool {
        true
    }

    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        if !cx.is_frozen() {
            return;
        }
        let extra = cx.extra();
        *extra.away() = Some(Arc::clone(&self.0));
        extra.remote().reroute = None;
        extra.waiters().let_go();
        let watchers = std::mem::take(&mut extra.watches().watchers);
        let watching = std::mem::take(&mut extra.remote().watching);
        if let Some(child) = extra.child().take() {
            // The actor watches its supervisor from the target theater already.
            SupervisedRemotely::unwatch(child.supervisor_link());
        }
        for timer in extra.timer_slot().timers.values() {
            timer.stop();
        }
        extra.timer_slot().idle.take().into_iter().for_each(Idle::cancel);
        let who = ActorId(cx.address().raw());
        // The actor watches them from the target theater.
        watching.into_iter().for_each(|watched| watched.unwatch(Watcher::last(who)));
        cx.depart(self.1);
        self.0.is_route_from(who);
        for (watcher, notify) in watchers {
            if watcher == Watcher::Theater {
                continue;
            }
            let notify = Watch::telling(who, notify);
            // If the watch cannot be forwarded, the forwarder notifies the watcher.
            let _ = self.0.carry(ForwardedMessage::Watch { watcher, notify });
        }
        cx.thaw();
    }

    fn send_on(self, _: &mut AwayCx<ActorState<A>>) {}
}
