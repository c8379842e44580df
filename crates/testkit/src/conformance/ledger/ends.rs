//! The rule of watches that end.

use std::time::{Duration, Instant};

use super::{Calls, SharedStorage, done};
use crate::conformance::Rule;

/// The time without a call after which the calls have ended.
const QUIET: Duration = Duration::from_millis(300);

/// The number of changes in a row without a call to the dropped watch, which other watches were told of.
const QUIET_CHANGES: u32 = 5;

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
        let begin = Instant::now();
        let (mut last_call, mut quiet_changes) = (begin, 0);
        while last_call.elapsed() < QUIET || quiet_changes < QUIET_CHANGES {
            other.clear();
            expected = done("a save", ledger.save("key", expected, b""))?;
            other.wait("after a save, for the watch that goes on")?;
            quiet_changes += 1;
            if calls.try_iter().count() > 0 {
                if begin.elapsed() > limit {
                    return Err(format!("a watch was dropped, and is still called for the changes after {limit:?}"));
                }
                (last_call, quiet_changes) = (Instant::now(), 0);
            }
        }
        Ok(())
    },
};
