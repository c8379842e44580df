//! Fences: the answer to a fence shows that all that was sent over a link before it has arrived.

use super::*;

/// Answers a fence when the last reference is dropped.
struct Fenced {
    link: Arc<Link>,
    ask: u64,
}

impl Drop for Fenced {
    fn drop(&mut self) {
        self.link.reply(self.ask, &());
    }
}

impl Link {
    /// Drops `rest` when all that was sent over this link is in mailboxes, or is lost.
    pub(crate) fn fence(self: &Arc<Self>, rest: FenceWait) {
        {
            let mut fences = lock(&self.fences);
            if !self.is_unfenced.load(Ordering::Acquire) {
                if let Some(last) = fences.waiting.back_mut() {
                    last.waits.push(rest);
                }
                return;
            }
        }
        let link = Arc::clone(self);
        // They wait in the order in which they are written, because this runs under the lock of `out`.
        let answer = |number| -> TakeAnswer {
            let mut fences = lock(&self.fences);
            self.is_unfenced.store(false, Ordering::Release);
            fences.waiting.push_back(FenceSent { number, is_answered: false, waits: vec![rest] });
            Box::new(move |_| {
                let ended = lock(&link.fences).answered(number);
                drop(ended);
            })
        };
        // On an error the answer says it.
        let _ = self.ask_numbered(answer, Lane::Normal, |ask, out| Head::Fence { ask }.write(out));
    }

    pub(super) fn take_fence(&self, ask: u64) {
        let fenced = Arc::new(Fenced { link: self.this(), ask });
        let Some(node) = self.node() else { return };
        for id in TARGETS.with_borrow_mut(Targets::take_reached) {
            if let Some((moves, _)) = self.registry.migration_vtable(id) {
                (moves.pass_marker)(id, Arc::clone(&node).fence_marker(id, Box::new(Arc::clone(&fenced))));
            }
        }
    }
}
