//! All interleavings of small programs, explored with `stateright`.
//!
//! Any step may come next: a second passes, a place handles a tick, an ask, the ledger carries out a request, a
//! result is unknown, a write takes effect after its place has given it up, a detector errs, a place hands a slot over, or leaves. A link keeps the
//! newest ask, and older ones are lost. The answer comes at once: it proves the same at any later time, if it still counts. A place that handles nothing is paused or cut off. Time has an end, and the
//! faults of a program are counted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use stateright::{Checker, Model, Property};

use crate::{Config, Effect, Input, MemberId, Membership, Message, Outcome, RequestId, Status, Stored, Timing, View};

/// A program: the places that are active at the start, and the number of each event.
#[derive(Clone, Copy, Debug)]
struct Program {
    /// The places; those from `active` on join.
    places: usize,
    active: usize,
    seconds: u64,
    outage: u64,
    gone: u8,
    /// Unknown results of writes.
    unknown: u8,
    hand_overs: u8,
    leaves: u8,
    slots: u32,
}

/// Two active places. Within 3 seconds, a lease ends and an heir has waited.
const PAIR: Program =
    Program { places: 2, active: 2, seconds: 3, outage: 2, gone: 0, unknown: 0, hand_overs: 0, leaves: 0, slots: 1 };

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Request {
    Read(RequestId),
    Write {
        id: RequestId,
        expected: u64,
        view: Arc<View>,
    },
    /// The result of a read, on its way back.
    Done(Input),
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
    left: [u8; 4],
    flaw: Option<&'static str>,
    /// The last epoch of each slot that a place has opened.
    epochs: Vec<u64>,
    /// The place of each ownership, by slot and epoch.
    owned: BTreeMap<(usize, u64), usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Second,
    Tick(usize),
    Ask(usize, usize),
    Serve(usize),
    Unknown(usize),
    Late(usize),
    Gone(usize, usize),
    HandOver(usize, usize),
    Closed(usize),
    Leave(usize),
}

// The indices of `State::left`.
const GONE: usize = 0;
const UNKNOWN: usize = 1;
const HAND_OVERS: usize = 2;
const LEAVES: usize = 3;

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
                Effect::Own { slot, epoch } => {
                    self.closing[place].retain(|closing| closing.0 != slot);
                    if self.owned.insert((slot, epoch), place).is_some() {
                        self.flaw = Some("an epoch has two owners");
                    }
                }
                Effect::Open { slot, epoch } => {
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
                self.requests[place] = Some(Request::Done(Input::Read { id, result }));
            }
            Request::Done(input) => self.give(place, input),
            Request::Write { id, expected, view } => {
                let outcome = self.write(expected, &view);
                self.give(place, Input::Wrote { id, outcome });
            }
        }
    }

    fn runners(&self, slot: usize) -> impl Iterator<Item = u64> {
        self.machines.iter().flatten().filter_map(move |machine| machine.runs(slot, self.clock()))
    }

    /// Checks the two kinds of running.
    fn check(&mut self, slot: usize) {
        let fenced: Vec<u64> =
            self.machines.iter().flatten().filter_map(|machine| machine.runs_fenced(slot, self.clock())).collect();
        let runners: Vec<u64> = self.runners(slot).collect();
        if runners.len() > 1 {
            self.flaw = Some("a slot runs twice");
        } else if runners.first().is_some_and(|epoch| fenced.iter().min() != Some(epoch)) {
            self.flaw = Some("a former owner runs beside a later one");
        }
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
        let ms = Duration::from_millis;
        let outage = ms(self.outage * 1000);
        let timing = Timing { renew: ms(1500), lease: ms(2000), wait: ms(2500), outage };
        let config = Config { timing, cluster: 1, slots: self.slots };
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
            left: [self.gone, self.unknown, self.hand_overs, self.leaves],
            flaw: None,
            epochs: vec![0; self.slots as usize],
            owned: BTreeMap::new(),
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
                Some(Request::Read(_) | Request::Done(_)) => steps.push(Step::Serve(place)),
                None => {}
            }
            let Some(machine) = machine else { continue };
            if machine.next_tick().is_some_and(|next| next <= state.clock()) {
                steps.push(Step::Tick(place));
            }
            if !state.closing[place].is_empty() {
                steps.push(Step::Closed(place));
            }
            if state.left[LEAVES] > 0 {
                steps.push(Step::Leave(place));
            }
            for other in (0..self.places).filter(|other| *other != place) {
                let knows = machine.view().is_some_and(|view| view.members.contains_key(&id(other)));
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
            Step::Gone(place, other) => {
                state.left[GONE] -= 1;
                state.give(place, Input::Gone(id(other)));
            }
            Step::HandOver(place, other) => {
                state.left[HAND_OVERS] -= 1;
                state.give(place, Input::HandOver { slot: 0, to: id(other) });
            }
            Step::Closed(place) => {
                let (slot, epoch) = state.closing[place].pop()?;
                if let Some(machine) = &mut state.machines[place] {
                    machine.closed(slot, epoch);
                }
                state.give(place, Input::Tick);
            }
            Step::Leave(place) => {
                state.left[LEAVES] -= 1;
                state.give(place, Input::Leave);
            }
        }
        (0..self.slots as usize).for_each(|slot| state.check(slot));
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

/// Explores a program, the shortest orders first, to its end or up to a number of states. Returns whether a slot gets another owner in
/// some order.
fn explore(program: Program) -> bool {
    let states = std::env::var("PLAYHOUSE_CLUSTER_STATES").map_or(80_000, |value| value.parse().expect("a number"));
    let checker = program.checker().target_state_count(states).threads(2).spawn_bfs().join();
    let whole = if checker.state_count() < states { "all" } else { "the first" };
    let (found, depth) = (checker.unique_state_count(), checker.max_depth());
    println!("{program:?}: {whole} {found} states, up to {depth} steps");
    if let Some(path) = checker.discovery("no flaw") {
        let flaw = path.last_state().flaw;
        panic!("{program:?}: {flaw:?} after {:#?}", path.into_actions());
    }
    checker.discovery("another owner").is_some()
}

// GUARANTEE: One owner of a slot
#[test]
fn a_member_that_seems_gone_runs_nothing_when_its_heir_does() {
    assert!(explore(Program { gone: 1, seconds: 4, ..PAIR }));
    assert!(explore(Program { gone: 1, unknown: 1, ..PAIR }));
    assert!(explore(Program { gone: 1, slots: 2, ..PAIR }));
    assert!(!explore(Program { ..PAIR }));
}

// GUARANTEE: One owner of a slot
#[test]
fn a_hand_over_and_a_leave_need_no_wait() {
    assert!(explore(Program { hand_overs: 1, ..PAIR }));
    assert!(explore(Program { leaves: 1, ..PAIR }));
    explore(Program { hand_overs: 1, gone: 1, ..PAIR });
}

/// The joining place takes over later than an exploration reaches: the scenes and the walks have that.
#[test]
fn a_joining_place_beside_a_sole_one_agrees() {
    explore(Program { active: 1, gone: 1, outage: 0, seconds: 4, ..PAIR });
}

// GUARANTEE: One owner of a slot
#[test]
fn three_places_agree() {
    explore(Program { places: 3, active: 3, gone: 1, ..PAIR });
    explore(Program { places: 3, gone: 1, ..PAIR });
}
