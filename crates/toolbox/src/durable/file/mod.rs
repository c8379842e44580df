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
use self::shard_dir::{ShardDir, failed};
use super::store::{Saved, Store, StoreError, check_key, check_state};
use crate::panics::lock;

/// So many states may be saved at one time. A folder keeps the number that it was made with.
const SHARDS: u64 = 16;

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
    state: Arc<StoreState>,
}

struct StoreState {
    folder: PathBuf,
    shards: Vec<Shard>,
}

struct Shard {
    dir: ShardDir<Native>,
    /// Who saves or removes has both: the lock of the file is for all of this process that use this one.
    file: Mutex<File>,
}

/// Has the lock, until it is dropped.
struct ShardLock<'a>(MutexGuard<'a, File>);

impl Drop for ShardLock<'_> {
    fn drop(&mut self) {
        // What was locked can be unlocked.
        let _ = self.0.unlock();
    }
}

impl Shard {
    fn open(folder: PathBuf) -> io::Result<Shard> {
        create_folder(&folder)?;
        let path = folder.join("lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&path).map_err(at(&path))?;
        let shard = Shard { dir: ShardDir { disk: Native, folder }, file: Mutex::new(lock) };
        let lock = shard.lock()?;
        shard.dir.tidy()?;
        drop(lock);
        Ok(shard)
    }

    fn lock(&self) -> io::Result<ShardLock<'_>> {
        let lock = lock(&self.file);
        loop {
            match lock.lock() {
                Ok(()) => return Ok(ShardLock(lock)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(at(&self.dir.folder.join("lock"))(error)),
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
        let shards = (0..SHARDS).map(|number| Shard::open(folder.join(format!("{number:x}"))));
        let shards = shards.collect::<io::Result<_>>()?;
        Ok(FileStore { state: Arc::new(StoreState { folder, shards }) })
    }

    fn shard(&self, key: &str) -> &Shard {
        let mut hasher = SipHasher24::new();
        hasher.write(key.as_bytes());
        &self.state.shards[(hasher.finish() % SHARDS) as usize]
    }
}

impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileStore({:?})", self.state.folder)
    }
}

impl Store for FileStore {
    fn load(&self, key: &str) -> Result<Option<Saved>, StoreError> {
        check_key(key)?;
        self.shard(key).dir.load(key)
    }

    fn save(&self, key: &str, expected: u64, bytes: &[u8]) -> Result<u64, StoreError> {
        check_key(key)?;
        check_state(key, bytes)?;
        let shard = self.shard(key);
        let _lock = shard.lock().map_err(failed(key))?;
        shard.dir.save(key, expected, bytes)
    }

    fn remove(&self, key: &str, expected: u64) -> Result<(), StoreError> {
        check_key(key)?;
        let shard = self.shard(key);
        let _lock = shard.lock().map_err(failed(key))?;
        shard.dir.remove(key, expected)
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let keys = self.state.shards.iter().map(|shard| shard.dir.keys(prefix).map_err(failed(prefix)));
        let mut keys = keys.collect::<Result<Vec<_>, _>>()?.concat();
        keys.sort_unstable();
        Ok(keys)
    }
}
