//! Other processes of a workload: this program, started once more.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::{env, thread};

/// The word behind the program's name that makes it another process.
const PARTNER: &str = "partner";

/// Other processes of the workloads that have them.
pub fn partners(workload: &str) -> usize {
    if workload.starts_with("rrings") { 3 } else { 1 }
}

/// What this process is told, if it is another one. It ends with its standard input.
pub fn told() -> Option<Vec<String>> {
    let mut words = env::args().skip(1);
    (words.next()? == PARTNER).then(|| {
        thread::spawn(crate::end_with_input);
        words.collect()
    })
}

/// This program, to be started as another process that is told `words`.
pub fn again(words: &[&str]) -> Result<Command, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.arg(PARTNER).args(words);
    Ok(command)
}

/// Starts another process. It ends with this one, and this one fails if it ends before. Returns the line that it says when it listens.
pub fn start(mut command: Command) -> Result<String, String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.spawn().map_err(|error| format!("another process cannot be started: {error}"))?;
    let (input, output) = (process.stdin.take(), process.stdout.take());
    let mut line = String::new();
    if let Some(output) = output {
        BufReader::new(output).read_line(&mut line).map_err(|error| error.to_string())?;
    }
    if line.is_empty() {
        return Err("another process does not say where it listens".to_owned());
    }
    thread::spawn(move || {
        // Its input is held until then: it would end with that.
        let _ = process.wait();
        drop(input);
        crate::fail("another process has ended")
    });
    Ok(line.trim().to_owned())
}
