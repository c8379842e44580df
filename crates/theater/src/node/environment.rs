//! The environment of a simulated theater, in place of threads and sockets. `sim` implements it.

use std::net::SocketAddr;
use std::time::Duration;

use crate::error::TheaterError;
use crate::link::Stream;
use crate::link::frame::{Hello, Reply};

/// Takes the result of a call: the reply, and the connection.
pub(crate) type OnReply = Box<dyn FnOnce(Result<(Reply, Stream), TheaterError>) + Send>;

/// The threads and calls of a simulated theater.
pub(crate) trait Environment: Send + Sync {
    /// Runs `job` some time after `delay`, unless the theater has ended.
    fn later(&self, delay: Duration, job: Box<dyn FnOnce() + Send>);

    /// Sends `hello` to the listener at `address`.
    fn call(&self, address: SocketAddr, hello: Hello, on_reply: OnReply);
}
