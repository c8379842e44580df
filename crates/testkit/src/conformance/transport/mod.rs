//! The suite for [transports](Transport): the properties that theaters rely on.
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

/// The time after which an undecided rule is broken.
const RULE_TIME_MAX: Duration = Duration::from_secs(60);
/// The longest wait for an expected event.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// The wait for an event that must not happen.
const SHORT_WAIT: Duration = Duration::from_millis(50);
/// More bytes than an unread wire holds.
const WIRE_BYTES_MAX: usize = 1 << 30;
/// The number of bytes in each direction.
const STREAM_BYTES: usize = 8 << 20;

type Outcome = Result<(), String>;

/// The rules, in the order in which they are tried.
pub const RULES: [Rule<Subject>; 20] = [
    Rule { name: "free ports", says: "port 0 stands for a free port, which the listener reports", check: free_ports },
    Rule { name: "in use", says: "an address in use is refused", check: in_use },
    Rule { name: "given back", says: "a dropped listener stops listening", check: given_back },
    Rule { name: "nobody", says: "a connection to an address without a listener is an error", check: nobody },
    Rule { name: "no caller", says: "`accept` without a connection reports that it would block", check: no_caller },
    Rule { name: "a caller", says: "the listener's registration reports connections", check: caller },
    Rule { name: "bytes", says: "bytes arrive in order, in both directions at once", check: bytes },
    Rule { name: "apart", says: "connections are kept apart", check: apart },
    Rule { name: "limits", says: "reads and writes keep their time limit", check: limits },
    Rule { name: "would block", says: "a non-blocking call reports that it would block", check: would_block },
    Rule { name: "something to read", says: "the wire's registration reports bytes to read", check: readable },
    Rule {
        name: "short reads",
        says: "after a short read, nothing else has come, or the registration reports it",
        check: short_reads,
    },
    Rule { name: "room to write", says: "the wire's registration reports room to write", check: writable },
    Rule { name: "the end is told", says: "the wire's registration reports the end", check: end_is_told },
    Rule { name: "half an end", says: "one direction ends alone", check: half },
    Rule { name: "the rest", says: "written bytes arrive before the end", check: rest },
    Rule { name: "woken", says: "a shutdown wakes a blocked read", check: woken },
    Rule { name: "theaters talk", says: "theaters exchange messages, and actors migrate", check: theaters::talk },
    Rule { name: "theaters go on", says: "theaters go on where connections break", check: theaters::go_on },
    Rule { name: "theaters end", says: "a theater that ends gives its address back", check: theaters::end },
];

/// Tries all rules. `make` makes the transports of the theaters, all of one network. `address` is an address to
/// listen at: an IP address and port 0.
///
/// The suite takes some seconds, opens a few dozen connections, and transfers about 100 MiB. A rule that is undecided
/// after 1 minute is broken.
pub fn check<T: Transport>(address: &str, make: impl Fn() -> T + Send + Sync + 'static) -> Report {
    let subject = Subject::new(address, make);
    Report::of("transport", &RULES, subject, RULE_TIME_MAX)
}
