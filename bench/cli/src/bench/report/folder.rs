//! The folder that a report is written into: all of it or nothing.

use std::fs;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use playhouse_bench::Failure;

/// A folder that is empty, or not there yet, and can be written.
pub struct Folder(PathBuf);

impl Folder {
    /// Looks whether `path` is one, and leaves everything as it was.
    ///
    /// # Errors
    ///
    /// If it is no folder, if there is something in it, or if it cannot be written.
    pub fn check(path: &Path) -> Result<Self, Failure> {
        let wrong = |what: String| Failure::new(format!("no report can go to {}: {what}", path.display()));
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
            .map_err(|error| wrong(format!("{} cannot be written: {error}", there.display())))?;
        Ok(Self(path.to_owned()))
    }

    /// Writes these files, each with its name: first all of them under other names, so that what fails leaves no half report.
    ///
    /// # Errors
    ///
    /// If one cannot be written; then none is there.
    pub fn write(&self, files: &[(String, Vec<u8>)]) -> Result<(), Failure> {
        let part = |name: &str| self.0.join(format!(".{name}.part"));
        let written = self
            .write_parts(files, part)
            .and_then(|()| files.iter().try_for_each(|(name, _)| fs::rename(part(name), self.0.join(name))));
        written.map_err(|error| {
            for (name, _) in files {
                // Those that are not there cannot be removed.
                let _ = fs::remove_file(part(name));
                let _ = fs::remove_file(self.0.join(name));
            }
            Failure::new(format!("the report cannot be written to {}: {error}", self.0.display()))
        })
    }

    fn write_parts(&self, files: &[(String, Vec<u8>)], part: impl Fn(&str) -> PathBuf) -> Result<(), Error> {
        fs::create_dir_all(&self.0)?;
        // Somebody else may have come in the meantime.
        if fs::read_dir(&self.0)?.next().is_some() {
            return Err(Error::new(ErrorKind::AlreadyExists, "it is not empty any more"));
        }
        files.iter().try_for_each(|(name, bytes)| fs::write(part(name), bytes))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}
