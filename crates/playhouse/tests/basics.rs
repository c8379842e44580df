//! The first things a program does.

use playhouse::prelude::*;

#[derive(Default)]
struct Counter {
    n: u64,
}

#[actor]
impl Counter {
    #[message]
    fn add(&mut self, by: u64) {
        self.n += by;
    }
    #[message]
    fn get(&self) -> u64 {
        self.n
    }
}

#[test]
fn tell_and_ask() {
    let system = System::builder().workers(2).start().unwrap();
    let counter = system.spawn(Counter::default());
    for _ in 0..1000 {
        counter.tell(Add(5));
    }
    assert_eq!(counter.ask(Get).wait(), Ok(5000));
    let report = system.shutdown().unwrap();
    assert_eq!(report.actors_stopped, 1);
}
