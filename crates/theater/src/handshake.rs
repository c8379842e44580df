//! The first words on a connection. Blocking, with time limits, on a thread of its own.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::TheaterError;
use crate::frame::{Hello, Reply};
use crate::tls::{self, Cipher, Tls};

/// What everything begins with: a name, and the version of the protocol.
const MAGIC: [u8; 10] = *b"playhouse\x01";
/// What TLS begins with: a handshake's record, of a version 3 of SSL.
const TLS_MAGIC: [u8; 2] = [22, 3];
/// A greeting has at most so many bytes.
const GREETING_BYTES_MAX: u32 = 4 * 1024 * 1024;
/// So long it may take the other end to answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// A connection on which the first words are said.
pub(crate) struct Opening {
    stream: TcpStream,
    cipher: Option<Cipher>,
    address: String,
}

impl Opening {
    fn new(stream: TcpStream, address: String) -> Result<Opening, TheaterError> {
        let opening = Opening { stream, cipher: None, address };
        let prepare = |stream: &TcpStream| {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))
        };
        prepare(&opening.stream).map_err(|error| opening.error(error))?;
        Ok(opening)
    }

    /// Calls.
    pub(crate) fn call(address: SocketAddr, tls: Option<&Tls>) -> Result<Opening, TheaterError> {
        let name = address.to_string();
        let stream = TcpStream::connect_timeout(&address, PATIENCE)
            .map_err(|error| TheaterError::Io { address: name.clone(), error })?;
        let mut opening = Opening::new(stream, name)?;
        if let Some(tls) = tls {
            opening.encrypted(|stream| tls.call(stream))?;
        }
        Ok(opening)
    }

    /// Answers who has called.
    pub(crate) fn answer(stream: TcpStream, tls: Option<&Tls>) -> Result<Opening, TheaterError> {
        let address = stream.peer_addr().map_or_else(|_| "?".to_owned(), |address| address.to_string());
        let mut opening = Opening::new(stream, address)?;
        let Some(tls) = tls else { return Ok(opening) };
        let mut first = [0];
        let peeked = opening.stream.peek(&mut first).map_err(|error| opening.error(error))?;
        if peeked > 0 && first[0] != TLS_MAGIC[0] {
            let error = opening.no_tls("this theater speaks TLS only, and the caller did not");
            opening.refuse(&error);
            return Err(error);
        }
        opening.encrypted(|stream| tls.answer(stream))?;
        if let Some(Err(error)) = opening.cipher.as_ref().map(Cipher::check_member) {
            let error = opening.error(error);
            opening.refuse(&error);
            return Err(error);
        }
        Ok(opening)
    }

    fn encrypted(&mut self, start: impl FnOnce(&mut TcpStream) -> io::Result<Cipher>) -> Result<(), TheaterError> {
        match start(&mut self.stream) {
            Ok(cipher) => self.cipher = Some(cipher),
            Err(error) => {
                let error = self.error(error);
                if matches!(error, TheaterError::Tls { .. }) {
                    // It was told by TLS.
                    self.let_go();
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Tells the other end why it is not listened to.
    pub(crate) fn refuse(&mut self, error: &TheaterError) {
        let why = match error {
            // A connection that breaks or is slow may be better next time: nothing is refused then.
            TheaterError::Io { .. } => return,
            TheaterError::Tls { why, .. } => why.clone(),
            error => error.to_string(),
        };
        let _ = say(self, &Reply::Refused(why));
        self.let_go();
    }

    /// Waits until the other end has heard what was said last. If the connection were closed while something on it is not
    /// read, the system would throw that away.
    fn let_go(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        let _ = self.stream.shutdown(Shutdown::Write);
        while Instant::now() < deadline && matches!(self.stream.read(&mut [0; 4096]), Ok(1..)) {}
    }

    /// The connection, and what encrypts it.
    pub(crate) fn into_parts(self) -> (TcpStream, Option<Cipher>) {
        (self.stream, self.cipher)
    }

    fn error(&self, error: io::Error) -> TheaterError {
        let address = self.address.clone();
        match tls::why(&error) {
            Some(why) => TheaterError::Tls { address, why },
            None => TheaterError::Io { address, error },
        }
    }

    fn wrong(&self, found: impl Into<String>) -> TheaterError {
        TheaterError::Protocol { address: self.address.clone(), found: found.into() }
    }

    fn no_tls(&self, found: &str) -> TheaterError {
        let why = format!("{found}: give both certificates of one CA, with `tls(..)`");
        TheaterError::Tls { address: self.address.clone(), why }
    }
}

impl Read for Opening {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match &self.cipher {
            None => self.stream.read(room),
            Some(cipher) => cipher.read(&self.stream, room),
        }
    }
}

impl Write for Opening {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(cipher) = &self.cipher else { return self.stream.write(bytes) };
        let taken = cipher.take(&[IoSlice::new(bytes)])?;
        cipher.write_out(&self.stream)?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn say(opening: &mut Opening, words: &impl Serialize) -> Result<(), TheaterError> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend([0; 4]);
    let bytes = postcard::to_extend(words, bytes).map_err(|error| opening.wrong(error.to_string()))?;
    let mut bytes = bytes;
    let length = (bytes.len() - MAGIC.len() - 4) as u32;
    bytes[MAGIC.len()..][..4].copy_from_slice(&length.to_le_bytes());
    opening.write_all(&bytes).map_err(|error| opening.error(error))
}

fn hear<T: DeserializeOwned>(opening: &mut Opening) -> Result<T, TheaterError> {
    let mut magic = [0; MAGIC.len()];
    opening.read_exact(&mut magic).map_err(|error| opening.error(error))?;
    if opening.cipher.is_none() && magic.starts_with(&TLS_MAGIC) {
        return Err(opening.no_tls("the caller speaks TLS, and this theater does not"));
    }
    if magic != MAGIC {
        let found = match magic.split_last() {
            Some((version, name)) if *name == MAGIC[..MAGIC.len() - 1] => {
                format!("version {version} of the protocol, and this is version {}", MAGIC[MAGIC.len() - 1])
            }
            _ => format!("it begins with {:?}", String::from_utf8_lossy(&magic)),
        };
        return Err(opening.wrong(found));
    }
    let mut length = [0; 4];
    opening.read_exact(&mut length).map_err(|error| opening.error(error))?;
    let length = u32::from_le_bytes(length);
    if length > GREETING_BYTES_MAX {
        return Err(opening.wrong(format!("a greeting of {length} bytes, and {GREETING_BYTES_MAX} are allowed")));
    }
    // As it comes: the length alone makes nobody allocate.
    let mut bytes = Vec::new();
    let read = Read::by_ref(opening).take(u64::from(length)).read_to_end(&mut bytes);
    read.map_err(|error| opening.error(error))?;
    postcard::from_bytes(&bytes).map_err(|error| opening.wrong(format!("a greeting that cannot be read: {error}")))
}

/// The side that called: says who it is and hears the answer.
pub(crate) fn call(opening: &mut Opening, hello: &Hello) -> Result<Reply, TheaterError> {
    say(opening, hello)?;
    hear(opening)
}

/// The side that was called: hears who it is ...
pub(crate) fn hear_hello(opening: &mut Opening) -> Result<Hello, TheaterError> {
    hear(opening)
}

/// ... and answers.
pub(crate) fn reply(opening: &mut Opening, reply: &Reply) -> Result<(), TheaterError> {
    say(opening, reply)
}
