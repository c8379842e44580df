//! The stages with stubs, each with its *turnstile*: an actor that is always away.
//!
//! A request to the turnstile comes behind all that the same worker has sent to that stage before. Drains wait for such requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use playhouse_executor::{Address, AwayCx, Control, ControlCx, Crash, Cx, Ending, Resident, SystemCore};

use crate::lock::lock;

/// The type of turnstiles.
struct Turnstile;

impl Resident for Turnstile {
    type Extra = ();

    fn name() -> &'static str {
        "the theater"
    }

    fn ended(&mut self, _: Option<Box<()>>, _: Ending, _: &mut Cx<Self>) {}

    fn crashed(_: Crash, _: &mut ControlCx<Self>) {}
}

/// A request that is dropped when it comes to the turnstile.
struct Passes<T>(Arc<T>);

impl<T: Send + Sync + 'static> Control<Turnstile> for Passes<T> {
    fn run(self, _: &mut ControlCx<Turnstile>) {
        drop(self.0);
    }

    fn send_on(self, _: &mut AwayCx<Turnstile>) {
        drop(self.0);
    }
}

/// The turnstiles of a theater, by stage.
#[derive(Default)]
pub(crate) struct Turnstiles(Mutex<BTreeMap<u16, Address<Turnstile>>>);

impl Turnstiles {
    fn by_stage(&self) -> MutexGuard<'_, BTreeMap<u16, Address<Turnstile>>> {
        lock(&self.0)
    }

    /// Notes that this stage has a stub, or will have one before any actor can send to it.
    pub(crate) fn note_stage(&self, core: &SystemCore, stage: u16) {
        self.by_stage().entry(stage).or_insert_with(|| core.spawn_away::<Turnstile>(stage, (), None));
    }

    /// Drops a reference to `waits` when requests have come to all turnstiles.
    pub(crate) fn pass<T: Send + Sync + 'static>(&self, waits: &Arc<T>) {
        let turnstiles: Vec<_> = self.by_stage().values().copied().collect();
        for turnstile in turnstiles {
            turnstile.send_control_behind(Passes(Arc::clone(waits)));
        }
    }
}
