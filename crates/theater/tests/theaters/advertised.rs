//! The address that a theater advertises.

use playhouse_actor::wire::WireForm;
use playhouse_actor::*;
use playhouse_theater::{Simulation, Theater, TheaterBuilder, TheaterError};
use serde::{Deserialize, Serialize};

struct Sink(u64);
struct Holder(Vec<ActorRef<Sink>>);

#[derive(Serialize, Deserialize)]
struct Count;
impl Message for Count {
    type Reply = u64;
    const WIRE: Option<WireForm<Count>> = Some(WireForm::of());
}
#[derive(Serialize, Deserialize)]
struct Keep(ActorRef<Sink>);
impl Message for Keep {
    type Reply = ();
    const WIRE: Option<WireForm<Keep>> = Some(WireForm::of());
}
#[derive(Serialize, Deserialize)]
struct Give;
impl Message for Give {
    type Reply = ActorRef<Sink>;
    const WIRE: Option<WireForm<Give>> = Some(WireForm::of());
}

impl Actor for Sink {}
impl Handler<Count> for Sink {
    fn handle(&mut self, _: Count, _: &mut Context<Self>) -> u64 {
        self.0 += 1;
        self.0
    }
}
impl Actor for Holder {}
impl Handler<Keep> for Holder {
    fn handle(&mut self, Keep(sink): Keep, _: &mut Context<Self>) {
        self.0.push(sink);
    }
}
impl Handler<Give> for Holder {
    fn handle(&mut self, _: Give, _: &mut Context<Self>) -> ActorRef<Sink> {
        self.0[0]
    }
}
remote!(Sink: Count);
remote!(Holder: Keep, Give);

fn holder(from: &Theater, address: impl ToString) -> ActorRef<Holder> {
    from.find::<Holder>(&format!("playhouse://{}/holder", address.to_string())).wait().unwrap()
}

fn everywhere() -> TheaterBuilder {
    Theater::builder().listen("0.0.0.0:0").advertise("127.0.0.1:0").plaintext()
}

// GUARANTEE: The address that others call
#[test]
fn a_reference_from_a_theater_that_listens_everywhere_leads_to_it() {
    let [home, middle, caller] = [(); 3].map(|()| everywhere().system(System::builder().workers(1)).start().unwrap());
    middle.publish("holder", middle.system().spawn(Holder(Vec::new()))).unwrap();
    holder(&home, middle.address().unwrap()).ask(Keep(home.system().spawn(Sink(0)))).wait().unwrap();
    let sink = holder(&caller, middle.address().unwrap()).ask(Give).wait().unwrap();
    assert_eq!(sink.ask(Count).wait(), Ok(1));
    for theater in [home, middle, caller] {
        theater.shutdown().unwrap();
    }
}

// GUARANTEE: The address that others call
#[test]
fn references_carry_the_advertised_address_and_not_the_one_that_was_called() {
    let net = Simulation::new(1);
    let [home, middle, caller] = [1, 2, 3].map(|host| {
        let (listen, advertise) = (format!("10.0.0.{host}:0"), format!("10.0.1.{host}:0"));
        net.theater(Theater::builder().listen(listen).advertise(advertise).plaintext()).unwrap()
    });
    let address = home.address().unwrap();
    assert_eq!(address.ip().to_string(), "10.0.1.1");
    // By an address that only `middle` knows.
    let hidden = format!("10.0.0.1:{}", address.port());
    home.publish("holder", home.system().spawn(Holder(vec![home.system().spawn(Sink(0))]))).unwrap();
    let sink = holder(&middle, &hidden).ask(Give).wait().unwrap();
    let keeper = middle.system().spawn(Holder(vec![sink]));
    middle.publish("holder", keeper).unwrap();
    let sink = holder(&caller, middle.address().unwrap()).ask(Give).wait().unwrap();
    assert_eq!(sink.ask(Count).wait(), Ok(1));
    let known: Vec<_> = caller.peers().iter().filter_map(|peer| peer.address()).collect();
    assert!(known.contains(&address), "{known:?}");
    assert!(!known.iter().any(|known| known.to_string() == hidden), "{known:?}");
    // The advertised address finds the link that another theater has made.
    let links = middle.peers().len();
    middle.connect(address).unwrap();
    assert_eq!(middle.peers().len(), links);
}

// GUARANTEE: The address that others call
#[test]
fn addresses_that_others_cannot_call_are_refused_at_the_start() {
    let refused = |builder: TheaterBuilder, words: &[&str]| {
        let simulated = Simulation::new(1).theater(builder.system(System::builder())).unwrap_err();
        let TheaterError::Advertised { .. } = simulated else { panic!("{simulated:?}") };
        let said = simulated.to_string();
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    };
    let builder = || Theater::builder().plaintext();
    for everywhere in ["0.0.0.0:0", "[::]:0", "[::ffff:0.0.0.0]:0"] {
        refused(builder().listen(everywhere), &[everywhere, "`.advertise(\"192.0.2.7:0\")`"]);
        refused(
            builder().listen("127.0.0.1:0").advertise(everywhere),
            &[everywhere, "is advertised", "address or name"],
        );
    }
    refused(builder().listen("127.0.0.1:0").advertise("224.0.0.1:7000"), &["224.0.0.1:7000", "no address"]);
    refused(builder().advertise("127.0.0.1:7000"), &["127.0.0.1:7000", "does not listen", "`listen(..)`"]);
    let real = builder().listen("0.0.0.0:0").start().unwrap_err();
    assert!(matches!(real, TheaterError::Advertised { .. }), "{real:?}");
    // Theaters that use the loopback only would refuse to call it.
    let unreachable = Theater::builder().listen("127.0.0.1:0").advertise("192.0.2.7:0").start().unwrap_err();
    assert!(matches!(unreachable, TheaterError::NotLoopback { .. }), "{unreachable:?}");
    let nonsense = builder().listen("127.0.0.1:0").advertise("192.0.2.7").start().unwrap_err().to_string();
    assert!(nonsense.contains("HOST:PORT"), "{nonsense}");
}
