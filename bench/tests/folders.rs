//! The folders of `bench/src` depend one way.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The folders and files of `bench/src`, from the lowest to the highest. Each imports only those before it.
const ORDER: [&str; 11] = [
    "report",
    "harness",
    "plans",
    "baselines",
    "load",
    "workloads",
    "savina",
    "registry",
    "peers",
    "chatapp",
    "scaling",
];

/// The kinds of workloads, in the same way.
const KINDS: [&str; 4] = ["messaging", "spawn", "remote", "migration"];

/// Calls `found` with the text of each file below `path`. The text ends before the tests.
fn sources(path: &Path, found: &mut dyn FnMut(&Path, &str)) {
    if path.is_file() {
        let text = fs::read_to_string(path).unwrap();
        found(path, text.split("#[cfg(test)]").next().unwrap_or_default());
        return;
    }
    for entry in fs::read_dir(path).unwrap() {
        sources(&entry.unwrap().path(), found);
    }
}

/// Returns the names that follow `prefix` in `text`.
fn imported<'a>(text: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(move |line| line.split(prefix).skip(1))
        .map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default())
}

fn check(root: &Path, prefix: &str, order: &[&str], allowed: &dyn Fn(usize, usize) -> bool) {
    for (at, name) in order.iter().enumerate() {
        let folder = root.join(name);
        let path = if folder.is_dir() { folder } else { root.join(format!("{name}.rs")) };
        sources(&path, &mut |file, text| {
            for import in imported(text, prefix) {
                let Some(other) = order.iter().position(|known| *known == import) else { continue };
                assert!(other == at || allowed(at, other), "{} imports {prefix}{import}", file.display());
            }
        });
    }
}

#[test]
fn folders_import_only_folders_below_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let known: BTreeSet<_> = ORDER.into_iter().chain(["lib"]).collect();
    let entries = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path());
    let found: Vec<String> = entries.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    assert!(found.iter().all(|name| known.contains(&**name)), "a folder has no place in the order: {found:?}");
    // The ChatApp world and the patterns are programs of their own: they import the two lowest folders, and no folder imports them.
    let separate = |name: &str| ["chatapp", "scaling"].contains(&name);
    check(&root, "crate::", &ORDER, &|at, other| {
        other < at && !separate(ORDER[other]) && (other < 2 || !separate(ORDER[at]))
    });
    check(&root.join("workloads"), "crate::workloads::", &KINDS, &|at, other| other < at);
}

#[test]
fn an_import_is_found_in_code_and_not_in_comments() {
    let text =
        "use crate::report::Spread;\n/// See [`x`](crate::peers::x).\nlet a = crate::load::f(crate::harness::G);\n";
    assert_eq!(imported(text, "crate::").collect::<Vec<_>>(), ["report", "load", "harness"]);
}
