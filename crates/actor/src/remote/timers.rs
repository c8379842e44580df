//! Timers of actors that have arrived: each starts anew with the message that was read.

use std::any::Any;
use std::time::Duration;

use playhouse_executor::Address;

use crate::actor::{Actor, ActorState};
use crate::codec::WireError;
use crate::message::HandledBy;
use crate::message::clock::Pace;
use crate::remote::reference_wire::copy_of;
use crate::timer::timers::Timer;

/// A `StartTimer` of an actor's type.
pub type AnyTimer = Box<dyn Any + Send>;

pub(crate) type StartTimer<A> = Box<dyn FnOnce(Address<ActorState<A>>, u64, Duration, Pace) -> Timer + Send>;

pub(crate) fn timer<A: Actor, M: HandledBy<A, Mode>, Mode>(message: M) -> AnyTimer {
    let start: StartTimer<A> = Box::new(move |address, id, left, pace| {
        let copy = (pace != Pace::Once).then_some(copy_of::<M> as fn(&M) -> Result<M, WireError>);
        Timer::start::<A, M, Mode>(address, id, (left, pace), message, copy)
    });
    Box::new(start)
}
