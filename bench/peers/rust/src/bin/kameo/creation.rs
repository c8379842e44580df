//! Workloads that create actors.

use super::*;

/// Whom a node of a tree tells its result.
enum Above<A: Actor> {
    Parent(ActorRef<A>),
    Finish(Finish),
}

impl<A: Actor> Above<A> {
    fn tell<M: Send + 'static>(&self, result: u64, message: fn(u64) -> M)
    where
        A: Message<M>,
    {
        match self {
            Self::Parent(parent) => tell(parent, message(result)),
            Self::Finish(finish) => finish.reached(result),
        }
    }
}

pub mod fjcreate {
    use super::*;

    struct Work(u64);

    struct Done(u64);

    #[derive(Actor)]
    struct Child(ActorRef<Master>);

    impl Message<Work> for Child {
        type Reply = ();

        async fn handle(&mut self, Work(number): Work, ctx: &mut Context<Self, Self::Reply>) {
            tell(&self.0, Done(work(number)));
            ctx.stop();
        }
    }

    #[derive(Actor)]
    struct Master {
        actors: u64,
        children: Vec<ActorRef<Child>>,
        employed: u64,
        tally: Tally,
    }

    impl Message<Begin> for Master {
        type Reply = ();

        async fn handle(&mut self, _: Begin, ctx: &mut Context<Self, Self::Reply>) {
            let created = self.children.len() as u64;
            if created < self.actors {
                let slice = created..(created + SLICE).min(self.actors);
                self.children.extend(slice.map(|_| spawn(Child(ctx.actor_ref().clone()))));
                return tell(ctx.actor_ref(), Begin);
            }
            let until = (self.employed + SLICE).min(self.actors);
            for number in self.employed..until {
                tell(&self.children[number as usize], Work(number));
            }
            self.employed = until;
            if until < self.actors {
                tell(ctx.actor_ref(), Begin);
            }
        }
    }

    impl Message<Done> for Master {
        type Reply = ();

        async fn handle(&mut self, Done(result): Done, _: &mut Context<Self, Self::Reply>) {
            self.tally.done(result);
        }
    }

    pub fn run(size: Size) -> Played {
        let actors = playhouse_peers::fjcreate(size);
        let (finish, finished) = finish();
        let children = Vec::with_capacity(actors as usize);
        let master = Master { actors, children, employed: 0, tally: Tally::new(actors, finish) };
        let master = spawn(master);
        finished.time(actors, work_sum(actors), || tell(&master, Begin))
    }
}

pub mod skynet {
    use super::*;

    struct Sum(u64);

    struct Node {
        above: Above<Node>,
        number: u64,
        leaves: u64,
        missing: u64,
        sum: u64,
    }

    impl Actor for Node {
        type Args = Self;
        type Error = Infallible;

        async fn on_start(node: Self, actor: ActorRef<Self>) -> Result<Self, Infallible> {
            if node.leaves == 1 {
                node.above.tell(node.number, Sum);
                // It can only fail where the actor has ended already.
                let _ = actor.stop_gracefully().await;
                return Ok(node);
            }
            let leaves = node.leaves / DEGREE;
            for child in 0..DEGREE {
                let (above, number) = (Above::Parent(actor.clone()), node.number + child * leaves);
                spawn(Node { above, number, leaves, missing: DEGREE, sum: 0 });
            }
            Ok(node)
        }
    }

    impl Message<Sum> for Node {
        type Reply = ();

        async fn handle(&mut self, Sum(sum): Sum, ctx: &mut Context<Self, Self::Reply>) {
            self.sum += sum;
            self.missing -= 1;
            if self.missing == 0 {
                self.above.tell(self.sum, Sum);
                ctx.stop();
            }
        }
    }

    pub fn run(size: Size) -> Played {
        let leaves = playhouse_peers::skynet(size);
        let (finish, finished) = finish();
        let root = Node { above: Above::Finish(finish), number: 0, leaves, missing: DEGREE, sum: 0 };
        finished.time(skynet_actors(leaves), leaves * (leaves - 1) / 2, || {
            spawn(root);
        })
    }
}

pub mod fib {
    use super::*;

    struct Value(u64);

    struct Fib {
        above: Above<Fib>,
        n: u64,
        missing: u64,
        value: u64,
    }

    impl Actor for Fib {
        type Args = Self;
        type Error = Infallible;

        async fn on_start(fib: Self, actor: ActorRef<Self>) -> Result<Self, Infallible> {
            if fib.n < 2 {
                fib.above.tell(fib.n, Value);
                // It can only fail where the actor has ended already.
                let _ = actor.stop_gracefully().await;
                return Ok(fib);
            }
            for n in [fib.n - 1, fib.n - 2] {
                spawn(Fib { above: Above::Parent(actor.clone()), n, missing: 2, value: 0 });
            }
            Ok(fib)
        }
    }

    impl Message<Value> for Fib {
        type Reply = ();

        async fn handle(&mut self, Value(value): Value, ctx: &mut Context<Self, Self::Reply>) {
            self.value += value;
            self.missing -= 1;
            if self.missing == 0 {
                self.above.tell(self.value, Value);
                ctx.stop();
            }
        }
    }

    pub fn run(size: Size) -> Played {
        let n = playhouse_peers::fib(size);
        let (value, actors) = fib_and_actors(n);
        let (finish, finished) = finish();
        let root = Fib { above: Above::Finish(finish), n, missing: 2, value: 0 };
        finished.time(actors, value, || {
            spawn(root);
        })
    }
}
