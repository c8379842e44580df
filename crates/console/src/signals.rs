//! The signals that end the program: SIGINT (Ctrl-C), SIGTERM and SIGHUP.
//!
//! [`start`] installs a handler for all of them, because the kernel ignores signals without a handler for process 1 of a container. The first signal ends
//! the program at once, unless a command has asked for it with [`send_first`]. Every later signal ends the program at once.
//! [`exit`] runs the clean-ups of [`at_exit`] first: temporary files are removed, and a terminal is restored.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::output::{CLEAR, is_reader_gone, write_error_if_ready};

/// A signal that ends the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// A supervisor or `kill` ends the program.
    Terminate,
    /// The terminal was closed.
    HangUp,
}

impl Signal {
    /// Returns the exit code of a program that the signal has cut short: 128 and the signal's number, as shells have it.
    pub fn code(self) -> u8 {
        match self {
            Signal::HangUp => 129,
            Signal::Interrupt => 130,
            Signal::Terminate => 143,
        }
    }

    /// Returns the exit code of a service that has drained after the signal. Supervisors end services with SIGTERM, and expect 0.
    pub fn code_after_drain(self) -> ExitCode {
        match self {
            Signal::Interrupt => ExitCode::from(self.code()),
            Signal::Terminate | Signal::HangUp => ExitCode::SUCCESS,
        }
    }

    /// Returns the name that the log and messages use.
    pub fn name(self) -> &'static str {
        match self {
            Signal::HangUp => "SIGHUP",
            Signal::Interrupt => "Ctrl-C",
            Signal::Terminate => "SIGTERM",
        }
    }

    /// Returns a word for the end that the signal brings.
    pub fn ending(self) -> &'static str {
        match self {
            Signal::HangUp => "hung up",
            Signal::Interrupt => "interrupted",
            Signal::Terminate => "terminated",
        }
    }
}

/// The program's reaction to the next signal.
enum Reaction {
    /// Ends the program.
    Exit,
    /// Calls the function once; the signal after it ends the program.
    Call(Box<dyn FnOnce(Signal) + Send>),
    Ignore,
}

static REACTION: Mutex<Reaction> = Mutex::new(Reaction::Exit);
static CLEAN_UPS: CleanUps = CleanUps::new();

fn reaction() -> MutexGuard<'static, Reaction> {
    REACTION.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Handles the signals from now on. SIGHUP stays ignored where `nohup` has started the program. If the system refuses the handler, a signal has its
/// usual effect.
#[cfg(unix)]
pub fn start() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

    let handled = if is_hang_up_ignored() { &[SIGINT, SIGTERM][..] } else { &[SIGINT, SIGTERM, SIGHUP] };
    if let Ok(mut signals) = signal_hook::iterator::Signals::new(handled) {
        std::thread::spawn(move || {
            for number in signals.forever() {
                arrive(match number {
                    SIGINT => Signal::Interrupt,
                    SIGTERM => Signal::Terminate,
                    _ => Signal::HangUp,
                });
            }
        });
    }
}

/// Returns whether the process that started this one has SIGHUP ignored. Only Linux tells.
#[cfg(unix)]
fn is_hang_up_ignored() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| is_first_signal_ignored(&status))
}

/// Returns whether the process with this `/proc/PID/status` ignores SIGHUP, which has the number 1.
#[cfg(unix)]
fn is_first_signal_ignored(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 != 0)
}

/// Handles Ctrl-C from now on.
#[cfg(not(unix))]
pub fn start() {
    let _the_usual_effect_stays = ctrlc::set_handler(|| arrive(Signal::Interrupt));
}

fn arrive(signal: Signal) {
    let mut reaction = reaction();
    match std::mem::replace(&mut *reaction, Reaction::Exit) {
        Reaction::Exit => {
            drop(reaction);
            exit(signal)
        }
        Reaction::Call(call) => {
            drop(reaction);
            call(signal);
        }
        Reaction::Ignore => *reaction = Reaction::Ignore,
    }
}

/// Sends an event for the next signal instead of ending the program. A second signal ends the program at once.
pub fn send_first<E: Send + 'static>(sender: Sender<E>, event: impl FnOnce(Signal) -> E + Send + 'static) {
    *reaction() = Reaction::Call(Box::new(move |signal| {
        if sender.send(event(signal)).is_err() {
            exit(signal);
        }
    }));
}

/// Ignores the signals: the process that started this one ends it.
pub fn ignore() {
    *reaction() = Reaction::Ignore;
}

/// Ignores Ctrl-C only, without [`start`]. Ctrl-C in a terminal also reaches the process that started this one, which ends it.
#[cfg(unix)]
pub fn ignore_interrupt() {
    let _the_usual_effect_stays = signal_hook::flag::register(signal_hook::consts::SIGINT, std::sync::Arc::default());
}

/// Ignores Ctrl-C.
#[cfg(not(unix))]
pub fn ignore_interrupt() {
    let _the_usual_effect_stays = ctrlc::set_handler(|| ());
}

/// Ends the program quietly, with success, as soon as standard output is a pipe that no process reads any more: its work would be in vain.
#[cfg(unix)]
pub fn exit_when_unread() {
    use rustix::event::{PollFd, PollFlags, poll};

    std::thread::spawn(|| {
        let out = std::io::stdout();
        let mut pipe = [PollFd::new(&out, PollFlags::empty())];
        if poll(&mut pipe, None).is_ok_and(|_| pipe[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)) {
            clean_up();
            std::process::exit(0);
        }
    });
}

/// Does nothing: the system does not tell.
#[cfg(not(unix))]
pub fn exit_when_unread() {}

/// Ends the program because of `signal`: runs the clean-ups, and says on standard error which signal it was.
pub fn exit(signal: Signal) -> ! {
    clean_up();
    let clear = if std::io::stderr().is_terminal() { CLEAR } else { "" };
    write_error_if_ready(&format!("{clear}{}\n", signal.ending()));
    std::process::exit(i32::from(signal.code()));
}

/// The time that the clean-ups may take. A stopped terminal takes no output, and a disk may not answer.
const CLEAN_UP_MAX: Duration = Duration::from_secs(1);

/// Runs the clean-ups, for a command that ends the program while its work goes on. Waits for them for at most 1 second.
pub fn clean_up() {
    let (sender, ended) = mpsc::channel();
    let run = move || {
        CLEAN_UPS.run();
        let _waited_too_long = sender.send(());
    };
    if std::thread::Builder::new().spawn(run).is_ok() {
        // A clean-up that panics drops the sender.
        let _late_or_failed = ended.recv_timeout(CLEAN_UP_MAX);
    }
}

struct CleanUps(Mutex<Registered>);

struct Registered {
    /// The number of the next clean-up.
    next: u64,
    /// The clean-ups with their numbers.
    all: Vec<(u64, CleanUp)>,
    /// The clean-ups have run, and the program ends.
    have_run: bool,
}

type CleanUp = Box<dyn FnOnce() + Send>;

impl CleanUps {
    const fn new() -> CleanUps {
        CleanUps(Mutex::new(Registered { next: 0, all: Vec::new(), have_run: false }))
    }

    fn lock(&self) -> MutexGuard<'_, Registered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a clean-up. It runs at once if the others have run, because the other threads go on until the program ends.
    fn add(&'static self, clean_up: CleanUp) -> AtExit {
        let mut registered = self.lock();
        let number = registered.next;
        registered.next += 1;
        if registered.have_run {
            drop(registered);
            clean_up();
        } else {
            registered.all.push((number, clean_up));
        }
        AtExit { all: self, number }
    }

    /// Creates something and registers its clean-up in one step. Waits for the end of the program if the others have run.
    fn create<T, E>(&'static self, create: impl FnOnce() -> Result<T, E>, clean_up: CleanUp) -> Result<(T, AtExit), E> {
        let mut registered = self.lock();
        if registered.have_run {
            drop(registered);
            park_until_the_end();
        }
        let created = create()?;
        let number = registered.next;
        registered.next += 1;
        registered.all.push((number, clean_up));
        Ok((created, AtExit { all: self, number }))
    }

    /// Runs all, the latest first, as for values that go out of scope.
    fn run(&self) {
        let mut registered = self.lock();
        registered.have_run = true;
        let clean_ups = std::mem::take(&mut registered.all);
        drop(registered);
        clean_ups.into_iter().rev().for_each(|(_, clean_up)| clean_up());
    }

    /// Forgets clean-ups in one step. If they have run, the program is ending, and the caller must not claim success: it waits for the end.
    fn forget(&self, numbers: &[u64]) {
        let mut registered = self.lock();
        if registered.have_run {
            drop(registered);
            park_until_the_end();
        }
        registered.all.retain(|(number, _)| !numbers.contains(number));
    }
}

/// Waits while another thread ends the program.
fn park_until_the_end() -> ! {
    loop {
        std::thread::park();
    }
}

/// Forgets the clean-ups of all guards in one step: a signal runs all of them, or none. Does not return if they have run.
pub fn forget<'a>(guards: impl Iterator<Item = &'a AtExit>) {
    let numbers: Vec<u64> = guards.map(|guard| guard.number).collect();
    CLEAN_UPS.forget(&numbers);
}

/// Does not return if a signal is ending the program. An error may be an effect of the clean-ups, and is then not reported.
pub fn yield_to_signal() {
    CLEAN_UPS.forget(&[]);
}

/// A clean-up that a signal runs. Dropping the guard forgets it.
#[must_use]
pub struct AtExit {
    all: &'static CleanUps,
    number: u64,
}

/// Has `clean_up` run if a signal ends the program before the guard is dropped.
pub fn at_exit(clean_up: impl FnOnce() + Send + 'static) -> AtExit {
    CLEAN_UPS.add(Box::new(clean_up))
}

/// Creates something, for example a file, that `clean_up` removes if a signal ends the program before the guard is dropped. A signal waits
/// until it is created; after a signal, nothing is created.
pub fn create<T, E>(
    create: impl FnOnce() -> Result<T, E>,
    clean_up: impl FnOnce() + Send + 'static,
) -> Result<(T, AtExit), E> {
    CLEAN_UPS.create(create, Box::new(clean_up))
}

impl Drop for AtExit {
    fn drop(&mut self) {
        self.all.lock().all.retain(|(number, _)| *number != self.number);
    }
}

/// The reason why work has no result.
pub enum Stopped {
    /// A signal has come. The work goes on until the program ends.
    Signalled(Signal),
    /// Standard output is a pipe that no process reads any more. The work goes on until the program ends.
    Unread,
    /// The work panicked.
    Panicked,
}

const REDRAW: Duration = Duration::from_millis(100);

/// Does work on a thread of its own, and calls `update` 10 times per second. Returns early when a signal comes, and when no process reads standard
/// output any more.
///
/// # Errors
/// The work has no result.
pub fn unless_stopped<T: Send + 'static>(
    update: impl Fn(),
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Stopped> {
    unless(is_reader_gone, update, work)
}

/// Does the same as [`unless_stopped`], for work whose result is not on standard output: the work goes on without a reader.
///
/// # Errors
/// The work has no result, but never because of [`Stopped::Unread`].
pub fn unless_signalled<T: Send + 'static>(
    update: impl Fn(),
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Stopped> {
    unless(|| false, update, work)
}

fn unless<T: Send + 'static>(
    is_unread: impl Fn() -> bool,
    update: impl Fn(),
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Stopped> {
    let (events, received) = mpsc::channel();
    send_first(events.clone(), Some);
    let worker = std::thread::spawn(move || {
        let _ended = EndOfWork(events);
        work()
    });
    loop {
        match received.recv_timeout(REDRAW) {
            Ok(Some(signal)) => return Err(Stopped::Signalled(signal)),
            Ok(None) | Err(RecvTimeoutError::Disconnected) => return worker.join().map_err(|_| Stopped::Panicked),
            Err(RecvTimeoutError::Timeout) if is_unread() => return Err(Stopped::Unread),
            Err(RecvTimeoutError::Timeout) => update(),
        }
    }
}

/// Sends `None` when its scope ends, by a return or by a panic.
struct EndOfWork(Sender<Option<Signal>>);

impl Drop for EndOfWork {
    fn drop(&mut self) {
        let _the_main_thread_has_gone_on = self.0.send(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_shells_and_supervisors() {
        let codes = [Signal::HangUp, Signal::Interrupt, Signal::Terminate].map(Signal::code);
        assert_eq!(codes, [129, 130, 143]);
        assert_eq!(Signal::Terminate.code_after_drain(), ExitCode::SUCCESS);
        assert_eq!(Signal::HangUp.code_after_drain(), ExitCode::SUCCESS);
        assert_eq!(Signal::Interrupt.code_after_drain(), ExitCode::from(130));
    }

    #[cfg(unix)]
    #[test]
    fn an_ignored_hang_up_is_read_from_the_status_of_the_process() {
        let status = |mask: &str| format!("Name:\tplayhouse\nSigIgn:\t{mask}\nSigCgt:\t0000000000000001\n");
        assert!(is_first_signal_ignored(&status("0000000000001001")));
        assert!(!is_first_signal_ignored(&status("0000000000001002")));
        assert!(!is_first_signal_ignored("Name:\tplayhouse\n"));
    }

    #[test]
    fn a_dropped_guard_forgets_its_clean_up() {
        static ALL: CleanUps = CleanUps::new();
        let (ran, runs) = mpsc::channel();
        let add = |number| {
            let ran = ran.clone();
            ALL.add(Box::new(move || ran.send(number).expect("the test listens")))
        };
        let (first, second, third) = (add(1), add(2), add(3));
        drop(second);
        let (fourth, fifth) = (add(4), add(5));
        ALL.forget(&[fourth.number, fifth.number]);
        ALL.run();
        assert_eq!(runs.try_iter().collect::<Vec<_>>(), [3, 1]);
        // The program ends, and a file that another thread begins is removed at once.
        let late = add(6);
        assert_eq!(runs.try_iter().collect::<Vec<_>>(), [6]);
        drop((first, third, fourth, fifth, late));
    }
}
