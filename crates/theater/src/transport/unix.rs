//! Unix domain sockets.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, IoSlice};
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Listener, Registration, Transport, Wire, wire};

/// Where a free number is looked for: those that no service is known by.
const FREE: std::ops::RangeInclusive<u16> = 49_152..=65_535;

/// Unix domain sockets in a folder, for theaters on one machine: a system call takes less time than with TCP, and only who may
/// enter the folder can call.
///
/// The theater at `127.0.0.1:7001` is the file `7001` in the folder, next to `7001.lock`, by which a file that a theater has left
/// behind that was killed is told from one that is in use. Addresses of other networks than the loopback are refused.
#[derive(Clone, Debug)]
pub struct UnixSockets {
    folder: PathBuf,
}

impl UnixSockets {
    /// Those in `folder`, which has to be there. Its path is at most about 90 bytes long: systems do not allow more.
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
                // Nobody has the lock; but somebody may have removed it, or it is no theater's.
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

/// Which file this is, whatever it is called.
fn file_at(path: &Path) -> io::Result<(u64, u64)> {
    std::fs::symlink_metadata(path).map(|file| (file.dev(), file.ino()))
}

fn check(address: SocketAddr) -> io::Result<()> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    let why = format!("{address} is not on this machine, where Unix sockets are: 127.0.0.1:{} is", address.port());
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
                // Too many wait to be heard, and nothing would tell when there are fewer.
                Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Err(at(&path, io::Error::new(ErrorKind::TimedOut, "nobody hears callers")));
                }
                stream => break UnixStream::from(stream.map_err(|error| at(&path, error))?),
            }
        };
        UnixStream::set_nonblocking(&stream, false)?;
        Ok(Box::new(stream))
    }
}

/// A socket that does not block, with its file, which it takes with it.
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
        // Some systems hand that down.
        stream.set_nonblocking(false)?;
        Ok(Box::new(stream))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Before the lock is released: after that it may be another's, and if somebody has removed the lock, it is already.
        if file_at(&self.path).is_ok_and(|file| file == self.file) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

wire!(UnixStream, |_: &UnixStream| "a process of this machine".to_owned());
