//! A simulated system, one delivery at a time: its driver sees the messages that wait, and chooses the next one.
//!
//! The workers' own code draws its choices from a seed ([`crate::driver::simulated`]), and therefore reaches only some
//! of the possible orders. A test of all orders has to choose. The messages that were sent are taken out of the queue
//! of the system's only worker and kept by this module. A delivery puts one record back and has it run alone. All new
//! messages afterwards were sent by the actor that ran. The sender of each message is therefore known, and no message
//! has to carry it.
//!
//! No handler runs on another one's stack during a delivery ([`crate::dispatch::inline_call`]), because the nesting
//! depth counts as full. A child's start and a request are therefore messages like others, and have an order of their
//! own.

use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use crate::driver::simulated::Steps;
use crate::memory::cell::status;
use crate::memory::raw_address::{Lane, RawAddress};
use crate::memory::record::{Record, Undelivered, described};
use crate::memory::segment::Chain;
use crate::user_code::mail_kind::MailKind;
use crate::worker::Worker;
use crate::worker::message_queue::bounce_chain;
use crate::worker::nested::NEST_MAX;
use crate::worker::system_core::SystemCore;

/// A message that waits.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    /// The number of the message in this system: numbers rise in the order in which messages are collected.
    pub number: u64,
    /// The receiver.
    pub to: RawAddress,
    /// The lane that the message was sent in.
    pub lane: Lane,
    /// The kind of the message.
    pub kind: MailKind,
    /// Whether the message is for an async handler, which may wait.
    pub may_wait: bool,
    /// Whether the message passes by those that wait for the receiver's handler, or for its start.
    pub is_control: bool,
    /// The type of the message, with its path.
    pub message: &'static str,
    /// The type of the receiver, with its path.
    pub actor: &'static str,
}

/// The messages that wait in a simulated system with one worker. Its drop gives back the messages that still wait. The
/// system may then run on by itself, and another thread has to shut it down. A drop inside an actor of the system, or
/// after the end of the system, turns the messages into dead letters.
///
/// INVARIANT: the worker is touched only within a turn (`turns.rs`), and therefore by one thread at a time, and by no
/// handler's caller.
pub struct Deliveries {
    steps: Steps,
    waiting: BTreeMap<u64, WaitingRecord>,
    next: u64,
}

/// A record out of its queue.
///
/// INVARIANT: `words` are a whole record whose payload was not consumed.
struct WaitingRecord {
    words: Box<[u64]>,
}

// SAFETY: the payload of a record is Send.
unsafe impl Send for WaitingRecord {}

impl WaitingRecord {
    fn record(&self) -> &Record {
        // SAFETY: `words` are a whole record; a record is aligned to 8 bytes, and so are they.
        unsafe { &*self.words.as_ptr().cast::<Record>() }
    }
}

impl SystemCore {
    /// Returns the messages that wait in this system. Returns `None` if it is not simulated, has more than 1 worker, or
    /// has ended.
    pub fn deliveries(self: &Arc<Self>) -> Option<Deliveries> {
        let steps = self.steps()?;
        (steps.workers().len() == 1).then(|| Deliveries { steps, waiting: BTreeMap::new(), next: 0 })
    }
}

impl Deliveries {
    fn worker(&self) -> &Arc<Worker> {
        &self.steps.workers()[0]
    }

    /// Takes the messages that were sent since the last call; in each lane in the order of sending.
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
            worker.release_all_deferred_starts();
            while worker.advance() {
                let at = worker.run_at.get();
                let record = NonNull::new(at.cast::<Record>()).expect("segments are not null");
                // SAFETY: a whole record of the own queue is at the cursor, which passes it. From this point on
                // `waiting` owns the record. Buried ones have no payload.
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
                    self.waiting.insert(number, WaitingRecord { words });
                }
            }
        });
        found
    }

    /// Returns whether the message would be handled now, or become a dead letter. Otherwise it would be deferred,
    /// because its receiver waits in a handler, has not been started, or has crashed.
    ///
    /// # Panics
    /// If the message does not wait.
    pub fn is_ready(&self, number: u64) -> bool {
        let record = self.waiting(number).record();
        // SAFETY: cells are never freed.
        let header = unsafe { record.cell.as_ref() };
        let tag = header.tag();
        tag & status::VACANT != 0 || tag >> 16 != record.tag >> 16 || record.is_control() || header.is_ready()
    }

    /// Returns whether the actor is in an async handler that waits.
    pub fn is_suspended(&self, actor: RawAddress) -> bool {
        // SAFETY: cells are never freed.
        !actor.is_stale() && unsafe { actor.cell.as_ref() }.has_status(status::SUSPENDED)
    }

    /// Returns whether an ordinary message to the actor would be handled now, or become a dead letter.
    pub fn is_open(&self, actor: RawAddress) -> bool {
        // SAFETY: cells are never freed.
        actor.is_stale() || unsafe { actor.cell.as_ref() }.is_ready()
    }

    /// Delivers the message, and no other one.
    ///
    /// # Panics
    /// If the message does not wait, or from inside an actor of a simulated system.
    pub fn deliver(&mut self, number: u64) {
        let _turn = self.steps.turn();
        let waiting = self
            .waiting
            .remove(&number)
            .unwrap_or_else(|| panic!("message {number} does not wait: it was delivered, or never collected"));
        let worker = self.worker();
        worker.enter(|| {
            let mut chain = Chain::new();
            // SAFETY: a whole record, which is given up.
            unsafe { chain.push_bytes(waiting.words.as_ptr().cast(), waiting.words.len() * 8, Some(&worker.pool)) };
            worker.put_first(chain);
            // The work that a signal would start is done at the next `collect`.
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

    /// Returns whether a timer is due, not after `until`.
    pub fn has_timers(&self, until: Option<Duration>) -> bool {
        self.steps.next_timer().is_some_and(|next| until.is_none_or(|until| next <= until))
    }

    /// Moves time on to the next timer, if there is one, and fires all that are due then; but not beyond `until`, in
    /// the system's time. Returns false if no timer fires until then; the time is then `until`.
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

    fn waiting(&self, number: u64) -> &WaitingRecord {
        self.waiting
            .get(&number)
            .unwrap_or_else(|| panic!("message {number} does not wait: it was delivered, or never collected"))
    }
}

impl Drop for Deliveries {
    fn drop(&mut self) {
        let turn = self.steps.try_turn();
        let mut chain = Chain::new();
        for waiting in std::mem::take(&mut self.waiting).into_values() {
            // SAFETY: a whole record, which is given up.
            unsafe { chain.push_bytes(waiting.words.as_ptr().cast(), waiting.words.len() * 8, None) };
        }
        let worker = self.worker();
        match turn.filter(|turn| !self.steps.has_ended(turn)) {
            Some(_turn) => worker.enter(|| worker.enqueue(chain)),
            // Inside an actor the queue must not change. An ended system runs nothing more.
            None => bounce_chain(chain, Undelivered::Shutdown),
        }
    }
}

impl std::fmt::Debug for Deliveries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deliveries").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}
