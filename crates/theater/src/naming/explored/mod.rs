//! All interleavings of small programs that migrate, explored with `stateright`.
//!
//! The model holds what the machine leaves to others: links that keep order between three theaters, cells with their mail, and the drain of a
//! theater. Two actors are born in theater 0, or one of them is started from theater 0 in theater 1. They send numbered messages to each other. Any
//! step may come next: an actor sends or handles a message, a cell carries out a request, or a frame arrives. Or an actor migrates, an attempt is
//! cancelled, or a name is told to a theater that has none. One theater may die. Frames from it arrive until the others have lost it, which each does
//! at a time of its own. Or two theaters lose each other in the same manner though both live, and there is a new link between them later. The stub of
//! a lost actor has ended by then, so a name makes a new stub.

mod cells;
mod programs;
mod world;

use std::collections::VecDeque;

use crate::naming::migration_protocol::{Request, Site, TheaterId, View, Word};

impl Site for TheaterId {
    fn theater(&self) -> TheaterId {
        *self
    }
}

const ACTORS: usize = 2;
const THEATERS: usize = 3;
/// The theater that the actors are born in.
const BIRTH: usize = 0;
/// Frames on a link, owed messages, and numbers of a view: a greater number is taken for growth without end.
const MANY: usize = 8;

/// A program, and the rule that it leaves out.
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
    /// Whether there is a link between those two again, some time after both have lost the other.
    heals: bool,
    /// Whether the two are a group: they migrate together.
    together: bool,
    /// Whether the first actor does not live yet: the theater that it is born in starts it in another one.
    starts: bool,
    without: Option<Rule>,
}

/// A rule of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// A source commits when it has drained.
    Drain,
    /// A theater acknowledges a forwarded message when the next theater has acknowledged it.
    AcknowledgeLate,
    /// The target is named to others when the actor has begun in it.
    NameLate,
    /// A theater answers a search after it has lost the dead theater, too.
    AnswerLate,
    /// The birth theater of an actor is told its target.
    Note,
}

/// An item that waits in a cell.
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
    /// A question of the theater that the actor has come to.
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
    Stub,
    /// A stub or a cell whose mail waits.
    Waiting,
    /// A stub whose mail is reported.
    Reports,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Cell {
    mode: Mode,
    route: TheaterId,
    /// The number of the link with that theater, of successive ones.
    link: u8,
    /// Whether the name of the route was not used yet.
    is_fresh: bool,
    /// Whether anything was forwarded since the actor left.
    is_used: bool,
    /// Whether nothing is forwarded any more.
    is_closed: bool,
    mail: VecDeque<Item>,
    arrival_buffer: VecDeque<Item>,
    /// The requests, with the number of the link that a new route goes over.
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
        (self.mode, self.route, self.link) = (Mode::Stub, route, link);
        (self.is_fresh, self.is_used, self.is_closed) = (true, is_used, false);
    }
}

/// The theaters that a marker has come over, the last one first. Its answer goes back over them.
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

/// The address of a frame for an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct To {
    actor: usize,
    /// Whether the frame binds the name.
    binds: bool,
    /// Whether the source sends the frame after the commit.
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
    /// The answer to a marker: the residence of the actor. Nothing if the marker is lost.
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
    Locate {
        actor: usize,
        lost: TheaterId,
    },
    Found {
        actor: usize,
        lost: TheaterId,
        knows: bool,
    },
    /// A theater that is lost to the theater `locator` only is asked to confirm that everything it has sent has come.
    Inquire {
        actor: usize,
        locator: TheaterId,
    },
    Inquired {
        actor: usize,
        locator: TheaterId,
    },
    Settle {
        actor: usize,
        search: u64,
    },
    Settled {
        actor: usize,
        search: u64,
    },
    /// The actor does not come: what was known of it is lost, and its stub has not ended.
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
    /// A word with the name of the other actor, because a state may hold references.
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

/// A question of another theater: whether everything that it has sent to this one is in the mailboxes.
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
    /// Messages from this theater have not left their stubs.
    Local { attempt: u64 },
    /// These theaters have not answered the fence, as bits.
    Others { attempt: u64, left: u8 },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Theater {
    views: Vec<View<TheaterId>>,
    /// The last number that was given to an attempt or a reroute of each actor.
    numbers: [u64; ACTORS],
    cells: Vec<Cell>,
    owed: Vec<Option<Owed>>,
    fences: Vec<Fence>,
    drains: [Option<Drain>; ACTORS],
    /// The theaters that each actor may be in, in the birth theater, as bits.
    hosts: [u8; ACTORS],
    /// The members of a group that its source has committed, as bits: they begin together.
    left: u8,
    /// For each theater and actor, whether mail by the name in use goes to the arrival buffer.
    bound: [[bool; ACTORS]; THEATERS],
    /// Whether the theater that has died, or that is cut off from this one, is lost to this one.
    has_lost: bool,
    /// Frames that wait for that loss.
    later: Vec<(usize, Frame)>,
    /// Forwarded markers: the actor, the target theater, the reroute, and the path that the marker had come by.
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
    /// The two theaters that lose each other, or have.
    cut: Option<[usize; 2]>,
    /// Whether there is a link between those two again.
    is_healed: bool,
    /// The messages to each actor that the dead theater had or got, or that were on a lost link, as bits.
    missing: [u8; ACTORS],
    /// The messages to each actor that were reported, as bits.
    reported: [u8; ACTORS],
    /// Whether each actor was in the dead theater, or on its way from it or to it, or left over a lost link.
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
    /// Returns whether a name of the actor makes a stub: there is none, or it was lost and has ended.
    fn is_unknown(&self, actor: usize) -> bool {
        let cell = &self.cells[actor];
        matches!(cell.mode, Mode::Vacant | Mode::Reports) && cell.requests.is_empty()
    }
}
