//! Tests with members and rejected peers that claim to be other theaters.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use playhouse_actor::wire::WireForm;
use playhouse_actor::{Actor, Context, Handler, Message, System, remote};
use serde::{Deserialize, Serialize};

use crate::error::TheaterError;
use crate::link::frame::{Hello, Reply, Resume, THEATERS_MAX};
use crate::node::cookie::Cookie;
use crate::node::handshake::{self, ANSWER_TIME_MAX, MAGIC, Opening};
use crate::node::identity::Credentials;
use crate::theater::Theater;
use crate::theater::builder::TheaterBuilder;
use crate::transport::{GuardedWire, Tcp, Transport};

const SECRET: &str = "a cookie for tests";
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Serialize, Deserialize)]
struct Owner;
#[derive(Serialize, Deserialize)]
struct Whose;
impl Message for Whose {
    type Reply = u64;
    const WIRE: Option<WireForm<Whose>> = Some(WireForm::of());
}
impl Actor for Owner {}
impl Handler<Whose> for Owner {
    fn handle(&mut self, _: Whose, _: &mut Context<Self>) -> u64 {
        7
    }
}
remote!(Owner: Whose);

fn builder(secret: &str) -> TheaterBuilder {
    let system = System::builder().workers(1);
    Theater::builder().listen("127.0.0.1:0").cookie(Cookie::new(secret).unwrap()).system(system)
}

fn theaters<const COUNT: usize>() -> [Theater; COUNT] {
    [(); COUNT].map(|()| builder(SECRET).start().unwrap())
}

fn address(theater: &Theater) -> SocketAddr {
    theater.address().unwrap()
}

fn hello(incarnation: u64) -> Hello {
    let (knows, lost, kinds) = (Vec::new(), Vec::new(), Vec::new());
    Hello { cluster: String::new(), incarnation, listens: None, resumes: None, knows, lost, kinds, link: None }
}

/// Greets the theater at `address` with `hello`, with the cookie and a key of its own.
fn greet(address: SocketAddr, hello: impl FnOnce(u64) -> Hello) -> Result<(Reply, Opening), TheaterError> {
    let credentials = Credentials::new(Some(Cookie::new(SECRET).unwrap()));
    let wire = GuardedWire::new(Tcp.connect(address, LIMIT).unwrap());
    let mut opening = Opening::call(wire, address.to_string(), None, ANSWER_TIME_MAX).unwrap();
    let member = handshake::prove(&mut opening, &credentials, "").unwrap();
    let reply = handshake::call(&mut opening, &hello(credentials.incarnation), member)?;
    Ok((reply, opening))
}

fn end<const COUNT: usize>(theaters: [Theater; COUNT]) {
    for theater in theaters {
        theater.shutdown_within(LIMIT).unwrap();
    }
}

// GUARANTEE: An incarnation is one process
#[test]
fn another_process_cannot_claim_the_incarnation_of_a_theater() {
    let [local, remote] = theaters();
    let peer = local.connect(address(&remote)).unwrap();
    let claimed = local.theater_core.incarnation;
    let resumes =
        Resume { incarnation: remote.theater_core.incarnation, received: 0, connection: u64::MAX, link: None };
    // Greetings as a new theater, as one that has lost the other, and to resume the session.
    let greetings = [
        hello(claimed),
        Hello { lost: vec![remote.theater_core.incarnation], ..hello(claimed) },
        Hello { resumes: Some(resumes), ..hello(claimed) },
    ];
    for greeting in greetings {
        let refused = greet(address(&remote), |_| greeting).err().expect("it was believed");
        let TheaterError::NotMember { why, .. } = refused else { panic!("{refused}") };
        assert!(why.contains("another incarnation than the proved one"), "{why}");
    }
    assert!(!peer.is_lost() && peer.link.connection().is_some());
    let owner = remote.system().spawn(Owner);
    remote.publish("owner", owner).unwrap();
    let found = local.find::<Owner>(&format!("playhouse://{}/owner", address(&remote))).wait().unwrap();
    assert_eq!(found.ask(Whose).within(LIMIT).wait(), Ok(7));
    end([local, remote]);
}

// GUARANTEE: An incarnation is one process
#[test]
fn the_number_of_a_connection_cannot_overflow() {
    let [local, remote] = theaters();
    let peer = local.connect(address(&remote)).unwrap();
    let (theater, resumed) = (local.theater_core.incarnation, remote.theater_core.incarnation);
    let resumes = |connection| Some(Resume { incarnation: resumed, received: 0, connection, link: None });
    let greeting = |connection| Hello { resumes: resumes(connection), ..hello(theater) };
    let (reply, go_on) = remote.theater_core.receive_hello(&greeting(u64::MAX), None);
    assert!(matches!(&reply, Reply::Refused(why) if why.contains("of a session")), "{reply:?}");
    assert!(go_on.is_none() && !peer.is_lost());
    end([local, remote]);
}

// GUARANTEE: An incarnation is one process
#[test]
fn a_theater_that_says_it_listens_where_another_does_is_not_taken_for_that() {
    let [local, remote] = theaters();
    remote.publish("owner", remote.system().spawn(Owner)).unwrap();
    let listens = Some(address(&remote));
    let (reply, opening) = greet(address(&local), |own| Hello { listens, ..hello(own) }).unwrap();
    assert!(matches!(reply, Reply::Hello(_)));
    let found = local.find::<Owner>(&format!("playhouse://{}/owner", address(&remote))).wait().unwrap();
    assert_eq!(found.ask(Whose).within(LIMIT).wait(), Ok(7));
    // Without the drop, the test would wait for its end.
    drop(opening);
    local
        .theater_core
        .all_links()
        .iter()
        .filter(|link| link.incarnation != remote.theater_core.incarnation)
        .for_each(|link| link.lose());
    end([local, remote]);
}

// GUARANTEE: One user, one cookie
#[test]
fn theaters_with_different_cookies_refuse_each_other_and_say_why() {
    let (tell, told) = mpsc::channel();
    let on_rejected_peer = move |error: &TheaterError| drop(tell.send(error.to_string()));
    let remote = builder(SECRET).on_rejected_peer(on_rejected_peer).start().unwrap();
    let local = builder("a cookie of another user").start().unwrap();
    let error = local.connect(address(&remote)).unwrap_err();
    assert!(matches!(error, TheaterError::NotMember { .. }), "{error}");
    let why = error.to_string();
    assert!(
        why.contains("the called theater's cookie differs from the caller's") && why.contains("PLAYHOUSE_COOKIE_FILE"),
        "{why}"
    );
    let told = told.recv_timeout(LIMIT).unwrap();
    assert!(told.contains("the caller refuses the called theater's cookie"), "{told}");
    end([local, remote]);
}

// GUARANTEE: One user, one cookie
#[test]
fn a_rejected_peer_learns_neither_the_cookie_nor_the_name_of_the_cluster() {
    const CLUSTER: &str = "a-name-that-nobody-is-told";
    let theater = builder(SECRET).cluster(CLUSTER).start().unwrap();
    let strange = Credentials::new(Some(Cookie::new("a cookie of another user").unwrap()));
    let says = |received: &[u8], secret: &str| received.windows(secret.len()).any(|part| part == secret.as_bytes());
    // The impostor as the called end: it cannot prove the cookie, and receives nothing more.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let rejected_peer = listener.local_addr().unwrap();
    let received = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut first = vec![0; MAGIC.len() + 4 + 65];
        stream.read_exact(&mut first).unwrap();
        let word = [vec![1], vec![9; 64], vec![1], vec![9; 96]].concat();
        let words = [&MAGIC[..], &(word.len() as u32).to_le_bytes(), &word].concat();
        stream.write_all(&words).unwrap();
        let mut more = Vec::new();
        stream.read_to_end(&mut more).unwrap();
        [first, more].concat()
    });
    let error = theater.connect(rejected_peer).unwrap_err();
    assert!(matches!(error, TheaterError::NotMember { .. }), "{error}");
    let received = received.join().unwrap();
    assert!(!says(&received, CLUSTER) && !says(&received, SECRET));
    // The impostor as a caller: the word that it receives cannot be read as more than a challenge.
    let wire = GuardedWire::new(Tcp.connect(address(&theater), LIMIT).unwrap());
    let mut opening = Opening::call(wire, "there".to_owned(), None, ANSWER_TIME_MAX).unwrap();
    assert!(matches!(handshake::prove(&mut opening, &strange, CLUSTER), Err(TheaterError::NotMember { .. })));
    let mut stream = TcpStream::connect(address(&theater)).unwrap();
    let word = [vec![7; 64], vec![1]].concat();
    stream.write_all(&[&MAGIC[..], &(word.len() as u32).to_le_bytes(), &word].concat()).unwrap();
    // The theater refuses every answer to the challenge.
    let word = [vec![1, 0], vec![7; 96]].concat();
    stream.write_all(&[&MAGIC[..], &(word.len() as u32).to_le_bytes(), &word].concat()).unwrap();
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    assert!(says(&received, "the caller's cookie differs") && !says(&received, CLUSTER) && !says(&received, SECRET));
    end([theater]);
}

// GUARANTEE: An incarnation is one process
#[test]
fn a_theater_that_shows_another_certificate_than_before_is_refused() {
    let [local, remote] = theaters();
    let peer = local.connect(address(&remote)).unwrap();
    let (reply, go_on) = remote.theater_core.receive_hello(&hello(local.theater_core.incarnation), Some([1; 32]));
    assert!(matches!(&reply, Reply::Refused(why) if why.contains("another certificate")), "{reply:?}");
    assert!(go_on.is_none() && !peer.is_lost());
    end([local, remote]);
}

// GUARANTEE: Floods do not exclude theaters
#[test]
fn links_that_nobody_uses_make_room_for_others() {
    let [local, remote] = theaters();
    let used = local.connect(address(&remote)).unwrap();
    let deadline = Instant::now() + LIMIT;
    let back = || remote.theater_core.all_links().into_iter().find(|link| link.has_received());
    while back().is_none() {
        local.find::<Owner>(&format!("playhouse://{}/nobody", address(&remote))).wait().unwrap_err();
        assert!(Instant::now() < deadline);
    }
    for incarnation in 0..THEATERS_MAX as u64 + 100 {
        let (reply, _) = remote.theater_core.receive_hello(&hello(incarnation), None);
        assert!(matches!(reply, Reply::Hello(_)), "{reply:?}");
        assert!(remote.theater_core.all_links().len() <= THEATERS_MAX);
    }
    assert!(!used.is_lost() && back().is_some());
    let [other] = theaters();
    other.connect(address(&remote)).unwrap();
    // Without this statement, the test would wait for the links' end.
    remote.theater_core.all_links().iter().filter(|link| !link.has_received()).for_each(|link| link.lose());
    end([local, remote, other]);
}

// GUARANTEE: Floods do not exclude theaters
#[test]
fn a_greeting_with_more_kinds_than_allowed_is_refused() {
    // A list of 20,000 kinds without names: it has few bytes.
    let mut body = postcard::to_extend(&hello(1), Vec::new()).unwrap();
    body.pop();
    body.extend(postcard::to_extend(&20_000_u32, Vec::new()).unwrap());
    body.extend(std::iter::repeat_n(0, 3 * 20_000));
    let words = [&MAGIC[..], &(body.len() as u32).to_le_bytes(), &body].concat();
    let received = handshake::read::<Hello>(&words[..]).unwrap();
    assert!(received.is_err());
}
