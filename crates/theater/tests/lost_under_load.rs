//! Theaters that are lost, or that actors leave, while more is sent than is handled.

#[allow(dead_code, reason = "other tests use all of it")]
mod faulty;
#[macro_use]
mod messages;
mod support;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use faulty::{Between, Fault, eventually};
use playhouse_actor::*;
use serde::{Deserialize, Serialize};
use support::{LIMIT, builder, theater};

// GUARANTEE: A lost theater is reported
#[test]
fn a_sender_that_waits_for_room_goes_on_when_the_target_theater_is_lost() {
    const WRITERS: usize = 4;
    const EACH: u64 = 20_000;
    static OPEN: AtomicBool = AtomicBool::new(false);

    #[derive(Serialize, Deserialize)]
    struct Piece(Vec<u8>);
    remote_message!(Piece -> ());

    /// Handles nothing until it is opened.
    #[derive(Serialize, Deserialize)]
    struct Sink;
    impl Actor for Sink {}
    impl Handler<Piece> for Sink {
        fn handle(&mut self, _: Piece, _: &mut Context<Self>) {
            while !OPEN.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        }
    }
    remote!(mobile Sink: Piece);

    struct Writer {
        to: ActorRef<Sink>,
        left: u64,
        done: mpsc::Sender<()>,
    }
    struct More;
    impl Message for More {
        type Reply = ();
    }
    impl Actor for Writer {}
    impl Handler<More> for Writer {
        fn handle(&mut self, _: More, ctx: &mut Context<Self>) {
            for _ in 0..10 {
                self.to.tell(Piece(vec![0; 1000]));
            }
            self.left -= 10;
            match self.left {
                0 => self.done.send(()).unwrap(),
                _ => ctx.this().tell(More),
            }
        }
    }

    let (here, there) =
        (builder().lost_after(Duration::from_millis(200)).window(64 * 1024).start().unwrap(), theater());
    let between = Between::new(there.address().unwrap(), 0, Fault::Asked(std::sync::Arc::new(|| true)));
    let peer = here.connect(between.address()).unwrap();
    let to = here.spawn_at(&peer, &Sink).unwrap();
    let (done, all) = mpsc::channel();
    for _ in 0..WRITERS {
        here.system().spawn(Writer { to, left: EACH, done: done.clone() }).tell(More);
    }
    eventually(|| (here.system().stats().total.mutes >= WRITERS as u64).then_some(()));
    between.sever();
    for _ in 0..WRITERS {
        all.recv_timeout(LIMIT).expect("who is muted goes on");
    }
    assert!(peer.is_lost());
    assert!(here.system().stats().total.dead_letters > 0, "nobody has waited");
    OPEN.store(true, Ordering::Relaxed);
    here.shutdown().unwrap();
    there.shutdown().unwrap();
}

#[derive(Serialize, Deserialize)]
struct GoTo(SocketAddr);
remote_message!(GoTo -> ());
#[derive(Serialize, Deserialize)]
struct Read;
remote_message!(Read -> ());

/// Ends when it comes home.
#[derive(Serialize, Deserialize)]
struct Guest {
    arrivals: u32,
}
impl Actor for Guest {
    fn migrated(&mut self, ctx: &mut Context<Self>) {
        self.arrivals += 1;
        if self.arrivals == 2 {
            ctx.stop();
        }
    }
}
impl Handler<GoTo> for Guest {
    fn handle(&mut self, GoTo(theater): GoTo, ctx: &mut Context<Self>) {
        ctx.migrate_to(theater);
    }
}
impl Handler<Read> for Guest {
    fn handle(&mut self, _: Read, _: &mut Context<Self>) {}
}
remote!(mobile Guest: GoTo, Read);

// GUARANTEE: Asks of an actor that ends at its arrival end
#[test]
fn an_actor_that_ends_as_it_comes_leaves_no_ask_without_an_answer() {
    const ROUNDS: usize = 100;
    const READ_LIMIT: Duration = Duration::from_secs(30);
    /// Number of askers in each theater.
    const ASKERS: usize = 3;
    let (home, other) = (theater(), theater());
    home.connect(other.address().unwrap()).unwrap();
    for round in 0..ROUNDS {
        let guest = home.system().spawn(Guest { arrivals: 0 });
        // The guest of the previous round has answered the last ask, and may not have ended yet.
        home.publish(format!("guest {round}"), guest).unwrap();
        let name = format!("playhouse://{}/guest {round}", home.address().unwrap());
        let from_there = other.find::<Guest>(&name).wait().unwrap();
        guest.ask(GoTo(other.address().unwrap())).wait().unwrap();
        guest.ask(Read).wait().unwrap();
        std::thread::scope(|scope| {
            for known in [guest, from_there].into_iter().cycle().take(2 * ASKERS) {
                scope.spawn(move || {
                    let last = loop {
                        if let Err(error) = known.ask(Read).within(READ_LIMIT).wait() {
                            break error;
                        }
                    };
                    assert_eq!(last, AskError::Stopped, "in round {round}");
                });
            }
            guest.tell(GoTo(home.address().unwrap()));
        });
    }
    home.shutdown().unwrap();
    other.shutdown().unwrap();
}
