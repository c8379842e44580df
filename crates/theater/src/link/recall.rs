//! Requests that are taken back, in both directions of the link.

use playhouse_actor::away::{ForCycle, RequestLocation, TakesBack, TooLate};

use super::*;

/// The requests of both directions.
#[derive(Default)]
pub(super) struct Recalls {
    /// Requests that this end takes back, and has not told the other end yet.
    unsaid: Mutex<Vec<(u64, Option<ForCycle>)>>,
    is_any_unsaid: AtomicBool,
    /// Requests that the other end may take back, by its numbers.
    held: Mutex<FxHashMap<u64, Option<Weak<dyn TakesBack>>>>,
}

/// A request from the other end, until it is answered.
pub(super) struct Held {
    link: Arc<Link>,
    ask: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        lock(&self.link.recalls.held).remove(&self.ask);
    }
}

impl Recalls {
    /// The bytes that a request from the other end takes in this theater.
    pub(super) const HELD_BYTES: usize = size_of::<Held>() + size_of::<(u64, Option<Weak<dyn TakesBack>>)>();
}

impl Link {
    /// Registers a request that is about to be given to its receiver.
    pub(super) fn hold(&self, ask: u64) -> Held {
        lock(&self.recalls.held).insert(ask, None);
        Held { link: self.this(), ask }
    }

    /// Sets the object that takes the request back, if it has not been answered.
    pub(super) fn held_by(&self, ask: u64, by: Weak<dyn TakesBack>) {
        if let Some(held) = lock(&self.recalls.held).get_mut(&ask) {
            *held = Some(by);
        }
    }

    /// Takes a request back for the other end.
    pub(super) fn take_back_held(&self, ask: u64, for_cycle: Option<u32>) {
        let by = lock(&self.recalls.held).get(&ask).cloned().flatten();
        let Some(by) = by.and_then(|by| by.upgrade()) else { return };
        let link = self.this();
        let too_late: TooLate = Box::new(move |forwards| {
            // A failure does not matter: then the ask ends with the link.
            let _ = link.send(Lane::Normal, |out| Head::TooLate { ask, forwards }.write(out));
        });
        // The answer goes over a link, perhaps this one.
        by.take_back(0, for_cycle.map(|forwards| ForCycle { forwards, too_late }));
    }

    /// Returns the requests from the other end that were forwarded: the other end and their numbers, and their known locations.
    pub(crate) fn passed(&self) -> Vec<((u64, u64), RequestLocation)> {
        let held: Vec<(u64, Weak<dyn TakesBack>)> =
            lock(&self.recalls.held).iter().filter_map(|(ask, by)| Some((*ask, by.clone()?))).collect();
        let known = |(ask, by): (u64, Weak<dyn TakesBack>)| {
            let whereabouts = by.upgrade()?.whereabouts(0);
            let is_passed = whereabouts.forwards > 0 || whereabouts.route.is_some();
            is_passed.then_some(((self.incarnation, ask), whereabouts))
        };
        held.into_iter().filter_map(known).collect()
    }

    /// Tells held requests that the other end is lost, and waits for no answers.
    pub(super) fn lose_held(&self) {
        let held: Vec<_> = lock(&self.recalls.held).values().flatten().filter_map(Weak::upgrade).collect();
        held.iter().for_each(|by| by.asker_is_lost());
    }

    /// Writes unsaid recalls behind the requests themselves.
    pub(super) fn write_taken_back(&self, out: &mut Out) {
        if !self.recalls.is_any_unsaid.load(Ordering::Acquire) {
            return;
        }
        self.recalls.is_any_unsaid.store(false, Ordering::Release);
        for (ask, cycle) in std::mem::take(&mut *lock(&self.recalls.unsaid)) {
            // The request may have been answered by now.
            if !out.asks.contains_key(&ask) {
                continue;
            }
            let head = Head::TakeBack { ask, for_cycle: cycle.as_ref().map(|cycle| cycle.forwards) };
            // A request that cannot be taken back is handled.
            let _ = out.outbound.frame(session::Lane::Normal, |bytes| head.write(bytes));
            out.too_late.extend(cycle.map(|cycle| (ask, cycle.too_late)));
        }
    }
}

impl TakesBack for Link {
    /// Takes no lock that is held while a user's value is written, because its `Serialize` may drop a future that waits for an answer. Therefore a
    /// thread that is no worker does not flush the link itself.
    fn take_back(&self, number: u64, cycle: Option<ForCycle>) {
        if self.is_lost() {
            return;
        }
        lock(&self.recalls.unsaid).push((number, cycle));
        self.recalls.is_any_unsaid.store(true, Ordering::Release);
        if flush_soon() {
            self.flush_at_end_of_gulp();
        } else if let Some(node) = self.node() {
            let link = self.this();
            node.soon(Box::new(move || link.flush(false)));
        }
    }

    fn whereabouts(&self, number: u64) -> RequestLocation {
        RequestLocation::sent(self.incarnation, number)
    }
}

#[cfg(test)]
mod tests {
    use playhouse_actor::{Actor, Context, Guard, Handler, Message, remote};
    use serde::{Deserialize, Serialize};

    use super::super::tests::hostile::{LIMIT, bytes, name, rejected_peer, theaters};
    use super::super::tests::{Greet, Guest, eventually};
    use super::*;
    use crate::link::frame::Wire;

    /// An actor that admits no request until it is open.
    #[derive(Serialize, Deserialize)]
    struct Gate {
        open: bool,
        came: Vec<u32>,
    }

    #[derive(Serialize, Deserialize)]
    struct Knock(u32);
    impl Message for Knock {
        type Reply = u32;
        const WIRE: Option<playhouse_actor::wire::WireForm<Knock>> = Some(playhouse_actor::wire::WireForm::of());
    }

    /// Answered with the requests that have come since.
    struct Open;
    impl Message for Open {
        type Reply = Vec<u32>;
    }

    impl Actor for Gate {}
    impl Handler<Knock> for Gate {
        fn handle(&mut self, Knock(who): Knock, _: &mut Context<Self>) -> u32 {
            self.came.push(who);
            who
        }

        fn guard(&self, _: &Knock) -> Guard {
            if self.open { Guard::Holds } else { Guard::Defer }
        }
    }
    impl Handler<Open> for Gate {
        fn handle(&mut self, _: Open, _: &mut Context<Self>) -> Vec<u32> {
            self.open = true;
            std::mem::take(&mut self.came)
        }
    }
    remote!(Gate: Knock);

    // GUARANTEE: Requests in other theaters are withdrawn
    #[test]
    fn a_recall_with_a_wrong_number_or_too_late_changes_nothing() {
        let [theater] = theaters();
        let caller = rejected_peer(&theater, 10);
        let gate = theater.system().spawn(Gate { open: false, came: Vec::new() });
        let registry = &theater.theater_core.registry;
        let (kind, _) =
            registry.table(registry.kinds()).message(TypeId::of::<Gate>(), TypeId::of::<Knock>(), "?").unwrap();
        caller.named(0, name(&theater, gate.id()));
        let knock = |ask: u64| {
            caller.receives(&Head::Ask { to: 0, kind, codec: Wire::Positional, ask }, &bytes(&Knock(ask as u32)))
        };
        let take_back = |ask, cycle: bool| caller.receives(&Head::TakeBack { ask, for_cycle: cycle.then_some(0) }, &[]);
        let failed = |meant| {
            let said = caller.says();
            let of = |(head, rest): &(Head, Vec<u8>)| match head {
                Head::Failed { ask } if *ask == meant => Some(Codec::Positional.read(rest).unwrap()),
                _ => None,
            };
            said.iter().find_map(of)
        };
        (1..=5).for_each(knock);
        take_back(9, false);
        take_back(2, true);
        assert_eq!(failed(2), Some(AskError::Cycle(Vec::new())));
        take_back(2, false);
        take_back(3, false);
        assert!(matches!(failed(3), Some(AskError::Deadline { .. })));
        // A forwarded request is taken back once in the next theater, for any number of recalls.
        let target = rejected_peer(&theater, 11);
        let (away, relayed) = (target.stub_of_its(1, 7), registry.table(registry.kinds()));
        let (greet, _) = relayed.message(TypeId::of::<Guest>(), TypeId::of::<Greet>(), "?").unwrap();
        caller.named(1, name(&theater, away));
        caller.receives(&Head::Ask { to: 1, kind: greet, codec: Wire::Positional, ask: 6 }, &bytes(&Greet));
        let mut said = Vec::new();
        let mut says = |is_meant: &dyn Fn(&Head) -> bool| {
            eventually(|| {
                said.extend(target.says().into_iter().map(|(head, _)| head));
                said.iter().any(is_meant)
            });
            said.iter().filter(|head| matches!(head, Head::TakeBack { .. })).count()
        };
        assert_eq!(says(&|head| matches!(head, Head::Ask { .. })), 0);
        (0..100).for_each(|_| take_back(6, true));
        assert_eq!(says(&|head| matches!(head, Head::TakeBack { for_cycle: Some(0), .. })), 1);
        (0..100).for_each(|_| take_back(6, false));
        assert_eq!(says(&|head| matches!(head, Head::TakeBack { for_cycle: None, .. })), 2);
        // The remote handler has begun it, and this is passed on.
        let ask = said.iter().find_map(|head| if let Head::Ask { ask, .. } = head { Some(*ask) } else { None });
        target.receives(&Head::TooLate { ask: ask.unwrap(), forwards: 0 }, &[]);
        target.receives(&Head::TooLate { ask: ask.unwrap(), forwards: 0 }, &[]);
        let too_late = caller.says().iter().filter(|(head, _)| *head == Head::TooLate { ask: 6, forwards: 0 }).count();
        assert_eq!(too_late, 1);
        target.receives(&Head::Failed { ask: ask.unwrap() }, &bytes(&AskError::Stopped));
        // A peer that gives a number twice has one request that it can take back.
        knock(4);
        take_back(4, false);
        assert_eq!(gate.ask(Open).within(LIMIT).wait(), Ok(vec![]));
        eventually(|| lock(&caller.recalls.held).is_empty());
        assert_eq!(gate.ask(Open).within(LIMIT).wait(), Ok(vec![1, 4, 5]));
        let before = caller.says().len();
        take_back(1, true);
        assert_eq!((before > 0, caller.says()), (true, Vec::new()));
        assert_eq!(caller.unanswered_bytes.load(Ordering::Relaxed), 0);
        theater.shutdown().unwrap();
    }
}
