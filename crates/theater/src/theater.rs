//! Theaters: systems that other ones reach.

use std::any::{TypeId, type_name};
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use playhouse_actor::away::{Berth, Found, Host, Place, Write, place};
use playhouse_actor::wire::{Codec, Remote, WireError};
use playhouse_actor::{
    ActorId, ActorRef, AskError, BuildError, Ending, Group, MigrateError, Mobile, ShutdownError, ShutdownReport,
    System, SystemBuilder, assert_outside,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::answer::{Answer, Find, Migration};
use crate::cookie::Cookie;
use crate::directory::Identity;
use crate::door::Door;
use crate::error::{FindError, PublishError, TheaterError};
use crate::handshake::CLUSTER_BYTES_MAX;
use crate::house::{House, OnStranger, Settings};
use crate::identity::Credentials;
use crate::inspector::Inspector;
use crate::link::{Link, WINDOW_BYTES};
use crate::moves::LEAVE_MAX;
use crate::poller::Poller;
use crate::registry::Registry;
use crate::seal::Seal;
use crate::simulated::World;
use crate::tls::{Secrecy, Tls};
use crate::transport::{Listener, Tcp, Transport};

/// Links that have a stage of their own.
const LINKS: usize = 64;

/// An actor system that other ones reach, and that reaches others. Cheap to clone. When it is dropped, nothing ends: it works on until
/// [`shutdown`](Theater::shutdown).
///
/// A message, an answer, and the state of an actor that is taken to another theater may take 16 MiB each, as they are written. A larger message is a
/// dead letter, its ask fails with [`AskError::Unreachable`], and a larger actor stays where it is.
#[derive(Clone)]
pub struct Theater {
    pub(crate) house: Arc<House>,
}

impl fmt::Debug for Theater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Theater({:?})", self.house.listens)
    }
}

/// What a [`Theater`] is to be made of.
#[derive(Debug)]
#[must_use]
pub struct TheaterBuilder {
    system: SystemBuilder,
    listen: Option<String>,
    cookie: Option<Cookie>,
    advertise: Option<String>,
    settings: Settings,
    inspected: bool,
}

impl TheaterBuilder {
    /// Listens at `host:port`; port 0 is any free port. Default: nowhere; this theater can only call others.
    ///
    /// References and greetings carry this address for other theaters to call. Where those call another one, it is
    /// [advertised](Self::advertise): always for an unspecified address such as `0.0.0.0`, which names each machine to itself.
    pub fn listen(mut self, address: impl Into<String>) -> Self {
        self.listen = Some(address.into());
        self
    }

    /// The address that other theaters call, `host:port`, where that is not the one that this theater [listens](Self::listen) at.
    /// Port 0 stands for the port that it listens at. References and greetings carry this address. A host name is resolved once, at
    /// the start. Default: the address that it listens at.
    pub fn advertise(mut self, address: impl Into<String>) -> Self {
        self.advertise = Some(address.into());
        self
    }

    /// Only theaters with the same name talk to each other. At most 512 bytes. Default: empty.
    pub fn cluster(mut self, name: impl Into<String>) -> Self {
        self.settings.cluster = name.into();
        self
    }

    /// The secret that theaters of this cluster recognise each other by. They need the same one, or all none.
    ///
    /// Default: the cookie in the file that the environment variable [`COOKIE_FILE`](crate::COOKIE_FILE) names. Where it names
    /// none, and links do not leave the machine, it is the cookie of the user: the first theater makes the file `.playhouse.cookie`
    /// in the home directory (or, where there is none, in `XDG_RUNTIME_DIR`), and theaters of other users are rejected. With
    /// [certificates](Self::tls) or [`plaintext`](Self::plaintext) the default is none. A [`Simulation`](crate::Simulation) needs
    /// none.
    pub fn cookie(mut self, cookie: Cookie) -> Self {
        self.cookie = Some(cookie);
        self
    }

    /// Encrypts all links, and allows other networks than the loopback. Both ends show a certificate of the cluster's CA, and
    /// who has none does not get as far as saying what it wants. A theater with certificates talks to none without.
    pub fn tls(mut self, certificates: Tls) -> Self {
        self.settings.secrecy = Secrecy::Tls(certificates);
        self
    }

    /// What the bytes go over. Those who talk to each other have the same. Default: [`Tcp`]. A
    /// [`Simulation`](crate::Simulation) has its own, whatever is given here.
    pub fn transport(mut self, transport: impl Transport) -> Self {
        self.settings.transport = Arc::new(transport);
        self
    }

    /// Allows links over other networks than the loopback. They are **not encrypted, and everybody who reaches this theater
    /// may talk to it**: for networks that are yours alone. Nothing changes where there are [certificates](Self::tls).
    pub fn plaintext(mut self) -> Self {
        if let Secrecy::Loopback = self.settings.secrecy {
            self.settings.secrecy = Secrecy::Plaintext;
        }
        self
    }

    /// Calls `hook` when a caller was rejected, with the reason: it is no theater, belongs to another cluster, or shows no good
    /// cookie or certificate. Also calls it when a link was lost because its peer broke the protocol
    /// ([`TheaterError::Protocol`]). The hook runs on a thread of its own and may block. While 32 calls of the hook run, further
    /// peers are rejected without one. Default: no hook.
    pub fn on_stranger(mut self, hook: impl Fn(&TheaterError) + Send + Sync + 'static) -> Self {
        self.settings.on_stranger = Some(OnStranger(Box::new(hook)));
        self
    }

    /// A theater that was not to be reached for so long is lost: what was sent to it becomes dead letters, and asks fail. So is one whose
    /// connection takes no bytes for so long, and for 6 s at least, while there are some to be written. Default: 30 s.
    ///
    /// A theater that lives on may be reached again. Then references to those of its actors that do not move are good again; watches that
    /// were told of the loss are not renewed.
    ///
    /// The time begins when the connection breaks. Silence breaks it after a third of this time, but 2 s at least and 5 s at most. Only time in
    /// which this process runs is counted. Each step of a call that makes the connection again has a sixth of this time, but 0.25 s at least and
    /// 5 s at most.
    pub fn lost_after(mut self, time: Duration) -> Self {
        self.settings.lost_after = time;
        self
    }

    /// Who sends to another theater is slowed, as for an overloaded actor, while more bytes than this are on their way there:
    /// written, and not acknowledged. More is needed where the way is long and broad: what it carries in a second, times the
    /// seconds of a round trip. Default: 4 MiB, for each theater that this one is linked with.
    pub fn window(mut self, bytes: usize) -> Self {
        self.settings.window = bytes;
        self
    }

    /// Whether `playhouse top` and others may look how this theater is: they ask an [`Inspector`], which is published as
    /// [`playhouse.inspector`](crate::INSPECTOR) and has a thread of its own (not in simulation). Who may link with this
    /// theater may ask it, and nobody else; nothing is counted while nobody does. Default: no.
    pub fn inspected(mut self, inspected: bool) -> Self {
        self.inspected = inspected;
        self
    }

    /// The actor system in it. Default: [`System::builder`].
    pub fn system(mut self, system: SystemBuilder) -> Self {
        self.system = system;
        self
    }

    /// Starts the theater, with its system.
    ///
    /// # Errors
    /// The system cannot be started (or is a simulated one: see [`Simulation`](crate::Simulation)), the address cannot be
    /// listened on or is not one that others can call ([`TheaterError::Advertised`]), the [cookie](Self::cookie) cannot be read or made, or
    /// two actors or messages of this program are called alike on the wire.
    pub fn start(self) -> Result<Theater, TheaterError> {
        if self.system.is_simulated() {
            let why = "a simulated system is that of a theater in a `Simulation` only, which starts it";
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
            error: io::Error::new(error.kind(), format!("the transport listens, and does not say where: {error}")),
        };
        let listens = listener.as_ref().map(|listener| listener.address()).transpose().map_err(unknown)?;
        let listens = listens.map(|bound| called_at(advertised, bound));
        let (door, bell) = listener.map(Door::new).transpose().map_err(io_error)?.unzip();
        let registry = Registry::new()?;
        let poller = Arc::new(Poller::new().map_err(io_error)?);
        let not_started = |error: BuildError| TheaterError::System(error.to_string());
        let (system, on_start) = self.system.links(LINKS).begin().map_err(not_started)?;
        system.core().set_reactor(Arc::clone(&poller) as Arc<dyn playhouse_executor::Reactor>);
        let credentials = Credentials::new(cookie);
        let inside = (Identity::new(credentials.incarnation), Some(credentials), None);
        let house = House::new(registry, system, listens, self.settings, (poller, bell), inside);
        let unfinished = Unfinished(Some(Arc::clone(&house)));
        on_start.run(&house.system).map_err(not_started)?;
        if self.inspected {
            Inspector::start_in(&house)?;
        }
        let thread = |name: &str| std::thread::Builder::new().name(format!("playhouse-{name}"));
        let keeper = Arc::clone(&house);
        thread("keeper").spawn(move || keeper.keep()).map_err(io_error)?;
        if let Some(door) = door {
            let doorkeeper = Arc::clone(&house);
            thread("door").spawn(move || doorkeeper.hear_callers(door)).map_err(io_error)?;
        }
        unfinished.succeed();
        Ok(Theater { house })
    }

    /// The address that is advertised, once it is known that others can call it; its port may be 0.
    fn advertised(&self) -> Result<Option<SocketAddr>, TheaterError> {
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
                "is advertised by a theater that listens nowhere: give an address to `listen(..)` as well",
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

    /// Starts the theater as one of a simulation.
    pub(crate) fn start_in(self, world: &World) -> Result<Theater, TheaterError> {
        if self.settings.secrecy.tls().is_some() {
            let why = "encryption is not simulated: leave the certificates away";
            return Err(TheaterError::System(why.to_owned()));
        }
        let advertised = self.advertised()?;
        let bound = self.listen.as_deref().map(|address| {
            let resolved = allowed(address, &self.settings.secrecy)?;
            world.bind(resolved).map_err(|error| TheaterError::Io { address: address.to_owned(), error })
        });
        let bound = bound.transpose()?;
        let listens = bound.map(|bound| called_at(advertised, bound));
        let registry = Registry::new()?;
        let (seed, incarnation, key) =
            world.choose(|choices| (choices.next(), choices.next(), [choices.next(), choices.next()]));
        let not_started = |error: BuildError| TheaterError::System(error.to_string());
        let (system, on_start) = self.system.simulated(seed).links(LINKS).begin().map_err(not_started)?;
        let steps = world.take_over(system.core()).expect("it is simulated, and has just begun");
        let outside = world.outside();
        let poller = Arc::new(Poller::simulated(&outside));
        system.core().set_reactor(Arc::clone(&poller) as Arc<dyn playhouse_executor::Reactor>);
        let mut bytes = [0; 16];
        for (part, word) in bytes.chunks_exact_mut(8).zip(key) {
            part.copy_from_slice(&word.to_le_bytes());
        }
        let identity = Identity { incarnation, seal: Seal::new(bytes), simulated: true };
        let inside = (identity, None, Some(Arc::clone(&outside)));
        let house = House::new(registry, system, listens, self.settings, (poller, None), inside);
        let unfinished = Unfinished(Some(Arc::clone(&house)));
        if self.inspected {
            Inspector::start_in(&house)?;
        }
        world.admit(&house, steps, outside, bound);
        on_start.run(&house.system).map_err(not_started)?;
        unfinished.succeed();
        Ok(Theater { house })
    }
}

/// A theater whose start has not succeeded yet. Dropping this ends it.
struct Unfinished(Option<Arc<House>>);

impl Unfinished {
    fn succeed(mut self) {
        self.0 = None;
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(house) = &self.0 {
            house.end();
        }
    }
}

/// The answer of another theater to a look-up.
type LookedUp<A> = Result<Result<ActorRef<A>, FindError>, AskError>;

/// Asks the theater at the other end of `link` who is published as `name`.
fn look_up_over<A: Remote>(link: &Link, name: &str, take: impl FnOnce(LookedUp<A>) + Send + 'static) {
    let unreadable = |error: WireError| Err(FindError::Unreachable(error.to_string()));
    let read = move |(codec, bytes): (Codec, &[u8])| codec.read(bytes).unwrap_or_else(unreadable);
    link.find(name, A::wire_name(), Box::new(move |found| take(found.map(read))));
}

fn read_found<A: Remote>(found: LookedUp<A>) -> Result<ActorRef<A>, FindError> {
    found.unwrap_or_else(|error| Err(FindError::Unreachable(error.to_string())))
}

/// Asks the theater at `address` who is published as `name`, over a link that is not lost.
fn look_up_anew<A: Remote>(
    house: &Arc<House>,
    address: SocketAddr,
    name: String,
    answer: Arc<Answer<Result<ActorRef<A>, FindError>>>,
) {
    let over = move |link: Result<Arc<Link>, TheaterError>| match link {
        Ok(link) => look_up_over(&link, &name, move |found| answer.give(read_found(found))),
        Err(error) => answer.give(Err(FindError::Unreachable(error.to_string()))),
    };
    house.reach_later(address, Duration::ZERO, Box::new(over));
}

/// The host and the port in `playhouse://host:port`, which is how others are told where a theater is. Anything else is left as it is.
fn without_scheme(address: &str) -> &str {
    let rest = address.strip_prefix("playhouse://").unwrap_or(address);
    if rest.len() < address.len() { rest.strip_suffix('/').unwrap_or(rest) } else { address }
}

fn resolve(address: &str) -> Result<SocketAddr, TheaterError> {
    let io_error = |error| TheaterError::Io { address: address.to_owned(), error };
    let mut found = without_scheme(address).to_socket_addrs().map_err(|error| {
        // Of what is no address it says no more than that it is none, or that no host has this name.
        let is_none = error.kind() == ErrorKind::InvalidInput || without_scheme(address).contains('/');
        let why = "it should be HOST:PORT, with a port up to 65,535, such as 127.0.0.1:7000";
        io_error(if is_none { io::Error::new(ErrorKind::InvalidInput, why) } else { error })
    })?;
    found.next().ok_or_else(|| io_error(io::Error::other("the name has no address")))
}

/// Whether no machine but the caller's own is reached at `address`, or none at all.
fn names_no_host(address: SocketAddr) -> bool {
    let ip = address.ip().to_canonical();
    ip.is_unspecified() || ip.is_multicast()
}

/// The address that others call, of a theater that listens at `bound`.
fn called_at(advertised: Option<SocketAddr>, bound: SocketAddr) -> SocketAddr {
    let Some(mut address) = advertised else { return bound };
    if address.port() == 0 {
        address.set_port(bound.port());
    }
    address
}

/// An address that a theater with such links may listen at, or advertise.
fn allowed(address: &str, secrecy: &Secrecy) -> Result<SocketAddr, TheaterError> {
    let resolved = resolve(address)?;
    if secrecy.allows(resolved) { Ok(resolved) } else { Err(TheaterError::NotLoopback { address: address.to_owned() }) }
}

fn listen(address: &str, settings: &Settings) -> Result<Box<dyn Listener>, TheaterError> {
    let resolved = allowed(address, &settings.secrecy)?;
    settings.transport.listen(resolved).map_err(|error| TheaterError::Io { address: address.to_owned(), error })
}

/// Another theater, as far as this one knows it. Cheap to clone.
#[derive(Clone)]
pub struct Peer {
    pub(crate) link: Arc<Link>,
}

impl Peer {
    /// Whether the session with it has ended: nothing that is sent there arrives any more.
    pub fn is_lost(&self) -> bool {
        self.link.is_lost()
    }

    /// Returns what the peer did against the protocol, if this theater has lost it for that: a [`TheaterError::Protocol`].
    pub fn protocol_error(&self) -> Option<TheaterError> {
        self.link.broken_rule()
    }

    /// The address that this theater calls it at, or the one that it [advertises](TheaterBuilder::advertise).
    pub fn address(&self) -> Option<SocketAddr> {
        self.link.address
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Peer({:?})", self.link.address)
    }
}

/// For supervised children: see [`Supervised::at`](playhouse_actor::Supervised::at).
impl Host for Peer {
    fn start(
        &self,
        actor: TypeId,
        name: &'static str,
        write: Write<'_>,
        place: Place<'_>,
    ) -> Result<ActorId, WireError> {
        self.link.spawn((actor, name), true, write, |core, stage, carrier| {
            let id = place(core, Berth::Link(stage), carrier);
            (id, id)
        })
    }

    fn theater(&self) -> u64 {
        self.link.incarnation
    }

    fn is_lost(&self) -> bool {
        self.link.is_lost()
    }

    fn may_have_left(&self, id: ActorId) -> bool {
        self.link.house().is_some_and(|house| house.registry.moves(id).is_some())
    }

    fn reach(&self, then: Found) {
        if !self.is_lost() {
            return then(Ok(Arc::new(self.clone())));
        }
        let (Some(house), Some(address)) = (self.link.house(), self.link.address) else {
            return then(Err(WireError::new("it cannot be called")));
        };
        let take = move |found: Result<Arc<Link>, TheaterError>| {
            let found = found.map(|link| Arc::new(Peer { link }) as Arc<dyn Host>);
            then(found.map_err(|error| WireError::new(error.to_string())));
        };
        house.reach_later(address, Duration::ZERO, Box::new(take));
    }
}

/// How [`Theater::evacuate`] went. Actors that have ended, or that are lost with a theater that had taken them, are in neither number.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Evacuation {
    /// Actors that live elsewhere now.
    pub moved: usize,
    /// Actors that are still here, and why.
    pub stayed: Vec<(ActorId, MigrateError)>,
}

impl Theater {
    /// Settings for a new theater.
    pub fn builder() -> TheaterBuilder {
        TheaterBuilder {
            system: System::builder(),
            listen: None,
            cookie: None,
            advertise: None,
            inspected: false,
            settings: Settings {
                cluster: String::new(),
                secrecy: Secrecy::default(),
                transport: Arc::new(Tcp),
                lost_after: Duration::from_secs(30),
                window: WINDOW_BYTES,
                on_stranger: None,
            },
        }
    }

    /// The actor system in it.
    pub fn system(&self) -> &System {
        &self.house.system
    }

    /// The address that others call: the [advertised](TheaterBuilder::advertise) one, or the one that it listens at.
    pub fn address(&self) -> Option<SocketAddr> {
        self.house.listens
    }

    /// The theater at `address`: `host:port` or `playhouse://host:port`, with an IP address or a name as the host. Called if need be, which may take some
    /// seconds and blocks this thread.
    ///
    /// # Errors
    /// It cannot be reached, or refuses the connection.
    ///
    /// # Panics
    /// Inside an actor: it would hold the worker.
    #[track_caller]
    pub fn connect(&self, address: impl ToString) -> Result<Peer, TheaterError> {
        assert_outside("`connect`", "connect before, and give the actor the `Peer`");
        self.house.link_with(resolve(&address.to_string())?.into()).map(|link| Peer { link })
    }

    /// Lets others [find](Theater::find) `actor` as `playhouse://host:port/name`, until it ends. One actor may have several names.
    ///
    /// # Errors
    /// Another actor is published under that name, and has not ended: see [`Theater::replace`].
    pub fn publish<A: Remote>(&self, name: impl Into<String>, actor: ActorRef<A>) -> Result<(), PublishError> {
        self.house.registry.publish(name.into(), actor.id(), A::wire_name())
    }

    /// Publishes `actor` as [`publish`](Theater::publish) does, instead of whoever has the name: that one is not found by it any more.
    pub fn replace<A: Remote>(&self, name: impl Into<String>, actor: ActorRef<A>) {
        self.house.registry.replace(name.into(), actor.id(), A::wire_name());
    }

    /// Takes a name back. False: there was nobody of that name.
    pub fn unpublish(&self, name: &str) -> bool {
        self.house.registry.unpublish(name)
    }

    /// Looks up who is published as `playhouse://host:port/name`.
    ///
    /// # Cancel safety
    /// Dropping the answer changes nothing.
    pub fn find<A: Remote>(&self, name: &str) -> Find<A> {
        let answer = Answer::new(&self.house);
        let find = Find(Arc::clone(&answer));
        let Some((host, actor)) = name.strip_prefix("playhouse://").and_then(|rest| rest.split_once('/')) else {
            answer.give(Err(FindError::Malformed(name.to_owned())));
            return find;
        };
        let (host, actor, house) = (host.to_owned(), actor.to_owned(), Arc::clone(&self.house));
        let look_up = move |address: Result<SocketAddr, TheaterError>| {
            if let Ok(address) = &address
                && Some(*address) == house.listens
            {
                let found = house.registry.find(&actor, A::wire_name(), Ok);
                return answer.give(found.and_then(|id| ActorRef::of_id(id).ok_or(FindError::Unknown(actor))));
            }
            match address.map(|address| (address, house.known_link(address))) {
                Ok((address, None)) => look_up_anew(&house, address, actor, answer),
                Ok((address, Some(link))) => {
                    let name = actor.clone();
                    let take = move |found| match found {
                        // It was the link with a theater that is no more. There may be a successor at that address, and to look up changes nothing.
                        Err(AskError::TheaterLost { .. }) => look_up_anew(&house, address, name, answer),
                        found => answer.give(read_found(found)),
                    };
                    look_up_over::<A>(&link, &actor, take);
                }
                Err(error) => answer.give(Err(FindError::Unreachable(error.to_string()))),
            }
        };
        match host.parse() {
            Ok(address) => look_up(Ok(address)),
            // Asking for a name may take a while.
            Err(_) => self.house.soon(Box::new(move || look_up(resolve(&host)))),
        }
        find
    }

    /// Starts `actor` in the theater `peer`. Its reference can be used at once: what is sent to it goes behind its state.
    ///
    /// If it cannot be started there after all, what is sent to it becomes dead letters there, and asks fail.
    ///
    /// A mobile actor is born in this theater by that, as if it had left from here: this theater notes where it goes (see
    /// [`evacuate`](Theater::evacuate) for how a theater ends without harm). One that does not move, and is told of to others at once, is reached by
    /// them over this theater.
    ///
    /// While the link's window is full, a thread outside of actors blocks here until there is room. In a handler this does not block: the
    /// actor's stage waits for room after the handler.
    ///
    /// # Errors
    /// That theater is lost, or cannot start actors of this type; or a handler has started so many that more than 16 windows and 32 MiB
    /// wait.
    pub fn spawn_at<A: Remote + Serialize + DeserializeOwned>(
        &self,
        peer: &Peer,
        actor: &A,
    ) -> Result<ActorRef<A>, WireError> {
        let write = |codec: Codec, out: &mut Vec<u8>| codec.write(actor, out);
        peer.link.spawn((TypeId::of::<A>(), type_name::<A>()), false, write, |core, stage, carrier| {
            let actor = place::<A>(core, Berth::Link(stage), carrier);
            (actor.id(), actor)
        })
    }

    /// Takes `actor` to the theater `to`, with its state, its mail, its timers and its watchers. References to it stay good
    /// everywhere; what is sent to it keeps its order; asks are answered.
    ///
    /// It goes once it has handled what it is at. Where it cannot go, it goes on here as if nothing had been. Where it is in a
    /// [group](Group), that moves: see [`migrate_group`](Theater::migrate_group).
    ///
    /// # Errors
    /// When awaited: why it stays.
    ///
    /// # Cancel safety
    /// Dropping the answer changes nothing.
    pub fn migrate<A: Mobile>(&self, actor: ActorRef<A>, to: &Peer) -> Migration {
        let answer = Answer::new(&self.house);
        let migration = Migration(Arc::clone(&answer));
        self.house.migrate(actor.id(), Arc::clone(&to.link), Box::new(move |done| answer.give(done)));
        migration
    }

    /// Takes all actors of `group` that live here to the theater `to`, where they share a stage again: all of them, or none. Each is
    /// taken as by [`migrate`](Theater::migrate).
    ///
    /// They go when all of them are between two messages at one moment: while one awaits something, the others go on with
    /// their work. (If there is no such moment for 10 seconds, they stay.) Members that others start here after that moment are
    /// left behind. If the group is moving already, this begins when that has ended.
    ///
    /// If the connection breaks, it goes on; if the other theater is lost before it has said that they have come, all of them go
    /// on here.
    ///
    /// # Errors
    /// When awaited: why they stay, which each of them is told as well ([`stayed`](playhouse_actor::Actor::stayed)). Where that is for
    /// one of them, [`MigrateError::Member`] says which.
    ///
    /// # Cancel safety
    /// Dropping the answer changes nothing.
    pub fn migrate_group(&self, group: Group, to: &Peer) -> Migration {
        let answer = Answer::new(&self.house);
        let migration = Migration(Arc::clone(&answer));
        match group.name() {
            Some(name) => {
                self.house.migrate_group(name, Arc::clone(&to.link), Box::new(move |done| answer.give(done)));
            }
            None => answer.give(Err(MigrateError::NoGroup)),
        }
        migration
    }

    /// The group that `actor` was started in, wherever it lives.
    pub fn group_of<A: Mobile>(&self, actor: ActorRef<A>) -> Option<Group> {
        let mut groups = self.house.directory.groups();
        let name = groups.of(actor.id())?;
        Some(Group::of(name, groups.stage_of(name, || actor.id().address().stage())))
    }

    /// Takes all mobile actors that live here to other theaters, by turns, and those that are started meanwhile; those
    /// of a [group](Group) go together, and where some of the group have gone before.
    /// One that a theater does not take is offered to the others, too.
    /// From now on, this theater lets no actor in that another one sends: such an actor stays where it is, and is told so. Those that were let in
    /// before come, and are taken on. One that is still on its way here after 10 seconds is among those that [`stayed`](Evacuation::stayed).
    ///
    /// Blocks until none is left that could be taken away, and the other theaters send to them where they are, and have the answers that come over
    /// this one (both for at most 10 seconds): after that, this one may end. It waits for as long as handlers of these actors do not rest.
    ///
    /// # Panics
    /// Inside an actor, and without a theater to take them to.
    #[track_caller]
    pub fn evacuate(&self, to: &[Peer]) -> Evacuation {
        assert_outside("`evacuate`", "call it in the main thread, which an actor can tell that it is time");
        /// Actors on their way at one time.
        const UNDER_WAY_MAX: usize = 512;
        assert!(!to.is_empty(), "`evacuate` was given no theater to take the actors to");
        let mut evacuation = Evacuation::default();
        let mut stay: HashSet<ActorId> = HashSet::new();
        // By the first member of a group, or the actor: the theaters that have not taken it. A theater that is evacuated itself takes no actor.
        let mut refused: HashMap<ActorId, Vec<u64>> = HashMap::new();
        let mut deadline = self.house.now() + LEAVE_MAX;
        let mut have_changed = false;
        self.house.refuse_guests();
        loop {
            let came = self.house.directory.begun();
            // First: who has come into its cell by then is seen there.
            let awaits = self.house.directory.awaits_anybody();
            let mut leaving = Vec::new();
            self.house.system.core().each_resident(|address, resident| {
                let id = ActorId::of(address);
                if self.house.registry.is_mobile(resident) && !stay.contains(&id) {
                    leaving.push(id);
                }
            });
            // In simulation, in an order that does not depend on where they lie in memory.
            self.house.directory.sort(&mut leaving);
            if leaving.is_empty() {
                // With the lock held, a guest does not begin: it is one, or is arriving, or has come since the list was made.
                let (mut coming, begins, has_come) = {
                    let guests = self.house.directory.guests();
                    let directory = &self.house.directory;
                    (guests.places(), directory.is_any_arriving(), directory.begun() != came)
                };
                let begins = begins && self.house.now() < deadline + LEAVE_MAX;
                if has_come || begins || awaits && self.house.now() < deadline {
                    // They begin soon, or do not come.
                    self.house.pause(Duration::from_millis(1));
                } else if have_changed {
                    self.house.directory.sort(&mut coming);
                    let why = || MigrateError::Unreachable("it is on its way here, and has not begun".to_owned());
                    evacuation.stayed.extend(coming.into_iter().map(|id| (id, why())));
                    return evacuation;
                } else {
                    self.house.take_leave();
                    // Others may have heard of this theater anew from an actor that has come meanwhile, and gone on by itself.
                    have_changed = self.house.directory.begun() == came || self.house.now() >= deadline;
                }
                continue;
            }
            let mut under_way: VecDeque<(ActorId, Vec<ActorId>, u64, Migration)> = VecDeque::new();
            let mut end = |(first, who, peer, migration): (ActorId, Vec<ActorId>, u64, Migration),
                           refused: &mut HashMap<ActorId, Vec<u64>>| match migration.wait() {
                Ok(()) => evacuation.moved += who.len(),
                // They are gone either way.
                Err(MigrateError::Stopped | MigrateError::Elsewhere) => {}
                Err(why) => {
                    use MigrateError::{Member, Refused, TheaterLost};
                    let refused = refused.entry(first).or_default();
                    refused.push(peer);
                    let is_left = to.iter().any(|peer| !refused.contains(&peer.link.incarnation));
                    if is_left && matches!(why, Refused(_) | Member { .. } | TheaterLost) {
                        // They are offered to another one, where they are still here.
                        return;
                    }
                    stay.extend(&who);
                    evacuation.stayed.extend(who.into_iter().map(|id| (id, why.clone())));
                }
            };
            let parties = self.house.directory.groups().parties(leaving);
            for ((group, mut who), nth) in parties.into_iter().zip(0..) {
                let first = who[0];
                // Their cells may not have heard yet that they have gone with others.
                who.retain(|id| !self.house.directory.is_elsewhere(*id));
                if under_way.len() >= UNDER_WAY_MAX {
                    let first = under_way.pop_front();
                    first.into_iter().for_each(|first| end(first, &mut refused));
                }
                let answer = Answer::new(&self.house);
                let migration = Migration(Arc::clone(&answer));
                let gone = group.map(|group| self.house.gone_to(group)).unwrap_or_default();
                let is_open = |peer: &&Peer| !refused.get(&first).is_some_and(|by| by.contains(&peer.link.incarnation));
                let mut open: Vec<&Peer> = to.iter().filter(is_open).collect();
                if open.is_empty() {
                    open.extend(to);
                }
                let has_gone_to = |peer: &&&Peer| gone.contains(&peer.link.incarnation);
                let peer = open.iter().find(has_gone_to).unwrap_or(&open[nth % open.len()]);
                self.house.migrate(first, Arc::clone(&peer.link), Box::new(move |done| answer.give(done)));
                under_way.push_back((first, who, peer.link.incarnation, migration));
            }
            under_way.into_iter().for_each(|last| end(last, &mut refused));
            (have_changed, deadline) = (false, self.house.now() + LEAVE_MAX);
        }
    }

    /// Ends the theater: waits until its messages are handled and the others have what was sent to them (at most `limit`), then takes leave of
    /// them, so that they hold it for lost at once, and shuts its system down. It returns within `limit`, a fifth of it, and 0.8 seconds, and what dead-letter
    /// hooks and drops of undelivered messages take on this thread. Actors that others send here are refused from the beginning, and stay where they are.
    /// Actors are not told that the others are gone. After that, its address can be listened at again; for a transport that takes its time with that, it waits 5 seconds at most.
    ///
    /// # Errors
    /// As [`System::shutdown`].
    ///
    /// # Panics
    /// Inside an actor: it would wait for itself, or hold the worker.
    #[track_caller]
    pub fn shutdown_within(self, limit: Duration) -> Result<ShutdownReport, ShutdownError> {
        assert_outside("`shutdown`", "call it in the main thread, which an actor can tell that it is time");
        /// Where `limit` is over, the others still hear the goodbye, and handlers still return: each for a tenth of it, or this time.
        const GRACE_MIN: Duration = Duration::from_millis(200);
        let grace = GRACE_MIN.max(limit / 10);
        let deadline = self.house.now().saturating_add(limit);
        let settle = |links: &[Arc<Link>], deadline: Duration, is_settled: &dyn Fn(&Link) -> bool| {
            while !links.iter().all(|link| is_settled(link)) && self.house.now() < deadline {
                for link in links {
                    link.flush(true);
                }
                self.house.pause(Duration::from_millis(1));
            }
        };
        self.house.refuse_guests();
        self.house.system.core().drain(limit);
        self.house.await_ways(deadline);
        settle(&self.house.all_links(), deadline, &Link::is_settled);
        let links = self.house.last_links();
        for link in &links {
            link.end_departures();
        }
        for link in &links {
            link.say_goodbye();
        }
        let heard_by = deadline.max(self.house.now().saturating_add(grace));
        settle(&links, heard_by, &Link::has_taken_leave);
        self.house.close();
        let left = || deadline.saturating_sub(self.house.now());
        self.house.lose_links(left().max(grace));
        self.house.system.clone().shutdown_within(left())
    }

    /// Does the same as [`Theater::shutdown_within`], in a thread of its own, for async code outside of actors: the thread of the caller is not blocked.
    /// The shutdown goes on if the future is dropped.
    ///
    /// # Errors
    /// Actors are stuck, as for [`System::shutdown`].
    ///
    /// # Panics
    /// Inside an actor, like [`Theater::shutdown_within`].
    #[track_caller]
    pub fn shutdown_async(self, limit: Duration) -> Ending {
        assert_outside("`shutdown_async`", "call it outside of actors, which can tell a task there that it is time");
        Ending::of(move || self.shutdown_within(limit))
    }

    /// Does the same as [`Theater::shutdown_within`] with a limit of 5 seconds.
    ///
    /// # Errors
    /// As [`System::shutdown`].
    ///
    /// # Panics
    /// As [`Theater::shutdown_within`].
    #[track_caller]
    pub fn shutdown(self) -> Result<ShutdownReport, ShutdownError> {
        self.shutdown_within(Duration::from_secs(5))
    }
}
