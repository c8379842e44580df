//! The network under test.

use std::fmt;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;

use mio::Interest;
use playhouse::transport::{Listener, Transport, Wire};

use super::watch::Watch;
use super::{Outcome, WAIT_MAX};

/// The two ends of a connection.
type Pair = (Box<dyn Wire>, Box<dyn Wire>);

/// A network under test: makes its transports.
///
/// # Examples
///
/// ```
/// use playhouse_testkit::conformance::Rule;
/// use playhouse_testkit::conformance::transport::{RULES, Subject};
///
/// let rules: &[Rule<Subject>] = &RULES;
/// assert!(rules.iter().any(|rule| rule.name == "in use"));
/// ```
#[derive(Clone)]
pub struct Subject {
    pub(super) make: Arc<dyn Fn() -> Arc<dyn Transport> + Send + Sync>,
    pub(super) address: String,
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Subject({})", self.address)
    }
}

impl Subject {
    pub(super) fn new<T: Transport>(address: &str, make: impl Fn() -> T + Send + Sync + 'static) -> Subject {
        Subject { make: Arc::new(move || Arc::new(make())), address: address.to_owned() }
    }

    pub(super) fn transport(&self) -> Arc<dyn Transport> {
        (self.make)()
    }

    pub(super) fn listen(&self) -> Result<(WatchedListener, SocketAddr), String> {
        let address: SocketAddr =
            self.address.parse().map_err(|error| format!("{:?} is no address: {error}", self.address))?;
        let mut listener = describe("listening", self.transport().listen(address))?;
        let address = describe("the listener's address", listener.address())?;
        let watch = Watch::new(Interest::READABLE, |registration| listener.register(registration))?;
        Ok((WatchedListener { listener, watch }, address))
    }

    pub(super) fn call(&self, address: SocketAddr) -> Result<Box<dyn Wire>, String> {
        with_time_limit(describe("calling", self.transport().connect(address, WAIT_MAX))?)
    }

    /// Connects to this listener, and accepts the connection. Returns both ends.
    pub(super) fn meet(&self, listener: &mut WatchedListener, address: SocketAddr) -> Result<Pair, String> {
        std::thread::scope(|scope| {
            let calls = scope.spawn(|| self.call(address));
            let called = listener.accept().and_then(with_time_limit);
            Ok((calls.join().map_err(|_| "`connect` panics")??, called?))
        })
    }

    /// Returns both ends of a new connection: the connecting one and the accepted one.
    pub(super) fn pair(&self) -> Result<Pair, String> {
        let (mut listener, address) = self.listen()?;
        self.meet(&mut listener, address)
    }
}

/// A listener with its readiness events.
pub(super) struct WatchedListener {
    pub(super) listener: Box<dyn Listener>,
    pub(super) watch: Watch,
}

impl WatchedListener {
    /// Waits for the next connection, as theaters do.
    pub(super) fn accept(&mut self) -> Result<Box<dyn Wire>, String> {
        loop {
            match self.listener.accept() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait()?,
                heard => return describe("accepting a connection", heard),
            }
        }
    }

    pub(super) fn wait(&mut self) -> Outcome {
        self.watch.until("a connection", mio::event::Event::is_readable)
    }
}

pub(super) fn with_time_limit(wire: Box<dyn Wire>) -> Result<Box<dyn Wire>, String> {
    describe("setting a limit", wire.set_limit(WAIT_MAX))?;
    Ok(wire)
}

pub(super) fn describe<T>(what: &str, result: std::io::Result<T>) -> Result<T, String> {
    result.map_err(|error| format!("{what}: {error} ({:?})", error.kind()))
}

pub(super) fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(otherwise()) }
}
