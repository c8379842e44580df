//! TCP with one fault at a time. Each fault breaks a rule, and the rule has to find it.

use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use playhouse::transport::{Listener, Registration, Transport, Wire};

use super::waiting::is_late;
use super::{RULE_TIME_MAX, RULES, Subject};

const ANYWHERE: &str = "127.0.0.1:0";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// The listener reports port 0.
    NoPort,
    /// Two listeners share an address.
    Shares,
    /// An address in use is refused with another error.
    OtherWords,
    /// The listener goes on when it is dropped.
    ListensOn,
    /// `accept` waits if nobody connects.
    Waits,
    /// The listener registers a foreign descriptor.
    DeafListener,
    /// A connection succeeds where nobody listens.
    Anybody,
    /// Two bytes are swapped.
    Swaps,
    /// A byte is repeated.
    Repeats,
    /// A byte is changed.
    Damages,
    /// A write reports more bytes than it was given.
    Boasts,
    /// Every other connection gets the stream of the one before.
    MixesUp,
    NoLimit,
    /// A call fails at once instead of waiting.
    FailsAtOnce,
    /// A read without data reports the end.
    EndsEarly,
    /// A read returns a few bytes at a time, whatever has come.
    Pieces,
    /// A write takes all bytes, and loses those without room.
    NoBounds,
    /// The wire registers a foreign descriptor.
    Deaf,
    EndsBoth,
    /// The last byte of a write is lost.
    LosesTheRest,
    /// A shutdown does nothing.
    SleepsOn,
    /// The connection survives the drop of its wire.
    HangsOn,
}

#[derive(Debug)]
struct FaultyTransport {
    fault: Fault,
    listening: Arc<Mutex<Vec<TcpListener>>>,
}

struct FaultyListener {
    fault: Fault,
    listener: TcpListener,
    /// A pair that is never ready.
    deaf: [UnixStream; 2],
    earlier: Mutex<Option<TcpStream>>,
}

struct FaultyWire {
    fault: Fault,
    stream: TcpStream,
    /// A descriptor that is never ready.
    deaf: UnixStream,
    written: AtomicU64,
    done: AtomicBool,
    last: Mutex<Option<u8>>,
}

fn line(fault: Fault, stream: TcpStream) -> Box<dyn Wire> {
    if fault == Fault::HangsOn {
        std::mem::forget(stream.try_clone().unwrap());
    }
    let (deaf, other) = UnixStream::pair().unwrap();
    std::mem::forget(other);
    let (written, done) = (AtomicU64::new(0), AtomicBool::new(false));
    Box::new(FaultyWire { fault, stream, deaf, written, done, last: Mutex::default() })
}

impl Transport for FaultyTransport {
    fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn Listener>> {
        let mut listening = self.listening.lock().unwrap();
        let shared = listening.iter().find(|listener| listener.local_addr().is_ok_and(|at| at == address));
        let listener = match shared.filter(|_| self.fault == Fault::Shares) {
            Some(shared) => shared.try_clone()?,
            None => match TcpListener::bind(address) {
                Err(error) if self.fault == Fault::OtherWords => return Err(io::Error::other(error)),
                listener => listener?,
            },
        };
        listener.set_nonblocking(self.fault != Fault::Waits)?;
        if matches!(self.fault, Fault::Shares | Fault::ListensOn) {
            listening.push(listener.try_clone()?);
        }
        let deaf = UnixStream::pair()?.into();
        Ok(Box::new(FaultyListener { fault: self.fault, listener, deaf, earlier: Mutex::default() }))
    }

    fn connect(&self, address: SocketAddr, limit: Duration) -> io::Result<Box<dyn Wire>> {
        let stream = match TcpStream::connect_timeout(&address, limit) {
            Err(_) if self.fault == Fault::Anybody => TcpStream::connect(TcpListener::bind(ANYWHERE)?.local_addr()?),
            stream => stream,
        };
        Ok(line(self.fault, stream?))
    }
}

impl Listener for FaultyListener {
    fn address(&self) -> io::Result<SocketAddr> {
        let mut address = self.listener.local_addr()?;
        if self.fault == Fault::NoPort {
            address.set_port(0);
        }
        Ok(address)
    }

    fn register(&mut self, registration: Registration<'_>) -> io::Result<()> {
        match self.fault {
            Fault::DeafListener => registration.descriptor(&self.deaf[0]),
            _ => registration.descriptor(&self.listener),
        }
    }

    fn accept(&self) -> io::Result<Box<dyn Wire>> {
        let (stream, _) = self.listener.accept()?;
        let mut earlier = self.earlier.lock().unwrap();
        if let Some(earlier) = earlier.take() {
            return Ok(line(self.fault, earlier));
        }
        if self.fault == Fault::MixesUp {
            *earlier = Some(stream.try_clone()?);
        }
        Ok(line(self.fault, stream))
    }
}

impl Wire for FaultyWire {
    fn peer(&self) -> String {
        self.stream.peer()
    }

    fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.stream.set_nonblocking(nonblocking || self.fault == Fault::FailsAtOnce)
    }

    fn register(&self, registration: Registration<'_>) -> io::Result<()> {
        if self.fault == Fault::Deaf {
            registration.descriptor(&self.deaf)
        } else {
            registration.descriptor(&self.stream)
        }
    }

    fn set_limit(&self, limit: Duration) -> io::Result<()> {
        match self.fault {
            Fault::NoLimit => Ok(()),
            Fault::FailsAtOnce => self.stream.set_nonblocking(true),
            _ => self.stream.set_limit(limit),
        }
    }

    fn read(&self, room: &mut [u8]) -> io::Result<usize> {
        let most = if self.fault == Fault::Pieces { room.len().min(1_000) } else { room.len() };
        match Wire::read(&self.stream, &mut room[..most]) {
            Err(error) if self.fault == Fault::EndsEarly && is_late(&error) => Ok(0),
            read => read,
        }
    }

    fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut bytes = slices.iter().flat_map(|slice| slice.to_vec()).collect::<Vec<u8>>();
        let count = bytes.len();
        let before = self.written.fetch_add(count as u64, Ordering::Relaxed);
        // The fault happens once, after about 64 KiB.
        let now = count > 8 && before > 1 << 16 && !self.done.swap(true, Ordering::Relaxed);
        match self.fault {
            Fault::Swaps if now => bytes.swap(3, 5),
            Fault::Damages if now => bytes[3] ^= 0xff,
            Fault::Repeats if now => bytes.insert(4, bytes[3]),
            Fault::LosesTheRest => {
                let mut last = self.last.lock().unwrap();
                let next = bytes.pop();
                bytes.splice(0..0, last.take());
                *last = next;
            }
            _ => {}
        }
        let mut left = &bytes[..];
        while !left.is_empty() {
            match Wire::write(&self.stream, &[IoSlice::new(left)]) {
                Ok(written) => left = &left[written..],
                Err(error) if is_late(&error) && self.fault == Fault::NoBounds => return Ok(count),
                Err(error) if is_late(&error) && left.len() < bytes.len() => break,
                Err(error) => return Err(error),
            }
        }
        let written = if left.is_empty() { count } else { (bytes.len() - left.len()).min(count) };
        Ok(if self.fault == Fault::Boasts { written + 1 } else { written })
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self.fault {
            Fault::EndsBoth => self.stream.shutdown(Shutdown::Both),
            Fault::SleepsOn => Ok(()),
            _ => self.stream.shutdown(how),
        }
    }
}

/// The fault that each rule has to find, and words of the finding.
const FOUND: &[(&str, Fault, &str)] = &[
    ("free ports", Fault::NoPort, ":0, to which nobody can connect"),
    ("in use", Fault::Shares, "two listen at 127.0.0.1:"),
    ("in use", Fault::OtherWords, "not AddrInUse"),
    ("given back", Fault::ListensOn, "an address that was given back"),
    ("nobody", Fault::Anybody, "but a connection succeeds"),
    ("no caller", Fault::Waits, "waits for a connection"),
    ("a caller", Fault::DeafListener, "does not report a connection"),
    ("bytes", Fault::Swaps, "byte"),
    ("bytes", Fault::Repeats, "byte"),
    ("bytes", Fault::Boasts, "byte"),
    ("apart", Fault::MixesUp, "reading"),
    ("limits", Fault::NoLimit, "has not returned"),
    ("limits", Fault::FailsAtOnce, "has waited for"),
    ("limits", Fault::EndsEarly, "nothing was written"),
    ("would block", Fault::EndsEarly, "not WouldBlock"),
    ("would block", Fault::NoBounds, "bytes that nobody reads"),
    ("something to read", Fault::Deaf, "bytes to read"),
    ("room to write", Fault::Deaf, "room again"),
    ("the end is told", Fault::HangsOn, "the other end's close"),
    ("half an end", Fault::EndsBoth, ""),
    ("the rest", Fault::LosesTheRest, "it ends after 299999 of 300000"),
    ("woken", Fault::SleepsOn, "has not returned"),
    ("theaters go on", Fault::SleepsOn, "never broke"),
    ("theaters talk", Fault::Damages, ""),
    ("theaters end", Fault::ListensOn, "cannot be listened at"),
    ("short reads", Fault::Pieces, "does not report"),
];

fn with(fault: Fault) -> Subject {
    let listening: Arc<Mutex<Vec<TcpListener>>> = Arc::default();
    Subject::new(ANYWHERE, move || FaultyTransport { fault, listening: Arc::clone(&listening) })
}

// GUARANTEE: Any transport
#[test]
fn each_rule_finds_the_faults_that_it_is_for() {
    let unfound: Vec<_> = RULES.iter().filter(|rule| FOUND.iter().all(|(name, ..)| *name != rule.name)).collect();
    assert!(unfound.is_empty(), "{unfound:?}");
    // The faults run at one time, because most wait for something that never comes.
    std::thread::scope(|scope| {
        for (name, fault, words) in FOUND {
            scope.spawn(move || {
                let rule = RULES.iter().find(|rule| rule.name == *name).expect("the name of a rule");
                let decide = |fault| rule.decide(&Arc::new(with(fault)), RULE_TIME_MAX);
                assert_eq!(decide(Fault::None), Ok(()), "without {fault:?}");
                let found = decide(*fault).expect_err(&format!("{fault:?} is not found"));
                assert!(found.contains(words), "{fault:?}: {found}");
            });
        }
    });
}
