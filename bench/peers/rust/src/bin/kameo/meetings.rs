//! Workloads whose actors meet.

use super::*;

pub mod chameneos {
    use super::*;

    struct Enter {
        who: ActorRef<Creature>,
        colour: Colour,
    }

    struct Left(u64);

    struct Meet(Colour);

    struct Closed;

    #[derive(Actor)]
    struct Mall {
        left: u64,
        waiting: Option<Enter>,
        tally: Tally,
    }

    impl Message<Enter> for Mall {
        type Reply = ();

        async fn handle(&mut self, second: Enter, _: &mut Context<Self, Self::Reply>) {
            if self.left == 0 {
                tell(&second.who, Closed);
            } else if let Some(first) = self.waiting.take() {
                tell(&first.who, Meet(second.colour));
                tell(&second.who, Meet(first.colour));
                self.left -= 1;
            } else {
                self.waiting = Some(second);
            }
        }
    }

    impl Message<Left> for Mall {
        type Reply = ();

        async fn handle(&mut self, Left(meetings): Left, _: &mut Context<Self, Self::Reply>) {
            self.tally.done(meetings);
        }
    }

    #[derive(Actor)]
    struct Creature {
        mall: ActorRef<Mall>,
        colour: Colour,
        meetings: u64,
    }

    impl Creature {
        fn enter(&self, ctx: &Context<Self, ()>) {
            tell(&self.mall, Enter { who: ctx.actor_ref().clone(), colour: self.colour });
        }
    }

    impl Message<Begin> for Creature {
        type Reply = ();

        async fn handle(&mut self, _: Begin, ctx: &mut Context<Self, Self::Reply>) {
            self.enter(ctx);
        }
    }

    impl Message<Meet> for Creature {
        type Reply = ();

        async fn handle(&mut self, Meet(other): Meet, ctx: &mut Context<Self, Self::Reply>) {
            self.colour = self.colour.complement(other);
            self.meetings += 1;
            self.enter(ctx);
        }
    }

    impl Message<Closed> for Creature {
        type Reply = ();

        async fn handle(&mut self, _: Closed, _: &mut Context<Self, Self::Reply>) {
            tell(&self.mall, Left(self.meetings));
        }
    }

    pub fn run(size: Size) -> Played {
        let meetings = playhouse_peers::chameneos(size);
        let (finish, finished) = finish();
        let mall = spawn(Mall { left: meetings, waiting: None, tally: Tally::new(CREATURES, finish) });
        let creature = |number| Creature { mall: mall.clone(), colour: Colour::of(number), meetings: 0 };
        let creatures: Vec<_> = (0..CREATURES).map(|number| spawn(creature(number))).collect();
        finished.time(meetings, 2 * meetings, || {
            for creature in &creatures {
                tell(&creature, Begin);
            }
        })
    }
}

pub mod big {
    use super::*;

    struct Meet(Arc<[ActorRef<Member>]>);

    struct Ping(ActorRef<Member>);

    struct Pong;

    /// Asks for the pings received.
    struct Report(ActorRef<Judge>);

    #[derive(Actor)]
    struct Member {
        members: Arc<[ActorRef<Member>]>,
        number: u32,
        dice: Dice,
        left: u64,
        pinged: u64,
        judge: ActorRef<Judge>,
    }

    impl Member {
        fn ping(&mut self, ctx: &Context<Self, ()>) {
            tell(&self.members[self.dice.other(self.number)], Ping(ctx.actor_ref().clone()));
        }
    }

    impl Message<Meet> for Member {
        type Reply = ();

        async fn handle(&mut self, Meet(members): Meet, _: &mut Context<Self, Self::Reply>) {
            self.members = members;
        }
    }

    impl Message<Begin> for Member {
        type Reply = ();

        async fn handle(&mut self, _: Begin, ctx: &mut Context<Self, Self::Reply>) {
            self.ping(ctx);
        }
    }

    impl Message<Ping> for Member {
        type Reply = ();

        async fn handle(&mut self, Ping(from): Ping, _: &mut Context<Self, Self::Reply>) {
            self.pinged += 1;
            tell(&from, Pong);
        }
    }

    impl Message<Pong> for Member {
        type Reply = ();

        async fn handle(&mut self, _: Pong, ctx: &mut Context<Self, Self::Reply>) {
            self.left -= 1;
            if self.left > 0 { self.ping(ctx) } else { tell(&self.judge, Done(0)) }
        }
    }

    impl Message<Report> for Member {
        type Reply = ();

        async fn handle(&mut self, Report(judge): Report, _: &mut Context<Self, Self::Reply>) {
            tell(&judge, Done(self.pinged));
        }
    }

    pub fn run(size: Size) -> Played {
        let pings = playhouse_peers::big(size);
        let pings_total = u64::from(MEMBERS) * pings;
        let (finish, finished) = finish();
        let (pinged_finish, pinged_finished) = playhouse_peers::finish();
        let judge = spawn(Judge(Tally::new(u64::from(MEMBERS), finish)));
        let reports = spawn(Judge(Tally::new(u64::from(MEMBERS), pinged_finish)));
        let nobody: Arc<[ActorRef<Member>]> = Arc::new([]);
        let member = |number| {
            let (members, judge) = (Arc::clone(&nobody), judge.clone());
            Member { members, number, dice: Dice::of(number), left: pings, pinged: 0, judge }
        };
        let members: Arc<[_]> = (0..MEMBERS).map(|number| spawn(member(number))).collect();
        for member in members.iter() {
            tell(&member, Meet(Arc::clone(&members)));
        }
        let played = finished.time(2 * pings_total, 0, || {
            for member in members.iter() {
                tell(&member, Begin);
            }
        })?;
        pinged_finished.time(0, pings_total, || {
            for member in members.iter() {
                tell(&member, Report(reports.clone()));
            }
        })?;
        Ok(played)
    }
}
