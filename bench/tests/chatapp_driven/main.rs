//! Worlds that are driven over TCP by a recording: they equal those of dice, whatever happens to the driver.

mod connections;
mod wrong;

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use playhouse_bench::chatapp::driven::{DriveError, Event, LINE_BYTES_MAX, Recorded, Recording, Server, drive, record};
use playhouse_bench::chatapp::{
    BUILT_IN, Behaviour, Connectedness, Fault, FaultKind, MessageShape, Options, Report, Scenario, Totals, WorkKind,
    WorkShare, run,
};

/// A world in which everything happens.
fn lively() -> Scenario {
    Scenario {
        name: "lively".to_owned(),
        turns: 12,
        clients: 80,
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

fn on(workers: usize) -> Options {
    Options { workers: Some(workers), ..Options::default() }
}

fn recorded(scenario: &Scenario) -> String {
    let mut text = Vec::new();
    record(scenario, &mut text, |_| ()).unwrap();
    String::from_utf8(text).unwrap()
}

/// The counts of a world that is left to its dice.
fn by_dice(scenario: &Scenario) -> Totals {
    let report = run(scenario, &on(2), |_| ()).unwrap();
    assert!(report.check.passed, "{:?}", report.check.problems);
    report.counts()
}

/// A recording in a file that exists while its test runs.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> File {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, text).unwrap();
        File(path)
    }

    fn open(&self) -> Recording {
        self.read().unwrap()
    }

    fn read(&self) -> Result<Recording, DriveError> {
        Recording::read(std::fs::File::open(&self.0).unwrap(), &self.0)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A server, and its events.
struct Stage {
    server: Server,
    events: Receiver<Event>,
}

impl Stage {
    fn of(scenario: &Scenario, options: &Options) -> Stage {
        let (happened, events) = mpsc::channel();
        let server = Server::start("127.0.0.1:0", scenario, options, move |event| drop(happened.send(event))).unwrap();
        Stage { server, events }
    }

    fn address(&self) -> String {
        self.server.address().to_string()
    }

    /// The report of the world that is played next to its end.
    fn played(&self) -> Report {
        loop {
            if let Event::Played(report) = self.events.recv().unwrap() {
                return *report;
            }
        }
    }

    /// Waits for the end of the driver's connection; returns the step that the world waits for.
    fn gone(&self) -> u32 {
        loop {
            if let Event::Gone(_, next) = self.events.recv().unwrap() {
                return next;
            }
        }
    }
}

/// A driver by hand.
struct Hand {
    stream: TcpStream,
    answers: BufReader<TcpStream>,
    greeting: String,
}

impl Hand {
    fn call(stage: &Stage) -> Hand {
        Hand::at(&stage.server)
    }

    fn at(server: &Server) -> Hand {
        let stream = TcpStream::connect(server.address()).unwrap();
        let mut hand = Hand { answers: BufReader::new(stream.try_clone().unwrap()), stream, greeting: String::new() };
        hand.greeting = hand.answer();
        hand
    }

    fn say(&mut self, bytes: impl AsRef<[u8]>) {
        // A refused driver may not be able to send everything.
        let _ = self.stream.write_all(bytes.as_ref());
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Sends no more, and returns all answers until the end of the connection.
    fn rest(mut self) -> String {
        let _ = self.stream.shutdown(Shutdown::Write);
        let mut rest = String::new();
        self.answers.read_to_string(&mut rest).unwrap();
        rest.trim_end().to_owned()
    }
}

#[test]
fn recordings_are_the_same_bytes_each_time() {
    let text = recorded(&lively());
    assert_eq!(text, recorded(&lively()));
    assert_ne!(text, recorded(&Scenario { seed: 4, ..lively() }));
    // Once and for all, on every platform: a change of the format or of the dice must be deliberate.
    let sum =
        text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    assert_eq!((text.len(), sum), (14_069, 13_901_231_641_873_501_563));
}

#[test]
fn a_recording_counts_what_is_in_it() {
    let mut text = Vec::new();
    let mut turns = Vec::new();
    let recorded = record(&lively(), &mut text, |turn| turns.push(turn)).unwrap();
    let text = String::from_utf8(text).unwrap();
    let begins = |words: &[&str]| text.lines().filter(|line| words.iter().any(|word| line.starts_with(word))).count();
    let moves = begins(&["chat ", "post ", "leave ", "none "]) as u64;
    let friendships = by_dice(&lively()).growth.friendships;
    assert_eq!(recorded, Recorded { turns: 12, moves, friendships });
    assert_eq!((begins(&["client "]), begins(&["turn "]), begins(&["end "])), (80, 12, 12));
    assert_eq!(turns, (1..=12).collect::<Vec<_>>());
    let file = File::new("counted.chat", &text);
    assert_eq!((file.open().moves(), file.open().turns(), file.open().scenario()), (moves, 12, "lively"));
}

// GUARANTEE: ChatApp from outside
#[test]
fn a_driven_world_is_the_one_of_the_dice() {
    let file = File::new("same.chat", &recorded(&lively()));
    let expected = by_dice(&lively());
    assert!(expected.growth.chats_closed > 0 && expected.moves.no_chat > 0 && expected.moves.post > 0);
    for workers in [1, 2] {
        let stage = Stage::of(&lively(), &on(workers));
        // And a second world after the first.
        for _ in 0..2 {
            let mut turns = Vec::new();
            let driven = drive(&file.open(), &stage.address(), |turn| turns.push(turn)).unwrap();
            let report = stage.played();
            assert_eq!(report.counts(), expected, "{workers} workers");
            assert!(report.check.passed, "{:?}", report.check.problems);
            assert_eq!(driven.problems(), Vec::<String>::new());
            assert_eq!(driven.report["checksum"], *report.checksum);
            assert_eq!((driven.first_turn, driven.turns, driven.moves), (1, 12, 12 * 80));
            assert_eq!(driven.messages, report.messages_in_turns);
            assert_eq!(turns, (0..=12).collect::<Vec<_>>());
            // From outside it cannot take less than inside.
            assert!(driven.latency.max_ns >= driven.latency_inside.max_ns && driven.latency_inside.p50_ns > 0);
            assert_eq!(driven.latency_inside, report.turn_latency);
        }
    }
}

// GUARANTEE: ChatApp from outside
#[test]
fn each_built_in_scenario_can_be_driven() {
    for built_in in BUILT_IN {
        let mut scenario = built_in.scenario().unwrap();
        let shrink = f64::from(scenario.clients) / f64::from(scenario.clients.min(150));
        scenario.turns = scenario.turns.min(8);
        scenario.clients = scenario.clients.min(150);
        scenario.directories = scenario.directories.min(8);
        scenario.connectedness.befriend = (scenario.connectedness.befriend * shrink).min(100.0);
        scenario.work.iter_mut().for_each(|work| work.amount = work.amount.min(1000));
        let file = File::new(&format!("{}.chat", built_in.name), &recorded(&scenario));
        let stage = Stage::of(&scenario, &on(2));
        drive(&file.open(), &stage.address(), |_| ()).unwrap();
        assert_eq!(stage.played().counts(), by_dice(&scenario), "{}", built_in.name);
    }
}

/// The lively world, with graphs in its posts.
fn with_graphs() -> Scenario {
    Scenario { message: MessageShape { objects: 25, ..lively().message }, ..lively() }
}

// GUARANTEE: Graphs in ChatApp's posts
#[test]
fn a_driven_world_of_graphs_is_the_one_of_the_dice() {
    let text = recorded(&with_graphs());
    let file = File::new("graphs-of-dice.chat", &text);
    let expected = by_dice(&with_graphs());
    assert_eq!(expected.graphs.walked, 25 * expected.delivery.received);
    for workers in [1, 2] {
        let stage = Stage::of(&with_graphs(), &on(workers));
        let driven = drive(&file.open(), &stage.address(), |_| ()).unwrap();
        let report = stage.played();
        assert_eq!(report.counts(), expected, "{workers} workers");
        assert!(report.check.passed, "{:?}", report.check.problems);
        assert_eq!(driven.report["graphs"]["walked"], expected.graphs.walked);
    }
    // The recording equals that of the world without graphs, except for the number behind each post, and the scenario.
    let lines = |text: &str| text.lines().skip(2).map(str::to_owned).collect::<Vec<_>>();
    let named: Vec<String> = lines(&recorded(&lively()))
        .into_iter()
        .map(|line| if line.starts_with("post ") { format!("{line} 25") } else { line })
        .collect();
    assert_eq!(lines(&text), named);
    assert_ne!(text.lines().nth(1), recorded(&lively()).lines().nth(1));
}

#[test]
fn a_driver_may_post_graphs_of_any_size() {
    let Parts { header, .. } = Parts::of(&recorded(&lively()));
    let stage = Stage::of(&lively(), &on(2));
    let mut script = header;
    (0..80).for_each(|id| script += &format!("client {id} idle 0{}\n", if id == 0 { "" } else { " 0" }));
    script += "ready\nturn 1\nchat 0 5 6 7\nend 1\nturn 2\npost 0 1.0 0 0 1\npost 5 1.0 9 9 1000\npost 6 1.0 5 5\n";
    script += "post 7 1.0 5 5 0\nend 2\nclose\n";
    let mut hand = Hand::call(&stage);
    hand.say(script);
    let answers = hand.rest();
    assert_eq!(answers.lines().count(), 4, "{answers}");
    let report = stage.played();
    assert!(report.check.passed, "{:?}", report.check.problems);
    // To four members each.
    assert_eq!((report.delivery.received, report.graphs.walked), (16, 4 * 1001));
}

#[test]
fn a_simulated_world_can_be_driven() {
    let file = File::new("simulated.chat", &recorded(&lively()));
    let stage = Stage::of(&lively(), &Options { simulated: Some(7), ..on(2) });
    drive(&file.open(), &stage.address(), |_| ()).unwrap();
    assert_eq!(stage.played().counts(), by_dice(&lively()));
}

/// Parts of the recording of the lively world.
struct Parts {
    header: String,
    set_up: String,
    turns: Vec<String>,
}

impl Parts {
    fn of(text: &str) -> Parts {
        let (header, rest) = text.split_at(text.find("client ").unwrap());
        let (set_up, rest) = rest.split_at(rest.find("turn 1\n").unwrap());
        let mut turns: Vec<String> = rest.split_inclusive("end ").map(str::to_owned).collect();
        // `end N` belongs to the turn before; the number stands at the beginning of the next part.
        for at in (1..turns.len()).rev() {
            let (number, rest) = turns[at].split_once('\n').unwrap();
            let (number, rest) = (format!("{number}\n"), rest.to_owned());
            turns[at - 1] += &number;
            turns[at] = rest;
        }
        assert_eq!(turns.pop().unwrap(), "close\n");
        Parts { header: header.to_owned(), set_up: set_up.to_owned(), turns }
    }
}

/// Returns whether answers report the ends of the set-up and of the turns from the first one on.
trait ByTurns {
    fn eq_by_turns(self) -> bool;
}

impl<I: Iterator<Item = String>> ByTurns for I {
    fn eq_by_turns(mut self) -> bool {
        (0..).zip(&mut self).all(|(turn, answer): (u32, _)| answer.starts_with(&format!("done {turn} ")))
    }
}

#[test]
fn drivers_may_say_what_no_dice_would() {
    // Posts of different sizes, work and moves of their own: a driver is not bound to the scenario's knobs.
    let text = recorded(&lively());
    let Parts { header, .. } = Parts::of(&text);
    let stage = Stage::of(&lively(), &on(2));
    let play = |work: u32, size: u32| {
        let mut script = header.clone();
        for id in 0..80 {
            script += &if id == 0 { "client 0 idle 0\n".to_owned() } else { format!("client {id} compute {work} 0\n") };
        }
        script += "ready\nturn 1\nchat 0 5 6 7\nend 1\n";
        script += &format!("turn 2\npost 0 1.0 0 0\npost 5 1.0 {size} 200\npost 6 1.0 100000 7\nleave 7 1.0\nend 2\n");
        script += "turn 3\npost 6 1.0 3 3\nend 3\nclose\n";
        let mut hand = Hand::call(&stage);
        hand.say(script);
        let answers = hand.rest();
        assert_eq!(answers.lines().count(), 5, "{answers}");
        stage.played()
    };
    let report = play(3, 1);
    assert!(report.check.passed, "{:?}", report.check.problems);
    assert_eq!((report.turns, report.moves.post, report.moves.leave, report.moves.new_chat), (3, 4, 1, 1));
    // Three posts to four members, and one to the three that are left.
    assert_eq!((report.delivery.received, report.growth.memberships), (15, 3));
    assert_eq!(report.moves.nothing, 3 * 80 - 6);
    let (same, large, busy) = (play(3, 1).counts(), play(3, 2).counts(), play(4, 1).counts());
    assert_eq!(report.counts(), same);
    assert_eq!((large.messages, large.state_sum), (same.messages, same.state_sum));
    assert_ne!(large.delivery.received_sum, same.delivery.received_sum);
    assert_eq!((busy.messages, busy.delivery), (same.messages, same.delivery));
    assert_ne!(busy.state_sum, same.state_sum);
}

/// The recording that the guide shows is the one of the scenario that it shows.
#[test]
fn the_guide_shows_a_recording_of_its_scenario() {
    let guide = include_str!("../../../guide/src/chatapp.md");
    let block = |begins: &str| {
        let block = guide.split("```").find(|block| block.contains(begins)).unwrap();
        block.split_once('\n').unwrap().1
    };
    let scenario = Scenario::from_toml("tiny.toml", block("turns = 3")).unwrap();
    assert_eq!(block("playhouse-chatapp 1\nscenario"), recorded(&scenario));
}
