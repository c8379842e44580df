//! Actors find each other by type and key. Actors that have ended are not found.

mod support;

use playhouse::prelude::*;
use playhouse::receptionist::{Claim, Deregister, Find, Listing, Receptionist, Register, Subscribe, Unsubscribe};
use support::{Adder, Dice, Do, Log, Puppet, finishes, simulated, threads};

/// Logs the listings it gets.
struct Guest {
    log: Log<Vec<ActorRef<Puppet>>>,
}

impl Actor for Guest {}

impl Handler<Listing<Puppet>> for Guest {
    fn handle(&mut self, listing: Listing<Puppet>, _: &mut Context<Self>) {
        assert_eq!(listing.key, "puppets");
        self.log.push(listing.actors);
    }
}

fn find(receptionist: ActorRef<Receptionist>, key: &str) -> Vec<ActorRef<Puppet>> {
    receptionist.ask(Find::<Puppet>::new(key)).wait().unwrap()
}

// GUARANTEE: The receptionist
#[test]
fn actors_are_found_by_type_and_key_until_they_end() {
    for seed in 0..50 {
        let system = simulated(seed);
        let receptionist = system.spawn(Receptionist::new());
        let puppets = [0, 1, 2].map(|_| system.spawn(Puppet));
        let adder = system.spawn(Adder);
        for puppet in puppets {
            receptionist.tell(Register::new("puppets", puppet));
        }
        receptionist.tell(Register::new("puppets", puppets[0]));
        receptionist.tell(Register::new("others", puppets[0]));
        // The same key, but another type.
        receptionist.tell(Register::new("puppets", adder));
        assert_eq!(find(receptionist, "puppets"), puppets);
        assert_eq!(find(receptionist, "others"), [puppets[0]]);
        assert_eq!(receptionist.ask(Find::<Adder>::new("puppets")).wait(), Ok(vec![adder]));
        assert_eq!(find(receptionist, "nobody"), []);
        puppets[0].kill();
        system.run_until_idle();
        assert_eq!((find(receptionist, "puppets"), find(receptionist, "others")), (puppets[1..].to_vec(), vec![]));
        assert_eq!(receptionist.ask(Deregister::new("puppets", puppets[1])).wait(), Ok(true));
        assert_eq!(receptionist.ask(Deregister::new("puppets", puppets[1])).wait(), Ok(false));
        assert_eq!(find(receptionist, "puppets"), [puppets[2]], "seed {seed}");
        // An actor that had ended before its registration is soon gone.
        receptionist.tell(Register::new("others", puppets[0]));
        system.run_until_idle();
        assert_eq!(find(receptionist, "others"), []);
    }
}

// GUARANTEE: The receptionist
#[test]
fn a_subscriber_gets_a_listing_now_and_at_each_change() {
    for seed in 0..50 {
        let system = simulated(seed);
        let receptionist = system.spawn(Receptionist::new());
        let [a, b] = [0, 1].map(|_| system.spawn(Puppet));
        let log = Log::new();
        let guest = system.spawn(Guest { log: log.clone() });
        let step = |message: &dyn Fn()| {
            message();
            system.run_until_idle();
            log.take()
        };
        assert_eq!(step(&|| receptionist.tell(Register::new("puppets", a))), Vec::<Vec<_>>::new());
        assert_eq!(step(&|| receptionist.tell(Subscribe::<Puppet>::new("puppets", guest))), [vec![a]]);
        assert_eq!(step(&|| receptionist.tell(Register::new("puppets", b))), [vec![a, b]]);
        // A registration that changes nothing is no news.
        assert_eq!(step(&|| receptionist.tell(Register::new("puppets", b))), Vec::<Vec<_>>::new());
        assert_eq!(step(&|| receptionist.tell(Register::new("others", b))), Vec::<Vec<_>>::new());
        assert_eq!(step(&|| a.stop()), [vec![b]]);
        assert_eq!(step(&|| receptionist.tell(Deregister::new("puppets", b))), [vec![]]);
        assert_eq!(step(&|| receptionist.tell(Deregister::new("puppets", b))), Vec::<Vec<_>>::new());
        // A repeated subscription gets the listing again, and subscribes the actor once.
        assert_eq!(step(&|| receptionist.tell(Subscribe::<Puppet>::new("puppets", guest))), [vec![]]);
        assert_eq!(step(&|| receptionist.tell(Register::new("puppets", b))), [vec![b]]);
        assert_eq!(step(&|| receptionist.tell(Unsubscribe::<Puppet>::new("puppets", guest))), Vec::<Vec<_>>::new());
        assert_eq!(step(&|| b.kill()), Vec::<Vec<_>>::new(), "seed {seed}");
    }
}

#[test]
fn a_subscriber_that_has_ended_is_told_nothing() {
    for seed in 0..50 {
        let system = simulated(seed);
        let receptionist = system.spawn(Receptionist::new());
        let guest = system.spawn(Guest { log: Log::new() });
        receptionist.tell(Subscribe::<Puppet>::new("puppets", guest));
        system.run_until_idle();
        guest.stop();
        system.run_until_idle();
        receptionist.tell(Register::new("puppets", system.spawn(Puppet)));
        system.run_until_idle();
        assert_eq!(system.stats().total.dead_letters, 0, "seed {seed}");
    }
}

// GUARANTEE: The receptionist
#[test]
fn the_last_listing_is_the_truth_whatever_came_before() {
    for seed in 0..100 {
        let system = System::builder().workers(3).simulated(seed).start().unwrap();
        let receptionist = system.spawn(Receptionist::new());
        let log = Log::new();
        receptionist.tell(Subscribe::<Puppet>::new("puppets", system.spawn(Guest { log: log.clone() })));
        let mut dice = Dice(seed);
        let mut puppets = Vec::new();
        for _ in 0..40 {
            match dice.below(4) {
                0 if !puppets.is_empty() => {
                    let puppet: ActorRef<Puppet> = puppets.swap_remove(dice.below(puppets.len()));
                    puppet.stop();
                }
                1 if !puppets.is_empty() => {
                    let puppet = puppets.swap_remove(dice.below(puppets.len()));
                    receptionist.tell(Deregister::new("puppets", puppet));
                }
                _ => {
                    let puppet = system.spawn(Puppet);
                    puppets.push(puppet);
                    receptionist.tell(Register::new("puppets", puppet));
                }
            }
        }
        system.run_until_idle();
        let mut last = log.take().pop().unwrap();
        last.sort_unstable();
        puppets.sort_unstable();
        assert_eq!(last, puppets, "seed {seed}");
    }
}

// GUARANTEE: An alias has one owner
#[test]
fn an_alias_belongs_to_one_actor_until_it_ends() {
    for seed in 0..50 {
        let system = simulated(seed);
        let receptionist = system.spawn(Receptionist::new());
        let [first, second] = [0, 1].map(|_| system.spawn(Puppet));
        let claim = |who| receptionist.ask(Claim::new("the one", who)).wait().unwrap();
        let find = || receptionist.ask(Find::<Puppet>::new("the one")).wait().unwrap();
        assert_eq!(claim(first), Ok(()), "seed {seed}");
        assert_eq!(claim(first), Ok(()), "again, it changes nothing");
        assert_eq!((claim(second), find()), (Err(first), vec![first]));
        // Other keys, and actors of other types, stay free.
        assert_eq!(receptionist.ask(Claim::new("another", second)).wait().unwrap(), Ok(()));
        assert_eq!(receptionist.ask(Claim::new("the one", receptionist)).wait().unwrap(), Ok(()));

        // The end of its owner frees the alias, also before the receptionist has the notice.
        first.stop();
        while !first.is_stopped() {
            let _ = second.ask(Do::this(|_| ())).wait();
        }
        assert_eq!(claim(second), Ok(()), "seed {seed}");
        system.run_until_idle();
        assert_eq!(find(), [second], "seed {seed}");
        assert!(receptionist.ask(Deregister::new("the one", second)).wait().unwrap());
        let third = system.spawn(Puppet);
        assert_eq!((claim(third), find()), (Ok(()), vec![third]), "seed {seed}");
    }
}

// GUARANTEE: An alias has one owner
#[test]
fn one_of_several_claims_at_the_same_time_succeeds() {
    finishes(|| {
        let system = threads(2);
        let receptionist = system.spawn(Receptionist::new());
        for round in 0..100 {
            let key = format!("key {round}");
            let won: usize = std::thread::scope(|scope| {
                let claims = [0; 4].map(|_| {
                    scope.spawn(|| {
                        receptionist.ask(Claim::new(key.as_str(), system.spawn(Puppet))).wait().unwrap().is_ok()
                    })
                });
                claims.into_iter().map(|claim| usize::from(claim.join().unwrap())).sum()
            });
            assert_eq!(won, 1);
        }
        system.shutdown().unwrap();
    });
}
