//! The source of events besides messages. `scheduler/poll.rs` polls it.

use std::time::Duration;

/// A source of events besides messages, and a writer of the data that workers leave for it: see
/// `SystemCore::set_reactor`.
pub trait Reactor: Send + Sync + 'static {
    /// Waits for events, for [`Reactor::wake`], or until `timeout` has passed; zero: only looks. Returns whether there
    /// are events to be dispatched. Not called by two threads at one time.
    fn wait(&self, timeout: Option<Duration>) -> bool;
    /// Handles the events that `wait` found: may send messages and must not block. Called by the same thread.
    fn dispatch(&self);
    /// Ends a `wait` that is under way, or the next one.
    fn wake(&self);
    /// Writes out the data that this thread has left to be written: called after each gulp in which
    /// [`flush_soon`](crate::flush_soon) was called.
    fn flush(&self);
}
