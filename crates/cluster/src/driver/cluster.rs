//! The handle to a cluster.

use std::fmt;
use std::sync::Arc;

use playhouse_actor::{ActorRef, Ask, HandledBy, Placement, SpawnOptions, ToRecipient};
use playhouse_theater::Theater;
use playhouse_toolbox::durable::Ledger;

use super::clock::Clock;
use super::errors::JoinError;
use super::kinds::Kinds;
use super::ledger_port::LedgerPort;
use super::letters::NAME;
use super::member::{Event, MemberActor};
use super::options::ClusterOptions;
use super::requests::{Activated, Leave, Watch};
use super::state::{ClusterState, Shared};
use crate::membership::Membership;
use crate::view::{Member, MemberId, View};

/// A theater's part in a cluster. Cheap to clone. Dropping it ends nothing: the theater is a member until it [leaves](Cluster::leave) or ends.
///
/// The members share the keys of the cluster as slots. Each slot has at most one owner, which runs it while its lease lasts. Owners hand slots over until
/// the numbers of slots differ by at most 1. They begin no such hand-over while a member joins, leaves or is suspected, or while the versions of the
/// program differ.
///
/// # Examples
///
/// ```
/// use playhouse_cluster::{Cluster, ClusterOptions};
/// use playhouse_theater::Theater;
/// use playhouse_toolbox::durable::MemoryStore;
///
/// let ledger = MemoryStore::new(); // in production a ledger that all processes reach
/// let theater = Theater::builder().listen("127.0.0.1:0").start()?;
/// let cluster = Cluster::join(&theater, ledger, ClusterOptions::new().slots(64))?;
/// let me = cluster.activated().wait()?;
/// assert_eq!(cluster.owner(7), Some(me));
/// assert_eq!(cluster.runs(7), Some(1), "the first epoch");
///
/// cluster.leave().wait()?;
/// assert_eq!(cluster.runs(7), None);
/// # theater.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Cluster {
    pub(crate) shared: Arc<Shared>,
    pub(crate) member: ActorRef<MemberActor>,
    pub(crate) theater: Theater,
    pub(crate) kinds: Arc<Kinds>,
}

impl Cluster {
    /// Makes `theater` a member of the cluster in `ledger`, or begins a cluster if the ledger has none. All members use the same ledger. A
    /// member of a cluster that exists takes over its durations and slots.
    ///
    /// Returns at once. The theater joins in the background for as long as it takes: see [`Cluster::activated`]. A member that the others declare dead
    /// drops its slots, and joins again as another one.
    ///
    /// Other members call the [`address`](Theater::address) of the theater. A call that is refused counts as the end of the member. An address at which
    /// nothing listens, and a firewall that rejects packets instead of dropping them, therefore end a member that lives.
    ///
    /// Nobody restores, erases or deletes the data of the ledger while members run. They would run on for a time, and a theater that joins then would
    /// begin another cluster beside them.
    ///
    /// A crash of the member, for example by a log that panics, ends it at once: nothing runs, and the theater may join again.
    ///
    /// The [`lost_after`](playhouse_theater::TheaterBuilder::lost_after) of the theater stays in force. Set it above the lease, as its default is: a
    /// theater that is lost sooner loses messages, although the cluster still counts on it.
    ///
    /// # Errors
    /// The theater has no address or is a member already, the options are not possible, or threads could not be started.
    pub fn join(theater: &Theater, ledger: impl Ledger, options: ClusterOptions) -> Result<Cluster, JoinError> {
        let Some(address) = theater.address() else { return Err(JoinError::NoAddress) };
        let system = theater.system();
        Membership::new(MemberId(0), address.to_string(), 0, options.config(0)).map_err(JoinError::Options)?;
        let shared = Arc::new(Shared::new(Clock::of(system)));
        let ledger = LedgerPort::new(system, Arc::new(ledger)).map_err(JoinError::Threads)?;
        let actor = MemberActor::new(theater, options, Arc::clone(&shared), ledger);
        let placement = SpawnOptions::new().placement(Placement::Dedicated).name("member");
        let member = system.try_spawn_with(placement, actor).map_err(JoinError::Actor)?;
        // Other members conclude from a theater without a published member that the member has ended. The life therefore begins afterwards.
        if let Err(error) = theater.publish(NAME, member) {
            member.stop();
            return Err(JoinError::Member(error));
        }
        member.tell(Event::Begin);
        Ok(Cluster { shared, member, theater: theater.clone(), kinds: Arc::new(Kinds::default()) })
    }

    /// Waits until this member is active and has a lease: `.await` or `.wait()`. The answer is its id.
    ///
    /// # Errors
    /// When awaited: the member has left, or its theater has ended. The wait has no limit of its own, because the ledger may be away.
    pub fn activated(&self) -> Ask<Activated> {
        self.member.ask(Activated)
    }

    /// Leaves the cluster: hands all slots over, and waits until the ledger knows it: `.await` or `.wait()`. The theater may join again afterwards.
    ///
    /// The virtual actors of a slot are passivated before it is handed over.
    ///
    /// The wait has no limit of its own, because the ledger may be away. A theater that ends without leaving is declared dead, and its slots wait for a
    /// lease.
    ///
    /// # Errors
    /// When awaited: the member has left before, or its theater has ended.
    pub fn leave(&self) -> Ask<Leave> {
        self.member.ask(Leave)
    }

    /// Returns the epoch of a slot, if this member runs it now and no other one does. The lease is checked against the time of the call.
    ///
    /// The epoch rises with each change of the owner. After the end of a member without a farewell, the next owner waits for a lease before it runs the
    /// slot. [`Cluster::runs_fenced`] does not wait.
    pub fn runs(&self, slot: usize) -> Option<u64> {
        self.shared.runs(slot, true)
    }

    /// Returns the epoch of a slot, if this member runs it now for work that the epoch protects. The lease is checked against the time of the call.
    ///
    /// The former owner may run the slot too, at a lower epoch, until its lease ends. A store must therefore decide: it notes the highest epoch that
    /// has claimed the slot, and refuses claims and writes below it, each in one transaction. An epoch belongs to one member. A member claims the slot
    /// before it reads from the store.
    ///
    /// A slot that [`Cluster::runs`] also runs here, at the same epoch.
    pub fn runs_fenced(&self, slot: usize) -> Option<u64> {
        self.shared.runs(slot, false)
    }

    /// Returns the owner of a slot in the present view. The owner runs the slot if it knows that view, and its lease lasts.
    pub fn owner(&self, slot: usize) -> Option<MemberId> {
        self.view()?.slots.get(slot)?.holder.owner()
    }

    /// Returns the members in the present view.
    pub fn members(&self) -> Vec<(MemberId, Member)> {
        self.view().map_or_else(Vec::new, |view| view.members.clone().into_iter().collect())
    }

    /// Returns the present view, or `None` before the ledger was read.
    pub fn view(&self) -> Option<Arc<View>> {
        self.state().view
    }

    /// Returns the cluster from the view of this member.
    pub fn state(&self) -> ClusterState {
        self.shared.state()
    }

    /// Sends the present state to `watcher`, and each later one. A watcher that is overloaded misses states between two others, and never the
    /// last one. The end of a lease is no new state, because it comes with the time: see [`Cluster::runs`]. After the end of the member, no state comes.
    pub fn watch<A, Mode>(&self, watcher: ActorRef<A>)
    where
        A: playhouse_actor::Actor,
        ClusterState: HandledBy<A, Mode>,
    {
        self.member.tell(Watch(watcher.recipient()));
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ClusterState { me, view, open, .. } = self.state();
        let version = view.as_ref().map(|view| view.version);
        f.debug_struct("Cluster").field("me", &me).field("version", &version).field("open", &open).finish()
    }
}
