//! The clones that `#[warn_needless_clones]` finds in the twenty programs of `safe_messages`, if each move into a message
//! is replaced by a clone.

use std::path::Path;

use proc_macro2::TokenStream;

use clones::expand;

#[path = "../src/clones/mod.rs"]
mod clones;
#[allow(dead_code, reason = "the other macros report more kinds of errors")]
#[path = "../src/syntax/errors.rs"]
mod error_list;

/// The module of the macros that the files of `clones` name.
mod syntax {
    pub(crate) use super::error_list as errors;
}

/// The owned data that each program moves into messages, as text.
const MOVED: [(&str, &[&str]); 14] = [
    ("concurrent", &["std::mem::take(&mut self.captured)", "captives"]),
    ("copymessages", &["list"]),
    ("performance", &["report"]),
    (
        "pingpong",
        &[
            "\"Starting ping blast\".to_owned()",
            "format!(\"Sent all pings, number = {to_send}\")",
            "format!(\"Messages received: {}\", self.received)",
            "format!(\"Pongs received: {}\", self.pongs)",
            "\"Received all pongs\".to_owned()",
        ],
    ),
    ("refmessages", &["\"Actor\".to_owned()"]),
    ("rpcping", &["format!(\"call {call}\")", "text"]),
    ("sor", &["cells", "lower", "upper", "matrix()"]),
    ("shortestpath", &["edges", "None"]),
    ("quicksort_copy", &["sorted", "part", "numbers(count)"]),
    ("quicksort_copy2", &["list", "vec![pivot]", "right", "left", "numbers(count)"]),
    ("clownfish", &["order", "order.label", "format!(\"customer {number}\")", "lines"]),
    ("rainbow_fish", &["counts", "std::mem::take(&mut self.counts)", "document(number)"]),
    ("swordfish", &["format!(\"post {number}\")"]),
    ("threadfin", &["format!(\"{text} from account {}\", self.number)", "std::mem::take(&mut self.statement)", "text"]),
];

/// Returns the number of clones in a program about which the compiler is asked.
fn found(program: &str) -> usize {
    let item: TokenStream = format!("mod program {{ {program} }}").parse().unwrap();
    expand(&TokenStream::new(), item).to_string().matches(":: clones :: original (").count()
}

#[test]
fn of_43_clones_that_could_be_moves_41_are_found() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/src/safe_messages");
    let (mut moves, mut not_found) = (0, Vec::new());
    for (name, arguments) in MOVED {
        let text = std::fs::read_to_string(folder.join(name).with_extension("rs")).unwrap();
        assert_eq!(found(&text), 0, "{name}");
        for argument in arguments {
            let passed = format!("pass({argument})");
            let places: Vec<_> = text.match_indices(&passed).collect();
            assert!(!places.is_empty(), "{name} does not move {argument}");
            for (at, _) in places {
                let (before, behind) = (&text[..at], &text[at + passed.len()..]);
                moves += 1;
                match found(&format!("{before}pass({argument}.clone()){behind}")) {
                    1 => {}
                    0 => not_found.push((name, *argument)),
                    more => panic!("{name}: {more} for {argument}"),
                }
            }
        }
    }
    assert_eq!(moves, 43);
    assert_eq!(not_found, [("shortestpath", "None"), ("clownfish", "order.label")]);
}
