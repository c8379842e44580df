//! The examples, run as a user runs them. The ported programs are in `ported.rs`.

mod program;

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use program::run;

const HELLO: &str = env!("CARGO_BIN_EXE_hello");
const SUPERVISION: &str = env!("CARGO_BIN_EXE_supervision");
const WORDCOUNT: &str = env!("CARGO_BIN_EXE_wordcount");
const BLOCKING: &str = env!("CARGO_BIN_EXE_blocking");
const TWO_THEATERS: &str = env!("CARGO_BIN_EXE_two_theaters");
const ROUTER: &str = env!("CARGO_BIN_EXE_router");
const GATHER: &str = env!("CARGO_BIN_EXE_gather");
const GROUPS: &str = env!("CARGO_BIN_EXE_groups");
const BOUNDED_BUFFER: &str = env!("CARGO_BIN_EXE_bounded_buffer");
const BOUNDED_MAILBOX: &str = env!("CARGO_BIN_EXE_bounded_mailbox");
const TIMERS: &str = env!("CARGO_BIN_EXE_timers");
const OBSERVING: &str = env!("CARGO_BIN_EXE_observing");
const TOPIC: &str = env!("CARGO_BIN_EXE_topic");
const TOPIC_ABROAD: &str = env!("CARGO_BIN_EXE_topic_abroad");
const RECEPTIONIST: &str = env!("CARGO_BIN_EXE_receptionist");
const SAFE_MESSAGES: &str = env!("CARGO_BIN_EXE_safe_messages");
const RESOURCE_POOL: &str = env!("CARGO_BIN_EXE_resource_pool");
const DURABLE_STATE: &str = env!("CARGO_BIN_EXE_durable_state");
#[cfg(unix)]
const GRACEFUL_SHUTDOWN: &str = env!("CARGO_BIN_EXE_graceful_shutdown");

/// A file that exists while its test runs.
struct File(PathBuf);

impl File {
    fn new(name: &str, bytes: impl AsRef<[u8]>) -> File {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, bytes).unwrap();
        File(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

// -- groups --------------------------------------------------------------------------------------------------------------

#[test]
fn groups_go_on_with_their_match_wherever_they_are_taken() {
    let expected = "Table \"green\", of the group, cannot migrate: actors of its type are not mobile: see `#[actor(mobile)]`\n\
                    Ada: 10000 hits, 0 out of turn, 2 trips\n\
                    Ben: 10000 hits, 0 out of turn, 2 trips\n\
                    the judge: 1 trip\n";
    assert_eq!(run(GROUPS, &[]), (0, expected.to_owned(), String::new()));
}

// -- bounded_mailbox ----------------------------------------------------------------------------------------------------

#[test]
fn bounded_mailbox_keeps_the_messages_that_fit() {
    let (status, out, err) = run(BOUNDED_MAILBOX, &[]);
    let mut lines: Vec<&str> = out.lines().collect();
    let last = lines.pop();
    lines.sort_unstable();
    let expected = [
        "the archive has no room for 4",
        "the archive has no room for 5",
        "the archive reads 1",
        "the archive reads 2",
        "the archive reads 3",
        "the display reads 5",
    ];
    assert_eq!((status, lines.as_slice(), last, err.as_str()), (0, &expected[..], Some("dropped: 4, rejected: 0"), ""));
}

// -- timers -------------------------------------------------------------------------------------------------------------

#[test]
fn timers_beat_and_silence_is_noticed() {
    let expected = "0.8 s: beat 1\n1.6 s: beat 2\n2.4 s: beat 3\n4.4 s: no pulse\n";
    assert_eq!(run(TIMERS, &[]), (0, expected.to_owned(), String::new()));
}

// -- bounded_buffer -----------------------------------------------------------------------------------------------------

#[test]
fn bounded_buffer_defers_what_has_no_room() {
    let expected = "taken: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n\
                    never more than 3 at once: true\n\
                    1 Put for Buffer \"outbox\": deferred, and the guard did not hold to the end\n";
    assert_eq!(run(BOUNDED_BUFFER, &[]), (0, expected.to_owned(), String::new()));
}

// -- observing ----------------------------------------------------------------------------------------------------------

#[test]
fn observing_prints_handler_times_and_slow_actors() {
    let (code, out, errors) = run(OBSERVING, &[]);
    assert_eq!((code, &*errors), (0, ""));
    let lines: Vec<&str> = out.lines().collect();
    let [.., bake, weigh] = &lines[..] else { panic!("{out}") };
    assert!(bake.starts_with("Oven Bake: 3 in ") && weigh.starts_with("Oven Weigh: 1000 in "), "{out}");
    let slow = &lines[..lines.len() - 2];
    let ended: Vec<_> = slow.iter().filter(|line| line.starts_with("slow: Oven \"stone\" took ")).collect();
    assert_eq!(ended.len(), 3, "{out}");
    let running = slow.iter().filter(|line| line.starts_with("slow: Oven \"stone\" has been at Bake for "));
    assert_eq!(running.count() + ended.len(), slow.len(), "{out}");
}

// -- hello --------------------------------------------------------------------------------------------------------------

#[test]
fn hello_greets_the_world() {
    assert_eq!(run(HELLO, &[]), (0, "Hello, world!\n1 greeted\n".to_owned(), String::new()));
}

#[test]
fn hello_greets_in_order() {
    let (code, out, errors) = run(HELLO, &["Ada", "Grace", "Barbara"]);
    assert_eq!((code, &*errors), (0, ""));
    assert_eq!(out, "Hello, Ada!\nHello, Grace!\nHello, Barbara!\n3 greeted\n");
}

#[cfg(unix)]
#[test]
fn hello_takes_a_name_that_is_not_unicode() {
    use std::os::unix::ffi::OsStrExt;
    let name = std::ffi::OsStr::from_bytes(b"Ren\xe9e");
    let output = Command::new(HELLO).arg(name).output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "Hello, Ren\u{fffd}e!\n1 greeted\n");
}

// -- supervision --------------------------------------------------------------------------------------------------------

#[test]
fn supervision_tells_the_asker_of_errors_and_the_supervisor_of_panics() {
    let (code, out, errors) = run(SUPERVISION, &[]);
    assert_eq!(code, 0, "{errors}");
    assert_eq!(
        out,
        "\
order of 2: done, 2 by this baker
order of 0: refused: nothing to bake
order of 3: done, 5 by this baker
order of 4: the baker crashed
order of 5: done, 5 by this baker
order of 6: done, 11 by this baker
order of 7: the baker crashed
order of 8: done, 8 by this baker
order of 9: done, 17 by this baker
order of 10: the baker crashed
order of 11: nobody bakes here any more
the supervisor ended: the supervisor gave up on its child \"baker\": the oven door fell off
the sleeping baker: no answer before the deadline: the request still waited in the mailbox and was taken back
"
    );
    let crash = "playhouse: Baker \"baker\" crashed in Bake: it panicked: the oven door fell off (examples/src/bin/supervision.rs:";
    assert_eq!(errors.matches(crash).count(), 3, "{errors}");
}

// -- wordcount ----------------------------------------------------------------------------------------------------------

#[test]
fn wordcount_counts_words_of_several_files() {
    let one = File::new("one.txt", "The cat and the hat.\nDon't the cats' hats 'fit'?\n");
    let two = File::new("two.txt", "ÄRGER ärger\u{a0}Ärger, cat-fish\tcat");
    let (code, out, errors) = run(WORDCOUNT, &["--top", "4", one.path(), two.path()]);
    assert_eq!((code, &*errors), (0, ""));
    assert_eq!(out, "3 cat\n3 the\n3 ärger\n1 and\n16 words, 10 different\n");
}

#[test]
fn wordcount_counts_no_words() {
    let empty = File::new("empty.txt", "");
    let none = File::new("none.txt", " ... \n\n -- !?");
    let (code, out, errors) = run(WORDCOUNT, &[empty.path(), none.path()]);
    assert_eq!((code, &*out, &*errors), (0, "0 words, 0 different\n", ""));
    let word = File::new("word.txt", "word");
    assert_eq!(run(WORDCOUNT, &["--top", "0", word.path()]).1, "1 words, 1 different\n");
}

/// Words and characters lie across the ends of blocks, and the file has more words than blocks.
#[test]
fn wordcount_reads_a_large_file_in_blocks() {
    let mut text = String::new();
    for number in 0..100_000 {
        text.push_str(&format!("größe{} ", number % 1000));
    }
    let large = File::new("large.txt", &text);
    let (code, out, errors) = run(WORDCOUNT, &["--top", "2", large.path()]);
    assert_eq!((code, &*errors), (0, ""));
    assert_eq!(out, "100 größe0\n100 größe1\n100000 words, 1000 different\n");
}

#[test]
fn wordcount_names_each_bad_file_and_prints_no_half_of_a_result() {
    let good = File::new("good.txt", "good");
    let binary = File::new("binary.txt", b"good \xff bad");
    let late = File::new("late.txt", [&[b'a', b' '].repeat(100_000)[..], b"\xc3"].concat());
    let word = File::new("long-word.txt", "a".repeat(3_000_000));
    let directory = env!("CARGO_TARGET_TMPDIR");
    let (code, out, errors) =
        run(WORDCOUNT, &["no/such/file", good.path(), binary.path(), late.path(), word.path(), directory]);
    assert_eq!((code, &*out), (1, ""), "{errors}");
    let expected = [
        "error: no/such/file: ".to_owned(),
        format!("error: {}: not UTF-8 at byte 5", binary.path()),
        format!("error: {}: not UTF-8 at byte 200000", late.path()),
        format!("error: {}: a word at byte 0 is longer than 1048576 bytes: not a text", word.path()),
        format!("error: {directory}: "),
    ];
    let lines: Vec<_> = errors.lines().collect();
    assert_eq!(lines.len(), expected.len(), "{errors}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(&expected), "{line}\n{expected}");
    }
}

#[cfg(unix)]
#[test]
fn wordcount_names_a_file_that_may_not_be_read() {
    use std::os::unix::fs::PermissionsExt;
    let secret = File::new("secret.txt", "secret");
    std::fs::set_permissions(&secret.0, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::File::open(&secret.0).is_ok() {
        return; // root can read every file
    }
    let (code, out, errors) = run(WORDCOUNT, &[secret.path()]);
    assert_eq!((code, &*out), (1, ""));
    assert!(errors.contains("secret.txt") && errors.contains("ermission"), "{errors}");
}

#[test]
fn wordcount_explains_its_arguments() {
    let cases: [(&[&str], &str); 6] = [
        (&[], "error: no file was given"),
        (&["--top", "3"], "error: no file was given"),
        (&["--top"], "error: --top: how many?"),
        (&["--top", "many", "file"], "error: --top many: not a number"),
        (&["--top", "-1", "file"], "error: --top -1: not a number"),
        (&["--colour", "file"], "error: --colour: no such option"),
    ];
    for (arguments, error) in cases {
        let (code, out, errors) = run(WORDCOUNT, arguments);
        assert_eq!((code, &*out), (2, ""), "{arguments:?}: {errors}");
        assert!(errors.starts_with(error) && errors.contains("usage: wordcount [--top N] FILE..."), "{errors}");
    }
}

#[test]
fn wordcount_takes_a_file_that_looks_like_an_option() {
    let file = File::new("--top", "a a b");
    let output = Command::new(WORDCOUNT).args(["--", "--top"]).current_dir(env!("CARGO_TARGET_TMPDIR")).output();
    assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap(), "2 a\n1 b\n3 words, 2 different\n");
    drop(file);
}

// -- blocking -----------------------------------------------------------------------------------------------------------

#[test]
fn blocking_stops_only_its_own_stage() {
    let (code, out, errors) = run(BLOCKING, &[]);
    assert_eq!((code, &*errors), (0, ""));
    assert_eq!(
        out,
        "\
on a thread of its own:
  the disk blocks; the clerk has answered 100 questions
  the disk has done 1 read
on the only worker:
  the disk blocks; the clerk of another stage has answered 100 questions
  the worker's other stages went on in a new thread: yes
  the clerk of the same stage: no answer before the deadline: the request still waited in the mailbox and was taken back
  the disk has done 1 read
  the clerk of the same stage has answered 1 question
"
    );
}

// -- two theaters -------------------------------------------------------------------------------------------------------

const VISITED: &str = "\
the warehouse has 12 apples
a clerk who works there has counted 69 pieces with 3 questions
";

/// A host in a process of its own, which ends with its test.
struct Host {
    process: Child,
    out: BufReader<ChildStdout>,
    address: String,
}

impl Host {
    /// Listens on any free port, and names the port in its first line.
    fn start() -> Host {
        let mut command = Command::new(TWO_THEATERS);
        command.args(["host", "127.0.0.1:0"]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening at ").unwrap_or_else(|| panic!("{line:?}")).trim().to_owned();
        Host { process, out, address }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _it_has_ended = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn two_theaters_play_both_roles_in_one_process() {
    assert_eq!(run(TWO_THEATERS, &[]), (0, VISITED.to_owned(), String::new()));
}

#[test]
fn two_theaters_are_two_processes() {
    let host = Host::start();
    // The first guest is alone; then two come at a time.
    assert_eq!(run(TWO_THEATERS, &["guest", &host.address]), (0, VISITED.to_owned(), String::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                assert_eq!(run(TWO_THEATERS, &["guest", &host.address]), (0, VISITED.to_owned(), String::new()));
            });
        }
    });
}

/// The handler for the signal is installed before the host prints its address.
#[cfg(unix)]
#[test]
fn two_theaters_the_host_closes_when_it_is_interrupted() {
    use std::io::Read;
    let mut host = Host::start();
    assert_eq!(run(TWO_THEATERS, &["guest", &host.address]).0, 0);
    let interrupt = Command::new("kill").args(["-INT", &host.process.id().to_string()]).status();
    assert!(interrupt.unwrap().success());
    let mut rest = String::new();
    host.out.read_to_string(&mut rest).unwrap();
    assert_eq!((host.process.wait().unwrap().code(), &*rest), (Some(0), "closed\n"));
}

#[test]
fn two_theaters_say_where_no_host_is() {
    // No program listens at this address, because its listener has just been dropped.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let (code, out, errors) = run(TWO_THEATERS, &["guest", &address]);
    assert_eq!((code, &*out), (1, ""));
    assert!(errors.starts_with("error: ") && errors.contains(&address) && errors.lines().count() == 1, "{errors}");
}

#[test]
fn two_theaters_say_what_an_address_cannot_be_used_for() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, out, errors) = run(TWO_THEATERS, &["host", &address]);
    assert_eq!((code, &*out), (1, ""));
    assert!(errors.contains(&address), "{errors}");
    // A network that the host must allow first.
    for role in ["host", "guest"] {
        let (code, out, errors) = run(TWO_THEATERS, &[role, "192.0.2.1:7000"]);
        assert_eq!((code, &*out), (1, ""));
        assert!(errors.contains("192.0.2.1:7000 is not on the loopback"), "{errors}");
    }
}

#[test]
fn two_theaters_explain_their_arguments() {
    let cases: [(&[&str], &str); 6] = [
        (&["host"], "error: no address was given"),
        (&["guest"], "error: no address was given"),
        (&["host", "here"], "error: here: not host:port"),
        (&["guest", ":7000"], "error: :7000: not host:port"),
        (&["host", "127.0.0.1:0", "127.0.0.1:1"], "error: 127.0.0.1:1: one address is enough"),
        (&["audience"], "error: audience: no such role"),
    ];
    for (arguments, error) in cases {
        let (code, out, errors) = run(TWO_THEATERS, arguments);
        assert_eq!((code, &*out), (2, ""), "{arguments:?}: {errors}");
        assert!(errors.starts_with(error) && errors.contains("usage: two_theaters"), "{errors}");
    }
}

// -- the toolbox --------------------------------------------------------------------------------------------------------

#[test]
fn router_shares_work_and_replaces_members_that_leave() {
    let (code, out, errors) = run(ROUTER, &[]);
    assert_eq!((code, &*errors), (0, ""));
    assert_eq!(
        out,
        "\
9 customers were served by 3 clerks
Ada is served by the same clerk: yes
5 clerks take turns now
one went home; there are 5 clerks again
1 clerk answered first
the pool has no Clerk to send to: it was resized to 0
"
    );
}

#[test]
fn gather_takes_what_answers_and_pays_once() {
    let (code, out, errors) = run(GATHER, &[]);
    assert_eq!((code, &*errors), (0, ""));
    assert_eq!(
        out,
        "\
3 of 5 replicas are enough
replica 0: 0
replica 1: 1
replica 2 did not answer in time
replica 3: 3
replica 4: 4
all five: one did not
the reader is free again, and has 4 answers
paid: 10
the sum is 10
"
    );
}

#[test]
fn topic_tells_the_subscribers_with_a_matching_pattern() {
    let (code, out, errors) = run(TOPIC, &[]);
    assert_eq!((code, &*errors), (0, ""));
    assert_eq!(
        out,
        "\
weather.north.sea: 4 degrees, for 3 readers
weather.north.hills.top: -7 degrees, for 2 readers
weather.south.sea: 19 degrees, for 2 readers
weather.south.town: 23 degrees, for 1 readers
all: 4 measurements, -7 to 23
the north: 2 measurements, -7 to 4
the sea: 2 measurements, 4 to 19
the reader in the north has ended, and its subscription too
\"weather..sea\" is no subject: each of its parts between dots needs at least one character
"
    );
}

#[test]
fn a_remote_topic_is_read_in_two_theaters() {
    let (code, out, errors) = run(TOPIC_ABROAD, &[]);
    assert_eq!((code, &*errors), (0, ""));
    assert_eq!(
        out,
        "\
4 degrees in the north: 1 reader here, 1 theater elsewhere
in the north, of all: -7
in the north, of all: 4
in the north, of all: 19
in the south, of the sea: 4
in the south, of the sea: 19
the topic has ended in the north, and the south knows
"
    );
}

#[test]
fn receptionist_knows_the_present_actors() {
    let (code, out, errors) = run(RECEPTIONIST, &[]);
    assert_eq!((code, &*errors), (0, ""));
    assert_eq!(
        out,
        "\
the north wall is painted
the south wall is painted
the east wall is painted
one painter went; there are 2
the north wall is painted
the south wall is painted
the foreman has had 5 listings
"
    );
}

#[test]
fn resource_pool_works_within_its_bounds_and_cancels() {
    let (code, out, errors) = run(RESOURCE_POOL, &[]);
    assert_eq!((code, &*errors), (0, ""));
    assert_eq!(
        out,
        "\
there are 1229 primes below 10000
the resource pool is full: all threads are busy and the queue has no room; try again later, or use `run`, which waits
the search was cancelled
what waited behind it is done: 1
the resource pool was stopped before the work began
"
    );
}

#[test]
fn durable_state_takes_each_order_once_in_all_its_incarnations() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("durable-state-{}", std::process::id()));
    let path = folder.to_str().unwrap();
    let papers = "paper 4711 is order 1\npaper 4712 is order 2\npaper 4711 is order 1\n";
    let full = "the book has 2 orders, 8 pieces\n";
    let first = format!("the book has 0 orders, 0 pieces\n{papers}{full}");
    for expected in [first, format!("{full}{papers}{full}")] {
        let (code, out, errors) = run(DURABLE_STATE, &[path]);
        assert_eq!((code, out), (0, expected), "{errors}");
        let crash = "playhouse: Clerk \"clerk\" crashed in SpillTheCoffee: it failed: coffee everywhere (";
        assert_eq!(errors.matches(crash).count(), 3, "{errors}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
    let usage = "error: which folder?\nusage: durable_state FOLDER\n";
    assert_eq!(run(DURABLE_STATE, &[]), (2, String::new(), usage.to_owned()));
    // A file is no folder.
    let (code, out, errors) = run(DURABLE_STATE, &[DURABLE_STATE]);
    assert_eq!((code, &*out), (1, ""));
    assert!(errors.starts_with(&format!("error: {DURABLE_STATE}")) && errors.lines().count() == 1, "{errors}");
}

/// A shop that is open, in a process of its own.
#[cfg(unix)]
fn open_shop() -> (Child, BufReader<ChildStdout>) {
    let mut process = Command::new(GRACEFUL_SHUTDOWN).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(process.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "open, until a signal comes\n");
    (process, out)
}

// GUARANTEE: Coordinated shutdown
#[cfg(unix)]
#[test]
fn graceful_shutdown_ends_in_order_by_either_signal() {
    use std::io::Read;
    for signal in ["-INT", "-TERM"] {
        let (mut process, mut out) = open_shop();
        assert!(Command::new("kill").args([signal, &process.id().to_string()]).status().unwrap().success());
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        assert_eq!(process.wait().unwrap().code(), Some(0), "{rest}");
        assert_eq!(
            rest,
            "\
the doors are closed, a hundred orders are left
the bakery has baked 100 loaves
goodbye
3 of 4 shutdown tasks finished
\"finish the work\": \"stoker\" did not finish in time
",
            "{signal}"
        );
    }
}

/// When the second signal comes, the bakery is drained, and the shutdown waits for the stoker.
#[cfg(unix)]
#[test]
fn graceful_shutdown_ends_at_once_by_a_second_signal() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let (mut process, mut out) = open_shop();
        let send =
            || assert!(Command::new("kill").args([signal, &process.id().to_string()]).status().unwrap().success());
        send();
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        assert_eq!(line, "the doors are closed, a hundred orders are left\n");
        send();
        assert_eq!(process.wait().unwrap().code(), Some(code));
    }
}

// -- safe_messages ------------------------------------------------------------------------------------------------------

#[test]
fn safe_messages_has_two_rows_for_each_program_and_no_copies() {
    let (code, out, errors) = run(SAFE_MESSAGES, &["small"]);
    assert_eq!((code, &*errors), (0, ""));
    for program in &playhouse_examples::safe_messages::PROGRAMS {
        let row = format!("| {} | ", program.name);
        assert_eq!(out.lines().filter(|line| line.starts_with(&row)).count(), 2, "{row}{out}");
    }
    let complete = out.lines().filter(|line| line.split(" | ").nth(1).is_some_and(|share| share.ends_with("= 100 %")));
    assert_eq!(complete.count(), 21, "{out}");
}
