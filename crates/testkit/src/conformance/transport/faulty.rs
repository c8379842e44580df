//! TCP with one fault at a time, which the rules that it breaks have to find.

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
    /// Says that it listens at port 0.
    NoPort,
    /// Listens where another does.
    Shares,
    /// Says that something is wrong with an address in use, but not what.
    OtherWords,
    /// Listens on when it is dropped.
    ListensOn,
    /// Waits where nobody has called.
    Waits,
    /// The listener's descriptor is another one's.
    DeafDoor,
    /// Calls come through where nobody listens.
    Anybody,
    /// Two bytes change their places.
    Swaps,
    /// A byte comes twice.
    Repeats,
    /// A byte becomes another one.
    Damages,
    /// Says that it has written more than it was given.
    Boasts,
    /// Every other caller is given what the one before has.
    MixesUp,
    NoLimit,
    /// Fails at once where it is to wait.
    NoPatience,
    /// Reads nothing where nothing has come, as if that were the end.
    EndsEarly,
    /// Reads a few bytes at a time, whatever has come.
    Pieces,
    /// Takes all that it is given, and throws away what there is no room for.
    NoBounds,
    /// The descriptor is another one's.
    Deaf,
    EndsBoth,
    /// What is written last is lost.
    LosesTheRest,
    /// Does not shut down.
    SleepsOn,
    /// Does not break where it is dropped.
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
    /// Never has anything to tell, and its other end.
    deaf: [UnixStream; 2],
    earlier: Mutex<Option<TcpStream>>,
}

struct FaultyWire {
    fault: Fault,
    stream: TcpStream,
    /// Never has anything to tell.
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
            Fault::DeafDoor => registration.descriptor(&self.deaf[0]),
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
        self.stream.set_nonblocking(nonblocking || self.fault == Fault::NoPatience)
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
            Fault::NoPatience => self.stream.set_nonblocking(true),
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
        // Once, behind some 64 KiB.
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

/// What each rule has to say of a fault.
const FOUND: &[(&str, Fault, &str)] = &[
    ("free ports", Fault::NoPort, ":0, which nobody can call"),
    ("in use", Fault::Shares, "two listen at 127.0.0.1:"),
    ("in use", Fault::OtherWords, "and not AddrInUse"),
    ("given back", Fault::ListensOn, "where somebody has listened"),
    ("nobody", Fault::Anybody, "a call comes through"),
    ("no caller", Fault::Waits, "waits for a caller"),
    ("a caller", Fault::DeafDoor, "that somebody has called"),
    ("bytes", Fault::Swaps, "byte"),
    ("bytes", Fault::Repeats, "byte"),
    ("bytes", Fault::Boasts, "byte"),
    ("apart", Fault::MixesUp, "reading"),
    ("limits", Fault::NoLimit, "has not returned"),
    ("limits", Fault::NoPatience, "has waited for"),
    ("limits", Fault::EndsEarly, "nothing was written"),
    ("would block", Fault::EndsEarly, "and not WouldBlock"),
    ("would block", Fault::NoBounds, "bytes that nobody reads"),
    ("something to read", Fault::Deaf, "that something has come"),
    ("room to write", Fault::Deaf, "that there is room again"),
    ("the end is told", Fault::HangsOn, "that the other end has gone"),
    ("half an end", Fault::EndsBoth, ""),
    ("the rest", Fault::LosesTheRest, "it ends after 299999 of 300000"),
    ("woken", Fault::SleepsOn, "has not returned"),
    ("theaters go on", Fault::SleepsOn, "never broke"),
    ("theaters talk", Fault::Damages, ""),
    ("theaters end", Fault::ListensOn, "cannot be listened at"),
    ("short reads", Fault::Pieces, "is not told"),
];

fn with(fault: Fault) -> Subject {
    let listening: Arc<Mutex<Vec<TcpListener>>> = Arc::default();
    Subject::new(ANYWHERE, move || FaultyTransport { fault, listening: Arc::clone(&listening) })
}

#[test]
fn each_rule_finds_the_faults_that_it_is_for() {
    let unfound: Vec<_> = RULES.iter().filter(|rule| FOUND.iter().all(|(name, ..)| *name != rule.name)).collect();
    assert!(unfound.is_empty(), "{unfound:?}");
    // At one time, since most wait for what does not come.
    std::thread::scope(|scope| {
        for (name, fault, words) in FOUND {
            scope.spawn(move || {
                let rule = RULES.iter().find(|rule| rule.name == *name).expect("it is a rule's name");
                let decide = |fault| rule.decide(&Arc::new(with(fault)), RULE_TIME_MAX);
                assert_eq!(decide(Fault::None), Ok(()), "without {fault:?}");
                let found = decide(*fault).expect_err(&format!("{fault:?} is not found"));
                assert!(found.contains(words), "{fault:?}: {found}");
            });
        }
    });
}
