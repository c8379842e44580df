//! The theater as links and routes use it.

use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use playhouse_actor::ActorId;
use playhouse_actor::away::{MakeStub, Marker, TakeAnswer};
use playhouse_actor::wire::WireError;
use rustc_hash::FxHashSet;

use crate::error::TheaterError;
use crate::link::Link;
use crate::link::frame::Head;
use crate::link::node::{Callee, LostActor, MobileStart, Node, TakeLink, TakeLocateReply};
use crate::naming::{BirthName, RemoteActorId};
use crate::node::core::TheaterCore;
use crate::proxy::locate::Inquiry;
use crate::proxy::pending_proxy::PendingProxy;

/// Returns a theater as links and routes use it.
pub(super) fn as_node(theater_core: Weak<TheaterCore>) -> Weak<dyn Node> {
    theater_core
}

impl Node for TheaterCore {
    fn window_bytes(&self) -> usize {
        self.settings.window
    }

    fn lost_after(&self) -> Duration {
        self.settings.lost_after
    }

    fn call_limit(&self) -> Duration {
        TheaterCore::call_limit(self)
    }

    fn load(&self) -> f64 {
        TheaterCore::load(self)
    }

    fn is_simulated(&self) -> bool {
        self.simulated().is_some()
    }

    fn pause(&self, time: Duration) {
        TheaterCore::pause(self, time);
    }

    fn soon(self: Arc<Self>, job: Box<dyn FnOnce() + Send>) {
        TheaterCore::soon(&self, job);
    }

    fn until_done(&self, name: &str, every: Duration, job: Box<dyn FnMut() -> bool + Send>) -> io::Result<()> {
        TheaterCore::until_done(self, name, every, job)
    }

    fn report(self: Arc<Self>, error: TheaterError) {
        TheaterCore::report(&self, error);
    }

    fn calls_again(&self, theater: u64) -> bool {
        TheaterCore::calls_again(self, theater)
    }

    fn reach_later(self: Arc<Self>, callee: Callee, retry_for: Duration, take: TakeLink) {
        TheaterCore::reach_later(&self, callee, retry_for, take);
    }

    fn reach_hosts(self: Arc<Self>, actors: &[ActorId], known: &FxHashSet<u64>, ended: Box<dyn FnOnce() + Send>) {
        self.migrations().authority.reach(&self, actors, known, ended);
    }

    fn stub_without_link(
        &self,
        teller: u64,
        names: (RemoteActorId, RemoteActorId),
        stub: MakeStub<'_>,
    ) -> Result<ActorId, WireError> {
        Ok(PendingProxy::settle(&self.proxies, teller, names, stub)?)
    }

    fn take_over(&self, stubs: &[ActorId]) {
        for id in stubs {
            if let Some(controls) = self.registry.controls(*id) {
                PendingProxy::take_over(&self.proxies, *id, controls);
            }
        }
    }

    fn locate(&self, lost_actors: Vec<LostActor>, lost: u64) {
        self.proxies.locate(lost_actors, lost);
    }

    fn inquire(&self, lost: u64, asked: (bool, Vec<u64>), actors: Vec<BirthName>, answer: TakeLocateReply) {
        Inquiry::begin(lost, asked, actors, &self.link_table, answer);
    }

    fn answer_marker(&self, id: ActorId, answer: TakeAnswer) {
        TheaterCore::answer_marker(self, id, answer);
    }

    fn fence_marker(self: Arc<Self>, id: ActorId, waits: Box<dyn Send>) -> Marker {
        TheaterCore::fence_marker(&self, id, waits)
    }

    fn start_mobile(self: Arc<Self>, link: &Link, start: MobileStart<'_>) -> Option<ActorId> {
        link.start_mobile(&self, start)
    }

    fn take_migration(self: Arc<Self>, link: &Link, head: Head, rest: &[u8]) {
        self.take_migration_frame(link, head, rest);
    }

    fn take_cycle(&self, link: &Link, head: Head, rest: &[u8]) {
        self.take_cycle_frame(link, head, rest);
    }
}
