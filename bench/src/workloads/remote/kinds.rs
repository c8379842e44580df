//! The price of remote and mobile actors that receive only local messages and never migrate: `threadring` and `creation` with
//! both kinds, all in one theater. They are measured against the same workloads with local actors.

use playhouse::prelude::*;
use playhouse::serde::{Deserialize, Serialize};

use crate::harness::benchmark::{Baseline, Benchmark, Family};
use crate::harness::finish::{Finish, finish};
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::placement::placed;
use crate::harness::remote_peer::theater_like;
use crate::plans::{creation, rings};
use crate::report::Target;
use crate::workloads::messaging::rings::THREADRING;
use crate::workloads::spawn::creation::CREATION;

pub(crate) const THREADRING_REMOTE: Benchmark = Benchmark {
    name: "threadring-remote",
    op: "hop",
    source: "SALSA Lite, ThreadRing (salsa-lite-migration §4.2)",
    summary: "threadring with actors that other theaters could send to; baseline: threadring",
    stealing: None,
    workers_min: 1,
    family: Family::Remote,
    workload: |system, size, _| remote::ring(system, size),
    baseline: Some(Baseline::Benchmark(&THREADRING)),
    target: Target::ratio(1.01),
};

pub(crate) const THREADRING_MOBILE: Benchmark = Benchmark {
    name: "threadring-mobile",
    summary: "threadring with actors that could move to other theaters; baseline: threadring",
    workload: |system, size, _| mobile::ring(system, size),
    target: Target::ratio(1.03),
    ..THREADRING_REMOTE
};

pub(crate) const CREATION_REMOTE: Benchmark = Benchmark {
    name: "creation-remote",
    op: "actor",
    source: "SALSA Lite, creation (salsa-lite-migration §4.3)",
    summary: "creation with actors that other theaters could send to; baseline: creation",
    workload: |system, size, _| remote::create(system, size),
    baseline: Some(Baseline::Benchmark(&CREATION)),
    target: Target::ratio(1.1),
    ..THREADRING_REMOTE
};

pub(crate) const CREATION_MOBILE: Benchmark = Benchmark {
    name: "creation-mobile",
    summary: "creation with actors that could move to other theaters; baseline: creation",
    workload: |system, size, _| mobile::create(system, size),
    target: Target::ratio(2.0),
    ..CREATION_REMOTE
};

fn end(theater: Theater) -> Result<(), Failure> {
    theater.shutdown().map(drop).map_err(|error| Failure::new(error.to_string()))
}

/// A token has no hops left, at this position of its ring.
#[derive(Message, Serialize, Deserialize)]
#[message(remote)]
#[serde(crate = "playhouse::serde")]
struct Arrived {
    position: u32,
}

struct Judge {
    finish: Finish<u64>,
}

impl Actor for Judge {}

impl Handler<Arrived> for Judge {
    fn handle(&mut self, arrived: Arrived, _: &mut Context<Self>) {
        self.finish.reached(u64::from(arrived.position));
    }
}
playhouse::remote!(Judge: Arrived);

#[derive(Message, Serialize, Deserialize)]
#[message(remote)]
#[serde(crate = "playhouse::serde")]
struct Created;

/// A token with this number of hops left.
#[derive(Message, Serialize, Deserialize)]
#[message(remote)]
#[serde(crate = "playhouse::serde")]
struct Token(u64);

/// The actors of `rings` and of `creation`, as actors of another kind.
macro_rules! actors {
    ($module:ident, $($kind:ident)?) => {
        mod $module {
            use super::*;

            #[derive(Message, Serialize, Deserialize)]
            #[message(remote)]
            #[serde(crate = "playhouse::serde")]
            struct Close {
                first: ActorRef<Member>,
            }

            #[derive(Serialize, Deserialize)]
            #[serde(crate = "playhouse::serde")]
            struct Member {
                next: Option<ActorRef<Member>>,
                position: u32,
                judge: ActorRef<Judge>,
            }

            impl Actor for Member {}

            impl Handler<Token> for Member {
                fn handle(&mut self, Token(left): Token, _: &mut Context<Self>) {
                    match self.next {
                        Some(next) if left > 0 => next.tell(Token(left - 1)),
                        _ => self.judge.tell(Arrived { position: self.position }),
                    }
                }
            }

            impl Handler<Close> for Member {
                fn handle(&mut self, close: Close, _: &mut Context<Self>) {
                    self.next = Some(close.first);
                }
            }
            playhouse::remote!($($kind)? Member: Token, Close);

            /// Builds the ring and answers with its first member.
            #[derive(Message)]
            #[message(reply = ActorRef<Member>)]
            struct Build {
                members: u32,
                placement: Placement,
                judge: ActorRef<Judge>,
            }

            struct Architect;

            impl Actor for Architect {}

            impl Handler<Build> for Architect {
                fn handle(&mut self, build: Build, ctx: &mut Context<Self>) -> ActorRef<Member> {
                    let mut spawn = |next, position| {
                        ctx.spawn_with(placed(build.placement), Member { next, position, judge: build.judge })
                    };
                    let last = spawn(None, build.members - 1);
                    let first = (0..build.members - 1).rev().fold(last, |next, position| spawn(Some(next), position));
                    last.tell(Close { first });
                    ctx.stop();
                    first
                }
            }

            pub(super) fn ring(system: &System, size: Size) -> Result<Outcome, Failure> {
                let plan = rings::Plan::one(size);
                let here = theater_like(system)?;
                let (finish, finished) = finish(size);
                let judge = here.system().spawn(Judge { finish });
                let placement = Placement::Group(Group::new(here.system()));
                let build = Build { members: plan.members, placement, judge };
                let first = here.system().spawn(Architect).ask(build).wait();
                let first = first.map_err(|error| Failure::new(format!("the ring was not built: {error}")))?;
                here.system().run_until_idle();
                let (elapsed, position) = finished.time(|| first.tell(Token(plan.hops)))?;
                check("the position at which the token stops", plan.positions_sum(), position)?;
                end(here)?;
                Ok(Outcome::new(plan.hops_total(), elapsed))
            }

            #[derive(Serialize, Deserialize)]
            #[serde(crate = "playhouse::serde")]
            struct Child {
                master: ActorRef<Master>,
            }

            impl Actor for Child {
                fn started(&mut self, _: &mut Context<Self>) {
                    self.master.tell(Created);
                }
            }
            playhouse::remote!($($kind)? Child:);

            #[derive(Message)]
            struct Create;

            struct Master {
                left: u64,
                expected: u64,
                created: u64,
                finish: Finish<u64>,
            }

            impl Actor for Master {}

            impl Handler<Create> for Master {
                fn handle(&mut self, _: Create, ctx: &mut Context<Self>) {
                    let master = ctx.this();
                    let slice = self.left.min(creation::Plan::SLICE);
                    for _ in 0..slice {
                        ctx.spawn(Child { master });
                    }
                    self.left -= slice;
                    if self.left > 0 {
                        master.tell(Create);
                    }
                }
            }

            impl Handler<Created> for Master {
                fn handle(&mut self, _: Created, _: &mut Context<Self>) {
                    self.created += 1;
                    if self.created == self.expected {
                        self.finish.reached(self.created);
                    }
                }
            }
            playhouse::remote!(Master: Created);

            pub(super) fn create(system: &System, size: Size) -> Result<Outcome, Failure> {
                let plan = creation::Plan::of(size);
                let here = theater_like(system)?;
                let (finish, finished) = finish(size);
                let master = Master { left: plan.actors, expected: plan.actors, created: 0, finish };
                let master = here.system().spawn(master);
                let (elapsed, created) = finished.time(|| master.tell(Create))?;
                check("the actors created", plan.actors, created)?;
                end(here)?;
                Ok(Outcome::new(created, elapsed))
            }
        }
    };
}

actors!(remote,);
actors!(mobile, mobile);
