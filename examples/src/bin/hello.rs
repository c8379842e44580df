//! The smallest useful program: an actor, a message without an answer, a message with one.
//!
//! ```text
//! cargo run -p playhouse-examples --bin hello -- Ada Grace
//! ```

use playhouse::prelude::*;

#[derive(Default)]
struct Greeter {
    greeted: Vec<String>,
}

#[actor]
impl Greeter {
    #[message]
    fn greet(&mut self, name: String) {
        println!("Hello, {name}!");
        self.greeted.push(name);
    }

    #[message]
    fn count(&self) -> usize {
        self.greeted.len()
    }
}

fn main() -> playhouse::Result<()> {
    let mut names: Vec<String> = std::env::args_os().skip(1).map(|name| name.to_string_lossy().into_owned()).collect();
    if names.is_empty() {
        names.push("world".to_owned());
    }

    let system = System::start()?; // one worker per core
    let greeter = system.spawn(Greeter::default());
    for name in names {
        greeter.tell(Greet(name)); // goes on at once
    }
    let greeted = greeter.ask(Count).wait()?; // handled after the greetings: messages keep their order
    println!("{greeted} greeted");
    system.shutdown()?;
    Ok(())
}
