//! The guarantees of links if connections break, theaters end, and readers are slow.

use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use crate::faulty::{Between, Fault, eventually};
use crate::numbers::{Asker, Echo, Number, Seen, exchange, over_cuts};
use crate::support::{LIMIT, theater};
use playhouse_actor::wire::WireForm;
use playhouse_actor::*;
use playhouse_theater::{Theater, TheaterError};
use serde::{Deserialize, Serialize};

// GUARANTEE: Order and delivery over broken connections
#[test]
fn cut_connections_lose_repeat_and_reorder_nothing() {
    for seed in 0..4 {
        over_cuts(theater(), theater(), seed);
    }
}

// GUARANTEE: Order and delivery over broken connections
/// Neither end gets a notice: the silence of the connection is the only sign.
#[test]
fn connections_that_fall_silent_are_replaced_and_lose_nothing() {
    let (here, there) = (theater(), theater());
    let between = Between::new(there.address().unwrap(), 1, Fault::FirstFallsSilent(1_000_000));
    let faults = between.counter();
    exchange(here, there, between, 4, 20_000);
    assert!(faults.load(Ordering::Relaxed) > 0, "nothing fell silent");
}

// GUARANTEE: Order and delivery over broken connections
#[test]
fn late_bytes_in_small_pieces_are_not_lost_repeated_or_reordered() {
    for seed in 0..2 {
        let (here, there) = (theater(), theater());
        let between = Between::new(there.address().unwrap(), seed, Fault::Late);
        let late = between.counter();
        exchange(here, there, between, 4, 2_000);
        let late = late.load(Ordering::Relaxed);
        assert!(late > 5, "only {late} came late");
    }
}

// GUARANTEE: A lost theater is reported
#[test]
fn asks_and_watches_are_told_that_a_theater_is_lost() {
    struct Watcher(mpsc::Sender<StopReason>, ActorRef<Echo>);
    impl Actor for Watcher {
        fn started(&mut self, ctx: &mut Context<Self>) {
            ctx.watch(self.1);
        }
        fn terminated(&mut self, terminated: Terminated, _: &mut Context<Self>) {
            assert_eq!(terminated.who, self.1.id());
            self.0.send(terminated.reason).unwrap();
        }
    }
    let (here, there) = (theater(), theater());
    let peer = here.connect(there.address().unwrap()).unwrap();
    let echo = here.spawn_at(&peer, &Echo { expected: 3 }).unwrap();
    let (out, reasons) = mpsc::channel();
    here.system().spawn(Watcher(out.clone(), echo));
    assert_eq!(echo.ask(Seen).wait(), Ok(3));
    there.shutdown().unwrap();
    let reason = reasons.recv_timeout(LIMIT).unwrap();
    assert!(matches!(reason, StopReason::Shutdown | StopReason::TheaterLost), "{reason:?}");
    let error = echo.ask(Seen).wait().unwrap_err();
    assert!(matches!(error, AskError::TheaterLost { may_have_run: false } | AskError::Stopped), "{error:?}");
    assert!(here.spawn_at(&peer, &Echo { expected: 0 }).is_err());
    here.shutdown().unwrap();
}

// GUARANTEE: A remote actor is used like any other
#[test]
fn the_end_of_an_actor_is_told_over_the_link() {
    struct Watcher(mpsc::Sender<StopReason>, Vec<ActorRef<Echo>>);
    impl Actor for Watcher {
        fn started(&mut self, ctx: &mut Context<Self>) {
            for echo in &self.1 {
                ctx.watch(*echo);
            }
        }
        fn terminated(&mut self, terminated: Terminated, _: &mut Context<Self>) {
            self.0.send(terminated.reason).unwrap();
        }
    }
    let (here, there) = (theater(), theater());
    let peer = here.connect(there.address().unwrap()).unwrap();
    let spawn = || here.spawn_at(&peer, &Echo { expected: 0 }).unwrap();
    let (out, reasons) = mpsc::channel();
    let [stopped, drained, killed, crashed] = [spawn(), spawn(), spawn(), spawn()];
    let (done, _all) = mpsc::channel();
    let asker = here.system().spawn(Asker { to: crashed, sent: 0, came: 0, last: 0, done });
    let watcher = here.system().spawn(Watcher(out, vec![stopped, drained, killed, crashed]));
    here.system().run_until_idle();
    assert!(!watcher.is_stopped());
    let told = || reasons.recv_timeout(LIMIT).unwrap();
    stopped.stop();
    assert_eq!(told(), StopReason::Stopped);
    drained.drain();
    assert_eq!(told(), StopReason::Stopped);
    killed.kill();
    assert_eq!(told(), StopReason::Killed);
    crashed.tell(Number { n: 5, back: asker, padding: Vec::new() });
    let reason = told();
    assert!(matches!(&reason, StopReason::Panicked(why) if why.contains("lost, repeated")), "{reason:?}");
    assert_eq!(stopped.ask(Seen).wait(), Err(AskError::Stopped));
    here.shutdown().unwrap();
    there.shutdown().unwrap();
}

// GUARANTEE: A restarted theater is another one
#[test]
fn a_restarted_theater_is_another_one() {
    let here = theater();
    // Another program may have taken the port since then; in that case another port is tried.
    let (there, address, echo) = eventually(|| {
        let there = theater();
        let address = there.address().unwrap().to_string();
        let peer = here.connect(&address).unwrap();
        let echo = here.spawn_at(&peer, &Echo { expected: 1 }).unwrap();
        assert_eq!(echo.ask(Seen).wait(), Ok(1));
        there.shutdown().unwrap();
        Some((Theater::builder().listen(&*address).start().ok()?, address, echo))
    });
    // The old reference never reaches an actor in the new theater.
    assert!(echo.ask(Seen).wait().is_err());
    let peer = eventually(|| here.connect(&address).ok().filter(|peer| !peer.is_lost()));
    let echo = here.spawn_at(&peer, &Echo { expected: 2 }).unwrap();
    assert_eq!(echo.ask(Seen).wait(), Ok(2));
    here.shutdown().unwrap();
    there.shutdown().unwrap();
}

// GUARANTEE: Rejected peers harm no theater
// GUARANTEE: No network by accident
#[test]
fn rejected_peers_are_refused_with_a_reason() {
    let there = theater();
    let address = there.address().unwrap().to_string();
    let other = Theater::builder().cluster("another").start().unwrap();
    let refused = other.connect(&address).unwrap_err();
    assert!(matches!(&refused, TheaterError::NotMember { why, .. } if why.contains("\"another\"")), "{refused}");
    let itself = there.connect(&address).unwrap_err();
    assert!(matches!(&itself, TheaterError::Refused { why, .. } if why.contains("itself")), "{itself}");
    let refused = other.connect("192.0.2.1:80").unwrap_err();
    assert!(matches!(refused, TheaterError::NotLoopback { .. }), "{refused}");
    let listen = Theater::builder().listen("0.0.0.0:0").start().unwrap_err();
    assert!(matches!(listen, TheaterError::NotLoopback { .. }), "{listen}");
    let simulated = Theater::builder().system(System::builder().simulated(1)).start().unwrap_err();
    assert!(matches!(simulated, TheaterError::System(_)), "{simulated}");
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_address = silent.local_addr().unwrap();
    let web = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = silent.accept().unwrap();
        let mut asked = [0; 10];
        stream.read_exact(&mut asked).unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    });
    let no_theater = other.connect(silent_address).unwrap_err();
    assert!(matches!(&no_theater, TheaterError::Protocol { found, .. } if found.contains("HTTP/1.1")), "{no_theater}");
    web.join().unwrap();
    // Peers that violate the protocol harm nothing.
    use std::io::Write;
    for nonsense in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"playhouse\x02\xff\xff\xff\xff", b"playhouse\x01", b""] {
        std::net::TcpStream::connect(&address).unwrap().write_all(nonsense).unwrap();
    }
    let friend = theater();
    let peer = friend.connect(&address).unwrap();
    assert_eq!(friend.spawn_at(&peer, &Echo { expected: 4 }).unwrap().ask(Seen).wait(), Ok(4));
    for theater in [there, other, friend] {
        theater.shutdown().unwrap();
    }
}

// GUARANTEE: A slow reader slows the writer
#[test]
fn a_slow_reader_slows_the_writer_and_nothing_is_lost() {
    /// Handles messages slowly.
    #[derive(Serialize, Deserialize)]
    struct Slow {
        got: u64,
    }
    #[derive(Serialize, Deserialize)]
    struct Load(u64, Vec<u8>);
    impl Message for Load {
        type Reply = ();
        const WIRE: Option<WireForm<Load>> = Some(WireForm::of());
    }
    #[derive(Serialize, Deserialize)]
    struct Got;
    impl Message for Got {
        type Reply = u64;
        const WIRE: Option<WireForm<Got>> = Some(WireForm::of());
    }
    impl Actor for Slow {}
    impl Handler<Load> for Slow {
        fn handle(&mut self, Load(n, _): Load, _: &mut Context<Self>) {
            assert_eq!(n, self.got);
            self.got += 1;
            let until = std::time::Instant::now() + Duration::from_micros(20);
            while std::time::Instant::now() < until {
                std::hint::spin_loop();
            }
        }
    }
    impl Handler<Got> for Slow {
        fn handle(&mut self, _: Got, _: &mut Context<Self>) -> u64 {
            self.got
        }
    }
    remote!(spawn Slow: Load, Got);

    struct Writer {
        to: ActorRef<Slow>,
        sent: u64,
        last: u64,
    }
    #[derive(Clone)]
    struct More;
    impl Message for More {
        type Reply = ();
    }
    impl Actor for Writer {}
    impl Handler<More> for Writer {
        fn handle(&mut self, _: More, ctx: &mut Context<Self>) {
            for _ in 0..100 {
                if self.sent < self.last {
                    self.to.tell(Load(self.sent, vec![0; 1000]));
                    self.sent += 1;
                }
            }
            if self.sent < self.last {
                ctx.this().tell(More);
            }
        }
    }
    const LAST: u64 = 50_000;
    let (here, there) = (theater(), theater());
    let peer = here.connect(there.address().unwrap()).unwrap();
    let to = here.spawn_at(&peer, &Slow { got: 0 }).unwrap();
    let writer = here.system().spawn(Writer { to, sent: 0, last: LAST });
    writer.tell(More);
    here.system().run_until_idle();
    assert!(here.system().stats().total.mutes > 0, "the writer was never muted");
    assert_eq!(to.ask(Got).wait(), Ok(LAST));
    assert_eq!(here.system().stats().total.dead_letters + there.system().stats().total.dead_letters, 0);
    here.shutdown().unwrap();
    there.shutdown().unwrap();
}

// GUARANTEE: A theater is known by its identity
#[test]
fn a_theater_that_is_called_by_another_address_is_the_same() {
    let (here, there) = (theater(), theater());
    let peer = here.connect(there.address().unwrap()).unwrap();
    let echo = here.spawn_at(&peer, &Echo { expected: 0 }).unwrap();
    assert_eq!(echo.ask(Seen).within(LIMIT).wait(), Ok(0));
    let between = Between::new(there.address().unwrap(), 1, Fault::Cut(1 << 40..1 << 41));
    for _ in 0..2 {
        let again = here.connect(between.address()).unwrap();
        assert_eq!(again.address(), peer.address());
    }
    assert!(!peer.is_lost());
    assert_eq!(echo.ask(Seen).within(LIMIT).wait(), Ok(0));
}

/// A value whose code panics as it is written or read.
struct Brittle {
    written: bool,
    read: bool,
}

impl Serialize for Brittle {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        assert!(!self.written, "it is not written");
        self.read.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Brittle {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        assert!(!bool::deserialize(from)?, "it is not read");
        Ok(Brittle { written: false, read: false })
    }
}

const SOUND: Brittle = Brittle { written: false, read: false };
const NOT_WRITTEN: Brittle = Brittle { written: true, read: false };
const NOT_READ: Brittle = Brittle { written: false, read: true };

/// Is answered with the second value, as the arguments of its constructor say.
#[derive(Serialize, Deserialize)]
struct Exchange(Brittle, (bool, bool));
remote_message!(Exchange -> Brittle);

/// The same, whose handler keeps the `Reply`.
#[derive(Serialize, Deserialize)]
struct ExchangeLater(Brittle, (bool, bool));
remote_message!(ExchangeLater -> Brittle);

struct Exchanges;
impl Actor for Exchanges {}
impl Handler<Exchange> for Exchanges {
    fn handle(&mut self, Exchange(_, (written, read)): Exchange, _: &mut Context<Self>) -> Brittle {
        Brittle { written, read }
    }
}
impl DeferredHandler<ExchangeLater> for Exchanges {
    fn handle(&mut self, message: ExchangeLater, reply: Reply<Brittle>, _: &mut Context<Self>) {
        let ExchangeLater(_, (written, read)) = message;
        reply.send(Brittle { written, read });
    }
}
remote!(spawn Keeps: Exchange);
remote!(Exchanges: Exchange, ExchangeLater);

/// Its state is brittle.
#[derive(Serialize, Deserialize)]
struct Keeps(Brittle);
impl Actor for Keeps {}
impl Handler<Exchange> for Keeps {
    fn handle(&mut self, _: Exchange, _: &mut Context<Self>) -> Brittle {
        SOUND
    }
}

/// Asks in its handlers, and tells the errors.
struct AsksInHandlers(ActorRef<Exchanges>, mpsc::Sender<Result<(), AskError>>);
impl Actor for AsksInHandlers {}
struct Awaits(Exchange);
impl Message for Awaits {
    type Reply = ();
}
struct Continues(Exchange);
impl Message for Continues {
    type Reply = ();
}
impl AsyncHandler<Awaits> for AsksInHandlers {
    async fn handle(&mut self, Awaits(exchange): Awaits, _: &mut Context<Self>) {
        let answer = self.0.ask(exchange).await;
        self.1.send(answer.map(|_| ())).unwrap();
    }
}
impl Handler<Continues> for AsksInHandlers {
    fn handle(&mut self, Continues(exchange): Continues, ctx: &mut Context<Self>) {
        ctx.ask(self.0, exchange).then(|this, answer, _| this.1.send(answer.map(|_| ())).unwrap());
    }
}

/// The message, the arguments of the answer, and the error.
type Case = (fn() -> Brittle, (bool, bool), &'static str);

// GUARANTEE: A panic costs one message
/// No ask ends by its deadline.
#[test]
fn asks_end_with_the_reason_if_their_messages_or_answers_panic_as_they_are_written_or_read() {
    let (here, there) = (theater(), theater());
    there.publish("exchanges", there.system().spawn(Exchanges)).unwrap();
    let known = here.find::<Exchanges>(&format!("playhouse://{}/exchanges", there.address().unwrap())).wait().unwrap();
    let (errors, told) = mpsc::channel();
    let asks = here.system().spawn(AsksInHandlers(known, errors));
    let sound = || (false, false);
    let cases: [Case; 4] = [
        (|| NOT_WRITTEN, sound(), "its `Serialize` panicked"),
        (|| NOT_READ, sound(), "its `Deserialize` panicked"),
        (|| SOUND, (true, false), "its `Serialize` panicked"),
        (|| SOUND, (false, true), "its `Deserialize` panicked"),
    ];
    for (message, answer, why) in cases {
        asks.tell(Awaits(Exchange(message(), answer)));
        asks.tell(Continues(Exchange(message(), answer)));
        let answers = [
            known.ask(Exchange(message(), answer)).within(LIMIT).wait().map(|_| ()),
            known.ask(ExchangeLater(message(), answer)).within(LIMIT).wait().map(|_| ()),
            told.recv_timeout(LIMIT).unwrap(),
            told.recv_timeout(LIMIT).unwrap(),
        ];
        for result in answers {
            let Err(AskError::Unreachable(text)) = &result else { panic!("{why}: {result:?}") };
            assert!(text.contains(why), "{text}");
        }
        assert!(known.ask(Exchange(SOUND, sound())).wait().is_ok(), "the actor and the link go on");
    }
    let peer = here.connect(there.address().unwrap()).unwrap();
    let error = here.spawn_at(&peer, &Keeps(NOT_WRITTEN)).unwrap_err();
    assert_eq!(error.to_string(), "its `Serialize` panicked");
}
