//! A simulated system, one delivery at a time: whoever drives it sees what waits, and chooses what is handled next.
//!
//! The workers' own code draws its choices from a seed ([`crate::driver::simulated`]), and so comes by some of the orders there are.
//! Who wants all of them has to choose. What was sent is taken out of the queue of the system's only worker and kept here;
//! a delivery puts one record back and has it run alone. All that is new afterwards was sent by the actor that ran: so the
//! sender of each message is known, and no message has to carry it.
//!
//! No handler runs on another one's stack meanwhile ([`crate::worker::inline_call`]): the room for that is said to be full. So a child's
//! start and a request are messages like others, and have an order of their own.

use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use crate::driver::simulated::Steps;
use crate::memory::cell::status;
use crate::memory::record::{Record, described};
use crate::memory::segment::Chain;
use crate::message::address::{Lane, RawAddress};
use crate::message::envelope::{MailKind, Undelivered};
use crate::system::SystemCore;
use crate::worker::Worker;
use crate::worker::inline_call::NEST_MAX;
use crate::worker::queue::bounce_chain;

/// A message that waits.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    /// What it is called here: numbers rise in the order in which messages are collected.
    pub number: u64,
    /// For whom it is.
    pub to: RawAddress,
    /// The lane it was sent in.
    pub lane: Lane,
    /// What it is.
    pub kind: MailKind,
    /// Whether it is for an async handler, which may wait.
    pub may_wait: bool,
    /// Whether it passes by what waits for the receiver's handler, or for its start.
    pub is_control: bool,
    /// The type of the message, with its path.
    pub message: &'static str,
    /// The type of the receiver, with its path.
    pub actor: &'static str,
}

/// What waits in a simulated system with one worker. Dropped, it gives back what still waits: the system may then run on by
/// itself, and has to be shut down by others. Dropped inside an actor of the system, or after the end of the system, it makes dead letters
/// of what waits.
///
/// INVARIANT: the worker is touched only within a turn (`turns.rs`), so by one thread at a time, and by no handler's caller.
pub struct Deliveries {
    steps: Steps,
    held: BTreeMap<u64, Held>,
    next: u64,
}

/// A record out of its queue.
///
/// INVARIANT: `words` are a whole record whose payload was not consumed.
struct Held {
    words: Box<[u64]>,
}

// SAFETY: the payload of a record is Send.
unsafe impl Send for Held {}

impl Held {
    fn record(&self) -> &Record {
        // SAFETY: by the invariant; eight bytes are what a record is aligned to.
        unsafe { &*self.words.as_ptr().cast::<Record>() }
    }
}

impl SystemCore {
    /// What waits in this system. None: it is not simulated, has more workers than one, or has ended.
    pub fn deliveries(self: &Arc<Self>) -> Option<Deliveries> {
        let steps = self.steps()?;
        (steps.workers().len() == 1).then(|| Deliveries { steps, held: BTreeMap::new(), next: 0 })
    }
}

impl Deliveries {
    fn worker(&self) -> &Arc<Worker> {
        &self.steps.workers()[0]
    }

    /// Takes what was sent since this was called last; in each lane in the order of sending.
    ///
    /// # Panics
    /// From inside an actor of a simulated system.
    pub fn collect(&mut self) -> Vec<Delivery> {
        let worker = Arc::clone(self.worker());
        let mut found = Vec::new();
        let _turn = self.steps.turn();
        worker.enter(|| {
            worker.raise();
            worker.attend();
            worker.take_mail();
            worker.let_all_deferred_starts_go_on();
            while worker.advance() {
                let at = worker.run_at.get();
                let record = NonNull::new(at.cast::<Record>()).expect("segments are not null");
                // SAFETY: at the cursor is a whole record of the own queue, which is passed by: from here on it is owned
                // by `held`. Buried ones have no payload.
                unsafe {
                    let bytes = record.as_ref().bytes();
                    worker.run_at.set(at.add(bytes));
                    if record.as_ref().is_buried() {
                        continue;
                    }
                    let mut words = vec![0_u64; bytes / 8].into_boxed_slice();
                    std::ptr::copy_nonoverlapping(at, words.as_mut_ptr().cast::<u8>(), bytes);
                    let about = described(record);
                    let number = self.next;
                    self.next += 1;
                    found.push(Delivery {
                        number,
                        to: RawAddress {
                            cell: record.as_ref().cell,
                            tag: (record.as_ref().resident_tag())
                                | u64::from(record.as_ref().cell.as_ref().system_word()),
                        },
                        lane: record.as_ref().lane(),
                        kind: about.kind,
                        may_wait: about.may_wait,
                        is_control: record.as_ref().is_control(),
                        message: about.name,
                        actor: about.actor,
                    });
                    self.held.insert(number, Held { words });
                }
            }
        });
        found
    }

    /// Whether the message would be handled now, or become a dead letter; and not be put aside since its receiver waits in
    /// a handler, has not been started, or has crashed.
    ///
    /// # Panics
    /// If it does not wait.
    pub fn is_ready(&self, number: u64) -> bool {
        let record = self.held(number).record();
        // SAFETY: cells are never freed.
        let header = unsafe { record.cell.as_ref() };
        let tag = header.tag();
        tag & status::VACANT != 0 || tag >> 16 != record.tag >> 16 || record.is_control() || header.is_ready()
    }

    /// Whether the actor is in an async handler that waits for something.
    pub fn is_suspended(&self, who: RawAddress) -> bool {
        // SAFETY: cells are never freed.
        !who.is_stale() && unsafe { who.cell.as_ref() }.has_status(status::SUSPENDED)
    }

    /// Whether what is sent to the actor in the ordinary way would be handled, or become a dead letter.
    pub fn is_open(&self, who: RawAddress) -> bool {
        // SAFETY: cells are never freed.
        who.is_stale() || unsafe { who.cell.as_ref() }.is_ready()
    }

    /// Delivers the message, and nothing else.
    ///
    /// # Panics
    /// If it does not wait, or from inside an actor of a simulated system.
    pub fn deliver(&mut self, number: u64) {
        let _turn = self.steps.turn();
        let held = self.held.remove(&number).unwrap_or_else(|| panic!("message {number} does not wait"));
        let worker = self.worker();
        worker.enter(|| {
            let mut chain = Chain::new();
            // SAFETY: a whole record, which is given up.
            unsafe { chain.push_bytes(held.words.as_ptr().cast(), held.words.len() * 8, Some(&worker.pool)) };
            worker.put_first(chain);
            // What a signal would have been for is done at the next `collect`.
            worker.ownership.signal.clear(u32::MAX);
            worker.nested.set(NEST_MAX);
            worker.single.set(true);
            worker.family.set(0);
            if worker.advance() {
                worker.gulp(1);
            }
            worker.nested.set(0);
            worker.single.set(false);
        });
    }

    /// Whether a timer is due, not after `until`.
    pub fn has_timers(&self, until: Option<Duration>) -> bool {
        self.steps.next_timer().is_some_and(|next| until.is_none_or(|until| next <= until))
    }

    /// Lets time pass to the next timer, if there is one, and fires all that are due then; but not beyond `until`, in the
    /// system's time. False: no timer fires until then, and it is then.
    ///
    /// # Panics
    /// From inside an actor of a simulated system.
    pub fn let_time_pass(&mut self, until: Option<Duration>) -> bool {
        let turn = self.steps.turn();
        match self.steps.next_timer_in(&turn).filter(|next| until.is_none_or(|until| *next <= until)) {
            Some(next) => {
                self.steps.advance_clock(next);
                self.steps.wake_in(&turn);
                true
            }
            None => {
                if let Some(until) = until {
                    self.steps.advance_clock(until);
                }
                false
            }
        }
    }

    fn held(&self, number: u64) -> &Held {
        self.held.get(&number).unwrap_or_else(|| panic!("message {number} does not wait"))
    }
}

impl Drop for Deliveries {
    fn drop(&mut self) {
        let turn = self.steps.try_turn();
        let mut chain = Chain::new();
        for held in std::mem::take(&mut self.held).into_values() {
            // SAFETY: a whole record, which is given up.
            unsafe { chain.push_bytes(held.words.as_ptr().cast(), held.words.len() * 8, None) };
        }
        let worker = self.worker();
        match turn.filter(|turn| !self.steps.has_ended(turn)) {
            Some(_turn) => worker.enter(|| worker.enqueue(chain)),
            // From inside an actor the queue must not change. An ended system runs nothing more.
            None => bounce_chain(chain, Undelivered::Shutdown),
        }
    }
}

impl std::fmt::Debug for Deliveries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deliveries").field("waiting", &self.held.len()).finish_non_exhaustive()
    }
}
