//! Deferred messages: the messages that wait at their actor's cell.
//!
//! A message is deferred while its actor is suspended, has crashed, has not started or is frozen, and while its guard
//! refuses it. All deferred messages of an actor come before the messages in queues. They are in two lists:
//!
//! 1. *refused*: messages whose guards have refused them. They are asked again after each message that the actor
//!    handles.
//! 2. *later*: messages that came while the actor took none. Their guards were not asked, or only while the actor was
//!    in another theater.
//!
//! All refused messages come before all later ones. An actor that takes messages from its queue has no later ones.
//!
//! # Costs
//!
//! A message of the second list is copied once when it comes and once more if its guard refuses it. It is taken from
//! the front of its list, and all other messages stay where they are. The cost of `n` messages whose handlers all wait
//! is therefore linear in `n`.
//!
//! A refused message is asked in its list. Each handled message asks all refused ones that come before the next one
//! that is handled. The cost of `n` messages is therefore `n` times the number of messages that stay refused. A message
//! that was handled leaves a buried record in its position. Buried records are removed when they take more room than
//! the others.

use std::ptr::NonNull;

use crate::memory::record::{Kept, Record};
use crate::memory::segment::{Chain, Pool, Segment};

/// Records in order, which are consumed one by one.
///
/// INVARIANT: the records in the first `passed` bytes of the chain's first segment were consumed, and so were all
/// buried ones. The other buried ones have `buried` bytes.
#[derive(Default)]
struct List {
    chain: Chain,
    passed: usize,
    buried: usize,
}

/// A position in a [`List`].
struct At {
    segment: *mut Segment,
    offset: usize,
}

impl List {
    /// Returns the bytes of records that were not consumed.
    fn bytes(&self) -> usize {
        self.chain.bytes - self.passed - self.buried
    }

    fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    /// Moves `record` to the end.
    ///
    /// # Safety
    /// The record is whole, and the caller gives its payload up.
    unsafe fn push(&mut self, record: NonNull<Record>, pool: &Pool) {
        // SAFETY: the record is whole, and the caller has given its payload up.
        unsafe { self.chain.push_bytes(record.as_ptr().cast(), record.as_ref().bytes(), Some(pool)) };
    }

    fn start(&self) -> At {
        At { segment: self.chain.first, offset: self.passed }
    }

    /// Returns the next record from `at` on that was not consumed, and moves `at` behind it.
    fn next(&self, at: &mut At) -> Option<NonNull<Record>> {
        while !at.segment.is_null() {
            // SAFETY: the list owns its segments, which hold whole records up to `used`. A position is at a whole
            // record or at the end.
            unsafe {
                if at.offset == (*at.segment).used {
                    *at = At { segment: (*at.segment).next, offset: 0 };
                    continue;
                }
                #[cfg(test)]
                crate::memory::segment::steps::count();
                let record = NonNull::new_unchecked(Segment::body(at.segment).add(at.offset).cast::<Record>());
                at.offset += record.as_ref().bytes();
                if !record.as_ref().is_buried() {
                    return Some(record);
                }
            }
        }
        None
    }

    /// Moves `passed` to the first record that was not consumed, which is returned. Gives back the segments before it.
    fn first(&mut self, pool: &Pool) -> Option<NonNull<Record>> {
        while !self.chain.first.is_null() {
            // SAFETY: the list owns its segments, which hold whole records; no record of a passed segment holds a
            // payload.
            unsafe {
                let first = self.chain.first;
                if self.passed == (*first).used {
                    let next = (*first).next;
                    if next.is_null() {
                        return None;
                    }
                    self.chain.first = next;
                    self.chain.bytes -= self.passed;
                    self.passed = 0;
                    pool.put(first);
                    continue;
                }
                #[cfg(test)]
                crate::memory::segment::steps::count();
                let record = NonNull::new_unchecked(Segment::body(first).add(self.passed).cast::<Record>());
                if !record.as_ref().is_buried() {
                    return Some(record);
                }
                self.passed += record.as_ref().bytes();
                self.buried -= record.as_ref().bytes();
            }
        }
        None
    }

    /// Takes the first record out. It stays readable until the next call of a method of this list.
    fn pop(&mut self, pool: &Pool) -> Option<NonNull<Record>> {
        let record = self.first(pool)?;
        // SAFETY: a whole record.
        self.passed += unsafe { record.as_ref() }.bytes();
        Some(record)
    }

    /// Buries `record`, whose payload was consumed.
    ///
    /// # Safety
    /// The record is in this list, and was neither passed nor buried.
    unsafe fn bury(&mut self, mut record: NonNull<Record>) {
        // SAFETY: the record is in this list, and its payload was consumed.
        unsafe {
            record.as_mut().bury();
            self.buried += record.as_ref().bytes();
        }
    }

    /// Gives back memory that no record needs.
    fn trim(&mut self, pool: &Pool) {
        if self.first(pool).is_none() {
            self.take_chain().recycle_spent(Some(pool));
        } else if self.buried > self.bytes() {
            let (mut kept, mut at) = (List::default(), self.start());
            while let Some(record) = self.next(&mut at) {
                // SAFETY: a whole record, which is moved once.
                unsafe { kept.push(record, pool) };
            }
            std::mem::replace(self, kept).take_chain().recycle_spent(Some(pool));
        }
    }

    /// Appends `other` without copying.
    fn append(&mut self, mut other: List) {
        if self.is_empty() {
            *self = other;
        } else if !other.is_empty() {
            self.buried += other.passed + other.buried;
            self.chain.append(other.take());
        }
    }

    /// Takes all segments out. The passed records in them stay unchanged.
    fn take_chain(&mut self) -> Chain {
        (self.passed, self.buried) = (0, 0);
        self.chain.take()
    }

    /// Takes all records out. The consumed ones are buried.
    fn take(&mut self) -> Chain {
        let passed = At { segment: self.chain.first, offset: 0 };
        let mut offset = passed.offset;
        while offset < self.passed {
            // SAFETY: whole records, which were consumed.
            unsafe {
                let record = &mut *Segment::body(passed.segment).add(offset).cast::<Record>();
                record.bury();
                offset += record.bytes();
            }
        }
        let is_empty = self.is_empty();
        let chain = self.take_chain();
        if is_empty {
            chain.recycle_spent(None);
            return Chain::new();
        }
        chain
    }
}

impl Drop for List {
    fn drop(&mut self) {
        if self.is_empty() {
            self.chain.take().recycle_spent(None);
        }
    }
}

/// The deferred messages of an actor.
#[derive(Default)]
pub(crate) struct Deferred {
    refused: List,
    later: List,
    /// The requests in `later`. The other list has none, because requests have no guards.
    requests: usize,
}

impl Deferred {
    pub(crate) fn has_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    pub(crate) fn has_later(&self) -> bool {
        !self.later.is_empty()
    }

    /// Moves `record` behind all others.
    ///
    /// # Safety
    /// The record is whole, and the caller gives its payload up.
    pub(crate) unsafe fn push(&mut self, record: NonNull<Record>, pool: &Pool) {
        // SAFETY: the record is whole, and the caller has given its payload up.
        unsafe {
            self.requests += usize::from(record.as_ref().is_control());
            self.later.push(record, pool);
        }
    }

    /// Moves `record`, whose guard has refused it, behind the others that were refused.
    ///
    /// # Safety
    /// The same as for [`Deferred::push`].
    pub(crate) unsafe fn push_refused(&mut self, record: NonNull<Record>, pool: &Pool) {
        // SAFETY: the record is whole, and the caller has given its payload up.
        unsafe { self.refused.push(record, pool) };
    }

    /// Returns the first message that was not refused.
    pub(crate) fn first_later(&mut self, pool: &Pool) -> Option<NonNull<Record>> {
        self.later.first(pool)
    }

    /// Takes out the first message that was not refused. Its record stays readable until the next call.
    pub(crate) fn pop_later(&mut self, pool: &Pool) -> Option<NonNull<Record>> {
        let record = self.later.pop(pool)?;
        // SAFETY: a whole record.
        self.requests -= usize::from(unsafe { record.as_ref() }.is_control());
        Some(record)
    }

    /// Takes out the first request.
    pub(crate) fn pop_request(&mut self) -> Option<Kept> {
        let mut at = self.later.start();
        while self.requests > 0
            && let Some(record) = self.later.next(&mut at)
        {
            // SAFETY: a whole record of that list, which is moved.
            unsafe {
                if record.as_ref().is_control() {
                    let kept = Kept::of(record);
                    self.later.bury(record);
                    self.requests -= 1;
                    return Some(kept);
                }
            }
        }
        None
    }

    /// Takes out the refused messages, which [`Deferred::put_back`] gives back.
    pub(crate) fn take_refused(&mut self) -> Refused {
        let list = std::mem::take(&mut self.refused);
        Refused { at: list.start(), list }
    }

    /// Puts refused messages before those that were refused since [`Deferred::take_refused`].
    pub(crate) fn put_back(&mut self, refused: Refused, pool: &Pool) {
        let mut list = refused.list;
        list.trim(pool);
        list.append(std::mem::take(&mut self.refused));
        self.refused = list;
    }

    /// Puts all refused messages before the others, as if their guards had not been asked.
    pub(crate) fn forget_refusals(&mut self) {
        let mut all = std::mem::take(&mut self.refused);
        all.append(std::mem::take(&mut self.later));
        self.later = all;
    }

    /// Puts `first` before all others.
    pub(crate) fn put_first(&mut self, mut first: Deferred) {
        first.forget_refusals();
        self.forget_refusals();
        first.later.append(std::mem::take(&mut self.later));
        self.later = std::mem::take(&mut first.later);
        self.requests += first.requests;
    }

    /// Takes all messages out, in order.
    pub(crate) fn take(&mut self) -> Chain {
        self.forget_refusals();
        self.requests = 0;
        self.later.take()
    }

    /// Gives back memory that no record needs.
    pub(crate) fn trim(&mut self, pool: &Pool) {
        self.later.trim(pool);
    }

    /// Calls `visit` with each record in order. The record may be rewritten in place but not resized.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(NonNull<Record>)) {
        for list in [&self.refused, &self.later] {
            let mut at = list.start();
            while let Some(record) = list.next(&mut at) {
                visit(record);
            }
        }
    }
}

/// Messages whose guards have refused them, to be asked again in order.
pub(crate) struct Refused {
    list: List,
    at: At,
}

impl Refused {
    /// Returns the next record.
    pub(crate) fn next(&mut self) -> Option<NonNull<Record>> {
        self.list.next(&mut self.at)
    }

    /// Notes that `record` was consumed.
    ///
    /// # Safety
    /// [`Refused::next`] has returned it last.
    pub(crate) unsafe fn consumed(&mut self, record: NonNull<Record>) {
        // SAFETY: `next` has returned the record, and returns only records that were not consumed.
        unsafe { self.list.bury(record) };
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::task::Poll;
    use std::time::Duration;

    use crate::memory::segment::steps;
    use crate::*;

    /// An actor that has handled this number of messages, each of which has the number that it was sent with. Its
    /// guards refuse while it is closed.
    struct Reader {
        handled: Arc<AtomicU64>,
        closed: bool,
    }

    impl Resident for Reader {
        type Extra = ();
        fn name() -> &'static str {
            "Reader"
        }
        fn ended(&mut self, _: Option<Box<()>>, _: Ending, _: &mut Cx<Self>) {}
        fn crashed(_: Crash, cx: &mut ControlCx<Self>) {
            cx.resume();
        }
    }

    struct Start;

    impl Envelope<Reader> for Start {
        fn run(self, _: &mut Reader, _: &mut Cx<Reader>) {}
        fn bounce(self, _: Undelivered) {}
    }

    /// A message whose handler waits, or panics, before it ends. A handler that yields is woken by itself.
    struct Wait {
        number: u64,
        how: How,
    }

    #[derive(Clone, Copy, PartialEq)]
    enum How {
        Yields,
        /// The handler does not wait at all.
        Runs,
        Panics,
    }

    impl Reader {
        fn note(&self, number: u64) {
            assert_eq!(self.handled.fetch_add(1, Ordering::Relaxed), number, "messages are handled in order");
        }
    }

    impl AsyncEnvelope<Reader> for Wait {
        async fn run(self, reader: &mut Reader, _: &mut Cx<Reader>) {
            let mut waits = self.how == How::Yields;
            poll_fn(|cx| {
                if std::mem::take(&mut waits) {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Ready(())
            })
            .await;
            reader.note(self.number);
            if self.how == How::Panics {
                std::panic::resume_unwind(Box::new("meant"));
            }
        }
        fn admission(&self, reader: &Reader, _: &mut Cx<Reader>) -> Admission {
            if reader.closed { Admission::Wait } else { Admission::Run }
        }
        fn bounce(self, why: Undelivered) {
            panic!("{why:?}");
        }
    }

    /// Opens the guards.
    struct Open;

    impl Envelope<Reader> for Open {
        fn run(self, reader: &mut Reader, _: &mut Cx<Reader>) {
            reader.closed = false;
        }
        fn bounce(self, _: Undelivered) {}
    }

    struct Freeze(bool);

    impl Control<Reader> for Freeze {
        fn passes(&self) -> bool {
            true
        }
        fn run(self, cx: &mut ControlCx<Reader>) {
            if self.0 { cx.freeze() } else { cx.thaw() }
        }
    }

    /// Handles `messages` messages and returns the number of records that were moved or visited for that.
    fn steps_of(messages: u64, how: How, closed: bool, frozen: bool) -> u64 {
        let system = SystemCore::start(Config { workers: 1, stages: 1, simulated: Some(0), ..Config::new() }).unwrap();
        let handled = Arc::new(AtomicU64::new(0));
        let reader = Reader { handled: Arc::clone(&handled), closed };
        let reader = system.spawn(reader, StageChoice::At(0), Start).ok().unwrap();
        if frozen {
            reader.send_control(Freeze(true));
            system.run_until_idle();
        }
        let before = steps::so_far();
        (0..messages).for_each(|number| reader.send_async(Wait { number, how }));
        if closed {
            system.run_until_idle();
            reader.send(Open);
        }
        if frozen {
            system.run_until_idle();
            reader.send_control(Freeze(false));
        }
        system.run_until_idle();
        let steps = steps::so_far() - before;
        assert_eq!(handled.load(Ordering::Relaxed), messages);
        system.end(Duration::ZERO, &mut |_, _, _| {});
        steps
    }

    // GUARANTEE: The cost of waiting messages is linear
    #[test]
    fn a_message_behind_waiting_handlers_is_moved_a_bounded_number_of_times() {
        const MESSAGES: u64 = if cfg!(miri) { 30 } else { 80_000 };
        for how in [How::Yields, How::Runs, How::Panics] {
            // Miri takes a minute for each case.
            let cases = if cfg!(miri) { 1 } else { 3 };
            for (closed, frozen) in [(true, false), (false, true), (false, false)].into_iter().take(cases) {
                let steps = steps_of(MESSAGES, how, closed, frozen);
                assert!(steps <= 10 * MESSAGES, "{steps} steps for {MESSAGES} messages");
            }
        }
    }
}
