//! The reachability of theaters in a simulation: calls, cuts, and faults by chance.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use playhouse_executor::Choices;

use super::NetworkStats;
use super::wire::Wire;
use super::world::{Event, World};
use crate::error::TheaterError;
use crate::link::Stream;
use crate::link::frame::Hello;
use crate::lock::lock;
use crate::node::environment::OnReply;
use crate::node::handshake::other_cluster;
use crate::node::receive_hello::Connects;

/// Maximum time for which a fault by chance separates two theaters.
const APART_MAX: Duration = Duration::from_millis(400);
/// Maximum time before an unanswered call is given up.
const UNANSWERED_MAX: Duration = Duration::from_secs(2);
/// The range of latencies in nanoseconds.
const LATENCY_NS: [usize; 2] = [50_000, 300_000];
/// The share (one in `FAR.0`) of longer latencies, and their factor.
const FAR: (u64, u64) = (4, 100);

/// Minimum number of bytes that a direction with a latency takes in a microsecond.
const BYTES_PER_US: usize = 4;

/// The reachability between theaters.
#[derive(Default)]
pub(super) struct Net {
    pub(super) listen: BTreeMap<SocketAddr, usize>,
    pub(super) next_port: u16,
    /// Theaters that do not reach each other, the lower number first, with the number of separations in force.
    pub(super) apart: BTreeMap<[usize; 2], usize>,
    /// Theaters that never connect directly, the lower number first.
    never: BTreeSet<[usize; 2]>,
    pub(super) wires: Vec<Weak<Wire>>,
    pub(super) next_wire: u64,
    pub(super) faults_every: Option<Duration>,
    pub(super) happened: NetworkStats,
}

fn pair(one: usize, other: usize) -> [usize; 2] {
    [one.min(other), one.max(other)]
}

impl World {
    fn reaches(&self, one: usize, other: usize) -> bool {
        let net = lock(&self.net);
        !net.apart.contains_key(&pair(one, other)) && !net.never.contains(&pair(one, other))
    }

    /// Prevents direct connections between the two theaters from now on.
    pub(super) fn keep_apart(&self, one: usize, other: usize) {
        lock(&self.net).never.insert(pair(one, other));
        self.break_between(one, other);
    }

    /// Gives each direction between two theaters a latency of its own from now on.
    pub(super) fn set_latencies(&self) {
        let seed = self.choose(Choices::next);
        self.latencies.store(seed | 1, Ordering::Relaxed);
        let wires = lock(&self.net).wires.clone();
        wires.iter().filter_map(Weak::upgrade).for_each(|wire| wire.widen(self));
    }

    /// Returns the minimum number of bytes that may be in transit from one theater to another. It is large enough to keep the
    /// latency from slowing the link.
    pub(super) fn room_for(&self, from: usize, to: usize) -> usize {
        self.latency(from, to).as_micros() as usize * BYTES_PER_US
    }

    /// Returns the minimum time that a byte takes from one theater to another.
    pub(super) fn latency(&self, from: usize, to: usize) -> Duration {
        let seed = self.latencies.load(Ordering::Relaxed);
        if seed == 0 {
            return Duration::ZERO;
        }
        // Each call draws it anew, with the same result, and without consuming a draw of the simulation.
        let mut choices = Choices::new(seed ^ ((from as u64 + 1) << 32 | (to as u64 + 1)));
        let [least, most] = LATENCY_NS;
        let ns = (least + choices.below(most - least)) as u64;
        let (one_in, factor) = FAR;
        Duration::from_nanos(if choices.one_in(one_in) { factor * ns } else { ns })
    }

    /// Does the same as [`World::latency`] for the theater that listens at `address`.
    pub(super) fn latency_to(&self, from: usize, address: SocketAddr) -> Duration {
        let listener = lock(&self.net).listen.get(&address).copied();
        listener.map_or(Duration::ZERO, |to| self.latency(from, to))
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

    /// Undoes one [`World::part`], or all of them.
    pub(super) fn heal(&self, one: usize, other: usize, all: bool) {
        let mut net = lock(&self.net);
        if let Some(times) = net.apart.get_mut(&pair(one, other)) {
            *times -= 1;
            if *times == 0 || all {
                net.apart.remove(&pair(one, other));
            }
        }
    }

    /// Sets the mean interval of faults by chance; `None`: there are none any more.
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

    /// Delivers a call to its address.
    pub(super) fn deliver_call(self: &Arc<Self>, caller: usize, address: SocketAddr, hello: Hello, on_reply: OnReply) {
        let listener = lock(&self.net).listen.get(&address).copied();
        let listener = listener.filter(|number| !self.nodes()[*number].is_dead());
        let error = move |kind: ErrorKind| TheaterError::Io { address: address.to_string(), error: kind.into() };
        let fail = |on_reply: OnReply, after: Duration, kind: ErrorKind| {
            self.plan_with(after, caller, move |_| on_reply(Err(error(kind))));
        };
        let Some(number) = listener else {
            lock(&self.net).happened.refused += 1;
            return fail(on_reply, self.delay(), ErrorKind::ConnectionRefused);
        };
        if !self.reaches(caller, number) {
            lock(&self.net).happened.refused += 1;
            let ns = self.choose(|choices| choices.below(UNANSWERED_MAX.as_nanos() as usize));
            return fail(on_reply, Duration::from_nanos(ns as u64), ErrorKind::TimedOut);
        }
        let node = Arc::clone(&self.nodes()[number]);
        let pause = Duration::from_nanos(node.pause_left_ns(self.now_ns()));
        if !pause.is_zero() {
            // The machine takes the call, and the theater answers after its pause.
            let answers_within =
                Duration::from_nanos(self.choose(|choices| choices.below(UNANSWERED_MAX.as_nanos() as usize)) as u64);
            if pause <= answers_within {
                return self
                    .plan_with(pause, caller, move |world| world.deliver_call(caller, address, hello, on_reply));
            }
            lock(&self.net).happened.refused += 1;
            // The caller has gone by then, and the theater learns that when it replies.
            self.plan_with(pause, number, move |_| drop(node.theater_core.receive_hello(&hello, None)));
            return fail(on_reply, answers_within, ErrorKind::TimedOut);
        }
        let cluster = &node.theater_core.settings.cluster;
        if hello.cluster != *cluster {
            // Outside of simulations, the proof that comes before the greeting fails.
            let why = other_cluster(cluster, &hello.cluster);
            let not_member = |address: String| TheaterError::NotMember { address, why: why.clone() };
            let caller_address = hello.listens.map_or_else(|| "?".to_owned(), |address| address.to_string());
            node.theater_core.report(not_member(caller_address));
            let error = not_member(address.to_string());
            let after = self.delay() + self.latency(number, caller);
            return self.plan_with(after, caller, move |_| on_reply(Err(error)));
        }
        let (reply, go_on) = node.theater_core.receive_hello(&hello, None);
        let route_back = self.latency(number, caller);
        self.note(&[caller as u64, number as u64, u64::from(go_on.is_some())], &[]);
        let breaks = lock(&self.net).faults_every.is_some() && self.choose(|choices| choices.one_in(8));
        if breaks {
            // The break precedes the reply: only the called theater knows of this connection.
            return fail(on_reply, self.delay() + route_back, ErrorKind::ConnectionReset);
        }
        let wire_number = {
            let mut net = lock(&self.net);
            net.happened.connections += 1;
            net.next_wire += 1;
            net.next_wire
        };
        let (wire, here, there) = Wire::lay(self, wire_number, [caller, number]);
        lock(&self.net).wires.push(Arc::downgrade(&wire));
        // If the called theater does not use the connection, its end is dropped.
        if let Some(Connects { link, connection, received }) = go_on {
            // An error is one of the session, which has ended in that case: the link is notified.
            let _ = node.theater_core.poller.add(&link, Stream::Simulated(Box::new(there)), None, connection, received);
        }
        self.plan_with(self.delay() + route_back, caller, move |_| {
            on_reply(if wire.is_cut() {
                Err(error(ErrorKind::ConnectionReset))
            } else {
                Ok((reply, Stream::Simulated(Box::new(here))))
            });
        });
    }
}
