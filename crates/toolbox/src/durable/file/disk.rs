//! The operations of a file system that the file store needs.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A file system. Contents of a file are durable after [`sync`](Disk::sync). Names in a folder are durable after
/// [`sync_folder`](Disk::sync_folder). Errors name the path.
pub(super) trait Disk: Send + Sync + 'static {
    /// A file that was written and not synced.
    type Written;

    /// Returns the contents of a file, or `None` if there is no such file.
    fn read(&self, file: &Path) -> io::Result<Option<Vec<u8>>>;
    /// Writes a file, and replaces its former contents.
    fn write(&self, file: &Path, bytes: &[u8]) -> io::Result<Self::Written>;
    fn sync(&self, written: Self::Written) -> io::Result<()>;
    /// Renames a file in one step, and replaces `to`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file, if there is one.
    fn remove(&self, file: &Path) -> io::Result<()>;
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
    /// Returns the names in a folder.
    fn list(&self, folder: &Path) -> io::Result<Vec<String>>;
}

/// The file system of the operating system.
#[derive(Debug)]
pub(super) struct Native;

/// Adds the path to an error.
pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

impl Disk for Native {
    type Written = (File, PathBuf);

    fn read(&self, file: &Path) -> io::Result<Option<Vec<u8>>> {
        match fs::read(file) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(at(file)(error)),
        }
    }

    fn write(&self, file: &Path, bytes: &[u8]) -> io::Result<(File, PathBuf)> {
        let mut written = File::create(file).map_err(at(file))?;
        written.write_all(bytes).map_err(at(file))?;
        Ok((written, file.to_owned()))
    }

    fn sync(&self, (written, file): (File, PathBuf)) -> io::Result<()> {
        written.sync_all().map_err(at(&file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to).map_err(at(to))
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        match fs::remove_file(file) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(at(file)(error)),
            _ => Ok(()),
        }
    }

    /// Platforms whose folders cannot be opened as files sync names themselves.
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        if cfg!(unix) { File::open(folder).and_then(|folder| folder.sync_all()).map_err(at(folder)) } else { Ok(()) }
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let names = fs::read_dir(folder).and_then(|entries| {
            entries.map(|entry| Ok(entry?.file_name().into_string().ok())).collect::<io::Result<Vec<_>>>()
        });
        Ok(names.map_err(at(folder))?.into_iter().flatten().collect())
    }
}

/// Creates a folder and its parents durably.
pub(super) fn create_folder(folder: &Path) -> io::Result<()> {
    create(folder, &|folder| Native.sync_folder(folder))
}

fn create(folder: &Path, sync: &dyn Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if folder.is_dir() {
        // A process that created the folder may have been killed before it synced the parent. Without permission to
        // read the parent, this user has not created the folder.
        return match sync(parent) {
            Err(error) if error.kind() != ErrorKind::PermissionDenied => Err(error),
            _ => Ok(()),
        };
    }
    create(parent, sync)?;
    match fs::create_dir(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(at(folder)(error)),
        _ => {}
    }
    sync(parent)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    // GUARANTEE: Saved states are durable
    #[test]
    fn each_folder_above_a_store_is_synced_even_if_another_process_created_it() {
        let base = std::env::temp_dir().join(format!("playhouse-disk-{}", std::process::id()));
        let _ = fs::remove_dir_all(&base);
        fs::create_dir(&base).unwrap();
        let (a, b) = (base.join("a"), base.join("a/b"));
        let synced = RefCell::new(Vec::new());
        let fails: RefCell<Option<ErrorKind>> = RefCell::default();
        let sync = |folder: &Path| {
            synced.borrow_mut().push(folder.to_owned());
            fails.borrow().map_or_else(|| Native.sync_folder(folder), |kind| Err(kind.into()))
        };
        create(&b, &sync).unwrap();
        // The creator of `base` may not have synced its parent.
        assert_eq!(synced.take(), [base.parent().unwrap(), &base, &a]);
        create(&b, &sync).unwrap();
        assert_eq!(synced.take(), [&*a]);
        fails.replace(Some(ErrorKind::PermissionDenied));
        create(&b, &sync).unwrap();
        assert_eq!(create(&b.join("c"), &sync).unwrap_err().kind(), ErrorKind::PermissionDenied);
        fails.replace(Some(ErrorKind::StorageFull));
        assert_eq!(create(&b, &sync).unwrap_err().kind(), ErrorKind::StorageFull);
        fs::remove_dir_all(&base).unwrap();
    }
}
