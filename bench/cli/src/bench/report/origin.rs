//! The origin of the figures of a report: the time, the program and the command.

use std::time::{SystemTime, UNIX_EPOCH};

pub use playhouse_console::build::{OPT_LEVEL, PROFILE, REVISION, RUSTC, RUSTFLAGS, TARGET};

/// Returns the command of this process as a shell takes it. The program is without its folder.
pub fn command() -> String {
    let mut words: Vec<_> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(program) = words.first_mut() {
        *program = program.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
    }
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Formats a moment in UTC, such as `2026-11-22 04:05`.
pub fn utc(moment: SystemTime) -> String {
    let seconds = moment.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (year, month, day) = date(seconds / 86_400);
    format!("{year}-{month:02}-{day:02} {:02}:{:02}", seconds / 3_600 % 24, seconds / 60 % 60)
}

/// Returns the Gregorian date that is `days` days after 1970-01-01.
fn date(mut days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let months = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in months {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn moments_are_dates() {
        let at = |seconds| utc(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01 00:00");
        assert_eq!(at(951_868_799), "2000-02-29 23:59");
        assert_eq!(at(951_868_800), "2000-03-01 00:00");
        assert_eq!(at(1_795_319_102), "2026-11-22 03:45");
        assert_eq!(at(1_798_761_599), "2026-12-31 23:59");
    }

    #[test]
    fn words_are_quoted_as_a_shell_takes_them() {
        assert_eq!(["--size", "a b", "it's", ""].map(quoted), ["--size", "'a b'", r"'it'\''s'", "''"]);
    }
}
