// The code of remote actors needs no `unsafe` of the user's crate, and no name disturbs it.
#![forbid(unsafe_code)]
#![deny(warnings)]

// The macro means none of these.
#[allow(dead_code)]
struct WireForm;
#[allow(dead_code)]
trait Serialize {}
#[allow(dead_code)]
trait Remote {}
#[allow(dead_code)]
enum Option {}
#[allow(dead_code)]
mod core {}
#[allow(dead_code)]
mod serde {}

#[derive(playhouse::serde::Serialize, playhouse::serde::Deserialize)]
#[serde(crate = "playhouse::serde")]
struct Counter(u64);

#[playhouse::actor(remote = "ui.Counter", spawn)]
impl Counter {
    #[message(remote = "add")]
    fn add(&mut self, by: u64, also: std::option::Option<u8>) {
        self.0 += by + u64::from(also.unwrap_or(0));
    }

    #[message(name = "Result")]
    fn get(&self) -> u64 {
        self.0
    }

    #[message(local)]
    fn edit(&mut self, edit: fn(&mut u64)) {
        edit(&mut self.0);
    }

    #[deprecated]
    #[message]
    fn old(&mut self) {}

    #[message]
    fn crash(&mut self) -> ! {
        panic!("on purpose")
    }
}

// An actor of one type of a generic.
struct Cache<T>(T);

#[playhouse::actor(remote)]
impl Cache<u64> {
    #[message]
    fn cached(&self, own: [u8; Self::SIZE]) -> (u64, [u8; Self::SIZE]) {
        (self.0, own)
    }

    const SIZE: usize = 2;
}

#[test]
fn runs() {
    // An actor local to a function.
    struct Local;
    #[playhouse::actor(remote)]
    impl Local {
        #[message]
        async fn ping(&mut self) -> bool {
            true
        }
    }

    let system = playhouse::System::start().unwrap();
    let counter = system.spawn(Counter(1));
    counter.tell(Add(2, None));
    counter.tell(Edit(|n| *n += 1));
    assert_eq!(counter.ask(Result).wait().unwrap(), 4);
    assert_eq!(system.spawn(Cache(5)).ask(Cached([1, 2])).wait().unwrap(), (5, [1, 2]));
    assert!(system.spawn(Local).ask(Ping).wait().unwrap());
    // The list has some actors of the library as well.
    let own = |name: &&str| !name.starts_with("playhouse.");
    let mut names: Vec<_> = playhouse::wire::handles().map(|entry| (entry.message_name)()).filter(own).collect();
    names.sort_unstable_by_key(|name| name.rsplit("::").next().unwrap());
    let last: Vec<_> = names.iter().map(|name| name.rsplit("::").next().unwrap()).collect();
    assert_eq!(last, ["Cached", "Crash", "Old", "Ping", "Result", "add"]);
    assert_eq!(playhouse::wire::spawns().map(|entry| (entry.actor_name)()).filter(own).count(), 1);
    system.shutdown().unwrap();
}

use std::option::Option::None;
