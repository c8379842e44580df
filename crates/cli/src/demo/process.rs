//! A theater in a process of its own, and how the first process talks to it.
//!
//! A line at a time: what is to be done comes on the other process's standard input, and the answer on its standard output.
//! Its first line says where it listens. It ends when its input is closed: so it outlives nobody.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use playhouse::{Peer, System, Theater};
use playhouse_bench::Failure;

use crate::interrupt;
use crate::output::{FAILED, fail, print};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the end of a process may take whose input was closed.
const END: Duration = Duration::from_secs(2);

/// A theater of the first process or another one, on any port of the loopback; `playhouse top` may look at it.
pub fn theater(workers: usize) -> Result<Theater, Failure> {
    let builder = Theater::builder().listen("127.0.0.1:0").system(System::builder().workers(workers)).inspected(true);
    builder.start().map_err(|error| Failure::new(error.to_string()))
}

/// Another process.
pub struct Process {
    pub address: SocketAddr,
    child: Child,
    to: Option<ChildStdin>,
    answers: Receiver<String>,
}

impl Process {
    /// Starts this program once more, with a theater that knows those at `others`.
    pub fn start(workers: usize, others: &[SocketAddr]) -> Result<Process, Failure> {
        let failure = |error: &dyn std::fmt::Display| Failure::new(format!("a theater cannot be started: {error}"));
        let program = std::env::current_exe().map_err(|error| failure(&error))?;
        let mut command = Command::new(program);
        command.args(["demo", "--host", "--workers", &workers.to_string()]);
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = started.map_err(|error| failure(&error))?;
        let (to, out) = (child.stdin.take(), child.stdout.take().expect("it is piped"));
        let (said, answers) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let _nobody_waits = said.send(line);
            }
        });
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut process = Process { address: nowhere, child, to, answers };
        let line = process.answer()?;
        process.address = line.parse().map_err(|_| failure(&format!("it says {line:?} instead of its address")))?;
        process.tell("meet", others)?;
        Ok(process)
    }

    /// Has the theater's actors go to `others`. Returns how many went, and how many could not.
    pub fn leave(&mut self, others: &[SocketAddr]) -> Result<(u64, u64), Failure> {
        let answer = self.tell("leave", others)?;
        let counts = answer.split_once(' ').and_then(|(gone, stayed)| Some((gone.parse().ok()?, stayed.parse().ok()?)));
        counts.ok_or_else(|| self.failure(&format!("it says {answer:?} of those who left")))
    }

    /// Ends the theater and its process. Returns the messages that came to nobody there.
    pub fn end(mut self) -> Result<u64, Failure> {
        let answer = self.tell("end", &[])?;
        answer.parse().map_err(|_| self.failure(&format!("it says {answer:?} at its end")))
    }

    /// Whether it has ended though nobody has told it to.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    pub fn failure(&self, what: &str) -> Failure {
        Failure::new(format!("the theater at {} (process {}): {what}", self.address, self.child.id()))
    }

    fn tell(&mut self, what: &str, theaters: &[SocketAddr]) -> Result<String, Failure> {
        let theaters: String = theaters.iter().map(|address| format!(" {address}")).collect();
        let told = self.to.as_mut().map(|to| writeln!(to, "{what}{theaters}").and_then(|()| to.flush()));
        match told {
            Some(Ok(())) => self.answer(),
            _ => Err(self.failure("it has ended")),
        }
    }

    fn answer(&mut self) -> Result<String, Failure> {
        match self.answers.recv_timeout(PATIENCE) {
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
            if begun.elapsed() > END {
                // It has nothing to lose.
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// The other process.
pub fn host(workers: Option<u16>) -> ExitCode {
    // A terminal interrupts both; the first process says when this one ends.
    interrupt::ignore();
    let (said, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            let _ = said.send(line);
        }
        // Whatever this process is at: nobody is left to do it for.
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
        let what = words.next().unwrap_or_default();
        let peers: Result<Vec<Peer>, _> = words.map(|address| theater.connect(address)).collect();
        match (what, peers) {
            (_, Err(error)) => print(&format!("error {error}")),
            ("leave", Ok(peers)) => {
                let evacuation = theater.evacuate(&peers);
                for (actor, why) in &evacuation.stayed {
                    eprintln!("{actor} stays: {why}");
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
            (_, Ok(_)) => print("met"),
        }
    }
    ExitCode::SUCCESS
}
