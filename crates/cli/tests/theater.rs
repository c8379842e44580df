//! `playhouse theater`, as a user runs it.

mod program;

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use program::{is_hang_up_ignored, playhouse, refused, run};

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

/// Reads the log up to the event with these words, and returns its line. The lines before it are events, and none of them is a warning.
fn event(log: &mut impl BufRead, words: &[&str]) -> String {
    loop {
        let line = line(log);
        assert!(!line.is_empty(), "the log ends without {words:?}");
        if words.iter().all(|word| line.contains(word)) {
            return line;
        }
        let level = match serde_json::from_str::<serde_json::Value>(&line) {
            Ok(event) => event["level"].as_str().map(str::to_owned),
            Err(_) => line.split_whitespace().nth(1).map(str::to_owned),
        };
        assert_eq!(level.as_deref(), Some("INFO"), "before {words:?}: {line}");
    }
}

/// Reads the last events of a theater that drains.
fn drains(log: &mut impl BufRead, signal: &str) {
    event(log, &["INFO draining", "a second signal ends the program at once", &format!("signal=\"{signal}\"")]);
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
    event(&mut second.errors, &["INFO peer joined", &first.address]);
    first.signal("-INT");
    drains(&mut first.errors, "Ctrl-C");
    event(&mut first.errors, &["INFO theater closed"]);
    assert_eq!((line(&mut first.out), first.code()), ("closed".to_owned(), Some(130)));
    event(&mut second.errors, &["INFO peer left", &first.address]);
    second.signal("-INT");
    assert_eq!((line(&mut second.out), second.code()), ("closed".to_owned(), Some(130)));
}

#[cfg(unix)]
#[test]
fn events_are_objects_with_time_and_level_and_the_output_too() {
    let mut first = Theater::start(&["--cluster", "test", "--log-format", "json"]);
    let second = Theater::start(&["--cluster", "test", "--join", &first.address, "--log", "warn"]);
    let address = first.address.clone();
    let mut object = |words: &[&str]| -> serde_json::Value {
        let line = event(&mut first.errors, words);
        let object: serde_json::Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(object["timestamp"].as_str().unwrap().ends_with('Z'), "{line}");
        object
    };
    let started = object(&["theater started"]);
    assert_eq!((&started["level"], &started["address"]), (&"INFO".into(), &address.clone().into()));
    let joined = object(&["peer joined"]);
    assert_eq!((&joined["address"], &joined["kind"]), (&second.address.clone().into(), &"theater".into()));
    assert_eq!(run(&["top", &address, "--cluster", "test", "--once"]).0, 0);
    let joined = object(&["peer joined"]);
    assert_eq!((joined.get("address"), &joined["kind"]), (None, &"client".into()));
    let foreign_top = run(&["top", &address, "--cluster", "other"]);
    assert_eq!(foreign_top.0, 1, "{foreign_top:?}");
    let rejected = object(&["peer rejected"]);
    assert_eq!(rejected["level"], "WARN");
    assert!(rejected["reason"].as_str().unwrap().contains("\"other\""), "{rejected}");
    drop(second);
    let unreachable = object(&["peer unreachable"]);
    assert_eq!(unreachable["kind"], "theater");
    first.signal("-TERM");
    event(&mut first.errors, &[r#""message":"draining""#, r#""signal":"SIGTERM""#]);
    assert_eq!(first.code(), Some(0));

    let mut third = playhouse(&["theater", "--listen", "127.0.0.1:0", "--json", "--log", "off"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(third.stdout.take().unwrap());
    let listening: serde_json::Value = serde_json::from_str(&line(&mut out)).unwrap();
    assert_eq!(listening["event"], "listening");
    assert!(listening["address"].as_str().unwrap().starts_with("127.0.0.1:"));
    assert!(Command::new("kill").args(["-TERM", &third.id().to_string()]).status().unwrap().success());
    assert_eq!(line(&mut out), r#"{"event":"closed"}"#);
    assert_eq!(third.wait().unwrap().code(), Some(0));
    assert_eq!(line(&mut BufReader::new(third.stderr.take().unwrap())), "");
}

// GUARANTEE: Signals drain
/// The kernel ignores signals without a handler for process 1, as in a container.
#[cfg(target_os = "linux")]
#[test]
fn process_1_of_a_container_drains_after_sigterm_and_ends_after_two_signals() {
    let unshare = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--pid", "--fork"]).args(arguments).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    // Some systems let no user make namespaces.
    if !unshare(&["true"]).status().is_ok_and(|status| status.success()) {
        return;
    }
    let program = env!("CARGO_BIN_EXE_playhouse");
    let start = |arguments: &[&str]| {
        let theater = [&[program, "theater", "--listen", "127.0.0.1:0", "--workers", "1"], arguments].concat();
        let mut outside = unshare(&theater).spawn().unwrap();
        let mut out = BufReader::new(outside.stdout.take().unwrap());
        assert!(line(&mut out).starts_with("listening at "));
        let children = format!("/proc/{0}/task/{0}/children", outside.id());
        let inside = std::fs::read_to_string(children).unwrap().trim().to_owned();
        (outside, out, inside)
    };
    let signal = |process: &str, name: &str| {
        assert!(Command::new("kill").args([name, process]).status().unwrap().success());
    };
    let (mut outside, mut out, inside) = start(&[]);
    signal(&inside, "-TERM");
    assert_eq!(line(&mut out), "closed");
    assert_eq!(outside.wait().unwrap().code(), Some(0));

    let other = Theater::start(&[]);
    let (mut outside, mut out, inside) = start(&["--join", &other.address]);
    assert_eq!(line(&mut out), format!("joined {}", other.address));
    other.signal("-STOP");
    signal(&inside, "-TERM");
    let mut errors = BufReader::new(outside.stderr.take().unwrap());
    drains(&mut errors, "SIGTERM");
    signal(&inside, "-TERM");
    assert_eq!(outside.wait().unwrap().code(), Some(143));
    event(&mut errors, &["terminated"]);
}

// GUARANTEE: A refusal gives its cause
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
        event(&mut first.errors, &["WARN peer rejected", said]);
    };
    join(&["--tls", &foe], &["another CA"], "refuses this theater's certificate", &mut first);
    join(&[], &["requires TLS"], "requires TLS", &mut first);
    first.signal("-TERM");
    drains(&mut first.errors, "SIGTERM");
    assert_eq!((line(&mut first.out), first.code()), ("closed".to_owned(), Some(0)));
    std::fs::remove_dir_all(folder).unwrap();
}

// GUARANTEE: A refusal gives its cause
#[cfg(unix)]
#[test]
fn a_theater_of_another_cluster_at_a_peers_address_is_logged_once_on_each_side() {
    let first = Theater::start(&["--cluster", "one"]);
    let address = first.address.clone();
    let mut joins = Theater::start(&["--cluster", "one", "--join", &address]);
    assert_eq!(line(&mut joins.out), format!("joined {address}"));
    drop(first);
    event(&mut joins.errors, &["WARN peer unreachable", &address, "Connection refused"]);
    let clusters = r#"the called theater belongs to the cluster \"two\", and the caller to \"one\""#;
    let mut other = Theater::start_at(&address, &["--cluster", "two", "--log", "debug"]);
    event(&mut other.errors, &["WARN peer rejected", clusters]);
    // Each pause is longer than the one before, and the lines of repetitions are for debugging.
    for _ in 0..3 {
        let again = line(&mut other.errors);
        assert!(again.contains("DEBUG peer rejected again"), "{again}");
    }
    event(&mut joins.errors, &["WARN peer unreachable", &address, clusters]);
    joins.signal("-TERM");
    drains(&mut joins.errors, "SIGTERM");
    assert_eq!(joins.code(), Some(0));
}

// GUARANTEE: A refusal gives its cause
#[cfg(unix)]
#[test]
fn a_theater_that_was_joined_before_is_called_again_whatever_its_successor_says() {
    let mut first = Theater::start(&["--cluster", "one"]);
    let address = first.address.clone();
    let mut joins = Theater::start(&["--cluster", "one", "--join", &address]);
    assert_eq!(line(&mut joins.out), format!("joined {address}"));
    first.signal("-TERM");
    assert_eq!(first.code(), Some(0));
    event(&mut joins.errors, &["WARN peer cannot be joined yet", &address, "Connection refused"]);
    let other = Theater::start_at(&address, &["--cluster", "two"]);
    event(&mut joins.errors, &["WARN peer cannot be joined yet", &address, "is no theater of this cluster"]);
    drop(other);
    let _successor = Theater::start_at(&address, &["--cluster", "one"]);
    assert_eq!(line(&mut joins.out), format!("joined {address}"));
}

// GUARANTEE: Signals drain
#[cfg(unix)]
#[test]
fn a_theater_with_nothing_to_move_does_not_wait_for_a_theater_that_is_stopped() {
    let first = Theater::start(&[]);
    let mut second = Theater::start(&["--join", &first.address]);
    assert_eq!(line(&mut second.out), format!("joined {}", first.address));
    first.signal("-STOP");
    let before = Instant::now();
    second.signal("-TERM");
    drains(&mut second.errors, "SIGTERM");
    // The drain waits for it, and the shutdown.
    for _ in 0..2 {
        event(&mut second.errors, &["WARN peer awaited", &first.address, "packets="]);
    }
    event(&mut second.errors, &["INFO theater closed"]);
    assert_eq!(second.code(), Some(0));
    // The limits of the drain and of the shutdown are 10 and 5.
    assert!(before.elapsed() < Duration::from_secs(12), "{:?}", before.elapsed());
}

// GUARANTEE: Signals drain
/// While it waits to hear that its leave was taken, which a process that is stopped does not say.
#[cfg(unix)]
#[test]
fn a_second_interrupt_ends_a_theater_at_once() {
    let first = Theater::start(&[]);
    let mut second = Theater::start(&["--join", &first.address]);
    assert_eq!(line(&mut second.out), format!("joined {}", first.address));
    first.signal("-STOP");
    second.signal("-INT");
    drains(&mut second.errors, "Ctrl-C");
    second.signal("-INT");
    assert_eq!(second.code(), Some(130));
    event(&mut second.errors, &["interrupted"]);
}

// GUARANTEE: Signals drain
/// `nohup` has the program ignore SIGHUP, and the program goes on after its terminal was closed.
#[cfg(target_os = "linux")]
#[test]
fn a_theater_that_nohup_starts_ignores_the_end_of_its_terminal() {
    let script = "trap '' HUP; exec \"$0\" theater --listen 127.0.0.1:0 --workers 1";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_playhouse")]).stdin(Stdio::null());
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(process.stdout.take().unwrap());
    assert!(line(&mut out).starts_with("listening at "));
    for signal in ["-HUP", "-TERM"] {
        assert!(Command::new("kill").args([signal, &process.id().to_string()]).status().unwrap().success());
    }
    drains(&mut BufReader::new(process.stderr.take().unwrap()), "SIGTERM");
    assert_eq!((line(&mut out), process.wait().unwrap().code()), ("closed".to_owned(), Some(0)));
}

// GUARANTEE: A theater that ends is lost at once
/// A process that a supervisor ends says goodbye: others lose it at once, and not when it was silent for long.
#[cfg(unix)]
#[test]
fn a_theater_joins_when_the_other_is_up_and_again_when_a_successor_is() {
    // Nobody listens where somebody has listened until now.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut joins = Theater::start(&["--join", &address]);
    event(&mut joins.errors, &["WARN peer cannot be joined yet", &address, "reason=", "Connection refused"]);
    for (signal, name) in [("-TERM", "SIGTERM"), ("-HUP", "SIGHUP")] {
        if signal == "-HUP" && is_hang_up_ignored() {
            continue;
        }
        let mut other = Theater::start_at(&address, &[]);
        assert_eq!(line(&mut joins.out), format!("joined {address}"));
        other.signal(signal);
        drains(&mut other.errors, name);
        assert_eq!((line(&mut other.out), other.code()), ("closed".to_owned(), Some(0)));
        event(&mut joins.errors, &["INFO peer left", &address]);
        event(&mut joins.errors, &["WARN peer cannot be joined yet", &address, "Connection refused"]);
    }
    joins.signal("-TERM");
    assert_eq!((line(&mut joins.out), joins.code()), ("closed".to_owned(), Some(0)));
}

#[test]
fn the_error_names_a_theater_that_cannot_be_joined() {
    let host = Theater::start(&["--cluster", "one"]);
    let (code, _, errors) = run(&["theater", "--listen", "127.0.0.1:0", "--cluster", "two", "--join", &host.address]);
    assert_eq!(code, 1);
    assert!(errors.contains(&host.address) && errors.contains("\"one\"") && errors.contains("\"two\""), "{errors}");
    let (code, out, errors) = run(&["theater", "--listen", &host.address]);
    assert_eq!((code, &*out), (1, ""));
    assert!(errors.contains(&host.address), "{errors}");
    // The theater has run, so this is no error of the options alone.
    let (code, out, errors) = run(&["theater", "--listen", "127.0.0.1:0", "--join", "192.0.2.1:9"]);
    assert_eq!((code, out.lines().count()), (1, 1), "{errors}");
    assert!(errors.contains("192.0.2.1:9 is not on the loopback"), "{errors}");
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
    refused(
        &["theater", "--listen", "127.0.0.1:0", "--tls", "no/certificate"],
        &["no/ca.pem: ", "reads no/ca.pem, no/certificate.pem and no/certificate.key"],
    );
    refused(&["theater", "--listen", "127.0.0.1:0", "--tls", "no/certificate", "--plaintext"], &["'--plaintext'"]);
    refused(&["theater", "--listen", "127.0.0.1:0", "--workers", "0"], &["--workers", "1..=1024"]);
    refused(&["theater", "--listen", "127.0.0.1:0", "--log", "loud"], &["\"loud\" is no level", "a filter reads"]);
}

#[cfg(unix)]
#[test]
fn certificates_are_named_one_by_one_and_errors_name_the_file_and_the_right_one() {
    let folder = std::env::temp_dir().join(format!("playhouse-one-by-one-{}", std::process::id()));
    let [ours, theirs] = ["ours", "theirs"].map(|name| folder.join(name).display().to_string());
    for folder in [&ours, &theirs] {
        assert_eq!(run(&["certs", folder]).0, 0);
    }
    let file = |name: &str| format!("{ours}/{name}");
    let [ca, certificate, key] = ["ca.pem", "theater-2.pem", "theater-2.key"].map(file);
    let one = file("theater-1");
    let first = Theater::start(&["--tls", &one]);
    let flags = ["--tls-ca", &ca, "--tls-cert", &certificate, "--tls-key", &key];
    let mut second = Theater::start(&[&flags[..], &["--join", &first.address]].concat());
    assert_eq!(line(&mut second.out), format!("joined {}", first.address));
    drop((first, second));

    let with =
        |flags: &[&str], words: &[&str]| refused(&[&["theater", "--listen", "127.0.0.1:0"], flags].concat(), words);
    with(&["--tls-cert", &certificate], &["--tls-ca <FILE>", "--tls-key <FILE>"]);
    with(&[&flags[..], &["--tls", &one]].concat(), &["'--tls <DIR/NAME>'", "cannot be used with"]);
    with(&[&flags[..], &["--plaintext"]].concat(), &["'--plaintext'"]);
    let expected = "--tls-cert this theater's certificate and --tls-key its key";
    with(&["--tls-ca", &ca, "--tls-cert", &key, "--tls-key", &key], &[&key, "no certificate in it", expected]);
    with(&["--tls-ca", &ca, "--tls-cert", &certificate, "--tls-key", &ca], &[&ca, "no key in it", expected]);
    let missing = file("none.pem");
    with(&["--tls-ca", &missing, "--tls-cert", &certificate, "--tls-key", &key], &[&missing, "No such file", expected]);
    let other = format!("{theirs}/ca.pem");
    with(&["--tls-ca", &other, "--tls-cert", &certificate, "--tls-key", &key], &[&certificate, expected]);
    with(&["--tls", &ours], &["is a folder, and --tls takes DIR/NAME: ", "theater-1", "theater-2"]);
    let none = file("theater-3");
    with(&["--tls", &none], &[&format!("{none}.pem: "), &format!("reads {ours}/ca.pem, {none}.pem and {none}.key")]);
    std::fs::remove_dir_all(folder).unwrap();
}

// GUARANTEE: Options are checked
/// A file counts before the default, a variable before the file, and a flag before the variable.
#[cfg(unix)]
#[test]
fn options_come_from_flags_variables_and_a_file() {
    let file = std::env::temp_dir().join(format!("playhouse-theater-{}.toml", std::process::id()));
    std::fs::write(&file, "[theater]\nlisten = \"127.0.0.1:0\"\nworkers = 1\ncluster = \"file\"\n").unwrap();
    let cluster = |flags: &[&str], variable: Option<&str>| {
        let mut command = playhouse(&[&["theater"], flags].concat());
        command.env("PLAYHOUSE_CONFIG", &file).stdout(Stdio::null()).stderr(Stdio::piped());
        if let Some(name) = variable {
            command.env("PLAYHOUSE_CLUSTER", name);
        }
        let mut process = command.spawn().unwrap();
        let started = event(&mut BufReader::new(process.stderr.take().unwrap()), &["theater started"]);
        process.kill().unwrap();
        process.wait().unwrap();
        started.split("cluster=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap().to_owned()
    };
    assert_eq!(cluster(&[], None), "file");
    assert_eq!(cluster(&[], Some("variable")), "variable");
    assert_eq!(cluster(&["--cluster", "flag"], Some("variable")), "flag");
    std::fs::remove_file(&file).unwrap();
}

/// Waits until a thread of the process waits for the lock of a file, as the kernel tells.
#[cfg(target_os = "linux")]
fn waits_for_a_lock(process: u32) -> bool {
    let locks = std::fs::read_to_string("/proc/locks").unwrap();
    locks.lines().any(|lock| lock.contains("->") && lock.split_whitespace().any(|word| word == process.to_string()))
}

// GUARANTEE: Signals drain
/// A theater that cannot start yet, because another process holds the lock of the cookie's file, ends with the first signal.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_during_the_start_ends_the_program() {
    let cookie = std::env::temp_dir().join(format!("playhouse-start-{}", std::process::id()));
    std::fs::write(&cookie, "").unwrap();
    let file = std::fs::File::options().append(true).open(&cookie).unwrap();
    file.lock().unwrap();
    std::fs::set_permissions(&cookie, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    for arguments in [&["theater", "--listen", "127.0.0.1:0"][..], &["top", "127.0.0.1:1"]] {
        for (signal, code, word) in [("-TERM", 143, "terminated"), ("-INT", 130, "interrupted")] {
            let mut command = playhouse(arguments);
            command.env("PLAYHOUSE_COOKIE_FILE", &cookie).stdout(Stdio::null()).stderr(Stdio::piped());
            let mut process = command.spawn().unwrap();
            while !waits_for_a_lock(process.id()) {
                assert_eq!(process.try_wait().unwrap(), None, "{arguments:?}");
                std::thread::yield_now();
            }
            assert!(Command::new("kill").args([signal, &process.id().to_string()]).status().unwrap().success());
            let limit = std::time::Instant::now() + std::time::Duration::from_secs(60);
            while process.try_wait().unwrap().is_none() {
                if std::time::Instant::now() > limit {
                    process.kill().unwrap();
                }
                std::thread::yield_now();
            }
            assert_eq!(process.wait().unwrap().code(), Some(code), "{arguments:?} {signal}");
            assert_eq!(line(&mut BufReader::new(process.stderr.take().unwrap())), word);
        }
    }
    std::fs::remove_file(&cookie).unwrap();
}

// GUARANTEE: Options are checked
/// Nothing waits for the other end of a FIFO, and nothing reads a device without an end.
#[cfg(unix)]
#[test]
fn named_files_are_regular_files_of_a_limited_size() {
    let folder = std::env::temp_dir().join(format!("playhouse-named-{}", std::process::id()));
    let name = folder.display().to_string();
    assert_eq!(run(&["certificates", &name]).0, 0);
    let path = |name: &str| folder.join(name).display().to_string();
    let (ca, certificate, key) = (path("ca.pem"), path("theater-1.pem"), path("theater-1.key"));
    let (fifo, large) = (path("fifo"), path("large"));
    assert!(Command::new("mkfifo").args(["-m", "600", &fifo]).status().unwrap().success());
    std::fs::File::create(&large).unwrap().set_len(1 << 40).unwrap();
    let theater = ["theater", "--listen", "127.0.0.1:0"];
    for (file, words) in [
        (&*fifo, "it is no regular file"),
        ("/dev/zero", "it is no regular file"),
        (&*name, "it is a folder"),
        (&*large, "it has 1099511627776 bytes, and at most 1000000 are read"),
    ] {
        let words = [&format!("{file}: {words}"), "--tls-ca names the CA's certificate"];
        for [ca, certificate, key] in [[file, &certificate, &key], [&ca, file, &key]] {
            refused(&[&theater[..], &["--tls-ca", ca, "--tls-cert", certificate, "--tls-key", key]].concat(), &words);
        }
        refused(&["theater", "--config", file], &[words[0], "--config and PLAYHOUSE_CONFIG name a TOML file"]);
        refused(&["demo", "--scenario", file], &[words[0], "a scenario is a TOML file"]);
    }
    // The key is as secret as a cookie.
    let files = [&theater[..], &["--tls-ca", &ca, "--tls-cert", &certificate, "--tls-key"]].concat();
    refused(&[&files[..], &[&fifo]].concat(), &["fifo: it is no regular file"]);
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let words = ["theater-1.key: other users have access to it (mode 644, and 600 is right)"];
    refused(&[&files[..], &[&key]].concat(), &words);
    for (file, words) in [
        (&*fifo, "it is no regular file"),
        ("/dev/zero", "it is no regular file"),
        (&*key, "mode 644, and 600 is right"),
    ] {
        let output = playhouse(&theater).env("PLAYHOUSE_COOKIE_FILE", file).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(errors.contains(file) && errors.contains(words), "{errors}");
        assert_eq!(output.status.code(), Some(2), "{errors}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// A theater behind another address has both in its output and in its log.
#[cfg(unix)]
#[test]
fn the_bound_address_is_shown_where_another_one_is_advertised() {
    let flags = ["--advertise", "127.0.0.2:4711"];
    let mut theater = Theater::start(&[&flags[..], &["--log-format", "json"]].concat());
    let (bound, rest) = theater.address.split_once(", ").unwrap();
    assert_eq!(rest, "advertised as 127.0.0.2:4711");
    assert!(bound.starts_with("127.0.0.1:") && bound != "127.0.0.1:0", "{bound}");
    let started: serde_json::Value = serde_json::from_str(&event(&mut theater.errors, &["theater started"])).unwrap();
    assert_eq!((&started["address"], &started["listen"]), (&"127.0.0.2:4711".into(), &bound.into()));
    let mut command = playhouse(&[&["theater", "--listen", "127.0.0.1:0", "--json"], &flags[..]].concat());
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let first = line(&mut BufReader::new(process.stdout.take().unwrap()));
    process.kill().unwrap();
    process.wait().unwrap();
    let listening: serde_json::Value = serde_json::from_str(&first).unwrap();
    assert_eq!(listening["address"], "127.0.0.2:4711");
    assert!(listening["listen"].as_str().unwrap().starts_with("127.0.0.1:"), "{listening}");
}

/// A process that is killed when its test ends.
#[cfg(unix)]
struct Ends(Child);

#[cfg(unix)]
impl Drop for Ends {
    fn drop(&mut self) {
        let _it_has_ended = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Peers without an address cannot be told apart: one that is unreachable stays so in the log when another one joins.
#[cfg(unix)]
#[test]
fn a_peer_that_is_unreachable_is_logged_once() {
    let mut theater = Theater::start(&[]);
    let join = |log: &mut BufReader<ChildStderr>| {
        let mut command = playhouse(&["top", &theater.address, "--json"]);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut before = Vec::new();
        let mut next = line(log);
        while !next.contains("peer joined") {
            before.push(next);
            next = line(log);
        }
        (Ends(process), before)
    };
    let (first, _) = join(&mut theater.errors);
    drop(first);
    assert!(line(&mut theater.errors).contains("WARN peer unreachable"));
    let (_second, before) = join(&mut theater.errors);
    assert!(before.is_empty(), "{before:?}");
    // The theater looks at its peers while this one starts.
    let (_third, before) = join(&mut theater.errors);
    assert!(before.is_empty(), "{before:?}");
}
