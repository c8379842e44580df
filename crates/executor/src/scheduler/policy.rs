//! Pure decisions: no thread, no clock, no atomic. The workers call them at their boundaries.
//!
//! All times are nanoseconds. The work that waits is estimated as messages times the average time of a message lately.
//!
//! # Why work is given away
//!
//! A busy worker offers about half of its work to an idle one as soon as that half outweighs the cost of the hand-over. The cost of a
//! hand-over to a *watching* worker (it spins) is a few cache misses. The cost for a *parked* worker is a wake-up, which is measured
//! at the start ([`super::costs`]). A worker that has just received work meets the next idle worker at its own next boundary,
//! which makes the spreading of a burst a tree.
//!
//! # Why work is taken over instead
//!
//! Two actors that take turns are fastest on one worker. A worker that is about to send to an idle one *adopts* the receivers' stages
//! where its own backlog would end before the other worker had begun: then nothing is lost by doing it all here.

/// Work between two boundaries: a message for an idle worker waits at most this long, apart from the handler that runs.
const GULP_NS: u64 = 20_000;
/// The same where some worker is idle.
const GULP_NS_WITH_IDLE: u64 = 4_000;
/// Work between two looks at the clock, by estimate.
const LOOK_NS: u64 = 10_000;
/// Messages between two looks at the clock, at most.
const LOOK_MESSAGES_MAX: u64 = 2048;
/// Messages that take less than this are *fine*: to run one on another core costs about as much as to run it.
const FINE_NS: u64 = 100;
/// Messages that take at least this long are timed in each gulp.
const TIMED_NS: u64 = 1_000;
/// A backlog of fine messages that is worth a second worker, and up to which a worker keeps such messages to itself.
const WORTH_SHARING_FINE_NS: u64 = 50_000;
/// Work that is worth a hand-over between two running workers: there and back, with the cold caches of what moves.
const WORTH_HANDOVER_NS: u64 = 6_000;
/// A backlog above this that was there at every look for [`LASTING_NS`] is worth a wake-up, too: a hundred tokens that go round for
/// ever are little at any moment.
const WORTH_LASTING_NS: u64 = 4_000;
/// The same for fine messages, because rings that are independent of each other gain by a second worker. The worker tries it.
const LASTING_FINE_NS: u64 = 200;
pub(crate) const LASTING_NS: u64 = 1_000_000;
const TRIAL_NS_MAX: u64 = 1_000_000_000;
/// Nanoseconds that a trial takes: the first checkup after that ends it.
pub(crate) const TRIAL_TAKES_NS: u64 = 100_000;
/// Parked workers with mail that a worker wakes at a boundary, at most. The worker also wakes 1 receiver itself in each gulp. If it has
/// mail for more, workers that are awake wake them. The time to wake many workers is therefore that of a tree.
pub(crate) const WAKES: usize = 2;
/// Gulps between 2 messages of actors that take turns, at most. About 3 are usual.
const TURN_GULPS: u64 = 8;
/// Messages in that time, on each side, at most.
const TURN_MESSAGES: u64 = 2;
/// A backlog below this is finished before a watching worker has fetched its mail.
const HANDOVER_NS: u64 = 400;

/// An idle worker that could be given work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Idle {
    /// It spins and sees its mail at once.
    Watching,
    /// It sleeps and must be woken.
    Parked,
}

/// Most messages of the next gulp.
pub(crate) fn gulp_messages(average_ns: u64, some_idle: bool, throughput: u64) -> u64 {
    let gulp_ns = if some_idle { GULP_NS_WITH_IDLE } else { GULP_NS };
    (gulp_ns / average_ns.max(1)).clamp(1, throughput)
}

/// Messages to handle before the clock is read again.
pub(crate) fn look_messages(average_ns: u64) -> u64 {
    (LOOK_NS / average_ns.max(1)).clamp(1, LOOK_MESSAGES_MAX)
}

/// Work that waits at a worker, by estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Backlog {
    /// Nanoseconds that all of it takes.
    pub(crate) ns: u64,
    /// Nanoseconds that a message takes on average.
    pub(crate) average_ns: u64,
}

impl Backlog {
    /// Estimates the work of `messages` messages.
    pub(crate) fn of(messages: u64, average_ns: u64) -> Backlog {
        Backlog { ns: messages * average_ns, average_ns }
    }

    pub(crate) fn is_fine(self) -> bool {
        self.average_ns < FINE_NS
    }
}

/// Returns whether the first message of this gulp is timed by itself. Long messages are timed in each gulp, short ones in 1 of 8 gulps.
/// Fine messages are never timed, because 2 looks at the clock take as long as a fine message.
pub(crate) fn times_message(next_ns: u64, gulp: u64) -> bool {
    next_ns >= TIMED_NS || (next_ns >= FINE_NS && gulp.is_multiple_of(8))
}

/// Whether work that was there for `lasts_ns` at every look is worth sharing with an idle worker.
pub(crate) fn is_worth_sharing(waiting: Backlog, lasts_ns: u64, idle: Idle, wake_ns: u64) -> bool {
    let waiting_ns = waiting.ns;
    match idle {
        _ if waiting.is_fine() => {
            waiting_ns > WORTH_SHARING_FINE_NS || (waiting_ns > LASTING_FINE_NS && lasts_ns > LASTING_NS)
        }
        Idle::Watching => waiting_ns > WORTH_HANDOVER_NS,
        // Half of it goes: that half has to outweigh the wake-up.
        Idle::Parked => waiting_ns > 2 * wake_ns || (waiting_ns > WORTH_LASTING_NS && lasts_ns > LASTING_NS),
    }
}

/// Returns whether a trial of fine work was in vain: many of its messages cross between the workers, and a message takes half as long again as
/// before, or more. Two workers then do little more than one.
pub(crate) fn was_in_vain(handled: u64, crossed: u64, before_ns: u64, ns: u64) -> bool {
    crossed * 32 > handled && ns * 2 > before_ns * 3
}

/// Returns how long fine work has to last after a trial until it is tried on a second worker again. Each trial in vain prolongs this time.
pub(crate) fn trial_ns(before_ns: u64, in_vain: bool) -> u64 {
    if in_vain { (before_ns * 4).min(TRIAL_NS_MAX) } else { LASTING_NS }
}

/// Returns whether an idle worker asks a busy worker to look around at once, which ends the busy worker's gulp. `shown` is the backlog
/// that the busy worker has shown at its last boundary.
pub(crate) fn asks(shown: Backlog) -> bool {
    is_worth_sharing(shown, 0, Idle::Watching, 0)
}

/// Returns whether a worker that hands mail to a watching worker takes turns with it. `gulps` counts the sender's gulps since it last did
/// so. `messages` counts the messages that the sender has run since its own last rest.
pub(crate) fn takes_turns(gulps: u64, messages: u64) -> bool {
    gulps <= TURN_GULPS && messages <= TURN_MESSAGES
}

/// Whether a worker with a backlog of its own takes the receivers' stages over from an idle worker instead of handing mail to it.
///
/// `own` has the average time of the messages that were sent: if they are fine, they are no burden for the sender's worker. `cores_busy`:
/// as many workers run as there are cores, so a worker that is woken only displaces another one. `takes_turns`: the answer of
/// [`takes_turns`]. An answer that comes once in 100 messages therefore moves no stage.
pub(crate) fn adopts(own: Backlog, idle: Idle, wake_ns: u64, cores_busy: bool, takes_turns: bool) -> bool {
    match idle {
        _ if own.is_fine() => own.ns <= WORTH_SHARING_FINE_NS,
        Idle::Watching => takes_turns && own.ns <= HANDOVER_NS,
        Idle::Parked => cores_busy || own.ns <= wake_ns,
    }
}

/// Splits stages by the work that waits for each: the ones to give away. Takes `(work, stage)`, keeps about half.
///
/// The largest is kept, so a single stage never moves to and fro.
pub(crate) fn split(stages: &mut Vec<(u64, u16)>) -> Vec<u16> {
    stages.sort_unstable_by(|a, b| b.cmp(a));
    let (mut keep, mut give, mut given) = (0, 0, Vec::new());
    for (work, stage) in stages.drain(..) {
        if keep <= give {
            keep += work;
        } else {
            give += work;
            given.push(stage);
        }
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gulps_are_short_in_time_whatever_a_message_takes() {
        assert_eq!(gulp_messages(3, false, 512), 512);
        assert_eq!(gulp_messages(1_000, false, 512), 20);
        assert_eq!(gulp_messages(1_000, true, 512), 4);
        assert_eq!(gulp_messages(1_000_000, true, 512), 1);
        assert_eq!(gulp_messages(0, false, 7), 7);
    }

    #[test]
    fn the_clock_is_read_by_work_and_not_by_messages() {
        assert_eq!((look_messages(3), look_messages(1_000), look_messages(1 << 40)), (2048, 10, 1));
    }

    fn backlog(ns: u64) -> Backlog {
        Backlog { ns, average_ns: 1_000 }
    }

    #[test]
    fn a_parked_worker_is_woken_for_more_work_than_a_wake_up_costs() {
        let wake_ns = 10_000;
        let shares = |ns, lasts_ns, idle| is_worth_sharing(backlog(ns), lasts_ns, idle, wake_ns);
        assert!(!shares(15_000, 0, Idle::Parked));
        assert!(shares(25_000, 0, Idle::Parked));
        assert!(shares(5_000, 2_000_000, Idle::Parked), "little, but for ever");
        assert!(shares(15_000, 0, Idle::Watching));
        assert!(!shares(200, 2_000_000, Idle::Parked));
    }

    #[test]
    fn a_worker_adopts_only_while_it_has_nothing_else_to_do() {
        let adopts = |ns, idle, cores_busy| adopts(backlog(ns), idle, 10_000, cores_busy, takes_turns(3, 1));
        assert!(adopts(0, Idle::Watching, false));
        assert!(!adopts(50_000, Idle::Watching, true));
        assert!(!adopts(50_000, Idle::Parked, false));
        assert!(adopts(5_000, Idle::Parked, false));
        assert!(adopts(50_000, Idle::Parked, true), "no core is left for a worker that is woken");
    }

    #[test]
    fn one_that_watches_keeps_its_stages_if_it_gets_mail_now_and_then_only() {
        for (gulps, messages) in [(20, 1), (3, 100)] {
            assert!(!adopts(backlog(0), Idle::Watching, 10_000, false, takes_turns(gulps, messages)));
            assert!(adopts(backlog(0), Idle::Parked, 10_000, false, takes_turns(gulps, messages)));
        }
    }

    #[test]
    fn messages_that_take_no_longer_than_their_way_stay_where_they_are() {
        let fine = |ns| Backlog { ns, average_ns: 30 };
        assert!(!is_worth_sharing(fine(40_000), 0, Idle::Watching, 10_000));
        assert!(is_worth_sharing(fine(60_000), 0, Idle::Watching, 10_000));
        assert!(is_worth_sharing(fine(500), 2_000_000, Idle::Parked, 10_000), "little, but for ever");
        assert!(adopts(fine(40_000), Idle::Watching, 10_000, false, false));
        assert!(!adopts(fine(60_000), Idle::Parked, 10_000, true, true));
    }

    #[test]
    fn trials_that_disturb_become_rare() {
        assert_eq!((0..20).fold(LASTING_NS, |wait_ns, _| trial_ns(wait_ns, true)), 1_000_000_000);
        assert_eq!(trial_ns(1_000_000_000, false), LASTING_NS);
        assert!(was_in_vain(1_000, 125, 6, 10) && !was_in_vain(1_000, 10, 6, 10) && !was_in_vain(1_000, 500, 18, 17));
    }

    #[test]
    fn about_half_of_the_work_is_given_and_the_largest_stage_stays() {
        assert_eq!(split(&mut vec![(1, 4), (5, 7), (2, 9)]), [9, 4]);
        assert_eq!(split(&mut vec![(5, 7)]), []);
        let mut even = (0..10).map(|stage| (3, stage)).collect();
        assert_eq!(split(&mut even).len(), 5);
    }
}
