//! Who reaches whom in a simulation: calls, cuts, and faults by chance.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::Happened;
use super::wire::Wire;
use super::world::{Event, Heard, World, lock};
use crate::error::TheaterError;
use crate::frame::Hello;
use crate::link::Stream;

/// How long two theaters stay apart, at most, where faults are drawn by chance.
const APART_MAX: Duration = Duration::from_millis(400);
/// A call that nobody answers is given up after this, at most.
const UNANSWERED_MAX: Duration = Duration::from_secs(2);

/// Who can reach whom.
#[derive(Default)]
pub(super) struct Net {
    pub(super) listen: BTreeMap<SocketAddr, usize>,
    pub(super) next_port: u16,
    /// Theaters that do not reach each other, the lower number first; how often that was wanted.
    pub(super) apart: BTreeMap<[usize; 2], usize>,
    pub(super) wires: Vec<Weak<Wire>>,
    pub(super) next_wire: u64,
    pub(super) faults_every: Option<Duration>,
    pub(super) happened: Happened,
}

fn pair(one: usize, other: usize) -> [usize; 2] {
    [one.min(other), one.max(other)]
}

impl World {
    fn reaches(&self, one: usize, other: usize) -> bool {
        !lock(&self.net).apart.contains_key(&pair(one, other))
    }

    /// Breaks all connections between two theaters.
    pub(super) fn break_between(&self, one: usize, other: usize) {
        let wires = lock(&self.net).wires.clone();
        for wire in wires.iter().filter_map(Weak::upgrade) {
            if pair(wire.between[0], wire.between[1]) == pair(one, other) && wire.is_whole() {
                lock(&self.net).happened.cuts += 1;
                wire.cut(self);
            }
        }
    }

    pub(super) fn part(&self, one: usize, other: usize) {
        *lock(&self.net).apart.entry(pair(one, other)).or_default() += 1;
        self.break_between(one, other);
    }

    /// Takes back one [`World::part`], or all of them.
    pub(super) fn heal(&self, one: usize, other: usize, all: bool) {
        let mut net = lock(&self.net);
        if let Some(times) = net.apart.get_mut(&pair(one, other)) {
            *times -= 1;
            if *times == 0 || all {
                net.apart.remove(&pair(one, other));
            }
        }
    }

    /// Faults come by chance, so often on average; or none come any more.
    pub(super) fn set_faults(&self, every: Option<Duration>) {
        let before = std::mem::replace(&mut lock(&self.net).faults_every, every);
        if before.is_none() {
            self.plan_fault();
        }
        if every.is_none() {
            lock(&self.net).apart.clear();
        }
    }

    fn plan_fault(&self) {
        if let Some(every) = lock(&self.net).faults_every {
            let ns = self.choose(|choices| choices.below(2 * every.as_nanos() as usize + 1));
            self.plan(Duration::from_nanos(ns as u64), None, Event::Fault);
        }
    }

    pub(super) fn fault(&self) {
        let wires: Vec<Arc<Wire>> = {
            let mut net = lock(&self.net);
            if net.faults_every.is_none() {
                return;
            }
            net.wires.retain(|wire| wire.strong_count() > 0);
            net.wires.iter().filter_map(Weak::upgrade).filter(|wire| wire.is_whole()).collect()
        };
        if !wires.is_empty() {
            let [one, other] = wires[self.choose(|choices| choices.below(wires.len()))].between;
            if self.choose(|choices| choices.one_in(2)) {
                self.part(one, other);
                let ns = self.choose(|choices| choices.below(APART_MAX.as_nanos() as usize));
                self.plan(Duration::from_nanos(ns as u64), None, Event::Heal(pair(one, other)));
            } else {
                self.break_between(one, other);
            }
        }
        self.plan_fault();
    }

    /// A call arrives where it was to go.
    pub(super) fn ring(self: &Arc<Self>, caller: usize, address: SocketAddr, hello: &Hello, heard: Heard) {
        let listener = lock(&self.net).listen.get(&address).copied();
        let listener = listener.filter(|number| !self.tenants()[*number].is_dead());
        let error = move |kind: ErrorKind| TheaterError::Io { address: address.to_string(), error: kind.into() };
        let fail = |heard: Heard, after: Duration, kind: ErrorKind| {
            self.plan_with(after, caller, move |_| heard(Err(error(kind))));
        };
        let Some(number) = listener else {
            lock(&self.net).happened.refused += 1;
            return fail(heard, self.delay(), ErrorKind::ConnectionRefused);
        };
        if !self.reaches(caller, number) {
            lock(&self.net).happened.refused += 1;
            let ns = self.choose(|choices| choices.below(UNANSWERED_MAX.as_nanos() as usize));
            return fail(heard, Duration::from_nanos(ns as u64), ErrorKind::TimedOut);
        }
        let tenant = Arc::clone(&self.tenants()[number]);
        let (reply, go_on) = tenant.house.receive_hello(hello, None);
        self.note(&[caller as u64, number as u64, u64::from(go_on.is_some())], &[]);
        let breaks = lock(&self.net).faults_every.is_some() && self.choose(|choices| choices.one_in(8));
        if breaks {
            // Before the reply is out: only the theater that was called knows of this connection.
            return fail(heard, self.delay(), ErrorKind::ConnectionReset);
        }
        let wire_number = {
            let mut net = lock(&self.net);
            net.happened.connections += 1;
            net.next_wire += 1;
            net.next_wire
        };
        let (wire, here, there) = Wire::lay(self, wire_number, [caller, number]);
        lock(&self.net).wires.push(Arc::downgrade(&wire));
        // Where the connection is of no use to who was called, its end is dropped.
        if let Some((link, connection, received)) = go_on {
            // An error is that of the session, which has ended then: the link is told.
            let _ = tenant.house.poller.add(&link, Stream::Simulated(there), None, connection, received);
        }
        self.plan_with(self.delay(), caller, move |_| {
            heard(if wire.is_cut() {
                Err(error(ErrorKind::ConnectionReset))
            } else {
                Ok((reply, Stream::Simulated(here)))
            });
        });
    }
}
