//! Watches: threads that read the watch of etcd, and ask for the revision of the store.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use playhouse::durable::{Changed, LedgerWatch};

use crate::client::{Client, Repeat};
use crate::message::{Bytes, Range, RangeAnswer, Watch, WatchCreate};

/// The time between two questions, and between two attempts to watch again.
const INTERVAL: Duration = Duration::from_secs(1);

/// The time for which a thread may read without a look at whether its watch has ended. The first bytes of an answer must
/// also come within this time.
const READ_TIME_MAX: Duration = Duration::from_secs(1);

/// The longest time until etcd has begun to watch.
const BEGIN_TIME_MAX: Duration = Duration::from_secs(5);

/// The size above which the rest of a line is left out. The first bytes of a line say whether the watch has ended.
const LINE_BYTES_MAX: usize = 4096;

/// Begins to call `changed` after changes of the keys in a range.
pub(crate) fn begin(client: Arc<Client>, from: Vec<u8>, to: Vec<u8>, changed: Changed) -> io::Result<LedgerWatch> {
    let watched = Watched { client, from, to };
    let (mut stream, mut seen) = watched.stream()?;
    let ended = Arc::new(AtomicBool::new(false));
    let end = End(Arc::clone(&ended));
    std::thread::Builder::new().name("playhouse-etcd-watch".to_owned()).spawn(move || {
        let call = || {
            if !ended.load(Ordering::Acquire) {
                changed();
            }
        };
        while !ended.load(Ordering::Acquire) {
            let _it_watches_again = watched.follow(&mut stream, &mut seen, &ended, &call);
            // The reader learns what is wrong, and sees what was changed while nothing was watched.
            call();
            while !ended.load(Ordering::Acquire) {
                std::thread::sleep(INTERVAL);
                if let Ok(next) = watched.stream() {
                    (stream, seen) = next;
                    break;
                }
            }
            call();
        }
    })?;
    Ok(LedgerWatch::new(end))
}

/// Ends the thread of a watch when it is dropped, soon.
struct End(Arc<AtomicBool>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

type Stream = BufReader<Box<dyn Read + Send>>;

/// A range of keys.
struct Watched {
    client: Arc<Client>,
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Watched {
    /// Begins to watch. Changes from now on are in the stream. Returns also the revision of the store before.
    fn stream(&self) -> io::Result<(Stream, u64)> {
        // This request authenticates. etcd answers that of a watch with a refused token as if the user lacked a permission.
        let revision = self.revision()?;
        let request =
            Watch { create_request: WatchCreate { key: Bytes(self.from.clone()), range_end: Bytes(self.to.clone()) } };
        let answer = self.client.stream("/v3/watch", &request, READ_TIME_MAX).map_err(|error| error.error)?;
        let mut stream: Stream = BufReader::new(Box::new(answer.into_body().into_reader()));
        let mut line = Vec::new();
        let begin = Instant::now();
        while !next_line(&mut stream, &mut line)? {
            if begin.elapsed() > BEGIN_TIME_MAX {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "etcd has not begun to watch in time"));
            }
        }
        Ok((stream, revision))
    }

    /// Returns the revision of the store, which each change of a key increases.
    fn revision(&self) -> io::Result<u64> {
        let range = Range { key: Bytes(self.from.clone()), keys_only: true, ..Range::default() };
        let answer: RangeAnswer =
            self.client.call("/v3/kv/range", &range, Repeat::Safe).map_err(|error| error.error)?;
        Ok(answer.header.revision.0)
    }

    /// Calls `changed` after changes until the stream ends.
    fn follow(&self, stream: &mut Stream, seen: &mut u64, ended: &AtomicBool, changed: &impl Fn()) -> io::Result<()> {
        let mut line = Vec::new();
        let mut asked = Instant::now();
        while !ended.load(Ordering::Acquire) {
            if next_line(stream, &mut line)? {
                changed();
            }
            if asked.elapsed() >= INTERVAL {
                asked = Instant::now();
                let revision = self.revision()?;
                if revision != *seen {
                    *seen = revision;
                    changed();
                }
            }
        }
        Ok(())
    }
}

/// Reads to the end of a line. Returns false if the line has not come in time, and goes on with it next time.
fn next_line(stream: &mut Stream, line: &mut Vec<u8>) -> io::Result<bool> {
    loop {
        let bytes = match stream.fill_buf() {
            Ok([]) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "etcd has ended the watch")),
            Ok(bytes) => bytes,
            Err(error) if is_timeout(&error) => return Ok(false),
            Err(error) => return Err(error),
        };
        let end = bytes.iter().position(|&byte| byte == b'\n');
        let part = &bytes[..end.unwrap_or(bytes.len())];
        line.extend_from_slice(&part[..part.len().min(LINE_BYTES_MAX - line.len())]);
        let read = end.map_or(bytes.len(), |end| end + 1);
        stream.consume(read);
        if end.is_some() {
            let has_ended = contains(line, br#""canceled":true"#) || line.starts_with(br#"{"error""#);
            line.clear();
            return if has_ended { Err(io::Error::other("etcd has cancelled the watch")) } else { Ok(true) };
        }
    }
}

fn contains(line: &[u8], part: &[u8]) -> bool {
    line.windows(part.len()).any(|window| window == part)
}

fn is_timeout(error: &io::Error) -> bool {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<ureq::Error>());
    error.kind() == io::ErrorKind::TimedOut || matches!(cause, Some(ureq::Error::Timeout(_)))
}
