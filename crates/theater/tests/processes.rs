//! The guarantees of links if a process is killed. The other process is this program, started again.
#![cfg(unix)]

mod support;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use playhouse_actor::wire::WireForm;
use playhouse_actor::*;
use playhouse_theater::Theater;
use serde::{Deserialize, Serialize};
use support::LIMIT;

/// The address that the other process is to listen at.
const LISTEN: &str = "PLAYHOUSE_TEST_LISTENS";

/// Counts, and reports the count now and then.
#[derive(Serialize, Deserialize)]
struct Sink {
    came: Vec<u64>,
}

#[derive(Serialize, Deserialize)]
struct Item {
    by: usize,
    n: u64,
    counts: Option<ActorRef<Clerk>>,
    padding: Vec<u8>,
}
impl Message for Item {
    type Reply = ();
    const WIRE: Option<WireForm<Item>> = Some(WireForm::of());
}

#[derive(Serialize, Deserialize)]
struct Count;
impl Message for Count {
    type Reply = u64;
    const WIRE: Option<WireForm<Count>> = Some(WireForm::of());
}

/// A message that is never answered.
#[derive(Serialize, Deserialize)]
struct Riddle(ActorRef<Clerk>);
impl Message for Riddle {
    type Reply = u64;
    const WIRE: Option<WireForm<Riddle>> = Some(WireForm::of());
}

#[derive(Serialize, Deserialize)]
struct Stuck;

impl Actor for Sink {}
impl Handler<Item> for Sink {
    fn handle(&mut self, item: Item, _: &mut Context<Self>) {
        assert_eq!(item.n, self.came[item.by], "lost, repeated or out of order");
        self.came[item.by] += 1;
        let until = Instant::now() + Duration::from_micros(20);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        if let Some(clerk) = item.counts {
            clerk.tell(Handled(self.came.iter().sum()));
        }
    }
}
impl Handler<Count> for Sink {
    fn handle(&mut self, _: Count, _: &mut Context<Self>) -> u64 {
        self.came.iter().sum()
    }
}
impl Actor for Stuck {}
impl Handler<Riddle> for Stuck {
    fn handle(&mut self, Riddle(clerk): Riddle, _: &mut Context<Self>) -> u64 {
        clerk.tell(Handled(0));
        loop {
            std::thread::park();
        }
    }
}
remote!(Sink: Item, Count);
remote!(spawn Stuck: Riddle);

/// Receives the counts of the sink.
struct Clerk(mpsc::Sender<u64>);
#[derive(Serialize, Deserialize)]
struct Handled(u64);
impl Message for Handled {
    type Reply = ();
    const WIRE: Option<WireForm<Handled>> = Some(WireForm::of());
}
impl Actor for Clerk {}
impl Handler<Handled> for Clerk {
    fn handle(&mut self, Handled(n): Handled, _: &mut Context<Self>) {
        // At the end of the test the receiver is gone.
        let _ = self.0.send(n);
    }
}
remote!(Clerk: Handled);

/// Writes as fast as possible.
struct Writer {
    number: usize,
    to: ActorRef<Sink>,
    clerk: ActorRef<Clerk>,
    sent: u64,
}
struct More;
impl Message for More {
    type Reply = ();
}
const WRITERS: usize = 8;
const EACH: u64 = 20_000;

impl Actor for Writer {}
impl Handler<More> for Writer {
    fn handle(&mut self, _: More, ctx: &mut Context<Self>) {
        for _ in 0..100 {
            let counts = self.sent.is_multiple_of(50).then_some(self.clerk);
            self.to.tell(Item { by: self.number, n: self.sent, counts, padding: vec![1; 500] });
            self.sent += 1;
        }
        if self.sent < EACH {
            ctx.this().tell(More);
        }
    }
}

/// Receives the ends of the actors that it watches.
struct Witness(mpsc::Sender<StopReason>, ActorRef<Sink>, ActorRef<Stuck>);
impl Actor for Witness {
    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.watch(self.1);
        ctx.watch(self.2);
    }
    fn terminated(&mut self, terminated: Terminated, _: &mut Context<Self>) {
        self.0.send(terminated.reason).unwrap();
    }
}

/// No test: the other process, if this program is started as one.
#[test]
fn the_other_process() {
    let Ok(address) = std::env::var(LISTEN) else { return };
    let theater = support::builder().listen(address).start().unwrap();
    theater.publish("sink", theater.system().spawn(Sink { came: vec![0; WRITERS] })).unwrap();
    println!("\nlistening at {}", theater.address().unwrap());
    // It runs until the parent ends, or it is killed.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    std::process::exit(0);
}

struct Other {
    process: Child,
    address: String,
}

impl Other {
    fn start(listen: &str) -> Other {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "the_other_process", "--nocapture"]).env(LISTEN, listen);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let address = lines.find_map(|line| line.unwrap().strip_prefix("listening at ").map(str::to_owned));
        Other { process, address: address.expect("it says where it listens") }
    }

    /// Sends a signal; `kill` is SIGKILL.
    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").args([name, &self.process.id().to_string()]).status().unwrap();
        assert!(status.success(), "{name} was not sent");
    }

    /// Stops the process until the signal to continue; its clock jumps at that moment.
    fn stand_still(&self) {
        self.signal("-STOP");
        loop {
            let state =
                Command::new("ps").args(["-o", "state=", "-p", &self.process.id().to_string()]).output().unwrap();
            if String::from_utf8_lossy(&state.stdout).trim_start().starts_with('T') {
                return;
            }
            std::thread::yield_now();
        }
    }

    fn go_on(&self) {
        self.signal("-CONT");
    }

    fn sink(&self, from: &Theater) -> ActorRef<Sink> {
        from.find::<Sink>(&format!("playhouse://{}/sink", self.address)).wait().unwrap()
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _it_has_ended = self.process.kill();
        let _ = self.process.wait();
    }
}

// GUARANTEE: A lost theater is reported
// GUARANTEE: A restarted theater is another one
#[test]
fn a_theater_that_is_killed_under_load_is_lost_and_its_successor_is_another_one() {
    let here = support::builder().lost_after(Duration::from_millis(500)).start().unwrap();
    // Another theater, which is not affected.
    let third = support::theater();
    let third_peer = here.connect(third.address().unwrap()).unwrap();
    let mut other = Other::start("127.0.0.1:0");
    let sink = other.sink(&here);
    let peer = here.connect(&other.address).unwrap();
    let stuck = here.spawn_at(&peer, &Stuck).unwrap();
    let (counts, handled) = mpsc::channel();
    let clerk = here.system().spawn(Clerk(counts));
    let riddle = std::thread::spawn(move || stuck.ask(Riddle(clerk)).wait());
    assert_eq!(handled.recv_timeout(LIMIT), Ok(0));
    let (out, reasons) = mpsc::channel();
    here.system().spawn(Witness(out, sink, stuck));

    for number in 0..WRITERS {
        here.system().spawn(Writer { number, to: sink, clerk, sent: 0 }).tell(More);
    }
    let total = WRITERS as u64 * EACH;
    let mut known = 0;
    while known < total / 10 || here.system().stats().total.mutes == 0 {
        known = known.max(handled.recv_timeout(LIMIT).expect("the sink counts"));
    }
    other.kill();

    assert_eq!(riddle.join().unwrap(), Err(AskError::TheaterLost { may_have_run: true }));
    for _ in 0..2 {
        assert_eq!(reasons.recv_timeout(LIMIT), Ok(StopReason::TheaterLost));
    }
    assert!(peer.is_lost());
    let error = sink.ask(Count).wait().unwrap_err();
    assert!(matches!(error, AskError::TheaterLost { may_have_run: false } | AskError::Stopped), "{error:?}");
    // Muted senders continue.
    here.system().run_until_idle();
    known = known.max(handled.try_iter().max().unwrap_or(0));
    // Each message was acknowledged or is reported. The acknowledged ones were handled, or waited in the killed process.
    let reported = here.system().stats().total.dead_letters;
    let acknowledged = total.checked_sub(reported).expect("no more is reported than was sent");
    let waited_max = 16 * 1024 * 1024 / 500;
    assert!(acknowledged <= known + waited_max, "{acknowledged} of {total} acknowledged, and {known} handled");

    let other = Other::start(&other.address);
    sink.tell(Item { by: 0, n: 0, counts: None, padding: Vec::new() });
    assert!(sink.ask(Count).wait().is_err());
    assert!(stuck.ask(Riddle(clerk)).wait().is_err());
    let successor = other.sink(&here);
    assert_ne!(successor, sink);
    assert_eq!(successor.ask(Count).wait(), Ok(0), "an old reference reached the new one");
    successor.tell(Item { by: 0, n: 0, counts: None, padding: Vec::new() });
    assert_eq!(successor.ask(Count).wait(), Ok(1));
    assert!(!third_peer.is_lost());
    here.shutdown().unwrap();
    third.shutdown().unwrap();
}

// GUARANTEE: A paused process does not declare its peers lost
#[test]
fn a_process_that_stands_still_for_a_while_loses_and_repeats_nothing() {
    let here = support::builder().start().unwrap();
    let other = Other::start("127.0.0.1:0");
    let sink = other.sink(&here);
    let (counts, handled) = mpsc::channel();
    let clerk = here.system().spawn(Clerk(counts));
    for number in 0..WRITERS {
        here.system().spawn(Writer { number, to: sink, clerk, sent: 0 }).tell(More);
    }
    let total = WRITERS as u64 * EACH;
    for part in 1..5 {
        let mut known = 0;
        while known < part * total / 5 {
            known = known.max(handled.recv_timeout(LIMIT).expect("the sink counts"));
        }
        other.stand_still();
        // Its earlier counts are received, and nothing after that.
        while handled.recv_timeout(Duration::from_millis(300)).is_ok() {}
        other.go_on();
    }
    here.system().run_until_idle();
    assert_eq!(sink.ask(Count).wait(), Ok(total));
    here.shutdown().unwrap();
}

// GUARANTEE: A paused process does not declare its peers lost
#[test]
fn a_process_that_stands_still_for_too_long_is_lost_and_reached_again_as_the_same() {
    let here = support::builder().lost_after(Duration::from_millis(200)).start().unwrap();
    let other = Other::start("127.0.0.1:0");
    let sink = other.sink(&here);
    let item = |n| Item { by: 0, n, counts: None, padding: Vec::new() };
    sink.tell(item(0));
    assert_eq!(sink.ask(Count).wait(), Ok(1));
    let peer = here.connect(&other.address).unwrap();
    other.stand_still();
    // The process does not answer in time: an ask to it ends with an error, and must not be handled twice later.
    let error = sink.ask(Count).wait().unwrap_err();
    assert!(matches!(error, AskError::TheaterLost { .. }), "{error:?}");
    assert!(peer.is_lost());
    other.go_on();
    let again = other.sink(&here);
    again.tell(item(1));
    assert_eq!(again.ask(Count).wait(), Ok(2));
    here.shutdown().unwrap();
}
