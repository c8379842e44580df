//! Rules of transferred bytes.

use std::io::IoSlice;
use std::net::Shutdown;

use playhouse::transport::Wire;

use super::subject::{Subject, describe, ensure};
use super::{Outcome, STREAM_BYTES};

/// Returns the byte at `place` of the stream with this name.
fn byte(stream: u64, place: usize) -> u8 {
    let mixed = (place as u64 ^ stream << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}

/// Returns sizes of all magnitudes.
fn sizes(mut seed: u64) -> impl Iterator<Item = usize> {
    std::iter::repeat_with(move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let bits = (seed >> 59) % 17;
        ((seed >> 33) % (1 << bits)) as usize + 1
    })
}

/// Writes the first bytes of a stream, in slices of many sizes.
pub(super) fn write_stream(wire: &dyn Wire, stream: u64, length: usize) -> Outcome {
    let mut sizes = sizes(stream);
    let mut place = 0;
    while place < length {
        let lengths: Vec<usize> = sizes.by_ref().take(3).collect();
        let total = lengths.iter().sum::<usize>().min(length - place);
        let bytes: Vec<u8> = (place..place + total).map(|place| byte(stream, place)).collect();
        let mut left = &bytes[..];
        let mut slices = Vec::new();
        for length in lengths {
            let (slice, rest) = left.split_at(length.min(left.len()));
            slices.push(IoSlice::new(slice));
            left = rest;
        }
        let count = describe("writing", wire.write(&slices))?;
        ensure((1..=total).contains(&count), || format!("a write of {total} bytes has reported {count}"))?;
        place += count;
    }
    Ok(())
}

/// Reads the first bytes of a stream, in pieces of many sizes.
pub(super) fn read_stream(wire: &dyn Wire, stream: u64, length: usize) -> Outcome {
    let mut sizes = sizes(!stream);
    let mut place = 0;
    let mut room = vec![0; 1 << 17];
    while place < length {
        let size = sizes.next().unwrap_or(1).min(length - place);
        let count = describe("reading", wire.read(&mut room[..size]))?;
        ensure(count > 0, || format!("it ends after {place} of {length} bytes"))?;
        check_bytes(stream, place, &room[..count])?;
        place += count;
    }
    Ok(())
}

pub(super) fn check_bytes(stream: u64, place: usize, came: &[u8]) -> Outcome {
    match came.iter().enumerate().find(|(ahead, came)| **came != byte(stream, place + ahead)) {
        None => Ok(()),
        Some((ahead, _)) => Err(format!("a wrong byte comes at place {}", place + ahead)),
    }
}

pub(super) fn write_all(wire: &dyn Wire, mut bytes: &[u8]) -> Outcome {
    while !bytes.is_empty() {
        match describe("writing", wire.write(&[IoSlice::new(bytes)]))? {
            0 => return Err("it writes nothing".to_owned()),
            count => bytes = &bytes[count..],
        }
    }
    Ok(())
}

pub(super) fn read_exact(wire: &dyn Wire, mut room: &mut [u8]) -> Outcome {
    while !room.is_empty() {
        match describe("reading", wire.read(room))? {
            0 => return Err("it ends".to_owned()),
            count => room = &mut room[count..],
        }
    }
    Ok(())
}

/// Each end writes and reads at the same time.
pub(super) fn bytes(subject: &Subject) -> Outcome {
    let (one, other) = subject.pair()?;
    let (one, other) = (&*one, &*other);
    let ends = |part: Outcome| {
        if part.is_err() {
            // The other parts must not wait for bytes that never come.
            let _ = (one.shutdown(Shutdown::Both), other.shutdown(Shutdown::Both));
        }
        part
    };
    std::thread::scope(|scope| {
        // The errors of readers come first, because they are the cause of waiting writers.
        let parts = [
            scope.spawn(|| ends(read_stream(other, 0, STREAM_BYTES))),
            scope.spawn(|| ends(read_stream(one, 1, STREAM_BYTES))),
            scope.spawn(|| ends(write_stream(one, 0, STREAM_BYTES))),
            scope.spawn(|| ends(write_stream(other, 1, STREAM_BYTES))),
        ];
        parts.into_iter().try_for_each(|part| part.join().map_err(|_| "reading or writing panics")?)
    })
}

pub(super) fn apart(subject: &Subject) -> Outcome {
    let (mut listener, address) = subject.listen()?;
    let mut pairs = Vec::new();
    for _ in 0..16 {
        pairs.push(subject.meet(&mut listener, address)?);
    }
    let mut names = Vec::new();
    for (name, (calls, _)) in pairs.iter().enumerate() {
        write_all(&**calls, &[name as u8])?;
    }
    for (_, called) in &pairs {
        let mut name = [0];
        read_exact(&**called, &mut name)?;
        names.push(name[0]);
    }
    ensure(names == Vec::from_iter(0..16), || {
        format!("16 connections that were accepted in turn report the names {names:?}")
    })?;
    for turn in 0..3 {
        for (name, (calls, called)) in pairs.iter().enumerate() {
            let (to, from) = if turn % 2 == 0 { (called, calls) } else { (calls, called) };
            write_all(&**to, &[name as u8; 1000])?;
            let mut came = [0; 1000];
            read_exact(&**from, &mut came)?;
            ensure(came == [name as u8; 1000], || {
                "bytes that were written to one connection come to another".to_owned()
            })?;
        }
    }
    Ok(())
}
