//! `playhouse completions`, `playhouse man`, and the versions, as a user runs them.

#[allow(dead_code, reason = "other tests use all of it")]
mod program;

use program::{refused, run};

#[test]
fn completions_name_commands_and_options() {
    for shell in ["bash", "zsh", "fish"] {
        let (code, script, errors) = run(&["completions", shell]);
        assert_eq!((code, &*errors), (0, ""));
        for word in ["theater", "certificates", "advertise", "log-format"] {
            assert!(script.contains(word), "no {word} for {shell}");
        }
    }
    refused(&["completions", "tcsh"], &["'tcsh'", "bash"]);
}

#[test]
fn the_command_help_has_a_help() {
    let help = run(&["--help"]);
    for option in ["--help", "-h"] {
        assert_eq!(run(&["help", option]), help);
    }
}

#[test]
fn pages_of_the_manual_describe_the_program_and_each_command() {
    let (code, page, errors) = run(&["man"]);
    assert_eq!((code, &*errors), (0, ""));
    for words in [".TH PLAYHOUSE 1", "playhouse 0.1.0", "Exit codes", "certificates", "PLAYHOUSE_CONFIG"] {
        assert!(page.contains(words), "no {words} in\n{page}");
    }
    for command in ["demo", "theater", "top", "replay", "certificates", "certs", "scenario"] {
        let (code, page, errors) = run(&["man", command]);
        assert_eq!((code, &*errors), (0, ""));
        assert!(page.contains(".TH PLAYHOUSE-") && page.contains("PLAYHOUSE_JSON"), "{page}");
    }
    refused(&["man", "dance"], &["no command is called \"dance\"", "theater"]);
}

#[test]
fn a_short_version_is_a_number_and_a_long_one_says_how_the_program_was_built() {
    assert_eq!(run(&["-V"]), (0, "playhouse 0.1.0\n".to_owned(), String::new()));
    let (code, version, errors) = run(&["--version"]);
    assert_eq!((code, &*errors), (0, ""));
    let lines: Vec<&str> = version.lines().collect();
    let starts = ["playhouse 0.1.0", "revision ", "profile ", "features theaters", "target ", "rustc "];
    assert_eq!(lines.len(), starts.len(), "{version}");
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(start), "{version}");
    }
}
