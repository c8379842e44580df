//! Theaters with systems that askers run.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use playhouse::prelude::*;
use playhouse::serde::{Deserialize, Serialize};

mod support;
use support::{LIMIT, finishes};

/// Computes for a moment.
struct Spinner;

#[actor]
impl Spinner {
    #[message]
    fn spin(&mut self) {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_micros(10) {
            std::hint::spin_loop();
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(crate = "playhouse::serde")]
struct Mover {
    moves: u64,
}

#[actor(remote = "askers_theaters.Mover", mobile)]
impl Mover {
    /// Migrates, and gives the spinners more work than an asker runs.
    #[message(local)]
    fn go(&mut self, to: SocketAddr, spinners: Vec<ActorRef<Spinner>>, ctx: &mut Context<Self>) {
        for _ in 0..6 {
            spinners.iter().for_each(|spinner| spinner.tell(Spin));
        }
        self.moves += 1;
        ctx.migrate_to(to);
    }

    #[message]
    fn thread(&self) -> String {
        thread::current().name().unwrap_or_default().to_owned()
    }
}

#[test]
fn a_workers_thread_writes_mail_of_askers_and_migrates_actors() {
    finishes(|| {
        let theater = |lends| {
            let system = System::builder().workers(2).run_by_askers(lends);
            Theater::builder().listen("127.0.0.1:0").system(system).start().unwrap()
        };
        let (here, there) = (theater(true), theater(false));
        let to = there.address().unwrap();
        here.connect(to).unwrap();
        let spinners: Vec<_> = (0..8).map(|_| here.system().spawn(Spinner)).collect();
        let of_there = there.system().spawn(Mover { moves: 0 }).ask(Thread).wait().unwrap();
        let of_there = &of_there[..=of_there.rfind('-').unwrap()];
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for _ in 0..100 {
            let mover = here.system().spawn(Mover { moves: 0 });
            here.system().run_until_idle();
            runtime.block_on(mover.ask(Go(to, spinners.clone()))).unwrap();
            // The ask blocks, and therefore runs no worker.
            let is_there = || mover.ask(Thread).within(LIMIT / 4).wait().unwrap().starts_with(of_there);
            while !is_there() {
                thread::yield_now();
            }
        }
        here.shutdown_within(LIMIT).unwrap();
        there.shutdown_within(LIMIT).unwrap();
    });
}
