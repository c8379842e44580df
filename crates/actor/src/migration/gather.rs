//! The freeze of group migrations: requests to the members' cells, besides those of every
//! [migration](crate::migration).

use playhouse_executor::{AwayCx, Control, ControlCx, RawAddress, Undelivered};

use crate::actor::migrate_error::MigrateError;
use crate::actor::{ActorId, ActorState};
use crate::migration::depart::{depart, offer_or_stay};
use crate::migration::offer::Offer;
use crate::remote::registry::Mobile;

/// Freezes these actors of one stage at one moment, except those that have ended. Otherwise returns an actor that is
/// not between two messages.
pub type Freeze<'a> = &'a mut dyn FnMut(&[ActorId]) -> Result<Vec<ActorId>, ActorId>;

/// Called on the stage of an actor when the actor is between two messages, is a stub, or has ended.
pub type OnFrozen = Box<dyn FnOnce(Result<Freeze<'_>, Undelivered>) + Send>;

/// A request to try the freeze of a group's members on one stage.
pub(crate) struct FreezeTogether {
    pub(crate) on_frozen: OnFrozen,
    /// `true` if a stub sends the request once more behind the mail, because the actor may be about to arrive.
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

/// A request to prepare one of the frozen actors.
pub(crate) struct PrepareFrozen(pub(crate) Offer);

impl<A: Mobile> Control<ActorState<A>> for PrepareFrozen {
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

/// A call that runs behind earlier requests to the cell, whatever the cell contains by then.
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
