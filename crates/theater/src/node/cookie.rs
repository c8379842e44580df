//! Cookies: the secret that the local processes of one user share.
//!
//! # The choice of a theater's cookie
//!
//! 1. The cookie given to [`TheaterBuilder::cookie`](crate::TheaterBuilder::cookie).
//! 2. The cookie in the file that the environment variable [`COOKIE_FILE`] names.
//! 3. On the loopback: the cookie in `.playhouse.cookie` in the user's home directory, or in the runtime directory if there is no
//!    home directory. The first theater of a user makes that file.
//!
//! On Unix, a file that other users have access to is refused; the group of a file of root may read it. On Windows, a file has the access rights of its directory, which
//! nothing checks: the home directory belongs to the user.

use std::ffi::OsString;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

use crate::error::TheaterError;
use crate::files;

/// The environment variable with the path of the cookie's file.
pub const COOKIE_FILE: &str = "PLAYHOUSE_COOKIE_FILE";
/// The advice for two theaters with different cookies.
pub(crate) const ADVICE: &str = "both need the same cookie: processes of one user share the file .playhouse.cookie in the home directory, \
                                 and others the one that PLAYHOUSE_COOKIE_FILE names";
/// The file's name, in the home or the runtime directory.
const NAME: &str = ".playhouse.cookie";
/// Minimum and maximum number of bytes of a cookie.
const BYTES: std::ops::RangeInclusive<usize> = 16..=1024;
/// Random bytes of a new cookie: the number that HMAC-SHA-256 makes use of.
const NEW_BYTES: usize = 32;
/// The environment variables with the user's home directory and, for users without one, another directory.
const DIRECTORIES: [&str; 2] =
    if cfg!(windows) { ["USERPROFILE", "LOCALAPPDATA"] } else { ["HOME", "XDG_RUNTIME_DIR"] };

/// The secret by which theaters without certificates recognise each other: for
/// [`TheaterBuilder::cookie`](crate::TheaterBuilder::cookie). Cheap to clone.
///
/// A cookie is never sent: both ends prove with HMAC-SHA-256 that they know it.
///
/// # Examples
///
/// ```
/// # use playhouse_theater::*;
/// # let secret = [7; 32];
/// // The same 16 to 1,024 random bytes in each theater of the cluster.
/// let cookie = Cookie::new(secret)?;
/// let theater = Theater::builder().listen("127.0.0.1:0").cookie(cookie).start()?;
/// # theater.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Cookie {
    key: hmac::Key,
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cookie")
    }
}

impl Cookie {
    /// Makes a cookie of 16 to 1,024 bytes. They should be random, because each peer can try guesses on its own.
    ///
    /// # Errors
    /// [`TheaterError::Cookie`]: the number of bytes is out of range.
    pub fn new(secret: impl AsRef<[u8]>) -> Result<Cookie, TheaterError> {
        Cookie::of(secret.as_ref()).map_err(|why| TheaterError::Cookie(format!("the cookie is unusable: {why}")))
    }

    /// Reads the cookie in this file: its bytes without the white space around them. A file that is missing or empty is filled
    /// with a new random cookie. On Unix, only its owner may read it (mode 0600); on Windows, it has the access rights of its
    /// directory.
    ///
    /// # Errors
    /// [`TheaterError::Cookie`], with the file: it cannot be read or made, other users have access to it (on Unix), or the number
    /// of bytes in it is out of range.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Cookie, TheaterError> {
        let path = path.as_ref();
        let wrong = |why: String| {
            let path = path.display();
            TheaterError::Cookie(format!(
                "the cookie file {path} is unusable: {why}; theaters of one cluster share one such file ({COOKIE_FILE} names \
                 another)"
            ))
        };
        let secret = read_or_make(path).map_err(|error| wrong(error.to_string()))?;
        Cookie::of(&secret).map_err(wrong)
    }

    fn of(secret: &[u8]) -> Result<Cookie, String> {
        if !BYTES.contains(&secret.len()) {
            let (least, most) = BYTES.into_inner();
            return Err(format!("it has {} bytes, and a cookie has {least} to {most}", secret.len()));
        }
        Ok(Cookie { key: hmac::Key::new(hmac::HMAC_SHA256, secret) })
    }

    /// Returns the cookie that the environment names.
    pub(crate) fn of_environment() -> Result<Option<Cookie>, TheaterError> {
        std::env::var_os(COOKIE_FILE).filter(|path| !path.is_empty()).map(Cookie::from_file).transpose()
    }

    /// Returns the cookie of this user.
    pub(crate) fn of_user() -> Result<Cookie, TheaterError> {
        let [home, runtime] = DIRECTORIES;
        let path = path_of_user(std::env::var_os(home), std::env::var_os(runtime));
        let none = || {
            TheaterError::Cookie(format!(
                "there is no directory for the cookie that the theaters of this user share: neither {home} nor {runtime} names a \
                 directory; name a file by {COOKIE_FILE}"
            ))
        };
        Cookie::from_file(path.ok_or_else(none)?)
    }

    /// Returns the key of HMAC-SHA-256.
    pub(crate) fn key(&self) -> &hmac::Key {
        &self.key
    }
}

/// Returns the path of the user's cookie. The home directory comes first, because services have it as well as shells: both use
/// the same cookie.
fn path_of_user(home: Option<OsString>, runtime: Option<OsString>) -> Option<PathBuf> {
    let folders = [home, runtime].into_iter().flatten().map(PathBuf::from);
    folders.filter(|folder| folder.is_absolute()).find(|folder| folder.is_dir()).map(|folder| folder.join(NAME))
}

/// Returns the secret in this file. Processes that start together agree on one, because the file is filled under its lock.
fn read_or_make(path: &Path) -> io::Result<Vec<u8>> {
    match files::open(path) {
        Ok(file) => {
            let secret = read(&file, false)?;
            if !secret.is_empty() {
                return Ok(secret);
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.read(true).append(true).create(true).open(path)?;
    let secret = read(&file, true)?;
    if !secret.is_empty() {
        return Ok(secret);
    }
    let mut random = [0; NEW_BYTES];
    SystemRandom::new().fill(&mut random).map_err(|_| io::Error::other("the system has no random numbers"))?;
    let secret: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    file.write_all(format!("{secret}\n").as_bytes())?;
    Ok(secret.into_bytes())
}

/// Returns the secret in `file`. The file's lock is held until the file is closed.
fn read(file: &File, alone: bool) -> io::Result<Vec<u8>> {
    files::check_private(file)?;
    if alone {
        file.lock()?
    } else {
        file.lock_shared()?
    }
    let mut bytes = Vec::new();
    // Leaves room for white space around the secret.
    file.take(2 * *BYTES.end() as u64).read_to_end(&mut bytes)?;
    Ok(bytes.trim_ascii().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(unix)]
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    /// A folder that is removed at the end of the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("playhouse-cookie-{name}-{}", std::process::id()));
            std::fs::create_dir(&path).unwrap();
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn tag(cookie: &Cookie) -> Vec<u8> {
        hmac::sign(cookie.key(), b"test").as_ref().to_vec()
    }

    // GUARANTEE: One user, one cookie
    #[test]
    fn theaters_that_start_together_agree_on_one_new_cookie_that_others_cannot_read() {
        let folder = Folder::new("together");
        let path = folder.0.join("cookie");
        let tags: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(|| tag(&Cookie::from_file(&path).unwrap()))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(tags.iter().all(|found| *found == tags[0]));
        #[cfg(unix)]
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let other = Cookie::from_file(folder.0.join("other")).unwrap();
        assert_ne!(tag(&other), tags[0]);
    }

    // GUARANTEE: One user, one cookie
    #[test]
    fn a_cookie_file_that_is_of_no_use_is_an_error_that_says_why() {
        let folder = Folder::new("useless");
        let path = folder.0.join("cookie");
        let why = || Cookie::from_file(&path).unwrap_err().to_string();
        std::fs::write(&path, "a cookie of more than 16 bytes\n").unwrap();
        #[cfg(unix)]
        {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
            assert!(why().contains("mode 644, and 600 is right"), "{}", why());
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        Cookie::from_file(&path).unwrap();
        std::fs::write(&path, " short \n").unwrap();
        assert!(why().contains("it has 5 bytes, and a cookie has 16 to 1024"), "{}", why());
        std::fs::write(&path, vec![b'x'; 1025]).unwrap();
        assert!(why().contains("bytes, and a cookie has 16 to 1024"), "{}", why());
        assert!(why().contains(COOKIE_FILE), "{}", why());
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(why().contains("no regular file"), "{}", why());
        #[cfg(unix)]
        {
            std::fs::remove_dir(&path).unwrap();
            assert!(std::process::Command::new("mkfifo").args(["-m", "600"]).arg(&path).status().unwrap().success());
            assert!(why().contains("no regular file"), "{}", why());
        }
        assert!(Cookie::new("too short").unwrap_err().to_string().contains("it has 9 bytes"));
    }

    // GUARANTEE: One user, one cookie
    #[test]
    fn the_cookie_of_a_user_is_at_home_or_else_in_the_runtime_directory() {
        let folder = Folder::new("place");
        let (home, runtime) = (folder.0.join("home"), folder.0.join("runtime"));
        std::fs::create_dir(&runtime).unwrap();
        let place = || path_of_user(Some(home.clone().into()), Some(runtime.clone().into()));
        assert_eq!(place(), Some(runtime.join(NAME)));
        std::fs::create_dir(&home).unwrap();
        assert_eq!(place(), Some(home.join(NAME)));
        assert_eq!(path_of_user(None, None), None);
        assert_eq!(path_of_user(Some("relative".into()), Some("".into())), None);
    }
}
