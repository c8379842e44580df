//! `playhouse certificates`, as a user runs it.

#[allow(dead_code, reason = "other tests use all of it")]
mod program;

use std::fs;
use std::path::{Path, PathBuf};

use program::{refused, run};

/// A folder of its own, which ends with its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("playhouse-{name}-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        Folder(folder)
    }

    fn join(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn files(folder: impl AsRef<Path>) -> Vec<String> {
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| name(entry.unwrap())).collect();
    files.sort();
    files
}

// GUARANTEE: Certificates for development
#[test]
fn certificates_are_written_and_it_is_said_how_to_use_them() {
    let folder = Folder::new("written");
    let new = folder.join("a/new/one");
    let (code, out, errors) = run(&["certificates", &new]);
    assert_eq!((code, &*errors), (0, ""));
    assert_eq!(files(&new), ["ca.pem", "theater-1.key", "theater-1.pem", "theater-2.key", "theater-2.pem"]);
    for words in [&*format!("--tls {new}/theater-1"), "theater-1, theater-2", "365 days", ".tls(Tls::from_pem_files("] {
        assert!(out.contains(words), "no {words} in\n{out}");
    }
    for (name, start) in [("ca.pem", "CERTIFICATE"), ("theater-1.pem", "CERTIFICATE"), ("theater-1.key", "PRIVATE KEY")]
    {
        let text = fs::read_to_string(format!("{new}/{name}")).unwrap();
        assert!(text.starts_with(&format!("-----BEGIN {start}-----")), "{name}: {text}");
    }
    #[cfg(unix)]
    for name in ["theater-1.key", "theater-2.key"] {
        let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(format!("{new}/{name}")).unwrap());
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    assert_eq!(run(&["certificates", &folder.join("three"), "--theaters", "3"]).0, 0);
    assert_eq!(files(folder.join("three")).len(), 7);
    assert_eq!(run(&["certificates", &folder.join("named"), "--name", "east.1", "--name", "west"]).0, 0);
    assert_eq!(files(folder.join("named")), ["ca.pem", "east.1.key", "east.1.pem", "west.key", "west.pem"]);
}

// GUARANTEE: Certificates for development
#[test]
fn nothing_is_overwritten_and_nothing_half_written() {
    let folder = Folder::new("kept");
    let there = folder.join("there");
    assert_eq!(run(&["certificates", &there, "--name", "one"]).0, 0);
    let before = fs::read_to_string(format!("{there}/ca.pem")).unwrap();
    refused(&["certificates", &there, "--name", "two"], &["ca.pem exists already"]);
    assert_eq!(fs::read_to_string(format!("{there}/ca.pem")).unwrap(), before);
    assert_eq!(files(&there), ["ca.pem", "one.key", "one.pem"]);
    let part = folder.join("part");
    fs::create_dir(&part).unwrap();
    fs::write(format!("{part}/two.key"), "mine").unwrap();
    refused(&["certificates", &part, "--name", "one", "--name", "two"], &["two.key exists already"]);
    assert_eq!(files(&part), ["two.key"]);
    // The second name is too long for a file.
    let long = "n".repeat(300);
    let (code, out, errors) = run(&["certificates", &folder.join("long"), "--name", "one", "--name", &long]);
    assert_eq!((code, &*out), (1, ""), "{errors}");
    assert!(errors.contains("nothing was written"), "{errors}");
    assert!(!folder.0.join("long").exists());
    let (code, _, errors) = run(&["certificates", &format!("{there}/ca.pem/below")]);
    assert!(code == 1 && errors.contains("ca.pem/below: "), "{errors}");
    refused(&["certificates", &format!("{there}/ca.pem")], &["ca.pem is no folder"]);
}

#[test]
fn wrong_names_are_refused() {
    refused(&["certificates"], &["<DIR>"]);
    let folder = Folder::new("names");
    let new = folder.join("new");
    refused(&["certificates", &new, "--theaters", "0"], &["1..=1000"]);
    refused(&["certificates", &new, "--theaters", "2", "--name", "one"], &["--theaters", "--name"]);
    for name in ["", "../up", "a/b", ".hidden", "a b"] {
        refused(&["certificates", &new, "--name", name], &["a name has"]);
    }
    refused(&["certificates", &new, "--name", "CA"], &["the CA's own file"]);
    refused(&["certificates", &new, "--name", "one", "--name", "ONE"], &["ONE is given twice"]);
    assert!(!folder.0.join("new").exists());
}

#[test]
fn the_written_files_are_printed_as_json() {
    let folder = Folder::new("json");
    let new = folder.join("new");
    let (code, out, errors) = run(&["certs", &new, "--name", "east", "--name", "west", "--json"]);
    assert_eq!((code, &*errors), (0, ""));
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["ca"], format!("{new}/ca.pem"));
    assert_eq!(
        (&json["theaters"][1]["name"], &json["theaters"][1]["tls"]),
        (&"west".into(), &format!("{new}/west").into())
    );
    for file in ["certificate", "key"] {
        assert!(Path::new(json["theaters"][0][file].as_str().unwrap()).is_file(), "{out}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_is_not_written_through_even_where_it_leads_nowhere() {
    let folder = Folder::new("links");
    for target in ["nowhere", "/dev/null"] {
        let new = folder.join(&format!("new{}", target.len()));
        fs::create_dir(&new).unwrap();
        std::os::unix::fs::symlink(target, format!("{new}/theater-2.key")).unwrap();
        refused(&["certificates", &new], &["theater-2.key exists already"]);
        assert_eq!(files(&new), ["theater-2.key"]);
    }
}

/// A signal at any moment leaves all files or none.
#[cfg(unix)]
#[test]
fn a_signal_leaves_all_files_or_none() {
    let folder = Folder::new("signal");
    for number in 0..40 {
        let new = folder.join(&format!("new{number}"));
        let mut process = program::playhouse(&["certificates", &new, "--theaters", "30"]);
        let mut process =
            process.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
        // Moments of the writing differ from run to run.
        while process.try_wait().unwrap().is_none()
            && fs::read_dir(&new).map_or(0, Iterator::count) < 1 + 3 * (number % 20)
        {
            std::thread::yield_now();
        }
        let kill = ["-TERM", &process.id().to_string()].map(str::to_owned);
        let _it_may_have_ended =
            std::process::Command::new("kill").args(kill).stderr(std::process::Stdio::null()).status();
        let code = process.wait().unwrap().code();
        let left = if Path::new(&new).exists() { files(&new).len() } else { 0 };
        assert!(matches!((code, left), (Some(143), 0 | 61) | (Some(0), 61)), "{code:?}, {left} files");
        assert!(left > 0 || !Path::new(&new).exists(), "an empty folder is left");
    }
}
