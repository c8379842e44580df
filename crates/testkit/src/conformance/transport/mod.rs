//! The suite for [transports](Transport): what theaters rely on.
//!
//! ```
//! use playhouse::transport::Tcp;
//! use playhouse_testkit::conformance::transport;
//!
//! transport::check("127.0.0.1:0", || Tcp).assert_all_kept();
//! ```

mod addresses;
mod bytes;
mod ends;
#[cfg(all(test, unix))]
mod faulty;
mod readiness;
mod subject;
mod theaters;
mod waiting;
mod watch;

use std::time::Duration;

use playhouse::transport::Transport;

use self::addresses::{caller, free_ports, given_back, in_use, no_caller, nobody};
use self::bytes::{apart, bytes};
use self::ends::{half, rest, woken};
use self::readiness::{end_is_told, readable, short_reads, writable};
pub use self::subject::Subject;
use self::waiting::{limits, would_block};
use super::{Report, Rule};

/// A rule that is not decided after so long is broken.
const RULE_TIME_MAX: Duration = Duration::from_secs(60);
/// So long is waited where the wait is to end.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// So long is waited where nothing is to come.
const SHORT_WAIT: Duration = Duration::from_millis(50);
/// More than a wire holds that nobody reads from.
const WIRE_BYTES_MAX: usize = 1 << 30;
/// What is sent in each direction.
const STREAM_BYTES: usize = 8 << 20;

type Outcome = Result<(), String>;

/// The rules, in the order in which they are tried.
pub const RULES: [Rule<Subject>; 20] = [
    Rule {
        name: "free ports",
        says: "port 0 stands for a port that is free, which the listener tells",
        check: free_ports,
    },
    Rule { name: "in use", says: "an address in use is refused", check: in_use },
    Rule { name: "given back", says: "who is dropped listens no more", check: given_back },
    Rule { name: "nobody", says: "nobody there is an error", check: nobody },
    Rule { name: "no caller", says: "who hears callers is told that there is none", check: no_caller },
    Rule { name: "a caller", says: "what the listener registers tells of callers", check: caller },
    Rule { name: "bytes", says: "bytes come in order, both ways at once", check: bytes },
    Rule { name: "apart", says: "connections are kept apart", check: apart },
    Rule { name: "limits", says: "reads and writes keep their limit", check: limits },
    Rule { name: "would block", says: "who does not block is told that it would", check: would_block },
    Rule { name: "something to read", says: "what is registered tells of what has come", check: readable },
    Rule {
        name: "short reads",
        says: "where less is read than there is room for, nothing else has come, or it is told",
        check: short_reads,
    },
    Rule { name: "room to write", says: "what is registered tells of room", check: writable },
    Rule { name: "the end is told", says: "what is registered tells of the end", check: end_is_told },
    Rule { name: "half an end", says: "one direction ends alone", check: half },
    Rule { name: "the rest", says: "what was written comes before the end", check: rest },
    Rule { name: "woken", says: "a shutdown wakes who reads", check: woken },
    Rule { name: "theaters talk", says: "theaters talk, and actors move", check: theaters::talk },
    Rule { name: "theaters go on", says: "theaters go on where connections break", check: theaters::go_on },
    Rule { name: "theaters end", says: "a theater that ends gives its address back", check: theaters::end },
];

/// Tries all rules. `make` makes those of the theaters: all of one network, on which one can
/// listen at `address`, an IP address and port 0.
///
/// It takes some seconds. It opens a few dozen connections, and carries about 100 MiB. A rule of which nothing has come after a minute
/// is broken.
pub fn check<T: Transport>(address: &str, make: impl Fn() -> T + Send + Sync + 'static) -> Report {
    let subject = Subject::new(address, make);
    Report::of("transport", &RULES, subject, RULE_TIME_MAX)
}
