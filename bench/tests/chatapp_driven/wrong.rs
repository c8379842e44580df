//! Errors are refused, by the server or before, with their description and line.

use super::*;

// GUARANTEE: ChatApp from outside
#[test]
fn a_wrong_command_is_refused_with_its_position_and_changes_nothing() {
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
    refused(
        wait,
        other_header.as_bytes(),
        &["error 2 ", "is for scenario other (0x", "the server plays scenario lively (0x"],
    );
    let with = |rest: &str| format!("{header}{rest}").into_bytes();
    refused(wait, &with("turn 1\n"), &["error 3 ", "turn 1 is out of order", "the set-up is next"]);
    refused(wait, &with("close\n"), &["error 3 ", "close is out of order"]);
    refused(wait, &with("client 1 idle 0\n"), &["error 3 ", "client 1 is out of order: client 0 is next"]);
    refused(wait, &with("client 0 idle 0\nready\n"), &["error 4 ", "too early: client 1 is missing of 80"]);
    refused(wait, &with("client 0 idle 0\n"), &["in the middle of the set-up", "nothing of it was played"]);
    refused(wait, &with("client 80 idle 0\n"), &["error 3 ", "no client 80; there are clients from 0 to 79"]);
    refused(wait, &with("client 0 idle 0 0\n"), &["error 3 ", "client 0 cannot befriend 0: friends are older"]);
    refused(
        wait,
        &with("client 0 sleep 5\n"),
        &["error 3 ", "\"sleep 5\" is not a kind of work", "idle|compute|memory"],
    );
    refused(wait, &with("client 0 memory 900000000\n"), &["error 3 ", "too much", "536870912"]);
    refused(wait, &with("client 0 compute -1\n"), &["error 3 ", "\"-1\" is not an allowed number"]);
    let thrice = "client 0 idle 0\nclient 1 idle 0\nclient 2 idle 0 1 0\n";
    refused(wait, &with(thrice), &["error 5 ", "ids rise: 0 cannot come behind 1"]);

    // The set-up, and turns until some client is in a chat.
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
    refused(wait, &fourth("none 4294967296\n"), &["error 4 ", "\"4294967296\" is not an allowed number"]);
    refused(wait, &fourth("none 7\nnone 7\nend 4\n"), &["error 5 ", "each once: 7 cannot come behind 7"]);
    refused(wait, &fourth("none 7\nnone 5\nend 4\n"), &["error 5 ", "by rising id", "5 cannot come behind 7"]);
    refused(wait, &fourth("none 7 8\nend 4\n"), &["error 4 ", "\"8\" is too much: must be \"none ID\""]);
    refused(wait, &fourth("dance 7\n"), &["error 4 ", "none of chat, leave, post, none, end", "\"dance 7\""]);
    refused(wait, &fourth("leave 7 9.9\n"), &["error 4 ", "client 7 was not in chat 9.9 when turn 4 began"]);
    refused(wait, &fourth("leave 7 9\n"), &["error 4 ", "\"9\" is not a chat", "leave ID TURN.CREATOR"]);
    refused(wait, &fourth("post 7 9.9 5 1\n"), &["error 4 ", "client 7 was not in chat 9.9"]);
    refused(wait, &fourth("post 7 9.9 16777217 1\n"), &["error 4 ", "from 0 to 16777216 bytes, not 16777217"]);
    refused(wait, &fourth("post 7 9.9 5 256\n"), &["error 4 ", "\"256\" is not an allowed number"]);
    refused(wait, &fourth("post 7 9.9 5 1 1000001\n"), &["error 4 ", "from 0 to 1000000 objects, not 1000001"]);
    refused(
        wait,
        &fourth("post 7 9.9 5 1 many\n"),
        &["error 4 ", "\"many\" is not an allowed number", "BYTES BYTE [OBJECTS]"],
    );
    refused(wait, &fourth("post 7 9.9 5 1 2 3\n"), &["error 4 ", "\"3\" is too much", "BYTES BYTE [OBJECTS]"]);
    refused(wait, &fourth("chat 7 7\n"), &["error 4 ", "client 7 cannot invite 7, which is not its friend"]);
    refused(wait, &fourth("end 5\n"), &["error 4 ", "end 5 is out of order: this is turn 4"]);
    // Half of it, and all except its end: its correct part is not played either.
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
fn a_line_that_is_refused_is_named_as_in_the_recording() {
    // Errors that only the server can notice: the recording has none in itself, and the world was driven in another way
    // before.
    let text = recorded(&lively());
    let file = File::new("otherwise.chat", &text);
    let Parts { header, set_up, .. } = Parts::of(&text);
    let stage = Stage::of(&lively(), &on(1));
    let mut hand = Hand::call(&stage);
    hand.say(format!("{header}{set_up}turn 1\nend 1\n"));
    assert!((0..2).map(|_| hand.answer()).eq_by_turns());
    drop(hand);
    assert_eq!(stage.gone(), 2);
    // No client has started a chat in turn 1 of this world.
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
fn bad_files_are_refused_with_their_line() {
    let text = recorded(&lively());
    let lines: Vec<&str> = text.lines().collect();
    let wrong = |name: &str, text: &str, words: &[&str]| {
        let file = File::new(name, text);
        let error = file.read().unwrap_err().to_string();
        let path = file.0.display().to_string();
        for word in [&*path].iter().chain(words) {
            assert!(error.contains(word), "no {word:?} in {error:?}");
        }
    };
    wrong("empty.chat", "", &["is empty"]);
    wrong("magic.chat", "turns = 5\n", &[":1: is not a recording of this format", "\"turns = 5\""]);
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
}
