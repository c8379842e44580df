//! Blocking work is done beside the workers, within bounds, and ends with its requester.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use playhouse::prelude::*;
use playhouse::resource::{CancelToken, JobError, ResourcePool, TryRunError};
use support::{Adder, Dice, Do, Gate, Increment, LIMIT, Log, Puppet, finishes, quiet_panics, simulated, threads};

/// Has a pool do its work.
struct Disk {
    pool: ResourcePool,
    log: Log<u64>,
}

impl Actor for Disk {}

/// Waits for room, and then for the result.
#[derive(Message)]
#[message(reply = Result<u64, JobError>)]
struct Read(u64);

impl AsyncHandler<Read> for Disk {
    async fn handle(&mut self, Read(number): Read, _: &mut Context<Self>) -> Result<u64, JobError> {
        let log = self.log.clone();
        let work = move |_: &CancelToken| {
            log.push(number);
            number * 2
        };
        self.pool.run(work).await
    }
}

/// Does not wait. Answers whether the pool had room.
#[derive(Message)]
#[message(reply = bool)]
struct Start(u64);

impl Handler<Start> for Disk {
    fn handle(&mut self, Start(number): Start, ctx: &mut Context<Self>) -> bool {
        match self.pool.try_run(move |_| number) {
            Ok(job) => {
                job.then(ctx, |this, number, _| this.log.push(number.unwrap()));
                true
            }
            Err(error) => {
                assert!(matches!(error, TryRunError::Full(_)), "{error}");
                false
            }
        }
    }
}

/// Work that blocks until its gate is opened.
fn block(turnstile: support::Turnstile) -> impl FnOnce(&CancelToken) -> &'static str + Send {
    |_| {
        turnstile.pass();
        "through"
    }
}

// GUARANTEE: Resource pools
#[test]
fn work_that_blocks_does_not_hold_a_worker() {
    finishes(|| {
        let system = threads(1);
        let pool = ResourcePool::start(&system, 2, 10).unwrap();
        let gates: Vec<_> = (0..2)
            .map(|_| {
                let (gate, turnstile) = Gate::new();
                (gate, pool.try_run(block(turnstile)).unwrap())
            })
            .collect();
        gates.iter().for_each(|(gate, _)| gate.wait_entered());
        let adder = system.spawn(Adder);
        for number in 0..1000 {
            assert_eq!(adder.ask(Increment(number)).wait(), Ok(number + 1));
        }
        assert_eq!(system.stats().total.takeovers, 0);
        for (gate, job) in gates {
            gate.open();
            assert_eq!(job.wait(), Ok("through"));
        }
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Resource pools
#[test]
fn excess_work_for_a_pool_is_given_back_or_waits() {
    finishes(|| {
        let system = threads(1);
        let pool = ResourcePool::start(&system, 1, 2).unwrap();
        let (gate, turnstile) = Gate::new();
        let first = pool.try_run(block(turnstile)).unwrap();
        gate.wait_entered();
        let queued = [1, 2].map(|number| pool.try_run(move |_| number).unwrap());
        let error = pool.try_run(|_| 3).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the resource pool is full: all threads are busy and the queue has no room; try again later, or use `run`, which waits"
        );
        // The error returns the whole work.
        let work = error.into_work();
        // Three requesters wait for room: an actor, which handles nothing else until then, and two threads.
        let log = Log::new();
        let disk = system.spawn(Disk { pool: pool.clone(), log: log.clone() });
        disk.tell(Read(1));
        std::thread::scope(|scope| {
            let waiting: Vec<_> = [10, 20]
                .map(|number| {
                    let pool = &pool;
                    scope.spawn(move || pool.run(move |_| number).wait())
                })
                .into_iter()
                .collect();
            assert_eq!(log.take(), []);
            gate.open();
            let done: Vec<_> = waiting.into_iter().map(|thread| thread.join().unwrap()).collect();
            assert_eq!(done, [Ok(10), Ok(20)]);
        });
        assert_eq!(first.wait(), Ok("through"));
        assert_eq!(queued.map(|job| job.wait()), [Ok(1), Ok(2)]);
        system.run_until_idle();
        assert_eq!(log.take(), [1]);
        assert_eq!(pool.try_run(work).unwrap().wait(), Ok(3));
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Work ends with its requester
#[test]
fn work_that_is_dropped_is_not_begun_or_sees_it() {
    finishes(|| {
        let system = threads(1);
        let pool = ResourcePool::start(&system, 1, 1).unwrap();
        let (begun, wait_begun) = channel();
        let (seen, wait_seen) = channel();
        let first = pool
            .try_run(move |token| {
                begun.send(()).unwrap();
                while !token.is_cancelled() {
                    std::thread::yield_now();
                }
                seen.send(()).unwrap();
            })
            .unwrap();
        wait_begun.recv_timeout(LIMIT).unwrap();
        let runs = Arc::<AtomicU64>::default();
        let counted = Arc::clone(&runs);
        let second = pool.try_run(move |_| counted.fetch_add(1, Ordering::Relaxed)).unwrap();
        drop(second);
        assert_eq!(Arc::strong_count(&runs), 1, "what it owns is dropped with it");
        // The job's room is free at once.
        let third = pool.try_run(|_| 3).unwrap();
        drop(first);
        wait_seen.recv_timeout(LIMIT).unwrap();
        assert_eq!(third.wait(), Ok(3));
        assert_eq!(runs.load(Ordering::Relaxed), 0);
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Work ends with its requester
#[test]
fn work_ends_with_the_actor_that_wanted_it() {
    finishes(|| {
        let system = threads(1);
        let pool = ResourcePool::start(&system, 1, 5).unwrap();
        let (begun, wait_begun) = channel();
        let (seen, wait_seen) = channel();
        let (puppet, runs) = (system.spawn(Puppet), Arc::<AtomicU64>::default());
        let (own, counted) = (pool.clone(), Arc::clone(&runs));
        puppet.tell(Do::this(move |ctx| {
            let work = move |token: &CancelToken| {
                begun.send(()).unwrap();
                while !token.is_cancelled() {
                    std::thread::yield_now();
                }
                seen.send(()).unwrap();
            };
            own.try_run(work).unwrap().then(ctx, |_, _, _| panic!("the actor has ended"));
            own.try_run(move |_| counted.fetch_add(1, Ordering::Relaxed)).unwrap().then(ctx, |_, _, _| ());
        }));
        wait_begun.recv_timeout(LIMIT).unwrap();
        puppet.stop();
        wait_seen.recv_timeout(LIMIT).unwrap();
        assert_eq!(pool.try_run(|_| 1).unwrap().wait(), Ok(1));
        assert_eq!((runs.load(Ordering::Relaxed), system.stats().total.crashes), (0, 0));
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Work ends with its requester
#[test]
fn a_pool_that_is_stopped_begins_nothing_more() {
    finishes(|| {
        let system = threads(1);
        let pool = ResourcePool::start(&system, 1, 5).unwrap();
        let (gate, turnstile) = Gate::new();
        let first = pool.try_run(block(turnstile)).unwrap();
        gate.wait_entered();
        let second = pool.try_run(|token| token.is_cancelled()).unwrap();
        let error = pool.stop_within(Duration::from_millis(1)).unwrap_err();
        assert_eq!(error.jobs, 1);
        assert_eq!(second.wait(), Err(JobError::Stopped));
        assert_eq!(pool.run(|_| 1).wait(), Err(JobError::Stopped));
        assert!(matches!(pool.try_run(|_| 1), Err(TryRunError::Stopped(_))));
        gate.open();
        // A job that has begun has a result.
        assert_eq!(first.wait(), Ok("through"));
        assert_eq!(pool.stop_within(LIMIT), Ok(()));
        system.shutdown().unwrap();
    });
}

#[test]
fn a_caller_that_waits_for_room_is_told_that_the_pool_has_stopped() {
    finishes(|| {
        let system = threads(1);
        let pool = ResourcePool::start(&system, 1, 0).unwrap();
        let (gate, turnstile) = Gate::new();
        let first = pool.try_run(block(turnstile)).unwrap();
        gate.wait_entered();
        let (ran, told) = channel();
        let disk = system.spawn(Disk { pool: pool.clone(), log: Log::new() });
        std::thread::scope(|scope| {
            scope.spawn(|| ran.send(disk.ask(Read(1)).wait()).unwrap());
            // The test does not know when the actor waits. In either case the actor gets the error.
            assert!(pool.stop_within(Duration::ZERO).is_err());
            assert_eq!(told.recv_timeout(LIMIT).unwrap(), Ok(Err(JobError::Stopped)));
        });
        gate.open();
        assert_eq!(first.wait(), Ok("through"));
        system.shutdown().unwrap();
    });
}

#[test]
fn a_panic_in_the_work_is_its_error_and_the_thread_goes_on() {
    quiet_panics();
    finishes(|| {
        let system = threads(1);
        let pool = ResourcePool::start(&system, 1, 5).unwrap();
        for number in 0..3 {
            let job = pool.try_run(move |_| assert!(number > 9, "meant: {number}")).unwrap();
            assert_eq!(job.wait(), Err(JobError::Panicked(format!("meant: {number}"))));
        }
        assert_eq!(pool.run(|_| 1).wait(), Ok(1));
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Resource pools
#[test]
fn the_bound_holds_and_nothing_accepted_is_lost_under_every_seed() {
    for seed in 0..100 {
        let system = simulated(seed);
        let pool = ResourcePool::start(&system, 2, 3).unwrap();
        let log = Log::new();
        let disk = system.spawn(Disk { pool: pool.clone(), log: log.clone() });
        let answers = Log::new();
        let log_answers = answers.clone();
        system.spawn(Puppet).tell(Do::this(move |ctx| {
            for number in 0..20 {
                let answers = log_answers.clone();
                ctx.ask(disk, Start(number)).then(move |_, accepted, _| answers.push((number, accepted.unwrap())));
            }
        }));
        system.run_until_idle();
        let mut accepted: Vec<_> =
            answers.take().into_iter().filter(|(_, accepted)| *accepted).map(|(number, _)| number).collect();
        accepted.sort_unstable();
        let mut done = log.take();
        done.sort_unstable();
        assert!(accepted.len() >= 5, "seed {seed}: {accepted:?}");
        assert_eq!(done, accepted, "seed {seed}");
        // The pool has room for five at once.
        let jobs: Vec<_> = (0..9).map(|number| pool.try_run(move |_| number)).collect();
        let results: Vec<_> = jobs.into_iter().map(|job| job.ok().map(|job| job.wait())).collect();
        assert_eq!(results[..5], [0, 1, 2, 3, 4].map(|number| Some(Ok(number))));
        assert_eq!(results[5..], [None, None, None, None]);
    }
}

// GUARANTEE: Resource pools
#[test]
fn every_waiting_asker_gets_room_though_others_give_up_under_every_seed() {
    for seed in 0..300 {
        let system = System::builder().workers(3).stages(12).simulated(seed).start().unwrap();
        let pool = ResourcePool::start(&system, 1, seed as usize % 2).unwrap();
        let log = Log::new();
        let disks: Vec<_> = (0..12).map(|_| system.spawn(Disk { pool: pool.clone(), log: log.clone() })).collect();
        disks.iter().zip(0..).for_each(|(disk, number)| disk.tell(Read(number)));
        // Some disks are killed at some moment: before their wait, during it, or after they were woken.
        let mut dice = Dice(seed);
        let killed: Vec<_> = (0..6).map(|_| dice.below(12)).collect();
        for victim in &killed {
            let victim = disks[*victim];
            let hops = dice.below(8);
            system.spawn(Killer).tell(Kill(victim, hops));
        }
        system.run_until_idle();
        let mut done = log.take();
        done.sort_unstable();
        done.retain(|number| !killed.contains(&(*number as usize)));
        let others: Vec<_> = (0..12).filter(|number| !killed.contains(&(*number as usize))).collect();
        assert_eq!(done, others, "seed {seed}");
    }
}

/// Kills a disk, some messages later.
struct Killer;

impl Actor for Killer {}

#[derive(Message)]
struct Kill(ActorRef<Disk>, usize);

impl Handler<Kill> for Killer {
    fn handle(&mut self, Kill(victim, hops): Kill, ctx: &mut Context<Self>) {
        match hops {
            0 => victim.kill(),
            _ => ctx.this().tell(Kill(victim, hops - 1)),
        }
    }
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Begins jobs on a slow disk with two threads. Returns the order and the times of their ends.
fn on_a_slow_disk(seed: u64) -> Vec<(u64, Duration)> {
    let system = simulated(seed);
    let pool = ResourcePool::start(&system, 2, 10).unwrap();
    pool.simulate_times(ms(2), ms(5));
    let log = Log::new();
    for number in 0..8 {
        let (log, system) = (log.clone(), system.clone());
        let work = move |_: &CancelToken| log.push((number, system.core().now()));
        // The requester drops the result, but the job must be done.
        std::mem::forget(pool.try_run(work).unwrap());
    }
    system.run_until_idle();
    log.take()
}

// GUARANTEE: Slow disks can be simulated
#[test]
fn a_slow_disk_takes_its_time_and_no_more_at_once_than_it_has_threads_under_every_seed() {
    let mut orders = std::collections::BTreeSet::new();
    for seed in 0..1000 {
        let done = on_a_slow_disk(seed);
        assert_eq!(done.len(), 8, "seed {seed}");
        assert_eq!(done, on_a_slow_disk(seed), "seed {seed}");
        for (place, (_, at)) in done.iter().enumerate() {
            // Each of two threads has done half of the earlier jobs, one more or less.
            let rounds = place as u32 / 2 + 1;
            assert!(*at >= ms(2) * rounds && *at <= ms(5) * (place as u32 + 1), "seed {seed}: {done:?}");
        }
        assert!(done.last().unwrap().1 <= ms(5) * 8 / 2 + ms(5), "seed {seed}: two at one time: {done:?}");
        orders.insert(done.iter().map(|(number, _)| *number).collect::<Vec<_>>());
    }
    assert!(orders.len() > 10, "they overtake each other: {orders:?}");
}

// GUARANTEE: Slow disks can be simulated
#[test]
fn a_disk_that_stalls_keeps_deadlines_from_being_met_under_every_seed() {
    let (mut in_time, mut too_late) = (0, 0);
    for seed in 0..1000 {
        let system = simulated(seed);
        let pool = ResourcePool::start(&system, 1, 10).unwrap();
        pool.simulate_times(ms(1), ms(1));
        pool.simulate_stalls(4, ms(100));
        let log = Log::new();
        let disk = system.spawn(Disk { pool: pool.clone(), log: log.clone() });
        let began = system.core().now();
        match disk.ask(Read(1)).within(ms(50)).wait() {
            Ok(answer) => {
                assert_eq!((answer, log.take()), (Ok(2), vec![1]), "seed {seed}");
                assert_eq!(system.core().now() - began, ms(1), "seed {seed}");
                in_time += 1;
            }
            Err(AskError::Deadline { .. }) => {
                assert_eq!((system.core().now() - began, log.take()), (ms(50), vec![]), "seed {seed}");
                too_late += 1;
            }
            Err(error) => panic!("seed {seed}: {error}"),
        }
        pool.simulate_stalls(0, Duration::ZERO);
        assert_eq!(disk.ask(Read(2)).wait(), Ok(Ok(4)), "seed {seed}: it goes on after a stall");
    }
    assert!(in_time > 600 && too_late > 150, "{in_time} in time, {too_late} too late");
}

// GUARANTEE: Slow disks can be simulated
#[test]
fn a_simulated_pool_is_stopped_in_virtual_time() {
    let system = simulated(1);
    for (limit, ends) in [(ms(5), Err(1)), (ms(10), Ok(()))] {
        let pool = ResourcePool::start(&system, 1, 10).unwrap();
        pool.simulate_times(ms(10), ms(10));
        let jobs = [1, 2].map(|number| pool.try_run(move |_| number).unwrap());
        let began = system.core().now();
        assert_eq!(pool.stop_within(limit).map_err(|still| still.jobs), ends);
        assert_eq!(system.core().now() - began, limit);
        assert_eq!(jobs.map(|job| job.wait()), [Err(JobError::Stopped), Err(JobError::Stopped)]);
    }
}

#[test]
fn the_last_handle_stops_the_pool_and_no_thread_is_no_pool() {
    let system = simulated(1);
    let error = ResourcePool::start(&system, 0, 5).unwrap_err();
    assert_eq!(error.to_string(), "a resource pool needs at least one thread");
    let pool = ResourcePool::start(&system, 1, 5).unwrap();
    let other = pool.clone();
    drop(pool);
    let job = other.try_run(|_| 1).unwrap();
    drop(other);
    assert_eq!(job.wait(), Err(JobError::Stopped));
}
