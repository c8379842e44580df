//! The receiving half of a link.

use playhouse_actor::away::{About, Decision};
use playhouse_actor::wire::Spawns;

use super::recall::Recalls;
use super::*;
use crate::link::frame::LocateReply;
use crate::link::node::{MobileStart, TakeLocateReply};
use crate::naming::Epoch;
use crate::naming::{BirthName, RemoteActorId, SlotName};

/// An ask that was read, until its answer is written or is dropped.
pub(crate) struct Unanswered {
    link: Arc<Link>,
    bytes: usize,
}

impl Unanswered {
    pub(crate) fn new(link: Arc<Link>, ask_bytes: usize) -> Unanswered {
        let bytes = ask_bytes + size_of::<Unanswered>();
        link.unanswered_bytes.fetch_add(bytes, Ordering::Relaxed);
        Unanswered { link, bytes }
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        self.link.unanswered_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A watch of the other end, until it ends.
struct Watched(Arc<Link>);

impl Watched {
    /// Counts one more watch, unless there are too many.
    fn new(link: Arc<Link>) -> Option<Watched> {
        // Relaxed: it is a counter only.
        let before = link.watches.fetch_add(1, Ordering::Relaxed);
        let watched = Watched(link);
        (before < WATCHES_MAX).then_some(watched)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.watches.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Link {
    /// Reads the received bytes, and delivers their frames. Called by the poller, which may have `slept` until now. With `closed`, it reads up to the
    /// end of the connection.
    pub(crate) fn read(&self, connection: &Connection, closed: bool, slept: bool) -> Progress {
        let ref_codec = self.ref_codec();
        let mut guard = lock(&self.inn);
        let inn = &mut *guard;
        if connection.number != inn.connection {
            return Progress::Done;
        }
        if inn.buffer.is_empty() {
            // Zeroed memory of the system becomes resident only as far as so many bytes come at once. The bytes that `resize` writes are resident at
            // once.
            inn.buffer = vec![0; READ_BYTES];
        }
        let mut round_bytes = 0;
        loop {
            if self.is_not_to_be_read(inn) {
                // The peer is not silent: this end does not read.
                self.silent.reset();
                self.acknowledge(inn, slept);
                return Progress::Wait;
            }
            let room = &mut inn.buffer[inn.filled..];
            let space = room.len();
            let count = match connection.read(room) {
                Ok(0) => return Progress::Broken,
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Progress::Broken,
            };
            inn.filled += count;
            inn.withheld_bytes += count;
            round_bytes += count;
            let (inbound, bytes) = (&mut inn.inbound, &inn.buffer[..inn.filled]);
            let on_frame = |lane, frame: &[u8]| {
                // Later frames are not acknowledged, and the other end reports them.
                if self.is_lost() || self.fault.get().is_some() {
                    return;
                }
                // Reading calls the user's code.
                if contained(|| self.take(lane, frame)).is_none() {
                    self.core.dead_letter("?", "?", Undelivered::Unreachable);
                }
            };
            let took = with_targets(self.number, &mut inn.targets, || {
                at_ref_codec(&ref_codec, || inbound.input(bytes, on_frame))
            });
            // Callbacks of a lost link may want the lock that is held in this block.
            let took = match (took, self.fault.get()) {
                (Ok(took), None) => took,
                (took, _) => {
                    drop(guard);
                    match took {
                        Ok(_) => self.lose_by_fault(),
                        Err(error) => self.lose_for(Fault::Session(error)),
                    }
                    return Progress::Broken;
                }
            };
            inn.buffer.copy_within(took..inn.filled, 0);
            inn.filled -= took;
            self.silent.reset();
            if let Err(error) = self.note_acknowledged(&inn.inbound) {
                drop(guard);
                self.lose_for(Fault::Session(error));
                return Progress::Broken;
            }
            if self.shutdown_announced.load(Ordering::Relaxed) {
                // The other end waits for the acknowledgement of its announcement.
                self.received.store(inn.inbound.received(), Ordering::Release);
                self.flush(true);
                drop(guard);
                self.lose();
                return Progress::Broken;
            }
            if count < space && !closed && connection.cipher.is_none() {
                // The socket was emptied: it will tell when there are more bytes.
                break;
            }
            if round_bytes >= ROUND_BYTES {
                self.acknowledge(inn, slept);
                return Progress::More;
            }
        }
        if self.acknowledge(inn, slept) { Progress::Done } else { Progress::Wait }
    }

    /// Returns whether nothing more is read for now. A peer that keeps the rules never causes that: see the module.
    fn is_not_to_be_read(&self, inn: &In) -> bool {
        inn.withheld_bytes > WINDOWS_MAX * self.window_bytes + RESERVE_BYTES
            || self.unwritten_reply_bytes() > REPLY_WINDOWS_MAX * self.window_bytes + RESERVE_BYTES
    }

    pub(super) fn unwritten_reply_bytes(&self) -> usize {
        lock(&self.out).outbound.unwritten_reply_bytes()
    }

    /// Checks for room after an acknowledgement.
    ///
    /// # Errors
    /// The other end acknowledges packets that it never got.
    fn note_acknowledged(&self, inbound: &Inbound) -> Result<(), session::ProtocolError> {
        lock(&self.out).outbound.acknowledged(inbound.acknowledged())?;
        self.note_room();
        Ok(())
    }

    /// Acknowledges received packets, now or later. Returns false if the receivers have to catch up before.
    fn acknowledge(&self, inn: &mut In, slept: bool) -> bool {
        /// Packets that are received before they are acknowledged without anything else to be sent.
        const ACKNOWLEDGE_EVERY: u64 = 16;
        let received = inn.inbound.received();
        // Relaxed: only this thread writes it, and it publishes no other memory.
        let withheld = received - self.received.load(Ordering::Relaxed);
        if withheld == 0 {
            // Less than a packet.
            inn.withheld_bytes = 0;
            return true;
        }
        let was_overloaded = inn.overload_timeout.is_tried();
        // Relaxed: it is a counter only.
        let is_overloaded = self.is_overloaded()
            || self.unwritten_reply_bytes() > self.window_bytes
            || self.unanswered_bytes.load(Ordering::Relaxed) > self.window_bytes;
        let still = (slept && self.core.others_sleep()) || (is_overloaded && self.is_held_up());
        // Room on some link does not help an actor that waits for it on a certain link. Relaxed: it is a counter only.
        let may_help = is_overloaded && !self.waits_for_a_gate();
        let room_made = may_help.then(|| self.link_table.room_made.load(Ordering::Relaxed));
        if !inn.overload_timeout.is_over(is_overloaded, still, room_made) {
            return false;
        }
        self.last_target.store(u64::MAX, Ordering::Relaxed);
        lock(&self.ack_backpressure).stages.clear();
        self.received.store(received, Ordering::Release);
        inn.withheld_bytes = 0;
        if was_overloaded || received >= lock(&self.out).outbound.told() + ACKNOWLEDGE_EVERY {
            self.flush(true);
        }
        true
    }

    /// Returns whether a receiver of packets that are not acknowledged is overloaded.
    fn is_overloaded(&self) -> bool {
        let is_overloaded = |stage: u64| u16::try_from(stage).is_ok_and(|stage| self.core.is_stage_overloaded(stage));
        let mut ack_backpressure = lock(&self.ack_backpressure);
        ack_backpressure.stages.retain(|stage| is_overloaded(u64::from(*stage)));
        !ack_backpressure.stages.is_empty() || is_overloaded(self.last_target.load(Ordering::Relaxed))
    }

    /// Returns whether the receivers are overloaded only because stages beside them are muted: perhaps for packets that this end does not
    /// acknowledge.
    fn is_held_up(&self) -> bool {
        let is_held_up = |stage: u64| u16::try_from(stage).is_ok_and(|stage| self.core.is_stage_held_up(stage));
        let last = self.last_target.load(Ordering::Relaxed);
        let last_is_at_ease = u16::try_from(last).is_ok_and(|stage| !self.core.is_stage_overloaded(stage));
        lock(&self.ack_backpressure).stages.iter().all(|stage| is_held_up(u64::from(*stage)))
            && (last_is_at_ease || is_held_up(last))
    }

    /// Returns whether an overloaded receiver waits for room on a link.
    fn waits_for_a_gate(&self) -> bool {
        let waits = |stage: u64| u16::try_from(stage).is_ok_and(|stage| self.core.is_stage_paused(stage));
        waits(self.last_target.load(Ordering::Relaxed))
            || lock(&self.ack_backpressure).stages.iter().any(|stage| waits(u64::from(*stage)))
    }

    /// Notes that a message for an actor of `stage` was read.
    fn note_target(&self, stage: u16) {
        // All accesses are relaxed, because only the poller makes them.
        let last = self.last_target.load(Ordering::Relaxed);
        if last != u64::from(stage) {
            self.last_target.store(u64::from(stage), Ordering::Relaxed);
            if let Ok(last) = u16::try_from(last)
                && self.core.is_stage_overloaded(last)
            {
                let mut ack_backpressure = lock(&self.ack_backpressure);
                if !ack_backpressure.stages.contains(&last) {
                    ack_backpressure.stages.push(last);
                }
            }
        }
    }

    /// Takes a frame: gives it to the subsystem that it is for.
    fn take(&self, lane: session::Lane, frame: &[u8]) {
        let (head, rest) = match Head::read(frame) {
            Ok(read) => read,
            Err(_) => return self.core.dead_letter("?", "?", Undelivered::Unreachable),
        };
        match head {
            // Messages and requests to actors.
            Head::Tell { to, kind, codec } => self.take_tell(self.receiver(to), (kind, codec.into()), lane, rest),
            Head::Ask { to, kind, codec, ask } => self.take_ask(self.receiver(to), kind, codec.into(), ask, rest),
            Head::TakeBack { ask, for_cycle } => self.take_back_held(ask, for_cycle),
            Head::Verdict { to, kind, codec, about, verdict } => {
                self.take_verdict(to, kind, about, verdict.map(|()| (rest, codec.into())));
            }
            Head::Stop { to } => {
                let drain = lane == session::Lane::Normal;
                self.with_controls(self.receiver(to), |id, controls| (controls.stop)(id, drain));
            }
            Head::Kill { to } => self.with_controls(self.receiver(to), |id, controls| (controls.kill)(id)),
            // Answers.
            Head::Answer { ask, codec } => self.take_answer(ask, Ok((codec.into(), rest))),
            Head::Failed { ask } => {
                let error = Codec::Positional.read(rest);
                self.take_answer(ask, Err(error.unwrap_or_else(|error| AskError::Unreachable(error.to_string()))));
            }
            Head::TooLate { ask, forwards } => {
                let too_late = lock(&self.out).too_late.remove(&ask);
                too_late.into_iter().for_each(|too_late| too_late(forwards));
            }
            // Handles.
            Head::Name { handle, name } => self.take_name(handle, name),
            Head::Named { handle, name } => self.take_named(handle, name),
            Head::Spawn { handle, kind, codec, born, epoch } => {
                self.start(handle, (kind, codec.into()), (self.its(born), epoch, false), rest);
            }
            Head::SpawnChild { handle, kind, codec, born, epoch } => {
                self.start(handle, (kind, codec.into()), (self.its(born), epoch, true), rest);
            }
            Head::Release { ask, handles } => {
                TARGETS.with_borrow_mut(|targets| handles.into_iter().for_each(|handle| targets.release(handle)));
                self.reply(ask, &());
            }
            Head::Ended { handles } => self.take_ended(&handles),
            // Watches.
            Head::Watch { to, watch } => self.take_new_watch(to, watch),
            Head::Unwatch { to, watch } => self.take_unwatch(to, watch),
            Head::Down { watch, name, reason } => {
                let notify = lock(&self.out).forget_watch(watch);
                if let Some(notify) = notify {
                    notify(Ended { name, reason });
                }
            }
            // Questions.
            Head::Find { ask, name, actor } => {
                self.reply(ask, &self.registry.find(&name, &actor, |id| self.name_of(id)));
            }
            Head::Locate { ask, lost, for_others, asked, actors } => {
                self.take_locate(ask, lost, (for_others, asked), actors, frame.len());
            }
            Head::Load { ask } => self.reply(ask, &self.node().map_or(1.0, |node| node.load())),
            Head::Fence { ask } => self.take_fence(ask),
            // Other subsystems.
            Head::Marker { .. }
            | Head::Move { .. }
            | Head::Member { .. }
            | Head::Together { .. }
            | Head::Apart { .. }
            | Head::Moved { .. }
            | Head::Begin { .. }
            | Head::Stays { .. }
            | Head::Begun { .. }
            | Head::Leaving { .. }
            | Head::Departs { .. } => {
                if let Some(node) = self.node() {
                    node.take_migration(self, head, rest);
                }
            }
            Head::Waits { .. } | Head::Cycle => {
                if let Some(node) = self.node() {
                    node.take_cycle(self, head, rest);
                }
            }
            // The session.
            Head::Beat => {}
            Head::Goodbye => self.shutdown_announced.store(true, Ordering::Relaxed),
        }
    }

    /// Answers an ask of the other end.
    pub(crate) fn reply<T: serde::Serialize>(&self, ask: u64, value: &T) {
        // A failure does not matter: then the ask ends with the link.
        let _ = self.send(Lane::Normal, |out| {
            Head::Answer { ask, codec: Codec::Positional.into() }.write(out)?;
            Codec::Positional.write(value, out)
        });
    }

    fn take_answer(&self, ask: u64, answer: Result<(Codec, &[u8]), AskError>) {
        let take = lock(&self.out).answered(ask);
        if let Some(take) = take {
            take(answer);
        }
    }

    fn take_verdict(&self, to: Handle, kind: u32, about: About, verdict: Decision<(&[u8], Codec)>) {
        if let (Some(id), Some(entry)) = (self.receiver(to), self.registry.spawn(kind)) {
            // A child ends if its new state cannot be read.
            let _ = (entry.decide)(id, about, verdict);
        }
    }

    fn take_name(&self, handle: Handle, name: SlotName) {
        // A name with a wrong capability means no actor. A third theater may have told it to the peer.
        if self.reserve(handle) {
            // A peer that names an actor which has just ended may watch it, and is told the reason of its end.
            let theater = self.directory.incarnation;
            let name = name.of(theater, None);
            self.bind(handle, self.directory.met(self.incarnation, &name).ok().flatten());
        }
    }

    /// Takes the name of an actor that was started for this end.
    fn take_named(&self, handle: Handle, name: SlotName) {
        let id = lock(&self.stubs).by_handle.get(handle as usize).copied();
        let Some(id) = id else { return };
        let at = self.its(name);
        if self.registry.migration_vtable(id).is_some() {
            self.directory.note_started(id, at);
        } else if let Err(why) = self.directory.note(self.incarnation, id, at) {
            self.fault(Fault::Name(why));
        }
    }

    fn take_new_watch(&self, to: Handle, watch: u64) {
        let Some(watched) = Watched::new(self.this()) else { return self.fault(Fault::Watches) };
        let tell: Tell = Box::new(move |Ended { name, reason }| {
            let _ = watched.0.send_or_pause(Lane::Normal, |out| Head::Down { watch, name, reason }.write(out));
        });
        self.take_watch(to, watch, tell);
    }

    fn take_unwatch(&self, to: Handle, watch: u64) {
        let watcher = Watcher::There(self.number, watch);
        // A dropped function tells no watcher.
        let told = self.with_incoming_watchers(to, |watchers| watchers.extract_if(.., |(by, _)| *by == watcher).next());
        if told.flatten().is_none() {
            self.with_controls(self.receiver(to), |id, controls| (controls.unwatch)(id, watcher));
        }
    }

    fn take_locate(
        &self,
        ask: u64,
        lost: u64,
        (for_others, asked): (bool, Vec<u64>),
        actors: Vec<BirthName>,
        frame_bytes: usize,
    ) {
        let kept = actors.len() * size_of::<(BirthName, Option<ActorLocation>)>();
        let unanswered = Unanswered::new(self.this(), frame_bytes + kept);
        let answer: TakeLocateReply = Box::new(move |known| unanswered.link.reply(ask, &LocateReply(known)));
        match self.node() {
            Some(node) => node.inquire(lost, (for_others, asked), actors, answer),
            // The whole theater has ended.
            None => answer(Vec::new()),
        }
    }

    fn take_watch(&self, to: Handle, watch: u64, tell: Tell) {
        let watcher = Watcher::There(self.number, watch);
        let mut tell = Some(tell);
        // An incoming actor that was committed is watched before it runs.
        self.with_incoming_watchers(to, |watchers| watchers.extend(tell.take().map(|tell| (watcher, tell))));
        let Some(tell) = tell else { return };
        let (Some(id), Some(receiver)) = (self.target(to), self.receiver(to)) else {
            return tell(StopReason::NotAlive.into());
        };
        let tell = self.directory.telling_end(id, tell);
        match self.registry.controls(receiver) {
            Some(controls) => (controls.watch)(receiver, watcher, Notify::Call(tell)),
            None => tell(StopReason::NotAlive.into()),
        }
    }

    fn with_controls(&self, id: Option<ActorId>, f: impl FnOnce(ActorId, &playhouse_actor::wire::Controls)) {
        if let Some(id) = id
            && let Some(controls) = self.registry.controls(id)
        {
            f(id, controls);
        }
    }

    /// Returns the name of the other end's actor with this name in its theater.
    pub(crate) fn its(&self, name: SlotName) -> RemoteActorId {
        name.of(self.incarnation, self.advertised)
    }

    /// Reserves the other end's `handle`, which is to mean an actor. Returns false if it cannot, and the link is lost for that.
    fn reserve(&self, handle: Handle) -> bool {
        let reserved = TARGETS.with_borrow_mut(|targets| targets.reserve(handle));
        reserved.map_err(|fault| self.fault(fault)).is_ok()
    }

    /// Binds the other end's reserved `handle` to `id` from now on.
    fn bind(&self, handle: Handle, id: Option<ActorId>) {
        let target = id.map(|id| {
            let is_incoming = self.directory.incoming_actors().came_over(self.number, id);
            Target {
                id,
                is_incoming,
                arrival_buffer: self.directory.arrival_buffer_of(id),
                is_reached: false,
                told: 0,
                told_end: false,
            }
        });
        TARGETS.with_borrow_mut(|targets| targets.bind(handle, target));
    }

    /// Starts an actor for the other end, which calls it `handle` from now on; the other end is told its slot.
    fn start(
        &self,
        handle: Handle,
        (kind, codec): (u32, Codec),
        (born, epoch, is_child): (RemoteActorId, Epoch, bool),
        bytes: &[u8],
    ) {
        // This comes first, because the next handle comes in any case, and reading the state is the user's code, which may panic.
        if !self.reserve(handle) {
            return;
        }
        let start = |entry: &'static Spawns| match entry.moves {
            Some(moves) => {
                self.node()?.start_mobile(self, MobileStart { entry, moves, codec, born, epoch, is_child, bytes })
            }
            None if is_child => (entry.spawn_child)(&self.core, bytes, codec).ok(),
            None => (entry.spawn)(&self.core, bytes, codec).ok(),
        };
        let started = self.registry.spawn(kind).and_then(|entry| {
            let started = contained(|| start(entry)).flatten();
            if started.is_none() {
                self.core.dead_letter((entry.actor_name)(), "the actor itself", Undelivered::Unreachable);
            }
            started
        });
        self.bind(handle, started);
        if let Some(Ok(name)) = started.map(|id| self.directory.slot_name(id)) {
            let named = Head::Named { handle, name };
            // This comes before frames that the actor sends by its own name.
            let _ = self.send(Lane::System, |out| named.write(out));
        }
    }

    /// Returns the actor that the other end's handle means.
    pub(super) fn target(&self, handle: Handle) -> Option<ActorId> {
        TARGETS.with_borrow(|targets| targets.get(handle)).map(|target| target.id)
    }

    /// Returns the receiver of mail to that actor: its arrival buffer or itself.
    fn receiver(&self, handle: Handle) -> Option<ActorId> {
        self.meaning(handle)?;
        let (target, tell) = TARGETS.with_borrow_mut(|targets| {
            let target = targets.all.get_mut(handle as usize)?.as_mut()?;
            if !target.is_reached && target.arrival_buffer.is_none() {
                target.is_reached = true;
                targets.reached.insert(handle);
            }
            target.told = if target.id.address().is_away() { target.told.saturating_add(1) } else { 0 };
            // More than once, because the actor may have come, which ends the reroute of the remote stub, and may have left again. The frames become
            // rarer, because there may be no other route.
            let tell = target.told.is_power_of_two();
            Some((*target, tell))
        })?;
        if tell && target.arrival_buffer.is_none() && !self.tell_moved(handle, &target) {
            TARGETS.with_borrow_mut(|targets| targets.forget_told(handle));
        }
        Some(target.receiver())
    }

    fn take_tell(&self, target: Option<ActorId>, (kind, codec): (u32, Codec), lane: session::Lane, bytes: &[u8]) {
        let Some(entry) = self.registry.message(kind) else {
            return self.core.dead_letter("?", "?", Undelivered::Unreachable);
        };
        let bounce = |why| self.core.dead_letter((entry.actor_name)(), (entry.message_name)(), why);
        let Some(id) = target.filter(|id| !id.address().is_stale()) else {
            return bounce(Undelivered::Stopped);
        };
        self.note_target(id.address().stage());
        self.link_table.traffic.note(id, self.incarnation);
        let lane = if lane == session::Lane::Normal { Lane::Normal } else { Lane::Urgent };
        if (entry.tell)(id, lane, bytes, codec).is_err() {
            bounce(Undelivered::Unreachable);
        }
    }

    fn take_ask(&self, target: Option<ActorId>, kind: u32, codec: Codec, ask: u64, bytes: &[u8]) {
        let Some(entry) = self.registry.message(kind) else {
            let error = format!("this theater takes no message number {kind}");
            return self.fail(ask, &AskError::Unreachable(error));
        };
        let Some(id) = target.filter(|id| !id.address().is_stale()) else {
            return self.fail(ask, &AskError::Stopped);
        };
        self.link_table.traffic.note(id, self.incarnation);
        let unanswered = (Unanswered::new(self.this(), bytes.len() + Recalls::HELD_BYTES), self.hold(ask));
        let (link, ref_codec) = (self.this(), self.ref_codec());
        let answer = Box::new(move |answer: Result<playhouse_actor::away::Write<'_>, AskError>| {
            let _unanswered = unanswered;
            let write = match answer {
                Err(error) => return link.fail(ask, &error),
                Ok(write) => write,
            };
            {
                let sent = link.send_answer(|out| {
                    Head::Answer { ask, codec: codec.into() }.write(out)?;
                    at_ref_codec(&ref_codec, || write(codec, out))
                });
                if let Err(error) = sent {
                    link.fail(ask, &AskError::Unreachable(error.to_string()));
                }
            }
        });
        match (entry.ask)(id, bytes, codec, answer) {
            Ok(by) => self.held_by(ask, by),
            Err((error, _)) => self.fail(ask, &AskError::Unreachable(error.to_string())),
        }
    }

    pub(crate) fn fail(&self, ask: u64, error: &AskError) {
        let _ = self.send(Lane::Normal, |out| {
            Head::Failed { ask }.write(out)?;
            Codec::Positional.write(error, out)
        });
    }
}

/// For [`fuzz`](crate::fuzz): without a connection.
impl Link {
    pub(crate) fn of_a_rejected_peer(link_table: &Arc<LinkTable>) -> Arc<Link> {
        // The peer takes the same messages and actors as this theater.
        let (names, window) = ((1, None, None), (WINDOW_BYTES, Arc::default()));
        let link = Link::new(link_table, 0, names, link_table.registry.kinds(), window);
        link_table.add_link(link.incarnation, &link);
        link
    }

    pub(crate) fn take_of_rejected_peer(&self, frame: &[u8]) {
        let ref_codec = self.ref_codec();
        let mut inn = lock(&self.inn);
        with_targets(self.number, &mut inn.targets, || {
            at_ref_codec(&ref_codec, || self.take(session::Lane::Normal, frame))
        });
    }

    /// Returns the number of the other end's handles that mean an actor.
    pub(crate) fn known_of_rejected_peer(&self) -> usize {
        // Actors that the other end has started end with it.
        let inn = lock(&self.inn);
        for id in inn.targets.all.iter().flatten().map(|target| &target.id) {
            if let Some(controls) = self.registry.controls(*id) {
                (controls.kill)(*id);
            }
        }
        inn.targets.all.len()
    }
}
