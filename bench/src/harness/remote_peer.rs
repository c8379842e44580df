//! The other process of a remote benchmark: a theater, and beside it a plain socket for the baselines.
//!
//! Tests have no program to start twice; they run both processes' parts in their own process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::OnceLock;

use playhouse::prelude::*;
use playhouse::{Peer, SystemBuilder, Theater, Tls};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use serde::{Deserialize, Serialize};

use super::outcome::Failure;
use super::process::{END, Leader};

/// A first byte on the plain socket that asks for each frame back.
pub(crate) const ECHO: u8 = 1;
/// A first byte on the plain socket that asks for one byte back per number of bytes: see [`Stream`].
pub(crate) const STREAM: u8 = 2;

/// The bytes of a frame behind [`ECHO`]: those of a message of `rpingpong`, with its packet's head.
pub(crate) const PING_BYTES: usize = 40;

/// The eight bytes behind [`STREAM`]: the bytes per acknowledgement, little-endian.
pub(crate) type Stream = [u8; 8];

static PROGRAM: OnceLock<fn(usize) -> Command> = OnceLock::new();

/// Sets the command that starts this program and calls [`host`], with this number of workers.
pub fn set_program(program: fn(usize) -> Command) {
    // The first one counts.
    let _ = PROGRAM.set(program);
}

/// Runs the other process: prints its addresses, and serves until its input ends.
///
/// # Errors
///
/// If it cannot listen.
pub fn host(workers: usize) -> Result<(), Failure> {
    let mut parent = std::io::stdin().lock();
    let mut line = String::new();
    parent.read_line(&mut line).map_err(failure)?;
    let certificates: Option<Certificates> = serde_json::from_str(&line).map_err(failure)?;
    let hosting = Hosting::start(workers, certificates.as_ref())?;
    println!("{} {}", hosting.theater_address(), hosting.socket);
    // Until the end of the parent.
    let _ = parent.read_to_end(&mut Vec::new());
    Ok(())
}

/// The certificates of two processes, for one run.
#[derive(Serialize, Deserialize)]
pub(crate) struct Certificates {
    ca: String,
    certificate: String,
    key: String,
}

impl Certificates {
    fn new() -> Result<Certificates, rcgen::Error> {
        let mut ca = CertificateParams::new([])?;
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate()?)?;
        let mut theater = CertificateParams::new(["theater.playhouse".to_owned()])?;
        theater.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate()?;
        let certificate = theater.signed_by(&key, &ca)?;
        Ok(Certificates { ca: ca.pem(), certificate: certificate.pem(), key: key.serialize_pem() })
    }

    fn tls(&self) -> Result<Tls, Failure> {
        Tls::from_pem(self.ca.as_bytes(), self.certificate.as_bytes(), self.key.as_bytes()).map_err(failure)
    }
}

/// A theater and a plain socket.
struct Hosting {
    theater: Theater,
    socket: SocketAddr,
}

fn failure(error: impl std::fmt::Display) -> Failure {
    Failure::new(format!("the remote peer of a benchmark: {error}"))
}

impl Hosting {
    fn start(workers: usize, certificates: Option<&Certificates>) -> Result<Hosting, Failure> {
        let theater = theater_of(System::builder().workers(workers), certificates)?;
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failure)?;
        let socket = listener.local_addr().map_err(failure)?;
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || serve(stream));
            }
        });
        Ok(Hosting { theater, socket })
    }

    fn theater_address(&self) -> SocketAddr {
        self.theater.address().expect("it listens")
    }
}

/// Starts a theater on the loopback.
pub(crate) fn theater(workers: usize) -> Result<Theater, Failure> {
    theater_of(System::builder().workers(workers), None)
}

/// Starts a theater with as many workers and stages as `system`.
pub(crate) fn theater_like(system: &System) -> Result<Theater, Failure> {
    theater_of(System::builder().workers(system.workers()).stages(system.stages()), None)
}

fn theater_of(system: SystemBuilder, certificates: Option<&Certificates>) -> Result<Theater, Failure> {
    let mut theater = Theater::builder().listen("127.0.0.1:0").system(system);
    if let Some(certificates) = certificates {
        theater = theater.tls(certificates.tls()?);
    }
    theater.start().map_err(failure)
}

fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut asked = [0];
    stream.read_exact(&mut asked)?;
    if asked[0] == ECHO {
        let mut frame = [0; PING_BYTES];
        loop {
            stream.read_exact(&mut frame)?;
            stream.write_all(&frame)?;
        }
    }
    let mut every = Stream::default();
    stream.read_exact(&mut every)?;
    let every = u64::from_le_bytes(every);
    let mut buffer = vec![0; 64 * 1024];
    let mut left = every;
    loop {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        let mut count = count as u64;
        while count >= left {
            stream.write_all(&[1])?;
            count -= left;
            left = every;
        }
        left -= count;
    }
}

/// The other process, as seen from this one. It ends when this is dropped.
pub(crate) struct RemotePeer {
    theater: String,
    pub(crate) socket: SocketAddr,
    certificates: Option<Certificates>,
    /// The process, with its input.
    child: Option<(Leader, Option<ChildStdin>)>,
    here: Option<Hosting>,
}

impl RemotePeer {
    pub(crate) fn start(workers: usize) -> Result<RemotePeer, Failure> {
        RemotePeer::start_as(workers, None)
    }

    /// Starts a remote peer whose links are encrypted.
    pub(crate) fn encrypted(workers: usize) -> Result<RemotePeer, Failure> {
        RemotePeer::start_as(workers, Some(Certificates::new().map_err(failure)?))
    }

    fn start_as(workers: usize, certificates: Option<Certificates>) -> Result<RemotePeer, Failure> {
        let Some(program) = PROGRAM.get() else {
            let here = Hosting::start(workers, certificates.as_ref())?;
            let theater = here.theater_address().to_string();
            return Ok(RemotePeer { theater, socket: here.socket, certificates, child: None, here: Some(here) });
        };
        let mut command = program(workers);
        let started = command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = started.map_err(failure)?;
        let mut certificates_line = serde_json::to_vec(&certificates).map_err(failure)?;
        certificates_line.push(b'\n');
        let (mut input, out) = (child.stdin.take(), child.stdout.take().expect("it is piped"));
        let leader = Leader::of(child);
        input.as_mut().expect("it is piped").write_all(&certificates_line).map_err(failure)?;
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).map_err(failure)?;
        let (theater, socket) =
            line.trim().split_once(' ').ok_or_else(|| failure("it does not say where it listens"))?;
        let socket = socket.parse().map_err(failure)?;
        Ok(RemotePeer { theater: theater.to_owned(), socket, certificates, child: Some((leader, input)), here: None })
    }

    /// Starts a theater in this process, and connects it with the remote peer's.
    pub(crate) fn meet(&self, workers: usize) -> Result<(Theater, Peer), Failure> {
        let here = theater_of(System::builder().workers(workers), self.certificates.as_ref())?;
        let peer = self.join(&here)?;
        Ok((here, peer))
    }

    /// Connects `here` with the remote peer's theater.
    pub(crate) fn join(&self, here: &Theater) -> Result<Peer, Failure> {
        here.connect(&self.theater).map_err(failure)
    }
}

impl Drop for RemotePeer {
    fn drop(&mut self) {
        if let Some((leader, input)) = &mut self.child {
            drop(input.take());
            // It has nothing to lose.
            let _ = leader.end_within(END);
        }
        if let Some(hosting) = self.here.take() {
            let _ = hosting.theater.shutdown();
        }
    }
}
