//! What a file store asks of the file system.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Nothing is durable before it is synced: what is in a file by [`sync`](Disk::sync), what is in a folder (which names lead to which
/// files) by [`sync_folder`](Disk::sync_folder). Errors say where they were.
pub(super) trait Disk: Send + Sync + 'static {
    /// A file that was written.
    type Written;

    /// All that is in a file. None: it is not there.
    fn read(&self, file: &Path) -> io::Result<Option<Vec<u8>>>;
    /// Has a file with these bytes; what was in it is gone.
    fn write(&self, file: &Path, bytes: &[u8]) -> io::Result<Self::Written>;
    fn sync(&self, written: Self::Written) -> io::Result<()>;
    /// In one step, also where `to` is there.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// It need not be there.
    fn remove(&self, file: &Path) -> io::Result<()>;
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
    /// The names of what is in a folder.
    fn list(&self, folder: &Path) -> io::Result<Vec<String>>;
}

/// That of the operating system.
#[derive(Debug)]
pub(super) struct Native;

/// Says where an error was.
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

    /// Where folders are no files that one can open, the file system looks to it.
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

/// Creates a folder, and those that it is in, so that they are there after the machine has failed.
pub(super) fn create_folder(folder: &Path) -> io::Result<()> {
    create(folder, &|folder| Native.sync_folder(folder))
}

fn create(folder: &Path, sync: &dyn Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if folder.is_dir() {
        // Who has created it may not have come to that; who may not read the folder that it is in has not created it.
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

    #[test]
    fn each_folder_that_leads_to_a_store_is_synced_also_where_somebody_else_has_created_it() {
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
        // `base` was there: who has created it may not have synced what it is in.
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
