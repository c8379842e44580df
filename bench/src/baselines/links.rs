//! Baselines of the remote workloads: two processes with one connection, and frames as large as Playhouse's.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use crate::harness::outcome::{Failure, Outcome, Size};
use crate::harness::remote_peer::{ECHO, PING_BYTES, RemotePeer, STREAM};
use crate::plans::links::Plan;

/// A message of `rthroughput`.
const ITEM_BYTES: u64 = 12;
/// The bytes of one system call.
const WRITE_BYTES: usize = 64 * 1024;

fn failure(error: std::io::Error) -> Failure {
    Failure::new(format!("the plain connection broke: {error}"))
}

/// The baseline of `rpingpong`: each side reads one frame and writes one.
pub(crate) fn pingpong(size: Size) -> Result<Outcome, Failure> {
    let plan = Plan::of(size);
    let remote_peer = RemotePeer::start(1)?;
    let mut stream = TcpStream::connect(remote_peer.socket).map_err(failure)?;
    stream.set_nodelay(true).map_err(failure)?;
    stream.write_all(&[ECHO]).map_err(failure)?;
    let mut frame = [7; PING_BYTES];
    let start = Instant::now();
    for _ in 0..plan.round_trips {
        stream.write_all(&frame).map_err(failure)?;
        stream.read_exact(&mut frame).map_err(failure)?;
    }
    Ok(Outcome::new(2 * plan.round_trips, start.elapsed()))
}

/// The baseline of `rthroughput`: the same bytes, the same window.
pub(crate) fn throughput(size: Size) -> Result<Outcome, Failure> {
    let plan = Plan::of(size);
    let remote_peer = RemotePeer::start(1)?;
    let mut stream = TcpStream::connect(remote_peer.socket).map_err(failure)?;
    stream.set_nodelay(true).map_err(failure)?;
    stream.write_all(&[STREAM]).map_err(failure)?;
    stream.write_all(&(plan.acknowledged * ITEM_BYTES).to_le_bytes()).map_err(failure)?;
    let bytes = vec![7; WRITE_BYTES];
    let write = |count: u64| -> Result<(), Failure> {
        let mut left = (count * ITEM_BYTES) as usize;
        while left > 0 {
            let part = left.min(WRITE_BYTES);
            (&stream).write_all(&bytes[..part]).map_err(failure)?;
            left -= part;
        }
        Ok(())
    };
    let start = Instant::now();
    let mut sent = plan.window.min(plan.messages);
    write(sent)?;
    let mut acknowledgements = [0; 64];
    let mut taken = 0;
    while taken < plan.messages {
        let count = (&stream).read(&mut acknowledgements).map_err(failure)? as u64;
        if count == 0 {
            return Err(Failure::new("the plain connection ended"));
        }
        taken += count * plan.acknowledged;
        let more = (count * plan.acknowledged).min(plan.messages - sent);
        write(more)?;
        sent += more;
    }
    Ok(Outcome::new(plan.messages, start.elapsed()))
}

/// The baseline of `migrate-1mib`: as many bytes, and one back.
pub(crate) fn large(migrations: u64, bytes: usize) -> Result<Outcome, Failure> {
    let remote_peer = RemotePeer::start(1)?;
    let mut stream = TcpStream::connect(remote_peer.socket).map_err(failure)?;
    stream.set_nodelay(true).map_err(failure)?;
    stream.write_all(&[STREAM]).map_err(failure)?;
    stream.write_all(&(bytes as u64).to_le_bytes()).map_err(failure)?;
    let bytes = vec![7; bytes];
    let start = Instant::now();
    for _ in 0..migrations {
        stream.write_all(&bytes).map_err(failure)?;
        stream.read_exact(&mut [0]).map_err(failure)?;
    }
    Ok(Outcome::new(migrations, start.elapsed()))
}
