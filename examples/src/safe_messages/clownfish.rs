//! A shop: orders go from the counter to the warehouse, the packer and the biller, and each adds its part. The program stands
//! in for a student's program. The thesis gives only its name.

use playhouse::prelude::*;

use super::passing::{Payload, pass};

struct Order {
    number: u64,
    customer: String,
    lines: Vec<(String, u64)>,
    shelves: Vec<u64>,
    label: String,
}

impl Payload for Order {
    fn deep_copy(&self) -> Self {
        Order {
            number: self.number,
            customer: self.customer.deep_copy(),
            lines: self.lines.deep_copy(),
            shelves: self.shelves.deep_copy(),
            label: self.label.deep_copy(),
        }
    }
}

struct Counter {
    warehouse: ActorRef<Warehouse>,
}

#[actor]
impl Counter {
    #[message]
    fn buy(&mut self, number: u64, customer: String, lines: Vec<(String, u64)>) {
        let order = Order { number, customer, lines, shelves: Vec::new(), label: String::new() };
        self.warehouse.tell(Collect(pass(order)));
    }
}

struct Warehouse {
    packer: ActorRef<Packer>,
}

#[actor]
impl Warehouse {
    #[message]
    fn collect(&mut self, mut order: Order) {
        order.shelves = order.lines.iter().map(|(item, _)| item.len() as u64).collect();
        self.packer.tell(Pack(pass(order)));
    }
}

struct Packer {
    biller: ActorRef<Biller>,
}

#[actor]
impl Packer {
    #[message]
    fn pack(&mut self, mut order: Order) {
        order.label = format!("{} for {}: {} items", order.number, order.customer, order.shelves.len());
        self.biller.tell(Bill(pass(order)));
    }
}

struct Biller {
    ledger: ActorRef<Ledger>,
}

#[actor]
impl Biller {
    #[message]
    fn bill(&mut self, order: Order) {
        let amount = order.lines.iter().map(|(_, price)| price).sum();
        self.ledger.tell(Enter(pass(order.number), pass(order.label), pass(amount)));
    }
}

#[derive(Default)]
struct Ledger {
    bills: Vec<(u64, String, u64)>,
}

#[actor]
impl Ledger {
    #[message]
    fn enter(&mut self, number: u64, label: String, amount: u64) {
        self.bills.push((number, label, amount));
    }

    #[message]
    fn bills(&mut self) -> Vec<(u64, String, u64)> {
        std::mem::take(&mut self.bills)
    }
}

pub(super) fn run(system: &System, orders: usize) -> playhouse::Result<bool> {
    let ledger = system.spawn(Ledger::default());
    let packer = system.spawn(Packer { biller: system.spawn(Biller { ledger }) });
    let counter = system.spawn(Counter { warehouse: system.spawn(Warehouse { packer }) });
    let orders = orders as u64;
    for number in 0..orders {
        let lines = (0..20).map(|item| (format!("item {item}"), number + item)).collect();
        counter.tell(Buy(pass(number), pass(format!("customer {number}")), pass(lines)));
    }
    system.run_until_idle();
    let expected =
        (0..orders).map(|number| (number, format!("{number} for customer {number}: 20 items"), 20 * number + 190));
    Ok(ledger.ask(Bills).wait()?.into_iter().eq(expected))
}
