//! The suite for [transports](Transport): what theaters rely on.
//!
//! ```
//! use playhouse::transport::Tcp;
//! use playhouse_testkit::conformance::transport;
//!
//! transport::check("127.0.0.1:0", || Tcp).assert_all_kept();
//! ```

#[cfg(all(test, unix))]
mod faulty;
mod theaters;

use std::fmt;
use std::io::{ErrorKind, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token};
use playhouse::transport::{Listener, Registration, Transport, Wire};

use super::{Report, Rule};

/// A rule that is not decided after so long is broken.
const LIMIT: Duration = Duration::from_secs(60);
/// So long is waited where the wait is to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// So long is waited where nothing is to come.
const SHORT: Duration = Duration::from_millis(50);
/// More than a wire holds that nobody reads from.
const WIRE_BYTES_MAX: usize = 1 << 30;
/// What is sent in each direction.
const STREAM_BYTES: usize = 8 << 20;

type Outcome = Result<(), String>;

/// Two ends.
type Pair = (Box<dyn Wire>, Box<dyn Wire>);

/// What is tried: makes transports of one network.
#[derive(Clone)]
pub struct Subject {
    make: Arc<dyn Fn() -> Arc<dyn Transport> + Send + Sync>,
    pub(super) address: String,
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Subject({})", self.address)
    }
}

impl Subject {
    pub(super) fn new<T: Transport>(address: &str, make: impl Fn() -> T + Send + Sync + 'static) -> Subject {
        Subject { make: Arc::new(move || Arc::new(make())), address: address.to_owned() }
    }

    pub(super) fn transport(&self) -> Arc<dyn Transport> {
        (self.make)()
    }

    fn listen(&self) -> Result<(Door, SocketAddr), String> {
        let address: SocketAddr =
            self.address.parse().map_err(|error| format!("{:?} is no address: {error}", self.address))?;
        let mut listener = said("listening", self.transport().listen(address))?;
        let address = said("the listener's address", listener.address())?;
        let watch = Watch::new(Interest::READABLE, |registration| listener.register(registration))?;
        Ok((Door { listener, watch }, address))
    }

    fn call(&self, address: SocketAddr) -> Result<Box<dyn Wire>, String> {
        patient(said("calling", self.transport().connect(address, PATIENCE))?)
    }

    /// Calls who listens there, who hears it meanwhile: both ends.
    fn meet(&self, door: &mut Door, address: SocketAddr) -> Result<Pair, String> {
        std::thread::scope(|scope| {
            let calls = scope.spawn(|| self.call(address));
            let called = door.hear().and_then(patient);
            Ok((calls.join().map_err(|_| "`connect` panics")??, called?))
        })
    }

    /// Both ends of a connection: who called, and who was called.
    fn pair(&self) -> Result<Pair, String> {
        let (mut door, address) = self.listen()?;
        self.meet(&mut door, address)
    }
}

/// A listener, and what tells of callers.
struct Door {
    listener: Box<dyn Listener>,
    watch: Watch,
}

impl Door {
    /// Waits for the next caller, as theaters do.
    fn hear(&mut self) -> Result<Box<dyn Wire>, String> {
        loop {
            match self.listener.accept() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait()?,
                heard => return said("hearing a caller", heard),
            }
        }
    }

    fn wait(&mut self) -> Outcome {
        self.watch.until("that somebody has called", mio::event::Event::is_readable)
    }
}

fn patient(wire: Box<dyn Wire>) -> Result<Box<dyn Wire>, String> {
    said("setting a limit", wire.set_limit(PATIENCE))?;
    Ok(wire)
}

fn said<T>(what: &str, result: std::io::Result<T>) -> Result<T, String> {
    result.map_err(|error| format!("{what}: {error} ({:?})", error.kind()))
}

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(otherwise()) }
}

/// The rules, in the order in which they are tried.
pub const RULES: [Rule<Subject>; 20] = [
    Rule {
        name: "free ports",
        says: "port 0 stands for a port that is free, which the listener tells",
        check: free_ports,
    },
    Rule { name: "in use", says: "an address in use is refused", check: in_use },
    Rule { name: "given back", says: "who is dropped listens no more", check: given_back },
    Rule { name: "nobody", says: "nobody there is an error", check: nobody },
    Rule { name: "no caller", says: "who hears callers is told that there is none", check: no_caller },
    Rule { name: "a caller", says: "what the listener registers tells of callers", check: caller },
    Rule { name: "bytes", says: "bytes come in order, both ways at once", check: bytes },
    Rule { name: "apart", says: "connections are kept apart", check: apart },
    Rule { name: "limits", says: "reads and writes keep their limit", check: limits },
    Rule { name: "would block", says: "who does not block is told that it would", check: would_block },
    Rule { name: "something to read", says: "what is registered tells of what has come", check: readable },
    Rule {
        name: "short reads",
        says: "where less is read than there is room for, nothing else has come, or it is told",
        check: short_reads,
    },
    Rule { name: "room to write", says: "what is registered tells of room", check: writable },
    Rule { name: "the end is told", says: "what is registered tells of the end", check: end_is_told },
    Rule { name: "half an end", says: "one direction ends alone", check: half },
    Rule { name: "the rest", says: "what was written comes before the end", check: rest },
    Rule { name: "woken", says: "a shutdown wakes who reads", check: woken },
    Rule { name: "theaters talk", says: "theaters talk, and actors move", check: theaters::talk },
    Rule { name: "theaters go on", says: "theaters go on where connections break", check: theaters::go_on },
    Rule { name: "theaters end", says: "a theater that ends gives its address back", check: theaters::end },
];

/// Tries all rules. `make` makes those of the theaters: all of one network, on which one can
/// listen at `address`, an IP address and port 0.
///
/// It takes some seconds. It opens a few dozen connections, and carries about 100 MiB. A rule of which nothing has come after a minute
/// is broken.
pub fn check<T: Transport>(address: &str, make: impl Fn() -> T + Send + Sync + 'static) -> Report {
    let subject = Subject::new(address, make);
    Report::of("transport", &RULES, subject, LIMIT)
}

// -- addresses --------------------------------------------------------------------------------------------------------

fn free_ports(subject: &Subject) -> Outcome {
    let (one, first) = subject.listen()?;
    let (other, second) = subject.listen()?;
    for address in [first, second] {
        ensure(address.port() != 0, || format!("it listens at {address}, which nobody can call"))?;
    }
    ensure(first != second, || format!("two listen at {first}"))?;
    for (mut door, address) in [(one, first), (other, second)] {
        let (calls, called) = subject.meet(&mut door, address)?;
        write_all(&*calls, &[7])?;
        read_exact(&*called, &mut [0])?;
    }
    Ok(())
}

fn in_use(subject: &Subject) -> Outcome {
    let (_door, address) = subject.listen()?;
    match subject.transport().listen(address) {
        Ok(_) => Err(format!("two listen at {address}")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => Ok(()),
        Err(error) => Err(format!("it says {error} ({:?}), and not AddrInUse", error.kind())),
    }
}

fn given_back(subject: &Subject) -> Outcome {
    let (door, address) = subject.listen()?;
    drop(door);
    let there = Subject { address: address.to_string(), ..subject.clone() };
    let (mut again, _) = there.listen().map_err(|error| format!("where somebody has listened: {error}"))?;
    subject.meet(&mut again, address).map(drop)
}

fn nobody(subject: &Subject) -> Outcome {
    let (door, address) = subject.listen()?;
    drop(door);
    let begun = Instant::now();
    let connected = subject.transport().connect(address, SHORT);
    ensure(connected.is_err(), || format!("nobody listens at {address}, and a call comes through"))?;
    let time = begun.elapsed();
    ensure(time < PATIENCE, || format!("a call with a limit of {SHORT:?} took {time:?}"))
}

fn no_caller(subject: &Subject) -> Outcome {
    let (door, address) = subject.listen()?;
    let (tell, told) = mpsc::channel();
    // Left behind where it waits for ever.
    std::thread::spawn(move || drop(tell.send((door.listener.accept().err().map(|error| error.kind()), door))));
    let (error, mut door) =
        told.recv_timeout(PATIENCE).map_err(|_| format!("`accept` waits for a caller, for {PATIENCE:?} so far"))?;
    ensure(error == Some(ErrorKind::WouldBlock), || {
        format!("hearing a caller where there is none gives {error:?}, and not WouldBlock")
    })?;
    subject.meet(&mut door, address).map(drop)
}

fn caller(subject: &Subject) -> Outcome {
    let (mut door, address) = subject.listen()?;
    for _ in 0..10 {
        std::thread::scope(|scope| {
            let calls = scope.spawn(|| subject.call(address));
            door.wait()?;
            let _heard = said("hearing a caller", door.listener.accept())?;
            calls.join().map_err(|_| "`connect` panics")??;
            match door.listener.accept() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
                Err(error) => Err(format!("hearing a second caller where there was one: {error} ({:?})", error.kind())),
                Ok(_) => Err("one has called, and two are heard".to_owned()),
            }
        })?;
    }
    Ok(())
}

// -- bytes ------------------------------------------------------------------------------------------------------------

/// What is at `place` of a stream that is named so.
fn byte(stream: u64, place: usize) -> u8 {
    let mixed = (place as u64 ^ stream << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}

/// Sizes that are large now and small then.
fn sizes(mut seed: u64) -> impl Iterator<Item = usize> {
    std::iter::repeat_with(move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let bits = (seed >> 59) % 17;
        ((seed >> 33) % (1 << bits)) as usize + 1
    })
}

/// Writes the first bytes of a stream, in slices of many sizes.
fn write_stream(wire: &dyn Wire, stream: u64, length: usize) -> Outcome {
    let mut sizes = sizes(stream);
    let mut place = 0;
    while place < length {
        let lengths: Vec<usize> = sizes.by_ref().take(3).collect();
        let total = lengths.iter().sum::<usize>().min(length - place);
        let bytes: Vec<u8> = (place..place + total).map(|place| byte(stream, place)).collect();
        let mut left = &bytes[..];
        let mut slices = Vec::new();
        for length in lengths {
            let (slice, rest) = left.split_at(length.min(left.len()));
            slices.push(IoSlice::new(slice));
            left = rest;
        }
        let count = said("writing", wire.write(&slices))?;
        ensure((1..=total).contains(&count), || format!("of {total} bytes it has written {count}"))?;
        place += count;
    }
    Ok(())
}

/// Reads the first bytes of a stream, in pieces of many sizes.
fn read_stream(wire: &dyn Wire, stream: u64, length: usize) -> Outcome {
    let mut sizes = sizes(!stream);
    let mut place = 0;
    let mut room = vec![0; 1 << 17];
    while place < length {
        let size = sizes.next().unwrap_or(1).min(length - place);
        let count = said("reading", wire.read(&mut room[..size]))?;
        ensure(count > 0, || format!("it ends after {place} of {length} bytes"))?;
        check_bytes(stream, place, &room[..count])?;
        place += count;
    }
    Ok(())
}

fn check_bytes(stream: u64, place: usize, came: &[u8]) -> Outcome {
    match came.iter().enumerate().find(|(ahead, came)| **came != byte(stream, place + ahead)) {
        None => Ok(()),
        Some((ahead, _)) => Err(format!("another byte than was written there comes at place {}", place + ahead)),
    }
}

fn write_all(wire: &dyn Wire, mut bytes: &[u8]) -> Outcome {
    while !bytes.is_empty() {
        match said("writing", wire.write(&[IoSlice::new(bytes)]))? {
            0 => return Err("it writes nothing".to_owned()),
            count => bytes = &bytes[count..],
        }
    }
    Ok(())
}

fn read_exact(wire: &dyn Wire, mut room: &mut [u8]) -> Outcome {
    while !room.is_empty() {
        match said("reading", wire.read(room))? {
            0 => return Err("it ends".to_owned()),
            count => room = &mut room[count..],
        }
    }
    Ok(())
}

/// Each end writes and reads, at the same time.
fn bytes(subject: &Subject) -> Outcome {
    let (one, other) = subject.pair()?;
    let (one, other) = (&*one, &*other);
    let ends = |part: Outcome| {
        if part.is_err() {
            // The others are not to wait for what does not come.
            let _ = (one.shutdown(Shutdown::Both), other.shutdown(Shutdown::Both));
        }
        part
    };
    std::thread::scope(|scope| {
        // What readers find is why writers wait.
        let parts = [
            scope.spawn(|| ends(read_stream(other, 0, STREAM_BYTES))),
            scope.spawn(|| ends(read_stream(one, 1, STREAM_BYTES))),
            scope.spawn(|| ends(write_stream(one, 0, STREAM_BYTES))),
            scope.spawn(|| ends(write_stream(other, 1, STREAM_BYTES))),
        ];
        parts.into_iter().try_for_each(|part| part.join().map_err(|_| "reading or writing panics")?)
    })
}

fn apart(subject: &Subject) -> Outcome {
    let (mut door, address) = subject.listen()?;
    let mut pairs = Vec::new();
    for _ in 0..16 {
        pairs.push(subject.meet(&mut door, address)?);
    }
    let mut names = Vec::new();
    for (name, (calls, _)) in pairs.iter().enumerate() {
        write_all(&**calls, &[name as u8])?;
    }
    for (_, called) in &pairs {
        let mut name = [0];
        read_exact(&**called, &mut name)?;
        names.push(name[0]);
    }
    ensure(names == Vec::from_iter(0..16), || {
        format!("16 callers who were heard in turn say that they are {names:?}")
    })?;
    for turn in 0..3 {
        for (name, (calls, called)) in pairs.iter().enumerate() {
            let (to, from) = if turn % 2 == 0 { (called, calls) } else { (calls, called) };
            write_all(&**to, &[name as u8; 1000])?;
            let mut came = [0; 1000];
            read_exact(&**from, &mut came)?;
            ensure(came == [name as u8; 1000], || "what is written to one comes to another".to_owned())?;
        }
    }
    Ok(())
}

// -- waiting ----------------------------------------------------------------------------------------------------------

/// Writes what is always the same until there is no room. How much that was.
fn fill(wire: &dyn Wire) -> Result<usize, String> {
    let bytes = [5; 1 << 16];
    let mut written = 0;
    while written < WIRE_BYTES_MAX {
        match wire.write(&[IoSlice::new(&bytes)]) {
            Ok(0) => return Err("it writes nothing".to_owned()),
            Ok(count) => written += count,
            Err(error) if is_late(&error) => return Ok(written),
            Err(error) => return Err(format!("writing where there is no room: {error} ({:?})", error.kind())),
        }
    }
    Err(format!("it takes {written} bytes that nobody reads"))
}

fn is_late(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// What `act` gives, if it does not take too long.
fn within<R: Send + 'static>(what: &str, wire: &Arc<dyn Wire>, act: fn(&dyn Wire) -> R) -> Result<R, String> {
    let (tell, told) = mpsc::channel();
    let acts = Arc::clone(wire);
    // Left behind where it waits for ever.
    std::thread::spawn(move || drop(tell.send(act(&*acts))));
    told.recv_timeout(PATIENCE).map_err(|_| format!("{what} has not returned after {PATIENCE:?}"))
}

fn read_up(wire: &dyn Wire, length: usize) -> Outcome {
    said("setting it to block", wire.set_nonblocking(false))?;
    said("setting a limit", wire.set_limit(PATIENCE))?;
    read_exact(wire, &mut vec![0; length])
}

fn limits(subject: &Subject) -> Outcome {
    let (one, other) = subject.pair()?;
    let one: Arc<dyn Wire> = Arc::from(one);
    said("setting a limit", one.set_limit(SHORT))?;
    // More than once: who does not wait may have been kept waiting by others.
    for _ in 0..5 {
        let begun = Instant::now();
        match within("a read with a limit of 50 ms", &one, |wire| wire.read(&mut [0]))? {
            Err(error) if is_late(&error) => {}
            Err(error) => return Err(format!("a read that has to wait fails with {error} ({:?})", error.kind())),
            Ok(count) => return Err(format!("nothing was written, and {count} bytes are read")),
        }
        let time = begun.elapsed();
        ensure(time >= SHORT / 2, || format!("a read with a limit of {SHORT:?} has waited for {time:?} only"))?;
    }
    let written = within("a write with a limit of 50 ms", &one, fill)??;
    read_up(&*other, written)?;
    write_all(&*one, &[1])?;
    read_exact(&*other, &mut [0])
}

fn would_block(subject: &Subject) -> Outcome {
    let (one, other) = subject.pair()?;
    said("setting it not to block", one.set_nonblocking(true))?;
    match one.read(&mut [0]) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
        result => return Err(format!("reading where nothing has come gives {result:?}, and not WouldBlock")),
    }
    let mut written = 0;
    while written < WIRE_BYTES_MAX {
        written += fill(&*one)?;
        match one.write(&[IoSlice::new(&[0])]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return read_up(&*other, written),
            // The system has found some room in the meantime.
            Ok(count @ 1..) => written += count,
            result => return Err(format!("writing where there is no room gives {result:?}, and not WouldBlock")),
        }
    }
    Err(format!("it takes {written} bytes that nobody reads"))
}

// -- readiness --------------------------------------------------------------------------------------------------------

/// Waits for what is told, which is told once.
struct Watch {
    poll: Poll,
    events: Events,
}

impl Watch {
    fn on(wire: &dyn Wire) -> Result<Watch, String> {
        said("setting it not to block", wire.set_nonblocking(true))?;
        Watch::new(Interest::READABLE | Interest::WRITABLE, |registration| wire.register(registration))
    }

    fn new(
        interest: Interest,
        register: impl FnOnce(Registration<'_>) -> std::io::Result<()>,
    ) -> Result<Watch, String> {
        let poll = said("polling", Poll::new())?;
        said("registering", register(Registration::new(poll.registry(), Token(0), interest)))?;
        Ok(Watch { poll, events: Events::with_capacity(8) })
    }

    fn until(&mut self, what: &str, mut told: impl FnMut(&mio::event::Event) -> bool) -> Outcome {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            ensure(!left.is_zero(), || format!("it is not told {what}"))?;
            match self.poll.poll(&mut self.events, Some(left)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                result => said("polling", result)?,
            }
            if self.events.iter().any(&mut told) {
                return Ok(());
            }
        }
    }
}

/// Reads all that has come, `length` bytes at least.
fn drain(wire: &dyn Wire, watch: &mut Watch, length: usize) -> Outcome {
    let mut room = [0; 1 << 16];
    let mut count = 0;
    loop {
        match wire.read(&mut room) {
            Ok(0) => return Err("it ends".to_owned()),
            Ok(more) => count += more,
            Err(error) if error.kind() == ErrorKind::WouldBlock && count >= length => return Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                watch.until("that more has come", mio::event::Event::is_readable)?;
            }
            Err(error) => return Err(format!("reading: {error}")),
        }
    }
}

fn readable(subject: &Subject) -> Outcome {
    let (one, other) = subject.pair()?;
    let mut watch = Watch::on(&*one)?;
    for _ in 0..100 {
        write_all(&*other, b"some words")?;
        watch.until("that something has come", mio::event::Event::is_readable)?;
        drain(&*one, &mut watch, 10)?;
    }
    Ok(())
}

fn short_reads(subject: &Subject) -> Outcome {
    let (one, other) = subject.pair()?;
    let mut watch = Watch::on(&*one)?;
    let writer = std::thread::spawn(move || write_stream(&*other, 8, 1 << 20).map(|()| other));
    let mut room = [0; 1 << 16];
    let mut place = 0;
    while place < 1 << 20 {
        watch.until("that something has come, after less was read than there was room for", |event| {
            event.is_readable()
        })?;
        // As theaters do: who was given less waits until it is told of more.
        loop {
            match one.read(&mut room) {
                Ok(0) => return Err(format!("it ends after {place} bytes")),
                Ok(count) => {
                    check_bytes(8, place, &room[..count])?;
                    place += count;
                    if count < room.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(format!("reading: {error}")),
            }
        }
    }
    writer.join().map_err(|_| "writing panics")?.map(drop)
}

fn writable(subject: &Subject) -> Outcome {
    let (one, other) = subject.pair()?;
    let mut watch = Watch::on(&*one)?;
    watch.until("that there is room", mio::event::Event::is_writable)?;
    for _ in 0..3 {
        let written = fill(&*one)?;
        read_up(&*other, written)?;
        watch.until("that there is room again", mio::event::Event::is_writable)?;
    }
    Ok(())
}

fn end_is_told(subject: &Subject) -> Outcome {
    for close in [(|wire: Box<dyn Wire>| drop(wire)) as fn(Box<dyn Wire>), |wire| drop(wire.shutdown(Shutdown::Both))] {
        let (one, other) = subject.pair()?;
        let mut watch = Watch::on(&*one)?;
        watch.until("that there is room", mio::event::Event::is_writable)?;
        close(other);
        watch.until("that the other end has gone", |event| event.is_readable() || event.is_read_closed())?;
        let read = one.read(&mut [0]);
        ensure(read.as_ref().map_or_else(|error| !is_late(error), |count| *count == 0), || {
            format!("the other end has gone, and reading gives {read:?}")
        })?;
    }
    Ok(())
}

// -- ends -------------------------------------------------------------------------------------------------------------

fn read_end(wire: &dyn Wire) -> Outcome {
    match said("reading what comes last", wire.read(&mut [0]))? {
        0 => Ok(()),
        _ => Err("more is read than was written".to_owned()),
    }
}

fn half(subject: &Subject) -> Outcome {
    for swapped in [false, true] {
        let (mut one, mut other) = subject.pair()?;
        if swapped {
            std::mem::swap(&mut one, &mut other);
        }
        write_stream(&*one, 3, 10_000)?;
        said("ending writing", one.shutdown(Shutdown::Write))?;
        read_stream(&*other, 3, 10_000)?;
        read_end(&*other)?;
        write_stream(&*other, 4, 10_000).map_err(|error| format!("after the other end has ended writing: {error}"))?;
        read_stream(&*one, 4, 10_000)?;
    }
    Ok(())
}

fn rest(subject: &Subject) -> Outcome {
    for _ in 0..10 {
        let (one, other) = subject.pair()?;
        let writer = std::thread::spawn(move || write_stream(&*one, 9, 300_000));
        read_stream(&*other, 9, 300_000)?;
        writer.join().map_err(|_| "writing panics")??;
        read_end(&*other)?;
    }
    Ok(())
}

fn woken(subject: &Subject) -> Outcome {
    let (one, _other) = subject.pair()?;
    let one: Arc<dyn Wire> = Arc::from(one);
    said("setting a limit", one.set_limit(LIMIT))?;
    let shuts = Arc::clone(&one);
    let shut = std::thread::spawn(move || {
        std::thread::sleep(SHORT);
        shuts.shutdown(Shutdown::Both)
    });
    let read = within("a read on what was shut down", &one, |wire| wire.read(&mut [0]))?;
    said("shutting down", shut.join().map_err(|_| "`shutdown` panics")?)?;
    ensure(!matches!(read, Ok(1..)), || "nothing was written, and something is read".to_owned())
}
