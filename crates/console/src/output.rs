//! The program's output: results on standard output, messages on standard error, exit codes.
//!
//! Nothing else in the program writes to either of them: `println!` and `eprintln!` panic where they cannot write.

use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, WeakProgressBar};

/// The command tried and failed: a check did not pass, an address or a program could not be used or reached, or the output or a file could not be
/// written.
pub const FAILED: u8 = 1;
/// The options are wrong, or a file that they name: nothing was tried.
pub const BAD_INPUT: u8 = 2;
/// Ctrl-C has cut the command short: 128 and the signal's number, as shells have it.
pub const INTERRUPTED: u8 = 130;

/// Goes back to the start of a terminal's line and wipes it.
pub const CLEAR: &str = "\r\x1b[K";

/// The reason why a line could not be written to standard output.
static UNWRITTEN: OnceLock<String> = OnceLock::new();
/// The status line, which gives way to messages.
static STATUS: Mutex<Option<WeakProgressBar>> = Mutex::new(None);

/// Writes a line to standard output. A reader that has gone away (`| head`) is no error. Any other failure is one at the end of the program.
pub fn print(text: &str) {
    write(&format!("{text}\n"));
}

/// Writes text to standard output, as [`print()`] does.
pub fn write(text: &str) {
    let mut out = std::io::stdout().lock();
    if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush())
        && error.kind() != ErrorKind::BrokenPipe
    {
        UNWRITTEN.get_or_init(|| error.to_string());
    }
}

/// Returns whether standard output is a pipe that no process reads any more.
#[cfg(unix)]
pub fn is_reader_gone() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let out = std::io::stdout();
    let mut pipe = [PollFd::new(&out, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut pipe, Some(&now)).is_ok_and(|_| pipe[0].revents().intersects(PollFlags::ERR | PollFlags::HUP))
}

/// Returns `false`: the system does not tell.
#[cfg(not(unix))]
pub fn is_reader_gone() -> bool {
    false
}

/// Waits until the terminal has input, at most `limit`. Returns `false` if standard output is a terminal that is gone.
#[cfg(unix)]
pub fn wait_for_terminal(limit: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let (out, input) = (std::io::stdout(), std::io::stdin());
    let mut ends = vec![PollFd::new(&out, PollFlags::empty())];
    // Other input, such as /dev/null, is always ready.
    if input.is_terminal() {
        ends.push(PollFd::new(&input, PollFlags::IN));
    }
    let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
    let _a_signal_interrupts_it = poll(&mut ends, Some(&limit));
    !ends.iter().any(|end| end.revents().intersects(PollFlags::ERR | PollFlags::HUP))
}

/// Waits for `limit`: the system does not tell.
#[cfg(not(unix))]
pub fn wait_for_terminal(limit: Duration) -> bool {
    std::thread::sleep(limit);
    true
}

/// Returns whether writing to standard output has failed, other than because its reader has gone away.
pub fn is_incomplete() -> bool {
    UNWRITTEN.get().is_some()
}

/// Returns the code to exit with, after a command that ends with `code`: not success where its output could not be written.
pub fn ended(code: ExitCode) -> ExitCode {
    match UNWRITTEN.get() {
        Some(why) if code == ExitCode::SUCCESS => fail(FAILED, &format!("standard output is not complete: {why}")),
        _ => code,
    }
}

/// Has messages make the status line give way from now on.
pub fn set_status(bar: &ProgressBar) {
    *STATUS.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.downgrade());
}

/// Writes text to standard error, above the status line. If it cannot be written, the program goes on without it.
pub fn write_error(text: &str) {
    let write = || {
        let mut err = std::io::stderr().lock();
        let _nobody_reads_it = err.write_all(text.as_bytes());
    };
    let bar = STATUS.lock().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(WeakProgressBar::upgrade);
    match bar {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

/// Writes a line to standard error, as [`write_error`] does.
pub fn note(text: &str) {
    write_error(&format!("{text}\n"));
}

/// Writes text to standard error unless that would block, because another thread may be writing to a full pipe.
#[cfg(unix)]
pub fn write_error_if_ready(text: &str) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let err = rustix::stdio::stderr();
    let mut pipe = [PollFd::new(&err, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    if poll(&mut pipe, Some(&now)).is_ok_and(|ready| ready > 0) {
        let _nobody_reads_it = rustix::io::write(err, text.as_bytes());
    }
}

/// Writes text to standard error.
#[cfg(not(unix))]
pub fn write_error_if_ready(text: &str) {
    let _nobody_reads_it = std::io::stderr().write_all(text.as_bytes());
}

/// Writes each line of an error to standard error, and returns the code to exit with.
pub fn fail(code: u8, text: &str) -> ExitCode {
    let lines: String = text.lines().map(|line| format!("error: {line}\n")).collect();
    write_error(&lines);
    ExitCode::from(code)
}

/// Colours a text on a terminal whose user has not asked for none (<https://no-color.org>).
pub fn coloured(text: &str, good: bool) -> String {
    match (is_coloured(&std::io::stdout()), good) {
        (false, _) => text.to_owned(),
        (true, true) => format!("\x1b[32m{text}\x1b[0m"),
        (true, false) => format!("\x1b[31m{text}\x1b[0m"),
    }
}

/// Returns whether colours may be written to the stream.
pub fn is_coloured(stream: &impl IsTerminal) -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|value| value != "dumb")
        && stream.is_terminal()
}
