//! Places with clocks, a ledger and a network, in true time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::{
    Config, Effect, End, Holder, Input, MemberId, Membership, Message, Outcome, ReadError, RequestId, Status, Stored,
    Timing, View,
};

/// The settings of all explorations but the exhaustive ones. Clocks differ by a tenth.
pub(super) fn config(slots: u32) -> Config {
    let ms = Duration::from_millis;
    let timing = Timing { renew: ms(100), lease: ms(400), wait: ms(440), outage: ms(1000) };
    Config { timing, cluster: 1, slots }
}

pub(super) const MS: u64 = 1000;

/// A process. Its clock shows `offset + true time * rate / 1000`.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) machine: Option<Membership>,
    pub(super) offset: u64,
    pub(super) rate: u64,
    pub(super) paused_until: u64,
    pub(super) has_ledger: bool,
    /// Whether the host closes slots at once.
    pub(super) closes: bool,
    /// The slots to close.
    pub(super) closing: Vec<(usize, u64)>,
    /// The members that its detector suspects.
    pub(super) suspected: BTreeSet<MemberId>,
    pub(super) ended: Option<End>,
    pub(super) frozen: u64,
    pub(super) leaves: bool,
    pub(super) refused: Vec<(usize, MemberId)>,
}

#[derive(Clone, Debug)]
pub(super) struct Packet {
    pub(super) from: MemberId,
    pub(super) to: MemberId,
    pub(super) at: u64,
    pub(super) message: Message,
}

#[derive(Clone, Debug)]
pub(super) enum Work {
    Read,
    Write { expected: u64, view: Arc<View> },
}

/// A request on its way to the ledger, and its result on the way back.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) from: MemberId,
    pub(super) id: RequestId,
    pub(super) work: Work,
    /// The time of its effect. `None`: it has none.
    pub(super) effect_at: Option<u64>,
    /// The time of its result. `None`: it has none.
    pub(super) result_at: Option<u64>,
    /// Whether the result says nothing.
    pub(super) is_unknown: bool,
    pub(super) result: Option<Input>,
}

/// The way of the next request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fate {
    pub(super) effect: Option<u64>,
    pub(super) result: Option<u64>,
    pub(super) is_unknown: bool,
}

pub(super) const PROMPT: Fate = Fate { effect: Some(MS), result: Some(2 * MS), is_unknown: false };

pub(super) struct World {
    pub(super) config: Config,
    /// The number of versions of the program. Places that start one after another have different ones.
    pub(super) programs: u64,
    pub(super) now: u64,
    pub(super) places: Vec<(MemberId, Place)>,
    pub(super) packets: VecDeque<Packet>,
    pub(super) requests: Vec<Request>,
    pub(super) stored: Option<(Arc<View>, u64)>,
    /// All values that the ledger ever had.
    pub(super) history: Vec<(Arc<View>, u64)>,
    pub(super) writes: usize,
    pub(super) reads: usize,
    /// The links that lose everything, in this direction.
    pub(super) cuts: BTreeSet<(MemberId, MemberId)>,
    pub(super) latency: Box<dyn FnMut() -> Option<u64>>,
    pub(super) fate: Box<dyn FnMut() -> Fate>,
    pub(super) has_hints: bool,
    /// The member of each ownership.
    pub(super) owned: BTreeMap<(usize, u64), MemberId>,
    /// The last epoch of each slot that a member has opened.
    pub(super) epochs: BTreeMap<usize, u64>,
    /// Whether the ledger was restored to an older state, so that epochs may repeat.
    pub(super) is_restored: bool,
    /// Whether the log is kept.
    pub(super) is_told: bool,
    pub(super) log: Vec<String>,
    pub(super) name: String,
}

impl World {
    pub(super) fn new(config: Config) -> World {
        World {
            config,
            programs: 1,
            now: 0,
            places: Vec::new(),
            packets: VecDeque::new(),
            requests: Vec::new(),
            stored: None,
            history: Vec::new(),
            writes: 0,
            reads: 0,
            cuts: BTreeSet::new(),
            latency: Box::new(|| Some(MS)),
            fate: Box::new(|| PROMPT),
            has_hints: true,
            owned: BTreeMap::new(),
            epochs: BTreeMap::new(),
            is_restored: false,
            is_told: false,
            log: Vec::new(),
            name: String::new(),
        }
    }

    /// Starts a place with this clock, and returns its incarnation.
    pub(super) fn start_with(&mut self, offset: u64, rate: u64) -> MemberId {
        let id = MemberId(self.places.len() as u64 + 1);
        let machine = Membership::new(id, format!("127.0.0.1:{}", id.0), id.0 % self.programs, self.config.clone());
        let place = Place {
            machine: Some(machine.expect("the settings are possible")),
            offset,
            rate,
            paused_until: 0,
            has_ledger: true,
            closes: true,
            closing: Vec::new(),
            suspected: BTreeSet::new(),
            ended: None,
            frozen: 0,
            leaves: false,
            refused: Vec::new(),
        };
        self.places.push((id, place));
        self.step(id, Input::Tick);
        id
    }

    pub(super) fn start(&mut self) -> MemberId {
        self.start_with(0, 1000)
    }

    pub(super) fn place(&mut self, id: MemberId) -> &mut Place {
        &mut self.places[id.0 as usize - 1].1
    }

    pub(super) fn machine(&self, id: MemberId) -> Option<&Membership> {
        self.places[id.0 as usize - 1].1.machine.as_ref()
    }

    /// Returns the places whose machine has not ended.
    pub(super) fn live(&self) -> Vec<MemberId> {
        let is_live = |place: &Place| place.machine.is_some() && place.ended.is_none();
        self.places.iter().filter(|(_, place)| is_live(place)).map(|(id, _)| *id).collect()
    }

    pub(super) fn crash(&mut self, id: MemberId) {
        self.place(id).machine = None;
    }

    /// Returns the clock of a place.
    pub(super) fn clock(&self, id: MemberId) -> Duration {
        let place = &self.places[id.0 as usize - 1].1;
        Duration::from_micros(place.offset + self.now * place.rate / 1000)
    }

    /// Reports a closed slot to a place.
    pub(super) fn closed(&mut self, id: MemberId, slot: usize, epoch: u64) {
        if let Some(machine) = &mut self.place(id).machine {
            machine.closed(slot, epoch);
        }
        self.step(id, Input::Tick);
    }

    /// Gives an event to a place, and carries out the effects.
    pub(super) fn step(&mut self, id: MemberId, input: Input) {
        let clock = self.clock(id);
        let Some(machine) = &mut self.place(id).machine else { return };
        let effects = machine.step(clock, input.clone());
        if let Some(next) = machine.next_tick() {
            assert!(next > clock, "{id:?}: the next tick {next:?} is not after {clock:?}");
        }
        if self.is_told {
            self.log.push(format!("{} {} <- {}", self.now / MS, id.0, brief_input(&input)));
        }
        for effect in effects {
            self.carry_out(id, effect);
        }
        self.check();
    }

    fn carry_out(&mut self, id: MemberId, effect: Effect) {
        if self.is_told && !matches!(effect, Effect::Send { .. } | Effect::Read { .. }) {
            self.log.push(format!("{} {} -> {}", self.now / MS, id.0, brief_effect(&effect)));
        }
        match effect {
            Effect::Read { id: request } => {
                self.reads += 1;
                self.request(id, request, Work::Read);
            }
            Effect::Write { id: request, expected, view } => {
                self.writes += 1;
                view.check().expect("only valid views are written");
                self.request(id, request, Work::Write { expected, view });
            }
            Effect::Send { to, message } => {
                if let Some(latency) = (self.latency)() {
                    self.packets.push_back(Packet { from: id, to, at: self.now + latency, message });
                }
            }
            Effect::Own { slot, epoch } => {
                self.place(id).closing.retain(|(closing, _)| *closing != slot);
                if !self.is_restored {
                    let mut own = self.owned.iter().filter(|((owned, _), owner)| *owned == slot && **owner == id);
                    assert!(own.all(|((_, last), _)| *last < epoch), "slot {slot}: {epoch} is old\n{}", self.story());
                    let former = self.owned.insert((slot, epoch), id);
                    assert_eq!(former, None, "slot {slot}: two places own epoch {epoch}\n{}", self.story());
                }
            }
            Effect::Open { slot, epoch } => {
                if !self.is_restored {
                    let owner = self.owned.get(&(slot, epoch));
                    assert_eq!(owner, Some(&id), "slot {slot}: the owner of epoch {epoch}\n{}", self.story());
                    let last = self.epochs.insert(slot, epoch);
                    assert!(
                        last.is_none_or(|last| last < epoch),
                        "slot {slot}: {epoch} after {last:?}\n{}",
                        self.story()
                    );
                }
            }
            Effect::Close { slot, epoch, .. } => self.place(id).closing.push((slot, epoch)),
            Effect::Refused { slot, to } => self.place(id).refused.push((slot, to)),
            Effect::Frozen => self.place(id).frozen += 1,
            Effect::Ended(end) => self.place(id).ended = Some(end),
        }
    }

    fn request(&mut self, from: MemberId, id: RequestId, work: Work) {
        let fate = if self.place(from).has_ledger { (self.fate)() } else { Fate { effect: None, ..PROMPT } };
        let at = |delay: Option<u64>| delay.map(|delay| self.now + delay);
        let is_unknown = fate.is_unknown || fate.effect.is_none();
        let (effect_at, result_at) = (at(fate.effect), at(fate.result));
        self.requests.push(Request { from, id, work, effect_at, result_at, is_unknown, result: None });
    }

    /// Lets the ledger do what is due, in the order of time.
    fn serve(&mut self) {
        let now = self.now;
        let is_due = |at: Option<u64>| at.is_some_and(|at| at <= now);
        let mut due: Vec<usize> = (0..self.requests.len()).filter(|at| is_due(self.requests[*at].effect_at)).collect();
        due.sort_by_key(|at| self.requests[*at].effect_at);
        for at in due {
            self.requests[at].effect_at = None;
            let result = self.apply(self.requests[at].id, self.requests[at].work.clone());
            self.requests[at].result = Some(result);
        }
        let (done, pending): (Vec<Request>, Vec<Request>) =
            std::mem::take(&mut self.requests).into_iter().partition(|request| {
                // A paused place finds the result when it wakes, before it knows how late it is.
                is_due(request.result_at) && self.is_awake(request.from)
            });
        self.requests = pending;
        for mut request in done {
            let unknown = match request.work {
                Work::Read => Input::Read { id: request.id, result: Err(ReadError) },
                Work::Write { .. } => Input::Wrote { id: request.id, outcome: Outcome::Unknown },
            };
            let result = request.result.clone().filter(|_| !request.is_unknown).unwrap_or(unknown);
            if request.effect_at.is_some() {
                // It may still take effect, although its result is known to be unknown.
                request.result_at = None;
                self.requests.push(request.clone());
            }
            self.step(request.from, result);
        }
        self.requests.retain(|request| request.effect_at.is_some() || request.result_at.is_some());
    }

    fn apply(&mut self, id: RequestId, work: Work) -> Input {
        let (expected, view) = match work {
            Work::Read => {
                let stored = self.stored.clone().map(|(view, revision)| Stored { view, revision });
                return Input::Read { id, result: Ok(stored) };
            }
            Work::Write { expected, view } => (expected, view),
        };
        let found = self.stored.as_ref().map_or(0, |(_, revision)| *revision);
        if found != expected {
            return Input::Wrote { id, outcome: Outcome::Conflict };
        }
        let revision = found + 1;
        self.stored = Some((Arc::clone(&view), revision));
        self.history.push((view, revision));
        if self.has_hints {
            for place in self.live() {
                if self.is_awake(place) && self.place(place).has_ledger {
                    self.step(place, Input::Changed);
                }
            }
        }
        Input::Wrote { id, outcome: Outcome::Written { revision } }
    }

    pub(super) fn is_awake(&self, id: MemberId) -> bool {
        self.places[id.0 as usize - 1].1.paused_until <= self.now
    }

    /// Lets everything happen that is due, after some time.
    pub(super) fn pass(&mut self, time: u64) {
        self.now += time;
        self.serve();
        for _ in 0..self.packets.len() {
            let packet = self.packets.pop_front().expect("counted");
            if packet.at > self.now || !self.is_awake(packet.to) {
                self.packets.push_back(packet);
            } else if !self.cuts.contains(&(packet.from, packet.to)) {
                self.step(packet.to, Input::Received { from: packet.from, message: packet.message });
            }
        }
        for id in self.live() {
            if !self.is_awake(id) {
                continue;
            }
            if self.place(id).closes {
                for (slot, epoch) in std::mem::take(&mut self.place(id).closing) {
                    self.closed(id, slot, epoch);
                }
            }
            let clock = self.clock(id);
            if self.machine(id).and_then(Membership::next_tick).is_some_and(|next| next <= clock) {
                self.step(id, Input::Tick);
            }
        }
        self.check();
    }

    /// Lets this many milliseconds pass.
    pub(super) fn run(&mut self, milliseconds: u64) {
        for _ in 0..milliseconds / 5 {
            self.pass(5 * MS);
        }
    }

    /// Returns the places that run a slot, with their epochs.
    pub(super) fn runners(&self, slot: usize) -> Vec<(MemberId, u64)> {
        let runs = |id: MemberId| self.machine(id).and_then(|machine| machine.runs(slot, self.clock(id)));
        self.places.iter().filter_map(|(id, _)| runs(*id).map(|epoch| (*id, epoch))).collect()
    }

    /// Returns the places that run a slot under the protection of its epochs, with these.
    pub(super) fn fenced(&self, slot: usize) -> Vec<(MemberId, u64)> {
        let runs = |id: MemberId| self.machine(id).and_then(|machine| machine.runs_fenced(slot, self.clock(id)));
        self.places.iter().filter_map(|(id, _)| runs(*id).map(|epoch| (*id, epoch))).collect()
    }

    pub(super) fn slots(&self) -> usize {
        self.stored.as_ref().map_or(self.config.slots as usize, |(view, _)| view.slots.len())
    }

    fn check(&self) {
        for slot in 0..self.slots() {
            let runners = self.runners(slot);
            assert!(runners.len() <= 1, "slot {slot} runs at {runners:?}\n{}", self.story());
            let fenced = self.fenced(slot);
            if let Some(runner @ (_, epoch)) = runners.first()
                && !self.is_restored
            {
                let is_last = |other: &(MemberId, u64)| other == runner || other.1 > *epoch;
                let is_fenced = fenced.contains(runner) && fenced.iter().all(is_last);
                assert!(is_fenced, "slot {slot}: {fenced:?} beside {runner:?}\n{}", self.story());
            }
        }
    }

    /// Returns the last events.
    pub(super) fn story(&self) -> String {
        let skip = self.log.len().saturating_sub(400);
        format!("{}\n{}", self.name, self.log[skip..].join("\n"))
    }

    /// Returns the status of a member in the ledger.
    pub(super) fn status(&self, id: MemberId) -> Option<Status> {
        self.stored.as_ref().and_then(|(view, _)| view.members.get(&id)).map(|member| member.status)
    }

    /// Returns the first reason why the cluster is not at rest. At rest all live places are active and run all slots, their loads are level, and
    /// nothing is left of the dead.
    pub(super) fn flaw(&self) -> Option<String> {
        let live = self.live();
        if live.is_empty() {
            return None;
        }
        let Some((view, _)) = &self.stored else { return Some("no view".to_owned()) };
        for id in &live {
            let known = self.machine(*id).and_then(Membership::view);
            if known.is_none_or(|known| known != view) {
                return Some(format!("{id:?} does not know the last view"));
            }
            if self.status(*id) != Some(Status::Active) {
                return Some(format!("{id:?} is {:?}", self.status(*id)));
            }
        }
        if let Some(dead) = view.members.keys().find(|id| !live.contains(id)) {
            return Some(format!("{dead:?} is still a member"));
        }
        if let Some((accused, _)) = view.members.iter().find(|(_, member)| !member.accusations.is_empty()) {
            return Some(format!("{accused:?} is accused"));
        }
        let loads = view.loads();
        let spread = loads.values().max().zip(loads.values().min()).map_or(0, |(max, min)| max - min);
        let mut programs = view.members.values().map(|member| member.program);
        let first = programs.next();
        if spread > 1 && programs.all(|program| Some(program) == first) {
            return Some(format!("the loads are {loads:?}"));
        }
        if let Some(slot) = view.slots.iter().position(|slot| matches!(slot.holder, Holder::Moving { .. })) {
            return Some(format!("slot {slot} moves"));
        }
        (0..self.slots()).find(|slot| self.runners(*slot).len() != 1).map(|slot| format!("slot {slot} runs nowhere"))
    }
}

fn brief_view(view: &View) -> String {
    let member = |(id, member): (&MemberId, &crate::Member)| {
        let accusers: Vec<(u64, bool)> = member.accusations.iter().map(|(id, own)| (id.0, own.is_refuted)).collect();
        format!("{}{:?}{accusers:?}", id.0, member.status)
    };
    let members: Vec<String> = view.members.iter().map(member).collect();
    let slots: Vec<String> = view.slots.iter().map(|slot| format!("{}:{:?}", slot.epoch, slot.holder)).collect();
    format!("v{} [{}] [{}]", view.version, members.join(" "), slots.join(" ")).replace("MemberId", "")
}

fn brief_input(input: &Input) -> String {
    match input {
        Input::Read { result: Ok(Some(stored)), .. } => format!("read {}", brief_view(&stored.view)),
        Input::Received { from, message: Message::View(view) } => format!("{} says {}", from.0, brief_view(view)),
        Input::Received { from, message } => format!("{} says {message:?}", from.0),
        input => format!("{input:?}"),
    }
}

fn brief_effect(effect: &Effect) -> String {
    match effect {
        Effect::Write { view, expected, .. } => format!("write {expected}+1 {}", brief_view(view)),
        effect => format!("{effect:?}"),
    }
}
