#![allow(unused)]
use std::borrow::Cow;
use std::path::Path;

use playhouse::prelude::*;

struct Counter;

#[actor]
impl Counter {
    #[message]
    fn name(&mut self, name: &str) {}

    #[message]
    fn list(&mut self, all: Option<&[u64]>, path: &Path) {}

    #[message]
    fn merge(&mut self, other: &mut Counter) {}

    #[message]
    fn cow(&mut self, text: Cow<'_, str>) {}

    #[message]
    fn fine(&mut self, text: &'static str, f: fn(&str), g: Box<dyn Fn(&str) + Send>) {}
}

fn main() {}
// GUARANTEE: Safe messages
