//! The shared state of a theater, its start and its end.

use std::any::Any;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, Weak};
use std::time::Duration;

use mio::Waker;
use playhouse_actor::System;

use crate::error::TheaterError;
use crate::link::MigrationSlot;
use crate::link::link_table::LinkTable;
use crate::link::node::Node;
use crate::link::poller::Poller;
use crate::link::registry::Registry;
use crate::lock::lock;
use crate::naming::{Directory, Identity};
use crate::node::acceptor::Callers;
use crate::node::calls::Calls;
use crate::node::cycles::Cycles;
use crate::node::environment::Environment;
use crate::node::handshake::ANSWER_TIME_MAX;
use crate::node::identity::Credentials;
use crate::node::links::Links;
use crate::node::load::Meter;
use crate::proxy::pending_proxies::PendingProxies;
use crate::transport::Transport;
use crate::transport::tls::Secrecy;

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

/// The state of a subsystem whose type the node does not know. The subsystem makes it at its first use.
#[derive(Default)]
pub(crate) struct StateSlot(OnceLock<Box<dyn Any + Send + Sync>>);

impl StateSlot {
    /// Returns the state.
    ///
    /// # Panics
    /// If the slot has a state of another type: each slot belongs to one subsystem.
    pub(crate) fn get<T: Any + Default + Send + Sync>(&self) -> &T {
        let state = &**self.0.get_or_init(|| Box::new(T::default()));
        state.downcast_ref().expect("a slot belongs to one subsystem")
    }
}

/// Returns a theater as links and routes use it.
pub(crate) type AsNode = fn(Weak<TheaterCore>) -> Weak<dyn Node>;

/// The shared state of a theater.
pub(crate) struct TheaterCore {
    pub(crate) system: System,
    pub(crate) registry: Arc<Registry>,
    pub(crate) incarnation: u64,
    /// The address of the listener.
    pub(crate) bound: Option<SocketAddr>,
    /// The address that other theaters call.
    pub(crate) listens: Option<SocketAddr>,
    pub(crate) settings: Settings,
    pub(crate) poller: Arc<Poller>,
    pub(crate) directory: Arc<Directory>,
    pub(crate) link_table: Arc<LinkTable>,
    pub(crate) proxies: Arc<PendingProxies>,
    pub(super) links: Mutex<Links>,
    /// Notified when a link has changed.
    pub(super) changed: Arc<Condvar>,
    pub(crate) callers: Callers,
    /// `None` in simulation, where no theater proves anything.
    pub(crate) credentials: Option<Credentials>,
    /// Interrupts the thread that waits for callers; `None` if there is no such thread.
    shutdown_waker: Option<Waker>,
    closing: AtomicBool,
    meter: Mutex<Meter>,
    /// The state of the search for cycles of asks.
    pub(crate) cycles: Mutex<Cycles>,
    pub(crate) calls: Calls,
    /// This theater takes no incoming actors, because it is being evacuated or shuts down.
    refuses_incoming_actors: AtomicBool,
    /// The shutdown is being announced: no new sessions are made.
    pub(super) leaving: AtomicBool,
    /// Theaters without links are not called any more. Changed under the lock of the links.
    pub(super) calls_no_more: AtomicBool,
    /// The state of migrations.
    pub(crate) migrations: StateSlot,
    /// Replaces threads and sockets in simulation.
    pub(crate) outside: Option<Arc<dyn Environment>>,
}

impl TheaterCore {
    pub(crate) fn new(
        registry: Registry,
        system: System,
        (bound, listens): (Option<SocketAddr>, Option<SocketAddr>),
        settings: Settings,
        (poller, shutdown_waker): (Arc<Poller>, Option<Waker>),
        (identity, credentials, outside): (Identity, Option<Credentials>, Option<Arc<dyn Environment>>),
        (as_node, new_migration_slot): (AsNode, fn() -> Box<dyn MigrationSlot>),
    ) -> Arc<TheaterCore> {
        let incarnation = identity.incarnation;
        let directory = Directory::new(system.core(), identity, listens);
        Arc::new_cyclic(|this: &Weak<TheaterCore>| {
            let link_table =
                Arc::new(LinkTable::new(directory, registry, as_node(Weak::clone(this)), new_migration_slot));
            TheaterCore {
                registry: Arc::clone(&link_table.registry),
                directory: Arc::clone(&link_table.directory),
                proxies: Arc::new(PendingProxies::new(&link_table)),
                link_table,
                system,
                incarnation,
                bound,
                listens,
                settings,
                poller,
                links: Mutex::new(Links::new(shutdown_waker.is_some())),
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
                calls_no_more: AtomicBool::new(false),
                migrations: StateSlot::default(),
                outside,
            }
        })
    }

    /// Returns the load of this theater, from 0 to 1.
    pub(crate) fn load(&self) -> f64 {
        lock(&self.meter).read(&self.system)
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
        self.proxies.report_kept();
        // Connections whose end no worker will see any more are dropped too: they hold the links, and the links hold the system.
        self.poller.tidy();
    }
}
