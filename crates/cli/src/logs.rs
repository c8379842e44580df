//! The log: events with a time and a level, on standard error.

use std::io;

use clap::ValueEnum;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::output::write_error;

/// Arguments of the log.
#[derive(clap::Args, Clone)]
pub struct Args {
    /// Least level of the events in the log: error, warn, info, debug, trace or off, also for one part of the program, as in `warn,playhouse=debug`; debug adds each call of a theater to join and each rejected caller, and trace nothing
    #[arg(long, value_name = "FILTER", default_value = "info", value_parser = filter, global = true)]
    log: Filter,
    /// Form of an event in the log, on standard error
    #[arg(long, value_name = "FORM", default_value = "text", global = true)]
    log_format: Format,
}

#[derive(Clone, Debug)]
struct Filter {
    text: String,
    targets: Targets,
}

fn filter(text: &str) -> Result<Filter, String> {
    // `Targets` takes a word that is no level for the name of a part, and a typing error would turn the log off.
    let is_level = |word: &str| !word.trim().is_empty() && word.trim().parse::<LevelFilter>().is_ok();
    let is_good = |part: &str| match part.split_once('=') {
        Some((name, level)) => !name.trim().is_empty() && is_level(level),
        None => is_level(part),
    };
    let expected =
        "a filter reads LEVEL or PART=LEVEL, several with commas; levels are off, error, warn, info, debug and trace";
    match (text.parse(), text.split(',').find(|part| !is_good(part))) {
        (Ok(targets), None) => Ok(Filter { text: text.to_owned(), targets }),
        (_, Some(part)) if !part.contains('=') => Err(format!("{part:?} is no level: {expected}")),
        _ => Err(expected.to_owned()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A line for people
    Text,
    /// A JSON object in a line
    Json,
}

/// Writes events from now on.
pub fn start(args: &Args) {
    let layer = fmt::layer().with_writer(Errors).with_ansi(false).with_target(false).log_internal_errors(false);
    let layer = match args.log_format {
        Format::Text => layer.boxed(),
        Format::Json => layer.json().flatten_event(true).boxed(),
    };
    let subscriber = tracing_subscriber::registry().with(layer.with_filter(args.log.targets.clone()));
    subscriber.try_init().expect("INVARIANT: main calls this once, and nothing else installs a subscriber");
}

impl Args {
    /// Returns the arguments that give another process of this program the same log.
    pub fn to_arguments(&self) -> [String; 2] {
        let format = match self.log_format {
            Format::Text => "text",
            Format::Json => "json",
        };
        [format!("--log={}", self.log.text), format!("--log-format={format}")]
    }
}

/// Writes an event above the status line.
#[derive(Clone, Copy)]
struct Errors;

impl io::Write for Errors {
    /// Takes one event: the layer writes each at once.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        write_error(&String::from_utf8_lossy(event));
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Errors {
    type Writer = Errors;

    fn make_writer(&self) -> Errors {
        *self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_levels_and_parts_with_levels() {
        for good in ["info", "off", "WARN", "warn,playhouse=debug", "playhouse::theater=trace"] {
            assert!(filter(good).is_ok(), "{good}");
        }
        for bad in ["", "loud", "playhouse=loud", "=", "info,,x=9"] {
            assert!(filter(bad).is_err(), "{bad}");
        }
    }
}
