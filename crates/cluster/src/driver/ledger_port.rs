//! The requests to the ledger, on threads that may block.
//!
//! At most one read and one write run at a time. A request that finds the former one unfinished fails at once, so that a ledger that hangs holds two
//! threads and no more. No part of a shutdown waits for these threads, or for the end of the watch and of the ledger.

use std::any::Any;
use std::collections::BTreeSet;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use playhouse_actor::{ActorRef, System};
use playhouse_toolbox::durable::{Ledger, LedgerWatch, StoreError};
use playhouse_toolbox::resource::{Job, ResourcePool};

use super::member::{Event, MemberActor};
use crate::membership::{Outcome, ReadError, RequestId, Stored};
use crate::view::{MemberId, View};

/// The key of the view.
const KEY: &str = "playhouse/view";
/// The threads: one for the read, one for the write, one for the start of the watch.
const THREADS: usize = 3;
/// The shortest and the longest time of a request in a simulation: those of a network.
const SIMULATED: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(20)];

/// The requests to one ledger.
pub(super) struct LedgerPort {
    /// `None` when the port ends.
    ledger: Option<Arc<dyn Ledger>>,
    pool: ResourcePool,
    is_simulated: bool,
    /// A job that is dropped is cancelled.
    read: Option<Job<()>>,
    write: Option<Job<()>>,
    watch: Watching,
    /// The kinds of requests of which the last one has failed.
    failing: BTreeSet<&'static str>,
}

enum Watching {
    No,
    Begins { _job: Job<()> },
    Yes { _watch: LedgerWatch },
}

impl LedgerPort {
    /// # Errors
    /// The threads could not be started.
    pub(super) fn new(system: &System, ledger: Arc<dyn Ledger>) -> io::Result<LedgerPort> {
        let pool = ResourcePool::start(system, THREADS, THREADS)?;
        pool.simulate_times(SIMULATED[0], SIMULATED[1]);
        let (ledger, is_simulated) = (Some(ledger), system.core().is_simulated());
        Ok(LedgerPort {
            ledger,
            pool,
            is_simulated,
            read: None,
            write: None,
            watch: Watching::No,
            failing: BTreeSet::new(),
        })
    }

    /// Runs `request` on a thread, and tells the actor the event. Returns `None` if there is no thread.
    fn run(
        &self,
        this: ActorRef<MemberActor>,
        request: impl FnOnce(&dyn Ledger) -> Event + Send + 'static,
    ) -> Option<Job<()>> {
        let ledger = Arc::clone(self.ledger.as_ref()?);
        self.pool.try_run(move |_| this.tell(request(&*ledger))).ok()
    }

    /// Reads the view. Returns `false` if a read is running.
    pub(super) fn read(&mut self, by: MemberId, id: RequestId, this: ActorRef<MemberActor>) -> bool {
        if self.read.is_none() {
            self.read = self.run(this, move |ledger| Event::Read { by, id, result: load(ledger) });
            return self.read.is_some();
        }
        false
    }

    /// Writes the view. Returns `false` if a write is running.
    pub(super) fn write(
        &mut self,
        by: MemberId,
        id: RequestId,
        expected: u64,
        view: Arc<View>,
        this: ActorRef<MemberActor>,
    ) -> bool {
        if self.write.is_none() {
            self.write = self.run(this, move |ledger| Event::Wrote {
                by,
                id,
                result: contained(|| ledger.save(KEY, expected, &view.encode())),
            });
            return self.write.is_some();
        }
        false
    }

    /// Notes that the read has ended.
    pub(super) fn has_read(&mut self, result: Result<Option<Stored>, Failure>) -> Result<Option<Stored>, ReadError> {
        self.read = None;
        self.note("read", result.as_ref().err());
        result.map_err(|_| ReadError)
    }

    /// Notes that the write has ended.
    pub(super) fn has_written(&mut self, result: Result<u64, Failure>) -> Outcome {
        self.write = None;
        let is_conflict = matches!(result, Err(Failure::Store(StoreError::Conflict { .. })));
        self.note("write", result.as_ref().err().filter(|_| !is_conflict));
        match result {
            Ok(revision) => Outcome::Written { revision },
            Err(_) if is_conflict => Outcome::Conflict,
            // Errors other than `Io` change nothing. The machine reads after each of them, so that they need no outcome of their own.
            Err(_) => Outcome::Unknown,
        }
    }

    /// Logs that requests of one kind begin to fail, or succeed again. A full disk lets reads succeed between failed writes.
    fn note(&mut self, request: &'static str, error: Option<&Failure>) {
        match error {
            Some(error) if self.failing.insert(request) => {
                tracing::warn!(request, %error, "requests to the ledger fail");
            }
            None if self.failing.remove(request) => tracing::info!(request, "the ledger answers again"),
            _ => {}
        }
    }

    /// Begins to watch, if that has not begun.
    pub(super) fn watch(&mut self, this: ActorRef<MemberActor>) {
        if let Watching::No = self.watch {
            let begin = move |ledger: &dyn Ledger| {
                let changed = Box::new(move || _ = this.try_tell(Event::Changed));
                Event::Watches(contained(|| ledger.watch(KEY, changed)))
            };
            if let Some(job) = self.run(this, begin) {
                self.watch = Watching::Begins { _job: job };
            }
        }
    }

    /// Notes the result of a watch. Without one, the next [`LedgerPort::watch`] tries again.
    pub(super) fn watches(&mut self, watch: Result<LedgerWatch, Failure>) {
        self.note("watch", watch.as_ref().err());
        self.watch = watch.map_or(Watching::No, |watch| Watching::Yes { _watch: watch });
    }
}

impl Drop for LedgerPort {
    /// The ends of a watch and of a ledger may wait for a disk or a server.
    fn drop(&mut self) {
        let end = (std::mem::replace(&mut self.watch, Watching::No), self.ledger.take());
        if !self.is_simulated {
            // Without a thread, the error drops them.
            let _ = std::thread::Builder::new().name("playhouse-ledger-end".to_owned()).spawn(move || drop(end));
        }
    }
}

/// An error of the ledger, or of its code.
pub(super) enum Failure {
    Store(StoreError),
    Text(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Store(error) => error.fmt(f),
            Failure::Text(text) => f.write_str(text),
        }
    }
}

/// Calls the ledger. A panic of its code is an error.
fn contained<R>(call: impl FnOnce() -> Result<R, StoreError>) -> Result<R, Failure> {
    let text = |panic: Box<dyn Any + Send>| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
    };
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(Failure::Store),
        Err(panic) => Err(Failure::Text(format!("it has panicked: {}", text(panic)))),
    }
}

fn load(ledger: &dyn Ledger) -> Result<Option<Stored>, Failure> {
    let Some(saved) = contained(|| ledger.load(KEY))? else { return Ok(None) };
    let view = View::decode(&saved.bytes).map_err(|error| Failure::Text(error.to_string()))?;
    Ok(Some(Stored { view: Arc::new(view), revision: saved.revision }))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use playhouse_toolbox::durable::MemoryStore;
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Level, Metadata};

    use super::*;

    /// Collects the levels of the lines.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<Level>>>);

    impl tracing::Subscriber for Lines {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            self.0.lock().unwrap().push(*event.metadata().level());
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    // GUARANTEE: A ledger that hangs or fails
    #[test]
    fn requests_that_fail_for_long_log_one_line_although_others_succeed() {
        let system = System::start().unwrap();
        let mut port = LedgerPort::new(&system, Arc::new(MemoryStore::new())).unwrap();
        let failure = || Failure::Text("the disk is full".to_owned());
        let lines = Lines::default();
        tracing::subscriber::with_default(lines.clone(), || {
            for _ in 0..100 {
                assert_eq!(port.has_read(Ok(None)), Ok(None));
                assert_eq!(port.has_written(Err(failure())), Outcome::Unknown);
                port.watches(Err(failure()));
            }
            assert_eq!(*lines.0.lock().unwrap(), [Level::WARN; 2]);
            let conflict = StoreError::Conflict { key: KEY.to_owned(), expected: 1, found: 2 };
            assert_eq!(port.has_written(Err(Failure::Store(conflict))), Outcome::Conflict);
            assert_eq!(*lines.0.lock().unwrap(), [Level::WARN, Level::WARN, Level::INFO]);
        });
        system.shutdown().unwrap();
    }
}
