//! Supervised children in other theaters: started in them, or migrated to them.

use std::any::type_name;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use crate::faulty::{Between, Fault, eventually};
use crate::support::{LIMIT, builder, theater};
use playhouse_actor::*;
use playhouse_theater::{Peer, Theater};
use serde::{Deserialize, Serialize};

/// Counts; it knows the number of its life.
#[derive(Debug, Serialize, Deserialize)]
struct Counter {
    incarnation: u64,
    n: u64,
}

#[derive(Serialize, Deserialize)]
struct Add(u64);
remote_message!(Add -> (u64, u64));

/// Panics, or fails if `error`.
#[derive(Serialize, Deserialize)]
struct Crash {
    text: String,
    error: bool,
}
remote_message!(Crash -> ());

fn panic(text: &str) -> Crash {
    Crash { text: text.to_owned(), error: false }
}

impl Actor for Counter {}
impl Handler<Add> for Counter {
    fn handle(&mut self, Add(n): Add, _: &mut Context<Self>) -> (u64, u64) {
        self.n += n;
        (self.incarnation, self.n)
    }
}
impl Handler<Crash> for Counter {
    fn handle(&mut self, crash: Crash, ctx: &mut Context<Self>) {
        if crash.error {
            return ctx.fail(std::io::Error::other(crash.text));
        }
        panic!("{}", crash.text);
    }
}
remote!(mobile Counter: Add, Crash);

/// Reports ends.
struct Watcher(Sender<(ActorId, StopReason)>);
struct Look<A: Actor>(ActorRef<A>);
impl<A: Actor> Message for Look<A> {
    type Reply = ();
}
impl Actor for Watcher {
    fn terminated(&mut self, terminated: Terminated, _: &mut Context<Self>) {
        let _ = self.0.send((terminated.who, terminated.reason));
    }
}
impl<A: Actor> Handler<Look<A>> for Watcher {
    fn handle(&mut self, Look(who): Look<A>, ctx: &mut Context<Self>) {
        ctx.watch(who);
    }
}

fn ends(theater: &Theater) -> (ActorRef<Watcher>, Receiver<(ActorId, StopReason)>) {
    let (told, ends) = channel();
    (theater.system().spawn(Watcher(told)), ends)
}

fn end_of(ends: &Receiver<(ActorId, StopReason)>) -> StopReason {
    ends.recv_timeout(LIMIT).unwrap().1
}

fn two() -> (Theater, Theater, Peer) {
    let (here, there) = (theater(), theater());
    let peer = here.connect(there.address().unwrap()).unwrap();
    (here, there, peer)
}

fn supervisor(theater: &Theater, policy: SupervisionPolicy) -> ActorRef<Supervisor> {
    theater.system().spawn(Supervisor::new(policy))
}

/// Returns the spec of a counter of life 1, 2, ..
fn counter(name: &str) -> ChildSpec<Counter> {
    let lives = AtomicU64::new(0);
    ChildSpec::new(name, move || Counter { incarnation: 1 + lives.fetch_add(1, Ordering::Relaxed), n: 0 })
}

fn start(supervisor: ActorRef<Supervisor>, child: ChildSpec<Counter>) -> ActorRef<Counter> {
    supervisor.ask(child).within(LIMIT).wait().unwrap().unwrap()
}

/// Returns a child of a supervisor of its own, and the count of its lives.
fn counted_child(theater: &Theater) -> (ActorRef<Counter>, Arc<AtomicU64>) {
    let lives = Arc::new(AtomicU64::new(0));
    let lived = Arc::clone(&lives);
    let counter = move || Counter { incarnation: 1 + lived.fetch_add(1, Ordering::Relaxed), n: 0 };
    let child = start(supervisor(theater, SupervisionPolicy::one_for_one()), ChildSpec::new("child", counter));
    (child, lives)
}

fn add(to: ActorRef<Counter>, n: u64) -> Result<(u64, u64), AskError> {
    to.ask(Add(n)).within(LIMIT).wait()
}

fn crash(who: ActorRef<Counter>, crash: Crash) {
    assert_eq!(who.ask(crash).within(LIMIT).wait(), Err(AskError::Panicked));
}

/// Returns the number of actors that live in a theater.
fn living(theater: &Theater) -> usize {
    let mut living = 0;
    theater.system().core().each_resident(|_, _| living += 1);
    living
}

// GUARANTEE: Children in other theaters are supervised
#[test]
fn a_remote_child_restarts_with_a_new_state_and_keeps_its_mailbox() {
    let (here, there, peer) = two();
    let supervisor = supervisor(&here, SupervisionPolicy::one_for_one().max_restarts(100, Duration::from_secs(5)));
    let child = start(supervisor, counter("child").at(&peer));
    there
        .publish(
            "child",
            there.find(&format!("playhouse://{}/child", there.address().unwrap())).wait().unwrap_or(child),
        )
        .unwrap();
    assert_eq!(add(child, 1), Ok((1, 1)));
    for incarnation in 1..=20 {
        assert_eq!(add(child, 1).unwrap().0, incarnation);
        child.tell(panic("on purpose"));
        // These messages wait for the verdict, in order.
        for n in 1..=10 {
            child.tell(Add(n));
        }
        assert_eq!(add(child, 0), Ok((incarnation + 1, 55)));
    }
    crash(child, Crash { text: "an error".to_owned(), error: true });
    assert_eq!(add(child, 1), Ok((22, 1)));
    assert_eq!(supervisor.ask(FindChild::new("child")).wait().unwrap(), Some(child));
    here.shutdown().unwrap();
    there.shutdown().unwrap();
}

// GUARANTEE: Children in other theaters are supervised
#[test]
fn a_remote_child_is_resumed_stopped_or_escalated_by_its_crash_text() {
    let (here, _there, peer) = two();
    let policy = SupervisionPolicy::one_for_one()
        .on::<std::io::Error>(Directive::Escalate) // does not fit: only its text has arrived
        .when(|text| text.contains("go on"), Directive::Resume)
        .when(|text| text.contains("stop"), Directive::Stop)
        .when(|text| text.contains("all"), Directive::Escalate);
    let supervisor = supervisor(&here, policy);
    let (watcher, ends) = ends(&here);
    let [first, second] = ["first", "second"].map(|name| start(supervisor, counter(name).at(&peer)));
    add(first, 5).unwrap();
    crash(first, panic("go on"));
    assert_eq!(add(first, 1), Ok((1, 6)));
    crash(first, Crash { text: "an error".to_owned(), error: true });
    assert_eq!(add(first, 1), Ok((2, 1)));

    watcher.ask(Look(first)).wait().unwrap();
    // The remote theater has watched everything after this, too.
    assert_eq!(add(first, 1), Ok((2, 2)));
    crash(first, Crash { text: "please stop".to_owned(), error: true });
    assert_eq!(end_of(&ends), StopReason::Failed("please stop".to_owned()));
    eventually(|| supervisor.ask(FindChild::<Counter>::new("first")).wait().unwrap().is_none().then_some(()));
    assert_eq!(add(second, 1), Ok((1, 1)));

    watcher.ask(Look(second)).wait().unwrap();
    watcher.ask(Look(supervisor)).wait().unwrap();
    assert_eq!(add(second, 1), Ok((1, 2)));
    crash(second, panic("it is all over"));
    let mut ended = [ends.recv_timeout(LIMIT).unwrap(), ends.recv_timeout(LIMIT).unwrap()];
    ended.sort_by_key(|(who, _)| *who != second.id());
    assert_eq!(ended[0].1, StopReason::Panicked("it is all over".to_owned()));
    assert!(matches!(&ended[1].1, StopReason::Failed(why) if why.contains("it is all over")), "{ended:?}");
}

// GUARANTEE: Children in other theaters are supervised
#[test]
fn local_and_remote_children_are_restarted_together() {
    let (here, _there, peer) = two();
    for (policy, lives) in
        [(SupervisionPolicy::one_for_all(), [2, 2, 2]), (SupervisionPolicy::rest_for_one(), [1, 2, 2])]
    {
        let supervisor = supervisor(&here, policy);
        let children = [
            start(supervisor, counter("here")),
            start(supervisor, counter("there").at(&peer)),
            start(supervisor, counter("there too").at(&peer)),
        ];
        crash(children[1], panic("on purpose"));
        for (child, incarnation) in children.into_iter().zip(lives) {
            eventually(|| (add(child, 0).unwrap().0 == incarnation).then_some(()));
        }
        // The local child crashes as well.
        crash(children[0], panic("on purpose"));
        eventually(|| (add(children[0], 0).unwrap().0 == lives[0] + 1).then_some(()));
        eventually(|| (add(children[2], 0).unwrap().0 == 3).then_some(()));
    }
}

// GUARANTEE: Children in other theaters are supervised
#[test]
fn a_supervisor_gives_up_on_a_remote_child() {
    let (here, there, peer) = two();
    let supervisor = supervisor(&here, SupervisionPolicy::one_for_one().max_restarts(2, Duration::from_secs(60)));
    let (watcher, ends) = ends(&here);
    let [child, other] = ["child", "other"].map(|name| start(supervisor, counter(name).at(&peer)));
    watcher.ask(Look(supervisor)).wait().unwrap();
    for _ in 0..3 {
        crash(child, panic("on purpose"));
    }
    let reason = end_of(&ends);
    assert!(matches!(&reason, StopReason::Failed(why) if why.contains("\"child\": on purpose")), "{reason:?}");
    for child in [child, other] {
        eventually(|| (add(child, 1) == Err(AskError::Stopped)).then_some(()));
    }
    eventually(|| (living(&there) == 0).then_some(()));
    // No message was sent to a supervisor that has ended.
    assert_eq!(here.system().stats().total.dead_letters + there.system().stats().total.dead_letters, 0);
}

#[test]
fn a_remote_childs_crash_is_reported_once_with_its_supervisors_decision() {
    for directive in [Directive::Restart, Directive::Stop, Directive::Escalate] {
        let (here, there, peer) = two();
        let (tell, crashes) = channel();
        let [tell_here, tell_there] = [tell.clone(), tell];
        there.system().on_crash(move |crash| tell_there.send((crash.actor, crash.then)).unwrap());
        here.system().on_crash(move |crash| tell_here.send((crash.actor, crash.then)).unwrap());
        let (tell, decisions) = channel();
        here.system().on_decision(move |decision| tell.send((decision.child.clone(), decision.directive)).unwrap());
        let supervisor = supervisor(&here, SupervisionPolicy::one_for_one().when(|_| true, directive));
        let child = start(supervisor, counter("child").at(&peer));
        crash(child, panic("on purpose"));
        let [counter, boss] = [type_name::<Counter>(), type_name::<Supervisor>()];
        let mut expected = vec![(counter, AfterCrash::SupervisorDecides)];
        match directive {
            Directive::Restart => assert_eq!(add(child, 1), Ok((2, 1))),
            _ => eventually(|| (living(&there) == 0).then_some(())),
        }
        if directive == Directive::Escalate {
            expected.push((boss, AfterCrash::Ends));
        } else {
            assert_eq!(decisions.recv_timeout(LIMIT).unwrap(), ("child".to_owned(), directive));
        }
        here.shutdown().unwrap();
        there.shutdown().unwrap();
        assert_eq!(crashes.try_iter().collect::<Vec<_>>(), expected);
        assert_eq!(decisions.try_iter().count(), 0);
    }
}

fn ends_with_its_supervisor(start: impl Fn(ActorRef<Supervisor>, &Theater, &Peer) -> ActorRef<Counter>) {
    let (here, there, peer) = two();
    for how in [ActorRef::<Supervisor>::stop, ActorRef::kill] {
        let supervisor = supervisor(&here, SupervisionPolicy::one_for_one());
        let child = start(supervisor, &here, &peer);
        let (watcher, ends) = ends(&here);
        watcher.ask(Look(child)).wait().unwrap();
        assert_eq!(add(child, 1), Ok((1, 1)));
        how(supervisor);
        let end = end_of(&ends);
        assert_eq!(end, StopReason::Stopped, "{:?} {:?}", peer.is_lost(), peer.protocol_error());
    }
    eventually(|| (living(&there) == 0).then_some(()));
}

// GUARANTEE: No child without a supervisor
#[test]
fn a_remote_child_ends_with_its_supervisor() {
    ends_with_its_supervisor(|supervisor, _, peer| start(supervisor, counter("child").at(peer)));
}

// GUARANTEE: No child without a supervisor
#[test]
fn a_child_ends_when_its_supervisors_theater_is_lost() {
    let lost_after = Duration::from_millis(200);
    let holds = || Fault::Cut(1 << 40..1 << 41);
    let there = builder().lost_after(lost_after).start().unwrap();
    // Each theater calls the other one over a proxy that can be severed. Another program may take the port in between; in that
    // case another port is tried.
    let (here, back) = eventually(|| {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let back = Between::new(free, 1, holds());
        let here = builder().lost_after(lost_after).listen(free.to_string()).advertise(back.address().to_string());
        Some((here.start().ok()?, back))
    });
    let between = Between::new(there.address().unwrap(), 1, holds());
    let peer = here.connect(between.address()).unwrap();
    let policy = SupervisionPolicy::one_for_one().backoff(LIMIT, LIMIT);
    let supervisor = supervisor(&here, policy);
    let [held, calm] = ["held", "calm"].map(|name| start(supervisor, counter(name).at(&peer)));
    for (name, child) in [("held", held), ("calm", calm)] {
        here.publish(name, child).unwrap();
    }
    let known =
        |name| there.find::<Counter>(&format!("playhouse://{}/{name}", here.address().unwrap())).wait().unwrap();
    let (watcher, ends) = ends(&there);
    let known = ["held", "calm"].map(known);
    for child in known {
        watcher.ask(Look(child)).wait().unwrap();
    }
    // It is parked while it waits for a restart that is to come much later.
    crash(held, panic("on purpose"));
    between.sever();
    back.sever();
    let mut ended = [ends.recv_timeout(LIMIT).unwrap(), ends.recv_timeout(LIMIT).unwrap()];
    ended.sort_by_key(|(who, _)| *who != known[0].id());
    assert_eq!(ended.map(|(_, reason)| reason), [StopReason::Panicked("on purpose".to_owned()), StopReason::Stopped]);
}

// GUARANTEE: A lost theater is one crash
#[test]
fn children_of_a_lost_theater_are_started_anew_when_it_is_back() {
    let here = theater();
    // Another program may take the port in between; in that case another port is tried.
    eventually(|| {
        let there = theater();
        let address = there.address().unwrap().to_string();
        let peer = here.connect(&address).unwrap();
        // The loss of two of them is one crash, but calls may fail until the theater exists again.
        let policy = SupervisionPolicy::one_for_one()
            .max_restarts(1_000, Duration::from_secs(60))
            .backoff(Duration::from_millis(5), Duration::from_millis(20));
        let supervisor = supervisor(&here, policy);
        let former = ["first", "second"].map(|name| start(supervisor, counter(name).at(&peer)));
        for child in former {
            assert_eq!(add(child, 7), Ok((1, 7)));
        }
        there.shutdown().unwrap();
        let again = builder().listen(&*address).start().ok()?;
        for (name, former) in ["first", "second"].into_iter().zip(former) {
            let found = || supervisor.ask(FindChild::<Counter>::new(name)).within(LIMIT).wait().unwrap();
            let child = eventually(|| found().filter(|child| *child != former));
            assert_eq!(add(child, 1), Ok((2, 1)));
            assert!(add(former, 1).is_err());
            // It is supervised like the one before.
            crash(child, panic("on purpose"));
            assert_eq!(add(child, 1), Ok((3, 1)));
        }
        supervisor.stop();
        eventually(|| (living(&again) == 0).then_some(()));
        again.shutdown().unwrap();
        Some(())
    });
}

// GUARANTEE: A lost theater is one crash
#[test]
fn a_lost_theater_is_one_crash_and_the_supervisor_gives_up_where_it_cannot_be_reached() {
    let (here, there, peer) = two();
    // A crash of its own, and a rule of its own.
    let stops = supervisor(&here, SupervisionPolicy::one_for_one().on::<TheaterLost>(Directive::Stop));
    let gives_up = supervisor(&here, SupervisionPolicy::one_for_one().max_restarts(1, Duration::from_secs(60)));
    let (watcher, ends) = ends(&here);
    watcher.ask(Look(gives_up)).wait().unwrap();
    for name in ["a", "b", "c"] {
        start(stops, counter(name).at(&peer));
        start(gives_up, counter(name).at(&peer));
    }
    let kept = start(stops, counter("here"));
    there.shutdown().unwrap();
    let reason = end_of(&ends);
    // The second crash, and not the first, was one too many.
    assert!(matches!(&reason, StopReason::Failed(why) if why.contains("cannot be reached")), "{reason:?}");
    for name in ["a", "b", "c"] {
        eventually(|| stops.ask(FindChild::<Counter>::new(name)).wait().unwrap().is_none().then_some(()));
    }
    assert_eq!(add(kept, 1), Ok((1, 1)));
    let late = stops.ask(counter("late").at(&peer)).wait().unwrap().unwrap_err();
    assert!(late.to_string().contains("lost"), "{late}");
}

/// Can be written `times` times.
#[derive(Debug)]
struct Shy {
    times: Arc<AtomicU64>,
    readable: bool,
}
impl Serialize for Shy {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let left = self.times.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |times| times.checked_sub(1));
        left.map_err(|_| serde::ser::Error::custom("it will not"))?;
        self.readable.serialize(serializer)
    }
}
impl<'de> Deserialize<'de> for Shy {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let readable = bool::deserialize(deserializer)?;
        if readable { Ok(Shy { times: Arc::default(), readable }) } else { Err(serde::de::Error::custom("unreadable")) }
    }
}
impl Actor for Shy {}
impl Handler<Crash> for Shy {
    fn handle(&mut self, crash: Crash, _: &mut Context<Self>) {
        panic!("{}", crash.text);
    }
}
remote!(spawn Shy: Crash);

// GUARANTEE: Children in other theaters are supervised
#[test]
fn a_child_whose_new_state_does_not_arrive_ends() {
    let (here, there, peer) = two();
    let (watcher, ends) = ends(&here);
    let times = Arc::new(AtomicU64::new(1));
    let one = supervisor(&here, SupervisionPolicy::one_for_one());
    let shy = ChildSpec::new("shy", move || Shy { times: Arc::clone(&times), readable: true }).at(&peer);
    let shy = one.ask(shy).wait().unwrap().unwrap();
    watcher.ask(Look(shy)).wait().unwrap();
    shy.tell(panic("on purpose"));
    assert_eq!(end_of(&ends), StopReason::Panicked("on purpose".to_owned()));
    eventually(|| one.ask(FindChild::<Shy>::new("shy")).wait().unwrap().is_none().then_some(()));

    // A child that the remote theater cannot read is a crash each time.
    let unreadable = || Shy { times: Arc::new(AtomicU64::new(1)), readable: false };
    let other = supervisor(&here, SupervisionPolicy::one_for_one());
    watcher.ask(Look(other)).wait().unwrap();
    other.ask(ChildSpec::new("unreadable", unreadable).at(&peer)).wait().unwrap().unwrap();
    let reason = end_of(&ends);
    assert!(matches!(&reason, StopReason::Failed(why) if why.contains("unreadable")), "{reason:?}");

    // A child that cannot be written was never started.
    let mute = || Shy { times: Arc::default(), readable: true };
    let never = one.ask(ChildSpec::new("mute", mute).at(&peer)).wait().unwrap().unwrap_err();
    assert!(never.to_string().contains("it will not"), "{never}");
    assert_eq!(living(&there), 0);
}

/// Cannot be read, or panics on its own.
struct Odd {
    panics: bool,
}
impl Serialize for Odd {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.panics.serialize(serializer)
    }
}
impl<'de> Deserialize<'de> for Odd {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        assert!(!bool::deserialize(deserializer)?, "it panics");
        Err(serde::de::Error::custom("it is unreadable"))
    }
}
impl Actor for Odd {}
remote!(mobile Odd: );

#[test]
fn a_mobile_child_that_cannot_be_read_is_a_crash_each_time() {
    let (here, there, peer) = two();
    let (watcher, ends) = ends(&here);
    for (panics, text) in [(false, "it is unreadable"), (true, "it panics")] {
        let supervisor = supervisor(&here, SupervisionPolicy::one_for_one());
        watcher.ask(Look(supervisor)).wait().unwrap();
        supervisor.ask(ChildSpec::new("odd", move || Odd { panics }).at(&peer)).wait().unwrap().unwrap();
        let reason = end_of(&ends);
        assert!(matches!(&reason, StopReason::Failed(why) if why.contains(text)), "{reason:?}");
        assert_eq!(living(&there), 0);
    }
}

// GUARANTEE: Children in other theaters are supervised
#[test]
fn a_factory_that_panics_is_a_crash_of_its_child() {
    let (here, _there, peer) = two();
    let supervisor = supervisor(&here, SupervisionPolicy::one_for_one().max_restarts(3, Duration::from_secs(60)));
    let lives = AtomicU64::new(0);
    let child = ChildSpec::new("child", move || {
        let incarnation = 1 + lives.fetch_add(1, Ordering::Relaxed);
        assert!(incarnation != 2, "no second life");
        Counter { incarnation, n: 0 }
    });
    let child = start(supervisor, child.at(&peer));
    crash(child, panic("on purpose"));
    assert_eq!(add(child, 1), Ok((3, 1)));
}

// GUARANTEE: Children in other theaters are supervised
#[test]
fn reports_and_verdicts_cross_broken_connections() {
    for seed in 0..3 {
        let (here, there) = (theater(), theater());
        let between = Between::new(there.address().unwrap(), seed, Fault::Cut(1..3_000));
        let peer = here.connect(between.address()).unwrap();
        let supervisor =
            supervisor(&here, SupervisionPolicy::one_for_one().max_restarts(usize::MAX, Duration::from_secs(60)));
        let child = start(supervisor, counter("child").at(&peer));
        for incarnation in 1..300 {
            child.tell(panic("on purpose"));
            assert_eq!(add(child, 1), Ok((incarnation + 1, 1)));
        }
        assert!(between.faults() > 0, "nothing was cut");
    }
}

// GUARANTEE: A theater that ends is lost at once
/// The other children are not lost.
#[test]
fn a_supervisor_whose_theater_is_shut_down_restarts_nobody() {
    let (home, there, peer) = two();
    let (child, lives) = counted_child(&home);
    home.publish("child", child).unwrap();
    let known = there.find::<Counter>(&format!("playhouse://{}/child", home.address().unwrap())).wait().unwrap();
    home.migrate(child, &peer).wait().unwrap();
    assert_eq!(home.shutdown().unwrap().actors_stopped, 1, "the supervisor");
    assert_eq!(known.ask(Add(1)).wait(), Err(AskError::Stopped), "it has ended with its supervisor");
    assert_eq!(lives.load(Ordering::Relaxed), 1);
}

// GUARANTEE: Children migrate
#[test]
fn a_child_that_moves_is_restarted_wherever_it_is() {
    let (here, there, peer) = two();
    let back = there.connect(here.address().unwrap()).unwrap();
    let supervisor = supervisor(&here, SupervisionPolicy::one_for_one().max_restarts(100, Duration::from_secs(5)));
    let child = start(supervisor, counter("child"));
    let found = || there.find::<Counter>(&format!("playhouse://{}/child", here.address().unwrap())).wait().unwrap();
    here.publish("child", child).unwrap();
    let mut incarnation = 1;
    for _ in 0..5 {
        assert_eq!(add(child, 3), Ok((incarnation, 3)));
        here.migrate(child, &peer).wait().unwrap();
        eventually(|| ((living(&here), living(&there)) == (1, 1)).then_some(()));
        // It has its state, its mailbox, and its supervisor.
        assert_eq!(add(child, 1), Ok((incarnation, 4)));
        child.tell(panic("over there"));
        for n in 1..=10 {
            child.tell(Add(n));
        }
        incarnation += 1;
        assert_eq!(add(child, 0), Ok((incarnation, 55)));
        there.migrate(found(), &back).wait().unwrap();
        assert_eq!(add(child, 1), Ok((incarnation, 56)));
        crash(child, panic("here again"));
        incarnation += 1;
    }
    assert_eq!(supervisor.ask(FindChild::new("child")).wait().unwrap(), Some(child));
    // This includes a child from a theater that its supervisor had started it in.
    let remote = start(supervisor, counter("remote").at(&peer));
    assert_eq!(add(remote, 1), Ok((1, 1)));
    here.publish("remote", remote).unwrap();
    let seen = there.find::<Counter>(&format!("playhouse://{}/remote", here.address().unwrap())).wait().unwrap();
    there.migrate(seen, &back).wait().unwrap();
    eventually(|| ((living(&here), living(&there)) == (3, 0)).then_some(()));
    crash(remote, panic("at its supervisor's"));
    assert_eq!(add(remote, 1), Ok((2, 1)));
    // It ends in its present theater, and its supervisor is notified.
    here.migrate(child, &peer).wait().unwrap();
    child.stop();
    eventually(|| supervisor.ask(FindChild::<Counter>::new("child")).wait().unwrap().is_none().then_some(()));
    eventually(|| (living(&there) == 0).then_some(()));
    assert_eq!(here.system().stats().total.dead_letters + there.system().stats().total.dead_letters, 0);
}

// GUARANTEE: Children migrate
#[test]
fn a_child_that_has_moved_ends_with_its_supervisor() {
    ends_with_its_supervisor(|supervisor, here, peer| {
        let child = start(supervisor, counter("child"));
        here.migrate(child, peer).wait().unwrap();
        child
    });
}

// GUARANTEE: Children migrate
#[test]
fn children_that_have_moved_are_restarted_with_the_others() {
    let (here, _there, peer) = two();
    let supervisor = supervisor(&here, SupervisionPolicy::one_for_all());
    let children = ["one", "two"].map(|name| start(supervisor, counter(name)));
    here.migrate(children[0], &peer).wait().unwrap();
    crash(children[0], panic("over there"));
    for child in children {
        eventually(|| (add(child, 0).unwrap().0 == 2).then_some(()));
    }
    crash(children[1], panic("here"));
    for child in children {
        eventually(|| (add(child, 0).unwrap().0 == 3).then_some(()));
    }
}

// GUARANTEE: A child that had migrated to a lost theater starts again
#[test]
fn children_lost_after_a_migration_start_again_at_their_supervisors() {
    let (here, there, peer) = two();
    // The losses would be too many if they were the children's crashes.
    let supervisor = supervisor(&here, SupervisionPolicy::one_for_one().max_restarts(1, Duration::from_secs(60)));
    let former = ["a", "b", "c", "d"].map(|name| start(supervisor, counter(name)));
    for child in former {
        assert_eq!(add(child, 7), Ok((1, 7)));
        here.migrate(child, &peer).wait().unwrap();
    }
    there.shutdown().unwrap();
    for (name, former) in ["a", "b", "c", "d"].into_iter().zip(former) {
        let found = || supervisor.ask(FindChild::<Counter>::new(name)).within(LIMIT).wait().unwrap();
        let child = eventually(|| found().filter(|child| *child != former));
        assert_eq!(add(child, 1), Ok((2, 1)));
        assert!(add(former, 1).is_err());
    }
    // They are supervised like the ones before, and may migrate again.
    let again = theater();
    let peer = here.connect(again.address().unwrap()).unwrap();
    let child = supervisor.ask(FindChild::<Counter>::new("a")).within(LIMIT).wait().unwrap().unwrap();
    here.migrate(child, &peer).wait().unwrap();
    crash(child, panic("on purpose"));
    assert_eq!(add(child, 1), Ok((3, 1)));
    again.shutdown().unwrap();
    let found = || supervisor.ask(FindChild::<Counter>::new("a")).within(LIMIT).wait().unwrap();
    let child = eventually(|| found().filter(|found| *found != child));
    assert_eq!(add(child, 1), Ok((4, 1)));
}

// GUARANTEE: Children migrate
/// Its stub leads over the lost theater until the actor is located, or reported already.
#[test]
fn a_child_that_has_gone_on_from_a_theater_that_is_lost_lives_once() {
    for (is_told, is_known) in [(false, false), (true, false), (false, true)] {
        let (here, there, third) = (theater(), theater(), theater());
        let address = there.address().unwrap().to_string();
        let peer = here.connect(&address).unwrap();
        let _met = is_known.then(|| here.connect(third.address().unwrap()).unwrap());
        let policy = SupervisionPolicy::one_for_one()
            .max_restarts(1_000, Duration::from_secs(60))
            .backoff(Duration::from_millis(5), Duration::from_millis(20));
        let supervisor = supervisor(&here, policy);
        let [goes, stays, with_it] =
            ["goes", "stays", "with it"].map(|name| start(supervisor, counter(name).at(&peer)));
        for (child, name) in [(goes, "goes"), (stays, "stays"), (with_it, "with it")] {
            assert_eq!(add(child, 7), Ok((1, 7)));
            here.publish(name, child).unwrap();
        }
        let seen = there.find::<Counter>(&format!("playhouse://{}/goes", here.address().unwrap())).wait().unwrap();
        there.migrate(seen, &there.connect(third.address().unwrap()).unwrap()).wait().unwrap();
        if is_told {
            assert_eq!(add(goes, 0), Ok((1, 7)));
        }
        there.shutdown().unwrap();
        // Another program may have taken the port; in that case no theater is started again.
        let again = builder().listen(&*address).start().ok();
        let found = |name| supervisor.ask(FindChild::<Counter>::new(name)).within(LIMIT).wait().unwrap();
        if again.is_some() {
            for (name, former) in [("stays", stays), ("with it", with_it)] {
                let child = eventually(|| found(name).filter(|child| *child != former));
                assert_eq!(add(child, 1), Ok((2, 1)));
            }
            assert_eq!((living(&third), again.as_ref().map(living)), (1, Some(2)));
        }
        assert_eq!((found("goes"), add(goes, 1)), (Some(goes), Ok((1, 8))));
        // It is supervised like before.
        crash(goes, panic("on purpose"));
        assert_eq!(add(goes, 1), Ok((2, 1)));
        supervisor.stop();
        eventually(|| (living(&third) == 0).then_some(()));
        [here, third].into_iter().chain(again).for_each(|theater| drop(theater.shutdown().unwrap()));
    }
}

/// A child starts again in the theater of its first start, regardless of the theater in which it was lost. The loss counts.
#[test]
fn a_child_lost_after_its_migration_restarts_in_the_configured_theater() {
    let (here, there, third) = (theater(), theater(), theater());
    let peer = here.connect(there.address().unwrap()).unwrap();
    let supervisor = supervisor(&here, SupervisionPolicy::one_for_one().max_restarts(1, Duration::from_secs(60)));
    let (watcher, ends) = ends(&here);
    watcher.ask(Look(supervisor)).wait().unwrap();
    let go = |child: ActorRef<Counter>, name: &str, to: &Theater| {
        here.publish(name, child).unwrap();
        let seen = there.find::<Counter>(&format!("playhouse://{}/{name}", here.address().unwrap())).wait().unwrap();
        there.migrate(seen, &there.connect(to.address().unwrap()).unwrap()).wait().unwrap();
    };
    let first = start(supervisor, counter("child").at(&peer));
    go(first, "first", &third);
    third.shutdown().unwrap();
    let found = || supervisor.ask(FindChild::<Counter>::new("child")).within(LIMIT).wait().unwrap();
    let second = eventually(|| found().filter(|child| *child != first));
    assert_eq!((add(second, 1), living(&there)), (Ok((2, 1)), 1));
    let last = theater();
    go(second, "second", &last);
    last.shutdown().unwrap();
    // This one was one too many.
    assert!(matches!(end_of(&ends), StopReason::Failed(_)));
    [here, there].into_iter().for_each(|theater| drop(theater.shutdown().unwrap()));
}
