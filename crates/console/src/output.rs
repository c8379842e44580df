//! What the program says, where, and how it ends.

use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

/// What was asked for ran, and its check failed.
pub const FAILED: u8 = 1;
/// What was asked for is impossible; nothing ran.
pub const BAD_INPUT: u8 = 2;
/// Interrupted from the keyboard: 128 and the number of the signal, as shells have it.
pub const INTERRUPTED: u8 = 130;

/// Goes back to the start of a terminal's line and wipes it.
pub const CLEAR: &str = "\r\x1b[K";

/// Why something could not be written to standard output.
static UNWRITTEN: OnceLock<String> = OnceLock::new();

/// Writes to standard output. A reader that has gone away (`| head`) is no error. Any other failure is one at the end of the program.
pub fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    if let Err(error) = writeln!(out, "{text}").and_then(|()| out.flush())
        && error.kind() != ErrorKind::BrokenPipe
    {
        UNWRITTEN.get_or_init(|| error.to_string());
    }
}

/// Returns the code to exit with, after a command that ends with `code`: not success where its output could not be written.
pub fn ended(code: ExitCode) -> ExitCode {
    match UNWRITTEN.get() {
        Some(why) if code == ExitCode::SUCCESS => fail(FAILED, &format!("standard output is not complete: {why}")),
        _ => code,
    }
}

/// Writes each line of an error to standard error, and returns the code to exit with.
pub fn fail(code: u8, text: &str) -> ExitCode {
    let mut err = std::io::stderr().lock();
    for line in text.lines() {
        let _ = writeln!(err, "error: {line}");
    }
    ExitCode::from(code)
}

/// Colours a text on a terminal whose user has not asked for none (<https://no-color.org>).
pub fn coloured(text: &str, good: bool) -> String {
    let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|value| value != "dumb")
        && std::io::stdout().is_terminal();
    match (wanted, good) {
        (false, _) => text.to_owned(),
        (true, true) => format!("\x1b[32m{text}\x1b[0m"),
        (true, false) => format!("\x1b[31m{text}\x1b[0m"),
    }
}
