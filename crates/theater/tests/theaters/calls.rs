//! Calls to theaters that cannot be reached: their number of threads, and the time for which they delay others.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::LIMIT;
use playhouse_actor::wire::WireForm;
use playhouse_actor::*;
use playhouse_theater::{LinkState, Simulation, Theater};
use serde::{Deserialize, Serialize};

struct Sink;
struct Holder(Vec<ActorRef<Sink>>);

#[derive(Serialize, Deserialize)]
struct Item;
impl Message for Item {
    type Reply = ();
    const WIRE: Option<WireForm<Item>> = Some(WireForm::of());
}
#[derive(Serialize, Deserialize)]
struct Keep(Vec<ActorRef<Sink>>);
impl Message for Keep {
    type Reply = ();
    const WIRE: Option<WireForm<Keep>> = Some(WireForm::of());
}
#[derive(Serialize, Deserialize)]
struct Give;
impl Message for Give {
    type Reply = Vec<ActorRef<Sink>>;
    const WIRE: Option<WireForm<Give>> = Some(WireForm::of());
}

impl Actor for Sink {}
impl Handler<Item> for Sink {
    fn handle(&mut self, _: Item, _: &mut Context<Self>) {}
}
impl Actor for Holder {}
impl Handler<Keep> for Holder {
    fn handle(&mut self, Keep(sinks): Keep, _: &mut Context<Self>) {
        self.0 = sinks;
    }
}
impl Handler<Give> for Holder {
    fn handle(&mut self, _: Give, _: &mut Context<Self>) -> Vec<ActorRef<Sink>> {
        self.0.clone()
    }
}
remote!(Sink: Item);
remote!(Holder: Keep, Give);

fn holder(from: &Theater, at: &Theater) -> ActorRef<Holder> {
    from.find::<Holder>(&format!("playhouse://{}/holder", at.address().unwrap())).wait().unwrap()
}

/// Returns the number of threads of this process that call.
#[cfg(target_os = "linux")]
fn callers() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    tasks
        .filter(|task| {
            std::fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim_end() == "playhouse-call")
        })
        .count()
}

// GUARANTEE: A theater that is down costs little
#[cfg(target_os = "linux")]
#[test]
fn references_to_a_theater_that_is_down_take_a_bounded_number_of_threads() {
    const SINKS: usize = 400;
    let lost_after = Duration::from_secs(1);
    let [here, middle, far] = [(); 3].map(|()| crate::support::builder().lost_after(lost_after).start().unwrap());
    middle.publish("holder", middle.system().spawn(Holder(Vec::new()))).unwrap();
    let sinks = (0..SINKS).map(|_| far.system().spawn(Sink)).collect();
    holder(&far, &middle).ask(Keep(sinks)).wait().unwrap();
    let sinks = holder(&here, &middle).ask(Give).wait().unwrap();
    far.shutdown().unwrap();
    for sink in sinks {
        sink.tell(Item);
    }
    let (deadline, mut most) = (Instant::now() + LIMIT, 0);
    while here.system().stats().total.dead_letters < SINKS as u64 {
        assert!(Instant::now() < deadline, "the messages wait for ever");
        most = most.max(callers());
    }
    assert!(most < 50, "{most} threads called one theater");
    here.shutdown().unwrap();
    middle.shutdown().unwrap();
}

// GUARANTEE: A theater that is down costs little
#[test]
fn callers_of_a_silent_address_at_the_same_time_wait_as_long_as_one() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let here = crate::support::theater();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| here.connect(address).unwrap_err());
        }
    });
    // One call takes 5 s.
    assert!(begun.elapsed() < Duration::from_secs(16), "it took {:?}", begun.elapsed());
    here.shutdown().unwrap();
}

/// Passes connections on, except for the second one, which is accepted and gets no answer.
fn second_is_silent(to: std::net::SocketAddr) -> (std::net::SocketAddr, Arc<AtomicBool>, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (breaks, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (broken, counted) = (Arc::clone(&breaks), Arc::clone(&calls));
    std::thread::spawn(move || {
        let mut silent = Vec::new();
        for stream in listener.incoming() {
            let Ok(from) = stream else { return };
            let number = counted.fetch_add(1, Ordering::Relaxed) + 1;
            if number == 2 {
                silent.push(from);
                continue;
            }
            let Ok(to) = TcpStream::connect(to) else { return };
            for (mut from, mut to) in
                [(from.try_clone(), to.try_clone()), (Ok(to), Ok(from))].map(|(a, b)| (a.unwrap(), b.unwrap()))
            {
                let broken = Arc::clone(&broken);
                from.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
                std::thread::spawn(move || {
                    use std::io::{ErrorKind, Read, Write};
                    let mut room = [0; 4096];
                    while number > 1 || !broken.load(Ordering::Relaxed) {
                        match from.read(&mut room) {
                            Ok(count @ 1..) if to.write_all(&room[..count]).is_ok() => {}
                            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                            _ => break,
                        }
                    }
                    let _ = to.shutdown(std::net::Shutdown::Both);
                    let _ = from.shutdown(std::net::Shutdown::Both);
                });
            }
        }
    });
    (address, breaks, calls)
}

// GUARANTEE: A link is lost after its time
#[test]
fn a_call_that_hangs_is_made_again_before_the_link_is_lost() {
    let lost_after = Duration::from_secs(3);
    let there = crate::support::theater();
    // It does not listen, and therefore the other end does not call.
    let here = Theater::builder().lost_after(lost_after).start().unwrap();
    let (between, breaks, calls) = second_is_silent(there.address().unwrap());
    let peer = here.connect(between).unwrap();
    breaks.store(true, Ordering::Relaxed);
    let deadline = Instant::now() + LIMIT;
    while calls.load(Ordering::Relaxed) < 3 || peer.state().link != LinkState::Linked {
        assert!(!peer.is_lost(), "the link was lost after {} calls", calls.load(Ordering::Relaxed));
        assert!(Instant::now() < deadline, "{:?}", peer.state());
        std::thread::yield_now();
    }
    assert!(!peer.is_lost());
    here.shutdown().unwrap();
    there.shutdown().unwrap();
}

// GUARANTEE: A theater at an address is the latest
#[test]
fn a_successor_at_the_same_address_is_found_while_the_link_with_its_predecessor_is_not_lost_yet() {
    for seed in 0..8 {
        let net = Simulation::new(seed);
        let here = net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap();
        let former = net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap();
        let address = former.address().unwrap();
        former.connect(here.address().unwrap()).unwrap();
        net.kill(&former);
        let successor = net.theater(Theater::builder().listen(address.to_string())).unwrap();
        successor.publish("holder", successor.system().spawn(Holder(Vec::new()))).unwrap();
        successor.connect(here.address().unwrap()).unwrap();
        assert_eq!(here.peers().len(), 2, "seed {seed}");
        let begun = net.now();
        assert!(holder(&here, &successor).ask(Give).wait().is_ok(), "seed {seed}");
        assert!(net.now() - begun < Duration::from_secs(1), "seed {seed}: it took {:?}", net.now() - begun);
    }
}

// GUARANTEE: A theater at an address is the latest
#[test]
fn a_successor_is_found_though_the_look_up_was_sent_to_its_predecessor() {
    for seed in 0..40 {
        let net = Simulation::new(seed);
        let here = net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap();
        let mut there = net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap();
        let address = there.address().unwrap();
        let former = here.connect(address).unwrap();
        for incarnation in 0..4 {
            net.kill(&there);
            there = net.theater(Theater::builder().listen(address.to_string())).unwrap();
            there.publish("holder", there.system().spawn(Holder(Vec::new()))).unwrap();
            let begun = net.now();
            let found = here.find::<Holder>(&format!("playhouse://{address}/holder")).wait();
            assert!(found.is_ok_and(|holder| holder.ask(Give).wait().is_ok()), "seed {seed}, life {incarnation}");
            assert!(net.now() - begun < Duration::from_secs(6), "seed {seed}: it took {:?}", net.now() - begun);
        }
        assert!(former.is_lost());
    }
}
