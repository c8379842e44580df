//! The rule of watches that end.

use std::time::{Duration, Instant};

use super::{Calls, SharedStorage, done};
use crate::conformance::Rule;

/// The time without a call after which the calls have ended.
const QUIET: Duration = Duration::from_millis(300);

pub(super) const ENDS_ALONE: Rule<SharedStorage> = Rule {
    name: "a watch ends alone",
    says: "calls end soon after a watch was dropped, and those of other watches go on",
    check: |storage| {
        let open = (storage.fresh)();
        let ledger = open();
        let (ended, other) = (storage.watch(&*ledger, "key")?, storage.watch(&*ledger, "key")?);
        let mut expected = done("a save", ledger.save("key", 0, b""))?;
        ended.wait("after a save, for the first of two watches")?;
        let Calls { calls, limit, watch } = ended;
        drop(watch);
        let deadline = Instant::now() + limit;
        let mut last_call = Instant::now();
        while last_call.elapsed() < QUIET {
            other.clear();
            expected = done("a save", ledger.save("key", expected, b""))?;
            other.wait("after a save, for the watch that goes on")?;
            if calls.try_iter().count() > 0 {
                last_call = Instant::now();
            }
            if Instant::now() > deadline {
                return Err(format!("a watch was dropped, and is called for the changes of the next {limit:?}"));
            }
        }
        Ok(())
    },
};
