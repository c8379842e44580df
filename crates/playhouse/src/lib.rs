//! Playhouse: an actor runtime that is fast on one machine and keeps every standard actor semantic.
//!
//! ```
//! use playhouse::prelude::*;
//!
//! #[derive(Default)]
//! struct Counter {
//!     n: u64,
//! }
//!
//! #[actor]
//! impl Counter {
//!     #[message]
//!     fn add(&mut self, by: u64) {
//!         self.n += by;
//!     }
//!
//!     #[message]
//!     fn get(&self) -> u64 {
//!         self.n
//!     }
//! }
//!
//! fn main() -> playhouse::Result<()> {
//!     let system = System::start()?;
//!     let counter = system.spawn(Counter::default());
//!     counter.tell(Add(5));
//!     assert_eq!(counter.ask(Get).wait()?, 5);
//!     system.shutdown()?;
//!     Ok(())
//! }
//! ```

pub use playhouse_actor::*;
pub use playhouse_macros::{Message, actor};
/// What messages that go to other theaters implement: where serde is no dependency of your own, derive it from here, with
/// `#[serde(crate = "playhouse::serde")]`.
///
/// It is not in the [`prelude`], where the trait's `serialize` could be taken for another one's.
pub use serde;

/// Any error of this crate, for `main` functions.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
/// A result with any error of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a program with actors needs.
pub mod prelude {
    pub use crate::{
        Actor, ActorId, ActorRef, AskError, AsyncHandler, Context, DeadLetter, Directive, Down, GaveUp, Group, Handler,
        Message, Owned, Phase, Placement, Recipient, SpawnError, SpawnOptions, Stealing, StopReason, Supervise,
        Supervised, Supervisor, System, TimerKey, TrySendError, actor,
    };
}
