//! An actor that sends itself ping and pong in turn: a port of `examples/ping_pong.rs` of ractor 0.16.5 (MIT).
//!
//! Both programs print the same line.
//!
//! ```text
//! cargo run -p playhouse-examples --bin ported_ping_pong
//! ```

use playhouse::prelude::*;

#[derive(Clone, Copy)]
enum Ball {
    Ping,
    Pong,
}

impl Ball {
    fn next(self) -> Ball {
        match self {
            Ball::Ping => Ball::Pong,
            Ball::Pong => Ball::Ping,
        }
    }

    fn print(self) {
        match self {
            Ball::Ping => print!("ping.."),
            Ball::Pong => print!("pong.."),
        }
    }
}

#[derive(Default)]
struct PingPong {
    count: u8,
}

#[actor]
impl PingPong {
    #[started]
    fn begin(&mut self, ctx: &mut Context<Self>) {
        ctx.this().tell(Hit(Ball::Ping));
    }

    #[message]
    fn hit(&mut self, ball: Ball, ctx: &mut Context<Self>) {
        if self.count < 10 {
            ball.print();
            ctx.this().tell(Hit(ball.next()));
            self.count += 1;
        } else {
            println!();
            ctx.stop();
        }
    }
}

#[playhouse::main]
fn main(system: &System) {
    system.spawn(PingPong::default()).ended().wait();
}
