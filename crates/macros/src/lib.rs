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
//! | `hook` | `#[started]`, `#[stopped]`, `#[terminated]`, `#[receive_timeout]`, `#[migrating]`, `#[migrated]`, `#[migration_failed]` |
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
mod clones;
mod derive;
mod entry;
mod method;
mod syntax;

use proc_macro::TokenStream;

#[doc = include_str!("../docs/actor.md")]
#[proc_macro_attribute]
pub fn actor(args: TokenStream, item: TokenStream) -> TokenStream {
    actor::expand(args.into(), item.into()).into()
}

/// Marks a message method in an `impl` block under [`#[actor]`](macro@actor), which is where it is explained and read. Anywhere else it is an error.
#[proc_macro_attribute]
pub fn message(_: TokenStream, item: TokenStream) -> TokenStream {
    method::message_outside(item.into()).into()
}

#[doc = include_str!("../docs/message.md")]
#[proc_macro_derive(Message, attributes(message))]
pub fn derive_message(item: TokenStream) -> TokenStream {
    derive::expand(item.into()).into()
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

#[doc = include_str!("../docs/warn_needless_clones.md")]
#[proc_macro_attribute]
pub fn warn_needless_clones(args: TokenStream, item: TokenStream) -> TokenStream {
    clones::expand(&args.into(), item.into()).into()
}
