#![allow(unused)]
use playhouse::prelude::*;

struct A;

#[actor]
impl A {
    #[started]
    async fn begin(&mut self) {}

    #[stopped]
    fn end(&mut self, ctx: &mut Context<Self>) -> Result<(), String> {
        Ok(())
    }

    #[terminated]
    fn lost(&mut self, ctx: &mut Context<Self>) {}
}

struct B;

#[actor]
impl B {
    #[started]
    fn begin(&mut self, n: u64) {}

    #[stopped]
    fn end(self) {}

    #[terminated]
    fn lost<T>(terminated: Terminated) {}
}

struct C;

#[actor]
impl C {
    // The mark is missing, so nothing would call the method.
    fn started(&mut self, ctx: &mut Context<Self>) {}

    #[started]
    fn begin(&mut self) {}

    #[started]
    fn begin_again(&mut self) {}

    #[stopped(now)]
    fn end(&mut self) {}

    #[terminated]
    #[message]
    fn lost(&mut self, terminated: Terminated) {}

    #[message]
    #[message]
    fn twice(&mut self) {}
}

struct Unmarked;

#[actor]
impl Unmarked {
    // The parameter shows that a hook is meant, also without the context.
    pub fn terminated(&mut self, terminated: Terminated) {}

    // A method of that name, without what a hook gets, is the program's own.
    pub fn started(&mut self) {}
}

struct FromElsewhere;

#[actor]
impl FromElsewhere {
    #[pre_start]
    fn begin(&mut self) {}

    #[stopping]
    fn end(&mut self) {}

    #[on_link_died(now)]
    fn lost(&mut self, terminated: Terminated) {}
}

#[derive(playhouse::serde::Serialize, playhouse::serde::Deserialize)]
#[serde(crate = "playhouse::serde")]
struct Traveller;

#[actor(mobile = "far", mobile)]
impl Traveller {
    #[migration_failed]
    fn stays(&mut self) {}

    #[migrated]
    fn comes(&mut self, from: String) {}

    fn migrating(&mut self, ctx: &mut Context<Self>) {}
}

fn main() {}
