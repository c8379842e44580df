//! The effect of each step on the theaters, links and cells.

use std::collections::VecDeque;

use super::*;
use crate::naming::migration_protocol::{Action, Attempt, Event, Request, Residence, TheaterId, View, Word};

impl World {
    pub(super) fn new(program: &Roaming) -> World {
        let cell = |at: usize| Cell {
            mode: if at == 0 { Mode::Live } else { Mode::Vacant },
            route: 0,
            link: 0,
            is_fresh: true,
            is_used: false,
            is_closed: false,
            mail: VecDeque::new(),
            arrival_buffer: VecDeque::new(),
            requests: VecDeque::new(),
        };
        let residence = |at: usize| if at == 0 { Residence::Here } else { Residence::Unknown };
        let theater = |at: usize| Theater {
            views: vec![View::new(at as TheaterId, residence(at)); ACTORS],
            numbers: [0; ACTORS],
            cells: vec![cell(at); ACTORS],
            owed: Vec::new(),
            fences: Vec::new(),
            drains: [None; ACTORS],
            hosts: [0; ACTORS],
            left: 0,
            bound: [[false; ACTORS]; THEATERS],
            has_lost: false,
            later: Vec::new(),
            sent_on: Vec::new(),
        };
        let mut theaters: Vec<Theater> = (0..THEATERS).map(theater).collect();
        let mut links = vec![vec![VecDeque::new(); THEATERS]; THEATERS];
        if program.starts {
            // Its state is that of an actor that has left its birth theater, and has not begun in the other one.
            let there = 1;
            let birth = &mut theaters[BIRTH];
            birth.views[0] = View::new(BIRTH as TheaterId, Residence::Away { at: there, begun: false, reroute: None });
            birth.cells[0].go_by((there, 0), true);
            birth.hosts[0] = 1 << there;
            let word = Word::Move { attempt: 1 };
            let state = Frame::Word { actor: 0, word, other_at: BIRTH as TheaterId };
            links[BIRTH][there as usize].extend([state, Frame::Begin { actor: 0, attempt: 1 }]);
        }
        World {
            theaters,
            links,
            sent: [0; ACTORS],
            handled: [0; ACTORS],
            migrations: program.migrations,
            names: program.names,
            give_ups: program.give_ups,
            dead: None,
            cut: None,
            is_healed: false,
            missing: [0; ACTORS],
            reported: [0; ACTORS],
            may_die: [false; ACTORS],
            flaw: None,
        }
    }

    /// Returns the theater that is dead or cut off from this one, whether or not it is lost to this one yet.
    pub(super) fn gone(&self, at: usize) -> Option<usize> {
        let others = self.cut.filter(|ends| !self.is_healed && ends.contains(&at));
        self.dead.or(others.map(|[one, other]| if one == at { other } else { one }))
    }

    pub(super) fn has_lost(&self, at: usize, theater: usize) -> bool {
        self.theaters[at].has_lost && self.gone(at) == Some(theater)
    }

    /// Returns the number of the link between these theaters.
    pub(super) fn link(&self, at: usize, to: TheaterId) -> u8 {
        let is_cut = self.cut.is_some_and(|ends| ends.contains(&at) && ends.contains(&(to as usize)));
        u8::from(is_cut && self.is_healed)
    }

    pub(super) fn say(&mut self, at: usize, to: TheaterId, frame: Frame) {
        let other = to as usize;
        if at == other {
            self.flaw = Some("a theater sends a frame to itself");
        } else if self.dead == Some(other) || self.has_lost(at, other) || self.has_lost(other, at) {
            self.miss(frame);
        } else {
            self.links[at][other].push_back(frame);
        }
    }

    /// The frame is lost with the dead theater, or with a link.
    pub(super) fn miss(&mut self, frame: Frame) {
        match frame {
            Frame::Message { to, number, .. } => self.missing[to.actor] |= 1 << number,
            Frame::Begin { actor, .. } => self.may_die[actor] = true,
            _ => {}
        }
    }

    pub(super) fn miss_items(&mut self, actor: usize, items: impl IntoIterator<Item = Item>) {
        for item in items {
            if let Item::Message { number, .. } = item {
                self.missing[actor] |= 1 << number;
            }
        }
    }

    /// The theater is dead.
    pub(super) fn die(&mut self, at: usize) {
        self.dead = Some(at);
        for actor in 0..ACTORS {
            let begins_at = |from: usize, to: usize| {
                let is_begin = |frame: &Frame| matches!(frame, Frame::Begin { actor: of, .. } if *of == actor);
                self.links[from][to].iter().any(is_begin)
            };
            let is_on_its_way = (0..THEATERS).any(|other| begins_at(at, other) || begins_at(other, at))
                || self.theaters.iter().enumerate().any(|(other, theater)| {
                    let begins =
                        |item: &Item| matches!(item, Item::Begin { to, .. } if other == at || *to as usize == at);
                    theater.cells[actor].mail.iter().any(begins)
                        || theater.cells[actor].requests.iter().any(|(request, _)| {
                            matches!(request, Request::Commit { to, .. } if other == at || *to as usize == at)
                        })
                        || other == at
                            && theater.cells[actor].requests.iter().any(|(request, _)| matches!(request, Request::Begin))
                });
            self.may_die[actor] = self.theaters[at].cells[actor].has_actor()
                || matches!(
                    self.theaters[at].views[actor].residence(),
                    Residence::Here | Residence::Arriving { .. } | Residence::Leaving { .. }
                )
                || is_on_its_way;
        }
        for actor in 0..ACTORS {
            let cell = &mut self.theaters[at].cells[actor];
            let items: Vec<Item> = cell.mail.drain(..).chain(cell.arrival_buffer.drain(..)).collect();
            cell.requests.clear();
            cell.mode = Mode::Vacant;
            self.miss_items(actor, items);
            self.theaters[at].views[actor] = View::new(at as TheaterId, Residence::Unknown);
            self.theaters[at].bound.iter_mut().for_each(|bound| *bound = [false; ACTORS]);
        }
        let theater = &mut self.theaters[at];
        theater.owed.clear();
        theater.fences.clear();
        theater.drains = [None; ACTORS];
        theater.hosts = [0; ACTORS];
        theater.later.clear();
        theater.sent_on.clear();
        for from in 0..THEATERS {
            for frame in std::mem::take(&mut self.links[from][at]) {
                self.miss(frame);
            }
        }
    }

    /// The theater that is dead or cut off is lost to this one.
    pub(super) fn lose(&mut self, at: usize, program: &Roaming) {
        let Some(dead) = self.gone(at) else { return };
        for frame in std::mem::take(&mut self.links[dead][at]) {
            self.miss(frame);
        }
        self.theaters[at].has_lost = true;
        let gone = dead as TheaterId;
        // Nothing more is said of messages that came over that link.
        let theater = &mut self.theaters[at];
        theater.owed.iter_mut().flatten().filter(|owed| owed.to == gone).for_each(|owed| owed.entry = None);
        theater.fences.retain(|fence| fence.of != gone);
        theater.bound[dead] = [false; ACTORS];
        // Messages that were forwarded to the dead theater are settled.
        let entries = self.theaters[at].owed.iter().enumerate();
        let lost = |owed: &Option<Owed>| owed.is_some_and(|owed| owed.sent_to == Some(gone));
        let lost: Vec<usize> = entries.filter(|(_, owed)| lost(owed)).map(|(entry, _)| entry).collect();
        lost.into_iter().for_each(|entry| self.settle(at, entry));
        for actor in 0..ACTORS {
            if dead == BIRTH
                && let Residence::Leaving { attempt, noted: false, .. } = self.theaters[at].views[actor].residence()
            {
                self.noted(at, actor, attempt, program);
            }
            if let Some(Drain::Others { .. }) = self.theaters[at].drains[actor] {
                self.fenced(at, actor, gone, None, program);
            }
        }
        for actor in 0..ACTORS {
            if self.theaters[at].views[actor].incoming_from() == Some(gone) {
                self.theaters[at].left = 0;
                let items = std::mem::take(&mut self.theaters[at].cells[actor].arrival_buffer);
                self.miss_items(actor, items);
            }
            self.step(at, actor, Event::TheaterLost { theater: gone }, program);
        }
        let lost: Vec<_> = self.theaters[at].sent_on.extract_if(.., |(_, to, ..)| *to == gone).collect();
        for (actor, _, reroute, path) in lost {
            self.answer(at, actor, (reroute, path), None, program);
        }
        for (from, frame) in std::mem::take(&mut self.theaters[at].later) {
            self.take(from, at, frame, program);
        }
    }

    /// A theater has answered the fence of a drain, or is lost.
    pub(super) fn fenced(&mut self, at: usize, actor: usize, by: TheaterId, of: Option<u64>, program: &Roaming) {
        let drain = &mut self.theaters[at].drains[actor];
        if let Some(Drain::Others { attempt, left }) = drain
            && of.is_none_or(|of| of == *attempt)
        {
            let attempt = *attempt;
            *left &= !(1 << by);
            if *left == 0 {
                *drain = None;
                self.drained(at, actor, attempt, program);
            }
        }
    }

    /// Asks all theaters that are not lost to settle the mail that they have got for an actor.
    pub(super) fn settle_others(&mut self, at: usize, actor: usize, search: u64, program: &Roaming) {
        if self.cut.is_some() {
            return self.step(at, actor, Event::Settled { search }, program);
        }
        for to in 0..THEATERS {
            if to != at && self.dead != Some(to) {
                // There are three theaters, and one is dead.
                self.say(at, to as TheaterId, Frame::Settle { actor, search });
            }
        }
        if self.dead.is_none() {
            self.flaw = Some("others are asked though no theater is lost");
        }
    }

    /// Answers a theater that locates the actor.
    pub(super) fn say_found(&mut self, at: usize, actor: usize, (from, lost): (TheaterId, TheaterId)) {
        let knows = match self.theaters[at].views[actor].residence() {
            Residence::Here | Residence::Leaving { .. } | Residence::Arriving { .. } => true,
            Residence::Away { at, .. } => at != from && at != lost,
            Residence::Locating { .. } | Residence::Unknown => false,
        };
        self.say(at, from, Frame::Found { actor, lost, knows });
    }

    /// Reports mail of this stub, because its actor is lost.
    pub(super) fn report(&mut self, at: usize, actor: usize, item: Item) {
        match item {
            Item::Message { number, owed, .. } => {
                self.reported[actor] |= 1 << number;
                if let Some(entry) = owed {
                    let sender = self.theaters[at].owed[entry].map(|owed| owed.to);
                    self.settle(at, entry);
                    if let Some(sender) = sender {
                        self.say_ended(at, actor, sender);
                    }
                }
            }
            Item::Marker { reroute, path, .. } => {
                if let Some((sender, path)) = path.back() {
                    self.say(at, sender, Frame::Answer { actor, reroute, at: None, path });
                    self.say_ended(at, actor, sender);
                }
            }
            Item::Settle { from, search } => self.say(at, from, Frame::Settled { actor, search }),
            // The target is lost.
            Item::Begin { .. } => self.may_die[actor] = true,
        }
    }

    pub(super) fn say_ended(&mut self, at: usize, actor: usize, to: TheaterId) {
        let other_at = at as TheaterId;
        self.say(at, to, Frame::Word { actor, word: Word::Ended, other_at });
    }

    /// Applies an event of the same kind to the members of a group, by their attempts. It commits all of them, or none.
    pub(super) fn step_together(&mut self, at: usize, event: impl Fn(u64) -> Event<TheaterId>, program: &Roaming) {
        for actor in 0..ACTORS {
            if let Residence::Leaving { attempt, .. } = self.theaters[at].views[actor].residence() {
                self.step(at, actor, event(attempt), program);
            }
        }
        let has_left = |actor: usize| !matches!(self.theaters[at].views[actor].residence(), Residence::Leaving { .. });
        if (1..ACTORS).any(|actor| has_left(actor) != has_left(0)) {
            self.flaw = Some("a group is divided");
        }
    }

    /// Begins a migration of the actor. It is frozen in its own stage, before anything else is sent from that stage.
    pub(super) fn migrate(&mut self, from: usize, actor: usize, to: TheaterId, program: &Roaming) {
        if from == BIRTH {
            self.theaters[BIRTH].hosts[actor] = 1 << to;
        }
        // The birth theater knows actors that leave it, and actors that come to it.
        let is_out_of_reach = self.has_lost(from, BIRTH);
        let noted = from == BIRTH || to as usize == BIRTH || is_out_of_reach || program.without == Some(Rule::Note);
        self.step(from, actor, Event::Migrate { to, noted }, program);
        self.do_request(from, actor, program);
    }

    /// Begins a migration of a group: all of it is frozen.
    pub(super) fn migrate_together(&mut self, from: usize, to: TheaterId, program: &Roaming) {
        // The first member drains and is noted for all.
        for actor in (0..ACTORS).rev() {
            self.migrate(from, actor, to, program);
        }
        let attempts = self.theaters[from].numbers;
        self.say(from, to, Frame::Together { attempts });
    }

    /// Takes a group: all of it or none.
    pub(super) fn take_together(&mut self, at: usize, from: TheaterId, attempts: [u64; ACTORS], program: &Roaming) {
        for (actor, attempt) in attempts.into_iter().enumerate() {
            self.meet(at, actor, from, program);
            self.step(at, actor, Event::Said { from, word: Word::Move { attempt } }, program);
            if self.theaters[at].views[actor].incoming_from() != Some(from) {
                self.flaw = Some("a group is refused");
            }
        }
        self.theaters[at].left = 0;
        self.say(at, from, Frame::AllAccepted { attempts });
    }

    pub(super) fn step(&mut self, at: usize, actor: usize, event: Event<TheaterId>, program: &Roaming) {
        let theater = &mut self.theaters[at];
        let number = &mut theater.numbers[actor];
        let mut next_number = || {
            *number += 1;
            *number
        };
        for action in theater.views[actor].step(event, &mut next_number) {
            match action {
                // The group says this once for all of its members.
                Action::Accept { .. } | Action::Say(_, Word::Move { .. }) if program.together => {}
                Action::Note { .. } | Action::Drain { .. } if program.together && actor > 0 => {}
                Action::Accept { from, attempt } => {
                    let other_at = self.name_for(at, other(actor), program);
                    let word = Word::Accepted { attempt, at: at as TheaterId };
                    self.say(at, from, Frame::Word { actor, word, other_at });
                }
                Action::Say(to, word) => {
                    let other_at = self.name_for(at, other(actor), program);
                    self.say(at, to, Frame::Word { actor, word, other_at });
                }
                Action::Ask(request) => {
                    let link = match request {
                        Request::Commit { to, .. } | Request::Rerouted { at: Some(to) } => self.link(at, to),
                        _ => 0,
                    };
                    self.theaters[at].cells[actor].requests.push_back((request, link));
                }
                Action::Note { to, attempt } => {
                    self.say(at, BIRTH as TheaterId, Frame::Departs { actor, attempt, to });
                }
                Action::Drain { attempt } if program.without == Some(Rule::Drain) => {
                    self.step(at, actor, Event::Drained { attempt }, program);
                }
                Action::Drain { attempt } => {
                    for cell in self.theaters[at].cells.iter_mut().filter(|cell| !cell.has_actor()) {
                        for item in &mut cell.mail {
                            if let Item::Message { owed: None, awaited, .. } = item {
                                *awaited |= 1 << actor;
                            }
                        }
                    }
                    self.theaters[at].drains[actor] = Some(Drain::Local { attempt });
                }
                Action::Locate { lost } => self.locate(at, actor, lost, program),
                Action::Settle { search } => self.settle_others(at, actor, search, program),
            }
        }
        self.go_on_draining(at);
    }

    pub(super) fn note_hosts(&mut self, actor: usize, hosts: u8, program: &Roaming) {
        let all = &mut self.theaters[BIRTH].hosts;
        if program.together { *all = [hosts; ACTORS] } else { all[actor] = hosts }
    }

    pub(super) fn noted(&mut self, at: usize, actor: usize, attempt: u64, program: &Roaming) {
        if program.together {
            self.step_together(at, |attempt| Event::Noted { attempt }, program);
        } else {
            self.step(at, actor, Event::Noted { attempt }, program);
        }
    }

    pub(super) fn drained(&mut self, at: usize, actor: usize, attempt: u64, program: &Roaming) {
        if program.together {
            self.step_together(at, |attempt| Event::Drained { attempt }, program);
        } else {
            self.step(at, actor, Event::Drained { attempt }, program);
        }
    }

    /// Asks for the actor: the birth theater and the theaters that it names, or all theaters if it is lost.
    pub(super) fn locate(&mut self, at: usize, actor: usize, lost: TheaterId, program: &Roaming) {
        if self.dead.is_none() && self.cut.is_none() {
            self.flaw = Some("others are asked though no theater is lost");
            return;
        }
        let hosts = self.theaters[at].hosts[actor];
        let is_asked = |to: &usize| lost as usize == BIRTH || *to == BIRTH || at == BIRTH && hosts >> to & 1 == 1;
        let mut others = (0..THEATERS).filter(|to| *to != at && *to != lost as usize);
        let source = self.theaters[at].views[actor].incoming_from().map(|source| source as usize);
        match others.find(is_asked).or(source) {
            // There are three theaters, and one is lost.
            Some(to) => self.say(at, to as TheaterId, Frame::Locate { actor, lost }),
            None => self.step(at, actor, Event::Found { lost, at: None }, program),
        }
    }

    pub(super) fn go_on_draining(&mut self, at: usize) {
        for actor in 0..ACTORS {
            let Some(Drain::Local { attempt }) = self.theaters[at].drains[actor] else { continue };
            let is_awaited = |item: &Item| matches!(item, Item::Message { awaited, .. } if awaited >> actor & 1 == 1);
            if self.theaters[at].cells.iter().flat_map(|cell| &cell.mail).any(is_awaited) {
                continue;
            }
            let others: Vec<usize> = (0..THEATERS).filter(|to| *to != at && !self.has_lost(at, *to)).collect();
            let left = others.iter().map(|to| 1 << to).sum();
            self.theaters[at].drains[actor] = Some(Drain::Others { attempt, left });
            for to in others {
                self.say(at, to as TheaterId, Frame::Fence { actor, attempt });
            }
        }
    }

    /// Returns the theater that this one names to others as the actor's residence.
    pub(super) fn name_for(&self, at: usize, actor: usize, program: &Roaming) -> TheaterId {
        let view = &self.theaters[at].views[actor];
        match view.residence() {
            Residence::Away { at, .. } if view.has_begun() || program.without == Some(Rule::NameLate) => at,
            _ => at as TheaterId,
        }
    }

    pub(super) fn take(&mut self, from: usize, at: usize, frame: Frame, program: &Roaming) {
        let sender = from as TheaterId;
        match frame {
            Frame::Message { to, number, acknowledge } => {
                let actor = to.actor;
                let settled = Item::Message { number, owed: None, awaited: 0 };
                let for_arrival_buffer = self.binds(at, from, to);
                let cell = &mut self.theaters[at].cells[actor];
                if for_arrival_buffer || cell.has_actor() {
                    if for_arrival_buffer { &mut cell.arrival_buffer } else { &mut cell.mail }.push_back(settled);
                    if let Some(entry) = acknowledge {
                        self.say(at, sender, Frame::Acknowledged { entry });
                    }
                    return;
                }
                let residence = self.theaters[at].views[actor].residence();
                if self.theaters[at].cells[actor].reports() {
                    let owed = Some(self.owe(at, Owed { to: sender, entry: acknowledge, sent_to: None }));
                    return self.report(at, actor, Item::Message { number, owed, awaited: 0 });
                }
                if self.theaters[at].cells[actor].mode == Mode::Vacant {
                    self.flaw = Some("a message for an unknown actor");
                    return;
                }
                let owed = if program.without == Some(Rule::AcknowledgeLate) {
                    if let Some(entry) = acknowledge {
                        self.say(at, sender, Frame::Acknowledged { entry });
                    }
                    None
                } else {
                    Some(self.owe(at, Owed { to: sender, entry: acknowledge, sent_to: None }))
                };
                self.theaters[at].cells[actor].mail.push_back(Item::Message { number, owed, awaited: 0 });
                if matches!(residence, Residence::Away { .. }) {
                    self.say(at, sender, Frame::Moved { actor });
                }
            }
            Frame::Acknowledged { entry } => self.settle(at, entry),
            Frame::Marker { to, origin, reroute, path } => {
                let path = path.over(from);
                let for_arrival_buffer = self.binds(at, from, to);
                let theater = &mut self.theaters[at];
                if origin as usize == at
                    && theater.views[to.actor].is_arriving()
                    && theater.views[to.actor].reroute() == Some(reroute)
                {
                    self.step(at, to.actor, Event::CameRound { reroute }, program);
                    self.answer(at, to.actor, (reroute, path), Some(at as TheaterId), program);
                } else if for_arrival_buffer || theater.cells[to.actor].has_actor() {
                    self.answer(at, to.actor, (reroute, path), Some(at as TheaterId), program);
                } else if theater.cells[to.actor].reports() {
                    self.report(at, to.actor, Item::Marker { origin, reroute, path });
                } else {
                    theater.cells[to.actor].mail.push_back(Item::Marker { origin, reroute, path });
                }
            }
            Frame::Locate { .. } | Frame::Settle { .. } | Frame::Answer { at: None, path: Path(0), .. }
                if self.dead.is_some() && !self.theaters[at].has_lost && program.without != Some(Rule::AnswerLate) =>
            {
                self.theaters[at].later.push((from, frame));
            }
            Frame::Departs { actor, attempt, to } => {
                self.note_hosts(actor, 1 << from | 1 << to, program);
                self.say(at, sender, Frame::Noted { actor, attempt });
            }
            Frame::Noted { actor, attempt } => self.noted(at, actor, attempt, program),
            Frame::Refused { actor, attempt } => {
                if matches!(self.theaters[at].views[actor].residence(), Residence::Leaving { attempt: of, .. } if of == attempt)
                {
                    self.theaters[at].drains[actor] = None;
                    self.step(at, actor, Event::GiveUp, program);
                }
            }
            Frame::Together { attempts } => self.take_together(at, sender, attempts, program),
            Frame::AllAccepted { attempts } => {
                let is_present = |(actor, attempt): (usize, &u64)| {
                    let residence = self.theaters[at].views[actor].residence();
                    matches!(residence, Residence::Leaving { attempt: of, .. } if of == *attempt)
                };
                if attempts.iter().enumerate().all(is_present) {
                    let word = |attempt| Word::Accepted { attempt, at: sender };
                    self.step_together(at, |attempt| Event::Said { from: sender, word: word(attempt) }, program);
                }
            }
            Frame::Locate { actor, lost } if self.cut.is_some() && at as TheaterId != lost => {
                // The answer comes behind all that the other theater has sent.
                self.say(at, lost, Frame::Inquire { actor, locator: sender });
            }
            Frame::Locate { actor, lost } => self.say_found(at, actor, (sender, lost)),
            Frame::Inquire { actor, locator } => self.say(at, sender, Frame::Inquired { actor, locator }),
            Frame::Inquired { actor, locator } => self.say_found(at, actor, (locator, sender)),
            Frame::Settle { actor, search } => {
                let theater = &mut self.theaters[at];
                if matches!(theater.views[actor].residence(), Residence::Away { .. }) {
                    // The question goes behind the mail that this theater forwards.
                    theater.cells[actor].mail.push_back(Item::Settle { from: sender, search });
                } else {
                    self.say(at, sender, Frame::Settled { actor, search });
                }
            }
            Frame::Settled { actor, search } => self.step(at, actor, Event::Settled { search }, program),
            Frame::Found { actor, lost, knows } => {
                self.step(at, actor, Event::Found { lost, at: knows.then_some(sender) }, program);
            }
            Frame::Answer { actor, reroute, at: there, path } => {
                self.theaters[at].sent_on.retain(|sent| *sent != (actor, sender, reroute, path));
                self.answer(at, actor, (reroute, path), there, program);
            }
            Frame::Moved { actor } => self.step(at, actor, Event::Moved { from: sender }, program),
            Frame::Fence { actor, attempt } => {
                let owed = self.theaters[at].owed.iter().enumerate();
                let waits_for: Vec<usize> = owed
                    .filter(|(_, owed)| owed.is_some_and(|owed| owed.to == sender))
                    .map(|(entry, _)| entry)
                    .collect();
                if waits_for.is_empty() {
                    self.say(at, sender, Frame::Fenced { actor, attempt });
                } else {
                    self.theaters[at].fences.push(Fence { of: sender, actor, attempt, waits_for });
                }
            }
            Frame::Fenced { actor, attempt: of } => {
                self.fenced(at, actor, sender, Some(of), program);
            }
            Frame::Begin { actor, attempt } if program.together => {
                let theater = &mut self.theaters[at];
                theater.left |= 1 << actor;
                if theater.left == (1 << ACTORS) - 1 {
                    theater.left = 0;
                    let attempts = theater.views.iter().map(View::incoming);
                    let attempts: Vec<Option<Attempt>> = attempts.collect();
                    if !attempts.contains(&Some(Attempt { from: sender, number: attempt })) {
                        self.flaw = Some("a group begins by another attempt");
                    }
                    for (actor, attempt) in attempts.into_iter().enumerate() {
                        if let Some(Attempt { number, .. }) = attempt {
                            self.begin(from, at, (actor, number), program);
                        }
                    }
                }
            }
            Frame::Begin { actor, attempt } => self.begin(from, at, (actor, attempt), program),
            Frame::Word { actor, word, other_at } => {
                if matches!(word, Word::Move { .. }) {
                    if self.makes_stub(at, other(actor)) {
                        self.meet(at, other(actor), other_at, program);
                    }
                    self.meet(at, actor, sender, program);
                }
                self.step(at, actor, Event::Said { from: sender, word }, program);
                if let Word::Move { attempt } = word
                    && self.theaters[at].views[actor].incoming_from() != Some(sender)
                {
                    self.say(at, sender, Frame::Refused { actor, attempt });
                }
            }
        }
    }

    /// Notes that the source has committed the actor.
    pub(super) fn begin(&mut self, from: usize, at: usize, (actor, attempt): (usize, u64), program: &Roaming) {
        let sender = from as TheaterId;
        let theater = &mut self.theaters[at];
        let cell = &mut theater.cells[actor];
        let closed = theater.views[actor].may_close(Attempt { from: sender, number: attempt }) && !cell.is_used;
        cell.is_closed |= closed;
        let attempt = Attempt { from: sender, number: attempt };
        self.step(at, actor, Event::Begin { attempt, closed }, program);
    }
}
