//! The words of comments and pages.
//!
//! The subject of a sentence is a named thing. A comment or paragraph does not open with a pronoun that stands for one, and retired words stay out.

use std::fs;
use std::path::{Path, PathBuf};

/// The folders and files whose comments keep the rules.
const KEPT: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "guide/src",
    "crates/executor/src",
    "crates/actor/src",
    "crates/theater/src",
    "guarantees",
    "crates/toolbox/src",
    "crates/testkit/src",
    "crates/sqlite/src",
    "crates/sqlite/tests",
    "crates/postgres/src",
    "crates/postgres/tests",
    "crates/etcd/src",
    "crates/etcd/tests",
    "crates/cluster/src",
    "crates/macros/src",
    "crates/playhouse/src",
    "crates/cli/src",
    "crates/console/src",
    "bench/src",
    "bench/cli/src",
    "examples/src",
    "crates/playhouse/tests",
    "crates/theater/tests",
    "crates/executor/tests",
    "examples/tests",
];

/// The words that a sentence does not open with. Within a paragraph, "that worker" and "as long as" are fine.
const OPENINGS: [&str; 9] = ["What", "Who", "Whom", "Whose", "Whoever", "Where", "So", "That", "As"];

/// Words that are not used any more, each with the word of the field.
const RETIRED: [(&str, &str); 22] = [
    ("antechamber", "arrival buffer"),
    ("luggage", "metadata"),
    ("nursery", "cell allocator"),
    ("lookout", "observers"),
    ("knot", "mute deadlock"),
    ("untie", "break the deadlock"),
    ("tenure", "ownership"),
    ("theft", "steal"),
    ("loot", "stolen records"),
    ("House", "TheaterCore"),
    ("Distant", "PendingProxy"),
    ("Berth", "StubPlacement"),
    ("Seat", "ActorLocation"),
    ("Luggage", "ActorMetadata"),
    ("Agency", "MigrationHost"),
    ("Carrier", "Forwarder"),
    ("Parcel", "ForwardedMessage"),
    ("platter", "disk"),
    ("howmanyth", "number"),
    ("manyth", "number"),
    ("whoever", "the named thing"),
    ("whom", "the named thing"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the `.rs` and `.md` files at and below `path`.
fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let below = entries.flat_map(|entry| files(&entry.expect("an entry").path()));
    below.filter(|path| path.extension().is_some_and(|end| end == "rs" || end == "md")).collect()
}

/// Returns the lines of prose with their numbers: the comments of a program, or a page without its blocks of code. An empty line ends a paragraph.
fn prose(text: &str, is_page: bool) -> Vec<(usize, String)> {
    let mut in_block = false;
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        let said = match (is_page, line.strip_prefix("//")) {
            (true, _) => line,
            (false, Some(comment)) => comment.trim_start_matches(['/', '!']).trim_start(),
            (false, None) => {
                in_block = false;
                ""
            }
        };
        let is_fence = said.starts_with("```");
        in_block ^= is_fence;
        lines.push((number, if in_block || is_fence { String::new() } else { said.to_owned() }));
    }
    lines
}

/// Removes `code` in backticks, links' targets, and what is quoted.
fn without_code(line: &str) -> String {
    let outside = |text: &str, mark: char| text.split(mark).step_by(2).collect::<Vec<_>>().join(" ");
    outside(&outside(line, '`'), '"')
}

/// Returns what breaks the rules in a text, with the numbers of the lines.
fn errors(text: &str, is_page: bool) -> Vec<(usize, String)> {
    let mut errors = Vec::new();
    let mut begins = true;
    for (number, line) in prose(text, is_page) {
        let bare = without_code(&line);
        let words: Vec<&str> = bare.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let item = line.trim_start_matches(['-', '*', '|', ' ']);
        begins |= item.len() < line.len();
        if begins && OPENINGS.iter().any(|opening| item.starts_with(opening) && words.first() == Some(opening)) {
            errors.push((number, format!("a sentence opens with \"{}\": name its subject", words[0])));
        }
        for sentence in bare.split(". ").skip(1) {
            let first = sentence.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            if first != "That" && first != "As" && OPENINGS.contains(&first) {
                errors.push((number, format!("a sentence opens with \"{first}\": name its subject")));
            }
        }
        for (word, instead) in RETIRED {
            if words.contains(&word) {
                errors.push((number, format!("\"{word}\" is retired: write \"{instead}\"")));
            }
        }
        begins = line.is_empty() || line.ends_with(['.', '?', '!', '|', ':']);
    }
    errors
}

#[test]
fn sentences_name_their_subjects_and_use_the_words_of_the_field() {
    let mut found = Vec::new();
    for part in KEPT {
        for file in files(&root().join(part)) {
            let text = fs::read_to_string(&file).expect("the file can be read");
            let is_page = file.extension().is_some_and(|end| end == "md");
            let shown = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
            found
                .extend(errors(&text, is_page).into_iter().map(|(number, error)| format!("{shown}:{number}: {error}")));
        }
    }
    assert!(found.is_empty(), "{} sentences:\n{}", found.len(), found.join("\n"));
}

#[test]
fn the_check_notices() {
    let program = "//! What a gulp is.\n\n/// Returns it. What then?\n/// So it ends, and\n/// where it was.\nlet who = 1;\n// The knot.\n/// ```\n/// // Where\n/// ```\n// `knot`";
    let lines: Vec<usize> = errors(program, false).into_iter().map(|(number, _)| number).collect();
    assert_eq!(lines, [1, 3, 4, 7]);
    let page = "# Links\n\nA link\nSo it goes.\n- What is left\n| Who | x |\n```\nWhat\n```\n";
    let lines: Vec<usize> = errors(page, true).into_iter().map(|(number, _)| number).collect();
    assert_eq!(lines, [5, 6]);
}
