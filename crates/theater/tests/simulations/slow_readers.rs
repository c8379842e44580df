//! Theaters that read slowly, under many seeds. The bytes in transit to them are bounded, and the messages waiting for that are,
//! too. Nothing is lost, and other theaters continue.

use std::cell::Cell;
use std::time::Duration;

use playhouse_actor::wire::WireForm;
use playhouse_actor::*;
use playhouse_theater::{Simulation, Theater};
use serde::{Deserialize, Serialize};

const WRITERS: usize = 4;
const EACH: u64 = 600;
/// Number of messages that a writer writes before others have their turn.
const TURN: u64 = 4;
/// Maximum number of bytes of a message in transit.
const LOAD_BYTES: usize = 100;
const WINDOW: usize = 4_096;
/// The time for some ten messages: with a few waiting, their worker is overloaded.
const SLOW: Duration = Duration::from_millis(20);

thread_local! {
    /// A simulation is one thread.
    static LOADS: Cell<Loads> = const { Cell::new(Loads { sent: 0, handled: 0 }) };
}

/// Numbers of messages.
#[derive(Clone, Copy, Default)]
struct Loads {
    sent: u64,
    handled: u64,
}

/// A message; each writer sends them in order, urgent ones in an order of their own.
#[derive(Serialize, Deserialize)]
struct Load {
    by: usize,
    n: u64,
    urgent: bool,
    text: String,
}
impl Message for Load {
    type Reply = ();
    const WIRE: Option<WireForm<Load>> = Some(WireForm::of());
}

#[derive(Serialize, Deserialize)]
struct Handled;
impl Message for Handled {
    type Reply = u64;
    const WIRE: Option<WireForm<Handled>> = Some(WireForm::of());
}

/// Counts messages by writer, urgent ones separately.
#[derive(Serialize, Deserialize)]
struct Reader {
    came: [[u64; 2]; WRITERS],
}
impl Actor for Reader {}
impl Handler<Load> for Reader {
    fn handle(&mut self, load: Load, _: &mut Context<Self>) {
        let came = &mut self.came[load.by][usize::from(load.urgent)];
        assert_eq!(load.n, *came, "lost, repeated or out of order");
        *came += 1;
        let loads = LOADS.get();
        LOADS.set(Loads { handled: loads.handled + 1, ..loads });
    }
}
impl Handler<Handled> for Reader {
    fn handle(&mut self, _: Handled, _: &mut Context<Self>) -> u64 {
        self.came.iter().flatten().sum()
    }
}
remote!(spawn Reader: Load, Handled);

struct Writer {
    number: usize,
    to: ActorRef<Reader>,
    sent: [u64; 2],
}
struct More;
impl Message for More {
    type Reply = ();
}
impl Actor for Writer {}
impl Handler<More> for Writer {
    fn handle(&mut self, _: More, ctx: &mut Context<Self>) {
        for turn in 0..TURN {
            let urgent = turn == 0;
            let sent = &mut self.sent[usize::from(urgent)];
            let load = Load { by: self.number, n: *sent, urgent, text: "x".repeat(LOAD_BYTES - 32) };
            *sent += 1;
            if urgent {
                self.to.tell_urgent(load);
            } else {
                self.to.tell(load);
            }
            let loads = LOADS.get();
            LOADS.set(Loads { sent: loads.sent + 1, ..loads });
        }
        if self.sent.iter().sum::<u64>() < EACH {
            ctx.this().tell(More);
        }
    }
}

fn start(net: &Simulation) -> Theater {
    let system = System::builder().workers(2).stages(8);
    net.theater(Theater::builder().listen("127.0.0.1:0").system(system).window(WINDOW)).unwrap()
}

/// Returns the number of connections that were cut, and whether the window was full.
fn run(seed: u64) -> (u64, bool) {
    LOADS.set(Loads::default());
    let net = Simulation::new(seed);
    let [here, slow, third] = [(); 3].map(|()| start(&net));
    let peer = here.connect(slow.address().unwrap()).unwrap();
    let other_peer = here.connect(third.address().unwrap()).unwrap();
    let reader = || Reader { came: [[0; 2]; WRITERS] };
    let to = here.spawn_at(&peer, &reader()).unwrap();
    let other = here.spawn_at(&other_peer, &reader()).unwrap();
    here.publish("at home", here.system().spawn(reader())).unwrap();
    let from_there = slow.find::<Reader>(&format!("playhouse://{}/at home", here.address().unwrap()));
    let from_there = from_there.wait().unwrap();

    let total = WRITERS as u64 * EACH;
    net.slow(&slow, SLOW);
    let breaks = seed.is_multiple_of(2);
    if breaks {
        net.break_by_chance(Duration::from_millis(500));
    }
    for number in 0..WRITERS {
        here.system().spawn(Writer { number, to, sent: [0; 2] }).tell(More);
    }
    let mut was_full = false;
    // The message that filled the window, and the theaters' own messages.
    let bytes_max = WINDOW + 10 * LOAD_BYTES;
    let mut waiting_max = 0;
    let mut look = || {
        let bytes = peer.state().bytes;
        assert!(bytes <= bytes_max, "{bytes} bytes are under way");
        was_full |= bytes > WINDOW;
        let loads = LOADS.get();
        waiting_max = waiting_max.max(loads.sent - loads.handled);
        was_full
    };
    if net.run_until(&mut look) && !breaks {
        for who in [other, from_there] {
            let since = net.now();
            assert_eq!(who.ask(Handled).wait(), Ok(0));
            let took = net.now() - since;
            assert!(took < Duration::from_millis(500), "over another link, and back over the full one: {took:?}");
        }
        let loads = LOADS.get();
        assert!(loads.handled < loads.sent && loads.handled < total, "the flood was over");
    }
    net.run_until(|| {
        look();
        LOADS.get().handled == total
    });
    // They wait at the reader before it is overloaded (from 256 on), in the window, and behind it; each writer also sends some
    // before it is muted.
    assert!(waiting_max < total * 2 / 5, "{waiting_max} of {total} waited");
    assert!(here.system().stats().total.mutes > 0, "nobody was slowed");
    net.calm();
    net.slow(&slow, Duration::ZERO);
    net.run_until_idle();
    assert_eq!(to.ask(Handled).wait(), Ok(total));
    for theater in [&here, &slow, &third] {
        let total = theater.system().stats().total;
        assert_eq!((total.dead_letters, total.crashes), (0, 0));
    }
    (net.happened().cuts, was_full)
}

// GUARANTEE: A slow reader slows the writer
#[test]
fn a_slow_theater_holds_up_what_is_sent_to_it_and_nobody_else_under_every_seed() {
    let seeds = std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(250);
    let (mut cuts, mut full) = (0, 0);
    for seed in 0..seeds {
        let (cut, was_full) = std::panic::catch_unwind(|| run(seed)).unwrap_or_else(|_| panic!("seed {seed}"));
        cuts += cut;
        full += u64::from(was_full);
    }
    assert!(cuts > seeds / 2, "{cuts}");
    assert_eq!(full, seeds);
}
