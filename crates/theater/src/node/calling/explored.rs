//! All interleavings of the calls of two theaters within bounds: first calls that cross, lost calls and replies, broken
//! connections, and links that are given up. Each end finds out at a time of its own that a connection is broken.
//!
//! Two properties are checked in each state. Two ends that have exchanged anything belong to one link. A link that no end has
//! given up is not lost. A third property is checked from each state on, under the assumption that nothing breaks any more: both
//! theaters call at the same times, repeatedly, and are connected soon.

use std::collections::HashSet;

use super::*;

/// Maximum number of rounds, with all calls answered, until there is a connection.
const ROUNDS_MAX: usize = 24;

/// The link of an end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Link {
    number: u64,
    calls: Calling,
    /// The number of the link at the other end that this end has received something from.
    received_from: Option<u64>,
    /// The number of the link at the other end that has received something from this one.
    received_by: Option<u64>,
    /// The wire of its connection.
    wire: Option<u64>,
}

impl Link {
    fn sight(&self) -> Sight {
        Sight { number: self.number, has_received: self.received_from.is_some(), is_connected: self.wire.is_some() }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct End {
    link: Option<Link>,
    links: u64,
    /// The end wants a link, and calls until it has one.
    wants: bool,
    /// A first call is in progress, for the link of this number.
    calls: Option<u64>,
    has_lost: bool,
    /// The number of the lost link at the other end.
    lost: Option<u64>,
    /// The end is about to shut down.
    leaves: bool,
}

/// A call or a reply in transit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Under {
    /// To the other end. `again`: the calling link and the number of its next connection, unless it is a first call.
    Call { from: usize, asks: Said, wire: u64, again: Option<(u64, u64)> },
    /// Back to the caller.
    Reply { to: usize, asks: Said, says: Says, wire: u64, again: Option<(u64, u64)> },
}

/// The same as [`Asks`], with an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Said {
    First { knows: bool, has_lost: bool, number: u64 },
    Again { connection: u64, number: u64, link: Option<u64> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Says {
    Busy,
    Refused,
    GoOn {
        link: u64,
    },
    /// To a first call. The caller is not told whether the connection is used.
    Hello {
        link: u64,
    },
    /// The call or its reply was lost.
    Nothing,
}

/// Bounds of future events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Bounds {
    /// Maximum number of lost calls, lost replies and broken connections.
    faults: u32,
    /// Maximum number of links given up without a connection.
    losses: u32,
    /// Maximum number of ends that shut down.
    leaves: u32,
    /// Maximum number of calls before the last rounds.
    calls: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    ends: [End; 2],
    under: Vec<Under>,
    wires: u64,
    bounds: Bounds,
    /// No end has given a link up.
    no_loss: bool,
}

impl World {
    fn new(wants: [bool; 2], bounds: Bounds) -> World {
        let ends = wants.map(|wants| End { wants, ..End::default() });
        World { ends, under: Vec::new(), wires: 0, bounds, no_loss: true }
    }

    fn put(&mut self, under: Under) {
        self.under.push(under);
        self.under.sort();
    }

    fn call(&mut self, from: usize, asks: Said, again: Option<(u64, u64)>) {
        self.wires += 1;
        let wire = self.wires;
        self.put(Under::Call { from, asks, wire, again });
    }

    /// Returns the request of a first call for the link of this number.
    fn first(&self, from: usize, number: u64) -> Said {
        let end = &self.ends[from];
        Said::First { knows: end.link.is_some(), has_lost: end.has_lost, number }
    }

    /// Returns a number for a link of `end`.
    fn number(&mut self, end: usize) -> u64 {
        self.ends[end].links += 1;
        self.ends[end].links
    }

    /// Starts a first call of `end` if it wants a link and has none.
    fn begin(&mut self, end: usize) -> bool {
        let begins = self.ends[end].wants && self.ends[end].calls.is_none() && !self.ends[end].leaves;
        if begins {
            let number = self.number(end);
            self.ends[end].calls = Some(number);
            self.call(end, self.first(end, number), None);
        }
        begins
    }

    /// Runs the housekeeper of `end` for its link.
    fn tick(&mut self, end: usize, is_late: bool) -> bool {
        let leaves = self.ends[end].leaves;
        let Some(link) = &mut self.ends[end].link else { return false };
        if link.wire.is_some() {
            link.calls.connects();
            return false;
        }
        let number = link.number;
        match link.calls.due(link.sight(), leaves, is_late, end == 0) {
            None => return false,
            Some(Due::Again { connection, link }) => {
                let asks = Said::Again { connection, number, link };
                self.call(end, asks, Some((number, connection)));
            }
            Some(Due::Anew) => self.call(end, self.first(end, number), Some((number, 0))),
        }
        true
    }

    /// Delivers a call or a reply in transit.
    fn arrive(&mut self, at: usize) -> Result<(), String> {
        match self.under.remove(at) {
            Under::Call { from, asks, wire, again } => {
                let says = self.take_call(1 - from, asks, wire)?;
                self.put(Under::Reply { to: from, asks, says, wire, again });
                Ok(())
            }
            Under::Reply { to, asks, says, wire, again } => self.take_reply(to, asks, says, wire, again),
        }
    }

    fn take_call(&mut self, at: usize, said: Said, wire: u64) -> Result<Says, String> {
        let asks = match said {
            Said::First { knows, has_lost, number } => Asks::First { knows, has_lost, number: Some(number) },
            Said::Again { connection, number, link } => Asks::Again { connection, number: Some(number), link },
        };
        if self.ends[at].leaves && matches!(asks, Asks::First { .. }) {
            // This end does not make the link that the caller was about to make, or has made.
            self.no_loss &= self.ends[at].link.is_some();
            return Ok(Says::Nothing);
        }
        let (calls, is_lower) = (self.ends[at].calls.is_some(), at == 0);
        if let Some(link) = &mut self.ends[at].link {
            match link.calls.answer(link.sight(), asks, calls, is_lower) {
                Answer::Busy => return Ok(Says::Busy),
                Answer::Another | Answer::GivenUp => return Ok(Says::Refused),
                Answer::Known => return Ok(Says::Hello { link: link.number }),
                Answer::GoOn => {
                    link.wire = Some(wire);
                    return Ok(Says::GoOn { link: link.number });
                }
                Answer::Adopt => {
                    link.wire = Some(wire);
                    return Ok(Says::Hello { link: link.number });
                }
                Answer::Lose | Answer::Make => self.lose(at)?,
            }
        }
        let lost = self.ends[at].has_lost.then_some(self.ends[at].lost);
        let without = Without { calls, lost, is_forgetting: false };
        Ok(match answer_without(asks, without, is_lower) {
            Answer::Make => {
                let number = self.number(at);
                let known_as = match asks {
                    Asks::First { number, .. } | Asks::Again { number, .. } => number,
                };
                self.make(at, Calling::new(false, known_as), number, wire);
                Says::Hello { link: number }
            }
            Answer::GivenUp => Says::Refused,
            _ => Says::Busy,
        })
    }

    fn make(&mut self, at: usize, calls: Calling, number: u64, wire: u64) {
        let end = &mut self.ends[at];
        end.link = Some(Link { number, calls, received_from: None, received_by: None, wire: Some(wire) });
        (end.wants, end.has_lost) = (false, false);
    }

    fn lose(&mut self, at: usize) -> Result<(), String> {
        if self.no_loss && !self.ends[at].leaves {
            return Err(format!("end {at} loses its link, which no end has given up"));
        }
        let end = &mut self.ends[at];
        end.lost = end.link.as_ref().and_then(|link| link.calls.known_as);
        // The end that has lost it has something to send.
        (end.link, end.has_lost, end.wants) = (None, true, !end.leaves);
        Ok(())
    }

    fn take_reply(
        &mut self,
        at: usize,
        asks: Said,
        says: Says,
        wire: u64,
        again: Option<(u64, u64)>,
    ) -> Result<(), String> {
        let outcome = match (asks, says) {
            (_, Says::Busy) => Outcome::Busy,
            (_, Says::Nothing) => Outcome::Nothing,
            (Said::Again { connection, .. }, Says::GoOn { link: theirs }) => {
                // A later call may have been prepared since then.
                let link = self.ends[at].link.as_mut().filter(|link| again == Some((link.number, connection)));
                if let Some(link) = link.filter(|link| link.calls.connection == connection) {
                    link.calls.goes_on(link.sight(), Some(theirs));
                    link.wire = Some(wire);
                }
                Outcome::GoesOn
            }
            (Said::Again { .. }, _) => {
                let number = self.ends[at].link.as_ref().map(|link| link.number);
                if number.is_some() && number == again.map(|(number, _)| number) {
                    self.lose(at)?;
                }
                return Ok(());
            }
            (Said::First { knows, number, .. }, Says::Hello { link: theirs }) => {
                self.find(at, (knows, number, again.is_none()), theirs, wire);
                Outcome::Nothing
            }
            (Said::First { knows, number, .. }, Says::Refused) => {
                let said = Claim { knows, number: Some(number) };
                if self.ends[at].link.as_ref().is_some_and(|link| Calling::is_lost_to_peer(link.sight(), said)) {
                    self.lose(at)?;
                }
                Outcome::Nothing
            }
            (Said::First { .. }, Says::GoOn { .. }) => Outcome::Nothing,
        };
        match again {
            Some((number, _)) => {
                if let Some(link) = self.ends[at].link.as_mut().filter(|link| link.number == number) {
                    link.calls.note_outcome(outcome);
                }
            }
            None => self.ends[at].calls = None,
        }
        Ok(())
    }

    /// Handles the answer to a first call: the number of a link.
    fn find(&mut self, at: usize, (knows, number, is_first): (bool, u64, bool), theirs: u64, wire: u64) {
        let end = &mut self.ends[at];
        match &mut end.link {
            // A link that was not found is called once more.
            Some(link) => {
                let said = Claim { knows, number: Some(number) };
                let is_found = link.calls.finds_itself(link.sight(), said, Some(theirs));
                end.wants = if is_first { !is_found } else { end.wants };
            }
            None if makes(knows, Some(theirs), end.lost) && !end.leaves => {
                self.make(at, Calling::new(true, Some(theirs)), number, wire)
            }
            // An end that shuts down does not have the link that the other one has made for it.
            None => self.no_loss &= !end.leaves,
        }
    }

    /// Returns the wire that both ends are connected by.
    fn common(&self) -> Option<u64> {
        let [one, other] = self.ends.each_ref().map(|end| end.link.as_ref().and_then(|link| link.wire));
        one.filter(|_| one == other)
    }

    /// Returns whether the end may find its connection broken: the other end does not have it, and never will.
    fn is_broken(&self, end: usize) -> bool {
        let Some(wire) = self.ends[end].link.as_ref().and_then(|link| link.wire) else { return false };
        let comes = |under: &Under| matches!(under, Under::Reply { wire: its, .. } if *its == wire);
        self.common().is_none() && !self.under.iter().any(comes)
    }

    fn break_at(&mut self, end: usize) {
        if let Some(link) = &mut self.ends[end].link {
            link.wire = None;
        }
    }

    /// Receives something at this end.
    fn receive(&mut self, at: usize) -> Result<bool, String> {
        if self.common().is_none() {
            return Ok(false);
        }
        let [local, remote] = [at, 1 - at].map(|end| self.ends[end].link.as_ref().map(|link| link.number));
        let mut is_new = false;
        for (end, other) in [(at, remote), (1 - at, local)] {
            let Some(link) = &mut self.ends[end].link else { return Ok(false) };
            let met = if end == at { &mut link.received_from } else { &mut link.received_by };
            if met.is_some() && *met != other {
                return Err(format!("link {} of end {end} is one with {met:?}, and with {other:?}", link.number));
            }
            is_new |= met.is_none();
            *met = other;
        }
        Ok(is_new)
    }

    /// Returns all possible next worlds.
    fn next(&self) -> Result<Vec<World>, String> {
        let mut all = Vec::new();
        let mut step = |act: &mut dyn FnMut(&mut World) -> Result<bool, String>| -> Result<(), String> {
            let mut world = self.clone();
            if act(&mut world)? {
                all.push(world);
            }
            Ok(())
        };
        for at in 0..self.under.len() {
            step(&mut |world| world.arrive(at).map(|()| true))?;
            if self.bounds.faults > 0 {
                step(&mut |world| {
                    world.bounds.faults -= 1;
                    world.drop_one(at);
                    Ok(true)
                })?;
            }
        }
        for end in 0..2 {
            if self.bounds.calls > 0 {
                for is_late in [false, true] {
                    step(&mut |world| {
                        world.bounds.calls -= 1;
                        Ok(world.tick(end, is_late))
                    })?;
                }
                step(&mut |world| {
                    world.bounds.calls -= 1;
                    Ok(world.begin(end))
                })?;
            }
            if self.is_broken(end) {
                step(&mut |world| {
                    world.break_at(end);
                    Ok(true)
                })?;
            }
            if self.bounds.faults > 0 && self.common().is_some() {
                step(&mut |world| {
                    world.bounds.faults -= 1;
                    world.break_at(end);
                    Ok(true)
                })?;
            }
            if self.bounds.losses > 0 && self.ends[end].link.as_ref().is_some_and(|link| link.wire.is_none()) {
                step(&mut |world| {
                    world.bounds.losses -= 1;
                    world.no_loss = false;
                    world.lose(end).map(|()| true)
                })?;
            }
        }
        for end in 0..2 {
            step(&mut |world| world.receive(end))?;
            if self.bounds.leaves > 0 && !self.ends[end].leaves {
                step(&mut |world| {
                    world.bounds.leaves -= 1;
                    (world.ends[end].leaves, world.ends[end].wants) = (true, false);
                    Ok(true)
                })?;
            }
        }
        Ok(all)
    }

    /// Loses a call or a reply: the caller receives nothing.
    fn drop_one(&mut self, at: usize) {
        let (to, asks, wire, again) = match self.under.remove(at) {
            Under::Call { from, asks, wire, again } => (from, asks, wire, again),
            Under::Reply { to, asks, wire, again, .. } => (to, asks, wire, again),
        };
        self.put(Under::Reply { to, asks, says: Says::Nothing, wire, again });
    }

    /// Checks that both ends connect if nothing breaks any more and both act at the same times. All calls of `mute` are lost.
    /// Returns the reason if they are not connected in the end.
    fn settles(mut self, mute: Option<usize>) -> Result<(), String> {
        for _ in 0..ROUNDS_MAX {
            // Lost calls end first, because there are pauses between them.
            let is_mute = |under: &Under| matches!(under, Under::Call { from, .. } if mute == Some(*from));
            while let Some(at) = self.under.iter().position(is_mute) {
                self.drop_one(at);
            }
            let is_nothing = |under: &Under| matches!(under, Under::Reply { says: Says::Nothing, .. });
            while let Some(at) = self.under.iter().position(is_nothing) {
                self.arrive(at)?;
            }
            // All calls in transit arrive before their replies do.
            while let Some(at) = self.under.iter().position(|under| matches!(under, Under::Call { .. })) {
                self.arrive(at)?;
            }
            while !self.under.is_empty() {
                self.arrive(0)?;
            }
            for end in 0..2 {
                if self.is_broken(end) {
                    self.break_at(end);
                }
            }
            if self.common().is_some() {
                return self.receive(0).and(self.receive(1)).map(drop);
            }
            if self.ends.iter().any(|end| end.leaves) && !self.ends.iter().any(|end| end.leaves && end.link.is_some()) {
                return Ok(());
            }
            // An end that shuts down takes no first calls.
            let may_want = !self.ends.iter().any(|end| end.leaves);
            let goes_on = |end: &End| end.link.as_ref().is_some_and(|link| link.calls.called || end.leaves);
            let calls = |end: &End| end.wants && may_want || goes_on(end);
            if self.ends.iter().enumerate().all(|(at, end)| mute == Some(at) || mute.is_some() && !calls(end)) {
                // No end calls whose calls arrive.
                return Ok(());
            }
            if self.ends.iter().all(|end| end.link.is_none() && !end.wants) {
                return Ok(());
            }
            for end in 0..2 {
                self.tick(end, true);
                self.begin(end);
            }
        }
        Err(format!("they are not connected in the end, with {mute:?} mute: {self:?}"))
    }

    /// Numbers the wires anew.
    fn normal(mut self) -> World {
        let mut seen: Vec<u64> = self
            .under
            .iter()
            .map(|under| match under {
                Under::Call { wire, .. } | Under::Reply { wire, .. } => *wire,
            })
            .collect();
        seen.extend(self.ends.iter().filter_map(|end| end.link.as_ref()?.wire));
        seen.sort_unstable();
        seen.dedup();
        let new = |wire: u64| seen.binary_search(&wire).map_or(0, |at| at as u64 + 1);
        for under in &mut self.under {
            match under {
                Under::Call { wire, .. } | Under::Reply { wire, .. } => *wire = new(*wire),
            }
        }
        for link in self.ends.iter_mut().filter_map(|end| end.link.as_mut()) {
            link.wire = link.wire.map(new);
        }
        self.wires = seen.len() as u64;
        self.under.sort();
        self
    }
}

/// Returns the number of states.
fn explore(world: World) -> Result<usize, String> {
    let mut seen = HashSet::new();
    let mut open = vec![world.normal()];
    seen.insert(open[0].clone());
    while let Some(world) = open.pop() {
        let at = |why: String| format!("{why}\nin {world:?}");
        for mute in [None, Some(0), Some(1)] {
            world.clone().settles(mute).map_err(at)?;
        }
        for next in world.next().map_err(at)? {
            let next = next.normal();
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    Ok(seen.len())
}

/// Explores, and prints the number of states.
fn check(wants: [bool; 2], bounds: Bounds) {
    let states = explore(World::new(wants, bounds)).unwrap_or_else(|why| panic!("{why}"));
    println!("{wants:?} want a link, {bounds:?}: {states} states");
    assert!(states > 1_000, "{states}");
}

// GUARANTEE: A network failure is a broken connection
#[test]
fn calls_that_cross_and_fail_end_in_one_link() {
    check([true, false], Bounds { faults: 5, losses: 0, leaves: 0, calls: 7 });
    check([false, true], Bounds { faults: 5, losses: 0, leaves: 0, calls: 7 });
    check([true, true], Bounds { faults: 4, losses: 0, leaves: 0, calls: 7 });
}

// GUARANTEE: A theater that ends is lost at once
#[test]
fn an_end_that_leaves_is_noticed_or_already_given_up() {
    check([true, false], Bounds { faults: 2, losses: 1, leaves: 2, calls: 5 });
    check([true, true], Bounds { faults: 2, losses: 1, leaves: 2, calls: 4 });
}

// GUARANTEE: A lost theater is reported
#[test]
fn links_that_are_given_up_and_made_anew_are_not_mixed_up() {
    check([true, false], Bounds { faults: 2, losses: 1, leaves: 0, calls: 6 });
    check([false, true], Bounds { faults: 2, losses: 1, leaves: 0, calls: 6 });
    check([true, true], Bounds { faults: 2, losses: 2, leaves: 0, calls: 5 });
}
