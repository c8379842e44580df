//! Ctrl-C.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::Sender;

use crate::output::{CLEAR, INTERRUPTED};

/// Sends `event` once the user presses Ctrl-C, instead of ending the program without a word.
pub fn send_on_interrupt<E: Clone + Send + 'static>(sender: Sender<E>, event: E) {
    // Where no handler can be set the signal does what it always did, which is good enough: here and below.
    let _ = ctrlc::set_handler(move || {
        let _ = sender.send(event.clone());
    });
}

/// Sends `event` once the user presses Ctrl-C, and ends the program at once when it is pressed again.
pub fn send_then_exit<E: Clone + Send + 'static>(sender: Sender<E>, event: E) {
    let mut sent = false;
    let _ = ctrlc::set_handler(move || {
        if std::mem::replace(&mut sent, true) {
            exit();
        }
        let _ = sender.send(event.clone());
    });
}

/// Ends the program with a line that says so once the user presses Ctrl-C.
pub fn exit_on_interrupt() {
    let _ = ctrlc::set_handler(|| exit());
}

fn exit() -> ! {
    let mut err = std::io::stderr().lock();
    let clear = if err.is_terminal() { CLEAR } else { "" };
    let _ = writeln!(err, "{clear}interrupted");
    // Under the lock: whatever else runs writes nothing after this line.
    std::process::exit(i32::from(INTERRUPTED));
}

/// Leaves Ctrl-C to the process that started this one.
pub fn ignore() {
    let _ = ctrlc::set_handler(|| ());
}
