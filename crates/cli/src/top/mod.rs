//! `playhouse top`: looks at a theater that runs, and at those that it is linked with.

mod attached;
mod json;
mod screen;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod view;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use playhouse::Theater;
use playhouse_console::output::{self, FAILED, fail, print};
use playhouse_console::signals::{self, Signal};
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::crossterm::execute;

use crate::membership::Membership;
use crate::theater::{address, refuse};
use attached::{Attached, Seen};
use view::{Reaction, View};

/// Arguments of `playhouse top`.
#[derive(clap::Args)]
pub struct Args {
    /// A theater that allows it, as `playhouse theater` does
    #[arg(value_name = "HOST:PORT", value_parser = address)]
    address: String,
    #[command(flatten)]
    membership: Membership,
    /// Print everything as text, once, and end; the default where the output is no terminal, or TERM is dumb
    #[arg(long)]
    once: bool,
    /// Print a JSON object in a line for each look, instead of the screen; with --once, for one look
    #[arg(long)]
    json: bool,
    /// Seconds between two looks, from 0.2 to 60
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    every: Duration,
}

/// The end of the help of `playhouse top`.
pub const SIGNALS: &str = "\
Signals: SIGTERM and SIGHUP restore the terminal, announce the shutdown to the theaters, and end the program with 0; Ctrl-C with 130. The key q ends it with 0. \
Before the program calls a theater, a signal ends it at once, with 143, 129 or 130.

JSON: see \"Fields of `top --json`\" in the chapter on observing of the guide. Times are in seconds, under keys that end with `_seconds`; counters keep the \
names and units of the runtime, such as `busy_ns`.";

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.2..=60.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("must be a number of seconds from 0.2 to 60".to_owned()),
    }
}

/// Looks until the user, a signal or a failure ends it.
pub fn run(args: &Args) -> ExitCode {
    // A signal ends the program at once until there is a theater to shut down.
    let theater = match args.membership.apply(Theater::builder()).and_then(|builder| builder.start()) {
        Ok(theater) => theater,
        Err(error) => return refuse(&error),
    };
    let (sender, signals) = mpsc::channel();
    signals::send_first(sender, |signal| {
        // The screen may hang in its terminal, which may be gone.
        thread::spawn(move || {
            thread::sleep(ENDED_AFTER);
            signals::exit(signal);
        });
        signal
    });
    let ended = match attach(&theater, args, &signals) {
        Ok(Ok(attached)) if args.once || args.json || !has_screen() => write(attached, args, &signals),
        Ok(Ok(attached)) => show(attached, args, &signals).unwrap_or_else(|error| {
            fail(FAILED, &format!("the terminal cannot be used: {error}; `--once` prints text"))
        }),
        Ok(Err(code)) => code,
        Err(signal) => signal.code_after_drain(),
    };
    // This theater has no state to lose, and the others may not answer any more.
    let _ = theater.shutdown_within(Duration::from_millis(200));
    ended
}

/// Returns whether standard output is a terminal with a cursor.
fn has_screen() -> bool {
    io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|name| name != "dumb")
}

/// Links with the theater, which may take seconds, unless a signal comes.
fn attach(theater: &Theater, args: &Args, signals: &Receiver<Signal>) -> Result<Result<Attached, ExitCode>, Signal> {
    let (sender, attached) = mpsc::channel();
    let (theater, address) = (theater.clone(), args.address.clone());
    thread::spawn(move || {
        sender.send(match theater.connect(&address) {
            Ok(_) => Attached::new(&theater, &address).map_err(|error| fail(FAILED, &error)),
            Err(error) => Err(refuse(&error)),
        })
    });
    loop {
        match attached.recv_timeout(KEYS_EVERY) {
            Ok(attached) => return Ok(attached),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(Err(fail(FAILED, "the theater cannot be looked at"))),
        }
        if let Ok(signal) = signals.try_recv() {
            return Err(signal);
        }
    }
}

/// The time that the program has to end after a signal. The announcement to the theaters takes at most 5 seconds of it.
const ENDED_AFTER: Duration = Duration::from_secs(8);

/// The time between two looks for keys and signals.
const KEYS_EVERY: Duration = Duration::from_millis(100);

/// Prints one look, or each.
fn write(mut attached: Attached, args: &Args, signals: &Receiver<Signal>) -> ExitCode {
    // The first look begins what the second one sees the end of.
    attached.look();
    loop {
        match signals.recv_timeout(args.every) {
            Ok(signal) => return signal.code_after_drain(),
            Err(RecvTimeoutError::Timeout) => {}
            // The signals could not be handled: one ends the program.
            Err(RecvTimeoutError::Disconnected) => thread::sleep(args.every),
        }
        let seen = attached.look();
        if args.json {
            print(&json::describe(&seen).to_string());
        } else {
            print(&text::describe(&seen));
        }
        if args.once || !args.json || output::is_incomplete() || output::is_reader_gone() {
            return ExitCode::SUCCESS;
        }
    }
}

/// Looks again and again, in a thread of its own, because the keys do not wait for an answer.
fn keep_looking(mut attached: Attached, every: Duration) -> Receiver<Vec<Seen>> {
    let (seen, shown) = mpsc::channel();
    thread::spawn(move || {
        loop {
            let next = Instant::now() + every;
            // The screen has ended.
            if seen.send(attached.look()).is_err() {
                return;
            }
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    });
    shown
}

/// Restores the terminal, with its cursor.
fn restore() {
    let _the_terminal_is_gone = ratatui::try_restore();
    let _the_terminal_is_gone = execute!(io::stdout(), Show);
}

/// Shows the screen until the user or a signal ends it. The terminal is then as it was.
fn show(attached: Attached, args: &Args, signals: &Receiver<Signal>) -> io::Result<ExitCode> {
    let seen = keep_looking(attached, args.every);
    // A second signal ends the program wherever it is.
    let _at_exit = signals::at_exit(restore);
    // From now on a panic, of any thread, restores the terminal first.
    let mut terminal = ratatui::try_init()?;
    let mut view = View::new(&args.address);
    let mut is_gone = false;
    let ended = (|| {
        loop {
            let drawn = terminal.draw(|frame| screen::draw(frame, &view)).map(|_| ());
            // Without a terminal, the library would read from it again and again.
            if !output::wait_for_terminal(KEYS_EVERY) {
                is_gone = true;
                return Ok(Signal::HangUp.code_after_drain());
            }
            drawn?;
            if event::poll(Duration::ZERO)?
                && let Event::Key(key) = event::read()?
                && key.kind != KeyEventKind::Release
            {
                match view.press(key) {
                    Reaction::Stay => {}
                    Reaction::Quit => return Ok(ExitCode::SUCCESS),
                    // In this mode of the terminal, Ctrl-C is a key.
                    Reaction::Interrupt => return Ok(Signal::Interrupt.code_after_drain()),
                }
            }
            match seen.try_recv() {
                Ok(seen) => view.see(seen),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return Ok(ExitCode::from(FAILED)),
            }
            if let Ok(signal) = signals.try_recv() {
                return Ok(signal.code_after_drain());
            }
        }
    })();
    if is_gone {
        // Its drop would print an error, which panics where standard error is that terminal, too.
        std::mem::forget(terminal);
    }
    restore();
    ended
}
