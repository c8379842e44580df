//! The transport by Unix domain sockets.

#![cfg(unix)]

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use playhouse::prelude::*;
use playhouse::transport::{Transport, UnixSockets};
use playhouse::{TheaterError, Tls};
use playhouse_testkit::conformance::transport;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use socket2::{Domain, SockAddr, Socket, Type};

const ANYWHERE: &str = "127.0.0.1:0";

/// A folder that is removed when its test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("playhouse-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

// GUARANTEE: Any transport
// GUARANTEE: Unix sockets
#[test]
fn unix_sockets_keep_all_rules() {
    let folder = Folder::new("rules");
    let path = folder.0.clone();
    transport::check(ANYWHERE, move || UnixSockets::in_folder(&path)).assert_all_kept();
}

// GUARANTEE: Unix sockets
#[test]
fn files_of_a_killed_theater_do_not_disturb_others() {
    let folder = Folder::new("left");
    let address: SocketAddr = "127.0.0.1:7001".parse().unwrap();
    drop(std::os::unix::net::UnixListener::bind(folder.0.join("7001")).unwrap());
    assert!(folder.0.join("7001").exists());
    let transport = UnixSockets::in_folder(&folder.0);
    let listener = transport.listen(address).unwrap();
    assert_eq!(listener.address().unwrap(), address);
    transport.connect(address, Duration::from_secs(5)).unwrap();
    drop(listener);
    assert!(!folder.0.join("7001").exists());
}

#[test]
fn a_file_that_is_no_socket_is_left_alone() {
    let folder = Folder::new("file");
    for name in ["7001", "49152"] {
        std::fs::write(folder.0.join(name), "mine").unwrap();
    }
    let transport = UnixSockets::in_folder(&folder.0);
    let refused = transport.listen("127.0.0.1:7001".parse().unwrap()).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::AddrInUse);
    assert!(refused.to_string().ends_with("7001 is no socket"), "{refused}");
    assert_ne!(transport.listen(ANYWHERE.parse().unwrap()).unwrap().address().unwrap().port(), 49_152);
    for name in ["7001", "49152"] {
        assert_eq!(std::fs::read_to_string(folder.0.join(name)).unwrap(), "mine");
    }
}

#[test]
fn a_listener_keeps_its_address_after_its_lock_was_removed() {
    let folder = Folder::new("unlocked");
    let transport = UnixSockets::in_folder(&folder.0);
    let [first, second] = ["127.0.0.1:7001", "127.0.0.1:7001"].map(|address| {
        let listener = transport.listen(address.parse().unwrap());
        // Somebody removes old files.
        let _ = std::fs::remove_file(folder.0.join("7001.lock"));
        listener
    });
    let first = first.unwrap();
    assert_eq!(second.err().unwrap().kind(), ErrorKind::AddrInUse);
    transport.connect("127.0.0.1:7001".parse().unwrap(), Duration::from_secs(5)).unwrap();

    // If the socket was removed too, another theater is there now, and the first one leaves it alone at its end.
    std::fs::remove_file(folder.0.join("7001")).unwrap();
    let _second = transport.listen("127.0.0.1:7001".parse().unwrap()).unwrap();
    drop(first);
    transport.connect("127.0.0.1:7001".parse().unwrap(), Duration::from_secs(5)).unwrap();
}

#[test]
fn errors_of_unix_sockets_say_where() {
    let folder = Folder::new("errors");
    let transport = UnixSockets::in_folder(folder.0.join("not there"));
    let said = |error: io::Error| (error.kind(), error.to_string());
    let (kind, words) = said(transport.listen(ANYWHERE.parse().unwrap()).err().unwrap());
    assert_eq!(kind, ErrorKind::NotFound);
    assert!(words.contains("not there"), "{words}");
    let (kind, words) = said(transport.connect("127.0.0.1:7".parse().unwrap(), Duration::from_secs(5)).err().unwrap());
    assert_eq!(kind, ErrorKind::NotFound);
    assert!(words.contains("not there/7"), "{words}");
    let (kind, words) = said(transport.listen("192.0.2.1:7".parse().unwrap()).err().unwrap());
    assert_eq!(kind, ErrorKind::InvalidInput);
    assert!(words.contains("192.0.2.1:7") && words.contains("127.0.0.1:7"), "{words}");
}

// GUARANTEE: Unix sockets
#[test]
fn an_unanswered_call_is_given_up() {
    let folder = Folder::new("unheard");
    // The listener has room for one or two waiting connections, where a theater has some thousand.
    let listener = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    listener.bind(&SockAddr::unix(folder.0.join("7001")).unwrap()).unwrap();
    listener.listen(1).unwrap();
    let (transport, address) = (UnixSockets::in_folder(&folder.0), "127.0.0.1:7001".parse().unwrap());
    let mut waiting = Vec::new();
    let refused = loop {
        match transport.connect(address, Duration::from_millis(20)) {
            Ok(wire) => waiting.push(wire),
            Err(error) => break error,
        }
        assert!(waiting.len() < 100);
    };
    assert_eq!(refused.kind(), ErrorKind::TimedOut);
    assert!(refused.to_string().contains("no theater accepts callers"), "{refused}");
}

/// An actor that adds numbers up.
#[derive(Default)]
struct Sum(u64);

#[actor(remote = "unix_sockets.Sum")]
impl Sum {
    #[message]
    fn add(&mut self, by: u64) -> u64 {
        self.0 += by;
        self.0
    }
}

// GUARANTEE: Any transport
#[test]
fn links_over_unix_sockets_are_encrypted_too() {
    let folder = Folder::new("tls");
    let tls = certificate();
    let start = || {
        let transport = UnixSockets::in_folder(&folder.0);
        let theater = Theater::builder().transport(transport).listen(ANYWHERE).tls(tls.clone());
        theater.system(System::builder().workers(1)).start().unwrap()
    };
    let (here, there) = (start(), start());
    there.publish("sum", there.system().spawn(Sum::default())).unwrap();
    let address = there.address().unwrap();
    let sum = here.find::<Sum>(&format!("playhouse://{address}/sum")).wait().unwrap();
    for n in 1..=100 {
        assert_eq!(sum.ask(Add(1)).wait(), Ok(n));
    }
    // A theater without a certificate connects to the same address.
    let plain = Theater::builder().transport(UnixSockets::in_folder(&folder.0)).start().unwrap();
    let refused = plain.connect(address.to_string()).unwrap_err();
    assert!(matches!(refused, TheaterError::NotMember { .. }), "{refused:?}");
    assert!(refused.to_string().contains("requires TLS"), "{refused}");
    for theater in [here, there, plain] {
        theater.shutdown().unwrap();
    }
}

fn certificate() -> Tls {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let member = CertificateParams::new(["theater.playhouse".to_owned()]).unwrap().signed_by(&key, &ca).unwrap();
    Tls::from_pem(ca.pem().as_bytes(), member.pem().as_bytes(), key.serialize_pem().as_bytes()).unwrap()
}
