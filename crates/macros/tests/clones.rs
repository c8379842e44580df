//! Clones that `#[warn_needless_clones]` does not report, because the original is needed or the text leaves a doubt.
//! The test is that this compiles without a warning. Reported clones are in `ui/fail/needless_clones.rs`.
#![deny(warnings, clippy::all, clippy::pedantic)]
#![allow(clippy::match_single_binding, clippy::needless_pass_by_value, clippy::needless_return, clippy::never_loop)]
#![allow(clippy::ptr_arg, clippy::vec_init_then_push)]

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use playhouse::prelude::*;
use playhouse::warn_needless_clones;

#[derive(Default)]
struct Sink(Vec<String>);

#[actor]
#[warn_needless_clones]
impl Sink {
    #[message]
    fn put(&mut self, text: String) {
        self.0.push(text);
    }

    /// Clones of the actor's own data.
    #[message]
    fn all(&self) -> Vec<String> {
        self.0.clone()
    }

    /// The original is used after an await.
    #[message]
    async fn twice(&mut self, text: String, other: ActorRef<Sink>) -> bool {
        other.ask(Put(text.clone())).await.is_ok() && other.ask(Put(text)).await.is_ok()
    }
}

#[warn_needless_clones]
mod needed {
    use super::*;

    pub fn later(text: String) -> [String; 2] {
        let copy = text.clone();
        [copy, text]
    }

    pub fn in_a_macro_later(text: String) -> (String, String) {
        let copy = text.clone();
        (copy, format!("{text}!"))
    }

    pub fn before_a_loop_ends(text: String) -> Vec<String> {
        let mut copies = Vec::new();
        for _ in 0..2 {
            copies.push(text.clone());
        }
        while copies.len() < 3 {
            copies.push(text.clone());
        }
        loop {
            copies.push(text.clone());
            if copies.len() == 4 {
                break copies;
            }
        }
    }

    pub fn in_a_closure(text: String) -> impl Fn() -> String {
        move || text.clone()
    }

    pub fn captured_by_a_closure(text: String) -> (String, usize) {
        let length = || text.len();
        let copy = text.clone();
        (copy, length())
    }

    pub fn captured_to_compare(text: String, words: &[String]) -> (String, usize) {
        let same = words.iter().filter(|word| **word == text);
        let copy = text.clone();
        (copy, same.count())
    }

    pub async fn captured_by_a_future(text: String) -> (String, usize) {
        let length = async { text.len() };
        let copy = text.clone();
        (copy, length.await)
    }

    pub fn in_one_branch(text: String, early: bool) -> Vec<String> {
        let mut copies = Vec::new();
        if early {
            copies.push(text.clone());
        }
        copies.push(text);
        copies
    }

    pub fn before_a_return_in_a_loop(text: String, times: usize) -> String {
        let copy = text.clone();
        for time in 0..times {
            return format!("{copy}{time}");
        }
        text
    }

    pub fn before_a_return_that_may_not_be(text: String, other: Option<String>) -> String {
        let copy = text.clone();
        let Some(other) = other else { return copy };
        other + &text
    }

    pub fn before_a_return_out_of_something_else(text: String) -> (Option<String>, String) {
        let copy = || {
            let copy = text.clone();
            return Some(copy);
        };
        (copy(), text)
    }

    pub fn out_of_a_block(text: String, early: bool) -> String {
        'block: {
            let copy = text.clone();
            if early {
                break 'block;
            }
            return copy;
        }
        text
    }

    pub fn borrowed_by_a_variable(text: String) -> (String, usize) {
        let first = text.split(' ').next();
        let copy = text.clone();
        (copy, first.map_or(0, str::len))
    }

    pub fn borrowed_by_another_s_content(text: String) -> (String, usize) {
        let mut parts = Vec::new();
        parts.push(&text);
        let copy = text.clone();
        (copy, parts.len())
    }

    pub fn borrowed_by_one_that_borrows(text: String) -> (String, usize) {
        let words = text.split(' ');
        let long = words.filter(|word| word.len() > 1);
        let copy = text.clone();
        (copy, long.count())
    }

    pub fn borrowed_in_its_statement(text: String) -> (usize, String) {
        fn both(one: &str, other: String) -> (usize, String) {
            (one.len(), other)
        }
        both(&text, text.clone())
    }

    pub fn borrowed_by_a_guard(shared: Arc<Mutex<u8>>) -> (Arc<Mutex<u8>>, u8) {
        let guard = shared.lock().unwrap();
        let copy = shared.clone();
        (copy, *guard)
    }

    pub fn borrowed_by_a_head(shared: Arc<Mutex<u8>>, list: Vec<u8>) -> (Arc<Mutex<u8>>, Vec<u8>) {
        let copy = match *shared.lock().unwrap() {
            0 => shared.clone(),
            _ => Arc::default(),
        };
        let list = if let Some(1) = list.first() { list.clone() } else { Vec::new() };
        (copy, list)
    }

    pub fn borrowed_by_a_pattern(both: (String, u8)) -> (usize, (String, u8)) {
        match both {
            (ref text, _) => {
                let copy = both.clone();
                (text.len(), copy)
            }
        }
    }

    pub fn of_references(text: &String, texts: &[String], shared: &Arc<str>) -> Vec<String> {
        let first = texts.first();
        let mut copies = vec![text.clone()];
        for text in texts {
            copies.push(text.clone());
        }
        if let Some(first) = first {
            copies.push(first.clone());
        }
        let shared = Arc::clone(shared);
        copies.push(shared.to_string());
        copies
    }

    pub fn of_what_a_guard_leads_to(cell: Rc<RefCell<String>>, shared: Mutex<String>) -> [String; 3] {
        let guard = shared.lock().unwrap();
        [guard.clone(), cell.borrow().clone(), std::iter::once(&*cell.borrow()).next().unwrap().clone()]
    }

    pub fn of_references_to_what_has_no_clone(sink: &Sink) -> &Sink {
        #[allow(noop_method_call, suspicious_double_ref_op)]
        sink.clone()
    }

    pub fn of_an_inner_name(text: String) -> [String; 2] {
        let copy = {
            let text = text.len().to_string();
            text + "!"
        };
        [text, copy]
    }

    pub fn mentioned_by_a_macro(text: String) -> (String, usize) {
        macro_rules! length {
            () => {
                text.len()
            };
        }
        let copy = text.clone();
        (copy, length!())
    }
}

// GUARANTEE: Needless clones are reported
#[test]
fn the_program_is_the_same() -> playhouse::Result<()> {
    use needed::*;
    let text = || "a bc".to_owned();
    assert_eq!(later(text()), [text(), text()]);
    assert_eq!(in_a_macro_later(text()).1, "a bc!");
    assert_eq!(before_a_loop_ends(text()), [text(), text(), text(), text()]);
    assert_eq!(in_a_closure(text())(), text());
    assert_eq!(captured_by_a_closure(text()), (text(), 4));
    assert_eq!(captured_to_compare(text(), &[text()]), (text(), 1));
    drop(captured_by_a_future(text()));
    assert_eq!(in_one_branch(text(), true), [text(), text()]);
    assert_eq!(before_a_return_in_a_loop(text(), 0), text());
    assert_eq!(before_a_return_that_may_not_be(text(), Some(text())), "a bca bc");
    assert_eq!(before_a_return_out_of_something_else(text()), (Some(text()), text()));
    assert_eq!(out_of_a_block(text(), true), text());
    assert_eq!(borrowed_by_a_variable(text()), (text(), 1));
    assert_eq!(borrowed_by_another_s_content(text()), (text(), 1));
    assert_eq!(borrowed_by_one_that_borrows(text()), (text(), 1));
    assert_eq!(borrowed_in_its_statement(text()), (4, text()));
    assert_eq!(borrowed_by_a_guard(Arc::default()).1, 0);
    assert_eq!(borrowed_by_a_head(Arc::default(), vec![1]).1, [1]);
    assert_eq!(borrowed_by_a_pattern((text(), 1)), (4, (text(), 1)));
    assert_eq!(of_references(&text(), &[text()], &"c".into()), ["a bc", "a bc", "a bc", "c"]);
    assert_eq!(of_what_a_guard_leads_to(Rc::new(text().into()), text().into()), [text(), text(), text()]);
    assert!(of_references_to_what_has_no_clone(&Sink::default()).0.is_empty());
    assert_eq!(of_an_inner_name(text()), ["a bc", "4!"]);
    assert_eq!(mentioned_by_a_macro(text()), (text(), 4));

    let system = System::start()?;
    let (sink, other) = (system.spawn(Sink::default()), system.spawn(Sink::default()));
    assert!(sink.ask(Twice(text(), other)).wait()?);
    assert_eq!(other.ask(All).wait()?, [text(), text()]);
    system.shutdown()?;
    Ok(())
}
