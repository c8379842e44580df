//! Unix domain sockets.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, IoSlice};
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Listener, Registration, Transport, Wire, wire};

/// The range in which a free number is looked for: numbers that belong to no known service.
const FREE: std::ops::RangeInclusive<u16> = 49_152..=65_535;

/// Unix domain sockets in a folder, for theaters on one machine. A system call takes less time than with TCP, and only users with
/// access to the folder can call.
///
/// The theater at `127.0.0.1:7001` is the file `7001` in the folder. The lock of the file `7001.lock` tells a file in use from
/// the file of a killed theater. Addresses of other networks than the loopback are refused.
///
/// # Examples
///
/// ```
/// # use playhouse_theater::*;
/// # use playhouse_theater::transport::UnixSockets;
/// # let folder = std::env::temp_dir().join(format!("playhouse-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// // The file `7001` in the folder.
/// let theater = Theater::builder().transport(UnixSockets::in_folder(&folder)).listen("127.0.0.1:7001").start()?;
/// # theater.shutdown()?;
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct UnixSockets {
    folder: PathBuf,
}

impl UnixSockets {
    /// Uses the sockets in `folder`, which must exist. Its path is at most about 90 bytes long, because systems do not allow
    /// more.
    pub fn in_folder(folder: impl Into<PathBuf>) -> UnixSockets {
        UnixSockets { folder: folder.into() }
    }

    fn path(&self, port: u16) -> PathBuf {
        self.folder.join(port.to_string())
    }

    fn bind(&self, port: u16) -> io::Result<Socket> {
        let path = self.path(port);
        let named = |error: io::Error| at(&path, error);
        let lock = File::options().create(true).append(true).open(path.with_extension("lock")).map_err(named)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => named(ErrorKind::AddrInUse.into()),
            TryLockError::Error(error) => named(error),
        })?;
        match std::fs::symlink_metadata(&path) {
            Ok(left) if left.file_type().is_socket() => {
                // The lock is free, but a user may have removed its file, or it belongs to no theater.
                match mio::net::UnixStream::connect(&path) {
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                    _ => return Err(named(ErrorKind::AddrInUse.into())),
                }
                std::fs::remove_file(&path).map_err(named)?;
            }
            Ok(_) => return Err(io::Error::new(ErrorKind::AddrInUse, format!("{} is no socket", path.display()))),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(named(error)),
        }
        let listener = UnixListener::bind(&path).map_err(named)?;
        let file = file_at(&path).map_err(named)?;
        let socket = Socket { listener, path, port, file, _lock: lock };
        socket.listener.set_nonblocking(true).map_err(|error| at(&socket.path, error))?;
        Ok(socket)
    }
}

fn at(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Returns the identity of the file at this path: its device and its number.
fn file_at(path: &Path) -> io::Result<(u64, u64)> {
    std::fs::symlink_metadata(path).map(|file| (file.dev(), file.ino()))
}

fn check(address: SocketAddr) -> io::Result<()> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    let why = format!("{address} is not on this machine, and Unix sockets are: use 127.0.0.1:{}", address.port());
    Err(io::Error::new(ErrorKind::InvalidInput, why))
}

impl Transport for UnixSockets {
    fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn Listener>> {
        check(address)?;
        if address.port() != 0 {
            return Ok(Box::new(self.bind(address.port())?));
        }
        for port in FREE {
            match self.bind(port) {
                Err(error) if error.kind() == ErrorKind::AddrInUse => {}
                bound => return Ok(Box::new(bound?)),
            }
        }
        Err(at(&self.folder, ErrorKind::AddrInUse.into()))
    }

    fn connect(&self, address: SocketAddr, limit: Duration) -> io::Result<Box<dyn Wire>> {
        check(address)?;
        let path = self.path(address.port());
        let until = Instant::now() + limit;
        let stream = loop {
            match mio::net::UnixStream::connect(&path) {
                // Too many callers wait, and the system does not report when there are fewer.
                Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Err(at(&path, io::Error::new(ErrorKind::TimedOut, "no theater accepts callers")));
                }
                stream => break UnixStream::from(stream.map_err(|error| at(&path, error))?),
            }
        };
        UnixStream::set_nonblocking(&stream, false)?;
        Ok(Box::new(stream))
    }
}

/// A socket that does not block, with its file, which it removes when it is dropped.
struct Socket {
    listener: UnixListener,
    path: PathBuf,
    port: u16,
    file: (u64, u64),
    _lock: File,
}

impl Listener for Socket {
    fn address(&self) -> io::Result<SocketAddr> {
        Ok((Ipv4Addr::LOCALHOST, self.port).into())
    }

    fn register(&mut self, registration: Registration<'_>) -> io::Result<()> {
        registration.descriptor(&self.listener)
    }

    fn accept(&self) -> io::Result<Box<dyn Wire>> {
        let (stream, _) = self.listener.accept()?;
        // On some systems the stream inherits the mode of the listener.
        stream.set_nonblocking(false)?;
        Ok(Box::new(stream))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // The file is removed before the lock is released, because it may belong to another theater after that. It already may,
        // if a user has removed the lock.
        if file_at(&self.path).is_ok_and(|file| file == self.file) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

wire!(UnixStream, |_: &UnixStream| "a process of this machine".to_owned());
