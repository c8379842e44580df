//! Reads recordings, from a file or from a socket, line by line, and checks all that is in them.

use std::fmt;
use std::io::{self, BufRead, Read};

use super::act::Act;
use super::ledger::Ledger;
use crate::chatapp::chat::chat_id;
use crate::chatapp::messages::Engage;
use crate::chatapp::scenario::{Scenario, WORK_AMOUNT, WORK_BYTES_MAX};
use crate::harness::busy_work::Work;
use crate::harness::random::mix64;

/// The most bytes of a line, without its newline: room for 100,000 friends.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// The first line.
pub(super) const FORMAT: &str = "playhouse-chatapp 1";

/// The description of an error, and its line, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bad {
    pub line: u64,
    pub what: String,
    /// The input has ended, which is no error in it.
    pub is_broken: bool,
}

impl Bad {
    /// Creates an error without a line.
    pub fn new(what: impl Into<String>) -> Bad {
        Bad { line: 0, what: what.into(), is_broken: false }
    }
}

/// Lines of limited length.
pub(super) struct Lines<R> {
    reader: R,
    bytes: Vec<u8>,
    /// The number of the line that was read last.
    pub number: u64,
}

impl<R: BufRead> Lines<R> {
    pub fn of(reader: R) -> Lines<R> {
        Lines { reader, bytes: Vec::new(), number: 0 }
    }

    pub fn reader(&self) -> &R {
        &self.reader
    }

    pub fn bad(&self, what: impl Into<String>) -> Bad {
        Bad { line: self.number, ..Bad::new(what) }
    }

    /// The next line, without its newline; `None` at the end.
    pub fn next(&mut self) -> Result<Option<&str>, Bad> {
        self.bytes.clear();
        self.number += 1;
        let read = self.reader.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut self.bytes);
        match read {
            Ok(0) => return Ok(None),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                return Err(self.bad("nothing came for too long"));
            }
            Err(error) => return Err(Bad { is_broken: true, ..self.bad(format!("cannot be read: {error}")) }),
        }
        if self.bytes.pop_if(|byte| *byte == b'\n').is_none() {
            return Err(match self.bytes.len() > LINE_BYTES_MAX {
                true => self.bad(format!("the line is too long; at most {LINE_BYTES_MAX} bytes are allowed")),
                false => self.bad(format!("ends in the middle of a line, behind \"{}\"", excerpt(&self.bytes))),
            });
        }
        match str::from_utf8(&self.bytes) {
            Ok(line) => Ok(Some(line)),
            Err(_) => Err(self.bad(format!("is not text: \"{}\"", excerpt(&self.bytes)))),
        }
    }
}

/// Returns the printable part of a line, cut to fit a line of output.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    const CHARS_MAX: usize = 60;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * CHARS_MAX)]);
    let shown: String = text.escape_debug().take(CHARS_MAX).collect();
    if shown.len() < text.len() || bytes.len() > 4 * CHARS_MAX { shown + "…" } else { shown }
}

/// The scenario of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub fingerprint: u64,
    pub clients: u32,
    pub turns: u32,
    pub name: String,
}

impl Header {
    pub fn of(scenario: &Scenario) -> Header {
        let anonymous = Scenario { name: String::new(), ..scenario.clone() };
        let json = serde_json::to_string(&anonymous).expect("INVARIANT: numbers and strings have a JSON form");
        let fingerprint = json.bytes().fold(0, |hash, byte| mix64(hash ^ u64::from(byte)));
        let name = scenario.name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        Header { fingerprint, clients: scenario.clients, turns: scenario.turns, name }
    }

    /// The numbers and the name, as in `0x8c6f… clients 500 turns 30 small`, with `between` before the name.
    pub fn parse(text: &str, between: &str) -> Option<(Header, u32)> {
        let mut words = text.splitn(if between.is_empty() { 6 } else { 8 }, ' ');
        let fingerprint = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
        let mut named = |name: &str| (words.next()? == name).then_some(words.next()?.parse::<u32>().ok()?);
        let (clients, turns) = (named("clients").filter(|clients| *clients > 0)?, named("turns")?);
        let extra = if between.is_empty() { 0 } else { named(between)? };
        Some((Header { fingerprint, clients, turns, name: words.next()?.to_owned() }, extra))
    }

    /// Returns the same with a number before the name.
    pub fn with(&self, between: &str, number: u32) -> String {
        let Header { fingerprint, clients, turns, name } = self;
        format!("{fingerprint:#018x} clients {clients} turns {turns} {between} {number} {name}")
    }

    /// `scenario small (0x8c6f…)`.
    pub fn title(&self) -> String {
        format!("scenario {} ({:#018x})", self.name, self.fingerprint)
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Header { fingerprint, clients, turns, name } = self;
        write!(f, "scenario {fingerprint:#018x} clients {clients} turns {turns} {name}")
    }
}

/// The part of a recording that is played as a whole.
pub(super) enum Block {
    SetUp(Vec<(u32, Engage)>),
    /// The next turn.
    Turn(Vec<(u32, Act)>),
    Close,
}

/// Returns the name of a work, and its amount.
pub(super) fn kind_of(work: Work) -> (&'static str, u32) {
    match work {
        Work::Idle => ("idle", 0),
        Work::Compute(steps) => ("compute", steps),
        Work::Memory(bytes) => ("memory", bytes),
    }
}

/// A recording that is being read.
pub(super) struct Script<R> {
    pub lines: Lines<R>,
}

impl<R: BufRead> Script<R> {
    pub fn of(reader: R) -> Script<R> {
        Script { lines: Lines::of(reader) }
    }

    /// Reads the first two lines; `None` for an empty input.
    pub fn header(&mut self) -> Result<Option<Header>, Bad> {
        let Some(first) = self.lines.next()? else { return Ok(None) };
        if first != FORMAT {
            let what = format!(
                "is not a recording of this format: begins with \"{}\", not \"{FORMAT}\"",
                excerpt(first.as_bytes())
            );
            return Err(self.lines.bad(what));
        }
        let second = self.lines.next()?.unwrap_or_default();
        match second.strip_prefix("scenario ").and_then(|rest| Header::parse(rest, "")) {
            Some((header, _)) => Ok(Some(header)),
            None => {
                let what = format!(
                    "must be \"scenario 0xFINGERPRINT clients N turns N NAME\", not \"{}\"",
                    excerpt(second.as_bytes())
                );
                Err(self.lines.bad(what))
            }
        }
    }

    /// Reads the next part to its end, and checks that it may come next in the world of `ledger`; `None` at the end.
    pub fn block(&mut self, ledger: &Ledger) -> Result<Option<Block>, Bad> {
        let Some(line) = self.lines.next()? else { return Ok(None) };
        let mut words = Words(line.split(' '));
        let next = ledger.next();
        let due = match next {
            0 => "the set-up is next, which begins with client 0".to_owned(),
            turn if turn > ledger.turns => format!("all {} turns were played, and close is next", ledger.turns),
            turn => format!("turn {turn} is next"),
        };
        let out_of_order = |what: &str| format!("{what} is out of order: {due}");
        let what = match words.0.next().unwrap_or_default() {
            "client" if next == 0 => return self.set_up(ledger).map(Some),
            "client" => out_of_order("a set-up"),
            "turn" => match words.only_number("turn N") {
                Ok(turn) if next != 0 && turn == next && turn <= ledger.turns => return self.turn(ledger).map(Some),
                Ok(turn) => out_of_order(&format!("turn {turn}")),
                Err(what) => what,
            },
            "close" if next == 0 => out_of_order("close"),
            "close" => return Ok(Some(Block::Close)),
            _ => format!("\"{}\" is none of client, turn, close: {due}", excerpt(line.as_bytes())),
        };
        Err(self.lines.bad(what))
    }

    /// Reads the clients, of which the line of the first one was read.
    fn set_up(&mut self, ledger: &Ledger) -> Result<Block, Bad> {
        let mut engagements = Vec::new();
        let mut friendships = 0;
        loop {
            let line = str::from_utf8(&self.lines.bytes).unwrap_or_default();
            if line == "ready" {
                break;
            }
            let engage =
                client(line, engagements.len() as u32, ledger, friendships).map_err(|what| self.lines.bad(what))?;
            friendships += engage.friends.len();
            engagements.push((engagements.len() as u32, engage));
            if self.lines.next()?.is_none() {
                return Err(self.lines.bad("ends in the middle of the set-up, before ready; nothing of it was played"));
            }
        }
        if engagements.len() < ledger.clients as usize {
            let what = format!("ready comes too early: client {} is missing of {}", engagements.len(), ledger.clients);
            return Err(self.lines.bad(what));
        }
        Ok(Block::SetUp(engagements))
    }

    /// Reads the moves of the next turn, of which the first line was read.
    fn turn(&mut self, ledger: &Ledger) -> Result<Block, Bad> {
        let (turn, mut acts, mut posted) = (ledger.next(), Vec::new(), 0);
        loop {
            let Some(line) = self.lines.next()? else {
                let what = format!("ends in the middle of turn {turn}, before end {turn}; nothing of it was played");
                return Err(self.lines.bad(what));
            };
            let mut words = Words(line.split(' '));
            if line.starts_with("end ") {
                words.0.next();
                return match words.only_number("end N") {
                    Ok(end) if end == turn => Ok(Block::Turn(acts)),
                    Ok(end) => Err(self.lines.bad(format!("end {end} is out of order: this is turn {turn}"))),
                    Err(what) => Err(self.lines.bad(what)),
                };
            }
            let last = acts.last().map(|(id, _)| *id);
            match move_of(words, ledger, last).map_err(|what| format!("{what}, in \"{}\"", excerpt(line.as_bytes()))) {
                Ok((id, act)) => {
                    posted += Ledger::posted(&act);
                    Ledger::check_posted(posted).map_err(|what| self.lines.bad(what))?;
                    acts.push((id, act));
                }
                Err(what) => return Err(self.lines.bad(what)),
            }
        }
    }
}

/// The words of a line.
struct Words<'a>(std::str::Split<'a, char>);

impl Words<'_> {
    fn number<T: std::str::FromStr>(&mut self, form: &str) -> Result<T, String> {
        let word = self.0.next().unwrap_or_default();
        // `FromStr` would take a sign, too.
        let digits = word.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.parse().ok()).flatten();
        digits.ok_or_else(|| format!("\"{}\" is not an allowed number: must be \"{form}\"", excerpt(word.as_bytes())))
    }

    fn only_number(mut self, form: &str) -> Result<u32, String> {
        let number = self.number(form)?;
        self.end(form)?;
        Ok(number)
    }

    fn numbers(&mut self, form: &str) -> Result<Box<[u32]>, String> {
        let mut numbers = Vec::new();
        while !self.is_at_end() {
            numbers.push(self.number(form)?);
        }
        Ok(numbers.into())
    }

    fn is_at_end(&self) -> bool {
        self.0.clone().next().is_none()
    }

    fn chat(&mut self, form: &str) -> Result<u64, String> {
        let word = self.0.next().unwrap_or_default();
        let mut parts = Words(word.split('.'));
        let chat = (parts.number(form), parts.number(form), parts.0.next());
        match chat {
            (Ok(turn), Ok(creator), None) => Ok(chat_id(turn, creator)),
            _ => Err(format!("\"{}\" is not a chat: must be \"{form}\"", excerpt(word.as_bytes()))),
        }
    }

    fn end(&mut self, form: &str) -> Result<(), String> {
        match self.0.next() {
            Some(word) => Err(format!("\"{}\" is too much: must be \"{form}\"", excerpt(word.as_bytes()))),
            None => Ok(()),
        }
    }
}

/// Reads the work of a client and the clients that it befriends; its id must be this one.
fn client(line: &str, due: u32, ledger: &Ledger, friendships: usize) -> Result<Engage, String> {
    let form = "client ID idle|compute|memory AMOUNT FRIEND…";
    let mut words = Words(line.split(' '));
    if words.0.next() != Some("client") {
        return Err(format!("must be \"{form}\" or \"ready\", not \"{}\"", excerpt(line.as_bytes())));
    }
    let id = words.number(form)?;
    ledger.check_client(id)?;
    if id != due {
        return Err(format!("client {id} is out of order: client {due} is next"));
    }
    let kind = words.0.next().unwrap_or_default();
    let amount: u32 = words.number(form)?;
    // Twice the amount of a scenario: its spread may double it.
    let amount_max = 2 * if kind == "memory" { WORK_BYTES_MAX } else { *WORK_AMOUNT.end() };
    let work = match kind {
        "idle" if amount == 0 => Work::Idle,
        "compute" => Work::Compute(amount),
        "memory" => Work::Memory(amount),
        _ => {
            return Err(format!("\"{} {amount}\" is not a kind of work: must be \"{form}\"", excerpt(kind.as_bytes())));
        }
    };
    if amount > amount_max {
        return Err(format!("work of {amount} is too much; at most {amount_max} is allowed for {kind}"));
    }
    let engage = Engage { work, friends: words.numbers(form)? };
    ledger.check_engage(id, &engage, friendships)?;
    Ok(engage)
}

/// Reads the move of a client; the one before it was `last`.
fn move_of(mut words: Words<'_>, ledger: &Ledger, last: Option<u32>) -> Result<(u32, Act), String> {
    let (kind, form) = match words.0.next().unwrap_or_default() {
        "chat" => ('c', "chat ID FRIEND…"),
        "leave" => ('l', "leave ID TURN.CREATOR"),
        "post" => ('p', "post ID TURN.CREATOR BYTES BYTE [OBJECTS]"),
        "none" => ('n', "none ID"),
        _ => return Err("is none of chat, leave, post, none, end".to_owned()),
    };
    let id = words.number(form)?;
    ledger.check_client(id)?;
    if let Some(last) = last.filter(|last| *last >= id) {
        return Err(format!("clients move by rising id, each once: {id} cannot come behind {last}"));
    }
    let act = match kind {
        'c' => Act::NewChat(words.numbers(form)?),
        'l' => Act::Leave(words.chat(form)?),
        'p' => Act::Post {
            chat: words.chat(form)?,
            size: words.number(form)?,
            byte: words.number(form)?,
            objects: if words.is_at_end() { 0 } else { words.number(form)? },
        },
        _ => Act::NoChat,
    };
    words.end(form)?;
    ledger.check(id, &act)?;
    Ok((id, act))
}
