//! The procedural macros of Playhouse: [`#[actor]`](macro@actor), [`#[derive(Message)]`](derive@Message) and
//! [`#[warn_needless_clones]`](macro@warn_needless_clones).
//!
//! Users reach them through the `playhouse` crate, and every path in the generated code starts at
//! `::playhouse`. The macros write only what one would write by hand (a message struct, an
//! `impl Message`, an `impl Handler`, the entries of `remote!`); hand-written handlers live beside them.
//!
//! | room | what happens there |
//! |---|---|
//! | `actor` | the `impl` block: what it may be, who gets which method |
//! | `method` | one `#[message]` method: its signature, checked and taken apart |
//! | `options` | the arguments of `#[actor(..)]` and `#[message(..)]` |
//! | `params` | parameters of methods; which of them is the context |
//! | `reentrant` | methods that return the future of the answer |
//! | `hook` | `#[started]`, `#[stopped]`, `#[terminated]`, `#[receive_timeout]`, `#[departing]`, `#[arrived]`, `#[stayed]` |
//! | `emit` | the code that is written for a message method |
//! | `message` | `#[derive(Message)]` |
//! | `remote` | what goes over the wire: names, forms, and the entries of the binary's list |
//! | `owned` | finds borrows in types that must own their data |
//! | `generics` | which generics a message needs; `Self` outside its `impl` block |
//! | `attrs` | which attributes of a method its message inherits |
//! | `name` | names of messages |
//! | `clones` | `#[warn_needless_clones]` |
//! | `entry` | `#[main]` and `#[test]` |
//! | `errors` | several errors at once |

mod actor;
mod attrs;
mod clones;
mod emit;
mod entry;
mod errors;
mod generics;
mod hook;
mod message;
mod method;
mod name;
mod options;
mod owned;
mod params;
mod reentrant;
mod remote;

use proc_macro::TokenStream;

/// Makes an actor of a type: the marked methods of the `impl` block become its messages.
///
/// For the block below, the macro writes `impl Actor for Counter`, the messages `Add(pub u64)`,
/// `Get` and `Fetch`, and a `Handler` for each (an `AsyncHandler` for an `async fn`, a `DeferredHandler` for a method with a `Reply`). The methods
/// stay as they are, so a unit test can call them without a system.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
///
/// #[derive(Default)]
/// pub struct Counter {
///     n: u64,
/// }
///
/// #[actor]
/// impl Counter {
///     /// Adds `by`.
///     #[message(derive(Debug, Clone))]
///     pub fn add(&mut self, by: u64) {
///         self.n += by;
///     }
///
///     #[message]
///     pub fn get(&self) -> u64 {
///         self.n
///     }
///
///     #[message]
///     pub async fn fetch(&mut self, from: ActorRef<Self>) -> Result<u64, AskError> {
///         self.n = from.ask(Get).await?;
///         Ok(self.n)
///     }
///
///     #[message(name = "Finish")]
///     pub fn end(&mut self, ctx: &mut Context<Self>) {
///         ctx.stop();
///     }
///
///     #[started]
///     fn greet(&mut self) {
///         self.n += 1;
///     }
///
///     fn ordinary_method(&self) -> bool {
///         self.n > 5
///     }
/// }
///
/// let mut plain = Counter::default();
/// plain.add(6);
/// assert!(plain.ordinary_method());
///
/// let system = System::start()?;
/// let counter = system.spawn(plain);
/// let second = system.spawn(Counter::default());
/// counter.tell(Add(5));
/// assert_eq!(second.ask(Fetch(counter)).wait()??, 12);
/// counter.tell(Finish);
/// system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Messages
///
/// `#[message]` marks a method that takes `&self` or `&mut self`. Its message
///
/// - has the method's name in `CamelCase`, or the one given with `#[message(name = "..")]`;
/// - has the method's visibility, documentation, and `#[cfg]`, `#[allow]` and `#[deprecated]`;
/// - is a tuple struct with a field per argument, or a unit struct when there are none; with `#[message(named)]`, its fields have the
///   names of the arguments, as in `Deposit { amount: 5 }`;
/// - has the return type as its reply;
/// - derives the traits listed in `#[message(derive(..))]`.
///
/// Arguments are moved into the message: they own their data, and so does the reply. A parameter
/// of the type `&mut Context<Self>`, in any position, is the actor's context and no argument.
///
/// Two actors of one module cannot both have a message of one name. One of the two is named with `#[message(name = "..")]`, or the actors are in modules
/// of their own.
///
/// # Several blocks
///
/// One block makes the type an actor. Others add messages to it with `#[actor(more)]`, also in other modules; of a remote actor with
/// `#[actor(more, remote)]`, or their messages are local ones. Hooks are methods of the first block.
///
/// ```
/// use playhouse::prelude::*;
///
/// struct Account {
///     sum: u64,
/// }
///
/// #[actor]
/// impl Account {
///     #[message(named)]
///     fn deposit(&mut self, amount: u64) {
///         self.sum += amount;
///     }
/// }
///
/// #[actor(more)]
/// impl Account {
///     #[message]
///     fn sum(&self) -> u64 {
///         self.sum
///     }
/// }
///
/// let system = System::start()?;
/// let account = system.spawn(Account { sum: 1 });
/// account.tell(Deposit { amount: 5 });
/// assert_eq!(account.ask(Sum).wait()?, 6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Replies
///
/// A parameter of the type `Reply<T>`, in any position, is no argument either: the message is answered by `reply.send(..)`, now or later, and the
/// method returns nothing. See `Reply` and `DeferredHandler`. (A `Reply` that an argument carries to another actor is in a tuple or a struct. A type of your
/// own that is called `Reply`, with one type argument, is used under another name.)
///
/// ```
/// use playhouse::prelude::*;
///
/// #[derive(Default)]
/// struct Shelf {
///     waiting: Vec<Reply<u32>>,
/// }
///
/// #[actor]
/// impl Shelf {
///     #[message]
///     fn take(&mut self, reply: Reply<u32>) {
///         self.waiting.push(reply);
///     }
///
///     #[message]
///     fn put(&mut self, thing: u32) {
///         match self.waiting.pop() {
///             Some(reply) => reply.send(thing),
///             None => {}
///         }
///     }
/// }
/// ```
///
/// With `#[message(reentrant)]`, the method returns the future of the answer. The actor handles other messages while that is awaited. The future owns what it
/// uses, as its type says (`use<>`: it borrows nothing), and sends the actor what is to be done with its state. See `Reply::send_when_ready`.
///
/// ```
/// use playhouse::prelude::*;
///
/// struct Shelf;
///
/// #[actor]
/// impl Shelf {
///     #[message]
///     fn find(&self, title: String) -> Option<u32> {
///         title.starts_with('A').then_some(7)
///     }
/// }
///
/// struct Library {
///     shelf: ActorRef<Shelf>,
///     lent: u32,
/// }
///
/// #[actor]
/// impl Library {
///     #[message(reentrant)]
///     fn lend(
///         &mut self,
///         title: String,
///         ctx: &mut Context<Self>,
///     ) -> impl Future<Output = Result<Option<u32>, AskError>> + Send + use<> {
///         let (shelf, library) = (self.shelf, ctx.this());
///         async move {
///             let place = shelf.ask(Find(title)).await?;
///             library.ask(Note(place.is_some())).await?;
///             Ok(place)
///         }
///     }
///
///     #[message]
///     fn note(&mut self, is_lent: bool) {
///         self.lent += u32::from(is_lent);
///     }
///
///     #[message]
///     fn lent(&self) -> u32 {
///         self.lent
///     }
/// }
///
/// let system = System::start()?;
/// let library = system.spawn(Library { shelf: system.spawn(Shelf), lent: 0 });
/// assert_eq!(library.ask(Lend("Atlas".to_owned())).wait()??, Some(7));
/// assert_eq!(library.ask(Lent).wait()?, 1);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Guards
///
/// With `#[message(when = "self.has_room()")]`, a message waits until the expression says yes: it sees `self`, and the
/// arguments by their names as references. With `otherwise = "refuse"` it is refused instead (an ask fails with
/// `AskError::Refused`, a tell is a dead letter), with `otherwise = "drop"` a tell is forgotten. See `Handler::guard`.
///
/// ```
/// use playhouse::prelude::*;
///
/// struct Account {
///     sum: u64,
/// }
///
/// #[actor]
/// impl Account {
///     #[message]
///     fn pay(&mut self, amount: u64) {
///         self.sum += amount;
///     }
///
///     #[message(when = "*amount <= self.sum")]
///     fn draw(&mut self, amount: u64) -> u64 {
///         self.sum -= amount;
///         self.sum
///     }
/// }
/// ```
///
/// # Hooks
///
/// `#[started]` and `#[stopped]` mark methods of the form `fn(&mut self)` or
/// `fn(&mut self, &mut Context<Self>)`, and so does `#[receive_timeout]`; `#[terminated]` marks one that also takes a `Down`. Those of mobile actors are `#[departing]`,
/// `#[arrived]`, and `#[stayed]`, which also takes a `MigrateError`.
/// `Actor`'s methods of these names forward to them. One method may be several hooks, such as `#[started]` and `#[arrived]`.
///
/// # Remote actors
///
/// With `#[actor(remote)]`, other theaters can send to the actor. Each of its messages derives serde's `Serialize` and
/// `Deserialize`, and the binary lists that the actor takes it: arguments and replies must implement the two. In this
/// process, the actor is used like any other.
///
/// | argument | what it says |
/// |---|---|
/// | `#[actor(remote)]` | on the wire, the actor's type is called as it is here, with its path |
/// | `#[actor(remote = "shop.Till")]` | it has this name there, so that it may be renamed and moved |
/// | `#[actor(remote, spawn)]` | other theaters can start it too: its type derives `Serialize` and `Deserialize` |
/// | `#[actor(mobile)]`, `#[actor(remote = "..", mobile)]` | it can also be taken from one theater to another while it lives |
/// | `#[actor(more, remote)]` | the messages of a further block are remote as well |
/// | `#[message(remote = "put")]` | the message has this name on the wire |
/// | `#[message(local)]` | the message stays in this process, and needs no wire form |
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::serde::{Deserialize, Serialize};
///
/// #[derive(Default, Serialize, Deserialize)]
/// #[serde(crate = "playhouse::serde")] // not where serde is in your Cargo.toml
/// struct Till {
///     sum: i64,
/// }
///
/// #[actor(remote = "shop.Till", spawn)]
/// impl Till {
///     #[message(remote = "put")]
///     fn put(&mut self, amount: i64, note: Option<String>) -> i64 {
///         println!("{note:?}");
///         self.sum += amount;
///         self.sum
///     }
///
///     #[message(local)]
///     fn edit(&mut self, edit: fn(&mut i64)) {
///         edit(&mut self.sum);
///     }
/// }
///
/// let system = System::start()?;
/// let till = system.spawn(Till::default());
/// till.tell(Edit(|sum| *sum = 5));
/// assert_eq!(till.ask(Put(2, None)).wait()?, 7);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The message of a method has its arguments in their order, without names, whichever codec writes it; with `named`, codecs that write names (JSON, say)
/// write them. So to add `named` to a remote message, or to take it away, makes another message of it, which older programs do not know. A message that is
/// to get or lose fields while older programs still send it is a struct of its own, with
/// [`#[derive(Message)]`](derive@Message) and `#[message(remote)]`; it joins those of the block with
/// `playhouse::wire::submit! { playhouse::wire::Handles::of::<Till, Order, _>() }`.
///
/// A remote actor is found by its name, so it cannot be generic; the block of one type, `impl Shelf<Book>`, is none.
///
/// # Generic actors
///
/// A message has those generics of the `impl` block that its arguments or its reply mention. Where
/// only the reply mentions one, the message cannot be a tuple struct, for it must hold a
/// `PhantomData`; it has named fields then, and a function of its own name makes it, so that the
/// call still reads `cache.ask(Lookup(key))`. Without arguments, that is `cache.ask(First())`.
///
/// ```
/// use playhouse::prelude::*;
///
/// struct Cache<T>(Vec<T>);
///
/// #[actor]
/// impl<T: Clone + Send + 'static> Cache<T> {
///     #[message]
///     fn put(&mut self, value: T) {
///         self.0.push(value);
///     }
///     #[message]
///     fn at(&self, index: usize) -> Option<T> {
///         self.0.get(index).cloned()
///     }
///     #[message]
///     fn size(&self) -> usize {
///         self.0.len()
///     }
/// }
///
/// let system = System::start()?;
/// let cache = system.spawn(Cache(vec!['a']));
/// cache.tell(Put('b'));
/// assert_eq!(cache.ask(At(1)).wait()?, Some('b'));
/// assert_eq!(cache.ask(Size).wait()?, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[proc_macro_attribute]
pub fn actor(args: TokenStream, item: TokenStream) -> TokenStream {
    actor::expand(args.into(), item.into()).into()
}

/// Marks a message method in an `impl` block under [`#[actor]`](macro@actor), which is where it is explained and read. Anywhere else it is an error.
#[proc_macro_attribute]
pub fn message(_: TokenStream, item: TokenStream) -> TokenStream {
    errors::message_outside(item.into()).into()
}

/// Implements `Message` for a struct or an enum.
///
/// The reply is `()`, or the type given with `#[message(reply = Type)]`. Each type parameter gets
/// the bounds `Send + 'static`.
///
/// With `#[message(remote)]`, the message may be sent to other theaters: it and its reply must implement serde's
/// `Serialize` and `Deserialize`. It is called as its type there, with its path, or by the name that is given:
/// `#[message(remote = "shop.Order")]`. A generic message is a message only with those types with which it has a wire
/// form, and it cannot be given a name, being many types.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
///
/// #[derive(Message)]
/// struct Add(u64);
///
/// #[derive(Message)]
/// #[message(reply = Option<T>)]
/// enum Swap<T> {
///     With(T),
///     Out,
/// }
///
/// struct Shelf {
///     item: Option<char>,
///     n: u64,
/// }
///
/// impl Actor for Shelf {}
/// impl Handler<Add> for Shelf {
///     fn handle(&mut self, add: Add, _: &mut Context<Self>) {
///         self.n += add.0;
///     }
/// }
/// impl Handler<Swap<char>> for Shelf {
///     fn handle(&mut self, swap: Swap<char>, _: &mut Context<Self>) -> Option<char> {
///         match swap {
///             Swap::With(new) => self.item.replace(new),
///             Swap::Out => self.item.take(),
///         }
///     }
/// }
///
/// let system = System::start()?;
/// let shelf = system.spawn(Shelf { item: Some('a'), n: 0 });
/// shelf.tell(Add(1));
/// assert_eq!(shelf.ask(Swap::With('b')).wait()?, Some('a'));
/// assert_eq!(shelf.ask(Swap::Out).wait()?, Some('b'));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A remote message, and an actor that takes it from other theaters:
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::serde::{Deserialize, Serialize};
///
/// #[derive(Message, Serialize, Deserialize)]
/// #[message(remote = "shop.Order", reply = Result<u64, String>)]
/// #[serde(crate = "playhouse::serde")] // not where serde is in your Cargo.toml
/// struct Order {
///     item: String,
///     #[serde(default)] // older programs do not send it
///     amount: u64,
/// }
///
/// struct Shop;
///
/// impl Actor for Shop {}
/// impl Handler<Order> for Shop {
///     fn handle(&mut self, order: Order, _: &mut Context<Self>) -> Result<u64, String> {
///         if order.item == "tea" { Ok(2 * order.amount) } else { Err(format!("no {}", order.item)) }
///     }
/// }
/// playhouse::remote!(Shop: Order);
///
/// let system = System::start()?;
/// let shop = system.spawn(Shop);
/// assert_eq!(shop.ask(Order { item: "tea".into(), amount: 3 }).wait()?, Ok(6));
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Without `remote`, the actor cannot take it from there, which the compiler says:
///
/// ```compile_fail,E0080
/// # use playhouse::prelude::*;
/// #[derive(Message)]
/// struct Close;
///
/// struct Shop;
///
/// impl Actor for Shop {}
/// impl Handler<Close> for Shop {
///     fn handle(&mut self, _: Close, _: &mut Context<Self>) {}
/// }
/// playhouse::remote!(Shop: Close);
/// # fn main() {}
/// ```
#[proc_macro_derive(Message, attributes(message))]
pub fn derive_message(item: TokenStream) -> TokenStream {
    message::expand(item.into()).into()
}

/// Gives `main` a system: it is started before, and shut down when `main` returns, with the limit of `System::shutdown`. If that takes longer, what
/// holds it up is printed on stderr.
///
/// The function takes `&System`. It may be `async`: then it runs on the main thread, and awaits asks, and any future that needs no runtime. In a program
/// that uses tokio, write `#[tokio::main]` and start the system in it. `#[playhouse::main(workers = 2)]` starts two workers instead of one per core.
///
/// # Panics
/// The system does not start.
///
/// ```
/// use playhouse::prelude::*;
///
/// struct Greeter;
///
/// #[actor]
/// impl Greeter {
///     #[message]
///     fn greet(&self, name: String) -> String {
///         format!("Hello, {name}!")
///     }
/// }
///
/// #[playhouse::main]
/// async fn main(system: &System) -> playhouse::Result<()> {
///     let greeter = system.spawn(Greeter);
///     println!("{}", greeter.ask(Greet("reader".to_owned())).await?);
///     Ok(())
/// }
/// ```
#[proc_macro_attribute]
pub fn main(args: TokenStream, item: TokenStream) -> TokenStream {
    entry::main(args.into(), item.into()).into()
}

/// Makes a test of a function that takes `&System`, and may be `async`: it runs with one simulated system after another, whose choices differ, in virtual
/// time. Each is shut down after it.
///
/// | option | |
/// |---|---|
/// | `seeds = 50` | so many systems, of the seeds 0 to 49; 20 without it |
/// | `seed = 7` | the system of this seed, alone |
/// | `threads` | one system with real threads and real time instead |
/// | `workers = 2` | so many workers |
///
/// A test that panics, or returns an error, prints the seed that it has done so with.
///
/// # Panics
/// The system does not start, is not shut down in time, or has nothing left to do while the function waits.
///
/// ```
/// # use playhouse::prelude::*;
/// # struct Counter { n: u64 }
/// # #[actor]
/// # impl Counter {
/// #     #[message] fn add(&mut self, by: u64) { self.n += by }
/// #     #[message] fn get(&self) -> u64 { self.n }
/// # }
/// #[playhouse::test(seeds = 50)]
/// async fn a_counter_counts(system: &System) -> Result<(), AskError> {
///     let counter = system.spawn(Counter { n: 0 });
///     counter.tell(Add(5));
///     assert_eq!(counter.ask(Get).await?, 5);
///     Ok(())
/// }
/// ```
#[proc_macro_attribute]
pub fn test(args: TokenStream, item: TokenStream) -> TokenStream {
    entry::test(args.into(), item.into()).into()
}

/// Warns where something is cloned that nothing uses afterwards, so that it could have been moved.
///
/// It goes on a function, or on what has functions in it: an `impl` block, also one of an [`#[actor]`](macro@actor), a trait, a
/// module with a body. The warning is the one for deprecated items: `#[allow(deprecated)]` on a statement silences it, and
/// `#![deny(deprecated)]` makes an error of it. The program is the same with it and without it.
///
/// It sees `list.clone()` and `Arc::clone(&list)` of variables, and `.clone()` of values that have no name. What it
/// reports is a clone of the value itself, not of what a reference or a guard leads to. It says nothing where the text does not tell
/// for sure that the original is free: of fields, in macro calls, and where a variable may still borrow it.
///
/// # Examples
///
/// ```
/// # use playhouse::prelude::*;
/// use playhouse::warn_needless_clones;
///
/// # #[derive(Default)]
/// # struct Sorter;
/// # #[actor]
/// # impl Sorter {
/// #     #[message]
/// #     fn sort(&mut self, list: Vec<u64>) {}
/// # }
/// # struct Divider;
/// #[actor]
/// #[warn_needless_clones]
/// impl Divider {
///     #[message]
///     fn divide(&mut self, list: Vec<u64>, sorter: ActorRef<Sorter>, second: ActorRef<Sorter>) {
///         sorter.tell(Sort(list.clone())); // needed
///         second.tell(Sort(list)); // `list.clone()` would be reported here
///     }
/// }
/// # fn main() {}
/// ```
#[proc_macro_attribute]
pub fn warn_needless_clones(args: TokenStream, item: TokenStream) -> TokenStream {
    clones::expand(&args.into(), item.into()).into()
}
