//! The supervisor's side of children in other theaters.

use std::sync::Arc;
use std::time::Duration;

use playhouse_executor::{Crash, Failure};

use crate::actor::context::Context;
use crate::message::decision::Decision;
use crate::supervise::policy::{Directive, Strategy};
use crate::supervise::remote::{ChildLocation, ChildLostOrEnded, End, Reached, RemoteChild, TheaterLost};
use crate::supervise::{ChildEntry, ChildHandle, Supervisor, new_key};

impl Supervisor {
    pub(crate) fn remote_child(&mut self, key: u64) -> Option<&mut RemoteChild> {
        let at = self.position(key)?;
        match &mut self.children[at].child {
            ChildHandle::Local(..) => None,
            ChildHandle::Remote(child) => Some(child),
        }
    }

    /// Handles the notice that a child is about to migrate, with the number of its restarts.
    pub(super) fn child_migrates(
        &mut self,
        key: u64,
        mut remote_child: RemoteChild,
        restarts: u64,
        ctx: &mut Context<Self>,
    ) {
        // A child that is not found has been stopped by its supervisor.
        let Some(at) = self.position(key) else { return };
        let ChildHandle::Local(_, told) = self.children[at].child else { return };
        // Restarts that the child has not received, because it had given its factory away.
        let crash = if told > restarts { remote_child.decide(Decision::Restart(()), ctx.now()).err() } else { None };
        self.children[at].child = ChildHandle::Remote(remote_child);
        if let Some(crash) = crash {
            self.child_crashed(key, crash, ctx);
        }
    }

    pub(crate) fn forget(&mut self, key: u64) {
        self.children.retain(|kept| kept.key != key);
    }

    /// Decides about the crash of a remote child. The child is parked in its theater, or is lost.
    pub(crate) fn child_crashed(&mut self, key: u64, crash: Crash, ctx: &mut Context<Self>) {
        let directive = self.policy.decide(&crash);
        let (Some(at), Some(child)) = (self.position(key), self.remote_child(key)) else { return };
        let (lost, theater) = (child.whereabouts != ChildLocation::InTheater, child.theater());
        match directive {
            // The child had migrated to the lost theater by itself, and starts again in this theater. This start cannot
            // fail in the same way repeatedly.
            Directive::Restart | Directive::Resume if lost && theater.is_none() && TheaterLost::is_first(&crash) => {
                self.decided(at, &crash, (Directive::Restart, Duration::ZERO), ctx);
                self.restart_now(key, self.policy.strategy, ctx);
            }
            Directive::Restart => self.restart(key, crash, ctx),
            // A lost child has no state to resume with.
            Directive::Resume if lost => self.restart(key, crash, ctx),
            Directive::Stop if lost => {
                self.decided(at, &crash, (Directive::Stop, Duration::ZERO), ctx);
                let with_it = |kept: &ChildEntry| theater.is_some_and(|at| kept.child.is_at(at, ChildLocation::Lost));
                self.children.retain(|kept| kept.key != key && !with_it(kept));
            }
            Directive::Resume => self.tell(at, &crash, (directive, Decision::Resume), ctx),
            Directive::Stop => self.tell(at, &crash, (directive, Decision::GiveUp), ctx),
            Directive::Escalate => self.give_up(at, crash, ctx),
        }
    }

    /// Sends a decision about a crash to a remote child. The decision needs no new state.
    fn tell(
        &mut self,
        at: usize,
        crash: &Crash,
        (directive, decision): (Directive, Decision<()>),
        ctx: &mut Context<Self>,
    ) {
        self.decided(at, crash, (directive, Duration::ZERO), ctx);
        if let ChildHandle::Remote(child) = &mut self.children[at].child {
            // Only a factory could fail.
            let _ = child.decide(decision, ctx.now());
        }
    }

    /// Handles the end or the loss of a remote child. The loss of a theater is one crash for all its children. Each of
    /// them reports by itself, because a child that has migrated from that theater is alive.
    pub(crate) fn child_lost_or_ended(
        &mut self,
        ChildLostOrEnded { key, id, end }: ChildLostOrEnded,
        ctx: &mut Context<Self>,
    ) {
        let Some(child) = self.remote_child(key) else { return };
        if child.id() != Some(id) || child.whereabouts != ChildLocation::InTheater {
            return;
        }
        match end {
            End::Lost => {}
            End::NotAlive if child.host.as_ref().is_some_and(|host| host.is_lost()) => {}
            End::NotAlive => return,
            End::Other => return self.forget(key),
        }
        child.whereabouts = ChildLocation::Lost;
        let crash = Crash::Error(Failure::without_place(TheaterLost { why: None }));
        let Some(host) = child.host.clone().filter(|host| host.is_lost()) else {
            return self.child_crashed(key, crash, ctx);
        };
        let (theater, now) = (host.theater(), ctx.now());
        // A loss whose first reports are older than the window is another loss: it would count on its own.
        self.lost.retain(|(_, since)| now - *since <= self.policy.within);
        let starts_again = matches!(self.policy.decide(&crash), Directive::Restart | Directive::Resume);
        if starts_again && self.lost.iter().any(|(lost, _)| *lost == theater) {
            return self.restart_with(theater, key, ctx);
        }
        // The other children of the theater report the loss later. They start again, or stop, with this one.
        for kept in &mut self.children {
            let is_there = kept.child.is_at(theater, ChildLocation::InTheater);
            if let ChildHandle::Remote(other) = &mut kept.child
                && is_there
                && other.id().is_some_and(|id| !host.may_have_left(id))
            {
                other.whereabouts = ChildLocation::Lost;
            }
        }
        if starts_again {
            self.lost.push((theater, now));
        }
        self.child_crashed(key, crash, ctx);
    }

    /// Restarts a child that is lost with a theater whose loss was counted already, together with the other children of
    /// that theater.
    fn restart_with(&mut self, theater: u64, key: u64, ctx: &mut Context<Self>) {
        let is_other_at =
            |whereabouts| self.children.iter().any(|kept| kept.key != key && kept.child.is_at(theater, whereabouts));
        match (is_other_at(ChildLocation::Called), is_other_at(ChildLocation::Lost)) {
            (true, _) => {
                if let Some(child) = self.remote_child(key) {
                    child.whereabouts = ChildLocation::Called;
                }
            }
            // The others start when the backoff is over, and this child with them.
            (false, true) => {}
            (false, false) => self.restart_now(key, Strategy::OneForOne, ctx),
        }
    }

    pub(crate) fn reached(&mut self, Reached { theater, found }: Reached, ctx: &mut Context<Self>) {
        if found.as_ref().is_ok_and(|host| host.theater() == theater) {
            // The theater was alive, so a further loss of it is another crash.
            self.lost.retain(|(lost, _)| *lost != theater);
        }
        let mut failed = None;
        for kept in &mut self.children {
            if !kept.child.is_at(theater, ChildLocation::Called) {
                continue;
            }
            let ChildHandle::Remote(child) = &mut kept.child else { continue };
            child.whereabouts = ChildLocation::Lost;
            // Reports about the former child, if there are any, do not concern the new one.
            kept.key = new_key(&mut self.keys, ctx);
            let started = match &found {
                Ok(host) => {
                    child.host = Some(Arc::clone(host));
                    child.start(ctx.this(), kept.key, &kept.name, kept.placement).map(drop)
                }
                Err(error) => Err(error.clone()),
            };
            if let Err(error) = started {
                failed.get_or_insert((kept.key, TheaterLost { why: Some(error.to_string()) }));
            }
        }
        if let Some((key, error)) = failed {
            self.child_crashed(key, Crash::Error(Failure::without_place(error)), ctx);
        }
    }
}
