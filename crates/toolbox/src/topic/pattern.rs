//! Subjects and their patterns.

use std::fmt;

/// A pattern of subjects.
#[derive(Clone, Debug)]
pub(super) struct Pattern(String);

impl Pattern {
    pub(super) fn new(text: &str) -> Result<Pattern, SubjectError> {
        check_parts("pattern", text)?;
        let state = text.strip_suffix('>').unwrap_or(text);
        let error = |why| SubjectError { what: "pattern", text: text.to_owned(), why };
        for part in state.split('.') {
            if part.contains('>') {
                return Err(error("`>` stands for all further parts, and must be the whole last part"));
            }
            if part.contains('*') && part != "*" {
                return Err(error("`*` stands for one whole part"));
            }
        }
        if text.ends_with('>') && !(state.is_empty() || state.ends_with('.')) {
            return Err(error("`>` stands for all further parts, and must be the whole last part"));
        }
        Ok(Pattern(text.to_owned()))
    }

    pub(super) fn fits(&self, subject: &str) -> bool {
        let mut parts = subject.split('.');
        for wanted in self.0.split('.') {
            match (wanted, parts.next()) {
                (_, None) => return false,
                (">", Some(_)) => return true,
                (wanted, Some(part)) if wanted == "*" || wanted == part => {}
                (_, Some(_)) => return false,
            }
        }
        parts.next().is_none()
    }
}

fn check_parts(what: &'static str, text: &str) -> Result<(), SubjectError> {
    if text.split('.').any(str::is_empty) {
        return Err(SubjectError {
            what,
            text: text.to_owned(),
            why: "each of its parts between dots needs at least one character",
        });
    }
    Ok(())
}

pub(super) fn check_subject(text: &str) -> Result<(), SubjectError> {
    check_parts("subject", text)?;
    if text.contains(['*', '>']) {
        let why = "`*` and `>` are for the patterns of subscribers";
        return Err(SubjectError { what: "subject", text: text.to_owned(), why });
    }
    Ok(())
}

/// An error: a text is no subject, or no pattern.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::topic::Topic;
///
/// #[derive(Message, Clone)]
/// struct Note;
///
/// let system = System::start()?;
/// let error = Topic::new(&system).publish_to("orders..eu", Note).unwrap_err();
/// assert!(error.to_string().starts_with("\"orders..eu\" is no subject"));
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubjectError {
    what: &'static str,
    text: String,
    why: &'static str,
}

impl fmt::Display for SubjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no {}: {}", self.text, self.what, self.why)
    }
}

impl std::error::Error for SubjectError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_by_parts() {
        let cases = [
            ("orders.*.eu", "orders.42.eu", true),
            ("orders.*.eu", "orders.42.us", false),
            ("orders.*.eu", "orders.eu", false),
            ("orders.*.eu", "orders.42.eu.north", false),
            ("orders.>", "orders.42", true),
            ("orders.>", "orders.42.eu", true),
            ("orders.>", "orders", false),
            ("orders.>", "orderss.42", false),
            ("*.*", "a.b", true),
            ("*.*", "a", false),
            ("*", "a", true),
            (">", "a.b.c", true),
            ("orders", "orders", true),
            ("orders", "order", false),
            ("*.42.>", "orders.42.eu.north", true),
        ];
        for (pattern, subject, fits) in cases {
            assert_eq!(Pattern::new(pattern).unwrap().fits(subject), fits, "{pattern} {subject}");
        }
    }

    #[test]
    fn malformed_patterns_and_subjects_are_refused() {
        for pattern in ["", ".", "a..b", ".a", "a.", "a.>.b", "a>", "a.b>", ">.a", "a*", "a.*b", ">>"] {
            let error = Pattern::new(pattern).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{pattern:?} is no pattern: ")), "{error}");
        }
        for subject in ["", "a..b", "a.", "a.*", ">"] {
            let error = check_subject(subject).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{subject:?} is no subject: ")), "{error}");
        }
        assert_eq!(
            Pattern::new("a.>.b").unwrap_err().to_string(),
            "\"a.>.b\" is no pattern: `>` stands for all further parts, and must be the whole last part"
        );
    }
}
