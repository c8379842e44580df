//! Gates: mail that stages forward waits behind them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::load::bounds::OVERLOADED_BYTES;
use crate::sync::locks::lock;
use crate::worker::core::Reason;
use crate::worker::exchange::RECORD_BYTES;
use crate::worker::system_core::SystemCore;

/// A gate for the mail that some stages forward. Shared by them and by the layer that knows when they may go on.
#[derive(Debug, Default)]
pub struct Gate {
    closed: AtomicBool,
    /// With more bytes of records waiting behind the gate a stage is full.
    bytes_max: AtomicUsize,
    /// Stages that were parked behind the gate.
    waiting: Mutex<Vec<u16>>,
}

impl Gate {
    /// Closes the gate: mail has to wait. Senders are slowed when more than about `messages_max` wait in a stage: in
    /// envelopes of 32 bytes, of which 2 MiB may wait at most.
    pub fn close(&self, messages_max: usize) {
        let bytes_max = messages_max.saturating_mul(RECORD_BYTES as usize).min(OVERLOADED_BYTES);
        // Relaxed: a sender that sees the gate closed with an older bound slows a little sooner or later.
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
        self.closed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// Returns whether the gate is closed.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Notes that `stage` waits behind the gate. Returns false if it is open.
    pub(crate) fn wait(&self, stage: u16) -> bool {
        // Under the lock: either the gate is seen open, or the thread that opens it finds the stage.
        let mut waiting = lock(&self.waiting);
        let closed = self.is_closed();
        if closed {
            waiting.push(stage);
        }
        closed
    }

    /// Opens the gate: the stages behind it go on.
    pub fn open(&self, system: &SystemCore) {
        if self.closed.swap(false, Ordering::SeqCst) {
            for stage in std::mem::take(&mut *lock(&self.waiting)) {
                system.return_stage(stage, Reason::Paused);
            }
        }
    }
}
