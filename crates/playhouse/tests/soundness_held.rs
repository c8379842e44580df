//! Suspicions of a review that proved wrong: sizes and alignments, references across systems, generations of cells,
//! many workers.

use std::future::poll_fn;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use playhouse::prelude::*;
use playhouse::{Mailbox, OnFull};

mod support;
use support::{LIMIT, finishes};

/// Returns to its handler once a thread has woken it.
async fn woken_by_a_thread() {
    let mut woken = false;
    poll_fn(move |cx| {
        if std::mem::replace(&mut woken, true) {
            return Poll::Ready(());
        }
        let waker = cx.waker().clone();
        thread::spawn(move || waker.wake());
        Poll::Pending
    })
    .await;
}

/// Returns the number of bytes by which a value is out of its alignment.
fn off<T>(value: &T) -> usize {
    std::ptr::from_ref(value).addr() % align_of::<T>()
}

#[derive(Message)]
#[message(reply = usize)]
struct Nothing;

#[derive(Message)]
#[message(reply = usize)]
#[repr(align(64))]
struct Line;

#[derive(Message)]
#[message(reply = usize)]
#[repr(align(4096))]
struct Page;

#[derive(Message)]
#[message(reply = usize)]
#[repr(align(4096))]
struct Pages([u8; 5000]);

#[derive(Message)]
#[message(reply = usize)]
struct Bytes<const N: usize>([u8; N]);

struct Empty;
#[repr(align(16))]
struct Aligned16(u64);
#[repr(align(4096))]
struct Aligned4096(u8);
struct Large<const N: usize>([u8; N]);

impl Actor for Empty {}
impl Actor for Aligned16 {}
impl Actor for Aligned4096 {}
impl<const N: usize> Actor for Large<N> {}

/// The contents of the actor, which no message changes.
trait Contents {
    fn is_whole(&self) -> bool;
}

impl Contents for Empty {
    fn is_whole(&self) -> bool {
        true
    }
}
impl Contents for Aligned16 {
    fn is_whole(&self) -> bool {
        self.0 == 16
    }
}
impl Contents for Aligned4096 {
    fn is_whole(&self) -> bool {
        self.0 == 96
    }
}
impl<const N: usize> Contents for Large<N> {
    fn is_whole(&self) -> bool {
        // The comparison covers the whole array at once, because Miri takes 10 s for a loop over 100,000 bytes.
        self.0 == [5; N]
    }
}

/// Each handler returns 0 if all its values are whole and aligned.
macro_rules! handle_all {
    ($($actor:ty),*) => {$(
        impl Handler<Nothing> for $actor {
            fn handle(&mut self, _: Nothing, _: &mut Context<Self>) -> usize {
                off(self) + usize::from(!self.is_whole())
            }
        }
        impl AsyncHandler<Line> for $actor {
            async fn handle(&mut self, line: Line, _: &mut Context<Self>) -> usize {
                let before = off(&line);
                woken_by_a_thread().await;
                before + off(&line) + off(self) + usize::from(!self.is_whole())
            }
        }
        impl Handler<Page> for $actor {
            fn handle(&mut self, page: Page, _: &mut Context<Self>) -> usize {
                off(&page)
            }
        }
        impl AsyncHandler<Pages> for $actor {
            async fn handle(&mut self, pages: Pages, _: &mut Context<Self>) -> usize {
                woken_by_a_thread().await;
                off(&pages) + usize::from(pages.0 != [7; 5000])
            }
        }
        impl<const N: usize> Handler<Bytes<N>> for $actor {
            fn handle(&mut self, bytes: Bytes<N>, _: &mut Context<Self>) -> usize {
                usize::from(bytes.0 != [7; N])
            }
        }
    )*};
}

handle_all!(Empty, Aligned16, Aligned4096, Large<480>, Large<481>, Large<100_000>);

fn take_all<A>(actor: ActorRef<A>)
where
    A: Actor + Handler<Nothing> + AsyncHandler<Line> + Handler<Page> + AsyncHandler<Pages>,
    A: Handler<Bytes<256>> + Handler<Bytes<257>>,
{
    for _ in 0..2 {
        let answers = [
            actor.ask(Nothing).wait(),
            actor.ask(Line).wait(),
            actor.ask(Page).wait(),
            actor.ask(Pages([7; 5000])).wait(),
            actor.ask(Bytes([7; 256])).wait(),
            actor.ask(Bytes([7; 257])).wait(),
        ];
        assert!(answers.iter().all(|answer| *answer == Ok(0)), "{}: {answers:?}", std::any::type_name::<A>());
        // A second send needs no answer, and is in flight during the next round.
        actor.tell(Line);
        actor.tell(Pages([7; 5000]));
        actor.tell(Page);
        actor.tell(Bytes([7; 257]));
    }
}

#[test]
fn actors_and_messages_of_all_sizes_and_alignments_arrive_whole() {
    finishes(|| {
        let system = System::builder().workers(2).start().unwrap();
        take_all(system.spawn(Empty));
        take_all(system.spawn(Aligned16(16)));
        take_all(system.spawn(Aligned4096(96)));
        take_all(system.spawn(Large([5; 480])));
        take_all(system.spawn(Large([5; 481])));
        take_all(system.spawn(Large([5; 100_000])));
        let bounded = SpawnOptions::new().mailbox(Mailbox::bounded(30));
        take_all(system.spawn_with(bounded, Aligned16(16)));
        let dropping = SpawnOptions::new().mailbox(Mailbox::bounded(3).on_full(OnFull::DropOldest));
        let dropping = system.spawn_with(dropping, Empty);
        // Miri takes 20 s for 100.
        let pages = if cfg!(miri) { 10 } else { 100 };
        (0..pages).for_each(|_| dropping.tell(Pages([7; 5000])));
        assert_eq!(dropping.ask(Nothing).wait(), Ok(0));
        // A shutdown does not wait for the threads that wake handlers.
        system.run_until_idle();
        assert_eq!(system.shutdown_within(LIMIT).unwrap().undelivered, 0);
    });
}

struct Number(u64);

#[actor]
impl Number {
    #[message]
    fn get(&self) -> u64 {
        self.0
    }
    #[message]
    fn add(&mut self, by: u64) {
        self.0 += by;
    }
    #[message]
    async fn fetch(&mut self, from: ActorRef<Number>) -> Result<u64, AskError> {
        self.0 += from.ask(Get).within(Duration::from_secs(50)).await?;
        Ok(self.0)
    }
    #[message]
    fn mind(&mut self, other: ActorRef<Number>, ctx: &mut Context<Self>) {
        ctx.watch(other);
    }
    #[terminated]
    fn terminated(&mut self, _: playhouse::Terminated) {
        self.0 += 1_000;
    }
}

fn one_worker() -> System {
    System::builder().workers(1).start().unwrap()
}

#[test]
fn references_hold_when_one_of_two_systems_ends_and_a_third_begins() {
    finishes(|| {
        let (stays, ends) = (one_worker(), one_worker());
        let (here, gone) = (stays.spawn(Number(1)), ends.spawn(Number(10)));
        assert_eq!((here.ask(Fetch(gone)).wait(), gone.ask(Fetch(here)).wait()), (Ok(Ok(11)), Ok(Ok(21))));
        here.tell(Mind(gone));
        stays.run_until_idle();
        assert_eq!(ends.shutdown_within(LIMIT).unwrap().actors_stopped, 1);
        stays.run_until_idle();
        assert_eq!(here.ask(Get).wait(), Ok(1_011), "it was told of the end");
        assert_eq!(here.ask(Fetch(gone)).wait(), Ok(Err(AskError::Shutdown)));
        // The third system takes the memory of the second one.
        let begins = one_worker();
        let new = begins.spawn(Number(5));
        gone.tell(Add(1));
        assert_eq!(gone.ask(Get).wait(), Err(AskError::Shutdown));
        assert_eq!(new.ask(Fetch(here)).wait(), Ok(Ok(1_016)), "what was meant for another actor has not come");
        assert_ne!(gone, new);
        begins.shutdown_within(LIMIT).unwrap();
        stays.shutdown_within(LIMIT).unwrap();
    });
}

#[test]
fn a_reference_to_an_actor_that_has_ended_never_reaches_the_next_one_in_its_cell() {
    finishes(|| {
        let system = one_worker();
        let first = system.spawn(Number(0));
        first.stop();
        system.run_until_idle();
        for _ in 0..if cfg!(miri) { 20 } else { 20_000 } {
            let next = system.spawn(Number(7));
            first.tell(Add(1));
            assert_eq!(next.ask(Get).wait(), Ok(7));
            next.stop();
            assert!(first.ask(Get).wait().is_err());
        }
        system.shutdown_within(LIMIT).unwrap();
    });
}

struct Relay {
    next: Option<ActorRef<Relay>>,
    handled: u64,
}

#[actor]
impl Relay {
    #[message]
    fn link(&mut self, next: ActorRef<Relay>) {
        self.next = Some(next);
    }
    /// Passes on a token that has `left` hops before it.
    #[message]
    fn hop(&mut self, left: u64) {
        self.handled += 1;
        if let (1.., Some(next)) = (left, self.next) {
            next.tell(Hop(left - 1));
        }
    }
    #[message]
    fn handled(&self) -> u64 {
        self.handled
    }
}

#[test]
fn far_more_workers_than_cores_lose_nothing() {
    // Miri runs all threads on one core, and takes minutes for 64 of them.
    const WORKERS: usize = if cfg!(miri) { 5 } else { 64 };
    const TOKENS: u64 = if cfg!(miri) { 2 } else { 4 };
    const HOPS: u64 = if cfg!(miri) { 3 } else { 1_000 };
    finishes(|| {
        let system = System::builder().workers(WORKERS).start().unwrap();
        let relays: Vec<_> = (0..WORKERS * 4).map(|_| system.spawn(Relay { next: None, handled: 0 })).collect();
        for (at, relay) in relays.iter().enumerate() {
            relay.tell(Link(relays[(at + 7) % relays.len()]));
        }
        for relay in &relays {
            (0..TOKENS).for_each(|_| relay.tell(Hop(HOPS)));
        }
        system.run_until_idle();
        let handled: u64 = relays.iter().map(|relay| relay.ask(Handled).wait().unwrap()).sum();
        assert_eq!(handled, relays.len() as u64 * TOKENS * (HOPS + 1));
        assert_eq!(system.shutdown_within(LIMIT).unwrap().undelivered, 0);
    });
}
