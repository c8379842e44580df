//! The protocol of migration as a pure state machine: no threads, sockets, clocks or locks.
//!
//! [`View`] is what one theater knows of one mobile actor. [`View::step`] takes an [`Event`] and returns [`Action`]s for the actor's cell
//! and for other theaters. All interleavings of three theaters are explored within the bounds that `explored` states.
//!
//! Theaters move actors in the steps that it describes ([`moves`](crate::moves), [`guests`](crate::guests), [`drain`](crate::drain)), but they do
//! not run this code yet. Groups, supervision and theaters that are apart though both live are not in it yet.
//!
//! # How an actor moves
//!
//! 1. *Move.* The source freezes the cell between two messages and sends the state. The target keeps it as a [`Guest`] and answers `Accepted`.
//!    Nothing else changes there: mail for the actor goes the way it went.
//! 2. *Drain.* Meanwhile the source waits until all that was sent from it before the freeze is in the mailboxes of its receivers. Otherwise the
//!    actor could send from its target what overtakes that.
//! 3. *Leave.* When both are done, the cell becomes a place. What waited there goes to the target, into an antechamber, and `Begin` goes
//!    behind it. Until the source leaves, the actor can stay: it lives in the source.
//! 4. *Begin.* The actor lives in the target from then on. `Begun` is the answer.
//!
//! The actor is in one theater at any time, because the source leaves before the target begins.
//!
//! # The way of the mail
//!
//! A place sends mail on along its way. A theater that sends to a place is told `Moved`. It then *turns*: what comes waits at its own place, and
//! a *marker* goes the old way. The theater where the actor lives answers it. All that was sent the old way is in the mailbox by then, so the
//! place sends what waited along a new way. A marker never waits for a frozen actor, because that actor lives there until it leaves.
//!
//! Where an actor comes to a theater that has a place for it, the place turns in the same way, but its new way is the cell itself.
//! By names that are bound after the actor's arrival, mail goes to the antechamber, which comes first. If nothing was sent on since the
//! actor left, nothing is under way, and it begins at once.
//!
//! # When a theater is lost
//!
//! - An actor that was to leave for it stays. A guest from it does not begin: if the source had left, the actor is lost with the source.
//! - A place whose way leads there keeps its mail and asks the other theaters. Each answers when the theater is lost to it, too: until then the
//!   actor may be under way to it. If one knows the way, the place follows it. If none does, the actor is lost: its mail is reported, and those
//!   that send to the place are told.
//! - An actor that has come, and whose marker was lost, begins when the others have answered behind what they send on.
//!
//! An actor ends with a theater only if it was there, had left it, or left for it. Within two migrations, the exploration does not show
//! that the answers for an actor that has come must come behind what is sent on. An argument does: a message that went over the lost theater
//! may still wait at the place that answers.
//!
//! By hand, these were explored, too: two messages (741,642 states), one message each way (1,483,547), a name that is told (1,094,927), and an
//! attempt that is given up (484,257), each with two migrations and the loss of a theater.
//!
//! # Three rules that the exploration has shown to be needed
//!
//! - A theater that sends a message on acknowledges it to the sender's theater only when the next one has. Without this rule, a drain
//!   ends too early: an actor overtakes its own message after three migrations.
//! - The source names the target to third theaters only after `Begun`. Without this rule, two places may send to each other, and a message
//!   goes round between them for ever.
//! - A theater answers a search after it has lost the dead theater, too. Without this rule, a living actor is reported.

#[cfg(test)]
mod explored;

/// The number of a theater.
pub(crate) type TheaterId = u64;

/// Where an actor is, as one theater knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Life {
    /// The theater has never heard of it.
    Unknown,
    /// It lives here.
    Here,
    /// It lives here, frozen, and is about to leave.
    Leaving {
        /// The target.
        to: TheaterId,
        /// The number of this attempt.
        attempt: u64,
        /// Whether the target has accepted it.
        accepted: bool,
        /// Whether all that was sent from here before is in the mailboxes of its receivers.
        drained: bool,
    },
    /// It has come, and waits for the marker of this turn, or for the answers to this search: what is under way comes first.
    Arriving {
        /// The number of the turn or search.
        turn: u64,
        /// The way that its mail went before.
        by: TheaterId,
    },
    /// It lives elsewhere.
    Away {
        /// Where its mail goes.
        at: TheaterId,
        /// Whether it has begun there.
        begun: bool,
        /// The number of the turn, while the way changes.
        turn: Option<u64>,
    },
    /// The theater that its mail went to is lost. The others are asked.
    Sought {
        /// The number of the search.
        search: u64,
    },
    /// It was lost with a theater.
    Lost,
}

/// An actor that was accepted and has not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Guest {
    /// The theater that it comes from.
    pub(crate) from: TheaterId,
    /// The number of that theater's attempt.
    pub(crate) attempt: u64,
}

/// What one theater knows of one mobile actor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct View {
    me: TheaterId,
    life: Life,
    guest: Option<Guest>,
    /// The last number that was given to an attempt or a turn.
    last_number: u64,
}

/// What happens to a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Event {
    /// The actor is to move. It is between two messages.
    Migrate { to: TheaterId },
    /// All that was sent before the attempt is in the mailboxes of its receivers.
    Drained { attempt: u64 },
    /// The attempt takes too long, or cannot succeed.
    GiveUp,
    /// A word of another theater.
    Said { from: TheaterId, word: Word },
    /// What waited for the actor at `from` has come, and the actor begins. `closed`: this theater has sent nothing on since the actor left it,
    /// and will not.
    Begin { from: TheaterId, attempt: u64, closed: bool },
    /// A theater to which mail was sent says that the actor is elsewhere.
    Moved { from: TheaterId },
    /// The marker of a turn was answered by the theater where the actor lives.
    Answered { turn: u64, at: TheaterId },
    /// The marker of a turn has come back to this theater, where the actor has come meanwhile.
    CameRound { turn: u64 },
    /// A theater is lost to this one: nothing comes from it any more.
    TheaterLost { theater: TheaterId },
    /// The marker of a turn was lost with a theater, which is lost to this one, too.
    MarkerLost { turn: u64 },
    /// All that were asked have answered, and before that they have sent on what they had got over the lost theater. One that knows the way
    /// is `at`.
    Found { search: u64, at: Option<TheaterId> },
}

/// A word to another theater about the actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Word {
    /// The actor's state.
    Move { attempt: u64 },
    /// The receiver's actor was accepted.
    Accepted { attempt: u64 },
    /// The sender's actor stays.
    Stays { attempt: u64 },
    /// The receiver's actor has begun.
    Begun,
    /// The actor was lost with a theater.
    Ended,
}

/// A request to the actor's cell. The cell does them in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Request {
    /// The actor runs no more.
    Freeze,
    /// It goes on.
    Stay,
    /// The cell becomes a place. What waits goes on to the theater, and `Begin` behind it.
    Leave { to: TheaterId, attempt: u64 },
    /// What comes waits, and a marker goes the old way.
    Turn { turn: u64 },
    /// What waits goes on to this theater.
    Turned { at: TheaterId },
    /// What comes waits for the actor, which has come. If it does not wait already, a marker goes the old way.
    Arrive { turn: u64, turns_already: bool },
    /// One more marker goes the old way.
    MarkAgain { turn: u64 },
    /// The actor runs: first what is in the antechamber, then what waits.
    Begin,
    /// The way is lost. Mail waits.
    Wait,
    /// The actor is lost. Waiting and later mail is reported.
    Report,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    /// The word goes to another theater.
    Say(TheaterId, Word),
    /// The request goes to the cell.
    Ask(Request),
    /// [`Event::Drained`] is wanted.
    Drain { attempt: u64 },
    /// All other theaters are to be asked where the actor is. If it has come here, they answer when they have sent on what came before.
    Seek { search: u64, has_come: bool },
}

impl View {
    /// Returns the view of theater `me`.
    pub(crate) fn new(me: TheaterId, life: Life) -> View {
        View { me, life, guest: None, last_number: 0 }
    }

    /// Returns the theater from which the actor was accepted, if it has not begun.
    pub(crate) fn guest_from(&self) -> Option<TheaterId> {
        self.guest.map(|guest| guest.from)
    }

    /// Returns where the actor is.
    pub(crate) fn life(&self) -> Life {
        self.life
    }

    /// Notes a name of the actor: `at` knows the way to it. Returns whether it needs a place.
    pub(crate) fn meet(&mut self, at: TheaterId) -> bool {
        let is_new = self.life == Life::Unknown;
        if is_new {
            self.life = Life::Away { at, begun: true, turn: None };
        }
        is_new
    }

    /// Returns the theater that this one names to theater `to`.
    pub(crate) fn name_for(&self, to: TheaterId) -> TheaterId {
        match self.life {
            Life::Away { at, begun: true, .. } if at != to => at,
            _ => self.me,
        }
    }

    /// Returns whether mail from theater `from` by a name that is bound now goes to the antechamber. `after_leave`: `from` is the source, and
    /// sends what waited there.
    pub(crate) fn binds_to_antechamber(&self, from: TheaterId, after_leave: bool) -> bool {
        matches!(self.life, Life::Arriving { .. }) || after_leave && self.guest.is_some_and(|guest| guest.from == from)
    }

    /// Returns whether the actor begins by the attempt without a turn, if nothing was sent on since it left.
    pub(crate) fn may_close(&self, from: TheaterId, attempt: u64) -> bool {
        matches!(self.life, Life::Away { turn: None, .. }) && self.guest == Some(Guest { from, attempt })
    }

    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Takes an event, and returns what is to be done, in order. An event that comes too late does nothing.
    pub(crate) fn step(&mut self, event: Event) -> Vec<Action> {
        use Action::{Ask, Drain, Say, Seek};
        match (event, self.life) {
            (Event::Migrate { to }, Life::Here) => {
                let attempt = self.next_number();
                self.life = Life::Leaving { to, attempt, accepted: false, drained: false };
                vec![Ask(Request::Freeze), Say(to, Word::Move { attempt }), Drain { attempt }]
            }
            (Event::Drained { attempt: of }, Life::Leaving { to, attempt, accepted, .. }) if of == attempt => {
                self.life = Life::Leaving { to, attempt, accepted, drained: true };
                self.leave()
            }
            (
                Event::Said { from, word: Word::Accepted { attempt: of } },
                Life::Leaving { to, attempt, drained, .. },
            ) if (from, of) == (to, attempt) => {
                self.life = Life::Leaving { to, attempt, accepted: true, drained };
                self.leave()
            }
            (Event::GiveUp, Life::Leaving { to, attempt, .. }) => {
                self.life = Life::Here;
                vec![Ask(Request::Stay), Say(to, Word::Stays { attempt })]
            }
            (
                Event::Said { from, word: Word::Move { attempt } },
                Life::Unknown | Life::Away { .. } | Life::Sought { .. },
            ) => {
                self.guest = Some(Guest { from, attempt });
                vec![Say(from, Word::Accepted { attempt })]
            }
            (Event::Said { from, word: Word::Stays { attempt } }, _) => {
                self.guest.take_if(|guest| *guest == Guest { from, attempt });
                Vec::new()
            }
            (Event::Begin { from, attempt, closed }, life) if self.guest == Some(Guest { from, attempt }) => {
                self.guest = None;
                let mut actions = vec![Ask(self.begin(life, closed)), Say(from, Word::Begun)];
                if let (Life::Sought { .. }, Life::Arriving { turn: search, .. }) = (life, self.life) {
                    actions.push(Seek { search, has_come: true });
                }
                actions
            }
            (Event::Said { from, word: Word::Begun }, Life::Away { at, begun: false, turn }) if at == from => {
                self.life = Life::Away { at, begun: true, turn };
                Vec::new()
            }
            (Event::Moved { from }, Life::Away { at, begun: true, turn: None }) if at == from => {
                let turn = self.next_number();
                self.life = Life::Away { at, begun: true, turn: Some(turn) };
                vec![Ask(Request::Turn { turn })]
            }
            (Event::Answered { turn: of, at }, Life::Away { turn: Some(turn), .. }) if of == turn => {
                self.life = Life::Away { at, begun: true, turn: None };
                vec![Ask(Request::Turned { at })]
            }
            (Event::Answered { turn: of, at }, Life::Arriving { turn, by }) if of == turn && at != self.me => {
                // The actor was there at that time. What was before the marker follows it here, and one more marker follows that.
                let turn = self.next_number();
                self.life = Life::Arriving { turn, by };
                vec![Ask(Request::MarkAgain { turn })]
            }
            (
                Event::Answered { turn: of, .. } | Event::CameRound { turn: of } | Event::Found { search: of, .. },
                Life::Arriving { turn, .. },
            ) if of == turn => {
                self.life = Life::Here;
                vec![Ask(Request::Begin)]
            }
            (Event::TheaterLost { theater }, life) => self.lose(theater, life),
            (Event::MarkerLost { turn: of }, Life::Arriving { turn, by }) if of == turn => {
                let search = self.next_number();
                self.life = Life::Arriving { turn: search, by };
                vec![Seek { search, has_come: true }]
            }
            (Event::MarkerLost { turn: of }, Life::Away { at, turn: Some(turn), .. }) if of == turn => {
                self.life = Life::Away { at, begun: true, turn: None };
                vec![Ask(Request::Turned { at })]
            }
            (Event::Found { search: of, at: Some(at) }, Life::Sought { search }) if of == search => {
                self.life = Life::Away { at, begun: true, turn: None };
                vec![Ask(Request::Turned { at })]
            }
            // An actor that is on its way here was known where it comes from.
            (Event::Found { search: of, at: None }, Life::Sought { search })
                if of == search && self.guest.is_none() =>
            {
                self.life = Life::Lost;
                vec![Ask(Request::Report)]
            }
            (Event::Said { from, word: Word::Ended }, Life::Away { at, .. }) if at == from => {
                self.life = Life::Lost;
                vec![Ask(Request::Report)]
            }
            _ => Vec::new(),
        }
    }

    /// A theater is lost.
    fn lose(&mut self, theater: TheaterId, life: Life) -> Vec<Action> {
        self.guest.take_if(|guest| guest.from == theater);
        match life {
            Life::Leaving { to, .. } if to == theater => {
                self.life = Life::Here;
                vec![Action::Ask(Request::Stay)]
            }
            Life::Arriving { by, .. } if by == theater => {
                let search = self.next_number();
                self.life = Life::Arriving { turn: search, by };
                vec![Action::Seek { search, has_come: true }]
            }
            Life::Away { at, .. } if at == theater => {
                let search = self.next_number();
                self.life = Life::Sought { search };
                vec![Action::Ask(Request::Wait), Action::Seek { search, has_come: false }]
            }
            _ => Vec::new(),
        }
    }

    /// Leaves, if nothing is missing.
    fn leave(&mut self) -> Vec<Action> {
        let Life::Leaving { to, attempt, accepted: true, drained: true } = self.life else { return Vec::new() };
        self.life = Life::Away { at: to, begun: false, turn: None };
        vec![Action::Ask(Request::Leave { to, attempt })]
    }

    fn begin(&mut self, life: Life, closed: bool) -> Request {
        let turns = match life {
            Life::Away { at, turn, .. } if turn.is_some() || !closed => Some((turn, at)),
            Life::Sought { .. } => Some((Some(self.next_number()), self.me)),
            _ => None,
        };
        let Some((present, by)) = turns else {
            self.life = Life::Here;
            return Request::Begin;
        };
        let turn = present.unwrap_or_else(|| self.next_number());
        self.life = Life::Arriving { turn, by };
        Request::Arrive { turn, turns_already: present.is_some() }
    }
}
