//! `playhouse chatapp serve`: a world that waits to be driven.

use std::net::{SocketAddr, ToSocketAddrs};
use std::process::ExitCode;
use std::sync::mpsc;

use playhouse_bench::chatapp::driven::{Event, Server, ServerError};
use playhouse_bench::chatapp::{Options, Scenario};
use playhouse_console::address::address;
use playhouse_console::world::{resolve, show};

use crate::output::{BAD_INPUT, FAILED, fail, note, print};
use crate::signals::{self, Signal};

/// Arguments of `playhouse chatapp serve`.
#[derive(clap::Args)]
pub struct Args {
    /// A scenario file, or the name of a built-in scenario (see `playhouse scenario`)
    scenario: String,
    /// The address for drivers; port 0 is any free port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0", value_parser = address)]
    listen: String,
    /// Allow other networks than the loopback: nothing is encrypted, and any program on them may drive
    #[arg(long)]
    plaintext: bool,
    /// End when one world has been played
    #[arg(long)]
    once: bool,
    /// Worker threads, from 1 to 1024; one per core without
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
    /// Stages over all workers, from one per worker to 65,536; the runtime chooses without
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    stages: Option<u32>,
    /// The seed of the recording, instead of the scenario's
    #[arg(long, value_name = "N")]
    seed: Option<u32>,
    /// Print what has come of each world as a JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug)]
enum Happened {
    Signalled(Signal),
    There(Event),
}

/// Serves worlds until a signal ends the program.
pub fn run(args: &Args) -> ExitCode {
    let mut scenario = match resolve(&args.scenario) {
        Ok(scenario) => scenario,
        Err(error) => return fail(BAD_INPUT, &error),
    };
    scenario.seed = args.seed.unwrap_or(scenario.seed);
    let addresses: Vec<SocketAddr> = match args.listen.to_socket_addrs() {
        Ok(addresses) => addresses.collect(),
        Err(error) => return fail(FAILED, &format!("{}: {error}", args.listen)),
    };
    if let Some(open) = addresses.iter().find(|address| !address.ip().is_loopback() && !args.plaintext) {
        return fail(
            BAD_INPUT,
            &format!("{open} is not on the loopback: --plaintext allows that, where the network is yours alone"),
        );
    }
    serve(args, &scenario, &addresses)
}

fn serve(args: &Args, scenario: &Scenario, addresses: &[SocketAddr]) -> ExitCode {
    let options = Options {
        workers: args.workers.map(usize::from),
        stages: args.stages.map(|stages| stages as usize),
        ..Options::default()
    };
    let (happens, happened) = mpsc::channel();
    signals::send_first(happens.clone(), Happened::Signalled);
    let server = Server::start(addresses, scenario, &options, move |event| drop(happens.send(Happened::There(event))));
    let server = match server {
        Ok(server) => server,
        Err(ServerError::Listen(error)) => return fail(FAILED, &format!("{}: cannot listen: {error}", args.listen)),
        Err(error) => return fail(BAD_INPUT, &error.to_string()),
    };
    print(&format!("listening at {}", server.address()));
    let mut code = ExitCode::SUCCESS;
    for happened in happened {
        match happened {
            Happened::Signalled(signal) => {
                note("closing; another signal ends at once");
                if code == ExitCode::SUCCESS {
                    code = signal.code_after_drain();
                }
                break;
            }
            Happened::There(Event::Played(report)) => {
                let shown = show(&report, args.json, false);
                if !report.check.passed {
                    code = shown;
                }
                if args.once {
                    break;
                }
            }
            Happened::There(Event::Lost(why)) => {
                code = fail(FAILED, &format!("the world has stopped: {why}"));
                if args.once {
                    break;
                }
            }
            Happened::There(event) => note(&tell(&event)),
        }
    }
    drop(server);
    if !args.once {
        print("closed");
    }
    code
}

/// Names the message that the world waits for.
fn waits(next: u32) -> String {
    if next == 0 { "the set-up is next".to_owned() } else { format!("turn {next} is next") }
}

fn tell(event: &Event) -> String {
    match event {
        Event::Came(address, next) => format!("driver {address} has come: {}", waits(*next)),
        Event::Gone(address, next) => format!("driver {address} has gone: {}", waits(*next)),
        Event::Refused(address, what) => format!("driver {address} was refused: {what}"),
        other => format!("{other:?}"),
    }
}
