//! Workloads whose actors meet.

use super::*;

pub mod chameneos {
    use super::*;

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Enter {
        who: Addr<Creature>,
        colour: Colour,
    }

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Left(u64);

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Meet(Colour);

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Closed;

    struct Mall {
        left: u64,
        waiting: Option<Enter>,
        tally: Tally,
    }

    impl Actor for Mall {
        type Context = Context<Self>;
    }

    impl Handler<Enter> for Mall {
        type Result = ();

        fn handle(&mut self, second: Enter, _: &mut Context<Self>) {
            if self.left == 0 {
                second.who.do_send(Closed);
            } else if let Some(first) = self.waiting.take() {
                first.who.do_send(Meet(second.colour));
                second.who.do_send(Meet(first.colour));
                self.left -= 1;
            } else {
                self.waiting = Some(second);
            }
        }
    }

    impl Handler<Left> for Mall {
        type Result = ();

        fn handle(&mut self, Left(meetings): Left, _: &mut Context<Self>) {
            self.tally.done(meetings);
        }
    }

    struct Creature {
        mall: Addr<Mall>,
        colour: Colour,
        meetings: u64,
    }

    impl Creature {
        fn enter(&self, ctx: &Context<Self>) {
            self.mall.do_send(Enter { who: ctx.address(), colour: self.colour });
        }
    }

    impl Actor for Creature {
        type Context = Context<Self>;
    }

    impl Handler<Begin> for Creature {
        type Result = ();

        fn handle(&mut self, _: Begin, ctx: &mut Context<Self>) {
            self.enter(ctx);
        }
    }

    impl Handler<Meet> for Creature {
        type Result = ();

        fn handle(&mut self, Meet(other): Meet, ctx: &mut Context<Self>) {
            self.colour = self.colour.complement(other);
            self.meetings += 1;
            self.enter(ctx);
        }
    }

    impl Handler<Closed> for Creature {
        type Result = ();

        fn handle(&mut self, _: Closed, _: &mut Context<Self>) {
            self.mall.do_send(Left(self.meetings));
        }
    }

    pub fn run(stage: &Stage, size: Size) -> Played {
        let meetings = playhouse_peers::chameneos(size);
        let (finish, finished) = finish();
        let mall = stage.start(0, Mall { left: meetings, waiting: None, tally: Tally::new(CREATURES, finish) });
        let creature = |number| Creature { mall: mall.clone(), colour: Colour::of(number), meetings: 0 };
        let creatures: Vec<_> = (0..CREATURES).map(|number| stage.start(0, creature(number))).collect();
        finished.time(meetings, 2 * meetings, || {
            for creature in &creatures {
                creature.do_send(Begin);
            }
        })
    }
}

pub mod big {
    use super::*;

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Meet(Arc<[Addr<Member>]>);

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Ping(Addr<Member>);

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Pong;

    /// Asks for the pings received.
    #[derive(Message)]
    #[rtype(result = "()")]
    struct Report(Addr<Judge>);

    struct Member {
        members: Arc<[Addr<Member>]>,
        number: u32,
        dice: Dice,
        left: u64,
        pinged: u64,
        judge: Addr<Judge>,
    }

    impl Member {
        fn ping(&mut self, ctx: &Context<Self>) {
            self.members[self.dice.other(self.number)].do_send(Ping(ctx.address()));
        }
    }

    impl Actor for Member {
        type Context = Context<Self>;
    }

    impl Handler<Meet> for Member {
        type Result = ();

        fn handle(&mut self, Meet(members): Meet, _: &mut Context<Self>) {
            self.members = members;
        }
    }

    impl Handler<Begin> for Member {
        type Result = ();

        fn handle(&mut self, _: Begin, ctx: &mut Context<Self>) {
            self.ping(ctx);
        }
    }

    impl Handler<Ping> for Member {
        type Result = ();

        fn handle(&mut self, Ping(from): Ping, _: &mut Context<Self>) {
            self.pinged += 1;
            from.do_send(Pong);
        }
    }

    impl Handler<Pong> for Member {
        type Result = ();

        fn handle(&mut self, _: Pong, ctx: &mut Context<Self>) {
            self.left -= 1;
            if self.left > 0 { self.ping(ctx) } else { self.judge.do_send(Done(0)) }
        }
    }

    impl Handler<Report> for Member {
        type Result = ();

        fn handle(&mut self, Report(judge): Report, _: &mut Context<Self>) {
            judge.do_send(Done(self.pinged));
        }
    }

    pub fn run(stage: &Stage, size: Size) -> Played {
        let pings = playhouse_peers::big(size);
        let pings_total = u64::from(MEMBERS) * pings;
        let (finish, finished) = finish();
        let (pinged_finish, pinged_finished) = playhouse_peers::finish();
        let judge = stage.start(0, Judge(Tally::new(u64::from(MEMBERS), finish)));
        let reports = stage.start(0, Judge(Tally::new(u64::from(MEMBERS), pinged_finish)));
        let nobody: Arc<[Addr<Member>]> = Arc::new([]);
        let member = |number| {
            let (members, judge) = (Arc::clone(&nobody), judge.clone());
            Member { members, number, dice: Dice::of(number), left: pings, pinged: 0, judge }
        };
        let members: Arc<[_]> = (0..MEMBERS).map(|number| stage.start(0, member(number))).collect();
        for member in members.iter() {
            member.do_send(Meet(Arc::clone(&members)));
        }
        let played = finished.time(2 * pings_total, 0, || {
            for member in members.iter() {
                member.do_send(Begin);
            }
        })?;
        pinged_finished.time(0, pings_total, || {
            for member in members.iter() {
                member.do_send(Report(reports.clone()));
            }
        })?;
        Ok(played)
    }
}
