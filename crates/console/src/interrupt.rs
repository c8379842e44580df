//! Ctrl-C, and the signals by which others end the program.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

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
    call_then_exit(move || drop(sender.send(event.clone())));
}

/// Calls `tell` once the user presses Ctrl-C, and ends the program at once when it is pressed again.
pub fn call_then_exit(tell: impl Fn() + Send + 'static) {
    let mut told = false;
    let _ = ctrlc::set_handler(move || {
        if std::mem::replace(&mut told, true) {
            exit();
        }
        tell();
    });
}

/// Does the same as [`send_then_exit`], also for the signals by which a supervisor ends a service: SIGTERM and SIGHUP. The second signal of any kind
/// ends the program at once.
#[cfg(unix)]
pub fn send_at_an_ending_then_exit<E: Clone + Send + 'static>(sender: Sender<E>, event: E) {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use signal_hook::consts::{SIGHUP, SIGTERM};

    let told = Arc::new(AtomicBool::new(false));
    let tell = move || {
        // Relaxed: it is a flag by itself.
        if told.swap(true, Ordering::Relaxed) {
            exit();
        }
        let _ = sender.send(event.clone());
    };
    if let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGTERM, SIGHUP]) {
        let tell = tell.clone();
        std::thread::spawn(move || signals.forever().for_each(|_| tell()));
    }
    let _ = ctrlc::set_handler(tell);
}

/// Does the same as [`send_then_exit`].
#[cfg(not(unix))]
pub fn send_at_an_ending_then_exit<E: Clone + Send + 'static>(sender: Sender<E>, event: E) {
    send_then_exit(sender, event);
}

/// Why something was not done to its end.
pub enum Stopped {
    /// The user has pressed Ctrl-C. It goes on until the program ends.
    Interrupted,
    /// It panicked.
    Panicked,
}

const REDRAW: Duration = Duration::from_millis(100);

/// Does something on a thread of its own, and calls `update` now and then meanwhile, until the user presses Ctrl-C.
pub fn unless_interrupted<T: Send + 'static>(
    update: impl Fn(),
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Stopped> {
    let (events, happened) = mpsc::channel();
    send_on_interrupt(events.clone(), Event::Interrupted);
    let worker = std::thread::spawn(move || {
        // Also says so when it panics.
        let _ended = OnDrop(Some(events));
        work()
    });
    let event = loop {
        match happened.recv_timeout(REDRAW) {
            Ok(event) => break event,
            Err(RecvTimeoutError::Timeout) => update(),
            Err(RecvTimeoutError::Disconnected) => break Event::Ended,
        }
    };
    match event {
        Event::Interrupted => Err(Stopped::Interrupted),
        Event::Ended => worker.join().map_err(|_| Stopped::Panicked),
    }
}

#[derive(Clone)]
enum Event {
    Ended,
    Interrupted,
}

/// Sends [`Event::Ended`] when its scope ends, whichever way.
struct OnDrop(Option<Sender<Event>>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        if let Some(events) = self.0.take() {
            let _ = events.send(Event::Ended);
        }
    }
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

/// The signals that end a program with a word less than Ctrl-C does, noted instead: for who has something to put right first.
#[cfg(unix)]
pub struct Endings {
    signal: std::sync::Arc<std::sync::atomic::AtomicUsize>,
}

#[cfg(unix)]
impl Endings {
    /// From now on they are noted.
    ///
    /// # Errors
    /// The system does not allow it.
    pub fn note() -> std::io::Result<Endings> {
        use signal_hook::consts::{SIGHUP, SIGTERM};
        let endings = Endings { signal: std::sync::Arc::default() };
        let again = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        for signal in [SIGHUP, SIGTERM] {
            // The second one ends the program, whatever that waits for.
            signal_hook::flag::register_conditional_default(signal, std::sync::Arc::clone(&again))?;
            signal_hook::flag::register(signal, std::sync::Arc::clone(&again))?;
            signal_hook::flag::register_usize(signal, std::sync::Arc::clone(&endings.signal), signal as usize)?;
        }
        Ok(endings)
    }

    /// Whether one has come.
    pub fn has_come(&self) -> bool {
        self.signal() != 0
    }

    /// Ends the program by the signal that has come, if one has.
    pub fn go(&self) {
        if self.has_come() {
            // Where it cannot be done, the program ends with an exit code.
            let _ = signal_hook::low_level::emulate_default_handler(self.signal() as i32);
        }
    }

    /// Relaxed: it is a number by itself.
    fn signal(&self) -> usize {
        self.signal.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// There are none.
#[cfg(not(unix))]
pub struct Endings;

#[cfg(not(unix))]
impl Endings {
    pub fn note() -> std::io::Result<Endings> {
        Ok(Endings)
    }

    pub fn has_come(&self) -> bool {
        false
    }

    pub fn go(&self) {}
}

/// Leaves Ctrl-C to the process that started this one.
pub fn ignore() {
    let _ = ctrlc::set_handler(|| ());
}
