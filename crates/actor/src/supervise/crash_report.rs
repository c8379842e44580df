//! Reports of crashes: for the hooks of a system, as events of the `tracing` crate, and on stderr.

use std::fmt;
use std::time::Duration;

use playhouse_executor::{Crash, MailKind, Origin};

#[cfg(feature = "tracing")]
use crate::actor::names::Label;
use crate::actor::names::ShortType;
use crate::actor::{ActorId, StopReason};
use crate::observe::{Observing, Report};
use crate::supervise::policy::Directive;
use crate::system::System;

/// The report of a crash: a handler or hook of an actor has panicked, or has called
/// [`Context::fail`](crate::Context::fail). See [`System::on_crash`].
///
/// A panic in [`stopped`](crate::Actor::stopped) is no crash: the actor ends as intended.
///
/// It is displayed as ``Till "two" crashed in Sell: it panicked: no such item (src/till.rs:31:13). It ends.``
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # use std::sync::mpsc;
/// # struct Press;
/// # impl Actor for Press {
/// #     fn started(&mut self, _: &mut Context<Self>) { panic!("jammed"); }
/// # }
/// # let system = System::builder().print_crashes(false).start()?;
/// let (reports, received) = mpsc::channel();
/// system.on_crash(move |crash: &CrashReport| reports.send(crash.clone()).unwrap());
/// system.spawn_with(SpawnOptions::new().name("press"), Press); // its `started` panics
///
/// let crash = received.recv()?;
/// assert_eq!(crash.name.as_deref(), Some("press"));
/// assert_eq!(crash.reason, StopReason::Panicked("jammed".to_owned()));
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CrashReport {
    /// The type of the actor, with its path.
    pub actor: &'static str,
    /// The identity of the actor.
    pub who: ActorId,
    /// The name of the actor, if it has one.
    pub name: Option<String>,
    /// The handler or hook that the actor was running, if it is known.
    pub during: Option<CrashedIn>,
    /// The cause: [`StopReason::Panicked`] or [`StopReason::Failed`], with the text.
    pub reason: StopReason,
    /// The file, line and column of the panic, or of the call of `fail`.
    ///
    /// It is `None` for a supervisor that gives up. It is `None` for a panic that [`std::panic::resume_unwind`] passed
    /// on, or if the program has called [`std::panic::set_hook`] after its first system was started.
    pub place: Option<String>,
    /// The consequence for the actor.
    pub then: AfterCrash,
}

/// The handler or hook that an actor was running when it crashed.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// fn in_words(crash: &CrashReport) -> String {
///     match &crash.during {
///         Some(CrashedIn::Message(message)) => format!("the handler of {message}"),
///         Some(CrashedIn::Hook(hook)) => format!("the hook {hook}"),
///         Some(other) => format!("{other:?}"),
///         None => "unknown".to_owned(),
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CrashedIn {
    /// The handler of a message. Holds the name of the message's type, with its path.
    Message(&'static str),
    /// The function that takes the answer to an ask. Holds the name of the answer's type, with its path.
    Answer(&'static str),
    /// A method of [`Actor`](crate::Actor): `started`, `terminated` and the others. `factory` is its supervisor's
    /// function for a new state.
    Hook(&'static str),
    /// A stream that is [attached](crate::Context::attach) to the actor, or the function that makes messages of its items.
    Stream,
}

/// The consequence of a crash for its actor.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// static ENDED: AtomicU64 = AtomicU64::new(0);
///
/// # let system = System::start()?;
/// system.on_crash(|crash| {
///     if crash.then == AfterCrash::Ends {
///         ENDED.fetch_add(1, Ordering::Relaxed); // no supervisor restarts it
///     }
/// });
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AfterCrash {
    /// The actor ends.
    Ends,
    /// Its supervisor decides: see [`System::on_decision`]. If the supervisor has ended, the actor ends. A supervisor
    /// that gives up crashes itself, and that crash has its own report.
    SupervisorDecides,
}

impl CrashedIn {
    fn of((kind, name): (MailKind, &'static str)) -> Option<CrashedIn> {
        match (kind, name) {
            (MailKind::Message | MailKind::Request, message) => Some(CrashedIn::Message(message)),
            (MailKind::Answer, answer) => Some(CrashedIn::Answer(answer)),
            (MailKind::Start, _) => Some(CrashedIn::Hook("started")),
            (MailKind::Timer, "receive timeout") => Some(CrashedIn::Hook("receive_timeout")),
            (MailKind::Timer, message) => Some(CrashedIn::Message(message)),
            (MailKind::Control, "stream") => Some(CrashedIn::Stream),
            (MailKind::Control, "factory") => Some(CrashedIn::Hook("factory")),
            (MailKind::Control, hook @ ("terminated" | "migrating" | "migrated" | "migration_failed")) => {
                Some(CrashedIn::Hook(hook))
            }
            _ => None,
        }
    }
}

impl fmt::Display for CrashedIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CrashedIn::Message(message) => write!(f, "{}", ShortType(message)),
            CrashedIn::Answer(answer) => write!(f, "the answer {}", ShortType(answer)),
            CrashedIn::Hook(hook) => write!(f, "`{hook}`"),
            CrashedIn::Stream => f.write_str("an attached stream"),
        }
    }
}

impl fmt::Display for CrashReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The name at the time of the crash, because the actor may have ended since.
        match &self.name {
            Some(name) => write!(f, "{} {name:?} crashed", ShortType(self.actor))?,
            None => write!(f, "{}{} crashed", ShortType(self.actor), self.who)?,
        }
        if let Some(during) = &self.during {
            write!(f, " in {during}")?;
        }
        write!(f, ": {}", self.reason)?;
        if let Some(place) = &self.place {
            write!(f, " ({place})")?;
        }
        if self.reason.to_string().contains("must be called from the context of a Tokio") {
            f.write_str(". Actors have that context in a system that is built with `SystemBuilder::tokio`, of the feature `tokio`")?;
        }
        f.write_str(match self.then {
            AfterCrash::Ends => ". It ends.",
            AfterCrash::SupervisorDecides => ". Its supervisor decides.",
        })
    }
}

/// Reports a crash of this actor, unless that was done already: a crash that its supervisor was to decide about may end
/// it after all.
#[inline(never)]
#[cold]
pub(crate) fn report(actor: &'static str, who: ActorId, name: Option<String>, crash: &mut Crash, then: AfterCrash) {
    if std::mem::replace(&mut crash.origin_mut().is_reported, true) {
        return;
    }
    let Some(system) = playhouse_executor::with_current_system(|system| system.cloned()) else { return };
    let reason = match crash {
        Crash::Panic(_) => StopReason::Panicked(crash.describe()),
        Crash::Error(_) => StopReason::Failed(crash.describe()),
    };
    let Origin { during, place, .. } = crash.origin().clone();
    let during = during.and_then(CrashedIn::of);
    Observing::of(&system).report(&CrashReport { actor, who, name, during, reason, place, then });
}

/// The decision of a supervisor about a child that has crashed, or is lost with its theater. See [`System::on_decision`].
///
/// It is displayed as `The supervisor "tills" restarts its child "two" in 100ms: no such item`.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # use std::sync::mpsc;
/// # struct Press;
/// # impl Actor for Press {
/// #     fn started(&mut self, _: &mut Context<Self>) { panic!("jammed"); }
/// # }
/// # let system = System::builder().print_crashes(false).start()?;
/// let (reports, received) = mpsc::channel();
/// system.on_decision(move |decision: &DecisionReport| reports.send(decision.clone()).unwrap());
/// let policy = SupervisionPolicy::one_for_one().when(|text| text == "jammed", Directive::Stop);
/// let supervisor = system.spawn(Supervisor::new(policy));
/// let press = supervisor.ask(ChildSpec::new("press", || Press)).wait()??; // its `started` panics
/// # let _ = press;
///
/// let decision = received.recv()?;
/// assert_eq!(decision.child, "press");
/// assert_eq!(decision.directive, Directive::Stop);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecisionReport {
    /// The identity of the supervisor.
    pub supervisor: ActorId,
    /// The name of the supervisor, if it has one.
    pub name: Option<String>,
    /// The name of the child.
    pub child: String,
    /// The text of the panic or the error.
    pub cause: String,
    /// The action. It is never [`Directive::Escalate`], because an escalation is reported as a crash of the supervisor.
    pub directive: Directive,
    /// The delay of the action: the time of the [backoff](crate::SupervisionPolicy::backoff) for a restart, zero for an
    /// action at once.
    pub after: Duration,
}

impl fmt::Display for DecisionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "The supervisor {name:?}")?,
            None => write!(f, "Supervisor{}", self.supervisor)?,
        }
        let does = match self.directive {
            Directive::Restart => "restarts",
            Directive::Resume => "resumes",
            Directive::Stop => "stops",
            Directive::Escalate => "gives up on",
        };
        write!(f, " {does} its child {:?}", self.child)?;
        if !self.after.is_zero() {
            write!(f, " in {:?}", self.after)?;
        }
        write!(f, ": {}", self.cause)
    }
}

/// Reports a decision of a supervisor.
#[cold]
pub(crate) fn decided(report: &DecisionReport) {
    let system = playhouse_executor::with_current_system(|system| system.cloned());
    if let Some(system) = system {
        Observing::of(&system).report(report);
    }
}

impl Report for CrashReport {
    /// Makes the crash an event of the level ERROR, even if handlers have no spans: in the span of the handler, if it
    /// has one.
    #[cfg(feature = "tracing")]
    fn trace(&self) {
        let (who, during) = (Label::of_type(self.actor, self.who), self.during.map(|during| during.to_string()));
        tracing::error!(
            target: "playhouse",
            actor = %who,
            message = during,
            place = self.place,
            "{self}"
        );
    }
}

impl Report for DecisionReport {
    /// Makes the decision an event of the level WARN.
    #[cfg(feature = "tracing")]
    fn trace(&self) {
        tracing::warn!(
            target: "playhouse",
            supervisor = self.name,
            child = self.child,
            "{self}"
        );
    }
}

impl System {
    /// Calls `hook` for each crash of an actor in this system, before a supervisor is notified. Hooks run in the order
    /// of their registration; none is ever removed. An asker on another thread may have its [`AskError::Panicked`](crate::AskError::Panicked) before
    /// the hook is called. [`shutdown`](System::shutdown) waits for the hooks of all crashes.
    ///
    /// The hook is called on the thread that runs the actor, and must not block. A panic in it is reported by the panic
    /// hook and has no other effect. Reports are also printed on stderr and are events of `tracing`: see
    /// [`SystemBuilder::print_crashes`](crate::SystemBuilder::print_crashes).
    ///
    /// ```
    /// # use playhouse_actor::*;
    /// use std::sync::mpsc;
    ///
    /// struct Till;
    /// impl Actor for Till {
    ///     fn started(&mut self, _: &mut Context<Self>) {
    ///         panic!("no drawer");
    ///     }
    /// }
    ///
    /// let system = System::builder().print_crashes(false).start()?;
    /// let (tell, told) = mpsc::channel();
    /// system.on_crash(move |crash| tell.send(crash.clone()).unwrap());
    /// system.spawn(Till);
    /// let crash = told.recv()?;
    /// assert_eq!(crash.during, Some(CrashedIn::Hook("started")));
    /// assert_eq!(crash.reason, StopReason::Panicked("no drawer".to_owned()));
    /// assert_eq!(crash.then, AfterCrash::Ends);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_crash(&self, hook: impl Fn(&CrashReport) + Send + Sync + 'static) {
        Observing::of(self.core()).on_report(hook);
    }

    /// Calls `hook` when a supervisor in this system has decided about a child that has crashed, or is lost with its
    /// theater. The call comes before the child is notified. Hooks run in the order of their registration; none is ever
    /// removed. A supervisor that gives up crashes itself: [`on_crash`](System::on_crash) reports that.
    ///
    /// The hook is called on the thread that runs the supervisor, and must not block. A panic in it is reported by the
    /// panic hook and has no other effect. These reports are printed and are events of `tracing`, like those of
    /// crashes.
    pub fn on_decision(&self, hook: impl Fn(&DecisionReport) + Send + Sync + 'static) {
        Observing::of(self.core()).on_report(hook);
    }
}
