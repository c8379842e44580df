//! The procedural macros of Playhouse: [`#[actor]`](macro@actor), [`#[derive(Message)]`](derive@Message) and
//! [`#[warn_needless_clones]`](macro@warn_needless_clones).
//!
//! Programs use the macros through the crate `playhouse`, and every path in the generated code starts at
//! `::playhouse`. The macros write only code that can be written by hand: a message struct, an `impl Message`, an
//! `impl Handler`, the entries of `remote!`. Hand-written handlers and generated ones mix freely.
//!
//! | folder | contents |
//! |---|---|
//! | `actor` | `#[actor]`: the `impl` block, its marked methods, hooks such as `#[started]`, the entries of remote actors |
//! | `method` | a `#[message]` method: its options, its name, its signature, its generated code |
//! | `derive` | `#[derive(Message)]` |
//! | `entry` | `#[main]` and `#[test]` |
//! | `clones` | `#[warn_needless_clones]` |
//! | `syntax` | common parts: attributes, parameters, generics, ownership of types, names on the wire, errors |

mod actor;
mod clones;
mod derive;
mod entry;
mod method;
mod syntax;

use proc_macro::TokenStream;

#[doc = include_str!("../docs/actor.md")]
#[doc(alias = "handler")]
#[doc(alias = "receive")]
#[doc(alias = "behavior")]
#[doc(alias = "gen_server")]
#[doc(alias = "become")]
#[proc_macro_attribute]
pub fn actor(args: TokenStream, item: TokenStream) -> TokenStream {
    actor::expand(args.into(), item.into()).into()
}

/// Marks a message method in an `impl` block under [`#[actor]`](macro@actor), whose page explains it. The attribute
/// is an error anywhere else.
#[doc(alias = "handler")]
#[doc(alias = "cast")]
#[doc(alias = "call")]
#[proc_macro_attribute]
pub fn message(_: TokenStream, item: TokenStream) -> TokenStream {
    method::message_outside(item.into()).into()
}

#[doc = include_str!("../docs/message.md")]
#[doc(alias = "protocol")]
#[proc_macro_derive(Message, attributes(message))]
pub fn derive_message(item: TokenStream) -> TokenStream {
    derive::expand(item.into()).into()
}

/// Starts a system for `main`, and shuts it down when `main` returns, with the limit of `System::shutdown`. A late
/// shutdown prints its cause on stderr.
///
/// The function takes `&System`, and may be `async`. An `async` function runs on the main thread, and may await asks
/// and any future that needs no runtime. In a program that uses tokio, write `#[tokio::main]` and start the system
/// there. `#[playhouse::main(workers = 2)]` starts two workers instead of one per core.
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
#[doc(alias = "Guardian")]
#[doc(alias = "actix::main")]
#[proc_macro_attribute]
pub fn main(args: TokenStream, item: TokenStream) -> TokenStream {
    entry::main(args.into(), item.into()).into()
}

/// Makes a test of a function that takes `&System`, and may be `async`. The test runs in virtual time with one
/// simulated system per seed. Each system is shut down after its run.
///
/// | option | |
/// |---|---|
/// | `seeds = 50` | 50 systems, of the seeds 0 to 49; default: 20 |
/// | `seed = 7` | only the system of this seed |
/// | `threads` | one system with real threads and real time |
/// | `workers = 2` | 2 workers |
///
/// A test that panics or returns an error prints its seed.
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
