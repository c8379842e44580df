//! An actor that has another one answer: a port of `examples/forward.rs` of kameo 0.17.2 (MIT or Apache-2.0).
//!
//! - Both programs print the same line.
//! - `forward` of kameo waits for room in the other mailbox. `Reply::forward` returns at once.
//! - kameo's actor panics if it does not know the player. The port drops the `Reply`, and the ask ends with an error.
//!
//! ```text
//! cargo run -p playhouse-examples --bin ported_forward
//! ```

use std::collections::HashMap;

use playhouse::prelude::*;

pub(crate) struct Players {
    pub(crate) players: HashMap<u64, ActorRef<Player>>,
}

impl Actor for Players {}

pub(crate) struct ForwardToPlayer<M> {
    pub(crate) player_id: u64,
    pub(crate) message: M,
}

impl<M: Message> Message for ForwardToPlayer<M> {
    type Reply = M::Reply;
}

impl<M: Message> DeferredHandler<ForwardToPlayer<M>> for Players
where
    Player: Handler<M>,
{
    fn handle(&mut self, request: ForwardToPlayer<M>, reply: Reply<M::Reply>, _: &mut Context<Self>) {
        if let Some(player) = self.players.get(&request.player_id) {
            reply.forward(*player, request.message);
        }
    }
}

pub(crate) struct Player {
    pub(crate) health: f32,
}

#[actor]
impl Player {
    #[message(named)]
    pub(crate) fn damage(&mut self, amount: f32) -> f32 {
        self.health -= amount;
        self.health
    }
}

#[playhouse::main]
fn main(system: &System) -> playhouse::Result<()> {
    let player = system.spawn(Player { health: 100.0 });
    let players = system.spawn(Players { players: HashMap::from([(0, player)]) });
    let health = players.ask(ForwardToPlayer { player_id: 0, message: Damage { amount: 38.2 } }).wait()?;
    println!("Player health: {health:.1}");
    Ok(())
}
