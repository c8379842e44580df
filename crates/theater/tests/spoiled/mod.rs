//! A transport that fails on command, and may notify an actor of each write.

use std::io::{self, ErrorKind, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use playhouse_actor::{Message, Recipient};
use playhouse_theater::transport::{Listener, Registration, Tcp, Transport, Wire};

/// A fault. A fault with the name of a method panics in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    Accept,
    Connect,
    Read,
    Write,
    Shutdown,
    Drop,
    Register,
    /// The connection breaks.
    Break,
    ReadTooMuch,
    WriteTooMuch,
    WriteNothing,
    /// The listener ends late.
    LateEnd,
}

const FAULTS: usize = Fault::LateEnd as usize + 1;

/// TCP with pending faults: a number of each.
#[derive(Clone, Debug, Default)]
pub struct Spoiled {
    due: Arc<[AtomicU64; FAULTS]>,
    calls: Arc<AtomicU64>,
    reader: Arc<OnceLock<Recipient<Wrote>>>,
    registers: Arc<Mutex<Option<Registers>>>,
}

/// The signal that a connection is registered, and the signal that it waits for after that.
type Registers = (Sender<()>, Receiver<()>);

/// A notification that a wire has written something.
pub struct Wrote;

impl Message for Wrote {
    type Reply = ();
}

impl Spoiled {
    /// Notifies `reader` of each write from now on. May be called once.
    pub fn tell_of_writes(&self, reader: Recipient<Wrote>) {
        assert!(self.reader.set(reader).is_ok(), "there is a reader already");
    }

    /// Makes the next registered connection signal it, and wait for the signal to continue.
    pub fn wait_while_registering(&self, says: Sender<()>, goes_on: Receiver<()>) {
        *self.registers.lock().unwrap() = Some((says, goes_on));
    }

    pub fn arm(&self, fault: Fault, count: u64) {
        self.due[fault as usize].store(count, Ordering::Release);
    }

    /// Returns the number of pending faults of this kind.
    pub fn left(&self, fault: Fault) -> u64 {
        self.due[fault as usize].load(Ordering::Acquire)
    }

    /// Returns the number of calls so far.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Acquire)
    }

    fn is_due(&self, fault: Fault) -> bool {
        let less = |left: u64| left.checked_sub(1);
        self.due[fault as usize].fetch_update(Ordering::AcqRel, Ordering::Acquire, less).is_ok()
    }

    fn panic_if_due(&self, fault: Fault) {
        if self.is_due(fault) {
            // This panic prints nothing on the terminal.
            resume_unwind(Box::new("as it was told to"));
        }
    }
}

struct Hears(Spoiled, Box<dyn Listener>);

struct Line(Spoiled, Box<dyn Wire>);

impl Transport for Spoiled {
    fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn Listener>> {
        Ok(Box::new(Hears(self.clone(), Tcp.listen(address)?)))
    }

    fn connect(&self, address: SocketAddr, limit: Duration) -> io::Result<Box<dyn Wire>> {
        self.calls.fetch_add(1, Ordering::AcqRel);
        self.panic_if_due(Fault::Connect);
        Ok(Box::new(Line(self.clone(), Tcp.connect(address, limit)?)))
    }
}

impl Listener for Hears {
    fn address(&self) -> io::Result<SocketAddr> {
        self.1.address()
    }

    fn register(&mut self, registration: Registration<'_>) -> io::Result<()> {
        self.1.register(registration)
    }

    fn accept(&self) -> io::Result<Box<dyn Wire>> {
        self.0.panic_if_due(Fault::Accept);
        Ok(Box::new(Line(self.0.clone(), self.1.accept()?)))
    }
}

impl Drop for Hears {
    fn drop(&mut self) {
        if self.0.is_due(Fault::LateEnd) {
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

impl Wire for Line {
    fn peer(&self) -> String {
        self.1.peer()
    }

    fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.1.set_nonblocking(nonblocking)
    }

    fn register(&self, registration: Registration<'_>) -> io::Result<()> {
        self.0.panic_if_due(Fault::Register);
        if let Some((says, goes_on)) = self.0.registers.lock().unwrap().take() {
            says.send(()).unwrap();
            goes_on.recv().unwrap();
        }
        self.1.register(registration)
    }

    fn set_limit(&self, limit: Duration) -> io::Result<()> {
        self.1.set_limit(limit)
    }

    fn read(&self, room: &mut [u8]) -> io::Result<usize> {
        self.0.panic_if_due(Fault::Read);
        if self.0.is_due(Fault::Break) {
            return Err(ErrorKind::ConnectionReset.into());
        }
        if self.0.is_due(Fault::ReadTooMuch) { Ok(room.len() + 1) } else { self.1.read(room) }
    }

    fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.panic_if_due(Fault::Write);
        match () {
            () if self.0.is_due(Fault::WriteTooMuch) => Ok(slices.iter().map(|slice| slice.len()).sum::<usize>() + 1),
            () if self.0.is_due(Fault::WriteNothing) => Ok(0),
            () => {
                let written = self.1.write(slices)?;
                if let Some(reader) = self.0.reader.get() {
                    reader.tell(Wrote);
                }
                Ok(written)
            }
        }
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.0.panic_if_due(Fault::Shutdown);
        self.1.shutdown(how)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.0.panic_if_due(Fault::Drop);
    }
}
