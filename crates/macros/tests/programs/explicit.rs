// Hand-written code beside the macro's.
use playhouse::prelude::*;

struct Counter(u64);

#[actor]
impl Counter {
    #[message]
    fn get(&self) -> u64 {
        self.0
    }
}

#[derive(Message)]
struct Add(u64);

#[derive(Message)]
#[message(reply = Option<u64>)]
struct Fetch {
    from: ActorRef<Counter>,
}

impl Handler<Add> for Counter {
    fn handle(&mut self, add: Add, _: &mut Context<Self>) {
        self.0 += add.0;
    }
}

impl AsyncHandler<Fetch> for Counter {
    async fn handle(&mut self, fetch: Fetch, _: &mut Context<Self>) -> Option<u64> {
        fetch.from.ask(Get).await.ok()
    }
}

// `Mode` is inferred if the actor is a parameter, too.
fn tell<A: Handler<M>, M: Message>(to: ActorRef<A>, message: M) {
    to.tell(message);
}

fn ask<A: AsyncHandler<Fetch>>(to: ActorRef<A>, from: ActorRef<Counter>) -> Result<Option<u64>, AskError> {
    to.ask(Fetch { from }).wait()
}

#[test]
fn runs() -> playhouse::Result<()> {
    let system = System::start()?;
    let (one, two) = (system.spawn(Counter(1)), system.spawn(Counter(2)));
    tell(one, Add(5));
    assert_eq!(ask(two, one)?, Some(6));
    system.shutdown()?;
    Ok(())
}
