//! The code of `#[actor]` and `#[derive(Message)]`, at work in a system.

// A bound that only one message needs is separate from those of the actor.
#![allow(clippy::multiple_bound_locations)]

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::mpsc::{Sender, channel};

use playhouse::prelude::*;

/// An actor with all forms of message methods.
#[derive(Default)]
struct Desk {
    log: Vec<String>,
}

#[actor]
impl Desk {
    const SIZE: usize = 2;

    #[message]
    fn add(&mut self, line: String) {
        self.log.push(line);
    }

    #[message]
    fn lines(&self) -> Vec<String> {
        self.log.clone()
    }

    #[message]
    fn context_first(&mut self, ctx: &mut Context<Self>, a: u8, b: u8) -> (ActorRef<Self>, u8) {
        (ctx.this(), a - b)
    }

    #[message]
    fn context_between(&self, a: u8, ctx: &mut playhouse::Context<Desk>, b: u8) -> (ActorRef<Desk>, u8) {
        (ctx.this(), a - b)
    }

    #[allow(clippy::needless_arbitrary_self_type)]
    #[message]
    fn shared_context_last(self: &mut Self, a: u8, b: u8, ctx: &Context<Self>) -> (ActorRef<Self>, u8) {
        (ctx.this(), a - b)
    }

    #[message]
    async fn copy_from(&mut self, from: ActorRef<Self>) -> usize {
        self.log = from.ask(Lines).await.unwrap_or_default();
        self.log.len()
    }

    #[message]
    async fn copy_with_context(&mut self, ctx: &mut Context<Self>, from: ActorRef<Self>) {
        assert_ne!(ctx.this(), from);
        let lines = from.ask(Lines).await.unwrap_or_default();
        self.log.extend(lines);
    }

    #[message(name = "Empty", derive(Debug, Clone, PartialEq))]
    fn clear(&mut self) {
        self.log.clear();
    }

    #[message]
    fn squared(&self, bytes: [u8; Self::SIZE]) -> [u8; Self::SIZE] {
        bytes
    }

    #[message]
    fn with_static(&mut self, text: &'static str, unused: Option<&'static [u8]>) -> &'static str {
        self.log.push(text.into());
        let _ = unused;
        text
    }

    #[message]
    fn edit(&mut self, edit: fn(&mut String), more: Box<dyn Fn(&str) -> String + Send>) {
        for line in &mut self.log {
            edit(line);
            *line = more(line);
        }
    }

    #[message]
    fn ignore(&self, _: String, mut n: u8, _also: u8) -> u8 {
        n += 1;
        n
    }

    #[message]
    fn crash(&mut self, why: String) -> ! {
        panic!("{why}")
    }

    // These names also belong to the generated code.
    #[message]
    fn handle(&mut self, msg: u8, ctx: &mut Context<Self>) -> u8 {
        let _ = ctx.this();
        msg
    }

    #[message]
    fn r#match(&self, r#type: u8) -> u8 {
        r#type
    }

    #[cfg(any())]
    #[message]
    fn absent(&self, value: NoSuchType) {}

    #[cfg(not(any()))]
    #[message(name = "Either")]
    fn either_one(&self) -> u8 {
        1
    }

    #[cfg(any())]
    #[message(name = "Either")]
    fn either_other(&self) -> u8 {
        2
    }

    #[deprecated = "to see that nothing warns"]
    #[message]
    fn old(&mut self) {}

    /// This method is neither a message nor a hook.
    fn stopped(&self) -> bool {
        self.log.is_empty()
    }
}

#[test]
fn messages_reach_their_methods() -> playhouse::Result<()> {
    let system = System::start()?;
    let desk = system.spawn(Desk::default());
    desk.tell(Add("one".into()));
    assert_eq!(desk.ask(Lines).wait()?, ["one"]);

    assert_eq!(desk.ask(ContextFirst(9, 2)).wait()?, (desk, 7));
    assert_eq!(desk.ask(ContextBetween(9, 2)).wait()?, (desk, 7));
    assert_eq!(desk.ask(SharedContextLast(9, 2)).wait()?, (desk, 7));

    assert_eq!(desk.ask(Squared([1, 2])).wait()?, [1, 2]);
    assert_eq!(desk.ask(WithStatic("two", None)).wait()?, "two");
    desk.tell(Edit(|line| line.push('!'), Box::new(str::to_uppercase)));
    assert_eq!(desk.ask(Lines).wait()?, ["ONE!", "TWO!"]);
    assert_eq!(desk.ask(Ignore(String::new(), 4, 0)).wait()?, 5);
    assert_eq!(desk.ask(Handle(3)).wait()?, 3);
    assert_eq!(desk.ask(Match(4)).wait()?, 4);
    assert_eq!(desk.ask(Either).wait()?, 1);

    let other = system.spawn(Desk::default());
    assert_eq!(other.ask(CopyFrom(desk)).wait()?, 2);
    other.tell(CopyWithContext(desk));
    assert_eq!(other.ask(Lines).wait()?.len(), 4);

    assert_eq!(format!("{:?}", Empty.clone()), "Empty");
    other.tell(Empty);
    assert!(other.ask(Lines).wait()?.is_empty());
    let add: Recipient<Add> = other.recipient();
    add.tell(Add("three".into()));
    assert_eq!(other.ask(Lines).wait()?, ["three"]);

    assert_eq!(other.ask(Crash("on purpose".into())).wait(), Err(AskError::Panicked));
    system.shutdown()?;
    Ok(())
}

#[test]
fn methods_stay_methods() {
    let mut desk = Desk::default();
    assert!(desk.stopped());
    desk.add("one".into());
    assert_eq!(desk.lines(), ["one"]);
    assert_eq!(desk.ignore(String::new(), 1, 0), 2);
}

/// An actor that is generic over types with bounds of all kinds.
struct Cache<K, V, const N: usize>
where
    V: Clone,
{
    entries: HashMap<K, V>,
}

#[actor]
impl<K: Eq + Hash + Send + 'static, V, const N: usize> Cache<K, V, N>
where
    V: Clone + Send + 'static,
{
    #[message(derive(Debug))]
    fn put(&mut self, key: K, value: V) {
        if self.entries.len() < N {
            self.entries.insert(key, value);
        }
    }

    /// Only the key is an argument, and `V` is in the reply.
    #[message(derive(Debug))]
    fn lookup(&self, key: K) -> Option<V> {
        self.entries.get(&key).cloned()
    }

    /// The method has no argument, and generics in the reply.
    #[message]
    fn all(&self) -> Vec<(K, V)>
    where
        K: Clone,
    {
        self.entries.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    #[message]
    fn forget(&mut self, key: K) -> bool {
        self.entries.remove(&key).is_some()
    }

    #[message]
    fn len(&self) -> usize {
        self.entries.len()
    }

    #[message]
    fn room(&self) -> [(); N] {
        [(); N]
    }

    #[message]
    async fn take(&mut self, from: ActorRef<Self>, keys: Vec<K>) -> usize
    where
        K: Clone + Sync,
        V: Sync,
    {
        for key in keys {
            if let Ok(Some(value)) = from.ask(Lookup(key.clone())).await {
                self.put(key, value);
            }
        }
        self.entries.len()
    }
}

#[test]
fn generic_actors_have_generic_messages() -> playhouse::Result<()> {
    let system = System::start()?;
    let cache = system.spawn(Cache::<_, _, 3> { entries: HashMap::new() });
    cache.tell(Put("one", 1));
    cache.tell(Put("two", 2));
    assert_eq!(cache.ask(Lookup("two")).wait()?, Some(2));
    assert_eq!(cache.ask(All()).wait()?.len(), 2);
    assert_eq!(cache.ask(Len).wait()?, 2);
    assert_eq!(cache.ask(Room).wait()?.len(), 3);
    assert!(!cache.ask(Forget("none")).wait()?);
    let other = system.spawn(Cache::<_, _, 3> { entries: HashMap::new() });
    assert_eq!(other.ask(Take(cache, vec!["one", "two", "three"])).wait()?, 2);
    assert!(format!("{:?}", Put("a", 'b')).starts_with("Put"));
    assert_eq!(std::mem::size_of_val(&Lookup::<u64, String>(1)), 8);
    system.shutdown()?;
    Ok(())
}

struct Hooked(Sender<&'static str>);

#[actor]
impl Hooked {
    #[started]
    fn begin(&mut self) {
        let _ = self.0.send("started");
    }

    #[stopped]
    fn stopped(&mut self, _: &mut Context<Self>) {
        let _ = self.0.send("stopped");
    }

    #[message]
    fn end(&self, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}

struct Watching(Sender<&'static str>);

#[actor]
impl Watching {
    #[terminated]
    fn lost(&mut self, ctx: &mut Context<Self>, terminated: playhouse::Terminated) {
        assert_eq!(terminated.reason, StopReason::Stopped);
        let _ = self.0.send("terminated");
        ctx.stop();
    }

    #[message]
    fn look(&mut self, at: ActorRef<Hooked>, ctx: &mut Context<Self>) {
        ctx.watch(at);
        at.tell(End);
    }
}

#[test]
fn hooks_are_called() -> playhouse::Result<()> {
    let system = System::start()?;
    let (tx, rx) = channel();
    let hooked = system.spawn(Hooked(tx.clone()));
    system.spawn(Watching(tx)).tell(Look(hooked));
    assert_eq!(rx.iter().collect::<Vec<_>>(), ["started", "stopped", "terminated"]);
    system.shutdown()?;
    Ok(())
}

/// Hand-written handlers stand beside the messages of the block.
#[derive(Message, Debug, Clone)]
#[message(reply = Result<Vec<T>, String>)]
enum Query<T: Debug>
where
    T: Clone,
{
    All,
    Only { one: T },
    Pair(T, T),
}

#[derive(Message)]
struct Plain {
    #[allow(dead_code)]
    n: u8,
}

#[derive(Message)]
#[message(reply = [u8; N])]
struct Bytes<const N: usize>;

impl Handler<Query<u8>> for Desk {
    fn handle(&mut self, query: Query<u8>, _: &mut Context<Self>) -> Result<Vec<u8>, String> {
        match query {
            Query::All => Err("too many".into()),
            Query::Only { one } => Ok(vec![one]),
            Query::Pair(a, b) => Ok(vec![a, b]),
        }
    }
}

impl AsyncHandler<Plain> for Desk {
    async fn handle(&mut self, plain: Plain, _: &mut Context<Self>) {
        self.log.push(plain.n.to_string());
    }
}

impl<const N: usize> Handler<Bytes<N>> for Desk {
    fn handle(&mut self, _: Bytes<N>, _: &mut Context<Self>) -> [u8; N] {
        [7; N]
    }
}

#[test]
fn derived_messages_are_handled() -> playhouse::Result<()> {
    let system = System::start()?;
    let desk = system.spawn(Desk::default());
    assert_eq!(desk.ask(Query::Pair(1, 2)).wait()?, Ok(vec![1, 2]));
    assert_eq!(desk.ask(Query::Only { one: 1 }).wait()?, Ok(vec![1]));
    assert!(desk.ask(Query::<u8>::All).wait()?.is_err());
    assert_eq!(desk.ask(Bytes::<3>).wait()?, [7; 3]);
    desk.tell(Plain { n: 4 });
    assert_eq!(desk.ask(Lines).wait()?, ["4"]);
    system.shutdown()?;
    Ok(())
}

#[test]
fn actors_may_be_local_to_a_function() -> playhouse::Result<()> {
    struct Local(u8);
    #[actor]
    impl Local {
        #[message]
        fn bump(&mut self) -> u8 {
            self.0 += 1;
            self.0
        }
    }
    let system = System::start()?;
    assert_eq!(system.spawn(Local(1)).ask(Bump).wait()?, 2);
    system.shutdown()?;
    Ok(())
}

macro_rules! actor_from_a_macro {
    ($name:ident, $ty:ty, $context:ty) => {
        struct $name;
        #[actor]
        impl $name {
            #[message(name = "Echo")]
            fn echo_back(&self, value: $ty, _ctx: $context) -> $ty {
                value
            }
        }
    };
}

mod from_a_macro {
    use playhouse::prelude::*;
    actor_from_a_macro!(Mirror, Vec<u8>, &mut Context<Self>);

    #[test]
    fn types_may_come_through_macros() -> playhouse::Result<()> {
        let system = System::start()?;
        assert_eq!(system.spawn(Mirror).ask(Echo(vec![1])).wait()?, [1]);
        system.shutdown()?;
        Ok(())
    }
}

mod several_blocks {
    use playhouse::prelude::*;

    #[derive(Default)]
    pub struct Account {
        sum: u64,
        log: Vec<String>,
    }

    #[actor(remote)]
    impl Account {
        #[message(named, derive(Debug, Clone, PartialEq))]
        pub fn deposit(&mut self, amount: u64, note: String) -> u64 {
            self.sum += amount;
            self.log.push(note);
            self.sum
        }
    }

    /// A further block, in a module of its own.
    pub mod reports {
        use super::Account;
        use playhouse::prelude::*;

        #[actor(more, remote)]
        impl Account {
            #[message]
            pub fn sum(&self) -> u64 {
                self.sum
            }

            #[message(named, when = "*most < self.sum")]
            pub async fn withdraw(&mut self, most: u64) -> u64 {
                self.sum -= most;
                self.sum
            }
        }

        #[actor(more)]
        impl Account {
            /// The argument has no wire form.
            #[message(named)]
            pub fn read(&self, read: fn(&[String]) -> usize, reply: Reply<usize>) {
                reply.send(read(&self.log));
            }
        }
    }

    pub struct Shelf<T>(pub Vec<T>);

    #[actor]
    impl<T: Send + 'static> Shelf<T> {
        #[message(named)]
        pub fn put(&mut self, thing: T) {
            self.0.push(thing);
        }
    }

    #[actor(more)]
    impl Shelf<u8> {
        #[message]
        pub fn total(&self) -> u64 {
            self.0.iter().map(|n| u64::from(*n)).sum()
        }
    }
}

#[test]
fn an_actor_has_several_blocks_and_messages_with_named_fields() {
    use several_blocks::reports::{Read, Sum, Withdraw};
    use several_blocks::{Account, Deposit, Put, Shelf, Total};
    let system = System::start().unwrap();
    let account = system.spawn(Account::default());
    let deposit = Deposit { amount: 5, note: "first".to_owned() };
    assert_eq!(deposit.clone(), deposit);
    assert_eq!(account.ask(deposit).wait(), Ok(5));
    let withdrawn = std::thread::spawn(move || account.ask(Withdraw { most: 6 }).wait());
    assert_eq!(account.ask(Deposit { amount: 2, note: "second".to_owned() }).wait(), Ok(7));
    assert_eq!(withdrawn.join().unwrap(), Ok(1));
    assert_eq!(account.ask(Sum).wait(), Ok(1));
    assert_eq!(account.ask(Read { read: |log| log.len() }).wait(), Ok(2));
    let shelf = system.spawn(Shelf(vec![1_u8]));
    shelf.tell(Put { thing: 2 });
    assert_eq!(shelf.ask(Total).wait(), Ok(3));
    system.shutdown().unwrap();
}

// -- names of the program beside a message's arguments -------------------------------------------------------------------

const fn check() -> usize {
    4
}

struct Board;

#[actor(remote)]
#[deny(unused_qualifications)]
impl Board {
    #[message]
    #[allow(unused_qualifications)]
    fn moves(&self, moves: [u8; check()], of: std::vec::Vec<u8>) -> usize {
        moves.len() + of.len()
    }
}

#[test]
fn the_types_of_arguments_mean_what_they_mean_in_the_module() {
    let system = System::start().unwrap();
    assert_eq!(system.spawn(Board).ask(Moves([0; 4], vec![1])).wait(), Ok(5));
    system.shutdown().unwrap();
}
