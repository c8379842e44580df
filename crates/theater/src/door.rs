//! Where callers are heard.
//!
//! One thread waits for callers and for the theater's end at the same time, so that it ends whether or not anybody can call.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};

use crate::error::TheaterError;
use crate::handshake::{self, Opening};
use crate::house::{House, TICK};
use crate::transport::{Line, Listener, guarded};

/// Callers that are heard at one time.
const CALLERS_MAX: usize = 64;

const CALLERS: Token = Token(0);
const BELL: Token = Token(1);

/// A listener, and what tells of callers and of the end.
pub(crate) struct Door {
    listener: Box<dyn Listener>,
    poll: Poll,
}

impl Door {
    /// Its bell has who waits there look up.
    pub(crate) fn new(listener: Box<dyn Listener>) -> io::Result<(Door, Waker)> {
        let poll = Poll::new()?;
        let bell = Waker::new(poll.registry(), BELL)?;
        let descriptor = listener.as_fd().as_raw_fd();
        poll.registry().register(&mut SourceFd(&descriptor), CALLERS, Interest::READABLE)?;
        Ok((Door { listener, poll }, bell))
    }
}

impl House {
    /// Hears callers until the theater closes.
    pub(crate) fn hear_callers(self: &Arc<Self>, mut door: Door) {
        let mut events = Events::with_capacity(2);
        while !self.is_closing() {
            match guarded(|| door.listener.accept()).and_then(Line::new) {
                Ok(line) => self.hear(line),
                // On an error it was interrupted, and looks again.
                Err(error) if error.kind() == ErrorKind::WouldBlock => drop(door.poll.poll(&mut events, None)),
                // Out of descriptors, for example: callers wait, and nothing tells of them again.
                Err(_) => drop(door.poll.poll(&mut events, Some(TICK))),
            }
        }
        let _ = guarded(|| {
            drop(door);
            Ok(())
        });
        self.note_closed();
    }

    /// Hears a caller, on a thread of its own.
    fn hear(self: &Arc<Self>, line: Line) {
        if self.callers.fetch_add(1, Ordering::AcqRel) >= CALLERS_MAX {
            self.callers.fetch_sub(1, Ordering::AcqRel);
            return;
        }
        let house = Arc::clone(self);
        let heard = std::thread::Builder::new().name("playhouse-caller".to_owned()).spawn(move || {
            // Its hook is the user's code.
            let _ = catch_unwind(AssertUnwindSafe(|| {
                if let Err(error) = house.answer(line)
                    && !matches!(error, TheaterError::Io { .. })
                    && let Some(on_stranger) = &house.settings.on_stranger
                {
                    (on_stranger.0)(&error);
                }
            }));
            house.callers.fetch_sub(1, Ordering::AcqRel);
        });
        if heard.is_err() {
            self.callers.fetch_sub(1, Ordering::AcqRel);
        }
    }

    fn answer(self: &Arc<Self>, line: Line) -> Result<(), TheaterError> {
        let mut opening = Opening::answer(line, self.settings.secrecy.tls())?;
        let hello = match handshake::hear_hello(&mut opening) {
            Ok(hello) => hello,
            Err(error) => {
                opening.refuse(&error);
                return Err(error);
            }
        };
        let (reply, go_on) = self.receive_hello(&hello);
        handshake::reply(&mut opening, &reply)?;
        if let Some((link, connection, received)) = go_on {
            let address = hello.listens.map_or_else(|| "?".to_owned(), |address| address.to_string());
            let added = opening
                .into_parts()
                .and_then(|(stream, cipher)| self.poller.add(&link, stream, cipher, connection, received));
            added.map_err(|error| TheaterError::Io { address, error })?;
            self.note_changed();
        }
        Ok(())
    }
}
