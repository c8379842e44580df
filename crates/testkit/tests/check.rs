//! The model checker: its counts, its findings, and the repetition of its findings.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use playhouse::prelude::*;
use playhouse_testkit::programs::{PROGRAMS, named};
use playhouse_testkit::{Checker, Schedule, Violation, check, simulate};

#[derive(Default)]
struct List(Vec<u64>);

#[actor]
impl List {
    #[message]
    fn push(&mut self, n: u64) {
        self.0.push(n);
    }
    #[message]
    fn get(&self) -> Vec<u64> {
        self.0.clone()
    }
    #[message]
    fn push_unless(&mut self, n: u64, taken: u64) {
        assert!(!self.0.contains(&taken), "{taken} is taken");
        self.0.push(n);
    }
}

/// An actor that sends its numbers at its start.
struct Giver(ActorRef<List>, Vec<u64>);

#[actor]
impl Giver {
    #[started]
    fn give(&mut self) {
        for n in &self.1 {
            self.0.tell(Push(*n));
        }
    }
}

fn givers(system: &System, numbers: &[&[u64]]) -> Vec<u64> {
    let list = system.spawn(List::default());
    for numbers in numbers {
        system.spawn(Giver(list, numbers.to_vec()));
    }
    system.run_until_idle();
    list.ask(Get).wait().unwrap()
}

// GUARANTEE: All orders
#[test]
fn messages_of_a_pair_keep_their_order_and_others_come_in_all() {
    for (numbers, schedules) in [
        (&[&[1_u64, 2, 3][..]][..], 1),
        (&[&[1, 2], &[3, 4]], 6),
        (&[&[1, 2, 3], &[4, 5, 6]], 20),
        (&[&[1], &[2], &[3], &[4]], 24),
    ] {
        let report = Checker::new().run(|system| {
            let list = givers(system, numbers);
            for numbers in numbers {
                let kept: Vec<u64> = list.iter().copied().filter(|n| numbers.contains(n)).collect();
                assert_eq!(kept, *numbers);
            }
        });
        assert!(report.is_passed(), "{report}");
        assert_eq!(report.schedules(), schedules, "{numbers:?}");
        assert_eq!(report.given_up(), 0);
    }
}

// GUARANTEE: All orders
#[test]
fn commuting_orders_are_tried_once() {
    let two_lists = |system: &System| (givers(system, &[&[1, 2]]), givers(system, &[&[3, 4]]));
    assert_eq!(check(two_lists).schedules(), 1);
    let both = |system: &System| {
        let lists = [system.spawn(List::default()), system.spawn(List::default())];
        for list in lists {
            system.spawn(Giver(list, vec![1, 2]));
        }
        system.run_until_idle();
        lists.map(|list| list.ask(Get).wait().unwrap())
    };
    assert_eq!(check(both).schedules(), 1);
    let all = Checker::new().without_reduction().run(both);
    assert!(all.is_passed(), "{all}");
    assert_eq!(u128::from(all.schedules()), Checker::new().count_orders().run(both).orders());
    assert!(all.schedules() > 100);
}

#[test]
fn the_known_programs_pass() {
    for program in PROGRAMS {
        let report = check(program.right());
        assert!(report.is_complete() && report.schedules() > 1, "{}: {report}", program.name);
    }
}

#[test]
fn the_figures_of_the_guide_are_those_of_the_checker() {
    let guide = include_str!("../../../guide/src/testing.md");
    for program in PROGRAMS {
        let row = program.figures().to_string();
        assert!(guide.lines().any(|line| line == row), "guide/src/testing.md has not the row {row}");
    }
}

// GUARANTEE: Schedules are repeated
#[test]
fn the_bug_of_each_known_program_is_found_and_can_be_repeated() {
    for program in PROGRAMS {
        let report = Checker::new().run(program.wrong());
        let failure = report.failure().unwrap_or_else(|| panic!("{}: {report}", program.name));
        let schedule: Schedule = failure.schedule.to_string().parse().unwrap();
        let again = Checker::new().replay(&schedule, program.wrong()).unwrap_or_else(|| panic!("{failure}"));
        assert_eq!(again.violation, failure.violation, "{}", program.name);
        assert_eq!(again.deliveries, failure.deliveries, "{}", program.name);
        assert!(Checker::new().replay(&schedule, program.right()).is_none(), "{}", program.name);
    }
}

// GUARANTEE: Failures are found
#[test]
fn the_bugs_are_of_different_kinds() {
    let violation = |name: &str| {
        let report = Checker::new().run(named(name).unwrap().wrong());
        report.failure().unwrap().violation.clone()
    };
    assert!(matches!(violation("philosophers"), Violation::Deadlock(stuck) if stuck.len() == 3));
    assert!(matches!(violation("election"), Violation::Panic(why) if why.contains("the only leader")));
    assert!(matches!(violation("path"), Violation::OtherResult { .. }));
    assert!(
        matches!(violation("commit"), Violation::Crash { actor, why } if actor == "Participant \"1\"" && why.contains("commit.rs"))
    );
}

// GUARANTEE: Schedules are repeated
#[test]
fn the_shortest_schedule_leaves_out_what_has_nothing_to_do_with_it() {
    // Four other actors are busy. The crash needs two messages, and the starts of three actors.
    let report = Checker::new().run(|system| {
        let list = system.spawn(List::default());
        system.spawn(Giver(list, vec![7]));
        let other = system.spawn(List::default());
        system.spawn(Giver(other, vec![1, 2, 3]));
        list.tell(PushUnless(1, 7));
        system.run_until_idle();
    });
    let failure = report.failure().expect("there is an order in which 7 is taken");
    let messages: Vec<&str> = failure.deliveries.iter().map(|sent| sent.message.as_str()).collect();
    assert_eq!(messages, ["start", "start", "Push", "PushUnless"], "{failure}");
    assert!(failure.deliveries[3].wrong.as_ref().unwrap().contains("7 is taken"), "{failure}");
    assert!(failure.to_string().contains("Giver #1 -> List #0: Push"), "{failure}");
}

/// An actor that always fails.
struct Broken;

#[derive(Message)]
struct Try;

impl Actor for Broken {}

impl Handler<Try> for Broken {
    fn handle(&mut self, _: Try, ctx: &mut Context<Self>) {
        ctx.fail(std::fmt::Error);
    }
}

#[test]
fn an_actor_that_fails_has_crashed() {
    let report = Checker::new().run(|system| system.spawn(Broken).tell(Try));
    let crash = Violation::Crash { actor: "Broken #0".to_owned(), why: "it called `ctx.fail`".to_owned() };
    assert_eq!(report.failure().unwrap().violation, crash);
}

#[test]
fn of_a_panic_of_the_program_only_what_it_has_waited_for_is_shown() {
    let report = Checker::new().run(|system| {
        let list = system.spawn(List::default());
        system.spawn(Giver(list, vec![7]));
        let other = system.spawn(List::default());
        system.spawn(Giver(other, vec![1, 2, 3]));
        assert_eq!(list.ask(Get).wait(), Ok(vec![]), "it is empty at first");
    });
    let failure = report.failure().expect("there is an order in which 7 comes first");
    assert!(matches!(&failure.violation, Violation::Panic(why) if why.contains("it is empty at first")), "{failure}");
    let messages: Vec<&str> = failure.deliveries.iter().map(|sent| sent.message.as_str()).collect();
    assert_eq!(messages, ["start", "start", "Push", "Get"], "{failure}");
}

#[test]
fn a_crash_with_a_shorter_way_to_it_is_shown_before_one_that_comes_first() {
    let report = Checker::new().run(|system| {
        let list = system.spawn(List::default());
        for n in 1..4 {
            list.tell(Push(n));
        }
        list.tell(PushUnless(0, 1));
        let other = system.spawn(List::default());
        other.tell(PushUnless(1, 1));
        other.tell(PushUnless(1, 1));
    });
    let failure = report.failure().unwrap();
    assert_eq!(failure.deliveries.len(), 3, "{failure}");
    assert!(failure.to_string().contains("List #1 crashed: 1 is taken"), "{failure}");
}

// GUARANTEE: Failures are found
#[test]
fn an_order_that_changes_the_result_is_found() {
    let report = Checker::new().run(|system| givers(system, &[&[1], &[2]]));
    let failure = report.failure().unwrap();
    assert_eq!(
        failure.violation,
        Violation::OtherResult { this: "[2, 1]".to_owned(), first: "[1, 2]".to_owned() },
        "{failure}"
    );
}

// GUARANTEE: Failures are found
#[test]
fn a_dead_letter_is_found_and_can_be_allowed() {
    let stopped_early = |system: &System| {
        let list = system.spawn(List::default());
        system.spawn(Giver(list, vec![1]));
        list.drain();
        system.run_until_idle();
    };
    let report = Checker::new().run(stopped_early);
    let failure = report.failure().unwrap();
    assert_eq!(failure.violation, Violation::DeadLetter("Push for List: the actor has stopped".to_owned()));
    let report = Checker::new().allow_dead_letters().run(stopped_early);
    assert!(report.is_passed() && report.schedules() == 2, "{report}");
}

#[test]
fn a_child_that_is_restarted_has_a_new_state_under_all_orders() {
    let program = |system: &System| {
        let policy = SupervisionPolicy::one_for_one().max_restarts(3, Duration::from_secs(5));
        let supervisor = system.spawn(Supervisor::new(policy));
        let list = supervisor.ask(ChildSpec::new("list", List::default)).wait().unwrap().unwrap();
        system.spawn(Giver(list, vec![7, 8]));
        list.tell(PushUnless(1, 7));
        system.run_until_idle();
        let list = list.ask(Get).wait().unwrap();
        assert!([&[1, 7, 8][..], &[8], &[]].contains(&&list[..]), "{list:?}");
    };
    let report = Checker::new().allow_crashes().run(program);
    assert!(report.is_passed() && report.schedules() >= 3, "{report}");
    let report = Checker::new().run(program);
    assert!(matches!(report.failure().unwrap().violation, Violation::Crash { .. }), "{report}");
}

/// An actor that tells itself to go on, forever.
struct Restless;

#[actor]
impl Restless {
    #[message]
    fn go_on(&mut self, ctx: &mut Context<Self>) {
        ctx.this().tell(GoOn);
    }
}

// GUARANTEE: Failures are found
#[test]
fn a_program_that_never_ends_is_found() {
    let report = Checker::new().run(|system| system.spawn(Restless).tell(GoOn));
    let failure = report.failure().unwrap();
    assert_eq!(failure.violation, Violation::Endless);
    let text = failure.to_string();
    assert!(text.contains("Restless #0 -> Restless #0: GoOn") && text.lines().count() < 110, "{text}");
}

#[test]
fn a_program_that_does_not_repeat_itself_is_found() {
    let runs = AtomicU64::new(0);
    let report = Checker::new().run(|system| {
        let run = runs.fetch_add(1, Ordering::Relaxed);
        givers(system, if run == 0 { &[&[1], &[2]] } else { &[&[1], &[]] });
    });
    assert_eq!(report.failure().unwrap().violation, Violation::NotRepeatable, "{report}");
}

#[test]
fn a_report_says_that_there_are_too_many_orders() {
    let report = Checker::new().limit(10).run(|system| {
        givers(system, &[&[1, 2, 3], &[4, 5, 6]]);
    });
    assert!(!report.is_complete() && !report.is_passed() && report.schedules() == 10, "{report}");
    assert!(report.to_string().contains("make the program smaller"), "{report}");
}

#[test]
#[should_panic(expected = "the result depends on the order")]
fn check_panics_with_what_went_wrong() {
    check(|system| givers(system, &[&[1], &[2]]));
}

/// An actor that waits for an hour, and then adds its number.
struct Late(ActorRef<List>);

#[actor]
impl Late {
    #[started]
    fn set(&mut self, ctx: &mut Context<Self>) {
        ctx.send_after(Duration::from_secs(3600), Ring);
    }
    #[message]
    fn ring(&mut self) {
        self.0.tell(Push(1));
    }
}

// GUARANTEE: All orders
#[test]
fn timers_fire_when_nothing_else_is_left_to_do() {
    let report = check(|system| {
        let list = system.spawn(List::default());
        system.spawn(Late(list));
        system.spawn(Late(list));
        list.tell(Push(0));
        system.run_until_idle();
        assert_eq!(system.now(), Duration::from_secs(3600));
        list.ask(Get).wait().unwrap()
    });
    // The result does not show which of the two comes first, but they are two orders.
    assert_eq!(report.schedules(), 2);
}

/// An actor whose handler never ends.
struct Keeper;

/// A message that is too large to lie in a queue.
#[derive(Message)]
struct Keep(Arc<()>, [u8; 1000]);

impl Actor for Keeper {}

impl AsyncHandler<Keep> for Keeper {
    async fn handle(&mut self, keep: Keep, _: &mut Context<Self>) {
        assert_eq!(keep.1, [7; 1000]);
        std::future::pending::<()>().await;
        drop(keep.0);
    }
}

// GUARANTEE: Failures are found
#[test]
fn actors_that_wait_forever_are_named_and_nothing_is_left_behind() {
    let kept = Arc::new(());
    let report = Checker::new().run(|system| {
        let keeper = system.spawn_with(SpawnOptions::new().name("attic"), Keeper);
        for _ in 0..2 {
            keeper.tell(Keep(kept.clone(), [7; 1000]));
        }
    });
    let stuck = "Keeper \"attic\" waits in its handler of Keep, with Keep behind it".to_owned();
    assert_eq!(report.failure().unwrap().violation, Violation::Deadlock(vec![stuck]));
    assert_eq!(Arc::strong_count(&kept), 1);
}

/// An actor that asks for a number, and ends with the answer or after a second.
struct Impatient(ActorRef<List>);

#[actor]
impl Impatient {
    #[started]
    fn ask(&mut self, ctx: &mut Context<Self>) {
        ctx.send_after(Duration::from_secs(1), GiveUp);
        self.0.tell(Tell(ctx.this()));
    }
    #[message]
    fn answer(&mut self, ctx: &mut Context<Self>) {
        ctx.stop();
    }
    #[message]
    fn give_up(&mut self, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}

#[derive(Message)]
struct Tell(ActorRef<Impatient>);

impl Handler<Tell> for List {
    fn handle(&mut self, who: Tell, _: &mut Context<Self>) {
        who.0.tell(Answer);
    }
}

// GUARANTEE: All orders
#[test]
fn a_timer_that_fires_early_is_found_where_any_time_is_asked_for() {
    let program = |system: &System| {
        let list = system.spawn(List::default());
        system.spawn(Impatient(list));
        system.run_until_idle();
    };
    let at_rest = Checker::new().run(program);
    assert!(at_rest.is_passed() && at_rest.schedules() == 1, "{at_rest}");
    let report = Checker::new().any_time().run(program);
    let failure = report.failure().expect("the answer may come when the second is over");
    assert_eq!(failure.violation, Violation::DeadLetter("Answer for Impatient: the actor has stopped".to_owned()));
    assert!(failure.to_string().contains("clock -> clock: time passes"), "{failure}");
    let again = Checker::new().any_time().replay(&failure.schedule, program).unwrap();
    assert_eq!(again.deliveries, failure.deliveries);
}

/// An actor that counts seconds without an end.
#[derive(Default)]
struct Seconds(u32);

#[actor]
impl Seconds {
    #[started]
    fn begin(&mut self, ctx: &mut Context<Self>) {
        ctx.send_every(Duration::from_secs(1), Second);
    }
    #[message(derive(Clone))]
    fn second(&mut self) {
        self.0 += 1;
    }
    #[message]
    fn end(&mut self, ctx: &mut Context<Self>) -> u32 {
        ctx.stop();
        self.0
    }
}

// GUARANTEE: Passing time
#[test]
fn a_program_may_let_a_time_pass() {
    let program = |system: &System| {
        let seconds = system.spawn(Seconds::default());
        system.run_for(Duration::from_secs(3));
        assert_eq!(system.now(), Duration::from_secs(3));
        seconds.ask(End).wait().unwrap()
    };
    let report = Checker::new().run(program);
    assert!(report.is_passed(), "{report}");
    // The timer of the actor is due after a second.
    for (time, may_fire) in [(Duration::from_millis(999), false), (Duration::from_secs(1), true)] {
        let report = Checker::new().any_time().run(|system| {
            let list = system.spawn(List::default());
            system.spawn(Impatient(list));
            system.run_for(time);
            assert_eq!(system.now(), time);
        });
        // The answer is a dead letter if the timer fires while the answer waits.
        let violation = report.failure().map(|failure| &failure.violation);
        assert_eq!(matches!(violation, Some(Violation::DeadLetter(_))), may_fire, "{report}");
        assert_eq!(violation.is_some(), may_fire, "{report}");
    }
    simulate(0..20, |system| assert_eq!(program(system), 3));
}

#[test]
fn a_program_may_shut_its_system_down() {
    let report = check(|system| {
        let list = system.spawn(List::default());
        system.spawn(Giver(list, vec![1, 2]));
        system.spawn(Giver(list, vec![3]));
        let end = system.clone().shutdown().unwrap();
        assert_eq!((end.actors_stopped, end.undelivered), (3, 0));
    });
    assert_eq!(report.schedules(), 3);
}

#[test]
fn a_text_that_is_no_schedule_is_refused() {
    assert_eq!("0.2.1".parse::<Schedule>().unwrap().to_string(), "0.2.1");
    let error = "0.x".parse::<Schedule>().unwrap_err().to_string();
    assert!(error.contains("\"0.x\" is no schedule") && error.contains("0.0.2.1"), "{error}");
}
