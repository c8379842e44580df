//! Restarts: the decision of a supervisor about a crash, and its execution in the cell of the child.

use std::sync::Arc;
use std::time::Duration;

use playhouse_executor::{Control, ControlCx, Crash, MailKind, contained, during};

use crate::actor::context::Context;
use crate::actor::spawn::Start;
use crate::actor::{Actor, ActorState};
use crate::message::decision::Decision;
use crate::message::{Handler, Message};
use crate::supervise::child::HasChild;
use crate::supervise::child::{Child, Restarts};
use crate::supervise::crash_report::{self, DecisionReport};
use crate::supervise::policy::{Directive, Strategy, SupervisionFailed};
use crate::supervise::remote::{ChildLocation, Host, Reached, TheaterLost};
use crate::supervise::{ChildEntry, ChildHandle, Supervisor, new_key};
use crate::timer::HasTimers;
use crate::timer::timers::go_on_all;

impl Supervisor {
    pub(super) fn restart(&mut self, key: u64, crash: Crash, ctx: &mut Context<Self>) {
        let Some(at) = self.position(key) else { return };
        let now = ctx.now();
        self.crashes.retain(|crashed| now - *crashed <= self.policy.within);
        self.crashes.push_back(now);
        let count = self.crashes.len();
        if count > self.policy.restarts_max {
            return self.give_up(at, crash, ctx);
        }
        let delay = self.policy.backoff.map(|(first, most)| {
            let doublings = u32::try_from(count - 1).unwrap_or(u32::MAX).min(31);
            first.saturating_mul(1 << doublings).min(most)
        });
        self.decided(at, &crash, (Directive::Restart, delay.unwrap_or_default()), ctx);
        match delay.filter(|delay| !delay.is_zero()) {
            None => self.restart_now(key, self.policy.strategy, ctx),
            Some(delay) => {
                let theater = self.remote_child(key).and_then(|child| child.theater());
                ctx.send_after(delay, RestartNow { key, theater });
            }
        }
    }

    pub(super) fn restart_now(&mut self, key: u64, strategy: Strategy, ctx: &mut Context<Self>) {
        let Some(at) = self.position(key) else { return };
        let affected = match strategy {
            Strategy::OneForOne => at..at + 1,
            Strategy::OneForAll => 0..self.children.len(),
            Strategy::RestForOne => at..self.children.len(),
        };
        // Children that are lost with the theater start again with the crashed child.
        let lost = match &self.children[at].child {
            ChildHandle::Remote(child) if child.whereabouts == ChildLocation::Lost => child.theater(),
            _ => None,
        };
        let now = ctx.now();
        let mut to_call: Vec<Arc<dyn Host>> = Vec::new();
        let mut crashed = Vec::new();
        for (index, kept) in self.children.iter_mut().enumerate() {
            let goes_along = lost.is_some_and(|theater| kept.child.is_at(theater, ChildLocation::Lost));
            if !affected.contains(&index) && !goes_along {
                continue;
            }
            match &mut kept.child {
                ChildHandle::Local(child, restarts) => {
                    *restarts += 1;
                    child.verdict(Verdict::Restart);
                }
                ChildHandle::Remote(child) => match (child.whereabouts, &child.host) {
                    (ChildLocation::InTheater, _) => {
                        crashed.extend(child.decide(Decision::Restart(()), now).err().map(|crash| (kept.key, crash)));
                    }
                    // This child is about to start again by itself: its theater is called when its own backoff is over.
                    (ChildLocation::Lost, Some(_)) if !goes_along => {}
                    (ChildLocation::Lost, Some(host)) => {
                        if !to_call.iter().any(|known| known.theater() == host.theater()) {
                            to_call.push(Arc::clone(host));
                        }
                        child.whereabouts = ChildLocation::Called;
                    }
                    (ChildLocation::Lost, None) => {
                        kept.key = new_key(&mut self.keys, ctx);
                        let started = child.start(ctx.this(), kept.key, &kept.name, kept.placement);
                        crashed.extend(started.err().map(|why| (kept.key, TheaterLost::again(&why))));
                    }
                    (ChildLocation::Called, _) => {}
                },
            }
        }
        for host in to_call {
            let (supervisor, theater) = (ctx.this(), host.theater());
            host.reach(Box::new(move |found| supervisor.address.send_urgent(Reached { theater, found })));
        }
        for (key, crash) in crashed {
            self.child_crashed(key, crash, ctx);
        }
    }

    /// Reports the directive about the crash of this child, and the delay.
    pub(super) fn decided(
        &self,
        at: usize,
        crash: &Crash,
        (directive, after): (Directive, Duration),
        ctx: &mut Context<Self>,
    ) {
        let (supervisor, name) = (ctx.this().id(), ctx.name().map(|name| name.to_string()));
        let (child, cause) = (self.children[at].name.clone(), crash.describe());
        crash_report::decided(&DecisionReport { supervisor, name, child, cause, directive, after });
    }

    pub(super) fn give_up(&mut self, at: usize, crash: Crash, ctx: &mut Context<Self>) {
        let gave_up = SupervisionFailed { child: self.children[at].name.clone(), cause: crash.describe() };
        // A child in another theater is told, like all children, that it has no supervisor any more.
        if let ChildHandle::Local(child, _) = &mut self.children[at].child {
            child.verdict(Verdict::GiveUp(crash));
        }
        self.children.clear();
        ctx.fail_without_place(gave_up);
    }
}

#[derive(Clone, Copy)]
pub(super) struct RestartNow {
    key: u64,
    /// The theater that the child is started in, if it is another one.
    theater: Option<u64>,
}

impl Message for RestartNow {
    type Reply = ();
}

impl Handler<RestartNow> for Supervisor {
    fn handle(&mut self, RestartNow { key, theater }: RestartNow, ctx: &mut Context<Self>) {
        if self.position(key).is_some() {
            return self.restart_now(key, self.policy.strategy, ctx);
        }
        // The child has ended in another theater, as this theater knows by now. Other children that were lost with that
        // theater wait for this report.
        let is_lost =
            |kept: &&ChildEntry| theater.is_some_and(|theater| kept.child.is_at(theater, ChildLocation::Lost));
        if let Some(other) = self.children.iter().find(is_lost).map(|kept| kept.key) {
            self.restart_now(other, Strategy::OneForOne, ctx);
        }
    }
}

/// The supervisor's decision about a child.
pub(super) enum Verdict {
    Restart,
    Resume,
    GiveUp(Crash),
}

impl<A: Actor> Control<ActorState<A>> for Verdict {
    fn describe(&self) -> (MailKind, &'static str) {
        let name = match self {
            Verdict::Restart => "restart",
            Verdict::Resume => "resume",
            Verdict::GiveUp(_) => "give up",
        };
        (MailKind::Control, name)
    }

    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        match self {
            Verdict::Resume => {
                if let Some(child) = cx.extra().child() {
                    child.crashed = false;
                }
                go_on_all(&mut cx.extra().timer_slot().timers);
                cx.resume();
            }
            Verdict::GiveUp(crash) => cx.give_up(crash),
            Verdict::Restart => {
                // A child that has given its factory away is told once more, by the owner of the factory.
                if !matches!(cx.extra().child(), Some(Child { restarts: Restarts::Itself { .. }, .. })) {
                    return;
                }
                cx.interrupt();
                if cx.is_ending() {
                    // A stop was to follow behind the child's handler.
                    return;
                }
                cx.extra().renew();
                cx.note_handled(false);
                let Some(Child { crashed, restarts: Restarts::Itself { factory, count }, .. }) = cx.extra().child()
                else {
                    return;
                };
                *count += 1;
                let actor = during(|| (MailKind::Control, "factory"), &mut *factory);
                *crashed = false;
                // The former state may panic in its drop, which is no crash of the new one.
                let former = cx.replace(ActorState { actor });
                let _panicked = contained(|| drop(former));
                cx.resume();
                cx.run(Start);
            }
        }
    }
}
