//! Requests to actors of other theaters are taken back when their askers give up, and requests of a cycle are not handled.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context as PollContext, Waker};
use std::time::Duration;

use crate::support::LIMIT;
use playhouse_actor::*;
use playhouse_theater::{Simulation, Theater};
use serde::{Deserialize, Serialize};

/// Never answers.
#[derive(Serialize, Deserialize)]
struct Mute;

#[derive(Serialize, Deserialize)]
struct Never;
remote_message!(Never -> ());

impl Actor for Mute {}
impl Handler<Never> for Mute {
    fn handle(&mut self, _: Never, _: &mut Context<Self>) {
        unreachable!("its guard keeps all");
    }

    fn guard(&self, _: &Never) -> Guard {
        Guard::Defer
    }
}
remote!(Mute: Never);

#[derive(Serialize, Deserialize)]
struct Account {
    mute: ActorRef<Mute>,
    /// The payments that have come.
    handled: Vec<u64>,
    /// The payments that were made, with their outcomes.
    ended: Vec<(u64, Result<(), AskError>)>,
}

/// A payment, by its number.
#[derive(Serialize, Deserialize)]
struct Deposit(u64);
remote_message!(Deposit -> ());

/// Pays another account, and waits until that has taken it.
#[derive(Serialize, Deserialize)]
struct Pay {
    number: u64,
    to: ActorRef<Account>,
    within: Option<Duration>,
}
remote_message!(Pay -> ());

/// Pays another account, and handles other messages until that has taken it.
#[derive(Serialize, Deserialize)]
struct PayLater(u64, ActorRef<Account>, Duration);
remote_message!(PayLater -> ());

/// Blocks for this time.
#[derive(Serialize, Deserialize)]
struct Nap(Duration);
remote_message!(Nap -> ());

#[derive(Serialize, Deserialize)]
struct GoTo(SocketAddr);
remote_message!(GoTo -> ());

#[derive(Serialize, Deserialize)]
struct Look;
remote_message!(Look -> (Vec<u64>, Vec<(u64, Result<(), AskError>)>));

impl Actor for Account {}
impl Handler<Deposit> for Account {
    fn handle(&mut self, Deposit(number): Deposit, _: &mut Context<Self>) {
        self.handled.push(number);
    }
}
impl AsyncHandler<Pay> for Account {
    async fn handle(&mut self, Pay { number, to, within }: Pay, _: &mut Context<Self>) {
        let ask = to.ask(Deposit(number));
        let ended = match within {
            Some(within) => ask.within(within).await,
            None => ask.await,
        };
        self.ended.push((number, ended));
    }
}
impl Handler<PayLater> for Account {
    fn handle(&mut self, PayLater(number, to, within): PayLater, ctx: &mut Context<Self>) {
        ctx.ask(to, Deposit(number)).within(within).then(move |this, ended, _| this.ended.push((number, ended)));
    }
}
impl AsyncHandler<Nap> for Account {
    async fn handle(&mut self, Nap(time): Nap, _: &mut Context<Self>) {
        let never = self.mute.ask(Never).within(time).await;
        assert!(matches!(never, Err(AskError::Deadline { .. })), "{never:?}");
    }
}
impl Handler<GoTo> for Account {
    fn handle(&mut self, GoTo(theater): GoTo, ctx: &mut Context<Self>) {
        ctx.migrate_to(theater);
    }
}
impl Handler<Look> for Account {
    fn handle(&mut self, _: Look, _: &mut Context<Self>) -> (Vec<u64>, Vec<(u64, Result<(), AskError>)>) {
        (self.handled.clone(), self.ended.clone())
    }
}
remote!(mobile Account: Deposit, Pay, PayLater, Nap, GoTo, Look);

struct Scene {
    net: Simulation,
    theaters: Vec<Theater>,
    mute: ActorRef<Mute>,
}

impl Scene {
    fn new(seed: u64) -> Scene {
        let net = Simulation::new(seed);
        let theater = || {
            let system = System::builder().workers(2).stages(4);
            net.theater(Theater::builder().listen("127.0.0.1:0").system(system)).unwrap()
        };
        let theaters: Vec<Theater> = (0..3).map(|_| theater()).collect();
        let mute = theaters[0].system().spawn(Mute);
        Scene { net, theaters, mute }
    }

    /// Returns an account that was started in this theater; the reference is that of the first one.
    fn account(&self, theater: usize) -> ActorRef<Account> {
        let account = Account { mute: self.mute, handled: Vec::new(), ended: Vec::new() };
        match theater {
            0 => self.theaters[0].system().spawn(account),
            at => {
                let peer = self.theaters[0].connect(self.theaters[at].address().unwrap()).unwrap();
                self.theaters[0].spawn_at(&peer, &account).unwrap()
            }
        }
    }

    fn address(&self, theater: usize) -> SocketAddr {
        self.theaters[theater].address().unwrap()
    }
}

/// Longer than any message takes.
const LATER: Duration = Duration::from_millis(100);

// GUARANTEE: Requests in other theaters are withdrawn
#[test]
fn an_asker_that_gives_up_withdraws_its_request_in_every_theater() {
    for seed in 0..100 {
        let scene = Scene::new(seed);
        // It may have migrated; in that case some requests wait in a stub on their route, or went over one.
        let receiver = scene.account(1 + scene.net.choose(2));
        let [asker, killed] = [scene.account(0), scene.account(scene.net.choose(3))];
        let moves = scene.net.choose(3);
        receiver.tell(GoTo(scene.address(moves)));
        if scene.net.choose(2) == 0 {
            scene.net.run_until_idle();
        }
        receiver.tell(Nap(LATER * 2));
        scene.net.run_for(LATER);
        if scene.net.choose(2) == 0 {
            // It takes the requests along to another theater, and sleeps in it.
            receiver.tell(GoTo(scene.address(scene.net.choose(3))));
        }
        receiver.tell(Nap(LATER * 20));
        scene.net.run_for(LATER / 2);
        asker.tell(PayLater(1, receiver, LATER * 8));
        asker.tell(Pay { number: 2, to: receiver, within: Some(LATER * 8) });
        killed.tell(Pay { number: 3, to: receiver, within: None });
        let mut dropped = Box::pin(receiver.ask(Deposit(4)));
        let mut context = PollContext::from_waker(Waker::noop());
        assert!(dropped.as_mut().poll(&mut context).is_pending());
        assert!(matches!(receiver.ask(Deposit(5)).within(LATER * 8).wait(), Err(AskError::Deadline { .. })));
        let kept = receiver.ask(Deposit(6));
        let mut kept = Box::pin(kept);
        assert!(kept.as_mut().poll(&mut context).is_pending());
        scene.net.run_for(LATER * 8);
        killed.kill();
        drop(dropped);
        scene.net.run_until_idle();
        let (handled, _) = receiver.ask(Look).wait().unwrap();
        assert_eq!(handled, [6], "seed {seed}: {moves}");
        let (_, ended) = asker.ask(Look).wait().unwrap();
        let is_deadline = |(_, ended): &(u64, Result<(), AskError>)| matches!(ended, Err(AskError::Deadline { .. }));
        assert!(ended.len() == 2 && ended.iter().all(is_deadline), "seed {seed}: {ended:?}");
    }
}

// GUARANTEE: Cycles over theaters
/// Accounts pay each other while they move and connections break.
#[test]
fn a_payment_that_fails_by_a_cycle_is_not_handled_and_one_that_comes_through_is_handled_once() {
    const ACCOUNTS: usize = 5;
    let seeds = std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(150);
    let (mut cycles, mut through) = (0, 0);
    for seed in 0..seeds {
        let scene = Scene::new(seed);
        let accounts: Vec<_> = (0..ACCOUNTS).map(|_| scene.account(scene.net.choose(3))).collect();
        let moves = scene.net.choose(2) == 0;
        if scene.net.choose(2) == 0 {
            scene.net.break_by_chance(Duration::from_millis(50));
        }
        for number in 0..40 {
            let from = scene.net.choose(ACCOUNTS);
            let to = (from + 1 + scene.net.choose(ACCOUNTS - 1)) % ACCOUNTS;
            accounts[from].tell(Pay { number, to: accounts[to], within: None });
            if moves && scene.net.choose(8) == 0 {
                accounts[scene.net.choose(ACCOUNTS)].tell(GoTo(scene.address(scene.net.choose(3))));
            }
            scene.net.run_for(Duration::from_micros(scene.net.choose(3_000) as u64));
        }
        scene.net.run_for(Duration::from_millis(300));
        scene.net.calm();
        scene.net.run_until_idle();
        let (mut handled, mut ended) = (BTreeMap::<u64, u64>::new(), BTreeMap::new());
        for account in &accounts {
            let (its, ends) = account.ask(Look).wait().unwrap();
            its.into_iter().for_each(|number| *handled.entry(number).or_default() += 1);
            ended.extend(ends);
        }
        assert_eq!(ended.len(), 40, "seed {seed}");
        for (number, ended) in ended {
            let times = handled.get(&number).copied().unwrap_or_default();
            match ended {
                Ok(()) => {
                    through += 1;
                    assert_eq!(times, 1, "seed {seed}: payment {number}");
                }
                Err(AskError::Cycle(path)) => {
                    cycles += 1;
                    assert_eq!(times, 0, "seed {seed}: payment {number} failed by {path:?}");
                }
                Err(other) => panic!("seed {seed}: payment {number}: {other:?}"),
            }
        }
    }
    assert!(cycles > 100 && through > 1_000, "{cycles} cycles, {through} came through");
}

// GUARANTEE: Cycles over theaters
/// The delays of the messages do not matter.
#[test]
fn one_ask_of_a_cycle_fails_and_the_others_come_through() {
    for seed in 0..150 {
        let scene = Scene::new(seed);
        let count = 2 + scene.net.choose(4);
        let accounts: Vec<_> = (0..count).map(|at| scene.account(at % 3)).collect();
        if scene.net.choose(4) > 0 {
            scene.net.vary_latencies();
        }
        scene.net.run_for(Duration::from_secs(2));
        for number in 0..count {
            accounts[number].tell(Pay { number: number as u64, to: accounts[(number + 1) % count], within: None });
        }
        scene.net.run_until_idle();
        let looks: Vec<_> = accounts.iter().map(|account| account.ask(Look).wait().unwrap()).collect();
        let ended: BTreeMap<u64, Result<(), AskError>> = looks.iter().flat_map(|(_, ended)| ended.clone()).collect();
        let handled: usize = looks.iter().map(|(handled, _)| handled.len()).sum();
        let failed: Vec<_> = ended.values().filter_map(|ended| ended.as_ref().err()).collect();
        // A cycle may not have closed if a payment had arrived before.
        assert!(ended.len() == count && failed.len() <= 1, "seed {seed}: {ended:?}");
        assert_eq!(handled, count - failed.len(), "seed {seed}: {ended:?}");
        for error in failed {
            let AskError::Cycle(path) = error else { panic!("seed {seed}: {error:?}") };
            assert!(path.len() == count + 1 && path.first() == path.last(), "seed {seed}: {path:?}");
        }
    }
}

// -- user code that gives up at unexpected moments -------------------------------------------------------------------------

type Waiting = Pin<Box<dyn Future<Output = Result<(), AskError>> + Send>>;

/// Dropped by the next [`Dropper`] that is written.
static GIVEN_UP: Mutex<Option<Waiting>> = Mutex::new(None);

#[derive(Deserialize)]
struct Dropper;
impl Serialize for Dropper {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let given_up = GIVEN_UP.lock().unwrap().take();
        drop(given_up);
        to.serialize_unit_struct("Dropper")
    }
}
impl Actor for Dropper {}
impl Handler<Deposit> for Dropper {
    fn handle(&mut self, _: Deposit, _: &mut Context<Self>) {}
}
remote!(spawn Dropper: Deposit);

// GUARANTEE: Requests in other theaters are withdrawn
#[test]
fn an_ask_that_is_dropped_while_a_state_is_written_holds_nothing_up() {
    let theater = || crate::support::builder().start().unwrap();
    let (near, far) = (theater(), theater());
    let peer = near.connect(far.address().unwrap()).unwrap();
    let mute = near.system().spawn(Mute);
    let account = near.spawn_at(&peer, &Account { mute, handled: Vec::new(), ended: Vec::new() }).unwrap();
    account.tell(Nap(Duration::from_secs(3_600)));
    let mut ask: Waiting = Box::pin(account.ask(Deposit(1)));
    assert!(ask.as_mut().poll(&mut PollContext::from_waker(Waker::noop())).is_pending());
    // It has left: later messages over the same link have come.
    let other = near.spawn_at(&peer, &Dropper).unwrap();
    other.ask(Deposit(2)).within(LIMIT).wait().unwrap();
    *GIVEN_UP.lock().unwrap() = Some(ask);
    // No theater ends while this thread is blocked.
    let spawned = near.spawn_at(&peer, &Dropper).unwrap();
    assert_eq!(spawned.ask(Deposit(3)).within(LIMIT).wait(), Ok(()));
    assert!(GIVEN_UP.lock().unwrap().is_none());
    account.kill();
    [near, far].into_iter().for_each(|theater| drop(theater.shutdown().unwrap()));
}
