//! A transport that panics, or counts what cannot be, breaks the connection that it does so on, and nothing else.

#[macro_use]
mod messages;
mod support;

use std::io::{self, ErrorKind, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use playhouse_actor::*;
use playhouse_theater::transport::{Listener, Tcp, Transport, Wire};
use serde::{Deserialize, Serialize};
use support::{LIMIT, builder, theater};

/// What goes wrong, once.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Break,
    Connect,
    Read,
    ReadTooMuch,
    Write,
    WriteTooMuch,
    WriteNothing,
    Shutdown,
    Drop,
}

/// TCP with faults that are still to come: of each, so many.
#[derive(Clone, Debug, Default)]
struct Faulty {
    due: Arc<[AtomicU64; FAULTS.len()]>,
    calls: Arc<AtomicU64>,
}

const FAULTS: [Fault; 9] = [
    Fault::Break,
    Fault::Connect,
    Fault::Read,
    Fault::ReadTooMuch,
    Fault::Write,
    Fault::WriteTooMuch,
    Fault::WriteNothing,
    Fault::Shutdown,
    Fault::Drop,
];

impl Faulty {
    fn left(&self, fault: Fault) -> &AtomicU64 {
        &self.due[FAULTS.iter().position(|one| *one == fault).unwrap()]
    }

    fn arm(&self, fault: Fault, count: u64) {
        self.left(fault).store(count, Ordering::Release);
    }

    fn is_due(&self, fault: Fault) -> bool {
        let less = |left: u64| left.checked_sub(1);
        self.left(fault).fetch_update(Ordering::AcqRel, Ordering::Acquire, less).is_ok()
    }

    fn panic_if_due(&self, fault: Fault) {
        if self.is_due(fault) {
            // Says nothing on the terminal.
            resume_unwind(Box::new("as it was told to"));
        }
    }
}

struct Hears(Faulty, Box<dyn Listener>);

struct Line(Faulty, Box<dyn Wire>);

impl Transport for Faulty {
    fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn Listener>> {
        Ok(Box::new(Hears(self.clone(), Tcp.listen(address)?)))
    }

    fn connect(&self, address: SocketAddr, limit: Duration) -> io::Result<Box<dyn Wire>> {
        self.calls.fetch_add(1, Ordering::AcqRel);
        self.panic_if_due(Fault::Connect);
        Ok(Box::new(Line(self.clone(), Tcp.connect(address, limit)?)))
    }
}

impl AsFd for Hears {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.1.as_fd()
    }
}

impl Listener for Hears {
    fn address(&self) -> io::Result<SocketAddr> {
        self.1.address()
    }

    fn accept(&self) -> io::Result<Box<dyn Wire>> {
        Ok(Box::new(Line(self.0.clone(), self.1.accept()?)))
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.1.as_fd()
    }
}

impl Wire for Line {
    fn peer(&self) -> String {
        self.1.peer()
    }

    fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.1.set_nonblocking(nonblocking)
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
            () => self.1.write(slices),
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

/// Notices what is lost, repeated or out of order.
#[derive(Serialize, Deserialize)]
struct Tally(u64);

#[derive(Serialize, Deserialize)]
struct Next(u64);
remote_message!(Next -> bool);

impl Actor for Tally {}
impl Handler<Next> for Tally {
    fn handle(&mut self, Next(number): Next, _: &mut Context<Self>) -> bool {
        self.0 += 1;
        self.0 == number
    }
}
remote!(spawn Tally: Next);

#[test]
fn a_wire_that_panics_or_miscounts_breaks_its_connection_and_nothing_is_lost() {
    for fault in FAULTS {
        let transport = Faulty::default();
        let [here, there] = [(); 2].map(|()| builder().transport(transport.clone()).start().unwrap());
        let peer = here.connect(there.address().unwrap()).unwrap();
        let tally = here.spawn_at(&peer, &Tally(0)).unwrap();
        for number in 1..=60 {
            if number % 20 == 0 {
                // It shows when another connection is needed.
                if matches!(fault, Fault::Connect | Fault::Shutdown | Fault::Drop) {
                    transport.arm(Fault::Break, 1);
                }
                transport.arm(fault, 1);
            }
            assert_eq!(tally.ask(Next(number)).within(LIMIT).wait(), Ok(true), "{fault:?}, number {number}");
        }
        here.shutdown_within(LIMIT).unwrap();
        there.shutdown_within(LIMIT).unwrap();
        assert_eq!(transport.left(fault).load(Ordering::Acquire), 0, "{fault:?} was not met");
        // The last fault may have been met when all was said.
        let calls = transport.calls.load(Ordering::Acquire);
        assert!(calls > 2, "{calls} calls: {fault:?} did not break its connection");
    }
}

#[test]
fn a_call_that_panics_has_failed_and_the_next_one_comes_through() {
    let transport = Faulty::default();
    let (here, there) = (builder().transport(transport.clone()).start().unwrap(), theater());
    transport.arm(Fault::Connect, 1);
    let error = here.connect(there.address().unwrap()).map(drop).unwrap_err();
    assert!(error.to_string().contains("the transport has panicked: as it was told to"), "{error}");
    here.connect(there.address().unwrap()).unwrap();
    here.shutdown_within(LIMIT).unwrap();
    there.shutdown_within(LIMIT).unwrap();
}
