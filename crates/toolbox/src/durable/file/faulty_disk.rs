//! A disk for tests that loses unsynced data and fails on demand.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use playhouse_executor::Choices;

use super::disk::Disk;
use crate::panics::lock;

/// A disk that loses unsynced data when the power fails.
#[derive(Clone, Default)]
pub(super) struct FaultyDisk(pub(super) Arc<Mutex<DiskState>>);

#[derive(Default)]
pub(super) struct DiskState {
    files: Vec<FileContent>,
    pub(super) names: BTreeMap<String, usize>,
    synced_names: BTreeMap<String, usize>,
    /// Changes of names since the last sync.
    unsynced: Vec<Change>,
    /// The number of steps that still succeed.
    pub(super) left: usize,
    pub(super) fails: Failures,
}

#[derive(Clone, Copy, Default, PartialEq)]
pub(super) enum Failures {
    #[default]
    Never,
    /// One step.
    Once,
    /// All steps from there on.
    Ever,
}

#[derive(Clone, Default)]
struct FileContent {
    bytes: Vec<u8>,
    synced: Vec<u8>,
}

#[derive(Clone)]
enum Change {
    Link(String, usize),
    Rename(String, String, usize),
    Unlink(String),
}

fn apply(names: &mut BTreeMap<String, usize>, change: &Change) {
    match change {
        Change::Link(name, file) => drop(names.insert(name.clone(), *file)),
        Change::Rename(from, to, file) => {
            if names.get(from) == Some(file) {
                names.remove(from);
            }
            names.insert(to.clone(), *file);
        }
        Change::Unlink(name) => drop(names.remove(name)),
    }
}

impl DiskState {
    fn change(&mut self, change: Change) {
        apply(&mut self.names, &change);
        self.unsynced.push(change);
    }
}

impl FaultyDisk {
    /// Lets `left` steps succeed, and then fails as `fails` says.
    pub(super) fn fails(&self, fails: Failures, left: usize) {
        let mut state = lock(&self.0);
        (state.fails, state.left) = (fails, left);
    }

    pub(super) fn step(&self) -> io::Result<std::sync::MutexGuard<'_, DiskState>> {
        let mut state = lock(&self.0);
        match (state.fails, state.left) {
            (Failures::Never, _) => {}
            (fails, 0) => {
                if fails == Failures::Once {
                    state.fails = Failures::Never;
                }
                return Err(io::Error::other("the disk is gone"));
            }
            _ => state.left -= 1,
        }
        Ok(state)
    }

    /// Returns the disk after a power failure. Any part of the unsynced data may have reached it.
    pub(super) fn after_power_cut(&self, choices: &mut Choices) -> FaultyDisk {
        let state = lock(&self.0);
        let mut names = state.synced_names.clone();
        for change in &state.unsynced {
            if choices.one_in(2) {
                apply(&mut names, change);
            }
        }
        let files = state.files.iter().map(|content| {
            let mut bytes = if choices.one_in(2) { content.bytes.clone() } else { content.synced.clone() };
            if content.bytes != content.synced && choices.one_in(2) {
                let cut = choices.below(bytes.len() + 1);
                if choices.one_in(2) { bytes.truncate(cut) } else { bytes[cut..].fill(0) }
            }
            FileContent { synced: bytes.clone(), bytes }
        });
        let files = files.collect();
        FaultyDisk(Arc::new(Mutex::new(DiskState {
            files,
            synced_names: names.clone(),
            names,
            ..DiskState::default()
        })))
    }
}

fn name(file: &Path) -> String {
    file.file_name().unwrap().to_str().unwrap().to_owned()
}

impl Disk for FaultyDisk {
    type Written = usize;

    fn read(&self, file: &Path) -> io::Result<Option<Vec<u8>>> {
        let state = self.step()?;
        Ok(state.names.get(&name(file)).map(|file| state.files[*file].bytes.clone()))
    }

    fn write(&self, file: &Path, bytes: &[u8]) -> io::Result<usize> {
        let created = {
            let mut state = self.step()?;
            match state.names.get(&name(file)) {
                Some(there) => *there,
                None => {
                    state.files.push(FileContent::default());
                    let created = state.files.len() - 1;
                    state.change(Change::Link(name(file), created));
                    created
                }
            }
        };
        lock(&self.0).files[created].bytes = bytes[..bytes.len() / 2].to_vec();
        self.step()?.files[created].bytes = bytes.to_vec();
        Ok(created)
    }

    fn sync(&self, written: usize) -> io::Result<()> {
        let mut state = self.step()?;
        let content = &mut state.files[written];
        content.synced = content.bytes.clone();
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.step()?;
        let file = state.names[&name(from)];
        state.change(Change::Rename(name(from), name(to), file));
        Ok(())
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        let mut state = self.step()?;
        if state.names.contains_key(&name(file)) {
            state.change(Change::Unlink(name(file)));
        }
        Ok(())
    }

    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        let mut state = self.step()?;
        state.synced_names = state.names.clone();
        state.unsynced.clear();
        Ok(())
    }

    fn list(&self, _: &Path) -> io::Result<Vec<String>> {
        Ok(self.step()?.names.keys().cloned().collect())
    }
}
