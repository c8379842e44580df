//! The guarantees of encrypted links, and the peers that get none.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, SystemTime};

use crate::numbers::over_cuts;
use crate::support::{LIMIT, theater};
use playhouse_actor::wire::WireForm;
use playhouse_actor::*;
use playhouse_theater::{Theater, TheaterBuilder, TheaterError, Tls};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use serde::{Deserialize, Serialize};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

// -- certificates -----------------------------------------------------------------------------------------------------

struct Ca(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key.
struct Identity {
    certificate: String,
    key: String,
}

impl Ca {
    fn new() -> Ca {
        let mut ca = CertificateParams::new([]).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Ca(CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap())
    }

    fn identity(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        Identity { certificate: params.signed_by(&key, &self.0).unwrap().pem(), key: key.serialize_pem() }
    }

    fn member(&self) -> Identity {
        self.identity("theater.playhouse", |_| {})
    }

    fn expired(&self) -> Identity {
        self.identity("theater.playhouse", |params| {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
            params.not_after = rcgen::date_time_ymd(1970, 1, 1) + (now - DAY);
        })
    }

    fn tls(&self) -> Tls {
        self.load(&self.member()).unwrap()
    }

    fn load(&self, identity: &Identity) -> Result<Tls, TheaterError> {
        Tls::from_pem(self.0.pem().as_bytes(), identity.certificate.as_bytes(), identity.key.as_bytes())
    }

    fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        Arc::new(roots)
    }
}

impl Identity {
    fn parts(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap();
        (vec![certificate], PrivateKeyDer::from_pem_slice(self.key.as_bytes()).unwrap())
    }
}

// -- theaters ---------------------------------------------------------------------------------------------------------

fn builder() -> TheaterBuilder {
    Theater::builder().listen("127.0.0.1:0").system(System::builder().workers(2))
}

fn encrypted(ca: &Ca) -> Theater {
    builder().tls(ca.tls()).start().unwrap()
}

/// Returns a theater, and the reasons of its refusals.
fn watchful(builder: TheaterBuilder) -> (Theater, mpsc::Receiver<String>) {
    let (out, rejections) = mpsc::channel();
    let theater = builder.on_rejected_peer(move |error| drop(out.send(error.to_string()))).start().unwrap();
    (theater, rejections)
}

/// Returns the cause of a failed TLS connection.
fn why(error: TheaterError) -> String {
    match error {
        TheaterError::Tls { why, .. } => why,
        other => panic!("{other}"),
    }
}

fn contains(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "no {word:?} in {text:?}");
    }
}

/// Answers with the content of the ask.
#[derive(Serialize, Deserialize)]
struct Mirror {
    told: usize,
}
#[derive(Serialize, Deserialize)]
struct Show(Vec<u8>);
impl Message for Show {
    type Reply = Vec<u8>;
    const WIRE: Option<WireForm<Show>> = Some(WireForm::of());
}
#[derive(Serialize, Deserialize)]
struct Tell(Vec<u8>);
impl Message for Tell {
    type Reply = ();
    const WIRE: Option<WireForm<Tell>> = Some(WireForm::of());
}
#[derive(Serialize, Deserialize)]
struct Told;
impl Message for Told {
    type Reply = usize;
    const WIRE: Option<WireForm<Told>> = Some(WireForm::of());
}
impl Actor for Mirror {}
impl Handler<Show> for Mirror {
    fn handle(&mut self, Show(bytes): Show, _: &mut Context<Self>) -> Vec<u8> {
        bytes
    }
}
impl Handler<Tell> for Mirror {
    fn handle(&mut self, Tell(bytes): Tell, _: &mut Context<Self>) {
        self.told += bytes.len();
    }
}
impl Handler<Told> for Mirror {
    fn handle(&mut self, _: Told, _: &mut Context<Self>) -> usize {
        self.told
    }
}
remote!(spawn Mirror: Show, Tell, Told);

/// Returns an actor in `there`, which `here` calls.
fn mirror(here: &Theater, there: impl ToString) -> ActorRef<Mirror> {
    let peer = here.connect(there.to_string()).unwrap();
    here.spawn_at(&peer, &Mirror { told: 0 }).unwrap()
}

fn shut_down(theaters: impl IntoIterator<Item = Theater>) {
    for theater in theaters {
        theater.shutdown().unwrap();
    }
}

// -- links ------------------------------------------------------------------------------------------------------------

/// Records the passing bytes. Returns the address to call instead of `to`.
fn tapped(to: SocketAddr, record: &Arc<Mutex<Vec<u8>>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let record = Arc::clone(record);
    std::thread::spawn(move || {
        let (from, to) = (listener.accept().unwrap().0, TcpStream::connect(to).unwrap());
        for (mut from, mut to) in [(from.try_clone().unwrap(), to.try_clone().unwrap()), (to, from)] {
            let record = Arc::clone(&record);
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(count @ 1..) = from.read(&mut buffer) {
                    record.lock().unwrap().extend(&buffer[..count]);
                    to.write_all(&buffer[..count]).unwrap();
                }
                let _ = to.shutdown(std::net::Shutdown::Write);
            });
        }
    });
    address
}

// GUARANTEE: Secrecy
#[test]
fn a_tap_on_the_network_reads_no_plain_text() {
    let secret = b"nobody is to read this";
    let seen = |record: &Mutex<Vec<u8>>| record.lock().unwrap().windows(secret.len()).any(|part| part == secret);
    let talk = |start: &dyn Fn() -> Theater| {
        let (here, there, record) = (start(), start(), Arc::default());
        let mirror = mirror(&here, tapped(there.address().unwrap(), &record));
        mirror.tell(Tell(secret.to_vec()));
        assert_eq!(mirror.ask(Show(secret.to_vec())).wait(), Ok(secret.to_vec()));
        assert_eq!(mirror.ask(Told).wait(), Ok(secret.len()));
        shut_down([here, there]);
        record
    };
    assert!(seen(&talk(&theater)), "the tap hears");
    let ca = Ca::new();
    assert!(!seen(&talk(&|| encrypted(&ca))));
}

// GUARANTEE: Secrecy
#[test]
fn large_messages_cross_both_ways_encrypted() {
    const BYTES: usize = 7 * 1024 * 1024;
    let ca = Ca::new();
    let (here, there) = (encrypted(&ca), encrypted(&ca));
    let mirror = mirror(&here, there.address().unwrap());
    let large: Vec<u8> = (0..BYTES).map(|n| (n % 251) as u8).collect();
    // Several at once, because both ends then write and read at the same time, more than the sockets take.
    let asks: Vec<_> = (0..3)
        .map(|_| {
            let large = large.clone();
            std::thread::spawn(move || assert!(mirror.ask(Show(large.clone())).wait() == Ok(large)))
        })
        .collect();
    for _ in 0..8 {
        mirror.tell(Tell(large.clone()));
    }
    for ask in asks {
        ask.join().unwrap();
    }
    assert_eq!(mirror.ask(Told).wait(), Ok(8 * BYTES));
    shut_down([here, there]);
}

// GUARANTEE: Secrecy
#[test]
fn cut_encrypted_connections_lose_repeat_and_reorder_nothing() {
    let ca = Ca::new();
    for seed in 0..3 {
        over_cuts(encrypted(&ca), encrypted(&ca), seed);
    }
}

// GUARANTEE: No network by accident
#[test]
fn with_certificates_other_networks_are_allowed() {
    let ca = Ca::new();
    let there = Theater::builder().listen("0.0.0.0:0").advertise("127.0.0.1:0").tls(ca.tls()).start().unwrap();
    let refused = Theater::builder().start().unwrap().connect("192.0.2.1:80").unwrap_err();
    contains(&refused.to_string(), &["192.0.2.1:80", "`tls(..)`", "`playhouse certificates`", "`plaintext()`"]);
    assert!(matches!(refused, TheaterError::NotLoopback { .. }), "{refused:?}");
    // The order of the two settings does not matter.
    for builder in [builder().tls(ca.tls()).plaintext(), builder().plaintext().tls(ca.tls())] {
        let here = builder.start().unwrap();
        assert_eq!(mirror(&here, there.address().unwrap()).ask(Told).wait(), Ok(0));
        shut_down([here]);
    }
    shut_down([there]);
}

// -- rejected peers -----------------------------------------------------------------------------------------------------

// GUARANTEE: Members only
#[test]
fn a_theater_of_another_ca_is_refused_and_others_go_on() {
    let (ours, theirs) = (Ca::new(), Ca::new());
    let (there, rejections) = watchful(builder().tls(ours.tls()));
    let (friend, foe) = (encrypted(&ours), encrypted(&theirs));
    let mirror_of_friend = mirror(&friend, there.address().unwrap());
    for _ in 0..3 {
        contains(&why(foe.connect(there.address().unwrap()).unwrap_err()), &["another CA", "the cluster's CA"]);
        let said = rejections.recv_timeout(LIMIT).unwrap();
        contains(&said, &["127.0.0.1:", "refuses this theater's certificate", "the cluster's CA"]);
        assert_eq!(mirror_of_friend.ask(Show(vec![1])).wait(), Ok(vec![1]));
    }
    contains(&why(there.connect(foe.address().unwrap()).unwrap_err()), &["another CA"]);
    assert_eq!(mirror(&there, friend.address().unwrap()).ask(Told).wait(), Ok(0));
    shut_down([friend, foe, there]);
}

// GUARANTEE: A refusal gives its cause
#[test]
fn a_theater_with_certificates_and_one_without_say_so_to_each_other() {
    let ca = Ca::new();
    let (plain, plain_rejections) = watchful(builder());
    let (encrypted, rejections) = watchful(builder().tls(ca.tls()));
    match plain.connect(encrypted.address().unwrap()).unwrap_err() {
        TheaterError::NotMember { why, .. } => {
            contains(&why, &["the called theater requires TLS", "does not", "certificates of one CA"])
        }
        other => panic!("{other}"),
    }
    contains(&rejections.recv_timeout(LIMIT).unwrap(), &["the called theater requires TLS", "the caller does not"]);
    contains(
        &why(encrypted.connect(plain.address().unwrap()).unwrap_err()),
        &["it speaks no TLS", "certificates of one CA"],
    );
    contains(&plain_rejections.recv_timeout(LIMIT).unwrap(), &["the caller uses TLS", "the called theater does not"]);
    shut_down([plain, encrypted]);
}

// GUARANTEE: Members only
#[test]
fn nonsense_sent_to_an_encrypted_acceptor_harms_no_theater() {
    let ca = Ca::new();
    let (there, rejections) = watchful(builder().tls(ca.tls()));
    let address = there.address().unwrap();
    let mut random = 7_u64;
    let mut bytes = |count: usize| -> Vec<u8> {
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 56) as u8
        };
        (0..count).map(|_| next()).collect()
    };
    for round in 0..20 {
        // Some would be TLS at first sight, up to a complete record.
        let start: &[u8] = match round % 4 {
            0 => b"",
            1 => b"GET / HTTP/1.1\r\n\r\n",
            2 => &[22, 3, 1, 0, 200],
            _ => &[22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3],
        };
        let mut stream = TcpStream::connect(address).unwrap();
        let nonsense = [start, &bytes(100_000)].concat();
        // The theater may refuse it before everything is sent.
        let _ = stream.write_all(&nonsense);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
        let said = rejections.recv_timeout(LIMIT).unwrap();
        assert!(said.contains("127.0.0.1:"), "{said}");
    }
    let friend = encrypted(&ca);
    assert_eq!(mirror(&friend, address).ask(Show(vec![2])).wait(), Ok(vec![2]));
    shut_down([friend, there]);
}

/// Calls a theater with the given identity, if any. Returns its reply: an alert of TLS, or its words.
fn call_as(ca: &Ca, identity: Option<&Identity>, address: SocketAddr) -> Result<String, rustls::Error> {
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(ca.roots());
    let config = match identity {
        None => config.with_no_client_auth(),
        Some(identity) => {
            let (certificates, key) = identity.parts();
            config.with_client_auth_cert(certificates, key).unwrap()
        }
    };
    let name = ServerName::try_from("theater.playhouse").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = rustls::StreamOwned::new(connection, TcpStream::connect(address).unwrap());
    let mut said = Vec::new();
    // The stream ends without the close notification of TLS.
    match stream.read_to_end(&mut said) {
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            Err(error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>()).unwrap().clone())
        }
        _ => Ok(String::from_utf8_lossy(&said).into_owned()),
    }
}

/// Lets a theater call a peer with this `identity`. Returns the errors of the two.
fn answer_as(ca: &Ca, identity: &Identity, caller: &Theater) -> (TheaterError, rustls::Error) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (certificates, key) = identity.parts();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let clients = WebPkiClientVerifier::builder_with_provider(ca.roots(), Arc::clone(&provider)).build().unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_client_cert_verifier(clients)
        .with_single_cert(certificates, key)
        .unwrap();
    let answer = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut connection = ServerConnection::new(Arc::new(config)).unwrap();
        let error = connection.complete_io(&mut stream).unwrap_err();
        error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>()).unwrap().clone()
    });
    let error = caller.connect(address).unwrap_err();
    (error, answer.join().unwrap())
}

fn alert(alert: rustls::AlertDescription) -> rustls::Error {
    rustls::Error::AlertReceived(alert)
}

// GUARANTEE: Members only
#[test]
fn a_caller_without_a_certificate_is_refused() {
    let ca = Ca::new();
    let (there, rejections) = watchful(builder().tls(ca.tls()));
    let heard = call_as(&ca, None, there.address().unwrap()).unwrap_err();
    assert_eq!(heard, alert(rustls::AlertDescription::CertificateRequired));
    contains(&rejections.recv_timeout(LIMIT).unwrap(), &["it shows no certificate", "the cluster's CA"]);
    shut_down([there]);
}

// GUARANTEE: Members only
#[test]
fn a_certificate_that_has_expired_is_refused() {
    let ca = Ca::new();
    let expired = ca.expired();
    let (there, rejections) = watchful(builder().tls(ca.tls()));
    let heard = call_as(&ca, Some(&expired), there.address().unwrap()).unwrap_err();
    assert_eq!(heard, alert(rustls::AlertDescription::CertificateExpired));
    contains(&rejections.recv_timeout(LIMIT).unwrap(), &["the certificate has expired", "a new one"]);
    let (error, heard) = answer_as(&ca, &expired, &there);
    contains(&why(error), &["the certificate has expired", "a new one"]);
    assert_eq!(heard, alert(rustls::AlertDescription::CertificateExpired));
    shut_down([there]);
}

// GUARANTEE: Members only
#[test]
fn a_certificate_of_the_ca_for_something_else_is_refused() {
    let ca = Ca::new();
    let other = ca.identity("mail.example", |_| {});
    let (there, rejections) = watchful(builder().tls(ca.tls()));
    contains(&call_as(&ca, Some(&other), there.address().unwrap()).unwrap(), &["not made out to theater.playhouse"]);
    contains(&rejections.recv_timeout(LIMIT).unwrap(), &["not made out to theater.playhouse"]);
    let (error, heard) = answer_as(&ca, &other, &there);
    contains(&why(error), &["not made out to theater.playhouse"]);
    assert_eq!(heard, alert(rustls::AlertDescription::BadCertificate));
    shut_down([there]);
}

// GUARANTEE: A refusal gives its cause
#[test]
fn certificates_that_others_would_refuse_are_refused_when_they_are_loaded() {
    let (ca, another) = (Ca::new(), Ca::new());
    let member = ca.member();
    let refused = |ca: &Ca, certificate: &str, key: &str, words: &[&str]| {
        let identity = Identity { certificate: certificate.to_owned(), key: key.to_owned() };
        match ca.load(&identity).unwrap_err() {
            TheaterError::Certificates(why) => contains(&why, words),
            other => panic!("{other}"),
        }
    };
    let (certificate, key) = (&*member.certificate, &*member.key);
    refused(&another, certificate, key, &["the theater's certificate", "another CA"]);
    refused(&ca, certificate, &another.member().key, &["the theater's key", "not that of the certificate"]);
    refused(&ca, certificate, "nothing", &["the theater's key", "no key in it"]);
    refused(&ca, certificate, certificate, &["the theater's key", "no key in it"]);
    refused(&ca, "nothing", key, &["the theater's certificate", "no certificate in it"]);
    let expired = ca.expired();
    refused(&ca, &expired.certificate, &expired.key, &["the theater's certificate", "has expired"]);
    let other = ca.identity("mail.example", |_| {});
    refused(&ca, &other.certificate, &other.key, &["not made out to theater.playhouse"]);
    let client = ca
        .identity("theater.playhouse", |params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]);
    refused(&ca, &client.certificate, &client.key, &["for client and server"]);
    let damaged = "-----BEGIN CERTIFICATE-----\nYWJj\n-----END CERTIFICATE-----\n";
    refused(&ca, damaged, key, &["the theater's certificate", "is damaged"]);
    refused(&ca, &damaged[..40], key, &["the theater's certificate", "its PEM is damaged"]);
    refused(&ca, &ca.0.pem(), key, &["the theater's certificate", "is the one of a CA"]);
    match Tls::from_pem_files("there/is/no.pem", "no.pem", "no.key").unwrap_err() {
        TheaterError::Certificates(why) => contains(&why, &["there/is/no.pem: "]),
        other => panic!("{other}"),
    }
    match Tls::from_pem(b"", certificate.as_bytes(), key.as_bytes()).unwrap_err() {
        TheaterError::Certificates(why) => contains(&why, &["the CA's certificate", "no certificate in it"]),
        other => panic!("{other}"),
    }
}
