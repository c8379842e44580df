#![allow(unused)]
use playhouse::prelude::*;

struct View<'a>(&'a str);

#[actor]
impl<'a> View<'a> {
    #[message]
    fn get(&self) -> usize {
        self.0.len()
    }
}

struct Short<'a>(&'a str);

#[actor]
impl Short<'_> {}

struct Fine<'a>(&'a str);

#[actor]
impl Fine<'static> {}

struct Cache<T>(T);

#[actor]
impl<T> Cache<T> {}

fn main() {}
// GUARANTEE: Safe messages
