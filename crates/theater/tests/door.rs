//! What a theater does where its transport fails: who calls is heard, and it starts and ends as a whole.

mod support;

use std::io::{self, ErrorKind, IoSlice};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use playhouse_theater::transport::{Listener, Tcp, Transport, UnixSockets, Wire};
use support::{LIMIT, builder, theater};

/// More callers than are heard at one time.
const CALLERS: usize = 65;

/// So many panics are still to come.
#[derive(Clone, Debug, Default)]
struct Panics(Arc<AtomicUsize>);

impl Panics {
    fn arm(&self, count: usize) {
        self.0.store(count, Ordering::Release);
    }

    fn left(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }

    fn strike(&self) {
        if self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1)).is_ok() {
            // Says nothing on the terminal.
            resume_unwind(Box::new("as it was told to"));
        }
    }
}

/// TCP that panics where it hears a caller and where it listens to one, and takes its time to listen no more.
#[derive(Clone, Debug, Default)]
struct Failing {
    accept: Panics,
    listen: Panics,
}

struct Hears(Failing, Box<dyn Listener>);

struct Line(Failing, Box<dyn Wire>);

impl Transport for Failing {
    fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn Listener>> {
        Ok(Box::new(Hears(self.clone(), Tcp.listen(address)?)))
    }

    fn connect(&self, address: SocketAddr, limit: Duration) -> io::Result<Box<dyn Wire>> {
        Tcp.connect(address, limit)
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
        self.0.accept.strike();
        Ok(Box::new(Line(self.0.clone(), self.1.accept()?)))
    }
}

impl Drop for Hears {
    fn drop(&mut self) {
        std::thread::sleep(Duration::from_millis(200));
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
        self.0.listen.strike();
        self.1.read(room)
    }

    fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.1.write(slices)
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.1.shutdown(how)
    }
}

#[test]
fn who_calls_while_the_transport_panics_is_heard_after_that() {
    let transport = Failing::default();
    let there = builder().transport(transport.clone()).start().unwrap();
    transport.accept.arm(1);
    let here = theater();
    here.connect(there.address().unwrap()).unwrap();
    assert_eq!(transport.accept.left(), 0, "it did not panic");
    here.shutdown_within(LIMIT).unwrap();
    there.shutdown_within(LIMIT).unwrap();
}

#[test]
fn callers_whose_connections_panic_keep_no_others_out() {
    let transport = Failing::default();
    let there = builder().transport(transport.clone()).start().unwrap();
    transport.listen.arm(CALLERS);
    for _ in 0..CALLERS {
        let caller = TcpStream::connect(there.address().unwrap()).unwrap();
        caller.set_read_timeout(Some(LIMIT)).unwrap();
        // Until it is dropped at the other end.
        assert_eq!(caller.read(&mut [0]).unwrap(), 0);
    }
    assert_eq!(transport.listen.left(), 0, "some were not listened to");
    let here = theater();
    here.connect(there.address().unwrap()).unwrap();
    here.shutdown_within(LIMIT).unwrap();
    there.shutdown_within(LIMIT).unwrap();
}

#[test]
fn an_address_has_been_given_back_when_a_theater_has_ended() {
    let there = builder().transport(Failing::default()).start().unwrap();
    let address = there.address().unwrap();
    there.shutdown_within(LIMIT).unwrap();
    Tcp.listen(address).unwrap();
}

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_theater_that_nobody_can_call_any_more_ends_and_gives_its_address_back() {
    let folder = Folder(std::env::temp_dir().join(format!("playhouse-door-{}", std::process::id())));
    std::fs::create_dir(&folder.0).unwrap();
    let transport = UnixSockets::in_folder(&folder.0);
    let [here, there] = [(); 2].map(|()| builder().transport(transport.clone()).start().unwrap());
    let address = there.address().unwrap();
    // So far they can.
    here.connect(address).unwrap();
    std::fs::remove_file(folder.0.join(address.port().to_string())).unwrap();
    let unreachable = transport.connect(address, LIMIT).err().map(|error| error.kind());
    assert_eq!(unreachable, Some(ErrorKind::NotFound));
    there.shutdown_within(LIMIT).unwrap();
    here.shutdown_within(LIMIT).unwrap();
    let again = transport.listen(address).unwrap();
    assert_eq!(again.address().unwrap(), address);
}
