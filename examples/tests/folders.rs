//! The folders of the crates depend one way.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The crates whose folders form no circle of any length.
const WITHOUT_CIRCLES: [&str; 7] = [
    "crates/cli",
    "crates/cluster",
    "crates/executor",
    "crates/macros",
    "crates/testkit",
    "crates/theater",
    "crates/toolbox",
];

/// The modules of tests that are files or folders of their own.
const TESTS: [&str; 4] = ["tests", "explored", "simulation", "trap"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the files with code below `path`, without those of tests.
fn files(path: &Path) -> Vec<PathBuf> {
    let is_test = |path: &Path| path.file_stem().is_some_and(|stem| TESTS.iter().any(|name| *name == stem));
    let entries = fs::read_dir(path).expect("the folder can be read").map(|entry| entry.expect("an entry").path());
    entries
        .filter(|path| !is_test(path))
        .flat_map(|path| match path.is_dir() {
            true => files(&path),
            false => vec![path],
        })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

/// Returns the text without comments, up to its module of tests.
fn code(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let is_module = |line: &str| line.starts_with("mod ") && line.ends_with('{');
        if line == "#[cfg(test)]" && lines.peek().is_some_and(|next| is_module(next)) {
            break;
        }
        code.push_str(line.split("//").next().unwrap_or_default());
        code.push('\n');
    }
    code
}

/// Returns the modules of the crate that the code names: behind `crate::`, and in the braces of `use crate::{..}`.
fn named(code: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let name = |text: &str| text.split(|c| !is_part(c)).next().unwrap_or_default().to_owned();
    let mut names = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            None => drop(names.insert(name(rest))),
            Some(list) => {
                let (mut depth, mut at_start) = (0, true);
                for (at, c) in list.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' => at_start = depth == 0,
                        c if is_part(c) && at_start => {
                            names.insert(name(&list[at..]));
                            at_start = false;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    names
}

/// Returns the folders of a crate, with the modules that each of them uses.
fn uses(source: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let entries = fs::read_dir(source).expect("the crate has sources").map(|entry| entry.expect("an entry").path());
    let folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    folders
        .iter()
        .map(|folder| {
            let texts = files(folder).into_iter().map(|file| fs::read_to_string(file).expect("the file can be read"));
            (name(folder), texts.flat_map(|text| named(&code(&text))).collect())
        })
        .collect()
}

/// Returns the pairs of folders of a crate that use each other.
fn pairs(source: &Path) -> BTreeSet<(String, String)> {
    let uses = uses(source);
    let both = |one: &String, other: &String| uses[one].contains(other) && uses[other].contains(one);
    let all = uses.keys().flat_map(|one| uses.keys().map(move |other| (one, other)));
    all.filter(|(one, other)| one < other && both(one, other))
        .map(|(one, other)| (one.clone(), other.clone()))
        .collect()
}

#[test]
fn no_two_folders_use_each_other() {
    let folder = root().join("crates");
    let entries = fs::read_dir(folder).expect("there are crates").map(|entry| entry.expect("an entry").path());
    let mut errors = Vec::new();
    for path in entries {
        let name = format!("crates/{}", path.file_name().expect("a name").to_string_lossy());
        let found = pairs(&path.join("src"));
        errors.extend(
            found.iter().map(|pair| format!("{name}: {pair:?} use each other: move what both need into the lower one")),
        );
    }
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

/// Returns the folders that are left when those that use no other one are taken away again and again: the circles, and
/// the folders above them.
fn circles(mut uses: BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    loop {
        let names: BTreeSet<String> = uses.keys().cloned().collect();
        let is_lowest =
            |name: &String, used: &BTreeSet<String>| !used.iter().any(|used| used != name && names.contains(used));
        let before = uses.len();
        uses.retain(|name, used| !is_lowest(name, used));
        if uses.len() == before {
            return names;
        }
    }
}

#[test]
fn the_folders_of_these_crates_form_no_circle() {
    for name in WITHOUT_CIRCLES {
        let circles = circles(uses(&root().join(name).join("src")));
        assert!(circles.is_empty(), "{name}: a circle is among {circles:?}: move what they need into the lowest one");
    }
}

#[test]
fn the_check_notices() {
    let text = "use crate::{one::{a, b}, two};\n// crate::three\nuse crate::four::X;\n#[cfg(test)]\nmod tests {\n    use crate::five;\n}\n";
    assert_eq!(named(&code(text)), ["four", "one", "two"].map(str::to_owned).into());
    let uses = |pairs: [(&str, &str); 3]| pairs.map(|(one, other)| (one.to_owned(), [other.to_owned()].into())).into();
    assert!(circles(uses([("a", "b"), ("b", "c"), ("c", "c")])).is_empty());
    assert_eq!(circles(uses([("a", "b"), ("b", "c"), ("c", "a")])).len(), 3);
}
