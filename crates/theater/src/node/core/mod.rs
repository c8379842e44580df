//! The links of a theater: calls, answers to callers, and the continuation after a connection broke.
//!
//! The state machine in [`crate::node::calling`] decides which calls make links and which continue them.

mod called;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use mio::Waker;
use playhouse_actor::System;
use playhouse_actor::wire::MigrationHost;
use playhouse_executor::contained;
use playhouse_executor::jitter::seam;

use crate::diagnostics::cycles::Cycles;
use crate::error::TheaterError;
use crate::link::frame::{Hello, Reply, Resume, THEATERS_MAX};
use crate::link::registry::Registry;
use crate::link::{Link, Stream};
use crate::migration::authority::{Authority, BirthTheaters};
use crate::migration::host::TheaterMigrationHost;
use crate::migration::rebalance::Meter;
use crate::naming::{Directory, Identity};
use crate::node::acceptor::Callers;
use crate::node::calling::{self, Answer, Asks, Calling, Claim, Due, Outcome, Sight, Without};
use crate::node::calls::Calls;
use crate::node::handshake::{self, ANSWER_TIME_MAX, Opening};
use crate::node::identity::{Credentials, Word32};
use crate::proxy::pending::PendingProxy;
use crate::sim::{OnReply, Outside};
use crate::transport::poller::Poller;
use crate::transport::tls::{Cipher, Secrecy};
use crate::transport::{GuardedWire, Transport, guarded};

/// Interval at which the housekeeper checks the links.
pub(crate) const TICK: Duration = Duration::from_millis(50);
/// Maximum time between two ticks that is counted against other theaters.
const LOOKED_AWAY_MAX: Duration = Duration::from_millis(200);
/// A theater that made a link and has sent nothing in it is called if it has not called again for this time.
const UNHEARD_MAX: Duration = Duration::from_secs(1);
/// Maximum time without a word from the other end before a connection is broken. Only time in which this process ran is counted.
const SILENT_MAX: Duration = Duration::from_secs(5);
/// An idle connection sends a keep-alive after this time.
const MUTE_MAX: Duration = Duration::from_secs(1);
/// Minimum time before a theater is lost because it takes no bytes, even if it would be lost sooner for being unreachable. Within
/// this time, a silent connection is broken.
const STUCK_MIN: Duration = Duration::from_secs(6);

/// Number of further calls to a theater that hangs up before it has answered.
const HANG_UPS_MAX: u32 = 8;
/// Maximum number of connections of one session. It exceeds the number that any time suffices for, and keeps the count from
/// overflowing.
const CONNECTIONS_MAX: u64 = u64::MAX / 2;
/// The reason for refusing a theater with a changed certificate. No theater changes its certificate during an incarnation.
const OTHER_CERTIFICATE: &str = "it shows another certificate than at the beginning of its link";

/// The settings that a theater was started with.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) cluster: String,
    pub(crate) secrecy: Secrecy,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) lost_after: Duration,
    /// The window of a link in bytes.
    pub(crate) window: usize,
    pub(crate) on_rejected_peer: Option<OnRejectedPeer>,
}

/// The hook that is told the reason when a peer was rejected.
pub(crate) struct OnRejectedPeer(pub(crate) Box<dyn Fn(&TheaterError) + Send + Sync>);

impl fmt::Debug for OnRejectedPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

/// The shared state of a theater.
pub(crate) struct TheaterCore {
    pub(crate) system: System,
    pub(crate) registry: Arc<Registry>,
    pub(crate) incarnation: u64,
    /// The address that other theaters call.
    pub(crate) listens: Option<SocketAddr>,
    pub(crate) settings: Settings,
    pub(crate) poller: Arc<Poller>,
    pub(crate) directory: Arc<Directory>,
    links: Mutex<Links>,
    /// Notified when a link has changed.
    changed: Arc<Condvar>,
    pub(crate) callers: Callers,
    /// `None` in simulation, where no theater proves anything.
    pub(crate) credentials: Option<Credentials>,
    /// Interrupts the thread that waits for callers; `None` if there is no such thread.
    shutdown_waker: Option<Waker>,
    closing: AtomicBool,
    meter: Mutex<Meter>,
    pub(crate) cycles: Mutex<Cycles>,
    pub(crate) calls: Calls,
    /// This theater takes no incoming actors, because it is being evacuated or shuts down.
    refuses_incoming_actors: AtomicBool,
    /// The shutdown is being announced: no new sessions are made.
    leaving: AtomicBool,
    /// Knows the possible locations of mobile actors.
    pub(crate) authority: Box<dyn Authority>,
    /// Replaces threads and sockets in simulation.
    pub(crate) outside: Option<Arc<Outside>>,
}

/// Takes the link with a theater, or the reason for its failure.
pub(crate) type TakeLink = Box<dyn FnOnce(Result<Arc<Link>, TheaterError>) + Send>;

/// The reply of the other end, and the stream that it came over.
pub(crate) type Exchanged = Result<(Reply, (Stream, Option<Cipher>)), TheaterError>;

/// The result of a call, shared by all threads that wait for it.
pub(crate) type Called = Arc<OnceLock<Result<Arc<Link>, TheaterError>>>;

#[derive(Default)]
pub(crate) struct Links {
    by_incarnation: BTreeMap<u64, KnownTheater>,
    /// Addresses that are called for the first time, with the result for other threads that want the same link.
    pub(crate) calling: HashMap<SocketAddr, Called>,
    /// Further addresses at which theaters were called.
    aliases: HashMap<SocketAddr, u64>,
    next_number: u64,
    /// A thread holds the listener.
    is_open: bool,
    /// The time of the housekeeper's last tick, in the system's time.
    looked_at: Duration,
}

/// The target of a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Callee {
    pub(crate) address: SocketAddr,
    /// The incarnation of the called theater, or `None` for any theater at this address.
    pub(crate) theater: Option<u64>,
}

impl From<SocketAddr> for Callee {
    fn from(address: SocketAddr) -> Callee {
        Callee { address, theater: None }
    }
}

impl Links {
    /// Returns the link with this theater. (The link with a theater that has ended may not have been given up yet.)
    ///
    /// An address alone means an address that this theater has called, because the listening address that a caller states is only
    /// its claim. Of several theaters that were called at the address, the connected one is meant, and of those the latest.
    pub(crate) fn at(&self, Callee { address, theater }: Callee) -> Option<&Arc<Link>> {
        if let Some(theater) = theater {
            return self.by_incarnation.get(&theater).map(|known| &known.link).filter(|link| !link.is_lost());
        }
        let alias = self.aliases.get(&address);
        let is_there =
            |known: &&KnownTheater| alias == Some(&known.link.incarnation) || known.called_at == Some(address);
        let links = self.by_incarnation.values().filter(is_there).map(|known| &known.link);
        links.filter(|link| !link.is_lost()).max_by_key(|link| (link.connection().is_some(), link.number()))
    }

    /// Makes room for one more link. The table is full only if callers make links that they do not use. In that case the oldest
    /// link that has received nothing is returned; the caller gives it up.
    fn make_room(&mut self) -> Result<Option<Arc<Link>>, String> {
        if self.by_incarnation.len() < THEATERS_MAX {
            return Ok(None);
        }
        let unused =
            self.by_incarnation.values().filter(|known| known.called_at.is_none() && !known.link.has_received());
        let oldest = unused.min_by_key(|known| known.link.number()).map(|known| known.link.incarnation);
        let oldest = oldest.and_then(|theater| self.by_incarnation.remove(&theater));
        oldest
            .map(|known| Some(known.link))
            .ok_or_else(|| format!("it has links with {THEATERS_MAX} theaters, and takes no more"))
    }

    /// Returns a number for a new link.
    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number - 1
    }

    /// Returns whether the call of `address` that `outcome` belongs to is in progress.
    fn is_called(&self, address: SocketAddr, outcome: &Called) -> bool {
        self.calling.get(&address).is_some_and(|present| Arc::ptr_eq(present, outcome))
    }
}

struct KnownTheater {
    link: Arc<Link>,
    calls: Calling,
    /// The address of this end's first call.
    called_at: Option<SocketAddr>,
    /// The digest of the certificate that the other end has shown: the same one on each connection.
    certificate: Option<Word32>,
    /// The time without a connection, as counted by the housekeeper.
    terminated: Option<Duration>,
    /// The time in which the connection had bytes to write and took none, as counted by the housekeeper.
    stuck: Duration,
}

impl KnownTheater {
    fn sight(&self) -> Sight {
        Sight {
            number: self.link.number(),
            has_received: self.link.has_received(),
            is_connected: self.link.connection().is_some(),
        }
    }
}

impl TheaterCore {
    pub(crate) fn new(
        registry: Registry,
        system: System,
        listens: Option<SocketAddr>,
        settings: Settings,
        (poller, shutdown_waker): (Arc<Poller>, Option<Waker>),
        (identity, credentials, outside): (Identity, Option<Credentials>, Option<Arc<Outside>>),
    ) -> Arc<TheaterCore> {
        let incarnation = identity.incarnation;
        let directory = Arc::new(Directory::new(system.core(), identity));
        let theater_core = Arc::new(TheaterCore {
            system,
            registry: Arc::new(registry),
            incarnation,
            listens,
            settings,
            poller,
            directory,
            links: Mutex::new(Links { is_open: shutdown_waker.is_some(), ..Links::default() }),
            changed: Arc::default(),
            callers: Callers::default(),
            credentials,
            shutdown_waker,
            closing: AtomicBool::new(false),
            meter: Mutex::new(Meter::new()),
            cycles: Mutex::default(),
            calls: Calls::default(),
            refuses_incoming_actors: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
            authority: Box::new(BirthTheaters),
            outside,
        });
        theater_core.directory.belongs_to(&theater_core);
        let migration_host: Arc<dyn MigrationHost> = Arc::new(TheaterMigrationHost(Arc::downgrade(&theater_core)));
        theater_core.system.belongs_to(migration_host);
        theater_core
    }

    pub(crate) fn links(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the load of this theater, from 0 to 1.
    pub(crate) fn load(&self) -> f64 {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner).read(&self.system)
    }

    /// Returns all links, and prevents new ones.
    pub(crate) fn last_links(&self) -> Vec<Arc<Link>> {
        let links = self.links();
        // Relaxed: it is read under the lock of the links, which this thread holds.
        self.leaving.store(true, Ordering::Relaxed);
        links.by_incarnation.values().map(|known| Arc::clone(&known.link)).collect()
    }

    /// Returns all links that are not lost.
    pub(crate) fn all_links(&self) -> Vec<Arc<Link>> {
        self.links().by_incarnation.values().map(|known| Arc::clone(&known.link)).collect()
    }

    /// Returns whether the theater is being called again.
    pub(crate) fn calls_again(&self, theater: u64) -> bool {
        self.links().by_incarnation.get(&theater).is_some_and(|known| known.calls.calls_again)
    }

    /// Returns the link with the theater at `address`, if there is one.
    pub(crate) fn known_link(&self, address: SocketAddr) -> Option<Arc<Link>> {
        self.links().at(address.into()).map(Arc::clone)
    }

    /// Refuses all actors that other theaters send from now on. Actors that were accepted before may still arrive.
    pub(crate) fn refuse_incoming_actors(&self) {
        let _incoming_actors = self.directory.incoming_actors();
        // Relaxed: it is read under the lock of the incoming actors, which this thread holds.
        self.refuses_incoming_actors.store(true, Ordering::Relaxed);
    }

    /// Returns whether incoming actors are refused. The caller holds the lock of the incoming actors.
    pub(crate) fn refuses_incoming_actors(&self) -> bool {
        self.refuses_incoming_actors.load(Ordering::Relaxed)
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Stops all calls and callers, and frees the address.
    pub(crate) fn close(self: &Arc<Self>) {
        self.closing.store(true, Ordering::Release);
        self.close_calls();
        self.note_changed();
        let Some(shutdown_waker) = &self.shutdown_waker else { return };
        // It can only fail if the system is out of memory; in that case the acceptor notices the end at the next caller.
        let _ = shutdown_waker.wake();
        let deadline = self.now() + ANSWER_TIME_MAX;
        let mut links = self.links();
        while links.is_open && self.now() < deadline {
            links = self.wait(links);
        }
    }

    /// Notes that the listener was dropped.
    pub(crate) fn note_closed(&self) {
        self.links().is_open = false;
        self.note_changed();
    }

    /// Wakes the threads that wait for a change of the links.
    pub(crate) fn note_changed(&self) {
        self.changed.notify_all();
    }

    /// Ends the theater at once: no further message is handled, and no peer is told.
    pub(crate) fn end(self: &Arc<Self>) {
        self.close();
        self.lose_links(Duration::ZERO);
        let (_, stuck) = self.system.core().end(Duration::ZERO, &mut |_, _, _| {});
        if stuck == 0 {
            self.system.drop_services();
        }
    }

    /// Ends the workers within `limit`, and gives all links up. No actor is notified of lost theaters.
    pub(crate) fn lose_links(&self, limit: Duration) {
        self.system.core().end_workers(limit);
        self.poller.close();
        for link in self.all_links() {
            link.lose();
        }
        self.report_kept();
        // Connections whose end no worker will see any more are dropped too: they hold the links, and the links hold the system.
        self.poller.tidy();
    }

    pub(crate) fn hello(&self, resumes: Option<Resume>) -> Hello {
        Hello {
            cluster: self.settings.cluster.clone(),
            incarnation: self.incarnation,
            listens: self.listens,
            resumes,
            knows: match resumes {
                Some(_) => Vec::new(),
                None => self.directory.linked(),
            },
            lost: match resumes {
                Some(_) => Vec::new(),
                None => self.directory.lost(),
            },
            kinds: self.registry.kinds().to_vec(),
            link: None,
        }
    }

    /// Returns the greeting of a first call, for a link with a number of its own.
    pub(crate) fn first_hello(&self) -> Hello {
        let number = self.links().number();
        Hello { link: Some(number), ..self.hello(None) }
    }

    /// Makes a link that is about to have its first connection, which is prepared with the lock held. As soon as other threads
    /// know of the link, the housekeeper may call again, and connection 2 may exist before this thread continues. Connection 1,
    /// if prepared after that, would replace connection 2, with the count of packets that the other end had received at the
    /// start.
    fn new_link(
        &self,
        links: &mut Links,
        number: u64,
        hello: &Hello,
        called: Option<SocketAddr>,
        certificate: Option<Word32>,
    ) -> Arc<Link> {
        let peer = (hello.incarnation, called, hello.listens);
        let shutdown_waker = Arc::clone(&self.changed);
        let link = Link::new(
            &self.directory,
            &self.registry,
            number,
            peer,
            &hello.kinds,
            (self.settings.window, shutdown_waker),
        );
        link.note_remote_number(hello.link);
        self.directory.add_link(hello.incarnation, &link);
        let known = KnownTheater {
            link: Arc::clone(&link),
            calls: Calling::new(called.is_some(), hello.link),
            called_at: called,
            certificate,
            terminated: None,
            stuck: Duration::ZERO,
        };
        links.by_incarnation.insert(hello.incarnation, known);
        link.prepare(1);
        link
    }

    // -- calls --------------------------------------------------------------------------------------------------------

    /// Returns the link with the theater at this address; calls it if necessary.
    pub(crate) fn link_with(self: &Arc<Self>, callee: Callee) -> Result<Arc<Link>, TheaterError> {
        self.link_within(callee, ANSWER_TIME_MAX)
    }

    /// Does the same as [`TheaterCore::link_with`]; each step of the call may take `limit`. If another thread is calling that
    /// address already, this thread takes the result of that call.
    pub(crate) fn link_within(self: &Arc<Self>, callee: Callee, limit: Duration) -> Result<Arc<Link>, TheaterError> {
        let address = callee.address;
        if !self.settings.secrecy.allows(address) {
            return Err(TheaterError::NotLoopback { address: address.to_string() });
        }
        if let Some(system) = self.simulated() {
            let found = Arc::new(Mutex::new(None));
            let take = Arc::clone(&found);
            let found = || found.lock().unwrap_or_else(PoisonError::into_inner);
            self.reach(callee, Box::new(move |link| *take.lock().unwrap_or_else(PoisonError::into_inner) = Some(link)));
            system.block_until(None, &mut || found().is_some());
            let link = found().take();
            return link.expect("the caller is answered, or its call fails");
        }
        let deadline = self.now() + 2 * ANSWER_TIME_MAX;
        let mut hung_up = 0;
        let mut links = self.links();
        loop {
            if let Some(link) = links.at(callee) {
                return Ok(Arc::clone(link));
            }
            let outcome = match links.calling.entry(address) {
                Entry::Vacant(entry) => Arc::clone(entry.insert(Called::default())),
                Entry::Occupied(entry) => {
                    let outcome = Arc::clone(entry.get());
                    while outcome.get().is_none() && links.is_called(address, &outcome) {
                        links = self.wait(links);
                    }
                    match outcome.get() {
                        Some(found) => return found.as_ref().map(Arc::clone).map_err(TheaterError::copy),
                        None => continue,
                    }
                }
            };
            drop(links);
            let hello = self.first_hello();
            let called = self.called(address, &hello, self.exchange(address, &hello, limit));
            links = self.links();
            if let Some(found) = called.as_ref().map(Option::as_ref).map_err(TheaterError::copy).transpose() {
                // The cell is set once, by this thread.
                let _ = outcome.set(found.map(Arc::clone));
            }
            links.calling.remove(&address);
            self.note_changed();
            match called {
                Ok(Some(link)) => return Ok(link),
                // The other theater is calling this one, or must forget an older link first.
                Ok(None) if self.now() < deadline => links = self.wait(links),
                Ok(None) => return Err(only_busy(address)),
                // The other theater may have evicted this caller.
                Err(error) if error.is_hang_up() && hung_up < HANG_UPS_MAX => {
                    hung_up += 1;
                    links = self.wait(links);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Says `hello` to the theater at `address`, and returns the answer; each step may take `limit`.
    pub(crate) fn exchange(&self, address: SocketAddr, hello: &Hello, limit: Duration) -> Exchanged {
        let io_error = |error| TheaterError::Io { address: address.to_string(), error };
        let wire =
            guarded(|| self.settings.transport.connect(address, limit)).map(GuardedWire::new).map_err(io_error)?;
        let mut opening = Opening::call(wire, address.to_string(), self.settings.secrecy.tls(), limit)?;
        let credentials = self.credentials.as_ref().expect("it is not simulated");
        let member = handshake::prove(&mut opening, credentials, &self.settings.cluster)?;
        let reply = handshake::call(&mut opening, hello, member)?;
        let line = opening.into_parts().map_err(io_error)?;
        Ok((reply, line))
    }

    fn wait<'a>(&self, links: MutexGuard<'a, Links>) -> MutexGuard<'a, Links> {
        self.changed.wait_timeout(links, TICK).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Handles the answer to a first call that has `said` this. `None`: the other end is busy.
    pub(crate) fn called(
        &self,
        address: SocketAddr,
        said: &Hello,
        exchanged: Exchanged,
    ) -> Result<Option<Arc<Link>>, TheaterError> {
        let io_error = |error| TheaterError::Io { address: address.to_string(), error };
        let (hello, (stream, cipher)) = match exchanged? {
            (Reply::Hello(hello), line) => (hello, line),
            (Reply::Busy, _) => return Ok(None),
            (Reply::GivenUp(theater), _) => {
                self.give_up_link(theater, said);
                return Ok(None);
            }
            (Reply::Refused(why), _) => return Err(TheaterError::Refused { address: address.to_string(), why }),
        };
        let certificate = cipher.as_ref().and_then(Cipher::certificate);
        let (link, given_up) = {
            let mut links = self.links();
            let known = links.by_incarnation.get_mut(&hello.incarnation);
            if let Some(known) = known.filter(|known| !known.link.is_lost()) {
                if known.certificate != certificate {
                    return Err(TheaterError::Tls { address: address.to_string(), why: OTHER_CERTIFICATE.to_owned() });
                }
                let link = Arc::clone(&known.link);
                let said = Claim { knows: said.knows.contains(&hello.incarnation), number: said.link };
                let is_found = known.calls.finds_itself(known.sight(), said, hello.link);
                link.note_remote_number(known.calls.known_as);
                if !is_found {
                    return Ok(None);
                }
                links.aliases.insert(address, hello.incarnation);
                return Ok(Some(link));
            }
            // Relaxed: it is read under the lock of the links. Nothing would announce the shutdown to the other end.
            if self.leaving.load(Ordering::Relaxed) {
                return Err(TheaterError::System("this theater is closing".to_owned()));
            }
            let lost = self.directory.lost_link(hello.incarnation).flatten();
            if !calling::makes(said.knows.contains(&hello.incarnation), hello.link, lost) {
                return Ok(None);
            }
            if self.directory.is_forgetting(hello.incarnation) {
                return Ok(None);
            }
            let full = |why| TheaterError::Refused { address: address.to_string(), why };
            let given_up = links.make_room().map_err(full)?;
            let number = said.link.unwrap_or_else(|| links.number());
            let link = self.new_link(&mut links, number, &hello, Some(address), certificate);
            (link, given_up)
        };
        given_up.inspect(|link| link.lose());
        seam(2);
        self.poller.add(&link, stream, cipher, 1, 0).map_err(io_error)?;
        Ok(Some(link))
    }

    /// Gives up the link that this end has `said` to have, because the other end has given it up.
    fn give_up_link(&self, theater: u64, said: &Hello) {
        let given_up = {
            let links = self.links();
            let said = Claim { knows: said.knows.contains(&theater), number: said.link };
            let known = links.by_incarnation.get(&theater);
            known.filter(|known| Calling::is_lost_there(known.sight(), said)).map(|known| Arc::clone(&known.link))
        };
        given_up.inspect(|link| self.lose_or_leave(link));
    }

    /// Gives the link up. If this theater shuts down, its actors are not notified, and the link needs no shutdown announcement.
    fn lose_or_leave(&self, link: &Link) {
        // Relaxed: if the shutdown begins after this load, the link counts as lost before it.
        match self.leaving.load(Ordering::Relaxed) {
            true => link.note_left(),
            false => link.lose(),
        }
    }

    /// Calls again.
    fn call_again(self: &Arc<Self>, link: &Arc<Link>, address: SocketAddr, connection: u64, known_as: Option<u64>) {
        seam(2);
        let received = {
            let links = self.links();
            let known = links.by_incarnation.get(&link.incarnation).filter(|known| Arc::ptr_eq(&known.link, link));
            if known.is_none_or(|known| known.calls.connection != connection) {
                // The other end has called since then, and its connection must not be broken.
                drop(links);
                return self.end_call(link, Outcome::Nothing);
            }
            link.prepare(connection)
        };
        let resumes = Resume { incarnation: link.incarnation, received, connection, link: known_as };
        let hello = Hello { link: Some(link.number()), ..self.hello(Some(resumes)) };
        let Some(outside) = &self.outside else {
            return self.called_again(link, connection, self.exchange(address, &hello, self.call_limit()));
        };
        let (theater_core, link) = (Arc::clone(self), Arc::clone(link));
        let on_reply: OnReply = Box::new(move |reply| theater_core.called_again(&link, connection, reply.map(plain)));
        outside.call(address, hello, on_reply);
    }

    /// Calls a theater that made a link, has sent nothing in it, and does not call again. The answer to its call may have been
    /// lost, and in that case it does not know of the link. It then makes the link as well, and is called again in it.
    fn call_anew(self: &Arc<Self>, link: &Arc<Link>, address: SocketAddr) {
        let (theater_core, theater) = (Arc::clone(self), link.incarnation);
        let hello = Hello { link: Some(link.number()), ..self.hello(None) };
        if !hello.knows.contains(&theater) {
            // The link was lost since then, and another link would need another number.
            return self.end_call(link, Outcome::Nothing);
        }
        let (said, link) = (hello.clone(), Arc::clone(link));
        let called = move |exchanged: Exchanged| {
            // A failed call is repeated.
            let _ = theater_core.called(address, &said, exchanged);
            theater_core.end_call(&link, Outcome::Nothing);
        };
        match &self.outside {
            None => called(self.exchange(address, &hello, self.call_limit())),
            Some(outside) => outside.call(address, hello, Box::new(move |reply| called(reply.map(plain)))),
        }
    }

    pub(crate) fn called_again(&self, link: &Arc<Link>, connection: u64, exchanged: Exchanged) {
        let outcome = match exchanged {
            Ok((Reply::Hello(Hello { incarnation, resumes: Some(theirs), link: number, .. }), (stream, cipher)))
                if incarnation == link.incarnation
                    && self.has_shown(incarnation, cipher.as_ref().and_then(Cipher::certificate)) =>
            {
                if let Some(known) = self.links().by_incarnation.get_mut(&incarnation)
                    && Arc::ptr_eq(&known.link, link)
                {
                    known.calls.goes_on(known.sight(), number);
                    link.note_remote_number(known.calls.known_as);
                }
                // A failed connection is repeated at the next tick, until the link is given up.
                let _ = self.poller.add(link, stream, cipher, connection, theirs.received);
                Outcome::GoesOn
            }
            // The next tick calls again.
            Ok((Reply::Busy, _)) => Outcome::Busy,
            // Relaxed: for the same reason as in `lose_or_leave`.
            Err(error) if error.is_refusal() && self.leaving.load(Ordering::Relaxed) => {
                // No theater listens that could receive the shutdown announcement. A network that refuses calls for a moment is
                // waited for.
                if link.unchanged_for() >= 4 * TICK {
                    link.note_left();
                }
                Outcome::Nothing
            }
            Err(_) => Outcome::Nothing,
            // The other end does not know the session any more.
            Ok((Reply::Hello(_) | Reply::GivenUp(_) | Reply::Refused(_), _)) => {
                self.lose_or_leave(link);
                Outcome::Nothing
            }
        };
        self.end_call(link, outcome);
    }

    /// Notes the end of a further call, or of a call like a first one.
    fn end_call(&self, link: &Arc<Link>, outcome: Outcome) {
        let mut links = self.links();
        let known = links.by_incarnation.get_mut(&link.incarnation);
        if let Some(known) = known.filter(|known| Arc::ptr_eq(&known.link, link)) {
            known.calls.note_outcome(outcome);
            if outcome == Outcome::GoesOn {
                // The housekeeper runs only at ticks, and would miss a connection that breaks again before the next one.
                known.terminated = None;
            }
        }
    }

    // -- care of links ------------------------------------------------------------------------------------------------

    /// Checks the links at each tick until the theater closes.
    pub(crate) fn keep(self: &Arc<Self>) {
        while !self.is_closing() {
            drop(self.wait(self.links()));
            // A tick may end links, and thereby run user code.
            contained(|| self.tick());
        }
    }

    /// Does the housekeeper's work of one tick.
    pub(crate) fn tick(self: &Arc<Self>) {
        self.look_after_links();
        for (id, act) in self.directory.take_again() {
            contained(|| act.run(id, self.registry.controls(id)));
        }
        contained(|| self.end_late());
        contained(|| self.keeping().iter().for_each(|route| route.let_on()));
        self.directory.forget_ended();
        contained(|| self.directory.take_unlinked().iter().for_each(PendingProxy::call_ahead));
        contained(|| self.look_for_cycles());
        contained(|| self.do_what_is_due());
        self.poller.tidy();
    }

    fn look_after_links(self: &Arc<Self>) {
        let mut again = Vec::new();
        let mut given_up = Vec::new();
        let mut links = self.links();
        // Relaxed: it is written under the same lock of the links, which this thread holds.
        let leaving = self.leaving.load(Ordering::Relaxed);
        let now = self.now();
        // If the last tick is long ago, this process was paused, and received nothing for that reason.
        let passed = now.saturating_sub(std::mem::replace(&mut links.looked_at, now)).min(LOOKED_AWAY_MAX);
        links.by_incarnation.retain(|_, known| !known.link.is_lost());
        self.poller.tick(passed);
        let deaf = self.poller.is_deaf();
        // At least twice the time after which the other end sends a keep-alive.
        let silent_max = (self.settings.lost_after / 3).clamp(2 * MUTE_MAX, SILENT_MAX);
        for known in links.by_incarnation.values_mut().filter(|known| !known.link.is_left()) {
            let link = &known.link;
            if let Some(connection) = link.connection() {
                known.terminated = None;
                known.calls.connects();
                if link.silent.add(passed) > silent_max || deaf {
                    link.disconnect(&connection);
                }
                if link.mute.add(passed) > MUTE_MAX {
                    self.poller.demand_heartbeat(link);
                }
                known.stuck = if link.takes_nothing() { known.stuck + passed } else { Duration::ZERO };
                if known.stuck > self.settings.lost_after.max(STUCK_MIN) {
                    given_up.push(Arc::clone(link));
                    continue;
                }
                link.tidy();
                link.flush(true);
                continue;
            }
            let terminated = known.terminated.map_or(Duration::ZERO, |terminated| terminated + passed);
            known.terminated = Some(terminated);
            if terminated > self.settings.lost_after {
                given_up.push(Arc::clone(link));
            } else if let Some(address) = link.address.filter(|_| !deaf) {
                let (sight, is_lower) = (known.sight(), self.incarnation < known.link.incarnation);
                if let Some(due) = known.calls.due(sight, leaving, terminated > UNHEARD_MAX, is_lower) {
                    again.push((Arc::clone(&known.link), address, due));
                }
            }
        }
        drop(links);
        for link in given_up {
            contained(|| self.lose_or_leave(&link));
        }
        for (link, address, due) in again {
            let theater_core = Arc::clone(self);
            let called = Arc::clone(&link);
            let call = move || {
                let called = contained(|| match due {
                    Due::Again { connection, link: known_as } => {
                        theater_core.call_again(&link, address, connection, known_as);
                    }
                    Due::Anew => theater_core.call_anew(&link, address),
                });
                if called.is_none() {
                    theater_core.end_call(&link, Outcome::Nothing);
                }
            };
            if self.in_background("call", call).is_err() {
                // No thread can be started: the next tick calls again.
                self.end_call(&called, Outcome::Nothing);
            }
        }
    }
}

/// Returns the error for a theater that answered "busy" each time.
pub(crate) fn only_busy(address: SocketAddr) -> TheaterError {
    let why = "it answered that it is calling this theater, and never connected".to_owned();
    TheaterError::Refused { address: address.to_string(), why }
}

/// Adds the cipher to a reply in simulation, where nothing is encrypted.
pub(crate) fn plain((reply, stream): (Reply, Stream)) -> (Reply, (Stream, Option<Cipher>)) {
    (reply, (stream, None))
}

#[cfg(test)]
mod tests {
    use crate::Theater;

    /// Without the lock, a slow thread would prepare connection 1 after connection 2.
    #[test]
    fn the_first_connection_of_a_link_is_prepared_before_others_know_of_the_link() {
        let start = || Theater::builder().listen("127.0.0.1:0").start().unwrap();
        let (theater, peer) = (start(), start());
        let hello = peer.theater_core.first_hello();
        let link = {
            let mut links = theater.theater_core.links();
            let number = links.number();
            let link = theater.theater_core.new_link(&mut links, number, &hello, peer.address(), None);
            assert_eq!(link.prepared(), 1);
            link
        };
        link.lose();
        peer.shutdown().unwrap();
        theater.shutdown().unwrap();
    }
}
