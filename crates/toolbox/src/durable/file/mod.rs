//! A store in files.

mod disk;
#[cfg(test)]
mod faulty_disk;
#[cfg(test)]
mod power_loss;
mod record;
mod shard_dir;

use std::fmt;
use std::fs::File;
use std::hash::Hasher;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use siphasher::sip::SipHasher24;

use self::disk::{Native, at, create_folder};
use self::shard_dir::{Drawer, failed};
use super::store::{Saved, Store, StoreError, check_key, check_state};
use crate::panics::lock;

/// So many states may be saved at one time. A folder keeps the number that it was made with.
const DRAWERS: u64 = 16;

/// A store in a folder, with a file for each state. Clones are handles to the same one.
///
/// A state is written to a new file, which takes the place of the former one when it is on the disk (`fsync` of the file and of its
/// folder): when [`save`](Store::save) returns, the state survives the process, and the machine, if its disk keeps what it says it
/// has. A file that was torn or changed is found by its checksum: [`StoreError::Damaged`].
///
/// Any number of stores, in any number of processes, may be opened on one folder. They take turns by locks on files in it
/// ([`File::lock`]), which end with their process; on network file systems, these may not hold between machines. The folder has 16
/// others in it, among which the keys are spread by their hash: states in different ones are saved at one time.
#[derive(Clone)]
pub struct FileStore {
    parts: Arc<Parts>,
}

struct Parts {
    folder: PathBuf,
    shelves: Vec<Shelf>,
}

struct Shelf {
    drawer: Drawer<Native>,
    /// Who saves or removes has both: the lock of the file is for all of this process that use this one.
    turn: Mutex<File>,
}

/// Has the turn, until it is dropped.
struct Turn<'a>(MutexGuard<'a, File>);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // What was locked can be unlocked.
        let _ = self.0.unlock();
    }
}

impl Shelf {
    fn open(folder: PathBuf) -> io::Result<Shelf> {
        create_folder(&folder)?;
        let path = folder.join("lock");
        let turn = File::options().create(true).truncate(false).write(true).open(&path).map_err(at(&path))?;
        let shelf = Shelf { drawer: Drawer { disk: Native, folder }, turn: Mutex::new(turn) };
        let turn = shelf.turn()?;
        shelf.drawer.tidy()?;
        drop(turn);
        Ok(shelf)
    }

    fn turn(&self) -> io::Result<Turn<'_>> {
        let turn = lock(&self.turn);
        loop {
            match turn.lock() {
                Ok(()) => return Ok(Turn(turn)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(at(&self.drawer.folder.join("lock"))(error)),
            }
        }
    }
}

impl FileStore {
    /// Opens the store in `folder`, which is made where it is not there.
    ///
    /// # Errors
    /// It cannot be made, written to or locked: says which path.
    pub fn open(folder: impl AsRef<Path>) -> io::Result<FileStore> {
        let folder = folder.as_ref().to_owned();
        let shelves = (0..DRAWERS).map(|number| Shelf::open(folder.join(format!("{number:x}"))));
        let shelves = shelves.collect::<io::Result<_>>()?;
        Ok(FileStore { parts: Arc::new(Parts { folder, shelves }) })
    }

    fn shelf(&self, key: &str) -> &Shelf {
        let mut hasher = SipHasher24::new();
        hasher.write(key.as_bytes());
        &self.parts.shelves[(hasher.finish() % DRAWERS) as usize]
    }
}

impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileStore({:?})", self.parts.folder)
    }
}

impl Store for FileStore {
    fn load(&self, key: &str) -> Result<Option<Saved>, StoreError> {
        check_key(key)?;
        self.shelf(key).drawer.load(key)
    }

    fn save(&self, key: &str, expected: u64, bytes: &[u8]) -> Result<u64, StoreError> {
        check_key(key)?;
        check_state(key, bytes)?;
        let shelf = self.shelf(key);
        let _turn = shelf.turn().map_err(failed(key))?;
        shelf.drawer.save(key, expected, bytes)
    }

    fn remove(&self, key: &str, expected: u64) -> Result<(), StoreError> {
        check_key(key)?;
        let shelf = self.shelf(key);
        let _turn = shelf.turn().map_err(failed(key))?;
        shelf.drawer.remove(key, expected)
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let keys = self.parts.shelves.iter().map(|shelf| shelf.drawer.keys(prefix).map_err(failed(prefix)));
        let mut keys = keys.collect::<Result<Vec<_>, _>>()?.concat();
        keys.sort_unstable();
        Ok(keys)
    }
}
