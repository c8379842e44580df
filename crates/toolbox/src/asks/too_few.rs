//! Too few answers.

use std::fmt;

use playhouse_actor::{Actor, ActorRef, AskError};

/// Too many have failed. What has come is in here.
pub struct TooFewAnswers<A: Actor, R> {
    /// How many answers were wanted.
    pub wanted: usize,
    /// How many actors were asked.
    pub asked: usize,
    /// The answers that have come, in the order in which they came.
    pub answers: Vec<(ActorRef<A>, R)>,
    /// Who has failed, and why.
    pub errors: Vec<(ActorRef<A>, AskError)>,
}

impl<A: Actor, R> fmt::Display for TooFewAnswers<A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooFewAnswers { wanted, asked, answers, errors } = self;
        write!(f, "{wanted} answers were wanted of {asked} actors, and {} came", answers.len())?;
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
