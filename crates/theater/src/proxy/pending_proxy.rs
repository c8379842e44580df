//! Stubs of actors in theaters without a link yet, or of actors that are being located because their theater is lost. For the former, the first
//! message has the theater called.
//!
//! The stub of a mobile actor may have another route by the time when this one is ready. Therefore the stub is asked for its route, in its stage.
//!
//! Until then each message is written at once, by names (which every theater reads), and kept in order. Senders of more than a quarter of a window
//! are slowed as by a link with a full window. The stub's stage waits behind a gate until the route is known.
//!
//! # Why no stage waits for itself
//!
//! The end of the waiting for a mobile actor is decided in the stub's stage, which may be the one that waits. Therefore the gate is opened before
//! that request is sent to the stage, and closed no more. The call may need other work of the stage to come through (a drain, another actor of the
//! stage). Therefore the housekeeper opens the gate at each tick, and some messages pass until it is closed again.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use playhouse_actor::away::{
    Decision, ForwardedMessage, Forwarder, MakeStub, Marker, RefCodec, RefName, StubPlacement, at_ref_codec,
};
use playhouse_actor::wire::{Answer, Codec, Controls, StubContent, WireError, Written};
use playhouse_actor::{ActorId, AskError, Notify, Watcher};
use playhouse_executor::{Gate, contained, pause_stage};

use crate::error::TheaterError;
use crate::link::Link;
use crate::link::link_table::LinkTable;
use crate::link::node::Callee;
use crate::link::proxy::Proxy;
use crate::lock::lock;
use crate::naming::{BadName, BirthName, RemoteActorId, SlotName};
use crate::proxy::kept_message::Kept;
use crate::proxy::locate::{Locate, leads_nowhere};
use crate::proxy::pending_proxies::PendingProxies;

/// Senders are slowed when this part of a window is kept.
const SLOWED_AT: usize = 4;

/// The route to an actor of a theater that may not have been called yet, or is not known.
pub(crate) struct PendingProxy {
    this: Weak<PendingProxy>,
    proxies: Arc<PendingProxies>,
    /// The location of the actor; `None` while it is being located.
    remote: Mutex<Option<RemoteActorId>>,
    /// Whether nothing was sent from its stub along another route.
    is_first: bool,
    /// The number of searches.
    locate_count: AtomicU32,
    id: OnceLock<ActorId>,
    state: Mutex<State>,
    /// The gate that the stub's stage waits behind when more than `slowed_bytes` are kept.
    gate: Arc<Gate>,
    slowed_bytes: usize,
    /// Whether the route is known: the gate is not closed any more.
    is_known: AtomicBool,
}

enum State {
    Waiting {
        kept: Vec<Kept>,
        bytes: usize,
        called: bool,
        /// Whether the kept messages are being given to the actor. When all are, this is not the route any more.
        is_ending: bool,
    },
    There(Arc<Proxy>),
    /// This is not the route any more.
    NotNeeded,
    /// The theater is lost, and messages fail. A message to an actor that does not migrate has the theater called at intervals, because the theater
    /// may live on.
    Lost,
}

/// The reference codec between this theater and all others. This theater reads a message that it wrote with it if the receiver has come to this
/// theater since.
struct PendingRefCodec(Arc<LinkTable>);

impl RefCodec for PendingRefCodec {
    fn name_of(&self, id: ActorId) -> Result<RefName, WireError> {
        let is_mobile = |id: ActorId| self.0.registry.migration_vtable(id).is_some();
        self.0.directory.name_for_others(id, None, is_mobile)
    }

    fn meet(&self, name: RefName, _: MakeStub<'_>) -> Result<ActorId, WireError> {
        let directory = &self.0.directory;
        let by_name = |name: BirthName| directory.born_in_this_theater(name).or_else(|| directory.known_as(name));
        let known = match name {
            RefName::Mine { slot, incarnation, capability } => {
                directory.own_or_ended(SlotName { slot, incarnation, capability })
            }
            RefName::Moved { born, .. } | RefName::Member { born, .. } => {
                by_name(RemoteActorId::from(born).birth_name())
            }
            RefName::Other { theater, slot, incarnation, capability, .. } => {
                by_name(BirthName { theater, slot, incarnation, capability })
            }
            RefName::Yours(_) => None,
        };
        // Actors that have ended since.
        Ok(known.unwrap_or_else(ActorId::nobody))
    }
}

impl PendingProxy {
    /// Makes the stub of an actor.
    ///
    /// # Errors
    /// Its name, which the theater `teller` has told, contradicts a known one.
    pub(crate) fn settle(
        proxies: &Arc<PendingProxies>,
        teller: u64,
        (born, remote): (RemoteActorId, RemoteActorId),
        stub: MakeStub<'_>,
    ) -> Result<ActorId, BadName> {
        let pending = PendingProxy::first(proxies, remote);
        let core = &proxies.directory.core;
        let stub_placement = StubPlacement::Link(core.link_stage(remote.theater as usize));
        let id = stub(core, stub_placement, Arc::clone(&pending) as Arc<dyn Forwarder>);
        proxies.link_table.turnstiles.note_stage(core, id.address().stage());
        pending.is_at(id);
        proxies.directory.note(teller, id, born)?;
        proxies.note_unlinked(pending.this.clone());
        Ok(id)
    }

    /// Returns the first route of a stub.
    pub(crate) fn first(proxies: &Arc<PendingProxies>, remote: RemoteActorId) -> Arc<PendingProxy> {
        PendingProxy::with(proxies, Some(remote), (true, false))
    }

    /// Returns the route to an actor from a stub that had another route.
    pub(crate) fn new(proxies: &Arc<PendingProxies>, remote: RemoteActorId) -> Arc<PendingProxy> {
        PendingProxy::with(proxies, Some(remote), (false, false))
    }

    /// Returns the route to an actor that is being located: it waits for [`PendingProxy::found`], [`PendingProxy::is_not_needed`] or
    /// [`PendingProxy::give_up`].
    pub(crate) fn lost_actors(proxies: &Arc<PendingProxies>) -> Arc<PendingProxy> {
        PendingProxy::with(proxies, None, (false, true))
    }

    fn with(
        proxies: &Arc<PendingProxies>,
        remote: Option<RemoteActorId>,
        (is_first, called): (bool, bool),
    ) -> Arc<PendingProxy> {
        let waiting = State::Waiting { kept: Vec::new(), bytes: 0, called, is_ending: false };
        let window = proxies.link_table.node().map_or(0, |node| node.window_bytes());
        Arc::new_cyclic(|this| PendingProxy {
            this: this.clone(),
            proxies: Arc::clone(proxies),
            remote: Mutex::new(remote),
            is_first,
            locate_count: AtomicU32::new(u32::from(called)),
            id: OnceLock::new(),
            state: Mutex::new(waiting),
            gate: Arc::default(),
            slowed_bytes: window / SLOWED_AT,
            is_known: AtomicBool::new(false),
        })
    }

    /// Lets the mail of the stub go on. It waits again if too much is still kept.
    pub(crate) fn let_on(&self) {
        self.gate.open(&self.proxies.directory.core);
    }

    /// Notes that the route is known. The request that ends the waiting comes to the stub's stage now.
    fn is_known_now(&self) {
        // Relaxed: if the gate is closed after all, the housekeeper opens it.
        self.is_known.store(true, Ordering::Relaxed);
        self.let_on();
    }

    /// Makes this the route of the stub of an actor that does not migrate, if the link of its present route is lost.
    pub(crate) fn take_over(proxies: &Arc<PendingProxies>, id: ActorId, controls: &Controls) {
        let proxies = Arc::clone(proxies);
        let take_over = move |present: StubContent<'_>| {
            if let StubContent::Way(route) = present
                && leads_nowhere(&**route)
            {
                let pending = PendingProxy::with(&proxies, None, (false, true));
                *pending.state() = State::Lost;
                pending.is_at(id);
                *route = pending;
            }
            Vec::new()
        };
        (controls.reroute)(id, Box::new(take_over));
    }

    /// Ends the search: the located actor is at `far`.
    pub(crate) fn found(self: &Arc<Self>, remote: RemoteActorId) {
        *self.remote() = Some(remote);
        match self.proxies.link_table.link(remote.theater) {
            Some(link) => self.reached(link),
            None => self.call_in_background(),
        }
    }

    /// Ends the search: the actor is nowhere.
    pub(crate) fn give_up(&self) {
        let kept = self.end_waiting(State::Lost);
        kept.into_iter().for_each(|forwarded| forwarded.fail(&self.proxies.directory.core));
    }

    /// Ends the marker of the stub's reroute with this number as lost, if it is kept. Messages stay, and so do markers that others wait for, because
    /// those say that the messages before them have arrived.
    pub(crate) fn lose_marker(&self, reroute: u64) {
        let here = self.proxies.directory.incarnation;
        let is_of_reroute = |forwarded: &mut Kept| match forwarded {
            Kept::Marker(Marker { origin, .. }) => (origin.theater, origin.reroute) == (here, reroute),
            _ => false,
        };
        let markers: Vec<Kept> = match &mut *self.state() {
            State::Waiting { kept, bytes, .. } => {
                let markers: Vec<Kept> = kept.extract_if(.., is_of_reroute).collect();
                *bytes -= markers.iter().map(Kept::bytes).sum::<usize>();
                markers
            }
            State::There(_) | State::NotNeeded | State::Lost => Vec::new(),
        };
        markers.into_iter().for_each(Kept::refuse);
    }

    /// Ends the waiting because the actor has come to the stub of this route, or that stub has another route now. The kept messages go to the actor
    /// before the mail that waits for it at its stub. Or they go behind the messages that have gone along the other route since.
    pub(crate) fn is_not_needed(self: &Arc<Self>) {
        self.is_known_now();
        let Some((id, controls)) = self.mobile() else { return self.give_to_actor() };
        let this = Arc::clone(self);
        // The worker that runs the stub's stage sends them, because it closes the arrival buffer as well: no message comes to the buffer too late.
        let give = move |_: StubContent<'_>| {
            this.give_to_actor();
            Vec::new()
        };
        (controls.reroute)(id, Box::new(give));
    }

    /// Does the work of [`PendingProxy::is_not_needed`], in the stub's stage.
    fn give_to_actor(&self) {
        // Another thread may do this already.
        let mut begins = true;
        loop {
            // Messages that come while the lock is free go behind the kept ones.
            let kept = {
                let mut state = self.state();
                let State::Waiting { kept, bytes, is_ending, .. } = &mut *state else { return };
                if std::mem::replace(is_ending, true) && begins {
                    return;
                }
                begins = false;
                let kept = std::mem::take(kept);
                if kept.is_empty() {
                    *state = State::NotNeeded;
                    drop(state);
                    return self.let_on();
                }
                *bytes = 0;
                kept
            };
            for forwarded in kept {
                // It calls user code, which reads messages.
                contained(|| {
                    if let Err(forwarded) = self.act(forwarded).or_else(|forwarded| self.deliver(forwarded)) {
                        forwarded.fail(&self.proxies.directory.core);
                    }
                });
            }
        }
    }

    /// Sends a kept message to the actor or its stub. Returns the message if there is none.
    fn deliver(&self, forwarded: Kept) -> Result<(), Kept> {
        let id = self.id.get().copied().filter(|id| !id.address().is_stale());
        let (Some(id), Some(node)) = (id, self.proxies.link_table.node()) else { return Err(forwarded) };
        let registry = &self.proxies.link_table.registry;
        let ref_codec: Arc<dyn RefCodec> = Arc::new(PendingRefCodec(Arc::clone(&self.proxies.link_table)));
        let to = self.proxies.directory.arrival_buffer_of(id).unwrap_or(id);
        match forwarded {
            Kept::Tell { actor, message, name, lane, bytes } => {
                let entry = registry.message_of(actor, message);
                let told = entry.map(|entry| at_ref_codec(&ref_codec, || (entry.tell)(to, lane, &bytes, Codec::Named)));
                if !matches!(told, Some(Ok(()))) {
                    return Err(Kept::Tell { actor, message, name, lane, bytes });
                }
            }
            Kept::Request { actor, message, name, bytes, recall, answer } => {
                let Some(entry) = registry.message_of(actor, message) else {
                    return Err(Kept::Request { actor, message, name, bytes, recall, answer });
                };
                let back = Arc::clone(&ref_codec);
                let take: Answer = Box::new(move |written| {
                    let mut bytes = Vec::new();
                    let written = written.and_then(|write| {
                        at_ref_codec(&back, || write(Codec::Named, &mut bytes))
                            .map_err(|error| AskError::Unreachable(error.to_string()))
                    });
                    at_ref_codec(&back, || answer(written.map(|()| (Codec::Named, &bytes[..]))));
                });
                match at_ref_codec(&ref_codec, || (entry.ask)(to, &bytes, Codec::Named, take)) {
                    Ok(held) => recall.iter().for_each(|recall| recall.sent(&held, 0)),
                    Err((error, take)) => take(Err(AskError::Unreachable(error.to_string()))),
                }
            }
            // All mail before it is in the mail of the actor, or on its way.
            Kept::Marker(marker) => match registry.migration_vtable(id) {
                Some((moves, _)) if self.proxies.directory.is_remote(id) => (moves.pass_marker)(id, marker),
                _ => node.answer_marker(id, marker.answer),
            },
            other => return Err(other),
        }
        Ok(())
    }

    /// Returns the stub of this route.
    pub(crate) fn stub(&self) -> Option<ActorId> {
        self.id.get().copied()
    }

    /// Keeps a marker behind the kept messages. If there are none, it is answered as if it were lost.
    pub(crate) fn keep_marker(&self, marker: Marker) {
        let mut state = self.state();
        match &mut *state {
            State::Waiting { kept, is_ending, .. } if *is_ending || !kept.is_empty() => kept.push(Kept::Marker(marker)),
            _ => {
                drop(state);
                (marker.answer)(Err(AskError::TheaterLost { may_have_run: false }));
            }
        }
    }

    pub(crate) fn keeps_anything(&self) -> bool {
        matches!(&*self.state(), State::Waiting { kept, is_ending, .. } if *is_ending || !kept.is_empty())
    }

    /// Returns whether it keeps messages until a theater is called. A watch, for example, is of no use after the end of this theater.
    pub(crate) fn keeps_messages_for_a_call(&self) -> bool {
        let is_message = |kept: &Kept| !matches!(kept, Kept::Watch { .. } | Kept::Unwatch { .. } | Kept::Marker(_));
        let keeps = match &*self.state() {
            State::Waiting { kept, is_ending, .. } => *is_ending || kept.iter().any(is_message),
            State::There(_) | State::NotNeeded | State::Lost => false,
        };
        keeps && self.remote().is_some()
    }

    /// Returns whether it keeps anything until a theater is called that an actor has gone on to.
    pub(crate) fn keeps_for_another_route(&self) -> bool {
        !self.is_first && self.remote().is_some() && self.keeps_anything()
    }

    /// Returns the kept messages, if it still waited.
    fn end_waiting(&self, next: State) -> Vec<Kept> {
        let mut state = self.state();
        let State::Waiting { kept, .. } = &mut *state else { return Vec::new() };
        let kept = std::mem::take(kept);
        *state = next;
        drop(state);
        self.let_on();
        kept
    }

    /// Applies it to the actor, which is in this theater, or is just coming. Returns a message unchanged.
    fn act(&self, forwarded: Kept) -> Result<(), Kept> {
        let Some(id) = self.id.get().copied() else { return Err(forwarded) };
        match forwarded {
            Kept::Stop { drain } => self.again(id, move |id, controls| (controls.stop)(id, drain)),
            Kept::Kill => self.again(id, |id, controls| (controls.kill)(id)),
            Kept::Watch { watcher, notify } => self.proxies.directory.watch_again(id, watcher, notify),
            Kept::Unwatch { watcher } => self.again(id, move |id, controls| (controls.unwatch)(id, watcher)),
            message => return Err(message),
        }
        Ok(())
    }

    fn again(&self, id: ActorId, act: impl FnOnce(ActorId, &Controls) + Send + 'static) {
        self.proxies.directory.again(id, move |id, controls| {
            if let Some(controls) = controls {
                act(id, controls);
            }
        });
    }

    fn call_in_background(self: &Arc<Self>) {
        let Some(node) = self.proxies.link_table.node() else { return self.give_up() };
        let remote = *self.remote();
        if let Some(link) = remote.and_then(|remote| self.proxies.link_table.link(remote.theater)) {
            return self.reached(link);
        }
        let Some((remote, address)) = remote.and_then(|remote| Some((remote, remote.address?))) else {
            return self.miss();
        };
        let this = Arc::clone(self);
        let called = move |link: Result<Arc<Link>, TheaterError>| match link {
            Ok(link) if link.incarnation == remote.theater => this.reached(link),
            // Another theater has this address, or none.
            Ok(_) | Err(_) => this.miss(),
        };
        // The attempts last as long as a silent theater with a link is not lost; they are fewer if the calls are refused.
        let retry_for = node.lost_after();
        node.reach_later(Callee::of(address, remote.theater), retry_for, Box::new(called));
    }

    /// Has the theater called before anything is sent to it: it tells which actors have ended. If it cannot be reached, nothing changes.
    pub(crate) fn call_ahead(self: &Arc<Self>) {
        if !matches!(&*self.state(), State::Waiting { called: false, .. }) {
            return;
        }
        let (remote, Some(node)) = (*self.remote(), self.proxies.link_table.node()) else { return };
        let Some((theater, address)) = remote.and_then(|remote| Some((remote.theater, remote.address?))) else {
            return;
        };
        if let Some(link) = self.proxies.link_table.link(theater) {
            return self.open_ahead(link);
        }
        let this = Arc::clone(self);
        let called = move |link: Result<Arc<Link>, TheaterError>| match link {
            Ok(link) if link.incarnation == theater => this.open_ahead(link),
            Ok(_) | Err(_) => {}
        };
        let callee = Callee::of(address, theater);
        let limit = node.call_limit();
        node.reach_later(callee, limit, Box::new(called));
    }

    /// Lets the route go over `link` from now on, if this is still the route of the stub, and the link is not lost already.
    fn open_ahead(self: &Arc<Self>, link: Arc<Link>) {
        self.is_known_now();
        let this = Arc::clone(self);
        let open = move || _ = this.goes_over(&link);
        let Some((id, controls)) = self.mobile() else { return open() };
        let this = Arc::clone(self);
        let look = move |present: StubContent<'_>| {
            if matches!(present, StubContent::Way(route) if this.is(&**route)) {
                open();
            }
            Vec::new()
        };
        (controls.reroute)(id, Box::new(look));
    }

    /// Notes that this is the route of the stub `id`.
    pub(crate) fn is_at(&self, id: ActorId) {
        // Called once, by the maker of the route.
        let _ = self.id.set(id);
    }

    /// Returns the route to an actor that does not migrate, and whose theater was lost, if there is a link with that theater again. Otherwise the
    /// theater is called, unless it was lately. Runs in the stub's stage.
    fn go_back(&self) -> Option<Arc<Proxy>> {
        if !self.was_lost() || self.mobile().is_some() {
            return None;
        }
        let remote = self.proxies.directory.remote_name(*self.id.get()?)?;
        let Some(link) = self.proxies.link_table.link(remote.theater) else {
            self.proxies.call_lost(&remote);
            return None;
        };
        *self.remote() = Some(remote);
        let proxy = self.proxy(&link)?;
        *self.state() = State::There(Arc::clone(&proxy));
        Some(proxy)
    }

    /// Returns whether this led to an actor of a theater that was lost since.
    fn was_lost(&self) -> bool {
        match &*self.state() {
            State::Lost => true,
            State::There(proxy) => proxy.is_lost(),
            State::Waiting { .. } | State::NotNeeded => false,
        }
    }

    /// Returns the stub and its controls, if its actor is mobile, and this theater has not ended.
    fn mobile(&self) -> Option<(ActorId, &Controls)> {
        let link_table = &self.proxies.link_table;
        let id = self.stub().filter(|id| link_table.registry.migration_vtable(*id).is_some())?;
        link_table.node()?;
        Some((id, link_table.registry.controls(id)?))
    }

    fn remote(&self) -> MutexGuard<'_, Option<RemoteActorId>> {
        lock(&self.remote)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn lost() -> WireError {
        WireError::new("the theater is lost, or cannot be reached")
    }

    /// Handles the end of the theater. A mobile actor may have gone on from it, and is located.
    fn miss(self: &Arc<Self>) {
        /// The number of searches after which a missed actor is regarded as dead, or too fast.
        const LOCATES_MAX: u32 = 3;
        self.is_known.store(false, Ordering::Relaxed);
        let remote = self.remote().take();
        let (Some((id, _)), Some(RemoteActorId { theater: lost, .. })) = (self.mobile(), remote) else {
            return self.give_up();
        };
        let PendingProxies { directory, link_table, .. } = &*self.proxies;
        let mut lost_actors = Some((id, Arc::clone(self)));
        // Relaxed: it is a counter only.
        if self.locate_count.fetch_add(1, Ordering::Relaxed) >= LOCATES_MAX {
            if let Some(link) = link_table.link(lost) {
                // The link with that theater was made since.
                *self.remote() = remote;
                return self.reached(link);
            }
            directory.note_route_lost(id, lost);
            lost_actors = Locate::end(id, Arc::clone(self), &self.proxies, lost);
        }
        if let Some(lost_actors) = lost_actors {
            Locate::begin(vec![lost_actors], &self.proxies, (lost, 0));
        }
    }

    fn reached(self: &Arc<Self>, link: Arc<Link>) {
        self.is_known_now();
        let Some((id, controls)) = self.mobile() else { return self.open(&link) };
        let this = Arc::clone(self);
        let open = move |present: StubContent<'_>| {
            let is_here = matches!(present, StubContent::Here);
            let watchers = if is_here { this.take_watchers() } else { Vec::new() };
            match present {
                StubContent::Way(route) if this.is(&**route) => this.open(&link),
                // The actor has come, and waits for the messages kept by this route. They go to the actor's former theater, and follow it.
                StubContent::Here if this.keeps_anything() => this.open(&link),
                StubContent::Way(_) | StubContent::Here | StubContent::Nobody => this.give_to_actor(),
            }
            watchers
        };
        (controls.reroute)(id, Box::new(open));
    }

    fn is(&self, route: &dyn Forwarder) -> bool {
        route.as_any().downcast_ref::<PendingProxy>().is_some_and(|route| std::ptr::eq(route, self))
    }

    /// Returns whether the actor has come to the stub, and begins when this marker is answered.
    fn is_awaited(&self, marker: &Marker) -> bool {
        let Some(id) = self.stub() else { return false };
        let (view, origin) = (self.proxies.directory.view(id), &marker.origin);
        view.is_arriving()
            && origin.theater == self.proxies.directory.incarnation
            && view.reroute() == Some(origin.reroute)
    }

    /// Returns whether it leads nowhere, over a link that is lost.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(&*self.state(), State::There(proxy) if proxy.is_lost())
    }

    /// Lets this route, which is the stub's, go over `link`.
    fn open(self: &Arc<Self>, link: &Arc<Link>) {
        if self.goes_over(link) {
            return;
        }
        // The link is lost by now.
        self.miss();
    }

    /// Lets the route go over `link` from now on, if it still waits for one. Returns false if that link is lost.
    fn goes_over(&self, link: &Arc<Link>) -> bool {
        let Some(proxy) = self.proxy(link) else { return false };
        let mut state = self.state();
        let State::Waiting { kept, .. } = &mut *state else { return true };
        let kept = std::mem::take(kept);
        self.note_open(link.incarnation);
        *state = State::There(Arc::clone(&proxy));
        // Under the lock: new messages stand behind the kept ones.
        for forwarded in kept {
            // On an error a waiting sender was told; a message is lost with its theater.
            drop(forwarded.send(&proxy));
        }
        drop(state);
        self.let_on();
        true
    }

    /// Notes that the route opens to this theater. If the theater was lost and linked again before the first message, the view still says that the
    /// actor is being located, though no search has begun. Such a view ignores the theater's later words that the actor has gone on, or has ended.
    fn note_open(&self, theater: u64) {
        let remote = *self.remote();
        if let (Some(id), Some(remote)) = (self.stub(), remote) {
            // No search for the actor is under way: such a search has this route wait without a theater. Nothing changes if the actor has come to its
            // stub, or is known in another theater.
            self.proxies.directory.note_found(id, theater, remote);
        }
    }

    fn proxy(&self, link: &Arc<Link>) -> Option<Arc<Proxy>> {
        let remote = (*self.remote())?;
        link.adopt(*self.id.get()?, &remote).ok()
    }

    fn keep(&self, forwarded: ForwardedMessage<'_>) -> Result<(Kept, usize), WireError> {
        let ref_codec: Arc<dyn RefCodec> = Arc::new(PendingRefCodec(Arc::clone(&self.proxies.link_table)));
        let written = |write: playhouse_actor::away::Write<'_>| {
            let mut bytes = Vec::new();
            at_ref_codec(&ref_codec, || write(Codec::Named, &mut bytes)).map(|()| bytes)
        };
        let kept = match forwarded {
            ForwardedMessage::Tell { actor, message, name, lane, write } => {
                Kept::Tell { actor, message, name, lane, bytes: written(write)? }
            }
            ForwardedMessage::Request { actor, message, name, write, recall, answer } => match written(write) {
                Ok(bytes) => Kept::Request { actor, message, name, bytes, recall, answer },
                Err(error) => {
                    answer(Err(AskError::Unreachable(error.to_string())));
                    return Err(error);
                }
            },
            ForwardedMessage::Stop { drain } => Kept::Stop { drain },
            ForwardedMessage::Kill => Kept::Kill,
            ForwardedMessage::Verdict { actor, name, about, verdict } => {
                let verdict = match verdict {
                    Decision::Restart(write) => Decision::Restart(written(write)?),
                    Decision::Resume => Decision::Resume,
                    Decision::GiveUp => Decision::GiveUp,
                    Decision::Dismiss => Decision::Dismiss,
                };
                Kept::Verdict { actor, name, about, verdict }
            }
            ForwardedMessage::Watch { watcher, notify } => Kept::Watch { watcher, notify },
            ForwardedMessage::Unwatch { watcher } => Kept::Unwatch { watcher },
            ForwardedMessage::Marker(marker) => Kept::Marker(marker),
        };
        let bytes = kept.bytes();
        Ok((kept, bytes))
    }
}

impl Forwarder for PendingProxy {
    fn is_route_from(&self, id: ActorId) {
        let there = match &*self.state() {
            State::There(proxy) => Some(Arc::clone(proxy)),
            State::Waiting { .. } | State::NotNeeded | State::Lost => None,
        };
        if let Some(proxy) = there {
            proxy.is_route_from(id);
        }
    }

    fn take_watchers(&self) -> Vec<(Watcher, Notify)> {
        let mut state = self.state();
        match &mut *state {
            State::There(proxy) => {
                let proxy = Arc::clone(proxy);
                drop(state);
                proxy.take_watchers()
            }
            State::Waiting { kept, .. } => {
                let mut watchers: Vec<(Watcher, Notify)> = Vec::new();
                let mut others = Vec::new();
                for forwarded in std::mem::take(kept) {
                    match forwarded {
                        Kept::Watch { watcher, notify } => {
                            // The watch begins anew, regardless of former ones.
                            others
                                .retain(|kept| !matches!(kept, Kept::Unwatch { watcher: known } if *known == watcher));
                            watcher.begin(&mut watchers, Notify::Call(notify));
                        }
                        Kept::Unwatch { watcher } => {
                            watchers.retain(|(known, _)| !watcher.ends(known));
                            // The actor may have been watched before.
                            others.push(Kept::Unwatch { watcher });
                        }
                        other => others.push(other),
                    }
                }
                *kept = others;
                watchers
            }
            State::NotNeeded | State::Lost => Vec::new(),
        }
    }

    fn carry(&self, forwarded: ForwardedMessage<'_>) -> Written {
        let there = match &*self.state() {
            State::There(proxy) => Some(Arc::clone(proxy)),
            State::Waiting { .. } | State::NotNeeded | State::Lost => None,
        };
        // The link may be lost if it was made just before.
        let there = there.filter(|proxy| !proxy.is_lost() || self.mobile().is_some());
        if let Some(proxy) = there.or_else(|| self.go_back()) {
            return proxy.carry(forwarded);
        }
        // Nothing was sent from the stub before, so nothing is under way: the arrived actor does not wait for the call.
        if self.is_first && matches!(&forwarded, ForwardedMessage::Marker(marker) if self.is_awaited(marker)) {
            self.give_to_actor();
        }
        if let ForwardedMessage::Unwatch { watcher } = forwarded
            && let Some(id) = self.stub()
        {
            // The watch may be kept by the directory, until the stub learns of it.
            self.proxies.directory.forget_watch(id, watcher);
        }
        // The messages of a stub come one after the other, so none passes this one.
        let (forwarded, size) = self.keep(forwarded)?;
        let mut state = self.state();
        match &mut *state {
            State::There(proxy) => {
                let proxy = Arc::clone(proxy);
                drop(state);
                forwarded.send(&proxy)
            }
            State::NotNeeded => {
                drop(state);
                // The cell has not learned yet that the actor has come.
                self.act(forwarded).or_else(|forwarded| self.deliver(forwarded)).map_err(|forwarded| {
                    forwarded.refuse();
                    Self::lost()
                })
            }
            State::Lost => {
                drop(state);
                forwarded.refuse();
                Err(Self::lost())
            }
            State::Waiting { kept, bytes, called, .. } => {
                // Relaxed: see `is_known_now`.
                let is_much = *bytes + size > self.slowed_bytes && !self.is_known.load(Ordering::Relaxed);
                let slows = is_much && !matches!(forwarded, Kept::Marker(_));
                kept.push(forwarded);
                *bytes += size;
                let first = !std::mem::replace(called, true);
                let keeps_now = kept.len() == 1;
                if slows {
                    // The gate admits about as much waiting mail as is kept, by the average size of the kept messages. The gate is closed under the
                    // lock, because the end of the waiting opens it after that.
                    let average = (*bytes / kept.len()).max(1);
                    self.gate.close(self.slowed_bytes / average);
                }
                drop(state);
                if slows {
                    pause_stage(&self.gate);
                }
                if keeps_now {
                    self.proxies.note_keeping(self.this.clone());
                }
                if first {
                    self.this.upgrade().expect("the caller holds the route").call_in_background();
                }
                Ok(())
            }
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
