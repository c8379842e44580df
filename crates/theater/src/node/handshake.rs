//! The first words on a connection. They block a thread of their own, within time limits.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::TheaterError;
use crate::link::Stream;
use crate::link::frame::{GREETING_BYTES_MAX, Hello, Reply};
use crate::node::identity::{Challenge, Credentials, Knock, Proof};
use crate::transport::GuardedWire;
use crate::transport::tls::{self, Cipher, Tls};

/// The first bytes of each connection: a name, and the version of the protocol.
pub(crate) const MAGIC: [u8; 10] = *b"playhouse\x0a";
/// The first bytes of TLS: a record of the handshake, with the major version 3 of SSL.
const TLS_MAGIC: [u8; 2] = [22, 3];
/// Maximum size in bytes of a word before the greeting.
const WORD_BYTES_MAX: u32 = 1024;
/// Maximum size in bytes of a cluster's name, which fits into a word.
pub(crate) const CLUSTER_BYTES_MAX: usize = 512;
/// Maximum number of characters of a refusal's reason. With at most four bytes for each, they fit into a word.
const REASON_CHARS_MAX: usize = 240;
/// Time limit for an answer of the other end.
pub(crate) const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);

/// Time limit for a whole opening, however small its pieces are.
const OPENING_TIME_MAX: Duration = Duration::from_secs(10);
/// The time that a caller has for its first byte.
const FIRST_BYTE_TIME_MAX: Duration = Duration::from_secs(2);
/// The time that a rejected peer has to read the reason.
const REASON_TIME_MAX: Duration = Duration::from_secs(1);

/// A word of the opening.
pub(crate) trait Word: Serialize + DeserializeOwned {
    /// Maximum size in bytes, after the magic bytes and the length.
    const BYTES_MAX: u32;
}

impl Word for Knock {
    const BYTES_MAX: u32 = WORD_BYTES_MAX;
}

/// A word, or the reason why the other end is refused. A refusal has the same encoding for each word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Said<W> {
    Refused(String),
    Word(W),
}

impl Word for Said<Challenge> {
    const BYTES_MAX: u32 = WORD_BYTES_MAX;
}

impl Word for Said<Proof> {
    const BYTES_MAX: u32 = WORD_BYTES_MAX;
}

impl Word for Hello {
    const BYTES_MAX: u32 = GREETING_BYTES_MAX;
}

impl Word for Said<Reply> {
    const BYTES_MAX: u32 = GREETING_BYTES_MAX;
}

/// A refusal, which the other end can read in place of any word.
type Refusal = Said<()>;

impl Word for Refusal {
    const BYTES_MAX: u32 = WORD_BYTES_MAX;
}

/// A caller that has proved that it belongs to the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) incarnation: u64,
}

/// A connection during its first words.
pub(crate) struct Opening {
    wire: Arc<GuardedWire>,
    until: Instant,
    cipher: Option<Cipher>,
    address: String,
    /// A byte that was read to recognise TLS, and is to be read again.
    first: Option<u8>,
}

impl Opening {
    fn new(wire: Arc<GuardedWire>, address: String) -> Opening {
        Opening { wire, until: Instant::now() + OPENING_TIME_MAX, cipher: None, address, first: None }
    }

    /// Begins a call of the theater at `address`. Each step may take `limit`, and all steps twice that time.
    pub(crate) fn call(
        wire: GuardedWire,
        address: String,
        tls: Option<&Tls>,
        limit: Duration,
    ) -> Result<Opening, TheaterError> {
        let mut opening = Opening::new(Arc::new(wire), address);
        opening.until = opening.until.min(Instant::now() + 2 * limit);
        if let Some(tls) = tls {
            opening.encrypted(|stream| tls.call(stream))?;
        }
        Ok(opening)
    }

    /// Begins the answer to a caller, whose first byte has to come soon.
    pub(crate) fn answer(wire: Arc<GuardedWire>, tls: Option<&Tls>) -> Result<Opening, TheaterError> {
        let address = wire.peer();
        let mut opening = Opening::new(wire, address);
        let mut first = [0];
        let soon = TimedStream { until: Instant::now() + FIRST_BYTE_TIME_MAX, ..opening.timed() }.read(&mut first);
        let count = soon.map_err(|error| opening.error(error))?;
        opening.first = (count > 0).then_some(first[0]);
        let Some(tls) = tls else { return Ok(opening) };
        if opening.first.is_some_and(|first| first != TLS_MAGIC[0]) {
            let error = opening.no_tls("the called theater requires TLS, and the caller does not use it");
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

    fn timed(&self) -> TimedStream<'_> {
        TimedStream { wire: &self.wire, until: self.until, first: None }
    }

    fn encrypted(
        &mut self,
        start: impl FnOnce(&mut TimedStream<'_>) -> io::Result<Cipher>,
    ) -> Result<(), TheaterError> {
        let first = self.first.take();
        match start(&mut TimedStream { first, ..self.timed() }) {
            Ok(cipher) => self.cipher = Some(cipher),
            Err(error) => {
                let error = self.error(error);
                if matches!(error, TheaterError::Tls { .. }) {
                    // TLS has told the peer already.
                    self.await_close();
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Tells the other end why it is refused.
    pub(crate) fn refuse(&mut self, error: &TheaterError) {
        let why = match error {
            // A connection that breaks or is slow may be better next time, and is therefore not refused.
            TheaterError::Io { .. } => return,
            TheaterError::Tls { why, .. } | TheaterError::NotMember { why, .. } => why.clone(),
            error => error.to_string(),
        };
        self.say_refused(&why);
    }

    fn say_refused(&mut self, why: &str) {
        let _ = say(self, &Refusal::Refused(why.chars().take(REASON_CHARS_MAX).collect()));
        self.await_close();
    }

    /// Waits until the other end has read the last word. Closing a connection with unread bytes makes the system discard that
    /// word.
    fn await_close(&mut self) {
        self.until = self.until.min(Instant::now() + REASON_TIME_MAX);
        let _ = self.wire.shutdown(Shutdown::Write);
        while let Ok(1..) = self.timed().read(&mut [0; 4096]) {}
    }

    /// Returns the connection for the poller, and its cipher.
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

    /// Returns the value of the TLS session that ties the proofs to this connection.
    fn binding(&self) -> Result<Vec<u8>, TheaterError> {
        let binding = self.cipher.as_ref().map(Cipher::binding).transpose().map_err(|error| self.error(error))?;
        Ok(binding.map(Vec::from).unwrap_or_default())
    }

    /// Returns the digest of the certificate that the other end has shown.
    pub(crate) fn certificate(&self) -> Option<[u8; 32]> {
        self.cipher.as_ref().and_then(Cipher::certificate)
    }

    fn not_member(&self, why: &str) -> TheaterError {
        let why = match why {
            why if why.contains("cookie") => format!("{why}: {}", crate::node::cookie::ADVICE),
            why => why.to_owned(),
        };
        TheaterError::NotMember { address: self.address.clone(), why }
    }

    fn no_tls(&self, found: &str) -> TheaterError {
        let why = format!("{found}: give both theaters certificates of one CA");
        TheaterError::Tls { address: self.address.clone(), why }
    }
}

impl Read for Opening {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match &self.cipher {
            None => {
                let first = self.first.take();
                TimedStream { first, ..self.timed() }.read(room)
            }
            Some(cipher) => cipher.read(self.timed(), room),
        }
    }
}

impl Write for Opening {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(cipher) = &self.cipher else { return self.timed().write(bytes) };
        let taken = cipher.take(&[IoSlice::new(bytes)])?;
        cipher.write_out(self.timed())?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A stream that waits within a time limit.
struct TimedStream<'a> {
    wire: &'a GuardedWire,
    until: Instant,
    /// A byte to be read before the others.
    first: Option<u8>,
}

impl TimedStream<'_> {
    fn wait<R>(&self, act: impl FnOnce(&GuardedWire) -> io::Result<R>) -> io::Result<R> {
        let late = || io::Error::new(ErrorKind::TimedOut, "it takes too long to prove its identity");
        let left = self.until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()).ok_or_else(late)?;
        self.wire.set_limit(left.min(ANSWER_TIME_MAX))?;
        // Systems differ in the error kind of a timeout.
        act(self.wire).map_err(|error| if error.kind() == ErrorKind::WouldBlock { late() } else { error })
    }
}

impl Read for TimedStream<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if let ([place, ..], Some(_)) = (&mut *room, self.first) {
            *place = self.first.take().expect("it was looked at");
            return Ok(1);
        }
        self.wait(|wire| wire.read(room))
    }
}

impl Write for TimedStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wait(|wire| wire.write(&[IoSlice::new(bytes)]))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn say(opening: &mut Opening, word: &impl Word) -> Result<(), TheaterError> {
    let bytes = written(word).map_err(|error| opening.wrong(error))?;
    opening.write_all(&bytes).map_err(|error| opening.error(error))
}

/// Returns the bytes of a word, with the magic bytes and its length.
fn written<W: Word>(word: &W) -> Result<Vec<u8>, String> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend([0; 4]);
    let mut bytes = postcard::to_extend(word, bytes).map_err(|error| error.to_string())?;
    let length = bytes.len() - MAGIC.len() - 4;
    if length > W::BYTES_MAX as usize {
        return Err(format!("a word of {length} bytes, and {} are allowed", W::BYTES_MAX));
    }
    bytes[MAGIC.len()..][..4].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(bytes)
}

fn read_word<W: Word>(opening: &mut Opening) -> Result<W, TheaterError> {
    let mut magic = [0; MAGIC.len()];
    opening.read_exact(&mut magic).map_err(|error| opening.error(error))?;
    if opening.cipher.is_none() && magic.starts_with(&TLS_MAGIC) {
        return Err(opening.no_tls("the caller uses TLS, and the called theater does not"));
    }
    let read = read(magic.chain(Read::by_ref(opening)));
    read.map_err(|error| opening.error(error))?.map_err(|found| opening.wrong(found))
}

/// Reads a word that [`say`] wrote, or returns the fault in it.
pub(crate) fn read<W: Word>(mut from: impl Read) -> io::Result<Result<W, String>> {
    let mut magic = [0; MAGIC.len()];
    from.read_exact(&mut magic)?;
    if magic != MAGIC {
        return Ok(Err(match magic.split_last() {
            Some((version, name)) if *name == MAGIC[..MAGIC.len() - 1] => {
                format!("its version of the protocol is {version}, and this theater's is {}", MAGIC[MAGIC.len() - 1])
            }
            _ => format!("it begins with {:?}", String::from_utf8_lossy(&magic)),
        }));
    }
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > W::BYTES_MAX {
        return Ok(Err(format!("a greeting of {length} bytes, and {} are allowed", W::BYTES_MAX)));
    }
    // Reads the bytes as they come, because the stated length alone must not cause an allocation.
    let mut bytes = Vec::new();
    from.take(u64::from(length)).read_to_end(&mut bytes)?;
    Ok(postcard::from_bytes(&bytes).map_err(|error| format!("a greeting that cannot be read: {error}")))
}

/// Reads a word that the other end may replace by a refusal.
fn read_said<W>(opening: &mut Opening) -> Result<W, TheaterError>
where
    Said<W>: Word,
{
    match read_word(opening)? {
        Said::Word(word) => Ok(word),
        Said::Refused(why) => Err(TheaterError::NotMember { address: opening.address.clone(), why }),
    }
}

/// Runs the caller's side of the proof that both ends are members. Returns the other end's incarnation.
pub(crate) fn prove(opening: &mut Opening, credentials: &Credentials, cluster: &str) -> Result<Member, TheaterError> {
    let knock = credentials.knock();
    say(opening, &knock)?;
    let challenge: Challenge = read_said(opening)?;
    let binding = opening.binding()?;
    match credentials.answer(&knock, &challenge, &binding, cluster) {
        Ok((proof, incarnation)) => {
            say(opening, &Said::Word(proof))?;
            Ok(Member { incarnation })
        }
        Err(why) => {
            let error = opening.not_member(why);
            opening.say_refused(why);
            Err(error)
        }
    }
}

/// Runs the caller's side of the greeting: sends `hello` and returns the answer of that `member`.
pub(crate) fn call(opening: &mut Opening, hello: &Hello, member: Member) -> Result<Reply, TheaterError> {
    say(opening, hello)?;
    let reply = read_said(opening)?;
    match &reply {
        Reply::Hello(Hello { incarnation, .. }) | Reply::GivenUp(incarnation) if *incarnation != member.incarnation => {
            Err(opening.wrong("the called theater greets as another incarnation than the proved one"))
        }
        _ => Ok(reply),
    }
}

/// Runs the called side of the proof: checks that the caller is a member, and calls `step` after each step of the caller. A
/// caller that fails is refused before its greeting is read.
pub(crate) fn check(
    opening: &mut Opening,
    credentials: &Credentials,
    cluster: &str,
    mut step: impl FnMut(),
) -> Result<Member, TheaterError> {
    let knock: Knock = read_word(opening)?;
    step();
    let binding = opening.binding()?;
    let (challenge, exchange) = credentials.challenge(&knock, &binding);
    say(opening, &Said::Word(challenge))?;
    let proof: Proof = read_word(opening).and_then(|said| match said {
        Said::Word(proof) => Ok(proof),
        // The caller's reason may be any text. A caller can have found two faults, and this theater names both in its own words.
        Said::Refused(_) => Err(opening.not_member("the caller refuses the called theater's cookie or signature")),
    })?;
    let incarnation = exchange.check_caller(&proof).map_err(|why| opening.not_member(why))?;
    step();
    if proof.cluster != cluster {
        return Err(opening.not_member(&other_cluster(cluster, &proof.cluster)));
    }
    Ok(Member { incarnation })
}

/// Returns the reason why a theater of `cluster` refuses a caller of another one.
pub(crate) fn other_cluster(cluster: &str, theirs: &str) -> String {
    format!("the called theater belongs to the cluster {cluster:?}, and the caller to {theirs:?}")
}

/// Reads the greeting of that `member`, on the called side.
pub(crate) fn read_hello(opening: &mut Opening, member: Member) -> Result<Hello, TheaterError> {
    let hello: Hello = read_word(opening)?;
    if hello.incarnation != member.incarnation {
        return Err(opening.not_member("the caller greets as another incarnation than the proved one"));
    }
    Ok(hello)
}

/// Sends the answer to a greeting, on the called side.
pub(crate) fn reply(opening: &mut Opening, reply: Reply) -> Result<(), TheaterError> {
    say(opening, &Said::Word(reply))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::{Tcp, Transport};
    use std::net::TcpStream;

    // GUARANTEE: Rejected peers harm no theater
    #[test]
    fn a_slow_caller_is_not_listened_to_forever() {
        let listener = Tcp.listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let mut caller = TcpStream::connect(listener.address().unwrap()).unwrap();
        let mut opening = {
            caller.write_all(b"more").unwrap();
            let wire = GuardedWire::new(listener.accept().unwrap());
            Opening::answer(Arc::new(wire), None).unwrap()
        };
        let mut word = [0];
        opening.read_exact(&mut word).unwrap();
        opening.until = Instant::now();
        assert_eq!(opening.read_exact(&mut word).unwrap_err().kind(), ErrorKind::TimedOut);
    }
}
