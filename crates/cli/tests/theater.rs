//! `playhouse theater`, as a user runs it.

mod program;

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use program::{playhouse, refused, run};

/// A theater in a process of its own, which ends with its test.
struct Theater {
    process: Child,
    out: BufReader<ChildStdout>,
    errors: BufReader<ChildStderr>,
    address: String,
}

fn line(reader: &mut impl BufRead) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

impl Theater {
    /// Listens on any port that is free, and says which.
    fn start(arguments: &[&str]) -> Theater {
        Theater::start_at("127.0.0.1:0", arguments)
    }

    fn start_at(listen: &str, arguments: &[&str]) -> Theater {
        let mut command = playhouse(&[&["theater", "--listen", listen, "--workers", "2"], arguments].concat());
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        let errors = BufReader::new(process.stderr.take().unwrap());
        let first = line(&mut out);
        let address = first.strip_prefix("listening at ").unwrap_or_else(|| panic!("{first:?}")).to_owned();
        Theater { process, out, errors, address }
    }

    fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.process.id().to_string()]).status().unwrap().success());
    }

    fn code(&mut self) -> Option<i32> {
        self.process.wait().unwrap().code()
    }
}

impl Drop for Theater {
    fn drop(&mut self) {
        let _it_has_ended = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(unix)]
#[test]
fn theaters_join_and_close_and_say_so() {
    let mut first = Theater::start(&["--cluster", "test"]);
    let mut second = Theater::start(&["--cluster", "test", "--join", &first.address]);
    assert_eq!(line(&mut second.out), format!("joined {}", first.address));
    first.signal("-INT");
    assert_eq!(line(&mut first.errors), "closing; Ctrl-C again ends at once");
    assert_eq!((line(&mut first.out), first.code()), ("closed".to_owned(), Some(0)));
    assert_eq!(line(&mut second.errors), format!("lost {}", first.address));
    second.signal("-INT");
    assert_eq!((line(&mut second.out), second.code()), ("closed".to_owned(), Some(0)));
}

#[cfg(unix)]
#[test]
fn theaters_with_certificates_join_and_no_others() {
    let folder = std::env::temp_dir().join(format!("playhouse-tls-{}", std::process::id()));
    let [ours, theirs] = ["ours", "theirs"].map(|name| folder.join(name).display().to_string());
    for folder in [&ours, &theirs] {
        assert_eq!(run(&["certificates", folder]).0, 0);
    }
    let (one, two, foe) = (format!("{ours}/theater-1"), format!("{ours}/theater-2"), format!("{theirs}/theater-1"));
    let mut first = Theater::start(&["--tls", &one]);
    let mut second = Theater::start(&["--tls", &two, "--join", &first.address]);
    assert_eq!(line(&mut second.out), format!("joined {}", first.address));
    let join = |arguments: &[&str], words: &[&str], said: &str, first: &mut Theater| {
        let join = ["theater", "--listen", "127.0.0.1:0", "--join", &first.address];
        let (code, _, errors) = run(&[&join, arguments].concat());
        assert_eq!(code, 1, "{errors}");
        assert!(words.iter().all(|word| errors.contains(word)), "{errors}");
        let refused = line(&mut first.errors);
        assert!(refused.starts_with("refused a caller: ") && refused.contains(said), "{refused}");
    };
    join(&["--tls", &foe], &["another CA"], "refuses this theater's certificate", &mut first);
    join(&[], &["speaks TLS only"], "speaks TLS only", &mut first);
    first.signal("-INT");
    assert_eq!(line(&mut first.errors), "closing; Ctrl-C again ends at once");
    assert_eq!((line(&mut first.out), first.code()), ("closed".to_owned(), Some(0)));
    std::fs::remove_dir_all(folder).unwrap();
}

/// While it waits to hear that its leave was taken, which a process that is stopped does not say.
#[cfg(unix)]
#[test]
fn a_second_interrupt_ends_a_theater_at_once() {
    let first = Theater::start(&[]);
    let mut second = Theater::start(&["--join", &first.address]);
    assert_eq!(line(&mut second.out), format!("joined {}", first.address));
    first.signal("-STOP");
    second.signal("-INT");
    assert_eq!(line(&mut second.errors), "closing; Ctrl-C again ends at once");
    second.signal("-INT");
    assert_eq!((second.code(), line(&mut second.errors)), (Some(130), "interrupted".to_owned()));
}

/// A process that a supervisor ends says goodbye: others lose it at once, and not when it was silent for long.
#[cfg(unix)]
#[test]
fn a_theater_joins_when_the_other_is_up_and_again_when_a_successor_is() {
    // Nobody listens where somebody has listened until now.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut joins = Theater::start(&["--join", &address]);
    let waits = line(&mut joins.errors);
    assert!(waits.starts_with(&format!("cannot join {address} yet: ")), "{waits}");
    for signal in ["-TERM", "-HUP"] {
        let mut other = Theater::start_at(&address, &[]);
        assert_eq!(line(&mut joins.out), format!("joined {address}"));
        other.signal(signal);
        assert_eq!(line(&mut other.errors), "closing; Ctrl-C again ends at once");
        assert_eq!((line(&mut other.out), other.code()), ("closed".to_owned(), Some(0)));
        assert_eq!(line(&mut joins.errors), format!("lost {address}"));
    }
    joins.signal("-TERM");
    assert_eq!((line(&mut joins.out), joins.code()), ("closed".to_owned(), Some(0)));
}

#[test]
fn who_cannot_be_joined_is_named() {
    let host = Theater::start(&["--cluster", "one"]);
    let (code, _, errors) = run(&["theater", "--listen", "127.0.0.1:0", "--cluster", "two", "--join", &host.address]);
    assert_eq!(code, 1);
    assert!(errors.contains(&host.address) && errors.contains("\"one\"") && errors.contains("\"two\""), "{errors}");
    let (code, out, errors) = run(&["theater", "--listen", &host.address]);
    assert_eq!((code, &*out), (1, ""));
    assert!(errors.contains(&host.address), "{errors}");
}

#[test]
fn wrong_addresses_are_refused() {
    refused(&["theater"], &["--listen"]);
    refused(&["theater", "--listen", "here"], &["'here'", "host:port"]);
    refused(&["theater", "--listen", "127.0.0.1:0", "--join", ":70"], &["--join", "':70'", "host:port"]);
    refused(&["theater", "--listen", "127.0.0.1:65536"], &["from 0 to 65535"]);
    refused(&["theater", "--listen", "0.0.0.0:0"], &["0.0.0.0:0 is not on the loopback", "--tls", "--plaintext"]);
    refused(
        &["theater", "--listen", "0.0.0.0:0", "--plaintext"],
        &["0.0.0.0:0", "others can call", "--advertise HOST:PORT"],
    );
    refused(
        &["theater", "--listen", "127.0.0.1:0", "--advertise", "0.0.0.0:0", "--plaintext"],
        &["--advertise HOST:PORT"],
    );
    refused(&["theater", "--listen", "127.0.0.1:0", "--advertise", "there"], &["--advertise", "'there'", "host:port"]);
    refused(&["theater", "--listen", "127.0.0.1:0", "--tls", "no/certificate"], &["no/ca.pem: "]);
    refused(&["theater", "--listen", "127.0.0.1:0", "--tls", "no/certificate", "--plaintext"], &["'--plaintext'"]);
    refused(&["theater", "--listen", "127.0.0.1:0", "--workers", "0"], &["--workers", "1..=1024"]);
}
