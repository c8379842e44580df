#![allow(unused)]
use std::rc::Rc;

use playhouse::prelude::*;

struct Till(u64);

#[actor]
impl Till {
    // The future is not `Send`, and its type does not claim it.
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
