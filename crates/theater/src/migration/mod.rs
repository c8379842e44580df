//! Actors that migrate from theater to theater.
//!
//! The protocol is a pure state machine, the [`view`](crate::naming::migration_protocol) of an actor. `naming` also has the [incoming
//! actors](crate::naming::arrivals), and the members of [groups](crate::naming::groups).
//!
//! | file | contents |
//! |---|---|
//! | [`commit`] | the source's side: an actor is offered, drained, and committed, or stays |
//! | [`accept`] | the target's side: an incoming actor is read, accepted, and begins |
//! | [`at_link`] | the frames of migrations, and the state that migrations keep at a link |
//! | [`group`], [`group_members`] | group migrations, their members at a link |
//! | [`drain`], [`authority`] | the two conditions of a commit: all sent messages have arrived, the authority has noted the target |
//! | [`reroute`], [`markers`] | the routes of stubs, and the markers behind their mail |
//! | [`announce_evacuation`] | other theaters reroute before an evacuated theater ends |
//! | [`host`], [`rebalance`] | requests of actors, and of programs |
//! | [`in_theater`] | the state that migrations keep in a theater |
//!
//! # The steps of a migration
//!
//! 1. *Move.* The source A freezes the actor's cell between two messages; new mail waits in the cell. The state goes to the target B in one frame
//!    ([`Head::Move`](crate::link::frame::Head::Move)), with the actor's timers and its name. B reads it, and keeps it as an [incoming
//!    actor](crate::naming::arrivals). If B cannot read it, B refuses it, and the actor continues in A as before. Otherwise B answers with its
//!    stub.
//! 2. *Note.* At the same time A tells the actor's birth theater the target ([`authority`]), and waits until that is
//!    noted.
//! 3. *Drain.* At the same time A waits until all that the actor has sent from A is in the mailboxes of its receivers
//!    ([`drain`]). If this or step 2 takes longer than 3 times `lost_after`, the actor stays, and A tells B so
//!    ([`Stays`](crate::link::frame::Head::Stays)).
//! 4. *Commit.* Its cell in A becomes a stub. The stub forwards the waiting mail and all later mail to B. Watchers of the actor watch it in B.
//!    [`Begin`](crate::link::frame::Head::Begin) goes behind the mail that waited.
//! 5. *Begin.* The actor lives in B from then on. Its mail from A waited in an arrival buffer, and is handled first. B answers
//!    [`Begun`](crate::link::frame::Head::Begun). Only then A names B to other theaters as the actor's location.
//!
//! *Alive exactly once.* A runs nothing of the actor from step 1 on, unless it stays, and B runs nothing before step 5. A link loses and repeats
//! nothing unless one of the two theaters is lost. If B is lost before step 4, the actor continues in A. If A is lost before step 5, the actor does
//! not begin in B: it is lost with A, where it lived. Between steps 4 and 5 the actor is lost with either theater. (`lost_after` decides between a
//! lost theater and an unreachable one. An actor that is lost on its way between two disconnected theaters is reported though both live.)
//!
//! The actor's [`View`](crate::naming::migration_protocol::View) decides each of these steps. The view is a pure machine whose interleavings are explored.
//!
//! # The identity of an actor
//!
//! The name of an actor is its birth name: theater, slot and incarnation. An actor that is started in another theater is born in the theater that
//! starts it. It reaches the other theater like a migrated actor ([`Spawn`](crate::link::frame::Head::Spawn)), and its name may arrive before it.
//! Each theater has at most one stub for it ([`Directory`](crate::naming::Directory)), whichever route its name takes. Therefore references to it are equal, and local where
//! the actor is.
//!
//! # Changes of the route of mail (per-pair order)
//!
//! A former residence of an actor forwards its mail. A theater that sends over such a detour is told ([`Moved`](crate::link::frame::Head::Moved)),
//! and *reroutes*. New mail waits at its stub, and a *marker* goes along the old route, as a message would. The theater where the actor lives answers
//! the marker. By then, all mail sent along the old route has come into the mail of that theater's stub, or is on a link to it. Therefore the waiting
//! mail may follow on a new route. (The marker does not wait for a frozen actor, because that actor lives in its source until the commit.) If the
//! marker is lost, the mail before it is lost, too, and has been reported; then the stub keeps the old route. (One exception: mail that had passed
//! the lost theater before, and goes from it over a third theater, comes late.) A stub has one reroute at a time. Therefore a sender's messages take
//! one route after the other, and each route keeps order.
//!
//! A stub may reroute while its actor is back for a moment. Then the route stays the same, and the actor may leave again before the next message.
//! Therefore the theater on the detour sends [`Moved`](crate::link::frame::Head::Moved) more than once: at messages 1, 2, 4, 8 and so on over the
//! detour. (There may be no other route.)
//!
//! Watches over the old route are moved to the new one. While they are on neither, `SettlingStub` holds them, and an unwatch removes them from it.
//!
//! When an actor comes to a theater that has a stub for it already, that stub reroutes in the same manner. But the new route is the stub itself. The
//! mail at the stub comes from actors of this theater, and from theaters that send over it. It is later than the mail still under way on the old
//! route. Therefore mail by names given after the actor's arrival goes to an *arrival buffer* (`playhouse-executor`, `migration/freeze.rs`). Those
//! names belong to theaters whose own reroutes ended at this theater, and to the source of the actor. Nothing that they send comes behind the mail
//! that waits at the stub. When the marker has come round to its sender, all mail before it is in the arrival buffer, and is handled first.
//!
//! If nothing was forwarded since the actor left, nothing is under way, and the arriving actor need not wait. The route is closed
//! ([`StubRoute`](playhouse_executor::StubRoute)), and new mail waits for the actor itself.
//!
//! A theater that has never sent to an actor learns nothing in this manner. Therefore, after an evacuation, all stubs that other theaters have for
//! its actors reroute ([`Leaving`](crate::link::frame::Head::Leaving), [`announce_evacuation`]): after that, no theater needs the evacuated one.
//!
//! # Requests of several threads
//!
//! Readers of links, observers of a lost link, and actors decide about a stub. They send requests to its cell, and requests of different threads do
//! not arrive in the order of sending. The [`Directory`](crate::naming::Directory) changes under locks. A stub receives the result of its reroute before another reroute can
//! begin or an actor can be admitted. A request that is still late or early is recognised at the cell (`remote/route.rs` of `playhouse-actor`).
//!
//! Mail that the poller reads is on its way to other workers until the poller flushes it, after it has given the links back. Therefore the poller
//! sends the request that ends an arrival buffer, even if another thread has found that the actor may begin. No mail comes to that arrival buffer
//! later.
//!
//! For a lost theater on the route, see [`locate`](crate::proxy::locate).
//!
//! # Why nothing waits for ever
//!
//! A marker never waits for another: at an arrival buffer it is answered at once. A stub that is rerouting holds it back only until its own marker
//! has been answered, which lies before it on the way to the actor. Routes lead to later residences of the actor, so there are no circles. A hostile
//! peer can claim a circle. Therefore a marker that has come over too many links ([`HOPS_MAX`](crate::link::frame::HOPS_MAX)) is answered as if it
//! were lost. The same holds for a stub's last marker ([`view`](crate::naming::migration_protocol)). A marker does not wait for a handler of the actor that
//! awaits something, or for the supervisor that handles its crash. The mail before the marker is in the actor's mail.
//!
//! A reroute has no limit in time. A marker is in order behind the mail. A stage on the route whose handler does not return, or that waits for room
//! on a link, delays the marker for as long as the mail itself. If an actor began at its stub after a timeout, it would get that mail behind later
//! mail, though all theaters keep the rules. A stub without the actor could keep its old route without harm. Keeping it does not help, because the
//! route leads over the peer that does not answer, and this peer can delay the mail anyway. Therefore a peer that answers no marker delays the mail
//! that goes over it until the link is lost. It also delays an actor that comes to a stub whose mail went over this peer.

pub(crate) mod announce_evacuation;
pub(crate) mod at_link;
pub(crate) mod authority;
pub(crate) mod commit;
pub(crate) mod drain;
pub(crate) mod group;
pub(crate) mod group_members;
pub(crate) mod host;
pub(crate) mod in_theater;
pub(crate) mod rebalance;
pub(crate) mod reroute;

mod accept;
mod markers;
