//! The watches of a context: the actor is notified of the end of other actors, also after it has migrated.

use playhouse_executor::{Address, Port, Sends};

use crate::actor::context::Context;
use crate::actor::reference::ActorRef;
use crate::actor::{Actor, ActorId, ActorState, Notify, Terminated, Watcher};
use crate::message::mail::TerminatedMail;
use crate::remote::any::{ActorType, AnyActor};
use crate::remote::slot::HasRemote;
use crate::watch::Watch;

impl<A: Actor> Context<A> {
    /// Requests a [`terminated`](Actor::terminated) call for the end of `who`. The call comes at once if `who` has
    /// ended.
    ///
    /// Watching the same actor twice has the effect of one watch. [`Context::unwatch`] ends the watch.
    ///
    /// A mobile actor continues to watch `who` from each theater that it migrates to, if other theaters may send to
    /// `who`. If `who` has ended during a migration, the reason is [`NotAlive`](crate::StopReason::NotAlive).
    #[doc(alias("monitor", "link"))]
    pub fn watch<B: Actor>(&mut self, who: ActorRef<B>) {
        let known = if ActorType::moves::<A>() { ActorType::of::<B>() } else { None };
        match known {
            Some(known) => self.watch_any(known.actor(who.id())),
            None => {
                let (watcher, notify) = self.watcher(false);
                who.address.send_control(Watch::Begin { watcher, notify, who: who.id() });
            }
        }
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

    /// Watches an actor of any type, like [`Context::watch`].
    #[doc(alias("monitor", "link"))]
    pub fn watch_any(&mut self, who: AnyActor) {
        let moves_along = ActorType::moves::<A>();
        if moves_along {
            self.cx.with_extra(|extra| {
                if !extra.remote().watching.contains(&who) {
                    extra.remote().watching.push(who);
                }
            });
        }
        let (watcher, notify) = self.watcher(moves_along);
        who.watch(watcher, notify);
    }

    /// Ends a watch on an actor of any type, like [`Context::unwatch`].
    #[doc(alias("demonitor", "unlink"))]
    pub fn unwatch_any(&mut self, who: AnyActor) {
        who.unwatch(Watcher::last(self.id()));
        self.forget_watched(who.id());
    }

    /// Ends a watch. A notice that is already under way may still arrive.
    #[doc(alias("demonitor", "unlink"))]
    pub fn unwatch<B: Actor>(&mut self, who: ActorRef<B>) {
        who.address.send_control(Watch::End { watcher: Watcher::last(self.id()) });
        self.forget_watched(who.id());
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
