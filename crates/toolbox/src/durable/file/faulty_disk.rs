//! A disk that loses what was not synced.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use playhouse_executor::Choices;

use super::disk::Disk;
use crate::panics::lock;

/// A disk that keeps no more than was synced, when the power fails.
#[derive(Clone, Default)]
pub(super) struct Platter(pub(super) Arc<Mutex<Surface>>);

#[derive(Default)]
pub(super) struct Surface {
    files: Vec<Content>,
    pub(super) names: BTreeMap<String, usize>,
    synced_names: BTreeMap<String, usize>,
    /// What was done to the names since.
    unsynced: Vec<Change>,
    /// So many steps go well.
    pub(super) left: usize,
    pub(super) fails: Fails,
}

#[derive(Clone, Copy, Default, PartialEq)]
pub(super) enum Fails {
    #[default]
    Never,
    /// One step.
    Once,
    /// All from there on.
    Ever,
}

#[derive(Clone, Default)]
struct Content {
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

impl Surface {
    fn change(&mut self, change: Change) {
        apply(&mut self.names, &change);
        self.unsynced.push(change);
    }
}

impl Platter {
    /// From here on, `left` steps go well.
    pub(super) fn fails(&self, fails: Fails, left: usize) {
        let mut surface = lock(&self.0);
        (surface.fails, surface.left) = (fails, left);
    }

    pub(super) fn step(&self) -> io::Result<std::sync::MutexGuard<'_, Surface>> {
        let mut surface = lock(&self.0);
        match (surface.fails, surface.left) {
            (Fails::Never, _) => {}
            (fails, 0) => {
                if fails == Fails::Once {
                    surface.fails = Fails::Never;
                }
                return Err(io::Error::other("the disk is gone"));
            }
            _ => surface.left -= 1,
        }
        Ok(surface)
    }

    /// What is found after the power has failed: of what was not synced, anything may have come to the disk, or a part of it.
    pub(super) fn after_power_cut(&self, choices: &mut Choices) -> Platter {
        let surface = lock(&self.0);
        let mut names = surface.synced_names.clone();
        for change in &surface.unsynced {
            if choices.one_in(2) {
                apply(&mut names, change);
            }
        }
        let files = surface.files.iter().map(|content| {
            let mut bytes = if choices.one_in(2) { content.bytes.clone() } else { content.synced.clone() };
            if content.bytes != content.synced && choices.one_in(2) {
                let cut = choices.below(bytes.len() + 1);
                if choices.one_in(2) { bytes.truncate(cut) } else { bytes[cut..].fill(0) }
            }
            Content { synced: bytes.clone(), bytes }
        });
        let files = files.collect();
        Platter(Arc::new(Mutex::new(Surface { files, synced_names: names.clone(), names, ..Surface::default() })))
    }
}

fn name(file: &Path) -> String {
    file.file_name().unwrap().to_str().unwrap().to_owned()
}

impl Disk for Platter {
    type Written = usize;

    fn read(&self, file: &Path) -> io::Result<Option<Vec<u8>>> {
        let surface = self.step()?;
        Ok(surface.names.get(&name(file)).map(|file| surface.files[*file].bytes.clone()))
    }

    fn write(&self, file: &Path, bytes: &[u8]) -> io::Result<usize> {
        let created = {
            let mut surface = self.step()?;
            match surface.names.get(&name(file)) {
                Some(there) => *there,
                None => {
                    surface.files.push(Content::default());
                    let created = surface.files.len() - 1;
                    surface.change(Change::Link(name(file), created));
                    created
                }
            }
        };
        lock(&self.0).files[created].bytes = bytes[..bytes.len() / 2].to_vec();
        self.step()?.files[created].bytes = bytes.to_vec();
        Ok(created)
    }

    fn sync(&self, written: usize) -> io::Result<()> {
        let mut surface = self.step()?;
        let content = &mut surface.files[written];
        content.synced = content.bytes.clone();
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut surface = self.step()?;
        let file = surface.names[&name(from)];
        surface.change(Change::Rename(name(from), name(to), file));
        Ok(())
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        let mut surface = self.step()?;
        if surface.names.contains_key(&name(file)) {
            surface.change(Change::Unlink(name(file)));
        }
        Ok(())
    }

    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        let mut surface = self.step()?;
        surface.synced_names = surface.names.clone();
        surface.unsynced.clear();
        Ok(())
    }

    fn list(&self, _: &Path) -> io::Result<Vec<String>> {
        Ok(self.step()?.names.keys().cloned().collect())
    }
}
