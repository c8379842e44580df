//! `playhouse top`, as a user runs it.

mod program;

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::time::Duration;

use playhouse::prelude::*;
use program::{is_hang_up_ignored, playhouse, refused, run};

/// A theater in a process of its own, which ends with its test.
struct Host {
    process: Child,
    address: String,
}

impl Host {
    fn start(arguments: &[&str]) -> Host {
        let mut command = playhouse(&[&["theater", "--listen", "127.0.0.1:0", "--workers", "2"], arguments].concat());
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut first = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let address = first.trim_end().strip_prefix("listening at ").unwrap_or_else(|| panic!("{first:?}")).to_owned();
        Host { process, address }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _it_has_ended = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the text of one look at `address`.
fn top(address: &str, arguments: &[&str]) -> String {
    let (code, out, errors) = run(&[&["top", address, "--once", "--every", "0.3"], arguments].concat());
    assert_eq!((code, &*errors), (0, ""), "{out}");
    out
}

/// Returns the text of a look at a theater where nothing happens but looks. The theater shows them when it is looked at again within
/// some seconds, which it may take a few attempts to do.
fn asked_before(address: &str, arguments: &[&str]) -> String {
    for _ in 0..10 {
        let out = top(address, arguments);
        if out.contains("  Inspect ") {
            return out;
        }
    }
    panic!("it was never seen that it was looked at");
}

/// The columns of the line that begins with these.
fn line<'a>(out: &'a str, begins: &[&str]) -> Vec<&'a str> {
    let mut lines = out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines.find(|line| line.starts_with(begins)).unwrap_or_else(|| panic!("no line with {begins:?} in\n{out}"))
}

#[test]
fn a_theater_in_another_process_is_seen() {
    let host = Host::start(&["--cluster", "shop"]);
    let out = asked_before(&host.address, &["--cluster", "shop"]);
    let process = format!("process {}", host.process.id());
    assert!(out.contains(&format!("Theater {}, cluster \"shop\", {process}, up ", host.address)), "{out}");
    // One thing happens in the theater: a linked theater asks for its state.
    let asked = line(&out, &["Inspect", "Inspector"]);
    assert!(asked.last().unwrap().parse::<u64>().unwrap() >= 1, "{out}");
    line(&out, &["Inspector"]);
    assert!(out.contains("(does not listen)  linked"), "{out}");
    assert!(out.contains("dead letters 0, crashes 0, restarts 0"), "{out}");
    let workers = out.lines().skip_while(|line| *line != "Workers").take_while(|line| !line.is_empty()).count();
    // A title, headings, two workers, and the thread of the inspector.
    assert_eq!(workers, 2 + 2 + 1, "{out}");
}

#[derive(Default)]
struct Metronome {
    beats: u64,
}

#[actor]
impl Metronome {
    #[started]
    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.send_every(Duration::from_millis(5), Beat);
    }

    #[message(derive(Clone))]
    fn beat(&mut self) {
        self.beats += 1;
    }
}

#[test]
fn actors_and_messages_are_counted_and_linked_theaters_are_seen_too() {
    let there = Theater::builder().listen("127.0.0.1:0").inspected(true).start().unwrap();
    let address = there.address().unwrap().to_string();
    let host = Host::start(&["--join", &address]);
    there.system().spawn_with(SpawnOptions::new().name("left"), Metronome::default());
    there.system().spawn_with(SpawnOptions::new().name("right"), Metronome::default());
    // The first look finds who is linked.
    let out = top(&address, &[]);
    let beats = line(&out, &["Beat", "Metronome"]);
    // In 0.3 s each of the two has 60 ticks, one more at the edge, and at most one that has waited.
    let rate: f64 = beats[2].parse().unwrap();
    assert!(rate > 1.0 && rate <= 2.0 * 62.0 / 0.3, "{out}");
    assert!(beats.last().unwrap().parse::<u64>().unwrap() >= 2, "{out}");
    for name in ["left", "right"] {
        let actor = line(&out, &["Metronome", name]);
        assert!(actor[2].ends_with('%') && actor[3].parse::<f64>().unwrap() > 0.0, "{out}");
    }
    assert!(out.contains(&format!("\n  {address} ")) && out.contains(&format!("\n  {} ", host.address)), "{out}");
    assert!(out.contains(&format!("Theater {}, process {}", host.address, host.process.id())), "{out}");
    there.shutdown().unwrap();
}

#[test]
fn json_is_printed_once_or_for_each_look() {
    let host = Host::start(&["--cluster", "shop"]);
    let arguments = ["top", &host.address, "--cluster", "shop", "--every", "0.2", "--json"];
    let (code, out, errors) = run(&[&arguments[..], &["--once"]].concat());
    assert_eq!((code, &*errors), (0, ""), "{out}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let theater = &json["theaters"][0];
    assert_eq!((&theater["address"], &theater["cluster"]), (&host.address.clone().into(), &"shop".into()));
    assert_eq!((&theater["process"], &theater["migrations"]["in"]), (&host.process.id().into(), &0.into()));
    assert!(theater["uptime_seconds"].as_f64() > Some(0.0), "{out}");

    let mut process = playhouse(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    for line in lines.take(3) {
        let json: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(json["theaters"][0]["cluster"], "shop");
    }
    // Its reader is gone.
    assert_eq!(process.wait().unwrap().code(), Some(0));
}

#[test]
fn the_error_names_a_theater_that_cannot_be_inspected_and_the_cause() {
    let silent = Theater::builder().listen("127.0.0.1:0").start().unwrap();
    let address = silent.address().unwrap().to_string();
    let (code, out, errors) = run(&["top", &address]);
    assert_eq!((code, &*out), (1, ""));
    assert!(errors.contains(&address) && errors.contains("inspected(true)"), "{errors}");
    silent.shutdown().unwrap();

    // Nobody listens where somebody has listened until now.
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let (code, _, errors) = run(&["top", &nobody]);
    assert_eq!(code, 1);
    assert!(errors.starts_with("error: ") && errors.contains(&nobody), "{errors}");
}

// GUARANTEE: Observation needs permission
#[test]
fn a_viewer_without_the_clusters_credentials_is_refused() {
    let host = Host::start(&["--cluster", "one"]);
    let (code, out, errors) = run(&["top", &host.address, "--cluster", "two"]);
    assert_eq!((code, &*out), (1, ""));
    assert!(errors.contains(&host.address) && errors.contains("\"one\"") && errors.contains("\"two\""), "{errors}");

    let folder = std::env::temp_dir().join(format!("playhouse-top-{}", std::process::id()));
    let [ours, theirs] = ["ours", "theirs"].map(|name| folder.join(name).display().to_string());
    for folder in [&ours, &theirs] {
        assert_eq!(run(&["certificates", folder]).0, 0);
    }
    let (one, two, foe) = (format!("{ours}/theater-1"), format!("{ours}/theater-2"), format!("{theirs}/theater-1"));
    let host = Host::start(&["--tls", &one]);
    for (arguments, words) in [(vec!["--tls", &*foe], "another CA"), (vec![], "requires TLS")] {
        let (code, out, errors) = run(&[&["top", &host.address], &arguments[..]].concat());
        assert_eq!((code, &*out), (1, ""), "{errors}");
        assert!(errors.contains(words), "{errors}");
    }
    line(&asked_before(&host.address, &["--tls", &two]), &["Inspect", "Inspector"]);
    std::fs::remove_dir_all(folder).unwrap();
}

/// Makes a terminal: the end of the test, and that of the program.
#[cfg(unix)]
fn terminal() -> (std::os::fd::OwnedFd, std::os::fd::OwnedFd) {
    use rustix::fs::{Mode, OFlags};
    use rustix::{fs, pty};

    let ours = pty::openpt(pty::OpenptFlags::RDWR | pty::OpenptFlags::NOCTTY).unwrap();
    // The program must not keep this end open itself.
    rustix::io::fcntl_setfd(&ours, rustix::io::FdFlags::CLOEXEC).unwrap();
    pty::grantpt(&ours).unwrap();
    pty::unlockpt(&ours).unwrap();
    let name = pty::ptsname(&ours, Vec::new()).unwrap();
    let theirs = fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    (ours, theirs)
}

// GUARANTEE: The terminal is restored
/// On a terminal of its own, which the test looks at as it is used and after the program was ended by others.
#[cfg(unix)]
#[test]
fn the_terminal_is_given_back_when_the_program_is_ended() {
    use std::fs::File;
    use std::io::Read;

    use rustix::event::{self, PollFd, PollFlags, Timespec};
    use rustix::process::{Pid, Signal, kill_process};
    use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

    let host = Host::start(&[]);
    for (signal, code) in [(Some(Signal::TERM), 0), (Some(Signal::HUP), 0), (Some(Signal::INT), 130), (None, 130)] {
        if signal == Some(Signal::HUP) && is_hang_up_ignored() {
            continue;
        }
        let (ours, theirs) = terminal();
        tcsetwinsize(&theirs, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let before = tcgetattr(&theirs).unwrap().local_modes;
        assert!(before.contains(LocalModes::ECHO | LocalModes::ICANON));

        let end = || Stdio::from(theirs.try_clone().unwrap());
        let mut command = playhouse(&["top", &host.address]);
        let mut program = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        let mut screen = File::from(ours);
        let keyboard = screen.try_clone().unwrap();
        let mut shown = Vec::new();
        let mut read = |until: &str| {
            while !String::from_utf8_lossy(&shown).contains(until) {
                let mut ready = [PollFd::new(&screen, PollFlags::IN)];
                let limit = Timespec { tv_sec: 60, tv_nsec: 0 };
                assert_eq!(event::poll(&mut ready, Some(&limit)).unwrap(), 1, "{:?}", String::from_utf8_lossy(&shown));
                let mut some = [0; 4096];
                let count = screen.read(&mut some).unwrap();
                shown.extend_from_slice(&some[..count]);
            }
        };
        // The program has taken the terminal, and has drawn.
        read("\x1b[?1049h");
        read(&host.address);
        assert!(!tcgetattr(&theirs).unwrap().local_modes.intersects(LocalModes::ECHO | LocalModes::ICANON));

        match signal {
            Some(signal) => kill_process(Pid::from_child(&program), signal).unwrap(),
            // The user presses Ctrl-C.
            None => assert_eq!(rustix::io::write(&keyboard, b"\x03").unwrap(), 1),
        }
        assert_eq!(program.wait().unwrap().code(), Some(code));
        assert_eq!(tcgetattr(&theirs).unwrap().local_modes, before);
        // Something to read in any case, behind what it has written.
        rustix::io::write(&theirs, b"end of it").unwrap();
        read("end of it");
        let shown = String::from_utf8_lossy(&shown);
        assert!(shown.contains("\x1b[?1049l"), "the other screen is still shown");
        assert!(shown.rfind("\x1b[?25h") > shown.rfind("\x1b[?25l"), "the cursor is still hidden");
    }
}

// GUARANTEE: The terminal is restored
/// A stopped terminal takes no output, and the program waits to write. A second signal ends it nevertheless.
#[cfg(unix)]
#[test]
fn two_signals_end_the_program_on_a_stopped_terminal() {
    use rustix::process::{Pid, Signal, kill_process};
    use rustix::termios::{Action, tcflow, tcgetattr};

    let host = Host::start(&[]);
    let (_ours, theirs) = terminal();
    let before = tcgetattr(&theirs).unwrap().local_modes;
    let end = || Stdio::from(theirs.try_clone().unwrap());
    let mut command = playhouse(&["top", &host.address]);
    let mut program = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
    while tcgetattr(&theirs).unwrap().local_modes == before {
        std::thread::yield_now();
    }
    tcflow(&theirs, Action::OOff).unwrap();
    // Two signals of one kind might be one.
    for signal in [Signal::TERM, Signal::INT] {
        kill_process(Pid::from_child(&program), signal).unwrap();
    }
    let code = program.wait().unwrap().code();
    assert!(code == Some(130) || code == Some(143), "{code:?}");
    assert_eq!(tcgetattr(&theirs).unwrap().local_modes, before);
    tcflow(&theirs, Action::OOn).unwrap();
}

// GUARANTEE: Output may be closed or full
/// A terminal window is closed, and no signal says so.
#[cfg(unix)]
#[test]
fn the_program_ends_when_its_terminal_is_gone() {
    use std::time::{Duration, Instant};

    use rustix::termios::tcgetattr;

    let host = Host::start(&[]);
    let (ours, theirs) = terminal();
    let before = tcgetattr(&theirs).unwrap().local_modes;
    let end = || Stdio::from(theirs.try_clone().unwrap());
    let mut command = playhouse(&["top", &host.address]);
    let mut program = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
    while tcgetattr(&theirs).unwrap().local_modes == before {
        std::thread::yield_now();
    }
    drop((ours, theirs, command));
    let deadline = Instant::now() + Duration::from_secs(60);
    let ended = loop {
        if let Some(status) = program.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            program.kill().unwrap();
            panic!("it goes on without its terminal");
        }
        std::thread::yield_now();
    };
    assert_eq!(ended.code(), Some(0));
}

#[test]
fn wrong_arguments_are_refused() {
    refused(&["top"], &["HOST:PORT"]);
    refused(&["top", "here"], &["'here'", "host:port"]);
    refused(&["top", "127.0.0.1:1", "--every", "0"], &["'0'", "from 0.2 to 60"]);
    refused(&["top", "127.0.0.1:1", "--tls", "no/certificate"], &["no/ca.pem: "]);
    refused(&["top", "127.0.0.1:1", "--tls", "no/certificate", "--plaintext"], &["'--plaintext'"]);
}
