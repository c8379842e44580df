//! The folder that a report is written into: all of it or nothing.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use playhouse_bench::Failure;
use playhouse_console::files::{self, Readers, Unkept};
use playhouse_console::output::{BAD_INPUT, FAILED};
use playhouse_console::signals;

/// A folder that is empty or does not exist yet, and that can be written.
pub struct Folder(PathBuf);

impl Folder {
    /// Checks `path`, and leaves the disk as it was.
    ///
    /// # Errors
    ///
    /// The exit code, and the reason: `path` is no folder, or contains something; or it cannot be written.
    pub fn check(path: &Path) -> Result<Self, (u8, Failure)> {
        let failure = |what: String| Failure::new(format!("no report can go to {}: {what}", path.display()));
        let wrong = |what: String| (BAD_INPUT, failure(what));
        let there = match fs::read_dir(path) {
            Ok(mut entries) => match entries.next() {
                Some(_) => return Err(wrong("it is not empty; name a folder that is, or a new one".to_owned())),
                None => path,
            },
            Err(error) if error.kind() == ErrorKind::NotFound => {
                path.ancestors().skip(1).find(|above| above.as_os_str().is_empty() || above.exists()).unwrap_or(path)
            }
            Err(error) => return Err(wrong(error.to_string())),
        };
        let there = if there.as_os_str().is_empty() { Path::new(".") } else { there };
        let probe = there.join(format!(".playhouse-report-{}", std::process::id()));
        fs::write(&probe, "")
            .and_then(|()| fs::remove_file(&probe))
            .map_err(|error| (FAILED, failure(format!("{} cannot be written: {error}", there.display()))))?;
        Ok(Self(path.to_owned()))
    }

    /// Writes these files, each with its name. All are written under other names first, because a failure must not
    /// leave half a report.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be written. The folder contains none of the files then.
    pub fn write(&self, files: &[(String, Vec<u8>)]) -> Result<(), Failure> {
        let wrong = |error| Failure::new(format!("the report cannot be written to {}: {error}", self.0.display()));
        self.create().map_err(wrong)?;
        let named: Vec<_> = files.iter().map(|(name, _)| self.0.join(name)).collect();
        let remove = {
            let named = named.clone();
            move || named.iter().for_each(|path| drop(fs::remove_file(path)))
        };
        // A signal removes the parts first, because they are registered later. None of them gets its final name when those are removed.
        let _removed_by_a_signal = signals::at_exit(remove.clone());
        let parts = self.write_parts(files).map_err(wrong)?;
        let renamed = parts.into_iter().zip(&named).map(|((part, written), path)| {
            fs::rename(part, path)?;
            written.keep();
            Ok(())
        });
        renamed.collect::<io::Result<()>>().map_err(|error| {
            remove();
            wrong(error.to_string())
        })
    }

    /// Creates the folder if need be, and checks that it is empty.
    fn create(&self) -> Result<(), String> {
        fs::create_dir_all(&self.0).map_err(|error| error.to_string())?;
        // Another program may have written files while the benchmarks ran.
        if fs::read_dir(&self.0).map_err(|error| error.to_string())?.next().is_some() {
            return Err("it is not empty any more".to_owned());
        }
        Ok(())
    }

    /// Writes all files under other names. They are removed again unless they are kept.
    fn write_parts(&self, files: &[(String, Vec<u8>)]) -> Result<Vec<(PathBuf, Unkept)>, String> {
        let part = |(name, bytes): &(String, Vec<u8>)| {
            let part = self.0.join(format!(".{name}.part"));
            Ok((part.clone(), files::create(&part, bytes, Readers::All)?))
        };
        files.iter().map(part).collect()
    }

    /// Returns the folder's path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_report_is_written_whole_or_not_at_all() {
        let path = std::env::temp_dir().join(format!("playhouse-report-{}", std::process::id()));
        let folder = Folder::check(&path).map_err(|(_, failure)| failure).unwrap();
        let file = |name: &str| (name.to_owned(), b"figures".to_vec());
        let failure = folder.write(&[file("raw.csv"), file("no/index.html")]).unwrap_err();
        assert!(failure.to_string().contains("the report cannot be written to"), "{failure}");
        assert!(names(&path).is_empty());
        folder.write(&[file("raw.csv"), file("index.html")]).unwrap();
        assert_eq!(names(&path), ["index.html", "raw.csv"]);
        let failure = folder.write(&[file("raw.csv")]).unwrap_err();
        assert!(failure.to_string().ends_with("it is not empty any more"), "{failure}");
        assert_eq!(names(&path), ["index.html", "raw.csv"]);
        fs::remove_dir_all(&path).unwrap();
    }
}
