//! Answers to actors that have migrated since they asked, over broken connections, under many seeds.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use playhouse_actor::*;
use playhouse_theater::{Simulation, Theater};
use serde::{Deserialize, Serialize};

use crate::seeds::{self, Seed};

/// Number of asks of the buyer, by each of the two methods.
const ASKS: u64 = 30;

thread_local! {
    /// The asks whose `then` was called. A simulation is one thread.
    static CALLED: RefCell<BTreeSet<u64>> = const { RefCell::new(BTreeSet::new()) };
    /// Reports of dead letters.
    static DEAD: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

#[derive(Serialize, Deserialize)]
struct Price(u64);
remote_message!(Price -> u64);

#[derive(Serialize, Deserialize)]
struct Seller;
impl Actor for Seller {}
impl Handler<Price> for Seller {
    fn handle(&mut self, Price(of): Price, _: &mut Context<Self>) -> u64 {
        of
    }
}
remote!(Seller: Price);

/// Asks once by each method, migrates to one of the theaters at times, and continues with the next ask.
#[derive(Serialize, Deserialize)]
struct Buy;
remote_message!(Buy -> ());

/// The outcome of an ask.
#[derive(Serialize, Deserialize)]
struct Offer {
    of: u64,
    answer: Result<u64, AskError>,
}
remote_message!(Offer -> ());

/// Answered with all offers.
#[derive(Serialize, Deserialize)]
struct Offers;
remote_message!(Offers -> Vec<(u64, Result<u64, AskError>)>);

#[derive(Serialize, Deserialize)]
struct Buyer {
    seller: ActorRef<Seller>,
    asked: u64,
    offers: Vec<(u64, Result<u64, AskError>)>,
    tour: Vec<SocketAddr>,
}
impl Actor for Buyer {}
impl Handler<Buy> for Buyer {
    fn handle(&mut self, _: Buy, ctx: &mut Context<Self>) {
        if self.asked == ASKS {
            return;
        }
        let of = self.asked;
        self.asked += 1;
        ctx.ask(self.seller, Price(of)).pipe_to_self(move |answer| Offer { of, answer });
        ctx.ask(self.seller, Price(of)).then(move |_, answer, _| {
            assert_eq!(answer, Ok(of));
            assert!(CALLED.with_borrow_mut(|called| called.insert(of)), "{of} was answered twice");
        });
        if let Some(to) = self.tour.pop() {
            ctx.migrate_to(to);
        }
        ctx.send_after(Duration::from_micros(200), Buy);
    }
}
impl Handler<Offer> for Buyer {
    fn handle(&mut self, Offer { of, answer }: Offer, _: &mut Context<Self>) {
        self.offers.push((of, answer));
    }
}
impl Handler<Offers> for Buyer {
    fn handle(&mut self, _: Offers, _: &mut Context<Self>) -> Vec<(u64, Result<u64, AskError>)> {
        std::mem::take(&mut self.offers)
    }
}
remote!(mobile Buyer: Buy, Offer, Offers);

// GUARANTEE: Answers follow the asker
#[test]
fn a_piped_answer_follows_the_asker_or_is_reported_under_every_seed() {
    let (mut called, mut dead) = (0, 0);
    for seed in 0..seeds::or(60) {
        let _seed = Seed(seed);
        CALLED.take();
        DEAD.take();
        let net = Simulation::new(seed);
        net.vary_latencies();
        let theaters = [(); 3].map(|()| {
            let theater = net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap();
            let note = |letter: &DeadLetter| DEAD.with_borrow_mut(|dead| dead.push(letter.to_string()));
            theater.system().on_dead_letter(note);
            theater
        });
        let [home, _, market] = &theaters;
        market.publish("seller", market.system().spawn(Seller)).unwrap();
        let seller = home.find::<Seller>(&format!("playhouse://{}/seller", market.address().unwrap())).wait().unwrap();
        let addresses = theaters.each_ref().map(|theater: &Theater| theater.address().unwrap());
        let tour = (0..10).map(|_| addresses[net.choose(3)]).collect();
        net.break_by_chance(Duration::from_millis(2));
        let buyer = home.system().spawn(Buyer { seller, asked: 0, offers: Vec::new(), tour });
        buyer.tell(Buy);
        net.run_for(Duration::from_millis(200));
        net.calm();
        net.run_until_idle();

        let mut offers = buyer.ask(Offers).wait().unwrap();
        offers.sort_by_key(|(of, _)| *of);
        assert_eq!(offers, (0..ASKS).map(|of| (of, Ok(of))).collect::<Vec<_>>());
        let reports = DEAD.take();
        let expected = "AnswerTo<Price> for Buyer: it could not be sent to where the actor is, or not be read there";
        assert!(reports.iter().all(|report| report == expected), "{reports:?}");
        assert_eq!(CALLED.take().len() + reports.len(), ASKS as usize, "{reports:?}");
        (called, dead) = (called + ASKS as usize - reports.len(), dead + reports.len());
    }
    assert!(called > 0 && dead > 0, "{called} called, {dead} dead letters");
}
