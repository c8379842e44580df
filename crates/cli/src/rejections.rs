//! The log of rejected callers: a line for each source and cause, and a count of the repetitions.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use playhouse::TheaterError;
use tracing::{debug, warn};

/// The time between two lines of one source and cause.
const REPEAT_AFTER: Duration = Duration::from_secs(600);
/// Maximum number of sources and causes in that time. A caller may invent causes, and must not fill the log.
const CAUSES_MAX: usize = 100;

/// The rejections that were logged.
#[derive(Default)]
pub struct Rejections(Mutex<HashMap<String, Logged>>);

struct Logged {
    at: Instant,
    /// The number of rejections since then.
    since: u64,
}

impl Rejections {
    /// Logs a rejection, if it is new or was not logged for a while.
    pub fn log(&self, error: &TheaterError) {
        let reason = &*error.to_string();
        match self.note(Instant::now(), cause(error)) {
            Some(0) => warn!(reason, "peer rejected"),
            Some(before) => warn!(reason, before, "peer rejected"),
            None => debug!(reason, "peer rejected again"),
        }
    }

    /// Returns the number of rejections that were not logged, if this one is to be logged.
    fn note(&self, now: Instant, cause: String) -> Option<u64> {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = logged.get_mut(&cause) {
            if now - known.at < REPEAT_AFTER {
                known.since += 1;
                return None;
            }
            known.at = now;
            return Some(std::mem::take(&mut known.since));
        }
        if logged.len() >= CAUSES_MAX {
            logged.retain(|_, known| now - known.at < REPEAT_AFTER);
        }
        (logged.len() < CAUSES_MAX).then(|| {
            logged.insert(cause, Logged { at: now, since: 0 });
            0
        })
    }
}

/// Returns the text of the error without the port of the caller, which each call changes.
fn cause(error: &TheaterError) -> String {
    let text = error.to_string();
    let (TheaterError::Protocol { address, .. }
    | TheaterError::Refused { address, .. }
    | TheaterError::Tls { address, .. }
    | TheaterError::NotMember { address, .. }) = error
    else {
        return text;
    };
    match address.parse::<SocketAddr>() {
        Ok(parsed) => text.replace(address, &parsed.ip().to_string()),
        Err(_) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn not_member(address: &str, why: &str) -> String {
        cause(&TheaterError::NotMember { address: address.to_owned(), why: why.to_owned() })
    }

    #[test]
    fn a_cause_is_logged_once_for_each_source_and_again_after_a_time_with_the_number_in_between() {
        let (rejections, start) = (Rejections::default(), Instant::now());
        let note = |address: &str, why: &str, after| rejections.note(start + after, not_member(address, why));
        assert_eq!(note("192.0.2.1:1", "a cookie", Duration::ZERO), Some(0));
        for port in 2..10 {
            assert_eq!(note(&format!("192.0.2.1:{port}"), "a cookie", Duration::from_secs(port)), None);
        }
        assert_eq!(note("192.0.2.1:1", "a cluster", Duration::from_secs(1)), Some(0));
        assert_eq!(note("192.0.2.2:1", "a cookie", Duration::from_secs(1)), Some(0));
        assert_eq!(note("192.0.2.1:1", "a cookie", REPEAT_AFTER), Some(8));
        assert_eq!(note("192.0.2.1:1", "a cookie", REPEAT_AFTER), None);
    }

    #[test]
    fn callers_that_invent_causes_do_not_fill_the_log() {
        let (rejections, start) = (Rejections::default(), Instant::now());
        let logged = |after| {
            let address = "192.0.2.1:1";
            let note = |number: usize| rejections.note(start + after, not_member(address, &number.to_string()));
            (0..10 * CAUSES_MAX).filter(|number| note(*number).is_some()).count()
        };
        assert_eq!(logged(Duration::ZERO), CAUSES_MAX);
        assert_eq!(logged(REPEAT_AFTER), CAUSES_MAX);
    }
}
