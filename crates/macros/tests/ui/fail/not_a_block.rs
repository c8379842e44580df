#![allow(unused)]
use playhouse::prelude::*;

#[actor]
struct Counter;

#[actor]
enum Switch {
    On,
    Off,
}

#[actor]
fn function() {}

#[actor]
trait Trait {}

#[actor]
impl dyn Trait {}

fn main() {}
