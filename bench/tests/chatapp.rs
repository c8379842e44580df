//! The ChatApp world: the same counts on every schedule, and a delivery check that notices.

use std::sync::{Arc, Mutex};

use playhouse_bench::chatapp::{
    BUILT_IN, Behaviour, BuiltIn, Connectedness, Fault, FaultKind, Graphs, MessageShape, Options, Progress, Report,
    RunError, Scenario, Totals, WorkKind, WorkShare, plural, run,
};

fn on(workers: usize) -> Options {
    Options { workers: Some(workers), ..Options::default() }
}

fn report(scenario: &Scenario, options: &Options) -> Report {
    run(scenario, options, |_| ()).unwrap()
}

/// Runs a world that must pass its check.
fn counts(scenario: &Scenario, options: &Options) -> Totals {
    let report = report(scenario, options);
    assert!(report.check.passed, "{}: {:?}", scenario.name, report.check.problems);
    assert_eq!(report.turns, scenario.turns);
    report.counts()
}

/// A world in which everything happens, also chats that close and clients that are ahead of others.
fn lively() -> Scenario {
    Scenario {
        name: "lively".to_owned(),
        turns: 25,
        clients: 120,
        directories: 7,
        seed: 3,
        behaviour: Behaviour { new_chat: 15.0, leave: 30.0, post: 45.0 },
        connectedness: Connectedness { befriend: 10.0, invite: 40.0 },
        message: MessageShape { size: 33, objects: 0, history: 2 },
        work: vec![
            WorkShare { share: 30.0, kind: WorkKind::Compute, amount: 200, spread: 90.0 },
            WorkShare { share: 30.0, kind: WorkKind::Memory, amount: 2000, spread: 50.0 },
        ],
    }
}

/// A built-in scenario, made small enough for a test.
fn shrunken(scenario: &BuiltIn) -> Scenario {
    let mut small = scenario.scenario().unwrap();
    // The same number of friends per client as in the large world.
    let shrink = f64::from(small.clients) / f64::from(small.clients.min(200));
    small.turns = small.turns.min(20);
    small.clients = small.clients.min(200);
    small.directories = small.directories.min(8);
    small.connectedness.befriend = (small.connectedness.befriend * shrink).min(100.0);
    small.work.iter_mut().for_each(|work| work.amount = work.amount.min(1000));
    small
}

// GUARANTEE: The ChatApp world
#[test]
fn counts_are_the_same_on_any_number_of_workers() {
    let expected = counts(&lively(), &on(1));
    assert!(expected.growth.chats_closed > 0 && expected.growth.leaves > 0 && expected.moves.post > 0);
    for workers in [1, 2, 4] {
        for _ in 0..3 {
            assert_eq!(counts(&lively(), &on(workers)), expected, "{workers} workers");
        }
    }
}

// GUARANTEE: The ChatApp world
#[test]
fn counts_are_the_same_on_any_number_of_stages() {
    let expected = counts(&lively(), &on(2));
    for stages in [2, 3, 64] {
        assert_eq!(counts(&lively(), &Options { stages: Some(stages), ..on(2) }), expected, "{stages} stages");
    }
}

// GUARANTEE: The ChatApp world
#[test]
fn counts_are_the_same_on_any_simulated_schedule() {
    let expected = counts(&lively(), &on(1));
    for seed in 0..50 {
        let options = Options { simulated: Some(seed), ..on(2) };
        assert_eq!(counts(&lively(), &options), expected, "simulated schedule {seed}");
    }
}

/// The numbers of this world, once and for all: a change of the dice or of the protocol must be deliberate.
#[test]
fn the_world_is_the_one_it_always_was() {
    let report = report(&lively(), &on(2));
    assert_eq!(
        (report.messages, report.delivery.posts, report.delivery.received, &*report.checksum),
        (28_118, 1_049, 3_861, "0xe4e62b80fdead839")
    );
}

#[test]
fn another_seed_makes_another_world() {
    let expected = counts(&lively(), &on(1));
    assert_ne!(counts(&Scenario { seed: 4, ..lively() }, &on(1)), expected);
}

#[test]
fn message_size_and_history_change_no_counts() {
    let messages = |shape| counts(&Scenario { message: shape, ..lively() }, &on(2)).messages;
    let expected = messages(MessageShape { size: 0, objects: 0, history: 0 });
    for (size, objects, history) in [(1, 0, 1), (2, 1, 0), (10_000, 0, 100), (0, 70, 3)] {
        let shape = MessageShape { size, objects, history };
        assert_eq!(messages(shape), expected, "{shape:?}");
    }
}

/// The lively world, with graphs in its posts.
fn with_graphs(objects: u32) -> Scenario {
    Scenario { message: MessageShape { objects, ..lively().message }, ..lively() }
}

// GUARANTEE: Graphs in ChatApp's posts
#[test]
fn each_member_walks_through_every_object_of_what_is_posted_to_it() {
    let without = counts(&lively(), &on(2));
    for objects in [1, 2, 30] {
        let expected = counts(&with_graphs(objects), &on(1));
        assert_eq!(expected.graphs.walked, expected.delivery.received * u64::from(objects));
        assert_eq!(expected.graphs.expected, expected.graphs.walked);
        // The same world, except for the received posts.
        assert_eq!((expected.messages, expected.growth), (without.messages, without.growth));
        assert_eq!((expected.moves, expected.state_sum), (without.moves, without.state_sum));
        assert_ne!(expected.delivery.received_sum, without.delivery.received_sum);
        assert_eq!(counts(&with_graphs(objects), &on(2)), expected, "{objects} objects");
        for seed in 0..5 {
            let options = Options { simulated: Some(seed), ..on(2) };
            assert_eq!(counts(&with_graphs(objects), &options), expected, "{objects} objects, schedule {seed}");
        }
    }
    assert_eq!(without.graphs, Graphs::default());
}

#[test]
fn reports_mention_objects_if_the_scenario_has_any() {
    let (with, without) = (report(&with_graphs(3), &on(2)), report(&lively(), &on(2)));
    let json: serde_json::Value = serde_json::from_str(&with.to_json()).unwrap();
    assert_eq!(json["graphs"]["walked"], 3 * with.delivery.received);
    assert_eq!(json["graphs"]["expected"], json["graphs"]["walked"]);
    let walked = format!("deliveries, {} walked)", plural(with.graphs.walked, "object"));
    assert!(with.to_string().contains(&walked), "no {walked:?} in\n{with}");
    assert!(!without.to_string().contains("walked"), "{without}");
    assert_ne!(with.checksum, without.checksum);
}

// GUARANTEE: Graphs in ChatApp's posts
#[test]
fn a_graph_that_lacks_an_object_is_noticed() {
    let fault = Fault { turn: 7, kind: FaultKind::Prune };
    let report = report(&with_graphs(10), &Options { fault: Some(fault), ..on(2) });
    assert!(!report.check.passed);
    let problems = report.check.problems.join("\n");
    let missing = report.graphs.expected - report.graphs.walked;
    assert!(missing > 0 && problems.contains("not every member came by every object"), "{problems}");
    assert!(problems.contains(&format!("(-{missing})")), "{problems}");
    assert_eq!(report.delivery.expected, report.delivery.received);
}

// GUARANTEE: Graphs in ChatApp's posts
#[test]
fn a_graph_of_other_objects_is_noticed() {
    let fault = Fault { turn: 7, kind: FaultKind::Exchange };
    let report = report(&with_graphs(10), &Options { fault: Some(fault), ..on(2) });
    assert!(!report.check.passed);
    assert_eq!(report.graphs.expected, report.graphs.walked);
    let problems = report.check.problems.join("\n");
    assert!(problems.contains("checksum of deliveries owed, and of receipts"), "{problems}");
}

#[test]
fn built_in_scenarios_run() {
    for built_in in BUILT_IN {
        let scenario = shrunken(built_in);
        assert_eq!(counts(&scenario, &on(1)), counts(&scenario, &on(2)), "{}", built_in.name);
    }
}

#[test]
fn every_scenario_file_is_built_in() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios");
    for file in std::fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let built_in = BuiltIn::find(name).unwrap_or_else(|| panic!("{} is not built in", path.display()));
        let loaded = Scenario::from_toml(name, &std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(loaded, built_in.scenario().unwrap());
        assert!(built_in.title().len() > 20 && built_in.title().ends_with(['.', ')']), "{}", built_in.title());
    }
}

#[test]
fn a_lost_delivery_is_noticed() {
    let fault = Fault { turn: 7, kind: FaultKind::Lose };
    let report = report(&lively(), &Options { fault: Some(fault), ..on(2) });
    assert!(!report.check.passed);
    let problems = report.check.problems.join("\n");
    assert!(problems.contains("everything stopped in turn 7 of 25"), "{problems}");
    let missing = report.delivery.expected - report.delivery.received;
    assert!(missing > 0 && problems.contains(&format!("(-{missing})")), "{problems}");
    assert_eq!(report.turns, 6);
}

#[test]
fn a_doubled_delivery_is_noticed() {
    let fault = Fault { turn: 7, kind: FaultKind::Duplicate };
    let report = report(&lively(), &Options { fault: Some(fault), ..on(2) });
    assert!(!report.check.passed);
    let problems = report.check.problems.join("\n");
    let surplus = report.delivery.received - report.delivery.expected;
    assert!(surplus > 0 && problems.contains(&format!("(+{surplus})")), "{problems}");
    assert!(!problems.contains("everything stopped"), "{problems}");
}

#[test]
fn an_actor_that_fails_ends_the_run_with_an_error() {
    let fault = Fault { turn: 7, kind: FaultKind::Crash };
    let error = run(&lively(), &Options { fault: Some(fault), ..on(2) }, |_| ()).unwrap_err();
    assert!(matches!(error, RunError::Lost { dead_letters } if dead_letters > 0), "{error}");
}

#[test]
fn every_message_is_accounted_for() {
    let messages = counts(&lively(), &on(2)).messages;
    let pairs = [
        ("phase", messages.phase, messages.phase_done),
        ("move", messages.meet + messages.make_move, messages.done),
        ("logout", messages.log_out, messages.offline),
        ("lookup", messages.lookup, messages.found),
        ("friends and invitations", messages.lookup, messages.befriend + messages.invite),
        ("befriend", messages.befriend, messages.befriended),
        ("invite", messages.invite, messages.join),
        ("join", messages.join, messages.joined),
        ("accept", messages.joined, messages.accepted),
        ("leave", messages.leave, messages.left),
        ("post", messages.post, messages.posted),
        ("deliver", messages.deliver, messages.acknowledge),
        ("finish", messages.finish, messages.finished),
    ];
    for (what, asked, answered) in pairs {
        assert_eq!(asked, answered, "{what}");
        assert!(asked > 0, "{what}");
    }
}

#[test]
fn progress_is_reported_turn_by_turn() {
    let seen = Arc::new(Mutex::new(Vec::<Progress>::new()));
    let report = run(&lively(), &on(2), {
        let seen = Arc::clone(&seen);
        move |progress| seen.lock().unwrap().push(*progress)
    })
    .unwrap();
    let seen = seen.lock().unwrap();
    let turns: Vec<u32> = seen.iter().map(|progress| progress.turn).collect();
    assert_eq!(turns, (0..=25).collect::<Vec<_>>());
    assert!(seen.is_sorted_by_key(|progress| progress.messages));
    assert_eq!(seen.last().unwrap().messages_in_turns, report.messages_in_turns);
}

#[test]
fn impossible_systems_and_scenarios_do_not_start() {
    let error = run(&lively(), &Options { workers: Some(0), ..Options::default() }, |_| ()).unwrap_err();
    assert!(error.to_string().contains("worker"), "{error}");
    let crowded = Scenario { directories: 121, ..lively() };
    let error = run(&crowded, &on(1), |_| ()).unwrap_err();
    assert!(
        error.to_string().contains("directories: must be from 1 to the number of clients, which is 120"),
        "{error}"
    );
}

#[test]
fn work_differs_between_clients_and_is_done() {
    let idle = Scenario { work: Vec::new(), ..lively() };
    let (with, without) = (counts(&lively(), &on(1)), counts(&idle, &on(1)));
    assert_ne!(with.state_sum, without.state_sum);
}

#[test]
fn reports_are_json() {
    let report = report(&lively(), &on(1));
    let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!(json["messages"], report.messages);
    assert_eq!(json["check"]["passed"], true);
    assert_eq!(json["messages_by_kind"]["deliver"], report.delivery.expected);
    assert_eq!(json["checksum"], *report.checksum);
    assert_eq!(json["turn_latency"]["p99_ns"], report.turn_latency.p99_ns);
}

#[cfg(target_os = "linux")]
#[test]
fn memory_is_looked_at_over_the_run() {
    let report = report(&lively(), &on(1));
    let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    let memory = &json["memory"];
    let of = |key: &str| memory[key].as_f64().unwrap_or_else(|| panic!("no {key} in {memory}"));
    for key in ["start_bytes", "set_up_bytes", "end_bytes"] {
        assert!(of(key) > 1e6 && of(key) < 1e11, "{key}: {}", of(key));
    }
    assert!(of("bytes_per_client") >= 0.0);
    let samples = memory["samples"].as_array().unwrap();
    let turns: Vec<u64> = samples.iter().map(|sample| sample["turn"].as_u64().unwrap()).collect();
    assert_eq!(turns, (1..=25).collect::<Vec<_>>());
    assert_eq!(samples[24]["bytes"], memory["end_bytes"]);
    let growth = &memory["growth"];
    assert!(growth["bytes_per_turn"].is_number() && growth["is_noise"].is_boolean(), "{growth}");
    let table = report.to_string();
    for label in ["\n  at the start", "\n  set up", "\n  at the end", "\n  per client", "\n  per turn"] {
        assert!(table.contains(label), "no {label:?} in\n{table}");
    }
}

/// The process grows by the content of posts where no client leaves and chats keep all of it.
#[cfg(target_os = "linux")]
#[test]
fn memory_that_grows_has_its_slope() {
    let scenario = Scenario {
        turns: 60,
        clients: 50,
        directories: 2,
        behaviour: Behaviour { new_chat: 10.0, leave: 0.0, post: 90.0 },
        message: MessageShape { size: 50_000, objects: 0, history: 1_000_000 },
        work: Vec::new(),
        ..lively()
    };
    let report = report(&scenario, &on(2));
    let growth = report.memory.growth.unwrap();
    let posted = report.moves.post as f64 * 50_000.0 / 60.0;
    // Other tests run in this process, and allocate or free memory at the same time.
    assert!(!growth.is_noise && growth.bytes_per_turn > posted * 0.5, "{growth:?}, {posted} bytes posted per turn");
}
