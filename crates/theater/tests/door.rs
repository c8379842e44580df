//! What a theater does where its transport fails: who calls is heard, and it starts and ends as a whole.

mod spoiled;
mod support;

use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::path::PathBuf;

use playhouse_theater::transport::{Tcp, Transport, UnixSockets};
use spoiled::{Fault, Spoiled};
use support::{LIMIT, builder, theater};

/// More callers than are heard at one time.
const CALLERS: u64 = 65;

#[test]
fn who_calls_while_the_transport_panics_is_heard_after_that() {
    let transport = Spoiled::default();
    let there = builder().transport(transport.clone()).start().unwrap();
    transport.arm(Fault::Accept, 1);
    let here = theater();
    here.connect(there.address().unwrap()).unwrap();
    assert_eq!(transport.left(Fault::Accept), 0, "it did not panic");
    here.shutdown_within(LIMIT).unwrap();
    there.shutdown_within(LIMIT).unwrap();
}

#[test]
fn callers_whose_connections_panic_keep_no_others_out() {
    let transport = Spoiled::default();
    let there = builder().transport(transport.clone()).start().unwrap();
    transport.arm(Fault::Read, CALLERS);
    for _ in 0..CALLERS {
        let mut caller = TcpStream::connect(there.address().unwrap()).unwrap();
        caller.set_read_timeout(Some(LIMIT)).unwrap();
        // Until it is dropped at the other end.
        assert_eq!(caller.read(&mut [0]).unwrap(), 0);
    }
    assert_eq!(transport.left(Fault::Read), 0, "some were not listened to");
    let here = theater();
    here.connect(there.address().unwrap()).unwrap();
    here.shutdown_within(LIMIT).unwrap();
    there.shutdown_within(LIMIT).unwrap();
}

#[test]
fn an_address_has_been_given_back_when_a_theater_has_ended() {
    let transport = Spoiled::default();
    transport.arm(Fault::LateEnd, 1);
    let there = builder().transport(transport).start().unwrap();
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
