//! Workloads of two processes whose actors send.

use super::*;

pub mod rpingpong {
    use super::*;

    const PINGER: &str = "pinger";
    const PONGER: &str = "ponger";

    #[derive(RactorClusterMessage)]
    enum Serve {
        Begin(u64),
        Pong(u64),
    }

    struct Pinger {
        ponger: Option<ActorRef<Return>>,
        finish: Finish,
    }

    impl State for Pinger {
        type Msg = Serve;

        fn handle(&mut self, message: Serve) {
            let left = match message {
                Serve::Begin(rounds) => {
                    self.ponger = Some(node::found(PONGER));
                    rounds
                }
                Serve::Pong(left) => left - 1,
            };
            match &self.ponger {
                Some(ponger) if left > 0 => tell(ponger, Return::Ping(left)),
                _ => self.finish.reached(0),
            }
        }
    }

    #[derive(RactorClusterMessage)]
    enum Return {
        Ping(u64),
        #[rpc]
        AskSeen(RpcReplyPort<u64>),
    }

    struct Ponger {
        pinger: ActorRef<Serve>,
        seen: u64,
    }

    impl State for Ponger {
        type Msg = Return;

        fn handle(&mut self, message: Return) {
            match message {
                Return::Ping(left) => {
                    self.seen += 1;
                    tell(&self.pinger, Serve::Pong(left));
                }
                Return::AskSeen(to) => answer(to, self.seen),
            }
        }
    }

    /// Is the other process.
    pub async fn join() -> Result<(), String> {
        let pinger = node::find(PINGER).await?;
        spawn_known(PONGER, Ponger { pinger, seen: 0 });
        Ok(())
    }

    pub fn run(stage: &Stage) -> Played {
        let rounds = playhouse_peers::rpingpong(stage.size);
        let (finish, finished) = finish();
        let _entered = stage.runtime.enter();
        let pinger = spawn_known(PINGER, Pinger { ponger: None, finish });
        let ponger = stage.find(PONGER)?;
        let played = finished.time(2 * rounds, 0, || tell(&pinger, Serve::Begin(rounds)))?;
        check("the pings seen", rounds, stage.ask(&ponger, Return::AskSeen)?)?;
        Ok(played)
    }
}

pub mod rthroughput {
    use super::*;

    const SOURCE: &str = "source";
    const SINK: &str = "sink";

    #[derive(RactorClusterMessage)]
    enum Flow {
        Begin,
        /// The sum of so many.
        Took(u64, u64),
    }

    struct Source {
        sink: Option<ActorRef<Item>>,
        messages: u64,
        sent: u64,
        finish: Finish,
    }

    impl Source {
        fn send(&mut self, count: u64) {
            let Some(sink) = &self.sink else { return };
            let until = (self.sent + count).min(self.messages);
            while self.sent < until {
                self.sent += 1;
                tell(sink, Item::Number(self.sent));
            }
        }
    }

    impl State for Source {
        type Msg = Flow;

        fn handle(&mut self, message: Flow) {
            match message {
                Flow::Begin => {
                    self.sink = Some(node::found(SINK));
                    self.send(WINDOW);
                }
                Flow::Took(sum, count) if count == self.messages => self.finish.reached(sum),
                Flow::Took(..) => self.send(ACKNOWLEDGE),
            }
        }
    }

    #[derive(RactorClusterMessage)]
    enum Item {
        Number(u64),
    }

    struct Sink {
        source: ActorRef<Flow>,
        sum: u64,
        count: u64,
    }

    impl State for Sink {
        type Msg = Item;

        fn handle(&mut self, Item::Number(number): Item) {
            self.sum += number;
            self.count += 1;
            if self.count.is_multiple_of(ACKNOWLEDGE) {
                tell(&self.source, Flow::Took(self.sum, self.count));
            }
        }
    }

    /// Is the other process.
    pub async fn join() -> Result<(), String> {
        let source = node::find(SOURCE).await?;
        spawn_known(SINK, Sink { source, sum: 0, count: 0 });
        Ok(())
    }

    pub fn run(stage: &Stage) -> Played {
        let messages = playhouse_peers::rthroughput(stage.size);
        let (finish, finished) = finish();
        let _entered = stage.runtime.enter();
        let source = spawn_known(SOURCE, Source { sink: None, messages, sent: 0, finish });
        stage.find::<Item>(SINK)?;
        finished.time(messages, messages * (messages + 1) / 2, || tell(&source, Flow::Begin))
    }
}
