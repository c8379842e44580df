//! Observes working actors: the times of their handlers, and the actor that holds a worker up.

use std::time::{Duration, Instant};

use playhouse::prelude::*;

struct Oven;

#[actor]
impl Oven {
    /// Runs for 30 ms.
    #[message]
    fn bake(&mut self) {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(30) {
            std::hint::spin_loop();
        }
    }

    #[message]
    fn weigh(&self) {}
}

fn main() -> playhouse::Result<()> {
    let system = System::builder().handler_times(true).slow_handlers(Duration::from_millis(10)).start()?;
    // The hook gets each slow handler while it runs, and again when it has returned.
    system.on_slow_handler(|slow| println!("slow: {slow}"));

    let oven = system.spawn_with(SpawnOptions::new().name("stone"), Oven);
    for _ in 0..3 {
        oven.tell(Bake);
    }
    for _ in 0..1000 {
        oven.tell(Weigh);
    }
    system.run_until_idle();

    for times in system.handler_times().iter().filter(|times| times.count > 1) {
        println!("{times}");
    }
    system.shutdown()?;
    Ok(())
}
