//! The calls between two theaters: a state machine, without sockets, threads and clocks, that decides which calls make a link and
//! which continue it.
//!
//! A link continues with one connection after the other. Each connection has a number, and the highest number counts. The first
//! is number 1.
//!
//! *First calls.* If two theaters call each other for the first time at the same moment, the call of the lower incarnation
//! counts. The lower incarnation answers that it is busy while it is calling itself. The higher incarnation finds the link once
//! that call is through.
//!
//! *Further calls.* Only the end that called first calls again. A theater that shuts down calls as well, because the other end
//! stops calling once it has received the shutdown announcement. Both ends called first if the reply to a first call was lost and
//! the other end has called, too.
//!
//! *Links that were given up.* An end that has lost a link with a caller does not take the caller's link into another one. The
//! lost link may have been the same one, and messages received in it would be sent once more. The caller gives its link up, and
//! calls for the first time.
//!
//! All interleavings of calls, lost calls, lost replies, broken connections and losses are explored within bounds
//! (`explored.rs`).

#[cfg(test)]
mod explored;

/// The calls of one link, from the view of one end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Calling {
    /// This end called first, and calls again.
    pub(crate) called: bool,
    /// The number of the last connection.
    pub(crate) connection: u64,
    /// The number of the link at the other end. It does not change once something was received.
    pub(crate) known_as: Option<u64>,
    /// A call of this end is in progress.
    pub(crate) calls_again: bool,
    /// Number of times in a row that the other end has answered that it is busy.
    busy: u32,
}

/// The state of a link at the moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sight {
    /// The number of the link at this end.
    pub(crate) number: u64,
    /// Something was received in it.
    pub(crate) has_received: bool,
    /// It has a connection.
    pub(crate) is_connected: bool,
}

/// The statement of a caller about its link, in a first call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    /// The caller has a link.
    pub(crate) knows: bool,
    /// The number of its link, or of the link that it was about to make.
    pub(crate) number: Option<u64>,
}

impl Claim {
    /// Returns whether the caller had this link when it began to call. The numbers of an end increase.
    fn means(self, sight: Sight) -> bool {
        self.knows && self.number.is_none_or(|number| sight.number <= number)
    }
}

/// The request of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Asks {
    /// A first call: the caller knows of no link.
    First {
        /// The caller has a link with the theater that it has reached.
        knows: bool,
        /// The caller has lost a link with that theater.
        has_lost: bool,
        /// The number of the caller's link, or of the link that it is about to make.
        number: Option<u64>,
    },
    /// A further call: the caller's link continues.
    Again {
        /// The number of the connection.
        connection: u64,
        /// The number of the link at the caller's end.
        number: Option<u64>,
        /// The number of the link at the called end, if the caller was told.
        link: Option<u64>,
    },
}

/// The answer to a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The caller is to call again.
    Busy,
    /// This end has another link by now, because the call is late.
    Another,
    /// This end has given the link up, or may have: the caller gives it up, too.
    GivenUp,
    /// Both ends have the link: the caller now knows the theater that it has called.
    Known,
    /// The link continues over this connection, which now has the number [`Calling::connection`].
    GoOn,
    /// Like `GoOn`. The caller does not know of the link, and its connection is the first one.
    Adopt,
    /// The caller has given the link up. This end loses it and examines the call once more.
    Lose,
    /// This end has no link and makes one over this connection.
    Make,
}

/// The outcome of a further call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The link continues over this connection.
    GoesOn,
    /// The other end is calling, or has called.
    Busy,
    /// No theater has answered.
    Nothing,
}

/// A call that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// A further call that continues the link.
    Again {
        /// The number of the connection.
        connection: u64,
        /// The number of the link at the other end.
        link: Option<u64>,
    },
    /// A call like a first one, because the end that made the link may not know of it.
    Anew,
}

/// The state of an end that has no link, or has lost it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Without {
    /// This end is calling that theater for the first time.
    pub(crate) calls: bool,
    /// This end has lost a link with that theater. The inner value is the number of that link at the other end, as far as it was
    /// known.
    pub(crate) lost: Option<Option<u64>>,
    /// A former link has not been forgotten completely.
    pub(crate) is_forgetting: bool,
}

/// Answers a caller without a link, or with a lost one. `is_lower`: this end has the lower incarnation.
pub(crate) fn answer_without(asks: Asks, Without { calls, lost, is_forgetting }: Without, is_lower: bool) -> Answer {
    match asks {
        Asks::Again { .. } => Answer::GivenUp,
        Asks::First { number, .. } if is_late(number, lost.flatten()) => Answer::Busy,
        Asks::First { knows: true, .. } if lost.is_some() => Answer::GivenUp,
        Asks::First { .. } if calls && is_lower || is_forgetting => Answer::Busy,
        Asks::First { .. } => Answer::Make,
    }
}

/// Returns whether the caller began to call before it made its link of the number `known`. In that case the statement of the call
/// is outdated. The numbers of an end increase.
fn is_late(number: Option<u64>, known: Option<u64>) -> bool {
    number.zip(known).is_some_and(|(number, known)| number < known)
}

/// Returns whether a first call makes a link at an end that has none, or has lost it. `knows`: the caller has said that it has a
/// link with the other end. In that case the other end continues that link and has not kept the connection. `theirs`: the number
/// of the link at the other end. `lost`: the number, at the other end, of the last link that this end has lost with it. If both
/// numbers are equal, the reply has come late.
pub(crate) fn makes(knows: bool, theirs: Option<u64>, lost: Option<u64>) -> bool {
    !knows && theirs.zip(lost).is_none_or(|(theirs, lost)| theirs > lost)
}

impl Calling {
    /// Makes the calls of a new link, which has connection 1.
    pub(crate) fn new(called: bool, known_as: Option<u64>) -> Calling {
        Calling { called, connection: 1, known_as, calls_again: false, busy: 0 }
    }

    /// Answers a caller with a link that is not lost. `calls`: this end is calling that theater for the first time. `is_lower`:
    /// this end has the lower incarnation.
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
            // The caller called before the call that has made this link reached it. A caller that had given the link up would not
            // be connected, or would say it.
            Asks::First { has_lost, .. } if self.called && sight.is_connected || sight.has_received && !has_lost => {
                Answer::Busy
            }
            // The answer to the caller's call was lost, and the caller does not know of this link. Nothing that this end has sent
            // since then is lost.
            Asks::First { has_lost: false, number, .. } => {
                (self.called, self.connection, self.known_as) = (false, 1, number);
                Answer::Adopt
            }
            Asks::First { .. } => Answer::Lose,
        }
    }

    /// Returns whether the other end means this link by its link of this number.
    fn is_known_as(&mut self, number: Option<u64>, sight: Sight) -> bool {
        let is_other = number.is_some() && number != self.known_as;
        if is_other && sight.has_received && self.known_as.is_some() {
            return false;
        }
        self.known_as = number.or(self.known_as);
        true
    }

    /// Handles a first call that has reached a theater with a link, whose number at the other end is `number`. That theater was
    /// called under another address, or has called since. The caller has `said` whether it has that link. Returns whether the
    /// link was found; otherwise the caller is to call once more.
    pub(crate) fn finds_itself(&mut self, sight: Sight, said: Claim, number: Option<u64>) -> bool {
        if !said.means(sight) && self.known_as.is_some() && number != self.known_as {
            // The other end may have lost the link with the known number, and cannot know that this end has it.
            return false;
        }
        // If the other call was lost, the other end also considers itself the called one. Without this line neither end would
        // call again.
        self.called |= !sight.is_connected;
        self.goes_on(sight, number);
        true
    }

    /// Handles the statement of the other end that it has no link and has lost one. The caller has `said` that it has a link.
    /// Returns whether this link is given up.
    pub(crate) fn is_lost_to_peer(sight: Sight, said: Claim) -> bool {
        said.means(sight) && !sight.is_connected
    }

    /// Returns the call that is due for a link without a connection. `leaves`: this theater is about to end. `is_late`: the
    /// last call is long ago, and the other end may not know of the link.
    pub(crate) fn due(&mut self, sight: Sight, leaves: bool, is_late: bool, is_lower: bool) -> Option<Due> {
        if self.calls_again {
            return None;
        }
        let due = if self.called || leaves {
            self.connection += self.step(is_lower);
            // An end that was called and has received nothing only knows the number of the link that was about to be made.
            let link = self.known_as.filter(|_| self.called || sight.has_received);
            Due::Again { connection: self.connection, link }
        } else if !sight.has_received && is_late {
            Due::Anew
        } else {
            return None;
        };
        self.calls_again = true;
        Some(due)
    }

    /// Notes that a call was answered: the link continues, and has this number at the other end.
    pub(crate) fn goes_on(&mut self, sight: Sight, number: Option<u64>) {
        if !sight.has_received {
            self.known_as = number.or(self.known_as);
        }
    }

    /// Notes the outcome of a further call.
    pub(crate) fn note_outcome(&mut self, outcome: Outcome) {
        self.calls_again = false;
        self.busy = if outcome == Outcome::Busy { self.busy.saturating_add(1) } else { 0 };
    }

    /// Notes that the link has a connection.
    pub(crate) fn connects(&mut self) {
        self.busy = 0;
    }

    /// Returns the difference between the numbers of the next call and the last one.
    ///
    /// If both ends call, the higher number counts, and the end with the lower number is told that the other one is busy. If the
    /// numbers are equal, both ends are told that. They differ the next time: steps are powers of two times 1, 3, 5 or 7, and the
    /// steps of the two ends are never equal. Steps double while the other end is busy. An end whose calls arrive therefore
    /// overtakes an end that has called in vain more often.
    fn step(&self, is_lower: bool) -> u64 {
        /// Maximum number of doublings of a step.
        const DOUBLED_MAX: u32 = 20;
        let first = match self.called {
            true if is_lower => 1,
            true => 3,
            // The end is shutting down.
            false if is_lower => 5,
            false => 7,
        };
        first << self.busy.min(DOUBLED_MAX)
    }
}
