//! Pure decisions: no thread, no clock, no atomic. The workers call them between two gulps.
//!
//! All times are in nanoseconds. The work that waits is estimated as the number of messages times the estimated time of the next messages.
//!
//! # Why work is given away
//!
//! A busy worker gives about half of its work to an idle one as soon as that half takes longer than the hand-over. A hand-over to a
//! *watching* worker, which spins, costs a few cache misses. A hand-over to a *parked* worker costs a wake-up, which is measured at the
//! start ([`super::costs`]). A worker that has just received work gives half of that to the next idle worker after its own next gulp. The
//! number of workers with a part of a burst therefore doubles with each step.
//!
//! # Why a worker adopts stages instead
//!
//! Two actors that take turns are fastest on one worker. A worker that is about to send to an idle one *adopts* the receivers' stages if
//! its own backlog would end before the other worker had begun. One worker then loses no time against two.

/// The work of a gulp, by estimate. A message to another worker waits about this long before it is handed over.
const GULP_NS: u64 = 20_000;
/// The work of a gulp while a worker is idle.
const GULP_NS_WITH_IDLE: u64 = 4_000;
/// Work between two looks at the clock, by estimate.
const LOOK_NS: u64 = 10_000;
/// The largest number of messages between two looks at the clock.
const LOOK_MESSAGES_MAX: u64 = 2048;
/// Messages that take less than this are *fine*: the hand-over of one to another core costs about as much as its handler.
const FINE_NS: u64 = 100;
/// Messages that take at least this long are timed in each gulp.
const TIMED_NS: u64 = 1_000;
/// A larger backlog of fine messages is worth a second worker. A worker with a smaller one adopts the stages that it sends fine messages
/// to.
const WORTH_SHARING_FINE_NS: u64 = 50_000;
/// The work that is worth a hand-over between two running workers: twice the cost of one hand-over with cold caches.
const WORTH_HANDOVER_NS: u64 = 6_000;
/// A backlog above this is worth a wake-up if it was there at every look for [`LASTING_NS`]. The backlog of 100 tokens that go round for
/// ever is small at any moment.
const WORTH_LASTING_NS: u64 = 4_000;
/// The same for fine messages. Independent rings gain by a second worker, and other programs do not. The worker therefore makes a trial.
const LASTING_FINE_NS: u64 = 200;
pub(crate) const LASTING_NS: u64 = 1_000_000;
const TRIAL_NS_MAX: u64 = 1_000_000_000;
/// The least time of a trial in nanoseconds. The first checkup after that ends the trial.
pub(crate) const TRIAL_TAKES_NS: u64 = 100_000;
/// The largest number of called workers that a worker wakes between two gulps. The worker also wakes 1 parked receiver of its own mail per
/// gulp. Awake workers wake the others, and the number of awake workers therefore grows exponentially.
pub(crate) const WAKES: usize = 2;
/// The largest number of the sender's gulps between two messages of actors that take turns. About 3 are usual.
const TURN_GULPS: u64 = 8;
/// The largest number of messages that the sender handles between two messages of actors that take turns.
const TURN_MESSAGES: u64 = 2;
/// A worker finishes a backlog below this before a watching worker has fetched its mail.
const HANDOVER_NS: u64 = 400;

/// The victim's pause after a look through its queue that was in vain or moved fine messages, as a multiple of the look's time.
pub(crate) const PAUSE_FACTOR: u64 = 16;

/// The kinds of idle workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Idle {
    /// It spins and sees its mail at once.
    Watching,
    /// It sleeps and must be woken.
    Parked,
}

/// Returns the largest number of messages in the next gulp.
pub(crate) fn gulp_messages(average_ns: u64, some_idle: bool, throughput: u64) -> u64 {
    let gulp_ns = if some_idle { GULP_NS_WITH_IDLE } else { GULP_NS };
    (gulp_ns / average_ns.max(1)).clamp(1, throughput)
}

/// Returns the number of messages until the next look at the clock.
pub(crate) fn look_messages(average_ns: u64) -> u64 {
    (LOOK_NS / average_ns.max(1)).clamp(1, LOOK_MESSAGES_MAX)
}

/// Work that waits at a worker, by estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Backlog {
    /// The time of all messages in nanoseconds.
    pub(crate) ns: u64,
    /// The average time of a message in nanoseconds.
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

/// Returns whether the worker times the first message of this gulp. It times long messages in each gulp, and short ones in 1 of 8 gulps. It
/// never times fine messages, because 2 looks at the clock take as long as a fine message.
pub(crate) fn times_message(next_ns: u64, gulp: u64) -> bool {
    next_ns >= TIMED_NS || (next_ns >= FINE_NS && gulp.is_multiple_of(8))
}

/// Returns whether work is worth sharing with an idle worker. The work was there at every look for `lasts_ns`.
pub(crate) fn is_worth_sharing(waiting: Backlog, lasts_ns: u64, idle: Idle, wake_ns: u64) -> bool {
    let waiting_ns = waiting.ns;
    match idle {
        _ if waiting.is_fine() => {
            waiting_ns > WORTH_SHARING_FINE_NS || (waiting_ns > LASTING_FINE_NS && lasts_ns > LASTING_NS)
        }
        Idle::Watching => waiting_ns > WORTH_HANDOVER_NS,
        // Half of the work goes to the other worker, and that half has to take longer than the wake-up.
        Idle::Parked => waiting_ns > 2 * wake_ns || (waiting_ns > WORTH_LASTING_NS && lasts_ns > LASTING_NS),
    }
}

/// Returns whether a trial of fine work was in vain: more than 1 of 32 messages cross between the workers, and a message takes more than
/// 1.5 times as long as before. Two workers then do little more than one.
pub(crate) fn was_in_vain(handled: u64, crossed: u64, before_ns: u64, ns: u64) -> bool {
    crossed * 32 > handled && ns * 2 > before_ns * 3
}

/// Returns the nanoseconds that fine work has to last until the next trial. Each trial in vain makes this time 4 times as long, up to 1 s.
pub(crate) fn trial_ns(before_ns: u64, in_vain: bool) -> u64 {
    if in_vain { (before_ns * 4).min(TRIAL_NS_MAX) } else { LASTING_NS }
}

/// Returns whether an idle worker asks a busy worker for work, which ends the busy worker's gulp. `shown` is the backlog that the busy
/// worker showed before that gulp.
pub(crate) fn asks(shown: Backlog) -> bool {
    is_worth_sharing(shown, 0, Idle::Watching, 0)
}

/// Returns whether a worker that hands mail to a watching worker takes turns with it. `gulps` counts the sender's gulps since it last
/// handed mail to a watching worker. `messages` counts the messages that the sender has handled since its own last idle time.
pub(crate) fn takes_turns(gulps: u64, messages: u64) -> bool {
    gulps <= TURN_GULPS && messages <= TURN_MESSAGES
}

/// Returns whether a worker adopts the receivers' stages from an idle worker instead of handing mail to it.
///
/// `own` is the worker's backlog, with the average time of the messages that it sends. With `cores_busy`, as many workers run as there are
/// cores, and a woken worker would only displace another one. `takes_turns` is the result of [`takes_turns`]. A worker that sends one
/// answer for each 100 messages does not take turns, and adopts no stage of a watching worker.
pub(crate) fn adopts(own: Backlog, idle: Idle, wake_ns: u64, cores_busy: bool, takes_turns: bool) -> bool {
    match idle {
        _ if own.is_fine() => own.ns <= WORTH_SHARING_FINE_NS,
        Idle::Watching => takes_turns && own.ns <= HANDOVER_NS,
        Idle::Parked => cores_busy || own.ns <= wake_ns,
    }
}

/// Returns the stages to give away. `stages` holds `(work, stage)` pairs. About half of the work stays.
///
/// The stage with the most work stays, and a single stage therefore never moves to and fro.
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
    fn a_watching_worker_keeps_its_stages_if_it_gets_mail_only_now_and_then() {
        for (gulps, messages) in [(20, 1), (3, 100)] {
            assert!(!adopts(backlog(0), Idle::Watching, 10_000, false, takes_turns(gulps, messages)));
            assert!(adopts(backlog(0), Idle::Parked, 10_000, false, takes_turns(gulps, messages)));
        }
    }

    #[test]
    fn fine_messages_stay_on_their_worker_unless_many_wait() {
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
