//! The hooks of a migrating actor, as mail to its cell.

use playhouse_executor::{Cx, Envelope, MailKind, Undelivered};

use crate::actor::HasIdentity;
use crate::actor::context::Context;
use crate::actor::migrate_error::MigrateError;
use crate::actor::names::Name;
use crate::actor::reference::ActorRef;
use crate::actor::spawn::Start;
use crate::actor::spawn::take_name;
use crate::actor::{Actor, ActorState};
use crate::message::stream::HasStreams;
use crate::migration::offer::{ActorMetadata, ReadTimer};
use crate::remote::registry::Mobile;
use crate::remote::timers::StartTimer;
use crate::supervise::child::Child;
use crate::supervise::child::HasChild;
use crate::supervise::remote::SupervisedRemotely;
use crate::timer::HasTimers;
use crate::timer::timers::cancel_all;

pub(super) struct MigratingHook;

impl<A: Actor> Envelope<ActorState<A>> for MigratingHook {
    fn run(self, state: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        state.actor.migrating(Context::of(cx));
        let streams = cx.with_extra_if_any(|extra| std::mem::take(extra.streams()));
        drop(streams);
    }

    fn describe() -> (MailKind, &'static str) {
        (MailKind::Control, "migrating")
    }

    fn bounce(self, _: Undelivered) {}
}

pub(super) struct MigrationFailedHook(pub(super) MigrateError);

impl<A: Actor> Envelope<ActorState<A>> for MigrationFailedHook {
    fn run(self, state: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        state.actor.migration_failed(self.0, Context::of(cx));
    }

    fn describe() -> (MailKind, &'static str) {
        (MailKind::Control, "migration_failed")
    }

    fn bounce(self, _: Undelivered) {}
}

pub(super) struct MigratedHook(pub(super) ActorMetadata);

impl<A: Mobile> Envelope<ActorState<A>> for MigratedHook {
    fn run(self, state: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        let ActorMetadata { name, supervisor_link, watching, last_timer, timers, receive_timeout, is_new } = self.0;
        if let Some(name) = name {
            take_name(cx, Name::new(name));
        }
        let address = cx.address();
        cx.with_extra(|extra| {
            *extra.child() = supervisor_link.map(Child::with_link);
            if let Some(supervisor_link) = supervisor_link {
                SupervisedRemotely::watch(ActorRef::new(address), supervisor_link);
            }
            // The stub has no other timers, because an actor that was in this theater before has taken its own along.
            cancel_all(std::mem::take(&mut extra.timer_slot().timers));
            extra.timer_slot().last = last_timer;
            extra.identity().incarnation += 1;
            for ReadTimer { id, left, pace, kept, start } in timers {
                if let Ok(start) = start.downcast::<StartTimer<A>>() {
                    let mut timer = start(address, id, left, pace);
                    timer.kept = kept;
                    extra.timer_slot().timers.insert(id, timer);
                }
            }
        });
        let ctx = Context::of(cx);
        watching.into_iter().for_each(|watched| ctx.watch(watched));
        if let Some(after) = receive_timeout {
            ctx.set_receive_timeout(after);
        }
        if is_new {
            return Start.run(state, cx);
        }
        state.actor.migrated(ctx);
    }

    fn describe() -> (MailKind, &'static str) {
        (MailKind::Control, "migrated")
    }

    fn bounce(self, _: Undelivered) {}
}
