//! A service that sends the time to its clients while they live: a port of `examples/weak_recipient.rs` of actix 0.13.5 (MIT
//! or Apache-2.0).
//!
//! - The port prints no `stopping` lines, because its actors have no such hook, and names recipients. It says "client has ended" where actix says
//!   "client can no longer be upgraded".
//! - An address of actix keeps its actor alive, unless it is weak. No reference of Playhouse does. `spawn_owned` returns a guard that stops the
//!   actor when dropped.
//! - actix starts the service when the first client looks for it. The port starts it in `main`, and clients find it as a value of the system.
//!
//! ```text
//! cargo run -p playhouse-examples --bin ported_weak_recipient
//! ```

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use playhouse::prelude::*;

#[derive(Debug, Message)]
pub(crate) struct TimePing(Instant);

#[derive(Default)]
pub(crate) struct TimeService {
    clients: Vec<Recipient<TimePing>>,
}

#[actor]
impl TimeService {
    #[started]
    fn start(&mut self, ctx: &mut Context<Self>) {
        println!("⏰ starting TimeService");
        ctx.send_every(Duration::from_secs(1), SendTick);
    }

    #[message(derive(Clone))]
    fn send_tick(&mut self) {
        for client in &self.clients {
            if client.is_stopped() {
                println!("⏰ client has ended");
            } else {
                client.tell(TimePing(Instant::now()));
                println!("⏰ sent ping to client {client:?}");
            }
        }
        self.clients.retain(|client| !client.is_stopped());
        println!("⏰ service has {} clients", self.clients.len());
    }

    #[message]
    pub(crate) fn register_for_time(&mut self, client: Recipient<TimePing>) {
        println!("⏰ received registration");
        self.clients.push(client);
    }

    #[stopped]
    fn stopped(&mut self) {
        println!("⏰ stopped TimeService");
    }
}

pub(crate) struct ClientA;

#[actor]
impl ClientA {
    #[started]
    fn register(&mut self, ctx: &mut Context<Self>) {
        println!("🐰 starting ClientA");
        let service = ctx.system().service::<ActorRef<TimeService>>();
        service.expect("it is provided").tell(RegisterForTime(ctx.this().recipient()));
    }

    #[stopped]
    fn stopped(&mut self) {
        println!("🐰 stopped ClientA");
    }
}

impl Handler<TimePing> for ClientA {
    fn handle(&mut self, ping: TimePing, _: &mut Context<Self>) {
        println!("🐰 ClientA received ping: {:?}", ping.0);
    }
}

struct ClientB;

#[actor]
impl ClientB {
    #[started]
    fn register(&mut self, ctx: &mut Context<Self>) {
        println!("🐇 starting ClientB");
        let service = ctx.system().service::<ActorRef<TimeService>>();
        service.expect("it is provided").tell(RegisterForTime(ctx.this().recipient()));
    }

    #[stopped]
    fn stopped(&mut self) {
        println!("🐇 stopped ClientB");
    }
}

impl Handler<TimePing> for ClientB {
    fn handle(&mut self, ping: TimePing, _: &mut Context<Self>) {
        println!("🐇  ClientB received ping: {ping:?}");
    }
}

#[playhouse::main]
fn main(system: &System) -> playhouse::Result<()> {
    let (send, ctrl_c) = channel();
    ctrlc::set_handler(move || send.send(()).unwrap_or_default())?;
    system.provide(system.spawn(TimeService::default()));
    {
        println!("🎩 creating client client A");
        let _client_a = system.spawn_owned(ClientA);
        {
            println!("🎩 creating client client B");
            let _client_b = system.spawn_owned(ClientB);

            println!("🎩 press Ctrl-C to stop client B");
            ctrl_c.recv()?;
            println!("🎩 Ctrl-C received, stopping client");
        }

        println!("🎩 press Ctrl-C to stop client A");
        ctrl_c.recv()?;
        println!("🎩 Ctrl-C received, stopping client");
    }

    ctrl_c.recv()?;
    println!("🎩 Ctrl-C received, shutting down");
    Ok(())
}
