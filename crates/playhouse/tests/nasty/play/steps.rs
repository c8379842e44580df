//! The steps of scripts, without a context and in a handler.

use super::*;

impl World {
    pub(super) fn step(self: &Arc<Self>, place: Place, step: &Step) {
        match *step {
            Step::Tell { to, mail } => self.tell(to, mail),
            Step::TellUrgent { to, mail } => {
                self.send(to, mail, |to, load| with_mail!(load, message => to.tell_urgent(message)));
            }
            Step::TryTell { to, mail } => self.send(to, mail, |to, load| {
                with_mail!(load, message => if let Err(back) = to.try_tell(message) {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                    drop(back);
                });
            }),
            Step::TellAbroad { to, mail } => self.give(Job::Tell { to, mail }),
            Step::Ask { to, mail, within } => {
                if let Some((mut ask, _token)) = self.ask(to, mail, within) {
                    if place == Place::Thread {
                        self.wait(ask);
                    } else {
                        let _ = ask.as_mut().poll(&mut PollContext::from_waker(Waker::noop()));
                    }
                }
            }
            Step::Shelve { to, mail, within, waker } => {
                let script = usize::from(waker) % self.program.wakers.len();
                let waker = Waker::from(Arc::new(Foreign { script, token: Token::new(self, Kind::Waker) }));
                if let Some((mut ask, token)) = self.ask(to, mail, within)
                    && ask.as_mut().poll(&mut PollContext::from_waker(&waker)).is_pending()
                {
                    lock(&self.shelf).push((ask, token));
                }
            }
            Step::DropShelved => {
                let shelved = lock(&self.shelf).pop();
                drop(shelved);
            }
            Step::Spawn { actor } => self.spawn(usize::from(actor)),
            Step::Stop { who } => _ = self.actor(who).map(ActorRef::stop),
            Step::Drain { who } => _ = self.actor(who).map(ActorRef::drain),
            Step::Kill { who } => _ = self.actor(who).map(ActorRef::kill),
            Step::Panic => panic_on_purpose(place),
            Step::Block { ms } => thread::sleep(within_ms(ms)),
            Step::Yield => thread::yield_now(),
            Step::WakeKept { waker } => {
                let waker = {
                    let kept = lock(&self.kept);
                    (!kept.is_empty()).then(|| kept[usize::from(waker) % kept.len()].clone())
                };
                let _ = waker.map(Waker::wake);
            }
            Step::DropKept => {
                let kept = lock(&self.kept).pop();
                drop(kept);
            }
            // These steps need a context.
            Step::StopSelf
            | Step::Fail
            | Step::After { .. }
            | Step::Every { .. }
            | Step::Spaced { .. }
            | Step::Cancel { .. }
            | Step::Watch { .. }
            | Step::WakeAbroad
            | Step::KeepWaker => {}
        }
    }
}

impl Nasty {
    pub(super) fn act(&mut self, place: Place, world: &Arc<World>, script: &Script, ctx: &mut Context<Self>) {
        for step in script {
            if !world.spend() {
                break;
            }
            self.step(place, world, step, ctx);
        }
        self.calm(world, ctx);
    }

    /// Ends the timers that would go on for ever, once the fuel is spent.
    pub(super) fn calm(&mut self, world: &World, ctx: &mut Context<Self>) {
        if world.is_spent() {
            for key in std::mem::take(&mut self.timers) {
                ctx.cancel(key);
            }
        }
    }

    pub(super) fn step(&mut self, place: Place, world: &Arc<World>, step: &Step, ctx: &mut Context<Self>) {
        match *step {
            Step::Ask { to, mail, within } => {
                let Some(to) = world.actor(to) else { return };
                let token = Token::new(world, Kind::Continuation);
                with_mail!(Load::new(world, mail, How::Other), message => {
                    let ask = ctx.ask(to, message);
                    let ask = if let Some(ms) = within { ask.within(within_ms(ms)) } else { ask };
                    ask.then(move |this, _answer, ctx| {
                        let _token = token;
                        let world = this.world();
                        if world.spend() && world.fuel.load(Ordering::Relaxed) % 8 == 0 {
                            panic_on_purpose(Place::Answer);
                        }
                        this.calm(&world, ctx);
                    });
                });
            }
            Step::Spawn { actor } => {
                if let Some((options, child)) = world.new_actor(usize::from(actor))
                    && let Ok(child) = ctx.try_spawn_with(options, child)
                {
                    lock(&world.actors).push(child);
                }
            }
            Step::StopSelf => ctx.stop(),
            Step::Fail => ctx.fail(Meant),
            Step::After { mail, ms } => {
                let load = Load::new(world, mail, How::Other);
                self.timers.push(with_mail!(load, message => ctx.send_after(within_ms(ms), message)));
            }
            Step::Every { mail, ms } => {
                let load = Load::new(world, mail, How::Other);
                self.timers.push(with_mail!(load, message => ctx.send_every(within_ms(ms), message)));
            }
            Step::Spaced { mail, ms } => {
                let load = Load::new(world, mail, How::Other);
                self.timers.push(with_mail!(load, message => ctx.send_with_fixed_delay(within_ms(ms), message)));
            }
            Step::Cancel { timer } => {
                if !self.timers.is_empty() {
                    let at = usize::from(timer) % self.timers.len();
                    ctx.cancel(self.timers.swap_remove(at));
                }
            }
            Step::Watch { who } => _ = world.actor(who).map(|who| ctx.watch(who)),
            ref other => world.step(place, other),
        }
    }
}
