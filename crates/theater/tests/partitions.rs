//! The guarantees of links during a partition of the network: no packet passes, and neither end gets a notice.
//!
//! Each test runs in a network namespace of its own, and takes its only interface down. On a machine without namespaces the test
//! says it and proves nothing; `simulated.rs` has partitions on every machine.
#![cfg(target_os = "linux")]

#[allow(dead_code, reason = "other tests use all of it")]
mod faulty;
#[allow(dead_code, reason = "other tests use all of it")]
mod numbers;
mod support;

use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use faulty::eventually;
use numbers::{Echo, Seen, exchange_by};
use playhouse_actor::AskError;
use support::{LIMIT, theater};

/// Set in the process inside of the namespace.
const INSIDE: &str = "PLAYHOUSE_TEST_NAMESPACE";

/// Returns whether this process is in a namespace of its own. If not, runs the test `name` in one.
fn is_inside(name: &str) -> bool {
    if std::env::var(INSIDE).is_ok() {
        network("up");
        return true;
    }
    let allowed = Command::new("unshare").args(["-rn", "ip", "link", "set", "lo", "up"]).output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        eprintln!("{name}: not tested, for this machine allows no network namespaces (`unshare -rn`, `ip`)");
        return false;
    }
    let mut command = Command::new("unshare");
    command.arg("-rn").arg(std::env::current_exe().unwrap()).args(["--exact", name, "--nocapture"]).env(INSIDE, "");
    assert!(command.status().unwrap().success(), "it failed in its namespace");
    false
}

fn network(state: &str) {
    let status = Command::new("ip").args(["link", "set", "lo", state]).status().unwrap();
    assert!(status.success(), "the network is not {state}");
}

// GUARANTEE: A network failure is a broken connection
#[test]
fn a_network_that_is_gone_for_a_while_loses_repeats_and_reorders_nothing() {
    if !is_inside("a_network_that_is_gone_for_a_while_loses_repeats_and_reorders_nothing") {
        return;
    }
    let (here, there) = (theater(), theater());
    let (_nobody_writes, time) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let breaks = scope.spawn(move || {
            for _ in 0..5 {
                for (state, ms) in [("up", 400), ("down", 300)] {
                    network(state);
                    let _passes = time.recv_timeout(Duration::from_millis(ms));
                }
            }
            network("up");
        });
        while !breaks.is_finished() {
            exchange_by(&here, &there, there.address().unwrap().to_string(), 4, 2_000);
        }
    });
    here.shutdown().unwrap();
    there.shutdown().unwrap();
}

// GUARANTEE: A network failure is a broken connection
#[test]
fn a_network_that_is_gone_for_too_long_is_a_loss_at_both_ends_and_both_meet_again() {
    if !is_inside("a_network_that_is_gone_for_too_long_is_a_loss_at_both_ends_and_both_meet_again") {
        return;
    }
    let theater = || support::builder().lost_after(Duration::from_millis(500)).start().unwrap();
    let (here, there) = (theater(), theater());
    let peer = here.connect(there.address().unwrap()).unwrap();
    let back = there.connect(here.address().unwrap()).unwrap();
    let echo = here.spawn_at(&peer, &Echo { expected: 3 }).unwrap();
    assert_eq!(echo.ask(Seen).within(LIMIT).wait(), Ok(3));
    network("down");
    let error = echo.ask(Seen).within(LIMIT).wait().unwrap_err();
    assert!(matches!(error, AskError::TheaterLost { .. }), "{error:?}");
    eventually(|| (peer.is_lost() && back.is_lost()).then_some(()));
    network("up");
    let again = eventually(|| here.connect(there.address().unwrap()).ok());
    // The earlier reference is still valid.
    assert_eq!(echo.ask(Seen).within(LIMIT).wait(), Ok(3));
    let echo = here.spawn_at(&again, &Echo { expected: 4 }).unwrap();
    assert_eq!(echo.ask(Seen).within(LIMIT).wait(), Ok(4));
    here.shutdown().unwrap();
    there.shutdown().unwrap();
}
