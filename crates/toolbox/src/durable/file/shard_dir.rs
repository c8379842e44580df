//! A folder with states, and the protocol of saving and removing them.
//!
//! A state is written to the file `new`, synced, and renamed to the file of its key. Then the folder is synced. After
//! a failure of the machine, the file of a key is therefore complete or absent.
//!
//! The file `mark` holds a revision that is at least that of every removed state. The mark is raised before a state
//! is removed, and new states get revisions above it. No revision is reused, and removed states take no space.
//!
//! The caller serializes saves and removals.

use std::io;
use std::path::PathBuf;

use super::disk::Disk;
use super::record;
use crate::durable::store::{Saved, StoreError, check_revision};

#[derive(Debug)]
pub(super) struct ShardDir<D> {
    pub(super) disk: D,
    pub(super) folder: PathBuf,
}

/// The key in the record of the mark.
const MARK: &str = "";

impl<D: Disk> ShardDir<D> {
    /// Removes an unfinished file of a process that was killed.
    pub(super) fn tidy(&self) -> io::Result<()> {
        self.disk.remove(&self.folder.join("new"))
    }

    pub(super) fn load(&self, key: &str) -> Result<Option<Saved>, StoreError> {
        let saved = self.read(&record::file_of(key), key, key)?;
        // A process that has saved or removed the state may have been killed before its sync.
        self.disk.sync_folder(&self.folder).map_err(failed(key))?;
        Ok(saved)
    }

    pub(super) fn save(&self, key: &str, expected: u64, bytes: &[u8]) -> Result<u64, StoreError> {
        let found = self.revision(key)?;
        check_revision(key, expected, found)?;
        let last = if found == 0 { self.mark(key)? } else { found };
        self.put(&record::file_of(key), key, last + 1, bytes).map_err(failed(key))?;
        Ok(last + 1)
    }

    pub(super) fn remove(&self, key: &str, expected: u64) -> Result<(), StoreError> {
        let found = self.revision(key)?;
        check_revision(key, expected, found)?;
        if found > self.mark(key)? {
            self.put("mark", MARK, found, &[]).map_err(failed(key))?;
        } else {
            // A process that has raised the mark may have been killed before its sync.
            self.disk.sync_folder(&self.folder).map_err(failed(key))?;
        }
        let removed = self.disk.remove(&self.folder.join(record::file_of(key)));
        removed.and_then(|()| self.disk.sync_folder(&self.folder)).map_err(failed(key))
    }

    pub(super) fn keys(&self, prefix: &str) -> io::Result<Vec<String>> {
        let names = self.disk.list(&self.folder)?;
        Ok(names.iter().filter_map(|name| record::key_of(name)).filter(|key| key.starts_with(prefix)).collect())
    }

    fn revision(&self, key: &str) -> Result<u64, StoreError> {
        Ok(self.read(&record::file_of(key), key, key)?.map_or(0, |saved| saved.revision))
    }

    fn mark(&self, key: &str) -> Result<u64, StoreError> {
        let about_removed = |error| match error {
            StoreError::Damaged { key, what } => {
                let what = format!("{what}; the file records the removed revisions, so only its latest copy is right");
                StoreError::Damaged { key, what }
            }
            error => error,
        };
        Ok(self.read("mark", MARK, key).map_err(about_removed)?.map_or(0, |mark| mark.revision))
    }

    /// Reads a file that holds the record of `name`. Errors are about `key`.
    fn read(&self, file: &str, name: &str, key: &str) -> Result<Option<Saved>, StoreError> {
        let path = self.folder.join(file);
        let Some(bytes) = self.disk.read(&path).map_err(failed(key))? else { return Ok(None) };
        let damaged = |what| StoreError::Damaged { key: key.to_owned(), what: format!("{}: {what}", path.display()) };
        record::read(name, &bytes).map(Some).map_err(damaged)
    }

    fn put(&self, file: &str, name: &str, revision: u64, bytes: &[u8]) -> io::Result<()> {
        let (new, file) = (self.folder.join("new"), self.folder.join(file));
        let written = self.disk.write(&new, &record::write(name, revision, bytes));
        let renamed = written
            .and_then(|written| self.disk.sync(written))
            .and_then(|()| self.disk.rename(&new, &file))
            .inspect_err(|_| drop(self.disk.remove(&new)));
        renamed.and_then(|()| self.disk.sync_folder(&self.folder))
    }
}

pub(super) fn failed(key: &str) -> impl FnOnce(io::Error) -> StoreError {
    move |error| StoreError::Io { key: key.to_owned(), error }
}
