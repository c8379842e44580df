//! Routers and the receptionist take actors of other theaters like their own.

mod support;

use playhouse::prelude::*;
use playhouse::receptionist::{Find, Receptionist, Register};
use playhouse::router::{Router, Routing};
use support::finishes;

#[derive(Default)]
struct Teller {
    served: u64,
}

#[actor(remote = "toolbox_abroad.Teller")]
impl Teller {
    #[message(derive(Clone))]
    fn serve(&mut self) -> u64 {
        self.served += 1;
        self.served
    }

    #[message]
    fn close(&mut self, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}

#[test]
fn actors_of_another_theater_are_members_until_they_end() {
    finishes(|| {
        let theater = || Theater::builder().listen("127.0.0.1:0").system(System::builder().workers(1)).start().unwrap();
        let (here, there) = (theater(), theater());
        there.publish("teller", there.system().spawn(Teller::default()));
        let address = there.address().unwrap();
        let theirs = here.find::<Teller>(&format!("playhouse://{address}/teller")).wait().unwrap();
        let mine = here.system().spawn(Teller::default());
        let receptionist = here.system().spawn(Receptionist::new());
        for routing in [Routing::RoundRobin, Routing::LeastLoaded] {
            let router = Router::new(here.system(), routing);
            for teller in [theirs, mine] {
                router.add(teller);
                receptionist.tell(Register::new("tellers", teller));
            }
            let before = [theirs, mine].map(|teller| teller.ask(Serve).wait().unwrap());
            for _ in 0..10 {
                router.pick().unwrap().tell(Serve);
            }
            for _ in 0..10 {
                assert!(router.pick().unwrap().ask(Serve).wait().is_ok());
            }
            let answers = router.ask_all(Serve).unwrap().all().wait();
            let served: u64 = answers.iter().map(|(_, answer)| answer.clone().unwrap()).sum();
            assert_eq!(served, before.iter().sum::<u64>() + 22, "none was lost");
        }
        let router = Router::new(here.system(), Routing::RoundRobin);
        router.add(theirs);
        let find = || receptionist.ask(Find::<Teller>::new("tellers")).wait().unwrap();
        assert_eq!(find(), [theirs, mine]);
        // The watchers are told of the end over the link.
        theirs.tell(Close);
        while router.pick().is_ok() || find() != [mine] {
            std::thread::yield_now();
        }
        for theater in [here, there] {
            theater.shutdown().unwrap();
        }
    });
}
