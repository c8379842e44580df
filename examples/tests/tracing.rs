//! Spans of handlers, and the spans that they follow from. The subscriber is the process's, and the file therefore has
//! one test.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use playhouse::prelude::*;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing_subscriber::Registry;
use tracing_subscriber::layer::{Context as LayerContext, Layer, SubscriberExt};

/// A span.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// `Cook Dish` for a handler; otherwise the span's name.
    what: String,
    follows: Vec<u64>,
    has_parent: bool,
    entered: u32,
    closed: bool,
}

/// All spans that ever existed. `all` has its own numbers, because `tracing` assigns the numbers of spans again.
#[derive(Default)]
struct Seens {
    all: BTreeMap<u64, Seen>,
    by_id: BTreeMap<u64, u64>,
}

#[derive(Clone, Default)]
struct Record(Arc<Mutex<Seens>>);

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if self.0.is_empty() {
            // The field shows a name behind the type.
            *self.0 = format!("{value:?}").split([' ', '#']).next().unwrap().to_owned();
        } else if field.name() == "message" {
            *self.0 += &format!(" {value:?}");
        }
    }
}

impl Record {
    fn with(&self, id: &Id, change: impl FnOnce(&mut Seen, &BTreeMap<u64, u64>)) {
        let mut seens = self.0.lock().unwrap();
        let Seens { all, by_id } = &mut *seens;
        change(all.get_mut(&by_id[&id.into_u64()]).unwrap(), by_id);
    }
}

impl Layer<Registry> for Record {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: LayerContext<'_, Registry>) {
        let mut seen = Seen { has_parent: context.span(id).unwrap().parent().is_some(), ..Seen::default() };
        attributes.record(&mut Fields(&mut seen.what));
        if seen.what.is_empty() {
            seen.what = attributes.metadata().name().to_owned();
        }
        let mut seens = self.0.lock().unwrap();
        let number = seens.all.len() as u64;
        seens.all.insert(number, seen);
        seens.by_id.insert(id.into_u64(), number);
    }

    fn on_follows_from(&self, id: &Id, follows: &Id, context: LayerContext<'_, Registry>) {
        assert!(context.span(follows).is_some(), "a span is kept as long as something follows from it");
        self.with(id, |seen, by_id| seen.follows.push(by_id[&follows.into_u64()]));
    }

    fn on_enter(&self, id: &Id, _: LayerContext<'_, Registry>) {
        self.with(id, |seen, _| seen.entered += 1);
    }

    fn on_close(&self, id: Id, _: LayerContext<'_, Registry>) {
        self.with(&id, |seen, _| seen.closed = true);
    }
}

/// A message of the largest size that fits into the queue.
#[derive(Message)]
struct Dish([u8; 256]);

#[derive(Message)]
struct Served;

struct Waiter {
    cook: ActorRef<Cook>,
    served: u64,
    open: bool,
}

#[actor]
impl Waiter {
    #[message]
    fn order(&mut self) {
        let _own = tracing::info_span!("writes").entered();
        self.cook.tell(Dish([7; 256]));
    }

    #[message(when = "self.open")]
    fn complain(&mut self) {
        self.served += 0;
    }

    #[message]
    fn open(&mut self) {
        self.open = true;
    }

    /// Waits for another actor.
    #[message]
    async fn ask_cook(&mut self) {
        assert_eq!(self.cook.ask(Taste).await.unwrap(), 7);
    }
}

impl Handler<Served> for Waiter {
    fn handle(&mut self, _: Served, _: &mut Context<Self>) {
        self.served += 1;
    }
}

struct Cook {
    waiter: Option<ActorRef<Waiter>>,
}

#[actor]
impl Cook {
    #[message]
    fn meet(&mut self, waiter: ActorRef<Waiter>) {
        self.waiter = Some(waiter);
    }

    #[message]
    fn taste(&self) -> u8 {
        7
    }
}

impl Handler<Dish> for Cook {
    fn handle(&mut self, Dish(dish): Dish, _: &mut Context<Self>) {
        assert!(dish.iter().all(|byte| *byte == 7));
        self.waiter.unwrap().tell(Served);
    }
}

const ORDERS: usize = 500;
const ROUNDS: [(u16, Option<OnFull>); 4] =
    [(0, None), (1, None), (0, Some(OnFull::Reject)), (1, Some(OnFull::DropOldest))];

// GUARANTEE: Spans follow from causes
#[test]
fn each_handler_runs_in_a_span_that_follows_from_where_its_message_was_sent() {
    let record = Record::default();
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(record.clone())).unwrap();
    let untraced = System::builder().workers(1).start().unwrap();
    let cook = untraced.spawn(Cook { waiter: None });
    cook.ask(Taste).wait().unwrap();
    untraced.shutdown().unwrap();
    assert!(record.0.lock().unwrap().all.is_empty(), "nothing is traced that was not asked for");

    let system = System::builder().workers(2).tracing(true).start().unwrap();
    let at = |stage| SpawnOptions::new().placement(Placement::Stage(stage));
    // The actors are on one worker, and then on two. Bounded mailboxes have permits for messages with causes.
    for (stage, bound) in ROUNDS {
        let at = |stage| match bound {
            Some(on_full) => at(stage).mailbox(Mailbox::bounded(2 * ORDERS).on_full(on_full)),
            None => at(stage),
        };
        let cook = system.spawn_with(at(0), Cook { waiter: None });
        let waiter = system.spawn_with(at(stage), Waiter { cook, served: 0, open: false });
        cook.tell(Meet(waiter));
        waiter.tell(Complain);
        for _ in 0..ORDERS {
            let request = tracing::info_span!("request");
            request.in_scope(|| waiter.tell(Order));
        }
        waiter.tell(AskCook);
        waiter.tell(Open);
        system.run_until_idle();
        // This message has no living receiver.
        tracing::info_span!("too late").in_scope(|| {
            waiter.kill();
            system.run_until_idle();
            waiter.tell(Order);
        });
    }
    system.run_until_idle();
    system.shutdown().unwrap();

    let seens = record.0.lock().unwrap();
    let causes = |what: &str| -> Vec<Vec<&str>> {
        let of = seens.all.values().filter(|seen| seen.what == what);
        of.map(|seen| seen.follows.iter().map(|cause| &*seens.all[cause].what).collect()).collect()
    };
    let each = |what: &str, cause: &str| {
        let causes = causes(what);
        assert_eq!(causes.len(), ROUNDS.len() * ORDERS, "{what}");
        assert!(causes.iter().all(|causes| *causes == [cause]), "{what}: {causes:?}");
    };
    each("Waiter Order", "request");
    each("Cook Dish", "writes");
    each("Waiter Served", "Cook Dish");
    assert_eq!(causes("Waiter Open"), [const { Vec::<&str>::new() }; ROUNDS.len()], "it was sent in no span");
    assert_eq!(causes("Cook Taste"), [["Waiter AskCook"]; ROUNDS.len()]);
    for seen in seens.all.values() {
        assert!(seen.closed, "{seen:?} is still open");
        assert!(!seen.has_parent || seen.what == "writes", "{seen:?} is nested");
        // A waiting handler goes on in its span. The look at a message that waits for its guard has a span of its own.
        assert_eq!(seen.entered > 1, seen.what == "Waiter AskCook", "{seen:?}");
    }
}
