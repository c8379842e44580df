//! The error of too few answers.

use std::fmt;

use playhouse_actor::{Actor, ActorRef, AskError};

/// An error: so many requests have failed that the wanted number of answers cannot be reached. The answers that have
/// come are part of the error.
///
/// # Examples
///
/// ```
/// use playhouse::asks::ask_many;
/// use playhouse::prelude::*;
///
/// struct Node;
///
/// #[actor]
/// impl Node {
///     #[message(derive(Clone))]
///     fn check(&self) {}
/// }
///
/// let system = System::start()?;
/// let nodes = vec![system.spawn(Node)];
/// let error = ask_many(nodes, Check).first(2).wait().unwrap_err();
/// assert_eq!((error.wanted, error.asked), (2, 1));
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TooFewAnswers<A: Actor, R> {
    /// The wanted number of answers.
    pub wanted: usize,
    /// The number of actors that were asked.
    pub asked: usize,
    /// The answers that have come, in the order of arrival.
    pub answers: Vec<(ActorRef<A>, R)>,
    /// The actors that failed, with their errors.
    pub errors: Vec<(ActorRef<A>, AskError)>,
}

impl<A: Actor, R> fmt::Display for TooFewAnswers<A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooFewAnswers { wanted, asked, answers, errors } = self;
        write!(f, "{wanted} answers were wanted from {asked} actors, and {} came", answers.len())?;
        for (actor, error) in errors {
            write!(f, "; {actor}: {error}")?;
        }
        Ok(())
    }
}

impl<A: Actor, R> fmt::Debug for TooFewAnswers<A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TooFewAnswers")
            .field("wanted", &self.wanted)
            .field("asked", &self.asked)
            .field("answers", &self.answers.len())
            .field("errors", &self.errors)
            .finish()
    }
}

impl<A: Actor, R> std::error::Error for TooFewAnswers<A, R> {}
