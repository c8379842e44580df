//! The background work of a theater, and its waiting. Outside of simulations they use threads and the system's clock. In a
//! simulation nothing blocks, and the driver does the work.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use playhouse_executor::SystemCore;

use crate::error::TheaterError;
use crate::link::node::{Callee, TakeLink};
use crate::node::call_peer::{only_busy, plain};
use crate::node::core::TheaterCore;
use crate::node::environment::{Environment, OnReply};
use crate::node::links::{Called, TICK};

/// Number of calls of a theater that answers each time that it is calling by itself.
const BUSY_MAX: u32 = 200;

impl TheaterCore {
    /// Returns the system's time, which all decisions are based on.
    pub(crate) fn now(&self) -> Duration {
        self.system.now()
    }

    /// Returns the system if it is a simulated one.
    pub(crate) fn simulated(&self) -> Option<&Arc<SystemCore>> {
        self.outside.as_ref().map(|_| self.system.core())
    }

    /// Runs `job` in the background; it may block. In simulation it must not block, because the driver runs it.
    pub(crate) fn in_background(&self, name: &str, job: impl FnOnce() + Send + 'static) -> io::Result<()> {
        match &self.outside {
            None => std::thread::Builder::new().name(format!("playhouse-{name}")).spawn(job).map(drop),
            Some(outside) => {
                outside.later(Duration::ZERO, Box::new(job));
                Ok(())
            }
        }
    }

    /// Calls `job` in the background, again and again, with a pause of `every`, until it returns that it is done.
    pub(crate) fn until_done(
        &self,
        name: &str,
        every: Duration,
        mut job: impl FnMut() -> bool + Send + 'static,
    ) -> io::Result<()> {
        let Some(outside) = &self.outside else {
            return self.in_background(name, move || {
                while !job() {
                    std::thread::sleep(every);
                }
            });
        };
        fn again(outside: Arc<dyn Environment>, every: Duration, mut job: Box<dyn FnMut() -> bool + Send>) {
            if !job() {
                let next = Arc::clone(&outside);
                outside.later(every, Box::new(move || again(next, every, job)));
            }
        }
        let (next, job) = (Arc::clone(outside), Box::new(job));
        self.in_background(name, move || again(next, every, job))
    }

    /// Waits until `deadline` for a value from `from`.
    pub(crate) fn receive<T>(&self, from: &Receiver<T>, deadline: Duration) -> Option<T> {
        let Some(system) = self.simulated() else {
            return from.recv_timeout(deadline.saturating_sub(self.now())).ok();
        };
        let mut received = None;
        system.block_until(None, &mut || match from.try_recv() {
            Ok(found) => received.replace(found).is_none(),
            Err(TryRecvError::Disconnected) => true,
            Err(TryRecvError::Empty) => self.now() >= deadline,
        });
        received
    }

    /// Waits for some milliseconds.
    pub(crate) fn pause(&self, time: Duration) {
        let Some(system) = self.simulated() else { return std::thread::sleep(time) };
        let until = self.now() + time;
        system.block_until(None, &mut || self.now() >= until);
    }

    /// Does the same as [`TheaterCore::link_with`] in the background, for callers that must not block in simulation.
    pub(crate) fn reach(self: &Arc<Self>, callee: impl Into<Callee>, take: TakeLink) {
        let callee = callee.into();
        match &self.outside {
            None => take(self.link_with(callee)),
            Some(_) if !self.settings.secrecy.allows(callee.address) => {
                take(Err(TheaterError::NotLoopback { address: callee.address.to_string() }));
            }
            Some(outside) => self.reach_in(BUSY_MAX, callee, outside, take),
        }
    }

    /// The work of [`TheaterCore::link_with`] in steps, for a simulation.
    fn reach_in(self: &Arc<Self>, turns: u32, callee: Callee, outside: &Arc<dyn Environment>, take: TakeLink) {
        let address = callee.address;
        let (theater_core, next) = (Arc::clone(self), Arc::clone(outside));
        let again = move |take| {
            let there = Arc::clone(&next);
            next.later(TICK, Box::new(move || theater_core.reach_in(turns.saturating_sub(1), callee, &there, take)));
        };
        let mut links = self.links();
        if let Some(link) = links.at(callee).map(Arc::clone) {
            drop(links);
            return take(Ok(link));
        }
        // Relaxed: it is read under the lock of the links.
        if self.calls_no_more.load(Ordering::Relaxed) {
            drop(links);
            return take(Err(TheaterError::System("this theater is closing".to_owned())));
        }
        if links.calling.contains_key(&address) {
            drop(links);
            return again(take);
        }
        links.calling.insert(address, Called::default());
        drop(links);
        let (theater_core, hello) = (Arc::clone(self), self.first_hello());
        let said = hello.clone();
        let on_reply: OnReply = Box::new(move |reply| {
            let called = theater_core.called(address, &said, reply.map(plain));
            theater_core.links().calling.remove(&address);
            match called {
                Ok(Some(link)) => take(Ok(link)),
                Ok(None) if turns > 0 => again(take),
                Ok(None) => take(Err(only_busy(address))),
                Err(error) => take(Err(error)),
            }
        });
        outside.call(address, hello, on_reply);
    }
}
