//! Requests that are taken back: those that went over the link, and those that came over it.

use playhouse_actor::away::TakesBack;

use super::*;

/// A request that the sender takes back: its number, and the cycle that it is part of if that is why.
type TakenBack = (u64, Option<Vec<String>>);

/// Requests of both directions.
#[derive(Default)]
pub(super) struct Recalls {
    /// Those that this end takes back, which is not said yet.
    unsaid: Mutex<Vec<TakenBack>>,
    /// Those that the other end may take back, by its numbers.
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
    /// The bytes that a request from the other end takes here.
    pub(super) const HELD_BYTES: usize = size_of::<Held>() + size_of::<(u64, Option<Weak<dyn TakesBack>>)>();
}

impl Link {
    /// The request is about to be given to its receiver.
    pub(super) fn hold(&self, ask: u64) -> Held {
        lock(&self.recalls.held).insert(ask, None);
        Held { link: self.this(), ask }
    }

    /// This takes the request back, if it has not been answered meanwhile.
    pub(super) fn held_by(&self, ask: u64, by: Weak<dyn TakesBack>) {
        if let Some(held) = lock(&self.recalls.held).get_mut(&ask) {
            *held = Some(by);
        }
    }

    /// The other end takes a request back.
    pub(super) fn take_back_held(&self, ask: u64, cycle: Option<Vec<String>>) {
        let by = lock(&self.recalls.held).get(&ask).cloned().flatten();
        // The answer goes over a link, perhaps this one.
        if let Some(by) = by.and_then(|by| by.upgrade()) {
            by.take_back(0, cycle);
        }
    }

    /// Writes what is unsaid behind the requests themselves.
    pub(super) fn write_taken_back(&self, outbound: &mut Outbound) {
        for (ask, cycle) in std::mem::take(&mut *lock(&self.recalls.unsaid)) {
            // A request that cannot be taken back is handled.
            let _ =
                outbound.frame(session::Lane::Normal, |out| Head::TakeBack { ask, cycle: cycle.clone() }.write(out));
        }
    }
}

impl TakesBack for Link {
    /// Under no lock that is held while a user's value is written: its `Serialize` may drop a future that waits for an answer.
    fn take_back(&self, number: u64, cycle: Option<Vec<String>>) {
        if !self.is_lost() {
            lock(&self.recalls.unsaid).push((number, cycle));
            self.flush_later(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use playhouse_actor::{Actor, Context, Guard, Handler, Message, remote};
    use serde::{Deserialize, Serialize};

    use super::super::hostile::{LIMIT, bytes, name, stranger, theaters};
    use super::super::tests::eventually;
    use super::*;
    use crate::frame::Wire;

    /// Lets nobody in until it is open.
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

    /// Answered with those that have come since.
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

    #[test]
    fn what_is_taken_back_under_a_wrong_number_or_too_late_changes_nothing() {
        let [theater] = theaters();
        let caller = stranger(&theater, 10);
        let gate = theater.system().spawn(Gate { open: false, came: Vec::new() });
        let registry = &theater.house.registry;
        let (kind, _) =
            registry.table(registry.kinds()).message(TypeId::of::<Gate>(), TypeId::of::<Knock>(), "?").unwrap();
        caller.named(0, name(&theater, gate.id()));
        let knock = |ask: u64| {
            caller.hears(&Head::Ask { to: 0, kind, codec: Wire::Positional, ask }, &bytes(&Knock(ask as u32)))
        };
        let take_back = |ask, cycle| caller.hears(&Head::TakeBack { ask, cycle }, &[]);
        let failed = |meant| {
            let said = caller.says();
            let of = |(head, rest): &(Head, Vec<u8>)| match head {
                Head::Failed { ask } if *ask == meant => Some(Codec::Positional.read(rest).unwrap()),
                _ => None,
            };
            said.iter().find_map(of)
        };
        (1..=5).for_each(knock);
        take_back(9, None);
        let path = vec!["a".to_owned(), "b".to_owned()];
        take_back(2, Some(path.clone()));
        assert_eq!(failed(2), Some(AskError::Cycle(path)));
        take_back(2, None);
        take_back(3, None);
        assert!(matches!(failed(3), Some(AskError::Deadline { .. })));
        // A peer that gives a number twice has one request that it can take back.
        knock(4);
        take_back(4, None);
        assert_eq!(gate.ask(Open).within(LIMIT).wait(), Ok(vec![]));
        eventually(|| lock(&caller.recalls.held).is_empty());
        assert_eq!(gate.ask(Open).within(LIMIT).wait(), Ok(vec![1, 4, 5]));
        let before = caller.says().len();
        take_back(1, Some(Vec::new()));
        assert_eq!((before > 0, caller.says()), (true, Vec::new()));
        assert_eq!(caller.unanswered_bytes.load(Ordering::Relaxed), 0);
        theater.shutdown().unwrap();
    }
}
