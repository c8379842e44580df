//! Worlds that are driven over TCP by a recording: the same as those of dice, whatever happens to who drives.

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
        message: MessageShape { size: 33, history: 2 },
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

/// A recording in a file that is there while its test runs.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> File {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, text).unwrap();
        File(path)
    }

    fn open(&self) -> Recording {
        Recording::open(&self.0).unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A server, and what happens there.
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

    /// Waits until the one who drives has gone, and the next may come: what the world waits for then.
    fn gone(&self) -> u32 {
        loop {
            if let Event::Gone(_, next) = self.events.recv().unwrap() {
                return next;
            }
        }
    }
}

/// Somebody who drives by hand.
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
        // Who is refused may not be able to say all of it.
        let _ = self.stream.write_all(bytes.as_ref());
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Says no more, and hears what is answered until the connection ends.
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
    assert_eq!((text.len(), sum), (14_069, 14_917_895_624_027_748_701));
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

#[test]
fn what_is_wrong_is_refused_with_what_and_where_and_changes_nothing() {
    let text = recorded(&lively());
    let Parts { header, set_up, turns } = Parts::of(&text);
    let stage = Stage::of(&lively(), &on(2));
    let refused = |next: &str, said: &[u8], words: &[&str]| {
        let mut hand = Hand::call(&stage);
        assert!(hand.greeting.contains(next), "{}", hand.greeting);
        hand.say(said);
        let answers = hand.rest();
        let last = answers.lines().last().unwrap_or_default();
        assert!(last.starts_with("error "), "of {:?}: {answers:?}", String::from_utf8_lossy(said));
        for word in words {
            assert!(last.contains(word), "no {word:?} in {last:?}, of {:?}", String::from_utf8_lossy(said));
        }
        loop {
            if let Event::Refused(..) = stage.events.recv().unwrap() {
                break;
            }
        }
    };
    let other = recorded(&Scenario { seed: 4, name: "other".to_owned(), ..lively() });
    let other_header = Parts::of(&other).header;

    // Before the set-up.
    let wait = "next 0";
    refused(wait, b"GET / HTTP/1.1\r\n\r\n", &["error 1 ", "\"GET / HTTP/1.1\\r\"", "\"playhouse-chatapp 1\""]);
    refused(wait, b"playhouse-chatapp 2\n", &["error 1 ", "\"playhouse-chatapp 2\"", "\"playhouse-chatapp 1\""]);
    refused(wait, &[0xff, 0xfe, b'\n'], &["error 1 ", "is not text"]);
    refused(wait, &vec![b'x'; LINE_BYTES_MAX + 10], &["error 1 ", "too long", "at most 1048576 bytes"]);
    refused(wait, b"playhouse-chatapp 1", &["error 1 ", "ends in the middle of a line"]);
    refused(
        wait,
        b"playhouse-chatapp 1\nscenario small\n",
        &["error 2 ", "scenario 0xFINGERPRINT", "\"scenario small\""],
    );
    refused(wait, other_header.as_bytes(), &["error 2 ", "is for scenario other (0x", "here scenario lively (0x"]);
    let with = |rest: &str| format!("{header}{rest}").into_bytes();
    refused(wait, &with("turn 1\n"), &["error 3 ", "turn 1 is out of order", "the set-up is next"]);
    refused(wait, &with("close\n"), &["error 3 ", "close is out of order"]);
    refused(wait, &with("client 1 idle 0\n"), &["error 3 ", "client 1 is out of order: client 0 is next"]);
    refused(wait, &with("client 0 idle 0\nready\n"), &["error 4 ", "too early: client 1 is missing of 80"]);
    refused(wait, &with("client 0 idle 0\n"), &["in the middle of the set-up", "nothing of it was played"]);
    refused(wait, &with("client 80 idle 0\n"), &["error 3 ", "no client 80; there are clients from 0 to 79"]);
    refused(wait, &with("client 0 idle 0 0\n"), &["error 3 ", "client 0 cannot befriend 0: friends are older"]);
    refused(wait, &with("client 0 sleep 5\n"), &["error 3 ", "\"sleep 5\" is no work", "idle|compute|memory"]);
    refused(wait, &with("client 0 memory 900000000\n"), &["error 3 ", "too much", "536870912"]);
    refused(wait, &with("client 0 compute -1\n"), &["error 3 ", "\"-1\" is no number"]);
    let thrice = "client 0 idle 0\nclient 1 idle 0\nclient 2 idle 0 1 0\n";
    refused(wait, &with(thrice), &["error 5 ", "ids rise: 0 cannot come behind 1"]);

    // The set-up, and turns until somebody is in a chat.
    let mut hand = Hand::call(&stage);
    hand.say(with(&set_up));
    assert!(hand.answer().starts_with("done 0 "));
    for (turn, text) in (1..).zip(&turns[..3]) {
        hand.say(text);
        assert!(hand.answer().starts_with(&format!("done {turn} ")));
    }
    drop(hand);
    assert_eq!(stage.gone(), 4);

    // Before the fourth turn.
    let wait = "next 4";
    refused(wait, &with(&set_up), &["error 3 ", "a set-up is out of order: turn 4 is next"]);
    refused(wait, &with(&turns[2]), &["error 3 ", "turn 3 is out of order: turn 4 is next"]);
    refused(wait, &with(&turns[4]), &["error 3 ", "turn 5 is out of order: turn 4 is next"]);
    refused(wait, &with("sit down\n"), &["error 3 ", "\"sit down\" is none of client, turn, close"]);
    let fourth = |rest: &str| with(&format!("turn 4\n{rest}"));
    refused(wait, &fourth("none 80\nend 4\n"), &["error 4 ", "no client 80", "\"none 80\""]);
    refused(wait, &fourth("none 4294967296\n"), &["error 4 ", "\"4294967296\" is no number that can be there"]);
    refused(wait, &fourth("none 7\nnone 7\nend 4\n"), &["error 5 ", "each once: 7 cannot come behind 7"]);
    refused(wait, &fourth("none 7\nnone 5\nend 4\n"), &["error 5 ", "by rising id", "5 cannot come behind 7"]);
    refused(wait, &fourth("none 7 8\nend 4\n"), &["error 4 ", "\"8\" is too much: must be \"none ID\""]);
    refused(wait, &fourth("dance 7\n"), &["error 4 ", "none of chat, leave, post, none, end", "\"dance 7\""]);
    refused(wait, &fourth("leave 7 9.9\n"), &["error 4 ", "client 7 was not in chat 9.9 when turn 4 began"]);
    refused(wait, &fourth("leave 7 9\n"), &["error 4 ", "\"9\" is no chat", "leave ID TURN.CREATOR"]);
    refused(wait, &fourth("post 7 9.9 5 1\n"), &["error 4 ", "client 7 was not in chat 9.9"]);
    refused(wait, &fourth("post 7 9.9 16777217 1\n"), &["error 4 ", "from 0 to 16777216 bytes, not 16777217"]);
    refused(wait, &fourth("post 7 9.9 5 256\n"), &["error 4 ", "\"256\" is no number that can be there"]);
    refused(wait, &fourth("chat 7 7\n"), &["error 4 ", "client 7 cannot invite 7, who is no friend of it"]);
    refused(wait, &fourth("end 5\n"), &["error 4 ", "end 5 is out of order: this is turn 4"]);
    // Half of it, and all but its end: what is right in it is not played either.
    let half = &turns[3][..turns[3].len() / 2];
    refused(wait, &with(&half[..=half.rfind('\n').unwrap()]), &["in the middle of turn 4", "nothing of it was played"]);
    refused(wait, &with(half), &["ends in the middle of"]);
    refused(wait, &with(turns[3].trim_end()), &["in the middle of a line, behind \"end 4\""]);

    // Nothing of all that has changed the world.
    let mut hand = Hand::call(&stage);
    hand.say(with(""));
    for (turn, text) in (4..).zip(&turns[3..]) {
        hand.say(text);
        assert!(hand.answer().starts_with(&format!("done {turn} ")));
    }
    hand.say("turn 13\n");
    let answer = hand.rest();
    assert!(answer.starts_with("error ") && answer.contains("turn 13 is out of order: all 12 turns"), "{answer}");
    let mut hand = Hand::call(&stage);
    assert!(hand.greeting.contains("next 13"), "{}", hand.greeting);
    hand.say(with("close\n"));
    assert!(hand.rest().starts_with("report {"));
    assert_eq!(stage.played().counts(), by_dice(&lively()));
}

/// A line is given up when it has become too long, and not when it ends.
#[test]
fn a_line_without_an_end_is_not_waited_for() {
    let stage = Stage::of(&lively(), &on(1));
    let mut hand = Hand::call(&stage);
    hand.say(vec![b'x'; LINE_BYTES_MAX + 1]);
    assert!(hand.answer().starts_with("error 1 the line is too long"));
}

#[test]
fn there_is_one_driver_at_a_time_and_others_are_told() {
    let file = File::new("one.chat", &recorded(&lively()));
    let stage = Stage::of(&lively(), &on(2));
    let first = Hand::call(&stage);
    let second = Hand::call(&stage);
    assert_eq!(second.greeting, "error 0 another driver is here; there is room when it has gone");
    let error = drive(&file.open(), &stage.address(), |_| ()).unwrap_err();
    assert!(error.to_string().contains("the server refused: another driver is here"), "{error}");
    drop(first);
    assert_eq!(stage.gone(), 0);
    drive(&file.open(), &stage.address(), |_| ()).unwrap();
    assert_eq!(stage.played().counts(), by_dice(&lively()));
}

#[test]
fn who_comes_next_goes_on_where_the_world_stands() {
    let text = recorded(&lively());
    let file = File::new("next.chat", &text);
    let Parts { header, set_up, turns } = Parts::of(&text);
    let stage = Stage::of(&lively(), &on(2));
    let mut hand = Hand::call(&stage);
    hand.say(format!("{header}{set_up}{}{}", turns[0], turns[1]));
    assert!((0..3).map(|_| hand.answer()).eq_by_turns());
    // Lost in the middle of a turn.
    hand.say(&turns[2][..turns[2].len() - 3]);
    drop(hand);
    loop {
        match stage.events.recv().unwrap() {
            Event::Refused(_, what) => break assert!(what.contains("ends in the middle of"), "{what}"),
            Event::Came(..) => {}
            other => panic!("{other:?}"),
        }
    }
    let driven = drive(&file.open(), &stage.address(), |_| ()).unwrap();
    assert_eq!((driven.first_turn, driven.turns, driven.moves), (3, 10, 800));
    assert_eq!(stage.played().counts(), by_dice(&lively()));
}

/// Whether answers say that the set-up and the turns from the first one on have ended.
trait ByTurns {
    fn eq_by_turns(self) -> bool;
}

impl<I: Iterator<Item = String>> ByTurns for I {
    fn eq_by_turns(mut self) -> bool {
        (0..).zip(&mut self).all(|(turn, answer): (u32, _)| answer.starts_with(&format!("done {turn} ")))
    }
}

#[test]
fn a_line_that_is_refused_is_named_as_in_the_recording() {
    // What only the server can know of: the recording is right in itself, and the world was driven otherwise before.
    let text = recorded(&lively());
    let file = File::new("otherwise.chat", &text);
    let Parts { header, set_up, .. } = Parts::of(&text);
    let stage = Stage::of(&lively(), &on(1));
    let mut hand = Hand::call(&stage);
    hand.say(format!("{header}{set_up}turn 1\nend 1\n"));
    assert!((0..2).map(|_| hand.answer()).eq_by_turns());
    drop(hand);
    assert_eq!(stage.gone(), 2);
    // Nobody has started a chat in turn 1 there.
    let refused = text.lines().position(|line| line.contains(" 1.")).unwrap() + 1;
    match drive(&file.open(), &stage.address(), |_| ()).unwrap_err() {
        DriveError::Refused(line, what) => {
            assert_eq!(line as usize, refused, "{what}");
            assert!(what.contains("was not in chat 1."), "{what}");
        }
        error => panic!("{error}"),
    }
}

#[test]
fn a_world_whose_actors_fail_is_said_to_have_stopped_and_another_one_is_opened() {
    let file = File::new("fault.chat", &recorded(&lively()));
    for (kind, words) in [(FaultKind::Lose, "everything stopped in turn 7 of 12"), (FaultKind::Crash, "has ended")] {
        let fault = Fault { turn: 7, kind };
        let stage = Stage::of(&lively(), &Options { fault: Some(fault), ..on(2) });
        let mut turns = 0;
        let error = drive(&file.open(), &stage.address(), |turn| turns = turn).unwrap_err().to_string();
        assert!(error.contains("the world has stopped: ") && error.contains(words), "{error}");
        assert_eq!(turns, 6);
        let mut lost = false;
        loop {
            match stage.events.recv().unwrap() {
                Event::Lost(why) => lost = why.contains(words),
                Event::Refused(..) => break,
                _ => {}
            }
        }
        assert!(lost);
        assert!(Hand::call(&stage).greeting.contains("next 0"));
    }
}

#[test]
fn a_recording_of_another_scenario_is_not_sent() {
    let file = File::new("another.chat", &recorded(&Scenario { seed: 9, name: "another".to_owned(), ..lively() }));
    let stage = Stage::of(&lively(), &on(1));
    let error = drive(&file.open(), &stage.address(), |_| ()).unwrap_err();
    assert!(matches!(&error, DriveError::OtherScenario { .. }), "{error}");
    let said = error.to_string();
    assert!(said.contains("of scenario another (0x") && said.contains("plays scenario lively (0x"), "{said}");
    assert_eq!(stage.gone(), 0);
}

#[test]
fn who_is_no_server_is_told_apart() {
    let file = File::new("stranger.chat", &recorded(&lively()));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let greet = |greeting: &'static [u8]| {
        let listener = listener.try_clone().unwrap();
        std::thread::spawn(move || listener.accept().unwrap().0.write_all(greeting).unwrap())
    };
    for (greeting, words) in [
        (&b"SSH-2.0-OpenSSH_9.6\r\n"[..], "got \"SSH-2.0-OpenSSH_9.6\\r\""),
        (b"playhouse-chatapp 1 0x12 clients 3\n", "got \"playhouse-chatapp 1 0x12 clients 3\""),
        (b"playhouse-chatapp 9 0x12 clients 3 turns 1 next 0 x\n", "got \"playhouse-chatapp 9"),
        (b"", "got \"nothing\""),
    ] {
        let greeted = greet(greeting);
        let error = drive(&file.open(), &address, |_| ()).unwrap_err().to_string();
        assert!(error.contains("is no server of this version") && error.contains(words), "{error}");
        greeted.join().unwrap();
    }
    drop(listener);
    let error = drive(&file.open(), &address, |_| ()).unwrap_err();
    assert!(matches!(error, DriveError::Connect(_)), "{error}");
}

#[test]
fn a_connection_that_is_lost_is_said_with_its_turn() {
    let text = recorded(&lively());
    let file = File::new("lost.chat", &text);
    let header = text.lines().nth(1).unwrap().strip_prefix("scenario ").unwrap().replace(" lively", " next 0 lively");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        writeln!(stream, "playhouse-chatapp 1 {header}").unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap()).lines();
        for line in lines.map_while(Result::ok) {
            match &*line {
                "ready" => writeln!(stream, "done 0 1 1").unwrap(),
                "end 1" => writeln!(stream, "done 1 1 1").unwrap(),
                "end 2" => break,
                _ => {}
            }
        }
    });
    let error = drive(&file.open(), &address, |_| ()).unwrap_err();
    assert_eq!(error.to_string(), "the connection was lost in turn 2");
    server.join().unwrap();
}

#[test]
fn bad_files_are_refused_with_their_line() {
    let text = recorded(&lively());
    let lines: Vec<&str> = text.lines().collect();
    let wrong = |name: &str, text: &str, words: &[&str]| {
        let file = File::new(name, text);
        let error = Recording::open(&file.0).unwrap_err().to_string();
        let path = file.0.display().to_string();
        for word in [&*path].iter().chain(words) {
            assert!(error.contains(word), "no {word:?} in {error:?}");
        }
    };
    wrong("empty.chat", "", &["is empty"]);
    wrong("magic.chat", "turns = 5\n", &[":1: is no recording of this format", "\"turns = 5\""]);
    wrong("no-scenario.chat", "playhouse-chatapp 1\n", &[":2: must be \"scenario 0xFINGERPRINT"]);
    let cut = |at: usize| format!("{}\n", lines[..at].join("\n"));
    let first_turn = lines.iter().position(|line| *line == "turn 1").unwrap();
    wrong("in-set-up.chat", &cut(first_turn - 2), &["in the middle of the set-up"]);
    wrong("no-turn.chat", &cut(first_turn), &[&format!(":{}: ends without close, after turn 0 of 12", first_turn + 1)]);
    wrong("in-turn.chat", &cut(first_turn + 2), &[&format!(":{}: ends in the middle of turn 1", first_turn + 3)]);
    wrong("no-close.chat", &cut(lines.len() - 1), &["ends without close, after turn 12 of 12"]);
    wrong("in-line.chat", &text[..text.len() - 3], &["ends in the middle of a line, behind \"clo\""]);
    wrong("early.chat", &format!("{}close\n", cut(first_turn)), &["closes after turn 0 of 12"]);
    wrong("more.chat", &format!("{text}turn 13\n"), &["nothing comes behind close"]);
    let changed = |from: &str, to: &str| text.replacen(from, to, 1);
    wrong("twice.chat", &changed("turn 2\n", "turn 1\n"), &["turn 1 is out of order: turn 2 is next"]);
    wrong(
        "client.chat",
        &changed("turn 1\n", "turn 1\nnone 80\n"),
        &[&format!(":{}: ", first_turn + 2), "no client 80"],
    );
    wrong("nobody.chat", &changed("clients 80", "clients 0"), &[":2: must be \"scenario", "clients 0 turns 12"]);
    let error = Recording::open(Path::new("no/such.chat")).unwrap_err().to_string();
    assert!(error.starts_with("no/such.chat: cannot be read: "), "{error}");
    let error = Recording::open(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap_err().to_string();
    assert!(error.ends_with("is a directory, not a recording"), "{error}");
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
    let guide = include_str!("../../guide/chatapp.md");
    let block = |begins: &str| {
        let block = guide.split("```").find(|block| block.contains(begins)).unwrap();
        block.split_once('\n').unwrap().1
    };
    let scenario = Scenario::from_toml("tiny.toml", block("turns = 3")).unwrap();
    assert_eq!(block("playhouse-chatapp 1\nscenario"), recorded(&scenario));
}

/// Who drives says `script`, is given so many `answers`, and says `last`. The server is ended when it tells that `told` has happened.
/// The driver hears nothing before, and `heard` then.
fn ended_when(told: fn(&Event) -> bool, options: &Options, script: &str, answers: usize, last: &str, heard: &str) {
    let (say, said) = mpsc::channel();
    let (go, goes_on) = mpsc::channel();
    let goes_on = Mutex::new(goes_on);
    let observe = move |event| {
        if told(&event) {
            say.send(()).unwrap();
            goes_on.lock().unwrap().recv().unwrap();
        }
    };
    let server = Server::start("127.0.0.1:0", &lively(), options, observe).unwrap();
    let mut hand = Hand::at(&server);
    hand.say(script);
    assert!((0..answers).map(|_| hand.answer()).eq_by_turns());
    hand.say(last);
    said.recv().unwrap();
    let ends = std::thread::spawn(|| drop(server));
    hand.stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let early = hand.stream.peek(&mut [0]);
    assert!(early.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "{early:?}");
    hand.stream.set_read_timeout(None).unwrap();
    go.send(()).unwrap();
    let rest = hand.rest();
    assert!(rest.contains(heard), "{rest}");
    ends.join().unwrap();
}

#[test]
fn who_ends_the_server_when_a_world_has_ended_leaves_the_driver_its_last_word() {
    let text = recorded(&lively());
    let script = text.strip_suffix("close\n").unwrap();
    ended_when(|event| matches!(event, Event::Played(_)), &on(2), script, 13, "close\n", "report {");
    let fault = Some(Fault { turn: 7, kind: FaultKind::Lose });
    let options = Options { fault, ..on(2) };
    let turn = script.find("turn 7\n").unwrap();
    let lost = |event: &Event| matches!(event, Event::Lost(_));
    ended_when(lost, &options, &script[..turn], 7, &script[turn..], "the world has stopped: ");
}

#[test]
fn a_server_that_is_dropped_ends_its_connections() {
    let stage = Stage::of(&lively(), &on(1));
    let hand = Hand::call(&stage);
    drop(stage);
    assert_eq!(hand.rest(), "");
}
