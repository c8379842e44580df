//! Routers keep to their strategy, track which members live, and lose nothing.

mod support;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use playhouse::prelude::*;
use playhouse::router::{Pool, Router, Routing};
use support::{Adder, Clock, Do, Increment, Log, Never, Puppet, finishes, on_stage, quiet_panics, simulated, threads};

/// The member that had each job.
type Jobs = Log<(u64, u64)>;

/// Logs the jobs that it gets.
struct Member {
    number: u64,
    log: Jobs,
}

impl Actor for Member {}

#[derive(Message, Clone, Copy)]
struct Job(u64);

impl Handler<Job> for Member {
    fn handle(&mut self, Job(job): Job, _: &mut Context<Self>) {
        self.log.push((self.number, job));
    }
}

#[derive(Message)]
struct End;

impl Handler<End> for Member {
    fn handle(&mut self, _: End, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}

fn group(system: &System, routing: Routing, members: u64) -> (Router<Member>, Vec<ActorRef<Member>>, Jobs) {
    let log = Log::new();
    let router = Router::new(system, routing);
    let members: Vec<_> = (0..members).map(|number| system.spawn(Member { number, log: log.clone() })).collect();
    members.iter().for_each(|member| router.add(*member));
    (router, members, log)
}

/// Counts the jobs of each member.
fn shares(log: &Jobs) -> BTreeMap<u64, usize> {
    let mut shares = BTreeMap::new();
    for (member, _) in log.take() {
        *shares.entry(member).or_default() += 1;
    }
    shares
}

// GUARANTEE: Routers follow their strategy
#[test]
fn round_robin_gives_all_the_same() {
    for seed in 0..20 {
        let system = simulated(seed);
        let (router, _, log) = group(&system, Routing::RoundRobin, 3);
        for job in 0..30 {
            router.pick().unwrap().tell(Job(job));
        }
        system.run_until_idle();
        let mut jobs = log.take();
        jobs.sort_by_key(|(_, job)| *job);
        let expected: Vec<_> = (0..30).map(|job| (job % 3, job)).collect();
        assert_eq!(jobs, expected, "seed {seed}");
    }
}

// GUARANTEE: Routers follow their strategy
#[test]
fn random_reaches_all_and_is_the_same_under_the_same_seed() {
    let run = |seed| {
        let system = simulated(seed);
        let (router, _, log) = group(&system, Routing::Random, 4);
        for job in 0..400 {
            router.pick().unwrap().tell(Job(job));
        }
        system.run_until_idle();
        let mut jobs = log.take();
        jobs.sort_by_key(|(_, job)| *job);
        jobs
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
    let mut shares = [0; 4];
    run(3).iter().for_each(|(member, _)| shares[*member as usize] += 1);
    assert!(shares.iter().all(|share| (60..140).contains(share)), "{shares:?}");
}

// GUARANTEE: Routers follow their strategy
#[test]
fn the_order_of_one_sender_holds_for_each_member() {
    for seed in 0..100 {
        let system = System::builder().workers(3).simulated(seed).start().unwrap();
        let (router, _, log) =
            group(&system, [Routing::RoundRobin, Routing::Random, Routing::LeastLoaded][seed as usize % 3], 3);
        system.spawn(Puppet).tell(Do::this(move |_| {
            for job in 0..50 {
                router.pick().unwrap().tell(Job(job));
            }
        }));
        system.run_until_idle();
        let jobs = log.take();
        assert_eq!(jobs.len(), 50);
        for member in 0..3 {
            let of_one: Vec<_> = jobs.iter().filter(|(who, _)| *who == member).map(|(_, job)| *job).collect();
            assert!(of_one.is_sorted(), "seed {seed}: {of_one:?}");
        }
    }
}

/// Answers when the test opens it.
struct Slow;

#[derive(Message)]
#[message(reply = u64)]
struct Work(Duration);

impl AsyncHandler<Work> for Slow {
    async fn handle(&mut self, Work(time): Work, ctx: &mut Context<Self>) -> u64 {
        let clock = ctx.spawn(Clock);
        let _it_is_late = clock.ask(Never).within(time).await;
        clock.stop();
        1
    }
}

impl Actor for Slow {}

// GUARANTEE: Routers follow their strategy
#[test]
fn the_least_loaded_member_has_the_least_work() {
    for seed in 0..20 {
        let system = simulated(seed);
        let router = Router::new(&system, Routing::LeastLoaded);
        let members = [0, 1, 2].map(|_| system.spawn(Slow));
        members.iter().for_each(|member| router.add(*member));
        // One member has work for 3 minutes. The router gives it no more.
        let busy = {
            let picked = router.pick().unwrap();
            (0..3).for_each(|_| picked.tell(Work(Duration::from_secs(60))));
            *picked
        };
        for _ in 0..20 {
            let picked = router.pick().unwrap();
            assert_ne!(*picked, busy, "seed {seed}");
            assert_eq!(picked.ask(Work(Duration::from_millis(1))).wait(), Ok(1));
        }
        // A member without work is as good as any other.
        system.run_until_idle();
        let turns: HashSet<_> = (0..3).map(|_| *router.pick().unwrap()).collect();
        assert_eq!(turns.len(), 3);
    }
}

// GUARANTEE: Routers follow their strategy
#[test]
fn an_ask_is_load_until_it_is_answered_and_a_tell_until_it_is_handled() {
    let system = simulated(1);
    let router = Router::new(&system, Routing::LeastLoaded);
    let members = [0, 1].map(|_| system.spawn(Adder));
    members.iter().for_each(|member| router.add(*member));
    let first = router.pick().unwrap();
    for _ in 0..5 {
        // The first member is held, and therefore loaded.
        let second = router.pick().unwrap();
        assert_ne!(*second, *first);
        assert_eq!(second.ask(Increment(1)).wait(), Ok(2));
        drop(second);
        system.run_until_idle();
    }
    let loaded = *first;
    drop(first);
    // The member counts as loaded until it has seen the mark.
    assert_ne!(*router.pick().unwrap(), loaded);
    system.run_until_idle();
    let turns: HashSet<_> = (0..2).map(|_| *router.pick().unwrap()).collect();
    assert_eq!(turns.len(), 2);
}

// GUARANTEE: Routers follow their strategy
#[test]
fn equal_keys_go_to_the_same_member_until_that_member_leaves() {
    let system = simulated(1);
    let (router, members, _) = group(&system, Routing::RoundRobin, 5);
    let places = |router: &Router<Member>| (0..1000).map(|key| *router.pick_for(&key).unwrap()).collect::<Vec<_>>();
    let before = places(&router);
    assert_eq!(before, places(&router));
    for member in &members {
        let share = before.iter().filter(|place| *place == member).count();
        assert!((120..280).contains(&share), "{share}");
    }
    assert!(router.remove(members[2]));
    assert!(!router.remove(members[2]));
    let after = places(&router);
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before == after, *before != members[2]);
    }
    // A new member takes keys from the others, and changes nothing else.
    let sixth = system.spawn(Member { number: 5, log: Log::new() });
    router.add(sixth);
    let moved = places(&router);
    assert!(after.iter().zip(&moved).all(|(after, moved)| after == moved || *moved == sixth));
    assert!(moved.contains(&sixth));
    assert_eq!(*router.pick_for("a text").unwrap(), *router.pick_for(&"a text".to_owned()).unwrap());
}

// GUARANTEE: Routers follow their strategy
#[test]
fn a_broadcast_reaches_every_member_once() {
    for seed in 0..20 {
        let system = simulated(seed);
        let (router, members, log) = group(&system, Routing::RoundRobin, 4);
        // A member that was added twice is a member once.
        router.add(members[0]);
        assert_eq!(router.broadcast(Job(7)), Ok(4));
        system.run_until_idle();
        assert_eq!(shares(&log), BTreeMap::from([(0, 1), (1, 1), (2, 1), (3, 1)]));
    }
}

// GUARANTEE: Routers track their members
#[test]
fn an_ended_member_leaves_and_an_empty_router_says_why() {
    for seed in 0..50 {
        let system = simulated(seed);
        let router = Router::<Member>::new(&system, Routing::RoundRobin);
        let error = router.pick().unwrap_err().to_string();
        assert_eq!(error, "the router has no Member to send to: none was added yet");
        let (router, members, log) = group(&system, Routing::LeastLoaded, 2);
        members[0].tell(End);
        system.run_until_idle();
        assert_eq!(router.members(), [members[1]]);
        for job in 0..4 {
            router.pick().unwrap().tell(Job(job));
        }
        system.run_until_idle();
        assert_eq!(shares(&log), BTreeMap::from([(1, 4)]));
        members[1].kill();
        system.run_until_idle();
        let error = router.pick().unwrap_err();
        assert_eq!(
            error.to_string(),
            "the router has no Member to send to: all 2 that were added have ended or were removed"
        );
        assert_eq!(router.pick_for(&1).unwrap_err(), error);
        assert_eq!(router.broadcast(Job(1)), Err(error.clone()));
        assert_eq!(system.stats().total.dead_letters, 0, "seed {seed}");
    }
}

#[test]
fn an_ended_actor_does_not_become_a_member() {
    let system = simulated(3);
    let (router, members, _) = group(&system, Routing::RoundRobin, 1);
    let ended = system.spawn(Member { number: 9, log: Log::new() });
    ended.stop();
    system.run_until_idle();
    router.add(ended);
    assert_eq!(*router.pick().unwrap(), members[0]);
    assert_eq!(*router.pick().unwrap(), members[0]);
    system.run_until_idle();
    assert_eq!(router.members(), members);
}

#[test]
fn scatter_gather_first_takes_the_first_answer() {
    let system = simulated(5);
    let router = Router::new(&system, Routing::RoundRobin);
    let members = [0, 1, 2].map(|_| system.spawn(Slow));
    members.iter().for_each(|member| router.add(*member));
    members[0].tell(Work(Duration::from_secs(5)));
    members[2].tell(Work(Duration::from_secs(3)));
    let first = router.ask_all(Again).unwrap().first(1).wait().unwrap();
    assert_eq!(first, [(members[1], 7)]);
    assert!(system.now() < Duration::from_secs(3));
    assert!(Router::<Slow>::new(&system, Routing::RoundRobin).ask_all(Again).is_err());
}

#[derive(Message, Clone)]
#[message(reply = u64)]
struct Again;

impl Handler<Again> for Slow {
    fn handle(&mut self, _: Again, _: &mut Context<Self>) -> u64 {
        7
    }
}

// -- pools --------------------------------------------------------------------------------------------------------------

fn pool(system: &System, size: usize) -> (Pool<Member>, Arc<AtomicUsize>, Jobs) {
    let (made, log) = (Arc::<AtomicUsize>::default(), Log::new());
    let factory = {
        let (made, log) = (Arc::clone(&made), log.clone());
        move || Member { number: made.fetch_add(1, Ordering::Relaxed) as u64, log: log.clone() }
    };
    (Pool::start(system, Routing::RoundRobin, size, factory), made, log)
}

// GUARANTEE: Routers track their members
#[test]
fn a_pool_replaces_ended_members_and_keys_stay() {
    quiet_panics();
    for seed in 0..50 {
        let system = simulated(seed);
        let (pool, made, log) = pool(&system, 3);
        let places = || (0..50).map(|key| *pool.pick_for(&key).unwrap()).collect::<Vec<_>>();
        let before = places();
        let lost = pool.members()[1];
        lost.tell(End);
        system.run_until_idle();
        assert_eq!(made.load(Ordering::Relaxed), 4);
        let members = pool.members();
        assert_eq!((members.len(), members.contains(&lost)), (3, false), "seed {seed}");
        let successor = members[2];
        for (before, after) in before.iter().zip(&places()) {
            assert_eq!(*after, if *before == lost { successor } else { *before });
        }
        assert_eq!(pool.broadcast(Job(1)), Ok(3));
        system.run_until_idle();
        assert_eq!(shares(&log), BTreeMap::from([(0, 1), (2, 1), (3, 1)]));
    }
}

// GUARANTEE: Routers track their members
#[test]
fn a_pool_grows_and_shrinks_and_loses_nothing() {
    for seed in 0..50 {
        let system = simulated(seed);
        let (pool, made, log) = pool(&system, 2);
        for job in 0..10 {
            pool.pick().unwrap().tell(Job(job));
        }
        pool.resize(5);
        assert_eq!(pool.members().len(), 5);
        for job in 10..20 {
            pool.pick().unwrap().tell(Job(job));
        }
        // Members that are taken out handle the messages that they have.
        pool.resize(1);
        assert_eq!(pool.members().len(), 1);
        for job in 20..30 {
            pool.pick().unwrap().tell(Job(job));
        }
        system.run_until_idle();
        let mut jobs: Vec<_> = log.take().into_iter().map(|(_, job)| job).collect();
        jobs.sort_unstable();
        assert_eq!(jobs, (0..30).collect::<Vec<_>>(), "seed {seed}");
        assert_eq!(made.load(Ordering::Relaxed), 5);
        assert_eq!((system.stats().total.dead_letters, pool.members().len()), (0, 1));
        pool.resize(0);
        system.run_until_idle();
        assert_eq!(made.load(Ordering::Relaxed), 5);
        let error = pool.pick().unwrap_err().to_string();
        assert_eq!(error, "the pool has no Member to send to: it was resized to 0");
    }
}

// GUARANTEE: Routers track their members
#[test]
fn a_pool_whose_members_end_at_once_does_not_spin() {
    struct Mayfly;
    impl Actor for Mayfly {
        fn started(&mut self, ctx: &mut Context<Self>) {
            ctx.stop();
        }
    }
    let system = simulated(1);
    let made = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&made);
    let pool = Pool::start(&system, Routing::RoundRobin, 1, move || {
        count.fetch_add(1, Ordering::Relaxed);
        Mayfly
    });
    let clock = system.spawn(Clock);
    let _deadline = clock.ask(Never).within(Duration::from_secs(10)).wait();
    let made = made.load(Ordering::Relaxed);
    assert!((8..30).contains(&made), "{made}");
    let error = pool.pick().unwrap_err().to_string();
    assert_eq!(error, "the pool has no Mayfly to send to: all 1 have ended and are being replaced, try again");
    // A pool that is given up leaves nothing running.
    drop(pool);
    clock.kill();
    system.run_until_idle();
}

#[test]
fn a_factory_that_panics_is_called_again() {
    quiet_panics();
    let system = simulated(1);
    let calls = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&calls);
    let pool = Pool::start(&system, Routing::RoundRobin, 1, move || match counted.fetch_add(1, Ordering::Relaxed) {
        1 | 2 => panic!("meant: no member this time"),
        _ => Puppet,
    });
    pool.members()[0].stop();
    system.run_until_idle();
    assert_eq!((calls.load(Ordering::Relaxed), pool.members().len()), (4, 1));
}

// GUARANTEE: Routers track their members
#[test]
fn members_end_with_the_last_handle_to_their_pool_and_handle_what_they_were_sent() {
    for seed in 0..20 {
        let system = simulated(seed);
        let (pool, made, log) = pool(&system, 3);
        let members = pool.members();
        let other = pool.clone();
        drop(pool);
        system.run_until_idle();
        assert!(members.iter().all(|member| !member.is_stopped()));
        assert_eq!(other.broadcast(Job(1)), Ok(3));
        drop(other);
        system.run_until_idle();
        assert!(members.iter().all(|member| member.is_stopped()));
        assert_eq!((shares(&log).len(), made.load(Ordering::Relaxed)), (3, 3));
        assert_eq!(system.stats().total.dead_letters, 0, "seed {seed}");
    }
}

#[test]
fn many_threads_use_a_pool_that_changes() {
    finishes(|| {
        let system = threads(2);
        let (pool, _, log) = pool(&system, 4);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let pool = pool.clone();
                scope.spawn(move || {
                    for job in 0..2000 {
                        pool.pick().unwrap().tell(Job(thread * 2000 + job));
                        if job % 100 == 0 {
                            pool.resize(1 + (job as usize / 100 + thread as usize) % 5);
                        }
                    }
                });
            }
        });
        system.run_until_idle();
        let lost = system.stats().total.dead_letters as usize;
        assert_eq!(log.take().len() + lost, 8000);
        system.shutdown().unwrap();
    });
}

#[test]
fn a_router_takes_members_of_any_stage() {
    let system = threads(2);
    let log = Log::new();
    let router = Router::new(&system, Routing::RoundRobin);
    for number in 0..4 {
        router.add(system.spawn_with(on_stage(number as u16), Member { number, log: log.clone() }));
    }
    for job in 0..400 {
        router.pick().unwrap().tell(Job(job));
    }
    system.run_until_idle();
    assert_eq!(shares(&log), BTreeMap::from([(0, 100), (1, 100), (2, 100), (3, 100)]));
    system.shutdown().unwrap();
}
