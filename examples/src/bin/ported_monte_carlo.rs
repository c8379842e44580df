//! A hundred games of dice, and their average result: a port of `examples/monte_carlo.rs` of ractor 0.16.5 (MIT).
//!
//! ractor's program logs the first four lines only. A supervisor of ractor stops when a child ends, unless it handles that event. The manager does
//! not, so it stops after the first game.
//!
//! ```text
//! cargo run -p playhouse-examples --bin ported_monte_carlo
//! ```

use std::collections::HashMap;

use playhouse::prelude::*;

struct Game {
    funds: i64,
    wager: u32,
    total_rounds: u32,
    current_round: u32,
    results: Vec<i64>,
}

impl Default for Game {
    fn default() -> Game {
        Game { funds: 10_000, wager: 100, total_rounds: 100, current_round: 1, results: Vec::new() }
    }
}

impl Game {
    /// Returns whether the player wins, which happens 49 times of 101 on average.
    fn roll_dice() -> bool {
        rand::random_range(0..101) > 51
    }
}

#[actor]
impl Game {
    #[message]
    fn play(&mut self, manager: ActorRef<GameManager>, ctx: &mut Context<Self>) {
        if self.current_round <= self.total_rounds {
            self.current_round += 1;
            let wager = i64::from(self.wager);
            self.funds += if Self::roll_dice() { wager } else { -wager };
            self.results.push(self.funds);
            ctx.this().tell(Play(manager));
        } else {
            manager.tell(Finish(ctx.this().id(), std::mem::take(&mut self.results)));
            ctx.stop();
        }
    }
}

struct GameManager {
    games_finished: u32,
    total_games: u32,
    results: HashMap<ActorId, Vec<i64>>,
}

impl GameManager {
    fn new(total_games: u32) -> GameManager {
        GameManager { games_finished: 0, total_games, results: HashMap::new() }
    }
}

#[actor]
impl GameManager {
    #[started]
    fn start_games(&mut self, ctx: &mut Context<Self>) {
        let conditions = Game::default();
        println!("Starting funds: ${}", conditions.funds);
        println!("Wager per round: ${}", conditions.wager);
        println!("Rounds per game: {}", conditions.total_rounds);
        println!("Running simulations...");
        for _ in 0..self.total_games {
            ctx.spawn(Game::default()).tell(Play(ctx.this()));
        }
    }

    #[message]
    fn finish(&mut self, game: ActorId, results: Vec<i64>, ctx: &mut Context<Self>) {
        self.results.insert(game, results);
        self.games_finished += 1;
        if self.games_finished >= self.total_games {
            let last = self.results.values().filter_map(|results| results.last());
            let average = last.sum::<i64>() / i64::from(self.total_games);
            println!("Simulations ran: {}", self.results.len());
            println!("Final average funds: ${average}");
            ctx.stop();
        }
    }
}

#[playhouse::main]
fn main(system: &System) {
    system.spawn(GameManager::new(100)).ended().wait();
}
