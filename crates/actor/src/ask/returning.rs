//! Messages that come back, for handlers that may answer later: see [`returning`](crate::message::returning).

use std::any::type_name;

use playhouse_executor::{Address, Admission, AwayCx, Cx, Envelope, MailKind, Undelivered};

use crate::actor::ActorState;
use crate::actor::context::Context;
use crate::ask::reply::{DeferredHandler, Reply};
use crate::message::Message;
use crate::message::returning::{Posting, Returned, ReturningMail, Running, TakeBack, common_parts};

/// The envelope for a handler that may answer later.
#[repr(transparent)]
struct InDeferred<T>(T);

/// Posts a message. A request always becomes one, as in [`reply`](crate::ask::reply).
pub(crate) fn post_deferred<A: DeferredHandler<M>, M: Message, B: TakeBack<M>>(
    mail: ReturningMail<M, B>,
    to: Address<ActorState<A>>,
    posting: Posting<'_>,
) {
    match posting {
        Posting::Tell => to.send(InDeferred(mail)),
        Posting::Unwaiting | Posting::Ask(None) => to.send_request(InDeferred(mail)),
        Posting::Ask(Some(may_send)) => {
            if may_send() {
                to.send_request(InDeferred(mail));
            }
        }
    }
}

impl<A: DeferredHandler<M>, M: Message, B: TakeBack<M>> Envelope<ActorState<A>> for InDeferred<ReturningMail<M, B>> {
    fn run(self, state: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        let ReturningMail { message, reply, back, .. } = self.0;
        let _running = Running::<M, B>::begin(back);
        if reply.as_ref().is_none_or(|reply| reply.begin().is_some()) {
            state.actor.handle(message, Reply { to: reply }, Context::of(cx));
        }
    }

    #[inline(always)]
    fn admission(&self, state: &ActorState<A>, _: &mut Cx<ActorState<A>>) -> Admission {
        self.0.admission(|message| state.actor.guard(message))
    }

    common_parts!(ActorState<A>);
}

impl<T: Send + 'static> Reply<T> {
    /// Returns the right to answer a message that has come back.
    #[doc(hidden)]
    pub fn returned(Returned(to): Returned<T>) -> Reply<T> {
        Reply { to }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, mpsc};

    use super::*;
    use crate::actor::Actor;
    use crate::actor::context::Context;
    use crate::actor::reference::ActorRef;
    use crate::answer::reply_to::ReplyTo;
    use crate::ask::reply::DeferredMode;
    use crate::message::returning::{Returning, ReturningMode};
    use crate::message::{AsyncHandler, AsyncMode, HandledBy, Handler, SyncMode};
    use crate::system::System;

    struct Counter(u64);
    impl Actor for Counter {}

    struct Add(u64);
    impl Message for Add {
        type Reply = u64;
    }
    struct AddLater(u64);
    impl Message for AddLater {
        type Reply = u64;
    }
    struct AddWith(u64);
    impl Message for AddWith {
        type Reply = u64;
    }

    impl Handler<Add> for Counter {
        fn handle(&mut self, Add(by): Add, _: &mut Context<Self>) -> u64 {
            self.0 += by;
            self.0
        }
    }
    impl AsyncHandler<AddLater> for Counter {
        async fn handle(&mut self, AddLater(by): AddLater, _: &mut Context<Self>) -> u64 {
            self.0 += by;
            self.0
        }
    }
    impl DeferredHandler<AddWith> for Counter {
        fn handle(&mut self, AddWith(by): AddWith, reply: Reply<u64>, _: &mut Context<Self>) {
            self.0 += by;
            reply.send(self.0);
        }
    }

    /// Passes the messages that come back to the test, or forwards them as `Add` to another counter.
    #[derive(Clone)]
    struct Owner {
        is_open: Arc<AtomicBool>,
        is_running: Arc<AtomicBool>,
        back: mpsc::Sender<(u64, Reply<u64>)>,
        next: Option<ActorRef<Counter>>,
    }

    impl<M: Message<Reply = u64> + Into<u64>> TakeBack<M> for Owner {
        fn may_run(&self) -> bool {
            self.is_open.load(Ordering::Relaxed)
        }

        fn set_running(&self, is_running: bool) {
            self.is_running.store(is_running, Ordering::Relaxed);
        }

        fn take_back(self, message: M, reply: Returned<u64>) {
            let reply = Reply::returned(reply);
            match self.next {
                Some(next) => reply.forward(next, Add(message.into())),
                None => self.back.send((message.into(), reply)).unwrap(),
            }
        }
    }

    impl From<Add> for u64 {
        fn from(Add(by): Add) -> u64 {
            by
        }
    }
    impl From<AddLater> for u64 {
        fn from(AddLater(by): AddLater) -> u64 {
            by
        }
    }
    impl From<AddWith> for u64 {
        fn from(AddWith(by): AddWith) -> u64 {
            by
        }
    }

    fn check<M, Mode>(make: fn(u64) -> M)
    where
        M: HandledBy<Counter, Mode> + Message<Reply = u64> + Into<u64>,
        Mode: 'static,
    {
        let system = System::builder().simulated(1).start().unwrap();
        let (back, returned) = mpsc::channel();
        let owner = Owner { is_open: Arc::new(AtomicBool::new(true)), is_running: Arc::default(), back, next: None };
        let counter = system.spawn(Counter(0));
        let returning = |by| Returning::<M, Owner, Mode>::new(make(by), owner.clone());
        assert_eq!(counter.ask::<_, ReturningMode<Mode>>(returning(1)).wait(), Ok(1));
        counter.tell::<_, ReturningMode<Mode>>(returning(2));
        assert_eq!(counter.ask::<_, ReturningMode<Mode>>(returning(0)).wait(), Ok(3));
        assert!(returned.try_recv().is_err());

        // The receiver may not handle it when its turn has come.
        counter.tell::<_, ReturningMode<Mode>>(returning(4));
        owner.is_open.store(false, Ordering::Relaxed);
        system.run_until_idle();
        let (by, reply) = returned.try_recv().unwrap();
        assert_eq!((by, reply.is_awaited()), (4, false));
        owner.is_open.store(true, Ordering::Relaxed);
        assert_eq!(counter.ask::<_, ReturningMode<Mode>>(returning(0)).wait(), Ok(3), "it was not handled");

        // The receiver has ended, before it was sent and afterwards.
        counter.tell::<_, ReturningMode<Mode>>(returning(5));
        counter.stop();
        system.run_until_idle();
        let (answer, answered) = mpsc::channel();
        let ask = counter.ask::<_, ReturningMode<Mode>>(returning(6));
        let sent = |_| ReplyTo::then(Box::new(move |result| answer.send(result).unwrap()));
        ask.send_for(sent);
        system.run_until_idle();
        let (five, six) = (returned.try_recv().unwrap(), returned.try_recv().unwrap());
        assert_eq!((five.0, six.0, six.1.is_awaited()), (5, 6, true));
        // The owner has the right to answer.
        six.1.send(60);
        assert_eq!(answered.try_recv(), Ok(Ok(60)));
        assert!(!owner.is_running.load(Ordering::Relaxed));

        // The owner forwards the request of a thread that waits.
        let next = Owner { next: Some(system.spawn(Counter(100))), ..owner.clone() };
        let returning = |by| Returning::<M, Owner, Mode>::new(make(by), next.clone());
        assert_eq!(counter.ask::<_, ReturningMode<Mode>>(returning(7)).wait(), Ok(107));
        system.shutdown().unwrap();
    }

    #[test]
    fn a_message_that_is_not_handled_comes_back_to_its_owner() {
        check::<Add, SyncMode>(Add);
        check::<AddLater, AsyncMode>(AddLater);
        check::<AddWith, DeferredMode>(AddWith);
    }
}
