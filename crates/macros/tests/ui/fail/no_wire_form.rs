#![allow(unused)]
use playhouse::prelude::*;

// A type without a wire form.
struct Socket;

struct Counter;

#[actor(remote)]
impl Counter {
    #[message]
    fn listen(&mut self, socket: Socket) {}

    #[message]
    fn open(&self, port: u16) -> Option<Socket> {
        Some(Socket)
    }

    #[message(local)]
    fn close(&mut self, socket: Socket) -> Option<Socket> {
        Some(socket)
    }
}

fn main() {}
// GUARANTEE: Messages without a wire form are reported at once
