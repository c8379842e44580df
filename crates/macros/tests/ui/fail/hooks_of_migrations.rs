use playhouse::prelude::*;

struct Stays;

#[actor]
impl Stays {
    #[migrated]
    fn arrived(&mut self) {}
}

fn main() {}
