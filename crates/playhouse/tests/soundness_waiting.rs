//! Long lists of deferred messages; large messages.

mod support;

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use playhouse::prelude::*;
use support::{finishes, lock, on_stage, simulated, threads};

/// A gate that handlers wait at.
#[derive(Clone, Default)]
struct Gate(Arc<(AtomicBool, Mutex<Vec<Waker>>)>);

impl Gate {
    async fn passed(&self) {
        poll_fn(|cx| {
            lock(&self.0.1).push(cx.waker().clone());
            if self.0.0.load(Ordering::SeqCst) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn open(&self) {
        self.0.0.store(true, Ordering::SeqCst);
        std::mem::take(&mut *lock(&self.0.1)).into_iter().for_each(Waker::wake);
    }
}

async fn yield_once() {
    let mut yielded = false;
    poll_fn(move |cx| {
        cx.waker().wake_by_ref();
        if std::mem::replace(&mut yielded, true) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Echoes numbers, and opens gates.
struct Echo;

#[actor]
impl Echo {
    #[message]
    fn open(&self, gate: Gate) {
        gate.open();
    }

    #[message]
    fn echo_back(&self, number: u64) -> u64 {
        number
    }
}

/// Handles numbers in the order of their sends.
struct Reader {
    gate: Gate,
    echo: ActorRef<Echo>,
    read: Arc<AtomicU64>,
    ticks: Arc<AtomicU64>,
    ticks_at_end: u64,
}

impl Reader {
    fn note(&mut self, number: u64) {
        assert_eq!(self.read.fetch_add(1, Ordering::SeqCst), number, "numbers are read in order");
        self.ticks_at_end = self.ticks.load(Ordering::SeqCst);
    }
}

#[actor]
impl Reader {
    #[message]
    async fn hold(&mut self) {
        let gate = self.gate.clone();
        gate.passed().await;
    }

    #[message]
    fn read(&mut self, number: u64) {
        self.note(number);
    }

    #[message]
    async fn read_after_yield(&mut self, number: u64) {
        yield_once().await;
        self.note(number);
    }

    #[message]
    async fn read_after_ask(&mut self, number: u64) {
        let number = self.echo.ask(EchoBack(number)).await.unwrap();
        self.note(number);
    }

    #[message]
    fn ticks_at_end(&self) -> u64 {
        self.ticks_at_end
    }
}

/// Counts its turns up to `until`.
struct Ticker {
    ticks: Arc<AtomicU64>,
    read: Arc<AtomicU64>,
    until: u64,
}

#[actor]
impl Ticker {
    #[message]
    fn tick(&mut self, ctx: &mut Context<Self>) {
        self.ticks.fetch_add(1, Ordering::SeqCst);
        if self.read.load(Ordering::SeqCst) < self.until {
            ctx.this().tell(Tick);
        }
    }
}

/// Calls `how` for all numbers below `messages`, to send them.
struct Sender {
    to: ActorRef<Reader>,
}

#[actor]
impl Sender {
    #[message]
    fn send_all(&mut self, how: How, messages: u64) {
        (0..messages).for_each(|number| how.send(self.to, number));
    }
}

#[derive(Clone, Copy)]
enum How {
    Runs,
    Yields,
    Asks,
}

impl How {
    fn send(self, to: ActorRef<Reader>, number: u64) {
        match self {
            How::Runs => to.tell(Read(number)),
            How::Yields => to.tell(ReadAfterYield(number)),
            How::Asks => to.tell(ReadAfterAsk(number)),
        }
    }
}

fn reader(system: &System) -> (ActorRef<Reader>, Gate, Arc<AtomicU64>, Arc<AtomicU64>) {
    let (gate, read, ticks) = (Gate::default(), Arc::default(), Arc::default());
    let echo = system.spawn_with(on_stage(1), Echo);
    let reader =
        Reader { gate: gate.clone(), echo, read: Arc::clone(&read), ticks: Arc::clone(&ticks), ticks_at_end: 0 };
    (system.spawn_with(on_stage(0), reader), gate, read, ticks)
}

// GUARANTEE: No actor starves
#[test]
fn an_actor_with_many_deferred_messages_lets_others_run_in_between() {
    const MESSAGES: u64 = 20_000;
    let system = System::builder().workers(1).simulated(0).start().unwrap();
    let (reader, gate, read, ticks) = reader(&system);
    reader.tell(Hold);
    (0..MESSAGES).for_each(|number| reader.tell(Read(number)));
    let ticker = system.spawn(Ticker { ticks, read, until: MESSAGES });
    ticker.tell(Tick);
    system.spawn(Echo).tell(Open(gate));
    system.run_until_idle();
    assert!(reader.ask(TicksAtEnd).wait().unwrap() >= MESSAGES / 1024);
}

// GUARANTEE: Order
#[test]
fn messages_of_all_senders_for_waiting_handlers_are_handled_in_order() {
    const MESSAGES: u64 = 5_000;
    finishes(|| {
        for from_actor in [false, true] {
            for how in [How::Runs, How::Yields, How::Asks] {
                for system in [simulated(7), threads(2)] {
                    let (reader, gate, read, _) = reader(&system);
                    reader.tell(Hold);
                    if from_actor {
                        let sender = system.spawn_with(on_stage(2), Sender { to: reader });
                        sender.tell(SendAll(how, MESSAGES));
                    } else {
                        (0..MESSAGES).for_each(|number| how.send(reader, number));
                    }
                    gate.open();
                    system.run_until_idle();
                    assert_eq!(read.load(Ordering::SeqCst), MESSAGES);
                    system.shutdown().unwrap();
                }
            }
        }
    });
}

const MIB: usize = 1 << 20;

#[derive(Message)]
#[message(reply = u8)]
struct Large([u8; MIB]);

#[derive(Message)]
#[message(reply = u8)]
struct LargeLater([u8; MIB]);

struct Receiver;

impl Actor for Receiver {}

impl Handler<Large> for Receiver {
    fn handle(&mut self, message: Large, _: &mut Context<Self>) -> u8 {
        message.0[MIB - 1]
    }
}

impl AsyncHandler<LargeLater> for Receiver {
    async fn handle(&mut self, message: LargeLater, _: &mut Context<Self>) -> u8 {
        yield_once().await;
        message.0[MIB - 1]
    }
}

/// Asks with large messages.
struct LargeAsker {
    to: ActorRef<Receiver>,
    answered: Arc<AtomicU64>,
}

#[actor]
impl LargeAsker {
    #[message]
    async fn ask_and_wait(&mut self) {
        let answer = self.to.ask(Large([3; MIB])).await.unwrap();
        self.answered.fetch_add(answer.into(), Ordering::SeqCst);
    }

    #[message]
    async fn ask_later_and_wait(&mut self) {
        let answer = self.to.ask(LargeLater([4; MIB])).await.unwrap();
        self.answered.fetch_add(answer.into(), Ordering::SeqCst);
    }

    #[message]
    fn ask_then(&mut self, ctx: &mut Context<Self>) {
        ctx.ask(self.to, Large([5; MIB])).then(|me, answer, _| {
            me.answered.fetch_add(answer.unwrap().into(), Ordering::SeqCst);
        });
    }

    #[message]
    fn ask_later_then(&mut self, ctx: &mut Context<Self>) {
        ctx.ask(self.to, LargeLater([6; MIB])).then(|me, answer, _| {
            me.answered.fetch_add(answer.unwrap().into(), Ordering::SeqCst);
        });
    }
}

#[actor(more)]
impl LargeAsker {
    #[message]
    async fn ask_recipient(&mut self, ctx: &mut Context<Self>) {
        let to = self.to.recipient::<Large>();
        let answer = to.ask(Large([8; MIB])).await.unwrap();
        self.answered.fetch_add(answer.into(), Ordering::SeqCst);
        ctx.ask(to, Large([9; MIB])).then(|me, answer, _| {
            me.answered.fetch_add(answer.unwrap().into(), Ordering::SeqCst);
        });
    }

    #[message]
    fn pass_on(&mut self, reply: Reply<u8>) {
        reply.forward(self.to.recipient::<Large>(), Large([10; MIB]));
    }
}

// GUARANTEE: Large messages
#[test]
fn asks_carry_messages_of_a_mebibyte_by_value() {
    finishes(|| {
        let system = threads(1);
        let (to, answered) = (system.spawn(Receiver), Arc::new(AtomicU64::new(0)));
        let asker = system.spawn(LargeAsker { to, answered: Arc::clone(&answered) });
        asker.tell(AskAndWait);
        asker.tell(AskLaterAndWait);
        asker.tell(AskThen);
        asker.tell(AskLaterThen);
        system.run_until_idle();
        assert_eq!(answered.load(Ordering::SeqCst), 3 + 4 + 5 + 6);
        // The message goes by a recipient, and is forwarded to one.
        asker.tell(AskRecipient);
        system.run_until_idle();
        assert_eq!(answered.load(Ordering::SeqCst), 3 + 4 + 5 + 6 + 8 + 9);
        assert_eq!(asker.ask(PassOn).wait(), Ok(10));
        // The threads are outside, each with a stack of 8 MiB.
        type Asks = fn(ActorRef<Receiver>) -> Result<u8, AskError>;
        let asks: [Asks; 4] = [
            |to| to.ask(Large([7; MIB])).wait(),
            |to| to.ask(LargeLater([7; MIB])).wait(),
            |to| to.recipient::<Large>().ask(Large([7; MIB])).wait(),
            |to| to.recipient::<LargeLater>().ask(LargeLater([7; MIB])).wait(),
        ];
        for ask in asks {
            let outside = std::thread::Builder::new().stack_size(8 * MIB).spawn(move || ask(to));
            assert_eq!(outside.unwrap().join().unwrap(), Ok(7));
        }
    });
}
