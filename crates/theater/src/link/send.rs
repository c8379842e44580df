//! The sending half of a link.

use playhouse_actor::away::{Decision, Recall, TakesBack};

use super::*;
use crate::naming::{BirthName, Epoch};

/// Returns whether the pending bytes are many enough that the other end should begin with them before the sending handler is over. If a handler
/// starts 1,000 actors in the other theater, for example, they run a fifth sooner then. The check happens once for each packet, so that a full
/// connection is not tried for each message.
fn is_worth_while(bytes_before: usize, bytes: usize) -> bool {
    const MANY_BYTES: usize = 16 * 1024;
    bytes_before < MANY_BYTES && bytes >= MANY_BYTES
}

/// The interval at which a waiting thread checks for room.
const ROOM_EVERY: Duration = Duration::from_millis(1);

fn too_full() -> WireError {
    WireError::new("the queue for that theater is full: it reads too slowly, or not at all")
}

impl Link {
    /// Returns the kind and codec of a message, if it can be sent.
    fn kind_of(&self, actor: TypeId, message: TypeId, name: &str, named: bool) -> Result<(u32, Codec), WireError> {
        let (kind, codec) = self.table.message(actor, message, name)?;
        Ok((kind, if named { Codec::Named } else { codec }))
    }

    fn lane(lane: Lane) -> session::Lane {
        match lane {
            Lane::System => session::Lane::System,
            Lane::Urgent => session::Lane::Urgent,
            Lane::Normal => session::Lane::Normal,
        }
    }

    fn lost_error(&self) -> WireError {
        WireError::new("the theater is lost")
    }

    /// Sends a frame, unless this theater has announced its shutdown.
    pub(crate) fn send_before_shutdown(&self, head: &Head) -> Written {
        let sent = self.send_with(
            Lane::Normal,
            |out| out.departs,
            |departs, out| match departs {
                true => head.write(out),
                false => Err(WireError::new("this theater has announced its shutdown")),
            },
        );
        sent.map(drop).map_err(|(error, _)| error)
    }

    /// Sends a frame; `prepare` makes the state for which the frame may need a number, and `write` gets it.
    fn send_with<R>(
        &self,
        lane: Lane,
        prepare: impl FnOnce(&mut Out) -> R,
        write: impl FnOnce(&R, &mut Vec<u8>) -> Written,
    ) -> Result<(R, bool), (WireError, R)> {
        let mut out = lock(&self.out);
        let prepared = prepare(&mut out);
        if self.is_lost() {
            return Err((self.lost_error(), prepared));
        }
        let lane = Self::lane(lane);
        let before = out.outbound.open_bytes(lane);
        let waited = out.outbound.waiting_bytes();
        let write = |buffer: &mut Vec<u8>| write(&prepared, buffer);
        // Nothing slows the poller: its written bytes are counted.
        let is_reply = READS.get().is_some();
        match if is_reply { out.outbound.reply(lane, write) } else { out.outbound.frame(lane, write) } {
            Ok(()) => {}
            Err(FrameError::Write(error)) => return Err((error, prepared)),
            Err(error) => return Err((WireError::new(error.to_string()), prepared)),
        }
        let waits = out.outbound.waiting_bytes();
        out.frame_bytes = out.frame_bytes - out.frame_bytes / 8 + (waits - waited);
        let full = waits > self.window_bytes;
        if full {
            // At most the allowed bytes under way may wait, as far as that can be known before they are written.
            self.gate.close(self.window_bytes / (out.frame_bytes / 8).max(1));
        }
        let worth_while = is_worth_while(before, out.outbound.open_bytes(lane));
        drop(out);
        self.flush_later(worth_while);
        Ok((prepared, full))
    }

    /// Sends a frame.
    pub(crate) fn send(&self, lane: Lane, write: impl FnOnce(&mut Vec<u8>) -> Written) -> Result<bool, WireError> {
        match self.send_with(lane, |_| (), |(), out| write(out)) {
            Ok(((), full)) => Ok(full),
            Err((error, ())) => Err(error),
        }
    }

    /// Calls [`Link::send`]. If the window is full, the stage of the message that this thread handles waits for room.
    pub(super) fn send_or_pause(&self, lane: Lane, write: impl FnOnce(&mut Vec<u8>) -> Written) -> Written {
        if self.send(lane, write)? {
            pause_stage(&self.gate);
        }
        Ok(())
    }

    /// Sends the answer to an ask. If no stage can be slowed (for an answer that is passed on between two links, say), it is refused when far too
    /// much waits.
    pub(super) fn send_answer(&self, write: impl FnOnce(&mut Vec<u8>) -> Written) -> Written {
        if self.is_overfull() {
            return Err(too_full());
        }
        let sent = self.send_or_pause(Lane::Normal, write);
        self.note_unfenced();
        sent
    }

    /// Has pending frames go out at the end of the gulp. Frames that are `worth_while`, and those of threads without gulps, go out at once.
    fn flush_later(&self, worth_while: bool) {
        if worth_while || !flush_soon() {
            return self.flush(false);
        }
        self.flush_at_end_of_gulp();
    }

    pub(super) fn flush_at_end_of_gulp(&self) {
        DIRTY.with_borrow_mut(|dirty| {
            if !dirty.iter().any(|link| std::ptr::eq(&**link, self)) {
                dirty.push(self.this());
            }
        });
    }

    /// Writes pending frames, and with `acknowledge` the received packet number if no other frame carries it.
    pub(crate) fn flush(&self, acknowledge: bool) {
        let mut out = lock(&self.out);
        self.write_taken_back(&mut out);
        let Out { outbound, connection, .. } = &mut *out;
        let Some(present) = connection else { return };
        loop {
            let written = present
                .write_out()
                .and_then(|()| outbound.output(self.received(), acknowledge, |slices| present.write(slices)));
            match written {
                Ok(0) => break,
                Ok(_) => {
                    self.mute.reset();
                    self.has_written.store(true, Ordering::Relaxed);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The poller is told when there is room.
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {
                    // The reading thread finds that out as well.
                    present.broken.store(true, Ordering::Relaxed);
                    present.shut();
                    *connection = None;
                    self.note_changed();
                    self.shutdown_waker.notify_all();
                    break;
                }
            }
        }
    }

    /// Tells the other end that this end is still running.
    pub(crate) fn beat(&self) {
        let _ = self.send(Lane::System, |out| Head::Beat.write(out));
    }

    /// Tells the other end that this end shuts down.
    pub(crate) fn say_goodbye(&self) {
        let _ = self.send(Lane::Normal, |out| Head::Goodbye.write(out));
    }

    /// Forbids further actors to begin at the other end. Called for all links before any theater learns of the shutdown. An actor that went on behind
    /// the announcement would be searched in vain, and replaced, while it lives in its target.
    pub(crate) fn end_departures(&self) {
        lock(&self.out).departs = false;
    }

    /// Returns whether everything that was sent is acknowledged.
    pub(crate) fn is_settled(&self) -> bool {
        lock(&self.out).outbound.waiting_bytes() == 0 || self.is_lost()
    }

    /// Returns whether the other end has learned of the shutdown, or cannot be asked. This end cannot call it then, and a theater without the
    /// announcement would have called again.
    pub(crate) fn is_goodbye_settled(&self) -> bool {
        /// A theater calls again at its next tick; a loaded machine needs some time for that.
        const CALLS_AGAIN_MAX: Duration = Duration::from_secs(1);
        let is_gone =
            || self.address.is_none() && self.connection().is_none() && self.unchanged_for() > CALLS_AGAIN_MAX;
        self.is_settled() || self.is_left() || is_gone()
    }

    /// Returns whether the other end may learn of the shutdown soon, which was announced a time ago.
    pub(crate) fn may_hear_goodbye(&self, announced_for: Duration) -> bool {
        /// The time without a word over a connection: the process may be frozen, and reads what the connection has when it goes on.
        const SILENT_MAX: Duration = Duration::from_secs(1);
        /// The time without a connection: an attempt to restore it may take some time.
        const BROKEN_MAX: Duration = Duration::from_secs(3);
        let is_there = match self.connection() {
            Some(_) => self.silent.passed() < SILENT_MAX,
            None => self.unchanged_for() < BROKEN_MAX,
        };
        is_there || announced_for < SILENT_MAX
    }

    /// Sends a forwarded message to the actor that this end calls `to`. With `named`, it is written by names, for all types.
    pub(crate) fn carry(
        &self,
        to: Handle,
        ref_codec: &Arc<dyn RefCodec>,
        forwarded: ForwardedMessage<'_>,
        named: bool,
    ) -> Written {
        let carried = self.carry_forwarded(to, ref_codec, forwarded, named);
        self.note_unfenced();
        carried
    }

    /// Sends a message to the actor `id` at once, also while the window is full and the stage of the link waits. It may overtake any other message.
    /// Returns whether it is on its way: this end must have a handle for the actor.
    pub(crate) fn tell_past_window(
        &self,
        id: ActorId,
        (actor, message, name): (TypeId, TypeId, &str),
        write: impl Fn(Codec, &mut Vec<u8>) -> Written,
    ) -> bool {
        let handle = || lock(&self.stubs).handles.get(&id).copied();
        let (Some(to), Ok((kind, codec))) = (handle(), self.kind_of(actor, message, name, false)) else { return false };
        let ref_codec = self.ref_codec();
        let sent = self.send(Lane::Urgent, |out| {
            // Under the lock of the frames: a handle is released behind this frame, or is not in use any more.
            if handle() != Some(to) {
                return Err(WireError::new("the actor has ended"));
            }
            Head::Tell { to, kind, codec: codec.into() }.write(out)?;
            at_ref_codec(&ref_codec, || write(codec, out))
        });
        sent.is_ok()
    }

    /// Notes that something was sent to an actor. Called behind the sending: a fence goes behind it.
    fn note_unfenced(&self) {
        if !self.is_unfenced.load(Ordering::Relaxed) {
            self.is_unfenced.store(true, Ordering::Release);
        }
    }

    fn carry_forwarded(
        &self,
        to: Handle,
        ref_codec: &Arc<dyn RefCodec>,
        forwarded: ForwardedMessage<'_>,
        named: bool,
    ) -> Written {
        match forwarded {
            ForwardedMessage::Tell { actor, message, name, lane, write } => {
                let (kind, codec) = self.kind_of(actor, message, name, named)?;
                self.send_or_pause(lane, |out| {
                    Head::Tell { to, kind, codec: codec.into() }.write(out)?;
                    at_ref_codec(ref_codec, || write(codec, out))
                })
            }
            ForwardedMessage::Request { actor, message, name, write, recall, answer } => {
                self.carry_ask(to, ref_codec, self.kind_of(actor, message, name, named), write, (recall, answer))
            }
            ForwardedMessage::Stop { drain } => {
                let lane = if drain { Lane::Normal } else { Lane::System };
                self.send_or_pause(lane, |out| Head::Stop { to }.write(out))
            }
            ForwardedMessage::Kill => self.send_or_pause(Lane::System, |out| Head::Kill { to }.write(out)),
            ForwardedMessage::Verdict { actor, name, about, verdict } => {
                let (kind, codec) = self.table.spawn(actor, name)?;
                let codec = if named { Codec::Named } else { codec };
                let head = Head::Verdict { to, kind, codec: codec.into(), about, verdict: verdict.map(drop) };
                self.send_or_pause(Lane::System, |out| {
                    head.write(out)?;
                    match verdict {
                        Decision::Restart(write) => at_ref_codec(ref_codec, || write(codec, out)),
                        Decision::Resume | Decision::GiveUp | Decision::Dismiss => Ok(()),
                    }
                })
            }
            ForwardedMessage::Watch { watcher, notify } => self.carry_watch(to, watcher, notify),
            ForwardedMessage::Unwatch { watcher } => {
                let watch = {
                    let mut out = lock(&self.out);
                    let known = out.watching.get(&to).and_then(|of| of.iter().find(|(known, _)| watcher.ends(known)));
                    let watch = known.map(|(_, watch)| *watch);
                    watch.inspect(|watch| drop(out.forget_watch(*watch)))
                };
                match watch {
                    Some(watch) => self.send_or_pause(Lane::System, |out| Head::Unwatch { to, watch }.write(out)),
                    None => {
                        // It may be watched by the next route of the stub.
                        if let Some(id) = self.mover(to)
                            && !self.directory.forget_watch(id, watcher)
                            && self.is_lost()
                        {
                            self.directory.unwatch_again(id, watcher);
                        }
                        Ok(())
                    }
                }
            }
            ForwardedMessage::Marker(Marker { origin, hops, answer, .. }) => {
                let write = |ask, out: &mut Vec<u8>| Head::Marker { to, ask, origin, hops }.write(out);
                self.ask_with(answer, Lane::Normal, write).map(drop)
            }
        }
    }

    fn carry_ask(
        &self,
        to: Handle,
        ref_codec: &Arc<dyn RefCodec>,
        kind: Result<(u32, Codec), WireError>,
        write: playhouse_actor::away::Write<'_>,
        (recall, answer): (Option<Arc<Recall>>, TakeAnswer),
    ) -> Written {
        let (kind, codec) = match kind {
            Ok(found) => found,
            Err(error) => {
                answer(Err(AskError::Unreachable(error.to_string())));
                return Err(error);
            }
        };
        let mut number = 0;
        let full = self.ask_with(answer, Lane::Normal, |ask, out| {
            number = ask;
            Head::Ask { to, kind, codec: codec.into(), ask }.write(out)?;
            at_ref_codec(ref_codec, || write(codec, out))
        })?;
        if let Some(recall) = recall {
            let by: Weak<dyn TakesBack> = Arc::<Link>::downgrade(&self.this());
            recall.sent(&by, number);
        }
        if full {
            pause_stage(&self.gate);
        }
        Ok(())
    }

    /// Sends a frame that needs an answer.
    pub(crate) fn ask_with(
        &self,
        answer: TakeAnswer,
        lane: Lane,
        write: impl FnOnce(u64, &mut Vec<u8>) -> Written,
    ) -> Result<bool, WireError> {
        self.ask_numbered(|_| answer, lane, write)
    }

    /// Does the work of [`Link::ask_with`]. `answer` makes the receiver of the answer for the number of the ask, under the lock of `out`.
    pub(super) fn ask_numbered(
        &self,
        answer: impl FnOnce(u64) -> TakeAnswer,
        lane: Lane,
        write: impl FnOnce(u64, &mut Vec<u8>) -> Written,
    ) -> Result<bool, WireError> {
        let prepare = |out: &mut Out| {
            let ask = out.next_number;
            out.next_number += 1;
            out.asks.insert(ask, answer(ask));
            ask
        };
        match self.send_with(lane, prepare, |ask, out| write(*ask, out)) {
            Ok((_, full)) => Ok(full),
            Err((error, ask)) => {
                let answer = lock(&self.out).asks.remove(&ask);
                if let Some(answer) = answer {
                    answer(Err(if self.is_lost() {
                        AskError::TheaterLost { may_have_run: false }
                    } else {
                        AskError::Unreachable(error.to_string())
                    }));
                }
                Err(error)
            }
        }
    }

    /// Returns the number of the next ask.
    pub(crate) fn asked(&self) -> u64 {
        lock(&self.out).next_number
    }

    /// Returns whether an ask before this number has no answer.
    pub(crate) fn awaits_answers(&self, before: u64) -> bool {
        lock(&self.out).asks.keys().any(|ask| *ask < before)
    }

    fn carry_watch(&self, to: Handle, watcher: Watcher, notify: Tell) -> Written {
        if lock(&self.out).watches.len() >= WATCHES_MAX / 2 {
            notify(StopReason::TheaterLost.into());
            return Err(WireError::new(format!(
                "this theater watches {} actors of that theater, and cannot watch more",
                WATCHES_MAX / 2
            )));
        }
        let prepare = |out: &mut Out| {
            let watch = out.next_number;
            let of = out.watching.entry(to).or_default();
            if !watcher.begin(of, watch) {
                return None;
            }
            out.next_number += 1;
            out.watches.insert(watch, (to, notify));
            Some(watch)
        };
        let write = |watch: &Option<u64>, out: &mut Vec<u8>| match watch {
            Some(watch) => Head::Watch { to, watch: *watch }.write(out),
            None => Head::Beat.write(out),
        };
        match self.send_with(Lane::System, prepare, write) {
            Ok((_, full)) => {
                if full {
                    pause_stage(&self.gate);
                }
                Ok(())
            }
            Err((error, watch)) => {
                let notify = watch.and_then(|watch| lock(&self.out).forget_watch(watch));
                let Some(notify) = notify else { return Err(error) };
                if self.is_lost()
                    && let Some(id) = self.mover(to)
                {
                    // Its stub is about to learn that this route leads nowhere. Then it has another route, or is given up.
                    self.directory.watch_again(id, watcher, notify);
                    return Ok(());
                }
                notify(StopReason::TheaterLost.into());
                Err(error)
            }
        }
    }

    /// Returns the stub of the actor that this link calls `handle`, if it is mobile.
    fn mover(&self, handle: Handle) -> Option<ActorId> {
        let id = lock(&self.stubs).by_handle.get(handle as usize).copied()?;
        self.registry.migration_vtable(id).map(|_| id)
    }

    /// Asks for the load of the other theater.
    pub(crate) fn ask_load(&self, answer: TakeAnswer) {
        // On an error, the answer says it.
        let _ = self.ask_with(answer, Lane::System, |ask, out| Head::Load { ask }.write(out));
    }

    /// Asks for these actors, which were in the theater `lost`, or had been.
    ///
    /// The other end learns which theaters were `asked` as well, and if it is `for_others`, it asks the rest.
    pub(crate) fn locate(
        &self,
        lost: u64,
        (for_others, asked): (bool, &[u64]),
        actors: &[BirthName],
        answer: TakeAnswer,
    ) {
        let (asked, actors) = (asked.to_vec(), actors.to_vec());
        let write = |ask, out: &mut Vec<u8>| Head::Locate { ask, lost, for_others, asked, actors }.write(out);
        // On an error, the answer says it.
        let _ = self.ask_with(answer, Lane::Normal, write);
    }

    /// Asks for the actor that is published as `name`.
    pub(crate) fn find(&self, name: &str, actor: &str, answer: TakeAnswer) {
        if self.is_overfull() {
            return answer(Err(AskError::Unreachable(too_full().to_string())));
        }
        // On an error, the answer says it.
        let _ = self.ask_with(answer, Lane::System, |ask, out| {
            Head::Find { ask, name: name.to_owned(), actor: actor.to_owned() }.write(out)
        });
    }

    /// Starts an actor of the type `actor` in the other theater, with the state that `write` writes; `stub` makes its stub in this theater. The state
    /// of a child stands behind its supervisor link.
    pub(crate) fn spawn<R>(
        &self,
        (actor, name): (TypeId, &str),
        child: bool,
        write: impl Fn(Codec, &mut Vec<u8>) -> Written,
        stub: impl FnOnce(&SystemCore, u16, Arc<dyn Forwarder>) -> (ActorId, R),
    ) -> Result<R, WireError> {
        let (kind, codec) = self.table.spawn(actor, name)?;
        self.may_name_more()?;
        self.await_room()?;
        let ref_codec = self.ref_codec();
        let state = |out: &mut Vec<u8>| at_ref_codec(&ref_codec, || write(codec, out));
        let epoch = Cell::new(Epoch::default());
        let stub = |core: &SystemCore, stage, proxy: Arc<Proxy>| {
            let (id, made) = stub(core, stage, proxy);
            if self.registry.migration_vtable(id).is_some() {
                epoch.set(self.directory.note_start(id, self.incarnation));
            }
            (id, made)
        };
        let head = |handle, id| {
            // In a system that has ended, there is no stub. The actor is for no receiver then.
            let (codec, born, epoch) = (codec.into(), self.directory.slot_name(id).unwrap_or_default(), epoch.get());
            match child {
                true => Head::SpawnChild { handle, kind, codec, born, epoch },
                false => Head::Spawn { handle, kind, codec, born, epoch },
            }
        };
        self.name_next(state, stub, head)
    }

    /// Waits while the window is full. On a worker, the stage of the present message waits after its handler.
    ///
    /// # Errors
    /// The handler has sent far too much, because its stage is slowed only when it returns.
    fn await_room(&self) -> Written {
        let is_full = || lock(&self.out).outbound.waiting_bytes() > self.window_bytes;
        if !is_full() {
            return Ok(());
        }
        #[cfg(test)]
        tests::ROOM_AWAITED.fetch_add(1, Ordering::Relaxed);
        let Some(node) = self.node() else { return Ok(()) };
        // A simulation has no threads beside the one that runs it.
        if flush_soon() || node.is_simulated() {
            {
                let out = lock(&self.out);
                self.gate.close(self.window_bytes / (out.frame_bytes / 8).max(1));
            }
            pause_stage(&self.gate);
            // There may have been room before it was closed.
            self.note_room();
            return if self.is_overfull() { Err(too_full()) } else { Ok(()) };
        }
        while is_full() && !self.is_lost() {
            node.pause(ROOM_EVERY);
        }
        Ok(())
    }

    /// Checks that there are numbers for more actors of the other end.
    ///
    /// # Errors
    /// Too many are in use.
    pub(crate) fn may_name_more(&self) -> Written {
        let out = lock(&self.out);
        if out.free_handles.is_empty() && out.next_handle as usize >= HANDLES_MAX / 2 {
            let most = HANDLES_MAX / 2;
            return Err(WireError::new(format!(
                "this theater knows {most} actors of that theater, and cannot know more"
            )));
        }
        Ok(())
    }

    /// Sends a frame that gives the next handle its meaning, and makes the stub of the actor that it means. `rest` writes the bytes behind the head.
    /// Only a frame that goes out takes the number, so that the other end sees one number after the other. And the frame goes out only when the stub
    /// exists.
    ///
    /// # Errors
    /// The link is lost, or the rest cannot be written. Then there is no stub.
    pub(super) fn name_next<R>(
        &self,
        rest: impl FnOnce(&mut Vec<u8>) -> Written,
        stub: impl FnOnce(&SystemCore, u16, Arc<Proxy>) -> (ActorId, R),
        head: impl FnOnce(Handle, ActorId) -> Head,
    ) -> Result<R, WireError> {
        /// Most bytes of a head that gives a handle its meaning.
        const HEAD_BYTES_MAX: usize = 128;
        let mut out = lock(&self.out);
        if self.is_lost() {
            return Err(self.lost_error());
        }
        // With the lock held, because the numbers in it keep their meaning until it has gone out.
        let mut behind = Vec::new();
        rest(&mut behind)?;
        let bytes = behind.len() + HEAD_BYTES_MAX;
        if bytes > FRAME_BYTES_MAX as usize {
            let error: FrameError<WireError> = FrameError::TooLarge { bytes, bytes_max: FRAME_BYTES_MAX };
            return Err(WireError::new(error.to_string()));
        }
        let handle = match out.free_handles.pop() {
            Some(handle) => handle,
            None => {
                out.next_handle += 1;
                out.next_handle - 1
            }
        };
        // Kept until the lock is free, because the end of a route takes it: if the system has ended, the stub drops the proxy at once.
        let proxy = Arc::new(Proxy::new(self.this(), handle));
        let (id, made) = stub(&self.core, self.stage, Arc::clone(&proxy));
        let before = out.outbound.open_bytes(session::Lane::System);
        let sent = out.outbound.frame(session::Lane::System, |buffer| {
            head(handle, id).write(buffer)?;
            buffer.extend_from_slice(&behind);
            Ok::<(), WireError>(())
        });
        sent.expect("a head is written, and the frame is not too large");
        self.link_table.turnstiles.note_stage(&self.core, id.address().stage());
        {
            let mut stubs = lock(&self.stubs);
            stubs.handles.insert(id, handle);
            match stubs.by_handle.get_mut(handle as usize) {
                Some(free) => *free = id,
                None => stubs.by_handle.push(id),
            }
        }
        let worth_while = is_worth_while(before, out.outbound.open_bytes(session::Lane::System));
        drop(out);
        drop(proxy);
        self.flush_later(worth_while);
        Ok(made)
    }

    pub(crate) fn ref_codec(&self) -> Arc<dyn RefCodec> {
        self.this()
    }
}
