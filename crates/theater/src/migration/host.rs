//! Actors that move from theater to theater.
//!
//! # How an actor moves
//!
//! 1. *Move.* Its cell in the theater that it leaves, A, is frozen between two messages; what comes waits there. Its state goes to
//!    the other theater, B, in one frame ([`Head::Move`](crate::link::frame::Head::Move)), with its timers and its name. B reads it, and keeps it as a
//!    [guest](crate::migration::arrivals). If B cannot, it says so, and the actor goes on in A as if nothing had been. Otherwise B says where its place is.
//! 2. *Note.* Meanwhile A tells the theater that the actor was born in where it goes ([`authority`](crate::migration::authority)), and waits until that is
//!    noted.
//! 3. *Drain.* Meanwhile A waits until all that the actor has sent from A is in the mailboxes of its receivers ([`drain`](crate::migration::drain)). If this
//!    or 2 takes longer than three times `lost_after`, the actor stays, and B is told so ([`Stays`](crate::link::frame::Head::Stays)).
//! 4. *Leave.* Its cell in A becomes a place of an actor that is elsewhere: what waited there is sent on to B, and all that comes later. Who
//!    watches the actor watches it over there. Behind what waited goes [`Begin`](crate::link::frame::Head::Begin).
//! 5. *Begin.* The actor lives in B from then on. What has come for it from A waited in an antechamber, and goes first. B says so
//!    ([`Begun`](crate::link::frame::Head::Begun)): only then A names B to other theaters as where the actor is.
//!
//! *Alive exactly once.* A runs nothing of the actor from 1 on, unless it stays, and B nothing before 5. A link loses and repeats nothing unless
//! one of the two theaters is lost. If B is lost before 4, the actor goes on in A. If A is lost before 5, the actor does not begin in B: it is lost
//! with A, where it lived. Between 4 and 5 it is lost with either theater. (Who is lost and who is only out of reach is decided by `lost_after`.
//! An actor that is lost on its way between two theaters that are apart is reported though both live.)
//!
//! What happens to an actor's [`View`] decides each of these steps. That is a pure machine whose interleavings are explored
//! ([`migration`](crate::migration)).
//!
//! # Who an actor is
//!
//! The name that it was born with: theater, place and life. One that is started in another theater is born where it was started from, and comes there
//! as one that has left ([`Spawn`](crate::link::frame::Head::Spawn)): its name may come there before it. Each theater has one place for it at most
//! ([`Directory`]), whichever way its name comes; so references to it are equal, and local where
//! it is.
//!
//! # How the way of mail changes (per-pair order)
//!
//! Where an actor has been, mail is sent on. Who sends over such a detour is told ([`Moved`](crate::link::frame::Head::Moved)), and
//! *turns*: at its place, what comes waits from now on, and a *marker* goes the old way, as a message would. It is answered by
//! where the actor lives. Then all that was sent the old way has come into the mail of that place, or is on a link to it; so
//! what waited may follow on a new way. (It does not wait for an actor that is frozen: that one lives there
//! until it leaves.) If the marker is lost, so is what was sent before it, and has been reported; then the old way is
//! kept. (Not what had passed the lost theater before, and is on its way from there over a third one: that comes late.) A
//! place turns once at a time, so a sender's messages take one way after the other, and each way keeps order.
//!
//! A place may turn while its actor is back for a moment. Then the way stays as it is, and the actor may leave again before the next message.
//! Therefore the theater on the detour sends [`Moved`](crate::link::frame::Head::Moved) more than once: at messages 1, 2, 4, 8 and so on over the detour.
//! (There may be no other way.)
//!
//! Watches over the old way are moved to the new one. While they are on neither, `SettlingPlace` holds them, and an unwatch removes them from it.
//!
//! When an actor comes to a theater that has a place for it already, that place turns in the same way; but the new way is the
//! place itself. What waits there (from actors here, and from theaters that send over here) is later than what is still
//! under way on the old one. So what comes by names given after the actor's arrival goes to an *antechamber*
//! (`playhouse-executor`, `migration/freeze.rs`): those names are those of theaters whose own turns ended here, and of the one that the
//! actor came from, and nothing that they send comes behind what waits here. When the marker has come round to
//! where it was sent from, all that was before it is in the antechamber, and goes first.
//!
//! Where nothing was sent on since the actor left, nothing is under way, and who comes need not wait: the way is closed
//! ([`Way`](playhouse_executor::Way)), and what comes waits for the actor itself.
//!
//! Who has never sent to an actor learns nothing in this way. So when a theater was evacuated, all places that the others have
//! for its actors turn ([`Leaving`](crate::link::frame::Head::Leaving), `link/leaving.rs`): after that, nobody needs it.
//!
//! # Requests of several threads
//!
//! What is to become of a place is found out by readers of links, by who hears that a link is lost, and by actors; they send
//! requests to its cell, which do not come in the order in which they were sent by different threads. What is known here
//! ([`Directory`]) changes under locks, and a place is sent what became of its turn before another
//! one can begin or an actor can be let in. What still comes too late or too early finds out at the cell (`remote/route.rs` of
//! `playhouse-actor`).
//!
//! What the poller reads is on its way to other workers until the poller flushes it, after it has given the links back. So the request that
//! ends an antechamber is sent by the poller, whoever has found out that the actor may begin: no mail comes to that antechamber later.
//!
//! Where a theater on the way is lost, see [`search`](crate::naming::locate).
//!
//! # Why nothing waits for ever
//!
//! A marker never waits for another: at an antechamber it is answered at once, and a place that is turning holds it back
//! only until its own has been answered, which lies before it on the way to the actor. Ways lead to where the actor went
//! later, so there are no circles. A hostile peer can say that they do: a marker that has come over too many links
//! ([`HOPS_MAX`](crate::link::frame::HOPS_MAX)) is answered as if it were lost, and so is a place's last marker ([`migration`](crate::migration)).
//! Nor does it wait for a handler of the actor that awaits something, or for who sees to its crash: what came before it is in the
//! actor's mail.
//!
//! A turn has no limit in time. A marker is in order behind the mail, so a stage on the way whose handler does not return, or that waits for room
//! on a link, holds it up for as long as it holds up the mail itself. An actor that began at its place after some time nevertheless would get that
//! mail behind later mail, though all theaters keep the rules. A place that has not got the actor could keep its old way without harm. That does
//! not help: the way leads over the peer that does not answer, and this peer can hold up what is sent to it anyway. So a peer that answers no
//! marker holds up the mail that goes over it, and an actor that comes to a place whose mail went over it, until the link is lost.

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
use crate::naming::{Directory, RemoteActorId, Settling, SettlingPlace};
use crate::node::core::TheaterCore;
use crate::proxy::pending::PendingProxy;

/// The longest time from the arrival of an actor until its cell hears of it. It is as long as a worker takes for a gulp.
const HEARS_MAX: Duration = Duration::from_secs(10);

/// How long the others may take to find new ways to the actors that a theater was evacuated of.
pub(crate) const LEAVE_MAX: Duration = Duration::from_secs(10);

/// The time after which it is looked again whether something has ended.
const LOOKED_AT_EVERY: Duration = Duration::from_millis(1);

/// Told how a migration ended.
pub(crate) type Done = Box<dyn FnOnce(Result<(), MigrateError>) + Send>;

/// Until the cell of a place has heard that its turn has ended.
pub(crate) struct Settles {
    theater_core: Arc<TheaterCore>,
    number: u64,
    id: ActorId,
    /// An actor has come there.
    begins: bool,
    /// Those that watched it over the old way.
    watchers: Arc<Mutex<Vec<(Watcher, Tell)>>>,
}

impl Settles {
    /// These watch the actor, and its cell is to note them.
    pub(crate) fn watched_by(&self, watchers: impl IntoIterator<Item = (Watcher, Tell)>) {
        self.watchers().extend(watchers);
    }

    fn watchers(&self) -> MutexGuard<'_, Vec<(Watcher, Tell)>> {
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes who watches the actor over `links`, which are not its way any more: `release` takes them from one.
    fn release(&self, links: &[Arc<Link>], release: impl Fn(&Link) -> Option<(Handle, Taken)>) {
        let mut unwatched = Vec::new();
        {
            // Under the lock: who does not watch the actor any more is found at its old way, or here.
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
    /// Has an actor taken to the theater behind `link`, with its group if it is in one.
    pub(crate) fn migrate(self: &Arc<Self>, id: ActorId, link: Arc<Link>, done: Done) {
        if id.address().system() != self.system.core().id() {
            // A name of another theater of this process.
            return done(Err(MigrateError::Elsewhere));
        }
        self.migrate_until(self.now() + HEARS_MAX, id, link, done);
    }

    /// As [`House::migrate`]. Until then, a cell may have to hear that its actor has come.
    fn migrate_until(self: &Arc<Self>, until: Duration, id: ActorId, link: Arc<Link>, done: Done) {
        let group = self.directory.groups().of(id);
        if let Some(group) = group {
            return self.migrate_group(group, link, done);
        }
        let Some(moves) = self.registry.migration_vtable(id).copied() else { return done(Err(MigrateError::Stopped)) };
        let theater_core = Arc::clone(self);
        let offer = move |pack: Result<playhouse_actor::wire::PreparedActor<'_>, MigrateError>| match pack {
            Ok(pack) => link.offer(id, moves, &pack, done),
            Err(MigrateError::Elsewhere) if theater_core.directory.lives_here(id) && theater_core.now() < until => {
                // It has begun here, and the request by which its cell hears that is still with the worker that sends it.
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

    /// Where an actor of this theater is.
    pub(crate) fn location(&self, id: ActorId) -> Option<ActorLocation> {
        self.directory.location(id, self.listens).ok()
    }

    /// Answers a marker: the actor is here.
    pub(crate) fn say_here(&self, id: ActorId, answer: TakeAnswer) {
        let mut bytes = Vec::with_capacity(size_of::<ActorLocation>());
        match self.location(id).map(|location| Codec::Positional.write(&location, &mut bytes)) {
            Some(Ok(())) => answer(Ok((Codec::Positional, &bytes))),
            _ => answer(Err(AskError::Stopped)),
        }
    }

    /// As [`House::say_here`]. If the actor has come and waits for the end of a turn, it is said after that.
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

    /// The actor that has come to this place begins, or it has not come after all.
    fn say_rerouted(&self, id: ActorId) {
        let answers = self.settling().answers.remove(&id);
        answers.into_iter().flatten().for_each(|answer| self.say_here(id, answer));
    }

    /// The turn of this place has ended, and its cell is about to hear it. Until then, drains wait for what waits there.
    pub(crate) fn note_settling(self: &Arc<Self>, id: ActorId, begins: bool) -> Box<Settles> {
        let mut settling = self.settling();
        settling.last_number += 1;
        let number = settling.last_number;
        let watchers = Arc::default();
        settling.stubs.insert(number, SettlingPlace { id, watchers: Arc::clone(&watchers) });
        if begins {
            settling.answers.entry(id).or_default();
        }
        Box::new(Settles { theater_core: Arc::clone(self), number, id, begins, watchers })
    }

    /// A marker behind what was sent to the place `id`. `waits` is dropped when it was answered, or is lost.
    pub(crate) fn fence_marker(self: &Arc<Self>, id: ActorId, waits: impl Send + 'static) -> Marker {
        let (slot, incarnation) = self.directory.stub_of(id);
        let reroute = self.directory.next_number();
        let capability = self.directory.capability_of_reroute(slot, incarnation, reroute);
        let answer = Box::new(move |_: Result<(Codec, &[u8]), AskError>| drop(waits));
        self.marker_with((Origin { theater: self.incarnation, slot, incarnation, reroute, capability }, 0), answer)
    }

    /// The places here where mail waits because they turn or have turned, in the order in which that ended or began.
    pub(crate) fn rerouting_stubs(&self) -> Vec<ActorId> {
        // Those that settle later: a place settles before it has turned.
        let rerouting = self.directory.rerouting();
        self.settling().stubs.values().map(|stub| stub.id).chain(rerouting).collect()
    }

    /// A marker that came from elsewhere over so many links, and goes on.
    pub(crate) fn marker_with(self: &Arc<Self>, (origin, hops): (Origin, u16), answer: TakeAnswer) -> Marker {
        let theater_core = Arc::downgrade(self);
        let here = Box::new(move |id: ActorId, answer: TakeAnswer| match theater_core.upgrade() {
            Some(theater_core) => theater_core.say_settled(id, answer),
            None => answer(Err(AskError::Shutdown)),
        });
        Marker { origin, hops, here, answer }
    }

    /// A marker for the mail of the place `id`, for its turn of this number.
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

    /// The place `id` turns, unless it does already: the actor is not in the theater `from`.
    pub(crate) fn reroute(self: &Arc<Self>, id: ActorId, from: u64) {
        let Some((moves, _)) = self.registry.migration_vtable(id) else { return };
        if let [Action::Ask(Request::Turn { reroute })] = self.directory.step(id, Event::Moved { from })[..] {
            seam(4);
            (moves.begin_reroute)(id, reroute, self.marker(id, reroute));
        }
    }

    /// The place that has sent this marker, if the actor has come there since and waits for it.
    pub(crate) fn rerouting_at(&self, origin: &Origin) -> Option<ActorId> {
        let id = self.directory.find(origin.slot, origin.incarnation)?;
        let view = self.directory.view(id);
        (view.is_arriving() && view.reroute() == Some(origin.reroute)).then_some(id)
    }

    /// Has the other theaters send mail for actors that have left this one where those are, instead of over this one.
    ///
    /// Again, until nothing has changed, and nobody else has called: see `link/leaving.rs`. Then waits until what waits here for new ways is sent on, and for the answers that come over this theater.
    pub(crate) fn take_leave(&self) {
        let deadline = self.now() + LEAVE_MAX;
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
        // Answers that are to come over this theater, to asks that it has sent on.
        let asked: Vec<(Arc<Link>, u64)> =
            self.directory.all_links().into_iter().map(|link| (Arc::clone(&link), link.asked())).collect();
        while asked.iter().any(|(link, asked)| link.awaits_answers(*asked)) && self.now() < deadline {
            self.pause(LOOKED_AT_EVERY);
        }
        // They may wait at the places of those that have asked, and left.
        self.await_routes(deadline);
    }

    /// Waits until what waits now for actors that have gone on is sent on, but not after `deadline`.
    pub(crate) fn await_routes(&self, deadline: Duration) {
        self.await_reroutes(deadline);
        // A place that has turned may have its new theater called.
        self.await_kept(deadline, PendingProxy::keeps_for_another_route);
    }

    fn await_kept(&self, deadline: Duration, keeps: impl Fn(&PendingProxy) -> bool) {
        let routes = self.keeping();
        while routes.iter().any(|route| keeps(route)) && self.now() < deadline {
            self.pause(LOOKED_AT_EVERY);
        }
    }

    /// Waits until the places that turn now have sent on what waits there, but not after `deadline`.
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

    /// A guest comes to its place `id`. Returns who has watched it from here, which its cell is to note, and what is before it.
    pub(crate) fn begin_arrival(
        self: &Arc<Self>,
        (id, attempt): (ActorId, Attempt),
        moves: &MigrationVTable,
        arrival_buffer: Option<ActorId>,
    ) -> Result<(Box<Settles>, ArrivalRoute), WireError> {
        if !(moves.fits)(id) {
            return Err(WireError::new("its place has ended"));
        }
        if self.directory.begin_freely(id, attempt) {
            let settling = self.note_settling(id, false);
            settling.release(&self.directory.all_links(), |link| link.release(id));
            return Ok((settling, ArrivalRoute::Freely { is_settled: arrival_buffer.is_some() }));
        }
        let arrival_buffer = arrival_buffer.or_else(|| (moves.arrival_buffer)(&self.directory.core, id));
        let arrival_buffer = arrival_buffer.ok_or_else(|| WireError::new("it is an actor of another type there"))?;
        let Some((reroute, is_new)) = self.directory.begin_behind(id, attempt, arrival_buffer) else {
            self.forget_arrival_buffer(arrival_buffer);
            return Err(WireError::new("it is there already"));
        };
        // Where it turned already, the marker of that is on its way, and is as good. Where the place was sought, the marker goes behind the mail
        // that is kept, and is that for which the actor waits, instead of answers of others.
        Ok((self.note_settling(id, false), ArrivalRoute::Behind(is_new.then(|| self.marker(id, reroute)))))
    }

    /// What has come there is for nobody.
    pub(crate) fn forget_arrival_buffer(&self, arrival_buffer: ActorId) {
        if let Some(controls) = self.registry.controls(arrival_buffer) {
            (controls.forget)(arrival_buffer);
        }
    }

    /// The marker of the place `id` was answered: the actor is there, or the marker is lost.
    pub(crate) fn rerouted(self: &Arc<Self>, id: ActorId, reroute: u64, at: Option<RemoteActorId>) {
        // While the place is sent another way, nobody comes there.
        let incoming_actors = self.directory.incoming_actors();
        let view = self.directory.view(id);
        if view.reroute() != Some(reroute) {
            // It was answered before.
            return;
        }
        let links = self.directory.all_links();
        let Some((moves, _)) = self.registry.migration_vtable(id) else {
            let arrival_buffer = self.directory.take_arrival_buffer(id);
            self.directory.step(id, Event::CameRound { reroute });
            drop(incoming_actors);
            // It has come, and ended before it began.
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
            // The old way is good until that theater is reached.
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
                // If there is none, the old one is kept.
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
        // First: a drain that finds no turn any more finds that, and so does a marker.
        let settles = settles.unwrap_or_else(|| self.note_settling(id, view.is_arriving()));
        let arrival_buffer = self.directory.take_arrival_buffer(id);
        if let [Action::Settle { search }] = self.directory.step(id, event)[..] {
            // The others are not asked: what had passed the lost theater may come late.
            self.directory.step(id, Event::Settled { search });
        }
        if view.is_arriving() {
            drop(incoming_actors);
            seam(4);
            // Those as well that were made since: names that came over them lead to the antechamber.
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

    /// Calls `act`, which sends something that must come behind all that was read from links before. What the poller has read last may be on its way to
    /// the mail of other workers still, or in that of this one, before which comes what this one sends itself.
    pub(crate) fn behind_what_was_read(&self, act: Box<dyn FnOnce() + Send>) {
        if is_reading() {
            return act();
        }
        self.poller.demand_act(act);
    }

    /// A new way from the place `id` to where the actor is; `settles` takes who watched it over an old one.
    fn route_to(
        &self,
        id: ActorId,
        far: &RemoteActorId,
        links: &[Arc<Link>],
        settles: &Settles,
    ) -> Option<Arc<dyn Forwarder>> {
        let link = self.directory.link(far.theater);
        if link.is_none() && far.address.is_none() {
            return None;
        }
        // The old ways stay as they are if there is no new one.
        let old: Vec<_> = links.iter().filter_map(|link| Some((link.number(), link.handle_of(id)?))).collect();
        let forwarder: Arc<dyn Forwarder> = match link {
            Some(link) => link.adopt(id, far).ok()?,
            None => {
                let pending = PendingProxy::new(&self.directory, *far);
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
        // The actor itself is told, whatever becomes of it.
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
