//! Rules of addresses and of accepting connections.

use std::io::ErrorKind;
use std::sync::mpsc;
use std::time::Instant;

use super::bytes::{read_exact, write_all};
use super::subject::{Subject, describe, ensure};
use super::{Outcome, SHORT_WAIT, WAIT_MAX};

pub(super) fn free_ports(subject: &Subject) -> Outcome {
    let (one, first) = subject.listen()?;
    let (other, second) = subject.listen()?;
    for address in [first, second] {
        ensure(address.port() != 0, || format!("the listener reports {address}, to which nobody can connect"))?;
    }
    ensure(first != second, || format!("two listen at {first}"))?;
    for (mut listener, address) in [(one, first), (other, second)] {
        let (calls, called) = subject.meet(&mut listener, address)?;
        write_all(&*calls, &[7])?;
        read_exact(&*called, &mut [0])?;
    }
    Ok(())
}

pub(super) fn in_use(subject: &Subject) -> Outcome {
    let (_door, address) = subject.listen()?;
    match subject.transport().listen(address) {
        Ok(_) => Err(format!("two listen at {address}")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => Ok(()),
        Err(error) => Err(format!("the error is {error} ({:?}), not AddrInUse", error.kind())),
    }
}

pub(super) fn given_back(subject: &Subject) -> Outcome {
    let (listener, address) = subject.listen()?;
    drop(listener);
    let there = Subject { address: address.to_string(), ..subject.clone() };
    let (mut again, _) =
        there.listen().map_err(|error| format!("listening at an address that was given back: {error}"))?;
    subject.meet(&mut again, address).map(drop)
}

pub(super) fn nobody(subject: &Subject) -> Outcome {
    let (listener, address) = subject.listen()?;
    drop(listener);
    let begun = Instant::now();
    let connected = subject.transport().connect(address, SHORT_WAIT);
    ensure(connected.is_err(), || format!("nobody listens at {address}, but a connection succeeds"))?;
    let time = begun.elapsed();
    ensure(time < WAIT_MAX, || format!("a connection with a limit of {SHORT_WAIT:?} took {time:?}"))
}

pub(super) fn no_caller(subject: &Subject) -> Outcome {
    let (listener, address) = subject.listen()?;
    let (tell, told) = mpsc::channel();
    // An `accept` that waits forever is left behind on its thread.
    std::thread::spawn(move || drop(tell.send((listener.listener.accept().err().map(|error| error.kind()), listener))));
    let (error, mut listener) =
        told.recv_timeout(WAIT_MAX).map_err(|_| format!("`accept` waits for a connection, for {WAIT_MAX:?} so far"))?;
    ensure(error == Some(ErrorKind::WouldBlock), || {
        format!("`accept` without a connection gives {error:?}, not WouldBlock")
    })?;
    subject.meet(&mut listener, address).map(drop)
}

pub(super) fn caller(subject: &Subject) -> Outcome {
    let (mut listener, address) = subject.listen()?;
    for _ in 0..10 {
        std::thread::scope(|scope| {
            let calls = scope.spawn(|| subject.call(address));
            listener.wait()?;
            let _heard = describe("accepting a connection", listener.listener.accept())?;
            calls.join().map_err(|_| "`connect` panics")??;
            match listener.listener.accept() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
                Err(error) => {
                    Err(format!("`accept` of a second connection where there was one: {error} ({:?})", error.kind()))
                }
                Ok(_) => Err("one connection was made, and two are accepted".to_owned()),
            }
        })?;
    }
    Ok(())
}
