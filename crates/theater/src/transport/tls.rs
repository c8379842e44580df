//! Encrypted links: TLS 1.3, with a certificate on both sides.
//!
//! A certificate proves only that its owner belongs to the cluster. The cluster's own CA signs it, for the name [`MEMBER`] and
//! not for an address, because theaters move and are called at any of their addresses. Both sides therefore require the same of
//! each other: a chain to that CA, that name, and a certificate that has not expired.
//!
//! There are no tickets and no resumption: after a broken connection both certificates are checked again.

use std::fmt;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{ClientConnection, Resumption, verify_server_name};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ParsedCertificate, ServerConnection, WebPkiClientVerifier};
use rustls::{AlertDescription, CertificateError, ClientConfig, InconsistentKeys, RootCertStore, ServerConfig};

use crate::error::TheaterError;
use crate::files;
use crate::lock::lock;

/// The name in the certificates of theaters.
const MEMBER: &str = "theater.playhouse";
/// Maximum number of bytes that are encrypted at one time. A reader waits while they are encrypted.
const TAKEN_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of bytes of a file. The CAs of all browsers have a quarter of them.
const PEM_BYTES_MAX: u64 = 1_000_000;
/// Maximum number of bytes that one system call reads, and that are decrypted at one time.
const READ_BYTES: usize = 64 * 1024;

/// The certificates of a theater: for [`TheaterBuilder::tls`](crate::TheaterBuilder::tls). Cheap to clone.
///
/// Each theater of a cluster has a certificate and its key, and the certificate of the cluster's CA, which has signed them all.
/// The owner of a certificate of that CA is trusted like this program itself. The CA should therefore sign nothing else.
///
/// Certificates are for the DNS name `theater.playhouse`, regardless of the theaters' addresses, and for use as client and as
/// server. `playhouse certificates` makes some for development. Certificates of another CA need `subjectAltName =
/// DNS:theater.playhouse` and `extendedKeyUsage = serverAuth, clientAuth` (or no `extendedKeyUsage`).
///
/// They are read once: a theater needs a restart to use new ones.
///
/// # Examples
///
/// ```
/// # use playhouse_theater::*;
/// # fn start() -> Result<Theater, TheaterError> {
/// // `playhouse certificates DIRECTORY` makes such files for development.
/// let certificates = Tls::from_pem_files("ca.pem", "theater.pem", "theater.key")?;
/// Theater::builder().listen("0.0.0.0:7001").tls(certificates).start()
/// # }
/// ```
#[derive(Clone)]
pub struct Tls {
    calls: Arc<ClientConfig>,
    answers: Arc<ServerConfig>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// Reads the CA's certificate (or several), this theater's certificate (with intermediate ones, if there are any), and its
    /// key, all in PEM. They are regular files of at most 1,000,000 bytes. On Unix, only the owner may read the key (mode 0600), and
    /// also the group where the owner is root.
    ///
    /// # Errors
    /// [`TheaterError::Certificates`], with the file: it cannot be read, or other theaters would refuse its content.
    pub fn from_pem_files(
        ca: impl AsRef<Path>,
        certificate: impl AsRef<Path>,
        key: impl AsRef<Path>,
    ) -> Result<Tls, TheaterError> {
        let [ca, certificate, key] = [ca.as_ref(), certificate.as_ref(), key.as_ref()];
        let name = |path: &Path| path.display().to_string();
        let wrong = |path: &Path, error: io::Error| TheaterError::Certificates(format!("{}: {error}", path.display()));
        let read = |path: &Path| files::read(path, PEM_BYTES_MAX).map_err(|error| wrong(path, error));
        let loaded = load([&read(ca)?, &read(certificate)?, &read(key)?], [&name(ca), &name(certificate), &name(key)])?;
        // Another file that is named by mistake is no key, and its mode is right.
        files::open(key).and_then(|file| files::check_private(&file)).map_err(|error| wrong(key, error))?;
        Ok(loaded)
    }

    /// Does the same as [`Tls::from_pem_files`], with the contents of the files.
    ///
    /// # Errors
    /// [`TheaterError::Certificates`]: other theaters would refuse the given certificates.
    pub fn from_pem(ca: &[u8], certificate: &[u8], key: &[u8]) -> Result<Tls, TheaterError> {
        load([ca, certificate, key], ["the CA's certificate", "the theater's certificate", "the theater's key"])
    }

    /// Calls the theater at the other end of `stream`, which blocks.
    pub(crate) fn call(&self, stream: &mut (impl Read + Write)) -> io::Result<Cipher> {
        let connection = ClientConnection::new(Arc::clone(&self.calls), member()).map_err(io::Error::other)?;
        Cipher::new(connection.into(), stream)
    }

    /// Answers a caller at the other end of `stream`, which blocks.
    pub(crate) fn answer(&self, stream: &mut (impl Read + Write)) -> io::Result<Cipher> {
        let connection = ServerConnection::new(Arc::clone(&self.answers)).map_err(io::Error::other)?;
        Cipher::new(connection.into(), stream)
    }
}

fn member() -> ServerName<'static> {
    ServerName::try_from(MEMBER).expect("it is a name")
}

/// Loads the PEM texts of the CA, the certificate and the key; errors call them by `names`.
fn load(pem: [&[u8]; 3], names: [&str; 3]) -> Result<Tls, TheaterError> {
    let wrong = |what: &str, why: &dyn fmt::Display| TheaterError::Certificates(format!("{what}: {why}"));
    let certificates = |pem, what| match CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>() {
        Ok(found) if found.is_empty() => Err(wrong(what, &"there is no certificate in it, as PEM")),
        found => found.map_err(|_| wrong(what, &"its PEM is damaged")),
    };
    let [ca, own, key] = names;
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem[0], ca)? {
        roots.add(certificate).map_err(|error| wrong(ca, &words(&error)))?;
    }
    let chain = certificates(pem[1], own)?;
    let secret = PrivateKeyDer::from_pem_slice(pem[2])
        .map_err(|_| wrong(key, &"there is no key in it, as PEM and without a password"))?;

    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = Arc::new(roots);
    let builder = WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
    let servers = builder.build().map_err(|error| wrong(ca, &error))?;
    let builder = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider));
    let clients = builder.build().map_err(|error| wrong(ca, &error))?;
    // Checks the certificate like the other theaters will, to find faults before they do.
    servers
        .verify_server_cert(&chain[0], &chain[1..], &member(), &[], UnixTime::now())
        .map_err(|error| wrong(own, &words(&error)))?;
    clients.verify_client_cert(&chain[0], &chain[1..], UnixTime::now()).map_err(|error| wrong(own, &words(&error)))?;

    let versions = &[&rustls::version::TLS13];
    let mut calls = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .map_err(|error| wrong(ca, &error))?
        .with_webpki_verifier(servers)
        .with_client_auth_cert(chain.clone(), secret.clone_key())
        .map_err(|error| wrong(key, &words(&error)))?;
    calls.resumption = Resumption::disabled();
    let mut answers = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .map_err(|error| wrong(ca, &error))?
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, secret)
        .map_err(|error| wrong(key, &words(&error)))?;
    answers.send_tls13_tickets = 0;
    Ok(Tls { calls: Arc::new(calls), answers: Arc::new(answers) })
}

/// The protection of links.
#[derive(Clone, Debug, Default)]
pub(crate) enum Secrecy {
    /// Links do not leave the machine.
    #[default]
    Loopback,
    /// None, because the program asks for that.
    Plaintext,
    /// All links are encrypted.
    Tls(Tls),
}

impl Secrecy {
    pub(crate) fn allows(&self, address: SocketAddr) -> bool {
        !self.is_local() || address.ip().is_loopback()
    }

    /// Returns whether links stay on this machine, which is the default.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self, Secrecy::Loopback)
    }

    pub(crate) fn tls(&self) -> Option<&Tls> {
        match self {
            Secrecy::Tls(tls) => Some(tls),
            Secrecy::Loopback | Secrecy::Plaintext => None,
        }
    }
}

/// Encrypts the output of one connection, and decrypts its input.
///
/// Its lock is the last in the order of locks, for readers and for writers, and is held for about 64 KiB at a time.
pub(crate) struct Cipher(Mutex<Inside>);

struct Inside {
    tls: rustls::Connection,
    /// The bytes that were read, and the range of them that is not decrypted yet.
    buffer: Vec<u8>,
    rest: std::ops::Range<usize>,
}

impl Cipher {
    /// Makes a cipher by the TLS handshake, for which `stream` has to block.
    fn new(mut tls: rustls::Connection, stream: &mut (impl Read + Write)) -> io::Result<Cipher> {
        tls.set_buffer_limit(Some(TAKEN_BYTES_MAX));
        while tls.is_handshaking() {
            if let Err(error) = tls.complete_io(stream) {
                // The other end is sent the alert.
                let _ = write_out(&mut tls, stream);
                return Err(error);
            }
        }
        Ok(Cipher(Mutex::new(Inside { tls, buffer: Vec::new(), rest: 0..0 })))
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        lock(&self.0)
    }

    /// Checks that the certificate of a caller is the one of a theater. TLS itself checks the certificate of a called theater.
    pub(crate) fn check_member(&self) -> io::Result<()> {
        let inside = self.lock();
        let shown = inside.tls.peer_certificates().and_then(<[_]>::first);
        let check = |shown| verify_server_name(&ParsedCertificate::try_from(shown)?, &member());
        shown.map_or(Err(rustls::Error::NoCertificatesPresented), check).map_err(io::Error::other)
    }

    /// Returns a value that only the two ends of this TLS session know (RFC 5705).
    pub(crate) fn binding(&self) -> io::Result<[u8; 32]> {
        let exported = self.lock().tls.export_keying_material([0; 32], b"EXPORTER-playhouse-opening", None);
        exported.map_err(io::Error::other)
    }

    /// Returns the SHA-256 of the certificate that the other end has shown.
    pub(crate) fn certificate(&self) -> Option<[u8; 32]> {
        let inside = self.lock();
        let shown = inside.tls.peer_certificates()?.first()?;
        ring::digest::digest(&ring::digest::SHA256, shown).as_ref().try_into().ok()
    }

    /// Reads bytes that have come into `room`. Even a read of one byte may leave further bytes.
    pub(crate) fn read(&self, mut stream: impl Read + Write, room: &mut [u8]) -> io::Result<usize> {
        let Inside { tls, buffer, rest } = &mut *self.lock();
        let mut count = 0;
        loop {
            match tls.reader().read(&mut room[count..]) {
                // The other end has closed its TLS session, or `room` is full.
                Ok(0) => return Ok(count),
                Ok(more) => {
                    count += more;
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            if rest.start == rest.end {
                if count > 0 {
                    return Ok(count);
                }
                if buffer.is_empty() {
                    // Allocated for the time of a read only, like the buffer of `Link::read`.
                    *buffer = vec![0; READ_BYTES];
                }
                match stream.read(buffer)? {
                    // A missing close notification is harmless, because the session knows which bytes are missing.
                    0 => return Ok(0),
                    read => *rest = 0..read,
                }
            }
            let mut bytes = &buffer[rest.clone()];
            tls.read_tls(&mut bytes)?;
            rest.start = rest.end - bytes.len();
            if let Err(error) = tls.process_new_packets() {
                let _ = write_out(tls, &mut stream);
                return Err(io::Error::new(ErrorKind::InvalidData, error));
            }
        }
    }

    /// Takes some of the bytes to be written, which [`Cipher::write_out`] writes.
    pub(crate) fn take(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self.lock().tls.writer().write_vectored(slices)? {
            // It is called only after everything was written out. Therefore the keys are used up, and the connection must be made
            // anew.
            0 => Err(ErrorKind::WriteZero.into()),
            taken => Ok(taken),
        }
    }

    /// Writes the bytes that were taken.
    pub(crate) fn write_out(&self, mut stream: impl Write) -> io::Result<()> {
        write_out(&mut self.lock().tls, &mut stream)
    }
}

fn write_out(tls: &mut rustls::Connection, stream: &mut impl Write) -> io::Result<()> {
    while tls.wants_write() {
        if tls.write_tls(stream)? == 0 {
            return Err(ErrorKind::WriteZero.into());
        }
    }
    Ok(())
}

/// Returns the reason of an error of TLS in words that say how to correct it, or `None` for another error.
pub(crate) fn why(error: &io::Error) -> Option<String> {
    error.get_ref()?.downcast_ref().map(words)
}

fn words(error: &rustls::Error) -> String {
    use rustls::Error;
    let words = match error {
        Error::InvalidCertificate(fault) => return fault_words(fault),
        Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => "the key is not that of the certificate",
        Error::NoCertificatesPresented => "it shows no certificate: each theater needs one of the cluster's CA",
        Error::InvalidMessage(_) => {
            "it speaks no TLS, and this theater nothing else: give both theaters certificates of one CA"
        }
        Error::PeerIncompatible(_) | Error::AlertReceived(AlertDescription::ProtocolVersion) => {
            "it speaks no TLS 1.3, and theaters nothing else"
        }
        Error::AlertReceived(alert) => match alert {
            AlertDescription::UnknownCA | AlertDescription::DecryptError => {
                "it refuses this theater's certificate as one of another CA: both need certificates of the cluster's CA"
            }
            AlertDescription::CertificateExpired => {
                "it refuses this theater's certificate as one that has expired: this theater needs a new one, or one of \
                 the two clocks is wrong"
            }
            AlertDescription::CertificateRequired => {
                "it wants this theater's certificate, and was shown none: each theater needs one of the cluster's CA"
            }
            AlertDescription::BadCertificate | AlertDescription::UnsupportedCertificate => {
                return format!(
                    "it refuses this theater's certificate: it has to be made out to {MEMBER}, for client and server"
                );
            }
            alert => return format!("it refuses the connection: {alert:?}"),
        },
        error => return error.to_string(),
    };
    words.to_owned()
}

fn fault_words(fault: &CertificateError) -> String {
    let words = match fault {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "the certificate is one of another CA than this theater's: both need certificates of the cluster's CA"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the certificate has expired: a new one is needed, or one of the two clocks is wrong"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the certificate's time has not begun: one of the two clocks is wrong"
        }
        CertificateError::BadEncoding => "the certificate is damaged",
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            return format!("the certificate is not made out to {MEMBER}, as those of theaters are");
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "the certificate does not say that it is for client and server (extendedKeyUsage)"
        }
        CertificateError::Other(fault) if fault.0.to_string() == "CaUsedAsEndEntity" => {
            "the certificate is the one of a CA, and a theater shows its own"
        }
        CertificateError::Other(fault) => return format!("the certificate is refused: {}", fault.0),
        fault => return format!("the certificate is refused: {fault}"),
    };
    words.to_owned()
}
