//! The cells of the theaters, and their mail.

use super::*;
use crate::naming::migration_protocol::{Event, Request, Residence, TheaterId, View};

impl World {
    /// Returns whether a name of the actor makes a stub. The birth theater knows its stub by its name also after the stub has ended.
    pub(super) fn makes_stub(&self, at: usize, actor: usize) -> bool {
        let theater = &self.theaters[at];
        theater.is_unknown(actor) && !(at == BIRTH && theater.cells[actor].reports())
    }

    /// Takes a name of the actor: `route` knows the route to it. If that is this theater, the actor has been lost since.
    pub(super) fn meet(&mut self, at: usize, actor: usize, route: TheaterId, program: &Roaming) {
        let link = self.link(at, route);
        if self.theaters[at].is_unknown(actor) && route as usize != at {
            let theater = &mut self.theaters[at];
            theater.views[actor] =
                View::new(at as TheaterId, Residence::Away { at: route, begun: true, reroute: None });
            theater.cells[actor].go_by((route, link), false);
            if self.has_lost(at, route as usize) {
                // The name is older than the loss.
                self.step(at, actor, Event::TheaterLost { theater: route }, program);
            }
        }
    }

    /// Notes that a message that came over a link is in a mailbox.
    pub(super) fn settle(&mut self, at: usize, entry: usize) {
        let theater = &mut self.theaters[at];
        let Some(owed) = theater.owed.get_mut(entry).and_then(Option::take) else {
            self.flaw = Some("a message is settled twice");
            return;
        };
        while theater.owed.last() == Some(&None) {
            theater.owed.pop();
        }
        for fence in &mut theater.fences {
            fence.waits_for.retain(|owed| *owed != entry);
        }
        let done: Vec<Fence> = theater.fences.extract_if(.., |fence| fence.waits_for.is_empty()).collect();
        if let Some(entry) = owed.entry {
            self.say(at, owed.to, Frame::Acknowledged { entry });
        }
        for Fence { of, actor, attempt, .. } in done {
            self.say(at, of, Frame::Fenced { actor, attempt });
        }
    }

    pub(super) fn owe(&mut self, at: usize, owed: Owed) -> usize {
        let all = &mut self.theaters[at].owed;
        let entry = all.iter().position(Option::is_none).unwrap_or(all.len());
        if entry == all.len() {
            all.push(None);
        }
        all[entry] = Some(owed);
        entry
    }

    /// Returns whether a frame is for the arrival buffer.
    pub(super) fn binds(&mut self, at: usize, from: usize, to: To) -> bool {
        let theater = &mut self.theaters[at];
        let bound = &mut theater.bound[from][to.actor];
        if to.binds {
            let view = &theater.views[to.actor];
            *bound = view.is_arriving() || to.after_leave && view.incoming_from() == Some(from as TheaterId);
        }
        *bound
    }

    /// Takes the answer to a marker, or sends it back.
    pub(super) fn answer(
        &mut self,
        here: usize,
        actor: usize,
        (reroute, path): (u64, Path),
        there: Option<TheaterId>,
        program: &Roaming,
    ) {
        match (path.back(), there) {
            (Some((sender, path)), at) => self.say(here, sender, Frame::Answer { actor, reroute, at, path }),
            (None, Some(at)) => self.step(here, actor, Event::Answered { reroute, at }, program),
            (None, None) => self.step(here, actor, Event::MarkerLost { reroute }, program),
        }
    }

    pub(super) fn do_request(&mut self, at: usize, actor: usize, program: &Roaming) {
        let cell = &mut self.theaters[at].cells[actor];
        let Some((request, link)) = cell.requests.pop_front() else { return };
        match request {
            Request::Freeze => cell.mode = Mode::Frozen,
            Request::Stay => cell.mode = Mode::Live,
            Request::Wait => cell.mode = Mode::Waiting,
            Request::Report => {
                cell.mode = Mode::Reports;
                for item in std::mem::take(&mut cell.mail) {
                    self.report(at, actor, item);
                }
            }
            Request::Commit { to, attempt } => {
                self.may_die[actor] |= self.dead == Some(to as usize);
                cell.go_by((to, link), false);
                cell.mail.push_back(Item::Begin { to, attempt, link });
            }
            Request::Rerouted { at: Some(at) } => cell.go_by((at, link), true),
            Request::Rerouted { at: None } => cell.mode = Mode::Stub,
            Request::Arrive { reroutes_already: true, .. } => cell.mode = Mode::Waiting,
            Request::Reroute { reroute } | Request::Arrive { reroute, .. } | Request::MarkAgain { reroute } => {
                cell.mode = Mode::Waiting;
                if self.leads_nowhere(at, actor) {
                    self.step(at, actor, Event::MarkerLost { reroute }, program);
                } else {
                    self.send_on(at, actor, Item::Marker { origin: at as TheaterId, reroute, path: Path::default() });
                }
            }
            Request::Begin => {
                let waited = std::mem::take(&mut cell.mail);
                cell.mail = std::mem::take(&mut cell.arrival_buffer);
                (cell.mode, cell.is_used, cell.is_closed) = (Mode::Live, false, false);
                self.theaters[at].bound.iter_mut().for_each(|bound| bound[actor] = false);
                for item in waited {
                    match item {
                        Item::Message { number, owed, .. } => {
                            if let Some(entry) = owed {
                                self.settle(at, entry);
                            }
                            let settled = Item::Message { number, owed: None, awaited: 0 };
                            self.theaters[at].cells[actor].mail.push_back(settled);
                        }
                        Item::Marker { reroute, path, .. } => {
                            self.answer(at, actor, (reroute, path), Some(at as TheaterId), program);
                        }
                        Item::Begin { .. } => self.flaw = Some("a beginning waits for an arrival"),
                        Item::Settle { from, search } => self.say(at, from, Frame::Settled { actor, search }),
                    }
                }
            }
        }
        self.go_on_draining(at);
    }

    /// Returns whether the route of a stub goes over a link that is lost.
    pub(super) fn leads_nowhere(&self, at: usize, actor: usize) -> bool {
        let Cell { route, link, .. } = self.theaters[at].cells[actor];
        self.has_lost(at, route as usize) || link != self.link(at, route)
    }

    /// Sends the item along the route of the cell.
    pub(super) fn send_on(&mut self, at: usize, actor: usize, item: Item) {
        match item {
            Item::Begin { to, attempt, link } => {
                let begin = Frame::Begin { actor, attempt };
                return if link == self.link(at, to) { self.say(at, to, begin) } else { self.miss(begin) };
            }
            Item::Settle { from, search } => return self.say(at, from, Frame::Settled { actor, search }),
            Item::Message { .. } | Item::Marker { .. } => {}
        }
        let theater = &mut self.theaters[at];
        let cell = &mut theater.cells[actor];
        let route = cell.route;
        cell.is_used = true;
        let after_leave = matches!(theater.views[actor].residence(), Residence::Away { begun: false, .. });
        let to = To { actor, binds: std::mem::replace(&mut cell.is_fresh, false), after_leave };
        let frame = match item {
            Item::Message { number, owed, .. } => {
                if let Some(owed) = owed.and_then(|entry| theater.owed[entry].as_mut()) {
                    owed.sent_to = Some(route);
                }
                Frame::Message { to, number, acknowledge: owed }
            }
            Item::Marker { origin, reroute, path } => {
                theater.sent_on.push((actor, route, reroute, path));
                Frame::Marker { to, origin, reroute, path }
            }
            Item::Begin { .. } | Item::Settle { .. } => return,
        };
        self.say(at, route, frame);
    }

    pub(super) fn take_mail(&mut self, at: usize, actor: usize) {
        let cell = &mut self.theaters[at].cells[actor];
        let Some(item) = cell.mail.pop_front() else { return };
        match item {
            Item::Message { number, .. } if cell.mode == Mode::Live => {
                let unheard = self.missing[actor] | self.reported[actor];
                let skipped = (self.handled[actor]..number).all(|skipped| unheard >> skipped & 1 == 1);
                if self.reported[actor] >> number & 1 == 1 {
                    self.flaw = Some("a message is handled and reported");
                }
                if number < self.handled[actor] || !skipped {
                    self.flaw = Some("a message is lost, doubled or out of order");
                }
                self.handled[actor] = number + 1;
            }
            _ if cell.mode == Mode::Live => self.flaw = Some("a marker waits in the mailbox of an actor"),
            item => self.send_on(at, actor, item),
        }
        self.go_on_draining(at);
    }
}
