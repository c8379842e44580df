//! Rules of readiness events.

use std::io::ErrorKind;
use std::net::Shutdown;

use playhouse::transport::Wire;

use super::Outcome;
use super::bytes::{check_bytes, write_all, write_stream};
use super::subject::{Subject, ensure};
use super::waiting::{fill, is_late, read_up};
use super::watch::Watch;

/// Reads all available bytes, at least `length`.
pub(super) fn drain(wire: &dyn Wire, watch: &mut Watch, length: usize) -> Outcome {
    let mut room = [0; 1 << 16];
    let mut count = 0;
    loop {
        match wire.read(&mut room) {
            Ok(0) => return Err("it ends".to_owned()),
            Ok(more) => count += more,
            Err(error) if error.kind() == ErrorKind::WouldBlock && count >= length => return Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                watch.until("more bytes", mio::event::Event::is_readable)?;
            }
            Err(error) => return Err(format!("reading: {error}")),
        }
    }
}

pub(super) fn readable(subject: &Subject) -> Outcome {
    let (one, other) = subject.pair()?;
    let mut watch = Watch::on(&*one)?;
    for _ in 0..100 {
        write_all(&*other, b"some words")?;
        watch.until("bytes to read", mio::event::Event::is_readable)?;
        drain(&*one, &mut watch, 10)?;
    }
    Ok(())
}

pub(super) fn short_reads(subject: &Subject) -> Outcome {
    let (one, other) = subject.pair()?;
    let mut watch = Watch::on(&*one)?;
    let writer = std::thread::spawn(move || write_stream(&*other, 8, 1 << 20).map(|()| other));
    let mut room = [0; 1 << 16];
    let mut place = 0;
    while place < 1 << 20 {
        watch.until("more bytes after a short read", |event| event.is_readable())?;
        // A theater that got fewer bytes than it has room for waits for the next event.
        loop {
            match one.read(&mut room) {
                Ok(0) => return Err(format!("it ends after {place} bytes")),
                Ok(count) => {
                    check_bytes(8, place, &room[..count])?;
                    place += count;
                    if count < room.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(format!("reading: {error}")),
            }
        }
    }
    writer.join().map_err(|_| "writing panics")?.map(drop)
}

pub(super) fn writable(subject: &Subject) -> Outcome {
    let (one, other) = subject.pair()?;
    let mut watch = Watch::on(&*one)?;
    watch.until("room", mio::event::Event::is_writable)?;
    for _ in 0..3 {
        let written = fill(&*one)?;
        read_up(&*other, written)?;
        watch.until("room again", mio::event::Event::is_writable)?;
    }
    Ok(())
}

pub(super) fn end_is_told(subject: &Subject) -> Outcome {
    for close in [(|wire: Box<dyn Wire>| drop(wire)) as fn(Box<dyn Wire>), |wire| drop(wire.shutdown(Shutdown::Both))] {
        let (one, other) = subject.pair()?;
        let mut watch = Watch::on(&*one)?;
        watch.until("room", mio::event::Event::is_writable)?;
        close(other);
        watch.until("the other end's close", |event| event.is_readable() || event.is_read_closed())?;
        let read = one.read(&mut [0]);
        ensure(read.as_ref().map_or_else(|error| !is_late(error), |count| *count == 0), || {
            format!("the other end is closed, but reading gives {read:?}")
        })?;
    }
    Ok(())
}
