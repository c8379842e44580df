use playhouse::prelude::*;

#[derive(Default)]
struct Counter {
    n: u64,
}

#[actor]
impl Counter {
    #[message]
    fn add(&mut self, by: u64) {
        self.n += by
    }
    #[message]
    fn get(&self) -> u64 {
        self.n
    }
}

#[test]
fn runs() -> playhouse::Result<()> {
    let system = System::start()?;
    let counter = system.spawn(Counter::default());
    counter.tell(Add(5));
    let n: u64 = counter.ask(Get).wait()?;
    assert_eq!(n, 5);
    system.shutdown()?;
    Ok(())
}
