//! The published packages: complete, and without a reference to a file outside of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The packages in the order of their publication, because each one depends on earlier ones only.
const PUBLISHED: [&str; 10] =
    ["executor", "actor", "macros", "theater", "toolbox", "playhouse", "testkit", "sqlite", "postgres", "etcd"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the package's name, from the name of its folder.
fn package(folder: &str) -> String {
    if folder == "playhouse" { folder.to_owned() } else { format!("playhouse-{folder}") }
}

/// Returns the value of a key in the text of a manifest, in one line.
fn value<'a>(manifest: &'a str, key: &str) -> Option<&'a str> {
    manifest.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix('=')).map(str::trim)
}

/// Returns the lines of one table of a manifest.
fn table<'a>(manifest: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!("[{name}]");
    let lines = manifest.lines().skip_while(|line| *line != start).skip(1);
    lines.take_while(|line| !line.starts_with('[')).filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

/// Returns the Rust files below `folder`.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// Returns a file's path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir { assert!(plain.pop(), "{}", path.display()) } else { plain.push(part) }
    }
    plain
}

/// Returns the lines of the file `path` that name a file outside of the `included` folders and files. `path` is relative to its
/// package.
fn outside<'a>(path: &Path, source: &'a str, included: &str) -> Vec<&'a str> {
    let in_package = |line: &str| {
        let named =
            line.split('"').nth(1).filter(|_| !line.contains("concat!") && !line.contains("CARGO_MANIFEST_DIR"));
        let in_folder = |folder: &Component| included.contains(&format!("\"/{}/**\"", folder.as_os_str().display()));
        named.is_some_and(|named| {
            let path = plain(&Path::new("crates/package").join(path.parent().unwrap()).join(named));
            let rest = path.strip_prefix("crates/package").ok();
            rest.is_some_and(|rest| {
                let is_included = included.contains(&format!("\"/{}\"", rest.display()));
                is_included || rest.components().next().is_some_and(|folder| in_folder(&folder))
            })
        })
    };
    let lines = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    let names_a_file = ["include_str!", "include_bytes!", "include!", "#[path", "CARGO_MANIFEST_DIR"];
    lines.filter(|line| names_a_file.iter().any(|name| line.contains(name)) && !in_package(line)).collect()
}

#[test]
fn each_member_is_published_or_says_why_not() {
    let workspace = read(&root().join("Cargo.toml"));
    let members = value(&workspace, "members").unwrap().trim_matches(['[', ']']).split(", ");
    for member in members.map(|member| member.trim_matches('"')) {
        let manifest = read(&root().join(member).join("Cargo.toml"));
        let is_published = member.strip_prefix("crates/").is_some_and(|folder| PUBLISHED.contains(&folder));
        let mut lines = manifest.lines();
        let is_kept = lines.any(|line| line == "publish = false");
        assert_ne!(is_published, is_kept, "{member}: in the list PUBLISHED, or `publish = false`");
        let before = manifest.lines().zip(manifest.lines().skip(1)).find(|(_, line)| *line == "publish = false");
        assert!(
            before.is_none_or(|(reason, _)| reason.starts_with("# ")),
            "{member}: no reason beside `publish = false`"
        );
    }
}

#[test]
fn each_package_has_its_metadata_page_and_licences() {
    for folder in PUBLISHED {
        let path = root().join("crates").join(folder);
        let manifest = read(&path.join("Cargo.toml"));
        let metadata = table(&manifest, "package").join("\n");
        for key in
            ["description", "keywords", "categories", "readme", "include", "license.workspace", "repository.workspace"]
        {
            assert!(value(&metadata, key).is_some_and(|value| value.len() > 2), "{folder}: no {key}");
        }
        assert!(value(&metadata, "keywords").unwrap().split(',').count() <= 5, "{folder}: a registry takes 5 keywords");
        let documentation = format!("\"https://docs.rs/{}\"", package(folder));
        assert_eq!(value(&metadata, "documentation"), Some(&*documentation));
        assert!(manifest.contains("[package.metadata.docs.rs]"), "{folder}");

        assert!(read(&path.join("README.md")).starts_with("# "), "{folder}: no README.md");
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            assert_eq!(read(&path.join(licence)), read(&root().join(licence)), "{folder}: {licence} is another text");
        }
    }
}

#[test]
fn each_package_depends_on_earlier_ones_of_this_version() {
    let workspace = read(&root().join("Cargo.toml"));
    let version = value(&workspace, "version").unwrap().trim_matches('"');
    let mut earlier = BTreeSet::new();
    for folder in PUBLISHED {
        let name = package(folder);
        let dependency = value(&workspace, &format!("{name} ")).unwrap();
        assert!(dependency.contains(&format!("version = \"={version}\"")), "{name}: {dependency}");

        let manifest = read(&root().join("crates").join(folder).join("Cargo.toml"));
        let tables = manifest.lines().filter(|line| line.ends_with("dependencies]") && !line.contains("dev-"));
        for table_name in tables {
            for line in table(&manifest, table_name.trim_matches(['[', ']'])) {
                let needed = line.split(['.', ' ']).next().unwrap();
                assert!(
                    !needed.starts_with("playhouse") || earlier.contains(needed),
                    "{name} needs {needed} before it"
                );
            }
        }
        // A registry knows only earlier packages. A dependency of the tests without a version is left out of the
        // published package.
        for line in table(&manifest, "dev-dependencies") {
            let needed = line.split(['.', ' ']).next().unwrap();
            let is_known = !needed.starts_with("playhouse") || earlier.contains(needed);
            assert!(is_known || !(line.contains("workspace") || line.contains("version")), "{name}: {line}");
        }
        earlier.insert(name);
    }
}

#[test]
fn no_package_names_a_file_outside_of_it() {
    for folder in PUBLISHED {
        let path = root().join("crates").join(folder);
        assert!(!path.join("build.rs").exists(), "{folder}: a build script is not in the package");
        let manifest = read(&path.join("Cargo.toml"));
        let included = value(&manifest, "include").unwrap();
        for file in sources(&path.join("src")) {
            let source = read(&file);
            let lines = outside(file.strip_prefix(&path).unwrap(), &source, included);
            assert!(lines.is_empty(), "{}: {lines:#?}", file.display());
        }
    }
}

#[test]
fn the_checks_notice() {
    let outside =
        |text: &str| outside(Path::new("src/bench/page.rs"), text, "[\"/src/**\", \"/docs/**\", \"/README.md\"]").len();
    assert_eq!(outside("mod guide {}\n#[doc = include_str!(\"../../../guide/asks.md\")]"), 1);
    assert_eq!(outside("#[doc = include_str!(\"../../notes/asks.md\")]"), 1);
    assert_eq!(outside("#[doc = include_str!(\"../../../README.md\")]"), 1);
    assert_eq!(outside("#[doc = include_str!(\"../../README.md\")]"), 0);
    assert_eq!(outside("let folder = Path::new(env!(\"CARGO_MANIFEST_DIR\"));"), 1);
    assert_eq!(outside("const STYLE: &str = include_str!(\"page.css\");\n// include_str!(\"../../../page.css\")"), 0);
    assert_eq!(outside("#[doc = include_str!(\"../../docs/actor.md\")]\n#[path = \"../plot.rs\"]"), 0);
    let manifest = "[a]\nx = 1\n\n# why\n[b.c]\ny.workspace = true\n";
    assert_eq!((table(manifest, "a"), table(manifest, "b.c")), (vec!["x = 1"], vec!["y.workspace = true"]));
    assert_eq!(
        (value(manifest, "x"), value(manifest, "y"), value(manifest, "y.workspace")),
        (Some("1"), None, Some("true"))
    );
}
