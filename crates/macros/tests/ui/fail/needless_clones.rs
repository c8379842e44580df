//! Reported clones. Clones that are not reported are in `tests/clones.rs`.
#![deny(deprecated)]

use std::sync::Arc;

use playhouse::prelude::*;
use playhouse::warn_needless_clones;

struct Sorter(Vec<u64>);

#[actor]
#[warn_needless_clones]
impl Sorter {
    #[message]
    fn sort(&mut self, list: Vec<u64>, last: bool, to: ActorRef<Sorter>) {
        if last {
            to.tell(Done(list.clone()));
            return;
        }
        let (left, right): (Vec<_>, Vec<_>) = list.into_iter().partition(|number| *number < 5);
        for part in [left, right] {
            to.tell(Done(part.clone()));
        }
    }

    #[message]
    fn done(&mut self, list: Vec<u64>) {
        match list.len() {
            0 => self.0 = list.clone(),
            _ => self.0 = list,
        }
    }

    #[message]
    async fn share(&mut self, list: Arc<Vec<u64>>, name: String, to: ActorRef<Sorter>) {
        let mut list = list;
        Arc::make_mut(&mut list).push(1);
        let _ = to.ask(Hear(Arc::clone(&list), name.clone())).await;
    }

    #[message]
    fn hear(&mut self, list: Arc<Vec<u64>>, name: String) {
        self.0 = list.to_vec().clone();
        let name = name.clone();
        let before = std::mem::take(&mut self.0).clone();
        self.0.push(before.len() as u64 + name.len() as u64);
    }
}

#[warn_needless_clones]
fn of_nothing() {}

#[warn_needless_clones]
fn silenced(text: String) -> String {
    #[allow(deprecated)]
    let copy = text.clone();
    copy
}

#[warn_needless_clones(all)]
struct NoFunction;

fn main() {}
// GUARANTEE: Needless clones are reported
