//! Files that a user names: certificates and cookies, and the options, scenarios and recordings of the programs.
//!
//! A user may name a FIFO without a writer, a device without an end, or a large file by mistake. Therefore only regular files are
//! read, and opening never waits.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// Opens a regular file for reading. It does not wait for the other end of a FIFO.
///
/// # Errors
/// In words: the file cannot be opened, or is a folder, a pipe or a device.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.open(path)?;
    match file.metadata()?.file_type() {
        kind if kind.is_file() => Ok(file),
        kind if kind.is_dir() => Err(io::Error::other("it is a folder, and no regular file")),
        _ => Err(io::Error::other("it is no regular file: FIFOs, pipes such as `<(..)` and devices are not read")),
    }
}

/// Returns the bytes of a regular file, at most `bytes_max`.
///
/// # Errors
/// In words: the file cannot be read, is no regular file, or is larger.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let mut bytes = Vec::new();
    // Some files, such as those in /proc, have another size than the metadata says.
    (&file).take(bytes_max + 1).read_to_end(&mut bytes)?;
    let size = bytes.len() as u64;
    if size > bytes_max {
        let size = file.metadata()?.len().max(size);
        return Err(io::Error::other(format!("it has {size} bytes, and at most {bytes_max} are read")));
    }
    Ok(bytes)
}

/// Checks that no other user has access to a file with a secret. The group of a file of root may read it, because services and
/// containers get secrets so. On Windows, a file has the access rights of its folder, which nothing checks.
pub(crate) fn check_private(file: &File) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;

        const OTHERS: u32 = 0o077;
        const GROUP_READS: u32 = 0o040;
        const ROOT: u32 = 0;
        let found = file.metadata()?;
        let allowed = if found.uid() == ROOT { GROUP_READS } else { 0 };
        let mode = found.mode() & 0o777;
        if mode & OTHERS & !allowed != 0 {
            return Err(io::Error::other(format!("other users have access to it (mode {mode:o}, and 600 is right)")));
        }
    }
    #[cfg(not(unix))]
    let _the_folder_decides = file;
    Ok(())
}
