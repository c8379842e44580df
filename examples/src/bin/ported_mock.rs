//! An actor that asks another one, which a test replaces: a port of `examples/mock.rs` of actix 0.13.5 (MIT or Apache-2.0).
//!
//! - Neither program prints anything.
//! - The actor of actix finds the other one by its type, and a test compiles the program with another type. The actor of the port is given a
//!   `Recipient`.
//! - actix has an actor that answers with a function. The test of the port has an actor of its own.
//!
//! ```text
//! cargo run -p playhouse-examples --bin ported_mock
//! ```

use playhouse::prelude::*;

#[derive(Message)]
#[message(reply = usize)]
struct Question;

struct MyActor {
    answers: Recipient<Question>,
}

impl Actor for MyActor {}

impl DeferredHandler<Question> for MyActor {
    fn handle(&mut self, question: Question, reply: Reply<usize>, _: &mut Context<Self>) {
        reply.forward(self.answers, question);
    }
}

struct AnswerActor;

impl Actor for AnswerActor {}

impl Handler<Question> for AnswerActor {
    fn handle(&mut self, _: Question, _: &mut Context<Self>) -> usize {
        42
    }
}

#[playhouse::main]
fn main(system: &System) -> playhouse::Result<()> {
    let my_actor = system.spawn(MyActor { answers: system.spawn(AnswerActor).recipient() });
    assert_eq!(my_actor.ask(Question).wait()?, 42);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Mock;

    impl Actor for Mock {}

    impl Handler<Question> for Mock {
        fn handle(&mut self, _: Question, _: &mut Context<Self>) -> usize {
            2
        }
    }

    #[playhouse::test]
    fn mocked_behavior(system: &System) {
        let my_actor = system.spawn(MyActor { answers: system.spawn(Mock).recipient() });
        assert_eq!(my_actor.ask(Question).wait(), Ok(2));
    }
}
