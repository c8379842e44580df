//! Tests of both halves.

mod hostile;
mod random;
mod receiving;
mod sending;
mod simulation;

use std::convert::Infallible;

use super::header::Header;
use super::{HEADER_BYTES, Inbound, Lane, Outbound, ProtocolError};

/// The limit of a frame in the tests of single rules: several packets.
const FRAME_BYTES_MAX: u32 = 1 << 20;

fn push(outbound: &mut Outbound, lane: Lane, frame: &[u8]) {
    let result = outbound.frame(lane, |buffer| {
        buffer.extend_from_slice(frame);
        Ok::<_, Infallible>(())
    });
    result.expect("within the limit");
    outbound.check();
}

/// Writes up to `room` of the next bytes.
fn write(outbound: &mut Outbound, room: usize, acknowledge: u64, acknowledge_due: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let wrote = outbound.output(acknowledge, acknowledge_due, |slices| {
        bytes = slices.concat_up_to(room);
        Ok::<_, Infallible>(bytes.len())
    });
    assert_eq!(wrote, Ok(bytes.len()));
    outbound.check();
    bytes
}

/// Writes all bytes.
fn write_all(outbound: &mut Outbound) -> Vec<u8> {
    let mut bytes = Vec::new();
    while outbound.has_output() {
        bytes.extend(write(outbound, usize::MAX, 0, false));
    }
    bytes
}

trait ConcatUpTo {
    fn concat_up_to(&self, room: usize) -> Vec<u8>;
}

impl ConcatUpTo for [std::io::IoSlice<'_>] {
    fn concat_up_to(&self, room: usize) -> Vec<u8> {
        self.iter().flat_map(|slice| slice.iter().copied()).take(room).collect()
    }
}

fn packet(lane: Lane, number: u64, acknowledged: u64, body: &[u8]) -> Vec<u8> {
    let header = Header { lane, body_bytes: body.len() as u32, number, acknowledged };
    [&header.to_bytes(), body].concat()
}

/// Returns a complete frame as a stretch of a lane's stream.
fn framed(frame: &[u8]) -> Vec<u8> {
    [&(frame.len() as u32).to_le_bytes(), frame].concat()
}

/// Returns the headers of complete packets, one after the other.
fn headers(mut bytes: &[u8]) -> Vec<Header> {
    let mut headers = Vec::new();
    while let Some((header, behind)) = bytes.split_first_chunk::<HEADER_BYTES>() {
        let header = Header::read(header).expect("a right header");
        bytes = &behind[header.body_bytes as usize..];
        headers.push(header);
    }
    assert!(bytes.is_empty());
    headers
}

type Frames = Vec<(Lane, Vec<u8>)>;

fn read(inbound: &mut Inbound, bytes: &[u8]) -> Result<(usize, Frames), ProtocolError> {
    let mut frames = Vec::new();
    let taken = inbound.input(bytes, |lane, frame| frames.push((lane, frame.to_vec())))?;
    Ok((taken, frames))
}
