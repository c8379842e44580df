//! The documents name only what is there.

use std::fs;
use std::path::{Path, PathBuf};

const DOCUMENTS: [&str; 7] = [
    "README.md",
    "ARCHITECTURE.md",
    "GUARANTEES.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "bench/SAVINA.md",
    "bench/peers/README.md",
];

/// Those, and the pages of the guide.
fn documents() -> Vec<String> {
    let pages = fs::read_dir(root().join("guide")).unwrap();
    let pages = pages.map(|page| format!("guide/{}", page.unwrap().file_name().into_string().unwrap()));
    DOCUMENTS.map(str::to_owned).into_iter().chain(pages).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The parts of `text` between `open` and `close`.
fn between<'a>(text: &'a str, open: &str, close: &str) -> Vec<&'a str> {
    text.split(open).skip(1).filter_map(|rest| rest.split_once(close)).map(|(part, _)| part).collect()
}

/// The parts of a document that are code within a line.
fn code(document: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for (number, part) in document.split("```").enumerate() {
        if number % 2 == 0 {
            let odd = part.split('`').enumerate().filter(|(number, _)| number % 2 == 1);
            parts.extend(odd.map(|(_, code)| code.split_whitespace().collect::<Vec<_>>().join(" ")));
        }
    }
    parts
}

/// What a heading is called in a link.
fn slug(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect::<String>().replace(' ', "-")
}

#[test]
fn links_lead_somewhere() {
    let headings = |path: &Path| -> Vec<String> {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        text.lines().filter(|line| line.starts_with('#')).map(|line| slug(line.trim_start_matches('#'))).collect()
    };
    for document in documents() {
        let path = root().join(&document);
        for link in between(&read(&document), "](", ")") {
            if link.starts_with("https://") {
                continue;
            }
            let (file, heading) = link.split_once('#').map_or((link, None), |(file, heading)| (file, Some(heading)));
            let target = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            assert!(target.exists(), "{document}: {link} is not there");
            let is_there = heading.is_none_or(|heading| headings(&target).iter().any(|known| known == heading));
            assert!(is_there, "{document}: no heading for {link}");
        }
    }
}

#[test]
fn paths_exist() {
    let folders = ["crates/", "bench/", "examples/", "guide/", "scenarios/", ".ci/"];
    for document in documents() {
        for part in code(&read(&document)) {
            let is_path = folders.iter().any(|folder| part.starts_with(folder)) && !part.contains(['*', '{', ' ']);
            let path = part.split("::").next().unwrap_or(&part);
            assert!(!is_path || root().join(path).exists(), "{document}: {part} is not there");
        }
    }
}

/// The file of this name in `crates/playhouse/tests`, which may be part of a larger program.
fn test_file(name: &str) -> String {
    let folders = ["", "actors/"].map(|folder| format!("crates/playhouse/tests/{folder}{name}.rs"));
    let there = folders.iter().find(|path| root().join(path).exists());
    there.unwrap_or(&folders[0]).clone()
}

/// `file::test`, where a file without a path is one of `crates/playhouse/tests`.
fn tests_named_in(text: &str) -> Vec<(String, String)> {
    let mut named = Vec::new();
    for part in code(text) {
        let Some((file, path)) = part.split_once("::") else { continue };
        let is_file = !file.is_empty() && file.chars().all(|c| c.is_ascii_lowercase() || "_/.".contains(c));
        let name = path.rsplit("::").next().unwrap_or(path);
        if is_file && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_') {
            let file = if file.contains('/') { file.to_owned() } else { test_file(file) };
            named.push((file, name.to_owned()));
        }
    }
    named
}

/// Whether `source` has a test called `name`.
fn has_test(source: &str, name: &str) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim_start).collect();
    let function = format!("fn {name}(");
    lines.iter().enumerate().filter(|(_, line)| line.contains(&function)).any(|(at, _)| {
        lines[..at]
            .iter()
            .rev()
            .take_while(|line| line.starts_with("#[") || line.starts_with("//"))
            .any(|line| line.starts_with("#[test]"))
    })
}

/// `examples/src/lib.rs` includes the programs of a page, which are compiled and run.
#[test]
fn each_page_of_the_guide_is_tested_and_found() {
    let tested = read("examples/src/lib.rs");
    let readme = read("README.md");
    for page in documents().iter().filter(|document| document.starts_with("guide/")) {
        assert!(tested.contains(&format!("../{page}\")]")), "the programs of {page} are not tested");
        assert!(readme.contains(&format!("]({page})")), "{page} is not linked in README.md");
    }
}

#[test]
fn each_test_named_in_the_guarantees_exists() {
    let named = tests_named_in(&read("GUARANTEES.md"));
    assert!(named.len() > 20, "{named:?}");
    let missing: Vec<_> = named.iter().filter(|(file, name)| !has_test(&read(file), name)).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn each_promise_names_a_test() {
    let text = read("GUARANTEES.md");
    let mut promises = 0;
    for rows in text.split("\n\n").filter(|part| part.starts_with('|')) {
        for row in rows.lines().skip(2) {
            promises += 1;
            // What must not compile: cases of the macros' tests, and a documentation test.
            let cases = ["crates/macros/tests/ui/fail/", "examples/src/lib.rs"];
            let names_a_case = code(row).iter().any(|part| cases.iter().any(|case| part.starts_with(case)));
            assert!(names_a_case || !tests_named_in(row).is_empty(), "no test: {row}");
        }
    }
    assert!(promises > 10, "{promises}");
}

#[test]
fn each_module_is_in_the_architecture() {
    let text = read("ARCHITECTURE.md");
    for folder in
        ["crates/executor/src", "crates/actor/src", "crates/theater/src", "crates/toolbox/src", "crates/testkit/src"]
    {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let path = format!("{folder}/{name}");
            assert!(name == "lib.rs" || text.contains(&format!("]({path})")), "{path} is not in ARCHITECTURE.md");
        }
    }
    for folder in fs::read_dir(root().join("crates")).unwrap() {
        let path = format!("crates/{}", folder.unwrap().file_name().into_string().unwrap());
        assert!(text.contains(&path), "{path} is not in ARCHITECTURE.md");
    }
}

#[test]
fn each_program_of_savina_is_on_its_page() {
    let page = read("bench/SAVINA.md");
    let rows = page.lines().filter(|line| line.starts_with("| `savina-")).count();
    assert_eq!(rows, 30);
    for entry in fs::read_dir(root().join("bench/src/savina")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name == "mod.rs" || page.contains(&format!("](src/savina/{name})")), "{name} is not on the page");
    }
}

#[test]
fn the_checks_notice() {
    assert!(has_test("#[test]\nfn it() {}", "it"));
    assert!(has_test("    /// Why.\n    #[test]\n    #[cfg(unix)]\n    fn it() -> Result<()> {}", "it"));
    assert!(!has_test("#[test]\nfn other() {}\nfn it() {}", "it"));
    assert!(!has_test("// fn it(", "it"));
    assert_eq!(slug(" What is not there yet"), "what-is-not-there-yet");
    assert_eq!(code("a `b` c\n```sh\nd `e`\n```\nf `g\nh`"), ["b", "g h"]);
    let named =
        tests_named_in("`order::one`, `crates/a/src/b.rs::tests::two`, `SupervisionPolicy::on`, `--a::b`, `a::B`");
    assert_eq!(
        named,
        [
            ("crates/playhouse/tests/order.rs".to_owned(), "one".to_owned()),
            ("crates/a/src/b.rs".to_owned(), "two".to_owned())
        ]
    );
}
