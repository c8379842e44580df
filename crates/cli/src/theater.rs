//! `playhouse theater`: a theater that others reach, with the actor types of this program.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use playhouse::{Counters, EvacuationReport, LinkState, System, Theater, TheaterError};
pub use playhouse_console::address::address;
use playhouse_console::output::{self, BAD_INPUT, FAILED, fail, print};
use playhouse_console::progress::StatusLine;
use playhouse_console::signals::{self, Signal};
use serde_json::json;
use tracing::{debug, info, warn};

use crate::membership::Membership;
use crate::peers::Peers;
use crate::rejections::Rejections;

/// Arguments of `playhouse theater`.
#[derive(clap::Args)]
pub struct Args {
    /// Address to listen at; port 0 is any free port
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    listen: String,
    /// Address that other theaters call, where that is not the address to listen at: always for 0.0.0.0; port 0 is the port that this theater listens at
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    advertise: Option<String>,
    /// Another theater to join; it is called until it can be reached, and again when it is lost; may be given several times. If the first answer is that one
    /// of the two has the wrong cluster, cookie or certificate, or if another program listens there, this theater ends with exit code 1
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    join: Vec<String>,
    #[command(flatten)]
    membership: Membership,
    /// Worker threads, from 1 to 1024; one per core without
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
    /// Seconds that a drain may take to move the actors to other theaters, from 0 to 3600; 0 moves none
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = clap::value_parser!(u64).range(0..=3600))]
    drain_seconds: u64,
    /// Print a JSON object for each line of the output
    #[arg(long)]
    json: bool,
}

/// The end of the help of `playhouse theater`.
pub const SIGNALS: &str = "\
Output: `listening at HOST:PORT`, with `, advertised as HOST:PORT` where others call another address, `joined HOST:PORT` for each theater of --join, and \
`closed`. With --json, each line is an object with \"event\" and \"address\", the one that others call. \"listen\" is the one to listen at where it differs.

Signals: SIGTERM, SIGHUP and Ctrl-C drain the theater: its actors move to linked theaters, messages are handled, and the others hear the shutdown. The \
exit code is then 0, or 130 for Ctrl-C. This takes at most --drain-seconds and 7 seconds, and at most 10 seconds in all if there is nothing to move. \
A second signal ends the program at once, and so does one before the theater listens: with 143, 129 or 130.";

enum Event {
    Signal(Signal),
    Joins(usize, Joins),
}

/// News of a theater of `--join`.
enum Joins {
    /// The theater cannot be joined yet, for this reason, and is called again.
    Waits(String),
    Joined,
    /// The link is lost, and the theater is called again.
    Lost,
    /// The first answer is that the two theaters do not belong together, which no second call changes. The program ends.
    Refused(TheaterError),
}

/// The time between two status lines.
const REDRAW: Duration = Duration::from_secs(1);
/// The time between two looks at the peers.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The pause before a theater that could not be reached is called again.
const CALL_EVERY: Duration = Duration::from_millis(500);
/// Maximum pause before a theater that refuses this one is called again.
const REFUSED_PAUSE_MAX: Duration = Duration::from_secs(5);
/// The time after which a shutdown says which peers it waits for.
const AWAITED_AFTER: Duration = Duration::from_millis(500);

/// Hosts a theater until a signal comes.
pub fn run(args: &Args) -> ExitCode {
    // A signal ends the program at once until the theater runs: there is nothing to drain, and the start may wait.
    let theater = match start(args) {
        Ok(theater) => theater,
        Err(error) => return refuse(&error),
    };
    let (events, received) = mpsc::channel();
    signals::send_first(events.clone(), Event::Signal);
    if let Some(address) = theater.address() {
        let bound = theater.bound_address().filter(|bound| *bound != address);
        let (cluster, links) = (args.membership.cluster(), args.membership.protection());
        let (logged, listen) = (&*address.to_string(), bound.map(|bound| bound.to_string()));
        info!(address = logged, listen, cluster, links, "theater started");
        print(&listening(address, bound, args.json));
    }
    let closes = Arc::new(AtomicBool::new(false));
    for (number, address) in args.join.iter().enumerate() {
        let (theater, address, closes, events) =
            (theater.clone(), address.clone(), Arc::clone(&closes), events.clone());
        let tell = move |event| drop(events.send(Event::Joins(number, event)));
        std::thread::spawn(move || keep_joined(&theater, &address, &closes, &tell));
    }
    let end = watch(&theater, args, &received);
    // Relaxed: it is a flag by itself.
    closes.store(true, Ordering::Relaxed);
    match end {
        End::Signal(signal) => {
            info!(signal = signal.name(), hint = "a second signal ends the program at once", "draining");
            drain(&theater, Duration::from_secs(args.drain_seconds));
            let ends = theater.clone();
            match await_peers(&theater, Duration::MAX, move || ends.shutdown()).expect("the shutdown has a limit") {
                Ok(_) => {
                    info!("theater closed");
                    say(args, "closed", None);
                    signal.code_after_drain()
                }
                Err(error) => fail(FAILED, &error.to_string()),
            }
        }
        End::Refused(error) => {
            // The theaters that were joined already hear it.
            let _ = theater.shutdown();
            refuse(&error);
            // Never the code for wrong options, because the theater has run.
            ExitCode::from(FAILED)
        }
        End::OutputFailed => {
            let _ = theater.shutdown();
            ExitCode::SUCCESS
        }
    }
}

fn start(args: &Args) -> Result<Theater, TheaterError> {
    let mut system = System::builder();
    if let Some(workers) = args.workers {
        system = system.workers(usize::from(workers));
    }
    let rejections = Rejections::default();
    let mut builder = Theater::builder().listen(&*args.listen).system(system).inspected(true);
    if let Some(address) = &args.advertise {
        builder = builder.advertise(&**address);
    }
    args.membership.apply(builder.on_rejected_peer(move |error| rejections.log(error)))?.start()
}

/// Returns the line for a theater that others call at `address`, and that listens at `bound` where that is another one.
fn listening(address: SocketAddr, bound: Option<SocketAddr>, json: bool) -> String {
    match (json, bound) {
        (false, None) => format!("listening at {address}"),
        (false, Some(bound)) => format!("listening at {bound}, advertised as {address}"),
        (true, None) => json!({ "event": "listening", "address": address }).to_string(),
        (true, Some(bound)) => json!({ "event": "listening", "address": address, "listen": bound }).to_string(),
    }
}

/// Prints an event.
fn say(args: &Args, event: &str, address: Option<&str>) {
    match (args.json, address) {
        (true, Some(address)) => print(&json!({ "event": event, "address": address }).to_string()),
        (true, None) => print(&json!({ "event": event }).to_string()),
        (false, Some(address)) => print(&format!("{event} {address}")),
        (false, None) => print(event),
    }
}

/// Joins the theater at `address`, once it can be reached, and again when it is lost.
fn keep_joined(theater: &Theater, address: &str, closes: &AtomicBool, tell: &dyn Fn(Joins)) {
    let (mut joined, mut refusals, mut reasons) = (false, 0, Vec::new());
    // Relaxed: it is a flag by itself.
    while !closes.load(Ordering::Relaxed) {
        let error = match theater.connect(address) {
            Ok(peer) => {
                debug!(address, found = peer.address().map(|found| found.to_string()).as_deref(), "peer called");
                (joined, refusals) = (true, 0);
                reasons.clear();
                tell(Joins::Joined);
                while !peer.is_lost() {
                    std::thread::sleep(LOOK_EVERY);
                }
                tell(Joins::Lost);
                continue;
            }
            Err(error) => error,
        };
        let may_change = matches!(error, TheaterError::Io { .. } | TheaterError::Refused { .. });
        // A theater that was joined before is joined again whatever it says: its successor may be starting.
        if !may_change && !joined {
            return tell(Joins::Refused(error));
        }
        refusals = if matches!(error, TheaterError::Io { .. }) { 0 } else { refusals + 1 };
        let (pause, reason) = (pause(refusals, RandomState::new().hash_one(refusals)), error.to_string());
        debug!(address, reason, pause_seconds = pause.as_secs_f64(), "peer called in vain");
        if !reasons.contains(&reason) {
            reasons.push(reason.clone());
            tell(Joins::Waits(reason));
        }
        std::thread::sleep(pause);
    }
}

/// Returns the pause after this number of refusals in a row: each may take twice as long as the one before, and half of it is drawn.
fn pause(refusals: u32, drawn: u64) -> Duration {
    if refusals == 0 {
        return CALL_EVERY;
    }
    let half = CALL_EVERY.saturating_mul(1 << refusals.min(10)).min(REFUSED_PAUSE_MAX) / 2;
    half + Duration::from_millis(drawn % (half.as_millis() as u64 + 1))
}

/// The reason why the theater closes.
enum End {
    Signal(Signal),
    Refused(TheaterError),
    /// Standard output takes nothing more, and no reader learns the address.
    OutputFailed,
}

/// Logs the peers, prints which theaters are joined, and shows the status on a terminal, until the theater has to close.
fn watch(theater: &Theater, args: &Args, received: &Receiver<Event>) -> End {
    let line = StatusLine::new(None, false);
    let mut peers = Peers::default();
    let (mut joined, mut lost) = (vec![false; args.join.len()], vec![false; args.join.len()]);
    let mut redraw = Instant::now();
    let end = loop {
        peers.log_changes(theater);
        if redraw <= Instant::now() {
            redraw += REDRAW;
            let count = |those: &[bool]| those.iter().filter(|is| **is).count();
            line.show(&status(count(&joined), count(&lost), &theater.system().stats().total));
        }
        if output::is_incomplete() {
            break End::OutputFailed;
        }
        match received.recv_timeout(LOOK_EVERY) {
            Err(RecvTimeoutError::Timeout) => {}
            // The signals could not be handled: one ends the program.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(REDRAW),
            Ok(Event::Signal(signal)) => break End::Signal(signal),
            Ok(Event::Joins(number, event)) => {
                if !matches!(event, Joins::Waits(_)) {
                    (joined[number], lost[number]) = (matches!(event, Joins::Joined), matches!(event, Joins::Lost));
                }
                let address = &args.join[number];
                match event {
                    Joins::Joined => {
                        peers.log_changes(theater);
                        say(args, "joined", Some(address));
                    }
                    // The log of the peers has it.
                    Joins::Lost => {}
                    Joins::Waits(reason) => warn!(address, reason, "peer cannot be joined yet"),
                    Joins::Refused(error) => break End::Refused(error),
                }
            }
        }
    };
    line.clear();
    peers.log_changes(theater);
    end
}

fn status(joined: usize, lost: usize, total: &Counters) -> [String; 4] {
    let Counters { received, dead_letters, crashes, .. } = total;
    [
        format!("joined {joined} ({lost} lost)"),
        format!("{received} messages"),
        format!("{dead_letters} dead letters"),
        format!("{crashes} crashes"),
    ]
}

/// Moves the actors to the linked theaters that listen, as far as they get there within `limit`.
fn drain(theater: &Theater, limit: Duration) {
    let mut peers = theater.peers();
    // A program that only calls others, such as `playhouse top`, is no place to stay.
    peers.retain(|peer| peer.address().is_some() && peer.state().link == LinkState::Linked);
    if limit.is_zero() || peers.is_empty() {
        return;
    }
    let evacuates = theater.clone();
    match await_peers(theater, limit, move || evacuates.evacuate(&peers)) {
        Some(EvacuationReport { moved, stayed, .. }) => {
            for (actor, reason) in &stayed {
                debug!(actor = &*actor.to_string(), reason = &*reason.to_string(), "actor stays");
            }
            info!(moved, stayed = stayed.len(), "actors moved to other theaters");
        }
        None => {
            let Counters { spawned, stopped, .. } = theater.system().stats().total;
            warn!(seconds = limit.as_secs(), actors = spawned.saturating_sub(stopped), "drain stopped at its limit");
        }
    }
}

/// Does a part of the shutdown on another thread. Logs the peers that it waits for, if it takes long. Returns `None` if it takes longer than `limit`.
fn await_peers<R: Send + 'static>(
    theater: &Theater,
    limit: Duration,
    part: impl FnOnce() -> R + Send + 'static,
) -> Option<R> {
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || ended.send(part()));
    let first = limit.min(AWAITED_AFTER);
    end.recv_timeout(first).ok().or_else(|| {
        Peers::log_awaited(theater);
        end.recv_timeout(limit - first).ok()
    })
}

/// Reports an error that has ended the command before it began, in the words of the command line.
pub fn refuse(error: &TheaterError) -> ExitCode {
    match error {
        TheaterError::NotLoopback { address } => fail(
            BAD_INPUT,
            &format!(
                "{address} is not on the loopback, and other links must be encrypted: give certificates with --tls (`playhouse \
                 certificates` writes some), or allow plain links with --plaintext where the network is yours alone"
            ),
        ),
        TheaterError::Advertised { address, .. } => fail(
            BAD_INPUT,
            &format!(
                "{address} is no address that others can call: give the one that they call with --advertise HOST:PORT (port 0 is \
                 the port that this theater listens at)"
            ),
        ),
        TheaterError::System(why) | TheaterError::Certificates(why) | TheaterError::Cookie(why) => fail(BAD_INPUT, why),
        TheaterError::Tls { .. } => fail(FAILED, &format!("{error}; --tls names those of this one")),
        error => fail(FAILED, &error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use playhouse::prelude::*;
    use serde::{Deserialize, Serialize};

    use super::*;

    #[test]
    fn pauses_after_refusals_double_up_to_a_bound() {
        assert_eq!(pause(0, 7), CALL_EVERY);
        for refusals in 1..100 {
            let longest = CALL_EVERY.saturating_mul(1 << refusals.min(10)).min(REFUSED_PAUSE_MAX);
            for drawn in [0, 1, u64::MAX] {
                let pause = pause(refusals, drawn);
                assert!((longest / 2..=longest).contains(&pause), "{refusals}: {pause:?}");
            }
        }
    }

    static MIGRATIONS: AtomicUsize = AtomicUsize::new(0);

    #[derive(Serialize, Deserialize)]
    struct Counter(u32);

    #[actor(mobile)]
    impl Counter {
        #[migrated]
        fn arrive(&mut self) {
            MIGRATIONS.fetch_add(1, Ordering::SeqCst);
        }

        #[message]
        fn count(&mut self) -> u32 {
            self.0 += 1;
            self.0
        }
    }

    // GUARANTEE: Signals drain
    #[test]
    fn a_drain_moves_the_actors_to_a_theater_that_listens() {
        let theater = || Theater::builder().listen("127.0.0.1:0").start().unwrap();
        let [drained, other] = [(); 2].map(|()| theater());
        let silent = Theater::builder().start().unwrap();
        silent.connect(drained.address().unwrap()).unwrap();
        let counter = drained.system().spawn(Counter(0));
        assert_eq!(counter.ask(Count).wait().unwrap(), 1);
        // No theater listens but the one itself, and the actor stays.
        drain(&drained, Duration::from_secs(60));
        assert_eq!(MIGRATIONS.load(Ordering::SeqCst), 0);
        drained.connect(other.address().unwrap()).unwrap();
        drain(&drained, Duration::from_secs(60));
        assert_eq!(counter.ask(Count).wait().unwrap(), 2);
        assert_eq!(MIGRATIONS.load(Ordering::SeqCst), 1);
        for theater in [drained, other, silent] {
            theater.shutdown().unwrap();
        }
    }
}
