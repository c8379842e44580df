//! Children in other theaters, as their supervisor sees them.

use playhouse_executor::Failure;

use super::*;

impl Supervisor {
    pub(crate) fn remote_child(&mut self, key: u64) -> Option<&mut RemoteChild> {
        let at = self.position(key)?;
        match &mut self.children[at].child {
            ChildHandle::Here(..) => None,
            ChildHandle::There(child) => Some(child),
        }
    }

    /// A child is about to be taken to another theater, and has been told `restarts` times to start again.
    pub(super) fn child_leaves(
        &mut self,
        key: u64,
        mut remote_child: RemoteChild,
        restarts: u64,
        ctx: &mut Context<Self>,
    ) {
        // Where it is not known any more, it has been told to stop.
        let Some(at) = self.position(key) else { return };
        let ChildHandle::Here(_, told) = self.children[at].child else { return };
        // What it was told when it had given away its factory.
        let crash = if told > restarts { remote_child.decide(Decision::Restart(()), ctx.now()).err() } else { None };
        self.children[at].child = ChildHandle::There(remote_child);
        if let Some(crash) = crash {
            self.child_crashed(key, crash, ctx);
        }
    }

    pub(crate) fn forget(&mut self, key: u64) {
        self.children.retain(|kept| kept.key != key);
    }

    /// A child in another theater has crashed, and is held there; or it is lost.
    pub(crate) fn child_crashed(&mut self, key: u64, crash: Crash, ctx: &mut Context<Self>) {
        let directive = self.policy.decide(&crash);
        let (Some(at), Some(child)) = (self.position(key), self.remote_child(key)) else { return };
        let (lost, theater) = (child.whereabouts != ChildLocation::There, child.theater());
        match directive {
            // It had gone there by itself, and starts again here: nothing that could go wrong again and again.
            Directive::Restart | Directive::Resume if lost && theater.is_none() && TheaterLost::is_first(&crash) => {
                self.decided(at, &crash, (Directive::Restart, Duration::ZERO), ctx);
                self.restart_now(key, self.policy.strategy, ctx);
            }
            Directive::Restart => self.restart(key, crash, ctx),
            // There is nothing to resume.
            Directive::Resume if lost => self.restart(key, crash, ctx),
            Directive::Stop if lost => {
                self.decided(at, &crash, (Directive::Stop, Duration::ZERO), ctx);
                let with_it = |kept: &Kept| theater.is_some_and(|at| kept.child.is_at(at, ChildLocation::Lost));
                self.children.retain(|kept| kept.key != key && !with_it(kept));
            }
            Directive::Resume => self.tell(at, &crash, (directive, Decision::Resume), ctx),
            Directive::Stop => self.tell(at, &crash, (directive, Decision::GiveUp), ctx),
            Directive::Escalate => self.give_up(at, crash, ctx),
        }
    }

    /// Tells a child in another theater what is decided about its crash; a new state is not needed for it.
    fn tell(
        &mut self,
        at: usize,
        crash: &Crash,
        (directive, decision): (Directive, Decision<()>),
        ctx: &mut Context<Self>,
    ) {
        self.decided(at, crash, (directive, Duration::ZERO), ctx);
        if let ChildHandle::There(child) = &mut self.children[at].child {
            // Only a factory could fail.
            let _ = child.decide(decision, ctx.now());
        }
    }

    /// A child in another theater is no more. Where that theater is lost, it is one crash, of all children there. Each of them tells: one that has gone
    /// on from there lives.
    pub(crate) fn child_is_no_more(&mut self, ChildIsNoMore { key, id, end }: ChildIsNoMore, ctx: &mut Context<Self>) {
        let Some(child) = self.remote_child(key) else { return };
        if child.id() != Some(id) || child.whereabouts != ChildLocation::There {
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
        // A loss of which the first children have told longer ago is another one: it would count on its own.
        self.lost.retain(|(_, since)| now - *since <= self.policy.within);
        let starts_again = matches!(self.policy.decide(&crash), Directive::Restart | Directive::Resume);
        if starts_again && self.lost.iter().any(|(lost, _)| *lost == theater) {
            return self.restart_with(theater, key, ctx);
        }
        // These tell of it later. They start again, or stop, with this one.
        for kept in &mut self.children {
            let is_there = kept.child.is_at(theater, ChildLocation::There);
            if let ChildHandle::There(other) = &mut kept.child
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

    /// A child is lost with a theater whose loss was counted already: it starts again with the other children that were there.
    fn restart_with(&mut self, theater: u64, key: u64, ctx: &mut Context<Self>) {
        let is_other_at =
            |whereabouts| self.children.iter().any(|kept| kept.key != key && kept.child.is_at(theater, whereabouts));
        match (is_other_at(ChildLocation::Called), is_other_at(ChildLocation::Lost)) {
            (true, _) => {
                if let Some(child) = self.remote_child(key) {
                    child.whereabouts = ChildLocation::Called;
                }
            }
            // They start when the backoff is over, and this one with them.
            (false, true) => {}
            (false, false) => self.restart_now(key, Strategy::OneForOne, ctx),
        }
    }

    pub(crate) fn reached(&mut self, Reached { theater, found }: Reached, ctx: &mut Context<Self>) {
        if found.as_ref().is_ok_and(|host| host.theater() == theater) {
            // It had lived on: that it is lost once more is another crash.
            self.lost.retain(|(lost, _)| *lost != theater);
        }
        let mut failed = None;
        for kept in &mut self.children {
            if !kept.child.is_at(theater, ChildLocation::Called) {
                continue;
            }
            let ChildHandle::There(child) = &mut kept.child else { continue };
            child.whereabouts = ChildLocation::Lost;
            // What comes of the former one, if anything does, is not of this one.
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
