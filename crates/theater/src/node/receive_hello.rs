//! The answers to callers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::link::Link;
use crate::link::frame::{Hello, Reply, Resume};
use crate::node::calling::{self, Answer, Asks, Without};
use crate::node::core::TheaterCore;
use crate::node::handshake;
use crate::node::identity::Word32;
use crate::node::links::OTHER_CERTIFICATE;

/// Maximum number of connections of one session. It exceeds the number that any time suffices for, and keeps the count from
/// overflowing.
const CONNECTIONS_MAX: u64 = u64::MAX / 2;

impl TheaterCore {
    /// Returns whether the theater showed this certificate, or none, when its link was made.
    pub(super) fn has_shown(&self, theater: u64, certificate: Option<Word32>) -> bool {
        self.links().by_incarnation.get(&theater).is_some_and(|known| known.certificate == certificate)
    }

    /// Returns the answer to a caller, which has proved its incarnation and shown this certificate. For a call that makes or
    /// continues a link, also returns the link, the number of its connection, and the packets that the other end has received.
    pub(crate) fn receive_hello(
        &self,
        hello: &Hello,
        certificate: Option<Word32>,
    ) -> (Reply, Option<(Arc<Link>, u64, u64)>) {
        let refused = |why: String| (Reply::Refused(why), None);
        if hello.cluster != self.settings.cluster {
            return refused(handshake::other_cluster(&self.settings.cluster, &hello.cluster));
        }
        if hello.incarnation == self.incarnation {
            return refused("a theater cannot call itself".to_owned());
        }
        if self.is_closing() {
            return refused("it is closing".to_owned());
        }
        if self.poller.is_deaf() {
            // The caller could not read the bytes that come over the connection.
            return (Reply::Busy, None);
        }
        let mut links = self.links();
        let known = links.by_incarnation.get(&hello.incarnation).filter(|known| !known.link.is_lost());
        if known.is_some_and(|known| known.certificate != certificate) {
            return refused(OTHER_CERTIFICATE.to_owned());
        }
        let asks = match hello.resumes {
            Some(resumes) if resumes.connection > CONNECTIONS_MAX => {
                let why = format!("connection {} of a session, and {CONNECTIONS_MAX} are allowed", resumes.connection);
                return refused(why);
            }
            Some(resumes) if resumes.incarnation != self.incarnation => {
                return refused("the theater was restarted".to_owned());
            }
            Some(Resume { connection, link, .. }) => Asks::Again { connection, number: hello.link, link },
            None if self.leaving.load(Ordering::Relaxed) => return refused("it is closing".to_owned()),
            None => Asks::First {
                knows: hello.knows.contains(&self.incarnation),
                has_lost: hello.lost.contains(&self.incarnation),
                number: hello.link,
            },
        };
        let calls = hello.listens.is_some_and(|address| links.calling.contains_key(&address));
        let is_lower = self.incarnation < hello.incarnation;
        if let Some(known) = links.by_incarnation.get_mut(&hello.incarnation).filter(|known| !known.link.is_lost()) {
            let answer = known.calls.answer(known.sight(), asks, calls, is_lower);
            let (link, connection) = (Arc::clone(&known.link), known.calls.connection);
            link.note_remote_number(known.calls.known_as);
            let hello_of_link = || Hello { link: Some(link.number()), ..self.hello(None) };
            match answer {
                Answer::Busy => return (Reply::Busy, None),
                Answer::Another => return refused("the theaters have another link by now".to_owned()),
                Answer::Known => return (Reply::Hello(hello_of_link()), None),
                Answer::GoOn => {
                    known.terminated = None;
                    let received = link.prepare(connection);
                    let theirs = Resume { incarnation: hello.incarnation, received, connection, link: None };
                    let has_received = hello.resumes.map_or(0, |resumes| resumes.received);
                    let hello = Hello { link: Some(link.number()), ..self.hello(Some(theirs)) };
                    return (Reply::Hello(hello), Some((link, connection, has_received)));
                }
                Answer::Adopt => {
                    known.terminated = None;
                    link.prepare(connection);
                    return (Reply::Hello(hello_of_link()), Some((link, connection, 0)));
                }
                Answer::Lose | Answer::Make | Answer::GivenUp => {}
            }
        }
        if let Some(known) = links.by_incarnation.remove(&hello.incarnation) {
            // The other end has given the link up. Another one may be made before the lock is held again.
            drop(links);
            known.link.lose();
            return self.receive_hello(hello, certificate);
        }
        let without = Without {
            calls,
            lost: self.directory.lost_link(hello.incarnation),
            is_forgetting: self.directory.is_forgetting(hello.incarnation),
        };
        match calling::answer_without(asks, without, is_lower) {
            Answer::Make => {}
            Answer::GivenUp => return (Reply::GivenUp(self.incarnation), None),
            _ => return (Reply::Busy, None),
        }
        let given_up = match links.make_room() {
            Ok(given_up) => given_up,
            Err(why) => return refused(why),
        };
        let number = links.number();
        let link = self.new_link(&mut links, number, hello, None, certificate);
        drop(links);
        given_up.inspect(|link| link.lose());
        (Reply::Hello(Hello { link: Some(number), ..self.hello(None) }), Some((link, 1, 0)))
    }
}
