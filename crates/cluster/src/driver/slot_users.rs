//! The actors that use the slots of a member.
//!
//! A user learns of each slot that opens and closes. A slot counts as closed when all users have confirmed that they do not use it any more: only then
//! may the next owner open it. A user that does not confirm delays a hand-over or a leave, and never lets a slot run twice.
//!
//! The end of a life needs no confirmation: [`Cluster::runs`](crate::Cluster::runs) returns nothing from that moment on, and the others have waited for
//! the lease.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use playhouse_actor::{ActorId, Message, Recipient};

use crate::membership::End;
use crate::view::{MemberId, View};

/// A change that the users of slots learn of.
#[derive(Clone, Debug)]
pub(crate) enum SlotNotice {
    /// The member has adopted a view.
    View(MemberId, Arc<View>),
    /// A slot is open. If it was open or closing at an earlier epoch, that epoch has ended.
    Opened { slot: usize, epoch: u64 },
    /// A slot closes: the user sends [`Released`] when nothing uses it at this epoch.
    Closing { slot: usize, epoch: u64 },
    /// The member has a lease again, after a pause.
    Resumed,
    /// The life of the member has ended. All of its slots have.
    Ended(End),
}

/// The notices of one step, in order.
pub(crate) struct SlotNotices(pub(crate) Vec<SlotNotice>);

impl Message for SlotNotices {
    type Reply = ();
}

/// Makes an actor a user of the slots.
pub(crate) struct UseSlots(pub(crate) Recipient<SlotNotices>);

impl Message for UseSlots {
    type Reply = ();
}

/// Confirms that a user does not use a slot any more.
pub(crate) struct Released {
    pub(crate) user: ActorId,
    pub(crate) slot: usize,
    pub(crate) epoch: u64,
}

impl Message for Released {
    type Reply = ();
}

/// Ends the use of all slots by a user that has ended.
pub(crate) struct EndUse {
    pub(crate) user: ActorId,
}

impl Message for EndUse {
    type Reply = ();
}

/// A user, and the notices that it has not received.
struct User {
    to: Recipient<SlotNotices>,
    unsent: VecDeque<SlotNotice>,
}

/// The users of the slots of a member.
#[derive(Default)]
pub(super) struct SlotUsers {
    users: Vec<User>,
    /// The slots that close, with the users that have not released them.
    closing: BTreeMap<(usize, u64), BTreeSet<ActorId>>,
}

impl SlotUsers {
    /// Adds a user, and tells it the present state. `open` returns the epoch of an open slot.
    pub(super) fn begin(
        &mut self,
        to: Recipient<SlotNotices>,
        view: Option<(MemberId, &Arc<View>)>,
        open: impl Fn(usize) -> Option<u64>,
    ) {
        let mut unsent = VecDeque::new();
        if let Some((me, view)) = view {
            unsent.push_back(SlotNotice::View(me, Arc::clone(view)));
            let slots = (0..view.slots.len()).filter_map(|slot| Some((slot, open(slot)?)));
            let open = slots.filter(|slot| !self.closing.contains_key(slot));
            unsent.extend(open.map(|(slot, epoch)| SlotNotice::Opened { slot, epoch }));
        }
        self.users.push(User { to, unsent });
        self.tell();
    }

    fn note(&mut self, notice: &SlotNotice) {
        self.users.iter_mut().for_each(|user| user.unsent.push_back(notice.clone()));
    }

    pub(super) fn note_view(&mut self, me: MemberId, view: &Arc<View>) {
        self.note(&SlotNotice::View(me, Arc::clone(view)));
    }

    pub(super) fn note_lease(&mut self) {
        self.note(&SlotNotice::Resumed);
    }

    pub(super) fn open(&mut self, slot: usize, epoch: u64) {
        self.closing.retain(|(closing, _), _| *closing != slot);
        self.note(&SlotNotice::Opened { slot, epoch });
    }

    /// Begins to close a slot. Returns whether nobody uses it.
    #[must_use]
    pub(super) fn close(&mut self, slot: usize, epoch: u64) -> bool {
        if self.users.is_empty() {
            return true;
        }
        self.closing.insert((slot, epoch), self.users.iter().map(|user| user.to.id()).collect());
        self.note(&SlotNotice::Closing { slot, epoch });
        false
    }

    /// Takes the confirmation of a user. Returns whether it was the last one.
    #[must_use]
    pub(super) fn release(&mut self, released: &Released) -> bool {
        let key = (released.slot, released.epoch);
        let Some(users) = self.closing.get_mut(&key) else { return false };
        users.remove(&released.user);
        let is_last = users.is_empty();
        if is_last {
            self.closing.remove(&key);
        }
        is_last
    }

    /// Removes a user that has ended. Returns the slots that nobody uses any more.
    #[must_use]
    pub(super) fn remove(&mut self, user: ActorId) -> Vec<(usize, u64)> {
        self.users.retain(|other| other.to.id() != user);
        let mut unused = Vec::new();
        self.closing.retain(|slot, users| {
            users.remove(&user);
            if users.is_empty() {
                unused.push(*slot);
            }
            !users.is_empty()
        });
        unused
    }

    pub(super) fn end(&mut self, end: End) {
        self.closing.clear();
        self.note(&SlotNotice::Ended(end));
    }

    /// Sends the notices. A user that has no room gets them later, because a member never waits for another actor.
    pub(super) fn tell(&mut self) {
        for user in self.users.iter_mut().filter(|user| !user.unsent.is_empty()) {
            let notices = SlotNotices(std::mem::take(&mut user.unsent).into());
            if let Err(unsent) = user.to.try_tell(notices) {
                user.unsent = unsent.into_message().0.into();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};
    use std::time::Duration;

    use playhouse_actor::{Actor, Context, Handler, ToRecipient};
    use playhouse_theater::Theater;
    use playhouse_toolbox::durable::MemoryStore;

    use super::*;
    use crate::{Cluster, ClusterOptions};

    const SLOTS: usize = 8;
    const LIMIT: Duration = Duration::from_secs(60);

    /// Passes the notices on, and confirms nothing.
    struct User(Mutex<mpsc::Sender<SlotNotice>>);

    impl Actor for User {}

    impl Handler<SlotNotices> for User {
        fn handle(&mut self, SlotNotices(notices): SlotNotices, _: &mut Context<Self>) {
            let to = self.0.get_mut().unwrap();
            // The test may have ended.
            notices.into_iter().for_each(|notice| drop(to.send(notice)));
        }
    }

    #[test]
    fn a_slot_closes_when_its_user_has_confirmed_it() {
        let theater = Theater::builder().listen("127.0.0.1:0").start().unwrap();
        let options = ClusterOptions::new().slots(SLOTS as u32);
        let cluster = Cluster::join(&theater, MemoryStore::new(), options).unwrap();
        cluster.activated().wait().unwrap();
        let (notices, received) = mpsc::channel();
        let user = theater.system().spawn(User(Mutex::new(notices)));
        cluster.member.tell(UseSlots(user.recipient()));

        let mut open = BTreeSet::new();
        while open.len() < SLOTS {
            match received.recv_timeout(LIMIT).unwrap() {
                SlotNotice::Opened { slot, epoch } => assert!(open.insert((slot, epoch))),
                notice => assert!(matches!(notice, SlotNotice::View(..)), "{notice:?}"),
            }
        }
        let leave = cluster.leave();
        let left = std::thread::spawn(move || leave.wait());
        let mut closing = BTreeSet::new();
        while closing.len() < SLOTS {
            match received.recv_timeout(LIMIT).unwrap() {
                SlotNotice::Closing { slot, epoch } => assert!(closing.insert((slot, epoch))),
                notice => assert!(matches!(notice, SlotNotice::View(..)), "{notice:?}"),
            }
        }
        assert_eq!(closing, open);
        let mut closing = closing.into_iter();
        let last = closing.next_back().unwrap();
        let release = |(slot, epoch)| cluster.member.tell(Released { user: user.id(), slot, epoch });
        closing.for_each(release);
        // Neither another epoch nor another user releases it.
        release((last.0, last.1 + 1));
        cluster.member.tell(Released { user: cluster.member.id(), slot: last.0, epoch: last.1 });
        // The member answers behind these messages.
        cluster.activated().within(Duration::from_millis(300)).wait().unwrap_err();
        assert_eq!(cluster.state().open, 1);
        assert_eq!(cluster.runs(last.0), Some(last.1), "it runs until it is released");
        assert!(!left.is_finished());
        release(last);
        left.join().unwrap().unwrap();
        while !matches!(received.recv_timeout(LIMIT).unwrap(), SlotNotice::Ended(End::Left)) {}
        theater.shutdown().unwrap();
    }
}
