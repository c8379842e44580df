//! Reads a scenario's TOML strictly, and collects every problem of a file instead of stopping at the first.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::{Range, RangeInclusive};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Everything that is wrong with one scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioError {
    /// The file (or the name of a built-in scenario) the problems are in.
    pub file: String,
    /// The problems, in the order of the file; at least one.
    pub problems: Vec<Problem>,
}

/// A problem of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line it is in, counted from 1, if it is in a line.
    pub line: Option<usize>,
    /// The path of the key, such as `behaviour.post`; empty for errors of syntax.
    pub key: String,
    /// The value as written in the file, if there is one.
    pub value: Option<String>,
    /// The description of the problem, and the allowed values.
    pub what: String,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            write!(f, "{}:", self.file)?;
            if let Some(line) = problem.line {
                write!(f, "{line}:")?;
            }
            match (&*problem.key, &problem.value) {
                ("", _) => {}
                (key, Some(value)) => write!(f, " {key} = {value}:")?,
                (key, None) => write!(f, " {key}:")?,
            }
            write!(f, " {}", problem.what)?;
        }
        Ok(())
    }
}

impl std::error::Error for ScenarioError {}

/// A file being read.
pub(super) struct Reader<'a> {
    file: &'a str,
    source: &'a str,
    problems: Vec<(usize, Problem)>,
    /// The positions of the values of all keys in the file, valid or not.
    places: HashMap<String, Place>,
    /// Keys with a problem: further contradictions of theirs are not reported.
    failed: HashSet<String>,
}

/// Returns the position of a value in the file.
#[derive(Clone)]
struct Place {
    range: Range<usize>,
    /// The value is a table and the place its header, which says no more than the key does.
    header: bool,
}

/// A table of the file, and the keys that were asked for.
pub(super) struct Section<'a> {
    path: String,
    table: Option<&'a DeTable<'a>>,
    allowed: Vec<&'static str>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(file: &'a str, source: &'a str) -> Reader<'a> {
        Reader { file, source, problems: Vec::new(), places: HashMap::new(), failed: HashSet::new() }
    }

    /// Parses the text; after errors of syntax nothing else is checked.
    pub(super) fn parse(&self) -> Result<Spanned<DeTable<'a>>, ScenarioError> {
        let (table, errors) = DeTable::parse_recoverable(self.source);
        if errors.is_empty() {
            return Ok(table);
        }
        let problems = errors
            .iter()
            .map(|error| Problem {
                line: error.span().map(|span| line_of(self.source, span.start)),
                key: String::new(),
                value: None,
                what: format!("not TOML: {}", error.message().trim()),
            })
            .collect();
        Err(ScenarioError { file: self.file.to_owned(), problems })
    }

    pub(super) fn root(&self, table: &'a DeTable<'a>) -> Section<'a> {
        Section { path: String::new(), table: Some(table), allowed: Vec::new() }
    }

    /// Reports a problem with a key that was read before, unless the key has one already.
    pub(super) fn reject(&mut self, key: &str, what: String) {
        if !self.failed.insert(key.to_owned()) {
            return;
        }
        let place = self.places.get(key).cloned();
        self.push(key.to_owned(), place, what);
    }

    pub(super) fn has_failed(&self, key: &str) -> bool {
        self.failed.contains(key)
    }

    /// Ends the reading: `value` if nothing was wrong.
    pub(super) fn finish<T>(mut self, value: T) -> Result<T, ScenarioError> {
        if self.problems.is_empty() {
            return Ok(value);
        }
        self.problems.sort_by_key(|(offset, _)| *offset);
        let problems = self.problems.into_iter().map(|(_, problem)| problem).collect();
        Err(ScenarioError { file: self.file.to_owned(), problems })
    }

    fn place(&self, value: &Spanned<DeValue<'_>>) -> Place {
        let range = value.span();
        let header = matches!(value.get_ref(), DeValue::Table(_)) && !self.source[range.clone()].starts_with('{');
        Place { range, header }
    }

    fn push(&mut self, key: String, place: Option<Place>, what: String) {
        let offset = place.as_ref().map_or(usize::MAX, |place| place.range.start);
        let line = place.as_ref().map(|place| line_of(self.source, place.range.start));
        let value = place.filter(|place| !place.header).map(|place| excerpt(&self.source[place.range]));
        self.problems.push((offset, Problem { line, key, value, what }));
    }

    fn fail(&mut self, key: String, value: Option<&Spanned<DeValue<'_>>>, what: String) {
        let place = value.map(|value| self.place(value));
        self.failed.insert(key.clone());
        self.push(key, place, what);
    }
}

impl<'a> Section<'a> {
    pub(super) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    fn value(&mut self, reader: &mut Reader<'a>, key: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.allowed.push(key);
        let value = self.table?.get(key)?;
        reader.places.insert(self.path_of(key), reader.place(value));
        Some(value)
    }

    /// Reads a whole number within `range`; without a default the key is required.
    pub(super) fn integer(
        &mut self,
        reader: &mut Reader<'a>,
        key: &'static str,
        range: RangeInclusive<u32>,
        default: Option<u32>,
    ) -> u32 {
        let allowed = format!("must be a whole number from {} to {}", range.start(), range.end());
        let fallback = default.unwrap_or(*range.start());
        let Some(value) = self.value(reader, key) else {
            if default.is_none() {
                reader.fail(self.path_of(key), None, format!("is missing: {allowed}"));
            }
            return fallback;
        };
        let number = match value.get_ref() {
            DeValue::Integer(number) => i128::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        match number.and_then(|number| u32::try_from(number).ok()).filter(|number| range.contains(number)) {
            Some(number) => number,
            None => {
                reader.fail(self.path_of(key), Some(value), allowed);
                fallback
            }
        }
    }

    /// Reads a percentage; 0 if it is missing.
    pub(super) fn percent(&mut self, reader: &mut Reader<'a>, key: &'static str) -> Option<f64> {
        let value = self.value(reader, key)?;
        let number = match value.get_ref() {
            DeValue::Integer(number) => number.as_str().parse::<f64>().ok().filter(|_| number.radix() == 10),
            DeValue::Float(number) => number.as_str().parse::<f64>().ok(),
            _ => None,
        };
        let number = number.filter(|number| (0.0..=100.0).contains(number));
        if number.is_none() {
            let what = "must be a percentage, a number from 0 to 100".to_owned();
            reader.fail(self.path_of(key), Some(value), what);
        }
        number
    }

    /// Reads one of a few words; without a default the key is required.
    pub(super) fn choice<T: Copy>(&mut self, reader: &mut Reader<'a>, key: &'static str, words: &[(&str, T)]) -> T {
        let list: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let allowed = format!("must be {}", list.join(" or "));
        let Some(value) = self.value(reader, key) else {
            reader.fail(self.path_of(key), None, format!("is missing: {allowed}"));
            return words[0].1;
        };
        let found = match value.get_ref() {
            DeValue::String(text) => words.iter().find(|(word, _)| word == text),
            _ => None,
        };
        match found {
            Some((_, choice)) => *choice,
            None => {
                reader.fail(self.path_of(key), Some(value), allowed);
                words[0].1
            }
        }
    }

    /// Opens the table under `key`; an empty one if it is missing.
    pub(super) fn section(&mut self, reader: &mut Reader<'a>, key: &'static str) -> Section<'a> {
        let path = self.path_of(key);
        let table = match self.value(reader, key) {
            None => None,
            Some(value) => match value.get_ref() {
                DeValue::Table(table) => Some(table),
                _ => {
                    reader.fail(path.clone(), Some(value), format!("must be a table, written [{path}]"));
                    None
                }
            },
        };
        Section { path, table, allowed: Vec::new() }
    }

    /// Opens each table of the array of tables under `key`.
    pub(super) fn sections(&mut self, reader: &mut Reader<'a>, key: &'static str) -> Vec<Section<'a>> {
        let path = self.path_of(key);
        let Some(value) = self.value(reader, key) else { return Vec::new() };
        let mut sections = Vec::new();
        if let DeValue::Array(array) = value.get_ref() {
            for (at, element) in array.iter().enumerate() {
                if let DeValue::Table(table) = element.get_ref() {
                    let path = format!("{path}[{at}]");
                    sections.push(Section { path, table: Some(table), allowed: Vec::new() });
                }
            }
            if sections.len() == array.len() {
                return sections;
            }
        }
        reader.fail(path.clone(), Some(value), format!("must be an array of tables, each written [[{path}]]"));
        Vec::new()
    }

    /// Reports the unknown keys of this table.
    pub(super) fn close(self, reader: &mut Reader<'a>) {
        let Some(table) = self.table else { return };
        for (key, value) in table.iter() {
            if !self.allowed.contains(&&**key.get_ref()) {
                let what = format!("unknown key; allowed here: {}", self.allowed.join(", "));
                reader.fail(self.path_of(key.get_ref()), Some(value), what);
            }
        }
    }
}

fn line_of(source: &str, offset: usize) -> usize {
    source.as_bytes()[..offset.min(source.len())].iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// Returns a value as written in the file, cut to fit a line.
fn excerpt(value: &str) -> String {
    const CHARS_MAX: usize = 60;
    let line: String = value.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= CHARS_MAX { line } else { line.chars().take(CHARS_MAX).chain(['…']).collect() }
}
