//! Which calls make a link between two theaters, and which go on with it: a state machine without sockets, threads, and clocks.
//!
//! A link goes on with one connection after the other. Each has a number, and the higher one counts. The first is number 1.
//!
//! *First calls.* If two theaters call each other for the first time at the same moment, the call of the one with the lower incarnation counts. It
//! answers that it is busy while it is calling itself, and the other one finds the link when that call is through.
//!
//! *Further calls.* Only the end that called first calls again; and a theater that leaves, because the other end does not once it has heard the
//! goodbye. Both ends have called first where the reply to a first call was lost, and the other end has called, too.
//!
//! *Links that were given up.* A caller that has a link is not taken into another one by an end that has lost a link with it: that may have been the
//! same one, and what was received in it would be sent once more. The caller gives its link up, and calls for the first time.
//!
//! All interleavings of calls, lost calls, lost replies, broken connections and losses are explored within bounds (`explored.rs`).

#[cfg(test)]
mod explored;

/// The calls of one link, as one of its ends knows them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Calling {
    /// This end called first, and calls again.
    pub(crate) called: bool,
    /// The number of the last connection.
    pub(crate) connection: u64,
    /// The number of the link at the other end. It does not change once something was received.
    pub(crate) known_as: Option<u64>,
    /// A call of this end is under way.
    pub(crate) calls_again: bool,
    /// So often in a row, the other end has answered that it is busy.
    busy: u32,
}

/// The state of a link at the moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sight {
    /// The number of the link at this end.
    pub(crate) number: u64,
    /// Something was received in it.
    pub(crate) has_heard: bool,
    /// It has a connection.
    pub(crate) is_connected: bool,
}

/// The statement of a caller about its link, in a first call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    /// It has one.
    pub(crate) knows: bool,
    /// The number of its link, or of the one that it was about to make.
    pub(crate) number: Option<u64>,
}

impl Claim {
    /// Whether the caller had this link when it began to call. The numbers of an end increase.
    fn means(self, sight: Sight) -> bool {
        self.knows && self.number.is_none_or(|number| sight.number <= number)
    }
}

/// The request of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Asks {
    /// It has no link, as far as it knows.
    First {
        /// It has a link with the theater that it has reached.
        knows: bool,
        /// It has lost a link with that one.
        has_lost: bool,
        /// The number of its link, or of the one that it is about to make.
        number: Option<u64>,
    },
    /// Its link goes on.
    Again {
        /// The number of the connection.
        connection: u64,
        /// The number of the link at the caller's end.
        number: Option<u64>,
        /// The number of the link at the end that is called, if the caller was told.
        link: Option<u64>,
    },
}

/// The answer to a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It is to call again.
    Busy,
    /// This end has another link by now: the call is late.
    Another,
    /// This end has given the link up, or may have: the caller gives it up, too.
    GivenUp,
    /// Both ends have the link: the caller now knows whom it has called.
    Known,
    /// The link goes on over this connection, which has the number of [`Calling::connection`] now.
    GoOn,
    /// As `GoOn`; the caller does not know of the link, and its connection is the first one.
    Adopt,
    /// The caller has given the link up: it is lost, and then the call is looked at once more.
    Lose,
    /// There is none: it is made, over this connection.
    Make,
}

/// The outcome of a further call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The link goes on over this connection.
    GoesOn,
    /// The other end is calling, or has called.
    Busy,
    /// Nobody has answered.
    Nothing,
}

/// A call that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// The link goes on.
    Again {
        /// The number of the connection.
        connection: u64,
        /// The number of the link at the other end.
        link: Option<u64>,
    },
    /// As a first call: the end that made the link may not know of it.
    Anew,
}

/// The state of an end that has no link, or has lost it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Without {
    /// It is calling that theater for the first time.
    pub(crate) calls: bool,
    /// It has lost a link with that theater: if so, the number of that link at the other end, as far as it was known.
    pub(crate) lost: Option<Option<u64>>,
    /// Not all of a former link has been forgotten.
    pub(crate) is_forgetting: bool,
}

/// Answers a caller where there is no link, or it is lost. `is_lower`: the incarnation of this end is the lower one.
pub(crate) fn answer_without(asks: Asks, Without { calls, lost, is_forgetting }: Without, is_lower: bool) -> Answer {
    match asks {
        Asks::Again { .. } => Answer::GivenUp,
        Asks::First { number, .. } if is_late(number, lost.flatten()) => Answer::Busy,
        Asks::First { knows: true, .. } if lost.is_some() => Answer::GivenUp,
        Asks::First { .. } if calls && is_lower || is_forgetting => Answer::Busy,
        Asks::First { .. } => Answer::Make,
    }
}

/// Whether the caller began to call before it made its link of the number that is `known`: what it said then is not true any more. The numbers of an
/// end increase.
fn is_late(number: Option<u64>, known: Option<u64>) -> bool {
    number.zip(known).is_some_and(|(number, known)| number < known)
}

/// Whether a first call makes a link where there is none, or it is lost. `knows`: the caller has said that it has a link with the other end. That one
/// goes on with the link then, and has not kept the connection. `theirs`: the number of the link there. `lost`: that of the last link that this end has
/// lost with it. If it is that one, the reply has come late.
pub(crate) fn makes(knows: bool, theirs: Option<u64>, lost: Option<u64>) -> bool {
    !knows && theirs.zip(lost).is_none_or(|(theirs, lost)| theirs > lost)
}

impl Calling {
    /// The calls of a new link, whose connection 1 there is.
    pub(crate) fn new(called: bool, known_as: Option<u64>) -> Calling {
        Calling { called, connection: 1, known_as, calls_again: false, busy: 0 }
    }

    /// Answers a caller where there is a link that is not lost. `calls`: this end is calling that one for the first time. `is_lower`: the
    /// incarnation of this end is the lower one.
    pub(crate) fn answer(&mut self, sight: Sight, asks: Asks, calls: bool, is_lower: bool) -> Answer {
        match asks {
            Asks::Again { link: Some(link), .. } if link != sight.number => Answer::Another,
            Asks::Again { number, .. } if !self.is_known_as(number, sight) => Answer::Another,
            Asks::Again { connection, .. } if connection > self.connection => {
                self.connection = connection;
                Answer::GoOn
            }
            Asks::Again { .. } => Answer::Busy,
            Asks::First { .. } if calls && is_lower => Answer::Busy,
            Asks::First { number, .. } if is_late(number, self.known_as) => Answer::Busy,
            Asks::First { knows: true, .. } => Answer::Known,
            // The caller called before it was reached by the call that has made this link. If it had given that up, it would not be connected, or would
            // say so.
            Asks::First { has_lost, .. } if self.called && sight.is_connected || sight.has_heard && !has_lost => {
                Answer::Busy
            }
            // The answer to its call did not come through, and it does not know of this link. What this end has sent meanwhile is not lost.
            Asks::First { has_lost: false, number, .. } => {
                (self.called, self.connection, self.known_as) = (false, 1, number);
                Answer::Adopt
            }
            Asks::First { .. } => Answer::Lose,
        }
    }

    /// Whether the other end means this link by its link of this number.
    fn is_known_as(&mut self, number: Option<u64>, sight: Sight) -> bool {
        let is_other = number.is_some() && number != self.known_as;
        if is_other && sight.has_heard && self.known_as.is_some() {
            return false;
        }
        self.known_as = number.or(self.known_as);
        true
    }

    /// A first call has reached a theater that there is a link with, and whose link has this number: it was called under another address, or has
    /// called meanwhile. It has `said` that it has that link, or not. Returns whether the link was found; otherwise it is to call once more.
    pub(crate) fn finds_itself(&mut self, sight: Sight, said: Claim, number: Option<u64>) -> bool {
        if !said.means(sight) && self.known_as.is_some() && number != self.known_as {
            // The other end may have lost the link of the number that is known, and could not know that this end has it.
            return false;
        }
        // If the other call did not come through, the other end holds itself for the one that was called, too: then nobody would call again.
        self.called |= !sight.is_connected;
        self.goes_on(sight, number);
        true
    }

    /// A caller that has `said` that it has a link hears that the other end has none, and has lost one. Returns whether this link is given up.
    pub(crate) fn is_lost_there(sight: Sight, said: Claim) -> bool {
        said.means(sight) && !sight.is_connected
    }

    /// The call that is due where there is no connection. `leaves`: this theater is about to end. `is_late`: nobody has called for so long that the
    /// other end may not know of the link.
    pub(crate) fn due(&mut self, sight: Sight, leaves: bool, is_late: bool, is_lower: bool) -> Option<Due> {
        if self.calls_again {
            return None;
        }
        let due = if self.called || leaves {
            self.connection += self.step(is_lower);
            // An end that was called, and has heard nothing, only knows the number of the link that was about to be made.
            let link = self.known_as.filter(|_| self.called || sight.has_heard);
            Due::Again { connection: self.connection, link }
        } else if !sight.has_heard && is_late {
            Due::Anew
        } else {
            return None;
        };
        self.calls_again = true;
        Some(due)
    }

    /// A call has been answered: the link goes on, which has this number at the other end.
    pub(crate) fn goes_on(&mut self, sight: Sight, number: Option<u64>) {
        if !sight.has_heard {
            self.known_as = number.or(self.known_as);
        }
    }

    /// A further call has ended.
    pub(crate) fn hears(&mut self, outcome: Outcome) {
        self.calls_again = false;
        self.busy = if outcome == Outcome::Busy { self.busy.saturating_add(1) } else { 0 };
    }

    /// There is a connection.
    pub(crate) fn connects(&mut self) {
        self.busy = 0;
    }

    /// How far the number of the next call is ahead of the last one's.
    ///
    /// Where both ends call, the higher number counts, and the end with the lower one is told that the other one is busy. If the numbers are equal,
    /// both are told that. They differ the next time: steps are powers of two times 1, 3, 5 or 7, and those of the two ends are never equal. Steps
    /// double while the other end is busy: an end whose calls come through overtakes one that has called in vain more often.
    fn step(&self, is_lower: bool) -> u64 {
        /// Bounds the steps.
        const DOUBLED_MAX: u32 = 20;
        let first = match self.called {
            true if is_lower => 1,
            true => 3,
            // It leaves.
            false if is_lower => 5,
            false => 7,
        };
        first << self.busy.min(DOUBLED_MAX)
    }
}
