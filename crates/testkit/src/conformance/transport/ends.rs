//! Rules of the ends of connections.

use std::net::Shutdown;
use std::sync::Arc;

use playhouse::transport::Wire;

use super::bytes::{read_stream, write_stream};
use super::subject::{Subject, describe, ensure};
use super::waiting::within;
use super::{Outcome, RULE_TIME_MAX, SHORT_WAIT};

fn read_end(wire: &dyn Wire) -> Outcome {
    match describe("reading the end", wire.read(&mut [0]))? {
        0 => Ok(()),
        _ => Err("more is read than was written".to_owned()),
    }
}

pub(super) fn half(subject: &Subject) -> Outcome {
    for swapped in [false, true] {
        let (mut one, mut other) = subject.pair()?;
        if swapped {
            std::mem::swap(&mut one, &mut other);
        }
        write_stream(&*one, 3, 10_000)?;
        describe("ending writing", one.shutdown(Shutdown::Write))?;
        read_stream(&*other, 3, 10_000)?;
        read_end(&*other)?;
        write_stream(&*other, 4, 10_000).map_err(|error| format!("after the other end has ended writing: {error}"))?;
        read_stream(&*one, 4, 10_000)?;
    }
    Ok(())
}

pub(super) fn rest(subject: &Subject) -> Outcome {
    for _ in 0..10 {
        let (one, other) = subject.pair()?;
        let writer = std::thread::spawn(move || write_stream(&*one, 9, 300_000));
        read_stream(&*other, 9, 300_000)?;
        writer.join().map_err(|_| "writing panics")??;
        read_end(&*other)?;
    }
    Ok(())
}

pub(super) fn woken(subject: &Subject) -> Outcome {
    let (one, _other) = subject.pair()?;
    let one: Arc<dyn Wire> = Arc::from(one);
    describe("setting a limit", one.set_limit(RULE_TIME_MAX))?;
    let shuts = Arc::clone(&one);
    let shut = std::thread::spawn(move || {
        std::thread::sleep(SHORT_WAIT);
        shuts.shutdown(Shutdown::Both)
    });
    let read = within("a read on a wire that was shut down", &one, |wire| wire.read(&mut [0]))?;
    describe("shutting down", shut.join().map_err(|_| "`shutdown` panics")?)?;
    ensure(!matches!(read, Ok(1..)), || "nothing was written, and something is read".to_owned())
}
