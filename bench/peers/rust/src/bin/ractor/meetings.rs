//! Workloads whose actors meet.

use super::*;

pub mod chameneos {
    use super::*;

    enum AtMall {
        Enter { who: ActorRef<Live>, colour: Colour },
        Left(u64),
    }

    enum Live {
        Begin,
        Meet(Colour),
        Closed,
    }

    struct Mall {
        left: u64,
        waiting: Option<(ActorRef<Live>, Colour)>,
        tally: Tally,
    }

    impl State for Mall {
        type Msg = AtMall;

        fn handle(&mut self, _: &ActorRef<AtMall>, message: AtMall) {
            match message {
                AtMall::Enter { who, .. } if self.left == 0 => tell(&who, Live::Closed),
                AtMall::Enter { who, colour } => match self.waiting.take() {
                    None => self.waiting = Some((who, colour)),
                    Some((first, first_colour)) => {
                        tell(&first, Live::Meet(colour));
                        tell(&who, Live::Meet(first_colour));
                        self.left -= 1;
                    }
                },
                AtMall::Left(meetings) => self.tally.done(meetings),
            }
        }
    }

    struct Creature {
        mall: ActorRef<AtMall>,
        colour: Colour,
        meetings: u64,
    }

    impl State for Creature {
        type Msg = Live;

        fn handle(&mut self, myself: &ActorRef<Live>, message: Live) {
            match message {
                Live::Begin => {}
                Live::Meet(other) => {
                    self.colour = self.colour.complement(other);
                    self.meetings += 1;
                }
                Live::Closed => return tell(&self.mall, AtMall::Left(self.meetings)),
            }
            tell(&self.mall, AtMall::Enter { who: myself.clone(), colour: self.colour });
        }
    }

    pub fn run(size: Size) -> Played {
        let meetings = playhouse_peers::chameneos(size);
        let (finish, finished) = finish();
        let mall = spawn(Mall { left: meetings, waiting: None, tally: Tally::new(CREATURES, finish) });
        let creature = |number| spawn(Creature { mall: mall.clone(), colour: Colour::of(number), meetings: 0 });
        let creatures: Vec<_> = (0..CREATURES).map(creature).collect();
        finished.time(meetings, 2 * meetings, || {
            for creature in &creatures {
                tell(creature, Live::Begin);
            }
        })
    }
}

pub mod big {
    use super::*;

    enum Talk {
        Meet(Arc<[ActorRef<Talk>]>),
        Begin,
        Ping(ActorRef<Talk>),
        Pong,
        Report(ActorRef<Done>),
    }

    struct Member {
        members: Arc<[ActorRef<Talk>]>,
        number: u32,
        dice: Dice,
        left: u64,
        pinged: u64,
        judge: ActorRef<Done>,
    }

    impl Member {
        fn ping(&mut self, myself: &ActorRef<Talk>) {
            tell(&self.members[self.dice.other(self.number)], Talk::Ping(myself.clone()));
        }
    }

    impl State for Member {
        type Msg = Talk;

        fn handle(&mut self, myself: &ActorRef<Talk>, message: Talk) {
            match message {
                Talk::Meet(members) => self.members = members,
                Talk::Begin => self.ping(myself),
                Talk::Ping(from) => {
                    self.pinged += 1;
                    tell(&from, Talk::Pong);
                }
                Talk::Pong => {
                    self.left -= 1;
                    if self.left > 0 { self.ping(myself) } else { tell(&self.judge, Done(0)) }
                }
                Talk::Report(judge) => tell(&judge, Done(self.pinged)),
            }
        }
    }

    pub fn run(size: Size) -> Played {
        let pings = playhouse_peers::big(size);
        let pings_total = u64::from(MEMBERS) * pings;
        let (finish, finished) = finish();
        let (pinged_finish, pinged_finished) = playhouse_peers::finish();
        let judge = spawn(Judge(Tally::new(u64::from(MEMBERS), finish)));
        let reports = spawn(Judge(Tally::new(u64::from(MEMBERS), pinged_finish)));
        let nobody: Arc<[ActorRef<Talk>]> = Arc::new([]);
        let member = |number| {
            let (members, judge) = (Arc::clone(&nobody), judge.clone());
            spawn(Member { members, number, dice: Dice::of(number), left: pings, pinged: 0, judge })
        };
        let members: Arc<[_]> = (0..MEMBERS).map(member).collect();
        for member in members.iter() {
            tell(member, Talk::Meet(Arc::clone(&members)));
        }
        let played = finished.time(2 * pings_total, 0, || {
            for member in members.iter() {
                tell(member, Talk::Begin);
            }
        })?;
        pinged_finished.time(0, pings_total, || {
            for member in members.iter() {
                tell(member, Talk::Report(reports.clone()));
            }
        })?;
        Ok(played)
    }
}
