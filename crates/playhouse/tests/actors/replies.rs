//! Replies that an actor gives later, or that another actor gives.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::support::{Dice, finishes, simulated, threads};
use playhouse::prelude::*;

const SECOND: Duration = Duration::from_secs(1);

/// Gives its things away in the order of the askers.
#[derive(Default)]
struct Shelf {
    waiting: Vec<(u32, Reply<u32>)>,
    untold: u32,
}

#[actor]
impl Shelf {
    #[message]
    fn take(&mut self, number: u32, reply: Reply<u32>) {
        if reply.is_awaited() {
            self.waiting.push((number, reply));
        } else {
            self.untold += 1;
        }
    }

    #[message]
    fn put(&mut self, thing: u32) -> bool {
        self.waiting.retain(|(_, reply)| reply.is_awaited());
        let Some((number, reply)) = (!self.waiting.is_empty()).then(|| self.waiting.remove(0)) else {
            return false;
        };
        reply.send(number + thing);
        true
    }

    #[message]
    fn awaited(&self) -> usize {
        self.waiting.iter().filter(|(_, reply)| reply.is_awaited()).count()
    }

    #[message]
    fn let_go(&mut self) -> usize {
        self.waiting.drain(..).count()
    }

    #[message]
    fn untold(&self) -> u32 {
        self.untold
    }

    #[message]
    fn end(&mut self, ctx: &mut Context<Self>) {
        ctx.stop();
    }

    #[message]
    fn crash(&mut self) {
        panic!("as it is told");
    }
}

/// Asks in its handlers.
struct Asker {
    shelf: ActorRef<Shelf>,
}

#[actor]
impl Asker {
    #[message(name = "AskFor")]
    async fn ask_for(&mut self, number: u32) -> Result<u32, AskError> {
        self.shelf.ask(Take(number)).await
    }

    #[message(name = "AskWithin")]
    async fn ask_within(&mut self, number: u32, within: Duration) -> Result<u32, AskError> {
        self.shelf.ask(Take(number)).within(within).await
    }
}

// GUARANTEE: Later replies
#[test]
fn an_actor_that_answers_later_handles_other_messages_first() {
    for seed in 0..20 {
        let system = simulated(seed);
        let shelf = system.spawn(Shelf::default());
        let askers: Vec<_> = (0..3).map(|_| system.spawn(Asker { shelf })).collect();
        let tellers: Vec<_> = askers.iter().map(|asker| system.spawn(Teller { asker: *asker, told: None })).collect();
        for (teller, number) in tellers.iter().zip([10, 20, 30]) {
            teller.tell(Begin(number));
            system.run_until_idle();
        }
        for thing in 1..=3 {
            assert_eq!(shelf.ask(Put(thing)).wait(), Ok(true));
        }
        assert_eq!(shelf.ask(Put(4)).wait(), Ok(false));
        system.run_until_idle();
        let told: Vec<_> = tellers.iter().map(|teller| teller.ask(Told).wait().unwrap()).collect();
        assert_eq!(told, [11, 22, 33].map(|number| Some(Ok(number))));
    }
}

/// Asks an asker, and keeps the result.
struct Teller {
    asker: ActorRef<Asker>,
    told: Option<Result<u32, AskError>>,
}

#[actor]
impl Teller {
    #[message]
    fn begin(&mut self, number: u32, ctx: &mut Context<Self>) {
        ctx.ask(self.asker, AskFor(number)).then(|this, answer, _| this.told = Some(answer.and_then(|answer| answer)));
    }

    #[message]
    fn told(&self) -> Option<Result<u32, AskError>> {
        self.told.clone()
    }
}

// GUARANTEE: Later replies
#[test]
fn the_reply_to_a_told_or_timed_message_has_no_waiting_asker() {
    let system = simulated(1);
    let shelf = system.spawn(Shelf::default());
    shelf.tell(Take(1));
    shelf.tell_urgent(Take(2));
    assert_eq!(shelf.ask(Untold).wait(), Ok(2));
    let recipient: Recipient<Take> = shelf.recipient();
    recipient.tell(Take(3));
    assert_eq!(shelf.ask(Untold).wait(), Ok(3));
    struct Later(ActorRef<Shelf>);
    #[actor]
    impl Later {
        #[message(derive(Clone))]
        fn ring(&mut self, reply: Reply<()>) {
            assert!(!reply.is_awaited());
            self.0.tell(Take(4));
        }

        #[message]
        fn set(&mut self, ctx: &mut Context<Self>) {
            ctx.send_after(SECOND, Ring);
        }
    }
    system.spawn(Later(shelf)).tell(Set);
    system.run_until_idle();
    assert_eq!(shelf.ask(Untold).wait(), Ok(4));
}

// GUARANTEE: Later replies
#[test]
fn a_reply_that_is_dropped_or_ends_with_its_actor_says_so() {
    for (end, named) in
        [("let go", AskError::Unanswered), ("end", AskError::Unanswered), ("crash", AskError::Unanswered)]
    {
        let system = simulated(2);
        let shelf = system.spawn(Shelf::default());
        let asker = system.spawn(Asker { shelf });
        let teller = system.spawn(Teller { asker, told: None });
        teller.tell(Begin(1));
        system.run_until_idle();
        match end {
            "let go" => assert_eq!(shelf.ask(LetGo).wait(), Ok(1)),
            "end" => shelf.tell(End),
            _ => shelf.tell(Crash),
        }
        system.run_until_idle();
        assert_eq!(teller.ask(Told).wait(), Ok(Some(Err(named))), "{end}");
    }
}

// GUARANTEE: Later replies
#[test]
fn a_handler_that_panics_while_it_has_the_reply_has_crashed() {
    struct Fails;
    #[actor]
    impl Fails {
        #[message]
        fn try_it(&mut self, _reply: Reply<u32>) {
            panic!("as it should");
        }
    }
    let system = simulated(3);
    assert_eq!(system.spawn(Fails).ask(TryIt).wait(), Err(AskError::Panicked));
}

// GUARANTEE: Later replies
#[test]
fn a_deadline_ends_an_ask_whose_reply_is_kept_and_the_reply_knows() {
    let system = simulated(4);
    let shelf = system.spawn(Shelf::default());
    let asker = system.spawn(Asker { shelf });
    let answer = asker.ask(AskWithin(1, SECOND)).wait().unwrap();
    assert_eq!(answer, Err(AskError::Deadline { phase: playhouse::AskPhase::Running }));
    assert_eq!(
        shelf.ask(Take(2)).within(SECOND).wait(),
        Err(AskError::Deadline { phase: playhouse::AskPhase::Running })
    );
    // Neither actor waits any more.
    assert_eq!(shelf.ask(Put(1)).wait(), Ok(false));
}

/// Forwards its requests, and asks others itself.
struct Desk {
    others: Vec<ActorRef<Desk>>,
    handled: u32,
    kept: Vec<Reply<u32>>,
}

#[actor]
impl Desk {
    fn new() -> Desk {
        Desk { others: Vec::new(), handled: 0, kept: Vec::new() }
    }

    #[message]
    fn meet(&mut self, others: Vec<ActorRef<Desk>>) {
        self.others = others;
    }

    /// Passes over these desks to the last one.
    #[message]
    fn pass(&mut self, over: Vec<usize>, reply: Reply<u32>) {
        self.handled += 1;
        match over.split_first() {
            None => reply.send(self.handled),
            Some((next, rest)) => reply.forward(&self.others[*next], Pass(rest.to_vec())),
        }
    }

    #[message]
    fn keep(&mut self, reply: Reply<u32>) {
        self.kept.push(reply);
    }

    #[message(name = "PassKept")]
    fn pass_kept(&mut self, to: usize) {
        let to = self.others[to];
        self.kept.drain(..).for_each(|reply| reply.forward(to, Pass(Vec::new())));
    }

    #[message]
    async fn wait_for(&mut self, desk: usize, over: Vec<usize>) -> Result<u32, AskError> {
        self.others[desk].ask(Pass(over)).await
    }

    #[message(name = "WaitForKept")]
    async fn wait_for_kept(&mut self, desk: usize) -> Result<u32, AskError> {
        self.others[desk].ask(Keep).await
    }

    #[message]
    fn handled(&self) -> u32 {
        self.handled
    }
}

fn desks(system: &System, count: usize) -> Vec<ActorRef<Desk>> {
    let desks: Vec<_> = (0..count).map(|_| system.spawn(Desk::new())).collect();
    desks.iter().for_each(|desk| desk.tell(Meet(desks.clone())));
    system.run_until_idle();
    desks
}

// GUARANTEE: Forwarded requests
#[test]
fn a_forwarded_request_is_answered_by_its_last_receiver() {
    for seed in 0..20 {
        let system = simulated(seed);
        let desks = desks(&system, 4);
        assert_eq!(desks[0].ask(Pass(vec![1, 2, 3])).wait(), Ok(1));
        assert_eq!(desks[3].ask(WaitFor(0, vec![1, 2, 0, 1])).wait(), Ok(Ok(3)));
        let handled: Vec<_> = desks.iter().map(|desk| desk.ask(Handled).wait().unwrap()).collect();
        assert_eq!(handled, [3, 3, 2, 1]);
        // A message that was sent by `tell` is forwarded as one.
        desks[0].tell(Pass(vec![3]));
        system.run_until_idle();
        assert_eq!(desks[3].ask(Handled).wait(), Ok(2));
    }
}

// GUARANTEE: Forwarded requests
#[test]
fn a_forwarded_request_to_an_ended_actor_fails_like_any_other() {
    let system = simulated(5);
    let desks = desks(&system, 3);
    desks[2].stop();
    system.run_until_idle();
    assert_eq!(desks[0].ask(Pass(vec![2])).wait(), Err(AskError::Stopped));
}

// GUARANTEE: Forwarded requests
#[test]
fn a_forwarded_request_is_refused_as_any_other() {
    struct Picky;
    #[actor]
    impl Picky {
        #[message(when = "*number < 10", otherwise = "refuse")]
        fn choose(&mut self, number: u32) -> u32 {
            number
        }
    }
    struct Front(ActorRef<Picky>);
    #[actor]
    impl Front {
        #[message]
        fn give(&mut self, number: u32, reply: Reply<u32>) {
            reply.forward(self.0, Choose(number));
        }
        #[message(name = "GiveMany")]
        fn give_many(&mut self, numbers: Vec<u32>, reply: Reply<u32>) {
            numbers.iter().for_each(|number| self.0.tell(Choose(*number)));
            reply.forward(self.0, Choose(1));
        }
    }
    let system = simulated(5);
    let picky = system.spawn_with(SpawnOptions::new().mailbox(Mailbox::bounded(2)), Picky);
    let front = system.spawn(Front(picky));
    assert_eq!(front.ask(Give(7)).wait(), Ok(7));
    assert_eq!(front.ask(Give(70)).wait(), Err(AskError::Refused));
    // No worker takes a message from the mailbox before this handler returns.
    assert_eq!(front.ask(GiveMany(vec![1, 2, 3])).wait(), Err(AskError::Full));
}

// GUARANTEE: Later replies
#[test]
fn a_reply_knows_that_an_asker_has_ended() {
    let system = simulated(5);
    let shelf = system.spawn(Shelf::default());
    /// Asks without a deadline.
    struct Then(ActorRef<Shelf>);
    #[actor]
    impl Then {
        #[message]
        fn go(&mut self, ctx: &mut Context<Self>) {
            ctx.ask(self.0, Take(1)).then(|_, _, _| {});
        }
        #[message(name = "GoPiped")]
        fn go_piped(&mut self, ctx: &mut Context<Self>) {
            ctx.ask(self.0, Take(3)).pipe_to_self(|_| Go);
        }
    }
    let asker = system.spawn(Then(shelf));
    asker.tell(Go);
    asker.tell(GoPiped);
    system.run_until_idle();
    assert_eq!(shelf.ask(Awaited).wait(), Ok(2));
    asker.kill();
    system.run_until_idle();
    assert_eq!(shelf.ask(Awaited).wait(), Ok(0));
}

// GUARANTEE: Later replies
#[test]
fn an_answer_that_nobody_waits_for_is_given_back() {
    struct Pool {
        free: Vec<String>,
        waiting: Vec<Reply<String>>,
    }
    #[actor]
    impl Pool {
        #[message(name = "Lend")]
        fn lend(&mut self, reply: Reply<String>) {
            self.waiting.push(reply);
        }
        #[message(name = "Return")]
        fn take_back(&mut self, thing: String) {
            let mut thing = Some(thing);
            while let (Some(given), false) = (thing.take(), self.waiting.is_empty()) {
                match self.waiting.remove(0).try_send(given) {
                    Ok(()) => return,
                    Err(back) => thing = Some(back),
                }
                if self.waiting.is_empty() {
                    self.free.extend(thing.take());
                }
            }
        }
        #[message(name = "Free")]
        fn free(&self) -> Vec<String> {
            self.free.clone()
        }
    }
    struct Client(ActorRef<Pool>);
    #[actor]
    impl Client {
        #[message(name = "Await")]
        async fn wait(&mut self) {
            let _ = self.0.ask(Lend).await;
        }
        #[message(name = "Continue")]
        fn go_on(&mut self, ctx: &mut Context<Self>) {
            ctx.ask(self.0, Lend).then(|_, _, _| {});
        }
    }
    let system = simulated(6);
    let pool = system.spawn(Pool { free: Vec::new(), waiting: Vec::new() });
    assert!(pool.ask(Lend).within(SECOND).wait().is_err());
    let [one, other] = [system.spawn(Client(pool)), system.spawn(Client(pool))];
    one.tell(Await);
    other.tell(Continue);
    pool.tell(Lend);
    system.run_until_idle();
    one.kill();
    other.kill();
    system.run_until_idle();
    pool.tell(Return("a connection".to_owned()));
    assert_eq!(pool.ask(Free).wait(), Ok(vec!["a connection".to_owned()]));
}

// GUARANTEE: Later replies
#[test]
fn a_restart_leaves_the_replies_of_the_former_state_unanswered() {
    let system = simulated(5);
    let supervisor = system.spawn(Supervisor::new(SupervisionPolicy::one_for_one()));
    let shelf = supervisor.ask(ChildSpec::new("shelf", Shelf::default)).wait().unwrap().unwrap();
    let asker = system.spawn(Asker { shelf });
    let teller = system.spawn(Teller { asker, told: None });
    teller.tell(Begin(1));
    system.run_until_idle();
    shelf.tell(Crash);
    system.run_until_idle();
    assert_eq!(teller.ask(Told).wait(), Ok(Some(Err(AskError::Unanswered))));
    assert_eq!(shelf.ask(Awaited).wait(), Ok(0));
}

// GUARANTEE: Forwarded requests
#[test]
fn a_forwarded_request_is_taken_back_when_nobody_waits_any_more() {
    let system = simulated(6);
    let desks = desks(&system, 3);
    // The third desk waits for the second one. The second one keeps the reply, and therefore handles no message.
    let waits = system.spawn(Waits { desk: desks[2], waited: None });
    waits.tell(Wait(1));
    system.run_until_idle();
    assert_eq!(
        desks[0].ask(Pass(vec![2])).within(SECOND).wait(),
        Err(AskError::Deadline { phase: playhouse::AskPhase::Queued })
    );
    desks[1].tell(PassKept(0));
    system.run_until_idle();
    assert_eq!(waits.ask(Waited).wait(), Ok(Some(Ok(2))));
    assert_eq!(desks[2].ask(Handled).wait(), Ok(0));
}

/// Has a desk wait for another one.
struct Waits {
    desk: ActorRef<Desk>,
    waited: Option<Result<u32, AskError>>,
}

#[actor]
impl Waits {
    #[message]
    fn wait(&mut self, at: usize, ctx: &mut Context<Self>) {
        ctx.ask(self.desk, WaitForKept(at))
            .then(|this, answer, _| this.waited = Some(answer.and_then(|answer| answer)));
    }

    #[message]
    fn waited(&self) -> Option<Result<u32, AskError>> {
        self.waited.clone()
    }
}

// GUARANTEE: Forwarded requests
#[test]
fn the_asker_of_a_forwarded_request_waits_for_the_new_receiver() {
    for seed in 0..50 {
        let system = simulated(seed);
        let desks = desks(&system, 3);
        // The request is forwarded to the asker itself, directly and over another desk.
        let answer = desks[0].ask(WaitFor(1, vec![0])).wait().unwrap();
        assert!(matches!(&answer, Err(AskError::Cycle(path)) if path.len() == 2), "{answer:?}");
        let answer = desks[0].ask(WaitFor(1, vec![2, 0])).wait().unwrap();
        assert!(matches!(&answer, Err(AskError::Cycle(path)) if path.len() == 2), "{answer:?}");
        // The target waits for the asker: the first waits for the second, which waits for the third, which forwards to
        // the first.
        let waits = system.spawn(Waits { desk: desks[0], waited: None });
        waits.tell(Wait(2));
        system.run_until_idle();
        let answer = desks[1].ask(WaitFor(2, vec![0])).within(SECOND).wait();
        // The first desk waits for the third, which is free. That is no cycle, and the second one waits until the
        // deadline.
        assert_eq!(answer, Err(AskError::Deadline { phase: playhouse::AskPhase::Running }), "seed {seed}");
        system.run_until_idle();
        // The first desk waits for the second now, and not for the third any more.
        desks[2].tell(PassKept(1));
        system.run_until_idle();
        assert!(matches!(waits.ask(Waited).wait(), Ok(Some(Ok(_)))), "seed {seed}");
    }
}

// GUARANTEE: Forwarded requests
/// The forwarding desk then asks the asker. That is no cycle, because the asker waits for a third desk.
#[test]
fn the_forwarder_of_a_request_may_ask_the_asker() {
    for seed in 0..50 {
        let system = simulated(seed);
        let desks = desks(&system, 3);
        let waits = system.spawn(Waits { desk: desks[0], waited: None });
        // The first desk waits for the second, which keeps the reply. The third one waits for the second, too.
        waits.tell(Wait(1));
        system.run_until_idle();
        // The asker cannot answer, because it waits.
        let cycle = desks[1].ask(WaitFor(0, Vec::new())).wait().unwrap();
        assert!(matches!(&cycle, Err(AskError::Cycle(path)) if path.len() == 3), "seed {seed}: {cycle:?}");
        desks[1].tell(PassKept(2));
        let answer = desks[1].ask(WaitFor(0, Vec::new())).wait().unwrap();
        assert_eq!(answer, Ok(1), "seed {seed}");
    }
}

/// A crowd whose members ask, forward, keep, drop and answer at random.
struct Member {
    dice: Dice,
    others: Vec<ActorRef<Member>>,
    kept: Vec<(u64, Reply<u64>)>,
    counts: Arc<Counts>,
    ask_limit: Duration,
}

#[derive(Default)]
struct Counts {
    asked: AtomicU64,
    answered: AtomicU64,
    unanswered: AtomicU64,
    cycles: AtomicU64,
    late: AtomicU64,
    stopped: AtomicU64,
}

#[actor]
impl Member {
    #[message(name = "Others")]
    fn others(&mut self, others: Vec<ActorRef<Member>>) {
        self.others = others;
    }

    #[message]
    fn want(&mut self, number: u64, reply: Reply<u64>) {
        let to = self.others[self.dice.below(self.others.len())];
        match self.dice.below(6) {
            0 | 1 => reply.send(number),
            2 => reply.forward(to, Want(number)),
            3 => to.tell(Hand((number, reply))),
            4 if self.dice.one_in(4) => drop(reply),
            _ => self.kept.push((number, reply)),
        }
        self.go_on(4);
    }

    #[message]
    fn hand(&mut self, handed: (u64, Reply<u64>)) {
        self.kept.push(handed);
        self.go_on(2);
    }

    fn go_on(&mut self, one_in: u64) {
        while !self.kept.is_empty() && self.dice.one_in(one_in) {
            let (number, reply) = self.kept.swap_remove(0);
            let to = self.others[self.dice.below(self.others.len())];
            if self.dice.one_in(3) { reply.forward(to, Want(number)) } else { reply.send(number) }
        }
    }

    #[message]
    async fn ask_on(&mut self, number: u64) {
        let to = self.others[self.dice.below(self.others.len())];
        let ask = to.ask(Want(number));
        let ask = ask.within(if self.dice.one_in(3) { self.ask_limit / 200 } else { self.ask_limit });
        self.counts.asked.fetch_add(1, Ordering::Relaxed);
        let count = match ask.await {
            Ok(answer) => {
                assert_eq!(answer, number);
                &self.counts.answered
            }
            Err(AskError::Unanswered) => &self.counts.unanswered,
            Err(AskError::Cycle(_)) => &self.counts.cycles,
            Err(AskError::Deadline { .. }) => &self.counts.late,
            Err(AskError::Stopped) => &self.counts.stopped,
            Err(error) => panic!("{error}"),
        };
        count.fetch_add(1, Ordering::Relaxed);
        self.go_on(2);
    }
}

fn crowd(system: &System, seed: u64, asks: u64, ask_limit: Duration) -> BTreeMap<&'static str, u64> {
    let counts = Arc::<Counts>::default();
    let members: Vec<_> = (0..8)
        .map(|at| {
            let counts = Arc::clone(&counts);
            system.spawn(Member {
                dice: Dice(seed * 100 + at),
                others: Vec::new(),
                kept: Vec::new(),
                counts,
                ask_limit,
            })
        })
        .collect();
    members.iter().for_each(|member| member.tell(Others(members.clone())));
    let mut dice = Dice(seed);
    for number in 0..asks {
        members[dice.below(members.len())].tell(AskOn(number));
    }
    system.run_until_idle();
    let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let Counts { asked, answered, unanswered, cycles, late, stopped } = &*counts;
    let ended = [answered, unanswered, cycles, late, stopped].map(count);
    // Each ask has ended, and each once.
    assert_eq!((count(asked), ended.iter().sum::<u64>()), (asks, asks), "seed {seed}");
    ["answered", "unanswered", "cycles", "late", "stopped"].into_iter().zip(ended).collect()
}

// GUARANTEE: Later replies
#[test]
fn in_a_crowd_that_keeps_forwards_and_hands_on_replies_each_ask_ends_once() {
    finishes(|| {
        let mut all = BTreeMap::new();
        for seed in 0..200 {
            for (what, count) in crowd(&simulated(seed), seed, 60, 10 * SECOND) {
                *all.entry(what).or_insert(0) += count;
            }
        }
        for what in ["answered", "unanswered", "cycles", "late"] {
            assert!(all[what] > 100, "{all:?}");
        }
    });
}

// GUARANTEE: Later replies
#[test]
fn on_threads_too() {
    finishes(|| {
        for seed in 0..10 {
            let system = threads(2);
            crowd(&system, seed, 100, SECOND / 10);
            system.shutdown().unwrap();
        }
    });
}

/// A member of a crowd that asks without a deadline, and forwards no reply.
struct Patient {
    dice: Dice,
    others: Vec<ActorRef<Patient>>,
    kept: Vec<Reply<u64>>,
    counts: Arc<Counts>,
}

#[actor]
impl Patient {
    #[message(name = "Meeting")]
    fn meeting(&mut self, others: Vec<ActorRef<Patient>>) {
        self.others = others;
    }

    #[message]
    fn wish(&mut self, hops: u64, reply: Reply<u64>) {
        let to = self.others[self.dice.below(self.others.len())];
        match self.dice.below(3) {
            0 if hops > 0 => reply.forward(to, Wish(hops - 1)),
            1 => self.kept.push(reply),
            _ => reply.send(hops),
        }
    }

    #[message]
    async fn ask_wish(&mut self) {
        let to = self.others[self.dice.below(self.others.len())];
        self.counts.asked.fetch_add(1, Ordering::Relaxed);
        let count = match to.ask(Wish(4)).await {
            Ok(_) => &self.counts.answered,
            Err(AskError::Cycle(_)) => &self.counts.cycles,
            Err(error) => panic!("{error}"),
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    #[message]
    fn settle(&mut self) -> usize {
        let kept = std::mem::take(&mut self.kept);
        let count = kept.len();
        for reply in kept {
            let to = self.others[self.dice.below(self.others.len())];
            if self.dice.one_in(2) { reply.forward(to, Wish(4)) } else { reply.send(0) }
        }
        count
    }
}

// GUARANTEE: Forwarded requests
/// If no member waits for itself over others, some member is free and can answer.
#[test]
fn no_cycle_is_missed_in_a_crowd_without_deadlines() {
    let (mut answered, mut cycles) = (0, 0);
    for seed in 0..300 {
        let system = simulated(seed);
        let counts = Arc::<Counts>::default();
        let patient = |at| {
            let (dice, counts) = (Dice(seed * 100 + at), Arc::clone(&counts));
            system.spawn(Patient { dice, others: Vec::new(), kept: Vec::new(), counts })
        };
        let patients: Vec<_> = (0..5).map(patient).collect();
        patients.iter().for_each(|patient| patient.tell(Meeting(patients.clone())));
        let mut dice = Dice(seed);
        for _ in 0..40 {
            patients[dice.below(5)].tell(AskWish);
        }
        for round in 0.. {
            // Members that wait settle later.
            patients.iter().for_each(|patient| patient.tell_urgent(Settle));
            system.run_until_idle();
            let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
            let ended = count(&counts.answered) + count(&counts.cycles);
            if ended == 40 {
                (answered, cycles) = (answered + count(&counts.answered), cycles + count(&counts.cycles));
                break;
            }
            assert!(round < 2_000, "seed {seed}: {ended} of 40 have ended");
        }
    }
    assert!(answered > 3_000 && cycles > 1_000, "{answered} {cycles}");
}
