//! Plays a world for a driver over TCP.

use std::fmt;
use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::played::Played;
use super::script::{Bad, Block, FORMAT, Header, Script};
use crate::chatapp::report::Report;
use crate::chatapp::run::{Options, RunError};
use crate::chatapp::scenario::Scenario;

/// A driver that neither sends nor reads for this time loses its connection, and others may go on.
pub const SILENCE_MAX: Duration = Duration::from_secs(300);

/// The time during which the input of a refused driver is read, because it must read the reason of the refusal.
const DRAIN_MAX: Duration = Duration::from_secs(5);

/// The reason why a server did not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServerError {
    /// It cannot listen at the address.
    Listen(io::Error),
    /// The world cannot be opened.
    World(RunError),
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerError::Listen(error) => write!(f, "cannot listen: {error}"),
            ServerError::World(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for ServerError {}

/// An event at a server.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// A driver has connected, and goes on with this step: 0 for the set-up, or a turn.
    Came(SocketAddr, u32),
    /// A driver has gone before the end. The world waits, with this next.
    Gone(SocketAddr, u32),
    /// A driver was refused, or sent an error: the description. Nothing of its last step was played.
    Refused(SocketAddr, String),
    /// A world has ended.
    Played(Box<Report>),
    /// A world has stopped, and cannot go on: an actor has failed. The next driver finds a new one.
    Lost(String),
}

/// A world that waits for drivers at an address. It ends when it is dropped, and its connections with it.
///
/// A world is opened at once, and another one when a driver comes and the one before has ended. Nothing of this runs on a worker of
/// the world: connections have threads of their own.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    place: Arc<Place>,
    accepting: Option<JoinHandle<()>>,
}

type Observer = Box<dyn Fn(Event) + Send + Sync>;

struct Place {
    scenario: Scenario,
    header: Header,
    options: Options,
    silence_max: Duration,
    observer: Observer,
    /// Held by the connection of the driver.
    world: Mutex<Option<Played>>,
    /// The address of the driver.
    driver: Mutex<Option<TcpStream>>,
    ends: AtomicBool,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("scenario", &self.header.title()).finish_non_exhaustive()
    }
}

/// The end of a driver's connection.
enum Visit {
    /// The world was played to its end.
    Closed(Box<Report>),
    /// The driver has disconnected, or cannot be written to.
    Gone,
}

impl Server {
    /// Opens a world and listens; port 0 is any free port. `observer` is called by the threads of the connections.
    ///
    /// # Errors
    /// The server cannot listen at the address, or the world cannot be opened.
    pub fn start(
        address: impl ToSocketAddrs,
        scenario: &Scenario,
        options: &Options,
        observer: impl Fn(Event) + Send + Sync + 'static,
    ) -> Result<Server, ServerError> {
        Server::start_patient(address, scenario, options, SILENCE_MAX, Box::new(observer))
    }

    fn start_patient(
        address: impl ToSocketAddrs,
        scenario: &Scenario,
        options: &Options,
        silence_max: Duration,
        observer: Observer,
    ) -> Result<Server, ServerError> {
        let listener = TcpListener::bind(address).map_err(ServerError::Listen)?;
        let address = listener.local_addr().map_err(ServerError::Listen)?;
        let world = Played::open(scenario, options).map_err(ServerError::World)?;
        let place = Arc::new(Place {
            scenario: scenario.clone(),
            header: Header::of(scenario),
            options: *options,
            silence_max,
            observer,
            world: Mutex::new(Some(world)),
            driver: Mutex::new(None),
            ends: AtomicBool::new(false),
        });
        let accepting = std::thread::spawn({
            let place = Arc::clone(&place);
            move || accept(&listener, &place)
        });
        Ok(Server { address, place, accepting: Some(accepting) })
    }

    /// Returns the address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Relaxed: the threads that are woken below read it behind a lock, or behind the connection.
        self.place.ends.store(true, Relaxed);
        if let Some(driver) = &*lock(&self.place.driver) {
            let _ = driver.shutdown(Shutdown::Both);
        }
        // Wakes the accepting thread. If no call is possible, no thread accepts either.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(listener: &TcpListener, place: &Arc<Place>) {
    let mut visits: Vec<JoinHandle<()>> = Vec::new();
    for connection in listener.incoming() {
        if place.ends.load(Relaxed) {
            break;
        }
        visits.retain(|visit| !visit.is_finished());
        match connection {
            Ok(stream) => {
                let place = Arc::clone(place);
                visits.push(std::thread::spawn(move || place.receive(stream)));
            }
            // The connection has broken already, or there are too many open files: the next one may succeed.
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
    visits.into_iter().for_each(|visit| drop(visit.join()));
}

impl Place {
    /// Sees to a driver until it goes.
    fn receive(&self, stream: TcpStream) {
        let Ok(address) = stream.peer_addr() else { return };
        let _ = stream.set_nodelay(true);
        let _ = stream.set_read_timeout(Some(self.silence_max));
        let _ = stream.set_write_timeout(Some(self.silence_max));
        let mut world = match self.world.try_lock() {
            Ok(world) => world,
            Err(TryLockError::Poisoned(world)) => {
                // The driving thread panicked: the state of the world is unknown.
                let mut world = world.into_inner();
                *world = None;
                world
            }
            Err(TryLockError::WouldBlock) => {
                let what = "another driver is connected; try again after its end";
                return self.refuse(&stream, address, Bad::new(what));
            }
        };
        *lock(&self.driver) = stream.try_clone().ok();
        let visit = if self.ends.load(Relaxed) { Ok(Visit::Gone) } else { self.visit(&stream, address, &mut world) };
        *lock(&self.driver) = None;
        let next = world.as_ref().map_or(0, |world| world.ledger.next());
        // Before it is told how things have ended: it may call again at once.
        drop(world);
        match visit {
            Ok(Visit::Closed(report)) => self.close(&stream, report),
            Ok(Visit::Gone) => (self.observer)(Event::Gone(address, next)),
            Err(bad) if bad.is_broken => (self.observer)(Event::Gone(address, next)),
            Err(bad) => self.refuse(&stream, address, bad),
        }
    }

    /// Sends the error, and reads the remaining input: closing a connection with unread input would discard the answer.
    fn refuse(&self, mut stream: &TcpStream, address: SocketAddr, bad: Bad) {
        let _ = writeln!(stream, "error {} {}", bad.line, bad.what.replace('\n', " "));
        (self.observer)(Event::Refused(address, format!("line {}: {}", bad.line, bad.what)));
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.set_read_timeout(Some(DRAIN_MAX));
        let mut rest = [0; 1 << 16];
        let begun = std::time::Instant::now();
        while begun.elapsed() < DRAIN_MAX && matches!(stream.read(&mut rest), Ok(1..)) {}
    }

    fn visit(&self, mut stream: &TcpStream, address: SocketAddr, world: &mut Option<Played>) -> Result<Visit, Bad> {
        if world.is_none() {
            let opened = Played::open(&self.scenario, &self.options);
            *world = Some(opened.map_err(|error| Bad::new(error.to_string()))?);
        }
        let next = world.as_ref().map_or(0, |world| world.ledger.next());
        (self.observer)(Event::Came(address, next));
        if writeln!(stream, "{FORMAT} {}", self.header.with("next", next)).is_err() {
            return Ok(Visit::Gone);
        }
        let mut script = Script::of(BufReader::with_capacity(1 << 16, stream));
        let Some(header) = script.header()? else { return Ok(Visit::Gone) };
        if (header.fingerprint, header.clients, header.turns)
            != (self.header.fingerprint, self.header.clients, self.header.turns)
        {
            return Err(script.lines.bad(format!(
                "is for {}, but the server plays {}",
                header.title(),
                self.header.title()
            )));
        }
        while let Some(played) = world {
            let next = played.ledger.next();
            let Some(block) = script.block(&played.ledger)? else { return Ok(Visit::Gone) };
            let ended = match block {
                Block::SetUp(engagements) => played.meet(engagements),
                Block::Turn(acts) => played.play(acts),
                Block::Close => break,
            };
            match ended {
                Ok(end) => {
                    // In one piece, because each write wakes the waiting thread.
                    let done = format!("done {next} {} {}\n", end.took.as_nanos(), end.messages);
                    if stream.write_all(done.as_bytes()).is_err() {
                        return Ok(Visit::Gone);
                    }
                }
                Err(error) => {
                    // The counts of its actors may say more.
                    let report = world.take().map(Played::collect_partial);
                    let problems = match report {
                        Some(Ok(report)) => report.check.problems.join("; "),
                        _ => error.to_string(),
                    };
                    return Err(self.lose(problems));
                }
            }
        }
        match world.take().map(Played::close) {
            Some(Ok(report)) => Ok(Visit::Closed(Box::new(report))),
            Some(Err(error)) => Err(self.lose(error.to_string())),
            None => Ok(Visit::Gone),
        }
    }

    fn close(&self, mut stream: &TcpStream, report: Box<Report>) {
        let json = serde_json::to_string(&report).expect("INVARIANT: a report has a JSON form");
        // First, because a program that ends this server after the report must find the report announced.
        (self.observer)(Event::Played(report));
        let _ = writeln!(stream, "report {json}").and_then(|()| stream.shutdown(Shutdown::Write));
    }

    fn lose(&self, why: String) -> Bad {
        // The error is written first, because a program that ends this server must not cut the driver off before it has
        // read the reason.
        *lock(&self.driver) = None;
        (self.observer)(Event::Lost(why.clone()));
        Bad::new(format!("the world has stopped: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufRead;
    use std::sync::mpsc;

    use super::*;
    use crate::chatapp::BUILT_IN;

    /// Longer than anything in this test takes on a busy machine.
    const LIMIT: Duration = Duration::from_secs(120);

    /// Starts a server of a world of one client, and returns the reaction to the end of a driver.
    fn impatient() -> (Server, mpsc::Receiver<u32>) {
        let scenario = Scenario { clients: 1, directories: 1, turns: 1_000_000, ..BUILT_IN[0].scenario().unwrap() };
        let (say, gone) = mpsc::channel();
        let observe = move |event| {
            if let Event::Gone(_, next) = event {
                let _ = say.send(next);
            }
        };
        let options = Options { workers: Some(1), ..Options::default() };
        let observer = Box::new(observe);
        let server = Server::start_patient("127.0.0.1:0", &scenario, &options, Duration::from_secs(2), observer);
        (server.unwrap(), gone)
    }

    fn greeted(server: &Server) -> (TcpStream, String) {
        let stream = TcpStream::connect(server.address()).unwrap();
        let mut greeting = String::new();
        BufReader::with_capacity(1, &stream).read_line(&mut greeting).unwrap();
        (stream, greeting)
    }

    #[test]
    fn a_driver_that_says_nothing_makes_room() {
        let (server, _gone) = impatient();
        let (silent, greeting) = greeted(&server);
        assert!(greeting.contains(" next 0 "), "{greeting}");
        let mut answer = String::new();
        silent.set_read_timeout(Some(LIMIT)).unwrap();
        BufReader::new(&silent).read_line(&mut answer).unwrap();
        assert_eq!(answer, "error 1 nothing came for too long\n");
        assert!(greeted(&server).1.contains(" next 0 "));
    }

    #[test]
    fn a_driver_that_reads_nothing_makes_room() {
        let (server, gone) = impatient();
        let (mut stream, greeting) = greeted(&server);
        let header = greeting.replace(&format!("{FORMAT} "), "scenario ").replace(" next 0", "");
        write!(stream, "{FORMAT}\n{header}client 0 idle 0\nready\n").unwrap();
        let talks = std::thread::spawn(move || {
            // Until the server has had enough of it.
            (1..=1_000_000).try_for_each(|turn| write!(stream, "turn {turn}\nend {turn}\n"))
        });
        let next = gone.recv_timeout(LIMIT).unwrap();
        assert!(next < 1_000_000, "{next}");
        assert!(talks.join().unwrap().is_err());
        let (_stream, greeting) = greeted(&server);
        assert!(greeting.contains(&format!(" next {next} ")), "{greeting}");
    }
}
