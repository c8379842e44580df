//! `playhouse completions` and `playhouse man`: text about the program that shells and `man` read.

use std::process::ExitCode;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use playhouse_console::output::{BAD_INPUT, FAILED, fail, write};

/// Arguments of `playhouse completions`.
#[derive(clap::Args)]
pub struct Completions {
    /// The shell that completes
    shell: Shell,
}

/// Arguments of `playhouse man`.
#[derive(clap::Args)]
pub struct Page {
    /// The command that the page is about; the whole program without
    command: Option<String>,
}

/// Prints the script that has the shell complete the program's arguments.
pub fn completions(args: &Completions, mut program: Command) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "playhouse", &mut script);
    write(&String::from_utf8_lossy(&script));
    ExitCode::SUCCESS
}

/// Prints a page of the manual, in the form that `man` reads.
pub fn page(args: &Page, mut program: Command) -> ExitCode {
    program.build();
    let shown = match &args.command {
        None => Some(&program),
        Some(name) => program.find_subcommand(name).filter(|command| command.get_name() != "help"),
    };
    let Some(shown) = shown else {
        let names: Vec<_> = program.get_subcommands().map(Command::get_name).filter(|name| *name != "help").collect();
        let asked = args.command.as_deref().unwrap_or_default();
        return fail(BAD_INPUT, &format!("no command is called \"{asked}\"; there are: {}", names.join(", ")));
    };
    // The page of a command is called like those of git: playhouse-theater.
    let title = shown.get_display_name().unwrap_or(shown.get_name()).to_owned();
    let source = format!("playhouse {}", env!("CARGO_PKG_VERSION"));
    let mut page = Vec::new();
    match Man::new(shown.clone()).title(title.to_uppercase()).source(source).manual("Playhouse").render(&mut page) {
        Ok(()) => {
            write(&String::from_utf8_lossy(&page));
            ExitCode::SUCCESS
        }
        Err(error) => fail(FAILED, &format!("the page cannot be written: {error}")),
    }
}
