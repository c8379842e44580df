//! Actors that leave together: requests to their cells, besides those of any actor that [moves](crate::migration).

use playhouse_executor::{AwayCx, Control, ControlCx, RawAddress, Undelivered};

use crate::actor::{ActorId, ActorState};
use crate::migration::{MigrateError, Mobile, Offer, depart, offer_or_stay};

/// Freezes these actors of one stage at one moment, but for those that have ended; or says who is not between two messages.
pub type Freeze<'a> = &'a mut dyn FnMut(&[ActorId]) -> Result<Vec<ActorId>, ActorId>;

/// Called in the stage of an actor that is between two messages, or away; or where it has ended.
pub type OnFrozen = Box<dyn FnOnce(Result<Freeze<'_>, Undelivered>) + Send>;

/// Looks whether they can.
pub(crate) struct FreezeTogether {
    pub(crate) on_frozen: OnFrozen,
    /// If the actor is not there, asks again behind the mail: it may be about to come.
    pub(crate) asks_again: bool,
}

impl<A: Mobile> Control<ActorState<A>> for FreezeTogether {
    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        if !cx.is_calm() {
            return cx.address().send_control_in_order(self);
        }
        (self.on_frozen)(Ok(&mut |actors| together(actors, |actors| cx.freeze_together(actors))));
    }

    fn bounce(self, why: Undelivered) {
        (self.on_frozen)(Err(why));
    }

    fn send_on(self, cx: &mut AwayCx<ActorState<A>>) {
        if self.asks_again {
            return cx.address().send_control_behind(FreezeTogether { asks_again: false, ..self });
        }
        (self.on_frozen)(Ok(&mut |actors| together(actors, |actors| cx.freeze_together(actors))));
    }
}

fn together(
    actors: &[ActorId],
    freeze: impl FnOnce(&[RawAddress]) -> Result<Vec<RawAddress>, RawAddress>,
) -> Result<Vec<ActorId>, ActorId> {
    let addresses: Vec<RawAddress> = actors.iter().map(|actor| actor.0).collect();
    freeze(&addresses).map(|frozen| frozen.into_iter().map(ActorId).collect()).map_err(ActorId)
}

/// One of those that were frozen is packed.
pub(crate) struct PackFrozen(pub(crate) Offer);

impl<A: Mobile> Control<ActorState<A>> for PackFrozen {
    fn passes(&self) -> bool {
        true
    }

    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        match depart(self.0, cx) {
            Some(offer) => offer_or_stay(offer, cx),
            None => cx.thaw(),
        }
    }

    fn bounce(self, _: Undelivered) {
        let _ = (self.0)(Err(MigrateError::Stopped));
    }
}

/// Behind what the cell was told before, whatever it is by then.
pub(crate) struct Then(pub(crate) Box<dyn FnOnce() + Send>);

impl<A: Mobile> Control<ActorState<A>> for Then {
    fn passes(&self) -> bool {
        true
    }

    fn run(self, _: &mut ControlCx<ActorState<A>>) {
        (self.0)();
    }

    fn bounce(self, _: Undelivered) {
        (self.0)();
    }

    fn send_on(self, _: &mut AwayCx<ActorState<A>>) {
        (self.0)();
    }
}
