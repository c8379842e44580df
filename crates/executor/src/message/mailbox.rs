//! Bounded mailboxes: how much may wait for one actor.
//!
//! Actors have no queue, so there is none that could be full: what waits for an actor lies in logs, inboxes and queues of
//! workers among other mail, and on the actor's deferred list. What is counted, therefore, is the messages themselves. A
//! message to an actor with a bound takes a *place* in the actor's [`Room`] before it is written anywhere, and carries it along
//! before its own record ([`Placed`]), which gives the place back when the message is taken out to be handled, or is dropped,
//! whoever does that and wherever. So:
//!
//! - *The bound is exact.* Places are taken and given back under the room's lock, and nothing is written without one. At no
//!   moment are there more messages that were accepted and not begun than the bound says, on all ways together: logs, inboxes,
//!   queues, what is put aside for a muted or stuck stage, what waits for its guard, for a suspended handler, a restart, a
//!   thaw. A message whose guard says that it has to wait has kept its place while the guard looked. (Its guard is asked once more when the
//!   place is free; one that answers otherwise then has its message wait without a place.)
//! - *No place is lost.* A record is consumed once, by its thunk. That of a message with a place takes the place out, and then does with
//!   the message's own record, which lies behind it ([`permitted`](crate::message::permit)), what is to be done: runs it, bounces it, sends it on. A
//!   guard that panics drops both. That records are moved (by thefts, adoptions, takeovers, holds) does not concern it: the place
//!   lies in the payload.
//! - *Who has no bound pays nothing.* That an actor has one is said by a bit beside the number of its system in its address. A
//!   sender compares that number with its own worker's anyway; with the bit it differs, so the message goes the way of messages
//!   to other systems, and is looked at there. Delivery does not know of bounds at all.
//!   The message's own record is run by its own thunk, as if it had come without a place; so nothing here depends on types of messages,
//!   and it is compiled once (for each of them, it was a fifth of a small program).
//!
//! Rooms are found in a table by address, under a lock that many actors share. A room is there before anybody knows the
//! address, and goes when the actor ends. Who sends to an actor that has ended finds none, and its message is written, and
//! bounced, as one to any other actor that has ended; places that are still taken keep their room alive until they are given
//! back. A restart keeps the cell, and with it the room. An actor that moves to another theater leaves its room behind: what
//! is sent over its former cell goes through that, and the bound is not known elsewhere.
//!
//! *Which message goes* where the oldest is to go: each message lies on a [`Shelf`], and the room knows the shelves of the
//! normal lane in the order of their coming. Who finds the room full takes the content of the first shelf, with its place, and
//! tries again. The record stays where it is, now empty, until its worker passes it; such records are what overload
//! ([`crate::backpressure::overload`]) sees, and so there are not many. The shelf's content is taken once, under its lock: by who drops it, or
//! by who handles it. While a guard looks at a message, its shelf is empty, and it is not the one that is dropped.
//!
//! No lock is held while user code runs: not while a guard looks, and not while a message is dropped. The room's lock is taken
//! within a shelf's, and never the other way round.
//!
//! Exempt are requests to the cell, death notices, answers, timers: all that is not [`MailKind::Message`] or
//! [`MailKind::Request`].

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::memory::record::{self, CONTINUE, Described, Kept, Outcome, Record};
use crate::message::address::{Lane, RawAddress, Spread};
use crate::message::envelope::{MailKind, Undelivered};
use crate::sync::locks::lock;
use crate::worker::user_code::contained;

/// What happens to a message that finds its receiver's mailbox full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFull {
    /// It is not taken: a dead letter, an ask that fails at once, or given back to who only tried. The default.
    #[default]
    Reject,
    /// As `Reject`, but nothing is wrong about it: it is counted as dropped, and not as rejected.
    DropNewest,
    /// The oldest message of the normal lane that waits is dropped instead, until there is room. Where none is left to drop,
    /// the new one is.
    DropOldest,
}

/// How much may wait for an actor: the bound of its mailbox.
///
/// What is handled now does not count, and neither do requests such as stop, death notices, answers to the actor's own asks
/// and its timers: these are always taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Mailbox {
    messages: usize,
    bytes: usize,
    on_full: OnFull,
}

impl Mailbox {
    /// At most so many messages wait.
    ///
    /// # Panics
    /// If that is none.
    pub const fn bounded(messages: usize) -> Mailbox {
        assert!(messages > 0, "a mailbox that is bounded to no message at all would never take one");
        Mailbox { messages, bytes: usize::MAX, on_full: OnFull::Reject }
    }

    /// Their sizes come to at most so many bytes. A message that is larger than that by itself is never taken.
    ///
    /// # Panics
    /// If that is none.
    pub const fn bytes(mut self, bytes: usize) -> Mailbox {
        assert!(bytes > 0, "a mailbox that is bounded to no byte at all would never take a message");
        self.bytes = bytes;
        self
    }

    /// What happens where there is no room. Default: [`OnFull::Reject`].
    pub const fn on_full(mut self, on_full: OnFull) -> Mailbox {
        self.on_full = on_full;
        self
    }
}

/// What waits for one actor.
pub(crate) struct MailboxState {
    bound: Mailbox,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    messages: usize,
    bytes: usize,
    next: u64,
    /// The messages that may be dropped for others, the oldest first. Empty unless [`OnFull::DropOldest`].
    oldest: BTreeMap<u64, Arc<Droppable>>,
}

impl MailboxState {
    fn new(bound: Mailbox) -> MailboxState {
        MailboxState { bound, taken: Mutex::default() }
    }

    /// Takes a place for a message of so many bytes. False: there is none.
    fn enter(&self, bytes: usize) -> bool {
        self.enter_and(bytes, |_| ())
    }

    fn enter_and(&self, bytes: usize, note: impl FnOnce(&mut Taken)) -> bool {
        let mut taken = lock(&self.taken);
        let fits = taken.messages < self.bound.messages && bytes <= self.bound.bytes - taken.bytes;
        if fits {
            taken.messages += 1;
            taken.bytes += bytes;
            note(&mut taken);
        }
        fits
    }

    fn leave(&self, bytes: usize) {
        let mut taken = lock(&self.taken);
        taken.messages -= 1;
        taken.bytes -= bytes;
    }

    /// The oldest message that may be dropped, which is not known here any more.
    fn oldest(&self) -> Option<Arc<Droppable>> {
        lock(&self.taken).oldest.pop_first().map(|(_, droppable)| droppable)
    }

    pub(crate) fn on_full(&self) -> OnFull {
        self.bound.on_full
    }
}

/// A place in a room.
pub(crate) struct Permit {
    room: Arc<MailboxState>,
    bytes: usize,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.room.leave(self.bytes);
    }
}

/// The place of a message that waits for an actor whose mailbox is bounded: the payload of a [placed](crate::message::permit) record.
pub(crate) enum WithPermit {
    /// The message lies behind this.
    Here(Permit),
    /// It may be dropped for another.
    Shelved(Arc<Droppable>),
}

/// A message that may be dropped for another.
pub(crate) struct Droppable {
    content: Mutex<Option<Kept>>,
    room: Arc<MailboxState>,
    /// Its number in the room. Relaxed: written by the sender before it gives the message away, through the log or the lock.
    number: AtomicU64,
    about: Described,
}

impl Droppable {
    /// The message, if nobody was faster; its place is free.
    pub(crate) fn take(&self) -> Option<Kept> {
        let content = lock(&self.content).take()?;
        self.leave();
        Some(content)
    }

    /// What was on it is not any more: the room forgets it, and its place is free.
    fn leave(&self) {
        let mut taken = lock(&self.room.taken);
        taken.messages -= 1;
        taken.bytes -= self.about.bytes;
        let known = taken.oldest.remove(&self.number.load(Ordering::Relaxed));
        drop(taken);
        // Behind the lock: it may be the last to know the shelf.
        drop(known);
    }

    /// Bounces the message, if it still waits. True: it did.
    fn discard(&self) -> bool {
        let Some(mut content) = self.take() else { return false };
        // A panic in here is reported by the panic hook: it is none of the sender's, whose message is let in.
        // SAFETY: a whole record, consumed once.
        contained(|| unsafe { record::bounce(content.record(), Undelivered::Full) });
        true
    }
}

/// A message off its shelf while its guard looks at it. Its place is kept.
struct GuardCheck<'a> {
    droppable: &'a Arc<Droppable>,
    /// None: its guard has panicked, and it is lost by that.
    content: Option<Kept>,
}

impl Drop for GuardCheck<'_> {
    /// Puts it back, where it may be dropped for others again; who found its shelf empty meanwhile has forgotten it.
    fn drop(&mut self) {
        let Some(kept) = self.content.take() else { return self.droppable.leave() };
        // Both under the lock: who finds the shelf in the room does not find it empty again.
        let mut content = lock(&self.droppable.content);
        let number = self.droppable.number.load(Ordering::Relaxed);
        if number != NOT_TO_BE_DROPPED {
            lock(&self.droppable.room.taken).oldest.insert(number, Arc::clone(self.droppable));
        }
        *content = Some(kept);
    }
}

/// The number of what is not of the normal lane.
const NOT_TO_BE_DROPPED: u64 = u64::MAX;

/// Whether mail of this kind needs a place.
pub(crate) fn counts(kind: MailKind) -> bool {
    matches!(kind, MailKind::Message | MailKind::Request)
}

impl WithPermit {
    /// Finds a place for the message in `record`, after others have left theirs where the room is one of those. None: there is none,
    /// and the record was not consumed.
    ///
    /// # Safety
    /// A whole record without a cause that `about` was said of, and that the caller owns; it is moved where it is shelved.
    pub(crate) unsafe fn find(
        record: NonNull<Record>,
        about: Described,
        room: &Arc<MailboxState>,
        lane: Lane,
        rooms: &BoundedMailboxes,
    ) -> Option<WithPermit> {
        let bytes = about.bytes;
        if room.bound.on_full != OnFull::DropOldest {
            return room.enter(bytes).then(|| WithPermit::Here(Permit { room: Arc::clone(room), bytes }));
        }
        if bytes > room.bound.bytes {
            return None;
        }
        let droppable = Arc::new(Droppable {
            content: Mutex::new(None),
            room: Arc::clone(room),
            number: AtomicU64::new(NOT_TO_BE_DROPPED),
            about,
        });
        loop {
            let entered = room.enter_and(bytes, |taken| {
                // Before anybody else can know the shelf.
                // SAFETY: by the contract; this is done once.
                *lock(&droppable.content) = Some(unsafe { Kept::of(record) });
                if lane == Lane::Normal {
                    taken.next += 1;
                    droppable.number.store(taken.next, Ordering::Relaxed);
                    taken.oldest.insert(taken.next, Arc::clone(&droppable));
                }
            });
            if entered {
                return Some(WithPermit::Shelved(droppable));
            }
            if room.oldest()?.discard() {
                rooms.count(OnFull::DropOldest);
            }
        }
    }

    /// What its guard says, or `CONTINUE` where it was dropped for another; its place is kept meanwhile. If the guard panics, the message
    /// is lost, and this is to be dropped.
    ///
    /// # Safety
    /// It came in `record`, whose cell is resident and run by this thread.
    pub(crate) unsafe fn ask(&mut self, record: NonNull<Record>) -> Outcome {
        match self {
            // SAFETY: by the contract.
            WithPermit::Here(_) => unsafe { record::ask_own(record::carried(record), record) },
            WithPermit::Shelved(droppable) => {
                let Some(mut kept) = lock(&droppable.content).take() else { return CONTINUE };
                let mut lifted = GuardCheck { droppable, content: None };
                // SAFETY: by the contract.
                let outcome = unsafe { record::ask_own(kept.record(), record) };
                lifted.content = Some(kept);
                outcome
            }
        }
    }

    /// What the message is.
    ///
    /// # Safety
    /// It came in `record`.
    pub(crate) unsafe fn describe(&self, record: NonNull<Record>) -> Described {
        match self {
            // SAFETY: a whole record whose payload was not consumed.
            WithPermit::Here(_) => unsafe { record::described(record::carried(record)) },
            WithPermit::Shelved(droppable) => {
                Described { is_gone: lock(&droppable.content).is_none(), ..droppable.about }
            }
        }
    }
}

const PARTS: usize = 16;

type ByAddress = HashMap<RawAddress, Arc<MailboxState>, BuildHasherDefault<Spread>>;

/// The rooms of a system, and what was not let in or had to go.
#[derive(Default)]
pub(crate) struct BoundedMailboxes {
    by_address: [Mutex<ByAddress>; PARTS],
    /// Relaxed, both: counters, read at any time.
    pub(crate) rejected: AtomicU64,
    pub(crate) dropped: AtomicU64,
}

impl BoundedMailboxes {
    fn part(&self, who: RawAddress) -> &Mutex<ByAddress> {
        // Behind the bits that many cells have in common.
        &self.by_address[(who.cell.as_ptr() as usize >> 6) % PARTS]
    }

    /// Before anybody knows the address.
    pub(crate) fn build(&self, who: RawAddress, bound: Mailbox) {
        lock(self.part(who)).insert(who, Arc::new(MailboxState::new(bound)));
    }

    /// None: the actor has ended.
    pub(crate) fn of(&self, who: RawAddress) -> Option<Arc<MailboxState>> {
        lock(self.part(who)).get(&who).cloned()
    }

    pub(crate) fn give_up(&self, who: RawAddress) {
        // Dropped behind the lock.
        let _room = lock(self.part(who)).remove(&who);
    }

    /// Counts a message that a full room has cost.
    pub(crate) fn count(&self, on_full: OnFull) {
        let counter = if on_full == OnFull::Reject { &self.rejected } else { &self.dropped };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::{Mailbox, OnFull};
    use crate::sync::locks::lock;
    use crate::*;

    /// Its guard panics once.
    struct Reader {
        trap: bool,
        asked: Arc<()>,
    }

    impl Resident for Reader {
        type Extra = ();
        fn name() -> &'static str {
            "Reader"
        }
        fn ended(&mut self, _: Option<Box<()>>, _: Ending, _: &mut Cx<Self>) {}
        fn crashed(crash: Crash, cx: &mut ControlCx<Self>) {
            cx.give_up(crash);
        }
    }

    struct Letter;

    impl Envelope<Reader> for Letter {
        fn run(self, _: &mut Reader, _: &mut Cx<Reader>) {}
        fn bounce(self, why: Undelivered) {
            panic!("{why:?}");
        }
        fn admission(&self, reader: &Reader, _: &mut Cx<Reader>) -> Admission {
            assert!(!reader.trap, "meant: a guard that cannot look");
            Admission::Run
        }
    }

    /// A request that takes itself for a message.
    struct Odd(Arc<()>);

    impl Control<Reader> for Odd {
        fn run(self, cx: &mut ControlCx<Reader>) {
            cx.state().unwrap().asked = self.0;
        }
        fn describe(&self) -> (MailKind, &'static str) {
            (MailKind::Message, "odd")
        }
    }

    fn system_and_bound() -> (Arc<SystemCore>, Mailbox) {
        let config = Config { workers: 1, stages: 1, simulated: Some(0), ..Config::new() };
        (SystemCore::start(config).unwrap(), Mailbox::bounded(2).on_full(OnFull::DropOldest))
    }

    #[test]
    fn a_room_remembers_nothing_of_a_message_whose_guard_has_panicked() {
        let (system, bound) = system_and_bound();
        let reader = Reader { trap: false, asked: Arc::default() };
        let reader = system.spawn_bounded(reader, StageChoice::At(0), Letter, bound).ok().unwrap();
        system.run_until_idle();
        let room = system.rooms.of(reader.raw()).unwrap();
        reader.send_control(Trap);
        reader.send(Letter);
        std::panic::set_hook(Box::new(|_| ()));
        system.run_until_idle();
        drop(std::panic::take_hook());
        assert!(system.rooms.of(reader.raw()).is_none());
        let taken = lock(&room.taken);
        assert_eq!((taken.messages, taken.oldest.len(), Arc::strong_count(&room)), (0, 0, 1));
        drop(taken);
        system.end(Duration::ZERO, &mut |_, _, _| {});
    }

    struct Trap;

    impl Control<Reader> for Trap {
        fn run(self, cx: &mut ControlCx<Reader>) {
            cx.state().unwrap().trap = true;
        }
    }

    #[test]
    fn a_request_needs_no_place_whatever_it_says_that_it_is() {
        let (system, bound) = system_and_bound();
        let reader = Reader { trap: false, asked: Arc::default() };
        let reader = system.spawn_bounded(reader, StageChoice::At(0), Letter, bound).ok().unwrap();
        let token = Arc::new(());
        for _ in 0..5 {
            reader.send_control(Odd(Arc::clone(&token)));
        }
        system.run_until_idle();
        // Each was consumed once.
        assert_eq!((Arc::strong_count(&token), system.counters()[0].dropped), (2, 0));
        system.end(Duration::ZERO, &mut |_, _, _| {});
        drop(system);
    }
}
