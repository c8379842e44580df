#![allow(unused)]
use std::rc::Rc;

use playhouse::prelude::*;

struct Till(u64);

#[actor]
impl Till {
    // It cannot be awaited on another thread, and does not say that it can.
    #[message(reentrant)]
    fn share(&mut self) -> impl Future<Output = u64> + use<> {
        let shared = Rc::new(1);
        async move {
            std::future::ready(()).await;
            *shared
        }
    }
}

fn main() {}
