//! Workloads of two processes whose actors send.

use super::*;

pub mod rpingpong {
    use super::*;

    #[derive(Serialize, Deserialize)]
    pub struct WantPonger;

    #[derive(Serialize, Deserialize)]
    struct Ping {
        left: u64,
        from: RemoteActorRef<Pinger>,
    }

    #[derive(Serialize, Deserialize)]
    struct Pong {
        left: u64,
    }

    struct Begin {
        rounds: u64,
        own: RemoteActorRef<Pinger>,
    }

    #[derive(Actor, RemoteActor)]
    struct Pinger {
        ponger: RemoteActorRef<Ponger>,
        own: Option<RemoteActorRef<Pinger>>,
        finish: Finish,
    }

    impl Pinger {
        fn ping(&self, left: u64) {
            match &self.own {
                Some(own) if left > 0 => tell_remote(&self.ponger, Ping { left, from: own.clone() }),
                _ => self.finish.reached(0),
            }
        }
    }

    impl Message<Begin> for Pinger {
        type Reply = ();

        async fn handle(&mut self, Begin { rounds, own }: Begin, _: &mut Context<Self, Self::Reply>) {
            self.own = Some(own);
            self.ping(rounds);
        }
    }

    #[remote_message]
    impl Message<Pong> for Pinger {
        type Reply = ();

        async fn handle(&mut self, Pong { left }: Pong, _: &mut Context<Self, Self::Reply>) {
            self.ping(left - 1);
        }
    }

    #[derive(Actor, RemoteActor, Default)]
    pub struct Ponger {
        seen: u64,
    }

    #[remote_message]
    impl Message<Ping> for Ponger {
        type Reply = ();

        async fn handle(&mut self, Ping { left, from }: Ping, _: &mut Context<Self, Self::Reply>) {
            self.seen += 1;
            tell_remote(&from, Pong { left });
        }
    }

    #[remote_message]
    impl Message<AskSeen> for Ponger {
        type Reply = u64;

        async fn handle(&mut self, _: AskSeen, _: &mut Context<Self, Self::Reply>) -> u64 {
            self.seen
        }
    }

    pub fn run(stage: &Stage) -> Played {
        let rounds = playhouse_peers::rpingpong(stage.size);
        let (finish, finished) = finish();
        let _entered = stage.runtime.enter();
        let ponger = stage.runtime.block_on(stage.start(0, WantPonger))?;
        let pinger = spawn(Pinger { ponger: ponger.clone(), own: None, finish });
        let own = stage.runtime.block_on(pinger.into_remote_ref());
        let played = finished.time(2 * rounds, 0, || tell(&pinger, Begin { rounds, own }))?;
        let seen = stage.runtime.block_on(async { ponger.ask(&AskSeen).await }).map_err(|error| error.to_string())?;
        check("the pings seen", rounds, seen)?;
        Ok(played)
    }
}

pub mod rthroughput {
    use super::*;

    #[derive(Serialize, Deserialize)]
    pub struct WantSink(pub RemoteActorRef<Source>);

    #[derive(Serialize, Deserialize)]
    struct Item(u64);

    #[derive(Serialize, Deserialize)]
    struct Took {
        sum: u64,
        count: u64,
    }

    struct Begin(RemoteActorRef<Sink>);

    #[derive(Actor, RemoteActor)]
    pub struct Source {
        sink: Option<RemoteActorRef<Sink>>,
        messages: u64,
        sent: u64,
        finish: Finish,
    }

    impl Source {
        async fn send(&mut self, count: u64) {
            let Some(sink) = self.sink.clone() else { return };
            let until = (self.sent + count).min(self.messages);
            let numbers = stream::iter(self.sent + 1..=until);
            numbers.for_each_concurrent(OPEN, move |number| deliver(sink.clone(), Item(number))).await;
            self.sent = until;
        }
    }

    impl Message<Begin> for Source {
        type Reply = ();

        async fn handle(&mut self, Begin(sink): Begin, _: &mut Context<Self, Self::Reply>) {
            self.sink = Some(sink);
            self.send(WINDOW).await;
        }
    }

    #[remote_message]
    impl Message<Took> for Source {
        type Reply = ();

        async fn handle(&mut self, Took { sum, count }: Took, _: &mut Context<Self, Self::Reply>) {
            if count == self.messages { self.finish.reached(sum) } else { self.send(ACKNOWLEDGE).await }
        }
    }

    #[derive(Actor, RemoteActor)]
    pub struct Sink {
        source: RemoteActorRef<Source>,
        sum: u64,
        count: u64,
    }

    impl Sink {
        pub fn new(source: RemoteActorRef<Source>) -> Self {
            Self { source, sum: 0, count: 0 }
        }
    }

    #[remote_message]
    impl Message<Item> for Sink {
        type Reply = ();

        async fn handle(&mut self, Item(number): Item, _: &mut Context<Self, Self::Reply>) {
            self.sum += number;
            self.count += 1;
            if self.count.is_multiple_of(ACKNOWLEDGE) {
                tell_remote(&self.source, Took { sum: self.sum, count: self.count });
            }
        }
    }

    pub fn run(stage: &Stage) -> Played {
        let messages = playhouse_peers::rthroughput(stage.size);
        let (finish, finished) = finish();
        let _entered = stage.runtime.enter();
        let source = spawn(Source { sink: None, messages, sent: 0, finish });
        let sink = stage.runtime.block_on(async {
            let own = source.into_remote_ref().await;
            stage.start(0, WantSink(own)).await
        })?;
        finished.time(messages, messages * (messages + 1) / 2, || tell(&source, Begin(sink)))
    }
}
