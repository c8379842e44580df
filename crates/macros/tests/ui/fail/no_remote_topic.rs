#![allow(unused)]
use playhouse::prelude::*;
use playhouse::topic::Topic;

#[derive(Message, Clone)]
struct Order;

fn publish(theater: &Theater, orders: &Topic<Order>) {
    theater.publish("orders", orders.endpoint());
}

fn main() {}
// GUARANTEE: Topics track the joined theaters
