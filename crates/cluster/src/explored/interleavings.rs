//! All interleavings of small programs, explored with `stateright`.
//!
//! Any step may come next: a second passes, a place handles a tick, an ask, the ledger carries out a request, a
//! result is unknown, a write takes effect after its place has given it up, a detector errs, a place crashes, hands a slot over, or leaves. A link keeps the
//! newest ask, and older ones are lost. The answer comes at once: it proves the same at any later time, if it still counts. A place that handles nothing is paused or cut off. Time has an end, and the
//! faults of a program are counted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use stateright::{Checker, Model, Property};

use crate::{
    Config, Effect, Input, MemberId, Membership, Message, Outcome, RequestId, Status, Stored, View,
};

/// A program: the places that are active at the start, and the number of each event.
#[derive(Clone, Copy, Debug)]
struct Program {
    /// The places; those from `active` on join.
    places: usize,
    active: usize,
    seconds: u64,
    outage: u64,
    suspicions: u8,
    gone: u8,
    crashes: u8,
    /// Unknown results of writes.
    unknown: u8,
    hand_overs: u8,
    leaves: u8,
    slots: u32,
}

const QUIET: Program = Program {
    places: 2,
    active: 2,
    seconds: 5,
    outage: 3,
    suspicions: 0,
    gone: 0,
    crashes: 0,
    unknown: 0,
    hand_overs: 0,
    leaves: 0,
    slots: 1,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Request {
    Read(RequestId),
    Write { id: RequestId, expected: u64, view: Arc<View> },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    now: u64,
    end: u64,
    machines: Vec<Option<Membership>>,
    requests: Vec<Option<Request>>,
    closing: Vec<Vec<(usize, u64)>>,
    /// Writes that their places have given up.
    late: Vec<(u64, Arc<View>)>,
    asks: BTreeMap<(usize, usize), Message>,
    stored: Option<(Arc<View>, u64)>,
    left: [u8; 6],
    flaw: Option<&'static str>,
    epochs: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Second,
    Tick(usize),
    Ask(usize, usize),
    Serve(usize),
    Unknown(usize),
    Late(usize),
    Suspect(usize, usize),
    Gone(usize, usize),
    Crash(usize),
    HandOver(usize, usize),
    Closed(usize),
    Leave(usize),
}

const SUSPICIONS: usize = 0;
const GONE: usize = 1;
const CRASHES: usize = 2;
const UNKNOWN: usize = 3;
const HAND_OVERS: usize = 4;
const LEAVES: usize = 5;

fn id(place: usize) -> MemberId {
    MemberId(place as u64 + 1)
}

impl State {
    fn clock(&self) -> Duration {
        Duration::from_secs(self.now)
    }

    fn give(&mut self, place: usize, input: Input) {
        let clock = self.clock();
        let Some(machine) = &mut self.machines[place] else { return };
        for effect in machine.step(clock, input) {
            match effect {
                Effect::Read { id } => self.request(place, Request::Read(id)),
                Effect::Write { id, expected, view } => self.request(place, Request::Write { id, expected, view }),
                Effect::Send { to, message } => {
                    let to = to.0 as usize - 1;
                    if let Message::Ask { .. } = message {
                        self.asks.insert((place, to), message);
                    } else {
                        self.give(to, Input::Received { from: id(place), message });
                    }
                }
                Effect::Open { slot, epoch } => {
                    self.closing[place].retain(|closing| closing.0 != slot);
                    if std::mem::replace(&mut self.epochs[slot], epoch) >= epoch {
                        self.flaw = Some("an epoch does not rise");
                    }
                }
                Effect::Close { slot, epoch, .. } => self.closing[place].push((slot, epoch)),
                Effect::Refused { .. } | Effect::Ended(_) => {}
                Effect::Frozen => self.flaw = Some("frozen"),
            }
        }
    }

    fn request(&mut self, place: usize, request: Request) {
        if let Some(Request::Write { expected, view, .. }) = self.requests[place].replace(request)
            && self.revision() == expected
        {
            self.late.push((expected, view));
        }
    }

    fn revision(&self) -> u64 {
        self.stored.as_ref().map_or(0, |(_, revision)| *revision)
    }

    fn write(&mut self, expected: u64, view: &Arc<View>) -> Outcome {
        if self.revision() != expected {
            return Outcome::Conflict;
        }
        self.stored = Some((Arc::clone(view), expected + 1));
        let late = std::mem::take(&mut self.late);
        self.late = late.into_iter().filter(|(expected, _)| *expected == self.revision()).collect();
        Outcome::Written { revision: expected + 1 }
    }

    fn serve(&mut self, place: usize) {
        let Some(request) = self.requests[place].take() else { return };
        match request {
            Request::Read(id) => {
                let result = Ok(self.stored.clone().map(|(view, revision)| Stored { view, revision }));
                self.give(place, Input::Read { id, result });
            }
            Request::Write { id, expected, view } => {
                let outcome = self.write(expected, &view);
                self.give(place, Input::Wrote { id, outcome });
            }
        }
    }

    fn runners(&self, slot: usize) -> impl Iterator<Item = (usize, u64)> {
        let runs = move |machine: &Option<Membership>| machine.as_ref()?.runs(slot, self.clock());
        self.machines.iter().enumerate().filter_map(move |(place, machine)| Some((place, runs(machine)?)))
    }

    /// Lets everything happen in order, without time.
    fn settle(&mut self) {
        loop {
            let before = self.clone();
            for place in 0..self.machines.len() {
                self.serve(place);
            }
            while let Some(((from, to), message)) = self.asks.pop_first() {
                self.give(to, Input::Received { from: id(from), message });
            }
            if *self == before {
                return;
            }
        }
    }
}

impl Model for Program {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let second = Duration::from_secs;
        let config = Config {
            renew: second(2),
            lease: second(3),
            wait: second(4),
            outage: second(self.outage),
            cluster: 1,
            slots: self.slots,
        };
        let places = self.places;
        let mut state = State {
            now: 0,
            end: 0,
            machines: vec![None; places],
            requests: vec![None; places],
            closing: vec![Vec::new(); places],
            late: Vec::new(),
            asks: BTreeMap::new(),
            stored: None,
            left: [self.suspicions, self.gone, self.crashes, self.unknown, self.hand_overs, self.leaves],
            flaw: None,
            epochs: vec![0; self.slots as usize],
        };
        for place in 0..places {
            let machine = Membership::new(id(place), String::new(), 1, config.clone());
            state.machines[place] = Some(machine.expect("the settings are possible"));
            state.give(place, Input::Tick);
            let is_active = |(view, _): &(Arc<View>, u64)| {
                view.members.get(&id(place)).is_some_and(|member| member.status == Status::Active)
            };
            while place < self.active && !state.stored.as_ref().is_some_and(is_active) {
                state.settle();
                state.now += 1;
                (0..=place).for_each(|place| state.give(place, Input::Tick));
                state.settle();
            }
        }
        state.end = state.now + self.seconds;
        vec![state]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        if state.flaw.is_some() {
            return;
        }
        if state.now < state.end {
            steps.push(Step::Second);
        }
        steps.extend((0..state.late.len()).map(Step::Late));
        for (place, machine) in state.machines.iter().enumerate() {
            match &state.requests[place] {
                Some(Request::Write { .. }) => {
                    steps.push(Step::Serve(place));
                    if state.left[UNKNOWN] > 0 {
                        steps.push(Step::Unknown(place));
                    }
                }
                Some(Request::Read(_)) => steps.push(Step::Serve(place)),
                None => {}
            }
            let Some(machine) = machine else { continue };
            if machine.next_tick().is_some_and(|next| next <= state.clock()) {
                steps.push(Step::Tick(place));
            }
            if !state.closing[place].is_empty() {
                steps.push(Step::Closed(place));
            }
            if state.left[CRASHES] > 0 {
                steps.push(Step::Crash(place));
            }
            if state.left[LEAVES] > 0 {
                steps.push(Step::Leave(place));
            }
            for other in (0..self.places).filter(|other| *other != place) {
                let knows = machine.view().is_some_and(|view| view.members.contains_key(&id(other)));
                if state.left[SUSPICIONS] > 0 && knows {
                    steps.push(Step::Suspect(place, other));
                }
                if state.left[GONE] > 0 && knows {
                    steps.push(Step::Gone(place, other));
                }
                if state.left[HAND_OVERS] > 0 && machine.runs(0, state.clock()).is_some() {
                    steps.push(Step::HandOver(place, other));
                }
            }
        }
        steps.extend(state.asks.keys().map(|(from, to)| Step::Ask(*from, *to)));
    }

    fn next_state(&self, before: &State, step: Step) -> Option<State> {
        let mut state = before.clone();
        match step {
            Step::Second => state.now += 1,
            Step::Tick(place) => state.give(place, Input::Tick),
            Step::Ask(from, to) => {
                let message = state.asks.remove(&(from, to))?;
                state.give(to, Input::Received { from: id(from), message });
            }
            Step::Serve(place) => state.serve(place),
            Step::Unknown(place) => {
                state.left[UNKNOWN] -= 1;
                let Request::Write { id, expected, view } = state.requests[place].take()? else { return None };
                if state.revision() == expected {
                    state.late.push((expected, view));
                }
                state.give(place, Input::Wrote { id, outcome: Outcome::Unknown });
            }
            Step::Late(at) => {
                let (expected, view) = state.late.remove(at);
                state.write(expected, &view);
            }
            Step::Suspect(place, other) => {
                state.left[SUSPICIONS] -= 1;
                state.give(place, Input::Suspect(id(other)));
            }
            Step::Gone(place, other) => {
                state.left[GONE] -= 1;
                state.give(place, Input::Gone(id(other)));
            }
            Step::Crash(place) => {
                state.left[CRASHES] -= 1;
                state.machines[place] = None;
            }
            Step::HandOver(place, other) => {
                state.left[HAND_OVERS] -= 1;
                state.give(place, Input::HandOver { slot: 0, to: id(other) });
            }
            Step::Closed(place) => {
                let (slot, epoch) = state.closing[place].pop()?;
                state.give(place, Input::Closed { slot, epoch });
            }
            Step::Leave(place) => {
                state.left[LEAVES] -= 1;
                state.give(place, Input::Leave);
            }
        }
        if (0..self.slots as usize).any(|slot| state.runners(slot).count() > 1) {
            state.flaw = Some("a slot runs twice");
        }
        // Messages to places that have ended change nothing.
        let machines = &state.machines;
        state.asks.retain(|(_, to), _| machines[*to].as_ref().is_some_and(|machine| machine.next_tick().is_some()));
        (state != *before).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no flaw", |_, state: &State| state.flaw.is_none()),
            Property::sometimes("another owner", |_, state: &State| state.epochs[0] > 1),
        ]
    }
}

/// Explores a program to its end. Returns whether a slot gets another owner in some order.
fn explore(program: Program) -> bool {
    let checker = program.checker().threads(2).target_state_count(std::env::var("N").map_or(20_000_000, |n| n.parse().expect("a number"))).spawn_bfs().join();
    println!("{program:?}: {} states, up to {} steps", checker.unique_state_count(), checker.max_depth());
    if let Some(path) = checker.discovery("no flaw") {
        let flaw = path.last_state().flaw;
        panic!("{program:?}: {flaw:?} after {:#?}", path.into_actions());
    }
    checker.discovery("another owner").is_some()
}

#[test]
fn probe() {
    let number = |name: &str| std::env::var(name).map_or(0, |value| value.parse::<u64>().expect("a number"));
    if number("P") == 0 { return; }
    let program = Program { places: number("P") as usize, active: number("A") as usize, seconds: number("T"), outage: number("O"), suspicions: number("S") as u8, gone: number("G") as u8, crashes: number("C") as u8, unknown: number("U") as u8, hand_overs: number("H") as u8, leaves: number("L") as u8, slots: 1 };
    println!("{}", explore(program));
}
