//! A theater in a process of its own, which the first process controls.
//!
//! The first process writes a request to the other process's standard input, a line each, and reads the answer from its standard output. The first line is
//! the address of the theater. The other process ends when its input is closed, with the first process at the latest.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use clap::CommandFactory;
use playhouse::{Peer, System, Theater};
use playhouse_bench::Failure;
use playhouse_console::output::{FAILED, fail, note, print};
use playhouse_console::signals;

use crate::{config, logs};

/// The time that an answer may take.
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// The time that a process may take to end after its input was closed.
const EXIT_MAX: Duration = Duration::from_secs(2);

/// Starts a theater on any port of the loopback. `playhouse top` may look at it.
pub fn theater(workers: usize) -> Result<Theater, Failure> {
    let builder = Theater::builder().listen("127.0.0.1:0").system(System::builder().workers(workers)).inspected(true);
    builder.start().map_err(|error| Failure::new(error.to_string()))
}

/// Another process with a theater.
pub struct Process {
    pub address: SocketAddr,
    child: Child,
    to: Option<ChildStdin>,
    answers: Receiver<String>,
}

impl Process {
    /// Starts this program once more, with a theater that knows those at `others`.
    pub fn start(workers: usize, log: &logs::Args, others: &[SocketAddr]) -> Result<Process, Failure> {
        let failure = |error: &dyn std::fmt::Display| Failure::new(format!("a theater cannot be started: {error}"));
        let program = std::env::current_exe().map_err(|error| failure(&error))?;
        let mut command = Command::new(program);
        command.args(["demo", "--host", "--workers", &workers.to_string()]).args(log.to_arguments());
        // They are meant for the first process.
        for name in config::variables(&crate::Cli::command()) {
            command.env_remove(name);
        }
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = started.map_err(|error| failure(&error))?;
        let (to, out) = (child.stdin.take(), child.stdout.take().expect("it is piped"));
        let (received, answers) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let _nobody_waits = received.send(line);
            }
        });
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut process = Process { address: nowhere, child, to, answers };
        let line = process.answer()?;
        process.address = line.parse().map_err(|_| failure(&format!("it answers {line:?} instead of its address")))?;
        process.request("connect", others)?;
        Ok(process)
    }

    /// Moves the theater's actors to `others`. Returns how many moved, and how many stayed.
    pub fn evacuate(&mut self, others: &[SocketAddr]) -> Result<(u64, u64), Failure> {
        let answer = self.request("evacuate", others)?;
        let counts =
            answer.split_once(' ').and_then(|(moved, stayed)| Some((moved.parse().ok()?, stayed.parse().ok()?)));
        counts.ok_or_else(|| self.failure(&format!("it answers {answer:?} instead of the numbers of actors")))
    }

    /// Ends the theater and its process. Returns the number of dead letters.
    pub fn end(mut self) -> Result<u64, Failure> {
        let answer = self.request("end", &[])?;
        answer
            .parse()
            .map_err(|_| self.failure(&format!("it answers {answer:?} instead of the number of dead letters")))
    }

    /// Returns whether the process has ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    pub fn failure(&self, what: &str) -> Failure {
        Failure::new(format!("the theater at {} (process {}): {what}", self.address, self.child.id()))
    }

    fn request(&mut self, request: &str, theaters: &[SocketAddr]) -> Result<String, Failure> {
        let theaters: String = theaters.iter().map(|address| format!(" {address}")).collect();
        let written = self.to.as_mut().map(|to| writeln!(to, "{request}{theaters}").and_then(|()| to.flush()));
        match written {
            Some(Ok(())) => self.answer(),
            _ => Err(self.failure("it has ended")),
        }
    }

    fn answer(&mut self) -> Result<String, Failure> {
        match self.answers.recv_timeout(ANSWER_MAX) {
            Ok(line) => match line.strip_prefix("error ") {
                Some(error) => Err(self.failure(error)),
                None => Ok(line),
            },
            Err(RecvTimeoutError::Timeout) => Err(self.failure("it does not answer")),
            Err(RecvTimeoutError::Disconnected) => Err(self.failure("it has ended")),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.to.take());
        let begun = Instant::now();
        while !self.has_ended() {
            if begun.elapsed() > EXIT_MAX {
                // The process has no state to save.
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Runs the other process.
pub fn host(workers: Option<u16>) -> ExitCode {
    // A terminal and a supervisor signal all processes; the first one ends this one.
    signals::ignore();
    let (received, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            let _ = received.send(line);
        }
        // Nothing is left to do, because the first process has ended.
        std::process::exit(0);
    });
    let theater = match theater(workers.map_or(1, usize::from)) {
        Ok(theater) => theater,
        Err(failure) => return fail(FAILED, &failure.to_string()),
    };
    if let Some(address) = theater.address() {
        print(&address.to_string());
    }
    for line in lines {
        let mut words = line.split(' ');
        let request = words.next().unwrap_or_default();
        let peers: Result<Vec<Peer>, _> = words.map(|address| theater.connect(address)).collect();
        match (request, peers) {
            (_, Err(error)) => print(&format!("error {error}")),
            ("evacuate", Ok(peers)) => {
                let evacuation = theater.evacuate(&peers);
                for (actor, reason) in &evacuation.stayed {
                    note(&format!("{actor} stays: {reason}"));
                }
                print(&format!("{} {}", evacuation.moved, evacuation.stayed.len()));
            }
            ("end", _) => {
                let dead_letters = theater.system().stats().total.dead_letters;
                return match theater.shutdown() {
                    Ok(_) => {
                        print(&dead_letters.to_string());
                        ExitCode::SUCCESS
                    }
                    Err(error) => {
                        print(&format!("error {error}"));
                        ExitCode::from(FAILED)
                    }
                };
            }
            (_, Ok(_)) => print("connected"),
        }
    }
    ExitCode::SUCCESS
}
