//! The procedural macros of Playhouse: [`#[actor]`](macro@actor) and
//! [`#[derive(Message)]`](derive@Message).
//!
//! Users reach both through the `playhouse` crate, and every path in the generated code starts at
//! `::playhouse`. The macros write only what one would write by hand (a message struct, an
//! `impl Message`, an `impl Handler`); hand-written handlers live beside them.
//!
//! | room | what happens there |
//! |---|---|
//! | `actor` | the `impl` block: what it may be, who gets which method |
//! | `method` | one `#[message]` method: its signature, checked and taken apart |
//! | `options` | the arguments of `#[message(..)]` |
//! | `params` | parameters of methods; which of them is the context |
//! | `hook` | `#[started]`, `#[stopped]`, `#[terminated]` |
//! | `emit` | the code that is written for a message method |
//! | `message` | `#[derive(Message)]` |
//! | `owned` | finds borrows in types that must own their data |
//! | `generics` | which generics a message needs; `Self` outside its `impl` block |
//! | `attrs` | which attributes of a method its message inherits |
//! | `name` | names of messages |
//! | `errors` | several errors at once |

mod actor;
mod attrs;
mod emit;
mod errors;
mod generics;
mod hook;
mod message;
mod method;
mod name;
mod options;
mod owned;
mod params;

use proc_macro::TokenStream;

/// Makes an actor of a type: the marked methods of the `impl` block become its messages.
///
/// For the block below, the macro writes `impl Actor for Counter`, the messages `Add(pub u64)`,
/// `Get` and `Fetch`, and a `Handler` for each (an `AsyncHandler` for an `async fn`). The methods
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
/// - is a tuple struct with a field per argument, or a unit struct when there are none;
/// - has the return type as its reply;
/// - derives the traits listed in `#[message(derive(..))]`.
///
/// Arguments are moved into the message: they own their data, and so does the reply. A parameter
/// of the type `&mut Context<Self>`, in any position, is the actor's context and no argument.
///
/// # Hooks
///
/// `#[started]` and `#[stopped]` mark methods of the form `fn(&mut self)` or
/// `fn(&mut self, &mut Context<Self>)`; `#[terminated]` marks one that also takes a `Down`.
/// `Actor`'s methods of these names forward to them.
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

/// Implements `Message` for a struct or an enum.
///
/// The reply is `()`, or the type given with `#[message(reply = Type)]`. Each type parameter gets
/// the bounds `Send + 'static`.
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
#[proc_macro_derive(Message, attributes(message))]
pub fn message(item: TokenStream) -> TokenStream {
    message::expand(item.into()).into()
}
