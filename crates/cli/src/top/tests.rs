use std::time::Duration;

use playhouse::Snapshot;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::attached::Seen;
use super::screen;
use super::table::{long_time, thousands};
use super::text::describe;
use super::view::{Reaction, View};

/// A snapshot in the form of an inspector's answer.
const SNAPSHOT: &str = r#"{
    "address": "127.0.0.1:4711", "cluster": "shop", "process": 4242,
    "uptime": { "secs": 11530, "nanos": 0 }, "window": { "secs": 2, "nanos": 0 },
    "actors_alive": 1234, "migrations": [7, 5],
    "counters": { "dead_letters": 3, "crashes": 2, "restarts": 1, "steals": 12345 },
    "workers": [
        { "handled": 2000000, "busy": 0.973, "queued": 1500, "stages": 20, "overloaded": true, "steals": 4, "parks": 2 },
        { "handled": 5, "busy": 0.0, "stages": 12, "muted": 1, "parked": true, "takeovers": 1 }
    ],
    "stages": [{ "stage": 3, "worker": 0, "handled": 1999990, "queued": 1400 }],
    "actors": [
        { "actor": "Till", "name": "two", "stage": 3, "handled": 4, "busy": { "secs": 0, "nanos": 500000000 }, "queued": 1400 },
        { "actor": "Warehouse<alloc::string::String>", "name": "the long one in the north, by the sea", "stage": 17,
          "handled": 1999986, "busy": { "secs": 1, "nanos": 0 }, "queued": 0 }
    ],
    "messages": [
        { "actor": "Till", "message": "Sell", "handled": 4, "busy": { "secs": 0, "nanos": 500000000 }, "total": 9,
          "median": { "secs": 0, "nanos": 120000000 }, "p99": { "secs": 0, "nanos": 140000000 }, "max": { "secs": 0, "nanos": 150000000 } },
        { "actor": "Warehouse", "message": "Fetch", "handled": 1999986, "busy": { "secs": 1, "nanos": 0 }, "total": 12345678,
          "median": { "secs": 0, "nanos": 480 }, "p99": { "secs": 0, "nanos": 900 }, "max": { "secs": 0, "nanos": 250000 } }
    ],
    "links": [
        { "address": "127.0.0.1:4712", "state": "CallingAgain", "for_so_long": { "secs": 4, "nanos": 0 },
          "packets": 12, "bytes": 98304, "unanswered": 3 },
        { "address": null, "state": "Linked", "for_so_long": { "secs": 61, "nanos": 0 }, "packets": 0, "bytes": 0, "unanswered": 0 }
    ]
}"#;

fn seen() -> Vec<Seen> {
    let snapshot: Snapshot = serde_json::from_str(SNAPSHOT).unwrap();
    let away = Err("the theater at 127.0.0.1:4712 does not let itself be looked at".to_owned());
    vec![
        Seen { address: "127.0.0.1:4711".to_owned(), state: Ok(snapshot) },
        Seen { address: "127.0.0.1:4712".to_owned(), state: away },
    ]
}

fn view() -> View {
    let mut view = View::new("127.0.0.1:4711");
    view.see(seen());
    view
}

/// The lines of a screen of that size.
fn screen_of(view: &View, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| screen::draw(frame, view)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(line).collect()
}

fn press(view: &mut View, keys: &[KeyCode]) -> Reaction {
    keys.iter().map(|key| view.press(KeyEvent::new(*key, KeyModifiers::NONE))).last().unwrap()
}

/// The line that has all of this in it.
fn find<'a>(screen: &'a [String], parts: &[&str]) -> &'a str {
    let found = screen.iter().find(|line| parts.iter().all(|part| line.contains(part)));
    found.unwrap_or_else(|| panic!("no line with {parts:?} in\n{}", screen.join("\n")))
}

#[test]
fn a_small_screen_shows_what_matters_of_all() {
    let screen = screen_of(&view(), 80, 24);
    eprintln!("{}", screen.join("\n"));
    find(&screen, &["Theater 127.0.0.1:4711, cluster \"shop\", process 4242, up 3h 12m"]);
    find(&screen, &["dead letters 3, crashes 2, restarts 1, steals 12,345, migrations 7 in 5 out"]);
    find(&screen, &["\u{25b6} 127.0.0.1:4711", "1,000,003", "1,500", "7/5"]);
    find(&screen, &["127.0.0.1:4712", "does not let itself be looked at"]);
    find(&screen, &["overloaded", "97.3%", "1,000,000", "1,500"]);
    find(&screen, &["slowed", "2.5"]);
    let [warehouse, till] =
        ["Warehouse", "Till"].map(|actor| screen.iter().position(|line| line.contains(actor)).unwrap());
    assert!(warehouse < till, "the busiest comes first");
    find(&screen, &["Till", "two", "25.0%", "2.0", "1,400", "3"]);
    assert!(screen.last().unwrap().contains("q quit"));
}

#[test]
fn a_large_screen_cuts_nothing() {
    let screen = screen_of(&view(), 120, 40);
    eprintln!("{}", screen.join("\n"));
    find(&screen, &["the long one in the north, by the sea", "999,993"]);
}

#[test]
fn keys_change_what_is_shown() {
    let mut view = view();
    press(&mut view, &[KeyCode::Tab]);
    find(&screen_of(&view, 120, 40), &["Fetch", "999,993", "480.0ns", "900.0ns", "250.0µs", "12,345,678"]);
    // The longest first.
    press(&mut view, &[KeyCode::Right, KeyCode::Right, KeyCode::Right]);
    let screen = screen_of(&view, 120, 40);
    let [sell, fetch] = ["Sell", "Fetch"].map(|message| screen.iter().position(|line| line.contains(message)).unwrap());
    assert!(sell < fetch, "{}", screen.join("\n"));
    press(&mut view, &[KeyCode::Char('3')]);
    find(&screen_of(&view, 80, 24), &["3", "0", "999,995", "1,400"]);
    press(&mut view, &[KeyCode::Tab]);
    let screen = screen_of(&view, 80, 24);
    find(&screen, &["127.0.0.1:4712", "calling again", "4s", "12", "96.0 KiB"]);
    find(&screen, &["(does not listen)", "linked", "1m 1s"]);
    press(&mut view, &[KeyCode::Down]);
    find(&screen_of(&view, 80, 24), &["\u{25b6} 127.0.0.1:4712"]);
    press(&mut view, &[KeyCode::Down, KeyCode::BackTab, KeyCode::Char('?')]);
    find(&screen_of(&view, 80, 24), &["Left, Right", "sort"]);
    assert_eq!(press(&mut view, &[KeyCode::Esc]), Reaction::Stay);
    assert!(!screen_of(&view, 80, 24).iter().any(|line| line.contains("Left, Right")));
}

#[test]
fn q_and_ctrl_c_end_it_also_where_the_help_is_open() {
    assert_eq!(press(&mut view(), &[KeyCode::Char('q')]), Reaction::Quit);
    assert_eq!(press(&mut view(), &[KeyCode::Char('?'), KeyCode::Char('q')]), Reaction::Quit);
    assert_eq!(press(&mut view(), &[KeyCode::Char('c')]), Reaction::Stay);
    assert_eq!(view().press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Reaction::Interrupt);
}

/// A theater that looks like the first one, at `count` addresses.
fn many(count: u16) -> View {
    let mut view = View::new("127.0.0.1:1");
    let one = seen().remove(0);
    view.see((1..=count).map(|port| Seen { address: format!("127.0.0.1:{port}"), state: one.state.clone() }).collect());
    view
}

#[test]
fn the_screen_shows_the_theaters_that_fit_and_counts_the_others() {
    let theaters = |view: &View, width, height| {
        let screen = screen_of(view, width, height);
        // The share of time that the workers of one theater were busy.
        eprintln!("{}", screen.join("\n"));
        (screen.iter().filter(|line| line.contains("48.6%")).count(), screen)
    };
    for width in [40, 80, 200] {
        let (shown, screen) = theaters(&many(9), width, 24);
        assert_eq!(shown, 9, "{}", screen.join("\n"));
        find(&screen, &["  127.0.0.1:9  1,000,003  48.6%"]);
        assert!(!screen.iter().any(|line| line.trim() == "0 more"), "{}", screen.join("\n"));
    }
    let mut view = many(30);
    let (shown, screen) = theaters(&view, 80, 24);
    assert_eq!(shown, 9, "{}", screen.join("\n"));
    find(&screen, &["  21 more"]);
    // The chosen one is shown.
    press(&mut view, &[KeyCode::Up]);
    let (shown, screen) = theaters(&view, 80, 24);
    assert_eq!(shown, 9, "{}", screen.join("\n"));
    find(&screen, &["\u{25b6} 127.0.0.1:30"]);
    assert_eq!(theaters(&view, 80, 60).0, 30);
}

#[test]
fn a_filter_leaves_the_rows_with_a_text() {
    let mut view = view();
    press(
        &mut view,
        &[KeyCode::Char('/'), KeyCode::Char('T'), KeyCode::Char('q'), KeyCode::Backspace, KeyCode::Char('I')],
    );
    let screen = screen_of(&view, 80, 24);
    find(&screen, &["Till"]);
    assert!(screen.last().unwrap().contains("/TI"), "{screen:?}");
    assert!(!screen.iter().any(|line| line.contains("Warehouse")), "{}", screen.join("\n"));
    press(&mut view, &[KeyCode::Enter]);
    assert!(screen_of(&view, 80, 24).last().unwrap().starts_with(" filter \"TI\""));
    // The other panes keep the filter.
    press(&mut view, &[KeyCode::Char('2')]);
    let screen = screen_of(&view, 80, 24);
    find(&screen, &["Sell", "Till"]);
    assert!(!screen.iter().any(|line| line.contains("Fetch")), "{}", screen.join("\n"));
    press(&mut view, &[KeyCode::Char('/'), KeyCode::Char('x'), KeyCode::Enter]);
    find(&screen_of(&view, 80, 24), &["none of 2 rows has the text \"TIx\""]);
    press(&mut view, &[KeyCode::Esc]);
    find(&screen_of(&view, 80, 24), &["Fetch"]);
}

#[test]
fn the_order_is_reversed() {
    let mut view = view();
    press(&mut view, &[KeyCode::Char('r')]);
    let screen = screen_of(&view, 120, 40);
    let [warehouse, till] =
        ["Warehouse", "Till"].map(|actor| screen.iter().position(|line| line.contains(actor)).unwrap());
    assert!(till < warehouse, "{}", screen.join("\n"));
}

#[test]
fn a_pause_keeps_the_screen() {
    let mut view = view();
    press(&mut view, &[KeyCode::Char('p')]);
    view.see(Vec::new());
    let screen = screen_of(&view, 80, 24);
    find(&screen, &["Till"]);
    assert!(screen.last().unwrap().starts_with(" PAUSED"), "{screen:?}");
    press(&mut view, &[KeyCode::Char('p')]);
    view.see(Vec::new());
    find(&screen_of(&view, 80, 24), &["looking at 127.0.0.1:4711"]);
}

#[test]
fn the_lines_at_the_top_and_at_the_bottom_fit_the_width() {
    let view = view();
    let lines = |width| {
        let screen = screen_of(&view, width, 24);
        [&screen[0], &screen[1], screen.last().unwrap()].map(String::clone)
    };
    assert_eq!(
        lines(40),
        [
            " Theater 127.0.0.1:4711, cluster \"shop\"",
            " dead letters 3, crashes 2, restarts 1",
            " q quit   ? help   Tab pane   \u{2191}\u{2193} theater"
        ]
    );
    assert_eq!(
        lines(80),
        [
            " Theater 127.0.0.1:4711, cluster \"shop\", process 4242, up 3h 12m",
            " dead letters 3, crashes 2, restarts 1, steals 12,345, migrations 7 in 5 out",
            " q quit   ? help   Tab pane   \u{2191}\u{2193} theater   \u{2190}\u{2192} sort   / filter   r reverse"
        ]
    );
    assert!(lines(200)[2].ends_with("r reverse   p pause"));
}

#[test]
fn json_has_everything_with_times_in_seconds() {
    let json = super::json::describe(&seen());
    let [one, other] = [0, 1].map(|at| &json["theaters"][at]);
    assert_eq!((&one["address"], &one["uptime_seconds"]), (&"127.0.0.1:4711".into(), &11530.0.into()));
    assert_eq!((&one["migrations"]["in"], &one["migrations"]["out"]), (&7.into(), &5.into()));
    assert_eq!(one["messages"][0]["median_seconds"], 0.12);
    assert_eq!(one["links"][0]["for_so_long_seconds"], 4.0);
    assert_eq!(one["actors"][0]["name"], "two");
    assert!(other["error"].as_str().unwrap().contains("does not let itself be looked at"));
}

#[test]
fn no_size_is_too_small() {
    let mut view = view();
    for size in 1..60 {
        for (width, height) in [(size, 24), (80, size), (size, size)] {
            view.help = size % 2 == 0;
            view.is_typing = size % 3 == 0;
            screen_of(&many(size), width, height);
            screen_of(&view, width, height);
            screen_of(&View::new("127.0.0.1:4711"), width, height);
        }
    }
}

#[test]
fn a_theater_that_is_not_seen_any_more_is_not_shown_any_more() {
    let mut view = view();
    press(&mut view, &[KeyCode::Down]);
    assert_eq!(view.chosen, "127.0.0.1:4712");
    view.see(seen().into_iter().take(1).collect());
    assert_eq!(view.chosen, "127.0.0.1:4711");
}

#[test]
fn text_has_all_tables() {
    let text = describe(&seen());
    for words in ["Theaters", "Workers", "Actors", "Messages", "Stages", "Links", "does not let itself be looked at"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(text.lines().all(|line| !line.contains('\x1b')), "{text}");
    assert!(text.contains("  Till                              two "), "{text}");
}

#[test]
fn numbers_are_written_for_people() {
    assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    let times = [0, 59, 60, 3599, 3600, 86_400, 200_000].map(|seconds| long_time(Duration::from_secs(seconds)));
    assert_eq!(times, ["0s", "59s", "1m 0s", "59m 59s", "1h 0m", "1d 0h", "2d 7h"]);
}

#[test]
fn letters_with_ctrl_or_alt_are_no_letters() {
    let mut view = view();
    press(&mut view, &[KeyCode::Char('/'), KeyCode::Char('a')]);
    for modifiers in [KeyModifiers::CONTROL, KeyModifiers::ALT] {
        assert_eq!(view.press(KeyEvent::new(KeyCode::Char('u'), modifiers)), Reaction::Stay);
    }
    assert_eq!(view.filter, "a");
    press(&mut view, &[KeyCode::Enter]);
    assert_eq!(view.press(KeyEvent::new(KeyCode::Char('q'), KeyModifiers::CONTROL)), Reaction::Stay);
    assert_eq!(view.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Reaction::Interrupt);
}

#[test]
fn a_theater_that_does_not_answer_is_named_once() {
    let seen = Seen { address: "127.0.0.1:1".to_owned(), state: Err("127.0.0.1:1: Connection refused".to_owned()) };
    let text = super::text::describe(&[seen]);
    assert_eq!(text.matches("127.0.0.1:1").count(), 1, "{text}");
    assert!(text.contains("Connection refused"), "{text}");
}
