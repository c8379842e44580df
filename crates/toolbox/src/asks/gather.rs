//! Pending requests to several actors, and the answers so far.

use std::pin::Pin;
use std::task::{Context as PollContext, Poll};

use playhouse_actor::{Actor, ActorRef, Ask, AskError, Message};

use super::many::AskMany;

/// The state of one request.
pub(super) enum AskState<M: Message> {
    Waiting(Box<Ask<M>>),
    Done(Result<M::Reply, AskError>),
    Taken,
}

/// Several requests with one message.
pub(super) struct Gather<A: Actor, M: Message> {
    pub(super) request: Option<AskMany<A, M>>,
    pub(super) asked: Vec<(ActorRef<A>, AskState<M>)>,
    /// Indexes of the requests that were answered, in the order of the answers.
    pub(super) answered: Vec<usize>,
    pub(super) failed: Vec<usize>,
}

// No field is ever pinned.
impl<A: Actor, M: Message> Unpin for Gather<A, M> {}

impl<A: Actor, M: Message> Gather<A, M> {
    pub(super) fn new(request: AskMany<A, M>) -> Self {
        Gather { request: Some(request), asked: Vec::new(), answered: Vec::new(), failed: Vec::new() }
    }

    pub(super) fn send(&mut self) {
        let Some(AskMany { targets, message, within, ask, clone }) = self.request.take() else { return };
        let mut message = Some(message);
        let last = targets.len().saturating_sub(1);
        for (number, target) in targets.into_iter().enumerate() {
            let message = if number == last { message.take() } else { message.as_ref().map(clone) };
            let ask = ask(target, message.expect("the last target takes the message"));
            let ask = if let Some(within) = within { ask.within(within) } else { ask };
            self.asked.push((target, AskState::Waiting(Box::new(ask))));
        }
    }

    /// Polls the pending requests until `enough` holds.
    pub(super) fn poll(&mut self, cx: &mut PollContext<'_>, enough: impl Fn(&Self) -> bool) -> Poll<()> {
        self.send();
        for number in 0..self.asked.len() {
            if enough(self) {
                break;
            }
            let AskState::Waiting(ask) = &mut self.asked[number].1 else { continue };
            if let Poll::Ready(answer) = Pin::new(ask.as_mut()).poll(cx) {
                let list = if answer.is_ok() { &mut self.answered } else { &mut self.failed };
                list.push(number);
                self.asked[number].1 = AskState::Done(answer);
            }
        }
        if enough(self) { Poll::Ready(()) } else { Poll::Pending }
    }

    pub(super) fn take(&mut self, number: usize) -> (ActorRef<A>, Result<M::Reply, AskError>) {
        let (actor, asked) = &mut self.asked[number];
        match std::mem::replace(asked, AskState::Taken) {
            AskState::Done(answer) => (*actor, answer),
            AskState::Waiting(_) | AskState::Taken => unreachable!("only a finished request is taken, and once"),
        }
    }

    pub(super) fn first_target(&self) -> Option<ActorRef<A>> {
        self.request.as_ref().and_then(|request| request.targets.first().copied())
    }

    /// Fails the pending requests with `error`, and those that were not sent yet.
    pub(super) fn fail_rest(&mut self, error: &AskError) {
        if let Some(request) = self.request.take() {
            self.failed.extend(0..request.targets.len());
            self.asked.extend(request.targets.into_iter().map(|target| (target, AskState::Done(Err(error.clone())))));
        }
        for (number, (_, asked)) in self.asked.iter_mut().enumerate() {
            if matches!(asked, AskState::Waiting(_)) {
                *asked = AskState::Done(Err(error.clone()));
                self.failed.push(number);
            }
        }
    }
}
