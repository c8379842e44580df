//! The first words on a connection. Blocking, with time limits, on a thread of its own.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::TheaterError;
use crate::frame::{Hello, Reply};

/// What everything begins with: a name, and the version of the protocol.
const MAGIC: [u8; 10] = *b"playhouse\x01";
/// A greeting has at most so many bytes.
const GREETING_BYTES_MAX: u32 = 4 * 1024 * 1024;
/// So long it may take the other end to answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

fn io_error(stream: &TcpStream) -> impl Fn(io::Error) -> TheaterError {
    let address = stream.peer_addr().map_or_else(|_| "?".to_owned(), |address| address.to_string());
    move |error| TheaterError::Io { address: address.clone(), error }
}

fn wrong(stream: &TcpStream, found: impl Into<String>) -> TheaterError {
    let address = stream.peer_addr().map_or_else(|_| "?".to_owned(), |address| address.to_string());
    TheaterError::Protocol { address, found: found.into() }
}

/// Readies a new connection.
pub(crate) fn prepare(stream: &TcpStream) -> Result<(), TheaterError> {
    let prepare = || {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))
    };
    prepare().map_err(io_error(stream))
}

fn say(mut stream: &TcpStream, words: &impl Serialize) -> Result<(), TheaterError> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend([0; 4]);
    let bytes = postcard::to_extend(words, bytes).map_err(|error| wrong(stream, error.to_string()))?;
    let mut bytes = bytes;
    let length = (bytes.len() - MAGIC.len() - 4) as u32;
    bytes[MAGIC.len()..][..4].copy_from_slice(&length.to_le_bytes());
    stream.write_all(&bytes).map_err(io_error(stream))
}

fn hear<T: DeserializeOwned>(stream: &TcpStream) -> Result<T, TheaterError> {
    read(stream).map_err(io_error(stream))?.map_err(|found| wrong(stream, found))
}

/// Reads what [`say`] wrote, or says what is wrong with it.
pub(crate) fn read<T: DeserializeOwned>(mut from: impl Read) -> io::Result<Result<T, String>> {
    let mut magic = [0; MAGIC.len()];
    from.read_exact(&mut magic)?;
    if magic != MAGIC {
        return Ok(Err(match magic.split_last() {
            Some((version, name)) if *name == MAGIC[..MAGIC.len() - 1] => {
                format!("version {version} of the protocol, and this is version {}", MAGIC[MAGIC.len() - 1])
            }
            _ => format!("it begins with {:?}", String::from_utf8_lossy(&magic)),
        }));
    }
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > GREETING_BYTES_MAX {
        return Ok(Err(format!("a greeting of {length} bytes, and {GREETING_BYTES_MAX} are allowed")));
    }
    // As it comes: the length alone makes nobody allocate.
    let mut bytes = Vec::new();
    from.take(u64::from(length)).read_to_end(&mut bytes)?;
    Ok(postcard::from_bytes(&bytes).map_err(|error| format!("a greeting that cannot be read: {error}")))
}

/// The side that called: says who it is and hears the answer.
pub(crate) fn call(stream: &TcpStream, hello: &Hello) -> Result<Reply, TheaterError> {
    say(stream, hello)?;
    hear(stream)
}

/// The side that was called: hears who it is ...
pub(crate) fn hear_hello(stream: &TcpStream) -> Result<Hello, TheaterError> {
    hear(stream)
}

/// ... and answers.
pub(crate) fn reply(stream: &TcpStream, reply: &Reply) -> Result<(), TheaterError> {
    say(stream, reply)
}
