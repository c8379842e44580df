//! The entries that `#[actor(remote)]`, `#[message(remote)]` and `remote!` put into the binary: found by name, fed with
//! bytes.

use std::sync::mpsc::channel;

use crate::support::{LIMIT, threads};
use playhouse::prelude::*;
use playhouse::serde::{Deserialize, Serialize};
use playhouse::wire::{self, Codec, Handles, Spawns, WireError};
use playhouse_actor::wire::Answer;
use playhouse_executor::Lane;

const CODECS: [Codec; 2] = [Codec::Positional, Codec::Named];

/// An actor that its block makes remote.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(crate = "playhouse::serde")]
struct Till {
    sum: i64,
    notes: Vec<String>,
}

#[actor(remote = "test.Till", spawn)]
impl Till {
    #[message(remote = "put")]
    fn put(&mut self, by: i64) {
        self.sum += by;
    }

    #[message]
    fn note(&mut self, who: String, what: Option<u8>) -> usize {
        self.notes.push(format!("{who}: {what:?}"));
        self.notes.len()
    }

    #[message(remote)]
    fn sum(&self) -> i64 {
        self.sum
    }

    #[message(derive(Debug))]
    async fn sum_of(&mut self, other: Vec<i64>) -> Result<i64, String> {
        if other.is_empty() { Err("nothing".into()) } else { Ok(self.sum + other.iter().sum::<i64>()) }
    }

    #[message(remote = "crash")]
    fn crash(&mut self) {
        panic!("on purpose");
    }

    /// Has no wire form, and needs none.
    #[message(local)]
    fn edit(&mut self, edit: fn(&mut i64)) {
        edit(&mut self.sum);
    }

    #[cfg(any())]
    #[message]
    fn absent(&mut self, what: NoSuchType) {}

    #[cfg(not(any()))]
    #[message(name = "Either", remote = "either")]
    fn either_one(&self) -> u8 {
        1
    }

    #[cfg(any())]
    #[message(name = "Either", remote = "either")]
    fn either_other(&self) -> u8 {
        2
    }

    #[deprecated = "to see that nothing warns"]
    #[message(remote = "old")]
    fn old(&mut self) {}
}

/// A message with named fields, beside the messages of the block.
#[derive(Debug, Message, Serialize, Deserialize)]
#[message(reply = String, remote = "order")]
#[serde(crate = "playhouse::serde")]
struct Order {
    item: String,
    #[serde(default)]
    amount: u32,
}

impl Handler<Order> for Till {
    fn handle(&mut self, order: Order, _: &mut Context<Self>) -> String {
        format!("{} {}", order.amount, order.item)
    }
}

wire::submit! { Handles::of::<Till, Order, _>() }

/// An actor without any macro, with a generic message.
struct Shelf(Vec<String>);

impl Actor for Shelf {}

#[derive(Message, Serialize, Deserialize)]
#[message(reply = Option<T>)]
#[message(remote)]
#[serde(crate = "playhouse::serde")]
enum Keep<T> {
    This(T),
    Nothing,
}

impl<T: ToString + Serialize + for<'de> Deserialize<'de> + Send + 'static> Handler<Keep<T>> for Shelf {
    fn handle(&mut self, keep: Keep<T>, _: &mut Context<Self>) -> Option<T> {
        match keep {
            Keep::This(value) => {
                self.0.push(value.to_string());
                Some(value)
            }
            Keep::Nothing => None,
        }
    }
}

playhouse::remote!(Shelf: Keep<u8>, Keep<String>);

/// Returns the entry of the `Till` for the message of this name.
fn entry(message: &str) -> &'static Handles {
    let mut found = wire::handles().filter(|e| (e.actor_name)() == "test.Till" && (e.message_name)() == message);
    let entry = found.next().unwrap_or_else(|| panic!("no entry for {message}"));
    assert!(found.next().is_none(), "two entries for {message}");
    entry
}

fn till_spawns() -> &'static Spawns {
    wire::spawns().find(|entry| (entry.actor_name)() == "test.Till").unwrap()
}

fn bytes<T: Serialize>(codec: Codec, value: &T) -> Vec<u8> {
    let mut out = Vec::new();
    codec.write(value, &mut out).unwrap();
    out
}

/// Asks with bytes. An ask without an answer returns the text of its error.
fn ask<R: for<'de> Deserialize<'de>>(entry: &Handles, to: ActorId, codec: Codec, message: &[u8]) -> Result<R, String> {
    let (answered, answer) = channel();
    let send: Answer = Box::new(move |result| {
        let bytes = result.map_err(|error| format!("{error:?}")).map(|write| {
            let mut out = Vec::new();
            write(codec, &mut out).unwrap();
            out
        });
        answered.send(bytes).unwrap();
    });
    (entry.ask)(to, message, codec, send).map_err(|(error, _)| error.to_string())?;
    let bytes = answer.recv_timeout(LIMIT).unwrap()?;
    Ok(codec.read(&bytes).unwrap())
}

// GUARANTEE: Only listed messages are accepted
#[test]
fn the_list_has_what_is_remote_and_nothing_else() {
    let of = |actor: &str| {
        let of_actor = wire::handles().filter(|entry| (entry.actor_name)() == actor);
        let mut names: Vec<_> = of_actor.map(|entry| (entry.message_name)()).collect();
        names.sort_unstable();
        names
    };
    let sum = std::any::type_name::<Sum>();
    assert!(sum.ends_with("::Sum"), "{sum}");
    let mut expected = vec!["crash", "either", "old", "order", "put", sum];
    expected.extend([std::any::type_name::<Note>(), std::any::type_name::<SumOf>()]);
    expected.sort_unstable();
    assert_eq!(of("test.Till"), expected);
    let shelf = std::any::type_name::<Shelf>();
    assert_eq!(of(shelf), [std::any::type_name::<Keep<String>>(), std::any::type_name::<Keep<u8>>()]);

    assert!(Edit::WIRE.is_none() && Put::WIRE.is_some_and(|form| form.name() == "put"));
    assert!(wire::spawns().all(|entry| (entry.actor_name)() != shelf));
    assert_eq!((till_spawns().actor)(), std::any::TypeId::of::<Till>());
    assert_ne!((entry("put").schema)(), (entry("order").schema)());
}

#[test]
fn a_remote_actor_is_used_locally_like_any_other() {
    let system = threads(1);
    let till = system.spawn(Till::default());
    till.tell(Put(3));
    till.tell(Edit(|sum| *sum *= 2));
    assert_eq!(till.ask(Sum).wait(), Ok(6));
    assert_eq!(till.ask(Order { item: "tea".into(), amount: 2 }).wait().as_deref(), Ok("2 tea"));
    system.shutdown().unwrap();
}

#[test]
fn bytes_become_messages() {
    let system = threads(1);
    for codec in CODECS {
        let till = system.spawn(Till::default());
        for lane in [Lane::Normal, Lane::Urgent] {
            (entry("put").tell)(till.id(), lane, &bytes(codec, &Put(-700)), codec).unwrap();
        }
        let sum = entry(std::any::type_name::<Sum>());
        assert_eq!(ask(sum, till.id(), codec, &bytes(codec, &Sum)), Ok(-1400_i64));

        let note = entry(std::any::type_name::<Note>());
        assert_eq!(ask(note, till.id(), codec, &bytes(codec, &Note("you".into(), Some(4)))), Ok(1_usize));
        assert_eq!(till.ask(Note("me".into(), None)).wait(), Ok(2));

        // An `async` method with an answer that is an error of its own.
        let sum_of = entry(std::any::type_name::<SumOf>());
        let asked = |other| ask(sum_of, till.id(), codec, &bytes(codec, &SumOf(other)));
        assert_eq!(asked(vec![1400, 5]), Ok(Ok::<i64, String>(5)));
        assert_eq!(asked(vec![]), Ok(Err("nothing".into())));

        let either = ask::<u8>(entry("either"), till.id(), codec, &bytes(codec, &Either));
        assert_eq!(either, Ok(1));
    }
    system.shutdown().unwrap();
}

#[test]
fn a_generic_message_is_called_as_each_of_its_types() {
    let system = threads(1);
    let shelf = system.spawn(Shelf(Vec::new()));
    let keeps = |name| wire::handles().find(|entry| (entry.message_name)() == name).unwrap();
    for codec in CODECS {
        let number = keeps(std::any::type_name::<Keep<u8>>());
        assert_eq!(ask(number, shelf.id(), codec, &bytes(codec, &Keep::This(7_u8))), Ok(Some(7_u8)));
        assert_eq!(ask(number, shelf.id(), codec, &bytes(codec, &Keep::<u8>::Nothing)), Ok(None::<u8>));
        let text = keeps(std::any::type_name::<Keep<String>>());
        let answer = ask(text, shelf.id(), codec, &bytes(codec, &Keep::This(String::from("cup"))));
        assert_eq!(answer, Ok(Some(String::from("cup"))));
    }
    system.shutdown().unwrap();
}

#[test]
fn bytes_become_actors() {
    let system = threads(1);
    for codec in CODECS {
        let state = bytes(codec, &Till { sum: 40, notes: vec!["moved".into()] });
        let till = (till_spawns().spawn)(system.core(), &state, codec).unwrap();
        (entry("put").tell)(till, Lane::Normal, &bytes(codec, &Put(2)), codec).unwrap();
        let sum = entry(std::any::type_name::<Sum>());
        assert_eq!(ask(sum, till, codec, &bytes(codec, &Sum)), Ok(42_i64));

        assert!((till_spawns().spawn)(system.core(), &state[..state.len() - 1], codec).is_err());
    }
    assert_eq!(system.shutdown().unwrap().actors_stopped, 2);
}

// GUARANTEE: Only listed messages are accepted
#[test]
fn another_actor_is_refused() {
    let system = threads(1);
    let shelf = system.spawn(Shelf(Vec::new()));
    for codec in CODECS {
        let error = (entry("put").tell)(shelf.id(), Lane::Normal, &bytes(codec, &Put(1)), codec).unwrap_err();
        assert_eq!(error, WireError::new(format!("{} is no {}", shelf.id(), std::any::type_name::<Till>())));
        let sum = entry(std::any::type_name::<Sum>());
        let error = ask::<i64>(sum, shelf.id(), codec, &bytes(codec, &Sum)).unwrap_err();
        assert!(error.ends_with("::Till"), "{error}");
    }
    system.shutdown().unwrap();
}

#[test]
fn a_crashing_actor_answers_with_the_error() {
    let system = threads(1);
    let till = system.spawn(Till::default());
    let answer = ask::<()>(entry("crash"), till.id(), Codec::Positional, &bytes(Codec::Positional, &Crash));
    assert_eq!(answer, Err("Panicked".into()));
    system.shutdown().unwrap();
}

#[test]
fn bytes_that_are_no_message_are_errors() {
    let system = threads(1);
    let till = system.spawn(Till::default());
    for codec in CODECS {
        let order = bytes(codec, &Order { item: "tea".into(), amount: 2 });
        for end in 0..order.len() {
            let cut_off = (entry("order").tell)(till.id(), Lane::Normal, &order[..end], codec);
            assert!(cut_off.is_err(), "{codec:?}: {end} of {} bytes", order.len());
            assert!(ask::<String>(entry("order"), till.id(), codec, &order[..end]).is_err());
        }
        let mut put = bytes(codec, &Put(1));
        put.extend([0, 0]);
        let error = (entry("put").tell)(till.id(), Lane::Normal, &put, codec).unwrap_err();
        assert_eq!(error.to_string(), "the message `put` cannot be read: 2 bytes are left behind the value");
        let text = bytes(codec, &"no number");
        assert!((entry("put").tell)(till.id(), Lane::Normal, &text, codec).is_err());
    }
    assert_eq!(till.ask(Sum).wait(), Ok(0), "nothing of it was handled");
    system.shutdown().unwrap();
}

// GUARANTEE: Programs of different age
#[test]
fn with_names_a_message_may_have_more_fields_or_fewer() {
    #[derive(Serialize)]
    #[serde(crate = "playhouse::serde")]
    struct Older {
        item: &'static str,
    }

    #[derive(Serialize)]
    #[serde(crate = "playhouse::serde")]
    struct Newer {
        wrapped: Option<[u8; 3]>,
        amount: u32,
        item: &'static str,
    }

    let system = threads(1);
    let till = system.spawn(Till::default());
    let order = |bytes: Vec<u8>| ask::<String>(entry("order"), till.id(), Codec::Named, &bytes);
    assert_eq!(order(bytes(Codec::Named, &Older { item: "tea" })).as_deref(), Ok("0 tea"));
    let newer = Newer { wrapped: Some([1, 2, 3]), amount: 5, item: "cups" };
    assert_eq!(order(bytes(Codec::Named, &newer)).as_deref(), Ok("5 cups"));

    #[derive(Serialize)]
    #[serde(crate = "playhouse::serde")]
    struct Lacking {
        amount: u32,
    }
    let error = order(bytes(Codec::Named, &Lacking { amount: 1 })).unwrap_err();
    assert!(error.contains("item"), "{error}");
    system.shutdown().unwrap();
}
