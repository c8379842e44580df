//! Scenario files: accepted ones, and the errors of the others.

use std::ops::RangeInclusive;

use playhouse_bench::chatapp::driven::LINE_BYTES_MAX;
use playhouse_bench::chatapp::{
    CLIENTS, DIRECTORIES, HISTORY, MESSAGE_BYTES, OBJECT_BYTES, OBJECTS, SAMPLES, Scenario, ScenarioError, TURNS,
    WORK_AMOUNT, thousands,
};

const GOOD: &str = "turns = 3\nclients = 10\n";

fn errors(text: &str) -> ScenarioError {
    match Scenario::from_toml("evening.toml", text) {
        Ok(scenario) => panic!("accepted: {scenario:?}"),
        Err(error) => error,
    }
}

/// Checks that `text` has this one problem and no other.
fn one(text: &str, expected: &str) {
    assert_eq!(errors(text).to_string(), format!("evening.toml:{expected}"), "of {text:?}");
}

#[test]
fn an_omitted_setting_has_a_default() {
    let scenario = Scenario::from_toml("evening.toml", GOOD).unwrap();
    assert_eq!((scenario.directories, scenario.seed, scenario.message.history), (1, 1, 16));
    assert_eq!((scenario.behaviour.post, scenario.message.size, scenario.work.len()), (0.0, 0, 0));
    assert_eq!(scenario.message.objects, 0);
}

#[test]
fn percentages_are_whole_or_not() {
    let text = "turns = 3\nclients = 10\n[behaviour]\nnothing = 49.5\npost = 50\nleave = 0.5\n";
    let scenario = Scenario::from_toml("evening.toml", text).unwrap();
    assert_eq!((scenario.behaviour.post, scenario.behaviour.leave), (50.0, 0.5));
}

#[test]
fn unknown_keys_are_named_with_what_is_allowed() {
    one(
        &format!("clints = 20\n{GOOD}"),
        "1: clints = 20: unknown key; allowed here: turns, clients, directories, seed, behaviour, connectedness, message, work",
    );
    one(
        &format!("{GOOD}[behaviour]\npots = 5"),
        "4: behaviour.pots = 5: unknown key; allowed here: nothing, new_chat, leave, post",
    );
    one(
        &format!("{GOOD}[behavior]\npost = 5"),
        "3: behavior: unknown key; allowed here: turns, clients, directories, seed, behaviour, connectedness, message, work",
    );
    one(
        &format!("{GOOD}[message]\nobject = 5"),
        "4: message.object = 5: unknown key; allowed here: size, objects, history",
    );
    one(
        &format!("{GOOD}[[work]]\nkind = \"compute\"\namount = 5\nshares = 7"),
        "6: work[0].shares = 7: unknown key; allowed here: share, kind, amount, spread",
    );
}

#[test]
fn wrong_types_are_named_with_what_is_allowed() {
    one("turns = \"many\"\nclients = 10", "1: turns = \"many\": must be a whole number from 1 to 10000000");
    one("turns = 3.5\nclients = 10", "1: turns = 3.5: must be a whole number from 1 to 10000000");
    one("turns = 3\nclients = [10]", "2: clients = [10]: must be a whole number from 1 to 10000000");
    one(&format!("behaviour = 5\n{GOOD}"), "1: behaviour = 5: must be a table, written [behaviour]");
    one(&format!("{GOOD}[work]\nkind = \"compute\""), "3: work: must be an array of tables, each written [[work]]");
    one(&format!("work = [1, 2]\n{GOOD}"), "1: work = [1, 2]: must be an array of tables, each written [[work]]");
    one(
        &format!("{GOOD}[behaviour]\npost = true"),
        "4: behaviour.post = true: must be a percentage, a number from 0 to 100",
    );
    one(
        &format!("{GOOD}[[work]]\nkind = \"sleep\"\namount = 5"),
        "4: work[0].kind = \"sleep\": must be \"compute\" or \"memory\"",
    );
}

#[test]
fn impossible_sizes_are_named_with_what_is_allowed() {
    one("turns = 0\nclients = 10", "1: turns = 0: must be a whole number from 1 to 10000000");
    one("turns = 3\nclients = -1", "2: clients = -1: must be a whole number from 1 to 10000000");
    one(
        "turns = 3\nclients = 1_000_000_000_000_000_000_000",
        "2: clients = 1_000_000_000_000_000_000_000: must be a whole number from 1 to 10000000",
    );
    one(
        &format!("{GOOD}directories = 11"),
        "3: directories = 11: must be from 1 to the number of clients, which is 10",
    );
    one(
        &format!("{GOOD}[message]\nsize = 16_777_217"),
        "4: message.size = 16_777_217: must be a whole number from 0 to 16777216",
    );
    one(
        &format!("{GOOD}[message]\nobjects = 1_000_001"),
        "4: message.objects = 1_000_001: must be a whole number from 0 to 1000000",
    );
    one(&format!("{GOOD}[message]\nobjects = -1"), "4: message.objects = -1: must be a whole number from 0 to 1000000");
    one(
        &format!("{GOOD}[behaviour]\npost = 100.5"),
        "4: behaviour.post = 100.5: must be a percentage, a number from 0 to 100",
    );
    one(
        &format!("{GOOD}[behaviour]\npost = nan"),
        "4: behaviour.post = nan: must be a percentage, a number from 0 to 100",
    );
    one(
        "turns = 3\nclients = 1_000_000\n[connectedness]\nbefriend = 50",
        "4: connectedness.befriend = 50: makes about 249999750000 friendships among 1000000 clients; at most 100000000 are \
         allowed, so it must be from 0 to 0.020000",
    );
    one(
        "turns = 3\nclients = 1_000_000\n[behaviour]\npost = 50\n[message]\nsize = 1_000_000",
        "6: message.size = 1_000_000: makes about 500000000000 bytes of posts per turn; at most 17179869184 are allowed, so \
         it must be from 0 to 34359",
    );
    let million = "turns = 3\nclients = 1_000_000\n[behaviour]\npost = 50\n[message]\n";
    one(
        &format!("{million}objects = 800\nsize = 100"),
        "6: message.objects = 800: makes about 19250000000 bytes of posts per turn, with 100 bytes and 48 for each object; at \
         most 17179869184 are allowed, so it must be from 0 to 713",
    );
    // Half a million posts of 34,359 bytes fit, and of 713 objects with 100 bytes, but nothing more.
    for fits in ["size = 34_359", "objects = 713\nsize = 100"] {
        Scenario::from_toml("evening.toml", &format!("{million}{fits}")).unwrap();
    }
    one(
        &format!("{million}objects = 714\nsize = 100"),
        "6: message.objects = 714: makes about 17186000000 bytes of posts per turn, with 100 bytes and 48 for each object; at \
         most 17179869184 are allowed, so it must be from 0 to 713",
    );
    one(
        &format!("{GOOD}[[work]]\nkind = \"memory\"\namount = 300_000_000"),
        "5: work[0].amount = 300_000_000: must be from 0 to 268435456 bytes for work of the kind \"memory\"",
    );
}

#[test]
fn probabilities_must_add_up() {
    one(
        &format!("{GOOD}[behaviour]\nnew_chat = 20\nleave = 30\npost = 60"),
        "6: behaviour.post = 60: new_chat, leave and post must sum to at most 100, and sum to 110",
    );
    one(
        &format!("{GOOD}[behaviour]\nnothing = 50\npost = 40"),
        "4: behaviour.nothing = 50: must be 60, which new_chat, leave and post leave over of 100, or be left out",
    );
    let work = "[[work]]\nkind = \"compute\"\namount = 1\nshare = 60\n";
    one(&format!("{GOOD}{work}{work}"), "10: work[1].share = 60: the shares must sum to at most 100, and sum to 120");
}

#[test]
fn missing_keys_are_named() {
    one("turns = 3", " clients: is missing: must be a whole number from 1 to 10000000");
    one(&format!("{GOOD}[[work]]\namount = 5"), " work[0].kind: is missing: must be \"compute\" or \"memory\"");
}

#[test]
fn all_problems_are_reported_at_once_in_the_order_of_the_file() {
    let text =
        "turns = 0\nclients = \"x\"\ndirectories = 5\ncolour = \"red\"\n[behaviour]\npost = 120\nleave = -1\n[chat]\n";
    let error = errors(text);
    let keys: Vec<&str> = error.problems.iter().map(|problem| &*problem.key).collect();
    assert_eq!(keys, ["turns", "clients", "colour", "behaviour.post", "behaviour.leave", "chat"]);
    assert_eq!(error.to_string().lines().count(), 6);
    assert!(error.to_string().lines().all(|line| line.starts_with("evening.toml:")));
}

#[test]
fn errors_of_syntax_have_their_line() {
    for text in ["turns = 3\nclients = \n", "turns = 3\nturns = 4\n", "turns = 3\n[behaviour\n"] {
        let error = errors(text);
        assert_eq!(error.problems[0].line, Some(2), "{error}");
        assert!(error.to_string().starts_with("evening.toml:2: not TOML: "), "{error}");
    }
}

#[test]
fn long_values_are_cut() {
    let error = errors(&format!("turns = \"{}\"\nclients = 1", "x".repeat(500))).to_string();
    assert!(error.len() < 200 && error.contains('…'), "{error}");
}

#[test]
fn the_guide_says_the_limits() {
    let guide = include_str!("../../guide/src/chatapp.md");
    let says = |key: &str, range: RangeInclusive<u32>| {
        let row =
            guide.lines().find(|line| line.starts_with(&format!("| `{key}`"))).unwrap_or_else(|| panic!("no {key}"));
        let limits = format!("{} to {}", thousands((*range.start()).into()), thousands((*range.end()).into()));
        assert!(row.contains(&limits), "no {limits} in {row}");
    };
    says("turns", TURNS);
    says("clients", CLIENTS);
    says("directories", DIRECTORIES);
    says("seed", 0..=u32::MAX);
    says("message.size", MESSAGE_BYTES);
    says("message.objects", OBJECTS);
    assert!(guide.contains(&format!("counted as {OBJECT_BYTES} bytes")));
    says("message.history", HISTORY);
    says("work.amount", WORK_AMOUNT);
    assert!(guide.contains(&format!("{} bytes", thousands(LINE_BYTES_MAX as u64))));
    assert!(guide.contains(&format!("{} to {SAMPLES} samples", SAMPLES / 2)));
}
