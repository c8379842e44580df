//! A transport that panics, or returns impossible counts, breaks its own connection, and nothing else. A transport that sends
//! messages loses none.

use std::sync::mpsc::{Sender, channel};

use crate::spoiled::{Fault, Spoiled, Wrote};
use crate::support::{LIMIT, builder, theater};
use playhouse_actor::*;
use serde::{Deserialize, Serialize};

/// The faults of connections.
const FAULTS: [Fault; 10] = [
    Fault::Break,
    Fault::Connect,
    Fault::Read,
    Fault::ReadTooMuch,
    Fault::Write,
    Fault::WriteTooMuch,
    Fault::WriteNothing,
    Fault::Shutdown,
    Fault::Drop,
    Fault::Register,
];

/// Notices lost, repeated or reordered messages.
#[derive(Serialize, Deserialize)]
struct Tally(u64);

#[derive(Serialize, Deserialize)]
struct Next(u64);
remote_message!(Next -> bool);

impl Actor for Tally {}
impl Handler<Next> for Tally {
    fn handle(&mut self, Next(number): Next, _: &mut Context<Self>) -> bool {
        self.0 += 1;
        self.0 == number
    }
}
remote!(spawn Tally: Next);

// GUARANTEE: A failing wire affects one connection
#[test]
fn a_wire_that_panics_or_miscounts_breaks_its_connection_and_nothing_is_lost() {
    for fault in FAULTS {
        let transport = Spoiled::default();
        let [here, there] = [(); 2].map(|()| builder().transport(transport.clone()).start().unwrap());
        let peer = here.connect(there.address().unwrap()).unwrap();
        let tally = here.spawn_at(&peer, &Tally(0)).unwrap();
        for number in 1..=60 {
            if number % 20 == 0 {
                // Its effect shows when another connection is needed.
                if matches!(fault, Fault::Connect | Fault::Shutdown | Fault::Drop | Fault::Register) {
                    transport.arm(Fault::Break, 1);
                }
                transport.arm(fault, 1);
            }
            assert_eq!(tally.ask(Next(number)).within(LIMIT).wait(), Ok(true), "{fault:?}, number {number}");
        }
        here.shutdown_within(LIMIT).unwrap();
        there.shutdown_within(LIMIT).unwrap();
        assert_eq!(transport.left(fault), 0, "{fault:?} was not met");
        // The last fault may have happened after the last message.
        let calls = transport.calls();
        assert!(calls > 2, "{calls} calls: {fault:?} did not break its connection");
    }
}

// GUARANTEE: A failing wire affects one connection
#[test]
fn a_call_that_panics_has_failed_and_the_next_one_comes_through() {
    let transport = Spoiled::default();
    let (here, there) = (builder().transport(transport.clone()).start().unwrap(), theater());
    transport.arm(Fault::Connect, 1);
    let error = here.connect(there.address().unwrap()).map(drop).unwrap_err();
    assert!(error.to_string().contains("the transport has panicked: as it was told to"), "{error}");
    here.connect(there.address().unwrap()).unwrap();
    here.shutdown_within(LIMIT).unwrap();
    there.shutdown_within(LIMIT).unwrap();
}

#[test]
fn a_connection_that_takes_its_time_to_be_registered_holds_up_no_other_link() {
    let transport = Spoiled::default();
    let (here, there, elsewhere) = (builder().transport(transport.clone()).start().unwrap(), theater(), theater());
    let peer = here.connect(there.address().unwrap()).unwrap();
    let tally = here.spawn_at(&peer, &Tally(0)).unwrap();
    let ((says, said), (go_on, goes_on)) = (channel(), channel());
    transport.wait_while_registering(says, goes_on);
    std::thread::scope(|scope| {
        scope.spawn(|| here.connect(elsewhere.address().unwrap()).unwrap());
        said.recv_timeout(LIMIT).unwrap();
        let answer = tally.ask(Next(1)).within(LIMIT).wait();
        go_on.send(()).unwrap();
        assert_eq!(answer, Ok(true));
    });
    for theater in [here, there, elsewhere] {
        theater.shutdown_within(LIMIT).unwrap();
    }
}

/// Reports each write in a channel.
struct Reader(Sender<()>);

impl Actor for Reader {}
impl Handler<Wrote> for Reader {
    fn handle(&mut self, _: Wrote, _: &mut Context<Self>) {
        let _ = self.0.send(());
    }
}

// GUARANTEE: A failing wire affects one connection
#[test]
fn a_message_that_a_wire_sends_within_a_write_arrives() {
    let transport = Spoiled::default();
    // The worker that writes is the reader's, and has nothing else to do after a write.
    let one_worker = System::builder().workers(1);
    let (here, there) = (builder().system(one_worker).transport(transport.clone()).start().unwrap(), theater());
    let peer = here.connect(there.address().unwrap()).unwrap();
    let tally = here.spawn_at(&peer, &Tally(0)).unwrap();
    let (told, reads) = channel();
    transport.tell_of_writes(here.system().spawn(Reader(told)).recipient());
    for number in 1..=60 {
        tally.tell(Next(number));
        // The read precedes the next message: each message needs a write of its own.
        reads.recv_timeout(LIMIT).unwrap();
    }
    assert_eq!(tally.ask(Next(61)).within(LIMIT).wait(), Ok(true));
    here.shutdown_within(LIMIT).unwrap();
    there.shutdown_within(LIMIT).unwrap();
}
