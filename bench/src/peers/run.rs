//! One run of a peer: its process, from start to end.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::peer::Missed;
use crate::harness::memory;
use crate::harness::process::{END, Leader, PARENT};

/// Becomes the program that is the first of `words`, with the others behind it; on Linux it is killed when the process that has started
/// this one ends, however that ends. Returns why it cannot be.
pub fn become_peer(words: &[OsString]) -> io::Error {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, set_parent_process_death_signal};

        use crate::harness::process::is_orphan;

        // If it cannot be had, the end of its input is left.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
        if is_orphan() {
            std::process::exit(1);
        }
    }
    match words {
        [program, words @ ..] => Command::new(program).args(words).env_remove(PARENT).exec(),
        [] => io::Error::new(io::ErrorKind::InvalidInput, "no program is named"),
    }
}

/// The output of a process until its end.
pub(super) struct Ended {
    pub(super) succeeded: bool,
    pub(super) status: String,
    pub(super) out: String,
    pub(super) errors: String,
    pub(super) peak_rss_mb: Option<f64>,
}

enum Output {
    /// Its first line of JSON, after which it should end.
    Answer,
    /// The complete output, and the peak memory.
    All(String, Option<f64>),
}

/// Runs `command` until its output ends, and closes its input after its answer.
pub(super) fn run(mut command: Command, limit: Duration) -> Result<Ended, Missed> {
    let failed = |error: io::Error| Missed::Failed(format!("it cannot be run: {error}"));
    let piped = command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().map_err(failed)?;
    let process = child.id().to_string();
    let errors = read_all(child.stderr.take().expect("it is piped"));
    let (input, out) = (child.stdin.take(), child.stdout.take().expect("it is piped"));
    let leader = Leader::of(child);
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let (mut input, mut lines, mut peak_rss_mb) = (input, String::new(), None);
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if line.starts_with('{') && input.is_some() {
                peak_rss_mb = memory::peak_of(&process);
                // Now it may end.
                input.take();
                let _ = sender.send(Output::Answer);
            }
            lines.push_str(&line);
            lines.push('\n');
        }
        // The receiver is gone after the limit.
        let _ = sender.send(Output::All(lines, peak_rss_mb));
    });
    let stays = || Missed::Failed(format!("it has not ended {} s after its last output", END.as_secs()));
    let output = match receiver.recv_timeout(limit) {
        Ok(Output::Answer) => receiver.recv_timeout(END).map_err(|_| stays()),
        output => output.map_err(|_| Missed::Over),
    };
    let (out, peak_rss_mb) = match output {
        Ok(Output::All(lines, peak_rss_mb)) => (lines, peak_rss_mb),
        Ok(Output::Answer) => return Err(stays()),
        Err(missed) => {
            leader.kill();
            return Err(missed);
        }
    };
    let Some(status) = leader.end_within(END) else { return Err(stays()) };
    let status = status.map_err(failed)?;
    // A process outside the group may still hold the other end.
    let errors = errors.recv_timeout(END).unwrap_or_default();
    Ok(Ended { succeeded: status.success(), status: status.to_string(), out, errors, peak_rss_mb })
}

fn read_all(mut from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // An error ends the output early; the bytes before it count.
        let _ = from.read_to_end(&mut bytes);
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}
