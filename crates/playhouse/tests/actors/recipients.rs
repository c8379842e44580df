//! Recipients: references that know the type of a message, and not the type of its actor.

use std::time::Duration;

use crate::support::{finishes, simulated, threads};
use playhouse::prelude::*;

/// Takes `0` of the stock, and answers with the rest.
#[derive(Message)]
#[message(reply = u32)]
struct Withdraw(u32);

/// Answers at once.
struct Purse(u32);

#[actor]
impl Purse {}

impl Handler<Withdraw> for Purse {
    fn handle(&mut self, withdraw: Withdraw, ctx: &mut Context<Self>) -> u32 {
        if withdraw.0 > self.0 {
            ctx.stop();
        }
        self.0 = self.0.saturating_sub(withdraw.0);
        self.0
    }
}

/// Asks another actor of any type.
struct Branch {
    bank: Recipient<Withdraw>,
    told: Vec<Result<u32, AskError>>,
}

#[actor]
impl Branch {
    #[message]
    fn set_bank(&mut self, bank: Recipient<Withdraw>) {
        self.bank = bank;
    }

    #[message]
    fn later(&mut self, amount: u32, ctx: &mut Context<Self>) {
        ctx.ask(self.bank, Withdraw(amount))
            .within(Duration::from_secs(1))
            .then(|branch, answer, _| branch.told.push(answer));
    }

    #[message]
    fn pass_on(&mut self, amount: u32, reply: Reply<u32>) {
        reply.forward(self.bank, Withdraw(amount));
    }

    #[message]
    fn told(&self) -> Vec<Result<u32, AskError>> {
        self.told.clone()
    }
}

impl AsyncHandler<Withdraw> for Branch {
    async fn handle(&mut self, withdraw: Withdraw, _: &mut Context<Self>) -> u32 {
        match self.bank.ask(withdraw).await {
            Ok(left) => left,
            Err(error) => {
                self.told.push(Err(error));
                0
            }
        }
    }
}

// GUARANTEE: Recipients are asked
#[test]
fn recipients_of_different_actors_are_asked_alike() {
    for seed in 0..50 {
        let system = simulated(seed);
        let purse = system.spawn(Purse(100));
        let branch = system.spawn(Branch { bank: purse.recipient(), told: Vec::new() });
        let both: [Recipient<Withdraw>; 2] = [purse.recipient(), branch.recipient()];
        assert_eq!(both.map(|to| to.ask(Withdraw(10)).wait()), [Ok(90), Ok(80)], "seed {seed}");
        branch.tell(Later(5));
        system.run_until_idle();
        assert_eq!(branch.ask(Told).wait(), Ok(vec![Ok(75)]));
        assert_eq!(branch.ask(PassOn(25)).wait(), Ok(50));
        system.shutdown().unwrap();
    }
}

// GUARANTEE: Recipients are asked
#[test]
fn recipients_are_asked_from_threads_and_tasks() {
    finishes(|| {
        let system = threads(2);
        let purse: Recipient<Withdraw> = system.spawn(Purse(100_000)).recipient();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(move || (0..2_000).for_each(|_| _ = purse.ask(Withdraw(10)).wait().unwrap()));
            }
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            for _ in 0..2_000 {
                purse.ask(Withdraw(10)).await.unwrap();
            }
        });
        assert_eq!(purse.ask(Withdraw(0)).wait(), Ok(40_000));
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Recipients are asked
#[test]
fn a_cycle_over_recipients_is_found_and_names_the_actors() {
    for seed in 0..50 {
        let system = simulated(seed);
        let nobody = system.spawn(Purse(0));
        let named =
            |name: &str, bank| system.spawn_with(SpawnOptions::new().name(name), Branch { bank, told: Vec::new() });
        let one = named("one", nobody.recipient());
        let two = named("two", one.recipient());
        one.tell(SetBank(two.recipient()));
        assert_eq!(one.ask(Withdraw(1)).wait(), Ok(0));
        let told: Vec<_> = [one, two].into_iter().flat_map(|branch| branch.ask(Told).wait().unwrap()).collect();
        let [Err(AskError::Cycle(path))] = &told[..] else { panic!("seed {seed}: {told:?}") };
        assert!(path.iter().all(|actor| actor.starts_with("Branch \"")), "{path:?}");
        assert_eq!(path.len(), 3, "{path:?}");
        system.shutdown().unwrap();
    }
}

// GUARANTEE: Recipients are asked
#[test]
fn asks_of_ended_recipients_fail() {
    let system = simulated(1);
    let purse = system.spawn(Purse(1));
    let branch = system.spawn(Branch { bank: purse.recipient(), told: Vec::new() });
    let ended: Recipient<Withdraw> = purse.recipient();
    assert_eq!(ended.ask(Withdraw(2)).wait(), Ok(0), "it stops after this one");
    assert_eq!(ended.ask(Withdraw(2)).wait(), Err(AskError::Stopped));
    assert_eq!(branch.ask(Withdraw(2)).wait(), Ok(0));
    branch.tell(Later(1));
    system.run_until_idle();
    let told = branch.ask(Told).wait().unwrap();
    assert_eq!(told, [Err(AskError::Stopped), Err(AskError::Stopped)]);
    assert_eq!(branch.ask(PassOn(1)).wait(), Err(AskError::Stopped));
    system.shutdown().unwrap();
    assert_eq!(ended.ask(Withdraw(2)).wait(), Err(AskError::Shutdown));
}

// GUARANTEE: Recipients are asked
#[test]
fn the_deadline_of_an_ask_of_a_recipient_holds() {
    struct Slow;
    impl Actor for Slow {}
    impl AsyncHandler<Withdraw> for Slow {
        async fn handle(&mut self, _: Withdraw, ctx: &mut Context<Self>) -> u32 {
            ctx.sleep(Duration::from_secs(60)).await;
            1
        }
    }
    let system = simulated(3);
    let slow: Recipient<Withdraw> = system.spawn(Slow).recipient();
    let late = slow.ask(Withdraw(1)).within(Duration::from_secs(2)).wait();
    assert_eq!(late, Err(AskError::Deadline { phase: AskPhase::Running }));
    assert_eq!(system.now(), Duration::from_secs(2));
    system.shutdown().unwrap();
}
