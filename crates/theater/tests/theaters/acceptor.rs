//! A theater with a failing transport: it answers callers, and starts and ends completely.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::spoiled::{Fault, Spoiled};
use crate::support::{LIMIT, builder, theater};
use playhouse_theater::transport::{Tcp, Transport};

/// More callers than are answered at one time.
const CALLERS: u64 = 65;

// GUARANTEE: A failing caller affects only itself
#[test]
fn a_caller_during_a_panic_of_the_transport_is_accepted_after_it() {
    let transport = Spoiled::default();
    let there = builder().transport(transport.clone()).start().unwrap();
    transport.arm(Fault::Accept, 1);
    let here = theater();
    here.connect(there.address().unwrap()).unwrap();
    assert_eq!(transport.left(Fault::Accept), 0, "it did not panic");
    here.shutdown_within(LIMIT).unwrap();
    there.shutdown_within(LIMIT).unwrap();
}

// GUARANTEE: A failing caller affects only itself
#[test]
fn callers_whose_connections_panic_keep_no_others_out() {
    let transport = Spoiled::default();
    let there = builder().transport(transport.clone()).start().unwrap();
    transport.arm(Fault::Read, CALLERS);
    for _ in 0..CALLERS {
        let mut caller = TcpStream::connect(there.address().unwrap()).unwrap();
        caller.set_read_timeout(Some(LIMIT)).unwrap();
        // The read lasts until the other end drops the connection.
        assert_eq!(caller.read(&mut [0]).unwrap(), 0);
    }
    assert_eq!(transport.left(Fault::Read), 0, "some were not listened to");
    let here = theater();
    here.connect(there.address().unwrap()).unwrap();
    here.shutdown_within(LIMIT).unwrap();
    there.shutdown_within(LIMIT).unwrap();
}

// GUARANTEE: Addresses are released
#[test]
fn an_address_has_been_given_back_when_a_theater_has_ended() {
    let transport = Spoiled::default();
    transport.arm(Fault::LateEnd, 1);
    let there = builder().transport(transport).start().unwrap();
    let address = there.address().unwrap();
    there.shutdown_within(LIMIT).unwrap();
    Tcp.listen(address).unwrap();
}

/// A folder that is removed with the test.
#[cfg(unix)]
struct Folder(std::path::PathBuf);

#[cfg(unix)]
impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

// GUARANTEE: Addresses are released
#[cfg(unix)]
#[test]
fn a_theater_that_nobody_can_call_any_more_ends_and_gives_its_address_back() {
    use playhouse_theater::transport::UnixSockets;
    use std::io::ErrorKind;

    let folder = Folder(std::env::temp_dir().join(format!("playhouse-door-{}", std::process::id())));
    std::fs::create_dir(&folder.0).unwrap();
    let transport = UnixSockets::in_folder(&folder.0);
    let [here, there] = [(); 2].map(|()| builder().transport(transport.clone()).start().unwrap());
    let address = there.address().unwrap();
    // Calls succeed until now.
    here.connect(address).unwrap();
    std::fs::remove_file(folder.0.join(address.port().to_string())).unwrap();
    let unreachable = transport.connect(address, LIMIT).err().map(|error| error.kind());
    assert_eq!(unreachable, Some(ErrorKind::NotFound));
    there.shutdown_within(LIMIT).unwrap();
    here.shutdown_within(LIMIT).unwrap();
    let again = transport.listen(address).unwrap();
    assert_eq!(again.address().unwrap(), address);
}

// GUARANTEE: Floods do not exclude theaters
#[test]
fn silent_callers_keep_nobody_out() {
    let there = theater();
    let address = there.address().unwrap();
    let silent: Vec<_> = (0..200).map(|_| TcpStream::connect(address).unwrap()).collect();
    let here = theater();
    here.connect(address).unwrap();
    drop(silent);
    here.shutdown_within(LIMIT).unwrap();
    there.shutdown_within(LIMIT).unwrap();
}

/// Returns the first word of a caller, which does not show whether more will come: a nonce, a public key and a flag.
fn knock() -> Vec<u8> {
    let word = [vec![7; 64], vec![1]].concat();
    [&b"playhouse\x02"[..], &(word.len() as u32).to_le_bytes(), &word].concat()
}

/// Calls repeatedly, sends `words`, and keeps some of the connections, until `stop`.
fn flood(address: SocketAddr, words: Vec<u8>, stop: &AtomicBool, calls: &AtomicUsize) {
    let mut held = VecDeque::new();
    while !stop.load(Ordering::Relaxed) {
        if let Ok(mut stream) = TcpStream::connect(address) {
            let _ = stream.write_all(&words);
            held.push_back(stream);
            calls.fetch_add(1, Ordering::Relaxed);
        }
        if held.len() > 200 {
            held.pop_front();
        }
    }
}

// GUARANTEE: Floods do not exclude theaters
#[test]
fn theaters_get_in_during_a_flood_of_silent_and_of_talkative_callers() {
    let there = theater();
    let address = there.address().unwrap();
    for words in [Vec::new(), b"play".to_vec(), knock()] {
        let (stop, calls) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| flood(address, words, &stop, &calls));
            while calls.load(Ordering::Relaxed) < 500 {
                std::thread::yield_now();
            }
            let linked: Result<Vec<_>, _> = (0..5)
                .map(|_| {
                    let here = theater();
                    let linked = here.connect(address).map(drop);
                    here.shutdown_within(LIMIT).unwrap();
                    linked
                })
                .collect();
            stop.store(true, Ordering::Relaxed);
            linked.unwrap();
        });
    }
    there.shutdown_within(LIMIT).unwrap();
}

/// Returns the most memory that this process has had, in MiB.
fn memory_mib() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    peak.trim().strip_suffix(" kB")?.trim().parse::<usize>().ok().map(|kib| kib / 1024)
}

// GUARANTEE: Floods do not exclude theaters
#[test]
fn greetings_of_callers_that_have_proved_nothing_are_not_read() {
    const CALLERS: usize = 60;
    let refused = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&refused);
    let there = builder()
        .on_rejected_peer(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
        })
        .start()
        .unwrap();
    let address = there.address().unwrap();
    // A greeting with 2^20 kinds of three bytes each. In memory each takes some 70 bytes; earlier versions read that many.
    let body = [vec![0; 6], vec![0x80, 0x80, 0x40], vec![0; 3 << 20]].concat();
    let before = memory_mib();
    for magic in [&b"playhouse\x01"[..], b"playhouse\x02"] {
        let words = [magic, &(body.len() as u32).to_le_bytes(), &body].concat();
        std::thread::scope(|scope| {
            for _ in 0..CALLERS / 2 {
                scope.spawn(|| {
                    let mut caller = TcpStream::connect(address).unwrap();
                    // The theater does not read it to its end.
                    let _ = caller.write_all(&words);
                    let _ = caller.read(&mut [0]);
                });
            }
        });
    }
    if let (Some(before), Some(now)) = (before, memory_mib()) {
        assert!(now < before + 100, "{before} MiB, and then {now} MiB");
    }
    assert!(refused.load(Ordering::Relaxed) > 0, "nobody was refused");
    there.shutdown_within(LIMIT).unwrap();
}
