//! Tests: drains that wait for stubs with waiting mail.

use super::*;

/// A route that keeps its markers for a test. It checks for each message whether a drain would wait for the forwarding stub.
struct Looks {
    theater_core: Weak<TheaterCore>,
    stub: OnceLock<ActorId>,
    markers: Sender<Marker>,
    messages: Sender<bool>,
}

impl Forwarder for Looks {
    fn carry(&self, forwarded: ForwardedMessage<'_>) -> Written {
        match forwarded {
            ForwardedMessage::Marker(marker) => self.markers.send(marker).unwrap(),
            ForwardedMessage::Tell { .. } => {
                let awaited = self.theater_core.upgrade().unwrap().rerouting_stubs();
                self.messages.send(awaited.contains(self.stub.get().unwrap())).unwrap();
            }
            _ => {}
        }
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

// GUARANTEE: Order holds while actors migrate
#[test]
fn drains_wait_until_a_rerouted_stub_has_forwarded_its_mail() {
    let (net, theater) = simulated();
    let directory = &theater.theater_core.directory;
    let ((markers, sent), (messages, sent_on)) = (mpsc::channel(), mpsc::channel());
    let route = Arc::new(Looks {
        theater_core: Arc::downgrade(&theater.theater_core),
        stub: OnceLock::new(),
        markers,
        messages,
    });
    let elsewhere =
        spawn_stub::<Guest>(&directory.core, StubPlacement::Link(0), Arc::clone(&route) as Arc<dyn Forwarder>);
    route.stub.set(elsewhere.id()).unwrap();
    directory.note(10, elsewhere.id(), remote(10, 1, 7)).unwrap();
    theater.theater_core.reroute(elsewhere.id(), 10);
    net.run_until_idle();
    let marker = sent.try_recv().unwrap();
    (0..3).for_each(|_| elsewhere.tell(Greet));
    net.run_until_idle();
    assert_eq!(sent_on.try_recv(), Err(mpsc::TryRecvError::Empty));
    (marker.answer)(Err(AskError::Stopped));
    net.run_until_idle();
    assert_eq!(sent_on.try_iter().collect::<Vec<bool>>(), [true; 3]);
    assert_eq!(theater.theater_core.rerouting_stubs(), []);
}
