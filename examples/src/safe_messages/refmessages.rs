//! Figure 7.1: a messenger sends its text, sends a name that it keeps, and then adds the name to its text. The relay may still
//! read the text, so it is copied on write.

use std::sync::Arc;

use playhouse::prelude::*;

use super::passing::{pass, share, write};

#[derive(Default)]
struct Relay(Vec<Arc<String>>);

#[actor]
impl Relay {
    #[message]
    fn compute(&mut self, item: Arc<String>) {
        self.0.push(item);
    }

    #[message]
    fn heard(&mut self) -> Vec<Arc<String>> {
        std::mem::take(&mut self.0)
    }
}

struct RefMessenger {
    relay: ActorRef<Relay>,
    local_name: Arc<String>,
    written: usize,
}

#[actor]
impl RefMessenger {
    #[message]
    fn store(&mut self, name: String) {
        self.local_name = Arc::new(name);
    }

    #[message]
    fn transfer(&mut self) {
        let mut data = Arc::new("Hi ".to_owned());
        self.relay.tell(Compute(share(&data)));
        self.relay.tell(Compute(share(&self.local_name)));
        write(&mut data).push_str(&self.local_name);
        self.written += data.len();
    }

    #[message]
    fn written(&self) -> usize {
        self.written
    }
}

pub(super) fn run(system: &System, transfers: usize) -> playhouse::Result<bool> {
    let relay = system.spawn(Relay::default());
    let messenger = system.spawn(RefMessenger { relay, local_name: Arc::default(), written: 0 });
    messenger.tell(Store(pass("Actor".to_owned())));
    for _ in 0..transfers {
        messenger.tell(Transfer);
    }
    system.run_until_idle();
    let heard = relay.ask(Heard).wait()?;
    let is_right = heard.chunks(2).all(|pair| *pair[0] == "Hi " && *pair[1] == "Actor");
    Ok(is_right && heard.len() == 2 * transfers && messenger.ask(Written).wait()? == transfers * "Hi Actor".len())
}
