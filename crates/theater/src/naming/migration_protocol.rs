//! The protocol of migration as a pure state machine: no threads, sockets, clocks or locks.
//!
//! [`View`] holds the knowledge of one theater about one mobile actor. [`View::step`] takes an [`Event`] and returns [`Action`]s for the actor's cell
//! and for other theaters. The exploration covers all interleavings of three theaters within the bounds that `explored` states.
//!
//! Theaters run the machine: [`Directory::step`](crate::naming::Directory::step) applies an event to the view of an actor.
//! [`commit`](crate::migration::commit), [`reroute`](crate::migration::reroute) and [`locate`](crate::proxy::locate) carry out the returned actions. The theaters differ from
//! the exploration in these points:
//!
//! - [`Action::Settle`]: a theater does not ask the others. It sends a marker behind the kept mail, or the actor begins at once. Therefore mail that
//!   had passed the lost theater may come late.
//! - Cells are asked, in their stages, whether their routes lead to a lost theater ([`Action::Locate`]), because a cell learns of a new route later
//!   than its view.
//! - A search may find no actor while the actor's stub reroutes. Then the search ends the reroute and begins again, and the stub reports nothing. A
//!   search that finds no actor while the actor is incoming begins again about a tick later.
//! - Actors of a group take the same events together, and begin together ([`arrivals`](crate::naming::arrivals)).
//!
//! Supervision adds nothing to the views. A restarted child is the same actor in its cell, and a replacement for a lost child is another actor. The
//! exploration leaves out a birth theater that asks others for a third theater, and calls to theaters without a link. It also leaves out refused or
//! cancelled group migrations, and members born in different theaters.
//!
//! # The steps of a migration
//!
//! 1. *Move.* The source freezes the cell between two messages and sends the state. The target keeps the incoming actor and answers `Accepted`.
//!    Nothing else changes in the target: mail for the actor keeps its route.
//! 2. *Note.* At the same time the actor's [authority](crate::migration::authority) notes that the actor may be in the target, too. Without the note, no theater may know that
//!    when the source is lost.
//! 3. *Drain.* At the same time the source waits until all that was sent from it before the freeze is in the mailboxes of its receivers. Otherwise
//!    the actor could overtake those messages with messages from its target.
//! 4. *Commit.* When steps 1 to 3 are done, the cell becomes a stub. The mail that waited in the cell goes to the target, into an arrival buffer, and
//!    `Begin` goes behind it. Until the commit, the actor can stay: it lives in the source.
//! 5. *Begin.* The actor lives in the target from then on. `Begun` is the answer.
//!
//! The actor is in one theater at any time, because the source commits before the target begins.
//!
//! # The route of the mail
//!
//! A stub forwards mail along its route. A theater that sends to a stub is told `Moved`. It then *reroutes*: new mail waits at its own stub, and a
//! *marker* goes along the old route. The theater where the actor lives answers the marker. All that was sent along the old route is in the mailbox
//! by then, so the stub sends the waiting mail along a new route. A marker never waits for a frozen actor, because that actor lives in the source
//! until the commit.
//!
//! When an actor comes to a theater that has a stub for it, the stub reroutes in the same manner. But its new route is the cell itself. By names that
//! are bound after the actor's arrival, mail goes to the arrival buffer, which comes first. If nothing was forwarded since the actor left, nothing is
//! under way, and the actor begins at once.
//!
//! # When a theater is lost
//!
//! - An actor that was to leave for the lost theater stays. An incoming actor from it does not begin: if the source had committed, the actor is lost
//!   with the source.
//! - A stub whose route leads to the lost theater keeps its mail and asks the other theaters. Each answers when the theater is lost to it, too: until
//!   then the actor may be under way to it. If one knows the route, the stub follows it. If none does, the actor is lost: its mail is reported, and
//!   the theaters that send to the stub are told.
//! - An actor that has arrived, and whose marker was lost, begins when the others have answered behind their forwarded mail.
//!
//! An actor ends with a theater only if it was in that theater, had left it, or left for it. Within two migrations, the exploration does not show
//! that the answers for an arrived actor must come behind the forwarded mail. An argument does: a message that went over the lost theater may still
//! wait at the stub that answers.
//!
//! Two theaters may lose each other though both live. Then these two theaters may report a message to an actor that lives, and so may a third theater
//! whose messages go over one of them. No message is doubled, and nothing waits for ever, with or without a new link between the two. A later message
//! from one of them may overtake a message that waits in the other, because a search waits only for earlier messages. A search that finds no actor
//! while the actor is incoming begins again, because the incoming actor may stay in its source. Without this rule, its mail waits for ever. A run by
//! hand explored two migrations with one message (1,522,207 states; 3,144,688 with the new link).
//!
//! Runs by hand explored these programs before actors were noted, too: two messages (741,642 states), one message in each direction (1,483,547), a
//! name that is told (1,094,927), and a cancelled attempt (484,257), each with two migrations and the loss of a theater.
//!
//! # Four rules that the exploration has shown to be needed
//!
//! - A theater that forwards a message acknowledges it to the sender's theater only when the next theater has acknowledged it. Without this rule, a
//!   drain ends too early: an actor overtakes its own message after three migrations.
//! - The source names the target to third theaters only after `Begun`. Without this rule, two stubs may send to each other, and a message circulates
//!   between them for ever.
//! - A theater answers a search after it has lost the dead theater, too. Without this rule, a living actor is reported.
//! - An actor leaves after its authority has noted its target. Without notes, a search that asks only the theaters named by the authority reports a
//!   living actor. The model asks only those; a search also asks all theaters with a link. (If the source has a link with the authority, a drain
//!   waits for the mail sent to the authority, too. Otherwise the source has to call it.)

/// The number of a theater.
pub(crate) type TheaterId = u64;

/// Most markers that follow each other for an arrived actor. Its state stays in this theater until then. Therefore the second marker comes round,
/// unless a theater without the actor claims to have it.
const MARKERS_MAX: u32 = 8;

/// The stub or cell of an actor in a theater, as others name it.
pub(crate) trait Site: Copy {
    /// Returns the theater.
    fn theater(&self) -> TheaterId;
}

/// The residence of an actor, as one theater knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Residence<S> {
    /// The actor lives in this theater.
    Here,
    /// The actor lives in this theater, frozen, and is about to leave.
    Leaving {
        /// The target.
        to: TheaterId,
        /// The number of this attempt.
        attempt: u64,
        /// Its stub in the target, if the target has accepted it.
        accepted: Option<S>,
        /// Whether the actor's authority knows that it may be in the target.
        noted: bool,
        /// Whether all that was sent from this theater before is in the mailboxes of its receivers.
        drained: bool,
    },
    /// The actor has come. It waits for the marker of this reroute, or for the answers to this search, because mail under way comes first.
    Arriving {
        /// The number of the reroute or search.
        reroute: u64,
        /// The number of markers that were sent.
        markers: u32,
    },
    /// The actor lives in another theater.
    Away {
        /// The target of its mail.
        at: S,
        /// Whether the actor has begun in that theater.
        begun: bool,
        /// The number of the reroute, while the route changes.
        reroute: Option<u64>,
    },
    /// The theater that its mail went to is lost. This theater asks the others.
    Locating {
        /// The former target of its mail.
        lost: S,
        /// The number of the reroute that had begun before.
        reroute: Option<u64>,
    },
    /// Nothing is known of the actor: no name of it has come, or it was lost with a theater.
    Unknown,
}

/// An accepted attempt to move an actor to this theater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Attempt {
    /// The theater that the actor comes from.
    pub(crate) from: TheaterId,
    /// The number by which the attempt is known in this theater.
    pub(crate) number: u64,
}

/// The knowledge of one theater about one mobile actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct View<S> {
    me: TheaterId,
    residence: Residence<S>,
    /// The attempt by which the actor was accepted, until it begins in this theater.
    incoming: Option<Attempt>,
}

/// An event of a view.
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
    /// The mail that waited for the actor in its source has come, and the actor begins. `closed`: this theater has forwarded nothing since the actor
    /// left it, and will not.
    Begin { attempt: Attempt, closed: bool },
    /// A theater to which mail was sent says that the actor has moved.
    Moved { from: TheaterId },
    /// The theater where the actor lives answered the marker of a reroute.
    Answered { reroute: u64, at: S },
    /// The marker of a reroute has come back to this theater.
    CameRound { reroute: u64 },
    /// A theater is lost to this one: nothing comes from it any more.
    TheaterLost { theater: TheaterId },
    /// A theater was lost before, and its actors are being located. There may be a link with it again, over which the actor may be about to come.
    RouteLost { theater: TheaterId },
    /// The marker of a reroute was lost with a theater, which is lost to this one, too.
    MarkerLost { reroute: u64 },
    /// A theater says that the actor is `at`. It was asked after the loss of the theater `lost`, or because that one was reached again. `None`: all
    /// theaters have answered, and none knows the route.
    Found { lost: TheaterId, at: Option<S> },
    /// All asked theaters have answered. Before the answer, each has forwarded the mail that it had got over the lost theater.
    Settled { search: u64 },
}

/// A word to another theater about the actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Word<S> {
    /// The actor's state.
    Move { attempt: u64 },
    /// The receiver's actor was accepted, and has this stub.
    Accepted { attempt: u64, at: S },
    /// The sender's actor stays.
    Stays { attempt: u64 },
    /// The receiver's actor has begun.
    Begun,
    /// The actor was lost with a theater.
    Ended,
}

/// A request to the actor's cell. The cell carries out requests in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Request<S> {
    /// The actor runs no more.
    Freeze,
    /// The actor runs again.
    Stay,
    /// The cell becomes a stub. The waiting mail goes to the theater, and `Begin` behind it.
    Commit { to: S, attempt: u64 },
    /// New mail waits, and a marker goes along the old route.
    Reroute { reroute: u64 },
    /// Waiting mail goes on: by this route, or by the same as before.
    Rerouted { at: Option<S> },
    /// New mail waits for the actor, which has come. If mail does not wait already, a marker goes along the old route.
    Arrive { reroute: u64, reroutes_already: bool },
    /// One more marker goes along the old route.
    MarkAgain { reroute: u64 },
    /// The actor runs. It handles the arrival buffer first, then the waiting mail.
    Begin,
    /// The route is lost. Mail waits.
    Wait,
    /// The actor is lost. Waiting and later mail is reported.
    Report,
}

/// An action that the theater has to carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action<S> {
    /// The word goes to another theater.
    Say(TheaterId, Word<S>),
    /// The receiver of [`Word::Move`] is to learn the stub that its actor has in this theater.
    Accept { from: TheaterId, attempt: u64 },
    /// The request goes to the cell.
    Ask(Request<S>),
    /// The actor's authority is to know that the actor may be in this theater, too. [`Event::Noted`] is the answer.
    Note { to: TheaterId, attempt: u64 },
    /// [`Event::Drained`] is the answer.
    Drain { attempt: u64 },
    /// All other theaters are to be asked for the actor, because this theater is lost.
    Locate { lost: TheaterId },
    /// The actor has come. All other theaters are to answer when they have forwarded the mail that they had got for it.
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
    pub(super) fn incoming(&self) -> Option<Attempt> {
        self.incoming
    }

    /// Returns the residence of the actor.
    pub(crate) fn residence(&self) -> Residence<S> {
        self.residence
    }

    /// Returns the theater to which mail for the actor goes, unless the actor is in this theater.
    pub(crate) fn route(&self) -> Option<S> {
        match self.residence {
            Residence::Away { at, .. } | Residence::Locating { lost: at, .. } => Some(at),
            Residence::Here | Residence::Leaving { .. } | Residence::Arriving { .. } | Residence::Unknown => None,
        }
    }

    /// Returns the number of the reroute that has not ended.
    pub(crate) fn reroute(&self) -> Option<u64> {
        match self.residence {
            Residence::Away { reroute, .. } | Residence::Locating { reroute, .. } => reroute,
            Residence::Arriving { reroute, .. } => Some(reroute),
            Residence::Here | Residence::Leaving { .. } | Residence::Unknown => None,
        }
    }

    /// Returns whether the actor has come, and waits for mail under way.
    pub(crate) fn is_arriving(&self) -> bool {
        matches!(self.residence, Residence::Arriving { .. })
    }

    /// Sets the stub of an actor that was started in another theater. Others do not learn it before [`Word::Begun`].
    pub(crate) fn learn_stub(&mut self, there: S) {
        if let Residence::Away { at, begun: false, .. } = &mut self.residence
            && at.theater() == there.theater()
        {
            *at = there;
        }
    }

    /// Returns whether other theaters may be told that the actor is at the target of its mail.
    pub(crate) fn has_begun(&self) -> bool {
        !matches!(self.residence, Residence::Away { begun: false, .. })
    }

    /// Returns whether the actor begins by the attempt without a reroute, if nothing was forwarded since it left.
    pub(crate) fn may_close(&self, attempt: Attempt) -> bool {
        matches!(self.residence, Residence::Away { reroute: None, .. }) && self.incoming == Some(attempt)
    }

    /// Returns whether the actor leaves by this event.
    pub(crate) fn leaves_by(&self, event: Event<S>) -> Option<S> {
        let actions = View::clone(self).step(event, &mut || 0);
        actions.into_iter().find_map(|action| match action {
            Action::Ask(Request::Commit { to, .. }) => Some(to),
            _ => None,
        })
    }

    /// Takes an event, and returns the actions for it, in order. A late event does nothing.
    ///
    /// `next_number` returns numbers for attempts and reroutes that this theater has not used before.
    pub(crate) fn step(&mut self, event: Event<S>, next_number: &mut dyn FnMut() -> u64) -> Vec<Action<S>> {
        use Action::{Accept, Ask, Drain, Locate, Note, Say, Settle};
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
                self.commit()
            }
            (Event::Drained { attempt: of }, Residence::Leaving { to, attempt, accepted, noted, .. })
                if of == attempt =>
            {
                self.residence = Residence::Leaving { to, attempt, accepted, noted, drained: true };
                self.commit()
            }
            (
                Event::Said { from, word: Word::Accepted { attempt: of, at } },
                Residence::Leaving { to, attempt, noted, drained, .. },
            ) if (from, of) == (to, attempt) => {
                self.residence = Residence::Leaving { to, attempt, accepted: Some(at), noted, drained };
                self.commit()
            }
            (Event::GiveUp, Residence::Leaving { to, attempt, .. }) => {
                self.residence = Residence::Here;
                vec![Ask(Request::Stay), Say(to, Word::Stays { attempt })]
            }
            (
                Event::Said { from, word: Word::Move { attempt } },
                Residence::Away { .. } | Residence::Locating { .. },
            ) if self.incoming.is_none() => {
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
                if let (Residence::Locating { .. }, Residence::Arriving { reroute: search, .. }) =
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
                vec![Ask(Request::Reroute { reroute })]
            }
            (Event::Answered { reroute: of, at }, Residence::Away { reroute: Some(reroute), .. }) if of == reroute => {
                self.residence = Residence::Away { at, begun: true, reroute: None };
                vec![Ask(Request::Rerouted { at: Some(at) })]
            }
            (Event::Answered { reroute: of, at }, Residence::Arriving { reroute, markers })
                if of == reroute && at.theater() != self.me && markers < MARKERS_MAX =>
            {
                // The actor was in that theater at that time. The mail before the marker follows the actor to this theater, and one more marker
                // follows that mail.
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
            // The old route is as good.
            (
                Event::MarkerLost { reroute: of } | Event::CameRound { reroute: of },
                Residence::Away { at, begun, reroute: Some(reroute) },
            ) if of == reroute => {
                self.residence = Residence::Away { at, begun, reroute: None };
                vec![Ask(Request::Rerouted { at: None })]
            }
            (
                Event::MarkerLost { reroute: of }
                | Event::CameRound { reroute: of }
                | Event::Answered { reroute: of, .. },
                Residence::Locating { lost, reroute: Some(reroute) },
            ) if of == reroute => {
                self.residence = Residence::Locating { lost, reroute: None };
                vec![Ask(Request::Rerouted { at: None })]
            }
            (Event::TheaterLost { theater }, _) => self.lose(theater),
            (Event::RouteLost { theater }, _) => self.lose_route(theater),
            (Event::Found { lost: of, at: Some(at) }, Residence::Locating { lost, reroute })
                if of == lost.theater() =>
            {
                self.residence = Residence::Away { at, begun: true, reroute };
                vec![Ask(Request::Rerouted { at: Some(at) })]
            }
            (Event::Found { lost: of, at: None }, Residence::Locating { lost, .. }) if of == lost.theater() => {
                if self.incoming.is_some() {
                    // The source of an incoming actor knows it. If the actor stays in its source, a later search finds it.
                    return vec![Locate { lost: of }];
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

    /// Handles the loss of a theater.
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

    /// Handles the loss of a theater that mail went to.
    fn lose_route(&mut self, theater: TheaterId) -> Vec<Action<S>> {
        match self.residence {
            Residence::Away { at, reroute, .. } if at.theater() == theater => {
                self.residence = Residence::Locating { lost: at, reroute };
                vec![Action::Ask(Request::Wait), Action::Locate { lost: theater }]
            }
            _ => Vec::new(),
        }
    }

    /// Commits the migration, if nothing is missing.
    fn commit(&mut self) -> Vec<Action<S>> {
        let Residence::Leaving { attempt, accepted: Some(to), noted: true, drained: true, .. } = self.residence else {
            return Vec::new();
        };
        self.residence = Residence::Away { at: to, begun: false, reroute: None };
        vec![Action::Ask(Request::Commit { to, attempt })]
    }

    fn begin(&mut self, residence: Residence<S>, closed: bool, next_number: &mut dyn FnMut() -> u64) -> Request<S> {
        let reroute = match residence {
            Residence::Away { reroute, .. } if reroute.is_some() || !closed => reroute,
            // The reroute, or else the search.
            Residence::Locating { reroute, .. } => reroute.or_else(|| Some(next_number())),
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
