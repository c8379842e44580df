//! All interleavings of small programs that migrate, explored with `stateright`.
//!
//! The model holds what the machine leaves to others: links that keep order between three theaters, cells with their mail, and how a theater
//! drains. Two actors are born in theater 0, or one of them is started from there in theater 1, and send numbered messages to each other. Any step may come next: a message is sent or handled,
//! a cell does a request, a frame arrives, an actor migrates, an attempt is given up, a name is told to a theater that has none. One theater
//! may die. Frames from it arrive until the others have lost it, which each does at a time of its own. Or two theaters lose each other in the same way
//! though both live, and there is a new link between them later. What a place had of a lost actor has ended by then, so a name makes a new place.

mod programs;
mod world;

use std::collections::VecDeque;

use super::{Request, Site, TheaterId, View, Word};

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
    /// Whether the first actor does not live yet: the theater that it is born in starts it in another one.
    starts: bool,
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
        reroute: u64,
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
    route: TheaterId,
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
    fn reports(&self) -> bool {
        self.mode == Mode::Reports
    }

    fn has_actor(&self) -> bool {
        matches!(self.mode, Mode::Live | Mode::Frozen)
    }

    fn go_by(&mut self, (route, link): (TheaterId, u8), is_used: bool) {
        (self.mode, self.route, self.link) = (Mode::Place, route, link);
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
        reroute: u64,
        path: Path,
    },
    /// The answer to a marker: where the actor lives. Nothing if the marker is lost.
    Answer {
        actor: usize,
        reroute: u64,
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
