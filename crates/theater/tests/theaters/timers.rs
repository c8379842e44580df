//! Timers of actors that migrate.

use std::time::Duration;

use crate::clerks::{ask, theaters};
use crate::faulty::eventually;
use playhouse_actor::*;
use serde::{Deserialize, Serialize};

/// Cancels its timer when it has arrived.
#[derive(Serialize, Deserialize, Default)]
struct Alarm {
    timer: Option<TimerKey>,
    rings: u64,
}

#[derive(Clone, Serialize, Deserialize)]
struct Ring;
remote_message!(Ring -> ());

#[derive(Serialize, Deserialize)]
struct Rings;
remote_message!(Rings -> u64);

impl Actor for Alarm {
    fn started(&mut self, ctx: &mut Context<Self>) {
        self.timer = Some(ctx.send_every(Duration::from_millis(1), Ring));
    }

    fn migrated(&mut self, ctx: &mut Context<Self>) {
        self.timer.into_iter().for_each(|timer| ctx.cancel(timer));
    }
}
impl Handler<Ring> for Alarm {
    fn handle(&mut self, _: Ring, _: &mut Context<Self>) {
        self.rings += 1;
    }
}
impl Handler<Rings> for Alarm {
    fn handle(&mut self, _: Rings, _: &mut Context<Self>) -> u64 {
        self.rings
    }
}
remote!(mobile Alarm: Ring, Rings);

#[test]
fn an_actor_that_has_moved_cancels_a_timer_by_the_key_that_it_has_kept() {
    let (theaters, peers) = theaters(2);
    let alarm = theaters[0].system().spawn(Alarm::default());
    eventually(|| (ask(alarm, Rings) > 3).then_some(()));
    theaters[0].migrate(alarm, peers[0][1].as_ref().unwrap()).wait().unwrap();
    // A system with a periodic timer is never idle.
    theaters[1].system().run_until_idle();
    let rings = ask(alarm, Rings);
    theaters[1].system().run_until_idle();
    assert_eq!(ask(alarm, Rings), rings);
}
