//! Feeds a recording to a server, and measures from outside.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Seek, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::ledger::Ledger;
use super::script::{Bad, Block, FORMAT, Header, Lines, Script, excerpt};
use crate::report::latency::Latency;

/// A recording in a file, which was read to its end and is right: all that it holds could be played.
#[derive(Debug)]
pub struct Recording {
    file: File,
    path: PathBuf,
    header: Header,
    moves: u64,
}

/// The results of driving a world.
#[derive(Clone, Debug, Serialize)]
pub struct Drive {
    /// The scenario's name, as the server calls it.
    pub scenario: String,
    /// The first turn that was driven: others may have driven those before.
    pub first_turn: u32,
    /// Turns that were driven.
    pub turns: u32,
    /// Moves of clients in those: each client makes one per turn.
    pub moves: u64,
    /// Messages that those took.
    pub messages: u64,
    /// Seconds from the first byte of a turn to its answer, of all turns together.
    pub seconds: f64,
    /// Moves per second.
    pub moves_per_second: f64,
    /// From the first sent byte of a turn to the answer about its end: with the network, and with the server's reading and
    /// checks of the turn.
    pub latency: Latency,
    /// The world's own measurement, from the start of the turn to its end.
    pub latency_inside: Latency,
    /// The server's report.
    pub report: serde_json::Value,
}

impl Drive {
    /// The error in the driven world, as its server reports it; `None` if the check passed.
    pub fn problems(&self) -> Vec<String> {
        let check = &self.report["check"];
        match (check["passed"].as_bool(), check["problems"].as_array()) {
            (Some(true), _) => Vec::new(),
            (_, Some(problems)) if !problems.is_empty() => {
                problems.iter().map(|problem| problem.as_str().unwrap_or_default().to_owned()).collect()
            }
            _ => vec!["the server's report does not say that all is well".to_owned()],
        }
    }
}

/// The reason why a world was not driven to its end. The server's world keeps the state after the last answered turn, and the
/// next driver goes on from it.
#[derive(Debug)]
#[non_exhaustive]
pub enum DriveError {
    /// The recording cannot be used; nothing was sent.
    Recording {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1; 0 where it is about none.
        line: u64,
        /// The description of the error.
        what: String,
    },
    /// No server answers at the address.
    Connect(io::Error),
    /// The server plays another scenario than that of the recording. Nothing was sent.
    OtherScenario {
        /// The scenario of the recording.
        recording: String,
        /// The scenario of the server.
        server: String,
    },
    /// The server has refused a line: the reason, and the line of the recording if the reason is about one.
    Refused(u64, String),
    /// The connection has ended before the answer to this turn; 0 is the set-up.
    Lost(u32),
    /// The answer is not from a server of this kind: the answer.
    OtherService(String),
}

impl fmt::Display for DriveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DriveError::Recording { path, line: 0, what } => write!(f, "{}: {what}", path.display()),
            DriveError::Recording { path, line, what } => write!(f, "{}:{line}: {what}", path.display()),
            DriveError::Connect(error) => write!(f, "no server answers: {error}"),
            DriveError::OtherScenario { recording, server } => {
                write!(f, "the recording is of {recording}, and the server plays {server}")
            }
            DriveError::Refused(0, what) => write!(f, "the server refused: {what}"),
            DriveError::Refused(line, what) => write!(f, "the server refused line {line} of the recording: {what}"),
            DriveError::Lost(0) => write!(f, "the connection was lost in the set-up"),
            DriveError::Lost(turn) => write!(f, "the connection was lost in turn {turn}"),
            DriveError::OtherService(said) => {
                write!(
                    f,
                    "the program at this address is not a server of this version: expected \"{FORMAT} …\", got \"{said}\""
                )
            }
        }
    }
}

impl std::error::Error for DriveError {}

impl Recording {
    /// Reads the recording in a file from its beginning, and checks all of it. Errors name the file by `path`.
    ///
    /// # Errors
    /// It cannot be read, or it has an error: the description, and the line.
    pub fn read(file: File, path: &Path) -> Result<Recording, DriveError> {
        let bad = |Bad { line, what, .. }| DriveError::Recording { path: path.to_owned(), line, what };
        let nothing = |what: String| bad(Bad::new(what));
        let mut script = Script::of(BufReader::with_capacity(1 << 16, &file));
        let header = script.header().map_err(bad)?.ok_or_else(|| nothing("is empty, and no recording".to_owned()))?;
        let (mut ledger, mut moves) = (Ledger::of(header.clients, header.turns), 0);
        loop {
            match script.block(&ledger).map_err(bad)? {
                Some(Block::SetUp(engagements)) => ledger.meet(&engagements),
                Some(Block::Turn(acts)) => {
                    moves += acts.len() as u64;
                    ledger.play(&acts);
                }
                Some(Block::Close) => break,
                None => {
                    let last = ledger.next().saturating_sub(1);
                    return Err(bad(script
                        .lines
                        .bad(format!("ends without close, after turn {last} of {}", header.turns))));
                }
            }
        }
        if ledger.next() <= header.turns {
            let what = format!("closes after turn {} of {}", ledger.next() - 1, header.turns);
            return Err(bad(script.lines.bad(what)));
        }
        match script.lines.next().map_err(bad)? {
            None => {
                drop(script);
                Ok(Recording { file, path: path.to_owned(), header, moves })
            }
            Some(_) => Err(bad(script.lines.bad("nothing comes behind close"))),
        }
    }

    /// The name of its scenario.
    pub fn scenario(&self) -> &str {
        &self.header.name
    }

    /// Its turns.
    pub fn turns(&self) -> u32 {
        self.header.turns
    }

    /// Its moves in which a client does something, or would if it were in a chat.
    pub fn moves(&self) -> u64 {
        self.moves
    }
}

/// The recording as it is sent, part by part.
struct Parts<'a> {
    recording: &'a Recording,
    lines: Lines<BufReader<&'a File>>,
    text: String,
}

impl Parts<'_> {
    fn bad(&self, Bad { line, what, .. }: Bad) -> DriveError {
        DriveError::Recording { path: self.recording.path.clone(), line, what }
    }

    /// Reads to the end of the next part: the one line, or a set-up, or a turn.
    fn next(&mut self, is_last: impl Fn(&str) -> bool) -> Result<&str, DriveError> {
        self.text.clear();
        loop {
            match self.lines.next() {
                Ok(Some(line)) => {
                    self.text += line;
                    self.text.push('\n');
                    if is_last(line) {
                        return Ok(&self.text);
                    }
                }
                Ok(None) => {
                    let bad = self.lines.bad("has changed since it was checked: it is shorter");
                    return Err(self.bad(bad));
                }
                Err(bad) => return Err(self.bad(bad)),
            }
        }
    }
}

/// The time within which a server must answer a call: it may have to open a large world first.
const CALL_MAX: Duration = Duration::from_secs(60);

/// Drives the world of the server at `address` (`host:port`) by a recording, to its end. `observer` is called with each ended
/// turn, outside the measured time.
///
/// If other drivers have driven the world before, it goes on with the next turn.
///
/// # Errors
/// The server does not answer, plays another scenario, has a driver, or refuses a line; or the connection ends.
pub fn drive(recording: &Recording, address: &str, mut observer: impl FnMut(u32)) -> Result<Drive, DriveError> {
    let stream = call(address).map_err(DriveError::Connect)?;
    let _ = stream.set_nodelay(true);
    let mut answers = Lines::of(BufReader::new(&stream));
    let (server, next) = greeting(&mut answers)?;
    let ours = &recording.header;
    if (server.fingerprint, server.clients, server.turns) != (ours.fingerprint, ours.clients, ours.turns) {
        return Err(DriveError::OtherScenario { recording: ours.title(), server: server.title() });
    }

    let mut file = &recording.file;
    file.rewind().map_err(|error| DriveError::Recording {
        path: recording.path.clone(),
        line: 0,
        what: format!("cannot be read: {error}"),
    })?;
    let mut parts = Parts { recording, lines: Lines::of(BufReader::with_capacity(1 << 16, file)), text: String::new() };
    let (mut latencies, mut inside, mut messages) = (Vec::new(), Vec::new(), 0);
    let header = parts.next(|line| line.starts_with("scenario "))?;
    send(&stream, header);
    // Lines of the recording that were not sent, behind its header.
    let mut skipped = 0;
    let begins_at = 2;
    if next > 0 {
        parts.next(|line| line == "ready")?;
    } else {
        let set_up = parts.next(|line| line == "ready")?;
        send(&stream, set_up);
        answer(&mut answers, 0, skipped)?;
        observer(0);
    }
    for _ in 1..next {
        parts.next(|line| line.starts_with("end "))?;
    }
    if next > 0 {
        skipped = parts.lines.number - begins_at;
    }
    for turn in next.max(1)..=recording.header.turns {
        let text = parts.next(|line| line.starts_with("end "))?;
        let sent = Instant::now();
        send(&stream, text);
        let (inside_ns, messages_of_turn) = answer(&mut answers, turn, skipped)?;
        latencies.push(sent.elapsed().as_nanos() as u64);
        inside.push(inside_ns);
        messages += messages_of_turn;
        observer(turn);
    }
    let seconds = latencies.iter().sum::<u64>() as f64 / 1e9;
    send(&stream, "close\n");
    let turns = latencies.len() as u32;
    let report = report(&mut answers, recording.header.turns + 1, skipped)?;
    let moves = u64::from(turns) * u64::from(server.clients);
    Ok(Drive {
        scenario: server.name,
        first_turn: next.max(1),
        turns,
        moves,
        messages,
        seconds,
        moves_per_second: if turns > 0 { moves as f64 / seconds } else { 0.0 },
        latency: Latency::of(&mut latencies),
        latency_inside: Latency::of(&mut inside),
        report,
    })
}

fn call(address: &str) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "no address is known by this name");
    for address in std::net::ToSocketAddrs::to_socket_addrs(address)? {
        match TcpStream::connect_timeout(&address, CALL_MAX) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Sends as much as possible. After an error, an answer with the reason may still arrive.
fn send(mut stream: &TcpStream, text: &str) {
    let _ = stream.write_all(text.as_bytes());
}

type Answers<'a> = Lines<BufReader<&'a TcpStream>>;

/// The next line of the server, which is no error.
fn line<'a>(answers: &'a mut Answers<'_>, turn: u32, skipped: u64) -> Result<&'a str, DriveError> {
    let line = match answers.next() {
        Ok(Some(line)) => line,
        Ok(None) | Err(_) => return Err(DriveError::Lost(turn)),
    };
    let Some(error) = line.strip_prefix("error ") else { return Ok(line) };
    let (number, what) = error.split_once(' ').unwrap_or(("0", error));
    let number: u64 = number.parse().unwrap_or_default();
    Err(DriveError::Refused(if number > 2 { number + skipped } else { number }, what.to_owned()))
}

fn other_service(line: &str) -> DriveError {
    DriveError::OtherService(excerpt(line.as_bytes()))
}

fn greeting(answers: &mut Answers<'_>) -> Result<(Header, u32), DriveError> {
    // Other services may wait for a first line from this side.
    let _ = answers.reader().get_ref().set_read_timeout(Some(CALL_MAX));
    let greeting = match line(answers, 0, 0) {
        Ok(greeting) => greeting.to_owned(),
        Err(DriveError::Lost(_)) => return Err(DriveError::OtherService("nothing".to_owned())),
        Err(error) => return Err(error),
    };
    let _ = answers.reader().get_ref().set_read_timeout(None);
    let rest = greeting.strip_prefix(FORMAT).and_then(|rest| rest.strip_prefix(' '));
    rest.and_then(|rest| Header::parse(rest, "next")).ok_or_else(|| other_service(&greeting))
}

/// Reads the server's answer about an ended turn: nanoseconds, and messages.
fn answer(answers: &mut Answers<'_>, turn: u32, skipped: u64) -> Result<(u64, u64), DriveError> {
    let line = line(answers, turn, skipped)?;
    let mut words = line.split(' ');
    let numbers = match (words.next(), words.next().map(str::parse::<u32>)) {
        (Some("done"), Some(Ok(done))) if done == turn => words.map(str::parse::<u64>).collect::<Result<Vec<_>, _>>(),
        _ => return Err(other_service(line)),
    };
    match numbers.as_deref() {
        Ok([ns, messages]) => Ok((*ns, *messages)),
        _ => Err(other_service(line)),
    }
}

fn report(answers: &mut Answers<'_>, turn: u32, skipped: u64) -> Result<serde_json::Value, DriveError> {
    let line = line(answers, turn, skipped)?;
    line.strip_prefix("report ").and_then(|json| serde_json::from_str(json).ok()).ok_or_else(|| other_service(line))
}
