//! The toolbox with several theaters: routers and the receptionist treat remote actors like local ones, and their disks
//! are slow.

mod support;

use std::time::Duration;

use playhouse::Simulation;
use playhouse::prelude::*;
use playhouse::receptionist::{Find, Receptionist, Register};
use playhouse::resource::ResourcePool;
use playhouse::router::{Router, Routing};
use support::finishes;

#[derive(Default)]
struct Teller {
    served: u64,
}

#[actor(remote = "toolbox_abroad.Teller")]
impl Teller {
    #[message(derive(Clone))]
    fn serve(&mut self) -> u64 {
        self.served += 1;
        self.served
    }

    #[message]
    fn close(&mut self, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}

// GUARANTEE: Routers track their members
#[test]
fn actors_of_another_theater_are_members_until_they_end() {
    finishes(|| {
        let theater = || Theater::builder().listen("127.0.0.1:0").system(System::builder().workers(1)).start().unwrap();
        let (here, there) = (theater(), theater());
        there.publish("teller", there.system().spawn(Teller::default())).unwrap();
        let address = there.address().unwrap();
        let theirs = here.find::<Teller>(&format!("playhouse://{address}/teller")).wait().unwrap();
        let mine = here.system().spawn(Teller::default());
        let receptionist = here.system().spawn(Receptionist::new());
        for routing in [Routing::RoundRobin, Routing::LeastLoaded] {
            let router = Router::new(here.system(), routing);
            for teller in [theirs, mine] {
                router.add(teller);
                receptionist.tell(Register::new("tellers", teller));
            }
            let before = [theirs, mine].map(|teller| teller.ask(Serve).wait().unwrap());
            for _ in 0..10 {
                router.pick().unwrap().tell(Serve);
            }
            for _ in 0..10 {
                assert!(router.pick().unwrap().ask(Serve).wait().is_ok());
            }
            let answers = router.ask_all(Serve).unwrap().all().wait();
            let served: u64 = answers.iter().map(|(_, answer)| answer.clone().unwrap()).sum();
            assert_eq!(served, before.iter().sum::<u64>() + 22, "none was lost");
        }
        let router = Router::new(here.system(), Routing::RoundRobin);
        router.add(theirs);
        let find = || receptionist.ask(Find::<Teller>::new("tellers")).wait().unwrap();
        assert_eq!(find(), [theirs, mine]);
        // The watchers get the notice of the end over the link.
        theirs.tell(Close);
        while router.pick().is_ok() || find() != [mine] {
            std::thread::yield_now();
        }
        for theater in [here, there] {
            theater.shutdown().unwrap();
        }
    });
}

struct Library {
    pool: ResourcePool,
    lent: u64,
}

#[actor(remote = "toolbox_abroad.Library")]
impl Library {
    /// The number of the fetch; `u64::MAX` before the first fetch.
    #[message]
    async fn lend(&mut self) -> u64 {
        self.lent += 1;
        let number = self.lent;
        self.pool.run(move |_| number).await.unwrap_or(u64::MAX)
    }
}

// GUARANTEE: Slow disks can be simulated
#[test]
fn a_disk_of_a_simulated_theater_is_slow_and_stalls_under_every_seed() {
    let (mut in_time, mut too_late) = (0, 0);
    for seed in 0..1000 {
        let net = Simulation::new(seed);
        let [here, there] = [(); 2].map(|()| net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap());
        let pool = ResourcePool::start(there.system(), 1, 10).unwrap();
        pool.simulate_times(Duration::from_secs(1), Duration::from_secs(2));
        pool.simulate_stalls(4, Duration::from_secs(20));
        there.publish("library", there.system().spawn(Library { pool: pool.clone(), lent: 0 })).unwrap();
        let library = format!("playhouse://{}/library", there.address().unwrap());
        let library = here.find::<Library>(&library).wait().unwrap();
        // Connections break and are made again while the actors work.
        net.break_by_chance(Duration::from_secs(1));
        let began = net.now();
        match library.ask(Lend).within(Duration::from_secs(10)).wait() {
            Ok(number) => {
                assert!(number == 1 && net.now() - began >= Duration::from_secs(1), "seed {seed}");
                in_time += 1;
            }
            Err(AskError::Deadline { .. }) => too_late += 1,
            Err(error) => panic!("seed {seed}: {error}"),
        }
        net.calm();
        pool.simulate_stalls(0, Duration::ZERO);
        assert_eq!(library.ask(Lend).wait(), Ok(2), "seed {seed}");
    }
    assert!(in_time > 600 && too_late > 150, "{in_time} in time, {too_late} too late");
}

/// Has its work done by the pool of its current theater.
#[derive(Default, playhouse::serde::Serialize, playhouse::serde::Deserialize)]
#[serde(crate = "playhouse::serde")]
struct Clerk {
    moves: u64,
    #[serde(skip)]
    pool: Option<ResourcePool>,
}

#[actor(mobile, remote = "toolbox_abroad.Clerk")]
impl Clerk {
    #[started]
    #[migrated]
    fn settle_in(&mut self, ctx: &mut Context<Self>) {
        self.moves += 1;
        self.pool = ctx.system().service::<ResourcePool>().map(|pool| (*pool).clone());
    }

    #[message]
    async fn work(&self) -> (u64, String) {
        let pool = self.pool.clone().expect("each theater provides one before it listens");
        let thread = pool.run(|_| std::thread::current().id()).await.unwrap();
        (self.moves, format!("{thread:?}"))
    }

    /// Answers after its go-ahead, in the theater where it then lives.
    #[message(reentrant)]
    fn errand(&mut self, number: u64, gate: ActorRef<Gate>) -> impl Future<Output = (u64, Option<u64>)> + Send + use<> {
        async move { (number, gate.ask(Pass(number)).await.ok()) }
    }

    #[message]
    fn go(&mut self, to: std::net::SocketAddr, ctx: &mut Context<Self>) {
        ctx.migrate_to(to);
    }
}

/// Lets each request wait until its number is named.
#[derive(Default)]
struct Gate {
    waiting: Vec<(u64, Reply<u64>)>,
}

#[actor(remote = "toolbox_abroad.Gate")]
impl Gate {
    #[message]
    fn pass(&mut self, number: u64, reply: Reply<u64>) {
        self.waiting.push((number, reply));
    }

    #[message]
    fn open(&mut self, number: u64) -> bool {
        let at = self.waiting.iter().position(|(waiting, _)| *waiting == number);
        at.map(|at| self.waiting.swap_remove(at).1.send(number * 2)).is_some()
    }
}

// GUARANTEE: Reentrant handlers
#[test]
fn a_reentrant_request_is_answered_though_its_actor_has_left_and_though_others_are_answered_before() {
    finishes(|| {
        let theater = || Theater::builder().listen("127.0.0.1:0").system(System::builder().workers(1)).start().unwrap();
        let (here, there) = (theater(), theater());
        let gate = here.system().spawn(Gate::default());
        let clerk = here.system().spawn(Clerk::default());
        clerk.tell(Go(there.address().unwrap()));
        let ask = |number| std::thread::spawn(move || clerk.ask(Errand(number, gate)).wait());
        let asked: Vec<_> = (1..=10).map(ask).collect();
        let open = |number| {
            while gate.ask(Open(number)).wait() != Ok(true) {
                std::thread::yield_now();
            }
        };
        (6..=10).for_each(open);
        // The other requests began in either theater, and the actor comes back before their end.
        clerk.tell(Go(here.address().unwrap()));
        let asked: Vec<_> = asked.into_iter().chain([ask(11)]).collect();
        (1..=5).chain([11]).for_each(open);
        let answers = asked.into_iter().map(|asked| asked.join().unwrap());
        assert!(answers.zip(1..).all(|(answer, number)| answer == Ok((number, Some(number * 2)))));
        for theater in [here, there] {
            theater.shutdown().unwrap();
        }
    });
}

// GUARANTEE: Services
#[test]
fn a_mobile_actor_finds_the_pool_of_each_theater_that_it_comes_to() {
    finishes(|| {
        let theater = || {
            let system = System::builder().workers(1).on_start(|system| {
                system.provide(ResourcePool::start(system, 1, 10)?);
                Ok(())
            });
            Theater::builder().listen("127.0.0.1:0").system(system).start().unwrap()
        };
        let (here, there) = (theater(), theater());
        let clerk = here.system().spawn(Clerk::default());
        let mut threads = Vec::new();
        for round in 0..4 {
            let thread = loop {
                // It leaves soon after the message.
                match clerk.ask(Work).wait().unwrap() {
                    (moves, thread) if moves == round + 1 => break thread,
                    (moves, _) => assert_eq!(moves, round),
                }
            };
            threads.push(thread);
            let to = if round % 2 == 0 { &there } else { &here };
            clerk.tell(Go(to.address().unwrap()));
        }
        assert_eq!((&threads[0], &threads[1]), (&threads[2], &threads[3]), "each theater has its own pool");
        assert_ne!(threads[0], threads[1]);
        for theater in [here, there] {
            theater.shutdown().unwrap();
        }
    });
}

/// Its state cannot be written, and therefore it stays.
#[derive(Default, playhouse::serde::Serialize, playhouse::serde::Deserialize)]
#[serde(crate = "playhouse::serde")]
struct Rooted {
    #[serde(serialize_with = "no_form")]
    root: u32,
    #[serde(skip)]
    stays: u32,
    #[serde(skip)]
    begun: u32,
}

fn no_form<S: playhouse::serde::Serializer>(_: &u32, _: S) -> Result<S::Ok, S::Error> {
    Err(playhouse::serde::ser::Error::custom("a root has no form"))
}

#[actor(mobile, remote = "toolbox_abroad.Rooted")]
impl Rooted {
    #[message(local, name = "RootedGo")]
    fn go(&mut self, to: std::net::SocketAddr, ctx: &mut Context<Self>) {
        ctx.migrate_to(to);
    }

    #[migration_failed]
    fn stay(&mut self, _: MigrateError) {
        self.stays += 1;
    }

    #[message(local, name = "Stays")]
    fn stays(&self) -> u32 {
        self.stays
    }

    #[message(local, name = "HasBegun")]
    fn begun(&self) -> u32 {
        self.begun
    }

    #[message(local, reentrant)]
    fn wait_for_ever(&mut self) -> impl Future<Output = u32> + Send + use<> {
        self.begun += 1;
        std::future::pending()
    }
}

// GUARANTEE: Reentrant handlers
#[test]
fn an_actor_that_was_to_move_and_stays_keeps_its_futures_until_it_is_killed() {
    finishes(|| {
        let theater = || Theater::builder().listen("127.0.0.1:0").system(System::builder().workers(1)).start().unwrap();
        let (here, there) = (theater(), theater());
        let rooted = here.system().spawn(Rooted::default());
        let asked = std::thread::spawn(move || rooted.ask(WaitForEver).wait());
        while rooted.ask(HasBegun).wait() != Ok(1) {
            std::thread::yield_now();
        }
        rooted.tell(RootedGo(there.address().unwrap()));
        while rooted.ask(Stays).wait() != Ok(1) {
            std::thread::yield_now();
        }
        rooted.kill();
        assert_eq!(asked.join().unwrap(), Err(AskError::Stopped));
        for theater in [here, there] {
            theater.shutdown().unwrap();
        }
    });
}
