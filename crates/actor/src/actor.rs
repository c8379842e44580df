//! Actors: what they are, how their lives begin and end.

use std::any::type_name;
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use playhouse_executor::{Control, ControlCx, Crash, Cx, Ending, Port, RawAddress, Resident, Undelivered};

use crate::actor_ref::ActorRef;
use crate::context::Context;
use crate::names::Name;
use crate::supervise::Child;

/// A unit of state that is reached only through messages, one at a time.
///
/// Plain Rust types become actors by `impl Actor for T {}`, or by `#[actor]` on their `impl` block.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an actor",
    label = "not an actor",
    note = "put `#[actor]` on the `impl {Self} {{ .. }}` with its `#[message]` methods, or write `impl Actor for {Self} {{}}`"
)]
pub trait Actor: Sized + Send + 'static {
    /// Called once before the first message, also after each restart.
    fn started(&mut self, _ctx: &mut Context<Self>) {}

    /// Called once when the actor has stopped (by [`Context::stop`], `stop`, `drain`, or the end of its system), not
    /// after a kill or a crash: not where it is stopped while it waits to be restarted, either.
    fn stopped(&mut self, _ctx: &mut Context<Self>) {}

    /// An actor that this one watches has ended.
    fn terminated(&mut self, _down: Down, _ctx: &mut Context<Self>) {}
}

/// The identity of an actor, without its type. Never given to another actor again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActorId(pub(crate) RawAddress);

impl fmt::Debug for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:?}", self.0)
    }
}

impl fmt::Display for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Why an actor ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// It stopped or was stopped.
    Stopped,
    /// It was killed.
    Killed,
    /// A handler panicked and nobody restarted the actor; the panic's message.
    Panicked(String),
    /// A handler called [`Context::fail`] and nobody restarted the actor; the error's message.
    Failed(String),
    /// The system was shut down.
    Shutdown,
    /// It had ended before it was watched.
    NotAlive,
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StopReason::Stopped => f.write_str("it was stopped"),
            StopReason::Killed => f.write_str("it was killed"),
            StopReason::Panicked(message) => write!(f, "it panicked: {message}"),
            StopReason::Failed(error) => write!(f, "it failed: {error}"),
            StopReason::Shutdown => f.write_str("its system was shut down"),
            StopReason::NotAlive => f.write_str("it had ended before it was watched"),
        }
    }
}

/// The notice that a watched actor has ended: see [`Context::watch`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Down {
    /// Who.
    pub who: ActorId,
    /// The name it was given, if it was, and had not ended before it was watched.
    pub name: Option<String>,
    /// Why.
    pub reason: StopReason,
}

impl fmt::Display for Down {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name:?} has ended: {}", self.reason),
            None => write!(f, "{} has ended: {}", self.who, self.reason),
        }
    }
}

/// What lives in a cell: the actor.
#[doc(hidden)]
#[repr(transparent)]
pub struct Life<A> {
    pub(crate) actor: A,
}

/// What few actors need.
#[doc(hidden)]
pub struct Extra<A: Actor> {
    pub(crate) name: Option<Arc<Name>>,
    pub(crate) watchers: Vec<(ActorId, Port<Down>)>,
    pub(crate) timers: HashMap<u64, playhouse_executor::TimerKey>,
    pub(crate) next_timer: u64,
    pub(crate) child: Option<Child<A>>,
}

impl<A: Actor> Default for Extra<A> {
    fn default() -> Self {
        Extra { name: None, watchers: Vec::new(), timers: HashMap::new(), next_timer: 0, child: None }
    }
}

impl<A: Actor> Resident for Life<A> {
    type Extra = Extra<A>;

    fn name() -> &'static str {
        type_name::<A>()
    }

    fn ended(&mut self, extra: Option<Box<Extra<A>>>, ending: Ending, cx: &mut Cx<Self>) {
        let id = ActorId(cx.address().raw());
        let crashed = extra.as_ref().and_then(|extra| extra.child.as_ref()).is_some_and(|child| child.crashed);
        let calm = matches!(ending, Ending::Stopped | Ending::Shutdown) && !crashed;
        let reason = match ending {
            Ending::Stopped => StopReason::Stopped,
            Ending::Killed => StopReason::Killed,
            Ending::Shutdown => StopReason::Shutdown,
            Ending::Crashed(crash @ Crash::Panic(_)) => StopReason::Panicked(crash.describe()),
            Ending::Crashed(crash @ Crash::Error(_)) => StopReason::Failed(crash.describe()),
        };
        let _tell = TellOthers { extra, id, reason };
        if calm {
            let hook = catch_unwind(AssertUnwindSafe(|| Context::with(cx, |ctx| self.actor.stopped(ctx))));
            // What the hook has started ends with the actor.
            if let Some(extra) = cx.extra_if_any() {
                cancel_all(std::mem::take(&mut extra.timers));
            }
            if let Err(panic) = hook {
                resume_unwind(panic);
            }
        }
    }

    fn crashed(crash: Crash, cx: &mut ControlCx<Self>) {
        let this = ActorRef::new(cx.address());
        match &mut cx.extra().child {
            Some(child) => {
                child.crashed = true;
                let report = child.report(crash, this);
                cx.hold();
                report();
            }
            None => cx.give_up(crash),
        }
    }
}

/// Tells the watchers and the supervisor, and cancels the timers, also where `stopped` panics.
struct TellOthers<A: Actor> {
    extra: Option<Box<Extra<A>>>,
    id: ActorId,
    reason: StopReason,
}

impl<A: Actor> Drop for TellOthers<A> {
    fn drop(&mut self) {
        let Some(extra) = self.extra.take() else { return };
        let Extra { name, watchers, child, timers, .. } = *extra;
        for (_, watcher) in watchers {
            let name = name.as_ref().map(|name| name.text().to_owned());
            watcher.send(Down { who: self.id, name, reason: self.reason.clone() });
        }
        if let Some(child) = child {
            child.ended();
        }
        cancel_all(timers);
    }
}

fn cancel_all(timers: HashMap<u64, playhouse_executor::TimerKey>) {
    playhouse_executor::with_current_system(|system| {
        if let Some(system) = system {
            for key in timers.into_values() {
                system.cancel_timer(key);
            }
        }
    });
}

/// Counts a message that reached nobody.
pub(crate) fn dead_letter<A, M>(why: Undelivered) {
    playhouse_executor::with_current_system(|system| {
        if let Some(system) = system {
            system.dead_letter(type_name::<A>(), type_name::<M>(), why);
        }
    });
}

/// Requests that every actor understands.
pub(crate) enum Request {
    Stop,
    Kill,
}

impl<A: Actor> Control<Life<A>> for Request {
    fn run(self, cx: &mut ControlCx<Life<A>>) {
        match self {
            Request::Stop => cx.stop(),
            Request::Kill => cx.kill(),
        }
    }
}

/// Somebody wants to know of this actor's end, or does not any more.
pub(crate) enum Watch {
    Begin { watcher: ActorId, notify: Port<Down>, who: ActorId },
    End { watcher: ActorId },
}

impl<A: Actor> Control<Life<A>> for Watch {
    fn run(self, cx: &mut ControlCx<Life<A>>) {
        let watchers = &mut cx.extra().watchers;
        match self {
            Watch::Begin { watcher, notify, .. } => {
                if !watchers.iter().any(|(known, _)| *known == watcher) {
                    watchers.push((watcher, notify));
                }
            }
            Watch::End { watcher } => watchers.retain(|(known, _)| *known != watcher),
        }
    }

    fn bounce(self, _: Undelivered) {
        if let Watch::Begin { notify, who, .. } = self {
            notify.send(Down { who, name: None, reason: StopReason::NotAlive });
        }
    }
}
