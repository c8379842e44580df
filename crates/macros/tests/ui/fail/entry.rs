#![allow(unused)]
use playhouse::prelude::*;

#[playhouse::test]
fn no_system() {}

#[playhouse::test]
fn owns(system: System) {}

#[playhouse::test]
fn more(system: &System, other: u32) {}

#[playhouse::test(seeds = 0)]
fn none(system: &System) {}

#[playhouse::test(seeds = 5, seed = 3)]
fn both(system: &System) {}

#[playhouse::test(threads, seed = 3)]
fn threads(system: &System) {}

#[playhouse::test(thread)]
fn typo(system: &System) {}

#[playhouse::test]
fn generic<T>(system: &System) {}

struct S;
impl S {
    #[playhouse::test]
    fn method(&self, system: &System) {}
}

#[playhouse::test(tokio)]
fn on_tokio(system: &System) {}

#[playhouse::main(seeds = 3)]
fn main(system: &System) {}
