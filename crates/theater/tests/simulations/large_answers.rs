//! Two theaters that flood each other with asks for large answers, under many seeds. All are answered. The waiting bytes of each
//! link are bounded by its window and one answer of each stage.

use std::cell::RefCell;

use playhouse_actor::wire::WireForm;
use playhouse_actor::*;
use playhouse_theater::{Peer, Simulation, Theater};
use serde::{Deserialize, Serialize};

const WINDOW: usize = 4_096;
const STAGES: usize = 8;
const ASKERS: usize = 4;
/// Number of asks of each asker, all at once.
const EACH: usize = 100;
const ANSWER_BYTES: usize = 2_000;
/// The window, once more for messages waiting for it, and one answer of each stage with its frames.
const BYTES_MAX: usize = 2 * WINDOW + (STAGES + 1) * (ANSWER_BYTES + 100);

thread_local! {
    /// The measured peers, and the most bytes that waited for one of them. A simulation is one thread.
    static MEASURED: RefCell<(Vec<Peer>, usize)> = const { RefCell::new((Vec::new(), 0)) };
    static ANSWERED: RefCell<usize> = const { RefCell::new(0) };
}

fn measure() {
    MEASURED.with_borrow_mut(|(peers, most)| {
        *most = peers.iter().map(|peer| peer.state().bytes).fold(*most, usize::max);
    });
}

#[derive(Serialize, Deserialize)]
struct Get;
impl Message for Get {
    type Reply = Vec<u8>;
    const WIRE: Option<WireForm<Get>> = Some(WireForm::of());
}

/// Gives long answers.
#[derive(Serialize, Deserialize)]
struct Store;
impl Actor for Store {}
impl Handler<Get> for Store {
    fn handle(&mut self, _: Get, _: &mut Context<Self>) -> Vec<u8> {
        measure();
        vec![7; ANSWER_BYTES]
    }
}
remote!(spawn Store: Get);

struct Asker(ActorRef<Store>);
impl Actor for Asker {
    fn started(&mut self, ctx: &mut Context<Self>) {
        for _ in 0..EACH {
            ctx.ask(self.0, Get).then(|_, answer, _| {
                assert_eq!(answer.unwrap().len(), ANSWER_BYTES);
                measure();
                ANSWERED.with_borrow_mut(|answered| *answered += 1);
            });
        }
    }
}

fn run(seed: u64) -> usize {
    ANSWERED.set(0);
    let net = Simulation::new(seed);
    let theaters = [(); 2].map(|()| {
        let system = System::builder().workers(2).stages(STAGES);
        net.theater(Theater::builder().listen("127.0.0.1:0").system(system).window(WINDOW)).unwrap()
    });
    let [here, there] = &theaters;
    let peers = [(here, there), (there, here)].map(|(from, to)| from.connect(to.address().unwrap()).unwrap());
    MEASURED.set((peers.to_vec(), 0));
    for (theater, peer) in theaters.iter().zip(&peers) {
        for _ in 0..ASKERS {
            let store = theater.spawn_at(peer, &Store).unwrap();
            theater.system().spawn(Asker(store));
        }
    }
    net.run_until_idle();
    let (_peers, most) = MEASURED.take();
    assert_eq!(ANSWERED.take(), 2 * ASKERS * EACH, "seed {seed}: not all were answered");
    most
}

// GUARANTEE: Mail that waits for a theater is bounded
#[test]
fn all_are_answered_and_what_waits_is_bounded_under_every_seed() {
    for seed in 0..20 {
        let most = run(seed);
        assert!(most > WINDOW, "seed {seed}: the window was never full");
        assert!(most <= BYTES_MAX, "seed {seed}: {most} bytes waited, more than {BYTES_MAX}");
    }
}
