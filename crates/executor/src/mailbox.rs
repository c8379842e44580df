//! Bounded mailboxes: how much may wait for one actor.
//!
//! Actors have no queue, so there is none that could be full: what waits for an actor lies in logs, inboxes and queues of
//! workers among other mail, and on the actor's deferred list. What is counted, therefore, is the messages themselves. A
//! message to an actor with a bound takes a *place* in the actor's [`Room`] before it is written anywhere, and carries it along
//! in its envelope ([`Placed`]), which gives the place back when the message is taken out to be handled, or is dropped,
//! whoever does that and wherever. So:
//!
//! - *The bound is exact.* Places are taken and given back under the room's lock, and nothing is written without one. At no
//!   moment are there more messages that were accepted and not begun than the bound says, on all ways together: logs, inboxes,
//!   queues, what is put aside for a muted or stuck stage, what waits for its guard, for a suspended handler, a restart, a
//!   thaw. A message whose guard says that it has to wait has kept its place while the guard looked. (Its guard is asked once more when the
//!   place is free; one that answers otherwise then has its message wait without a place.)
//! - *No place is lost.* A record is consumed once, by its thunk, which takes the envelope out of it; then the envelope is run,
//!   bounced, sent on, or dropped by a panic that unwinds. Each of these drops the place. That records are moved (by thefts,
//!   adoptions, takeovers, holds) does not concern it: the place lies in the payload.
//! - *Who has no bound pays nothing.* That an actor has one is said by a bit beside the number of its system in its address. A
//!   sender compares that number with its own worker's anyway; with the bit it differs, so the message goes the way of messages
//!   to other systems, and is looked at there. Delivery does not know of bounds at all: a `Placed` lies in a record like others.
//!   When it is run, what it holds is run as if it had come without it ([`placed`](crate::placed)): handlers are called from one
//!   place only, so that they are compiled into it as before (a second caller cost each message of others an instruction).
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
//! ([`crate::muting`]) sees, and so there are not many. The shelf's content is taken once, under its lock: by who drops it, or
//! by who handles it. While a guard looks at a message, its shelf is empty, and it is not the one that is dropped.
//!
//! No lock is held while user code runs: not while a guard looks, and not while a message is dropped. The room's lock is taken
//! within a shelf's, and never the other way round.
//!
//! Exempt are requests to the cell, death notices, answers, timers: all that is not [`MailKind::Message`] or
//! [`MailKind::Request`].

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::address::{Lane, RawAddress};
use crate::locks::lock;
use crate::resident::{Admission, MailKind};

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
pub(crate) struct Room {
    bound: Mailbox,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    messages: usize,
    bytes: usize,
    next: u64,
    /// The messages that may be dropped for others, the oldest first. Empty unless [`OnFull::DropOldest`].
    oldest: BTreeMap<u64, Arc<dyn Discard>>,
}

impl Room {
    fn new(bound: Mailbox) -> Room {
        Room { bound, taken: Mutex::default() }
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
    fn oldest(&self) -> Option<Arc<dyn Discard>> {
        lock(&self.taken).oldest.pop_first().map(|(_, shelf)| shelf)
    }

    pub(crate) fn on_full(&self) -> OnFull {
        self.bound.on_full
    }
}

/// A place in a room.
struct Place {
    room: Arc<Room>,
    bytes: usize,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.leave(self.bytes);
    }
}

/// A message that waits for an actor whose mailbox is bounded.
pub(crate) struct Placed<E>(Waiting<E>);

enum Waiting<E> {
    Here(E, Place),
    /// It may be dropped for another.
    Shelved(Ticket<E>),
}

/// A message that may be dropped for another, and how it is bounced then.
struct Shelf<E> {
    content: Mutex<Option<E>>,
    room: Arc<Room>,
    bytes: usize,
    /// Its number in the room. Relaxed: written by the sender before it gives the message away, through the log or the lock.
    number: AtomicU64,
    about: (MailKind, &'static str),
    bounce: fn(E),
}

impl<E> Shelf<E> {
    /// The message, with its place, if nobody was faster.
    fn take(&self) -> Option<E> {
        let content = lock(&self.content).take()?;
        let mut taken = lock(&self.room.taken);
        taken.messages -= 1;
        taken.bytes -= self.bytes;
        let known = taken.oldest.remove(&self.number.load(Ordering::Relaxed));
        drop(taken);
        // Behind the lock: it may be the last to know the shelf.
        drop(known);
        Some(content)
    }
}

trait Discard: Send + Sync {
    /// Bounces the message, if it still waits. True: it did.
    fn discard(&self) -> bool;
}

impl<E: Send> Discard for Shelf<E> {
    fn discard(&self) -> bool {
        let content = self.take();
        let found = content.is_some();
        // A panic in here is reported by the panic hook: it is none of the sender's, whose message is let in.
        let _ = catch_unwind(AssertUnwindSafe(|| content.map(self.bounce)));
        found
    }
}

/// The record's end of a shelf: who has it handles the message.
struct Ticket<E>(Arc<Shelf<E>>);

impl<E> Drop for Ticket<E> {
    fn drop(&mut self) {
        drop(self.0.take());
    }
}

/// A message off its shelf while its guard looks at it. Its place is kept.
struct Lifted<'a, E: Send + 'static> {
    shelf: &'a Arc<Shelf<E>>,
    content: Option<E>,
}

impl<E: Send + 'static> Lifted<'_, E> {
    fn from(shelf: &Arc<Shelf<E>>) -> Option<Lifted<'_, E>> {
        let content = lock(&shelf.content).take()?;
        Some(Lifted { shelf, content: Some(content) })
    }
}

impl<E: Send + 'static> Drop for Lifted<'_, E> {
    /// Puts it back, where it may be dropped for others again; who found its shelf empty meanwhile has forgotten it. After a
    /// panic of the guard too: its record is dropped then.
    fn drop(&mut self) {
        // Both under the lock: who finds the shelf in the room does not find it empty again.
        let mut content = lock(&self.shelf.content);
        let number = self.shelf.number.load(Ordering::Relaxed);
        if number != NOT_TO_BE_DROPPED {
            lock(&self.shelf.room.taken).oldest.insert(number, Arc::clone(self.shelf) as Arc<dyn Discard>);
        }
        *content = self.content.take();
    }
}

/// The number of what is not of the normal lane.
const NOT_TO_BE_DROPPED: u64 = u64::MAX;

/// Whether mail of this kind needs a place.
pub(crate) fn counts(kind: MailKind) -> bool {
    matches!(kind, MailKind::Message | MailKind::Request)
}

/// A message, and what the two kinds of envelopes say of it.
pub(crate) struct About<E> {
    pub(crate) envelope: E,
    pub(crate) about: (MailKind, &'static str),
    pub(crate) bytes: usize,
    pub(crate) bounce: fn(E),
}

impl<E: Send + 'static> Placed<E> {
    /// Finds a place, after others have left theirs where the room is one of those. Gives the message back if there is none.
    pub(crate) fn find(message: About<E>, room: &Arc<Room>, lane: Lane, rooms: &Rooms) -> Result<Placed<E>, E> {
        let About { envelope, about, bytes, bounce } = message;
        if room.bound.on_full != OnFull::DropOldest {
            if !room.enter(bytes) {
                return Err(envelope);
            }
            return Ok(Placed(Waiting::Here(envelope, Place { room: Arc::clone(room), bytes })));
        }
        if bytes > room.bound.bytes {
            return Err(envelope);
        }
        let shelf = Arc::new(Shelf {
            content: Mutex::new(Some(envelope)),
            room: Arc::clone(room),
            bytes,
            number: AtomicU64::new(NOT_TO_BE_DROPPED),
            about,
            bounce,
        });
        loop {
            let entered = room.enter_and(bytes, |taken| {
                if lane == Lane::Normal {
                    taken.next += 1;
                    shelf.number.store(taken.next, Ordering::Relaxed);
                    taken.oldest.insert(taken.next, Arc::clone(&shelf) as Arc<dyn Discard>);
                }
            });
            if entered {
                return Ok(Placed(Waiting::Shelved(Ticket(shelf))));
            }
            let Some(oldest) = room.oldest() else {
                let envelope = lock(&shelf.content).take();
                return Err(envelope.expect("nobody else knows the shelf"));
            };
            if oldest.discard() {
                rooms.count(OnFull::DropOldest);
            }
        }
    }

    /// The message, unless it was dropped for another; its place is free.
    pub(crate) fn take(self) -> Option<E> {
        match self.0 {
            Waiting::Here(envelope, place) => {
                drop(place);
                Some(envelope)
            }
            Waiting::Shelved(ticket) => ticket.0.take(),
        }
    }

    /// What becomes of it, by what `ask` says; its place is kept meanwhile.
    pub(crate) fn admission(&self, ask: impl FnOnce(&E) -> Admission) -> Admission {
        match &self.0 {
            Waiting::Here(envelope, _) => ask(envelope),
            Waiting::Shelved(Ticket(shelf)) => match Lifted::from(shelf) {
                Some(lifted) => ask(lifted.content.as_ref().expect("it was just lifted")),
                // Nothing is done for it.
                None => Admission::Run,
            },
        }
    }

    /// Whether it was dropped for another.
    pub(crate) fn is_gone(&self) -> bool {
        match &self.0 {
            Waiting::Here(..) => false,
            Waiting::Shelved(Ticket(shelf)) => lock(&shelf.content).is_none(),
        }
    }

    /// What it is, and what it is called in reports.
    pub(crate) fn about(&self, describe: impl FnOnce(&E) -> (MailKind, &'static str)) -> (MailKind, &'static str) {
        match &self.0 {
            Waiting::Here(envelope, _) => describe(envelope),
            Waiting::Shelved(Ticket(shelf)) => shelf.about,
        }
    }
}

const PARTS: usize = 16;

/// The rooms of a system, and what was not let in or had to go.
#[derive(Default)]
pub(crate) struct Rooms {
    by_address: [Mutex<HashMap<RawAddress, Arc<Room>>>; PARTS],
    /// Relaxed, both: counters, read at any time.
    pub(crate) rejected: AtomicU64,
    pub(crate) dropped: AtomicU64,
}

impl Rooms {
    fn part(&self, who: RawAddress) -> &Mutex<HashMap<RawAddress, Arc<Room>>> {
        // Behind the bits that many cells have in common.
        &self.by_address[(who.cell.as_ptr() as usize >> 6) % PARTS]
    }

    /// Before anybody knows the address.
    pub(crate) fn build(&self, who: RawAddress, bound: Mailbox) {
        lock(self.part(who)).insert(who, Arc::new(Room::new(bound)));
    }

    /// None: the actor has ended.
    pub(crate) fn of(&self, who: RawAddress) -> Option<Arc<Room>> {
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
