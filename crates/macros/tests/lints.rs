//! The generated code is silent under strict lints: `cargo clippy --tests` checks it.
#![deny(
    warnings,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    unused_qualifications,
    single_use_lifetimes,
    clippy::all,
    clippy::pedantic
)]
#![allow(clippy::must_use_candidate)]

use playhouse::prelude::*;

/// An actor.
#[derive(Debug, Default)]
pub struct Counter {
    n: u64,
    names: Vec<String>,
}

#[actor]
impl Counter {
    /// Adds `by`, see [`Self::get`].
    ///
    /// # Examples
    ///
    /// ```
    /// panic!("an example of the method is no example of the message");
    /// ```
    #[message]
    pub fn add(&mut self, by: u64, _also: u8) {
        self.n += by;
    }

    #[message]
    #[allow(missing_docs)]
    pub fn get(&self) -> u64 {
        self.n
    }

    /// Takes an argument that it only looks at.
    #[message(derive(Debug, Clone))]
    pub fn knows(&self, name: String) -> bool {
        self.names.contains(&name)
    }

    /// Needs neither `self` nor `async`.
    #[message]
    pub async fn ping(&mut self) {}

    /// Neither does this.
    ///
    /// # Errors
    ///
    /// When `back` does not answer.
    #[message]
    pub async fn pong(&mut self, _ctx: &mut Context<Self>, back: ActorRef<Self>) -> Result<u64, AskError> {
        back.ask(Get).await
    }

    /// Is old.
    #[message]
    #[deprecated]
    pub fn old(&mut self, n: u64) -> u64 {
        n
    }

    #[started]
    fn begin(&mut self) {
        self.n = 1;
    }

    #[stopped]
    fn end(&mut self) {
        self.n = 0;
    }

    #[terminated]
    fn lost(&mut self, terminated: Terminated) {
        self.names.push(terminated.who.to_string());
    }
}

/// A generic actor.
#[derive(Debug)]
pub struct Cache<T>(Vec<T>);

#[actor]
impl<T: Clone + Send + 'static> Cache<T> {
    /// Puts a value.
    #[message]
    pub fn put(&mut self, value: T) {
        self.0.push(value);
    }

    /// Looks at a value.
    #[message(derive(Debug))]
    pub fn at(&self, index: usize) -> Option<T> {
        self.0.get(index).cloned()
    }

    /// Looks at one.
    #[message]
    pub fn first(&self) -> Option<T> {
        self.0.first().cloned()
    }
}

/// A remote actor.
#[derive(Debug, Default, playhouse::serde::Serialize, playhouse::serde::Deserialize)]
#[serde(crate = "playhouse::serde")]
pub struct Till(u64);

#[actor(remote = "lints.Till", spawn)]
impl Till {
    /// Adds `by`.
    #[message(remote = "pay")]
    pub fn pay(&mut self, by: u64, _also: Option<String>) {
        self.0 += by;
    }

    /// Takes out.
    #[message(derive(Debug, Clone))]
    pub async fn take(&mut self) -> Option<u64> {
        Some(std::mem::take(&mut self.0))
    }

    /// Is old.
    #[message]
    #[deprecated]
    pub fn old_sum(&self, old: Vec<u8>) -> usize {
        old.len()
    }

    #[message(local, derive(Debug))]
    #[allow(missing_docs)]
    pub fn edit(&mut self, edit: fn(&mut u64)) {
        edit(&mut self.0);
    }
}

/// A remote message.
#[derive(Message, Debug, playhouse::serde::Serialize, playhouse::serde::Deserialize)]
#[message(reply = Option<T>, remote)]
#[serde(crate = "playhouse::serde")]
pub struct Remote<T>(pub T);

/// A message.
#[derive(Message, Debug)]
#[message(reply = u8)]
pub struct Derived<T>(pub T);

impl Handler<Derived<u8>> for Counter {
    fn handle(&mut self, msg: Derived<u8>, _: &mut Context<Self>) -> u8 {
        msg.0
    }
}

#[test]
fn runs() -> playhouse::Result<()> {
    let system = System::start()?;
    let counter = system.spawn(Counter::default());
    counter.tell(Add(5, 0));
    counter.tell(Ping);
    assert!(!counter.ask(Knows("me".into())).wait()?);
    assert_eq!(system.spawn(Counter::default()).ask(Pong(counter)).wait()?, Ok(6));
    #[allow(deprecated)]
    let old = Old(6);
    assert_eq!(counter.ask(old).wait()?, 6);
    assert_eq!(counter.ask(Derived(3)).wait()?, 3);
    let till = system.spawn(Till::default());
    till.tell(Pay(5, None));
    till.tell(Edit(|sum| *sum += 1));
    assert_eq!(till.ask(Take).wait()?, Some(6));
    let cache = system.spawn(Cache(Vec::new()));
    cache.tell(Put('a'));
    assert_eq!(cache.ask(At(0)).wait()?, Some('a'));
    assert_eq!(cache.ask(First()).wait()?, Some('a'));
    system.shutdown()?;
    Ok(())
}
