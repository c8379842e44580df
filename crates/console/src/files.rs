//! Files that the program reads and writes.
//!
//! A file is replaced by another one that was written under a temporary name in its folder: a reader finds the old contents or the new ones, and never a
//! half. Only regular files are replaced, and keep their mode and owner. Write-protected ones are refused. Devices, FIFOs, sockets, folders and links are refused, because renaming would replace the
//! device itself, or the link instead of its target. A signal removes the files that are not complete.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::signals;

/// Opens a regular file that the user names, for reading. It does not wait for the other end of a FIFO.
///
/// # Errors
/// In words, with the path: the file cannot be opened, or is no regular file.
pub fn open(path: &Path) -> Result<File, String> {
    playhouse::__programs::open(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The largest file of options or of a scenario, in bytes. A larger one is named by mistake only.
const TEXT_BYTES_MAX: u64 = 1_000_000;

/// Returns the text of a regular file that the user names.
///
/// # Errors
/// In words, with the path: the file cannot be read, is no regular file, is larger than 1,000,000 bytes, or is no text.
pub fn read_text(path: &Path) -> Result<String, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let bytes = playhouse::__programs::read(path, TEXT_BYTES_MAX).map_err(|error| wrong(&error))?;
    String::from_utf8(bytes).map_err(|_| wrong(&"it is no text in UTF-8"))
}

/// The readers of a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// All users, as far as the user's mask allows.
    All,
    /// Only the user.
    Owner,
}

/// Writes a file, or replaces one.
///
/// # Errors
/// In words, with the path: the path is not a regular file, or the file cannot be written.
pub fn replace(path: &Path, contents: &[u8]) -> Result<(), String> {
    let mut replacement = Replacement::begin(path)?;
    replacement.write_all(contents).map_err(|error| format!("{}: {error}", path.display()))?;
    replacement.commit()?;
    Ok(())
}

/// A file that is being written under a temporary name, and takes the place of another one when it is complete.
#[must_use]
pub struct Replacement {
    path: PathBuf,
    /// The metadata of the old file.
    old: Option<Metadata>,
    file: BufWriter<File>,
    temporary: PathBuf,
    written: Unkept,
}

impl Replacement {
    /// Creates the temporary file.
    ///
    /// # Errors
    /// In words, with the path: the path is not a regular file, or its folder takes no file.
    pub fn begin(path: &Path) -> Result<Replacement, String> {
        /// Tells the files of one process apart.
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let old = regular(path)?;
        // The mode of the old file comes with `commit`. Nobody else reads the new contents before.
        let readers = if old.is_some() { Readers::Owner } else { Readers::All };
        let (temporary, opened) = loop {
            // Relaxed: the numbers only have to differ.
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let temporary = path.with_file_name(format!(".playhouse-{}-{number}.tmp", std::process::id()));
            match open_new(&temporary, readers) {
                // A killed process with the same number has left its file. In a container, all processes have small numbers.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                opened => break (temporary, opened),
            }
        };
        let (file, written) = opened.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Replacement {
            path: path.to_owned(),
            old,
            file: BufWriter::with_capacity(1 << 16, file),
            temporary,
            written,
        })
    }

    /// Puts the file in the place of the old one, which gives it its mode and its owner. Returns its size in bytes.
    ///
    /// # Errors
    /// In words, with the path: the file could not be written. The old one stays.
    pub fn commit(self) -> Result<u64, String> {
        let Replacement { path, old, file, temporary, written } = self;
        let replaced = file.into_inner().map_err(io::IntoInnerError::into_error).and_then(|file| {
            if let Some(old) = old {
                keep_owner(&file, &old)?;
                file.set_permissions(old.permissions())?;
            }
            file.sync_all()?;
            let size = file.metadata()?.len();
            fs::rename(temporary, &path).map(|()| size)
        });
        let size = replaced.map_err(|error| format!("{}: {error}", path.display()))?;
        written.keep();
        Ok(size)
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes a file that does not exist yet. It is removed again unless it is [kept](Unkept::keep).
///
/// # Errors
/// In words, with the path: something exists at the path, or the file cannot be written.
pub fn create(path: &Path, contents: &[u8], readers: Readers) -> Result<Unkept, String> {
    write(path, contents, readers).map_err(|error| format!("{}: {error}", path.display()))
}

/// Gives a file the owner of the old one. Only root may do that for another user.
#[cfg(unix)]
fn keep_owner(file: &File, old: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};

    let new = file.metadata()?;
    if (new.uid(), new.gid()) == (old.uid(), old.gid()) {
        return Ok(());
    }
    fchown(file, Some(old.uid()), Some(old.gid())).map_err(|error| {
        io::Error::new(error.kind(), format!("it belongs to another user, and stays as it is: {error}"))
    })
}

/// Does nothing: a file has the owner of its folder.
#[cfg(not(unix))]
fn keep_owner(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Returns the metadata of the regular file at `path`, or none where no file is.
fn regular(path: &Path) -> Result<Option<Metadata>, String> {
    let name = path.display();
    match fs::symlink_metadata(path) {
        Ok(old) if old.permissions().readonly() && old.is_file() => {
            Err(format!("{name} is write-protected: choose another file, or let it be written"))
        }
        Ok(old) if old.is_file() => Ok(Some(old)),
        Ok(old) if old.is_symlink() => match fs::read_link(path) {
            Ok(target) => {
                Err(format!("{name} is a link to {}, and links are not replaced: name the file", target.display()))
            }
            Err(error) => Err(format!("{name}: {error}")),
        },
        Ok(old) if old.is_dir() => Err(format!("{name} is a folder: name a file in it")),
        Ok(_) => {
            Err(format!("{name} is a device, a FIFO or a socket, and none of them is replaced: name a regular file"))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{name}: {error}")),
    }
}

fn write(path: &Path, contents: &[u8], readers: Readers) -> io::Result<Unkept> {
    let (mut file, written) = open_new(path, readers)?;
    file.write_all(contents)?;
    file.sync_all()?;
    Ok(written)
}

/// Creates a file, which must not exist.
fn open_new(path: &Path, readers: Readers) -> io::Result<(File, Unkept)> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if readers == Readers::Owner {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _the_folder_decides = readers;
    let removed = path.to_owned();
    let (file, at_exit) = signals::create(|| options.open(path), move || drop(fs::remove_file(removed)))?;
    Ok((file, Unkept { path: Some(path.to_owned()), at_exit }))
}

/// A written file that is removed when this is dropped, or when a signal ends the program before.
#[must_use]
pub struct Unkept {
    path: Option<PathBuf>,
    at_exit: signals::AtExit,
}

impl Unkept {
    /// Keeps the file.
    pub fn keep(mut self) {
        self.path = None;
    }
}

/// Keeps all files, or none if a signal ends the program before.
pub fn keep_all(files: Vec<Unkept>) {
    signals::forget(files.iter().map(|file| &file.at_exit));
    files.into_iter().for_each(Unkept::keep);
}

impl Drop for Unkept {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _nothing_more_can_be_done = fs::remove_file(path);
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("playhouse-files-{name}-{}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Folder(path)
        }

        fn names(&self) -> Vec<String> {
            let mut names: Vec<_> =
                fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    // GUARANTEE: Files are replaced completely
    #[test]
    fn a_file_is_replaced_and_keeps_its_mode() {
        let folder = Folder::new("mode");
        let path = folder.0.join("chart.svg");
        replace(&path, b"one").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        replace(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o640);
        assert_eq!(folder.names(), ["chart.svg"]);
    }

    // GUARANTEE: Files are replaced completely
    #[test]
    fn a_file_is_replaced_though_a_killed_process_with_the_same_number_left_its_files() {
        let folder = Folder::new("left");
        let left: Vec<_> = (0..100).map(|n| format!(".playhouse-{}-{n}.tmp", std::process::id())).collect();
        left.iter().for_each(|name| fs::write(folder.0.join(name), "left").unwrap());
        let path = folder.0.join("chart.svg");
        replace(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(folder.names().len(), 101);
        assert!(left.iter().all(|name| fs::read(folder.0.join(name)).unwrap() == b"left"));
    }

    // GUARANTEE: Files are replaced completely
    #[test]
    fn a_write_protected_file_is_refused_and_the_owner_stays() {
        let folder = Folder::new("owner");
        let path = folder.0.join("chart.svg");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        let error = replace(&path, b"new").unwrap_err();
        assert!(error.contains("is write-protected"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        // Only root can give a file away.
        if std::os::unix::fs::chown(&path, Some(4711), Some(4712)).is_ok() {
            replace(&path, b"new").unwrap();
            let owned = fs::metadata(&path).unwrap();
            assert_eq!((owned.uid(), owned.gid(), owned.mode() & 0o777), (4711, 4712, 0o644));
        }
        assert_eq!(folder.names(), ["chart.svg"]);
    }

    #[test]
    fn the_new_contents_of_a_private_file_are_private_from_the_beginning() {
        let folder = Folder::new("private");
        let path = folder.0.join("chart.svg");
        create(&path, b"old", Readers::Owner).unwrap().keep();
        let mut replacement = Replacement::begin(&path).unwrap();
        replacement.write_all(b"new").unwrap();
        let mode = |name: &String| fs::metadata(folder.0.join(name)).unwrap().mode() & 0o777;
        assert_eq!(folder.names().iter().map(mode).collect::<Vec<_>>(), [0o600, 0o600]);
        replacement.commit().unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode(&"chart.svg".to_owned())), (b"new".to_vec(), 0o600));
    }

    // GUARANTEE: Files are replaced completely
    #[test]
    fn links_folders_fifos_and_devices_are_refused_and_stay() {
        let folder = Folder::new("refused");
        let target = folder.0.join("target");
        fs::write(&target, "kept").unwrap();
        let link = folder.0.join("link");
        symlink(&target, &link).unwrap();
        let fifo = folder.0.join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
        let refused = [
            (link, "is a link to"),
            (folder.0.clone(), "is a folder"),
            (fifo, "a FIFO"),
            ("/dev/full".into(), "a device"),
        ];
        for (path, words) in refused {
            let before = fs::symlink_metadata(&path).unwrap();
            let error = replace(&path, b"new").unwrap_err();
            assert!(error.contains(words) && error.contains(&path.display().to_string()), "{error}");
            let after = fs::symlink_metadata(&path).unwrap();
            assert_eq!((before.ino(), before.mode(), before.rdev()), (after.ino(), after.mode(), after.rdev()));
        }
        assert_eq!(fs::read(&target).unwrap(), b"kept");
        assert_eq!(folder.names(), ["fifo", "link", "target"]);
    }

    #[test]
    fn a_file_that_exists_is_not_created_again() {
        let folder = Folder::new("created");
        let path = folder.0.join("ca.pem");
        drop(create(&path, b"dropped", Readers::All).unwrap());
        assert!(folder.names().is_empty());
        create(&path, b"one", Readers::Owner).unwrap().keep();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(create(&path, b"two", Readers::All).err().unwrap().contains("ca.pem"));
        let link = folder.0.join("dangling");
        symlink(folder.0.join("nowhere"), &link).unwrap();
        assert!(create(&link, b"two", Readers::All).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert_eq!(folder.names(), ["ca.pem", "dangling"]);
    }
}
