//! Spawning: the stage and the cell of a new actor.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::dispatch::actor_end::KindOf;
use crate::memory::cell::Cell;
use crate::memory::raw_address::RawAddress;
use crate::message::address::Address;
use crate::message::envelope::{Envelope, Resident};
use crate::message::mailbox_bound::Mailbox;
use crate::policy::choices::Choices;
use crate::policy::config::{StageChoice, limits};
use crate::sync::locks::lock;
use crate::worker;
use crate::worker::Worker;
use crate::worker::system_core::{Spawning, SystemCore};

impl SystemCore {
    /// Returns a random number for jitter, which needs no quality. In a simulated system, the same seed gives the same
    /// numbers.
    pub fn random(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        Choices::new(self.random.fetch_add(STEP, Ordering::Relaxed)).next()
    }

    fn choose_stage(&self, choice: StageChoice) -> Result<u16, String> {
        let spread = || (self.next_spread.fetch_add(1, Ordering::Relaxed) % self.config.stages) as u16;
        match choice {
            StageChoice::Near => Ok(worker::current()
                .filter(|w| w.system_id == self.id)
                .and_then(Worker::near_stage)
                .unwrap_or_else(spread)),
            StageChoice::Spread => Ok(spread()),
            StageChoice::At(stage) if (stage as usize) < self.config.stages => Ok(stage),
            StageChoice::At(stage) => {
                Err(format!("stage {stage}: this system has the stages 0 to {}", self.config.stages - 1))
            }
            // No thread is started any more for an actor that a sweep will end.
            StageChoice::Dedicated if self.simulation.is_some() || self.shutdown.closed.load(Ordering::Relaxed) => {
                Ok(spread())
            }
            StageChoice::Dedicated => lock(&self.threads.dedicated).pop().ok_or_else(|| {
                format!(
                    "dedicated: {} actors with a thread of their own exist already, which is the limit",
                    limits::DEDICATED_MAX
                )
            }),
        }
    }

    /// Returns a stage for actors that are to be together.
    pub fn next_stage(&self) -> u16 {
        (self.next_spread.fetch_add(1, Ordering::Relaxed) % self.config.stages) as u16
    }

    /// Puts `state` into a cell and starts it: `start` is its first message. From a handler, with a stage of the same
    /// worker, that message is run before this returns.
    ///
    /// # Errors
    /// A text, with the state: no such stage, or no thread for a dedicated one; or the system has ended.
    pub fn spawn<S: Resident, E: Envelope<S>>(
        self: &Arc<Self>,
        state: S,
        choice: StageChoice,
        start: E,
    ) -> Result<Address<S>, (S, String)> {
        let (state, start) = match choice {
            StageChoice::Near if worker::current().is_some_and(|w| w.system_id == self.id) => {
                match crate::dispatch::inline_call::spawn_near(state, start) {
                    Ok(address) => return Ok(address),
                    Err(back) => back,
                }
            }
            _ => (state, start),
        };
        self.settle(state, choice, start, None)
    }

    /// Does the same as [`SystemCore::spawn`] for an actor whose mailbox is bounded. Its first message is never run
    /// before this returns.
    ///
    /// # Errors
    /// The same as for [`SystemCore::spawn`].
    pub fn spawn_bounded<S: Resident, E: Envelope<S>>(
        self: &Arc<Self>,
        state: S,
        choice: StageChoice,
        start: E,
        bound: Mailbox,
    ) -> Result<Address<S>, (S, String)> {
        self.settle(state, choice, start, Some(bound))
    }

    #[inline(never)]
    fn settle<S: Resident, E: Envelope<S>>(
        self: &Arc<Self>,
        state: S,
        choice: StageChoice,
        start: E,
        bound: Option<Mailbox>,
    ) -> Result<Address<S>, (S, String)> {
        let kind = KindOf::<S>::KIND;
        let (spawning, stage, cell) = match self.vacancy(choice, kind.class) {
            Ok(found) => found,
            Err(why) => return Err((state, why)),
        };
        // SAFETY: a vacant cell of the right class, owned by this thread.
        unsafe { Cell::occupy(cell, state, kind, stage, self.id) };
        let address = self.occupied(cell, bound, spawning).typed();
        // SAFETY: the address has not been given away.
        unsafe { address.send_first(start, false) };
        Ok(address)
    }

    // The parts of a spawn that do not depend on types are functions of their own: they are compiled once.

    /// Begins to occupy a cell. Returns `Err` with the reason if there is none.
    #[inline(never)]
    fn vacancy(
        self: &Arc<Self>,
        choice: StageChoice,
        class: u16,
    ) -> Result<(Spawning<'_>, u16, NonNull<Cell>), String> {
        let spawning = self.begin_to_spawn().ok_or("the system has been shut down")?;
        let (stage, cell) = self.vacant_cell(choice, class)?;
        Ok((spawning, stage, cell))
    }

    /// Finishes the occupation of a cell. From this point on a sweep may end the actor. Its first message then finds
    /// the system closed.
    #[inline(never)]
    fn occupied(&self, cell: NonNull<Cell>, bound: Option<Mailbox>, spawning: Spawning<'_>) -> RawAddress {
        self.outside.spawned.fetch_add(1, Ordering::Relaxed);
        if let Some(bound) = bound {
            // SAFETY: cells are never freed.
            unsafe { cell.as_ref() }.set_bounded();
            self.mailboxes.build(RawAddress::of(cell), bound);
        }
        drop(spawning);
        RawAddress::of(cell)
    }

    /// Returns a cell for an actor that is spawned by a thread that is no worker, and its stage. Returns `Err` with the
    /// reason if there is none.
    #[inline(never)]
    fn vacant_cell(self: &Arc<Self>, choice: StageChoice, class: u16) -> Result<(u16, NonNull<Cell>), String> {
        let stage = self.choose_stage(choice)?;
        let owner = self.routing.route[stage as usize].load(Ordering::Relaxed) as usize;
        if self.is_pinned(stage) && lock(&self.threads.posts[owner]).is_none() {
            match self.start_thread(owner as u16) {
                Ok(thread) => thread.run(self.new_worker(owner as u16)),
                Err(error) => {
                    lock(&self.threads.dedicated).push(stage);
                    return Err(format!("dedicated: the thread could not be started: {error}"));
                }
            }
        }
        Ok((stage, self.outside.take(owner, stage, class)))
    }
}
