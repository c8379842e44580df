//! All interleavings of small programs that migrate, explored with `stateright`.
//!
//! The model holds what the machine leaves to others: links that keep order between three theaters, cells with their mail, and how a theater
//! drains. Two actors are born in theater 0 and send numbered messages to each other. Any step may come next: a message is sent or handled,
//! a cell does a request, a frame arrives, an actor migrates, an attempt is given up, a name is told to a theater that has none. One theater
//! may die. Frames from it arrive until the others have lost it, which each does at a time of its own. Or two theaters lose each other in the same way
//! though both live, and there is a new link between them later. What a place had of a lost actor has ended by then, so a name makes a new place.

use std::collections::VecDeque;

use stateright::{Checker, Model, Property};

use super::{Action, Attempt, Event, Life, Request, Site, TheaterId, View, Word};

impl Site for TheaterId {
    fn theater(&self) -> TheaterId {
        *self
    }
}

const ACTORS: usize = 2;
const THEATERS: usize = 3;
/// The theater that the actors are born in.
const BIRTH: usize = 0;
/// Frames on a link, messages that are owed, and numbers of a view: more is taken for growth without end.
const MANY: usize = 8;

/// A program, and which rules it goes without.
#[derive(Clone, Copy, Debug)]
struct Roaming {
    /// The number of messages that each actor sends to the other one.
    sends: [u8; ACTORS],
    migrations: u8,
    /// Names that are told without a migration.
    names: u8,
    give_ups: u8,
    /// Whether a theater may die.
    deaths: bool,
    /// Whether two theaters may lose each other though both live.
    cuts: bool,
    /// Whether there is a link between those again, some time after both have lost the other.
    heals: bool,
    /// Whether the two are a group: they move together.
    together: bool,
    without: Option<Rule>,
}

/// A rule of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// An actor leaves when its theater has drained.
    Drain,
    /// What is sent on is acknowledged when the next theater has acknowledged it.
    AcknowledgeLate,
    /// The target is named to others when the actor has begun there.
    NameLate,
    /// A theater answers a search after it has lost the dead theater, too.
    AnswerLate,
    /// The theater that an actor was born in is told where it goes.
    Note,
}

/// What waits in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Item {
    Message {
        number: u8,
        /// The entry in [`Theater::owed`], for one that came over a link.
        owed: Option<usize>,
        /// The actors whose drain waits for it, as bits.
        awaited: u8,
    },
    Marker {
        origin: TheaterId,
        turn: u64,
        path: Path,
    },
    Begin {
        to: TheaterId,
        attempt: u64,
        /// The link that it goes over.
        link: u8,
    },
    /// A question of a theater to which the actor has come.
    Settle {
        from: TheaterId,
        search: u64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Mode {
    Vacant,
    Live,
    Frozen,
    Place,
    /// A place or a cell whose mail waits.
    Waiting,
    /// A place whose mail is reported.
    Reports,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Cell {
    mode: Mode,
    way: TheaterId,
    /// Which one of the links with that theater it goes over, which were made one after the other.
    link: u8,
    /// The name that the way goes by was not used yet.
    is_fresh: bool,
    /// Something was sent on since the actor left.
    is_used: bool,
    /// Nothing is sent on any more.
    is_closed: bool,
    mail: VecDeque<Item>,
    antechamber: VecDeque<Item>,
    /// With the number of the link that a new way goes over.
    requests: VecDeque<(Request<TheaterId>, u8)>,
}

impl Cell {
    fn has_actor(&self) -> bool {
        matches!(self.mode, Mode::Live | Mode::Frozen)
    }

    fn go_by(&mut self, (way, link): (TheaterId, u8), is_used: bool) {
        (self.mode, self.way, self.link) = (Mode::Place, way, link);
        (self.is_fresh, self.is_used, self.is_closed) = (true, is_used, false);
    }
}

/// The theaters that a marker has come over, the last one first. Its answer goes back that way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Path(u32);

impl Path {
    const BASE: u32 = THEATERS as u32 + 1;

    fn over(self, theater: usize) -> Path {
        Path(self.0 * Path::BASE + theater as u32 + 1)
    }

    /// Returns the last theater, and the rest.
    fn back(self) -> Option<(TheaterId, Path)> {
        (self.0 > 0).then(|| (TheaterId::from(self.0 % Path::BASE - 1), Path(self.0 / Path::BASE)))
    }
}

/// How a frame is meant for an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct To {
    actor: usize,
    /// It binds the name.
    binds: bool,
    /// It is what the source sends after the actor has left.
    after_leave: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Frame {
    Message {
        to: To,
        number: u8,
        acknowledge: Option<usize>,
    },
    Acknowledged {
        entry: usize,
    },
    Marker {
        to: To,
        origin: TheaterId,
        turn: u64,
        path: Path,
    },
    /// The answer to a marker: where the actor lives. Nothing if the marker is lost.
    Answer {
        actor: usize,
        turn: u64,
        at: Option<TheaterId>,
        path: Path,
    },
    Moved {
        actor: usize,
    },
    /// The birth theater is to know that the actor may be in this theater, too.
    Departs {
        actor: usize,
        attempt: u64,
        to: TheaterId,
    },
    Noted {
        actor: usize,
        attempt: u64,
    },
    Seek {
        actor: usize,
        lost: TheaterId,
    },
    Found {
        actor: usize,
        lost: TheaterId,
        knows: bool,
    },
    /// A theater that is lost to the theater `seeker` only is to say that all has come that it has sent.
    Inquire {
        actor: usize,
        seeker: TheaterId,
    },
    Inquired {
        actor: usize,
        seeker: TheaterId,
    },
    Settle {
        actor: usize,
        search: u64,
    },
    Settled {
        actor: usize,
        search: u64,
    },
    /// The actor does not come: what was known of it is lost, and its place has not ended.
    Refused {
        actor: usize,
        attempt: u64,
    },
    Fence {
        actor: usize,
        attempt: u64,
    },
    Fenced {
        actor: usize,
        attempt: u64,
    },
    Begin {
        actor: usize,
        attempt: u64,
    },
    /// All of a group are to come, by these attempts.
    Together {
        attempts: [u64; ACTORS],
    },
    /// All of the group were accepted.
    AllAccepted {
        attempts: [u64; ACTORS],
    },
    /// With the name of the other actor, as a state may hold references.
    Word {
        actor: usize,
        word: Word<TheaterId>,
        other_at: TheaterId,
    },
}

/// A message that came over a link and is in no mailbox yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Owed {
    to: TheaterId,
    entry: Option<usize>,
    /// The theater that it was sent on to.
    sent_to: Option<TheaterId>,
}

/// A question of another theater whether all is in the mailboxes that it has sent here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Fence {
    of: TheaterId,
    actor: usize,
    attempt: u64,
    waits_for: Vec<usize>,
}

/// A drain of a theater, for one actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Drain {
    /// Messages from here have not left their places.
    Local { attempt: u64 },
    /// These theaters have not answered the fence, as bits.
    Others { attempt: u64, left: u8 },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Theater {
    views: Vec<View<TheaterId>>,
    /// The last number that was given to an attempt or a turn of each actor.
    numbers: [u64; ACTORS],
    cells: Vec<Cell>,
    owed: Vec<Option<Owed>>,
    fences: Vec<Fence>,
    drains: [Option<Drain>; ACTORS],
    /// The theaters that each actor may be in, in the birth theater, as bits.
    hosts: [u8; ACTORS],
    /// The members of a group that its source has left, as bits: those begin together.
    left: u8,
    /// For each theater and actor, whether mail by the name in use goes to the antechamber.
    bound: [[bool; ACTORS]; THEATERS],
    /// The theater that has died, or that is cut off from this one, is lost to this one.
    has_lost: bool,
    /// Frames that wait for that loss.
    later: Vec<(usize, Frame)>,
    /// Markers that were sent on: of which actor, to which theater, of which turn, and how they had come.
    sent_on: Vec<(usize, TheaterId, u64, Path)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    theaters: Vec<Theater>,
    links: Vec<Vec<VecDeque<Frame>>>,
    sent: [u8; ACTORS],
    handled: [u8; ACTORS],
    migrations: u8,
    names: u8,
    give_ups: u8,
    dead: Option<usize>,
    /// The two that lose each other, or have.
    cut: Option<[usize; 2]>,
    /// There is a link between those again.
    is_healed: bool,
    /// The messages to each actor that the dead theater had, or got, or that were on a link that is lost, as bits.
    missing: [u8; ACTORS],
    /// The messages to each actor that were reported, as bits.
    reported: [u8; ACTORS],
    /// Whether each actor was in the dead theater, or on its way from it or to it, or left over a link that is lost.
    may_die: [bool; ACTORS],
    flaw: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Die { at: usize },
    Cut { between: [usize; 2] },
    Heal,
    Lose { at: usize },
    Send { at: usize, from: usize },
    Mail { at: usize, actor: usize },
    Request { at: usize, actor: usize },
    Frame { from: usize, to: usize },
    Migrate { from: usize, actor: usize, to: usize },
    GiveUp { at: usize, actor: usize },
    Name { from: usize, actor: usize, to: usize },
}

fn other(actor: usize) -> usize {
    1 - actor
}

impl Theater {
    /// Returns whether a name of the actor makes a place: there is none, or what was known of it was lost, and the place has ended.
    fn is_unknown(&self, actor: usize) -> bool {
        let cell = &self.cells[actor];
        matches!(cell.mode, Mode::Vacant | Mode::Reports) && cell.requests.is_empty()
    }
}

impl World {
    fn new(program: &Roaming) -> World {
        let cell = |at: usize| Cell {
            mode: if at == 0 { Mode::Live } else { Mode::Vacant },
            way: 0,
            link: 0,
            is_fresh: true,
            is_used: false,
            is_closed: false,
            mail: VecDeque::new(),
            antechamber: VecDeque::new(),
            requests: VecDeque::new(),
        };
        let life = |at: usize| if at == 0 { Life::Here } else { Life::Unknown };
        let theater = |at: usize| Theater {
            views: vec![View::new(at as TheaterId, life(at)); ACTORS],
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
        World {
            theaters: (0..THEATERS).map(theater).collect(),
            links: vec![vec![VecDeque::new(); THEATERS]; THEATERS],
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
    fn gone(&self, at: usize) -> Option<usize> {
        let others = self.cut.filter(|ends| !self.is_healed && ends.contains(&at));
        self.dead.or(others.map(|[one, other]| if one == at { other } else { one }))
    }

    fn has_lost(&self, at: usize, theater: usize) -> bool {
        self.theaters[at].has_lost && self.gone(at) == Some(theater)
    }

    /// Returns the number of the link between these theaters.
    fn link(&self, at: usize, to: TheaterId) -> u8 {
        let is_cut = self.cut.is_some_and(|ends| ends.contains(&at) && ends.contains(&(to as usize)));
        u8::from(is_cut && self.is_healed)
    }

    fn say(&mut self, at: usize, to: TheaterId, frame: Frame) {
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
    fn miss(&mut self, frame: Frame) {
        match frame {
            Frame::Message { to, number, .. } => self.missing[to.actor] |= 1 << number,
            Frame::Begin { actor, .. } => self.may_die[actor] = true,
            _ => {}
        }
    }

    fn miss_items(&mut self, actor: usize, items: impl IntoIterator<Item = Item>) {
        for item in items {
            if let Item::Message { number, .. } = item {
                self.missing[actor] |= 1 << number;
            }
        }
    }

    /// The theater is dead.
    fn die(&mut self, at: usize) {
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
                            matches!(request, Request::Leave { to, .. } if other == at || *to as usize == at)
                        })
                        || other == at
                            && theater.cells[actor].requests.iter().any(|(request, _)| matches!(request, Request::Begin))
                });
            self.may_die[actor] = self.theaters[at].cells[actor].has_actor()
                || matches!(
                    self.theaters[at].views[actor].life(),
                    Life::Here | Life::Arriving { .. } | Life::Leaving { .. }
                )
                || is_on_its_way;
        }
        for actor in 0..ACTORS {
            let cell = &mut self.theaters[at].cells[actor];
            let items: Vec<Item> = cell.mail.drain(..).chain(cell.antechamber.drain(..)).collect();
            cell.requests.clear();
            cell.mode = Mode::Vacant;
            self.miss_items(actor, items);
            self.theaters[at].views[actor] = View::new(at as TheaterId, Life::Unknown);
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
    fn lose(&mut self, at: usize, program: &Roaming) {
        let Some(dead) = self.gone(at) else { return };
        for frame in std::mem::take(&mut self.links[dead][at]) {
            self.miss(frame);
        }
        self.theaters[at].has_lost = true;
        let gone = dead as TheaterId;
        // Nothing is said any more of what came over that link.
        let theater = &mut self.theaters[at];
        theater.owed.iter_mut().flatten().filter(|owed| owed.to == gone).for_each(|owed| owed.entry = None);
        theater.fences.retain(|fence| fence.of != gone);
        theater.bound[dead] = [false; ACTORS];
        // Messages that were sent on to the dead theater are settled.
        let entries = self.theaters[at].owed.iter().enumerate();
        let lost = |owed: &Option<Owed>| owed.is_some_and(|owed| owed.sent_to == Some(gone));
        let lost: Vec<usize> = entries.filter(|(_, owed)| lost(owed)).map(|(entry, _)| entry).collect();
        lost.into_iter().for_each(|entry| self.settle(at, entry));
        for actor in 0..ACTORS {
            if dead == BIRTH
                && let Life::Leaving { attempt, noted: false, .. } = self.theaters[at].views[actor].life()
            {
                self.noted(at, actor, attempt, program);
            }
            if let Some(Drain::Others { .. }) = self.theaters[at].drains[actor] {
                self.fenced(at, actor, gone, None, program);
            }
        }
        for actor in 0..ACTORS {
            if self.theaters[at].views[actor].guest_from() == Some(gone) {
                self.theaters[at].left = 0;
                let items = std::mem::take(&mut self.theaters[at].cells[actor].antechamber);
                self.miss_items(actor, items);
            }
            self.step(at, actor, Event::TheaterLost { theater: gone }, program);
        }
        let lost: Vec<_> = self.theaters[at].sent_on.extract_if(.., |(_, to, ..)| *to == gone).collect();
        for (actor, _, turn, path) in lost {
            self.answer(at, actor, (turn, path), None, program);
        }
        for (from, frame) in std::mem::take(&mut self.theaters[at].later) {
            self.take(from, at, frame, program);
        }
    }

    /// A theater has answered the fence of a drain, or is lost.
    fn fenced(&mut self, at: usize, actor: usize, by: TheaterId, of: Option<u64>, program: &Roaming) {
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

    /// Asks all theaters that are not lost to settle what they have got for an actor.
    fn settle_others(&mut self, at: usize, actor: usize, search: u64, program: &Roaming) {
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

    /// Answers a theater that seeks the actor.
    fn say_found(&mut self, at: usize, actor: usize, (from, lost): (TheaterId, TheaterId)) {
        let knows = match self.theaters[at].views[actor].life() {
            Life::Here | Life::Leaving { .. } | Life::Arriving { .. } => true,
            Life::Away { at, .. } => at != from && at != lost,
            Life::Sought { .. } | Life::Unknown => false,
        };
        self.say(at, from, Frame::Found { actor, lost, knows });
    }

    /// The actor of this place is lost.
    fn report(&mut self, at: usize, actor: usize, item: Item) {
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
            Item::Marker { turn, path, .. } => {
                if let Some((sender, path)) = path.back() {
                    self.say(at, sender, Frame::Answer { actor, turn, at: None, path });
                    self.say_ended(at, actor, sender);
                }
            }
            Item::Settle { from, search } => self.say(at, from, Frame::Settled { actor, search }),
            // The target is lost.
            Item::Begin { .. } => self.may_die[actor] = true,
        }
    }

    fn say_ended(&mut self, at: usize, actor: usize, to: TheaterId) {
        let other_at = at as TheaterId;
        self.say(at, to, Frame::Word { actor, word: Word::Ended, other_at });
    }

    /// The members of a group take an event of the same kind, by their attempts. All leave by that, or nobody.
    fn step_together(&mut self, at: usize, event: impl Fn(u64) -> Event<TheaterId>, program: &Roaming) {
        for actor in 0..ACTORS {
            if let Life::Leaving { attempt, .. } = self.theaters[at].views[actor].life() {
                self.step(at, actor, event(attempt), program);
            }
        }
        let has_left = |actor: usize| !matches!(self.theaters[at].views[actor].life(), Life::Leaving { .. });
        if (1..ACTORS).any(|actor| has_left(actor) != has_left(0)) {
            self.flaw = Some("a group is divided");
        }
    }

    /// The actor is to move. It is frozen in its own stage, before anything else is sent from there.
    fn migrate(&mut self, from: usize, actor: usize, to: TheaterId, program: &Roaming) {
        if from == BIRTH {
            self.theaters[BIRTH].hosts[actor] = 1 << to;
        }
        // The birth theater knows what leaves it, and what comes to it.
        let is_out_of_reach = self.has_lost(from, BIRTH);
        let noted = from == BIRTH || to as usize == BIRTH || is_out_of_reach || program.without == Some(Rule::Note);
        self.step(from, actor, Event::Migrate { to, noted }, program);
        self.do_request(from, actor, program);
    }

    /// A group is to move: all of it is frozen.
    fn migrate_together(&mut self, from: usize, to: TheaterId, program: &Roaming) {
        // The first one drains and is noted for all.
        for actor in (0..ACTORS).rev() {
            self.migrate(from, actor, to, program);
        }
        let attempts = self.theaters[from].numbers;
        self.say(from, to, Frame::Together { attempts });
    }

    /// A group is to come: all of it or nobody.
    fn take_together(&mut self, at: usize, from: TheaterId, attempts: [u64; ACTORS], program: &Roaming) {
        for (actor, attempt) in attempts.into_iter().enumerate() {
            self.meet(at, actor, from, program);
            self.step(at, actor, Event::Said { from, word: Word::Move { attempt } }, program);
            if self.theaters[at].views[actor].guest_from() != Some(from) {
                self.flaw = Some("a group is refused");
            }
        }
        self.theaters[at].left = 0;
        self.say(at, from, Frame::AllAccepted { attempts });
    }

    fn step(&mut self, at: usize, actor: usize, event: Event<TheaterId>, program: &Roaming) {
        let theater = &mut self.theaters[at];
        let number = &mut theater.numbers[actor];
        let mut next_number = || {
            *number += 1;
            *number
        };
        for action in theater.views[actor].step(event, &mut next_number) {
            match action {
                // That of the group is said for all of it.
                Action::Accept { .. } | Action::Say(_, Word::Move { .. }) if program.together => {}
                Action::Note { .. } | Action::Drain { .. } if program.together && actor > 0 => {}
                Action::Accept { from, attempt } => {
                    let other_at = self.name_for(at, other(actor), from, program);
                    let word = Word::Accepted { attempt, at: at as TheaterId };
                    self.say(at, from, Frame::Word { actor, word, other_at });
                }
                Action::Say(to, word) => {
                    let other_at = self.name_for(at, other(actor), to, program);
                    self.say(at, to, Frame::Word { actor, word, other_at });
                }
                Action::Ask(request) => {
                    let link = match request {
                        Request::Leave { to, .. } | Request::Turned { at: Some(to) } => self.link(at, to),
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
                Action::Seek { lost } => self.seek(at, actor, lost, program),
                Action::Settle { search } => self.settle_others(at, actor, search, program),
            }
        }
        self.go_on_draining(at);
    }

    fn note_hosts(&mut self, actor: usize, hosts: u8, program: &Roaming) {
        let all = &mut self.theaters[BIRTH].hosts;
        if program.together { *all = [hosts; ACTORS] } else { all[actor] = hosts }
    }

    fn noted(&mut self, at: usize, actor: usize, attempt: u64, program: &Roaming) {
        if program.together {
            self.step_together(at, |attempt| Event::Noted { attempt }, program);
        } else {
            self.step(at, actor, Event::Noted { attempt }, program);
        }
    }

    fn drained(&mut self, at: usize, actor: usize, attempt: u64, program: &Roaming) {
        if program.together {
            self.step_together(at, |attempt| Event::Drained { attempt }, program);
        } else {
            self.step(at, actor, Event::Drained { attempt }, program);
        }
    }

    /// Asks where the actor is: the birth theater and those that it names, or all if it is lost.
    fn seek(&mut self, at: usize, actor: usize, lost: TheaterId, program: &Roaming) {
        if self.dead.is_none() && self.cut.is_none() {
            self.flaw = Some("others are asked though no theater is lost");
            return;
        }
        let hosts = self.theaters[at].hosts[actor];
        let is_asked = |to: &usize| lost as usize == BIRTH || *to == BIRTH || at == BIRTH && hosts >> to & 1 == 1;
        let mut others = (0..THEATERS).filter(|to| *to != at && *to != lost as usize);
        let source = self.theaters[at].views[actor].guest_from().map(|source| source as usize);
        match others.find(is_asked).or(source) {
            // There are three theaters, and one is lost.
            Some(to) => self.say(at, to as TheaterId, Frame::Seek { actor, lost }),
            None => self.step(at, actor, Event::Found { lost, at: None }, program),
        }
    }

    fn go_on_draining(&mut self, at: usize) {
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

    /// Returns the theater that this one names to theater `to`.
    fn name_for(&self, at: usize, actor: usize, to: TheaterId, program: &Roaming) -> TheaterId {
        let view = &self.theaters[at].views[actor];
        match view.life() {
            Life::Away { at, .. } if at != to && (view.has_begun() || program.without == Some(Rule::NameLate)) => at,
            _ => at as TheaterId,
        }
    }

    /// A name of the actor is told: `way` knows the way to it.
    fn meet(&mut self, at: usize, actor: usize, way: TheaterId, program: &Roaming) {
        let link = self.link(at, way);
        if self.theaters[at].is_unknown(actor) {
            let theater = &mut self.theaters[at];
            theater.views[actor] = View::new(at as TheaterId, Life::Away { at: way, begun: true, turn: None });
            theater.cells[actor].go_by((way, link), false);
            if self.has_lost(at, way as usize) {
                // The name is older than the loss.
                self.step(at, actor, Event::TheaterLost { theater: way }, program);
            }
        }
    }

    /// A message that came over a link is in a mailbox.
    fn settle(&mut self, at: usize, entry: usize) {
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

    fn owe(&mut self, at: usize, owed: Owed) -> usize {
        let all = &mut self.theaters[at].owed;
        let entry = all.iter().position(Option::is_none).unwrap_or(all.len());
        if entry == all.len() {
            all.push(None);
        }
        all[entry] = Some(owed);
        entry
    }

    /// Returns whether a frame is for the antechamber.
    fn binds(&mut self, at: usize, from: usize, to: To) -> bool {
        let theater = &mut self.theaters[at];
        let bound = &mut theater.bound[from][to.actor];
        if to.binds {
            let view = &theater.views[to.actor];
            *bound = view.is_arriving() || to.after_leave && view.guest_from() == Some(from as TheaterId);
        }
        *bound
    }

    /// The answer to a marker goes back, or has come back.
    fn answer(
        &mut self,
        here: usize,
        actor: usize,
        (turn, path): (u64, Path),
        there: Option<TheaterId>,
        program: &Roaming,
    ) {
        match (path.back(), there) {
            (Some((sender, path)), at) => self.say(here, sender, Frame::Answer { actor, turn, at, path }),
            (None, Some(at)) => self.step(here, actor, Event::Answered { turn, at }, program),
            (None, None) => self.step(here, actor, Event::MarkerLost { turn }, program),
        }
    }

    fn take(&mut self, from: usize, at: usize, frame: Frame, program: &Roaming) {
        let sender = from as TheaterId;
        match frame {
            Frame::Message { to, number, acknowledge } => {
                let actor = to.actor;
                let settled = Item::Message { number, owed: None, awaited: 0 };
                let for_antechamber = self.binds(at, from, to);
                let cell = &mut self.theaters[at].cells[actor];
                if for_antechamber || cell.has_actor() {
                    if for_antechamber { &mut cell.antechamber } else { &mut cell.mail }.push_back(settled);
                    if let Some(entry) = acknowledge {
                        self.say(at, sender, Frame::Acknowledged { entry });
                    }
                    return;
                }
                let life = self.theaters[at].views[actor].life();
                if cell_reports(&self.theaters[at].cells[actor]) {
                    let owed = Some(self.owe(at, Owed { to: sender, entry: acknowledge, sent_to: None }));
                    return self.report(at, actor, Item::Message { number, owed, awaited: 0 });
                }
                if self.theaters[at].cells[actor].mode == Mode::Vacant {
                    self.flaw = Some("a message for an actor of which nothing is known");
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
                if matches!(life, Life::Away { .. }) {
                    self.say(at, sender, Frame::Moved { actor });
                }
            }
            Frame::Acknowledged { entry } => self.settle(at, entry),
            Frame::Marker { to, origin, turn, path } => {
                let path = path.over(from);
                let for_antechamber = self.binds(at, from, to);
                let theater = &mut self.theaters[at];
                if origin as usize == at
                    && theater.views[to.actor].is_arriving()
                    && theater.views[to.actor].turn() == Some(turn)
                {
                    self.step(at, to.actor, Event::CameRound { turn }, program);
                    self.answer(at, to.actor, (turn, path), Some(at as TheaterId), program);
                } else if for_antechamber || theater.cells[to.actor].has_actor() {
                    self.answer(at, to.actor, (turn, path), Some(at as TheaterId), program);
                } else if cell_reports(&theater.cells[to.actor]) {
                    self.report(at, to.actor, Item::Marker { origin, turn, path });
                } else {
                    theater.cells[to.actor].mail.push_back(Item::Marker { origin, turn, path });
                }
            }
            Frame::Seek { .. } | Frame::Settle { .. } | Frame::Answer { at: None, path: Path(0), .. }
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
                if matches!(self.theaters[at].views[actor].life(), Life::Leaving { attempt: of, .. } if of == attempt) {
                    self.theaters[at].drains[actor] = None;
                    self.step(at, actor, Event::GiveUp, program);
                }
            }
            Frame::Together { attempts } => self.take_together(at, sender, attempts, program),
            Frame::AllAccepted { attempts } => {
                let is_present = |(actor, attempt): (usize, &u64)| {
                    let life = self.theaters[at].views[actor].life();
                    matches!(life, Life::Leaving { attempt: of, .. } if of == *attempt)
                };
                if attempts.iter().enumerate().all(is_present) {
                    let word = |attempt| Word::Accepted { attempt, at: sender };
                    self.step_together(at, |attempt| Event::Said { from: sender, word: word(attempt) }, program);
                }
            }
            Frame::Seek { actor, lost } if self.cut.is_some() && at as TheaterId != lost => {
                // The answer comes behind all that the other theater has sent.
                self.say(at, lost, Frame::Inquire { actor, seeker: sender });
            }
            Frame::Seek { actor, lost } => self.say_found(at, actor, (sender, lost)),
            Frame::Inquire { actor, seeker } => self.say(at, sender, Frame::Inquired { actor, seeker }),
            Frame::Inquired { actor, seeker } => self.say_found(at, actor, (seeker, sender)),
            Frame::Settle { actor, search } => {
                let theater = &mut self.theaters[at];
                if matches!(theater.views[actor].life(), Life::Away { .. }) {
                    // Behind what this theater sends on.
                    theater.cells[actor].mail.push_back(Item::Settle { from: sender, search });
                } else {
                    self.say(at, sender, Frame::Settled { actor, search });
                }
            }
            Frame::Settled { actor, search } => self.step(at, actor, Event::Settled { search }, program),
            Frame::Found { actor, lost, knows } => {
                self.step(at, actor, Event::Found { lost, at: knows.then_some(sender) }, program);
            }
            Frame::Answer { actor, turn, at: there, path } => {
                self.theaters[at].sent_on.retain(|sent| *sent != (actor, sender, turn, path));
                self.answer(at, actor, (turn, path), there, program);
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
                    let attempts = theater.views.iter().map(View::guest);
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
                    self.meet(at, other(actor), other_at, program);
                    self.meet(at, actor, sender, program);
                }
                self.step(at, actor, Event::Said { from: sender, word }, program);
                if let Word::Move { attempt } = word
                    && self.theaters[at].views[actor].guest_from() != Some(sender)
                {
                    self.say(at, sender, Frame::Refused { actor, attempt });
                }
            }
        }
    }

    /// The source has left the actor.
    fn begin(&mut self, from: usize, at: usize, (actor, attempt): (usize, u64), program: &Roaming) {
        let sender = from as TheaterId;
        let theater = &mut self.theaters[at];
        let cell = &mut theater.cells[actor];
        let closed = theater.views[actor].may_close(Attempt { from: sender, number: attempt }) && !cell.is_used;
        cell.is_closed |= closed;
        let attempt = Attempt { from: sender, number: attempt };
        self.step(at, actor, Event::Begin { attempt, closed }, program);
    }

    fn do_request(&mut self, at: usize, actor: usize, program: &Roaming) {
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
            Request::Leave { to, attempt } => {
                self.may_die[actor] |= self.dead == Some(to as usize);
                cell.go_by((to, link), false);
                cell.mail.push_back(Item::Begin { to, attempt, link });
            }
            Request::Turned { at: Some(at) } => cell.go_by((at, link), true),
            Request::Turned { at: None } => cell.mode = Mode::Place,
            Request::Arrive { turns_already: true, .. } => cell.mode = Mode::Waiting,
            Request::Turn { turn } | Request::Arrive { turn, .. } | Request::MarkAgain { turn } => {
                cell.mode = Mode::Waiting;
                if self.leads_nowhere(at, actor) {
                    self.step(at, actor, Event::MarkerLost { turn }, program);
                } else {
                    self.send_on(at, actor, Item::Marker { origin: at as TheaterId, turn, path: Path::default() });
                }
            }
            Request::Begin => {
                let waited = std::mem::take(&mut cell.mail);
                cell.mail = std::mem::take(&mut cell.antechamber);
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
                        Item::Marker { turn, path, .. } => {
                            self.answer(at, actor, (turn, path), Some(at as TheaterId), program);
                        }
                        Item::Begin { .. } => self.flaw = Some("a beginning waits for an arrival"),
                        Item::Settle { from, search } => self.say(at, from, Frame::Settled { actor, search }),
                    }
                }
            }
        }
        self.go_on_draining(at);
    }

    /// Returns whether the way of a place goes over a link that is lost.
    fn leads_nowhere(&self, at: usize, actor: usize) -> bool {
        let Cell { way, link, .. } = self.theaters[at].cells[actor];
        self.has_lost(at, way as usize) || link != self.link(at, way)
    }

    /// Sends it along the way of the cell.
    fn send_on(&mut self, at: usize, actor: usize, item: Item) {
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
        let way = cell.way;
        cell.is_used = true;
        let after_leave = matches!(theater.views[actor].life(), Life::Away { begun: false, .. });
        let to = To { actor, binds: std::mem::replace(&mut cell.is_fresh, false), after_leave };
        let frame = match item {
            Item::Message { number, owed, .. } => {
                if let Some(owed) = owed.and_then(|entry| theater.owed[entry].as_mut()) {
                    owed.sent_to = Some(way);
                }
                Frame::Message { to, number, acknowledge: owed }
            }
            Item::Marker { origin, turn, path } => {
                theater.sent_on.push((actor, way, turn, path));
                Frame::Marker { to, origin, turn, path }
            }
            Item::Begin { .. } | Item::Settle { .. } => return,
        };
        self.say(at, way, frame);
    }

    fn take_mail(&mut self, at: usize, actor: usize) {
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

    /// Returns whether all messages were handled and nothing waits.
    fn has_ended(&self, program: &Roaming) -> bool {
        let is_at_rest = |cell: &Cell| {
            cell.mail.is_empty()
                && cell.antechamber.is_empty()
                && matches!(cell.mode, Mode::Vacant | Mode::Live | Mode::Place | Mode::Reports)
        };
        let is_done = |actor: usize| {
            // A lost actor sends no more, and the last messages may be missing.
            let sent = self.sent[other(actor)];
            let is_known = |number: u8| (self.missing[actor] | self.reported[actor]) >> number & 1 == 1;
            let has_sent = sent == program.sends[other(actor)] || self.lives(other(actor)) == 0;
            has_sent && (self.handled[actor]..sent).all(is_known)
        };
        let is_together = |theater: &Theater| theater.cells.iter().all(Cell::has_actor);
        let is_nobody = |theater: &Theater| !theater.cells.iter().any(Cell::has_actor);
        let is_whole =
            !program.together || self.theaters.iter().all(|theater| is_together(theater) || is_nobody(theater));
        // Those of a group are lost as one.
        let may_die = |actor: usize| self.may_die[actor] || program.together && self.may_die.contains(&true);
        (0..ACTORS).all(is_done)
            && is_whole
            && (0..ACTORS).all(|actor| {
                if self.lives(actor) == 0 { may_die(actor) } else { program.cuts || self.reported[actor] == 0 }
            })
            && self.theaters.iter().all(|theater| theater.owed.is_empty() && theater.cells.iter().all(is_at_rest))
    }

    fn is_bounded(&self) -> bool {
        self.links.iter().flatten().all(|link| link.len() <= MANY)
            && self.theaters.iter().all(|theater| theater.owed.len() <= MANY)
            && self.theaters.iter().flat_map(|theater| theater.numbers).all(|number| number <= MANY as u64)
    }

    fn lives(&self, actor: usize) -> usize {
        self.theaters.iter().filter(|theater| theater.cells[actor].has_actor()).count()
    }
}

impl Model for Roaming {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self)]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        if world.flaw.is_some() || !world.is_bounded() {
            return;
        }
        let is_dead = |at: usize| world.dead == Some(at);
        if self.cuts && world.cut.is_none() {
            steps.extend([[0, 1], [0, 2], [1, 2]].map(|between| Step::Cut { between }));
        }
        if let Some(ends) = world.cut
            && self.heals
            && !world.is_healed
            && ends.into_iter().all(|end| world.theaters[end].has_lost)
        {
            steps.push(Step::Heal);
        }
        if self.deaths && world.dead.is_none() {
            steps.extend((0..THEATERS).map(|at| Step::Die { at }));
        }
        for (at, theater) in world.theaters.iter().enumerate().filter(|(at, _)| !is_dead(*at)) {
            if world.gone(at).is_some() && !theater.has_lost {
                steps.push(Step::Lose { at });
            }
            for (actor, cell) in theater.cells.iter().enumerate() {
                let is_live = cell.mode == Mode::Live;
                let life = theater.views[actor].life();
                let others = (0..THEATERS).filter(|to| *to != at && !world.has_lost(at, *to));
                if is_live && world.sent[actor] < self.sends[actor] && theater.cells[other(actor)].mode != Mode::Vacant
                {
                    steps.push(Step::Send { at, from: actor });
                }
                // A place sends nothing on over a link that is lost. It is about to hear of that.
                let sends_on = cell.mode == Mode::Place && !cell.is_closed && !world.leads_nowhere(at, actor);
                if !cell.mail.is_empty() && (is_live || sends_on) {
                    steps.push(Step::Mail { at, actor });
                }
                if !cell.requests.is_empty() {
                    steps.push(Step::Request { at, actor });
                } else if is_live && life == Life::Here && world.migrations > 0 && (actor == 0 || !self.together) {
                    let is_ready = |actor: usize| {
                        let (cell, view) = (&theater.cells[actor], &theater.views[actor]);
                        cell.mode == Mode::Live && cell.requests.is_empty() && view.life() == Life::Here
                    };
                    if !self.together || (0..ACTORS).all(is_ready) {
                        steps.extend(others.clone().map(|to| Step::Migrate { from: at, actor, to }));
                    }
                }
                if world.give_ups > 0 && matches!(life, Life::Leaving { .. }) {
                    steps.push(Step::GiveUp { at, actor });
                }
                if world.names > 0 && cell.mode != Mode::Vacant {
                    let new = others.filter(|to| !is_dead(*to) && world.theaters[*to].is_unknown(actor));
                    steps.extend(new.map(|to| Step::Name { from: at, actor, to }));
                }
            }
        }
        for (from, links) in world.links.iter().enumerate() {
            steps.extend((0..THEATERS).filter(|to| !links[*to].is_empty()).map(|to| Step::Frame { from, to }));
        }
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        let mut world = world.clone();
        match step {
            Step::Die { at } => world.die(at),
            Step::Cut { between } => world.cut = Some(between),
            Step::Heal => {
                world.is_healed = true;
                world.theaters.iter_mut().for_each(|theater| theater.has_lost = false);
            }
            Step::Lose { at } => world.lose(at, self),
            Step::Send { at, from } => {
                let message = Item::Message { number: world.sent[from], owed: None, awaited: 0 };
                world.sent[from] += 1;
                if cell_reports(&world.theaters[at].cells[other(from)]) {
                    world.report(at, other(from), message);
                } else {
                    world.theaters[at].cells[other(from)].mail.push_back(message);
                }
            }
            Step::Mail { at, actor } => world.take_mail(at, actor),
            Step::Request { at, actor } => world.do_request(at, actor, self),
            Step::Frame { from, to } => {
                let frame = world.links[from][to].pop_front()?;
                world.take(from, to, frame, self);
            }
            Step::Migrate { from, actor, to } => {
                world.migrations -= 1;
                if self.together {
                    world.migrate_together(from, to as TheaterId, self);
                    return Some(world);
                }
                world.migrate(from, actor, to as TheaterId, self);
            }
            Step::GiveUp { at, actor } => {
                world.give_ups -= 1;
                world.theaters[at].drains[actor] = None;
                world.step(at, actor, Event::GiveUp, self);
            }
            Step::Name { from, actor, to } => {
                world.names -= 1;
                let way = world.name_for(from, actor, to as TheaterId, self);
                world.meet(to, actor, way, self);
            }
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::<Self>::always("each message is handled once and in order", |_, world| world.flaw.is_none()),
            Property::<Self>::always("one life at most", |_, world| (0..ACTORS).all(|actor| world.lives(actor) <= 1)),
            Property::<Self>::always("nothing is reported while its receiver lives", |program, world| {
                program.cuts || (0..ACTORS).all(|actor| world.lives(actor) == 0 || world.reported[actor] == 0)
            }),
            Property::<Self>::always("nothing goes round for ever", |_, world| world.is_bounded()),
            Property::<Self>::always("nothing waits for ever", |program, world| {
                let mut steps = Vec::new();
                program.actions(world, &mut steps);
                !steps.is_empty() || world.flaw.is_some() || !world.is_bounded() || world.has_ended(program)
            }),
        ]
    }
}

const PLAIN: Roaming = Roaming {
    sends: [2, 0],
    migrations: 2,
    names: 0,
    give_ups: 0,
    deaths: false,
    cuts: false,
    heals: false,
    together: false,
    without: None,
};

fn cell_reports(cell: &Cell) -> bool {
    cell.mode == Mode::Reports
}

/// Explores a program to its end. Returns the properties that do not hold.
fn explore(program: Roaming) -> Vec<&'static str> {
    let checker = program.checker().threads(2).spawn_bfs().join();
    println!("{program:?}: {} states, up to {} steps", checker.unique_state_count(), checker.max_depth());
    let mut flaws: Vec<&'static str> = checker.discoveries().into_keys().collect();
    flaws.sort_unstable();
    flaws
}

#[test]
fn an_order_holds_where_senders_and_receivers_move() {
    assert_eq!(explore(PLAIN), [""; 0]);
    assert_eq!(explore(Roaming { sends: [2, 1], ..PLAIN }), [""; 0]);
    assert_eq!(explore(Roaming { migrations: 3, ..PLAIN }), [""; 0]);
}

#[test]
fn names_and_attempts_that_are_given_up_change_nothing() {
    assert_eq!(explore(Roaming { names: 1, ..PLAIN }), [""; 0]);
    assert_eq!(explore(Roaming { give_ups: 1, ..PLAIN }), [""; 0]);
}

#[test]
fn who_is_not_in_a_lost_theater_goes_on_and_who_is_lost_is_told() {
    for sends in [[1, 0], [2, 0]] {
        assert_eq!(explore(Roaming { sends, deaths: true, migrations: 1, ..PLAIN }), [""; 0]);
    }
    assert_eq!(explore(Roaming { sends: [1, 0], deaths: true, ..PLAIN }), [""; 0]);
}

#[test]
fn a_group_moves_as_one_and_is_lost_as_one() {
    let group = Roaming { together: true, ..PLAIN };
    assert_eq!(explore(Roaming { sends: [1, 1], ..group }), [""; 0]);
    assert_eq!(explore(Roaming { sends: [1, 0], migrations: 1, deaths: true, ..group }), [""; 0]);
}

#[test]
fn where_a_search_is_answered_before_the_loss_a_living_actor_is_reported() {
    let flaws = explore(Roaming { sends: [1, 0], deaths: true, without: Some(Rule::AnswerLate), ..PLAIN });
    assert!(flaws.contains(&"nothing is reported while its receiver lives"), "{flaws:?}");
}

#[test]
fn where_the_birth_theater_does_not_know_where_an_actor_goes_a_living_one_is_reported() {
    let flaws = explore(Roaming { sends: [1, 0], deaths: true, without: Some(Rule::Note), ..PLAIN });
    assert!(flaws.contains(&"nothing is reported while its receiver lives"), "{flaws:?}");
}

#[test]
fn without_a_drain_an_actor_overtakes_its_own_message() {
    let flaws = explore(Roaming { without: Some(Rule::Drain), ..PLAIN });
    assert!(flaws.contains(&"each message is handled once and in order"), "{flaws:?}");
}

#[test]
fn with_early_acknowledgements_an_actor_overtakes_its_own_message() {
    let flaws = explore(Roaming { migrations: 3, without: Some(Rule::AcknowledgeLate), ..PLAIN });
    assert!(flaws.contains(&"each message is handled once and in order"), "{flaws:?}");
}

#[test]
fn where_theaters_are_apart_for_some_time_nothing_is_doubled_and_nothing_waits_for_ever() {
    let apart = Roaming { cuts: true, migrations: 1, ..PLAIN };
    assert_eq!(explore(apart), [""; 0]);
    for sends in [[2, 0], [1, 1]] {
        assert_eq!(explore(Roaming { sends, heals: true, ..apart }), [""; 0]);
    }
    let given_up = Roaming { sends: [1, 0], heals: true, give_ups: 1, names: 1, ..apart };
    assert_eq!(explore(given_up), [""; 0]);
    assert_eq!(explore(Roaming { sends: [1, 0], heals: true, together: true, ..apart }), [""; 0]);
}
