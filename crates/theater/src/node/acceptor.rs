//! Accepts the callers of a theater.
//!
//! One thread waits for callers and for the theater's end at the same time, because it must end even if no caller comes.
//!
//! # Bounds
//!
//! A caller occupies a slot while it proves that it belongs to the cluster, and while its greeting is read. There are
//! [`CALLERS_MAX`] slots, and one source has at most [`OF_ONE_SOURCE_MAX`] of them. If all slots are occupied, a new caller
//! evicts one caller of the source with the most slots: the caller with the longest time since its last step. Steps are the call,
//! the first word and the proof. A caller that is silent, or stops after one word, therefore loses its slot before a caller that
//! makes progress.
//!
//! Before the proof, a caller makes this theater read at most 1 KiB at a time and allocate no more than that.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv6Addr, Shutdown, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use mio::{Events, Interest, Poll, Token, Waker};

use crate::error::TheaterError;
use crate::link::frame::Hello;
use crate::lock::lock;
use crate::node::core::TheaterCore;
use crate::node::handshake::{self, Opening};
use crate::node::links::TICK;
use crate::node::receive_hello::Connects;
use crate::transport::{GuardedWire, Listener, Registration, guarded};

/// Maximum number of callers that are answered at one time.
pub(crate) const CALLERS_MAX: usize = 64;
/// Maximum number of callers of one source that are answered at one time.
const OF_ONE_SOURCE_MAX: usize = 48;
/// Maximum number of threads that answer callers. It exceeds the slots, because the thread of an evicted caller ends a little
/// later.
const THREADS_MAX: usize = 2 * CALLERS_MAX;
/// Maximum number of concurrent calls of the hook for rejected peers.
const REPORTS_MAX: usize = 32;

const CALLERS: Token = Token(0);
const SHUTDOWN_WAKER: Token = Token(1);

/// A listener, and the poll that reports callers and the theater's end.
pub(crate) struct Acceptor {
    listener: Box<dyn Listener>,
    poll: Poll,
}

impl Acceptor {
    /// Registers `listener`. The returned waker interrupts the thread that waits for callers.
    pub(crate) fn new(mut listener: Box<dyn Listener>) -> io::Result<(Acceptor, Waker)> {
        let poll = Poll::new()?;
        let shutdown_waker = Waker::new(poll.registry(), SHUTDOWN_WAKER)?;
        guarded(|| listener.register(Registration::new(poll.registry(), CALLERS, Interest::READABLE)))?;
        Ok((Acceptor { listener, poll }, shutdown_waker))
    }
}

impl TheaterCore {
    /// Accepts callers until the theater closes.
    pub(crate) fn accept_callers(self: &Arc<Self>, mut acceptor: Acceptor) {
        let mut events = Events::with_capacity(2);
        while !self.is_closing() {
            if !self.callers.have_threads() {
                // The threads of evicted callers end soon; until then callers wait.
                drop(acceptor.poll.poll(&mut events, Some(TICK)));
                continue;
            }
            match guarded(|| acceptor.listener.accept()).map(GuardedWire::new) {
                Ok(wire) => self.answer_in_thread(wire),
                // The poll ignores its error: it was interrupted, and the loop accepts again.
                Err(error) if error.kind() == ErrorKind::WouldBlock => drop(acceptor.poll.poll(&mut events, None)),
                // Out of descriptors, for example. Callers wait, and the poll does not report them again.
                Err(_) => drop(acceptor.poll.poll(&mut events, Some(TICK))),
            }
        }
        let _ = guarded(|| {
            drop(acceptor);
            Ok(())
        });
        self.note_closed();
    }

    /// Answers a caller on a thread of its own.
    fn answer_in_thread(self: &Arc<Self>, wire: GuardedWire) {
        let slot = CallerSlot::take(self, Arc::new(wire));
        let theater_core = Arc::clone(self);
        // If the thread cannot be started, the closure is dropped, and with it the slot and the connection.
        let _ = std::thread::Builder::new().name("playhouse-caller".to_owned()).spawn(move || {
            let mut slot = slot;
            let answered = theater_core.answer(&mut slot);
            let Err(error) = answered else { return };
            // A slow hook must not keep other callers from being answered.
            slot.leave();
            if !matches!(error, TheaterError::Io { .. })
                && let Some(on_rejected_peer) = &theater_core.settings.on_rejected_peer
                && let Some(_report) = Counted::below(REPORTS_MAX, &theater_core.callers.reports)
            {
                drop(slot);
                // The hook is the user's code.
                let _ = catch_unwind(AssertUnwindSafe(|| (on_rejected_peer.0)(&error)));
            }
        });
    }

    /// Tells the hook for rejected peers that a link was lost by the fault of its peer.
    pub(crate) fn report(self: &Arc<Self>, error: TheaterError) {
        let Some(report) = Counted::below(REPORTS_MAX, &self.callers.reports) else { return };
        let theater_core = Arc::clone(self);
        // If no thread can be started, the loss is not reported.
        let _ = self.in_background("report", move || {
            let _report = report;
            if let Some(on_rejected_peer) = &theater_core.settings.on_rejected_peer {
                // The hook is the user's code.
                let _ = catch_unwind(AssertUnwindSafe(|| (on_rejected_peer.0)(&error)));
            }
        });
    }

    fn answer(self: &Arc<Self>, slot: &mut CallerSlot) -> Result<(), TheaterError> {
        let wire = slot.wire.take().expect("a caller is answered once");
        let mut opening = Opening::answer(wire, self.settings.secrecy.tls())?;
        let read = self.read_member(&mut opening, slot);
        let hello = read.inspect_err(|error| opening.refuse(error))?;
        let (reply, go_on) = self.receive_hello(&hello, opening.certificate());
        handshake::reply(&mut opening, reply)?;
        if let Some(Connects { link, connection, received }) = go_on {
            let address = hello.listens.map_or_else(|| "?".to_owned(), |address| address.to_string());
            let added = opening
                .into_parts()
                .and_then(|(stream, cipher)| self.poller.add(&link, stream, cipher, connection, received));
            added.map_err(|error| TheaterError::Io { address, error })?;
            self.note_changed();
        }
        Ok(())
    }

    fn read_member(&self, opening: &mut Opening, slot: &CallerSlot) -> Result<Hello, TheaterError> {
        let credentials = self.credentials.as_ref().expect("it is not simulated");
        let member = handshake::check(opening, credentials, &self.settings.cluster, || slot.step())?;
        handshake::read_hello(opening, member)
    }
}

/// The callers that are being answered.
#[derive(Default)]
pub(crate) struct Callers {
    present: Mutex<Present>,
    threads: Arc<AtomicUsize>,
    reports: Arc<AtomicUsize>,
}

#[derive(Default)]
struct Present {
    /// Callers in the order of their last step: the longest time without a step first.
    callers: Vec<Caller>,
    next_number: u64,
}

struct Caller {
    number: u64,
    source: Source,
    wire: Weak<GuardedWire>,
}

/// The source of a caller: an identity that a caller cannot multiply at no cost.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    /// An IP address. Of an IPv6 address only the network counts, because one network may have all its addresses.
    Address(IpAddr),
    /// The peer's name in the words of the transport.
    Words(String),
}

impl Source {
    fn of(peer: String) -> Source {
        match peer.parse::<SocketAddr>().map(|address| address.ip().to_canonical()) {
            Ok(IpAddr::V6(address)) => {
                let network = address.to_bits() & !u128::from(u64::MAX);
                Source::Address(Ipv6Addr::from_bits(network).into())
            }
            Ok(address) => Source::Address(address),
            Err(_) => Source::Words(peer),
        }
    }
}

impl Callers {
    fn present(&self) -> MutexGuard<'_, Present> {
        lock(&self.present)
    }

    /// Returns whether a thread may be started for one more caller.
    fn have_threads(&self) -> bool {
        self.threads.load(Ordering::Relaxed) < THREADS_MAX
    }
}

impl Present {
    /// Adds a caller. Returns its number and the callers that were evicted for it.
    fn enter(&mut self, source: Source, wire: Weak<GuardedWire>) -> (u64, Vec<Caller>) {
        let number = self.next_number;
        self.next_number += 1;
        self.callers.push(Caller { number, source: source.clone(), wire });
        let mut evicted = Vec::new();
        if self.count(&source) > OF_ONE_SOURCE_MAX {
            evicted.extend(self.evict(&source));
        }
        if self.callers.len() > CALLERS_MAX {
            let most = self.callers.iter().max_by_key(|caller| self.count(&caller.source));
            let most = most.map(|caller| caller.source.clone());
            evicted.extend(most.and_then(|source| self.evict(&source)));
        }
        (number, evicted)
    }

    fn count(&self, source: &Source) -> usize {
        self.callers.iter().filter(|caller| caller.source == *source).count()
    }

    /// Removes the caller from `source` with the longest time since its last step.
    fn evict(&mut self, source: &Source) -> Option<Caller> {
        let oldest = self.callers.iter().position(|caller| caller.source == *source)?;
        Some(self.callers.remove(oldest))
    }

    fn step(&mut self, number: u64) {
        if let Some(at) = self.callers.iter().position(|caller| caller.number == number) {
            self.callers[at..].rotate_left(1);
        }
    }
}

/// The slot of a caller, and the count of its thread.
struct CallerSlot {
    theater_core: Arc<TheaterCore>,
    number: u64,
    wire: Option<Arc<GuardedWire>>,
    _thread: Counted,
}

impl CallerSlot {
    fn take(theater_core: &Arc<TheaterCore>, wire: Arc<GuardedWire>) -> CallerSlot {
        let source = Source::of(wire.peer());
        let (number, evicted) = theater_core.callers.present().enter(source, Arc::downgrade(&wire));
        for wire in evicted.iter().filter_map(|caller| caller.wire.upgrade()) {
            // The thread that answers the evicted caller finds the connection broken.
            let _ = wire.shutdown(Shutdown::Both);
        }
        let _thread = Counted::new(&theater_core.callers.threads);
        CallerSlot { theater_core: Arc::clone(theater_core), number, wire: Some(wire), _thread }
    }

    /// Notes that the caller made a step: other callers are evicted first.
    fn step(&self) {
        self.theater_core.callers.present().step(self.number);
    }

    fn leave(&self) {
        self.theater_core.callers.present().callers.retain(|caller| caller.number != self.number);
    }
}

impl Drop for CallerSlot {
    fn drop(&mut self) {
        self.leave();
    }
}

/// One unit of a shared count; dropping it subtracts it.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(count: &Arc<AtomicUsize>) -> Counted {
        // Relaxed: the count orders no other memory.
        count.fetch_add(1, Ordering::Relaxed);
        Counted(Arc::clone(count))
    }

    /// Adds one unit if there are fewer than `most`.
    fn below(most: usize, count: &Arc<AtomicUsize>) -> Option<Counted> {
        let counted = Counted::new(count);
        (counted.0.load(Ordering::Relaxed) <= most).then_some(counted)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(host: u8) -> Source {
        Source::of(format!("192.0.2.{host}:7000"))
    }

    /// Returns the numbers of the callers that a caller from `source` evicts.
    fn enter(present: &mut Present, source: &Source) -> Vec<u64> {
        let (_, evicted) = present.enter(source.clone(), Weak::new());
        evicted.iter().map(|caller| caller.number).collect()
    }

    // GUARANTEE: Floods do not exclude theaters
    #[test]
    fn a_source_that_calls_too_often_loses_its_own_slots() {
        let mut present = Present::default();
        for _ in 0..OF_ONE_SOURCE_MAX {
            assert_eq!(enter(&mut present, &address(1)), [0; 0]);
        }
        assert_eq!(enter(&mut present, &address(1)), [0]);
        // Other sources have the remaining slots; after that, the source with the most slots loses one.
        for _ in OF_ONE_SOURCE_MAX..CALLERS_MAX {
            assert_eq!(enter(&mut present, &address(2)), [0; 0]);
        }
        assert_eq!(enter(&mut present, &address(3)), [1]);
        assert_eq!(present.callers.len(), CALLERS_MAX);
    }

    // GUARANTEE: Floods do not exclude theaters
    #[test]
    fn a_caller_that_makes_progress_keeps_its_slot_longer() {
        let mut present = Present::default();
        for _ in 0..OF_ONE_SOURCE_MAX {
            enter(&mut present, &address(1));
        }
        present.step(0);
        present.step(2);
        let slots: Vec<_> = (1..OF_ONE_SOURCE_MAX).map(|_| enter(&mut present, &address(1))).collect();
        assert_eq!(slots[..3], [[1], [3], [4]]);
        assert_eq!(slots.last(), Some(&vec![0]));
    }

    // GUARANTEE: Floods do not exclude theaters
    #[test]
    fn ports_and_the_addresses_of_one_network_are_one_source() {
        let same = |one: &str, other: &str| Source::of(one.to_owned()) == Source::of(other.to_owned());
        assert!(same("127.0.0.1:1", "127.0.0.1:2") && !same("127.0.0.1:1", "127.0.0.2:1"));
        assert!(same("[2001:db8::1]:1", "[2001:db8::ffff:2]:2") && !same("[2001:db8::1]:1", "[2001:db8:0:1::1]:1"));
        assert!(same("[::ffff:127.0.0.1]:1", "127.0.0.1:2"));
        assert!(same("a process", "a process") && !same("a process", "another process"));
    }
}
