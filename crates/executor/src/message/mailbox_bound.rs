//! Bounded mailboxes: a limit on the messages that wait for one actor.
//!
//! Actors have no queue, and none could therefore be full. The messages for an actor lie in logs, inboxes and queues of
//! workers among other mail, and on the actor's deferred list. The bound therefore counts the messages themselves. A
//! message to an actor with a bound takes a *permit* of the actor's [`MailboxState`] before it is written anywhere. It
//! carries the permit before its own record ([`WithPermit`]). The permit is given back when the message is taken out to
//! be handled, or is dropped, on any thread and at any time. This has 3 consequences:
//!
//! - *The bound is exact.* Permits are taken and given back under the mailbox's lock, and no message is written without
//!   one. At no moment are more messages accepted and not begun than the bound says, on all routes together: logs,
//!   inboxes, queues, parked records of a muted or stuck stage, and messages that wait for a guard, a suspended
//!   handler, a restart or a thaw. A message whose guard says that it has to wait has kept its permit during the
//!   guard's call. (Its guard is asked once more when the permit is free; if the guard then answers otherwise, the
//!   message waits without a permit.)
//! - *No permit is lost.* A record is consumed once, by its thunk. The thunk of a message with a permit takes the
//!   permit out. It then applies the operation to the message's own record, which lies behind the permit
//!   ([`permit`](crate::dispatch::permit)): runs it, bounces it, or forwards it. A guard that panics drops both. Moves
//!   of records (by steals, adoptions, takeovers, parking) do not matter, because the permit lies in the payload.
//! - *An actor without a bound pays nothing.* A bit beside the number of the system in an address says that the actor
//!   has a bound. A sender compares that number with its own worker's anyway. With the bit the numbers differ. The
//!   message then takes the route of messages to other systems, which checks the bound. Delivery does not know of
//!   bounds at all. The message's own record is run by its own thunk, as if it had come without a permit. No code of
//!   this module therefore depends on types of messages, and it is compiled once (for each of them, it was a fifth of a
//!   small program).
//!
//! Mailbox states are found in a table by address, under a lock that many actors share. The state exists before any
//! sender knows the address, and is removed when the actor ends. A sender to an actor that has ended finds none, and
//! its message is written, and bounced, like one to any other actor that has ended. Permits that are still taken keep
//! their mailbox state alive until they are given back. A restart keeps the cell, and with it the mailbox. An actor
//! that migrates to another theater leaves its mailbox behind: messages that are sent over its former cell go through
//! that mailbox, and other theaters do not know the bound.
//!
//! *The message that is dropped* if the oldest is to go: each message is kept in a [`Droppable`], and the mailbox knows
//! those of the normal lane in the order of their coming. A sender that finds the mailbox full takes the content of the
//! first one, with its permit, and tries again. The record stays in its queue, now empty, until its worker passes it.
//! Overload ([`crate::backpressure::overload`]) counts such records, which bounds their number. The content is taken
//! once, under its lock: by the sender that drops it, or by the worker that handles it. While a guard checks a message,
//! its `Droppable` is empty, and no sender can drop that message.
//!
//! No lock is held while user code runs: not while a guard is asked, and not while a message is dropped. The mailbox's
//! lock is taken within that of a `Droppable`, and never the other way round.
//!
//! Exempt are requests to the cell, death notices, answers, timers: all kinds except [`MailKind::Message`] and
//! [`MailKind::Request`].

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::memory::raw_address::{Lane, RawAddress, Spread};
use crate::memory::record::{Described, Kept, Outcome, Record, Undelivered, ask_own, described, record_bytes};
use crate::message::dead_letters::bounce;
use crate::sync::locks::lock;
use crate::user_code::contained;
use crate::user_code::mail_kind::MailKind;

/// The treatment of a message that finds its receiver's mailbox full.
///
/// # Examples
///
/// ```
/// use playhouse_executor::{Mailbox, OnFull};
///
/// // A receiver of positions needs only the latest.
/// let latest = Mailbox::bounded(1).on_full(OnFull::DropOldest);
/// # let _ = latest;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFull {
    /// The message is rejected: it becomes a dead letter, fails its ask at once, or is given back by a try. The
    /// default.
    #[default]
    Reject,
    /// The message is dropped without an error: it is counted as dropped, and not as rejected.
    DropNewest,
    /// The oldest message of the normal lane that waits is dropped instead, until there is room. If none is left to
    /// drop, the new one is dropped.
    DropOldest,
}

/// A limit on the messages that wait for an actor: the bound of its mailbox.
///
/// The message that is handled now does not count. Requests such as stop, death notices, answers to the actor's own
/// asks and its timers do not count either, and are always taken.
///
/// # Examples
///
/// ```
/// use playhouse_executor::Mailbox;
///
/// // At most 1,000 messages and 1 MiB wait. Further ones are rejected.
/// let mailbox = Mailbox::bounded(1_000).bytes(1 << 20);
/// # let _ = mailbox;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Mailbox {
    messages: usize,
    bytes: usize,
    on_full: OnFull,
}

impl Mailbox {
    /// Creates a bound of at most `messages` waiting messages.
    ///
    /// # Panics
    /// If `messages` is 0.
    pub const fn bounded(messages: usize) -> Mailbox {
        assert!(messages > 0, "a mailbox is bounded to 0 messages: the bound must be at least 1");
        Mailbox { messages, bytes: usize::MAX, on_full: OnFull::Reject }
    }

    /// Bounds the sizes of the waiting messages to `bytes` in all. A message that is larger than that by itself is
    /// never taken.
    ///
    /// # Panics
    /// If `bytes` is 0.
    pub const fn bytes(mut self, bytes: usize) -> Mailbox {
        assert!(bytes > 0, "a mailbox is bounded to 0 bytes: the bound must be at least 1");
        self.bytes = bytes;
        self
    }

    /// Sets the treatment of a message without room. Default: [`OnFull::Reject`].
    pub const fn on_full(mut self, on_full: OnFull) -> Mailbox {
        self.on_full = on_full;
        self
    }
}

/// The bounded mailbox of one actor.
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

    /// Takes a permit for a message of `bytes` bytes. Returns false if there is none.
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

    /// Removes the oldest message that may be dropped from the mailbox, and returns it.
    fn oldest(&self) -> Option<Arc<Droppable>> {
        lock(&self.taken).oldest.pop_first().map(|(_, droppable)| droppable)
    }

    pub(crate) fn on_full(&self) -> OnFull {
        self.bound.on_full
    }
}

/// A permit of a mailbox for one message.
pub(crate) struct Permit {
    mailbox: Arc<MailboxState>,
    bytes: usize,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.mailbox.leave(self.bytes);
    }
}

/// The permit of a message for an actor whose mailbox is bounded: the payload of a record of
/// [`permit`](crate::dispatch::permit).
pub(crate) enum WithPermit {
    /// The message lies behind the permit in the record.
    Inline(Permit),
    /// The message may be dropped for another.
    Droppable(Arc<Droppable>),
}

/// Returns the record of a message that lies behind its permit in `record`.
///
/// # Safety
/// A whole record with a [`WithPermit`].
pub(crate) unsafe fn behind_permit(record: NonNull<Record>) -> NonNull<Record> {
    // SAFETY: the record is whole, and the address is within it, or just behind it.
    unsafe { record.byte_add(record_bytes::<WithPermit>()) }
}

/// A message that may be dropped for another.
pub(crate) struct Droppable {
    content: Mutex<Option<Kept>>,
    mailbox: Arc<MailboxState>,
    /// Its number in the mailbox. Relaxed: written by the sender before it gives the message away, through the log or
    /// the lock.
    number: AtomicU64,
    about: Described,
}

impl Droppable {
    /// Takes the message, if no other thread was faster, and gives its permit back.
    pub(crate) fn take(&self) -> Option<Kept> {
        let content = lock(&self.content).take()?;
        self.leave();
        Some(content)
    }

    /// Removes an entry without content from the mailbox, and gives its permit back.
    fn leave(&self) {
        let mut taken = lock(&self.mailbox.taken);
        taken.messages -= 1;
        taken.bytes -= self.about.bytes;
        let known = taken.oldest.remove(&self.number.load(Ordering::Relaxed));
        drop(taken);
        // Behind the lock, because it may be the last reference to the entry.
        drop(known);
    }

    /// Bounces the message, if it still waits. Returns whether it did.
    fn discard(&self) -> bool {
        let Some(mut content) = self.take() else { return false };
        // The panic hook reports a panic in the bounce. It does not concern the sender, whose message is accepted.
        // SAFETY: a whole record, consumed once.
        contained(|| unsafe { bounce(content.record(), Undelivered::Full) });
        true
    }
}

/// A message taken out of its [`Droppable`] while its guard is asked. Its permit is kept.
struct GuardCheck<'a> {
    droppable: &'a Arc<Droppable>,
    /// `None` if its guard has panicked, which loses the message.
    content: Option<Kept>,
}

impl Drop for GuardCheck<'_> {
    /// Puts the message back, and it may be dropped for others again. A sender that found the entry empty has removed
    /// it from the mailbox.
    fn drop(&mut self) {
        let Some(kept) = self.content.take() else { return self.droppable.leave() };
        // Both under the lock: a sender that finds the entry in the mailbox does not find it empty again.
        let mut content = lock(&self.droppable.content);
        let number = self.droppable.number.load(Ordering::Relaxed);
        if number != NOT_TO_BE_DROPPED {
            lock(&self.droppable.mailbox.taken).oldest.insert(number, Arc::clone(self.droppable));
        }
        *content = Some(kept);
    }
}

/// The number of messages outside the normal lane.
const NOT_TO_BE_DROPPED: u64 = u64::MAX;

/// Returns whether mail of this kind needs a permit.
pub(crate) fn counts(kind: MailKind) -> bool {
    matches!(kind, MailKind::Message | MailKind::Request)
}

impl WithPermit {
    /// Finds a permit for the message in `record`. In a mailbox that drops the oldest, other messages are dropped
    /// first. Returns `None` if there is no permit; the record was then not consumed.
    ///
    /// # Safety
    /// The record is whole, without a cause, described by `about`, and owned by the caller; it is moved if it becomes
    /// droppable.
    pub(crate) unsafe fn find(
        record: NonNull<Record>,
        about: Described,
        mailbox: &Arc<MailboxState>,
        lane: Lane,
        mailboxes: &BoundedMailboxes,
    ) -> Option<WithPermit> {
        let bytes = about.bytes;
        if mailbox.bound.on_full != OnFull::DropOldest {
            return mailbox.enter(bytes).then(|| WithPermit::Inline(Permit { mailbox: Arc::clone(mailbox), bytes }));
        }
        if bytes > mailbox.bound.bytes {
            return None;
        }
        let droppable = Arc::new(Droppable {
            content: Mutex::new(None),
            mailbox: Arc::clone(mailbox),
            number: AtomicU64::new(NOT_TO_BE_DROPPED),
            about,
        });
        loop {
            let entered = mailbox.enter_and(bytes, |taken| {
                // Before any other thread can know the entry.
                // SAFETY: the caller owns the whole record; this is done once.
                *lock(&droppable.content) = Some(unsafe { Kept::of(record) });
                if lane == Lane::Normal {
                    taken.next += 1;
                    droppable.number.store(taken.next, Ordering::Relaxed);
                    taken.oldest.insert(taken.next, Arc::clone(&droppable));
                }
            });
            if entered {
                return Some(WithPermit::Droppable(droppable));
            }
            if mailbox.oldest()?.discard() {
                mailboxes.count(OnFull::DropOldest);
            }
        }
    }

    /// Returns the answer of the message's guard, or `Continue` if the message was dropped for another. The permit is
    /// kept during the call. If the guard panics, the message is lost, and this value is to be dropped.
    ///
    /// # Safety
    /// The message came in `record`, whose cell is resident and run by this thread.
    pub(crate) unsafe fn ask(&mut self, record: NonNull<Record>) -> Outcome {
        match self {
            // SAFETY: the message came in `record`, whose cell this thread runs.
            WithPermit::Inline(_) => unsafe { ask_own(behind_permit(record), record) },
            WithPermit::Droppable(droppable) => {
                let Some(mut kept) = lock(&droppable.content).take() else { return Outcome::Continue };
                let mut lifted = GuardCheck { droppable, content: None };
                // SAFETY: the message came in `record`, whose cell this thread runs.
                let outcome = unsafe { ask_own(kept.record(), record) };
                lifted.content = Some(kept);
                outcome
            }
        }
    }

    /// Returns the description of the message.
    ///
    /// # Safety
    /// The message came in `record`.
    pub(crate) unsafe fn describe(&self, record: NonNull<Record>) -> Described {
        match self {
            // SAFETY: a whole record whose payload was not consumed.
            WithPermit::Inline(_) => unsafe { described(behind_permit(record)) },
            WithPermit::Droppable(droppable) => {
                Described { is_gone: lock(&droppable.content).is_none(), ..droppable.about }
            }
        }
    }
}

const PARTS: usize = 16;

type ByAddress = HashMap<RawAddress, Arc<MailboxState>, BuildHasherDefault<Spread>>;

/// The bounded mailboxes of a system, and the counters of rejected and dropped messages.
#[derive(Default)]
pub(crate) struct BoundedMailboxes {
    by_address: [Mutex<ByAddress>; PARTS],
    /// Relaxed, both: counters that may be read at any time.
    pub(crate) rejected: AtomicU64,
    pub(crate) dropped: AtomicU64,
}

impl BoundedMailboxes {
    fn part(&self, actor: RawAddress) -> &Mutex<ByAddress> {
        // Above the bits that many cells have in common.
        &self.by_address[(actor.cell.as_ptr() as usize >> 6) % PARTS]
    }

    /// Makes the mailbox of an actor before any sender knows the address.
    pub(crate) fn build(&self, actor: RawAddress, bound: Mailbox) {
        lock(self.part(actor)).insert(actor, Arc::new(MailboxState::new(bound)));
    }

    /// Returns the mailbox of an actor, or `None` if the actor has ended.
    pub(crate) fn of(&self, actor: RawAddress) -> Option<Arc<MailboxState>> {
        lock(self.part(actor)).get(&actor).cloned()
    }

    pub(crate) fn give_up(&self, actor: RawAddress) {
        // Dropped behind the lock.
        let _room = lock(self.part(actor)).remove(&actor);
    }

    /// Counts a message that a full mailbox has refused or dropped.
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

    /// A request whose kind says that it is a message.
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
        let mailbox = system.mailboxes.of(reader.raw()).unwrap();
        reader.send_control(Trap);
        reader.send(Letter);
        std::panic::set_hook(Box::new(|_| ()));
        system.run_until_idle();
        drop(std::panic::take_hook());
        assert!(system.mailboxes.of(reader.raw()).is_none());
        let taken = lock(&mailbox.taken);
        assert_eq!((taken.messages, taken.oldest.len(), Arc::strong_count(&mailbox)), (0, 0, 1));
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
    fn a_request_needs_no_permit_for_any_claimed_kind() {
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
