#![allow(unused)]
use playhouse::prelude::*;

struct Counter(u64);

#[actor]
impl Counter {
    #[message(named)]
    fn get(&self) -> u64 {
        self.0
    }

    #[message(named = "Adding")]
    fn add(&mut self, by: u64) {}

    #[message(named, named)]
    fn take(&mut self, number: u64) {}
}

struct Cache<T>(Vec<T>);

#[actor]
impl<T: Clone + Send + 'static> Cache<T> {
    #[message(named)]
    fn at(&self, index: usize) -> Option<T> {
        self.0.get(index).cloned()
    }
}

struct Till(u64);

#[actor]
impl Till {
    #[message(named)]
    fn deposit(&mut self, amount: u64, note: String) {}
}

fn main() {
    let system = System::start().unwrap();
    system.spawn(Till(1)).tell(Deposit { amount: 5 });
}
