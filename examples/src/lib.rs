//! Small programs to copy: they are in `src/bin`, and `tests/run.rs` runs them. Those of [`safe_messages`] show how data goes
//! into messages.

pub mod safe_messages;

/// The programs of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
mod readme {}

/// The programs of the pages that the packages show.
#[cfg(doctest)]
mod packages {
    #[doc = include_str!("../../crates/playhouse/README.md")]
    mod playhouse {}
    #[doc = include_str!("../../crates/testkit/README.md")]
    mod testkit {}
}

/// The programs of the guide.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../../guide/routers.md")]
    mod routers {}
    #[doc = include_str!("../../guide/asks.md")]
    mod asks {}
    #[doc = include_str!("../../guide/groups.md")]
    mod groups {}
    #[doc = include_str!("../../guide/guards.md")]
    mod guards {}
    #[doc = include_str!("../../guide/topics.md")]
    mod topics {}
    #[doc = include_str!("../../guide/receptionist.md")]
    mod receptionist {}
    #[doc = include_str!("../../guide/tokio.md")]
    mod tokio {}
    #[doc = include_str!("../../guide/blocking-work.md")]
    mod blocking_work {}
    #[doc = include_str!("../../guide/durable-state.md")]
    mod durable_state {}
    #[doc = include_str!("../../guide/mailboxes.md")]
    mod mailboxes {}
    #[doc = include_str!("../../guide/timers.md")]
    mod timers {}
    #[doc = include_str!("../../guide/output.md")]
    mod output {}
    #[doc = include_str!("../../guide/shutdown.md")]
    mod shutdown {}
    #[doc = include_str!("../../guide/observing.md")]
    mod observing {}
    #[doc = include_str!("../../guide/chatapp.md")]
    mod chatapp {}
    #[doc = include_str!("../../guide/ported-programs.md")]
    mod ported_programs {}
    #[doc = include_str!("../../guide/safe-messages.md")]
    mod safe_messages {}
    #[doc = include_str!("../../guide/testing.md")]
    mod testing {}
}

/// The state of an actor is not reached through its reference, and not kept by who spawned it.
///
/// ```compile_fail,E0609
/// use playhouse::prelude::*;
/// struct Counter { n: u64 }
/// impl Actor for Counter {}
/// fn peek(counter: ActorRef<Counter>) -> u64 { counter.n }
/// ```
///
/// ```compile_fail,E0382
/// use playhouse::prelude::*;
/// struct Counter { n: u64 }
/// impl Actor for Counter {}
/// fn keep(system: &System, counter: Counter) -> u64 { system.spawn(counter); counter.n }
/// ```
#[cfg(doctest)]
mod encapsulation {}
