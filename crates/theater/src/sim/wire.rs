//! A simulated connection: two streams of bytes that arrive in pieces and late, and that break on command.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use mio::Token;

use super::world::{Event, World};
use crate::lock::lock;
use crate::transport::simulated::{Readiness, SimulatedEnd, SimulatedEvents};

/// A connection between two theaters.
pub(crate) struct Wire {
    this: Weak<Wire>,
    world: Weak<World>,
    /// Its number in the order of creation.
    number: u64,
    /// The theaters at its ends.
    pub(super) between: [usize; 2],
    state: Mutex<State>,
}

struct State {
    /// The bytes that each end has written.
    directions: [WireDirection; 2],
    /// The listeners for events at each end.
    readers: [Option<(Arc<dyn SimulatedEvents>, Token)>; 2],
    /// Further bytes of each end are lost.
    cut: bool,
    /// True for an end that has found out that the connection is broken, or has closed it itself.
    broken: [bool; 2],
}

#[derive(Default)]
struct WireDirection {
    under_way: VecDeque<u8>,
    /// The earliest arrival times of the bytes in transit, and the number of bytes at each.
    due: VecDeque<(u64, usize)>,
    arrived: VecDeque<u8>,
    /// Bytes that fit in, from the view of the writer.
    room: usize,
    /// The writer has been told that there is no room.
    wants_room: bool,
    /// The writer has closed it.
    shut: bool,
    /// An arrival is planned already.
    moves: bool,
}

/// One end of a [`Wire`].
pub(crate) struct End {
    wire: Arc<Wire>,
    side: usize,
}

impl Wire {
    /// Makes a connection from the first to the second of `between`.
    pub(super) fn lay(world: &Arc<World>, number: u64, between: [usize; 2]) -> (Arc<Wire>, End, End) {
        let room = |least: usize| least.max(1 << world.choose(|choices| 8 + choices.below(10)));
        let direction =
            |from: usize, to: usize| WireDirection { room: room(world.room_for(from, to)), ..WireDirection::default() };
        let [one, other] = between;
        let directions = [direction(one, other), direction(other, one)];
        let state = State { directions, readers: [None, None], cut: false, broken: [false; 2] };
        let wire = Arc::new_cyclic(|this| Wire {
            this: this.clone(),
            world: Arc::downgrade(world),
            number,
            between,
            state: Mutex::new(state),
        });
        let end = |side| End { wire: Arc::clone(&wire), side };
        (Arc::clone(&wire), end(0), end(1))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Enlarges the room, because longer latencies keep more bytes in transit.
    pub(super) fn widen(&self, world: &World) {
        let [one, other] = self.between;
        let mut state = self.state();
        for (direction, (from, to)) in state.directions.iter_mut().zip([(one, other), (other, one)]) {
            direction.room += world.room_for(from, to);
        }
    }

    /// Returns whether bytes may still come over it.
    pub(super) fn is_whole(&self) -> bool {
        let state = self.state();
        !state.cut && !state.broken.iter().any(|broken| *broken)
    }

    pub(super) fn is_cut(&self) -> bool {
        self.state().cut
    }

    /// Plans an arrival of some of the bytes that `side` has written.
    fn set_off(&self, state: &mut State, side: usize) {
        if state.cut || std::mem::replace(&mut state.directions[side].moves, true) {
            return;
        }
        let (Some(world), Some(this)) = (self.world.upgrade(), self.this.upgrade()) else { return };
        let wait_ns = state.directions[side].due.front().map_or(0, |(at, _)| at.saturating_sub(world.now_ns()));
        let after = world.delay() + Duration::from_nanos(wait_ns);
        world.plan(after, None, Event::Arrive(this, side));
    }

    /// Puts the next `count` bytes of `side` in transit.
    fn dispatch(&self, world: &World, state: &mut State, side: usize, count: usize) {
        let due = &mut state.directions[side].due;
        let at = world.now_ns() + world.latency(self.between[side], self.between[1 - side]).as_nanos() as u64;
        match due.back_mut() {
            Some((last, bytes)) if *last >= at => *bytes += count,
            _ => due.push_back((at, count)),
        }
    }

    /// Delivers some of the bytes that `side` has written.
    pub(super) fn arrive(&self, world: &World, side: usize) {
        let mut state = self.state();
        let direction = &mut state.directions[side];
        direction.moves = false;
        if state.cut {
            return;
        }
        let direction = &mut state.directions[side];
        let now_ns = world.now_ns();
        let bytes = direction.due.iter().take_while(|(at, _)| *at <= now_ns).map(|(_, count)| count).sum();
        let piece = world.choose(|choices| match bytes {
            0 => 0,
            _ if choices.one_in(2) => bytes,
            _ => 1 + choices.below(bytes),
        });
        let arrives: Vec<u8> = direction.under_way.drain(..piece).collect();
        world.note(&[self.number, side as u64, piece as u64], &arrives);
        direction.arrived.extend(arrives);
        direction.room += piece;
        let mut left = piece;
        while let Some((at, count)) = direction.due.front_mut()
            && *at <= now_ns
        {
            let part = left.min(*count);
            (*count, left) = (*count - part, left - part);
            if *count > 0 {
                break;
            }
            direction.due.pop_front();
        }
        let (more, wants_room) = (!direction.due.is_empty(), std::mem::take(&mut direction.wants_room));
        let closed = direction.shut && !more;
        // The closed end does not read further bytes of the other end.
        state.broken[1 - side] |= closed;
        if more {
            self.set_off(&mut state, side);
        }
        tell(&state, 1 - side, |token| Readiness { token, readable: true, closed, writable: false });
        if wants_room {
            tell(&state, side, |token| Readiness { token, readable: false, closed: false, writable: true });
        }
    }

    /// Breaks it at some byte. The ends find out some time later, as if the network reported it, or as if it did not.
    pub(super) fn cut(&self, world: &World) {
        let mut state = self.state();
        if std::mem::replace(&mut state.cut, true) {
            return;
        }
        for direction in &mut state.directions {
            let last = world.choose(|choices| choices.below(direction.under_way.len() + 1));
            let arrives: Vec<u8> = direction.under_way.drain(..last).collect();
            world.note(&[self.number, last as u64], &arrives);
            direction.arrived.extend(arrives);
            direction.under_way.clear();
            direction.due.clear();
        }
        let Some(this) = self.this.upgrade() else { return };
        for side in [0, 1] {
            // It exceeds the time in which the other end misses the heartbeats.
            let silence = Duration::from_secs(6);
            let after = if world.choose(|choices| choices.one_in(16)) { silence } else { world.delay() };
            world.plan(after, None, Event::Break(Arc::clone(&this), side));
        }
        for side in [0, 1] {
            tell(&state, side, |token| Readiness { token, readable: true, closed: false, writable: false });
        }
    }

    /// Lets the end `side` find out that it is broken.
    pub(super) fn find_broken(&self, world: &World, side: usize) {
        let mut state = self.state();
        state.broken[side] = true;
        if world.choose(|choices| choices.one_in(2)) {
            // Bytes that have arrived and were not read may be lost with it.
            state.directions[1 - side].arrived.clear();
        }
        tell(&state, side, |token| Readiness { token, readable: true, closed: true, writable: true });
    }

    /// Notes that the theater at the end `side` has ended.
    pub(super) fn orphan(&self, side: usize) {
        let mut state = self.state();
        state.broken[side] = true;
        state.readers[side] = None;
    }
}

fn tell(state: &State, side: usize, readiness: impl FnOnce(Token) -> Readiness) {
    if let Some((events, token)) = &state.readers[side] {
        events.tell(readiness(*token));
    }
}

impl SimulatedEnd for End {
    fn register(&self, events: &Arc<dyn SimulatedEvents>, token: Token) {
        let mut state = self.wire.state();
        state.readers[self.side] = Some((Arc::clone(events), token));
        tell(&state, self.side, |token| Readiness { token, readable: true, closed: false, writable: true });
    }

    fn read(&self, room: &mut [u8]) -> io::Result<usize> {
        let mut state = self.wire.state();
        let direction = &mut state.directions[1 - self.side];
        let count = room.len().min(direction.arrived.len());
        if count > 0 {
            for (slot, byte) in room.iter_mut().zip(direction.arrived.drain(..count)) {
                *slot = byte;
            }
            return Ok(count);
        }
        if direction.shut && direction.due.is_empty() {
            return Ok(0);
        }
        if state.broken[self.side] { Err(ErrorKind::ConnectionReset.into()) } else { Err(ErrorKind::WouldBlock.into()) }
    }

    fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut state = self.wire.state();
        if state.broken[self.side] {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let Some(world) = self.wire.world.upgrade() else { return Err(ErrorKind::BrokenPipe.into()) };
        let direction = &mut state.directions[self.side];
        if direction.room == 0 {
            direction.wants_room = true;
            return Err(ErrorKind::WouldBlock.into());
        }
        let offered: usize = slices.iter().map(|slice| slice.len()).sum();
        let fits = offered.min(direction.room);
        let taken = world.choose(|choices| if fits > 1 && choices.one_in(8) { 1 + choices.below(fits) } else { fits });
        let mut left = taken;
        for slice in slices {
            let part = left.min(slice.len());
            direction.under_way.extend(&slice[..part]);
            left -= part;
        }
        direction.room -= taken;
        self.wire.dispatch(&world, &mut state, self.side, taken);
        self.wire.set_off(&mut state, self.side);
        Ok(taken)
    }

    fn shut(&self) {
        let mut state = self.wire.state();
        state.broken[self.side] = true;
        state.readers[self.side] = None;
        if !std::mem::replace(&mut state.directions[self.side].shut, true) {
            if let Some(world) = self.wire.world.upgrade()
                && !state.cut
                && !world.latency(self.wire.between[self.side], self.wire.between[1 - self.side]).is_zero()
            {
                // The close takes the same route as the bytes before it.
                self.wire.dispatch(&world, &mut state, self.side, 0);
            }
            self.wire.set_off(&mut state, self.side);
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.shut();
    }
}
