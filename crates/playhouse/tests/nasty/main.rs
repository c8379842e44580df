//! Nasty programs: actors whose handlers, hooks, `Drop`s and wakers do random things to the runtime. Each run ends, and nothing is
//! lost silently. Each message, state and future is dropped once, and no memory is left.
//!
//! A program is data ([`program::Program`]). Programs are drawn by proptest from a fixed seed, and played in a process of their own, because
//! a program may end it. A program that fails is made smaller, and printed as one line that can be played again.
//!
//! | variable | meaning |
//! |---|---|
//! | `PROPTEST_CASES=100000` | the number of programs instead of 200 |
//! | `NASTY_SEED=7` | other programs |
//! | `NASTY_WITHOUT=HookPanics,Racing` | without these [ingredients](program::Ingredient) |
//! | `NASTY_PROGRAM='{..}'` | only this program |
//! | `NASTY_REPEAT=100` | the runs of each program |

mod apart;
mod heap;
mod play;
mod program;

use std::time::Duration;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::apart::Player;
use crate::program::{Ingredient, Program, program};

/// Programs that are played if `PROPTEST_CASES` is not set.
const CASES: u32 = if cfg!(tsan) { 50 } else { 200 };

/// The runs of a program that may be the smaller form of a failed one, because threads do not do the same each time.
const TRIES: u32 = 20;

/// The longest that a program may take. A program takes some milliseconds; the rest is for a busy machine.
const LIMIT: Duration = Duration::from_secs(if cfg!(tsan) { 300 } else { 30 });
/// The same limit while a failed program is made smaller.
const SMALLER_LIMIT: Duration = Duration::from_secs(if cfg!(tsan) { 60 } else { 4 });
/// The longest that the search for a smaller program may take, in milliseconds.
const SMALLER_MS_MAX: u32 = 60_000;

/// Returns the number in an environment variable.
fn number<N: std::str::FromStr>(name: &str) -> Option<N> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")))
}

/// Returns the ingredients that are left out.
fn left_out() -> Vec<Ingredient> {
    let unwanted = std::env::var("NASTY_WITHOUT").unwrap_or_default();
    Ingredient::ALL
        .into_iter()
        .filter(|ingredient| unwanted.split(',').any(|name| name == format!("{ingredient:?}")))
        .collect()
}

// GUARANTEE: Crashes are isolated
#[test]
fn programs_end_and_lose_nothing_and_keep_no_memory() {
    if apart::is_player() {
        return apart::play_from_stdin();
    }
    let repeat = number("NASTY_REPEAT").unwrap_or(1);
    let mut player = Player::new(LIMIT);
    if let Ok(text) = std::env::var("NASTY_PROGRAM") {
        let program: Program = serde_json::from_str(&text).expect("NASTY_PROGRAM is a program");
        for _ in 0..repeat {
            if let Err(wrong) = player.play(&program) {
                panic!("{wrong}");
            }
        }
        return;
    }
    let seed = number("NASTY_SEED").unwrap_or(0_u64);
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        cases: number("PROPTEST_CASES").unwrap_or(CASES),
        failure_persistence: None,
        max_shrink_iters: 1_000,
        max_shrink_time: SMALLER_MS_MAX,
        ..Config::default()
    };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let left_out = left_out();
    let drawn = program().prop_map(move |program| program.without(&left_out));
    let player = std::cell::RefCell::new(player);
    let failed = std::cell::Cell::new(false);
    let cases = std::cell::Cell::new(0_u32);
    let result = runner.run(&drawn, |program| {
        let times = if failed.get() { TRIES.max(repeat) } else { repeat };
        cases.set(cases.get() + 1);
        for _ in 0..times {
            let played = player.borrow_mut().play(&program);
            if let Err(wrong) = played {
                if !failed.replace(true) {
                    player.borrow_mut().limit = SMALLER_LIMIT;
                    eprintln!(
                        "program {} of seed {seed}: {wrong}\nNASTY_PROGRAM='{program}'\nmaking it smaller",
                        cases.get()
                    );
                }
                return Err(TestCaseError::fail(wrong));
            }
        }
        Ok(())
    });
    if let Err(TestError::Fail(wrong, program)) = result {
        panic!("seed {seed}: {wrong}\n{program:#?}\nto play it again: NASTY_PROGRAM='{program}'");
    }
}

/// Each ingredient is drawn, and no program has an ingredient that is left out.
#[test]
fn each_ingredient_is_drawn_and_can_be_left_out() {
    let mut runner = TestRunner::deterministic();
    let mut seen = Vec::new();
    for _ in 0..300 {
        let program = program().new_tree(&mut runner).unwrap().current();
        for ingredient in Ingredient::ALL {
            let without = program.clone().without(&[ingredient]);
            if without != program && !seen.contains(&ingredient) {
                seen.push(ingredient);
            }
            assert_eq!(without, without.clone().without(&[ingredient]));
        }
        let text = program.to_string();
        assert_eq!(serde_json::from_str::<Program>(&text).unwrap(), program);
    }
    assert_eq!(seen.len(), Ingredient::ALL.len(), "only {seen:?}");
}
