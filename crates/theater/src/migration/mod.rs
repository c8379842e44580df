//! The protocol of migration as a pure state machine: no threads, sockets, clocks or locks.
//!
//! [`View`] is what one theater knows of one mobile actor. [`View::step`] takes an [`Event`] and returns [`Action`]s for the actor's cell
//! and for other theaters. All interleavings of three theaters are explored within the bounds that `explored` states.
//!
//! Theaters run it: [`Directory::step`](crate::naming::Directory::step) has the view of an actor take an event, and [`moves`](crate::migration::host),
//! `link/moves.rs` and [`search`](crate::naming::locate) do what it returns. Some things are done otherwise than in the exploration:
//!
//! - [`Action::Settle`]: others are not asked. A marker goes behind the mail that is kept, or the actor begins at once. So what had passed the lost
//!   theater may come late.
//! - Cells are asked, in their stages, whether their ways lead to a lost theater ([`Action::Seek`]), because a cell hears of a new way later
//!   than its view.
//! - A search that finds nobody while the actor's place turns has the turn end, and begins again, instead of having the place report. One that finds
//!   nobody while the actor is a guest begins again about a tick later.
//! - Actors of a group take the same events together, and begin together ([`guests`](crate::migration::arrivals)).
//!
//! Supervision adds nothing to the views: a child that is restarted is the same actor in its cell, and one that is started in place of a lost child is
//! another actor. Not explored: a birth theater that asks others for a third one, calls to theaters that there is no link with, groups that are refused
//! or given up, and members that were born in different theaters.
//!
//! # How an actor moves
//!
//! 1. *Move.* The source freezes the cell between two messages and sends the state. The target keeps it as a guest and answers `Accepted`.
//!    Nothing else changes there: mail for the actor goes the way it went.
//! 2. *Note.* Meanwhile the actor's [authority] notes that the actor may be in the target, too. Otherwise nobody may know that
//!    when the source is lost.
//! 3. *Drain.* Meanwhile the source waits until all that was sent from it before the freeze is in the mailboxes of its receivers. Otherwise the
//!    actor could send from its target what overtakes that.
//! 4. *Leave.* When these are done, the cell becomes a place. What waited there goes to the target, into an antechamber, and `Begin` goes
//!    behind it. Until the source leaves, the actor can stay: it lives in the source.
//! 5. *Begin.* The actor lives in the target from then on. `Begun` is the answer.
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
//! Two theaters may lose each other though both live. Then a message to an actor that lives may be reported, in these two theaters, and in a third one whose
//! messages go over one of them. No message is doubled, and nothing waits for ever, with or without a new link between the two. A message that
//! waits in one of them may be overtaken by a later one from the other, because a search waits only for messages that were sent before. A search that
//! finds nobody while the actor is a guest begins again, because the guest may stay. Without this rule, its mail waits for ever. By hand, two
//! migrations with one message were explored (1,522,207 states; 3,144,688 with the new link).
//!
//! By hand, these were explored before actors were noted, too: two messages (741,642 states), one message each way (1,483,547), a name that is
//! told (1,094,927), and an attempt that is given up (484,257), each with two migrations and the loss of a theater.
//!
//! # Four rules that the exploration has shown to be needed
//!
//! - A theater that sends a message on acknowledges it to the sender's theater only when the next one has. Without this rule, a drain
//!   ends too early: an actor overtakes its own message after three migrations.
//! - The source names the target to third theaters only after `Begun`. Without this rule, two places may send to each other, and a message
//!   goes round between them for ever.
//! - A theater answers a search after it has lost the dead theater, too. Without this rule, a living actor is reported.
//! - An actor leaves after its authority has noted where it goes. Without notes, a living actor is reported if only those are asked that the
//!   authority names. The model asks only those; a search asks all theaters that it has links with, too. (Where the source has a link with the authority, a drain waits for what was sent there, too. Otherwise it has to be called.)

pub(crate) mod arrivals;
pub(crate) mod authority;
pub(crate) mod drain;
pub(crate) mod group;
pub(crate) mod groups;
pub(crate) mod host;
pub(crate) mod rebalance;

#[cfg(test)]
mod explored;

/// The number of a theater.
pub(crate) type TheaterId = u64;

/// Most markers that follow each other for an actor that has come. Its state is here until then, so the second one comes round, unless a
/// theater that has no actor says that it has.
const MARKERS_MAX: u32 = 8;

/// A place of an actor in a theater, as others name it.
pub(crate) trait Site: Copy {
    /// Returns the theater.
    fn theater(&self) -> TheaterId;
}

/// Where an actor is, as one theater knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Residence<S> {
    /// It lives here.
    Here,
    /// It lives here, frozen, and is about to leave.
    Leaving {
        /// The target.
        to: TheaterId,
        /// The number of this attempt.
        attempt: u64,
        /// Its place in the target, if that has accepted it.
        accepted: Option<S>,
        /// Whether the actor's authority knows that it may be in the target.
        noted: bool,
        /// Whether all that was sent from here before is in the mailboxes of its receivers.
        drained: bool,
    },
    /// It has come, and waits for the marker of this turn, or for the answers to this search: what is under way comes first.
    Arriving {
        /// The number of the turn or search.
        reroute: u64,
        /// The number of markers that were sent.
        markers: u32,
    },
    /// It lives elsewhere.
    Away {
        /// Where its mail goes.
        at: S,
        /// Whether it has begun there.
        begun: bool,
        /// The number of the turn, while the way changes.
        reroute: Option<u64>,
    },
    /// The theater that its mail went to is lost. The others are asked.
    Sought {
        /// Where its mail went.
        lost: S,
        /// The number of the turn that had begun before.
        reroute: Option<u64>,
    },
    /// Nothing is known of it: it was never heard of here, or was lost with a theater.
    Unknown,
}

/// An attempt to move an actor here, which was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Attempt {
    /// The theater that the actor comes from.
    pub(crate) from: TheaterId,
    /// The number by which the attempt is known here.
    pub(crate) number: u64,
}

/// What one theater knows of one mobile actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct View<S> {
    me: TheaterId,
    residence: Residence<S>,
    /// The actor has not begun here.
    incoming: Option<Attempt>,
}

/// What happens to a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Event<S> {
    /// The actor is to move. It is between two messages. `noted`: its authority knows that it may be in the target.
    Migrate { to: TheaterId, noted: bool },
    /// The actor's authority knows of the attempt, or cannot be reached.
    Noted { attempt: u64 },
    /// All that was sent before the attempt is in the mailboxes of its receivers.
    Drained { attempt: u64 },
    /// The attempt takes too long, or cannot succeed.
    GiveUp,
    /// A word of another theater.
    Said { from: TheaterId, word: Word<S> },
    /// What waited for the actor in the theater that it comes from has come, and the actor begins. `closed`: this theater has sent nothing on since the actor left it,
    /// and will not.
    Begin { attempt: Attempt, closed: bool },
    /// A theater to which mail was sent says that the actor is elsewhere.
    Moved { from: TheaterId },
    /// The marker of a turn was answered by the theater where the actor lives.
    Answered { reroute: u64, at: S },
    /// The marker of a turn has come back to this theater.
    CameRound { reroute: u64 },
    /// A theater is lost to this one: nothing comes from it any more.
    TheaterLost { theater: TheaterId },
    /// A theater was lost before, and its actors are sought. There may be a link with it again, over which the actor may be about to come.
    WayLost { theater: TheaterId },
    /// The marker of a turn was lost with a theater, which is lost to this one, too.
    MarkerLost { reroute: u64 },
    /// The actor is `at`, as a theater says that was asked since the theater `lost` is lost, or because that one was reached again. Nothing: all theaters
    /// have answered, and none knows the way.
    Found { lost: TheaterId, at: Option<S> },
    /// All that were asked have answered, and before that they have sent on what they had got over the lost theater.
    Settled { search: u64 },
}

/// A word to another theater about the actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Word<S> {
    /// The actor's state.
    Move { attempt: u64 },
    /// The receiver's actor was accepted, and has this place.
    Accepted { attempt: u64, at: S },
    /// The sender's actor stays.
    Stays { attempt: u64 },
    /// The receiver's actor has begun.
    Begun,
    /// The actor was lost with a theater.
    Ended,
}

/// A request to the actor's cell. The cell does them in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Request<S> {
    /// The actor runs no more.
    Freeze,
    /// It goes on.
    Stay,
    /// The cell becomes a place. What waits goes on to the theater, and `Begin` behind it.
    Leave { to: S, attempt: u64 },
    /// What comes waits, and a marker goes the old way.
    Turn { reroute: u64 },
    /// What waits goes on: by this way, or by the same as before.
    Turned { at: Option<S> },
    /// What comes waits for the actor, which has come. If it does not wait already, a marker goes the old way.
    Arrive { reroute: u64, reroutes_already: bool },
    /// One more marker goes the old way.
    MarkAgain { reroute: u64 },
    /// The actor runs: first what is in the antechamber, then what waits.
    Begin,
    /// The way is lost. Mail waits.
    Wait,
    /// The actor is lost. Waiting and later mail is reported.
    Report,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action<S> {
    /// The word goes to another theater.
    Say(TheaterId, Word<S>),
    /// The receiver of [`Word::Move`] is to be told the place that its actor has here.
    Accept { from: TheaterId, attempt: u64 },
    /// The request goes to the cell.
    Ask(Request<S>),
    /// The actor's authority is to know that the actor may be in this theater, too. [`Event::Noted`] is wanted.
    Note { to: TheaterId, attempt: u64 },
    /// [`Event::Drained`] is wanted.
    Drain { attempt: u64 },
    /// All other theaters are to be asked where the actor is, since this one is lost.
    Seek { lost: TheaterId },
    /// The actor has come. All other theaters are to answer when they have sent on what they had got for it.
    Settle { search: u64 },
}

impl<S: Site> View<S> {
    /// Returns the view of theater `me`.
    pub(crate) fn new(me: TheaterId, residence: Residence<S>) -> View<S> {
        View { me, residence, incoming: None }
    }

    /// Returns the theater from which the actor was accepted, if it has not begun.
    pub(crate) fn incoming_from(&self) -> Option<TheaterId> {
        self.incoming.map(|incoming| incoming.from)
    }

    /// Returns the attempt by which the actor was accepted, if it has not begun.
    #[cfg(test)]
    fn incoming(&self) -> Option<Attempt> {
        self.incoming
    }

    /// Returns where the actor is.
    pub(crate) fn residence(&self) -> Residence<S> {
        self.residence
    }

    /// Returns where mail for the actor goes from here, if it is not for the actor here.
    pub(crate) fn route(&self) -> Option<S> {
        match self.residence {
            Residence::Away { at, .. } | Residence::Sought { lost: at, .. } => Some(at),
            Residence::Here | Residence::Leaving { .. } | Residence::Arriving { .. } | Residence::Unknown => None,
        }
    }

    /// Returns the number of the turn that has not ended.
    pub(crate) fn reroute(&self) -> Option<u64> {
        match self.residence {
            Residence::Away { reroute, .. } | Residence::Sought { reroute, .. } => reroute,
            Residence::Arriving { reroute, .. } => Some(reroute),
            Residence::Here | Residence::Leaving { .. } | Residence::Unknown => None,
        }
    }

    /// Returns whether the actor has come, and waits for what is under way.
    pub(crate) fn is_arriving(&self) -> bool {
        matches!(self.residence, Residence::Arriving { .. })
    }

    /// The actor was started in another theater, and has this place there. It is not told to others before [`Word::Begun`].
    pub(crate) fn hear_stub(&mut self, there: S) {
        if let Residence::Away { at, begun: false, .. } = &mut self.residence
            && at.theater() == there.theater()
        {
            *at = there;
        }
    }

    /// Returns whether other theaters may be told that the actor is where its mail goes from here.
    pub(crate) fn has_begun(&self) -> bool {
        !matches!(self.residence, Residence::Away { begun: false, .. })
    }

    /// Returns whether the actor begins by the attempt without a turn, if nothing was sent on since it left.
    pub(crate) fn may_close(&self, attempt: Attempt) -> bool {
        matches!(self.residence, Residence::Away { reroute: None, .. }) && self.incoming == Some(attempt)
    }

    /// Returns whether the actor leaves by this event.
    pub(crate) fn leaves_by(&self, event: Event<S>) -> Option<S> {
        let actions = View::clone(self).step(event, &mut || 0);
        actions.into_iter().find_map(|action| match action {
            Action::Ask(Request::Leave { to, .. }) => Some(to),
            _ => None,
        })
    }

    /// Takes an event, and returns what is to be done, in order. An event that comes too late does nothing.
    ///
    /// `next_number` returns numbers for attempts and turns that this theater has not used before.
    pub(crate) fn step(&mut self, event: Event<S>, next_number: &mut dyn FnMut() -> u64) -> Vec<Action<S>> {
        use Action::{Accept, Ask, Drain, Note, Say, Seek, Settle};
        match (event, self.residence) {
            (Event::Migrate { to, noted }, Residence::Here) => {
                let attempt = next_number();
                self.residence = Residence::Leaving { to, attempt, accepted: None, noted, drained: false };
                let mut actions = vec![Ask(Request::Freeze), Say(to, Word::Move { attempt })];
                actions.extend((!noted).then_some(Note { to, attempt }));
                actions.push(Drain { attempt });
                actions
            }
            (Event::Noted { attempt: of }, Residence::Leaving { to, attempt, accepted, drained, .. })
                if of == attempt =>
            {
                self.residence = Residence::Leaving { to, attempt, accepted, noted: true, drained };
                self.leave()
            }
            (Event::Drained { attempt: of }, Residence::Leaving { to, attempt, accepted, noted, .. })
                if of == attempt =>
            {
                self.residence = Residence::Leaving { to, attempt, accepted, noted, drained: true };
                self.leave()
            }
            (
                Event::Said { from, word: Word::Accepted { attempt: of, at } },
                Residence::Leaving { to, attempt, noted, drained, .. },
            ) if (from, of) == (to, attempt) => {
                self.residence = Residence::Leaving { to, attempt, accepted: Some(at), noted, drained };
                self.leave()
            }
            (Event::GiveUp, Residence::Leaving { to, attempt, .. }) => {
                self.residence = Residence::Here;
                vec![Ask(Request::Stay), Say(to, Word::Stays { attempt })]
            }
            (Event::Said { from, word: Word::Move { attempt } }, Residence::Away { .. } | Residence::Sought { .. })
                if self.incoming.is_none() =>
            {
                self.incoming = Some(Attempt { from, number: attempt });
                vec![Accept { from, attempt }]
            }
            (Event::Said { from, word: Word::Stays { attempt } }, _) => {
                self.incoming.take_if(|incoming| *incoming == Attempt { from, number: attempt });
                Vec::new()
            }
            (Event::Begin { attempt, closed }, residence) if self.incoming == Some(attempt) => {
                self.incoming = None;
                let mut actions = vec![Ask(self.begin(residence, closed, next_number)), Say(attempt.from, Word::Begun)];
                if let (Residence::Sought { .. }, Residence::Arriving { reroute: search, .. }) =
                    (residence, self.residence)
                {
                    actions.push(Settle { search });
                }
                actions
            }
            (Event::Said { from, word: Word::Begun }, Residence::Away { at, begun: false, reroute })
                if at.theater() == from =>
            {
                self.residence = Residence::Away { at, begun: true, reroute };
                Vec::new()
            }
            (Event::Moved { from }, Residence::Away { at, begun: true, reroute: None }) if at.theater() == from => {
                let reroute = next_number();
                self.residence = Residence::Away { at, begun: true, reroute: Some(reroute) };
                vec![Ask(Request::Turn { reroute })]
            }
            (Event::Answered { reroute: of, at }, Residence::Away { reroute: Some(reroute), .. }) if of == reroute => {
                self.residence = Residence::Away { at, begun: true, reroute: None };
                vec![Ask(Request::Turned { at: Some(at) })]
            }
            (Event::Answered { reroute: of, at }, Residence::Arriving { reroute, markers })
                if of == reroute && at.theater() != self.me && markers < MARKERS_MAX =>
            {
                // The actor was there at that time. What was before the marker follows it here, and one more marker follows that.
                let reroute = next_number();
                self.residence = Residence::Arriving { reroute, markers: markers + 1 };
                vec![Ask(Request::MarkAgain { reroute })]
            }
            (
                Event::Answered { reroute: of, .. } | Event::CameRound { reroute: of } | Event::Settled { search: of },
                Residence::Arriving { reroute, .. },
            ) if of == reroute => {
                self.residence = Residence::Here;
                vec![Ask(Request::Begin)]
            }
            (Event::MarkerLost { reroute: of }, Residence::Arriving { reroute, markers }) if of == reroute => {
                let search = next_number();
                self.residence = Residence::Arriving { reroute: search, markers };
                vec![Settle { search }]
            }
            // The old way is as good.
            (
                Event::MarkerLost { reroute: of } | Event::CameRound { reroute: of },
                Residence::Away { at, begun, reroute: Some(reroute) },
            ) if of == reroute => {
                self.residence = Residence::Away { at, begun, reroute: None };
                vec![Ask(Request::Turned { at: None })]
            }
            (
                Event::MarkerLost { reroute: of }
                | Event::CameRound { reroute: of }
                | Event::Answered { reroute: of, .. },
                Residence::Sought { lost, reroute: Some(reroute) },
            ) if of == reroute => {
                self.residence = Residence::Sought { lost, reroute: None };
                vec![Ask(Request::Turned { at: None })]
            }
            (Event::TheaterLost { theater }, _) => self.lose(theater),
            (Event::WayLost { theater }, _) => self.lose_route(theater),
            (Event::Found { lost: of, at: Some(at) }, Residence::Sought { lost, reroute }) if of == lost.theater() => {
                self.residence = Residence::Away { at, begun: true, reroute };
                vec![Ask(Request::Turned { at: Some(at) })]
            }
            (Event::Found { lost: of, at: None }, Residence::Sought { lost, .. }) if of == lost.theater() => {
                if self.incoming.is_some() {
                    // An actor that is on its way here was known where it comes from. If it stays there, it is found later.
                    return vec![Seek { lost: of }];
                }
                self.residence = Residence::Unknown;
                vec![Ask(Request::Report)]
            }
            (Event::Said { from, word: Word::Ended }, Residence::Away { at, .. })
                if at.theater() == from && self.incoming.is_none() =>
            {
                self.residence = Residence::Unknown;
                vec![Ask(Request::Report)]
            }
            _ => Vec::new(),
        }
    }

    /// A theater is lost.
    fn lose(&mut self, theater: TheaterId) -> Vec<Action<S>> {
        self.incoming.take_if(|incoming| incoming.from == theater);
        match self.residence {
            Residence::Leaving { to, .. } if to == theater => {
                self.residence = Residence::Here;
                vec![Action::Ask(Request::Stay)]
            }
            _ => self.lose_route(theater),
        }
    }

    /// The mail goes to this theater no more, if it did.
    fn lose_route(&mut self, theater: TheaterId) -> Vec<Action<S>> {
        match self.residence {
            Residence::Away { at, reroute, .. } if at.theater() == theater => {
                self.residence = Residence::Sought { lost: at, reroute };
                vec![Action::Ask(Request::Wait), Action::Seek { lost: theater }]
            }
            _ => Vec::new(),
        }
    }

    /// Leaves, if nothing is missing.
    fn leave(&mut self) -> Vec<Action<S>> {
        let Residence::Leaving { attempt, accepted: Some(to), noted: true, drained: true, .. } = self.residence else {
            return Vec::new();
        };
        self.residence = Residence::Away { at: to, begun: false, reroute: None };
        vec![Action::Ask(Request::Leave { to, attempt })]
    }

    fn begin(&mut self, residence: Residence<S>, closed: bool, next_number: &mut dyn FnMut() -> u64) -> Request<S> {
        let reroute = match residence {
            Residence::Away { reroute, .. } if reroute.is_some() || !closed => reroute,
            // The turn, or else the search.
            Residence::Sought { reroute, .. } => reroute.or_else(|| Some(next_number())),
            _ => {
                self.residence = Residence::Here;
                return Request::Begin;
            }
        };
        let number = reroute.unwrap_or_else(next_number);
        self.residence = Residence::Arriving { reroute: number, markers: 1 };
        Request::Arrive { reroute: number, reroutes_already: reroute.is_some() }
    }
}
