//! Reports call actors by their given names.

use crate::support::{Do, Gate, Log, Mourn, Mourner, Puppet, Write, finishes, quiet_panics, simulated, threads};
use playhouse::prelude::*;

fn named(name: &str) -> SpawnOptions {
    SpawnOptions::new().name(name)
}

/// Asks the next actor, which asks the next one.
struct Link {
    next: Option<ActorRef<Link>>,
}

#[actor]
impl Link {
    #[message]
    fn tie(&mut self, next: ActorRef<Link>) {
        self.next = Some(next);
    }

    #[message]
    async fn pull(&mut self) -> Result<u64, AskError> {
        match self.next {
            Some(next) => Ok(next.ask(Pull).await?? + 1),
            None => Ok(0),
        }
    }
}

// GUARANTEE: Names
#[test]
fn a_reference_shows_the_name_while_its_actor_lives() {
    for seed in 0..20 {
        let system = simulated(seed);
        let puppet = system.spawn_with(named("Punch"), Puppet);
        let recipient: Recipient<Do> = puppet.recipient();
        for _ in 0..2 {
            assert_eq!(format!("{puppet} {puppet:?}"), "Puppet \"Punch\" Puppet \"Punch\"");
            assert_eq!(format!("{recipient:?}"), "Recipient<Do> \"Punch\"");
            system.run_until_idle();
        }
        puppet.stop();
        system.run_until_idle();
        assert_eq!(puppet.to_string(), format!("Puppet{}", puppet.id()));
    }
}

// GUARANTEE: Names
#[test]
fn an_actor_has_its_name_from_its_start_to_its_end() {
    struct Diary(Log<String>);
    impl Actor for Diary {
        fn started(&mut self, ctx: &mut Context<Self>) {
            self.0.push(format!("{} {:?}", ctx.this(), ctx.name()));
            ctx.stop();
        }
        fn stopped(&mut self, ctx: &mut Context<Self>) {
            self.0.push(ctx.this().to_string());
        }
    }
    let system = simulated(0);
    let log = Log::new();
    let ended = Log::new();
    for within_a_handler in [false, true] {
        let (diary, ended) = (Diary(log.clone()), ended.clone());
        if within_a_handler {
            system.spawn(Puppet).tell(Do::this(move |ctx| ended.push(ctx.spawn_with(named("mine"), diary))));
        } else {
            ended.push(system.spawn_with(named("mine"), diary));
        }
        system.run_until_idle();
        assert_eq!(log.take(), ["Diary \"mine\" Some(\"mine\")", "Diary \"mine\""]);
    }
    for diary in ended.take() {
        assert!(!diary.to_string().contains("mine"), "{diary} has ended");
    }
}

#[test]
fn the_name_of_an_actor_that_never_started_is_forgotten() {
    let system = simulated(0);
    let puppet = system.spawn_with(named("Judy"), Puppet);
    puppet.kill();
    system.run_until_idle();
    assert!(puppet.is_stopped() && !puppet.to_string().contains("Judy"));
    let puppet = system.spawn_with(named("Judy"), Puppet);
    system.shutdown().unwrap();
    assert!(!puppet.to_string().contains("Judy"));
}

// GUARANTEE: Names
#[test]
fn a_cycle_of_asks_names_its_actors() {
    finishes(|| {
        let system = threads(2);
        let links = ["a", "b", "c"].map(|name| system.spawn_with(named(name), Link { next: None }));
        for (at, link) in links.iter().enumerate() {
            link.tell(Tie(links[(at + 1) % links.len()]));
        }
        let Err(error @ AskError::Cycle(_)) = links[0].ask(Pull).wait().unwrap() else { panic!("it is a cycle") };
        let text = error.to_string();
        assert!(text.contains("Link \"b\" -> Link \"c\""), "{text}");
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Names
#[test]
fn a_watcher_is_told_the_name() {
    let system = simulated(0);
    let log = Log::new();
    let mourner = system.spawn(Mourner(log.clone()));
    for options in [named("Punch"), SpawnOptions::new()] {
        let puppet = system.spawn_with(options.clone(), Puppet);
        mourner.ask(Mourn(puppet)).wait().unwrap();
        puppet.kill();
        system.run_until_idle();
    }
    let downs = log.take();
    assert_eq!(downs[0].name.as_deref(), Some("Punch"));
    assert_eq!(downs[0].to_string(), "\"Punch\" has ended: it was killed");
    assert_eq!(downs[1].name, None);
    assert_eq!(downs[1].to_string(), format!("{} has ended: it was killed", downs[1].who));
}

#[test]
fn a_supervised_child_keeps_its_name_over_restarts() {
    quiet_panics();
    let system = simulated(0);
    let supervisor = system.spawn(Supervisor::new(SupervisionPolicy::one_for_one()));
    let puppet = supervisor.ask(ChildSpec::new("Punch", || Puppet)).wait().unwrap().unwrap();
    for _ in 0..3 {
        assert_eq!(puppet.to_string(), "Puppet \"Punch\"");
        puppet.tell(Do::this(|_| panic!("meant: that's the way to do it")));
        system.run_until_idle();
    }
    assert!(!puppet.is_stopped());
}

#[test]
fn the_error_names_the_actor_that_could_not_be_started() {
    let system = simulated(0);
    let error = system.try_spawn_with(named("Punch").placement(Placement::Stage(999)), Puppet).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("the actor Puppet \"Punch\" could not be started: stage 999"), "{text}");
    let error = system.try_spawn_with(SpawnOptions::new().placement(Placement::Stage(999)), Puppet).unwrap_err();
    assert!(error.to_string().starts_with("the actor Puppet could not be started: stage 999"), "{error}");
}

#[test]
fn dead_letters_are_shown_without_paths_and_have_them() {
    let system = simulated(0);
    let letters = Log::new();
    let (first, second) = (letters.clone(), letters.clone());
    system.on_dead_letter(move |letter| first.push((1, letter.clone())));
    system.on_dead_letter(move |letter| second.push((2, letter.clone())));
    let scribe = system.spawn(crate::support::Scribe(Log::new()));
    scribe.kill();
    system.run_until_idle();
    scribe.tell(Write(1));
    system.run_until_idle();
    let letters = letters.take();
    assert_eq!(letters.iter().map(|(hook, _)| *hook).collect::<Vec<_>>(), [1, 2], "each hook is called, in order");
    let letter: &DeadLetter = &letters[0].1;
    assert_eq!(letter.to_string(), "Write for Scribe: the actor has stopped");
    assert_eq!((letter.actor, letter.message), ("actors::support::Scribe", "actors::support::Write"));
}

#[test]
fn a_name_does_not_outlive_a_dedicated_actor() {
    finishes(|| {
        let system = threads(1);
        let puppet = system.spawn_with(named("Punch").placement(Placement::Dedicated), Puppet);
        let (gate, turnstile) = Gate::new();
        puppet.tell(Do::this(move |ctx| {
            turnstile.pass();
            ctx.stop();
        }));
        gate.wait_entered();
        assert_eq!(puppet.to_string(), "Puppet \"Punch\"");
        gate.open();
        system.run_until_idle();
        assert!(!puppet.to_string().contains("Punch"));
        system.shutdown().unwrap();
    });
}
