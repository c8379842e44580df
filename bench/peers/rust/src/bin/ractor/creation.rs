//! Workloads that create actors.

use super::*;

/// Whom a node of a tree tells its result.
enum Above<M> {
    Parent(ActorRef<M>),
    Finish(Finish),
}

impl<M: Message> Above<M> {
    fn tell(&self, result: u64, message: fn(u64) -> M) {
        match self {
            Self::Parent(parent) => tell(parent, message(result)),
            Self::Finish(finish) => finish.reached(result),
        }
    }
}

pub mod fjcreate {
    use super::*;

    struct Work(u64);

    struct Child(ActorRef<Employ>);

    impl State for Child {
        type Msg = Work;

        fn handle(&mut self, myself: &ActorRef<Work>, Work(number): Work) {
            tell(&self.0, Employ::Done(work(number)));
            myself.stop(None);
        }
    }

    enum Employ {
        Slice,
        Done(u64),
    }

    struct Master {
        actors: u64,
        children: Vec<ActorRef<Work>>,
        employed: u64,
        tally: Tally,
    }

    impl State for Master {
        type Msg = Employ;

        fn handle(&mut self, myself: &ActorRef<Employ>, message: Employ) {
            if let Employ::Done(result) = message {
                self.tally.done(result);
                return;
            }
            let created = self.children.len() as u64;
            if created < self.actors {
                let slice = created..(created + SLICE).min(self.actors);
                self.children.extend(slice.map(|_| spawn(Child(myself.clone()))));
                return tell(myself, Employ::Slice);
            }
            let until = (self.employed + SLICE).min(self.actors);
            for number in self.employed..until {
                tell(&self.children[number as usize], Work(number));
            }
            self.employed = until;
            if until < self.actors {
                tell(myself, Employ::Slice);
            }
        }
    }

    pub fn run(size: Size) -> Played {
        let actors = playhouse_peers::fjcreate(size);
        let (finish, finished) = finish();
        let children = Vec::with_capacity(actors as usize);
        let master = spawn(Master { actors, children, employed: 0, tally: Tally::new(actors, finish) });
        finished.time(actors, work_sum(actors), || tell(&master, Employ::Slice))
    }
}

pub mod skynet {
    use super::*;

    struct Sum(u64);

    struct Node {
        above: Above<Sum>,
        number: u64,
        leaves: u64,
        missing: u64,
        sum: u64,
    }

    impl State for Node {
        type Msg = Sum;

        fn started(&mut self, myself: &ActorRef<Sum>) {
            if self.leaves == 1 {
                self.above.tell(self.number, Sum);
                return myself.stop(None);
            }
            let leaves = self.leaves / DEGREE;
            for child in 0..DEGREE {
                let (above, number) = (Above::Parent(myself.clone()), self.number + child * leaves);
                spawn(Node { above, number, leaves, missing: DEGREE, sum: 0 });
            }
        }

        fn handle(&mut self, myself: &ActorRef<Sum>, Sum(sum): Sum) {
            self.sum += sum;
            self.missing -= 1;
            if self.missing == 0 {
                self.above.tell(self.sum, Sum);
                myself.stop(None);
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
        above: Above<Value>,
        n: u64,
        missing: u64,
        value: u64,
    }

    impl State for Fib {
        type Msg = Value;

        fn started(&mut self, myself: &ActorRef<Value>) {
            if self.n < 2 {
                self.above.tell(self.n, Value);
                return myself.stop(None);
            }
            for n in [self.n - 1, self.n - 2] {
                spawn(Fib { above: Above::Parent(myself.clone()), n, missing: 2, value: 0 });
            }
        }

        fn handle(&mut self, myself: &ActorRef<Value>, Value(value): Value) {
            self.value += value;
            self.missing -= 1;
            if self.missing == 0 {
                self.above.tell(self.value, Value);
                myself.stop(None);
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
