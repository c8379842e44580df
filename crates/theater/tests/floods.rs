//! The guarantees of links if more is sent than is handled.

mod support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use playhouse_actor::wire::WireForm;
use playhouse_actor::*;
use playhouse_theater::Theater;
use serde::{Deserialize, Serialize};
use support::{LIMIT, builder, theater};

fn work(time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

/// Answers each ball with two, until it has sent its number.
struct Player {
    number: usize,
    others: Vec<ActorRef<Player>>,
    /// Number of balls sent to each of the others.
    sent: Vec<u64>,
    /// Number of balls received from each of the others.
    came: Vec<u64>,
    last: u64,
    done: mpsc::Sender<()>,
}

#[derive(Serialize, Deserialize)]
struct Ball {
    by: usize,
    n: u64,
    padding: Vec<u8>,
}
impl Message for Ball {
    type Reply = ();
    const WIRE: Option<WireForm<Ball>> = Some(WireForm::of());
}

struct Meet(Vec<ActorRef<Player>>);
impl Message for Meet {
    type Reply = ();
}
struct Begin;
impl Message for Begin {
    type Reply = ();
}

impl Player {
    fn new(number: usize, last: u64, done: &mpsc::Sender<()>) -> Player {
        Player { number, others: Vec::new(), sent: Vec::new(), came: Vec::new(), last, done: done.clone() }
    }

    fn play(&mut self, balls: usize) {
        for _ in 0..balls {
            // The player with the fewest balls.
            let (to, _) = self.sent.iter().enumerate().min_by_key(|(_, sent)| **sent).unwrap();
            if self.sent[to] == self.last {
                return;
            }
            self.others[to].tell(Ball { by: self.number, n: self.sent[to], padding: vec![0; 1000] });
            self.sent[to] += 1;
        }
    }
}

impl Actor for Player {}
impl Handler<Meet> for Player {
    fn handle(&mut self, Meet(others): Meet, _: &mut Context<Self>) {
        self.sent = vec![0; others.len()];
        self.came = vec![0; others.len()];
        self.others = others;
    }
}
impl Handler<Begin> for Player {
    fn handle(&mut self, Begin: Begin, _: &mut Context<Self>) {
        self.play(100);
    }
}
impl Handler<Ball> for Player {
    fn handle(&mut self, ball: Ball, _: &mut Context<Self>) {
        assert_eq!(ball.n, self.came[ball.by], "lost, repeated or out of order");
        self.came[ball.by] += 1;
        work(Duration::from_micros(10));
        self.play(2);
        if self.came.iter().all(|came| *came == self.last) {
            self.done.send(()).unwrap();
        }
    }
}
remote!(Player: Ball);

/// Starts players in each theater that play with those of the next one; returns when all have received all balls.
fn play(theaters: &[Theater], players: usize, each: u64) {
    let (done, all) = mpsc::channel();
    let teams: Vec<Vec<ActorRef<Player>>> = theaters
        .iter()
        .map(|theater| (0..players).map(|number| theater.system().spawn(Player::new(number, each, &done))).collect())
        .collect();
    for (theater, team) in theaters.iter().zip(&teams) {
        for (number, player) in team.iter().enumerate() {
            theater.publish(number.to_string(), *player).unwrap();
        }
    }
    for (at, team) in teams.iter().enumerate() {
        let next = theaters[(at + 1) % theaters.len()].address().unwrap();
        let find = |number| theaters[at].find::<Player>(&format!("playhouse://{next}/{number}")).wait().unwrap();
        let others: Vec<_> = (0..players).map(find).collect();
        for player in team {
            player.ask(Meet(others.clone())).wait().unwrap();
        }
    }
    for player in teams.iter().flatten() {
        player.tell(Begin);
    }
    for _ in 0..theaters.len() * players {
        all.recv_timeout(LIMIT).expect("all comes to its end");
    }
    for theater in theaters {
        let total = theater.system().stats().total;
        assert_eq!((total.dead_letters, total.crashes), (0, 0));
    }
}

// GUARANTEE: No deadlock by backpressure between theaters
#[test]
fn two_theaters_that_flood_each_other_go_on() {
    let theaters = [theater(), theater()];
    play(&theaters, 4, 10_000);
    let mutes = theaters.each_ref().map(|theater| theater.system().stats().total.mutes);
    assert!(mutes.iter().all(|mutes| *mutes > 0), "nobody was muted: {mutes:?}");
    for theater in theaters {
        theater.shutdown().unwrap();
    }
}

/// An actor that always has work.
struct Busy;
struct Again;
impl Message for Again {
    type Reply = ();
}
impl Actor for Busy {}
impl Handler<Again> for Busy {
    fn handle(&mut self, Again: Again, ctx: &mut Context<Self>) {
        ctx.this().tell(Again);
    }
}

// GUARANTEE: No deadlock by backpressure between theaters
#[test]
fn two_theaters_that_flood_each_other_go_on_beside_busy_actors() {
    let theaters = [theater(), theater()];
    let busy = theaters.each_ref().map(|theater| theater.system().spawn(Busy));
    for busy in busy {
        busy.tell(Again);
    }
    play(&theaters, 4, 10_000);
    for busy in busy {
        busy.kill();
    }
    for theater in theaters {
        theater.shutdown().unwrap();
    }
}

// GUARANTEE: No deadlock by backpressure between theaters
#[test]
fn three_theaters_that_flood_each_other_in_a_circle_go_on() {
    let theaters = [theater(), theater(), theater()];
    play(&theaters, 3, 10_000);
    for theater in theaters {
        theater.shutdown().unwrap();
    }
}

// GUARANTEE: A slow reader slows the writer
#[test]
fn many_writers_at_a_full_window_are_slowed_and_other_links_go_on() {
    const WRITERS: usize = 64;
    const EACH: u64 = 8_000;
    /// The number of messages that are written into the link and not handled yet, at any place, and its maximum.
    static UNDER_WAY: AtomicU64 = AtomicU64::new(0);
    static UNDER_WAY_MAX: AtomicU64 = AtomicU64::new(0);

    /// Counts the messages that are written.
    struct Probe;
    impl Serialize for Probe {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let under_way = UNDER_WAY.fetch_add(1, Ordering::Relaxed) + 1;
            UNDER_WAY_MAX.fetch_max(under_way, Ordering::Relaxed);
            serializer.serialize_unit()
        }
    }
    impl<'de> Deserialize<'de> for Probe {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Probe, D::Error> {
            <()>::deserialize(deserializer).map(|()| Probe)
        }
    }

    /// A message that is counted while it exists; nothing of it is on the heap.
    #[derive(Serialize, Deserialize)]
    struct Load {
        by: usize,
        n: u64,
        padding: [[u8; 32]; 8],
        probe: Probe,
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
    #[derive(Serialize, Deserialize)]
    struct Slow {
        came: Vec<u64>,
    }
    impl Actor for Slow {}
    impl Handler<Load> for Slow {
        fn handle(&mut self, load: Load, _: &mut Context<Self>) {
            assert_eq!(load.n, self.came[load.by], "lost, repeated or out of order");
            self.came[load.by] += 1;
            work(Duration::from_micros(5));
            UNDER_WAY.fetch_sub(1, Ordering::Relaxed);
        }
    }
    impl Handler<Handled> for Slow {
        fn handle(&mut self, _: Handled, _: &mut Context<Self>) -> u64 {
            self.came.iter().sum()
        }
    }
    remote!(spawn Slow: Load, Handled);

    struct Writer {
        number: usize,
        to: ActorRef<Slow>,
        sent: u64,
    }
    struct More;
    impl Message for More {
        type Reply = ();
    }
    impl Actor for Writer {}
    impl Handler<More> for Writer {
        fn handle(&mut self, _: More, ctx: &mut Context<Self>) {
            for _ in 0..10 {
                self.to.tell(Load { by: self.number, n: self.sent, padding: [[1; 32]; 8], probe: Probe });
                self.sent += 1;
            }
            if self.sent < EACH {
                ctx.this().tell(More);
            }
        }
    }

    // With one worker, the worker that reads also handles.
    for workers in [1, 2] {
        let there = builder().system(System::builder().workers(workers)).start().unwrap();
        let [here, third] = [theater(), theater()];
        let slow_peer = here.connect(there.address().unwrap()).unwrap();
        let other_peer = here.connect(third.address().unwrap()).unwrap();
        let to = here.spawn_at(&slow_peer, &Slow { came: vec![0; WRITERS] }).unwrap();
        let other = here.spawn_at(&other_peer, &Slow { came: vec![0] }).unwrap();
        let at_home = here.system().spawn(Slow { came: vec![7] });
        here.publish("at home", at_home).unwrap();
        let name = format!("playhouse://{}/at home", here.address().unwrap());
        let from_there = there.find::<Slow>(&name).wait().unwrap();
        for number in 0..WRITERS {
            here.system().spawn(Writer { number, to, sent: 0 }).tell(More);
        }
        let total = WRITERS as u64 * EACH;
        let deadline = Instant::now() + LIMIT;
        while here.system().stats().total.mutes == 0 {
            assert!(Instant::now() < deadline, "no writer was muted");
            std::thread::yield_now();
        }
        for _ in 0..4 {
            assert_eq!(other.ask(Handled).wait(), Ok(0), "over another link");
            assert_eq!(from_there.ask(Handled).wait(), Ok(7), "the answer comes over the full one");
        }
        assert!(UNDER_WAY.load(Ordering::Relaxed) > 0, "the flood was over");
        here.system().run_until_idle();
        assert_eq!(to.ask(Handled).wait(), Ok(total));
        for theater in [&here, &there, &third] {
            let total = theater.system().stats().total;
            assert_eq!((total.dead_letters, total.crashes), (0, 0));
        }
        // The bound is the window, and the messages that wait behind it before their reader is overloaded: it does not grow with
        // the number sent. Each time that a thread loses the processor and its stage is parked, another window may come in.
        let bytes_max = UNDER_WAY_MAX.swap(0, Ordering::Relaxed) * size_of::<Load>() as u64;
        let bytes = total * size_of::<Load>() as u64;
        let windows = 3 + there.system().stats().total.takeovers;
        assert!(bytes_max < windows * 4 * 1024 * 1024, "{bytes_max} bytes of {bytes} were under way");
        for theater in [here, there, third] {
            theater.shutdown().unwrap();
        }
    }
}

// GUARANTEE: A slow reader slows the writer
#[test]
fn large_messages_that_wait_behind_a_full_window_do_not_grow_with_what_is_sent() {
    const WRITERS: usize = 16;
    const EACH: u64 = 400;
    const CHUNK_BYTES: usize = 64 * 1024;
    const TURN: u64 = 2;
    /// The number of messages that are not written yet, and its maximum.
    static WAITING: AtomicU64 = AtomicU64::new(0);
    static WAITING_MAX: AtomicU64 = AtomicU64::new(0);

    /// Counts as a message until it is written.
    #[derive(Default)]
    struct Waits(bool);
    impl Waits {
        fn new() -> Waits {
            let waiting = WAITING.fetch_add(1, Ordering::Relaxed) + 1;
            WAITING_MAX.fetch_max(waiting, Ordering::Relaxed);
            Waits(true)
        }
    }
    impl Drop for Waits {
        fn drop(&mut self) {
            WAITING.fetch_sub(u64::from(self.0), Ordering::Relaxed);
        }
    }

    #[derive(Serialize, Deserialize)]
    struct Chunk {
        by: usize,
        n: u64,
        bytes: Vec<u8>,
        #[serde(skip)]
        _waits: Waits,
    }
    impl Message for Chunk {
        type Reply = ();
        const WIRE: Option<WireForm<Chunk>> = Some(WireForm::of());
    }
    #[derive(Serialize, Deserialize)]
    struct Handled;
    impl Message for Handled {
        type Reply = u64;
        const WIRE: Option<WireForm<Handled>> = Some(WireForm::of());
    }
    #[derive(Serialize, Deserialize)]
    struct Slow {
        came: Vec<u64>,
    }
    impl Actor for Slow {}
    impl Handler<Chunk> for Slow {
        fn handle(&mut self, chunk: Chunk, _: &mut Context<Self>) {
            assert_eq!(
                (chunk.n, chunk.bytes.len()),
                (self.came[chunk.by], CHUNK_BYTES),
                "lost, repeated or out of order"
            );
            self.came[chunk.by] += 1;
            work(Duration::from_micros(200));
        }
    }
    impl Handler<Handled> for Slow {
        fn handle(&mut self, _: Handled, _: &mut Context<Self>) -> u64 {
            self.came.iter().sum()
        }
    }
    remote!(spawn Slow: Chunk, Handled);

    struct Writer {
        number: usize,
        to: ActorRef<Slow>,
        sent: u64,
    }
    struct More;
    impl Message for More {
        type Reply = ();
    }
    impl Actor for Writer {}
    impl Handler<More> for Writer {
        fn handle(&mut self, _: More, ctx: &mut Context<Self>) {
            for _ in 0..TURN {
                let bytes = vec![1; CHUNK_BYTES];
                self.to.tell(Chunk { by: self.number, n: self.sent, bytes, _waits: Waits::new() });
                self.sent += 1;
            }
            if self.sent < EACH {
                ctx.this().tell(More);
            }
        }
    }

    // The bound is one window, plus the messages that each sender has sent in the turn in which the window was full. It counts
    // twice: the window stays full until the waiting messages are written, and some come again before the window is full. While
    // the link's stage is parked because its thread lost the processor, more messages come. Other workers than the link's write,
    // too. The link's worker is overloaded once 256 messages have waited for some time, and all messages sent in that time come.
    // The bound with 2 workers is therefore a part of all messages.
    let window = 4 * 1024 * 1024 / CHUNK_BYTES as u64;
    let most = 2 * (window + WRITERS as u64 * TURN);
    for (workers, most) in [(1, most), (2, WRITERS as u64 * EACH / 2)] {
        let here = builder().system(System::builder().workers(workers)).start().unwrap();
        let there = theater();
        let peer = here.connect(there.address().unwrap()).unwrap();
        let to = here.spawn_at(&peer, &Slow { came: vec![0; WRITERS] }).unwrap();
        for number in 0..WRITERS {
            here.system().spawn(Writer { number, to, sent: 0 }).tell(More);
        }
        here.system().run_until_idle();
        assert_eq!(to.ask(Handled).wait(), Ok(WRITERS as u64 * EACH));
        let max = WAITING_MAX.swap(0, Ordering::Relaxed);
        let most = most + 1_000 * here.system().stats().total.takeovers;
        assert!(max <= most, "{max} of {} waited; {most} may", WRITERS as u64 * EACH);
        for theater in [here, there] {
            let total = theater.system().stats().total;
            assert_eq!((total.dead_letters, total.crashes), (0, 0));
            theater.shutdown().unwrap();
        }
    }
}
