//! The theater that links and routes belong to, as they use it.
//!
//! `theater` implements the trait, and gives it at construction. Links pass on the frames of other subsystems through it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use playhouse_actor::away::{MakeStub, Marker, TakeAnswer};
use playhouse_actor::wire::{Codec, MigrationVTable, Spawns, WireError};
use playhouse_actor::{ActorId, Tell, Watcher};
use rustc_hash::FxHashSet;

use crate::error::TheaterError;
use crate::link::Link;
use crate::link::frame::{Head, Whereabouts};
use crate::naming::{BirthName, Epoch, RemoteActorId};

/// The target of a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Callee {
    pub(crate) address: SocketAddr,
    /// The incarnation of the called theater, or `None` for any theater at this address.
    pub(crate) theater: Option<u64>,
    /// Whether the address is called although there is a link. That shows whether a theater listens at it.
    pub(crate) anew: bool,
}

impl Callee {
    /// Returns the theater of this incarnation.
    pub(crate) fn of(address: SocketAddr, theater: u64) -> Callee {
        Callee { address, theater: Some(theater), anew: false }
    }
}

impl From<SocketAddr> for Callee {
    fn from(address: SocketAddr) -> Callee {
        Callee { address, theater: None, anew: false }
    }
}

/// Takes the link with a theater, or the reason for its failure.
pub(crate) type TakeLink = Box<dyn FnOnce(Result<Arc<Link>, TheaterError>) + Send>;

/// An actor that was in a lost theater, according to this one, with its watchers over that route.
pub(crate) struct LostActor {
    pub(crate) id: ActorId,
    pub(crate) watchers: Vec<(Watcher, Tell)>,
}

/// Takes the knowledge about lost actors.
pub(crate) type TakeLocateReply = Box<dyn FnOnce(Vec<Option<Whereabouts>>) + Send>;

/// The written parts of a mobile actor that starts: its type, its codec, its name and epoch, whether it is a child, and its state.
pub(crate) struct MobileStart<'a> {
    pub(crate) entry: &'static Spawns,
    pub(crate) moves: MigrationVTable,
    pub(crate) codec: Codec,
    pub(crate) born: RemoteActorId,
    pub(crate) epoch: Epoch,
    pub(crate) is_child: bool,
    pub(crate) bytes: &'a [u8],
}

/// The theater of links and routes.
pub(crate) trait Node: Send + Sync {
    // -- its settings ----------------------------------------------------------------------------------------------------

    /// Returns the window of a link in bytes.
    fn window_bytes(&self) -> usize;

    /// Returns the time after which a theater is lost.
    fn lost_after(&self) -> Duration;

    /// Returns the limit of each step of a call whose failure is no more than a delay.
    fn call_limit(&self) -> Duration;

    /// Returns the load of this theater, from 0 to 1.
    fn load(&self) -> f64;

    fn is_simulated(&self) -> bool;

    // -- background work --------------------------------------------------------------------------------------------------

    /// Waits for some milliseconds.
    fn pause(&self, time: Duration);

    /// Runs a job in the background.
    fn soon(self: Arc<Self>, job: Box<dyn FnOnce() + Send>);

    /// Calls `job` in the background, again and again, with a pause of `every`, until it returns that it is done.
    fn until_done(&self, name: &str, every: Duration, job: Box<dyn FnMut() -> bool + Send>) -> io::Result<()>;

    /// Reports a peer that breaks the protocol.
    fn report(self: Arc<Self>, error: TheaterError);

    // -- calls ------------------------------------------------------------------------------------------------------------

    /// Returns whether the theater is being called again.
    fn calls_again(&self, theater: u64) -> bool;

    /// Calls a theater in the background. An unreachable theater is called again for as long as `retry_for`.
    fn reach_later(self: Arc<Self>, callee: Callee, retry_for: Duration, take: TakeLink);

    /// Has links made with the theaters that may know these actors, except for the `known` ones. Calls `ended` at the end.
    fn reach_hosts(self: Arc<Self>, actors: &[ActorId], known: &FxHashSet<u64>, ended: Box<dyn FnOnce() + Send>);

    // -- stubs and markers ------------------------------------------------------------------------------------------------

    /// Makes the stub of an actor in a theater without a link. The actor was born as the first name, and is at the second one, according to the
    /// theater `teller`.
    fn stub_without_link(
        &self,
        teller: u64,
        names: (RemoteActorId, RemoteActorId),
        stub: MakeStub<'_>,
    ) -> Result<ActorId, WireError>;

    /// Routes these stubs, whose actors do not migrate, to the lost theater of their actors, if their present routes lead nowhere.
    fn take_over(&self, stubs: &[ActorId]);

    /// Asks all other theaters for these actors, which were in the theater `lost`.
    fn locate(&self, lost_actors: Vec<LostActor>, lost: u64);

    /// Answers the locations of these actors, except in the theater `lost`. Theaters that were `asked`, the locating one among them, are not asked
    /// again. If it is not `for_others`, only the targets of actors are asked.
    fn inquire(&self, lost: u64, asked: (bool, Vec<u64>), actors: Vec<BirthName>, answer: TakeLocateReply);

    /// Answers a marker, because the actor is in this theater.
    fn answer_marker(&self, id: ActorId, answer: TakeAnswer);

    /// Returns a marker behind the mail that was sent to the stub `id`. `waits` is dropped when the marker was answered, or is lost.
    fn fence_marker(self: Arc<Self>, id: ActorId, waits: Box<dyn Send>) -> Marker;

    // -- frames of other subsystems ---------------------------------------------------------------------------------------

    /// Starts a mobile actor for the other end. Returns its stub.
    fn start_mobile(self: Arc<Self>, link: &Link, start: MobileStart<'_>) -> Option<ActorId>;

    /// Takes a frame of a migration.
    fn take_migration(self: Arc<Self>, link: &Link, head: Head, rest: &[u8]);

    /// Takes a frame of the search for cycles of asks.
    fn take_cycle(&self, link: &Link, head: Head, rest: &[u8]);
}
