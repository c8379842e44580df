//! The first things a program does.

use playhouse::prelude::*;

#[derive(Default)]
struct Counter {
    n: u64,
}

#[actor]
impl Counter {
    #[message]
    fn add(&mut self, by: u64) {
        self.n += by;
    }
    #[message]
    fn get(&self) -> u64 {
        self.n
    }
}

#[test]
fn tell_and_ask() {
    let system = System::builder().workers(2).start().unwrap();
    let counter = system.spawn(Counter::default());
    for _ in 0..1000 {
        counter.tell(Add(5));
    }
    assert_eq!(counter.ask(Get).wait(), Ok(5000));
    let report = system.shutdown().unwrap();
    assert_eq!(report.actors_stopped, 1);
}

/// Needs only the prelude: the types that an ordinary program keeps, matches and returns.
mod with_the_prelude_only {
    use playhouse::prelude::*;
    use std::time::Duration;

    #[derive(Default)]
    pub struct Kettle {
        whistle: Option<TimerKey>,
        helper: Option<OwnedActor<Kettle>>,
        downs: Vec<Terminated>,
    }

    #[actor]
    impl Kettle {
        #[message]
        pub fn heat(&mut self, ctx: &mut Context<Self>) {
            self.whistle = Some(ctx.send_after(Duration::from_secs(60), Whistle));
        }
        #[message]
        pub fn whistle(&mut self) {}
        #[message]
        pub fn take_off(&mut self, ctx: &mut Context<Self>) {
            if let Some(key) = self.whistle.take() {
                ctx.cancel(key);
            }
            self.helper = None;
        }
        #[terminated]
        fn helper_ended(&mut self, terminated: Terminated) {
            self.downs.push(terminated);
        }
    }

    pub fn brew(system: &System, kettle: ActorRef<Kettle>) -> Result<(), SpawnError> {
        system.on_dead_letter(|letter: &DeadLetter| eprintln!("{letter}"));
        let options = SpawnOptions::new().placement(Placement::Group(Group::new(system)));
        let second = system.try_spawn_with(options, Kettle::default())?;
        match kettle.try_tell(Heat) {
            Ok(()) | Err(TrySendError::Full(Heat)) => {}
            Err(other) => panic!("{other}"),
        }
        let all: Vec<Recipient<TakeOff>> = vec![kettle.recipient(), second.recipient()];
        for kettle in all {
            assert!(kettle.try_tell(TakeOff).is_ok());
        }
        match kettle.ask(Whistle).within(Duration::from_secs(10)).wait() {
            Ok(()) => {}
            Err(AskError::Deadline { phase: AskPhase::Queued | AskPhase::Running }) => {}
            Err(other) => panic!("{other}"),
        }
        let policy = SupervisionPolicy::one_for_one().on::<SupervisionFailed>(Directive::Escalate);
        let supervisor = system.spawn(Supervisor::new(policy));
        supervisor.ask(ChildSpec::new("kettle", Kettle::default)).wait().expect("it answers").map(drop)
    }
}

#[test]
fn the_prelude_has_what_a_program_needs() {
    let system = System::builder().workers(2).simulated(1).start().unwrap();
    let kettle = system.spawn(with_the_prelude_only::Kettle::default());
    with_the_prelude_only::brew(&system, kettle).unwrap();
    system.run_until_idle();
    assert!(system.now().is_zero(), "the timer was cancelled");
}
