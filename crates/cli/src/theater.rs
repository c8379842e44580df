//! `playhouse theater`: a theater that others reach, with the actor types that are in this program.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use playhouse::{Counters, Peer, System, Theater, TheaterError};

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
    /// Another theater to call, which must be there already; may be given several times
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    join: Vec<String>,
    #[command(flatten)]
    membership: Membership,
    /// Worker threads, from 1 to 1024; one per core without
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
}

/// Takes what looks like `host:port`; whether there is such a host is found out later.
pub fn address(text: &str) -> Result<String, String> {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(text.to_owned()),
        _ => Err("an address reads host:port, with a port from 0 to 65535".to_owned()),
    }
}

#[derive(Clone)]
struct Interrupted;

const REDRAW: Duration = Duration::from_secs(1);

/// Hosts a theater until Ctrl-C.
pub fn run(args: &Args) -> ExitCode {
    let (interrupt, interrupted) = mpsc::channel();
    interrupt::send_then_exit(interrupt, Interrupted);
    let mut system = System::builder();
    if let Some(workers) = args.workers {
        system = system.workers(usize::from(workers));
    }
    let builder = Theater::builder().listen(&*args.listen).system(system).inspected(true);
    let builder = match &args.advertise {
        Some(address) => builder.advertise(&**address),
        None => builder,
    };
    let builder = builder.on_stranger(|error| eprintln!("{}refused a caller: {error}", clear()));
    let theater = match args.membership.of(builder).and_then(|builder| builder.start()) {
        Ok(theater) => theater,
        Err(error) => return refuse(&error),
    };
    if let Some(address) = theater.address() {
        print(&format!("listening at {address}"));
    }
    let mut others = Vec::new();
    for address in &args.join {
        match theater.connect(address) {
            Ok(peer) => others.push(Other { address, peer, lost: false }),
            Err(error) => return refuse(&error),
        }
        print(&format!("joined {address}"));
    }
    watch(&theater, &mut others, &interrupted);
    eprintln!("closing; Ctrl-C again ends at once");
    match theater.shutdown() {
        Ok(_) => {
            print("closed");
            ExitCode::SUCCESS
        }
        Err(error) => fail(FAILED, &error.to_string()),
    }
}

/// A theater that was joined.
struct Other<'a> {
    address: &'a str,
    peer: Peer,
    /// That was said.
    lost: bool,
}

/// What wipes the line of how things are, where there is one.
fn clear() -> &'static str {
    if std::io::stderr().is_terminal() { CLEAR } else { "" }
}

/// Says who is lost, and on a terminal how things are, until the user presses Ctrl-C.
fn watch(theater: &Theater, others: &mut [Other<'_>], interrupted: &Receiver<Interrupted>) {
    let clear = clear();
    loop {
        for other in others.iter_mut().filter(|other| !other.lost && other.peer.is_lost()) {
            other.lost = true;
            eprintln!("{clear}lost {}", other.address);
        }
        if !clear.is_empty() {
            let lost = others.iter().filter(|other| other.lost).count();
            eprint!("{clear}{}", status(others.len() - lost, lost, &theater.system().stats().total));
        }
        match interrupted.recv_timeout(REDRAW) {
            Err(RecvTimeoutError::Timeout) => {}
            // No handler could be set: the signal ends the program.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(REDRAW),
            Ok(Interrupted) => break eprint!("{clear}"),
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
