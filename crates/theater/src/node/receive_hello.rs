//! The answers to callers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::link::Link;
use crate::link::frame::{Hello, Reply, Resume};
use crate::node::calling::{self, Answer, Asks, Without};
use crate::node::core::TheaterCore;
use crate::node::handshake;
use crate::node::identity::Word32;
use crate::node::links::{KnownTheater, OTHER_CERTIFICATE};

/// Maximum number of connections of one session. It exceeds the number that any time suffices for, and keeps the count from
/// overflowing.
const CONNECTIONS_MAX: u64 = u64::MAX / 2;

/// The decision about a call that is not rejected.
enum Decision {
    /// The call makes a link, or continues one.
    Connect(Hello, Connects),
    /// The caller has called by another address, and finds the link that there is.
    Known(Hello),
    /// The other end has given this link up. When it is lost, the decision is made anew.
    LoseFirst(Arc<Link>),
}

/// The reason why a caller gets nothing but an answer.
enum Rejection {
    Refused(String),
    Busy,
    /// This theater has given up the link that the caller has.
    GivenUp,
}

/// The connection that a call makes.
pub(crate) struct Connects {
    pub(crate) link: Arc<Link>,
    /// Its number in the session.
    pub(crate) connection: u64,
    /// The packets that the other end has received.
    pub(crate) received: u64,
}

impl TheaterCore {
    /// Returns whether the theater showed this certificate, or none, when its link was made.
    pub(super) fn has_shown(&self, theater: u64, certificate: Option<Word32>) -> bool {
        self.links().by_incarnation.get(&theater).is_some_and(|known| known.certificate == certificate)
    }

    /// Returns the answer to a caller, which has proved its incarnation and shown this certificate. For a call that makes or
    /// continues a link, also returns its connection.
    pub(crate) fn receive_hello(&self, hello: &Hello, certificate: Option<Word32>) -> (Reply, Option<Connects>) {
        loop {
            match self.decide(hello, certificate) {
                Ok(Decision::Connect(hello, connects)) => return (Reply::Hello(hello), Some(connects)),
                Ok(Decision::Known(hello)) => return (Reply::Hello(hello), None),
                // The other end has given the link up. Another one may be made before the lock of the links is held again.
                Ok(Decision::LoseFirst(link)) => link.lose(),
                Err(Rejection::Refused(why)) => return (Reply::Refused(why), None),
                Err(Rejection::Busy) => return (Reply::Busy, None),
                Err(Rejection::GivenUp) => return (Reply::GivenUp(self.incarnation), None),
            }
        }
    }

    /// Decides about a call.
    ///
    /// # Errors
    /// The call is rejected.
    fn decide(&self, hello: &Hello, certificate: Option<Word32>) -> Result<Decision, Rejection> {
        self.may_call(hello)?;
        let mut links = self.links();
        let known = links.by_incarnation.get(&hello.incarnation).filter(|known| !known.link.is_lost());
        if known.is_some_and(|known| known.certificate != certificate) {
            return Err(Rejection::Refused(format!("the caller {OTHER_CERTIFICATE}")));
        }
        let asks = self.asks_of(hello)?;
        let calls = hello.listens.is_some_and(|address| links.calling.contains_key(&address));
        let is_lower = self.incarnation < hello.incarnation;
        if let Some(known) = links.by_incarnation.get_mut(&hello.incarnation).filter(|known| !known.link.is_lost()) {
            let answer = known.calls.answer(known.sight(), asks, calls, is_lower);
            if let Some(decision) = self.decide_known(known, hello, answer) {
                return decision;
            }
        }
        if let Some(known) = links.by_incarnation.remove(&hello.incarnation) {
            return Ok(Decision::LoseFirst(known.link));
        }
        let without = Without {
            calls,
            lost: self.link_table.lost_link(hello.incarnation),
            is_forgetting: self.link_table.is_forgetting(hello.incarnation),
        };
        match calling::answer_without(asks, without, is_lower) {
            Answer::Make => {}
            Answer::GivenUp => return Err(Rejection::GivenUp),
            _ => return Err(Rejection::Busy),
        }
        let given_up = links.make_room().map_err(|full| Rejection::Refused(format!("the called theater {full}")))?;
        let number = links.number();
        let link = self.new_link(&mut links, number, hello, None, certificate);
        drop(links);
        given_up.inspect(|link| link.lose());
        let reply = Hello { link: Some(number), ..self.hello(None) };
        Ok(Decision::Connect(reply, Connects { link, connection: 1, received: 0 }))
    }

    /// Checks that this theater takes calls of the caller.
    fn may_call(&self, hello: &Hello) -> Result<(), Rejection> {
        if hello.cluster != self.settings.cluster {
            return Err(Rejection::Refused(handshake::other_cluster(&self.settings.cluster, &hello.cluster)));
        }
        if hello.incarnation == self.incarnation {
            return Err(Rejection::Refused("a theater cannot call itself".to_owned()));
        }
        if self.is_closing() {
            return Err(Rejection::Refused("the called theater is closing".to_owned()));
        }
        // The caller of a deaf theater could not read the bytes that come over the connection.
        if self.poller.is_deaf() { Err(Rejection::Busy) } else { Ok(()) }
    }

    /// Returns what the caller asks for. The caller of this holds the lock of the links.
    fn asks_of(&self, hello: &Hello) -> Result<Asks, Rejection> {
        match hello.resumes {
            Some(resumes) if resumes.connection > CONNECTIONS_MAX => {
                let why = format!("connection {} of a session, and {CONNECTIONS_MAX} are allowed", resumes.connection);
                Err(Rejection::Refused(why))
            }
            Some(resumes) if resumes.incarnation != self.incarnation => {
                Err(Rejection::Refused("the called theater was restarted".to_owned()))
            }
            Some(Resume { connection, link, .. }) => Ok(Asks::Again { connection, number: hello.link, link }),
            // Relaxed: it is written under the lock of the links.
            None if self.leaving.load(Ordering::Relaxed) => {
                Err(Rejection::Refused("the called theater is closing".to_owned()))
            }
            None => Ok(Asks::First {
                knows: hello.knows.contains(&self.incarnation),
                has_lost: hello.lost.contains(&self.incarnation),
                number: hello.link,
            }),
        }
    }

    /// Carries out the answer to a caller with a known link. Returns `None` if the link is given up.
    fn decide_known(
        &self,
        known: &mut KnownTheater,
        hello: &Hello,
        answer: Answer,
    ) -> Option<Result<Decision, Rejection>> {
        let (link, connection) = (Arc::clone(&known.link), known.calls.connection);
        link.note_remote_number(known.calls.known_as);
        let hello_of_link = || Hello { link: Some(link.number()), ..self.hello(None) };
        Some(match answer {
            Answer::Busy => Err(Rejection::Busy),
            Answer::Another => Err(Rejection::Refused("the theaters have another link by now".to_owned())),
            Answer::Known => Ok(Decision::Known(hello_of_link())),
            Answer::GoOn => {
                known.terminated = None;
                let received = link.prepare(connection);
                let theirs = Resume { incarnation: hello.incarnation, received, connection, link: None };
                let has_received = hello.resumes.map_or(0, |resumes| resumes.received);
                let reply = Hello { link: Some(link.number()), ..self.hello(Some(theirs)) };
                Ok(Decision::Connect(reply, Connects { link, connection, received: has_received }))
            }
            Answer::Adopt => {
                known.terminated = None;
                link.prepare(connection);
                let reply = hello_of_link();
                Ok(Decision::Connect(reply, Connects { link, connection, received: 0 }))
            }
            Answer::Lose | Answer::Make | Answer::GivenUp => return None,
        })
    }
}
