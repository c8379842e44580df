#![allow(unused)]
use playhouse::prelude::*;

struct Counter(u64);

#[actor]
impl Counter {
    #[message(reentrant)]
    async fn get(&self) -> u64 {
        self.0
    }

    #[message(reentrant)]
    fn add(&mut self, by: u64) -> u64 {
        self.0
    }

    #[message(reentrant)]
    fn take(&mut self) {}

    #[message(reentrant)]
    fn fetch(&mut self) -> impl Future<Output = u64> + Send {
        async { 1 }
    }

    #[message(reentrant)]
    fn count(&mut self) -> impl Iterator<Item = u64> + use<> {
        0..1
    }

    #[message(reentrant)]
    fn answer(&mut self, reply: Reply<u64>) -> impl Future<Output = u64> + Send + use<> {
        async { 1 }
    }

    // The method is not marked as reentrant.
    #[message]
    fn plain(&mut self) -> impl Future<Output = u64> + Send + use<> {
        async { 1 }
    }

    // The compiler suggests this form if the future uses `ctx`.
    #[message(reentrant)]
    fn pause(&mut self, ctx: &mut Context<Self>) -> impl Future<Output = u64> + Send + use<'_> {
        async move {
            ctx.sleep(std::time::Duration::from_secs(1)).await;
            1
        }
    }

    #[message(reentrant, reentrant)]
    fn twice(&mut self) -> impl Future<Output = u64> + Send + use<> {
        async { 1 }
    }
}

fn main() {}
