//! Links: one for each pair of theaters, whatever becomes of the connection between them.
//!
//! # Who does what
//!
//! *Sending.* Mail to an actor of the other theater comes to its place here ([`Proxy`]), on the link's own stage; there it
//! is written into the link's [`Outbound`], under a lock that is taken per message and most often not contended. The worker
//! writes to the socket when its gulp is over ([`Link::flush`]), so what one gulp has sent goes out in one system call.
//!
//! *Receiving.* The worker that polls reads the socket and sends what it has read to the actors, from its own logs.
//! [`Inbound`] and what belongs to it is used by that worker only.
//!
//! *Order.* Messages of X to Y are handed to the link in the order in which they were sent (the order of a cell's mail), are
//! written in that order, arrive in it (the session), and are sent on by the worker that polls, in it (`reactor.rs` of the
//! executor). An answer goes the same way as a message.
//!
//! *Backpressure.* When more than [`WINDOW_BYTES`] were not acknowledged, the link's stage is paused; who sends to it
//! then is muted as for any overloaded receiver. And the reader stops reading while an actor that it sent to is overloaded.
//!
//! Locks are taken in the order `inn`, `out`, `places`; no user's code runs under `places`, and under `out` only what
//! writes a message.

use std::any::TypeId;
use std::cell::RefCell;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use playhouse_actor::away::{Border, Carrier, Parcel, Place, RefName, TakeAnswer, at_border};
use playhouse_actor::wire::{Codec, WireError, Written};
use playhouse_actor::{ActorId, AskError, Notify, StopReason, Watcher};
use playhouse_executor::{Gate, Lane, SystemCore, Undelivered, flush_soon, pause_stage};

use rustc_hash::FxHashMap;

use crate::frame::{Handle, Head, Kind};
use crate::proxy::Proxy;
use crate::registry::{Registry, Table};
use crate::seal::Seal;
use crate::session::{self, FrameError, Inbound, Outbound};

/// Bytes that may be under way before who sends more is slowed.
pub(crate) const WINDOW_BYTES: usize = 4 * 1024 * 1024;
/// A message may have so many bytes.
pub(crate) const FRAME_BYTES_MAX: u32 = 16 * 1024 * 1024;
/// What is read by one system call, at most.
const READ_BYTES: usize = 256 * 1024;
/// What is read from one link before others have their turn.
const TURN_BYTES: usize = 1024 * 1024;

/// One connection of a link.
pub(crate) struct Connection {
    pub(crate) token: mio::Token,
    pub(crate) stream: mio::net::TcpStream,
    /// The how manyth of its session.
    pub(crate) number: u64,
    pub(crate) broken: AtomicBool,
}

/// The sending half.
struct Out {
    outbound: Outbound,
    connection: Option<Arc<Connection>>,
    next_handle: Handle,
    next_number: u64,
    asks: FxHashMap<u64, TakeAnswer>,
    watches: FxHashMap<u64, Box<dyn FnOnce(StopReason) + Send>>,
    /// Watches by who watches whom.
    watching: FxHashMap<(Handle, ActorId), u64>,
}

/// The receiving half.
struct In {
    inbound: Inbound,
    buffer: Vec<u8>,
    filled: usize,
    /// The connection that `buffer` is of.
    connection: u64,
    /// What the other end's handles mean; in [`TARGETS`] while something is read.
    targets: Vec<Option<ActorId>>,
}

/// Who of the other theater is known here.
#[derive(Default)]
struct Places {
    met: FxHashMap<(u64, u64), ActorId>,
    handles: FxHashMap<ActorId, Handle>,
    by_handle: Vec<ActorId>,
}

/// How reading went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nothing is left to be read for now.
    Done,
    /// There may be more.
    More,
    /// There may be more, but who it is for has to catch up first.
    Wait,
    /// The connection is broken.
    Broken,
}

/// A session with another theater.
pub(crate) struct Link {
    this: Weak<Link>,
    core: Arc<SystemCore>,
    registry: Arc<Registry>,
    seal: Seal,
    /// The other theater.
    pub(crate) incarnation: u64,
    /// Where it can be called.
    pub(crate) address: Option<SocketAddr>,
    number: u64,
    stage: u16,
    gate: Arc<Gate>,
    table: Table,
    received: AtomicU64,
    /// Ticks of the housekeeper since something was heard, and since something was said.
    pub(crate) silent_ticks: AtomicU32,
    pub(crate) mute_ticks: AtomicU32,
    lost: AtomicBool,
    /// The other end has said that it ends.
    taken_leave_of: AtomicBool,
    /// Rung when the connection is gone.
    bell: Arc<Condvar>,
    /// Whom the last message read was for.
    last_target: AtomicU64,
    out: Mutex<Out>,
    inn: Mutex<In>,
    /// Actors of this end that the other end has given a handle.
    named: Mutex<FxHashMap<ActorId, Handle>>,
    places: Mutex<Places>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// Links that this thread has something to write for.
    static DIRTY: RefCell<Vec<Arc<Link>>> = const { RefCell::new(Vec::new()) };
    /// What the handles mean of the link that this thread reads. Here, since references within a message mean it too, and
    /// are read by `serde`.
    static TARGETS: RefCell<Vec<Option<ActorId>>> = const { RefCell::new(Vec::new()) };
}

/// Has [`TARGETS`] in its place while `f` runs.
fn with_targets<R>(targets: &mut Vec<Option<ActorId>>, f: impl FnOnce() -> R) -> R {
    TARGETS.with_borrow_mut(|here| std::mem::swap(here, targets));
    let result = f();
    TARGETS.with_borrow_mut(|here| std::mem::swap(here, targets));
    result
}

/// Writes out what this thread has left to be written.
pub(crate) fn flush_all() {
    for link in DIRTY.take() {
        link.flush(false);
    }
}

impl Link {
    pub(crate) fn new(
        core: &Arc<SystemCore>,
        registry: &Arc<Registry>,
        seal: Seal,
        number: u64,
        peer: (u64, Option<SocketAddr>),
        kinds: &[Kind],
        bell: Arc<Condvar>,
    ) -> Arc<Link> {
        Arc::new_cyclic(|this| Link {
            this: this.clone(),
            core: Arc::clone(core),
            registry: Arc::clone(registry),
            seal,
            incarnation: peer.0,
            address: peer.1,
            number,
            stage: core.link_stage(number as usize),
            gate: Arc::default(),
            table: registry.table(kinds),
            received: AtomicU64::new(0),
            silent_ticks: AtomicU32::new(0),
            mute_ticks: AtomicU32::new(0),
            lost: AtomicBool::new(false),
            taken_leave_of: AtomicBool::new(false),
            bell,
            last_target: AtomicU64::new(u64::MAX),
            out: Mutex::new(Out {
                outbound: Outbound::new(FRAME_BYTES_MAX),
                connection: None,
                next_handle: 0,
                next_number: 0,
                asks: FxHashMap::default(),
                watches: FxHashMap::default(),
                watching: FxHashMap::default(),
            }),
            inn: Mutex::new(In {
                inbound: Inbound::new(FRAME_BYTES_MAX),
                buffer: Vec::new(),
                filled: 0,
                connection: 0,
                targets: Vec::new(),
            }),
            named: Mutex::default(),
            places: Mutex::default(),
        })
    }

    fn this(&self) -> Arc<Link> {
        self.this.upgrade().expect("it is used")
    }

    // -- connections --------------------------------------------------------------------------------------------------

    /// The present connection.
    pub(crate) fn connection(&self) -> Option<Arc<Connection>> {
        lock(&self.out).connection.clone()
    }

    fn received(&self) -> u64 {
        self.received.load(Ordering::Acquire)
    }

    /// Takes leave of the old connection, before the connection with this number is made. Returns the highest packet number
    /// received: what the other end is told, so nothing more may be taken from the old connection after that.
    pub(crate) fn prepare(&self, connection: u64) -> u64 {
        if let Some(old) = self.connection() {
            self.disconnect(&old);
        }
        let mut inn = lock(&self.inn);
        inn.connection = connection;
        // What was half received comes again.
        inn.filled = 0;
        inn.inbound.received()
    }

    /// Goes on over a new connection; the other end has received everything up to `received`.
    pub(crate) fn connect(&self, connection: &Arc<Connection>, received: u64) -> Result<(), session::ProtocolError> {
        {
            let mut out = lock(&self.out);
            out.outbound.resume(received)?;
            if let Some(old) = out.connection.replace(Arc::clone(connection)) {
                old.broken.store(true, Ordering::Relaxed);
            }
        }
        self.silent_ticks.store(0, Ordering::Relaxed);
        self.flush(false);
        Ok(())
    }

    /// The connection is of no use any more.
    pub(crate) fn disconnect(&self, connection: &Connection) {
        connection.broken.store(true, Ordering::Relaxed);
        // The other end learns it too.
        let _ = connection.stream.shutdown(std::net::Shutdown::Both);
        let mut out = lock(&self.out);
        if out.connection.as_ref().is_some_and(|present| present.token == connection.token) {
            out.connection = None;
            self.bell.notify_all();
        }
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    // -- sending ------------------------------------------------------------------------------------------------------

    /// Whether a message can be sent, and as what.
    pub(crate) fn kind_of(&self, actor: TypeId, message: TypeId, name: &str) -> Result<(u32, Codec), WireError> {
        self.table.message(actor, message, name)
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

    /// Sends a frame; `write` is given what the frame may need a number for.
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
        match out.outbound.frame(Self::lane(lane), |buffer| write(&prepared, buffer)) {
            Ok(()) => {}
            Err(FrameError::Write(error)) => return Err((error, prepared)),
            Err(error) => return Err((WireError::new(error.to_string()), prepared)),
        }
        let full = out.outbound.waiting_bytes() > WINDOW_BYTES;
        if full {
            self.gate.close();
        }
        drop(out);
        self.flush_later();
        Ok((prepared, full))
    }

    /// Sends a frame.
    fn send(&self, lane: Lane, write: impl FnOnce(&mut Vec<u8>) -> Written) -> Result<bool, WireError> {
        match self.send_with(lane, |_| (), |(), out| write(out)) {
            Ok(((), full)) => Ok(full),
            Err((error, ())) => Err(error),
        }
    }

    fn flush_later(&self) {
        if !flush_soon() {
            return self.flush(false);
        }
        DIRTY.with_borrow_mut(|dirty| {
            if !dirty.iter().any(|link| std::ptr::eq(&**link, self)) {
                dirty.push(self.this());
            }
        });
    }

    /// Writes what there is to be written, and with `acknowledge` what was received if nothing else says it.
    pub(crate) fn flush(&self, acknowledge: bool) {
        let mut out = lock(&self.out);
        let Out { outbound, connection, .. } = &mut *out;
        let Some(present) = connection else { return };
        loop {
            let written =
                outbound.output(self.received(), acknowledge, |slices| (&present.stream).write_vectored(slices));
            match written {
                Ok(0) => break,
                Ok(_) => self.mute_ticks.store(0, Ordering::Relaxed),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The poller is told when there is room.
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {
                    // Whoever reads finds that out as well.
                    present.broken.store(true, Ordering::Relaxed);
                    let _ = present.stream.shutdown(std::net::Shutdown::Both);
                    *connection = None;
                    self.bell.notify_all();
                    break;
                }
            }
        }
    }

    /// Says that this end is still there.
    pub(crate) fn beat(&self) {
        let _ = self.send(Lane::System, |out| Head::Beat.write(out));
    }

    /// Says that this end ends.
    pub(crate) fn say_goodbye(&self) {
        let _ = self.send(Lane::Normal, |out| Head::Goodbye.write(out));
    }

    /// Whether everything that was sent is acknowledged.
    pub(crate) fn is_settled(&self) -> bool {
        lock(&self.out).outbound.waiting_bytes() == 0 || self.is_lost()
    }

    /// Takes a parcel to the actor that this end calls `to`.
    pub(crate) fn carry(&self, to: Handle, border: &Arc<dyn Border>, parcel: Parcel<'_>) -> Written {
        match parcel {
            Parcel::Tell { actor, message, name, lane, write } => {
                let (kind, codec) = self.kind_of(actor, message, name)?;
                let full = self.send(lane, |out| {
                    Head::Tell { to, kind, codec: codec.into() }.write(out)?;
                    at_border(border, || write(codec, out))
                })?;
                if full {
                    pause_stage(&self.gate);
                }
                Ok(())
            }
            Parcel::Request { actor, message, name, write, answer } => {
                self.carry_ask(to, border, (actor, message, name), write, answer)
            }
            Parcel::Stop { drain } => {
                let lane = if drain { Lane::Normal } else { Lane::System };
                self.send(lane, |out| Head::Stop { to }.write(out)).map(drop)
            }
            Parcel::Kill => self.send(Lane::System, |out| Head::Kill { to }.write(out)).map(drop),
            Parcel::Watch { watcher, notify } => self.carry_watch(to, watcher, notify),
            Parcel::Unwatch { watcher } => {
                let Watcher::Here(watcher) = watcher else { return Ok(()) };
                let watch = {
                    let mut out = lock(&self.out);
                    let watch = out.watching.remove(&(to, watcher));
                    watch.inspect(|watch| drop(out.watches.remove(watch)))
                };
                match watch {
                    Some(watch) => self.send(Lane::System, |out| Head::Unwatch { to, watch }.write(out)).map(drop),
                    None => Ok(()),
                }
            }
        }
    }

    fn carry_ask(
        &self,
        to: Handle,
        border: &Arc<dyn Border>,
        (actor, message, name): (TypeId, TypeId, &str),
        write: playhouse_actor::away::Write<'_>,
        answer: TakeAnswer,
    ) -> Written {
        let (kind, codec) = match self.kind_of(actor, message, name) {
            Ok(found) => found,
            Err(error) => {
                answer(Err(AskError::Unreachable(error.to_string())));
                return Err(error);
            }
        };
        let sent = self.ask_with(answer, Lane::Normal, |ask, out| {
            Head::Ask { to, kind, codec: codec.into(), ask }.write(out)?;
            at_border(border, || write(codec, out))
        })?;
        if sent {
            pause_stage(&self.gate);
        }
        Ok(())
    }

    /// Sends a frame that is answered.
    fn ask_with(
        &self,
        answer: TakeAnswer,
        lane: Lane,
        write: impl FnOnce(u64, &mut Vec<u8>) -> Written,
    ) -> Result<bool, WireError> {
        let prepare = |out: &mut Out| {
            let ask = out.next_number;
            out.next_number += 1;
            out.asks.insert(ask, answer);
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

    fn carry_watch(&self, to: Handle, watcher: Watcher, notify: Box<dyn FnOnce(StopReason) + Send>) -> Written {
        let Watcher::Here(watcher) = watcher else {
            return Err(WireError::new("an actor of another theater watches over this one"));
        };
        let prepare = |out: &mut Out| {
            if out.watching.contains_key(&(to, watcher)) {
                return None;
            }
            let watch = out.next_number;
            out.next_number += 1;
            out.watches.insert(watch, notify);
            out.watching.insert((to, watcher), watch);
            Some(watch)
        };
        let write = |watch: &Option<u64>, out: &mut Vec<u8>| match watch {
            Some(watch) => Head::Watch { to, watch: *watch }.write(out),
            None => Head::Beat.write(out),
        };
        match self.send_with(Lane::System, prepare, write) {
            Ok(_) => Ok(()),
            Err((error, watch)) => {
                if let Some(notify) = watch.and_then(|watch| lock(&self.out).watches.remove(&watch)) {
                    notify(StopReason::TheaterLost);
                }
                Err(error)
            }
        }
    }

    /// Asks who is published as `name`.
    pub(crate) fn find(&self, name: &str, actor: &str, answer: TakeAnswer) {
        // On an error, the answer says it.
        let _ = self.ask_with(answer, Lane::System, |ask, out| {
            Head::Find { ask, name: name.to_owned(), actor: actor.to_owned() }.write(out)
        });
    }

    /// Starts an actor of the type `actor` there, with the state that `write` writes; `place` makes its place here.
    pub(crate) fn spawn<R>(
        &self,
        actor: TypeId,
        name: &str,
        write: impl Fn(Codec, &mut Vec<u8>) -> Written,
        place: impl FnOnce(&SystemCore, u16, Arc<dyn Carrier>) -> (ActorId, R),
    ) -> Result<R, WireError> {
        let (kind, codec) = self.table.spawn(actor, name)?;
        let border = self.border();
        let write = |handle, out: &mut Vec<u8>| {
            Head::Spawn { handle, kind, codec: codec.into() }.write(out)?;
            at_border(&border, || write(codec, out))
        };
        self.name_next(None, write, place)
    }

    /// Sends a frame that gives the next handle its meaning, and makes the place of the actor that it means. The number is
    /// taken only by a frame that goes out, so that the other end sees one after the other; and the frame goes out only
    /// when the place is there.
    fn name_next<R>(
        &self,
        met: Option<(u64, u64)>,
        write: impl FnOnce(Handle, &mut Vec<u8>) -> Written,
        place: impl FnOnce(&SystemCore, u16, Arc<dyn Carrier>) -> (ActorId, R),
    ) -> Result<R, WireError> {
        let mut out = lock(&self.out);
        if self.is_lost() {
            return Err(self.lost_error());
        }
        let handle = out.next_handle;
        let sent = out.outbound.frame(session::Lane::System, |buffer| write(handle, buffer));
        sent.map_err(|error| match error {
            FrameError::Write(error) => error,
            error => WireError::new(error.to_string()),
        })?;
        out.next_handle += 1;
        let (id, made) = place(&self.core, self.stage, Arc::new(Proxy::new(self.this(), handle)));
        {
            let mut places = lock(&self.places);
            places.handles.insert(id, handle);
            places.by_handle.push(id);
            if let Some(met) = met {
                places.met.insert(met, id);
            }
        }
        drop(out);
        self.flush_later();
        Ok(made)
    }

    fn border(&self) -> Arc<dyn Border> {
        self.this()
    }

    // -- receiving ----------------------------------------------------------------------------------------------------

    /// Reads what has come, and sends it on. By the poller.
    pub(crate) fn read(&self, connection: &Connection) -> Progress {
        if self.is_overloaded() {
            return Progress::Wait;
        }
        let border = self.border();
        let mut inn = lock(&self.inn);
        let inn = &mut *inn;
        if connection.number != inn.connection {
            return Progress::Done;
        }
        inn.buffer.resize(READ_BYTES, 0);
        let mut turn = 0;
        loop {
            let room = &mut inn.buffer[inn.filled..];
            let space = room.len();
            let count = match (&connection.stream).read(room) {
                Ok(0) => return Progress::Broken,
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Progress::Done,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Progress::Broken,
            };
            inn.filled += count;
            turn += count;
            let (inbound, bytes) = (&mut inn.inbound, &inn.buffer[..inn.filled]);
            let on_frame = |_, frame: &[u8]| {
                // Reading is the user's code.
                if catch_unwind(AssertUnwindSafe(|| self.take(frame))).is_err() {
                    self.core.dead_letter("?", "?", Undelivered::Unreachable);
                }
            };
            let took = with_targets(&mut inn.targets, || at_border(&border, || inbound.input(bytes, on_frame)));
            let Ok(took) = took else {
                self.lose();
                return Progress::Broken;
            };
            inn.buffer.copy_within(took..inn.filled, 0);
            inn.filled -= took;
            self.silent_ticks.store(0, Ordering::Relaxed);
            if !self.note_received(&inn.inbound) {
                return Progress::Broken;
            }
            if self.taken_leave_of.load(Ordering::Relaxed) {
                // It waits to hear that it was heard.
                self.flush(true);
                self.lose();
                return Progress::Broken;
            }
            if count < space {
                // The socket was emptied: it will say when there is more.
                return Progress::Done;
            }
            if self.is_overloaded() {
                return Progress::Wait;
            }
            if turn >= TURN_BYTES {
                return Progress::More;
            }
        }
    }

    /// What was received is acknowledged some time; what was acknowledged makes room.
    fn note_received(&self, inbound: &Inbound) -> bool {
        /// Packets that are received before they are acknowledged without anything else to be sent.
        const ACKNOWLEDGE_EVERY: u64 = 16;
        let received = inbound.received();
        self.received.store(received, Ordering::Release);
        let mut out = lock(&self.out);
        if out.outbound.acknowledged(inbound.acknowledged()).is_err() {
            drop(out);
            self.lose();
            return false;
        }
        let due = received >= out.outbound.told() + ACKNOWLEDGE_EVERY;
        let room = out.outbound.waiting_bytes() < WINDOW_BYTES / 2;
        drop(out);
        if room {
            self.gate.open(&self.core, self.stage);
        }
        if due {
            self.flush(true);
        }
        true
    }

    fn is_overloaded(&self) -> bool {
        let stage = self.last_target.load(Ordering::Relaxed);
        u16::try_from(stage).is_ok_and(|stage| self.core.is_stage_overloaded(stage))
    }

    /// Takes a frame.
    fn take(&self, frame: &[u8]) {
        let (head, rest) = match Head::read(frame) {
            Ok(read) => read,
            Err(_) => return self.core.dead_letter("?", "?", Undelivered::Unreachable),
        };
        let target = |to: Handle| self.target(to);
        match head {
            Head::Tell { to, kind, codec } => self.take_tell(target(to), kind, codec.into(), rest),
            Head::Ask { to, kind, codec, ask } => self.take_ask(target(to), kind, codec.into(), ask, rest),
            Head::Answer { ask, codec } => {
                let answer = lock(&self.out).asks.remove(&ask);
                if let Some(answer) = answer {
                    answer(Ok((codec.into(), rest)));
                }
            }
            Head::Failed { ask } => {
                let answer = lock(&self.out).asks.remove(&ask);
                let error = Codec::Positional.read(rest);
                if let Some(answer) = answer {
                    answer(Err(error.unwrap_or_else(|error| AskError::Unreachable(error.to_string()))));
                }
            }
            Head::Name { handle, name } => self.bind(handle, self.own(name)),
            Head::Spawn { handle, kind, codec } => {
                let entry = self.registry.spawn(kind);
                self.bind(handle, entry.and_then(|entry| (entry.spawn)(&self.core, rest, codec.into()).ok()));
            }
            Head::Stop { to } => self.with_controls(target(to), |id, controls| (controls.stop)(id, false)),
            Head::Kill { to } => self.with_controls(target(to), |id, controls| (controls.kill)(id)),
            Head::Watch { to, watch } => {
                let link = self.this();
                let tell = move |reason| {
                    let _ = link.send(Lane::Normal, |out| Head::Down { watch, reason }.write(out));
                };
                let watcher = Watcher::There(self.number, watch);
                match target(to).and_then(|id| Some((id, self.registry.controls(id)?))) {
                    Some((id, controls)) => (controls.watch)(id, watcher, Notify::Call(Box::new(tell))),
                    None => tell(StopReason::NotAlive),
                }
            }
            Head::Unwatch { to, watch } => self.with_controls(target(to), |id, controls| {
                (controls.unwatch)(id, Watcher::There(self.number, watch));
            }),
            Head::Down { watch, reason } => {
                let notify = {
                    let mut out = lock(&self.out);
                    out.watching.retain(|_, known| *known != watch);
                    out.watches.remove(&watch)
                };
                if let Some(notify) = notify {
                    notify(reason);
                }
            }
            Head::Find { ask, name, actor } => {
                let found = self.registry.find(&name, &actor, |id| self.name_of(id));
                let _ = self.send(Lane::Normal, |out| {
                    Head::Answer { ask, codec: Codec::Positional.into() }.write(out)?;
                    Codec::Positional.write(&found, out)
                });
            }
            Head::Beat => {}
            Head::Goodbye => self.taken_leave_of.store(true, Ordering::Relaxed),
        }
    }

    fn with_controls(&self, id: Option<ActorId>, f: impl FnOnce(ActorId, &playhouse_actor::wire::Controls)) {
        if let Some(id) = id
            && let Some(controls) = self.registry.controls(id)
        {
            f(id, controls);
        }
    }

    /// The actor of this theater that a name is of.
    fn own(&self, name: RefName) -> Option<ActorId> {
        let RefName::Mine { slot, life, seal } = name else { return None };
        self.seal.is_right(slot, life, seal).then(|| self.core.find(slot, life).map(ActorId::of)).flatten()
    }

    /// The other end's `handle` means `id` from now on. Handles come one after the other.
    fn bind(&self, handle: Handle, id: Option<ActorId>) {
        let is_next = TARGETS.with_borrow_mut(|targets| {
            let is_next = handle as usize == targets.len();
            if is_next {
                targets.push(id);
            }
            is_next
        });
        if let Some(id) = id.filter(|_| is_next) {
            lock(&self.named).insert(id, handle);
        }
    }

    fn target(&self, handle: Handle) -> Option<ActorId> {
        TARGETS.with_borrow(|targets| targets.get(handle as usize).copied().flatten())
    }

    fn take_tell(&self, target: Option<ActorId>, kind: u32, codec: Codec, bytes: &[u8]) {
        let Some(entry) = self.registry.message(kind) else {
            return self.core.dead_letter("?", "?", Undelivered::Unreachable);
        };
        let bounce = |why| self.core.dead_letter((entry.actor_name)(), (entry.message_name)(), why);
        let Some(id) = target.filter(|id| !id.address().is_stale()) else {
            return bounce(Undelivered::Stopped);
        };
        self.last_target.store(u64::from(id.address().stage()), Ordering::Relaxed);
        if (entry.tell)(id, Lane::Normal, bytes, codec).is_err() {
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
        let (link, border) = (self.this(), self.border());
        let answer = Box::new(move |answer: Result<playhouse_actor::away::Write<'_>, AskError>| match answer {
            Err(error) => link.fail(ask, &error),
            Ok(write) => {
                let sent = link.send(Lane::Normal, |out| {
                    Head::Answer { ask, codec: codec.into() }.write(out)?;
                    at_border(&border, || write(codec, out))
                });
                if let Err(error) = sent {
                    link.fail(ask, &AskError::Unreachable(error.to_string()));
                }
            }
        });
        if let Err((error, _)) = (entry.ask)(id, bytes, codec, answer) {
            self.fail(ask, &AskError::Unreachable(error.to_string()));
        }
    }

    fn fail(&self, ask: u64, error: &AskError) {
        let _ = self.send(Lane::Normal, |out| {
            Head::Failed { ask }.write(out)?;
            Codec::Positional.write(error, out)
        });
    }

    // -- the end ------------------------------------------------------------------------------------------------------

    /// The session has ended: everybody who waits is told, and what was not acknowledged becomes dead letters.
    pub(crate) fn lose(&self) {
        if self.lost.swap(true, Ordering::AcqRel) {
            return;
        }
        let (outbound, asks, watches, connection) = {
            let mut out = lock(&self.out);
            out.watching.clear();
            (
                std::mem::replace(&mut out.outbound, Outbound::new(FRAME_BYTES_MAX)),
                std::mem::take(&mut out.asks),
                std::mem::take(&mut out.watches),
                out.connection.take(),
            )
        };
        if let Some(connection) = connection {
            connection.broken.store(true, Ordering::Relaxed);
            let _ = connection.stream.shutdown(std::net::Shutdown::Both);
        }
        outbound.drain(|_, frame| {
            if let Ok((Head::Tell { kind, .. }, _)) = Head::read(frame) {
                let (actor, message) = self.table.names(kind);
                self.core.dead_letter(actor, message, Undelivered::Unreachable);
            }
        });
        for answer in asks.into_values() {
            answer(Err(AskError::TheaterLost { may_have_run: true }));
        }
        for notify in watches.into_values() {
            notify(StopReason::TheaterLost);
        }
        self.gate.open(&self.core, self.stage);
        let places = std::mem::take(&mut *lock(&self.places));
        for id in places.handles.into_keys() {
            if let Some(controls) = self.registry.controls(id) {
                (controls.forget)(id);
            }
        }
    }
}

impl Border for Link {
    fn name_of(&self, id: ActorId) -> Result<RefName, WireError> {
        if let Some(handle) = lock(&self.places).handles.get(&id) {
            return Ok(RefName::Yours(*handle));
        }
        if let Some(handle) = lock(&self.named).get(&id) {
            return Ok(RefName::Known(*handle));
        }
        let address = id.address();
        if address.system() != self.core.id() {
            return Err(WireError::new(format!(
                "{id} belongs to another system of this process, not to this theater's"
            )));
        }
        let (slot, life) = (address.slot(), address.life());
        Ok(RefName::Mine { slot, life, seal: self.seal.of(slot, life) })
    }

    fn meet(&self, name: RefName, place: Place<'_>) -> Result<ActorId, WireError> {
        match name {
            RefName::Mine { slot, life, .. } => {
                if let Some(id) = lock(&self.places).met.get(&(slot, life)) {
                    return Ok(*id);
                }
                let write = |handle, out: &mut Vec<u8>| Head::Name { handle, name }.write(out);
                self.name_next(Some((slot, life)), write, |core, stage, carrier| {
                    let id = place(core, stage, carrier);
                    (id, id)
                })
            }
            RefName::Known(handle) => {
                let known = lock(&self.places).by_handle.get(handle as usize).copied();
                known.ok_or_else(|| WireError::new("a reference by a number that was never given"))
            }
            RefName::Yours(handle) => self
                .target(handle)
                .ok_or_else(|| WireError::new("a reference to an actor that was never here, or has ended")),
        }
    }
}
