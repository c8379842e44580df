//! The engine under the single-threaded baselines: two flat buffers of envelopes and one indirect call per message.
//!
//! This is the cost of a message without everything that an actor runtime adds: no mailbox, no scheduling, no liveness check, no
//! second thread. Messages are written to one buffer while the other is processed; then the two swap. Each message costs one
//! envelope written, one read, and one call through a function pointer.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// A handler of the baseline: it gets the engine (state and outgoing buffer), the number of the receiving actor and the
/// message's payload.
pub(crate) type Handler<S> = fn(&mut Flat<S>, to: u32, payload: u64);

/// A message in flight: its function, its receiver, and its argument.
struct Envelope<S> {
    run: Handler<S>,
    to: u32,
    payload: u64,
}

impl<S> Clone for Envelope<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Envelope<S> {}

/// The state of all actors of one baseline, and the two buffers of its messages.
pub(crate) struct Flat<S> {
    /// The actors.
    pub(crate) state: S,
    buffers: [Vec<Envelope<S>>; 2],
    /// The buffer that messages are sent to; the other one is processed. (Swapping the vectors instead of this index costs a
    /// third more on a ping-pong: the wide loads of the swap wait for the narrow stores of the push.)
    filling: usize,
}

impl<S> Flat<S> {
    /// Creates an engine without messages.
    pub(crate) fn new(state: S) -> Self {
        Self { state, buffers: [Vec::new(), Vec::new()], filling: 0 }
    }

    /// Sends a message: `run` will be called for actor `to` with `payload`.
    #[inline(always)]
    pub(crate) fn send(&mut self, run: Handler<S>, to: u32, payload: u64) {
        self.buffers[self.filling & 1].push(Envelope { run, to, payload });
    }

    /// Sends the messages of `start`, runs until no message is left, and returns the time.
    pub(crate) fn time(&mut self, start: impl FnOnce(&mut Self)) -> Duration {
        let started = Instant::now();
        start(self);
        self.run();
        started.elapsed()
    }

    /// Runs until no message is left.
    pub(crate) fn run(&mut self) {
        loop {
            let running = self.filling & 1;
            let len = self.buffers[running].len();
            if len == 0 {
                return;
            }
            // `black_box`: the optimiser must not learn which handlers the buffers can hold.
            self.filling = black_box(running ^ 1);
            for i in 0..len {
                let envelope = self.buffers[running][i];
                (envelope.run)(self, envelope.to, envelope.payload);
            }
            self.buffers[running].clear();
        }
    }
}
