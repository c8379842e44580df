//! Rules of theaters over a transport.

use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use playhouse::prelude::*;
use playhouse::serde::{Deserialize, Serialize};
use playhouse::transport::{Listener, Registration, Transport, Wire};

use super::{Outcome, Subject};

/// The number of messages that a [`Witness`] gets.
const MESSAGES: u64 = 10_000;
/// The number of bytes after which a breaking wire breaks.
const BYTES_BEFORE_BREAK: u64 = 200_000;

/// An actor that detects lost, repeated and reordered messages.
#[derive(Default, Serialize, Deserialize)]
#[serde(crate = "playhouse::serde")]
struct Witness {
    came: u64,
    wrong: Option<u64>,
}

#[actor(remote = "playhouse_testkit.conformance.Witness", mobile)]
impl Witness {
    #[message]
    fn note(&mut self, number: u64, padding: Vec<u8>) {
        if number != self.came || padding.iter().any(|byte| *byte != number as u8) {
            self.wrong.get_or_insert(number);
        }
        self.came += 1;
    }

    #[message]
    fn tell(&self) -> (u64, Option<u64>) {
        (self.came, self.wrong)
    }
}

/// A transport whose wires may break.
#[derive(Debug)]
struct BreakingTransport {
    to: Arc<dyn Transport>,
    /// The number of wires, if wires break.
    breaks: Option<Arc<AtomicU64>>,
}

impl Transport for BreakingTransport {
    fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn Listener>> {
        self.to.listen(address)
    }

    fn connect(&self, address: SocketAddr, limit: Duration) -> io::Result<Box<dyn Wire>> {
        let wire = self.to.connect(address, limit)?;
        let Some(count) = &self.breaks else { return Ok(wire) };
        count.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(BreakingWire { wire, left: AtomicU64::new(BYTES_BEFORE_BREAK) }))
    }
}

/// A wire that breaks after some bytes.
struct BreakingWire {
    wire: Box<dyn Wire>,
    left: AtomicU64,
}

impl Wire for BreakingWire {
    fn peer(&self) -> String {
        self.wire.peer()
    }

    fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.wire.set_nonblocking(nonblocking)
    }

    fn register(&self, registration: Registration<'_>) -> io::Result<()> {
        self.wire.register(registration)
    }

    fn set_limit(&self, limit: Duration) -> io::Result<()> {
        self.wire.set_limit(limit)
    }

    fn read(&self, room: &mut [u8]) -> io::Result<usize> {
        self.wire.read(room)
    }

    fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let count = self.wire.write(slices)?;
        let passes = |left: u64| left.checked_sub(count as u64);
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, passes).is_err() {
            self.wire.shutdown(Shutdown::Both)?;
        }
        Ok(count)
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.wire.shutdown(how)
    }
}

fn start(subject: &Subject, breaks: Option<Arc<AtomicU64>>) -> Result<Theater, String> {
    let transport = BreakingTransport { to: subject.transport(), breaks };
    let theater = Theater::builder().listen(subject.address.clone()).plaintext().transport(transport);
    theater.system(System::builder().workers(1)).start().map_err(|error| format!("a theater does not start: {error}"))
}

/// Sends numbers to an actor that migrates in the middle, and checks them.
fn exchange(here: &Theater, there: &Theater) -> Outcome {
    let failed = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
    let address = there.address().ok_or("a theater has no address")?.to_string();
    let at_home = there.system().spawn(Witness::default());
    there.publish("witness", at_home).map_err(|error| failed("publishing an actor", &error))?;
    let found = here.find::<Witness>(&format!("playhouse://{address}/witness")).wait();
    let witness = found.map_err(|error| failed("finding an actor", &error))?;
    let peer = here.connect(&address).map_err(|error| failed("connecting", &error))?;
    let goes = here.system().spawn(Witness::default());
    for number in 0..MESSAGES {
        // Every 1,000th message is larger than the buffers of a wire.
        let padding = vec![number as u8; if number % 1_000 == 999 { 1 << 20 } else { number as usize % 200 }];
        witness.tell(Note(number, padding.clone()));
        goes.tell(Note(number, padding));
        if number == MESSAGES / 2 {
            here.migrate(goes, &peer).wait().map_err(|error| failed("migrating an actor", &error))?;
        }
    }
    for (who, what) in [(witness, "the remote actor"), (goes, "the migrated actor")] {
        let (came, wrong) = who.ask(Tell).wait().map_err(|error| failed("asking", &error))?;
        if let Some(number) = wrong {
            return Err(format!("message {number} to {what} is out of order or damaged"));
        }
        if came != MESSAGES {
            return Err(format!("of {MESSAGES} messages to {what}, {came} have come"));
        }
    }
    Ok(())
}

fn close(theaters: [Theater; 2]) -> Outcome {
    theaters.into_iter().try_for_each(|theater| {
        theater.shutdown().map(drop).map_err(|error| format!("a theater does not end: {error}"))
    })
}

pub(super) fn talk(subject: &Subject) -> Outcome {
    let (here, there) = (start(subject, None)?, start(subject, None)?);
    exchange(&here, &there)?;
    close([here, there])
}

pub(super) fn go_on(subject: &Subject) -> Outcome {
    let wires = Arc::new(AtomicU64::new(0));
    let (here, there) = (start(subject, Some(Arc::clone(&wires)))?, start(subject, None)?);
    exchange(&here, &there)?;
    close([here, there])?;
    match wires.load(Ordering::Relaxed) {
        ..5 => Err("a connection that was shut down at both ends never broke".to_owned()),
        _ => Ok(()),
    }
}

pub(super) fn end(subject: &Subject) -> Outcome {
    let (here, there) = (start(subject, None)?, start(subject, None)?);
    let address = there.address().ok_or("a theater has no address")?;
    here.connect(address.to_string()).map_err(|error| format!("connecting: {error}"))?;
    close([here, there])?;
    let again = subject.transport().listen(address);
    again.map(drop).map_err(|error| format!("{address} cannot be listened at after its theater has ended: {error}"))
}
