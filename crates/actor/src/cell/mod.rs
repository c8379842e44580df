//! The cell of an actor: the state of each feature beside the actor's own, and the end of the actor.
//!
//! Each feature keeps its state in a slot, and reaches it by a trait of its own. Only this folder knows all features.

use std::any::type_name;
use std::sync::Arc;

use playhouse_executor::{ControlCx, Crash, Cx, Ending, Resident, contained};

use crate::actor::context::Context;
use crate::actor::names::Name;
use crate::actor::reference::ActorRef;
use crate::actor::watcher::{HasWatches, Watches};
use crate::actor::{Actor, ActorId, ActorState, HasIdentity, Identity, Notify, StopReason, Terminated, Watcher};
use crate::answer::wait_graph::forget_asks;
use crate::ask::reentrant::{HasWaiters, Waiters};
use crate::message::clock::TimersOfActor;
use crate::message::forward::{Forwarder, HasForwarder};
use crate::message::stream::{HasStreams, Streams};
use crate::remote::any::ActorType;
use crate::remote::slot::{HasRemote, RemoteSlot};
use crate::supervise::child::{Child, HasChild};
use crate::supervise::crash_report::{self, AfterCrash};
use crate::timer::{HasTimers, TimerSlot};

/// State that few actors need: names, watchers, timers, streams and pending answers.
#[doc(hidden)]
pub struct Extra<A: Actor> {
    identity: Identity,
    watches: Watches,
    timers: TimerSlot,
    streams: Streams<A>,
    waiters: Waiters,
    child: Option<Child<A>>,
    /// The forwarder to the actor's theater, if the actor is not in this one.
    away: Option<Arc<dyn Forwarder>>,
    remote: RemoteSlot,
}

impl<A: Actor> Default for Extra<A> {
    fn default() -> Self {
        Extra {
            identity: Identity::default(),
            watches: Watches::default(),
            timers: TimerSlot::default(),
            streams: Streams::new(),
            waiters: Waiters::default(),
            child: None,
            away: None,
            remote: RemoteSlot::default(),
        }
    }
}

impl<A: Actor> HasIdentity for Extra<A> {
    fn identity(&mut self) -> &mut Identity {
        &mut self.identity
    }
}

impl<A: Actor> HasWatches for Extra<A> {
    fn watches(&mut self) -> &mut Watches {
        &mut self.watches
    }

    fn is_mobile(&self) -> bool {
        ActorType::moves::<A>()
    }
}

impl<A: Actor> HasTimers for Extra<A> {
    fn timer_slot(&mut self) -> &mut TimerSlot {
        &mut self.timers
    }
}

impl<A: Actor> TimersOfActor for Extra<A> {
    fn wants(&self, id: u64, number: u64) -> bool {
        self.timers.wants(id, number)
    }

    fn forget(&mut self, id: u64) {
        self.timers.timers.remove(&id);
    }

    fn go_on(&mut self, id: u64) {
        self.timers.go_on(id);
    }
}

impl<A: Actor> HasStreams<A> for Extra<A> {
    fn streams(&mut self) -> &mut Streams<A> {
        &mut self.streams
    }
}

impl<A: Actor> HasWaiters for Extra<A> {
    fn waiters(&mut self) -> &mut Waiters {
        &mut self.waiters
    }
}

impl<A: Actor> HasForwarder for Extra<A> {
    fn away(&mut self) -> &mut Option<Arc<dyn Forwarder>> {
        &mut self.away
    }
}

impl<A: Actor> HasRemote for Extra<A> {
    fn remote(&mut self) -> &mut RemoteSlot {
        &mut self.remote
    }
}

impl<A: Actor> HasChild<A> for Extra<A> {
    fn child(&mut self) -> &mut Option<Child<A>> {
        &mut self.child
    }

    fn renew(&mut self) {
        self.identity.incarnation += 1;
        self.timers.renew();
        let (streams, _waiters) = (std::mem::take(&mut self.streams), std::mem::take(&mut self.waiters));
        contained(|| drop(streams));
    }
}

/// A function of its own and not inlined, because many actors end, and few of them by a crash.
#[cold]
#[inline(never)]
fn end_by_crash<A: Actor>(extra: Option<Box<Extra<A>>>, mut crash: Crash, id: ActorId) {
    let name = extra.as_ref().and_then(|extra| extra.identity.name.as_ref());
    crash_report::report(type_name::<A>(), id, name.map(|name| name.text().to_string()), &mut crash, AfterCrash::Ends);
    let text = crash.describe();
    let reason = match crash {
        Crash::Panic(_) => StopReason::Panicked(text),
        Crash::Error(_) => StopReason::Failed(text),
    };
    drop(TellOthers { extra, id, reason });
}

impl<A: Actor> Resident for ActorState<A> {
    type Extra = Extra<A>;

    fn name() -> &'static str {
        type_name::<A>()
    }

    fn ended(&mut self, mut extra: Option<Box<Extra<A>>>, ending: Ending, cx: &mut Cx<Self>) {
        let id = ActorId(cx.address().raw());
        forget_asks(id);
        let crashed = extra.as_ref().and_then(|extra| extra.child.as_ref()).is_some_and(|child| child.crashed);
        let reason = match ending {
            Ending::Stopped => StopReason::Stopped,
            Ending::Killed => StopReason::Killed,
            Ending::Shutdown => StopReason::Shutdown,
            Ending::Crashed(crash) => return end_by_crash(extra, crash, id),
        };
        let calm = reason != StopReason::Killed && !crashed;
        if let Some(extra) = extra.as_mut().filter(|_| calm) {
            extra.waiters.let_go();
        }
        let _tell = TellOthers { extra, id, reason };
        if calm {
            contained(|| self.actor.stopped(Context::of(cx)));
            // Children and timers that the hook has started end with the actor.
            let started = cx.with_extra_if_any(|extra| {
                extra.waiters.let_go();
                (std::mem::take(&mut extra.timers), std::mem::take(&mut extra.streams))
            });
            if let Some((timers, streams)) = started {
                timers.cancel();
                contained(|| drop(streams));
            }
        }
    }

    fn crashed(mut crash: Crash, cx: &mut ControlCx<Self>) {
        let this = ActorRef::new(cx.address());
        let extra = cx.extra();
        let name = extra.identity.name.as_ref().map(|name| name.text().to_string());
        match &mut extra.child {
            Some(child) => {
                crash_report::report(type_name::<A>(), this.id(), name, &mut crash, AfterCrash::SupervisorDecides);
                child.crashed = true;
                let report = child.report(crash, this);
                cx.hold();
                report();
            }
            None => cx.give_up(crash),
        }
    }
}

/// Notifies the watchers and the supervisor, and cancels the timers, even if `stopped` panics.
struct TellOthers<A: Actor> {
    extra: Option<Box<Extra<A>>>,
    id: ActorId,
    reason: StopReason,
}

impl<A: Actor> Drop for TellOthers<A> {
    fn drop(&mut self) {
        let Some(extra) = self.extra.take() else { return };
        let Extra { identity, watches, child, timers, streams, .. } = *extra;
        // Each step runs even if another one panics: a full mailbox calls the hook for dead letters, and timers own
        // messages.
        contained(|| tell_watchers(watches.watchers, self.id, identity.name, &self.reason));
        contained(|| child.map(|child| child.ended()));
        timers.cancel();
        contained(|| drop(streams));
    }
}

// Not inlined and not generic: code that does not depend on the types of actors and messages is compiled once, and not
// once for each type.

#[inline(never)]
fn tell_watchers(watchers: Vec<(Watcher, Notify)>, who: ActorId, name: Option<Arc<Name>>, reason: &StopReason) {
    for (_, watcher) in watchers {
        let name = name.as_ref().map(|name| name.text().to_string());
        watcher.tell(Terminated { who, name, reason: reason.clone() });
    }
}
