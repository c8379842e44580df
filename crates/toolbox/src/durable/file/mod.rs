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

/// The number of folders among which keys are spread. A store keeps the number that it was created with.
const SHARDS: u64 = 16;

/// A store in a folder, with a file for each state. Clones are handles to the same store.
///
/// A state is written to a new file, synced with `fsync`, and renamed over the former file. Then the folder is
/// synced. When [`save`](Store::save) returns, the state survives the process, and the machine if its disk keeps
/// synced data. A checksum finds files that were torn or changed: [`StoreError::Damaged`].
///
/// Any number of stores in any number of processes may use one folder. File locks ([`File::lock`]) serialize their
/// saves, and end with the process. On network file systems, these locks may not work between machines. The keys are
/// spread by their hash over 16 folders, and states in different folders are saved concurrently.
///
/// # Examples
///
/// ```
/// use playhouse::durable::{FileStore, Store};
///
/// # let folder = std::env::temp_dir().join(format!("playhouse-doc-{}", std::process::id()));
/// let store = FileStore::open(&folder)?;
/// let revision = store.save("account/7", 0, b"5")?;
/// let saved = store.load("account/7")?.expect("it was saved");
/// assert_eq!((saved.revision, &*saved.bytes), (revision, b"5".as_slice()));
/// # std::fs::remove_dir_all(folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "dets")]
#[doc(alias = "snapshot")]
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
    /// The mutex serializes the threads of this process, and the file lock serializes processes. A save or removal
    /// holds both.
    file: Mutex<File>,
}

/// The lock of a shard, until it is dropped.
struct ShardLock<'a>(MutexGuard<'a, File>);

impl Drop for ShardLock<'_> {
    fn drop(&mut self) {
        // The unlock of a held lock does not fail.
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
    /// Opens the store in `folder`, and creates the folder if needed.
    ///
    /// # Errors
    /// A path cannot be created, written or locked. The error names it.
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
