//! `playhouse theater`: a theater that others reach, with the actor types that are in this program.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use playhouse::{Counters, System, Theater, TheaterError};
pub use playhouse_console::address::address;

use crate::interrupt;
use crate::membership::Membership;
use crate::output::{BAD_INPUT, CLEAR, FAILED, fail, print};

/// Arguments of `playhouse theater`.
#[derive(clap::Args)]
pub struct Args {
    /// Where others may call; port 0 is any port that is free
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    listen: String,
    /// The address that others call, if it is not the one that this theater listens at: always where that is 0.0.0.0; port 0 is
    /// the port that it listens at
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    advertise: Option<String>,
    /// Another theater to join; it is called until it can be reached, and again when it is lost; may be given several times
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    join: Vec<String>,
    #[command(flatten)]
    membership: Membership,
    /// Worker threads, from 1 to 1024; one per core without
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
}

#[derive(Clone)]
enum Event {
    Interrupted,
    Joins(usize, Joins),
}

/// News of a theater that is to be joined.
#[derive(Clone)]
enum Joins {
    /// It cannot be reached yet, for this reason; it is called again.
    Waits(String),
    Joined,
    /// Its link is lost; it is called again.
    Lost,
    /// It refuses, for a reason that no second call changes: what ends the program.
    Refused(Arc<TheaterError>),
}

const REDRAW: Duration = Duration::from_secs(1);
/// The pause before a theater that could not be joined is called again.
const CALL_EVERY: Duration = Duration::from_millis(500);
/// How often it is looked whether a theater is lost.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Hosts a theater until Ctrl-C, SIGTERM or SIGHUP.
pub fn run(args: &Args) -> ExitCode {
    let (happens, happened) = mpsc::channel();
    interrupt::send_at_an_ending_then_exit(happens.clone(), Event::Interrupted);
    let mut system = System::builder();
    if let Some(workers) = args.workers {
        system = system.workers(usize::from(workers));
    }
    let builder = Theater::builder().listen(&*args.listen).system(system).inspected(true);
    let builder = match &args.advertise {
        Some(address) => builder.advertise(&**address),
        None => builder,
    };
    let builder = builder.on_rejected_peer(|error| eprintln!("{}refused a caller: {error}", clear()));
    let theater = match args.membership.of(builder).and_then(|builder| builder.start()) {
        Ok(theater) => theater,
        Err(error) => return refuse(&error),
    };
    if let Some(address) = theater.address() {
        print(&format!("listening at {address}"));
    }
    let closes = Arc::new(AtomicBool::new(false));
    for (number, address) in args.join.iter().enumerate() {
        let (theater, address, closes, happens) =
            (theater.clone(), address.clone(), Arc::clone(&closes), happens.clone());
        let tell = move |event| drop(happens.send(Event::Joins(number, event)));
        std::thread::spawn(move || keep_joined(&theater, &address, &closes, &tell));
    }
    let refused = watch(&theater, &args.join, &happened);
    // Relaxed: it is a flag by itself.
    closes.store(true, Ordering::Relaxed);
    if let Some(error) = refused {
        // It is told to those that were joined already.
        let _ = theater.shutdown();
        return refuse(&error);
    }
    eprintln!("closing; Ctrl-C again ends at once");
    match theater.shutdown() {
        Ok(_) => {
            print("closed");
            ExitCode::SUCCESS
        }
        Err(error) => fail(FAILED, &error.to_string()),
    }
}

/// Joins the theater at `address`, once it can be reached, and again when it is lost.
fn keep_joined(theater: &Theater, address: &str, closes: &AtomicBool, tell: &dyn Fn(Joins)) {
    let (mut waits, mut joined) = (false, false);
    // Relaxed: it is a flag by itself.
    while !closes.load(Ordering::Relaxed) {
        match theater.connect(address) {
            Ok(peer) => {
                (waits, joined) = (false, true);
                tell(Joins::Joined);
                while !peer.is_lost() {
                    std::thread::sleep(LOOK_EVERY);
                }
                tell(Joins::Lost);
                continue;
            }
            // A theater that was joined before is joined again whatever it says: its successor may be starting.
            Err(error @ TheaterError::Io { .. }) => {
                if !std::mem::replace(&mut waits, true) && !joined {
                    tell(Joins::Waits(error.to_string()));
                }
            }
            Err(_) if joined => {}
            Err(error) => return tell(Joins::Refused(Arc::new(error))),
        }
        std::thread::sleep(CALL_EVERY);
    }
}

/// What wipes the line of how things are, where there is one.
fn clear() -> &'static str {
    if std::io::stderr().is_terminal() { CLEAR } else { "" }
}

/// Says which theaters are joined and lost, and on a terminal how things are, until the user presses Ctrl-C or a theater refuses. Returns
/// why it does.
fn watch(theater: &Theater, join: &[String], happened: &Receiver<Event>) -> Option<Arc<TheaterError>> {
    let clear = clear();
    let (mut joined, mut lost) = (vec![false; join.len()], vec![false; join.len()]);
    loop {
        if !clear.is_empty() {
            let count = |those: &[bool]| those.iter().filter(|is| **is).count();
            eprint!("{clear}{}", status(count(&joined), count(&lost), &theater.system().stats().total));
        }
        match happened.recv_timeout(REDRAW) {
            Err(RecvTimeoutError::Timeout) => {}
            // No handler could be set: the signal ends the program.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(REDRAW),
            Ok(Event::Interrupted) => {
                eprint!("{clear}");
                return None;
            }
            Ok(Event::Joins(number, event)) => {
                (joined[number], lost[number]) = (matches!(event, Joins::Joined), matches!(event, Joins::Lost));
                let address = &join[number];
                match event {
                    Joins::Joined => {
                        eprint!("{clear}");
                        print(&format!("joined {address}"));
                    }
                    Joins::Lost => eprintln!("{clear}lost {address}"),
                    Joins::Waits(why) => eprintln!("{clear}cannot join {address} yet: {why}"),
                    Joins::Refused(error) => {
                        eprint!("{clear}");
                        return Some(error);
                    }
                }
            }
        }
    }
}

fn status(up: usize, lost: usize, total: &Counters) -> String {
    let Counters { received, dead_letters, crashes, .. } = total;
    format!("joined {up} ({lost} lost) | {received} messages | {dead_letters} dead letters | {crashes} crashes")
}

/// An error that has ended what was asked for before it began, said in the words of the command line.
pub fn refuse(error: &TheaterError) -> ExitCode {
    match error {
        TheaterError::NotLoopback { address } => fail(
            BAD_INPUT,
            &format!(
                "{address} is not on the loopback, where links are encrypted: give a certificate with --tls (`playhouse \
                 certificates` makes some), or allow plain links with --plaintext where the network is yours alone"
            ),
        ),
        TheaterError::Advertised { address, .. } => fail(
            BAD_INPUT,
            &format!(
                "{address} is no address that others can call: give the one that they call with --advertise HOST:PORT (port 0 is \
                 the port that this theater listens at)"
            ),
        ),
        TheaterError::System(why) | TheaterError::Certificates(why) => fail(BAD_INPUT, why),
        error => fail(FAILED, &error.to_string()),
    }
}
