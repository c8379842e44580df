//! Connections that break.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::LIMIT;

/// Asks again until an answer comes.
pub fn eventually<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "it never happened");
        std::thread::yield_now();
    }
}

/// The fault of the connections.
#[derive(Clone)]
pub enum Fault {
    /// Each connection is cut after this number of bytes.
    Cut(Range<u64>),
    /// The first connection passes no bytes on after this number, and stays open.
    FirstFallsSilent(u64),
    /// Bytes are passed on in pieces, and now and then late.
    Late,
    /// Called before each piece: false cuts the connection.
    Asked(Arc<dyn Fn() -> bool + Send + Sync>),
}

/// A stream of numbers, of which the high bits are good.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// A proxy between two theaters that makes their connections fail.
pub struct Between {
    address: SocketAddr,
    faults: Arc<AtomicUsize>,
    closing: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

/// One connection.
#[derive(Clone)]
struct Passage {
    fault: Fault,
    faults: Arc<AtomicUsize>,
    /// Number of bytes until it fails, of both directions together.
    left: Arc<AtomicU64>,
}

impl Between {
    pub fn new(to: SocketAddr, seed: u64, fault: Fault) -> Between {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (faults, closing) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (counted, closed) = (Arc::clone(&faults), Arc::clone(&closing));
        let streams: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let opened = Arc::clone(&streams);
        std::thread::spawn(move || {
            let mut random = Random(seed);
            let mut first = true;
            for stream in listener.incoming() {
                if closed.load(Ordering::Relaxed) {
                    return;
                }
                let (Ok(from), Ok(to)) = (stream, TcpStream::connect(to)) else { continue };
                from.set_nodelay(true).unwrap();
                to.set_nodelay(true).unwrap();
                opened.lock().unwrap().extend([from.try_clone().unwrap(), to.try_clone().unwrap()]);
                if closed.load(Ordering::Relaxed) {
                    return;
                }
                let incarnation = match &fault {
                    // The greeting passes, because the connection must be used before it fails.
                    Fault::Cut(bytes) => 20_000 + bytes.start + random.below(bytes.end - bytes.start),
                    Fault::FirstFallsSilent(bytes) if first => *bytes,
                    Fault::FirstFallsSilent(_) | Fault::Late | Fault::Asked(_) => u64::MAX,
                };
                first = false;
                let left = Arc::new(AtomicU64::new(incarnation));
                let passage = Passage { fault: fault.clone(), faults: Arc::clone(&counted), left };
                for (from, to) in [(from.try_clone(), to.try_clone()), (Ok(to), Ok(from))] {
                    let (from, to, passage) = (from.unwrap(), to.unwrap(), passage.clone());
                    let random = Random(random.below(u64::MAX));
                    std::thread::spawn(move || passage.pass(from, to, random));
                }
            }
        });
        Between { address, faults, closing, streams }
    }

    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Returns the number of faults so far.
    pub fn faults(&self) -> usize {
        self.faults.load(Ordering::Relaxed)
    }
}

impl Between {
    /// Passes nothing on from now on, and accepts no caller.
    pub fn sever(self) {
        self.closing.store(true, Ordering::Relaxed);
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Returns the count of faults, which outlives this proxy.
    pub fn counter(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.faults)
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

impl Passage {
    /// Passes bytes on until the connection fails or an end closes it.
    fn pass(&self, mut from: TcpStream, mut to: TcpStream, mut random: Random) {
        let mut buffer = [0; 16 * 1024];
        let late = matches!(self.fault, Fault::Late);
        loop {
            let size = if late { 1 + random.below(16 * 1024) as usize } else { buffer.len() };
            let Ok(count @ 1..) = from.read(&mut buffer[..size]) else { break };
            let less = |left: u64| Some(left.saturating_sub(count as u64));
            let before = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).unwrap_or(0);
            // The cut is in the middle of a packet.
            let passed = count.min(before as usize);
            let refused = matches!(&self.fault, Fault::Asked(passes) if !passes());
            let passed = if refused { 0 } else { passed };
            let fails = passed < count;
            let waits = late && random.below(8) == 0;
            if fails || waits {
                self.faults.fetch_add(1, Ordering::Relaxed);
            }
            if waits {
                std::thread::sleep(Duration::from_micros(random.below(5_000)));
            }
            if to.write_all(&buffer[..passed]).is_err()
                || fails && matches!(self.fault, Fault::Cut(_) | Fault::Asked(_))
            {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}
