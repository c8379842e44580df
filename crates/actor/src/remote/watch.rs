//! The watches of a context: the actor is notified of the end of other actors, also after it has migrated.

use playhouse_executor::{Address, Port, Sends};

use crate::actor::context::Context;
use crate::actor::reference::ActorRef;
use crate::actor::{Actor, ActorId, ActorState, Notify, Terminated, Watcher};
use crate::message::mail::TerminatedMail;
use crate::remote::any::{ActorType, AnyActor};
use crate::remote::slot::HasRemote;
use crate::watch::Watch;

/// A reference to an actor that can be watched: an [`ActorRef`], an [`AnyActor`], or a borrow of one. The argument of
/// [`Context::watch`] and [`Context::unwatch`].
///
/// # Examples
///
/// ```
/// # use playhouse_actor::{Actor, ActorRef, Context, Watchable};
/// # use playhouse_actor::System;
///
/// struct Worker;
/// impl Actor for Worker {}
///
/// struct Overseer {
///     workers: Vec<ActorRef<Worker>>,
/// }
///
/// impl Actor for Overseer {
///     fn started(&mut self, ctx: &mut Context<Self>) {
///         watch_all(&self.workers, ctx);
///     }
/// }
///
/// fn watch_all(actors: impl IntoIterator<Item: Watchable>, ctx: &mut Context<impl Actor>) {
///     actors.into_iter().for_each(|actor| ctx.watch(actor));
/// }
/// # let system = System::start()?;
/// # let workers = vec![system.spawn(Worker)];
/// # system.spawn(Overseer { workers });
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no reference to an actor, and cannot be watched",
    label = "expected an `ActorRef`, an `AnyActor`, or a borrow of one",
    note = "an `ActorId` only names an actor, and a `Recipient` hides it: keep its `ActorRef` beside them",
    note = "the `ActorRef` of an `OwnedActor` is `*owned`"
)]
pub trait Watchable: Copy {
    /// Makes `ctx` watch the actor.
    #[doc(hidden)]
    fn watch_from<A: Actor>(self, ctx: &mut Context<A>);

    /// Ends the watch of `ctx`.
    #[doc(hidden)]
    fn unwatch_from<A: Actor>(self, ctx: &mut Context<A>);
}

impl<B: Actor> Watchable for ActorRef<B> {
    fn watch_from<A: Actor>(self, ctx: &mut Context<A>) {
        let known = if ActorType::moves::<A>() { ActorType::of::<B>() } else { None };
        match known {
            Some(known) => known.actor(self.id()).watch_from(ctx),
            None => {
                let (watcher, notify) = ctx.watcher(false);
                self.address.send_control(Watch::Begin { watcher, notify, who: self.id() });
            }
        }
    }

    fn unwatch_from<A: Actor>(self, ctx: &mut Context<A>) {
        self.address.send_control(Watch::End { watcher: Watcher::last(ctx.id()) });
        ctx.forget_watched(self.id());
    }
}

impl Watchable for AnyActor {
    fn watch_from<A: Actor>(self, ctx: &mut Context<A>) {
        let moves_along = ActorType::moves::<A>();
        if moves_along {
            ctx.cx.with_extra(|extra| {
                if !extra.remote().watching.contains(&self) {
                    extra.remote().watching.push(self);
                }
            });
        }
        let (watcher, notify) = ctx.watcher(moves_along);
        self.watch(watcher, notify);
    }

    fn unwatch_from<A: Actor>(self, ctx: &mut Context<A>) {
        self.unwatch(Watcher::last(ctx.id()));
        ctx.forget_watched(self.id());
    }
}

impl<W: Watchable> Watchable for &W {
    fn watch_from<A: Actor>(self, ctx: &mut Context<A>) {
        (*self).watch_from(ctx);
    }

    fn unwatch_from<A: Actor>(self, ctx: &mut Context<A>) {
        (*self).unwatch_from(ctx);
    }
}

impl<A: Actor> Context<A> {
    /// Requests a [`terminated`](Actor::terminated) call for the end of `who`. The call comes at once if `who` has
    /// ended.
    ///
    /// Watching the same living actor twice has the effect of one watch. Each watch of an actor that has ended leads to a
    /// call of its own. [`Context::unwatch`] ends the watch.
    ///
    /// A mobile actor continues to watch `who` from each theater that it migrates to, if other theaters may send to
    /// `who`. If `who` has ended during a migration, the reason is [`NotAlive`](crate::StopReason::NotAlive).
    #[doc(alias("monitor", "link"))]
    pub fn watch(&mut self, who: impl Watchable) {
        who.watch_from(self);
    }

    /// Ends a watch. A notice that is already under way may still arrive.
    #[doc(alias("demonitor", "unlink"))]
    pub fn unwatch(&mut self, who: impl Watchable) {
        who.unwatch_from(self);
    }

    /// Returns a new watch of this actor. `moves_along`: the watched actor is recorded, and is watched again after a
    /// migration.
    fn watcher(&self, moves_along: bool) -> (Watcher, Notify) {
        struct ByDown<const MOVES_ALONG: bool>;
        impl<A: Actor, const MOVES_ALONG: bool> Sends<ActorState<A>, Terminated> for ByDown<MOVES_ALONG> {
            fn send(to: Address<ActorState<A>>, terminated: Terminated) {
                to.send(TerminatedMail::<MOVES_ALONG>(terminated));
            }
        }
        let notify: Port<Terminated> = if moves_along {
            self.cx.address().port::<Terminated, ByDown<true>, ()>()
        } else {
            self.cx.address().port::<Terminated, ByDown<false>, ()>()
        };
        (Watcher::next(self.id()), Notify::Port(notify))
    }

    /// Removes `who` from the recorded watched actors. Returns whether it was recorded.
    pub(crate) fn forget_watched(&mut self, who: ActorId) -> bool {
        let forgotten = self.cx.with_extra_if_any(|extra| {
            let nth = extra.remote().watching.iter().position(|watched| watched.id() == who)?;
            Some(extra.remote().watching.remove(nth))
        });
        forgotten.flatten().is_some()
    }
}
