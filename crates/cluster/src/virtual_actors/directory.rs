//! The directory of a kind: one actor in each theater, which activates the actors of its slots and routes calls to other members.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use playhouse_actor::returning::Returning;
use playhouse_actor::wire::Remote;
use playhouse_actor::{
    Actor, ActorId, ActorRef, Context, DeferredHandler, Handler, Message, Placement, Reply, SpawnOptions, Terminated,
};

use super::active::Active;
use super::actor::{Activation, Passivation, PassivationReason, VirtualActor, VirtualMessage};
use super::call::{AnyCall, Call, PendingCall, RoutedCall};
use super::entries::{Entries, Entry, Phase, hash_of};
use super::options::VirtualOptions;
use super::peers::Peers;
use super::waiting::{Waiting, Why, unreachable};
use crate::Cluster;
use crate::driver::member::MemberActor;
use crate::driver::slot_users::{EndUse, Released, SlotNotice, SlotNotices};
use crate::driver::state::Shared;
use crate::membership::{End, Time};
use crate::view::{MemberId, View};

/// The time between the end of an actor that has handled nothing and its next activation. Without it, an actor that fails while it loads its state
/// would be activated again for each call that comes back.
const FAILURE_PAUSE: Duration = Duration::from_millis(500);
/// The time between two looks at a full link.
const FULL_PAUSE: Duration = Duration::from_millis(1);
/// The longest time between two rounds of the directory.
const ROUND_MAX: Duration = Duration::from_millis(250);

type Factory<A> = Box<dyn Fn(&Activation) -> A + Send + Sync>;

/// A slot that this member owns.
struct OwnSlot {
    epoch: u64,
    is_closing: bool,
}

/// The next step of a call.
enum NextStep<A: VirtualActor> {
    Deliver(Arc<Active<A>>),
    Forward(ActorRef<Directory<A>>, u64),
    Wait(Why),
    Fail(Why),
}

/// The directory of a kind.
#[doc(hidden)]
pub struct Directory<A: VirtualActor> {
    shared: Arc<Shared>,
    member: ActorRef<MemberActor>,
    options: VirtualOptions,
    factory: Factory<A>,
    /// The id of this member's life, and its view.
    view: Option<(MemberId, Arc<View>)>,
    slots: BTreeMap<usize, OwnSlot>,
    entries: Entries<A>,
    peers: Peers<A>,
    waiting: Waiting<A>,
    /// The keys whose actors have ended by themselves before their first call, and the times of their next activations.
    failed: BTreeMap<Arc<str>, Time>,
    /// The number of activations.
    activations: u64,
    /// The time of the next look for idle actors.
    idle_at: Time,
    /// Whether a look at the waiting calls is under way.
    looks_again: bool,
    /// The time of the end of this directory, if its member has left.
    ends_at: Option<Time>,
    this: Option<ActorId>,
}

impl<A: VirtualActor> Directory<A> {
    pub(super) fn new(cluster: &Cluster, options: VirtualOptions, factory: Factory<A>) -> Directory<A> {
        Directory {
            shared: Arc::clone(&cluster.shared),
            member: cluster.member,
            view: None,
            slots: BTreeMap::new(),
            entries: Entries::new(),
            peers: Peers::new(cluster.theater.clone()),
            waiting: Waiting::new(options.waiting_max),
            failed: BTreeMap::new(),
            activations: 0,
            idle_at: Time::ZERO,
            looks_again: false,
            ends_at: None,
            this: None,
            options,
            factory,
        }
    }

    fn now(&self) -> Time {
        self.shared.clock.now()
    }

    /// Takes a call: sends it on, or lets it wait.
    fn take(&mut self, key: &Arc<str>, version: u64, call: Box<dyn AnyCall<A>>, ctx: &mut Context<Self>) {
        if self.waiting.has(key) {
            let why = Cow::Borrowed("earlier calls wait");
            self.waiting.push(key, call, version, self.now(), why);
            return self.flush(key, ctx);
        }
        match self.next_step(key, version, ctx) {
            NextStep::Deliver(active) => call.deliver(&active),
            NextStep::Forward(peer, version) => {
                if let Err(call) = call.send_to(peer, key, version) {
                    let why = self.full(ctx);
                    self.waiting.push(key, call, version, self.now(), why);
                }
            }
            NextStep::Wait(why) => self.waiting.push(key, call, version, self.now(), why),
            NextStep::Fail(why) => call.fail(unreachable::<A>(key, &why)),
        }
    }

    /// Sends the waiting calls of a key, in order, as far as that is possible.
    fn flush(&mut self, key: &Arc<str>, ctx: &mut Context<Self>) {
        while let Some(mut waiting) = self.waiting.pop(key) {
            match self.next_step(key, waiting.version, ctx) {
                NextStep::Deliver(active) => waiting.call.deliver(&active),
                NextStep::Forward(peer, version) => match waiting.call.send_to(peer, key, version) {
                    Ok(()) => {}
                    Err(call) => {
                        waiting.call = call;
                        let why = self.full(ctx);
                        return self.waiting.put_back(key, waiting, why);
                    }
                },
                NextStep::Wait(why) => return self.waiting.put_back(key, waiting, why),
                NextStep::Fail(why) => waiting.call.fail(unreachable::<A>(key, &why)),
            }
        }
    }

    /// Looks at the waiting calls again soon, because a link is full.
    fn full(&mut self, ctx: &mut Context<Self>) -> Why {
        if !std::mem::replace(&mut self.looks_again, true) {
            ctx.send_after(FULL_PAUSE, Look::Again);
        }
        Cow::Borrowed("the link to its member is full")
    }

    fn flush_all(&mut self, ctx: &mut Context<Self>) {
        self.waiting.keys().iter().for_each(|key| self.flush(key, ctx));
    }

    /// Finds the receiver of a call. Activates the actor if this member runs its slot.
    fn next_step(&mut self, key: &Arc<str>, version: u64, ctx: &mut Context<Self>) -> NextStep<A> {
        let wait = |why| NextStep::Wait(Cow::Borrowed(why));
        let Some((me, view)) = &self.view else { return wait("its theater has no view of the cluster") };
        if version > view.version {
            return wait("its theater lacks the view by which the call was forwarded");
        }
        let slot = (hash_of(A::KIND, key) % view.slots.len() as u64) as usize;
        if let Some(own) = self.slots.get(&slot) {
            return if own.is_closing {
                wait("its slot is handed over")
            } else if self.shared.runs(slot, true) != Some(own.epoch) {
                wait("the lease of its member has ended")
            } else {
                let epoch = own.epoch;
                self.activate(key, slot, epoch, ctx)
            };
        }
        match view.slots[slot].holder.owner() {
            Some(owner) if owner != *me => {
                let now = self.shared.clock.now();
                match self.peers.route(owner, view, ctx.this(), now) {
                    Ok(peer) => NextStep::Forward(peer, view.version),
                    Err(why) => NextStep::Wait(why),
                }
            }
            Some(_) => wait("its member takes its slot over, and waits for the lease of the former owner"),
            None => wait("its slot has no owner"),
        }
    }

    /// Returns the activation of a key, or makes one.
    fn activate(&mut self, key: &Arc<str>, slot: usize, epoch: u64, ctx: &mut Context<Self>) -> NextStep<A> {
        if let Some(Entry { active, actor, phase, .. }) = self.entries.get(key) {
            let is_usable = *phase == Phase::Active && active.activation.epoch == epoch && !actor.is_stopped();
            return if is_usable {
                NextStep::Deliver(Arc::clone(active))
            } else {
                NextStep::Wait(Cow::Borrowed("its former activation has not ended"))
            };
        }
        let now = self.now();
        if self.failed.get(key).is_some_and(|next| now < *next) {
            return NextStep::Fail(Cow::Borrowed("it has ended before its first call"));
        }
        self.activations += 1;
        let activation = Activation { key: Arc::clone(key), slot, epoch, number: self.activations };
        // A panic of the factory would end the directory.
        let made = catch_unwind(AssertUnwindSafe(|| (self.factory)(&activation)));
        let spread = SpawnOptions::new().placement(Placement::Spread);
        let spawned = match made {
            Ok(actor) => ctx.try_spawn_with(spread, actor).map_err(|error| error.to_string()),
            Err(_) => Err("its factory has panicked".to_owned()),
        };
        let actor = match spawned {
            Ok(actor) => actor,
            Err(why) => {
                self.failed.insert(Arc::clone(key), now.saturating_add(FAILURE_PAUSE));
                return NextStep::Fail(why.into());
            }
        };
        ctx.watch(actor);
        let active = Arc::new(Active::new(activation, ctx.this(), Arc::clone(&self.shared)));
        let _ = active.actor.set(actor);
        let entry = Entry { active: Arc::clone(&active), actor, activated_at: now, phase: Phase::Active };
        self.entries.insert(entry);
        NextStep::Deliver(active)
    }

    /// Begins to end an activation. No call runs from now on.
    fn passivate(&mut self, key: &str, reason: PassivationReason) {
        let limit = self.now().saturating_add(self.options.passivation_max);
        let Some(entry) = self.entries.get_mut(key) else { return };
        match (&mut entry.phase, reason) {
            (phase @ Phase::Active, _) => {
                entry.active.close();
                *phase = Phase::Passivating((reason == PassivationReason::HandOver).then_some(limit));
                let actor = entry.actor;
                let passivation = Passivation { reason, stop: Some(Box::new(move || actor.stop())) };
                actor.run_hook(move |actor, ctx| actor.passivating(passivation, ctx));
            }
            (Phase::Passivating(kill_at @ None), PassivationReason::HandOver) => *kill_at = Some(limit),
            _ => {}
        }
    }

    /// Confirms that a slot is unused, if it closes and is.
    fn release(&self, slot: usize, ctx: &Context<Self>) {
        if let Some(own) = self.slots.get(&slot)
            && own.is_closing
            && self.entries.is_unused(slot)
        {
            self.member.tell(Released { user: ctx.this().id(), slot, epoch: own.epoch });
        }
    }

    fn on_notice(&mut self, notice: SlotNotice, ctx: &mut Context<Self>) {
        match notice {
            SlotNotice::View(me, view) => {
                self.slots.retain(|slot, _| view.slots.get(*slot).is_some_and(|slot| slot.holder.owner() == Some(me)));
                self.peers.follow(&view);
                self.view = Some((me, view));
            }
            SlotNotice::Opened { slot, epoch } => {
                self.slots.insert(slot, OwnSlot { epoch, is_closing: false });
                // A hand-over was cancelled. The activations of the earlier epoch end.
                self.entries.of_slot(slot).iter().for_each(|key| self.passivate(key, PassivationReason::HandOver));
            }
            SlotNotice::Closing { slot, epoch } => {
                let Some(own) = self.slots.get_mut(&slot).filter(|own| own.epoch == epoch) else { return };
                own.is_closing = true;
                self.entries.of_slot(slot).iter().for_each(|key| self.passivate(key, PassivationReason::HandOver));
                self.release(slot, ctx);
            }
            SlotNotice::Resumed => {}
            SlotNotice::Ended(end) => {
                self.slots.clear();
                self.kill(|_| true);
                if end == End::Left && self.ends_at.is_none() {
                    // Other members may still forward calls by earlier views. The last view has the next owners.
                    self.peers.unpublish();
                    self.ends_at = Some(self.now().saturating_add(self.options.wait));
                }
            }
        }
    }

    /// Kills activations. They take no calls from now on.
    fn kill(&mut self, which: impl Fn(&Entry<A>) -> bool) {
        let keys =
            self.entries.iter().filter(|entry| which(entry)).map(|entry| Arc::clone(&entry.active.activation.key));
        for key in keys.collect::<Vec<_>>() {
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.active.close();
                entry.phase = Phase::Killed;
                entry.actor.kill();
            }
        }
    }

    /// Looks after all calls and activations.
    fn round(&mut self, ctx: &mut Context<Self>) {
        let now = self.now();
        self.failed.retain(|_, next| now < *next);
        self.flush_all(ctx);
        if let Some(before) = now.checked_sub(self.options.wait) {
            self.waiting.fail_older(before, now);
        }
        if self.ends_at.is_some_and(|end| end <= now) {
            self.waiting.fail_all("its theater has left the cluster");
            ctx.stop();
        }
        if now < self.idle_at {
            return;
        }
        self.idle_at = now.saturating_add((self.options.idle / 4).min(ROUND_MAX));
        self.kill(|entry| matches!(entry.phase, Phase::Passivating(Some(limit)) if limit <= now));
        let is_idle = |entry: &&Entry<A>| {
            let idle = entry.active.idle_for(now, entry.activated_at).is_some_and(|idle| idle >= self.options.idle);
            idle && entry.phase == Phase::Active
        };
        // An actor without a lease is paused, and no hook of it runs.
        let runs = |entry: &&Entry<A>| {
            let Activation { slot, epoch, .. } = entry.active.activation;
            self.shared.runs(slot, true) == Some(epoch)
        };
        let idle = self.entries.iter().filter(is_idle).filter(runs);
        let idle: Vec<Arc<str>> = idle.map(|entry| Arc::clone(&entry.active.activation.key)).collect();
        idle.iter().for_each(|key| self.passivate(key, PassivationReason::Idle));
    }
}

impl<A: VirtualActor> Actor for Directory<A> {
    fn terminated(&mut self, down: Terminated, ctx: &mut Context<Self>) {
        if down.who == self.member.id() {
            self.on_notice(SlotNotice::Ended(End::Left), ctx);
            return self.flush_all(ctx);
        }
        let Some(entry) = self.entries.remove(down.who) else { return };
        entry.active.close();
        let Activation { key, slot, .. } = &entry.active.activation;
        if entry.phase == Phase::Active && !entry.active.has_run() {
            self.failed.insert(Arc::clone(key), self.now().saturating_add(FAILURE_PAUSE));
        }
        self.release(*slot, ctx);
        self.flush(key, ctx);
    }
}

impl<A: VirtualActor> Remote for Directory<A> {
    fn wire_name() -> &'static str {
        std::any::type_name::<Directory<A>>()
    }
}

/// Begins the rounds of a directory.
pub(super) struct Begin;

impl Message for Begin {
    type Reply = ();
}

impl<A: VirtualActor> Handler<Begin> for Directory<A> {
    fn handle(&mut self, _: Begin, ctx: &mut Context<Self>) {
        self.this = Some(ctx.this().id());
        // Its crash sends no notice.
        ctx.watch(self.member);
        ctx.this().tell(Look::Round);
    }
}

impl<A: VirtualActor> Drop for Directory<A> {
    /// Nothing else ends the activations of a directory that has crashed, and a later directory would activate their keys again.
    fn drop(&mut self) {
        self.kill(|_| true);
        self.waiting.fail_all("its directory has ended");
        if let Some(user) = self.this.filter(|_| !self.member.is_stopped()) {
            self.member.tell(EndUse { user });
        }
    }
}

/// An event of a directory's own parts.
pub(super) enum Look {
    /// The next round is due.
    Round,
    /// The look-up of another directory has its result.
    Found,
    /// A full link may have room again.
    Again,
}

impl Message for Look {
    type Reply = ();
}

impl<A: VirtualActor> Handler<Look> for Directory<A> {
    fn handle(&mut self, look: Look, ctx: &mut Context<Self>) {
        match look {
            Look::Round => {
                self.round(ctx);
                let VirtualOptions { idle, wait, .. } = self.options;
                let period = ROUND_MAX.min(idle / 4).min(wait / 4).max(Duration::from_millis(1));
                ctx.send_after(period, Look::Round);
            }
            Look::Found => self.flush_all(ctx),
            Look::Again => {
                self.looks_again = false;
                self.flush_all(ctx);
            }
        }
    }
}

impl<A: VirtualActor> Handler<SlotNotices> for Directory<A> {
    fn handle(&mut self, SlotNotices(notices): SlotNotices, ctx: &mut Context<Self>) {
        notices.into_iter().for_each(|notice| self.on_notice(notice, ctx));
        self.flush_all(ctx);
    }
}

impl<A: VirtualActor, M: VirtualMessage<A, Mode>, Mode: 'static> DeferredHandler<Call<A, M, Mode>> for Directory<A> {
    fn handle(&mut self, call: Call<A, M, Mode>, reply: Reply<M::Reply>, ctx: &mut Context<Self>) {
        let Returning { message, back, .. } = call;
        let (key, target) = back.into_key();
        self.take(&key, 0, Box::new(PendingCall { message, reply, target, mode: PhantomData::<fn(Mode)> }), ctx);
    }
}

impl<A: VirtualActor, M: VirtualMessage<A, Mode>, Mode: 'static> DeferredHandler<RoutedCall<M, Mode>> for Directory<A> {
    fn handle(&mut self, call: RoutedCall<M, Mode>, reply: Reply<M::Reply>, ctx: &mut Context<Self>) {
        let RoutedCall { key, version, message, .. } = call;
        let (key, mode) = (Arc::from(key), PhantomData::<fn(Mode)>);
        self.take(&key, version, Box::new(PendingCall { message, reply, target: None, mode }), ctx);
    }
}
