//! Connections that break.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use crate::support::LIMIT;

/// Asks until there is an answer.
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

/// Stands between two theaters, and cuts each connection after some bytes.
pub struct Between {
    address: SocketAddr,
    cuts: Arc<AtomicUsize>,
    closing: Arc<AtomicBool>,
}

impl Between {
    pub fn new(to: SocketAddr, seed: u64, bytes: Range<u64>) -> Between {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (cuts, closing) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (counted, closed) = (Arc::clone(&cuts), Arc::clone(&closing));
        std::thread::spawn(move || {
            let mut random = seed;
            for stream in listener.incoming() {
                if closed.load(Ordering::Relaxed) {
                    return;
                }
                let (Ok(from), Ok(to)) = (stream, TcpStream::connect(to)) else { continue };
                from.set_nodelay(true).unwrap();
                to.set_nodelay(true).unwrap();
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let life = bytes.start + (random >> 33) % (bytes.end - bytes.start);
                // The greeting passes, so that something comes of it.
                let left = Arc::new(AtomicU64::new(20_000 + life));
                for (from, to) in [(from.try_clone(), to.try_clone()), (Ok(to), Ok(from))] {
                    let (from, to, left) = (from.unwrap(), to.unwrap(), Arc::clone(&left));
                    let cuts = Arc::clone(&counted);
                    std::thread::spawn(move || pass(from, to, &left, &cuts));
                }
            }
        });
        Between { address, cuts, closing }
    }

    pub fn address(&self) -> String {
        self.address.to_string()
    }

    pub fn cuts(&self) -> usize {
        self.cuts.load(Ordering::Relaxed)
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

/// Passes bytes on until `left` are used up.
fn pass(mut from: TcpStream, mut to: TcpStream, left: &AtomicU64, cuts: &AtomicUsize) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let before =
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(count as u64)));
        let before = before.unwrap_or(0);
        // In the middle of a packet.
        let passed = count.min(before as usize);
        if to.write_all(&buffer[..passed]).is_err() || passed < count {
            if passed < count {
                cuts.fetch_add(1, Ordering::Relaxed);
            }
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
