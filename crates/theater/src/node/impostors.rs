//! Tests: members and strangers that claim to be other theaters.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use playhouse_actor::wire::WireForm;
use playhouse_actor::{Actor, Context, Handler, Message, System, remote};
use serde::{Deserialize, Serialize};

use crate::error::TheaterError;
use crate::link::frame::{Hello, Reply, Resume, THEATERS_MAX};
use crate::node::builder::TheaterBuilder;
use crate::node::cookie::Cookie;
use crate::node::handshake::{self, MAGIC, Opening, PATIENCE};
use crate::node::identity::Credentials;
use crate::node::theater::Theater;
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
    let line = GuardedWire::new(Tcp.connect(address, LIMIT).unwrap());
    let mut opening = Opening::call(line, address.to_string(), None, PATIENCE).unwrap();
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
    let [here, there] = theaters();
    let peer = here.connect(address(&there)).unwrap();
    let claimed = here.theater_core.incarnation;
    let resumes = Resume { incarnation: there.theater_core.incarnation, received: 0, connection: u64::MAX, link: None };
    // As new, as one that has lost the other, and to resume the session.
    let greetings = [
        hello(claimed),
        Hello { lost: vec![there.theater_core.incarnation], ..hello(claimed) },
        Hello { resumes: Some(resumes), ..hello(claimed) },
    ];
    for greeting in greetings {
        let refused = greet(address(&there), |_| greeting).err().expect("it was believed");
        let TheaterError::Refused { why, .. } = refused else { panic!("{refused}") };
        assert!(why.contains("another incarnation than the one it has proved"), "{why}");
    }
    assert!(!peer.is_lost() && peer.link.connection().is_some());
    let owner = there.system().spawn(Owner);
    there.publish("owner", owner).unwrap();
    let found = here.find::<Owner>(&format!("playhouse://{}/owner", address(&there))).wait().unwrap();
    assert_eq!(found.ask(Whose).within(LIMIT).wait(), Ok(7));
    end([here, there]);
}

// GUARANTEE: An incarnation is one process
#[test]
fn the_number_of_a_connection_cannot_overflow() {
    let [here, there] = theaters();
    let peer = here.connect(address(&there)).unwrap();
    let (theater, resumed) = (here.theater_core.incarnation, there.theater_core.incarnation);
    let resumes = |connection| Some(Resume { incarnation: resumed, received: 0, connection, link: None });
    let greeting = |connection| Hello { resumes: resumes(connection), ..hello(theater) };
    let (reply, go_on) = there.theater_core.receive_hello(&greeting(u64::MAX), None);
    assert!(matches!(&reply, Reply::Refused(why) if why.contains("of a session")), "{reply:?}");
    assert!(go_on.is_none() && !peer.is_lost());
    end([here, there]);
}

// GUARANTEE: An incarnation is one process
#[test]
fn a_theater_that_says_it_listens_where_another_does_is_not_taken_for_that() {
    let [here, there] = theaters();
    there.publish("owner", there.system().spawn(Owner)).unwrap();
    let listens = Some(address(&there));
    let (reply, opening) = greet(address(&here), |own| Hello { listens, ..hello(own) }).unwrap();
    assert!(matches!(reply, Reply::Hello(_)));
    let found = here.find::<Owner>(&format!("playhouse://{}/owner", address(&there))).wait().unwrap();
    assert_eq!(found.ask(Whose).within(LIMIT).wait(), Ok(7));
    // Otherwise its end would be waited for.
    drop(opening);
    here.theater_core
        .all_links()
        .iter()
        .filter(|link| link.incarnation != there.theater_core.incarnation)
        .for_each(|link| link.lose());
    end([here, there]);
}

// GUARANTEE: One user, one cookie
#[test]
fn theaters_with_different_cookies_refuse_each_other_and_say_why() {
    let (tell, told) = mpsc::channel();
    let on_rejected_peer = move |error: &TheaterError| drop(tell.send(error.to_string()));
    let there = builder(SECRET).on_rejected_peer(on_rejected_peer).start().unwrap();
    let here = builder("a cookie of another user").start().unwrap();
    let error = here.connect(address(&there)).unwrap_err();
    assert!(matches!(error, TheaterError::NotMember { .. }), "{error}");
    let why = error.to_string();
    assert!(why.contains("its cookie is another") && why.contains("PLAYHOUSE_COOKIE_FILE"), "{why}");
    let told = told.recv_timeout(LIMIT).unwrap();
    assert!(told.contains("the caller refuses this theater's cookie"), "{told}");
    end([here, there]);
}

// GUARANTEE: One user, one cookie
#[test]
fn a_stranger_learns_neither_the_cookie_nor_the_name_of_the_cluster() {
    const CLUSTER: &str = "a-name-that-nobody-is-told";
    let theater = builder(SECRET).cluster(CLUSTER).start().unwrap();
    let strange = Credentials::new(Some(Cookie::new("a cookie of another user").unwrap()));
    let says = |heard: &[u8], secret: &str| heard.windows(secret.len()).any(|part| part == secret.as_bytes());
    // As the end that is called: it cannot prove the cookie, and hears no more.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let rejected_peer = listener.local_addr().unwrap();
    let heard = std::thread::spawn(move || {
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
    let heard = heard.join().unwrap();
    assert!(!says(&heard, CLUSTER) && !says(&heard, SECRET));
    // As a caller: what it hears cannot be read as more than a challenge.
    let line = GuardedWire::new(Tcp.connect(address(&theater), LIMIT).unwrap());
    let mut opening = Opening::call(line, "there".to_owned(), None, PATIENCE).unwrap();
    assert!(matches!(handshake::prove(&mut opening, &strange, CLUSTER), Err(TheaterError::NotMember { .. })));
    let mut stream = TcpStream::connect(address(&theater)).unwrap();
    let word = [vec![7; 64], vec![1]].concat();
    stream.write_all(&[&MAGIC[..], &(word.len() as u32).to_le_bytes(), &word].concat()).unwrap();
    // Whatever it answers to the challenge.
    let word = [vec![1, 0], vec![7; 96]].concat();
    stream.write_all(&[&MAGIC[..], &(word.len() as u32).to_le_bytes(), &word].concat()).unwrap();
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).unwrap();
    assert!(says(&heard, "its cookie is another") && !says(&heard, CLUSTER) && !says(&heard, SECRET));
    end([theater]);
}

// GUARANTEE: An incarnation is one process
#[test]
fn a_theater_that_shows_another_certificate_than_before_is_refused() {
    let [here, there] = theaters();
    let peer = here.connect(address(&there)).unwrap();
    let (reply, go_on) = there.theater_core.receive_hello(&hello(here.theater_core.incarnation), Some([1; 32]));
    assert!(matches!(&reply, Reply::Refused(why) if why.contains("another certificate")), "{reply:?}");
    assert!(go_on.is_none() && !peer.is_lost());
    end([here, there]);
}

// GUARANTEE: Floods do not exclude theaters
#[test]
fn links_that_nobody_uses_make_room_for_others() {
    let [here, there] = theaters();
    let used = here.connect(address(&there)).unwrap();
    let deadline = Instant::now() + LIMIT;
    let back = || there.theater_core.all_links().into_iter().find(|link| link.has_heard());
    while back().is_none() {
        here.find::<Owner>(&format!("playhouse://{}/nobody", address(&there))).wait().unwrap_err();
        assert!(Instant::now() < deadline);
    }
    for incarnation in 0..THEATERS_MAX as u64 + 100 {
        let (reply, _) = there.theater_core.receive_hello(&hello(incarnation), None);
        assert!(matches!(reply, Reply::Hello(_)), "{reply:?}");
        assert!(there.theater_core.all_links().len() <= THEATERS_MAX);
    }
    assert!(!used.is_lost() && back().is_some());
    let [other] = theaters();
    other.connect(address(&there)).unwrap();
    // Otherwise their end would be waited for.
    there.theater_core.all_links().iter().filter(|link| !link.has_heard()).for_each(|link| link.lose());
    end([here, there, other]);
}

// GUARANTEE: Floods do not exclude theaters
#[test]
fn a_greeting_with_more_kinds_than_allowed_is_refused() {
    // A list of 20,000 kinds without names: as bytes, it is small.
    let mut body = postcard::to_extend(&hello(1), Vec::new()).unwrap();
    body.pop();
    body.extend(postcard::to_extend(&20_000_u32, Vec::new()).unwrap());
    body.extend(std::iter::repeat_n(0, 3 * 20_000));
    let words = [&MAGIC[..], &(body.len() as u32).to_le_bytes(), &body].concat();
    let heard = handshake::read::<Hello>(&words[..]).unwrap();
    assert!(heard.is_err());
}
