//! Plays programs in a process of their own, which may end by a program or never end.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::heap::live_bytes;
use crate::play::play;
use crate::program::Program;

const IS_PLAYER: &str = "NASTY_IS_PLAYER";
/// The beginning of an answer's line, because the test harness writes lines of its own.
const ANSWER: &str = "nasty: ";

/// Bytes that a run may leave, because lists of vacant cells and of names grow now and then.
const LEFT_BYTES_MAX: isize = 2048;
/// A program loses memory if this number of successive runs each leave more.
const RUNS_THAT_LOSE: u32 = 4;

/// A process that plays programs.
pub struct Player {
    /// The longest that a program may take.
    pub limit: Duration,
    process: Option<Process>,
}

struct Process {
    child: Child,
    programs: ChildStdin,
    lines: Receiver<String>,
}

impl Player {
    pub fn new(limit: Duration) -> Player {
        Player { limit, process: None }
    }

    /// Plays `program`.
    ///
    /// # Errors
    /// Returns the error of the run.
    pub fn play(&mut self, program: &Program) -> Result<(), String> {
        let process = self.process.get_or_insert_with(Process::start);
        let written = writeln!(process.programs, "{program}");
        let answer = written.map_err(|_| RecvTimeoutError::Disconnected).and_then(|()| process.answer(self.limit));
        match answer {
            Ok(answer) if answer == "ok" => return Ok(()),
            Ok(wrong) => {
                // The next program gets a new process.
                self.end();
                return Err(wrong);
            }
            Err(RecvTimeoutError::Timeout) => {
                self.end();
                return Err(format!("it has not ended after {:?}", self.limit));
            }
            Err(RecvTimeoutError::Disconnected) => {}
        }
        let how = self.end();
        Err(format!("the process has ended: {how}"))
    }

    /// Ends the process, and returns how it ended.
    fn end(&mut self) -> String {
        let Some(mut process) = self.process.take() else { return String::new() };
        drop(process.programs);
        // A process that ends by itself gets the time to do so.
        if process.lines.recv_timeout(Duration::from_secs(1)).is_ok()
            || process.child.try_wait().is_ok_and(|s| s.is_none())
        {
            let _ = process.child.kill();
        }
        process.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string())
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.end();
    }
}

impl Process {
    fn start() -> Process {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "programs_end_and_lose_nothing_and_keep_no_memory", "--nocapture", "--test-threads=1"])
            .env(IS_PLAYER, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (programs, out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (line, lines) = channel();
        thread::spawn(move || {
            for text in BufReader::new(out).lines().map_while(Result::ok) {
                // The harness writes no line end after the name of the test.
                if let Some((_, answer)) = text.split_once(ANSWER) {
                    let _ = line.send(answer.to_owned());
                }
            }
        });
        Process { child, programs, lines }
    }

    fn answer(&self, limit: Duration) -> Result<String, RecvTimeoutError> {
        self.lines.recv_timeout(limit)
    }
}

/// Returns whether this process is one that plays.
pub fn is_player() -> bool {
    std::env::var_os(IS_PLAYER).is_some()
}

/// Panics that no program has asked for.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Plays the programs that are written to this process, one in each line.
pub fn play_from_stdin() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let payload = info.payload();
        let text = payload.downcast_ref::<&str>().copied().or(payload.downcast_ref::<String>().map(String::as_str));
        if !text.is_some_and(|text| text.starts_with("meant:")) {
            usual(info);
            PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(info.to_string());
        }
    }));
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let program: Program = serde_json::from_str(&line).expect("a program");
        let answer = play_and_weigh(&program).err().map_or("ok".to_owned(), |wrong| wrong.replace('\n', " "));
        println!("{ANSWER}{answer}");
    }
}

/// Plays `program`. Plays it again if it leaves memory.
fn play_and_weigh(program: &Program) -> Result<(), String> {
    let mut left = Vec::new();
    for _ in 0..RUNS_THAT_LOSE {
        let before = live_bytes();
        let mut played = Err(String::new());
        // The program runs in a thread of its own, because the memory that a thread keeps for later goes with the
        // thread.
        thread::scope(|scope| {
            let player = thread::Builder::new().stack_size(64 << 20).spawn_scoped(scope, || play(program)).unwrap();
            played = player.join().unwrap_or_else(|panic| {
                std::mem::forget(panic);
                Err("the player has panicked".to_owned())
            });
        });
        let panics = std::mem::take(&mut *PANICS.lock().unwrap_or_else(PoisonError::into_inner));
        if !panics.is_empty() {
            return Err(format!("panics that were not meant: {}", panics.join("; ")));
        }
        drop(panics);
        played?;
        let bytes = live_bytes() - before;
        if bytes <= LEFT_BYTES_MAX {
            return Ok(());
        }
        left.push(bytes);
    }
    Err(format!("bytes that each run has left: {left:?}"))
}
