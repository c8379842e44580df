//! The programs of `safe_messages`: their results are right in each mode and order, and no message copies its data.

use std::fs;
use std::path::Path;

use playhouse::prelude::*;
use playhouse_examples::safe_messages::passing::{Account, Kind, Mode};
use playhouse_examples::safe_messages::{PROGRAMS, Program};

const SEEDS: u64 = 20;

fn source(program: &Program) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/safe_messages");
    fs::read_to_string(folder.join(program.file).with_extension("rs")).unwrap()
}

/// Returns the arguments of a list, up to its closing bracket.
fn arguments(list: &str) -> Vec<&str> {
    let (mut arguments, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, c) in list.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => {
                arguments.push(list[start..at].trim());
                break;
            }
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                arguments.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    arguments.retain(|argument| !argument.is_empty());
    arguments
}

/// Returns the arguments of all messages that a program's text tells or asks.
fn arguments_in(text: &str) -> Vec<&str> {
    let sends = [".tell(", ".ask("];
    let messages = sends.into_iter().flat_map(|send| text.split(send).skip(1));
    messages
        .filter_map(|message| message.split_once('('))
        .flat_map(|(name, list)| if name.contains(')') { Vec::new() } else { arguments(list) })
        .collect()
}

fn is_passed(argument: &str) -> bool {
    let argument = argument.strip_prefix("Some(").unwrap_or(argument);
    ["pass(", "share(", "copy("].iter().any(|passing| argument.starts_with(passing))
}

#[test]
fn results_are_right_whether_moved_or_copied() {
    for program in &PROGRAMS {
        for mode in [Mode::Moved, Mode::Copied] {
            let system = System::builder().workers(2).start().unwrap();
            program.time(&system, program.small, mode).unwrap();
            system.shutdown().unwrap();
        }
    }
}

#[test]
fn results_are_right_in_any_order() {
    for program in &PROGRAMS {
        for seed in 0..SEEDS {
            let system = System::builder().workers(2).simulated(seed).start().unwrap();
            program.time(&system, program.small, Mode::Moved).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            system.shutdown().unwrap();
        }
    }
}

#[test]
fn nothing_is_copied_to_be_sent() {
    for program in &PROGRAMS {
        // Some arguments are sent in some orders only.
        let mut account = Account::default();
        for seed in 0..SEEDS {
            let system = System::builder().workers(2).simulated(seed).start().unwrap();
            account.add(&program.count(&system, program.small).unwrap());
            system.shutdown().unwrap();
        }
        assert_eq!(account.sites(Kind::Copied), 0, "{}: {account:?}", program.name);
        let passed = source(program).split(['(', ' ']).filter(|word| ["pass", "share"].contains(word)).count();
        assert_eq!(account.all_sites(), passed, "{}: arguments that are never sent: {account:?}", program.name);
    }
}

/// The texts of the programs show sends that the account does not count.
#[test]
fn nothing_is_sent_that_is_not_counted_or_was_cloned_before() {
    for program in &PROGRAMS {
        let text = source(program);
        let (actors, _driver) = text.split_once("pub(super) fn run").unwrap();
        let missed: Vec<_> = arguments_in(actors).into_iter().filter(|argument| !is_passed(argument)).collect();
        assert!(missed.is_empty(), "{}: {missed:?}", program.name);
        let has_sends = actors.contains("pass(") || actors.contains("share(");
        assert!(has_sends && !actors.contains(".clone()"), "{}", program.name);
    }
}

#[test]
fn the_checks_notice() {
    assert_eq!(
        arguments_in("a.tell(B(pass(c), Some(share(&d)))); e.tell(F); g.ask(H(i.j(1, 2), vec![3, 4])).await"),
        ["pass(c)", "Some(share(&d))", "i.j(1, 2)", "vec![3, 4]"]
    );
    assert!(is_passed("Some(share(&d))") && !is_passed("i.j(1, 2)"));
}

#[test]
fn soter_finds_71_percent() {
    let sum = |of: fn(&Program) -> usize| PROGRAMS.iter().map(of).sum::<usize>() as f64;
    let found = sum(|program| program.thesis.soter) / sum(|program| program.thesis.ideal);
    assert_eq!((100.0 * found).round(), 71.0);
}
