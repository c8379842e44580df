//! Runs under a seed: they are repeated, drawn as charts, and reported with their commit.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use playhouse::prelude::*;
use playhouse_testkit::programs::{PROGRAMS, named};
use playhouse_testkit::{Chart, Checker, commit, replay, simulate, under_seeds};

// GUARANTEE: Replay of deliveries
#[test]
fn the_same_seed_gives_the_same_run_and_others_give_others() {
    for program in PROGRAMS {
        let mut hashes = HashSet::new();
        for seed in 0..20 {
            let first = replay(seed, program.right());
            let again = replay(seed, program.right());
            assert_eq!(first.hash(), again.hash(), "{} {seed}", program.name);
            assert_eq!(first.deliveries(), again.deliveries());
            assert_eq!(first.result(), again.result());
            assert!(first.failure().is_none());
            hashes.insert(first.hash());
        }
        assert!(hashes.len() >= 15, "{}: only {} different runs under 20 seeds", program.name, hashes.len());
    }
}

/// An actor that says one thing after another.
struct Talker(ActorRef<Listener>, Vec<&'static str>);
#[derive(Default)]
struct Listener;

#[actor]
impl Listener {
    #[message]
    fn hear(&mut self, _what: &'static str) {}
    #[message]
    fn see(&mut self) {}
}

#[actor]
impl Talker {
    #[message]
    fn talk(&mut self, ctx: &mut Context<Self>) {
        if let Some(what) = self.1.pop() {
            if what == "nod" {
                self.0.tell(See)
            } else {
                self.0.tell(Hear(what))
            }
            ctx.send_after(Duration::from_secs(1), Talk);
        } else {
            self.0.stop();
            self.0.tell(See);
        }
    }
}

fn talk(system: &System, words: &[&'static str]) {
    let listener = system.spawn_with(SpawnOptions::new().name("bob"), Listener);
    let talker = system.spawn_with(SpawnOptions::new().name("ann"), Talker(listener, words.to_vec()));
    talker.tell(Talk);
}

// GUARANTEE: Replay of deliveries
#[test]
fn the_hash_knows_the_order() {
    let hash = |words: &[&'static str]| replay(0, |system| talk(system, words)).hash();
    assert_eq!(hash(&["nod", "well"]), hash(&["nod", "well"]));
    assert_ne!(hash(&["nod", "well"]), hash(&["well", "nod"]));
    assert_ne!(hash(&["nod"]), hash(&["nod", "nod"]));
    // The hash is fixed, because hashes are compared across machines and versions.
    assert_eq!(replay(1, named("commit").unwrap().right()).hash(), COMMIT_HASH);
}

const COMMIT_HASH: u64 = 10_654_811_605_049_426_852;

#[test]
fn a_chart_shows_senders_messages_and_receivers() {
    let run = replay(0, |system| talk(system, &["well"]));
    assert_eq!(
        run.chart().to_string(),
        [
            r#"     program      Talker "ann"   Listener "bob""#,
            r#"        |               |               |"#,
            r#"        |-----start---->|               |"#,
            r#"        |-------------start------------>|"#,
            r#"        |-----Talk----->|               |"#,
            r#"        |               |-----Hear----->|"#,
            r#"        |               |<- Talk        |"#,
            r#"        |               |-----stop----->|"#,
            r#"        |               |------See----->|   !! dead letter: See for Listener: the actor has stopped"#,
            "",
        ]
        .join("\n")
    );
}

#[test]
fn a_picture_has_an_arrow_for_each_delivery() {
    let run = replay(0, |system| talk(system, &["well"]));
    let svg = run.chart().svg();
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    assert_eq!(svg.matches("marker-end").count(), run.deliveries().len());
    assert!(svg.contains("Talker &quot;ann&quot;") && !svg.contains("\"ann\""), "names are escaped");
    assert!(svg.contains("#c00") && svg.contains("<title>dead letter: See for Listener"), "what went wrong is marked");
    assert!(Chart::of(&[]).svg().contains("</svg>"));
}

// GUARANTEE: Replay of deliveries
#[test]
fn a_failure_prints_seed_and_commit_and_can_be_repeated() {
    let wrong = named("commit").unwrap().wrong();
    let program = |system: &System| {
        wrong(system);
    };
    let thrown =
        catch_unwind(AssertUnwindSafe(|| simulate(0..1000, program))).expect_err("one in three orders is wrong");
    let text = thrown.downcast_ref::<String>().unwrap();
    let seed: u64 = text.strip_prefix("under seed ").unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(text.contains(&format!("(commit {})", commit())), "{text}");
    assert!(text.contains("what was aborted is not committed"), "{text}");
    assert!(replay(seed, program).failure().is_some());
    simulate(0..20, |system| {
        named("commit").unwrap().right()(system);
    });
}

#[test]
fn violations_allowed_under_all_orders_are_allowed_under_seeds() {
    let program = |system: &System| {
        let till = system.spawn(Till(0));
        till.stop();
        system.run_until_idle();
        till.tell(Count);
        system.run_until_idle();
    };
    let thrown = catch_unwind(AssertUnwindSafe(|| simulate(0..1, program))).expect_err("nobody handles it");
    let text = thrown.downcast_ref::<String>().unwrap();
    assert!(text.contains("Count for Till") && text.contains("replay(0, ..)"), "{text}");
    Checker::new().allow_dead_letters().simulate(0..10, program);
    let any_time = Checker::new().any_time();
    let thrown = catch_unwind(AssertUnwindSafe(|| any_time.simulate(0..1, program))).expect_err("nobody handles it");
    let text = thrown.downcast_ref::<String>().unwrap();
    assert!(text.contains("Count for Till") && !text.contains("replay(0, ..)"), "{text}");
}

#[actor(remote)]
impl Till {
    #[message]
    fn count(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

struct Till(u64);

#[test]
fn theaters_run_under_many_seeds_and_a_failure_says_which() {
    let connections = AtomicU64::new(0);
    let theaters = |seed: u64| {
        let net = playhouse::Simulation::new(seed);
        let here = net.theater(Theater::builder()).unwrap();
        let there = net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap();
        there.publish("till", there.system().spawn(Till(0))).unwrap();
        let address = there.address().unwrap().to_string();
        let till = here.find::<Till>(&format!("playhouse://{address}/till")).wait().unwrap();
        net.break_by_chance(Duration::from_millis(5));
        for n in 1..=5 {
            assert_eq!(till.ask(Count).wait(), Ok(n));
            net.run_for(Duration::from_millis(5));
        }
        connections.fetch_max(net.happened().connections, Ordering::Relaxed);
    };
    under_seeds(0..10, theaters);
    assert!(connections.load(Ordering::Relaxed) > 1, "under some seed, the network broke");
    let thrown = catch_unwind(AssertUnwindSafe(|| {
        under_seeds(0..10, |seed| {
            theaters(seed);
            assert_ne!(seed, 7, "not seven");
        });
    }));
    let thrown = thrown.expect_err("seven comes");
    let text = thrown.downcast_ref::<String>().unwrap();
    assert!(text.starts_with(&format!("under seed 7 (commit {}): ", commit())) && text.contains("not seven"), "{text}");
}
