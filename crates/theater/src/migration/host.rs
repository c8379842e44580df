//! Actors that move from theater to theater.
//!
//! # The steps of a migration
//!
//! 1. *Move.* The source A freezes the actor's cell between two messages; new mail waits in the cell. The state goes to the target B in one frame
//!    ([`Head::Move`](crate::link::frame::Head::Move)), with the actor's timers and its name. B reads it, and keeps it as an [incoming
//!    actor](crate::migration::arrivals). If B cannot read it, B refuses it, and the actor continues in A as before. Otherwise B answers with its
//!    stub.
//! 2. *Note.* At the same time A tells the actor's birth theater the target ([`authority`](crate::migration::authority)), and waits until that is
//!    noted.
//! 3. *Drain.* At the same time A waits until all that the actor has sent from A is in the mailboxes of its receivers
//!    ([`drain`](crate::migration::drain)). If this or step 2 takes longer than 3 times `lost_after`, the actor stays, and A tells B so
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
//! The actor's [`View`] decides each of these steps. The view is a pure machine whose interleavings are explored ([`migration`](crate::migration)).
//!
//! # The identity of an actor
//!
//! The name of an actor is its birth name: theater, slot and incarnation. An actor that is started in another theater is born in the theater that
//! starts it. It reaches the other theater like a migrated actor ([`Spawn`](crate::link::frame::Head::Spawn)), and its name may arrive before it.
//! Each theater has at most one stub for it ([`Directory`]), whichever route its name takes. Therefore references to it are equal, and local where
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
//! its actors reroute ([`Leaving`](crate::link::frame::Head::Leaving), `link/leaving.rs`): after that, no theater needs the evacuated one.
//!
//! # Requests of several threads
//!
//! Readers of links, observers of a lost link, and actors decide about a stub. They send requests to its cell, and requests of different threads do
//! not arrive in the order of sending. The [`Directory`] changes under locks. A stub receives the result of its reroute before another reroute can
//! begin or an actor can be admitted. A request that is still late or early is recognised at the cell (`remote/route.rs` of `playhouse-actor`).
//!
//! Mail that the poller reads is on its way to other workers until the poller flushes it, after it has given the links back. Therefore the poller
//! sends the request that ends an arrival buffer, even if another thread has found that the actor may begin. No mail comes to that arrival buffer
//! later.
//!
//! For a lost theater on the route, see [`locate`](crate::naming::locate).
//!
//! # Why nothing waits for ever
//!
//! A marker never waits for another: at an arrival buffer it is answered at once. A stub that is rerouting holds it back only until its own marker
//! has been answered, which lies before it on the way to the actor. Routes lead to later residences of the actor, so there are no circles. A hostile
//! peer can claim a circle. Therefore a marker that has come over too many links ([`HOPS_MAX`](crate::link::frame::HOPS_MAX)) is answered as if it
//! were lost. The same holds for a stub's last marker ([`migration`](crate::migration)). A marker does not wait for a handler of the actor that
//! awaits something, or for the supervisor that handles its crash. The mail before the marker is in the actor's mail.
//!
//! A reroute has no limit in time. A marker is in order behind the mail. A stage on the route whose handler does not return, or that waits for room
//! on a link, delays the marker for as long as the mail itself. If an actor began at its stub after a timeout, it would get that mail behind later
//! mail, though all theaters keep the rules. A stub without the actor could keep its old route without harm. Keeping it does not help, because the
//! route leads over the peer that does not answer, and this peer can delay the mail anyway. Therefore a peer that answers no marker delays the mail
//! that goes over it until the link is lost. It also delays an actor that comes to a stub whose mail went over this peer.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, mpsc};
use std::time::Duration;

use playhouse_actor::away::{ActorLocation, Forwarder, Marker, Origin, TakeAnswer};
use playhouse_actor::wire::{ArrivalRoute, Codec, MigrationHost, MigrationVTable, Settle, Settled, WireError};
use playhouse_actor::{ActorId, AskError, GroupName, MigrateError, Notify, StopReason, Tell, Watcher};
use playhouse_executor::jitter::seam;

use crate::error::TheaterError;
use crate::link::frame::Handle;
use crate::link::{Link, Taken, is_reading};
use crate::migration::{Action, Attempt, Event, Request, View};
use crate::naming::{Directory, RemoteActorId, Settling, SettlingStub};
use crate::node::core::TheaterCore;
use crate::proxy::pending::PendingProxy;

/// The longest time from the arrival of an actor until its cell learns of it. It is as long as a worker takes for a gulp.
const ARRIVAL_MAX: Duration = Duration::from_secs(10);

/// The time for the other theaters to find new routes to the actors of an evacuated theater.
pub(crate) const SHUTDOWN_NOTICE_MAX: Duration = Duration::from_secs(10);

/// The interval between two checks whether something has ended.
const LOOKED_AT_EVERY: Duration = Duration::from_millis(1);

/// Called with the result of a migration.
pub(crate) type Done = Box<dyn FnOnce(Result<(), MigrateError>) + Send>;

/// A guard that lives until the cell of a stub has learned that its reroute has ended.
pub(crate) struct Settles {
    theater_core: Arc<TheaterCore>,
    number: u64,
    id: ActorId,
    /// Whether an actor has come to the stub.
    begins: bool,
    /// The watchers that watched the actor over the old route.
    watchers: Arc<Mutex<Vec<(Watcher, Tell)>>>,
}

impl Settles {
    /// Adds watchers of the actor, which its cell is to note.
    pub(crate) fn watched_by(&self, watchers: impl IntoIterator<Item = (Watcher, Tell)>) {
        self.watchers().extend(watchers);
    }

    fn watchers(&self) -> MutexGuard<'_, Vec<(Watcher, Tell)>> {
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the watchers of the actor over `links`, which are not its route any more: `release` takes them from one link.
    fn release(&self, links: &[Arc<Link>], release: impl Fn(&Link) -> Option<(Handle, Taken)>) {
        let mut unwatched = Vec::new();
        {
            // Under the lock, because a removed watch is found at its old route, or in this guard.
            let mut watchers = self.watchers();
            for link in links {
                if let Some((handle, watched)) = release(link) {
                    for (watcher, watch, tell) in watched {
                        watchers.push((watcher, tell));
                        unwatched.push((link, handle, watch));
                    }
                }
            }
        }
        unwatched.into_iter().for_each(|(link, handle, watch)| link.unwatch(handle, watch));
    }
}

impl Settle for Settles {
    fn take_watchers(&mut self) -> Vec<(Watcher, Notify)> {
        let watchers = std::mem::take(&mut *self.watchers());
        watchers.into_iter().map(|(watcher, tell)| (watcher, Notify::Call(tell))).collect()
    }
}

impl Drop for Settles {
    fn drop(&mut self) {
        self.theater_core.settling().stubs.remove(&self.number);
        let watchers = std::mem::take(&mut *self.watchers());
        for (_, tell) in watchers {
            self.theater_core.directory.telling_end(self.id, tell)(StopReason::NotAlive.into());
        }
        if self.begins {
            self.theater_core.say_rerouted(self.id);
        }
    }
}

impl TheaterCore {
    /// Migrates an actor to the theater behind `link`, with its group if it is in one.
    pub(crate) fn migrate(self: &Arc<Self>, id: ActorId, link: Arc<Link>, done: Done) {
        if id.address().system() != self.system.core().id() {
            // The name belongs to another theater of this process.
            return done(Err(MigrateError::Elsewhere));
        }
        self.migrate_until(self.now() + ARRIVAL_MAX, id, link, done);
    }

    /// Does the work of [`TheaterCore::migrate`]. Until then, a cell may have to learn that its actor has come.
    fn migrate_until(self: &Arc<Self>, until: Duration, id: ActorId, link: Arc<Link>, done: Done) {
        let group = self.directory.groups().of(id);
        if let Some(group) = group {
            return self.migrate_group(group, link, done);
        }
        let Some(moves) = self.registry.migration_vtable(id).copied() else { return done(Err(MigrateError::Stopped)) };
        let theater_core = Arc::clone(self);
        let offer = move |actor: Result<playhouse_actor::wire::PreparedActor<'_>, MigrateError>| match actor {
            Ok(actor) => link.offer(id, moves, &actor, done),
            Err(MigrateError::Elsewhere) if theater_core.directory.lives_here(id) && theater_core.now() < until => {
                // The actor has begun in this theater, and the request that tells its cell is still with the worker that sends it.
                theater_core.migrate_until(until, id, link, done);
                Err(MigrateError::Elsewhere)
            }
            Err(why) => {
                done(Err(why.clone()));
                Err(why)
            }
        };
        (moves.0.prepare)(id, Box::new(offer));
    }

    /// Returns the location of an actor of this theater.
    pub(crate) fn location(&self, id: ActorId) -> Option<ActorLocation> {
        self.directory.location(id, self.listens).ok()
    }

    /// Answers a marker, because the actor is in this theater.
    pub(crate) fn say_here(&self, id: ActorId, answer: TakeAnswer) {
        let mut bytes = Vec::with_capacity(size_of::<ActorLocation>());
        match self.location(id).map(|location| Codec::Positional.write(&location, &mut bytes)) {
            Some(Ok(())) => answer(Ok((Codec::Positional, &bytes))),
            _ => answer(Err(AskError::Stopped)),
        }
    }

    /// Calls [`TheaterCore::say_here`]. If the actor has come and waits for the end of a reroute, the answer follows that end.
    fn say_settled(&self, id: ActorId, answer: TakeAnswer) {
        {
            let mut settling = self.settling();
            if self.directory.view(id).is_arriving() || settling.answers.contains_key(&id) {
                settling.answers.entry(id).or_default().push(answer);
                return;
            }
        }
        self.say_here(id, answer);
    }

    fn settling(&self) -> MutexGuard<'_, Settling> {
        self.directory.settling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers markers that waited: the arrived actor begins, or it has not come after all.
    fn say_rerouted(&self, id: ActorId) {
        let answers = self.settling().answers.remove(&id);
        answers.into_iter().flatten().for_each(|answer| self.say_here(id, answer));
    }

    /// Notes that the reroute of this stub has ended, and its cell is about to learn it. Until then, drains wait for the mail at the stub.
    pub(crate) fn note_settling(self: &Arc<Self>, id: ActorId, begins: bool) -> Box<Settles> {
        let mut settling = self.settling();
        settling.last_number += 1;
        let number = settling.last_number;
        let watchers = Arc::default();
        settling.stubs.insert(number, SettlingStub { id, watchers: Arc::clone(&watchers) });
        if begins {
            settling.answers.entry(id).or_default();
        }
        Box::new(Settles { theater_core: Arc::clone(self), number, id, begins, watchers })
    }

    /// Returns a marker behind the mail that was sent to the stub `id`. `waits` is dropped when the marker was answered, or is lost.
    pub(crate) fn fence_marker(self: &Arc<Self>, id: ActorId, waits: impl Send + 'static) -> Marker {
        let (slot, incarnation) = self.directory.stub_of(id);
        let reroute = self.directory.next_number();
        let capability = self.directory.capability_of_reroute(slot, incarnation, reroute);
        let answer = Box::new(move |_: Result<(Codec, &[u8]), AskError>| drop(waits));
        self.marker_with((Origin { theater: self.incarnation, slot, incarnation, reroute, capability }, 0), answer)
    }

    /// Returns the stubs where mail waits because they reroute or have rerouted, ordered by the end or begin of the reroute.
    pub(crate) fn rerouting_stubs(&self) -> Vec<ActorId> {
        // The settling ones are read later, because a stub settles before its reroute is over.
        let rerouting = self.directory.rerouting();
        self.settling().stubs.values().map(|stub| stub.id).chain(rerouting).collect()
    }

    /// Returns a marker that came from another theater over `hops` links, and goes on.
    pub(crate) fn marker_with(self: &Arc<Self>, (origin, hops): (Origin, u16), answer: TakeAnswer) -> Marker {
        let theater_core = Arc::downgrade(self);
        let here = Box::new(move |id: ActorId, answer: TakeAnswer| match theater_core.upgrade() {
            Some(theater_core) => theater_core.say_settled(id, answer),
            None => answer(Err(AskError::Shutdown)),
        });
        Marker { origin, hops, here, answer }
    }

    /// Returns a marker for the mail of the stub `id`, for its reroute of this number.
    pub(crate) fn marker(self: &Arc<Self>, id: ActorId, reroute: u64) -> Marker {
        let (slot, incarnation) = self.directory.stub_of(id);
        let theater_core = Arc::downgrade(self);
        let answer = Box::new(move |answer: Result<(Codec, &[u8]), AskError>| {
            let location = answer.ok().and_then(|(codec, bytes)| codec.read::<ActorLocation>(bytes).ok());
            if let Some(theater_core) = theater_core.upgrade() {
                theater_core.rerouted(id, reroute, location.map(RemoteActorId::from));
            }
        });
        let capability = self.directory.capability_of_reroute(slot, incarnation, reroute);
        self.marker_with((Origin { theater: self.incarnation, slot, incarnation, reroute, capability }, 0), answer)
    }

    /// Reroutes the stub `id`, unless it does already: the actor is not in the theater `from`.
    pub(crate) fn reroute(self: &Arc<Self>, id: ActorId, from: u64) {
        let Some((moves, _)) = self.registry.migration_vtable(id) else { return };
        if let [Action::Ask(Request::Reroute { reroute })] = self.directory.step(id, Event::Moved { from })[..] {
            seam(4);
            (moves.begin_reroute)(id, reroute, self.marker(id, reroute));
        }
    }

    /// Returns the stub that has sent this marker, if the actor has come to it since and waits for the marker.
    pub(crate) fn rerouting_at(&self, origin: &Origin) -> Option<ActorId> {
        let id = self.directory.find(origin.slot, origin.incarnation)?;
        let view = self.directory.view(id);
        (view.is_arriving() && view.reroute() == Some(origin.reroute)).then_some(id)
    }

    /// Has the other theaters send mail for actors that have left this one directly, instead of over this one.
    ///
    /// Repeats that until nothing has changed, and no other theater has called: see `link/leaving.rs`. Then waits until the mail that waits for new
    /// routes is forwarded, and for the answers that come over this theater.
    pub(crate) fn announce_shutdown(&self) {
        let deadline = self.now() + SHUTDOWN_NOTICE_MAX;
        let told = |directory: &Directory| directory.told_moved.load(Ordering::Relaxed);
        let mut is_first = true;
        loop {
            let told_before = told(&self.directory);
            let (rerouted, counts) = mpsc::channel();
            let links = self.directory.all_links();
            for link in &links {
                link.say_leaving(rerouted.clone());
            }
            drop(rerouted);
            let mut any = false;
            while let Some(count) = self.receive(&counts, deadline) {
                any |= count > 0;
            }
            any |= std::mem::take(&mut is_first) || told(&self.directory) != told_before;
            let was_told = |link: &Arc<Link>| links.iter().any(|told| Arc::ptr_eq(told, link));
            if !any && self.directory.all_links().iter().all(was_told) || self.now() >= deadline {
                break;
            }
        }
        self.await_kept(deadline, PendingProxy::keeps_anything);
        self.await_routes(deadline);
        // Answers that are to come over this theater, to asks that it has forwarded.
        let asked: Vec<(Arc<Link>, u64)> =
            self.directory.all_links().into_iter().map(|link| (Arc::clone(&link), link.asked())).collect();
        while asked.iter().any(|(link, asked)| link.awaits_answers(*asked)) && self.now() < deadline {
            self.pause(LOOKED_AT_EVERY);
        }
        // The answers may wait at the stubs of actors that have asked, and left.
        self.await_routes(deadline);
    }

    /// Waits until the present mail for migrated actors is forwarded, but not after `deadline`.
    pub(crate) fn await_routes(&self, deadline: Duration) {
        self.await_reroutes(deadline);
        // A rerouted stub may have its new theater called.
        self.await_kept(deadline, PendingProxy::keeps_for_another_route);
    }

    fn await_kept(&self, deadline: Duration, keeps: impl Fn(&PendingProxy) -> bool) {
        let routes = self.keeping();
        while routes.iter().any(|route| keeps(route)) && self.now() < deadline {
            self.pause(LOOKED_AT_EVERY);
        }
    }

    /// Waits until the stubs that reroute now have forwarded their waiting mail, but not after `deadline`.
    fn await_reroutes(&self, deadline: Duration) {
        let reroutes = self.directory.reroutes_of_routes();
        while self.directory.is_any_under_way(&reroutes) && self.now() < deadline {
            self.pause(LOOKED_AT_EVERY);
        }
        let last = self.settling().last_number;
        let any_settles = || self.settling().stubs.keys().next().is_some_and(|number| *number <= last);
        while any_settles() && self.now() < deadline {
            self.pause(LOOKED_AT_EVERY);
        }
    }

    /// Begins the arrival of an incoming actor at its stub `id`. Returns the watchers from this theater, which its cell is to note, and the mail
    /// before the actor.
    pub(crate) fn begin_arrival(
        self: &Arc<Self>,
        (id, attempt): (ActorId, Attempt),
        moves: &MigrationVTable,
        arrival_buffer: Option<ActorId>,
    ) -> Result<(Box<Settles>, ArrivalRoute), WireError> {
        if !(moves.fits)(id) {
            return Err(WireError::new("its stub of the actor has ended"));
        }
        if self.directory.begin_freely(id, attempt) {
            let settling = self.note_settling(id, false);
            settling.release(&self.directory.all_links(), |link| link.release(id));
            return Ok((settling, ArrivalRoute::Freely { is_settled: arrival_buffer.is_some() }));
        }
        let arrival_buffer = arrival_buffer.or_else(|| (moves.arrival_buffer)(&self.directory.core, id));
        let arrival_buffer =
            arrival_buffer.ok_or_else(|| WireError::new("it knows the actor as one of another type"))?;
        let Some((reroute, is_new)) = self.directory.begin_behind(id, attempt, arrival_buffer) else {
            self.forget_arrival_buffer(arrival_buffer);
            return Err(WireError::new("it has the actor already"));
        };
        // If the stub reroutes already, the marker of that reroute is on its way, and is as good. If the stub was locating its actor, the marker goes
        // behind the kept mail. The actor waits for that marker instead of answers of other theaters.
        Ok((self.note_settling(id, false), ArrivalRoute::Behind(is_new.then(|| self.marker(id, reroute)))))
    }

    /// Ends an arrival buffer whose mail has no receiver.
    pub(crate) fn forget_arrival_buffer(&self, arrival_buffer: ActorId) {
        if let Some(controls) = self.registry.controls(arrival_buffer) {
            (controls.forget)(arrival_buffer);
        }
    }

    /// Handles the answer to the marker of the stub `id`: the actor is `at`, or the marker is lost.
    pub(crate) fn rerouted(self: &Arc<Self>, id: ActorId, reroute: u64, at: Option<RemoteActorId>) {
        // While the stub gets another route, no actor comes to it.
        let incoming_actors = self.directory.incoming_actors();
        let view = self.directory.view(id);
        if view.reroute() != Some(reroute) {
            // The marker was answered before.
            return;
        }
        let links = self.directory.all_links();
        let Some((moves, _)) = self.registry.migration_vtable(id) else {
            let arrival_buffer = self.directory.take_arrival_buffer(id);
            self.directory.step(id, Event::CameRound { reroute });
            drop(incoming_actors);
            // The actor has come, and ended before it began.
            if let Some(arrival_buffer) = arrival_buffer {
                links.iter().for_each(|link| link.close_arrival_buffer(arrival_buffer));
                self.forget_arrival_buffer(arrival_buffer);
            }
            return self.say_rerouted(id);
        };
        let (mut forwarder, mut settles) = (None, None);
        let event = match at {
            None => Event::MarkerLost { reroute },
            Some(at) if at.theater == self.incarnation => Event::CameRound { reroute },
            Some(at) if view.is_arriving() => Event::Answered { reroute, at },
            // The old route is good until that theater is reached.
            Some(at)
                if view
                    .route()
                    .and_then(|old| self.directory.link(old.theater))
                    .is_some_and(|old| old.reaches(&at)) =>
            {
                Event::MarkerLost { reroute }
            }
            Some(at) => {
                let settles = settles.insert(self.note_settling(id, false));
                forwarder = self.route_to(id, &at, &links, settles);
                seam(4);
                // If there is no new route, the old one is kept.
                if forwarder.is_some() { Event::Answered { reroute, at } } else { Event::MarkerLost { reroute } }
            }
        };
        if matches!(View::clone(&view).step(event, &mut || 0)[..], [Action::Ask(Request::MarkAgain { .. })]) {
            let actions = self.directory.step(id, event);
            drop(incoming_actors);
            if let [Action::Ask(Request::MarkAgain { reroute })] = actions[..] {
                (moves.begin_reroute)(id, reroute, self.marker(id, reroute));
            }
            return;
        }
        // This comes first, because a drain or a marker that finds no reroute any more must find it.
        let settles = settles.unwrap_or_else(|| self.note_settling(id, view.is_arriving()));
        let arrival_buffer = self.directory.take_arrival_buffer(id);
        if let [Action::Settle { search }] = self.directory.step(id, event)[..] {
            // The others are not asked: mail that had passed the lost theater may come late.
            self.directory.step(id, Event::Settled { search });
        }
        if view.is_arriving() {
            drop(incoming_actors);
            seam(4);
            // This includes links that were made since: names that came over them lead to the arrival buffer.
            let links = self.directory.all_links();
            for link in &links {
                arrival_buffer.inspect(|arrival_buffer| link.close_arrival_buffer(*arrival_buffer));
            }
            settles.release(&links, |link| link.release(id));
            let (settle, begins) = (moves.settle, Settled::Begins { arrival_buffer });
            self.behind_what_was_read(Box::new(move || settle(id, begins, settles)));
        } else {
            (moves.settle)(id, Settled::Turned { number: Some(reroute), forwarder }, settles);
            drop(incoming_actors);
        }
    }

    /// Calls `act`, which sends something that must come behind all that was read from links before. The poller's last reads may still be on their
    /// way to the mail of other workers. They may also be in the mail of this worker, which comes after the worker's own messages.
    pub(crate) fn behind_what_was_read(&self, act: Box<dyn FnOnce() + Send>) {
        if is_reading() {
            return act();
        }
        self.poller.demand_act(act);
    }

    /// Returns a new route from the stub `id` to the actor; `settles` takes the watchers over an old route.
    fn route_to(
        &self,
        id: ActorId,
        remote: &RemoteActorId,
        links: &[Arc<Link>],
        settles: &Settles,
    ) -> Option<Arc<dyn Forwarder>> {
        let link = self.directory.link(remote.theater);
        if link.is_none() && remote.address.is_none() {
            return None;
        }
        // The old routes stay the same if there is no new one.
        let old: Vec<_> = links.iter().filter_map(|link| Some((link.number(), link.handle_of(id)?))).collect();
        let forwarder: Arc<dyn Forwarder> = match link {
            Some(link) => link.adopt(id, remote).ok()?,
            None => {
                let pending = PendingProxy::new(&self.directory, *remote);
                pending.is_at(id);
                pending
            }
        };
        settles.release(links, |link| {
            let (_, handle) = old.iter().find(|(number, _)| *number == link.number())?;
            Some((*handle, link.release_handle(id, *handle)))
        });
        Some(forwarder)
    }
}

/// A theater, as its actors see it.
pub(crate) struct TheaterMigrationHost(pub(crate) Weak<TheaterCore>);

impl MigrationHost for TheaterMigrationHost {
    fn new_group(&self) -> Option<GroupName> {
        let theater_core = self.0.upgrade()?;
        let number = theater_core.directory.groups().make();
        Some(GroupName { theater: theater_core.incarnation, number })
    }

    fn stage_of(&self, group: GroupName, own: u16) -> u16 {
        let Some(theater_core) = self.0.upgrade() else { return own };
        let choose =
            || if group.theater == theater_core.incarnation { own } else { theater_core.system.core().next_stage() };
        theater_core.directory.groups().stage_of(group, choose)
    }

    fn join(&self, group: GroupName, actor: ActorId, kind: &'static str) {
        if let Some(theater_core) = self.0.upgrade() {
            theater_core.directory.groups().join(group, actor, kind);
        }
    }

    fn group_of(&self, actor: ActorId) -> Option<GroupName> {
        self.0.upgrade()?.directory.groups().of(actor)
    }

    fn forget_watch(&self, actor: ActorId, watcher: Watcher) {
        if let Some(theater_core) = self.0.upgrade() {
            theater_core.directory.forget_watch(actor, watcher);
        }
    }

    fn migrate(&self, actor: ActorId, to: SocketAddr, failed: Box<dyn FnOnce(MigrateError) + Send>) {
        let Some(theater_core) = self.0.upgrade() else { return failed(MigrateError::Stopped) };
        if theater_core.listens == Some(to) {
            return;
        }
        // The actor itself is told the result.
        let done: Done = Box::new(drop);
        if let Some(link) = theater_core.known_link(to) {
            return theater_core.migrate(actor, link, done);
        }
        let there = Arc::clone(&theater_core);
        let called = move |link: Result<Arc<Link>, TheaterError>| match link {
            Ok(link) => there.migrate(actor, link, done),
            Err(error) => failed(MigrateError::Unreachable(error.to_string())),
        };
        // Calling may take a while.
        theater_core.reach_later(to, Duration::ZERO, Box::new(called));
    }
}
