//! The route of a stub's mail over a link.

use std::any::Any;
use std::sync::Arc;

use playhouse_actor::away::{ForwardedMessage, Forwarder, RefCodec};
use playhouse_actor::wire::Written;
use playhouse_actor::{ActorId, Notify, Watcher};

use crate::link::Link;
use crate::link::frame::Handle;

/// An actor at the other end of a link.
pub(crate) struct Proxy {
    link: Arc<Link>,
    ref_codec: Arc<dyn RefCodec>,
    handle: Handle,
}

impl Proxy {
    pub(crate) fn new(link: Arc<Link>, handle: Handle) -> Proxy {
        Proxy { ref_codec: Arc::clone(&link) as Arc<dyn RefCodec>, link, handle }
    }
}

impl Proxy {
    /// Returns whether the proxy leads nowhere.
    pub(crate) fn is_lost(&self) -> bool {
        self.link.is_lost()
    }

    /// Does the work of `carry` for a message that is written already, by names.
    pub(crate) fn carry_named(&self, forwarded: ForwardedMessage<'_>) -> Written {
        self.link.carry(self.handle, &self.ref_codec, forwarded, true)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.link.give_up(self.handle);
    }
}

impl Forwarder for Proxy {
    fn carry(&self, forwarded: ForwardedMessage<'_>) -> Written {
        self.link.carry(self.handle, &self.ref_codec, forwarded, false)
    }

    fn is_route_from(&self, id: ActorId) {
        if self.link.is_lost() {
            // The link was lost when it became the route: the thread that handles such stubs has examined this one
            // before.
            self.link.locate_again(id);
        }
    }

    fn take_watchers(&self) -> Vec<(Watcher, Notify)> {
        let watched = self.link.take_watches(self.handle);
        watched.into_iter().map(|(watcher, tell)| (watcher, Notify::Call(tell))).collect()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
