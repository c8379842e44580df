//! Workloads that create actors.

use super::*;

pub mod fjcreate {
    use super::*;

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Work(u64);

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Done(u64);

    struct Child(Addr<Master>);

    impl Actor for Child {
        type Context = Context<Self>;
    }

    impl Handler<Work> for Child {
        type Result = ();

        fn handle(&mut self, Work(number): Work, ctx: &mut Context<Self>) {
            self.0.do_send(Done(work(number)));
            ctx.stop();
        }
    }

    struct Master {
        stage: Stage,
        actors: u64,
        children: Vec<Addr<Child>>,
        employed: u64,
        tally: Tally,
    }

    impl Actor for Master {
        type Context = Context<Self>;
    }

    impl Handler<Begin> for Master {
        type Result = ();

        fn handle(&mut self, _: Begin, ctx: &mut Context<Self>) {
            let created = self.children.len() as u64;
            if created < self.actors {
                for number in created..(created + SLICE).min(self.actors) {
                    self.children.push(self.stage.start(number / SLICE, Child(ctx.address())));
                }
                return ctx.notify(Begin);
            }
            let until = (self.employed + SLICE).min(self.actors);
            for number in self.employed..until {
                self.children[number as usize].do_send(Work(number));
            }
            self.employed = until;
            if until < self.actors {
                ctx.notify(Begin);
            }
        }
    }

    impl Handler<Done> for Master {
        type Result = ();

        fn handle(&mut self, Done(result): Done, _: &mut Context<Self>) {
            self.tally.done(result);
        }
    }

    pub fn run(stage: &Stage, size: Size) -> Played {
        let actors = playhouse_peers::fjcreate(size);
        let (finish, finished) = finish();
        let children = Vec::with_capacity(actors as usize);
        let master = Master { stage: stage.clone(), actors, children, employed: 0, tally: Tally::new(actors, finish) };
        let master = stage.start(0, master);
        finished.time(actors, work_sum(actors), || master.do_send(Begin))
    }
}

pub mod skynet {
    use super::*;

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Sum(u64);

    enum Above {
        Parent(Addr<Node>),
        Finish(Finish, Stage),
    }

    struct Node {
        above: Above,
        number: u64,
        leaves: u64,
        missing: u64,
        sum: u64,
    }

    impl Node {
        fn new(above: Above, number: u64, leaves: u64) -> Self {
            Self { above, number, leaves, missing: DEGREE, sum: 0 }
        }

        fn end(&self, sum: u64, ctx: &mut Context<Self>) {
            match &self.above {
                Above::Parent(parent) => parent.do_send(Sum(sum)),
                Above::Finish(finish, _) => finish.reached(sum),
            }
            ctx.stop();
        }
    }

    impl Actor for Node {
        type Context = Context<Self>;

        fn started(&mut self, ctx: &mut Context<Self>) {
            if self.leaves == 1 {
                return self.end(self.number, ctx);
            }
            let leaves = self.leaves / DEGREE;
            for child in 0..DEGREE {
                let node = Node::new(Above::Parent(ctx.address()), self.number + child * leaves, leaves);
                // The first level is distributed to the arbiters; the levels below stay on them.
                match &self.above {
                    Above::Finish(_, stage) => stage.start(child, node),
                    Above::Parent(_) => node.start(),
                };
            }
        }
    }

    impl Handler<Sum> for Node {
        type Result = ();

        fn handle(&mut self, Sum(sum): Sum, ctx: &mut Context<Self>) {
            self.sum += sum;
            self.missing -= 1;
            if self.missing == 0 {
                self.end(self.sum, ctx);
            }
        }
    }

    pub fn run(stage: &Stage, size: Size) -> Played {
        let leaves = playhouse_peers::skynet(size);
        let (finish, finished) = finish();
        let root = Node::new(Above::Finish(finish, stage.clone()), 0, leaves);
        finished.time(skynet_actors(leaves), leaves * (leaves - 1) / 2, || {
            stage.start(0, root);
        })
    }
}

pub mod fib {
    use super::*;

    /// From this level on a call stays on the arbiter of its caller.
    const DEALT: u64 = 20;

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Value(u64);

    enum Above {
        Parent(Addr<Fib>),
        Finish(Finish),
    }

    struct Fib {
        above: Above,
        stage: Stage,
        n: u64,
        missing: u64,
        value: u64,
    }

    impl Fib {
        fn end(&self, value: u64, ctx: &mut Context<Self>) {
            match &self.above {
                Above::Parent(parent) => parent.do_send(Value(value)),
                Above::Finish(finish) => finish.reached(value),
            }
            ctx.stop();
        }
    }

    impl Actor for Fib {
        type Context = Context<Self>;

        fn started(&mut self, ctx: &mut Context<Self>) {
            if self.n < 2 {
                return self.end(self.n, ctx);
            }
            for n in [self.n - 1, self.n - 2] {
                let above = Above::Parent(ctx.address());
                let child = Fib { above, stage: self.stage.clone(), n, missing: 2, value: 0 };
                if n >= DEALT {
                    self.stage.start(n, child);
                } else {
                    child.start();
                }
            }
        }
    }

    impl Handler<Value> for Fib {
        type Result = ();

        fn handle(&mut self, Value(value): Value, ctx: &mut Context<Self>) {
            self.value += value;
            self.missing -= 1;
            if self.missing == 0 {
                self.end(self.value, ctx);
            }
        }
    }

    pub fn run(stage: &Stage, size: Size) -> Played {
        let n = playhouse_peers::fib(size);
        let (value, actors) = fib_and_actors(n);
        let (finish, finished) = finish();
        let root = Fib { above: Above::Finish(finish), stage: stage.clone(), n, missing: 2, value: 0 };
        finished.time(actors, value, || {
            stage.start(0, root);
        })
    }
}
