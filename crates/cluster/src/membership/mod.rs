//! One theater's part in the membership.
//!
//! # The rules
//!
//! 1. **One ordered view.** A member changes the view by a compare-and-swap on the version that it has adopted, never on one that
//!    it has only heard of. After an unknown result it reads, and compares what it wants with what it finds. No write needs a name.
//! 2. **Leases** ([`lease`]). A member runs for `lease`, counted from before a read that returned a view in which it lives, or from
//!    before asks that *all* other members of its view, joining ones included, have acknowledged. An acknowledgement counts only
//!    at exactly the same version. A member that has adopted a removal is therefore at another version than the removed one.
//! 3. **Asks are bounded by `outage`.** A round of asks counts only up to `outage` after the last read of the ledger by one of its
//!    members. A joining member that finds only silent ones removes them after `outage`, and cannot do so earlier.
//! 4. **Waiting.** The heir of a removed member's slot waits `wait` from its own adoption before it opens the slot. It runs the slot at once
//!    for users that the epoch protects ([`Effect::Own`]).
//! 5. **Joining.** A member is active, and may own slots, after all others have acknowledged one version that contains it. A later
//!    version needs new acknowledgements, because a removal may be in it.
//! 6. **Leaving.** A leaving member closes or hands over its slots first. The last write removes its writer and nobody else.
//! 7. **Hand-over** ([`slots`]). The owner writes `Moving`, closes the slot, and writes the new owner with the next epoch. Owners begin hand-overs by
//!    themselves until the numbers of slots differ by at most 1 ([`balance`]).
//! 8. **Lineage.** Each view has the fingerprints of its predecessors. A ledger that returns a view which is not the adopted one or
//!    a successor freezes changes.
//!
//! # Why no slot runs twice
//!
//! Let X be removed by the write of version d, let Y have adopted the view that makes it the owner of a slot of X, at time T, and
//! let X start a round at version v < d at time t > T. A read cannot extend the lease of X, because all reads after the write of d show
//! that X is removed. The round succeeds only if all members of v are at exactly v after t.
//!
//! - Y is in v: it is at a later version since T, and acknowledges nothing at v.
//! - Y is not in v. Before the first activation of a member that joined after v, all members had acknowledged a version above v, and
//!   therefore none of v was left. A member of v can write at most version v + 1, because it has adopted nothing above v. That write cannot remove
//!   both its writer and another member (rule 6). One member of v, or the only one, was therefore removed by a joining member, or it
//!   left after it had closed its slots. The joining member has waited for `outage` since it joined (rule 3). All reads of the
//!   members of v began before it joined, because they returned v or less. Their rounds counted up to that removal, before T.
//!
//! All leases of X therefore start before T, and end within `wait` after it.
//!
//! # The two kinds of running
//!
//! *Exclusive* ([`Membership::runs`], from [`Effect::Open`]): at most one member at any time.
//!
//! *Fenced* ([`Membership::runs_fenced`], from [`Effect::Own`]): several members, at different epochs. A store decides between them: a claim
//! raises the slot's epoch in the store, and the store refuses claims and writes below it. This rests on three facts:
//!
//! - An epoch of a slot belongs to one member, because one write of the view gives it. At one member the epochs of a slot rise.
//! - A member that runs a slot exclusively runs it fenced, too, at the same epoch.
//! - Beside a member that runs a slot exclusively, others run it fenced only at higher epochs. A former owner at a lower one has closed the slot, or
//!   its lease has ended by the proof above.
//!
//! The order of claims in time proves nothing: a member that adopts a view late claims an epoch after its successor has claimed a higher one. The
//! store refuses that claim. Both kinds end with the lease, because a member that reads its own memory would otherwise return old states for ever.
//!
//! # Contracts of the host
//!
//! - `now` is the time of one clock that goes on while the machine sleeps. The host reads the clock after the event has come: with
//!   an earlier time, a slot would open before its heir has waited. An earlier `now` than that of the step before counts as the latest one.
//!   The rates of 2 clocks differ by less than `wait / lease`.
//! - Reads are linearizable. No person restores or erases the ledger while members run. Their slots would run up to `outage + lease`
//!   beside those of new members, and epochs would repeat.
//! - A request's result comes at most once; a result that comes after the machine has given the request up is ignored. The host may
//!   drop a request that it has not begun when the next one comes.
//! - A message comes from the member that it names. It may be lost, late, or come twice.
//! - A slot runs only while [`Membership::runs`] returns its epoch, or [`Membership::runs_fenced`] for users that the epoch protects. The host
//!   calls them at each use, or uses [`Membership::lease_end`].
//! - A [`MemberId`] is used for one life of a theater. A theater whose machine has ended joins as another one.
//! - A suspicion of a member that is not in the view is remembered. It ends with [`Input::Trust`], or when the member has come and gone:
//!   the detector then begins anew.
//!
//! # Limits
//!
//! - A round of asks takes `n * (n - 1)` asks and as many answers in each `renew`: 4,900 each in a second for 50 members and 500 ms. Larger clusters
//!   need a lease from reads alone, which does not exist yet.
//! - Owners that hand slots over at the same time conflict. The second conflict of a member delays it by `renew / 4`. 50 owners that give a slot each
//!   to a new member need 100 writes.
//! - Each round of hand-overs is a write of the whole view. A member that misses more than 64 views ends as [`End::Behind`], and joins again.

mod balance;
mod config;
mod events;
mod failures;
mod lease;
mod requests;
mod slots;
mod writes;

use std::sync::Arc;

pub use self::config::{Config, ConfigError};
pub use self::events::{Effect, End, Input, Message, Time};
use self::failures::Failures;
use self::lease::Lease;
pub use self::requests::{Outcome, ReadError, RequestId, Stored};
use self::requests::{Requests, Wanted};
use self::slots::Slots;
use crate::view::{ANCESTORS_MAX, MemberId, Status, Timing, View};

/// The adopted view.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Adopted {
    view: Arc<View>,
    fingerprint: u64,
}

/// One theater's part in the membership. Equal inputs at equal times give equal effects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Membership {
    me: MemberId,
    address: String,
    program: u64,
    config: Config,
    now: Time,
    adopted: Option<Adopted>,
    /// The time from which this member removes others without a vote, while it is joining. `None` before it is in the view.
    alone_from: Option<Time>,
    is_leaving: bool,
    is_frozen: bool,
    end: Option<End>,
    ask_at: Time,
    /// The time until which this member wants no other view, unless an event changes its state. A view is large: at rest none is made.
    settled_until: Time,
    lease: Lease,
    requests: Requests,
    failures: Failures,
    slots: Slots,
}

impl Membership {
    /// Creates the machine of a theater that joins the cluster, or begins one if the ledger has none.
    ///
    /// # Errors
    /// The durations are not in order, or there are no slots.
    pub fn new(me: MemberId, address: String, program: u64, config: Config) -> Result<Membership, ConfigError> {
        config.check()?;
        Ok(Membership {
            me,
            address,
            program,
            config,
            now: Time::ZERO,
            adopted: None,
            alone_from: None,
            is_leaving: false,
            is_frozen: false,
            end: None,
            ask_at: Time::ZERO,
            settled_until: Time::ZERO,
            lease: Lease::default(),
            requests: Requests::default(),
            failures: Failures::default(),
            slots: Slots::new(me),
        })
    }

    /// Takes an event, and returns the acts that follow from it, in order.
    pub fn step(&mut self, now: Time, input: Input) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.end.is_some() {
            return effects;
        }
        self.now = self.now.max(now);
        match input {
            // These change the wanted view only by adopting one.
            Input::Tick | Input::Changed | Input::Read { .. } | Input::Wrote { .. } | Input::Received { .. } => {}
            _ => self.settled_until = Time::ZERO,
        }
        match input {
            Input::Tick => {}
            Input::Changed => self.requests.is_stale = true,
            Input::Read { id, result } => self.on_read(id, result, &mut effects),
            Input::Wrote { id, outcome } => self.on_wrote(id, outcome, &mut effects),
            Input::Received { from, message } => self.on_message(from, message, &mut effects),
            Input::Suspect(member) => self.failures.suspect(member, false),
            Input::Gone(member) => self.failures.suspect(member, true),
            Input::Trust(member) => self.failures.trust(member),
            Input::HandOver { slot, to } => self.slots.wish(slot, to, &mut effects),
            Input::Leave => self.is_leaving = true,
        }
        self.proceed(&mut effects);
        effects
    }

    /// Notes that the host has closed a slot, after [`Effect::Close`]. A step takes it up, for example one with [`Input::Tick`]. Many
    /// slots close at once, and one step for all is enough.
    pub fn closed(&mut self, slot: usize, epoch: u64) {
        self.slots.closed(slot, epoch);
        self.settled_until = Time::ZERO;
    }

    /// Does everything that is due.
    fn proceed(&mut self, effects: &mut Vec<Effect>) {
        let is_member = self.view().is_some_and(|view| view.members.contains_key(&self.me));
        if self.is_leaving && !is_member && self.requests.has_read() {
            self.finish(End::Left, effects);
        }
        if self.end.is_some() {
            return;
        }
        if let Some(adopted) = self.adopted.clone() {
            let view = &*adopted.view;
            self.lease.renew(others(view, self.me), self.now, &self.timing());
            let leaves_nobody = self.is_leaving && is_alone(view, self.me);
            let has_lease = self.has_lease(self.now);
            let before = effects.len();
            self.slots.follow(view, self.now, has_lease, leaves_nobody, effects);
            if effects.len() > before {
                self.settled_until = Time::ZERO;
            }
            self.slots.check_wishes(view, effects);
            if is_member && self.ask_at <= self.now {
                self.ask_at = self.now.saturating_add(self.timing().renew);
                let (version, fingerprint) = (view.version, adopted.fingerprint);
                let ask = Message::Ask { version, fingerprint, at: self.now };
                effects.extend(others(view, self.me).map(|to| Effect::Send { to, message: ask.clone() }));
            }
        }
        match self.requests.wanted(self.now, &self.timing()) {
            Wanted::Nothing => {}
            Wanted::Read => effects.push(self.read()),
            Wanted::Write { .. } if self.is_settled() => {
                if cfg!(test) {
                    assert_eq!(self.next_view(), None, "nothing is due until {:?}", self.settled_until);
                }
            }
            Wanted::Write { expected } => match self.next_view() {
                Some(view) => effects.push(self.write(expected, Arc::new(view))),
                None => {
                    let due = self.failures.times().filter(|time| *time > self.now);
                    self.settled_until = due.min().unwrap_or(Time::MAX);
                }
            },
        }
    }

    /// Returns whether this member has found that it wants no other view, and nothing has changed since. A joining member waits for
    /// acknowledgements, and looks each time.
    fn is_settled(&self) -> bool {
        let own = self.view().and_then(|view| view.members.get(&self.me));
        self.now < self.settled_until && own.is_some_and(|own| own.status != Status::Joining)
    }

    fn read(&mut self) -> Effect {
        let version = self.adopted.as_ref().map_or(0, |adopted| adopted.view.version);
        Effect::Read { id: self.requests.read(version, self.now, &self.timing()) }
    }

    fn write(&mut self, expected: u64, view: Arc<View>) -> Effect {
        Effect::Write { id: self.requests.write(Arc::clone(&view), self.now), expected, view }
    }

    fn on_read(&mut self, id: RequestId, result: Result<Option<Stored>, ReadError>, effects: &mut Vec<Effect>) {
        let Some(read) = self.requests.read_done(id, self.now, &self.timing()) else { return };
        let Ok(stored) = result else { return self.requests.pause(self.now, &self.timing()) };
        match stored {
            None if self.adopted.is_none() => self.requests.revision = Some(0),
            // A read that began at this version returns it or a later one, because reads are linearizable.
            None => self.freeze(effects),
            Some(Stored { view, revision }) => {
                // At rest the view is the adopted one. Its comparison is cheaper than its bytes.
                let adopted = self.adopted.as_ref().filter(|adopted| adopted.view == view);
                let fingerprint = adopted.map_or_else(|| view.fingerprint(), |adopted| adopted.fingerprint);
                let is_older = match &self.adopted {
                    None => false,
                    Some(adopted) => {
                        let (own, has) = (&adopted.view, adopted.fingerprint);
                        let is_same = view.version == own.version && fingerprint == has;
                        let is_older = own.is_after(view.cluster, view.version, fingerprint);
                        let is_late = is_older && view.version >= read.version;
                        let is_far = view.version.saturating_sub(own.version) > ANCESTORS_MAX as u64;
                        if view.cluster == own.cluster && is_far {
                            return self.finish(End::Behind, effects);
                        }
                        // Peers have sent so many views during the read that the lineage is not known. The next read begins at the last one.
                        let is_unknown = own.version.saturating_sub(view.version) > ANCESTORS_MAX as u64;
                        if view.cluster == own.cluster && is_unknown && view.version >= read.version {
                            return;
                        }
                        if !is_same && !is_late && !view.is_after(own.cluster, own.version, has) {
                            return self.freeze(effects);
                        }
                        is_older
                    }
                };
                self.is_frozen = false;
                self.lease.has_read(read.begun, view.members.contains_key(&self.me));
                if !is_older {
                    self.adopt(Adopted { view, fingerprint }, effects);
                    // An equal version, too, may have been adopted from a peer, without its revision.
                    self.requests.revision = Some(revision);
                }
            }
        }
    }

    fn finish(&mut self, end: End, effects: &mut Vec<Effect>) {
        if self.end.is_none() {
            self.end = Some(end);
            effects.push(Effect::Ended(end));
        }
    }

    fn freeze(&mut self, effects: &mut Vec<Effect>) {
        self.requests.revision = None;
        self.requests.pause(self.now, &self.timing());
        if !self.is_frozen {
            self.is_frozen = true;
            effects.push(Effect::Frozen);
        }
    }

    fn on_wrote(&mut self, id: RequestId, outcome: Outcome, effects: &mut Vec<Effect>) {
        let Some(view) = self.requests.write_done(id) else { return };
        match outcome {
            Outcome::Written { revision } => {
                self.requests.has_conflicted = false;
                if self.is_newer(&view) {
                    let fingerprint = view.fingerprint();
                    self.adopt(Adopted { view, fingerprint }, effects);
                    self.requests.revision = Some(revision);
                }
            }
            Outcome::Conflict => self.requests.conflict(self.now, &self.timing()),
            Outcome::Unknown => self.requests.forget(self.now, &self.timing()),
        }
    }

    fn on_message(&mut self, from: MemberId, message: Message, effects: &mut Vec<Effect>) {
        let Some(Adopted { view, fingerprint: own }) = &self.adopted else { return };
        let is_member = view.members.contains_key(&from) && from != self.me;
        let is_same = |version: u64, fingerprint: u64| version == view.version && fingerprint == *own;
        match message {
            Message::Ask { version, fingerprint, at } if is_same(version, fingerprint) => {
                let read_age = self.lease.read_age(self.now);
                let message = Message::Acknowledge { version, fingerprint, at, read_age };
                effects.push(Effect::Send { to: from, message });
            }
            // Even a member that is not in the view any more is answered, because it learns of its end by that.
            Message::Ask { version, .. } if version < view.version => {
                effects.push(Effect::Send { to: from, message: Message::View(Arc::clone(view)) });
            }
            Message::Ask { version, .. } => self.requests.is_stale |= version > view.version,
            Message::Acknowledge { version, fingerprint, at, read_age } => {
                // No ask has a time that is still to come.
                if is_member && is_same(version, fingerprint) && at <= self.now {
                    self.lease.acknowledged(from, at, read_age, &self.timing());
                }
            }
            Message::View(view) => {
                if self.is_newer(&view) {
                    let fingerprint = view.fingerprint();
                    self.requests.revision = None;
                    self.adopt(Adopted { view, fingerprint }, effects);
                }
            }
        }
    }

    /// Returns whether a view is a successor of the adopted one.
    fn is_newer(&self, view: &View) -> bool {
        let after = |own: &Adopted| view.is_after(own.view.cluster, own.view.version, own.fingerprint);
        self.adopted.as_ref().is_none_or(after)
    }

    /// Adopts a view that is the same or newer.
    fn adopt(&mut self, adopted: Adopted, effects: &mut Vec<Effect>) {
        if self.adopted.as_ref().is_some_and(|own| own.view.version == adopted.view.version) {
            return;
        }
        let is_member = adopted.view.members.contains_key(&self.me);
        match self.alone_from {
            None if is_member => {
                let timing = adopted.view.timing;
                let outage = timing.stretch(timing.outage);
                self.alone_from = Some(self.now.saturating_add(outage));
            }
            Some(_) if !is_member => {
                self.finish(if self.is_leaving { End::Left } else { End::Removed }, effects);
            }
            _ => {}
        }
        self.settled_until = Time::ZERO;
        self.lease.forget_acknowledgements();
        let former = self.adopted.as_ref().map(|former| &*former.view);
        self.failures.adopted(former, &adopted.view, self.me, self.now);
        self.ask_at = self.now;
        self.adopted = Some(adopted);
    }

    /// Returns the epoch of a slot that this member may run now, and no other one.
    pub fn runs(&self, slot: usize, now: Time) -> Option<u64> {
        let (epoch, is_exclusive) = self.running(slot).filter(|_| self.has_lease(now))?;
        is_exclusive.then_some(epoch)
    }

    /// Returns the epoch of a slot that this member may run now for users that the epoch protects.
    pub fn runs_fenced(&self, slot: usize, now: Time) -> Option<u64> {
        self.running(slot).filter(|_| self.has_lease(now)).map(|(epoch, _)| epoch)
    }

    /// Returns the epoch of a slot that this member may run as long as it has a lease, and whether no other one may.
    pub fn running(&self, slot: usize) -> Option<(u64, bool)> {
        if self.end.is_some() { None } else { self.slots.running(slot) }
    }

    fn has_lease(&self, now: Time) -> bool {
        // Another thread may have read its clock before the last step.
        self.lease_end().is_some_and(|end| self.now.max(now) < end)
    }

    /// Returns the time at which this member pauses, unless a step extends it. `None`: it has no lease.
    pub fn lease_end(&self) -> Option<Time> {
        if self.end.is_some() { None } else { self.lease.end(&self.timing()) }
    }

    /// Returns the durations: those of the view, because all members have the same ones.
    pub fn timing(&self) -> Timing {
        self.view().map_or(self.config.timing, |view| view.timing)
    }

    /// Returns whether this member changes nothing, because the ledger has lost or replaced views: see [`Effect::Frozen`].
    pub fn is_frozen(&self) -> bool {
        self.is_frozen
    }

    /// Returns the adopted view.
    pub fn view(&self) -> Option<&Arc<View>> {
        self.adopted.as_ref().map(|adopted| &adopted.view)
    }

    /// Returns the time of the next [`Input::Tick`], which lies after the last step. `None`: the machine has ended.
    pub fn next_tick(&self) -> Option<Time> {
        if self.end.is_some() {
            return None;
        }
        let own = [self.ask_at].into_iter().chain(self.alone_from);
        let timing = self.timing();
        let parts = self.requests.times(&timing).chain(self.slots.times()).chain(self.failures.times());
        let latest = self.now.saturating_add(timing.renew);
        Some(own.chain(parts).filter(|time| *time > self.now).fold(latest, Time::min))
    }
}

/// Returns the other members, joining and leaving ones included.
fn others(view: &View, me: MemberId) -> impl Iterator<Item = MemberId> {
    view.members.keys().copied().filter(move |id| *id != me)
}

/// Returns whether no other member owns slots or is about to.
fn is_alone(view: &View, me: MemberId) -> bool {
    view.members.iter().all(|(id, member)| *id == me || member.status == Status::Leaving)
}
