//! Waiting until all that was sent from this theater before some moment is in the mailboxes of its receivers.
//!
//! A migrating actor is *drained* before its source commits. If it began in the target earlier, its messages from the target could overtake its
//! messages from the source. The moment is that of the call, and the messages are those of the calling stage:
//!
//! 1. *Stages.* Mail goes through the cells of its receivers in this theater. Each stage with stubs has a *turnstile*, an actor that is always away.
//!    A request to the turnstile comes behind all that the same worker has sent to that stage before.
//! 2. *Stubs that keep mail.* A marker goes behind the mail at a stub that reroutes, or that has its theater called. The marker is answered where the
//!    actor lives.
//! 3. *Links.* A fence goes behind all that was sent over a link since the last fence. The other theater answers when all that it read before is in
//!    mailboxes. For each receiver of that mail, it sends a marker, because the actor may be in another theater.
//!
//! Steps 2 and 3 do not wait for each other. Actors that leave in one gulp of a worker are drained together: step 1 begins at the gulp's end.
//!
//! A theater may be silent for as long as it is not lost, and an answer may come over several theaters. An actor that is not drained after 3 times
//! that long stays in the source. It is frozen during the drain, and must not wait for a theater that never answers. A handler that does not return
//! delays the markers for its actor. For that reason, actors of a theater that has sent to this actor stay, too.
//!
//! # Why no two wait for each other
//!
//! A marker is answered at once where the actor lives, also if the actor is frozen for a migration. It waits where a stub reroutes, and where an
//! arrived actor waits for the end of a reroute. Reroutes wait for markers of their own only ([`reroute`](crate::migration::reroute)), and never for a
//! drain.

use std::any::Any;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use playhouse_executor::flush_soon;

use crate::lock::lock;
use crate::migration::commit::{Departure, Left};
use crate::migration::in_theater::MigrationState;
use crate::node::core::TheaterCore;

/// The number of successive theaters that may each be silent just short of a loss before the actor stays.
const DEPARTURES_LAST: u32 = 3;

/// Called when the drain has ended.
type Drained = Box<dyn FnOnce() + Send>;

thread_local! {
    /// The drains to begin at the end of this thread's gulp; they are one.
    static WAITING: RefCell<Vec<(Arc<TheaterCore>, Drained)>> = const { RefCell::new(Vec::new()) };
}

/// Begins the drains of this thread's gulp.
pub(crate) fn begin_drains() {
    let mut waiting = WAITING.take();
    while let Some((theater_core, _)) = waiting.first() {
        let theater_core = Arc::clone(theater_core);
        let of_theater_core = waiting.extract_if(.., |(of, _)| Arc::ptr_eq(of, &theater_core));
        let rest = Arc::new(DrainGuard(Mutex::new(of_theater_core.map(|(_, drained)| drained).collect())));
        theater_core.pass_turnstiles(rest);
    }
}

/// Lives until requests have come to all turnstiles.
struct Stages {
    theater_core: Arc<TheaterCore>,
    rest: Arc<DrainGuard>,
}

impl Drop for Stages {
    fn drop(&mut self) {
        self.theater_core.drain_stubs_and_links(&self.rest);
    }
}

/// Lives until markers and fences have been answered: then the last reference is dropped.
#[derive(Default)]
pub(crate) struct DrainGuard(Mutex<Vec<Drained>>);

impl Drop for DrainGuard {
    fn drop(&mut self) {
        let drained = std::mem::take(self.0.get_mut().unwrap_or_else(PoisonError::into_inner));
        drained.into_iter().for_each(|drained| drained());
    }
}

/// A migration that is cancelled if it takes too long.
pub(crate) enum MigrationDeadline {
    /// Actors that are to leave, and are not drained or accepted.
    Departure(Weak<Departure>),
    /// Actors whose source has committed, and that have not begun.
    Left(Weak<Left>),
}

impl MigrationDeadline {
    fn has_ended(&self) -> bool {
        match self {
            MigrationDeadline::Departure(departure) => departure.strong_count() == 0,
            MigrationDeadline::Left(left) => left.strong_count() == 0,
        }
    }

    fn give_up(self) {
        match self {
            MigrationDeadline::Departure(departure) => {
                if let Some(departure) = departure.upgrade() {
                    departure.give_up();
                }
            }
            MigrationDeadline::Left(left) => {
                if let Some(left) = left.upgrade() {
                    left.give_up();
                }
            }
        }
    }
}

impl MigrationState {
    fn late(&self) -> MutexGuard<'_, VecDeque<(Duration, MigrationDeadline)>> {
        lock(&self.late)
    }

    /// Returns the first migration that has ended, or whose time is over.
    fn over(&self, now: Duration) -> Option<MigrationDeadline> {
        let mut late = self.late();
        let (until, first) = late.front()?;
        let is_over = *until <= now || first.has_ended();
        is_over.then(|| late.pop_front()).flatten().map(|(_, first)| first)
    }
}

impl TheaterCore {
    /// Has a migration cancelled after 3 times the time after which a silent theater is lost.
    pub(crate) fn note_late(&self, late: MigrationDeadline) {
        let until = self.now().saturating_add(self.settings.lost_after.saturating_mul(DEPARTURES_LAST));
        self.migrations().late().push_back((until, late));
    }

    /// Cancels migrations that have taken too long.
    pub(crate) fn end_late(&self) {
        let now = self.now();
        while let Some(late) = self.migrations().over(now) {
            late.give_up();
        }
    }

    /// Calls `drained` when all that the present stage has sent from this theater is in the mailboxes of its receivers, or is lost. The worker that
    /// runs the stage calls this.
    pub(crate) fn drain(self: &Arc<Self>, drained: Drained) {
        WAITING.with_borrow_mut(|waiting| waiting.push((Arc::clone(self), drained)));
        if !flush_soon() {
            begin_drains();
        }
    }

    fn pass_turnstiles(self: &Arc<Self>, rest: Arc<DrainGuard>) {
        let stages = Arc::new(Stages { theater_core: Arc::clone(self), rest });
        self.link_table.turnstiles.pass(&stages);
    }

    /// Drops `rest` when all that was sent from stubs and over links of this theater is in the mailboxes of its receivers, or is lost.
    pub(crate) fn drain_stubs_and_links(self: &Arc<Self>, rest: &Arc<DrainGuard>) {
        for route in self.proxies.keeping_mail() {
            if let Some(id) = route.stub() {
                route.keep_marker(self.fence_marker(id, Arc::clone(rest)));
            }
        }
        for id in self.rerouting_stubs() {
            if let Some((moves, _)) = self.registry.migration_vtable(id) {
                (moves.pass_marker)(id, self.fence_marker(id, Arc::clone(rest)));
            }
        }
        for link in self.link_table.all_links() {
            link.fence(Arc::clone(rest) as Arc<dyn Any + Send + Sync>);
        }
    }
}
