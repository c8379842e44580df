//! Rules of blocking and non-blocking calls.

use std::io::{ErrorKind, IoSlice};
use std::sync::{Arc, mpsc};
use std::time::Instant;

use playhouse::transport::Wire;

use super::bytes::{read_exact, write_all};
use super::subject::{Subject, describe, ensure};
use super::{Outcome, SHORT_WAIT, WAIT_MAX, WIRE_BYTES_MAX};

/// Writes until there is no room, and returns the number of bytes.
pub(super) fn fill(wire: &dyn Wire) -> Result<usize, String> {
    let bytes = [5; 1 << 16];
    let mut written = 0;
    while written < WIRE_BYTES_MAX {
        match wire.write(&[IoSlice::new(&bytes)]) {
            Ok(0) => return Err("it writes nothing".to_owned()),
            Ok(count) => written += count,
            Err(error) if is_late(&error) => return Ok(written),
            Err(error) => return Err(format!("writing without room: {error} ({:?})", error.kind())),
        }
    }
    Err(format!("a write takes {written} bytes that nobody reads"))
}

pub(super) fn is_late(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Returns the result of `act`, or an error if it takes too long.
pub(super) fn within<R: Send + 'static>(
    what: &str,
    wire: &Arc<dyn Wire>,
    act: fn(&dyn Wire) -> R,
) -> Result<R, String> {
    let (tell, told) = mpsc::channel();
    let acts = Arc::clone(wire);
    // A call that waits forever is left behind on its thread.
    std::thread::spawn(move || drop(tell.send(act(&*acts))));
    told.recv_timeout(WAIT_MAX).map_err(|_| format!("{what} has not returned after {WAIT_MAX:?}"))
}

pub(super) fn read_up(wire: &dyn Wire, length: usize) -> Outcome {
    describe("setting it to block", wire.set_nonblocking(false))?;
    describe("setting a limit", wire.set_limit(WAIT_MAX))?;
    read_exact(wire, &mut vec![0; length])
}

pub(super) fn limits(subject: &Subject) -> Outcome {
    let (one, other) = subject.pair()?;
    let one: Arc<dyn Wire> = Arc::from(one);
    describe("setting a limit", one.set_limit(SHORT_WAIT))?;
    // The read is repeated, because other threads may have delayed a read that does not wait.
    for _ in 0..5 {
        let begun = Instant::now();
        match within("a read with a limit of 50 ms", &one, |wire| wire.read(&mut [0]))? {
            Err(error) if is_late(&error) => {}
            Err(error) => return Err(format!("a read that has to wait fails with {error} ({:?})", error.kind())),
            Ok(count) => return Err(format!("nothing was written, and {count} bytes are read")),
        }
        let time = begun.elapsed();
        ensure(time >= SHORT_WAIT / 2, || {
            format!("a read with a limit of {SHORT_WAIT:?} has waited for {time:?} only")
        })?;
    }
    let written = within("a write with a limit of 50 ms", &one, fill)??;
    read_up(&*other, written)?;
    write_all(&*one, &[1])?;
    read_exact(&*other, &mut [0])
}

pub(super) fn would_block(subject: &Subject) -> Outcome {
    let (one, other) = subject.pair()?;
    describe("setting it not to block", one.set_nonblocking(true))?;
    match one.read(&mut [0]) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
        result => return Err(format!("reading without data gives {result:?}, not WouldBlock")),
    }
    let mut written = 0;
    while written < WIRE_BYTES_MAX {
        written += fill(&*one)?;
        match one.write(&[IoSlice::new(&[0])]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return read_up(&*other, written),
            // The operating system has found some room since.
            Ok(count @ 1..) => written += count,
            result => return Err(format!("writing without room gives {result:?}, not WouldBlock")),
        }
    }
    Err(format!("a write takes {written} bytes that nobody reads"))
}
