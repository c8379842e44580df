//! Connections of drivers: their beginnings, ends, and final messages.

use super::*;

#[test]
fn a_world_takes_one_driver_at_a_time_and_refuses_others() {
    let file = File::new("one.chat", &recorded(&lively()));
    let stage = Stage::of(&lively(), &on(2));
    let first = Hand::call(&stage);
    let second = Hand::call(&stage);
    assert_eq!(second.greeting, "error 0 another driver is connected; try again after its end");
    let error = drive(&file.open(), &stage.address(), |_| ()).unwrap_err();
    assert!(error.to_string().contains("the server refused: another driver is connected"), "{error}");
    drop(first);
    assert_eq!(stage.gone(), 0);
    drive(&file.open(), &stage.address(), |_| ()).unwrap();
    assert_eq!(stage.played().counts(), by_dice(&lively()));
}

// GUARANTEE: ChatApp from outside
#[test]
fn the_next_driver_continues_at_the_step_of_the_world() {
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
fn a_listener_that_is_no_server_is_recognised() {
    let file = File::new("no_server.chat", &recorded(&lively()));
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
        assert!(error.contains("not a server of this version") && error.contains(words), "{error}");
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

/// A driver sends `script`, receives this number of `answers`, and sends `last`. The server ends when `told` has happened. The
/// driver receives nothing before, and `heard` then.
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
fn a_server_ended_after_its_world_still_sends_the_driver_the_last_line() {
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
