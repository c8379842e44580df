//! Says of which revision the program is, and what has compiled it, for the reports of benchmarks.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The sources of the program, from the root of the checkout.
const SOURCES: [&str; 5] = ["crates", "bench/src", "bench/cli/src", "Cargo.toml", "Cargo.lock"];

fn main() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let revision = revision(&root);
    for (name, value) in [
        ("RUSTC", said(Command::new(rustc).arg("--version"))),
        ("REVISION", revision),
        ("PROFILE", profile()),
        ("OPT_LEVEL", std::env::var("OPT_LEVEL").ok()),
        ("TARGET", std::env::var("TARGET").ok()),
        ("RUSTFLAGS", std::env::var("CARGO_ENCODED_RUSTFLAGS").ok().map(|flags| flags.replace('\x1f', " "))),
    ] {
        println!("cargo::rustc-env=PLAYHOUSE_{name}={}", value.unwrap_or_else(|| "unknown".to_owned()));
    }
    // Whatever changes the revision changes what is linked too, but for a commit.
    for path in sources(&root)
        .into_iter()
        .chain(said(git(&root).args(["rev-parse", "--git-path", "logs/HEAD"])).map(|log| root.join(log)))
    {
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
}

/// The name of the profile: the folder above `build` in `target/PROFILE/build/playhouse-console-HASH/out`. Cargo tells build scripts nothing but
/// whether a profile inherits `release`.
fn profile() -> Option<String> {
    let out = PathBuf::from(std::env::var_os("OUT_DIR")?);
    let build = out.ancestors().find(|folder| folder.file_name().is_some_and(|name| name == "build"))?;
    Some(build.parent()?.file_name()?.to_str()?.to_owned())
}

/// The commit, and whether the sources differ from it; `None` outside of a checkout of this project.
fn revision(root: &Path) -> Option<String> {
    let top = said(git(root).args(["rev-parse", "--show-toplevel"]))?;
    if Path::new(&top).canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    let commit = said(git(root).args(["rev-parse", "--short=12", "HEAD"]))?;
    let changed = said(git(root).args(["status", "--porcelain", "--"]).args(SOURCES))?;
    Some(if changed.is_empty() { commit } else { format!("{commit} with changes") })
}

fn git(root: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(root);
    git
}

fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

/// Returns the sources that are compiled into the program, because a changed test does not change the program.
fn sources(root: &Path) -> Vec<PathBuf> {
    let crates = std::fs::read_dir(root.join("crates")).into_iter().flatten().flatten();
    let crates = crates.flat_map(|folder| [folder.path().join("src"), folder.path().join("Cargo.toml")]);
    crates.chain(SOURCES[1..].iter().map(|path| root.join(path))).chain([PathBuf::from("build.rs")]).collect()
}
