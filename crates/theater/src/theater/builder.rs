//! The builder of a theater: its settings, the addresses in them, and its start.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use mio::Waker;
use playhouse_actor::{BuildError, System, SystemBuilder};

use crate::error::TheaterError;
use crate::link::MigrationSlot;
use crate::link::WINDOW_BYTES;
use crate::link::poller::Poller;
use crate::link::registry::Registry;
use crate::migration::at_link::MigrationsAtLink;
use crate::migration::drain::begin_drains;
use crate::migration::host::TheaterMigrationHost;
use crate::naming::Identity;
use crate::node::acceptor::Acceptor;
use crate::node::cookie::Cookie;
use crate::node::core::{AsNode, OnRejectedPeer, Settings, TheaterCore};
use crate::node::environment::Environment;
use crate::node::handshake::CLUSTER_BYTES_MAX;
use crate::node::identity::Credentials;
use crate::theater::Theater;
use crate::theater::node::as_node;
use crate::transport::tls::{Secrecy, Tls};
use crate::transport::{Listener, Tcp, Transport};

/// Number of links that have a stage of their own.
pub(crate) const LINKS: usize = 64;

/// Called with a theater that starts.
pub(crate) type OnStarted = fn(&Arc<TheaterCore>) -> Result<(), TheaterError>;

/// The settings of a [`Theater`] before its start.
///
/// # Examples
///
/// ```
/// # use playhouse_theater::*;
/// # use std::time::Duration;
/// let theater = Theater::builder()
///     .listen("127.0.0.1:0")                  // any free port
///     .cluster("shop")                        // other clusters are refused
///     .lost_after(Duration::from_secs(10))    // default: 30 seconds
///     .start()?;
/// # theater.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct TheaterBuilder {
    pub(crate) system: SystemBuilder,
    pub(crate) listen: Option<String>,
    pub(crate) cookie: Option<Cookie>,
    pub(crate) advertise: Option<String>,
    pub(crate) settings: Settings,
    pub(crate) on_started: Option<OnStarted>,
}

impl TheaterBuilder {
    pub(crate) fn new() -> TheaterBuilder {
        TheaterBuilder {
            system: System::builder(),
            listen: None,
            cookie: None,
            advertise: None,
            on_started: None,
            settings: Settings {
                cluster: String::new(),
                secrecy: Secrecy::default(),
                transport: Arc::new(Tcp),
                lost_after: Duration::from_secs(30),
                window: WINDOW_BYTES,
                on_rejected_peer: None,
            },
        }
    }

    /// Listens at `host:port`; port 0 is any free port. By default, the theater listens nowhere and can only call others.
    ///
    /// References and greetings carry this address for other theaters to call. If they must call another address, it is
    /// [advertised](Self::advertise). An unspecified address such as `0.0.0.0` always needs that, because it names each machine
    /// to itself.
    pub fn listen(mut self, address: impl Into<String>) -> Self {
        self.listen = Some(address.into());
        self
    }

    /// Sets the address that other theaters call, `host:port`, if it differs from the one that this theater
    /// [listens](Self::listen) at. Port 0 stands for the port of the listener. References and greetings carry this address. A
    /// host name is resolved once, at the start. Default: the address of the listener.
    pub fn advertise(mut self, address: impl Into<String>) -> Self {
        self.advertise = Some(address.into());
        self
    }

    /// Sets the cluster's name: only theaters with the same name talk to each other. At most 512 bytes. Default: empty.
    pub fn cluster(mut self, name: impl Into<String>) -> Self {
        self.settings.cluster = name.into();
        self
    }

    /// Sets the secret by which theaters of this cluster recognise each other. All of them need the same cookie, or none has one.
    ///
    /// By default it is the cookie in the file that the environment variable [`COOKIE_FILE`](crate::COOKIE_FILE) names. If the
    /// variable is not set and links do not leave the machine, it is the cookie of the user. The user's first theater makes the
    /// file `.playhouse.cookie` in the home directory (or, if there is none, in `XDG_RUNTIME_DIR`); theaters of other users are
    /// rejected. With [certificates](Self::tls) or [`plaintext`](Self::plaintext) the default is no cookie. A
    /// [`Simulation`](crate::Simulation) needs none.
    pub fn cookie(mut self, cookie: Cookie) -> Self {
        self.cookie = Some(cookie);
        self
    }

    /// Encrypts all links, and allows other networks than the loopback. Both ends show a certificate of the cluster's CA. This
    /// theater refuses a peer without one before the peer sends a request, and calls no theater without one.
    pub fn tls(mut self, certificates: Tls) -> Self {
        self.settings.secrecy = Secrecy::Tls(certificates);
        self
    }

    /// Sets the transport of all links. Linked theaters use the same one. Default: [`Tcp`]. A [`Simulation`](crate::Simulation)
    /// has its own transport and ignores this setting.
    pub fn transport(mut self, transport: impl Transport) -> Self {
        self.settings.transport = Arc::new(transport);
        self
    }

    /// Allows links over other networks than the loopback. They are **not encrypted, and any program that reaches this theater
    /// may talk to it**: use it only in networks that are yours alone. With [certificates](Self::tls) this setting changes
    /// nothing.
    pub fn plaintext(mut self) -> Self {
        if let Secrecy::Loopback = self.settings.secrecy {
            self.settings.secrecy = Secrecy::Plaintext;
        }
        self
    }

    /// Calls `hook` with the reason when a caller was rejected: it is no theater, belongs to another cluster, or shows no valid
    /// cookie or certificate. Also calls it when a link was lost because its peer broke the protocol
    /// ([`TheaterError::Protocol`]). The hook runs on a thread of its own and may block. While 32 calls of the hook run, further
    /// rejections are not reported. Default: no hook.
    pub fn on_rejected_peer(mut self, hook: impl Fn(&TheaterError) + Send + Sync + 'static) -> Self {
        self.settings.on_rejected_peer = Some(OnRejectedPeer(Box::new(hook)));
        self
    }

    /// Sets the time after which an unreachable theater is lost: messages to it become dead letters, and asks fail. A theater is
    /// lost as well if its connection has bytes to write and takes none for this time, at least 6 s. Default: 30 s.
    ///
    /// A theater that survives may be reached again. After that, references to its immobile actors work again; watches that were
    /// notified of the loss are not renewed.
    ///
    /// The time begins when the connection breaks. Silence breaks it after a third of this time, but 2 s at least and 5 s at
    /// most. Only time in which this process runs is counted. Each step of a call that restores the connection has a sixth of
    /// this time, but 0.25 s at least and 5 s at most.
    pub fn lost_after(mut self, time: Duration) -> Self {
        self.settings.lost_after = time;
        self
    }

    /// Sets the window of a link in bytes. While more bytes to another theater are written and not acknowledged, its senders are
    /// slowed as for an overloaded actor. A long and fast route needs a larger window: its bytes per second, times the seconds of
    /// a round trip. Default: 4 MiB for each linked theater. Before a theater is reached, a sender is slowed from a quarter of
    /// the window on.
    ///
    /// With a window of few messages, each sender often waits until the other end has acknowledged its messages.
    pub fn window(mut self, bytes: usize) -> Self {
        self.settings.window = bytes;
        self
    }

    /// Sets the actor system of the theater. Default: [`System::builder`].
    pub fn system(mut self, system: SystemBuilder) -> Self {
        self.system = system;
        self
    }

    /// Starts the theater with its system.
    ///
    /// # Errors
    /// - The system cannot be started, or is a simulated one: see [`Simulation`](crate::Simulation).
    /// - The theater cannot listen at the address, or other theaters cannot call it ([`TheaterError::Advertised`]).
    /// - The [cookie](Self::cookie) cannot be read or made.
    /// - Two actors or messages of this program have the same name on the wire.
    pub fn start(self) -> Result<Theater, TheaterError> {
        if self.system.is_simulated() {
            let why = "a simulated system belongs to a theater in a `Simulation`, which starts it";
            return Err(TheaterError::System(why.to_owned()));
        }
        if self.settings.cluster.len() > CLUSTER_BYTES_MAX {
            let bytes = self.settings.cluster.len();
            let why = format!("the cluster's name has {bytes} bytes, and {CLUSTER_BYTES_MAX} are allowed");
            return Err(TheaterError::System(why));
        }
        let advertised = self.advertised()?;
        let cookie = match self.cookie {
            Some(cookie) => Some(cookie),
            None => match Cookie::of_environment()? {
                None if self.settings.secrecy.is_local() => Some(Cookie::of_user()?),
                cookie => cookie,
            },
        };
        let listener = self.listen.as_deref().map(|address| listen(address, &self.settings)).transpose()?;
        let io_error = |error| TheaterError::Io { address: "this theater".to_owned(), error };
        let unknown = |error: io::Error| TheaterError::Io {
            address: self.listen.clone().unwrap_or_default(),
            error: io::Error::new(
                error.kind(),
                format!("the transport listens, and does not return its address: {error}"),
            ),
        };
        let bound = listener.as_ref().map(|listener| listener.address()).transpose().map_err(unknown)?;
        let listens = (bound, bound.map(|bound| called_at(advertised, bound)));
        let (acceptor, shutdown_waker) = listener.map(Acceptor::new).transpose().map_err(io_error)?.unzip();
        let registry = Registry::new()?;
        let poller = Arc::new(Poller::new(begin_drains).map_err(io_error)?);
        let not_started = |error: BuildError| TheaterError::System(error.to_string());
        let (system, on_start) = self.system.links(LINKS).begin().map_err(not_started)?;
        system.core().set_reactor(Arc::clone(&poller) as Arc<dyn playhouse_executor::Reactor>);
        let credentials = Credentials::new(cookie);
        let inside = (Identity::new(credentials.incarnation), Some(credentials), None);
        let theater_core = compose(registry, system, listens, self.settings, (poller, shutdown_waker), inside);
        let unfinished = Unfinished(Some(Arc::clone(&theater_core)));
        on_start.run(&theater_core.system).map_err(not_started)?;
        if let Some(on_started) = self.on_started {
            on_started(&theater_core)?;
        }
        let thread = |name: &str| std::thread::Builder::new().name(format!("playhouse-{name}"));
        let keeper = Arc::clone(&theater_core);
        thread("keeper").spawn(move || keeper.keep()).map_err(io_error)?;
        if let Some(acceptor) = acceptor {
            let acceptor_core = Arc::clone(&theater_core);
            thread("acceptor").spawn(move || acceptor_core.accept_callers(acceptor)).map_err(io_error)?;
        }
        unfinished.succeed();
        Ok(Theater { theater_core })
    }

    /// Returns the advertised address after a check that other theaters can call it; its port may be 0.
    pub(crate) fn advertised(&self) -> Result<Option<SocketAddr>, TheaterError> {
        let wrong =
            |address: &str, why: &str| TheaterError::Advertised { address: address.to_owned(), why: why.to_owned() };
        let listens = self.listen.as_deref().map(|address| allowed(address, &self.settings.secrecy)).transpose()?;
        let Some(address) = self.advertise.as_deref() else {
            return match (&self.listen, listens) {
                (Some(address), Some(listens)) if names_no_host(listens) => Err(wrong(
                    address,
                    "is every address of this machine, and none that others can call: advertise the one that they call, as in \
                     `.advertise(\"192.0.2.7:0\")` with this machine's address or name (port 0 is the port that it listens at)",
                )),
                _ => Ok(None),
            };
        };
        if listens.is_none() {
            return Err(wrong(
                address,
                "is advertised by a theater that does not listen: give an address to `listen(..)` as well",
            ));
        }
        let resolved = allowed(address, &self.settings.secrecy)?;
        if names_no_host(resolved) {
            return Err(wrong(
                address,
                "is advertised, and is no address that others can call: advertise this machine's address or name",
            ));
        }
        Ok(Some(resolved))
    }
}

/// Makes the shared state of a theater, with the parts that the node does not know.
pub(crate) fn compose(
    registry: Registry,
    system: System,
    listens: (Option<SocketAddr>, Option<SocketAddr>),
    settings: Settings,
    poller: (Arc<Poller>, Option<Waker>),
    inside: (Identity, Option<Credentials>, Option<Arc<dyn Environment>>),
) -> Arc<TheaterCore> {
    let new_migration_slot = || Box::new(MigrationsAtLink::default()) as Box<dyn MigrationSlot>;
    let parts = (as_node as AsNode, new_migration_slot as fn() -> Box<dyn MigrationSlot>);
    let theater_core = TheaterCore::new(registry, system, listens, settings, poller, inside, parts);
    theater_core.system.belongs_to(Arc::new(TheaterMigrationHost(Arc::downgrade(&theater_core))));
    theater_core
}

/// A theater during its start. Dropping this ends the theater.
pub(crate) struct Unfinished(pub(crate) Option<Arc<TheaterCore>>);

impl Unfinished {
    pub(crate) fn succeed(mut self) {
        self.0 = None;
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(theater_core) = &self.0 {
            theater_core.end();
        }
    }
}

/// Returns the host and the port of `playhouse://host:port`, the form in which programs tell a theater's address. Other texts are
/// returned unchanged.
fn without_scheme(address: &str) -> &str {
    let rest = address.strip_prefix("playhouse://").unwrap_or(address);
    if rest.len() < address.len() { rest.strip_suffix('/').unwrap_or(rest) } else { address }
}

pub(crate) fn resolve(address: &str) -> Result<SocketAddr, TheaterError> {
    let io_error = |error| TheaterError::Io { address: address.to_owned(), error };
    let mut found = without_scheme(address).to_socket_addrs().map_err(|error| {
        // For a text that is no address, the system says only that it is none, or that no host has this name.
        let is_none = error.kind() == ErrorKind::InvalidInput || without_scheme(address).contains('/');
        let why = "it should be HOST:PORT, with a port up to 65,535, such as 127.0.0.1:7000";
        io_error(if is_none { io::Error::new(ErrorKind::InvalidInput, why) } else { error })
    })?;
    found.next().ok_or_else(|| io_error(io::Error::other("the name has no address")))
}

/// Returns whether `address` reaches only the caller's own machine, or none at all.
fn names_no_host(address: SocketAddr) -> bool {
    let ip = address.ip().to_canonical();
    ip.is_unspecified() || ip.is_multicast()
}

/// Returns the address that other theaters call, for a theater that listens at `bound`.
pub(crate) fn called_at(advertised: Option<SocketAddr>, bound: SocketAddr) -> SocketAddr {
    let Some(mut address) = advertised else { return bound };
    if address.port() == 0 {
        address.set_port(bound.port());
    }
    address
}

/// Returns the address if a theater with such links may listen at it, or advertise it.
pub(crate) fn allowed(address: &str, secrecy: &Secrecy) -> Result<SocketAddr, TheaterError> {
    let resolved = resolve(address)?;
    if secrecy.allows(resolved) { Ok(resolved) } else { Err(TheaterError::NotLoopback { address: address.to_owned() }) }
}

fn listen(address: &str, settings: &Settings) -> Result<Box<dyn Listener>, TheaterError> {
    let resolved = allowed(address, &settings.secrecy)?;
    settings.transport.listen(resolved).map_err(|error| TheaterError::Io { address: address.to_owned(), error })
}
