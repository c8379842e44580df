//! Pure decisions: no thread, no clock, no atomic. The workers call them between two gulps.
//!
//! All times are in nanoseconds. The work that waits is estimated as the number of messages times the estimated time of
//! the next messages.
//!
//! # Why work is given away
//!
//! A busy worker gives a part of its work to an idle one as soon as that part takes longer than the hand-over. A
//! hand-over to a *watching* worker, which spins, costs a few cache misses. A hand-over to a *parked* worker costs a
//! wake-up, which is measured at the start ([`super::costs`]). A worker that has just received work gives a part of
//! that to the next idle worker after its own next gulp. The number of workers with a part of a burst therefore doubles
//! with each step.
//!
//! # How much is given away
//!
//! In a program whose messages go round, each worker is idle now and then, although both have the same load. The first
//! version gave half of the work at each such moment. The stages went to and fro, and in gossip with 100 tokens of 1 µs
//! two workers were 1.5 times as fast as one. Without any stealing, they were 1.8 times as fast. The part is now half
//! of the difference between the idle shares of the two workers ([`super::idle_share`]), as these would be after the
//! waiting work. A worker that was idle for long gets half.
//!
//! # Why a worker adopts stages instead
//!
//! Two actors that take turns are fastest on one worker. A worker that is about to send to an idle one *adopts* the
//! receivers' stages if its own backlog would end before the other worker had begun. One worker then loses no time
//! against two. If both workers together were lately busy for more time than one worker has, it adopts nothing, because
//! they are not idle for long. With short messages it adopts stages all the same until a trial has shown that two
//! workers help ([`crate::scheduler::trial`]).

use super::idle_share::IDLE_WINDOW_NS;

/// The work of a gulp, by estimate. A message to another worker waits about this long before it is handed over.
const GULP_NS: u64 = 20_000;
/// The work of a gulp while a worker is idle.
const GULP_NS_WITH_IDLE: u64 = 4_000;
/// Work between two looks at the clock, by estimate.
const LOOK_NS: u64 = 10_000;
/// The largest number of messages between two looks at the clock.
const LOOK_MESSAGES_MAX: u64 = 2048;
/// Messages that take less than this are *fine*: the hand-over of one to another core costs about as much as its
/// handler.
const FINE_NS: u64 = 100;
/// Messages that take at least this long are timed in each gulp.
const TIMED_NS: u64 = 1_000;
/// A larger backlog of short messages is worth a second worker. A worker with a smaller one adopts the stages that it
/// sends short messages to.
const WORTH_SHARING_SHORT_NS: u64 = 50_000;
/// The work that is worth a hand-over between two running workers: twice the cost of one hand-over with cold caches.
const WORTH_HANDOVER_NS: u64 = 6_000;
/// A backlog above this is worth a wake-up if it was there at every look for [`LASTING_NS`]. The backlog of 100 tokens
/// that go round for ever is small at any moment.
const WORTH_LASTING_NS: u64 = 4_000;
/// The same for short messages.
const LASTING_SHORT_NS: u64 = 200;
const LASTING_NS: u64 = 1_000_000;
/// The largest number of called workers that a worker wakes between two gulps. The worker also wakes 1 parked receiver
/// of its own mail per gulp. Awake workers wake the others, and the number of awake workers therefore grows
/// exponentially.
pub(crate) const WAKES: usize = 2;
/// The largest number of the sender's gulps between two messages of actors that take turns. About 3 are usual.
const TURN_GULPS: u64 = 8;
/// The largest number of messages that the sender handles between two messages of actors that take turns.
const TURN_MESSAGES: u64 = 2;
/// A worker finishes a backlog below this before a watching worker has fetched its mail.
const HANDOVER_NS: u64 = 400;

/// The victim's pause after a look through its queue that was in vain or moved fine messages, as a multiple of the
/// look's time.
pub(crate) const PAUSE_FACTOR: u64 = 16;

/// The kinds of idle workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Idle {
    /// The worker spins and sees its mail at once.
    Watching,
    /// The worker sleeps and must be woken.
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
    /// The messages are short, and no trial has shown that a second worker helps ([`crate::scheduler::trial`]). The
    /// work stays on one worker, unless much of it waits, or some of it for long.
    pub(crate) is_short: bool,
}

/// Returns whether the worker times the first message of this gulp. It times long messages in each gulp, and short ones
/// in 1 of 8 gulps. It never times fine messages, because 2 looks at the clock take as long as a fine message.
pub(crate) fn times_message(next_ns: u64, gulp: u64) -> bool {
    next_ns >= TIMED_NS || (next_ns >= FINE_NS && gulp.is_multiple_of(8))
}

/// Returns whether work is worth sharing with an idle worker, which gets this `part` of it ([`part`]). The work was
/// there at every look for `lasts_ns`.
pub(crate) fn is_worth_sharing(waiting: Backlog, part: f64, lasts_ns: u64, idle: Idle, wake_ns: u64) -> bool {
    // The bounds are those for half of the work.
    let waiting_ns = (waiting.ns as f64 * 2.0 * part) as u64;
    match idle {
        _ if waiting.is_short => {
            waiting_ns > WORTH_SHARING_SHORT_NS || (waiting_ns > LASTING_SHORT_NS && lasts_ns > LASTING_NS)
        }
        Idle::Watching => waiting_ns > WORTH_HANDOVER_NS,
        // Half of the work goes to the other worker, and that half has to take longer than the wake-up.
        Idle::Parked => waiting_ns > 2 * wake_ns || (waiting_ns > WORTH_LASTING_NS && lasts_ns > LASTING_NS),
    }
}

/// Returns whether a hand-over of short work is to be a trial. Much work of fine messages may be a tree or a burst,
/// which is over before a trial would be.
pub(crate) fn wants_trial(waiting: Backlog, average_ns: u64) -> bool {
    waiting.is_short && (average_ns >= FINE_NS || waiting.ns <= WORTH_SHARING_SHORT_NS)
}

/// Returns whether an idle worker asks a busy worker for work, which ends the busy worker's gulp. `shown` is the
/// backlog that the busy worker showed before that gulp, and `part` is what the idle worker would get of it.
pub(crate) fn asks(shown: Backlog, part: f64) -> bool {
    is_worth_sharing(shown, part, 0, Idle::Watching, 0)
}

/// Returns whether a worker that hands mail to a watching worker takes turns with it. `gulps` counts the sender's gulps
/// since it last handed mail to a watching worker. `messages` counts the messages that the sender has handled since its
/// own last idle time.
pub(crate) fn takes_turns(gulps: u64, messages: u64) -> bool {
    gulps <= TURN_GULPS && messages <= TURN_MESSAGES
}

/// Two workers with idle shares of this sum have work for one. The sum is 1 if the idle times are whole. A worker does
/// not count the time in which it first looks for an answer, about half of that of a hand-over.
const FIT_ON_ONE: f64 = 0.7;

/// A worker and an idle worker that it is about to send to, as the first one sees them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) idle: Idle,
    /// At least as many workers run as there are cores: a woken worker would only displace another one.
    pub(crate) cores_busy: bool,
    /// The result of [`takes_turns`].
    pub(crate) takes_turns: bool,
    /// The sum of the idle shares of the two workers.
    pub(crate) idle_shares: f64,
}

/// Returns whether a worker adopts the receivers' stages from an idle worker instead of handing mail to it.
///
/// `own` is the worker's backlog, which is short only if the messages that it sends are, too. A worker that sends one
/// answer for each 100 messages does not take turns, and adopts no stage of a watching worker. Two workers that were
/// busy for more time than there is for one keep their stages: one of them is idle for a moment only.
pub(crate) fn adopts(own: Backlog, pair: Pair, wake_ns: u64) -> bool {
    let fit_on_one = pair.idle_shares >= FIT_ON_ONE;
    match pair.idle {
        Idle::Parked if pair.cores_busy => true,
        _ if !fit_on_one && !own.is_short => false,
        _ if own.is_short => own.ns <= WORTH_SHARING_SHORT_NS,
        Idle::Watching => pair.takes_turns && own.ns <= HANDOVER_NS,
        Idle::Parked => own.ns <= wake_ns,
    }
}

/// The least part of the work that is worth a look. Two workers that lack less than twice this are equally busy.
const PART_MIN: f64 = 0.02;

/// Returns the part of a busy worker's work that goes to an idle worker, from 0 to 0.5. `mine` and `theirs` are the
/// idle shares of the two, and `waiting_ns` is the time of the work that waits.
///
/// Compared are the shares that the two would have after that work without a move. A worker that was idle for long, or
/// that would be idle for long, gets half of the work. A worker that is idle for a moment, and has handled nearly as
/// much as the other one, gets little: its next messages are under way, and each stage that it gets now is one that the
/// other worker lacks later.
pub(crate) fn part(mine: f64, theirs: f64, waiting_ns: u64) -> f64 {
    let kept = (-(waiting_ns as f64) * 2.0 / IDLE_WINDOW_NS as f64).exp();
    let (mine, theirs) = (mine * kept, 1.0 - (1.0 - theirs) * kept);
    let part = ((theirs - mine) / (2.0 * (1.0 - mine).max(0.01))).clamp(0.0, 0.5);
    if part < PART_MIN { 0.0 } else { part }
}

/// Returns the stages to give away, with about this part of all work. `stages` holds `(work, stage)` pairs.
///
/// The stage with the most work stays, and a single stage therefore never moves to and fro. A stage moves if its work
/// is closer to the rest to be given than zero is.
pub(crate) fn split(stages: &mut Vec<(u64, u16)>, part: f64) -> Vec<u16> {
    stages.sort_unstable_by(|a, b| b.cmp(a));
    let total: u64 = stages.iter().map(|(work, _)| work).sum();
    let mut to_give = (total as f64 * part * 2.0) as u64;
    let mut given = Vec::new();
    for (work, stage) in stages.drain(..).skip(1) {
        if work <= to_give {
            to_give -= (2 * work).min(to_give);
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
        Backlog { ns, is_short: false }
    }

    #[test]
    fn a_parked_worker_is_woken_for_more_work_than_a_wake_up_costs() {
        let wake_ns = 10_000;
        let shares = |ns, lasts_ns, idle| is_worth_sharing(backlog(ns), 0.5, lasts_ns, idle, wake_ns);
        assert!(!shares(15_000, 0, Idle::Parked));
        assert!(shares(25_000, 0, Idle::Parked));
        assert!(shares(5_000, 2_000_000, Idle::Parked), "little, but for ever");
        assert!(shares(15_000, 0, Idle::Watching));
        assert!(!shares(200, 2_000_000, Idle::Parked));
        assert!(!is_worth_sharing(backlog(25_000), 0.1, 0, Idle::Watching, wake_ns), "little of it would move");
    }

    #[test]
    fn much_fine_work_is_shared_without_a_trial() {
        let short = |ns| Backlog { ns, is_short: true };
        assert!(wants_trial(short(100_000), 200) && wants_trial(short(1_000), 20));
        assert!(!wants_trial(short(100_000), 20) && !wants_trial(backlog(100_000), 1_000));
    }

    const PAIR: Pair = Pair { idle: Idle::Watching, cores_busy: false, takes_turns: true, idle_shares: 1.2 };

    #[test]
    fn a_worker_adopts_only_while_it_has_nothing_else_to_do() {
        let adopts = |ns, idle, cores_busy| adopts(backlog(ns), Pair { idle, cores_busy, ..PAIR }, 10_000);
        assert!(adopts(0, Idle::Watching, false));
        assert!(!adopts(50_000, Idle::Watching, true));
        assert!(!adopts(50_000, Idle::Parked, false));
        assert!(adopts(5_000, Idle::Parked, false));
        assert!(adopts(50_000, Idle::Parked, true), "no core is left for a worker that is woken");
    }

    #[test]
    fn a_watching_worker_keeps_its_stages_if_it_gets_mail_only_now_and_then() {
        for (gulps, messages) in [(20, 1), (3, 100)] {
            let pair = |idle| Pair { idle, takes_turns: takes_turns(gulps, messages), ..PAIR };
            assert!(!adopts(backlog(0), pair(Idle::Watching), 10_000));
            assert!(adopts(backlog(0), pair(Idle::Parked), 10_000));
        }
        assert!(takes_turns(3, 1));
    }

    #[test]
    fn workers_that_are_idle_for_a_moment_keep_their_stages() {
        let short = Backlog { ns: 0, is_short: true };
        for idle in [Idle::Watching, Idle::Parked] {
            let busy = Pair { idle, idle_shares: 0.5, ..PAIR };
            assert!(!adopts(backlog(0), busy, 10_000));
            assert!(adopts(short, busy, 10_000), "no trial has shown that the second worker helps");
            assert!(adopts(backlog(0), Pair { idle, ..PAIR }, 10_000));
        }
    }

    #[test]
    fn short_messages_stay_on_their_worker_unless_many_wait() {
        let short = |ns| Backlog { ns, is_short: true };
        assert!(!is_worth_sharing(short(40_000), 0.5, 0, Idle::Watching, 10_000));
        assert!(is_worth_sharing(short(60_000), 0.5, 0, Idle::Watching, 10_000));
        assert!(is_worth_sharing(short(500), 0.5, 2_000_000, Idle::Parked, 10_000), "little, but for ever");
        assert!(adopts(short(40_000), Pair { takes_turns: false, ..PAIR }, 10_000));
        assert!(!adopts(short(60_000), Pair { idle: Idle::Parked, ..PAIR }, 10_000));
    }

    #[test]
    fn a_part_goes_to_a_worker_that_lacks_work() {
        assert_eq!(part(0.0, 1.0, 0), 0.5);
        assert_eq!(part(0.3, 0.3, 0), 0.0);
        assert!((part(0.0, 0.2, 0) - 0.1).abs() < 1e-9);
        assert!(part(1.0, 1.0, 10_000_000) > 0.45, "after a pause, with much work");
        assert!(part(0.1, 0.1, 50_000) < 0.06, "for a moment");
    }

    #[test]
    fn about_half_of_the_work_is_given_and_the_largest_stage_stays() {
        assert_eq!(split(&mut vec![(1, 4), (5, 7), (2, 9)], 0.5), [9, 4]);
        assert_eq!(split(&mut vec![(5, 7)], 0.5), []);
        let even = || (0..10).map(|stage| (3, stage)).collect();
        assert_eq!([0.5, 0.2, 0.06, 0.04, 0.0].map(|part| split(&mut even(), part).len()), [5, 2, 1, 0, 0]);
    }
}
