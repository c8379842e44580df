#![allow(unused)]
use playhouse::prelude::*;

struct Counter(u64);

#[actor]
impl Counter {
    #[message]
    fn get(&self) -> u64 {
        self.0
    }
}

struct Shelf(String);

#[actor]
impl Shelf {
    #[message]
    fn get(&self) -> String {
        self.0.clone()
    }
}

fn main() {}
