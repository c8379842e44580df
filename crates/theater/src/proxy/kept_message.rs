//! A message that waits for its route.

use std::any::TypeId;
use std::sync::Arc;

use playhouse_actor::away::{About, Decision, ForwardedMessage, Forwarder, Marker, Recall, TakeAnswer, Write};
use playhouse_actor::wire::{Codec, Written};
use playhouse_actor::{AskError, StopReason, Tell, Watcher};
use playhouse_executor::{Lane, SystemCore, Undelivered};

use crate::link::proxy::Proxy;

/// A forwarded message that owns its contents.
pub(super) enum Kept {
    Tell {
        actor: TypeId,
        message: TypeId,
        name: &'static str,
        lane: Lane,
        bytes: Vec<u8>,
    },
    Request {
        actor: TypeId,
        message: TypeId,
        name: &'static str,
        bytes: Vec<u8>,
        recall: Option<Arc<Recall>>,
        answer: TakeAnswer,
    },
    Stop {
        drain: bool,
    },
    Kill,
    Verdict {
        actor: TypeId,
        name: &'static str,
        about: About,
        verdict: Decision<Vec<u8>>,
    },
    Watch {
        watcher: Watcher,
        notify: Tell,
    },
    Unwatch {
        watcher: Watcher,
    },
    Marker(Marker),
}

impl Kept {
    pub(super) fn bytes(&self) -> usize {
        size_of::<Kept>()
            + match self {
                Kept::Tell { bytes, .. }
                | Kept::Request { bytes, .. }
                | Kept::Verdict { verdict: Decision::Restart(bytes), .. } => bytes.len(),
                _ => 0,
            }
    }

    pub(super) fn send(self, to: &Proxy) -> Written {
        let ready = |bytes: Vec<u8>| {
            move |_: Codec, out: &mut Vec<u8>| -> Written {
                out.extend_from_slice(&bytes);
                Ok(())
            }
        };
        match self {
            Kept::Tell { actor, message, name, lane, bytes } => {
                to.carry_named(ForwardedMessage::Tell { actor, message, name, lane, write: &ready(bytes) })
            }
            Kept::Request { actor, message, name, bytes, recall, answer } => {
                to.carry_named(ForwardedMessage::Request { actor, message, name, write: &ready(bytes), recall, answer })
            }
            Kept::Stop { drain } => to.carry(ForwardedMessage::Stop { drain }),
            Kept::Kill => to.carry(ForwardedMessage::Kill),
            Kept::Verdict { actor, name, about, verdict } => {
                let write = verdict.map(ready);
                let verdict = match &write {
                    Decision::Restart(write) => Decision::Restart(write as Write<'_>),
                    Decision::Resume => Decision::Resume,
                    Decision::GiveUp => Decision::GiveUp,
                    Decision::Dismiss => Decision::Dismiss,
                };
                to.carry_named(ForwardedMessage::Verdict { actor, name, about, verdict })
            }
            Kept::Watch { watcher, notify } => to.carry(ForwardedMessage::Watch { watcher, notify }),
            Kept::Unwatch { watcher } => to.carry(ForwardedMessage::Unwatch { watcher }),
            Kept::Marker(marker) => to.carry(ForwardedMessage::Marker(marker)),
        }
    }

    /// Fails a kept message, which does not arrive.
    pub(super) fn fail(self, core: &SystemCore) {
        if let Kept::Tell { name, .. } = self {
            return core.dead_letter("an actor of a theater that is lost", name, Undelivered::Unreachable);
        }
        self.refuse();
    }

    /// Refuses a message that is not kept; the sender's side tells of it.
    pub(super) fn refuse(self) {
        match self {
            Kept::Request { answer, .. } | Kept::Marker(Marker { answer, .. }) => {
                answer(Err(AskError::TheaterLost { may_have_run: false }));
            }
            Kept::Watch { notify, .. } => notify(StopReason::TheaterLost.into()),
            Kept::Tell { .. } | Kept::Stop { .. } | Kept::Kill | Kept::Verdict { .. } | Kept::Unwatch { .. } => {}
        }
    }
}
