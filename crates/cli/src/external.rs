//! The commands that another program has: `playhouse bench` and `playhouse chatapp` run `playhouse-bench` with the same arguments.

use std::env::consts::EXE_SUFFIX;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use playhouse_console::build::PROFILE;

use crate::output::{FAILED, fail};

/// The program that has these commands.
const PROGRAM: &str = "playhouse-bench";
/// Its package.
const PACKAGE: &str = "playhouse-bench-cli";

/// Arguments of a command of another program.
#[derive(clap::Args)]
pub struct Args {
    /// The arguments of the command, which `--help` explains
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

/// Runs the command `name` of the other program: the one beside this program, or else the one in `PATH`. The other program takes the place of
/// this process where the system allows it, and gets all signals.
pub fn run(name: &str, args: &Args) -> ExitCode {
    let file = format!("{PROGRAM}{EXE_SUFFIX}");
    let beside = std::env::current_exe().ok().map(|this| this.with_file_name(&file)).filter(|path| path.is_file());
    let mut command = Command::new(beside.unwrap_or_else(|| PathBuf::from(&file)));
    command.arg(name).args(&args.arguments);
    match replace(&mut command) {
        Ok(code) => code,
        Err(error) if error.kind() == ErrorKind::NotFound => fail(FAILED, &missing(name)),
        Err(error) => fail(FAILED, &format!("{} cannot be run: {error}", command.get_program().display())),
    }
}

/// Says how to get the program.
fn missing(name: &str) -> String {
    let folder = std::env::current_exe().ok().and_then(|this| Some(this.parent()?.display().to_string()));
    let folder = folder.unwrap_or_else(|| "the folder of this program".to_owned());
    let profile = match PROFILE {
        "debug" => String::new(),
        "release" => " --release".to_owned(),
        other => format!(" --profile {other}"),
    };
    format!(
        "`playhouse {name}` runs the program {PROGRAM}, which is neither in {folder} nor in PATH\n\
         to build it, type in the checkout of Playhouse: cargo build{profile} -p {PACKAGE}"
    )
}

/// Makes this process the other program. Returns only if that fails.
#[cfg(unix)]
fn replace(command: &mut Command) -> io::Result<ExitCode> {
    use std::os::unix::process::CommandExt;

    Err(command.exec())
}

/// Runs the other program to its end, and returns its exit code. Ctrl-C in the console reaches it by itself.
#[cfg(not(unix))]
fn replace(command: &mut Command) -> io::Result<ExitCode> {
    playhouse_console::signals::ignore();
    let code = command.status()?.code();
    Ok(code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}
