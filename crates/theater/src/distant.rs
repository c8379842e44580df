//! Places of actors of theaters that there is no link with yet: the first message has the theater called; or of actors that are
//! sought, since the theater that they were in is lost.
//!
//! What is sent meanwhile is written at once, by names (which every theater reads), and kept here in order.

use std::any::{Any, TypeId};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use playhouse_actor::away::{Border, Carrier, Decision, Marker, Parcel, Place, RefName, TakeAnswer, Write, at_border};
use playhouse_actor::wire::{Codec, WireError, Written};
use playhouse_actor::{ActorId, AskError, StopReason, Watcher};
use playhouse_executor::{Lane, SystemCore, Undelivered};

use crate::directory::{Directory, Far};
use crate::error::TheaterError;
use crate::house::House;
use crate::link::Link;
use crate::proxy::Proxy;

/// What is kept until the theater is reached; what is more becomes dead letters.
const KEPT_BYTES_MAX: usize = 1024 * 1024;
/// A theater that is out of reach is called so often.
const CALL_EVERY: Duration = Duration::from_millis(100);

/// The place of an actor of a theater that may not have been called yet, or is not known.
pub(crate) struct Distant {
    this: Weak<Distant>,
    directory: Arc<Directory>,
    /// Where it is; nothing while it is sought.
    far: OnceLock<Far>,
    id: OnceLock<ActorId>,
    state: Mutex<State>,
}

enum State {
    Waiting { kept: Vec<Kept>, bytes: usize, called: bool },
    There(Arc<Proxy>),
    Lost,
}

/// A parcel that owns what is in it.
enum Kept {
    Tell { actor: TypeId, message: TypeId, name: &'static str, lane: Lane, bytes: Vec<u8> },
    Request { actor: TypeId, message: TypeId, name: &'static str, bytes: Vec<u8>, answer: TakeAnswer },
    Stop { drain: bool },
    Kill,
    Verdict { actor: TypeId, name: &'static str, crash: u64, verdict: Decision<Vec<u8>> },
    Watch { watcher: Watcher, notify: Box<dyn FnOnce(StopReason) + Send> },
    Unwatch { watcher: Watcher },
    Marker(Marker),
}

/// The border of this theater to all others.
struct Everywhere(Arc<Directory>);

impl Border for Everywhere {
    fn name_of(&self, id: ActorId) -> Result<RefName, WireError> {
        self.0.name_for_others(id)
    }

    fn meet(&self, _: RefName, _: Place<'_>) -> Result<ActorId, WireError> {
        Err(WireError::new("nothing is read here"))
    }
}

impl Distant {
    /// Makes the place of an actor.
    pub(crate) fn settle(directory: &Arc<Directory>, born: Far, far: Far, place: Place<'_>) -> ActorId {
        let distant = Distant::new(directory, far);
        let core = &directory.core;
        let id = place(core, core.link_stage(far.theater as usize), Arc::clone(&distant) as Arc<dyn Carrier>);
        distant.is_at(id);
        directory.note(id, born);
        id
    }

    /// The way to an actor.
    pub(crate) fn new(directory: &Arc<Directory>, far: Far) -> Arc<Distant> {
        Distant::with(directory, OnceLock::from(far), false)
    }

    /// The way to an actor that is sought: it waits for [`Distant::found`] or [`Distant::give_up`].
    pub(crate) fn sought(directory: &Arc<Directory>) -> Arc<Distant> {
        Distant::with(directory, OnceLock::new(), true)
    }

    fn with(directory: &Arc<Directory>, far: OnceLock<Far>, called: bool) -> Arc<Distant> {
        let waiting = State::Waiting { kept: Vec::new(), bytes: 0, called };
        Arc::new_cyclic(|this| Distant {
            this: this.clone(),
            directory: Arc::clone(directory),
            far,
            id: OnceLock::new(),
            state: Mutex::new(waiting),
        })
    }

    /// The actor that was sought is there.
    pub(crate) fn found(self: &Arc<Self>, far: Far) {
        // Once, by who has sought it.
        let _ = self.far.set(far);
        match self.directory.link(far.theater) {
            Some(link) => self.reached(Some(link)),
            None => self.call_in_background(),
        }
    }

    /// It is nowhere.
    pub(crate) fn give_up(&self) {
        self.reached(None);
    }

    fn call_in_background(self: &Arc<Self>) {
        let this = Arc::clone(self);
        let house = self.directory.house();
        let call = |house: Arc<House>| {
            let since = house.now();
            house.in_background("call", move || this.call(since)).is_err()
        };
        if house.is_none_or(call) {
            // No thread can be had: as if nobody had answered.
            self.give_up();
        }
    }

    /// It is the way from the place `id`.
    pub(crate) fn is_at(&self, id: ActorId) {
        // Once, by who has made it.
        let _ = self.id.set(id);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lost() -> WireError {
        WireError::new("the theater is lost, or cannot be reached")
    }

    /// Calls the theater, again and again for as long as one that there was a link with would be, and sends on what was kept.
    fn call(self: Arc<Self>, since: Duration) {
        let (Some(house), Some(address)) = (self.directory.house(), self.far.get().and_then(|far| far.address)) else {
            return self.reached(None);
        };
        let again = Arc::clone(&house);
        let called = move |link: Result<Arc<Link>, TheaterError>| match link {
            Err(TheaterError::Io { .. }) if again.now() - since < again.settings.lost_after => {
                again.later(CALL_EVERY, move || self.call(since));
            }
            link => self.reached(link.ok()),
        };
        house.reach(address, Box::new(called));
    }

    fn reached(&self, link: Option<Arc<Link>>) {
        let proxy = link.and_then(|link| self.proxy(&link));
        let mut state = self.state();
        let next = match &proxy {
            Some(proxy) => State::There(Arc::clone(proxy)),
            None => State::Lost,
        };
        // Under the lock: what comes now stands behind what was kept.
        let State::Waiting { kept, .. } = std::mem::replace(&mut *state, next) else { return };
        for parcel in kept {
            match &proxy {
                // On an error who waits for an answer was told; a message is lost with its theater.
                Some(proxy) => drop(parcel.send(proxy)),
                None => parcel.fail(&self.directory.core),
            }
        }
    }

    fn proxy(&self, link: &Arc<Link>) -> Option<Arc<Proxy>> {
        // Another one: it was started anew, and the actor is no more.
        let far = self.far.get().filter(|far| link.incarnation == far.theater)?;
        link.adopt(*self.id.get()?, far).ok().map(Arc::new)
    }

    fn keep(&self, parcel: Parcel<'_>) -> Result<(Kept, usize), WireError> {
        let border: Arc<dyn Border> = Arc::new(Everywhere(Arc::clone(&self.directory)));
        let written = |write: playhouse_actor::away::Write<'_>| {
            let mut bytes = Vec::new();
            at_border(&border, || write(Codec::Named, &mut bytes)).map(|()| bytes)
        };
        let kept = match parcel {
            Parcel::Tell { actor, message, name, lane, write } => {
                Kept::Tell { actor, message, name, lane, bytes: written(write)? }
            }
            Parcel::Request { actor, message, name, write, answer } => match written(write) {
                Ok(bytes) => Kept::Request { actor, message, name, bytes, answer },
                Err(error) => {
                    answer(Err(AskError::Unreachable(error.to_string())));
                    return Err(error);
                }
            },
            Parcel::Stop { drain } => Kept::Stop { drain },
            Parcel::Kill => Kept::Kill,
            Parcel::Verdict { actor, name, crash, verdict } => {
                let verdict = match verdict {
                    Decision::Restart(write) => Decision::Restart(written(write)?),
                    Decision::Resume => Decision::Resume,
                    Decision::GiveUp => Decision::GiveUp,
                    Decision::Dismiss => Decision::Dismiss,
                };
                Kept::Verdict { actor, name, crash, verdict }
            }
            Parcel::Watch { watcher, notify } => Kept::Watch { watcher, notify },
            Parcel::Unwatch { watcher } => Kept::Unwatch { watcher },
            Parcel::Marker(marker) => Kept::Marker(marker),
        };
        let bytes = kept.bytes();
        Ok((kept, bytes))
    }
}

impl Kept {
    fn bytes(&self) -> usize {
        size_of::<Kept>()
            + match self {
                Kept::Tell { bytes, .. }
                | Kept::Request { bytes, .. }
                | Kept::Verdict { verdict: Decision::Restart(bytes), .. } => bytes.len(),
                _ => 0,
            }
    }

    fn send(self, to: &Proxy) -> Written {
        let ready = |bytes: Vec<u8>| {
            move |_: Codec, out: &mut Vec<u8>| -> Written {
                out.extend_from_slice(&bytes);
                Ok(())
            }
        };
        match self {
            Kept::Tell { actor, message, name, lane, bytes } => {
                to.carry_named(Parcel::Tell { actor, message, name, lane, write: &ready(bytes) })
            }
            Kept::Request { actor, message, name, bytes, answer } => {
                to.carry_named(Parcel::Request { actor, message, name, write: &ready(bytes), answer })
            }
            Kept::Stop { drain } => to.carry(Parcel::Stop { drain }),
            Kept::Kill => to.carry(Parcel::Kill),
            Kept::Verdict { actor, name, crash, verdict } => {
                let write = verdict.map(ready);
                let verdict = match &write {
                    Decision::Restart(write) => Decision::Restart(write as Write<'_>),
                    Decision::Resume => Decision::Resume,
                    Decision::GiveUp => Decision::GiveUp,
                    Decision::Dismiss => Decision::Dismiss,
                };
                to.carry_named(Parcel::Verdict { actor, name, crash, verdict })
            }
            Kept::Watch { watcher, notify } => to.carry(Parcel::Watch { watcher, notify }),
            Kept::Unwatch { watcher } => to.carry(Parcel::Unwatch { watcher }),
            Kept::Marker(marker) => to.carry(Parcel::Marker(marker)),
        }
    }

    /// It was kept, and does not arrive.
    fn fail(self, core: &SystemCore) {
        if let Kept::Tell { name, .. } = self {
            return core.dead_letter("an actor of a theater that is lost", name, Undelivered::Unreachable);
        }
        self.refuse();
    }

    /// It is not kept; of a message, its sender's side tells.
    fn refuse(self) {
        match self {
            Kept::Request { answer, .. } | Kept::Marker(Marker { answer, .. }) => {
                answer(Err(AskError::TheaterLost { may_have_run: false }));
            }
            Kept::Watch { notify, .. } => notify(StopReason::TheaterLost),
            Kept::Tell { .. } | Kept::Stop { .. } | Kept::Kill | Kept::Verdict { .. } | Kept::Unwatch { .. } => {}
        }
    }
}

impl Carrier for Distant {
    fn carry(&self, parcel: Parcel<'_>) -> Written {
        let there = match &*self.state() {
            State::There(proxy) => Some(Arc::clone(proxy)),
            State::Waiting { .. } | State::Lost => None,
        };
        if let Some(proxy) = there {
            return proxy.carry(parcel);
        }
        // The messages of a place come one after the other, so none passes this one.
        let (parcel, size) = self.keep(parcel)?;
        let mut state = self.state();
        match &mut *state {
            State::There(proxy) => {
                let proxy = Arc::clone(proxy);
                drop(state);
                parcel.send(&proxy)
            }
            State::Lost => {
                drop(state);
                parcel.refuse();
                Err(Self::lost())
            }
            State::Waiting { bytes, .. } if *bytes + size > KEPT_BYTES_MAX => {
                drop(state);
                parcel.refuse();
                Err(WireError::new("too much was sent before the theater was reached"))
            }
            State::Waiting { kept, bytes, called } => {
                kept.push(parcel);
                *bytes += size;
                let first = !std::mem::replace(called, true);
                drop(state);
                if first {
                    self.this.upgrade().expect("it is used").call_in_background();
                }
                Ok(())
            }
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
