//! The nested handlers of a worker: those that run on another handler's stack, and the actors spawned lately.

use std::cell::Cell as StdCell;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use crate::memory::cell::Cell;
use crate::worker::Worker;

/// Handlers that run nested on one stack (short-circuit asks).
pub(crate) const NEST_MAX: usize = 64;

/// The last 8 actors that handlers have spawned on this worker's stages in the present gulp, while its log has the same
/// last segment. Each entry holds the end of the log at the spawn. All messages that wait for the actor are behind that
/// position. An ask to such an actor therefore searches only the end of the queue. In a tree that is asked while it is
/// spawned, the messages of other branches make the queue long.
#[derive(Default)]
pub(crate) struct Newborns {
    spawned: StdCell<usize>,
    last: [StdCell<(*mut Cell, *mut u8)>; NEWBORNS_MAX],
}

const NEWBORNS_MAX: usize = 8;

impl Newborns {
    pub(crate) fn note(&self, cell: NonNull<Cell>, tail: *mut u8) {
        let spawned = self.spawned.get();
        self.last[spawned % NEWBORNS_MAX].set((cell.as_ptr(), tail));
        self.spawned.set(spawned + 1);
    }

    pub(crate) fn forget(&self) {
        self.spawned.set(0);
    }

    /// Returns the position in the log's last segment behind which all messages for this actor are. Returns `None` for
    /// other actors.
    pub(crate) fn sent_to_from(&self, cell: NonNull<Cell>) -> Option<*mut u8> {
        let mut last = self.last[..self.spawned.get().min(NEWBORNS_MAX)].iter().map(StdCell::get);
        last.find(|(newborn, _)| *newborn == cell.as_ptr()).map(|(_, from)| from)
    }
}

/// A nested handler on this stack. Its stage is claimed as the stage of a record is (see `monitor.rs`).
///
/// The monitor reads the stage from `Worker::nest_stages`, never from the cell: the nested handler may end the actor,
/// and a vacant cell says stage 0.
pub(crate) struct Nest<'a>(&'a Worker, usize);

impl<'a> Nest<'a> {
    /// Claims `stage`, which is the stage of `cell`. The caller looks at the signal before it runs the handler.
    #[inline]
    pub(crate) fn enter(worker: &'a Worker, depth: usize, cell: NonNull<Cell>, stage: u16) -> Nest<'a> {
        worker.nest[depth].store(cell.as_ptr(), Ordering::Relaxed);
        worker.nest_stages[depth].store(u32::from(stage) + 1, Ordering::Relaxed);
        worker.nested.set(depth + 1);
        worker.light_fence();
        Nest(worker, depth)
    }
}

impl Drop for Nest<'_> {
    fn drop(&mut self) {
        self.0.nested.set(self.1);
        // Release: a new thread that runs this stage next, because the monitor did not find it in `nest_stages`, sees
        // what the handler has written.
        self.0.nest_stages[self.1].store(0, Ordering::Release);
    }
}
