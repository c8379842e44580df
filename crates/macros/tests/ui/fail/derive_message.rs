#![allow(unused)]
use playhouse::prelude::*;

#[derive(Message)]
struct Borrows<'a>(&'a str);

#[derive(Message)]
union Either {
    a: u8,
    b: i8,
}

#[derive(Message)]
#[message(replies = u64)]
struct Unknown;

#[derive(Message)]
#[message(name = "Other")]
struct Named;

#[derive(Message)]
#[message(reply)]
struct NoType;

#[derive(Message)]
#[message(reply = "u64")]
struct Quoted;

#[derive(Message)]
#[message(reply = u8, reply = u16)]
struct Twice;

#[derive(Message)]
#[message(reply = u8)]
#[message(reply = u16)]
struct TwoAttributes;

#[derive(Message)]
#[message]
struct Empty;

#[derive(Message)]
struct OnAField {
    #[message(reply = u64)]
    field: u64,
}

#[derive(Message)]
enum OnAVariant {
    #[message(reply = u64)]
    One,
}

#[derive(Message)]
#[message(reply = impl Iterator<Item = u8>)]
struct Anonymous;

fn main() {}
