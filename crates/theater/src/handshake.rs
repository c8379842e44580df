//! The first words on a connection. Blocking, with time limits, on a thread of its own.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::TheaterError;
use crate::frame::{Hello, Reply};
use crate::link::Stream;
use crate::tls::{self, Cipher, Tls};
use crate::transport::Line;

/// What everything begins with: a name, and the version of the protocol.
const MAGIC: [u8; 10] = *b"playhouse\x01";
/// What TLS begins with: a handshake's record, of a version 3 of SSL.
const TLS_MAGIC: [u8; 2] = [22, 3];
/// A greeting has at most so many bytes.
const GREETING_BYTES_MAX: u32 = 4 * 1024 * 1024;
/// So long it may take the other end to answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// All of it may take so long, however little comes at a time.
const OPENING_TIME_MAX: Duration = Duration::from_secs(10);

/// A connection on which the first words are said.
pub(crate) struct Opening {
    wire: Line,
    until: Instant,
    cipher: Option<Cipher>,
    address: String,
    /// What was read to see whether it is TLS, and has to be read again.
    first: Option<u8>,
}

impl Opening {
    fn new(wire: Line, address: String) -> Opening {
        Opening { wire, until: Instant::now() + OPENING_TIME_MAX, cipher: None, address, first: None }
    }

    /// Begins with who was called at `address`.
    pub(crate) fn call(wire: Line, address: String, tls: Option<&Tls>) -> Result<Opening, TheaterError> {
        let mut opening = Opening::new(wire, address);
        if let Some(tls) = tls {
            opening.encrypted(|stream| tls.call(stream))?;
        }
        Ok(opening)
    }

    /// Answers who has called.
    pub(crate) fn answer(wire: Line, tls: Option<&Tls>) -> Result<Opening, TheaterError> {
        let address = wire.peer();
        let mut opening = Opening::new(wire, address);
        let Some(tls) = tls else { return Ok(opening) };
        let mut first = [0];
        let count = opening.patient().read(&mut first).map_err(|error| opening.error(error))?;
        opening.first = (count > 0).then_some(first[0]);
        if opening.first.is_some_and(|first| first != TLS_MAGIC[0]) {
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

    fn patient(&self) -> Patient<'_> {
        Patient { wire: &self.wire, until: self.until, first: None }
    }

    fn encrypted(&mut self, start: impl FnOnce(&mut Patient<'_>) -> io::Result<Cipher>) -> Result<(), TheaterError> {
        let first = self.first.take();
        match start(&mut Patient { first, ..self.patient() }) {
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
    fn let_go(&self) {
        let _ = self.wire.shutdown(Shutdown::Write);
        while let Ok(1..) = self.patient().read(&mut [0; 4096]) {}
    }

    /// The connection, for the poller, and what encrypts it.
    pub(crate) fn into_parts(self) -> io::Result<(Stream, Option<Cipher>)> {
        self.wire.set_nonblocking(true)?;
        Ok((Stream::Wire(self.wire), self.cipher))
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
            None => self.patient().read(room),
            Some(cipher) => cipher.read(self.patient(), room),
        }
    }
}

impl Write for Opening {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(cipher) = &self.cipher else { return self.patient().write(bytes) };
        let taken = cipher.take(&[IoSlice::new(bytes)])?;
        cipher.write_out(self.patient())?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A stream that waits, and not for ever.
struct Patient<'a> {
    wire: &'a Line,
    until: Instant,
    /// To be read before what comes.
    first: Option<u8>,
}

impl Patient<'_> {
    fn wait<R>(&self, act: impl FnOnce(&Line) -> io::Result<R>) -> io::Result<R> {
        let late = || io::Error::new(ErrorKind::TimedOut, "it takes too long to say who it is");
        let left = self.until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()).ok_or_else(late)?;
        self.wire.set_limit(left.min(PATIENCE))?;
        // Systems differ in what they call it.
        act(self.wire).map_err(|error| if error.kind() == ErrorKind::WouldBlock { late() } else { error })
    }
}

impl Read for Patient<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if let ([place, ..], Some(_)) = (&mut *room, self.first) {
            *place = self.first.take().expect("it was looked at");
            return Ok(1);
        }
        self.wait(|wire| wire.read(room))
    }
}

impl Write for Patient<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wait(|wire| wire.write(&[IoSlice::new(bytes)]))
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
    let read = read(magic.chain(Read::by_ref(opening)));
    read.map_err(|error| opening.error(error))?.map_err(|found| opening.wrong(found))
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn who_says_little_at_a_time_is_not_listened_to_for_ever() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut caller = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut opening = Opening::answer(Line::new(Box::new(listener.accept().unwrap().0)).unwrap(), None).unwrap();
        caller.write_all(b"more").unwrap();
        let mut word = [0];
        opening.read_exact(&mut word).unwrap();
        opening.until = Instant::now();
        assert_eq!(opening.read_exact(&mut word).unwrap_err().kind(), ErrorKind::TimedOut);
    }
}
