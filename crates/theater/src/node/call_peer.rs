//! Calls of peers: the first call, which makes a link, and further calls, which continue one.

use std::collections::hash_map::Entry;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use playhouse_executor::jitter::seam;

use crate::error::TheaterError;
use crate::link::frame::{Hello, Reply, Resume};
use crate::link::node::Callee;
use crate::link::{Link, Stream};
use crate::lock::lock;
use crate::node::backoff::Backoff;
use crate::node::calling::{self, Claim, Outcome};
use crate::node::core::TheaterCore;
use crate::node::environment::OnReply;
use crate::node::handshake::{self, ANSWER_TIME_MAX, Opening};
use crate::node::links::{Called, OTHER_CERTIFICATE, TICK};
use crate::transport::tls::Cipher;
use crate::transport::{GuardedWire, guarded};

/// Number of further calls to a theater that hangs up before it has answered.
const HANG_UPS_MAX: u32 = 8;

/// The reply of the other end, and the stream that it came over.
pub(crate) type Exchanged = Result<(Reply, (Stream, Option<Cipher>)), TheaterError>;

impl TheaterCore {
    /// Returns the link with the theater at this address; calls it if necessary.
    pub(crate) fn link_with(self: &Arc<Self>, callee: Callee) -> Result<Arc<Link>, TheaterError> {
        self.link_within(callee, ANSWER_TIME_MAX)
    }

    /// Does the same as [`TheaterCore::link_with`]; each step of the call may take `limit`. If another thread is calling that
    /// address already, this thread takes the result of that call.
    pub(crate) fn link_within(self: &Arc<Self>, callee: Callee, limit: Duration) -> Result<Arc<Link>, TheaterError> {
        let address = callee.address;
        if !self.settings.secrecy.allows(address) {
            return Err(TheaterError::NotLoopback { address: address.to_string() });
        }
        if let Some(system) = self.simulated() {
            let found = Arc::new(Mutex::new(None));
            let take = Arc::clone(&found);
            let found = || lock(&found);
            self.reach(callee, Box::new(move |link| *lock(&take) = Some(link)));
            system.block_until(None, &mut || found().is_some());
            let link = found().take();
            return link.expect("the caller is answered, or its call fails");
        }
        let deadline = self.now() + 2 * ANSWER_TIME_MAX;
        let mut hung_up = 0;
        let mut links = self.links();
        loop {
            if let Some(link) = links.at(callee) {
                return Ok(Arc::clone(link));
            }
            // Relaxed: it is read under the lock of the links.
            if self.calls_no_more.load(Ordering::Relaxed) {
                return Err(TheaterError::System("this theater is closing".to_owned()));
            }
            let outcome = match links.calling.entry(address) {
                Entry::Vacant(entry) => Arc::clone(entry.insert(Called::default())),
                Entry::Occupied(entry) => {
                    let outcome = Arc::clone(entry.get());
                    while outcome.get().is_none() && links.is_called(address, &outcome) {
                        links = self.wait(links);
                    }
                    match outcome.get() {
                        Some(found) => return found.as_ref().map(Arc::clone).map_err(TheaterError::copy),
                        None => continue,
                    }
                }
            };
            drop(links);
            let hello = self.first_hello();
            let called = self.called(address, &hello, self.exchange(address, &hello, limit));
            links = self.links();
            if let Some(found) = called.as_ref().map(Option::as_ref).map_err(TheaterError::copy).transpose() {
                // The cell is set once, by this thread.
                let _ = outcome.set(found.map(Arc::clone));
            }
            links.calling.remove(&address);
            self.note_changed();
            match called {
                Ok(Some(link)) => return Ok(link),
                // The other theater is calling this one, or must forget an older link first.
                Ok(None) if self.now() < deadline => links = self.wait(links),
                Ok(None) => return Err(only_busy(address)),
                // The other theater may have evicted this caller.
                Err(error) if error.is_hang_up() && hung_up < HANG_UPS_MAX => {
                    hung_up += 1;
                    links = self.wait(links);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Says `hello` to the theater at `address`, and returns the answer; each step may take `limit`.
    pub(crate) fn exchange(&self, address: SocketAddr, hello: &Hello, limit: Duration) -> Exchanged {
        let io_error = |error| TheaterError::Io { address: address.to_string(), error };
        let wire =
            guarded(|| self.settings.transport.connect(address, limit)).map(GuardedWire::new).map_err(io_error)?;
        let mut opening = Opening::call(wire, address.to_string(), self.settings.secrecy.tls(), limit)?;
        let credentials = self.credentials.as_ref().expect("it is not simulated");
        let member = handshake::prove(&mut opening, credentials, &self.settings.cluster)?;
        let reply = handshake::call(&mut opening, hello, member)?;
        let line = opening.into_parts().map_err(io_error)?;
        Ok((reply, line))
    }

    /// Handles the answer to a first call that has `said` this. `None`: the other end is busy.
    pub(crate) fn called(
        &self,
        address: SocketAddr,
        said: &Hello,
        exchanged: Exchanged,
    ) -> Result<Option<Arc<Link>>, TheaterError> {
        let io_error = |error| TheaterError::Io { address: address.to_string(), error };
        let (hello, (stream, cipher)) = match exchanged? {
            (Reply::Hello(hello), line) => (hello, line),
            (Reply::Busy, _) => return Ok(None),
            (Reply::GivenUp(theater), _) => {
                self.give_up_link(theater, said);
                return Ok(None);
            }
            (Reply::Refused(why), _) => return Err(TheaterError::Refused { address: address.to_string(), why }),
        };
        let certificate = cipher.as_ref().and_then(Cipher::certificate);
        let (link, given_up) = {
            let mut links = self.links();
            let known = links.by_incarnation.get_mut(&hello.incarnation);
            if let Some(known) = known.filter(|known| !known.link.is_lost()) {
                if known.certificate != certificate {
                    return Err(TheaterError::Tls {
                        address: address.to_string(),
                        why: format!("the called theater {OTHER_CERTIFICATE}"),
                    });
                }
                let link = Arc::clone(&known.link);
                let said = Claim { knows: said.knows.contains(&hello.incarnation), number: said.link };
                let is_found = known.calls.finds_itself(known.sight(), said, hello.link);
                link.note_remote_number(known.calls.known_as);
                if !is_found {
                    return Ok(None);
                }
                links.aliases.insert(address, hello.incarnation);
                return Ok(Some(link));
            }
            // Relaxed: it is read under the lock of the links. Nothing would announce the shutdown to the other end.
            if self.leaving.load(Ordering::Relaxed) {
                return Err(TheaterError::System("this theater is closing".to_owned()));
            }
            let lost = self.link_table.lost_link(hello.incarnation).flatten();
            if !calling::makes(said.knows.contains(&hello.incarnation), hello.link, lost) {
                return Ok(None);
            }
            if self.link_table.is_forgetting(hello.incarnation) {
                return Ok(None);
            }
            let full = |full| TheaterError::System(format!("this theater {full}"));
            let given_up = links.make_room().map_err(full)?;
            let number = said.link.unwrap_or_else(|| links.number());
            let link = self.new_link(&mut links, number, &hello, Some(address), certificate);
            (link, given_up)
        };
        given_up.inspect(|link| link.lose());
        seam(2);
        self.poller.add(&link, stream, cipher, 1, 0).map_err(io_error)?;
        Ok(Some(link))
    }

    /// Calls again.
    pub(super) fn call_again(
        self: &Arc<Self>,
        link: &Arc<Link>,
        address: SocketAddr,
        connection: u64,
        known_as: Option<u64>,
    ) {
        seam(2);
        let received = {
            let links = self.links();
            let known = links.by_incarnation.get(&link.incarnation).filter(|known| Arc::ptr_eq(&known.link, link));
            if known.is_none_or(|known| known.calls.connection != connection) {
                // The other end has called since then, and its connection must not be broken.
                drop(links);
                return self.end_call(link, Outcome::Nothing);
            }
            link.prepare(connection)
        };
        let resumes = Resume { incarnation: link.incarnation, received, connection, link: known_as };
        let hello = Hello { link: Some(link.number()), ..self.hello(Some(resumes)) };
        let Some(outside) = &self.outside else {
            return self.called_again(link, connection, self.exchange(address, &hello, self.call_limit()));
        };
        let (theater_core, link) = (Arc::clone(self), Arc::clone(link));
        let on_reply: OnReply = Box::new(move |reply| theater_core.called_again(&link, connection, reply.map(plain)));
        outside.call(address, hello, on_reply);
    }

    /// Calls a theater that made a link, has sent nothing in it, and does not call again. The answer to its call may have been
    /// lost, and in that case it does not know of the link. It then makes the link as well, and is called again in it.
    pub(super) fn call_anew(self: &Arc<Self>, link: &Arc<Link>, address: SocketAddr) {
        let (theater_core, theater) = (Arc::clone(self), link.incarnation);
        let hello = Hello { link: Some(link.number()), ..self.hello(None) };
        if !hello.knows.contains(&theater) {
            // The link was lost since then, and another link would need another number.
            return self.end_call(link, Outcome::Nothing);
        }
        let (said, link) = (hello.clone(), Arc::clone(link));
        let called = move |exchanged: Exchanged| {
            if let Err(error) = theater_core.called(address, &said, exchanged) {
                theater_core.note_failed_call(&link, error);
            }
            theater_core.end_call(&link, Outcome::Nothing);
        };
        match &self.outside {
            None => called(self.exchange(address, &hello, self.call_limit())),
            Some(outside) => outside.call(address, hello, Box::new(move |reply| called(reply.map(plain)))),
        }
    }

    pub(crate) fn called_again(&self, link: &Arc<Link>, connection: u64, exchanged: Exchanged) {
        let outcome = match exchanged {
            Ok((Reply::Hello(Hello { incarnation, resumes: Some(theirs), link: number, .. }), (stream, cipher)))
                if incarnation == link.incarnation
                    && self.has_shown(incarnation, cipher.as_ref().and_then(Cipher::certificate)) =>
            {
                if let Some(known) = self.links().by_incarnation.get_mut(&incarnation)
                    && Arc::ptr_eq(&known.link, link)
                {
                    known.calls.goes_on(known.sight(), number);
                    link.note_remote_number(known.calls.known_as);
                }
                // A failed connection is repeated at the next tick, until the link is given up.
                let _ = self.poller.add(link, stream, cipher, connection, theirs.received);
                Outcome::GoesOn
            }
            // The next tick calls again.
            Ok((Reply::Busy, _)) => Outcome::Busy,
            // Relaxed: for the same reason as in `lose_or_leave`.
            Err(error) if error.is_refusal() && self.leaving.load(Ordering::Relaxed) => {
                // No theater listens that could receive the shutdown announcement. A network that refuses calls for a moment is
                // waited for.
                if link.unchanged_for() >= 4 * TICK {
                    link.note_left();
                }
                Outcome::Nothing
            }
            Err(error) => {
                self.note_failed_call(link, error);
                Outcome::Nothing
            }
            // The other end does not know the session any more.
            Ok((Reply::Hello(_) | Reply::GivenUp(_) | Reply::Refused(_), _)) => {
                self.lose_or_leave(link);
                Outcome::Nothing
            }
        };
        self.end_call(link, outcome);
    }

    /// Notes the end of a further call, or of a call like a first one.
    pub(super) fn end_call(&self, link: &Arc<Link>, outcome: Outcome) {
        let mut links = self.links();
        let known = links.by_incarnation.get_mut(&link.incarnation);
        if let Some(known) = known.filter(|known| Arc::ptr_eq(&known.link, link)) {
            known.calls.note_outcome(outcome);
            if outcome == Outcome::GoesOn {
                // The housekeeper runs only at ticks, and would miss a connection that breaks again before the next one.
                known.terminated = None;
                known.backoff = Backoff::default();
            }
        }
    }

    /// Notes the reason why a further call, or a call like a first one, has failed. After a refusal, the next call waits for a while: another theater may
    /// have taken the address.
    fn note_failed_call(&self, link: &Link, error: TheaterError) {
        if !matches!(error, TheaterError::Io { .. })
            && let Some(known) = self.links().by_incarnation.get_mut(&link.incarnation)
        {
            known.backoff.note_refusal(self.incarnation ^ link.incarnation);
        }
        link.note_call_error(Some(error));
    }
}

/// Returns the error for a theater that answered "busy" each time.
pub(crate) fn only_busy(address: SocketAddr) -> TheaterError {
    let why = "it answered that it is calling this theater, and never connected".to_owned();
    TheaterError::Refused { address: address.to_string(), why }
}

/// Adds the cipher to a reply in simulation, where nothing is encrypted.
pub(crate) fn plain((reply, stream): (Reply, Stream)) -> (Reply, (Stream, Option<Cipher>)) {
    (reply, (stream, None))
}
