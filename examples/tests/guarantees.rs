//! The promises in `guarantees/` and the tests that hold them.
//!
//! A comment `// GUARANTEE: <promise>` directly above the documentation and the attributes of a test names the promise that the test holds. Several
//! lines name several promises. In a file that is a case of its own (an error of the macros, a documentation test), the comment is the last line.
//!
//! The first table of a page is written by hand. The program makes the second table of the tags: see [`COMMAND`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Writes the tables of tests.
const COMMAND: &str = "PLAYHOUSE_WRITE_GUARANTEES=1 cargo test -p playhouse-examples --test guarantees";

/// The variable that asks for the tables.
const WRITES: &str = "PLAYHOUSE_WRITE_GUARANTEES";

/// The folder with the pages.
const PAGES: &str = "guarantees";

/// The page that has no promises, and therefore no tests.
const WITHOUT_PROMISES: &str = "guarantees/not-promised.md";

/// The folders with tests.
const SOURCES: [&str; 3] = ["crates", "bench", "examples"];

/// Begins a tag.
const TAG: &str = "// GUARANTEE: ";

/// The line before a table of tests.
const BEGIN: &str = "<!-- Generated from the tags of the tests, see CONTRIBUTING.md: -->";

/// The line behind a table of tests.
const END: &str = "<!-- The end of what is generated. -->";

/// A file of the repository.
struct File {
    /// The path from the root of the repository, with `/`.
    path: String,
    text: String,
}

/// A promise that a test or a file names.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Tag {
    promise: String,
    path: String,
    /// `None` if the whole file is the test.
    test: Option<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Adds the files below `folder` with this ending, by name.
fn add_files(folder: &str, ending: &str, files: &mut Vec<File>) {
    let entries = fs::read_dir(root().join(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let names: BTreeSet<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    for name in names.into_iter().filter(|name| name != "target" && !name.starts_with('.')) {
        let path = format!("{folder}/{name}");
        if root().join(&path).is_dir() {
            add_files(&path, ending, files);
        } else if path.ends_with(ending) {
            let text = fs::read_to_string(root().join(&path)).unwrap_or_else(|error| panic!("{path}: {error}"));
            files.push(File { path, text });
        }
    }
}

fn pages() -> Vec<File> {
    let mut pages = Vec::new();
    add_files(PAGES, ".md", &mut pages);
    pages
}

fn sources() -> Vec<File> {
    let mut sources = Vec::new();
    SOURCES.iter().for_each(|folder| add_files(folder, ".rs", &mut sources));
    sources
}

/// Returns the promises in the table that is written by hand.
fn promises(page: &File) -> Vec<&str> {
    let by_hand = page.text.split(BEGIN).next().unwrap_or_default();
    let rows = by_hand.lines().filter_map(|line| line.strip_prefix("| "));
    rows.filter_map(|row| row.split(" | ").next()).filter(|promise| *promise != "promise").collect()
}

/// Returns the function that the lines from `at` on declare, with documentation and attributes, or `None` if it is no
/// test.
fn test_at(lines: &[&str], at: usize) -> Option<String> {
    let (mut is_test, mut is_in_attribute) = (false, false);
    for line in &lines[at..] {
        let line = line.trim();
        if is_in_attribute || line.starts_with("#[") {
            is_test |= line.starts_with("#[test]") || line.contains("::test]") || line.contains("::test(");
            is_in_attribute = !line.ends_with(']');
        } else if !line.starts_with("//") {
            let name = line.split_once("fn ")?.1.split(['(', '<']).next()?;
            return is_test.then(|| name.to_owned());
        }
    }
    None
}

/// Returns whether the whole file is one test: a case that must not compile, or a file with a documentation test.
fn is_one_test(file: &File) -> bool {
    file.path.contains("/ui/fail/") || file.text.contains("/// ```compile_fail")
}

/// Adds the tags of a file. A comment that only looks like a tag is a problem.
fn add_tags(file: &File, tags: &mut Vec<Tag>, problems: &mut Vec<String>) {
    let lines: Vec<&str> = file.text.lines().collect();
    for (at, line) in lines.iter().map(|line| line.trim()).enumerate() {
        if !line.starts_with("//") || !line.trim_start_matches(['/', '!', ' ']).starts_with("GUARANTEE") {
            continue;
        }
        let place = format!("{}:{}", file.path, at + 1);
        let Some(promise) = line.strip_prefix(TAG) else {
            problems.push(format!("{place}: a tag begins with {TAG:?}, not with {line:?}"));
            continue;
        };
        let is_last = lines[at..].iter().all(|line| line.trim().starts_with(TAG) || line.is_empty());
        let test = if is_last { None } else { test_at(&lines, at) };
        if test.is_none() && !(is_last && is_one_test(file)) {
            problems.push(format!(
                "{place}: {promise:?} stands above no test: put it directly above the attributes of one"
            ));
            continue;
        }
        tags.push(Tag { promise: promise.to_owned(), path: file.path.clone(), test });
    }
}

/// Returns the table of the tests of these promises, with an empty line before and behind.
fn table(promises: &[&str], tags: &[Tag]) -> String {
    let mut table = String::from("\n| promise | tests |\n|---|---|\n");
    for promise in promises {
        let mut by_file: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for tag in tags.iter().filter(|tag| tag.promise == *promise) {
            by_file.entry(&tag.path).or_default().extend(tag.test.as_deref());
        }
        let files = by_file.iter().map(|(path, tests)| {
            let tests: Vec<_> = tests.iter().map(|test| format!("`{test}`")).collect();
            let separator = if tests.is_empty() { "" } else { ": " };
            format!("[{path}](../{path}){separator}{}", tests.join(", "))
        });
        table.push_str(&format!("| {promise} | {} |\n", files.collect::<Vec<_>>().join("<br>")));
    }
    table.push('\n');
    table
}

/// Returns the page with this table of tests, or `None` if the page lacks one of the markers.
fn with_table(page: &str, table: &str) -> Option<String> {
    let (before, rest) = page.split_once(&format!("{BEGIN}\n"))?;
    let (_, behind) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{table}{END}{behind}"))
}

/// Compares promises and tags. Returns the problems, and the pages as they should be.
fn check(pages: &[File], sources: &[File]) -> (Vec<String>, Vec<File>) {
    let (mut tags, mut problems, mut made) = (Vec::new(), Vec::new(), Vec::new());
    sources.iter().for_each(|file| add_tags(file, &mut tags, &mut problems));
    let mut known = BTreeSet::new();
    for page in pages.iter().filter(|page| page.path != WITHOUT_PROMISES) {
        let promises = promises(page);
        for promise in &promises {
            if !known.insert(*promise) {
                problems.push(format!("{}: {promise:?} is the title of two promises", page.path));
            }
            if !tags.iter().any(|tag| tag.promise == *promise) {
                problems.push(format!("{}: no test holds {promise:?}: tag one with `{TAG}{promise}`", page.path));
            }
        }
        match with_table(&page.text, &table(&promises, &tags)) {
            Some(text) => made.push(File { path: page.path.clone(), text }),
            None => problems.push(format!("{}: the lines {BEGIN:?} and {END:?} enclose the tests", page.path)),
        }
    }
    for tag in tags.iter().filter(|tag| !known.contains(tag.promise.as_str())) {
        let test = tag.test.as_deref().unwrap_or("the last line");
        problems.push(format!("{}: {test}: no page in {PAGES} promises {:?}", tag.path, tag.promise));
    }
    (problems, made)
}

#[test]
fn each_promise_has_tests_and_the_tables_name_them() {
    let pages = pages();
    let (problems, made) = check(&pages, &sources());
    assert!(problems.is_empty(), "{problems:#?}");
    for page in made {
        let is_same = pages.iter().any(|now| now.path == page.path && now.text == page.text);
        if !is_same && std::env::var_os(WRITES).is_some() {
            fs::write(root().join(&page.path), page.text).unwrap();
            continue;
        }
        assert!(is_same, "the tests in {} are out of date: run `{COMMAND}`", page.path);
    }
}

#[test]
fn each_page_is_in_the_index_once() {
    let index = fs::read_to_string(root().join("GUARANTEES.md")).unwrap();
    for page in pages() {
        assert_eq!(index.matches(&format!("]({})", page.path)).count(), 1, "{} in GUARANTEES.md", page.path);
    }
}

// -- tests of the checks ------------------------------------------------------------------------------------------------

fn file(path: &str, text: &str) -> File {
    File { path: path.to_owned(), text: text.to_owned() }
}

/// A page that promises "A" and "B".
fn page(tests: &str) -> File {
    file(
        "guarantees/x.md",
        &format!("# X\n\n| promise | exactly |\n|---|---|\n| A | a. |\n| B | b. |\n\n{BEGIN}\n{tests}{END}\n"),
    )
}

/// Returns the only problem.
fn problem(pages: &[File], source: &str) -> String {
    let both = file("crates/x/tests/both.rs", &format!("{TAG}A\n{TAG}B\n#[test]\nfn both() {{}}\n"));
    let (problems, _) = check(pages, &[both, file("crates/x/src/y.rs", source)]);
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems[0].clone()
}

#[test]
fn the_tables_are_made_of_the_tags() {
    let sources = [
        file(
            "bench/a.rs",
            &format!("{TAG}A\n{TAG}B\n#[test]\nfn one() {{}}\n\n    {TAG}A\n    #[test]\n    fn two() {{}}\n"),
        ),
        file("crates/ui/fail/b.rs", &format!("fn main() {{}}\n{TAG}B\n")),
    ];
    let (problems, made) = check(&[page("old")], &sources);
    assert!(problems.is_empty(), "{problems:?}");
    let rows = "| A | [bench/a.rs](../bench/a.rs): `one`, `two` |\n\
                | B | [bench/a.rs](../bench/a.rs): `one`<br>[crates/ui/fail/b.rs](../crates/ui/fail/b.rs) |\n";
    assert_eq!(made[0].text, page(&format!("\n| promise | tests |\n|---|---|\n{rows}\n")).text);
    let (_, again) = check(&made, &sources);
    assert_eq!(again[0].text, made[0].text);
}

#[test]
fn the_checks_notice() {
    let lines = |text: &'static str| text.lines().collect::<Vec<_>>();
    let is_named = |text, name: &str| test_at(&lines(text), 0).as_deref() == Some(name);
    assert!(is_named("#[test]\nfn it() {}", "it"));
    assert!(is_named("    /// Why.\n    #[cfg(unix)]\n    #[tokio::test]\n    async fn it() {}", "it"));
    assert!(is_named("#[playhouse::test(seeds = 3)]\nfn it(system: &System) {}", "it"));
    assert!(is_named("#[cfg_attr(\n    miri,\n    ignore\n)]\n#[test]\nfn it<T>() {}", "it"));
    assert_eq!(test_at(&lines("fn it() {}"), 0), None);
    assert_eq!(test_at(&lines("#[derive(Debug)]\nstruct Test;"), 0), None);
    assert_eq!(test_at(&lines("\n#[test]\nfn it() {}"), 0), None);

    let pages = [page("")];
    assert!(
        problem(&pages, &format!("{TAG}A\n\n#[test]\nfn it() {{}}")).contains("src/y.rs:1: \"A\" stands above no test")
    );
    assert!(problem(&pages, &format!("{TAG}A\nfn it() {{}}")).contains("stands above no test"));
    assert!(problem(&pages, &format!("fn it() {{}}\n{TAG}A\n")).contains("stands above no test"));
    assert!(
        problem(&pages, &format!("{TAG}C\n#[test]\nfn it() {{}}")).contains("it: no page in guarantees promises \"C\"")
    );
    assert!(problem(&pages, "/// GUARANTEE: A\n#[test]\nfn it() {}").contains("a tag begins with \"// GUARANTEE: \""));
    assert!(problem(&[page(""), file("guarantees/y.md", &format!("{BEGIN}\n"))], "").contains("enclose the tests"));
    let third = file("guarantees/y.md", &format!("| promise | exactly |\n|---|---|\n| D | d. |\n{BEGIN}\n{END}"));
    assert!(problem(&[page(""), third], "").contains("no test holds \"D\": tag one with `// GUARANTEE: D`"));
    let second = file("guarantees/y.md", &format!("| A | a. |\n{BEGIN}\n{END}"));
    assert!(problem(&[page(""), second], "").contains("\"A\" is the title of two promises"));
}
