//! Each flaw of a state machine is found, and a sound machine has none.

use playhouse_testkit::{Flaw, Machine};

/// The states of an order in a shop.
fn order() -> Machine {
    Machine::new("order")
        .initial("new")
        .state("paid")
        .last("sent")
        .last("cancelled")
        .on("new", "pay", "paid")
        .on("new", "cancel", "cancelled")
        .on("paid", "send", "sent")
        .on("paid", "cancel", "cancelled")
        .ignores("new", "send")
        .ignores("paid", "pay")
}

fn flaws(machine: &Machine) -> Vec<Flaw> {
    machine.verify().map_or_else(|flaws| flaws.list().to_vec(), |()| Vec::new())
}

fn at(state: &str, event: &str) -> (String, String) {
    (state.to_owned(), event.to_owned())
}

#[test]
fn a_sound_machine_has_no_flaws() {
    assert_eq!(flaws(&order()), []);
    // A machine that runs forever has no final state.
    let lamp = Machine::new("lamp").initial("off").state("on").on("off", "press", "on").on("on", "press", "off");
    assert_eq!(flaws(&lamp), []);
}

// GUARANTEE: State machines
#[test]
fn a_state_that_is_never_reached_is_found() {
    let machine = order().state("lost").on("lost", "send", "sent").ignores("lost", "pay").ignores("lost", "cancel");
    assert_eq!(flaws(&machine), [Flaw::Unreachable("lost".to_owned())]);
}

// GUARANTEE: State machines
#[test]
fn a_state_without_a_way_to_a_final_one_is_found() {
    // Two states lead to each other.
    let machine = order()
        .state("asked")
        .state("answered")
        .on("paid", "ask", "asked")
        .on("asked", "answer", "answered")
        .on("answered", "ask", "asked");
    let stuck: Vec<Flaw> = flaws(&machine).into_iter().filter(|flaw| matches!(flaw, Flaw::NoWayToFinal(_))).collect();
    assert_eq!(stuck, ["answered", "asked"].map(|state| Flaw::NoWayToFinal(state.to_owned())));
}

// GUARANTEE: State machines
#[test]
fn a_missing_transition_is_found() {
    let machine = order().on("paid", "refund", "new");
    let (state, event) = at("new", "refund");
    assert_eq!(flaws(&machine), [Flaw::Missing { state, event }]);
}

// GUARANTEE: State machines
#[test]
fn an_event_that_does_different_things_is_found() {
    let (state, event) = at("paid", "send");
    let ambiguous = [Flaw::Ambiguous { state, event }];
    assert_eq!(flaws(&order().on("paid", "send", "cancelled")), ambiguous);
    assert_eq!(flaws(&order().ignores("paid", "send")), ambiguous);
    // A repeated declaration changes nothing.
    assert_eq!(flaws(&order().on("paid", "send", "sent")), []);
}

#[test]
fn a_way_out_of_a_final_state_is_found() {
    let (state, event) = at("sent", "cancel");
    assert_eq!(flaws(&order().on("sent", "cancel", "cancelled")), [Flaw::LeavesFinal { state, event }]);
}

#[test]
fn undeclared_states_are_found() {
    let (state, event) = at("payed", "send");
    assert_eq!(flaws(&order().on("payed", "send", "sent")), [Flaw::Unknown { state, event }]);
    let none = Machine::new("nothing").state("only");
    assert_eq!(flaws(&none), [Flaw::Initial(Vec::new())]);
    let two = order().initial("paid");
    assert_eq!(flaws(&two), [Flaw::Initial(vec!["new".to_owned(), "paid".to_owned()])]);
}

#[test]
fn flaws_say_what_would_be_right() {
    let text = order().on("paid", "refund", "new").verify().unwrap_err().to_string();
    assert_eq!(
        text,
        "the state machine \"order\" has flaws:\n- in \"new\", the effect of \"refund\" is missing: \
         declare it with `on`, or declare with `ignores` that it has none"
    );
}

#[test]
fn the_drawing_has_all_states_and_transitions() {
    let dot = order().dot();
    for line in [
        "digraph \"order\" {",
        "    \"sent\" [peripheries=2];",
        "    \"new\";",
        "    \" 0\" -> \"new\";",
        "    \"new\" -> \"paid\" [label=\"pay\"];",
        "    \"paid\" -> \"cancelled\" [label=\"cancel\"];",
    ] {
        assert!(dot.lines().any(|other| other == line), "{line} is not in {dot}");
    }
    assert_eq!(dot.matches("->").count(), 5);
    let svg = order().state("a < b").svg();
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    // The drawing has an arrow for each transition, and one to the initial state.
    assert_eq!(svg.matches("marker-end").count(), 5);
    // The drawing has a box for each state, one more for each final state, and one for the paper.
    assert_eq!(svg.matches("<rect").count(), 5 + 2 + 1);
    assert!(svg.contains(">a &lt; b</text>"));
    assert_eq!(svg.matches("#c00").count(), 1, "the one that is never reached is red");
}
