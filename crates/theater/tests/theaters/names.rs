//! Name servers: the server in one theater, the named actor in another one, the asking actor in a third one.

use std::time::Duration;

use crate::faulty::{Between, Fault, eventually};
use crate::support::{LIMIT, builder, theater};
use playhouse_actor::wire::{Remote, WireForm};
use playhouse_actor::*;
use playhouse_theater::{CountNames, GetName, NameError, NameServer, NameServerClient, PutName, Theater};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Default)]
struct Counter {
    n: u64,
}

#[derive(Serialize, Deserialize)]
struct Add(u64);
impl Message for Add {
    type Reply = u64;
    const WIRE: Option<WireForm<Add>> = Some(WireForm::of());
}

impl Actor for Counter {}
impl Handler<Add> for Counter {
    fn handle(&mut self, Add(n): Add, _: &mut Context<Self>) -> u64 {
        self.n += n;
        self.n
    }
}
remote!(mobile Counter: Add);

#[derive(Serialize, Deserialize)]
struct Clerk;
impl Actor for Clerk {}
impl Handler<Add> for Clerk {
    fn handle(&mut self, Add(n): Add, _: &mut Context<Self>) -> u64 {
        n
    }
}
remote!(Clerk: Add);

/// Returns the name server of `home`, as it is known in `theater`.
fn server_in(theater: &Theater, home: &Theater) -> ActorRef<NameServer> {
    theater.find(&format!("playhouse://{}/names", home.address().unwrap())).wait().unwrap()
}

fn with_server(theater: Theater, server: NameServer) -> Theater {
    let server = theater.system().spawn(server);
    theater.publish("names", server).unwrap();
    theater
}

/// Returns the theaters of a name server, of a named actor, and of an asking actor, with the server as it is known in the last
/// two.
fn three() -> ([Theater; 3], ActorRef<NameServer>, ActorRef<NameServer>) {
    let theaters = [with_server(theater(), NameServer::new()), theater(), theater()];
    let [in_owners, in_users] = [1, 2].map(|of: usize| server_in(&theaters[of], &theaters[0]));
    (theaters, in_owners, in_users)
}

fn add(to: ActorRef<Counter>, n: u64) -> Result<u64, AskError> {
    to.ask(Add(n)).within(LIMIT).wait()
}

/// Waits until a name is free.
fn is_freed(server: ActorRef<NameServer>, name: &str) {
    let error = eventually(|| server.get::<Counter>(name).within(LIMIT).wait().err());
    assert_eq!(error, NameError::Unknown { name: name.to_owned() });
}

fn count(server: ActorRef<NameServer>) -> u64 {
    server.ask(CountNames).within(LIMIT).wait().unwrap()
}

// GUARANTEE: Name servers
#[test]
fn a_name_put_by_one_theater_is_got_by_another() {
    let ([_home, owners, _users], owner, user) = three();
    let [first, second] = [1, 2].map(|n| owners.system().spawn(Counter { n }));
    owner.put("main", first).wait().unwrap();
    owner.put("main", first).wait().unwrap();
    let got = user.get::<Counter>("main").wait().unwrap();
    assert_eq!(add(got, 10), Ok(11));
    assert_eq!(user.get::<Counter>("main").wait(), Ok(got));

    let taken = NameError::Taken { name: "main".to_owned(), by: Counter::wire_name().to_owned() };
    assert_eq!(owner.put("main", second).wait(), Err(taken));
    owner.update("main", second).wait().unwrap();
    let updated = user.get::<Counter>("main").wait().unwrap();
    assert_eq!((add(updated, 10), add(got, 10)), (Ok(12), Ok(21)));
    // The actor that had the name before does not take it along.
    first.stop();
    eventually(|| got.ask(Add(0)).within(LIMIT).wait().is_err().then_some(()));
    assert_eq!(user.get::<Counter>("main").wait(), Ok(updated));

    assert_eq!(user.remove("main").wait(), Ok(true));
    assert_eq!(user.remove("main").wait(), Ok(false));
    assert_eq!(user.get::<Counter>("main").wait(), Err(NameError::Unknown { name: "main".to_owned() }));
    owner.put("main", second).wait().unwrap();
    // The reference that comes home is the one that has left.
    assert_eq!(owner.get::<Counter>("main").wait(), Ok(second));
}

/// A type that its program does not list, and that no other program therefore knows.
struct Hidden;
impl Actor for Hidden {}
impl Remote for Hidden {
    fn wire_name() -> &'static str {
        "test.Hidden"
    }
}

// GUARANTEE: Name servers
#[test]
fn errors_say_whether_the_name_or_the_type_is_wrong() {
    let ([home, owners, _users], owner, user) = three();
    let clerk = owners.system().spawn(Clerk);
    owner.put("clerk", clerk).wait().unwrap();
    let wrong = NameError::WrongType {
        name: "clerk".to_owned(),
        expected: Counter::wire_name().to_owned(),
        found: Clerk::wire_name().to_owned(),
    };
    assert_eq!(user.get::<Counter>("clerk").wait(), Err(wrong));
    assert!(user.get::<Clerk>("clerk").wait().is_ok());
    // Without its type it is the same actor, and reports its type.
    let any = user.ask(GetName::any("clerk")).wait().unwrap().unwrap();
    assert_eq!(any.type_name(), Clerk::wire_name());
    let why = any.downcast::<Counter>().unwrap_err();
    assert_eq!(why, WrongType { expected: Counter::wire_name(), found: Clerk::wire_name() });
    assert_eq!(any.downcast::<Clerk>().unwrap().ask(Add(3)).wait(), Ok(3));

    for bytes in [0, 256] {
        assert_eq!(owner.put("x".repeat(bytes), clerk).wait(), Err(NameError::Malformed { bytes }));
    }
    owner.put("x".repeat(255), clerk).wait().unwrap();

    let hidden = owners.system().spawn(Hidden);
    let unknown = owner.put("hidden", hidden).wait().unwrap_err();
    assert!(
        matches!(&unknown, NameError::NoAnswer(AskError::Unreachable(why)) if why.contains("test.Hidden")),
        "{unknown}"
    );
    let ended = owners.system().spawn(Counter::default());
    ended.drain();
    eventually(|| ended.is_stopped().then_some(()));
    // Another theater learns that when it asks for it.
    owner.put("ended", ended).wait().unwrap();
    is_freed(user, "ended");
    let server = server_in(&home, &home);
    let ended = home.system().spawn(Clerk);
    ended.drain();
    eventually(|| ended.is_stopped().then_some(()));
    assert_eq!(server.put("ended", ended).wait(), Err(NameError::Ended { name: "ended".to_owned() }));
    assert_eq!(count(user), 2);
}

// GUARANTEE: Name servers
#[test]
fn a_full_server_says_so_and_has_room_again() {
    let home = with_server(theater(), NameServer::with_room_for(2));
    let server = server_in(&home, &home);
    let [first, second] = [1, 2].map(|n| home.system().spawn(Counter { n }));
    server.put("a", first).wait().unwrap();
    server.put("b", second).wait().unwrap();
    assert_eq!(server.put("c", second).wait(), Err(NameError::Full { names: 2 }));
    server.update("b", first).wait().unwrap();
    assert_eq!(server.remove("a").wait(), Ok(true));
    server.put("c", second).wait().unwrap();
    first.stop();
    is_freed(server, "b");
    server.put("d", second).wait().unwrap();
}

// GUARANTEE: Name servers
#[test]
fn the_names_of_an_actor_are_free_when_it_has_ended() {
    let ([_home, owners, _users], owner, user) = three();
    for round in 0..3 {
        let counters: Vec<_> = (0..100).map(|n| owners.system().spawn(Counter { n })).collect();
        for (number, counter) in counters.iter().enumerate() {
            owner.put(format!("first {number}"), *counter).wait().unwrap();
            owner.put(format!("second {number}"), *counter).wait().unwrap();
        }
        assert_eq!(count(user), 200, "in round {round}");
        for counter in counters {
            counter.stop();
        }
        eventually(|| (count(user) == 0).then_some(()));
    }
    is_freed(user, "first 3");
}

// GUARANTEE: Name servers
#[test]
fn a_reference_stays_good_when_the_actor_has_moved_and_so_does_its_name() {
    let ([home, owners, users], owner, user) = three();
    let counter = owners.system().spawn(Counter { n: 1 });
    owner.put("mobile", counter).wait().unwrap();
    let got = user.get::<Counter>("mobile").wait().unwrap();
    assert_eq!(add(got, 1), Ok(2));
    // To a theater that did not exist when it was named, to the one of the name server, and to the one of the asking actor.
    let fourth = theater();
    let to = |from: &Theater, to: &Theater| from.connect(to.address().unwrap()).unwrap();
    let mut sum = 2;
    let (mut here, mut known) = (&owners, counter);
    for next in [&fourth, &home, &users] {
        here.migrate(known, &to(here, next)).wait().unwrap();
        sum += 1;
        assert_eq!(add(got, 1), Ok(sum));
        assert_eq!(user.get::<Counter>("mobile").wait(), Ok(got));
        here = next;
        known = server_in(here, &home).get("mobile").wait().unwrap();
    }
    assert_eq!(known, got);
    // The theater of its end does not matter.
    got.stop();
    is_freed(user, "mobile");
    assert_eq!(count(user), 0);
}

// GUARANTEE: Name servers
#[test]
fn the_names_of_a_lost_theater_are_free() {
    let lost_after = Duration::from_millis(200);
    let home = with_server(builder().lost_after(lost_after).start().unwrap(), NameServer::new());
    // No theater can call it.
    let owners = Theater::builder().lost_after(lost_after).start().unwrap();
    let users = theater();
    let between = Between::new(home.address().unwrap(), 1, Fault::Cut(1 << 40..1 << 41));
    let owner = owners.find::<NameServer>(&format!("playhouse://{}/names", between.address())).wait().unwrap();
    let peer = home.peers().remove(0);
    let user = server_in(&users, &home);
    let [lost, kept] = [&owners, &users].map(|theater| theater.system().spawn(Counter { n: 1 }));
    owner.put("lost", lost).wait().unwrap();
    user.put("kept", kept).wait().unwrap();
    between.sever();
    eventually(|| peer.is_lost().then_some(()));
    is_freed(user, "lost");
    assert_eq!(user.get::<Counter>("kept").wait(), Ok(kept));
    user.put("lost", kept).wait().unwrap();
    assert_eq!(count(user), 2);
    // The other end has lost the name server.
    eventually(|| owner.get::<Counter>("kept").wait().is_err().then_some(()));
}

// GUARANTEE: Name servers
#[test]
fn name_servers_know_nothing_of_each_other() {
    let ([home, owners, users], owner, user) = three();
    // The second actor is started from another theater, and published in this one.
    let peer = users.connect(owners.address().unwrap()).unwrap();
    let second = users.spawn_at(&peer, &NameServer::with_room_for(1)).unwrap();
    users.publish("names", second).unwrap();
    let [one, two] = [1, 2].map(|n| owners.system().spawn(Counter { n }));
    owner.put("it", one).wait().unwrap();
    let second_in_owners = server_in(&owners, &users);
    second_in_owners.put("it", two).wait().unwrap();
    assert_eq!(add(user.get("it").wait().unwrap(), 0), Ok(1));
    assert_eq!(add(server_in(&home, &users).get("it").wait().unwrap(), 0), Ok(2));
    assert_eq!(second_in_owners.put("that", two).wait(), Err(NameError::Full { names: 1 }));
    assert_eq!(second.remove("it").wait(), Ok(true));
    assert_eq!(add(user.get("it").wait().unwrap(), 0), Ok(1));
}

// GUARANTEE: Name servers
#[test]
fn a_handler_asks_a_name_server_without_holding_its_worker() {
    /// Adds to the actor of a name.
    struct User(ActorRef<NameServer>, Option<Result<u64, NameError>>);
    struct Use(&'static str);
    impl Message for Use {
        type Reply = Result<u64, NameError>;
    }
    struct Look;
    impl Message for Look {
        type Reply = ();
    }
    struct Looked;
    impl Message for Looked {
        type Reply = Option<Result<u64, NameError>>;
    }
    impl Actor for User {}
    impl AsyncHandler<Use> for User {
        async fn handle(&mut self, Use(name): Use, _: &mut Context<Self>) -> Result<u64, NameError> {
            let found = self.0.get::<Counter>(name).within(LIMIT).await?;
            found.ask(Add(1)).await.map_err(NameError::NoAnswer)
        }
    }
    impl Handler<Look> for User {
        fn handle(&mut self, _: Look, ctx: &mut Context<Self>) {
            ctx.ask(self.0, GetName::any("it")).then(|this, found, ctx| {
                let found = found.unwrap().unwrap().downcast::<Counter>().unwrap();
                ctx.ask(found, Add(1)).then(|this: &mut User, sum, _| this.1 = Some(sum.map_err(NameError::NoAnswer)));
                this.1 = None;
            });
        }
    }
    impl Handler<Looked> for User {
        fn handle(&mut self, _: Looked, _: &mut Context<Self>) -> Option<Result<u64, NameError>> {
            self.1.clone()
        }
    }
    let ([_home, owners, users], owner, user) = three();
    let actor = users.system().spawn(User(user, None));
    let unknown = NameError::Unknown { name: "it".to_owned() };
    assert_eq!(actor.ask(Use("it")).wait().unwrap(), Err(unknown));
    owner.ask(PutName::new("it", owners.system().spawn(Counter { n: 1 }))).wait().unwrap().unwrap();
    assert_eq!(actor.ask(Use("it")).wait().unwrap(), Ok(2));
    actor.tell(Look);
    eventually(|| actor.ask(Looked).wait().unwrap().map(|sum| assert_eq!(sum, Ok(3))));
}
