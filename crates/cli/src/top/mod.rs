//! `playhouse top`: looks at a theater that runs, and at those it is linked with.

mod attached;
mod screen;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod view;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use playhouse::Theater;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use crate::interrupt::{self, Endings};
use crate::membership::Membership;
use crate::output::{FAILED, INTERRUPTED, fail, print};
use crate::theater::{address, refuse};
use attached::{Attached, Seen};
use view::{Reaction, View};

/// Arguments of `playhouse top`.
#[derive(clap::Args)]
pub struct Args {
    /// A theater that lets itself be looked at, as `playhouse theater` does
    #[arg(value_name = "HOST:PORT", value_parser = address)]
    address: String,
    #[command(flatten)]
    membership: Membership,
    /// Print what there is to see as text, once, and end; so it is where the output is no terminal
    #[arg(long)]
    once: bool,
    /// Seconds between two looks, from 0.2 to 60
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    every: Duration,
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.2..=60.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("a number of seconds from 0.2 to 60".to_owned()),
    }
}

/// Looks until the user has seen enough.
pub fn run(args: &Args) -> ExitCode {
    let theater = match args.membership.of(Theater::builder()).and_then(|builder| builder.start()) {
        Ok(theater) => theater,
        Err(error) => return refuse(&error),
    };
    if let Err(error) = theater.connect(&args.address) {
        return refuse(&error);
    }
    let mut attached = match Attached::new(&theater, &args.address) {
        Ok(attached) => attached,
        Err(error) => return fail(FAILED, &error),
    };
    let ended = if args.once || !io::stdout().is_terminal() {
        interrupt::exit_on_interrupt();
        // The first look begins what the second one sees the end of.
        attached.look();
        thread::sleep(args.every);
        print(&text::describe(&attached.look()));
        ExitCode::SUCCESS
    } else {
        match Endings::note().and_then(|endings| show(attached, args, &endings)) {
            Ok(code) => code,
            Err(error) => fail(FAILED, &format!("the terminal cannot be used: {error}; `--once` prints text")),
        }
    };
    // It has nothing that could be lost; and who is asked may not answer any more.
    let _ = theater.shutdown_within(Duration::from_millis(200));
    ended
}

/// Looks again and again, in a thread of its own: an answer may take its time, and the keys are not to wait for it.
fn keep_looking(mut attached: Attached, every: Duration) -> Receiver<Vec<Seen>> {
    let (seen, shown) = mpsc::channel();
    thread::spawn(move || {
        loop {
            let next = Instant::now() + every;
            // Nobody looks at it any more.
            if seen.send(attached.look()).is_err() {
                return;
            }
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    });
    shown
}

/// Shows what there is to see until the user has seen enough, or something else ends it. The terminal is then as it was.
fn show(attached: Attached, args: &Args, endings: &Endings) -> io::Result<ExitCode> {
    let (interrupt, interrupted) = mpsc::channel();
    interrupt::send_on_interrupt(interrupt, ());
    let seen = keep_looking(attached, args.every);
    // From here on a panic, of whatever thread, gives the terminal back first.
    let mut terminal = ratatui::try_init()?;
    let mut view = View::new(&args.address);
    let ended = (|| {
        loop {
            terminal.draw(|frame| screen::draw(frame, &view))?;
            // As long as nothing happens it is looked up ten times a second.
            if event::poll(Duration::from_millis(100))?
                && let Event::Key(key) = event::read()?
                && key.kind != KeyEventKind::Release
                && view.press(key) == Reaction::Quit
            {
                return Ok(ExitCode::SUCCESS);
            }
            match seen.try_recv() {
                Ok(seen) => view.see(seen),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return Ok(ExitCode::from(FAILED)),
            }
            if endings.has_come() {
                return Ok(ExitCode::from(INTERRUPTED));
            }
            if interrupted.try_recv().is_ok() {
                return Ok(ExitCode::from(INTERRUPTED));
            }
        }
    })();
    ratatui::restore();
    endings.go();
    ended
}
