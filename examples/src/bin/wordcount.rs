//! A text pipeline: counts the words of files, and prints the most frequent ones.
//!
//! ```text
//! reader  ->  splitters  ->  counters  ->  report
//! ```
//!
//! - One *reader* reads the files, block by block. Reading blocks, so it has a thread of its own.
//! - *Splitters* ask the reader for blocks, and send each word to the counter that has the words with its hash.
//! - *Counters* count. No word is with two of them, so nothing is shared.
//! - The *report* asks each counter for its most frequent words.
//!
//! Splitters *pull*: they ask for a block when the counters have taken the block before. The program therefore holds
//! one block per splitter, however large the files are. The counted words take memory, too: one entry for each.
//!
//! This example is written in the explicit form, without `#[actor]`: several actors share the message types.
//!
//! ```text
//! cargo run --release -p playhouse-examples --bin wordcount -- --top 5 README.md
//! ```

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use playhouse::prelude::*;

/// Bytes that are read at once.
const BLOCK_BYTES: usize = 64 * 1024;
/// A file with a longer run of bytes that are not white space does not count as text.
const WORD_BYTES_MAX: usize = 1024 * 1024;

// -- messages -----------------------------------------------------------------------------------------------------------

/// Asks the reader for the next block, which has whole words. `None` after the last block.
#[derive(Message)]
#[message(reply = Option<String>)]
struct NextBlock;

/// Asks the reader for the errors of the files.
#[derive(Message)]
#[message(reply = Vec<FileError>)]
struct Errors;

/// Tells a splitter to split until no block is left.
#[derive(Message)]
struct Work;

/// Words for a counter, with their frequencies in a block.
#[derive(Message)]
struct Words(HashMap<String, u64>);

/// Asks the report, and the report asks the counters, for the most frequent words.
#[derive(Clone, Copy, Message)]
#[message(reply = Result<Summary, AskError>)]
struct Top(usize);

/// Most frequent words first, and equally frequent words in the order of the alphabet.
#[derive(Default)]
struct Summary {
    top: Vec<(String, u64)>,
    words: u64,
    different: u64,
}

// -- the reader ---------------------------------------------------------------------------------------------------------

/// An error that kept a file from being counted.
struct FileError {
    path: PathBuf,
    why: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.why)
    }
}

struct Reader {
    /// The paths not read yet, the next one last.
    paths: Vec<PathBuf>,
    open: Option<Open>,
    errors: Vec<FileError>,
}

/// The file that is being read.
struct Open {
    path: PathBuf,
    file: File,
    /// The bytes that were read and not handed out: less than one word after a block was handed out.
    rest: Vec<u8>,
    /// The position of `rest` in the file.
    at: u64,
}

impl Open {
    /// Returns the next block of the file, or `None` at its end.
    fn next(&mut self) -> Result<Option<String>, String> {
        loop {
            let old = self.rest.len();
            self.rest.resize(old + BLOCK_BYTES, 0);
            let read = loop {
                match self.file.read(&mut self.rest[old..]) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    read => break read.map_err(|error| error.to_string())?,
                }
            };
            self.rest.truncate(old + read);
            let end = match self.rest.iter().rposition(u8::is_ascii_whitespace) {
                _ if read == 0 => self.rest.len(),
                Some(space) => space + 1,
                None if self.rest.len() > WORD_BYTES_MAX => {
                    return Err(format!(
                        "a word at byte {} is longer than {WORD_BYTES_MAX} bytes: not a text",
                        self.at
                    ));
                }
                None => continue,
            };
            if end == 0 {
                return Ok(None);
            }
            let rest = self.rest.split_off(end);
            let block = String::from_utf8(std::mem::replace(&mut self.rest, rest));
            let block = block
                .map_err(|error| format!("not UTF-8 at byte {}", self.at + error.utf8_error().valid_up_to() as u64))?;
            self.at += end as u64;
            return Ok(Some(block));
        }
    }
}

impl Reader {
    fn fail(&mut self, path: PathBuf, why: impl fmt::Display) {
        self.errors.push(FileError { path, why: why.to_string() });
    }
}

impl Actor for Reader {}

impl Handler<NextBlock> for Reader {
    fn handle(&mut self, _: NextBlock, _: &mut Context<Self>) -> Option<String> {
        loop {
            let Some(mut open) = self.open.take() else {
                let path = self.paths.pop()?;
                match File::open(&path) {
                    Ok(file) => self.open = Some(Open { path, file, rest: Vec::new(), at: 0 }),
                    Err(error) => self.fail(path, error),
                }
                continue;
            };
            match open.next() {
                Ok(Some(block)) => {
                    self.open = Some(open);
                    return Some(block);
                }
                Ok(None) => {}
                Err(why) => self.fail(open.path, why),
            }
        }
    }
}

impl Handler<Errors> for Reader {
    fn handle(&mut self, _: Errors, _: &mut Context<Self>) -> Vec<FileError> {
        std::mem::take(&mut self.errors)
    }
}

// -- splitters ----------------------------------------------------------------------------------------------------------

struct Splitter {
    reader: ActorRef<Reader>,
    counters: Vec<ActorRef<Counter>>,
}

impl Splitter {
    /// Returns the words of `text`, each with the counter that it belongs to.
    fn split(&self, text: &str) -> Vec<HashMap<String, u64>> {
        let hasher = BuildHasherDefault::<DefaultHasher>::new();
        let mut shares = vec![HashMap::new(); self.counters.len()];
        for word in text.split(|c: char| !c.is_alphanumeric() && c != '\'').map(|word| word.trim_matches('\'')) {
            if !word.is_empty() {
                let word = word.to_lowercase();
                let share = hasher.hash_one(&word) as usize % shares.len();
                *shares[share].entry(word).or_default() += 1;
            }
        }
        shares
    }
}

impl Actor for Splitter {}

impl AsyncHandler<Work> for Splitter {
    /// While this handler waits, the splitter handles nothing else, and its worker goes on with other actors.
    async fn handle(&mut self, _: Work, _: &mut Context<Self>) {
        while let Ok(Some(block)) = self.reader.ask(NextBlock).await {
            for (counter, words) in self.counters.iter().zip(self.split(&block)) {
                let _counted = counter.ask(Words(words)).await;
            }
        }
    }
}

// -- counters -----------------------------------------------------------------------------------------------------------

#[derive(Default)]
struct Counter {
    counts: HashMap<String, u64>,
}

impl Actor for Counter {}

impl Handler<Words> for Counter {
    fn handle(&mut self, words: Words, _: &mut Context<Self>) {
        for (word, count) in words.0 {
            *self.counts.entry(word).or_default() += count;
        }
    }
}

impl Handler<Top> for Counter {
    fn handle(&mut self, top: Top, _: &mut Context<Self>) -> Result<Summary, AskError> {
        let all = self.counts.iter().map(|(word, count)| (word.clone(), *count)).collect();
        Ok(Summary { top: best(all, top), words: self.counts.values().sum(), different: self.counts.len() as u64 })
    }
}

/// Returns the most frequent of `words`.
fn best(mut words: Vec<(String, u64)>, top: Top) -> Vec<(String, u64)> {
    words.sort_unstable_by(|(a, a_count), (b, b_count)| (Reverse(a_count), a).cmp(&(Reverse(b_count), b)));
    words.truncate(top.0);
    words
}

// -- the report ---------------------------------------------------------------------------------------------------------

struct Report {
    counters: Vec<ActorRef<Counter>>,
}

impl Actor for Report {}

impl AsyncHandler<Top> for Report {
    async fn handle(&mut self, top: Top, _: &mut Context<Self>) -> Result<Summary, AskError> {
        let mut sum = Summary::default();
        for counter in &self.counters {
            let part = counter.ask(top).await??;
            sum.top.extend(part.top);
            sum.words += part.words;
            sum.different += part.different;
        }
        sum.top = best(sum.top, top);
        Ok(sum)
    }
}

// -- the program --------------------------------------------------------------------------------------------------------

/// Counts the words of `paths`: the most frequent ones, and the errors of the files.
fn count(paths: Vec<PathBuf>, top: Top) -> playhouse::Result<(Summary, Vec<FileError>)> {
    let system = System::start()?;
    let spread = || SpawnOptions::new().placement(Placement::Spread);
    let paths = paths.into_iter().rev().collect();
    let reader = system.spawn_with(
        SpawnOptions::new().placement(Placement::Dedicated),
        Reader { paths, open: None, errors: Vec::new() },
    );
    let counters: Vec<_> = (0..system.workers()).map(|_| system.spawn_with(spread(), Counter::default())).collect();
    for _ in 0..system.workers() {
        system.spawn_with(spread(), Splitter { reader, counters: counters.clone() }).tell(Work);
    }
    let report = system.spawn(Report { counters });

    // No message is queued and no handler waits: each splitter has got its last block, and its words are counted.
    system.run_until_idle();
    let result = (report.ask(top).wait()??, reader.ask(Errors).wait()?);
    system.shutdown()?;
    Ok(result)
}

const USAGE: &str = "usage: wordcount [--top N] FILE...
Counts the words of UTF-8 texts and prints the N most frequent ones (default: 10).";

/// Returns the paths to count, and the number of words to print.
fn parse(arguments: impl Iterator<Item = OsString>) -> Result<(Vec<PathBuf>, Top), String> {
    let (mut paths, mut top) = (Vec::new(), Top(10));
    let mut arguments = arguments.skip(1);
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--top") => {
                let value = arguments.next().ok_or("--top: how many?")?;
                let number = value.to_str().and_then(|value| value.parse().ok());
                top = Top(number.ok_or_else(|| format!("--top {}: not a number", value.display()))?);
            }
            Some("--") => paths.extend(arguments.by_ref().map(PathBuf::from)),
            Some(option) if option.starts_with("--") => return Err(format!("{option}: no such option")),
            _ => paths.push(argument.into()),
        }
    }
    if paths.is_empty() { Err("no file was given".to_owned()) } else { Ok((paths, top)) }
}

/// Writes the summary as a table.
fn print(summary: &Summary) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let width = summary.top.first().map_or(1, |(_, count)| count.to_string().len());
    for (word, count) in &summary.top {
        writeln!(out, "{count:>width$} {word}")?;
    }
    writeln!(out, "{} words, {} different", summary.words, summary.different)
}

fn main() -> ExitCode {
    let (paths, top) = match parse(std::env::args_os()) {
        Ok(parsed) => parsed,
        Err(why) => {
            eprintln!("error: {why}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let (summary, errors) = match count(paths, top) {
        Ok(counted) => counted,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    // Half of the words would be a wrong answer.
    for error in &errors {
        eprintln!("error: {error}");
    }
    if !errors.is_empty() {
        return ExitCode::FAILURE;
    }
    match print(&summary) {
        // A reader that has gone away (`| head`) is no error.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}
