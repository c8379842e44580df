//! The housekeeper of a theater: the work that is due at every tick.

use std::sync::Arc;

use playhouse_executor::contained;

use crate::node::core::TheaterCore;
use crate::proxy::pending_proxy::PendingProxy;

impl TheaterCore {
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
        contained(|| self.proxies.keeping_mail().iter().for_each(|route| route.let_on()));
        self.directory.forget_ended();
        contained(|| self.proxies.take_unlinked().iter().for_each(PendingProxy::call_ahead));
        contained(|| self.look_for_cycles());
        contained(|| self.do_what_is_due());
        self.poller.tidy();
    }
}
