#![allow(unused)]
use std::borrow::Cow;

use playhouse::prelude::*;

struct Counter(String);

#[actor]
impl Counter {
    #[message]
    fn name(&self) -> &str {
        &self.0
    }

    #[message]
    fn maybe(&self) -> Option<&String> {
        Some(&self.0)
    }

    #[message]
    fn cow(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.0)
    }
}

#[derive(Message)]
#[message(reply = &str)]
struct Derived;

fn main() {}
// GUARANTEE: Safe messages
