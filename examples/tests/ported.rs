//! The programs that were ported from other runtimes, run as a user runs them.

mod program;

use std::collections::HashSet;
#[cfg(unix)]
use std::io::{BufRead, BufReader};
#[cfg(unix)]
use std::process::{Command, Stdio};

use program::run;

const PORTED_POOL: &str = env!("CARGO_BIN_EXE_ported_pool");
const PORTED_RING: &str = env!("CARGO_BIN_EXE_ported_ring");
const PORTED_PHILOSOPHERS: &str = env!("CARGO_BIN_EXE_ported_philosophers");
const PORTED_IOT: &str = env!("CARGO_BIN_EXE_ported_iot");
const PORTED_BASIC: &str = env!("CARGO_BIN_EXE_ported_basic");
const PORTED_COUNTER: &str = env!("CARGO_BIN_EXE_ported_counter");
const PORTED_FIBONACCI: &str = env!("CARGO_BIN_EXE_ported_fibonacci");
const PORTED_FORWARD: &str = env!("CARGO_BIN_EXE_ported_forward");
const PORTED_MESSAGE_QUEUE: &str = env!("CARGO_BIN_EXE_ported_message_queue");
const PORTED_MOCK: &str = env!("CARGO_BIN_EXE_ported_mock");
const PORTED_MONTE_CARLO: &str = env!("CARGO_BIN_EXE_ported_monte_carlo");
const PORTED_OUTPUT_PORT: &str = env!("CARGO_BIN_EXE_ported_output_port");
const PORTED_PING_PONG: &str = env!("CARGO_BIN_EXE_ported_ping_pong");
const PORTED_PUBSUB_FILTER: &str = env!("CARGO_BIN_EXE_ported_pubsub_filter");
const PORTED_REGISTRY: &str = env!("CARGO_BIN_EXE_ported_registry");
const PORTED_STREAM: &str = env!("CARGO_BIN_EXE_ported_stream");
const PORTED_SUPERVISOR: &str = env!("CARGO_BIN_EXE_ported_supervisor");
#[cfg(unix)]
const PORTED_WEAK_RECIPIENT: &str = env!("CARGO_BIN_EXE_ported_weak_recipient");

#[test]
fn ported_pool_has_ten_members_one_after_the_other() {
    let (code, out, errors) = run(PORTED_POOL, &[]);
    assert_eq!((code, &*errors), (0, ""));
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!((lines.len(), lines[5]), (11, "Restarted all workers"), "{out}");
    let members: HashSet<_> = lines.iter().filter_map(|line| line.strip_prefix("Hello from MyActor#")).collect();
    assert_eq!(members.len(), 10, "{out}");
}

#[test]
fn ported_ring_reports_each_half_a_million_messages() {
    let (code, out, errors) = run(PORTED_RING, &["10", "50000"]);
    assert_eq!((code, &*errors), (0, ""));
    let expected = "Setting up 10 nodes\n\
                    Sending start message and waiting for termination after 500000 messages...\n\
                    Actor 10 received message 1 of 500000 (0.00%)\n\
                    Actor 1 received message 498990 of 500000 (99.80%)\n\
                    Actor 1 reached limit of 500000 (payload was 500000)\n\
                    Time taken: ";
    assert!(out.starts_with(expected), "{out}");
}

#[test]
fn ported_ring_explains_its_arguments() {
    let usage = "Usage:\ncargo run --bin ported_ring -- <num-nodes> <num-times-message-around-ring>\n";
    assert_eq!(run(PORTED_RING, &["10"]), (1, String::new(), usage.to_owned()));
    assert_eq!(run(PORTED_RING, &["1", "9"]), (1, String::new(), "Number of nodes must be > 1\n".to_owned()));
}

#[test]
fn ported_philosophers_all_eat() {
    // The port keeps a fault of its model: if all philosophers get their left forks first, each keeps its fork for
    // ever. Some runs end in that state.
    let all_eat = (0..5).any(|_| {
        let (code, out, errors) = run(PORTED_PHILOSOPHERS, &["1000"]);
        assert_eq!((code, &*errors), (0, ""));
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!((lines.len(), lines[0]), (12, "Simulation results"), "{out}");
        assert!(lines[1].starts_with("Confucius: PhilosopherMetrics { state_change_count: "), "{out}");
        !out.contains("time_eating: 0ns")
    });
    assert!(all_eat);
}

#[test]
fn ported_iot_has_a_temperature_and_a_device_without_one() {
    let (code, out, errors) = run(PORTED_IOT, &[]);
    assert_eq!((code, &*errors), (0, ""));
    let readings = "{\"attic\": TemperatureNotAvailable, \"hall\": Temperature(19.5)}";
    assert_eq!(out.lines().filter(|line| *line == readings).count(), 1, "{out}");
    assert!(out.contains("Device actor home-hall started\nRecorded temperature reading 19.5\n"), "{out}");
}

#[test]
fn ported_basic_counts_to_55_and_crashes() {
    let (code, out, errors) = run(PORTED_BASIC, &[]);
    let expected = "Incrementing count by 3\n\
                    Count is 3\n\
                    Incrementing count by 50\n\
                    Incrementing count by 2\n\
                    Count is 55\n";
    assert_eq!((code, &*out), (0, expected));
    assert!(
        errors.starts_with("playhouse: MyActor#") && errors.contains("crashed in ForceErr: it failed: 3 "),
        "{errors}"
    );
}

#[test]
fn ported_fibonacci_has_the_fifth_to_the_ninth_number() {
    let expected = "Ok(5)\nOk(8)\nOk(13)\nOk(21)\nOk(34)\n";
    assert_eq!(run(PORTED_FIBONACCI, &[]), (0, expected.to_owned(), String::new()));
}

#[test]
fn ported_programs_with_one_line_print_it() {
    let programs = [
        (PORTED_FORWARD, "Player health: 61.8\n"),
        (PORTED_MESSAGE_QUEUE, "Temperature updated: 22.5\n"),
        (PORTED_MOCK, ""),
        (PORTED_PING_PONG, "ping..pong..ping..pong..ping..pong..ping..pong..ping..pong..\n"),
        (PORTED_REGISTRY, "Registered and looked up actor\n"),
    ];
    for (program, line) in programs {
        assert_eq!(run(program, &[]), (0, line.to_owned(), String::new()), "{program}");
    }
}

#[test]
fn ported_counter_counts_by_ten() {
    let (code, out, errors) = run(PORTED_COUNTER, &[]);
    assert_eq!((code, &*errors), (0, ""));
    let counts: Vec<_> = out.lines().filter_map(|line| line.strip_prefix("Count is: ")).collect();
    assert_eq!(counts, ["10", "20", "30", "40"], "{out}");
}

#[test]
fn ported_monte_carlo_has_the_results_of_all_games() {
    let (code, out, errors) = run(PORTED_MONTE_CARLO, &[]);
    assert_eq!((code, &*errors), (0, ""));
    let expected = "Starting funds: $10000\n\
                    Wager per round: $100\n\
                    Rounds per game: 100\n\
                    Running simulations...\n\
                    Simulations ran: 100\n\
                    Final average funds: $";
    let average = out.strip_prefix(expected).expect(&out);
    assert!((0..=20_000).contains(&average.trim_end().parse().unwrap()), "{out}");
}

#[test]
fn ported_output_port_reaches_each_subscriber_three_times() {
    let (code, out, errors) = run(PORTED_OUTPUT_PORT, &[]);
    assert_eq!((code, &*errors), (0, ""));
    for number in 0..3 {
        let published = format!("received published message 'Published: Something {number}'");
        assert_eq!(out.lines().filter(|line| line.ends_with(&published)).count(), 10, "{out}");
    }
}

#[test]
fn ported_pubsub_filter_has_each_subscriber_print_its_part() {
    let (code, out, errors) = run(PORTED_PUBSUB_FILTER, &[]);
    assert_eq!((code, &*errors), (0, ""));
    let mut printed: Vec<_> = out.lines().map(|line| (&line[..6], line.split_once(" - ").expect(line).1)).collect();
    printed.sort();
    let (a, b) = ("TopicA: Some important note", "TopicB: Some very important note");
    assert_eq!(printed, [("ActorA", a), ("ActorB", b), ("ActorC", a), ("ActorC", b)]);
}

#[test]
fn ported_stream_counts_the_items_of_both_streams() {
    let (code, out, errors) = run(PORTED_STREAM, &[]);
    assert_eq!((code, &*errors), (0, ""));
    let counts: Vec<_> = out.lines().filter_map(|line| line.strip_prefix("Count is ")).collect();
    assert_eq!(counts, ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"], "{out}");
    assert!(out.contains("Started 2nd stream\n") && out.ends_with("Finished 1st stream\n"), "{out}");
}

#[test]
fn ported_supervisor_ends_from_the_leaf_to_the_root() {
    let (code, out, errors) = run(PORTED_SUPERVISOR, &[]);
    assert_eq!(code, 0, "{errors}");
    let leaf = "\"leaf\" has ended: it panicked: LeafActor: Oh crap!";
    let mid_level = format!("MidLevelActor: Mid-level actor panicking because {leaf}");
    let expected = format!(
        "RootActor: Started Root \"root\"\n\
         {}\
         MidLevelActor: {leaf}\n\
         RootActor: \"mid-level\" has ended: it panicked: {mid_level}\n\
         RootActor: Terminating root actor, all my kids are dead!\n",
        "LeafActor: No-op!\n".repeat(9)
    );
    assert_eq!(out, expected);
}

#[cfg(unix)]
#[test]
fn ported_weak_recipient_ends_after_three_signals() {
    let mut process = Command::new(PORTED_WEAK_RECIPIENT).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut printed = Vec::new();
    let mut interrupt_after = |line: &str| {
        while printed.last().is_none_or(|last| last != line) {
            printed.push(out.next().expect(line));
        }
        assert!(Command::new("kill").args(["-INT", &process.id().to_string()]).status().unwrap().success());
    };
    interrupt_after("🎩 press Ctrl-C to stop client B");
    interrupt_after("🎩 press Ctrl-C to stop client A");
    interrupt_after("🎩 Ctrl-C received, stopping client");
    printed.extend(out);
    assert_eq!(process.wait().unwrap().code(), Some(0), "{printed:?}");
    for line in
        ["🐇 stopped ClientB", "🐰 stopped ClientA", "🎩 Ctrl-C received, shutting down", "⏰ stopped TimeService"]
    {
        assert_eq!(printed.iter().filter(|printed| *printed == line).count(), 1, "{line}: {printed:?}");
    }
}
