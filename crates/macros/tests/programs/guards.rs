//! Guards see the actor and the arguments, in all forms of messages.
#![deny(warnings)]
use playhouse::prelude::*;

struct Account<T> {
    sum: u64,
    notes: Vec<T>,
}

#[actor]
impl<T: PartialEq + Default + Send + Sync + 'static> Account<T> {
    #[message(when = "*amount <= self.sum")]
    fn draw(&mut self, amount: u64, note: T, ctx: &mut Context<Self>) {
        let _ = ctx;
        self.sum -= amount;
        self.notes.push(note);
    }

    #[message(when = "self.sum > 0 && at.len() > self.notes.len()", otherwise = "refuse")]
    async fn find(&mut self, at: String) -> Option<T> {
        let _ = at;
        self.notes.pop()
    }

    #[message(when = "!self.is_empty()", otherwise = "drop")]
    fn clear(&mut self) {
        self.sum = 0;
    }

    #[message(when = "self.notes.first() != Some(note)", derive(Clone, Debug))]
    fn note(&mut self, note: T) {
        self.notes.push(note);
    }

    fn is_empty(&self) -> bool {
        self.sum == 0
    }
}

#[test]
fn runs() {
    let _ = std::any::type_name::<Account<u8>>();
}
