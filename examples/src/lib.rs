//! Small programs to copy. They are in `src/bin`, and `tests/run.rs` runs them. The programs of [`safe_messages`] show how
//! messages carry data.

pub mod safe_messages;

/// Includes pages whose programs are compiled and run.
#[cfg(doctest)]
macro_rules! pages {
    ($($name:ident = $path:literal;)*) => {$(
        #[doc = include_str!($path)]
        mod $name {}
    )*};
}

/// The programs of the README, of the pages that the packages show, and of the book.
#[cfg(doctest)]
mod documents {
    pages! {
        readme = "../../README.md";
        package_playhouse = "../../crates/playhouse/README.md";
        package_testkit = "../../crates/testkit/README.md";
        actors = "../../guide/src/actors.md";
        asks = "../../guide/src/asks.md";
        blocking_work = "../../guide/src/blocking-work.md";
        chat_crashes = "../../guide/src/chat-crashes.md";
        chat_members = "../../guide/src/chat-members.md";
        chat_processes = "../../guide/src/chat-processes.md";
        chat_room = "../../guide/src/chat-room.md";
        chat_tcp = "../../guide/src/chat-tcp.md";
        durable_state = "../../guide/src/durable-state.md";
        from_actix = "../../guide/src/from-actix.md";
        from_akka = "../../guide/src/from-akka.md";
        from_erlang = "../../guide/src/from-erlang.md";
        from_kameo = "../../guide/src/from-kameo.md";
        from_ractor = "../../guide/src/from-ractor.md";
        groups = "../../guide/src/groups.md";
        guards = "../../guide/src/guards.md";
        install = "../../guide/src/install.md";
        mailboxes = "../../guide/src/mailboxes.md";
        migration = "../../guide/src/migration.md";
        observing = "../../guide/src/observing.md";
        output = "../../guide/src/output.md";
        receptionist = "../../guide/src/receptionist.md";
        routers = "../../guide/src/routers.md";
        safe_messages = "../../guide/src/safe-messages.md";
        shutdown = "../../guide/src/shutdown.md";
        supervision = "../../guide/src/supervision.md";
        testing = "../../guide/src/testing.md";
        theaters = "../../guide/src/theaters.md";
        timers = "../../guide/src/timers.md";
        tokio = "../../guide/src/tokio.md";
        topics = "../../guide/src/topics.md";
        troubleshooting = "../../guide/src/troubleshooting.md";
    }
}

/// The state of an actor cannot be reached through its reference, and the spawner does not keep it.
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
// GUARANTEE: Encapsulation
