//! `playhouse certificates`: a CA for development, and what it has signed.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use playhouse::{TheaterError, Tls};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

use crate::output::{BAD_INPUT, fail, print};

/// Arguments of `playhouse certificates`.
#[derive(clap::Args)]
pub struct Args {
    /// Where they are written; nothing that is there is overwritten
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// How many theaters there are: theater-1, theater-2, ..; 2 without
    #[arg(long, value_name = "N", conflicts_with = "name", value_parser = clap::value_parser!(u16).range(1..=1000))]
    theaters: Option<u16>,
    /// What a theater's files are called; may be given several times
    #[arg(long, value_name = "NAME", value_parser = file_name)]
    name: Vec<String>,
}

/// How long they can be used, and since when: clocks differ.
const DAYS: u64 = 365;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Takes what is the same file everywhere.
fn file_name(text: &str) -> Result<String, String> {
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match text {
        "" => Err("a name has at least one character".to_owned()),
        _ if text.eq_ignore_ascii_case("ca") => Err("the CA's own files are called so".to_owned()),
        _ if text.starts_with(['.', '-']) || !text.chars().all(good) => {
            Err("a name has letters, digits, `-`, `_` and `.`, and does not begin with `.` or `-`".to_owned())
        }
        _ => Ok(text.to_owned()),
    }
}

/// What `playhouse theater --tls DIR/NAME` means.
pub fn load(identity: &Path) -> Result<Tls, TheaterError> {
    // A name may have dots in it.
    let with = |end: &str| {
        let mut path = identity.as_os_str().to_owned();
        path.push(end);
        PathBuf::from(path)
    };
    Tls::from_pem_files(identity.with_file_name("ca.pem"), with(".pem"), with(".key"))
}

/// A file that is to be written.
struct File {
    path: PathBuf,
    text: String,
    secret: bool,
}

/// Makes the certificates.
pub fn run(args: &Args) -> ExitCode {
    let names = match (args.theaters, &*args.name) {
        (count, []) => (1..=count.unwrap_or(2)).map(|n| format!("theater-{n}")).collect(),
        (_, names) => names.to_vec(),
    };
    let mut known = HashSet::new();
    if let Some(twice) = names.iter().find(|name| !known.insert(name.to_ascii_lowercase())) {
        return fail(BAD_INPUT, &format!("the name {twice} is given twice"));
    }
    let files = match make(&args.folder, &names) {
        Ok(files) => files,
        Err(error) => return fail(BAD_INPUT, &format!("no certificates can be made: {error}")),
    };
    if let Some(file) = files.iter().find(|file| file.path.exists()) {
        let path = file.path.display();
        return fail(BAD_INPUT, &format!("{path} is there already, and is not overwritten: choose another folder"));
    }
    if let Err(error) = write_all(&args.folder, &files) {
        return fail(BAD_INPUT, &error);
    }
    let folder = args.folder.display();
    let first = &names[0];
    print(&format!(
        "wrote {folder}/ca.pem, and a certificate and its key for: {}\n\
         They are for development, and good for {DAYS} days. The CA's key is not kept: for another theater, make all anew.\n\
         Each theater needs ca.pem, its own .pem and its own .key, which is secret:\n\
         \n    \
         playhouse theater --listen HOST:PORT --tls {folder}/{first}\n\
         \nor, in a program:\n\
         \n    \
         Theater::builder().tls(Tls::from_pem_files(\"ca.pem\", \"{first}.pem\", \"{first}.key\")?)",
        names.join(", ")
    ));
    ExitCode::SUCCESS
}

fn make(folder: &Path, names: &[String]) -> Result<Vec<File>, rcgen::Error> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now = rcgen::date_time_ymd(1970, 1, 1) + now;
    let params = |name: &str, domains: Vec<String>| {
        let mut params = CertificateParams::new(domains)?;
        params.distinguished_name.push(DnType::CommonName, name);
        (params.not_before, params.not_after) = (now - DAY, now + DAY * DAYS as u32);
        Ok::<_, rcgen::Error>(params)
    };
    let mut ca = params("Playhouse development CA", Vec::new())?;
    ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate()?)?;
    let mut files = vec![File { path: folder.join("ca.pem"), text: ca.pem(), secret: false }];
    for name in names {
        let mut theater = params(name, vec!["theater.playhouse".to_owned()])?;
        theater.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        theater.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate()?;
        let certificate = theater.signed_by(&key, &ca)?;
        let path = |end: &str| folder.join(format!("{name}.{end}"));
        files.push(File { path: path("pem"), text: certificate.pem(), secret: false });
        files.push(File { path: path("key"), text: key.serialize_pem(), secret: true });
    }
    Ok(files)
}

/// Writes all files or none.
fn write_all(folder: &Path, files: &[File]) -> Result<(), String> {
    let made = !folder.exists();
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for (number, file) in files.iter().enumerate() {
        if let Err(error) = write(file) {
            // One that is there was not written here; it has come meanwhile.
            let half = usize::from(error.kind() != io::ErrorKind::AlreadyExists);
            for file in files.iter().take(number + half) {
                let _ = fs::remove_file(&file.path);
            }
            if made {
                let _ = fs::remove_dir(folder);
            }
            return Err(format!("{}: {error}; nothing was written", file.path.display()));
        }
    }
    Ok(())
}

fn write(file: &File) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if file.secret {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    options.open(&file.path)?.write_all(file.text.as_bytes())
}
