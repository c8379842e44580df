//! The policy of a supervisor: which children are restarted after a crash, and how often.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use playhouse_executor::Crash;

/// The supervisor's action on a crash of a child.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// let policy = SupervisionPolicy::one_for_one()
///     .on::<std::fmt::Error>(Directive::Resume) // goes on with the same state
///     .when(|text| text.contains("poisoned"), Directive::Stop);
/// # let _ = policy;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Directive {
    /// The child gets a new state, and keeps its address and mailbox. The default.
    Restart,
    /// The child continues with its present state.
    Resume,
    /// The child ends.
    Stop,
    /// The supervisor crashes, too.
    Escalate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strategy {
    OneForOne,
    OneForAll,
    RestForOne,
}

type Rule = (Box<dyn Fn(&Crash) -> bool + Send>, Directive);

/// The restart strategy, limits and rules of a [`Supervisor`](crate::Supervisor).
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// use std::time::Duration;
///
/// let policy = SupervisionPolicy::rest_for_one()
///     .max_restarts(10, Duration::from_secs(60))
///     .backoff(Duration::from_millis(100), Duration::from_secs(5))
///     .on::<std::io::Error>(Directive::Restart)
///     .when(|text| text.contains("fatal"), Directive::Escalate);
/// let supervisor = Supervisor::new(policy);
/// # let _ = supervisor;
/// ```
#[doc(alias("SupervisorStrategy", "SupervisionStrategy"))]
#[must_use]
pub struct SupervisionPolicy {
    pub(super) strategy: Strategy,
    pub(super) restarts_max: usize,
    pub(super) within: Duration,
    pub(super) backoff: Option<(Duration, Duration)>,
    rules: Vec<Rule>,
}

impl fmt::Debug for SupervisionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SupervisionPolicy")
            .field("strategy", &self.strategy)
            .field("restarts_max", &self.restarts_max)
            .field("within", &self.within)
            .field("backoff", &self.backoff)
            .finish_non_exhaustive()
    }
}

impl SupervisionPolicy {
    fn new(strategy: Strategy) -> SupervisionPolicy {
        SupervisionPolicy {
            strategy,
            restarts_max: 3,
            within: Duration::from_secs(5),
            backoff: None,
            rules: Vec::new(),
        }
    }

    /// Returns a policy that restarts only the crashed child.
    pub fn one_for_one() -> SupervisionPolicy {
        SupervisionPolicy::new(Strategy::OneForOne)
    }

    /// Returns a policy that restarts all children when one crashes.
    pub fn one_for_all() -> SupervisionPolicy {
        SupervisionPolicy::new(Strategy::OneForAll)
    }

    /// Returns a policy that restarts the crashed child and those started after it.
    pub fn rest_for_one() -> SupervisionPolicy {
        SupervisionPolicy::new(Strategy::RestForOne)
    }

    /// Sets the restart limit: at more than `restarts` crashes within `within`, the supervisor gives up and crashes
    /// itself. Default: 3 in 5 s.
    pub fn max_restarts(mut self, restarts: usize, within: Duration) -> Self {
        self.restarts_max = restarts;
        self.within = within;
        self
    }

    /// Sets the delay before a restart: `first`, then doubled at each crash within the window of `max_restarts`, at
    /// most `most`. Default: no delay.
    pub fn backoff(mut self, first: Duration, most: Duration) -> Self {
        self.backoff = Some((first, most));
        self
    }

    /// Sets the directive for crashes with an error of type `E`, by [`Context::fail`](crate::Context::fail) or [`std::panic::panic_any`]. The
    /// first rule that fits applies.
    ///
    /// The error of a child in another theater arrives as text only: use [`SupervisionPolicy::when`] for it.
    /// [`TheaterLost`](crate::TheaterLost) is the exception: it is found by its type.
    pub fn on<E: Error + 'static>(mut self, directive: Directive) -> Self {
        let fits = |crash: &Crash| match crash {
            Crash::Error(error) => error.is::<E>(),
            Crash::Panic(payload) => payload.is::<E>(),
        };
        self.rules.push((Box::new(fits), directive));
        self
    }

    /// Sets the directive for crashes with an error or a panic whose text `fits`. The first rule that fits applies.
    pub fn when(mut self, fits: impl Fn(&str) -> bool + Send + 'static, directive: Directive) -> Self {
        self.rules.push((Box::new(move |crash: &Crash| fits(&crash.describe())), directive));
        self
    }

    pub(super) fn decide(&self, crash: &Crash) -> Directive {
        self.rules.iter().find(|(fits, _)| fits(crash)).map_or(Directive::Restart, |(_, directive)| *directive)
    }
}

/// The error with which a supervisor crashes when it gives up.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// // The parent of a supervisor that gives up stops it, and does not restart it.
/// let policy = SupervisionPolicy::one_for_one().on::<SupervisionFailed>(Directive::Stop);
/// # let _ = policy;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupervisionFailed {
    /// The name of the child.
    pub child: String,
    /// The text of the crash that exceeded the restart limit, or that was escalated.
    pub cause: String,
}

impl fmt::Display for SupervisionFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the supervisor gave up on its child {:?}: {}", self.child, self.cause)
    }
}

impl Error for SupervisionFailed {}
