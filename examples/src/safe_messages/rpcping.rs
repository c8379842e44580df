//! An actor asks another whether it is alive, with a text and for a text, one call after the other.

use playhouse::prelude::*;

use super::passing::pass;

#[derive(Default)]
struct Ping {
    alive: u64,
}

#[actor]
impl Ping {
    #[message]
    async fn start(&mut self, other: ActorRef<Ping>, calls: u64) -> u64 {
        for call in 0..calls {
            let answer = other.ask(IsAlive(pass(format!("call {call}")))).await;
            self.alive += u64::from(answer.is_ok_and(|text| text == format!("call {call}: alive")));
        }
        self.alive
    }

    #[message]
    fn is_alive(&mut self, mut text: String) -> String {
        text.push_str(": alive");
        pass(text)
    }
}

pub(super) fn run(system: &System, calls: usize) -> playhouse::Result<bool> {
    let [first, second] = [(); 2].map(|()| system.spawn(Ping::default()));
    Ok(first.ask(Start(pass(second), pass(calls as u64))).wait()? == calls as u64)
}
