//! The options of a command: flags first, then environment variables, then the file that `--config` names, then defaults.
//!
//! An option `--some-name` is the variable `PLAYHOUSE_SOME_NAME`, and in the file the key `some_name` in the table of its command. Values from variables and
//! from the file become flags behind the name of the command, after each was checked alone: an error names the variable, or the line and the key.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::ValueParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use playhouse_console::files;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::output::{self, BAD_INPUT, fail};

/// The command that runs where none is named.
const DEFAULT_COMMAND: &str = "demo";

/// The commands that take no options from variables and files: they print text about the program itself, or belong to another program.
const WITHOUT_OPTIONS: [&str; 5] = ["bench", "chatapp", "completions", "help", "man"];

/// The option that names the file. It is in no file.
const CONFIG: &str = "config";

/// Reads the program's arguments, variables and file.
///
/// # Errors
/// The exit code: the help was printed, or an error.
pub fn read(command: &Command, arguments: Vec<OsString>) -> Result<ArgMatches, ExitCode> {
    resolve(command, arguments, &|name| std::env::var_os(name)).map_err(|error| match error {
        Error::Settings(text) => fail(BAD_INPUT, &text),
        Error::Combined(text) => {
            output::write_error(&format!("error: {text}\n"));
            ExitCode::from(BAD_INPUT)
        }
        Error::Arguments(error) if error.use_stderr() => {
            output::write_error(&rendered(&error, &std::io::stderr()));
            ExitCode::from(BAD_INPUT)
        }
        Error::Arguments(error) => {
            output::write(&rendered(&error, &std::io::stdout()));
            ExitCode::SUCCESS
        }
    })
}

fn rendered(error: &clap::Error, stream: &impl std::io::IsTerminal) -> String {
    let text = error.render();
    if output::is_coloured(stream) { text.ansi().to_string() } else { text.to_string() }
}

/// Returns the variables that are read, for a process that is not to read them again.
pub fn variables(command: &Command) -> Vec<String> {
    let all = command.get_subcommands().chain([command]);
    all.flat_map(Command::get_arguments).filter_map(variable).collect()
}

enum Error {
    /// Values of variables or of the file that are wrong, each in a line.
    Settings(String),
    /// Options that exclude each other, some of them of the file: one error in several lines.
    Combined(String),
    Arguments(clap::Error),
}

impl From<clap::Error> for Error {
    fn from(error: clap::Error) -> Error {
        Error::Arguments(error)
    }
}

type Variables<'a> = &'a dyn Fn(&str) -> Option<OsString>;

fn resolve(command: &Command, mut arguments: Vec<OsString>, variables: Variables<'_>) -> Result<ArgMatches, Error> {
    let mut command = command.clone();
    command.build();
    let place = place_of_command(&command, &arguments);
    if let Place::Missing(at) = place {
        arguments.insert(at, DEFAULT_COMMAND.into());
    }
    let chosen = match place {
        Place::None => None,
        Place::Named(at) | Place::Missing(at) => command.find_subcommand(&arguments[at]).map(|chosen| (at, chosen)),
    };
    let chosen = chosen.filter(|(_, chosen)| !WITHOUT_OPTIONS.contains(&chosen.get_name()));
    let Some((at, chosen)) = chosen else {
        // The command `help` of clap takes no options.
        if let Place::Named(at) = place
            && arguments[at] == "help"
            && arguments.get(at + 1).is_some_and(|option| option == "--help" || option == "-h")
        {
            arguments.remove(at + 1);
        }
        return Ok(documented(&command).try_get_matches_from(arguments)?);
    };

    // Wrong arguments are reported later, when those of variables and of the file are among them.
    let given = command.clone().ignore_errors(true).try_get_matches_from(&arguments);
    // The help, or the version.
    let Ok(given) = given else { return Ok(documented(&command).try_get_matches_from(arguments)?) };
    // An option in front of the command is wrong, and the command was not read.
    let Some(given) = given.subcommand_matches(chosen.get_name()) else {
        return Ok(documented(&command).try_get_matches_from(arguments)?);
    };
    let is_given = |id: &str| given.value_source(id) == Some(ValueSource::CommandLine);

    let mut set: Vec<&Arg> = options(chosen).filter(|option| is_given(option.get_id().as_str())).collect();
    let mut decided: Vec<_> = set.iter().map(|option| option.get_id()).collect();
    let mut settings = of_variables(chosen, variables)?;
    let path = given
        .get_one::<PathBuf>(CONFIG)
        .cloned()
        .or_else(|| variables("PLAYHOUSE_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from));
    let mut of_file = None;
    if let Some(path) = &path {
        settings.extend(ConfigFile::read(path)?.settings(&command, chosen)?);
        of_file = Some(path);
    }
    let mut added = Vec::new();
    // Those of variables come first: a value from the file gives way to one, as all do to flags.
    for setting in settings {
        let option = setting.option;
        // Options of the same file that exclude each other are an error, which clap reports.
        let excludes =
            |other: &Arg| conflict(chosen, other, option) && !added.contains(&(other.get_id(), setting.from_file));
        if decided.contains(&option.get_id()) || set.iter().any(|other| excludes(other)) {
            continue;
        }
        decided.push(option.get_id());
        // An option that is switched off, or an empty list, excludes no other.
        if !setting.arguments.is_empty() {
            set.push(option);
        }
        added.push((option.get_id(), setting.from_file));
        arguments.splice(at + 1..at + 1, setting.arguments);
    }
    documented(&command).try_get_matches_from(arguments).map_err(|error| match of_file {
        Some(path) if error.use_stderr() && added.iter().any(|(_, from_file)| *from_file) => {
            Error::Combined(format!("{}(with the options of {})", plain(&error), path.display()))
        }
        _ => Error::Arguments(error),
    })
}

fn plain(error: &clap::Error) -> String {
    let text = error.render().to_string();
    text.strip_prefix("error: ").map_or(text.clone(), str::to_owned)
}

/// Returns whether one of the two options excludes the other.
fn conflict(command: &Command, one: &Arg, other: &Arg) -> bool {
    let excludes = |one: &Arg, other: &Arg| {
        command.get_arg_conflicts_with(one).iter().any(|excluded| excluded.get_id() == other.get_id())
    };
    excludes(one, other) || excludes(other, one)
}

enum Place {
    Named(usize),
    Missing(usize),
    /// The help or the version of the program is asked for, or an option of all commands has no value.
    None,
}

/// Returns where the arguments name the command: behind the options of all commands.
fn place_of_command(command: &Command, arguments: &[OsString]) -> Place {
    let mut at = 1;
    while let Some(argument) = arguments.get(at).map(|argument| argument.to_string_lossy()) {
        if !argument.starts_with('-') {
            return Place::Named(at);
        }
        if ["-h", "--help", "-V", "--version"].contains(&&*argument) {
            return Place::None;
        }
        let (name, value) = argument.split_once('=').map_or((&*argument, None), |(name, value)| (name, Some(value)));
        let is_global = command.get_arguments().any(|option| option.get_long() == name.strip_prefix("--"));
        if !is_global {
            return Place::Missing(at);
        }
        at += if value.is_some() { 1 } else { 2 };
        if at > arguments.len() {
            return Place::None;
        }
    }
    Place::Missing(arguments.len())
}

/// The options that variables and files may set.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|option| variable(option).is_some() && option.get_id() != CONFIG)
}

fn variable(option: &Arg) -> Option<String> {
    let is_setting = !option.is_hide_set()
        && !matches!(
            option.get_action(),
            ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
        );
    let name = option.get_long().filter(|_| is_setting)?;
    Some(format!("PLAYHOUSE_{}", name.replace('-', "_").to_uppercase()))
}

fn key(option: &Arg) -> String {
    option.get_long().unwrap_or_default().replace('-', "_")
}

/// Has the help name the variables. They are read before, and not by clap, for which a flag and a variable that exclude each other are an error.
pub fn documented(command: &Command) -> Command {
    fn document(command: Command) -> Command {
        let options = |option: Arg| match variable(&option) {
            Some(variable) => {
                let help =
                    |help: Option<&clap::builder::StyledStr>| help.map(|help| format!("{help} [env: {variable}]"));
                let (short, long) = (help(option.get_help()), help(option.get_long_help()));
                let option = if let Some(short) = short { option.help(short) } else { option };
                if let Some(long) = long { option.long_help(long) } else { option }
            }
            None => option,
        };
        command.mut_args(options)
    }
    document(command.clone()).mut_subcommands(document)
}

/// A value of an option, as arguments.
struct Setting<'a> {
    option: &'a Arg,
    arguments: Vec<OsString>,
    from_file: bool,
}

fn of_variables<'a>(command: &'a Command, variables: Variables<'_>) -> Result<Vec<Setting<'a>>, Error> {
    let mut settings = Vec::new();
    let mut problems = Vec::new();
    for option in options(command) {
        let Some(name) = variable(option) else { continue };
        let Some(value) = variables(&name) else { continue };
        if value.is_empty() && !takes_several(option) {
            continue;
        }
        let values = match &value.to_str() {
            Some("") if takes_several(option) => Vec::new(),
            Some(text) if takes_several(option) => text.split(',').map(|part| part.trim().into()).collect(),
            _ => vec![value.clone()],
        };
        let values = values.into_iter().map(|value| match (takes_value(option), value.to_str().and_then(truth)) {
            (true, _) => Ok(Value::Text(value)),
            (false, Some(truth)) => Ok(Value::Truth(truth)),
            (false, None) => Err("must be true or false".to_owned()),
        });
        match values.collect::<Result<Vec<_>, _>>().and_then(|values| arguments(option, values)) {
            Ok(arguments) => settings.push(Setting { option, arguments, from_file: false }),
            Err(why) => problems.push(format!("{name}={}: {why}", value.display())),
        }
    }
    if problems.is_empty() { Ok(settings) } else { Err(Error::Settings(problems.join("\n"))) }
}

fn truth(text: &str) -> Option<bool> {
    match &*text.to_ascii_lowercase() {
        "1" | "true" | "yes" | "on" => Some(true),
        "0" | "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

enum Value {
    Text(OsString),
    Truth(bool),
}

fn takes_value(option: &Arg) -> bool {
    option.get_action().takes_values()
}

fn takes_several(option: &Arg) -> bool {
    matches!(option.get_action(), ArgAction::Append)
}

/// Returns an option's values as arguments, which the option alone would take.
fn arguments(option: &Arg, values: Vec<Value>) -> Result<Vec<OsString>, String> {
    let name = option.get_long().unwrap_or_default();
    let mut arguments = Vec::new();
    for value in values {
        match value {
            Value::Text(text) => {
                let mut argument = OsString::from(format!("--{name}="));
                argument.push(text);
                arguments.push(argument);
            }
            Value::Truth(true) => arguments.push(format!("--{name}").into()),
            Value::Truth(false) => {}
        }
    }
    let parser: ValueParser = option.get_value_parser().clone();
    let alone = Arg::new("alone").long(name.to_owned()).action(option.get_action().clone()).value_parser(parser);
    let checked = Command::new("check").no_binary_name(true).disable_help_flag(true).arg(alone);
    match checked.try_get_matches_from(&arguments) {
        Ok(_) => Ok(arguments),
        Err(error) => Err(reason(&error)),
    }
}

/// Returns the reason of an error about one value, without the name of the flag.
fn reason(error: &clap::Error) -> String {
    if let (ErrorKind::InvalidValue, Some(ContextValue::Strings(allowed))) =
        (error.kind(), error.get(ContextKind::ValidValue))
        && !allowed.is_empty()
    {
        return format!("must be one of {}", allowed.join(", "));
    }
    match std::error::Error::source(error) {
        Some(source) => source.to_string(),
        None => plain(error).lines().next().unwrap_or_default().to_owned(),
    }
}

/// A file of options.
struct ConfigFile {
    name: String,
    source: String,
}

impl ConfigFile {
    fn read(path: &Path) -> Result<ConfigFile, Error> {
        let expected = "--config and PLAYHOUSE_CONFIG name a TOML file with a table for each command";
        let source = files::read_text(path).map_err(|error| Error::Settings(format!("{error}; {expected}")))?;
        Ok(ConfigFile { name: path.display().to_string(), source })
    }

    /// Checks the whole file, and returns what it says for `chosen`, its own table last.
    fn settings<'a>(&self, command: &'a Command, chosen: &'a Command) -> Result<Vec<Setting<'a>>, Error> {
        let mut problems: Vec<(usize, String)> = Vec::new();
        let (table, errors) = DeTable::parse_recoverable(&self.source);
        if !errors.is_empty() {
            let problem = |error: &toml::de::Error| {
                (error.span().map_or(0, |span| span.start), format!("not TOML: {}", error.message().trim()))
            };
            return Err(self.error(errors.iter().map(problem).collect()));
        }
        let tables: Vec<&Command> =
            command.get_subcommands().filter(|command| !WITHOUT_OPTIONS.contains(&command.get_name())).collect();
        let mut of_all = Vec::new();
        let mut of_chosen = Vec::new();
        for (key, value) in table.get_ref() {
            let table = tables.iter().find(|command| command.get_name() == key.get_ref().as_ref());
            match (table, value.get_ref()) {
                (Some(command), DeValue::Table(table)) => {
                    let is_chosen = command.get_name() == chosen.get_name();
                    for (key, value) in table {
                        let path = format!("{}.{}", command.get_name(), key.get_ref());
                        match self.setting(command, &path, (key, value), &HashSet::new()) {
                            Ok(setting) if is_chosen => of_chosen.push(setting),
                            Ok(_) => {}
                            Err(problem) => problems.push(problem),
                        }
                    }
                }
                (Some(_), _) => problems.push((key.span().start, format!("{}: must be a table", key.get_ref()))),
                (None, _) => {
                    let names = tables.iter().map(|command| format!("[{}]", command.get_name())).collect();
                    match self.setting(command, key.get_ref(), (key, value), &names) {
                        Ok(setting) => of_all.push(setting),
                        Err(problem) => problems.push(problem),
                    }
                }
            }
        }
        if !problems.is_empty() {
            return Err(self.error(problems));
        }
        of_chosen.extend(of_all);
        Ok(of_chosen)
    }

    fn setting<'a>(
        &self,
        command: &'a Command,
        path: &str,
        (name, value): (&Spanned<std::borrow::Cow<'_, str>>, &Spanned<DeValue<'_>>),
        tables: &HashSet<String>,
    ) -> Result<Setting<'a>, (usize, String)> {
        let Some(option) = options(command).find(|option| key(option) == **name.get_ref()) else {
            let mut allowed: Vec<String> = options(command).map(key).chain(tables.iter().cloned()).collect();
            allowed.sort();
            return Err((name.span().start, format!("{path}: unknown key; allowed here: {}", allowed.join(", "))));
        };
        let values = match value.get_ref() {
            DeValue::Array(values) if takes_several(option) => {
                values.iter().map(|value| one(option, value.get_ref())).collect::<Result<Vec<_>, _>>()
            }
            value => one(option, value).map(|value| vec![value]),
        };
        let arguments = values.and_then(|values| arguments(option, values)).map_err(|why| {
            let shown = self.source.get(value.span()).unwrap_or_default().lines().next().unwrap_or_default();
            (value.span().start, format!("{path} = {shown}: {why}"))
        })?;
        Ok(Setting { option, arguments, from_file: true })
    }

    fn error(&self, mut problems: Vec<(usize, String)>) -> Error {
        problems.sort();
        let mut text = String::new();
        for (offset, problem) in problems {
            let before = &self.source.as_bytes()[..offset.min(self.source.len())];
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            let _ = writeln!(text, "{}:{line}: {problem}", self.name);
        }
        Error::Settings(text)
    }
}

/// Reads one value of an option.
fn one(option: &Arg, value: &DeValue<'_>) -> Result<Value, String> {
    let expected = match (takes_value(option), takes_several(option)) {
        (false, _) => "must be true or false",
        (true, false) => "must be a text or a number",
        (true, true) => "must be a text, or a list of texts",
    };
    let text = match value {
        DeValue::Boolean(truth) if !takes_value(option) => return Ok(Value::Truth(*truth)),
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => {
            let number = i128::from_str_radix(number.as_str(), number.radix());
            number.map_err(|_| expected.to_owned())?.to_string()
        }
        DeValue::Float(number) => number.as_str().to_owned(),
        _ => return Err(expected.to_owned()),
    };
    if takes_value(option) { Ok(Value::Text(text.into())) } else { Err(expected.to_owned()) }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// A file that ends with its test.
    struct Written(PathBuf);

    impl Written {
        fn new(name: &str, text: &str) -> Written {
            let path = std::env::temp_dir().join(format!("playhouse-config-{name}-{}", std::process::id()));
            std::fs::write(&path, text).expect("the folder for temporary files can be written to");
            Written(path)
        }

        fn path(&self) -> &str {
            self.0.to_str().expect("the path is UTF-8")
        }
    }

    impl Drop for Written {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn with(arguments: &[&str], variables: &[(&str, &str)]) -> Result<ArgMatches, Error> {
        let arguments = ["playhouse"].iter().chain(arguments).map(OsString::from).collect();
        let variables =
            |name: &str| variables.iter().find(|variable| variable.0 == name).map(|variable| variable.1.into());
        resolve(&crate::Cli::command(), arguments, &variables)
    }

    /// The values of an option of the command that is named, or of the demonstration.
    fn values(arguments: &[&str], variables: &[(&str, &str)], id: &str) -> Vec<String> {
        let matches = with(arguments, variables).unwrap_or_else(|error| panic!("{}", text(error)));
        let (_, command) = matches.subcommand().expect("a command is always chosen");
        let raw = command.get_raw(id).into_iter().flatten();
        raw.map(|value| value.to_str().expect("the values are UTF-8").to_owned()).collect()
    }

    fn text(error: Error) -> String {
        match error {
            Error::Settings(text) | Error::Combined(text) => text,
            Error::Arguments(error) => error.to_string(),
        }
    }

    fn refused(arguments: &[&str], variables: &[(&str, &str)]) -> String {
        text(with(arguments, variables).expect_err("it is refused"))
    }

    // GUARANTEE: Options are checked
    #[test]
    fn a_flag_counts_before_a_variable_before_the_file_before_the_default() {
        let file = Written::new("order", "[theater]\nlisten = \"file:1\"\ncluster = \"file\"\ndrain_seconds = 1_0\n");
        let config = ["theater", "--config", file.path()];
        let variables = [("PLAYHOUSE_CLUSTER", "variable")];
        assert_eq!(values(&["theater", "--listen", "flag:1"], &[], "cluster"), [""]);
        assert_eq!(values(&config, &[], "cluster"), ["file"]);
        assert_eq!(values(&config, &variables, "cluster"), ["variable"]);
        let flag = ["theater", "--config", file.path(), "--cluster", "flag"];
        assert_eq!(values(&flag, &variables, "cluster"), ["flag"]);
        assert_eq!(values(&flag, &variables, "listen"), ["file:1"]);
        assert_eq!(values(&flag, &variables, "drain_seconds"), ["10"]);
        assert_eq!(values(&flag[..1], &[("PLAYHOUSE_CONFIG", file.path())], "cluster"), ["file"]);
    }

    #[test]
    fn an_empty_variable_counts_as_unset() {
        let file = Written::new("unset", "[theater]\nlisten = \"file:1\"\ncluster = \"file\"\nplaintext = true\n");
        let config = ["theater", "--config", file.path()];
        let empty = ["CLUSTER", "PLAINTEXT", "WORKERS"].map(|name| (format!("PLAYHOUSE_{name}"), ""));
        let empty: Vec<_> = empty.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        assert_eq!(values(&config, &empty, "cluster"), ["file"]);
        assert_eq!(values(&config, &empty, "plaintext"), ["true"]);
        assert_eq!(values(&["theater", "--listen", "flag:1"], &[("PLAYHOUSE_CONFIG", "")], "listen"), ["flag:1"]);
    }

    #[test]
    fn a_list_is_one_value_that_a_flag_replaces() {
        let file = Written::new("list", "[theater]\nlisten = \"file:1\"\njoin = [\"file:2\", \"file:3\"]\n");
        let config = ["--config", file.path(), "theater"];
        assert_eq!(values(&config, &[], "join"), ["file:2", "file:3"]);
        let variables = [("PLAYHOUSE_JOIN", "variable:2, variable:3")];
        assert_eq!(values(&config, &variables, "join"), ["variable:2", "variable:3"]);
        assert!(values(&config, &[("PLAYHOUSE_JOIN", "")], "join").is_empty());
        let flags = [&config[..], &["--join", "flag:2"]].concat();
        assert_eq!(values(&flags, &variables, "join"), ["flag:2"]);
    }

    #[test]
    fn a_value_gives_way_to_a_flag_that_excludes_it() {
        let file = Written::new("excluded", "[theater]\nlisten = \"file:1\"\ntls = \"dir/name\"\n");
        let config = ["theater", "--config", file.path()];
        assert_eq!(values(&config, &[], "tls"), ["dir/name"]);
        assert!(values(&[&config[..], &["--plaintext"]].concat(), &[], "tls").is_empty());
        assert!(values(&config, &[("PLAYHOUSE_PLAINTEXT", "yes")], "tls").is_empty());
        assert_eq!(values(&config, &[("PLAYHOUSE_PLAINTEXT", "0")], "plaintext"), ["false"]);
        // An option that is switched off does not switch the encryption off.
        let off = [("PLAYHOUSE_PLAINTEXT", "0"), ("PLAYHOUSE_JOIN", "")];
        assert_eq!(values(&config, &off, "tls"), ["dir/name"]);
        let allowed = Written::new("allowed", "[theater]\nlisten = \"file:1\"\nplaintext = true\n");
        let allowed = ["theater", "--config", allowed.path()];
        assert_eq!(values(&allowed, &[], "plaintext"), ["true"]);
        assert_eq!(values(&allowed, &off, "plaintext"), ["false"]);
        // It is one error, and the lines behind the first one are its hints.
        let both = Written::new("both", "[theater]\nlisten = \"file:1\"\ntls = \"dir/name\"\nplaintext = true\n");
        let error = with(&["theater", "--config", both.path()], &[]).expect_err("they exclude each other");
        assert!(matches!(error, Error::Combined(_)));
        let error = text(error);
        assert!(error.contains("--plaintext") && error.contains("--tls") && error.contains(both.path()), "{error}");
    }

    #[test]
    fn without_a_command_the_demonstration_gets_the_options() {
        let file = Written::new("demo", "log = \"warn\"\n[demo]\nlocal = true\n");
        for arguments in [&["--stages", "4", "--config", file.path()][..], &["--config", file.path(), "--stages=4"]] {
            assert_eq!(values(arguments, &[], "local"), ["true"]);
            assert_eq!(values(arguments, &[], "stages"), ["4"]);
            assert_eq!(values(arguments, &[], "log"), ["warn"]);
        }
        assert_eq!(values(&["--log", "off"], &[], "log"), ["off"]);
        assert_eq!(values(&[], &[("PLAYHOUSE_LOG", "debug")], "log"), ["debug"]);
    }

    #[test]
    fn wrong_options_in_front_of_the_command_are_named() {
        for (arguments, words) in [
            (&["--config"][..], "a value is required for '--config <FILE>'"),
            (&["--log"], "a value is required for '--log <FILTER>'"),
            (&["--log", "loud", "theater", "--listen", "host:1"], "invalid value 'loud' for '--log <FILTER>'"),
            (&["--log=loud", "--local"], "invalid value 'loud' for '--log <FILTER>'"),
        ] {
            let error = refused(arguments, &[]);
            assert!(error.contains(words), "{arguments:?}: {error}");
        }
    }

    // GUARANTEE: Options are checked
    #[test]
    fn wrong_values_are_named_with_file_line_and_key_or_with_the_variable() {
        let file = Written::new(
            "wrong",
            "log = \"loud\"\nlisten = 3\n[theater]\nworkers = 0\njoinn = []\nlisten = [\"a:1\"]\nplaintext = 1\n[dance]\n\
             [demo]\nworkers = 2000\n[replay]\nprogram = \"dinner\"\n[top]\nevery = 1979-05-27\n[bench]\nruns = 1\n",
        );
        let error = refused(&["theater", "--config", file.path()], &[]);
        for (line, words) in [
            (1, "log = \"loud\": \"loud\" is no level: a filter reads LEVEL"),
            (2, "listen: unknown key; allowed here: [certificates], [demo]"),
            (4, "theater.workers = 0: 0 is not in 1..=1024"),
            (5, "theater.joinn: unknown key; allowed here: advertise, cluster"),
            (6, "theater.listen = [\"a:1\"]: must be a text or a number"),
            (7, "theater.plaintext = 1: must be true or false"),
            (8, "dance: unknown key"),
            (10, "demo.workers = 2000: 2000 is not in 1..=1024"),
            (12, "replay.program = \"dinner\": must be one of "),
            (14, "top.every = 1979-05-27: must be a text or a number"),
            (15, "bench: unknown key"),
        ] {
            assert!(error.contains(&format!("{}:{line}: {words}", file.path())), "no {line}: {words} in\n{error}");
        }
        assert_eq!(error.lines().count(), 11, "{error}");
        let error = refused(&["theater"], &[("PLAYHOUSE_WORKERS", "0"), ("PLAYHOUSE_JSON", "maybe")]);
        assert!(error.contains("PLAYHOUSE_WORKERS=0: 0 is not in 1..=1024"), "{error}");
        assert!(error.contains("PLAYHOUSE_JSON=maybe: must be true or false"), "{error}");
    }

    #[test]
    fn the_file_in_the_guide_is_right() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guide/src/command-line.md");
        let page = std::fs::read_to_string(page).expect("the page can be read");
        let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
        let file = Written::new("guide", example.expect("the page has a file"));
        assert_eq!(values(&["theater", "--config", file.path()], &[], "join").len(), 2);
        assert_eq!(values(&["top", "host:1", "--config", file.path()], &[], "cluster"), ["shop"]);
    }

    #[test]
    fn a_file_that_is_none_is_refused() {
        let refuse = |path: &str| refused(&["theater", "--config", path], &[]);
        let broken = Written::new("broken", "[theater]\nlisten == 1\n");
        assert!(refuse(broken.path()).contains(":2: not TOML"), "{}", refuse(broken.path()));
        assert!(refuse("no/such.toml").contains("no/such.toml: "));
        let folder = std::env::temp_dir();
        assert!(
            refuse(folder.to_str().expect("the path is UTF-8"))
                .contains("is a folder, and no regular file; --config and PLAYHOUSE_CONFIG name")
        );
        #[cfg(unix)]
        assert!(refuse("/dev/zero").contains("/dev/zero: it is no regular file"));
    }

    #[test]
    fn the_help_names_the_variable_of_each_option() {
        let program = crate::Cli::command();
        for command in program.get_subcommands().filter(|command| !WITHOUT_OPTIONS.contains(&command.get_name())) {
            let help = refused(&[command.get_name(), "--help"], &[]);
            for option in options(command) {
                let variable = variable(option).expect("it is an option");
                assert!(help.contains(&variable), "{variable} is not in\n{help}");
            }
        }
    }
}
