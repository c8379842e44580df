//! `playhouse certificates`: a CA for development, and the certificates that it signs.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use playhouse_console::files::{self, Readers};
use playhouse_console::output::{BAD_INPUT, FAILED, fail, print};
use playhouse_console::signals;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

use serde_json::json;

/// Arguments of `playhouse certificates`.
#[derive(clap::Args)]
pub struct Args {
    /// Folder to write to, which is made if need be; no file in it is overwritten
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Number of theaters, which are called theater-1, theater-2 and so on; 2 without
    #[arg(long, value_name = "N", conflicts_with = "name", value_parser = clap::value_parser!(u16).range(1..=1000))]
    theaters: Option<u16>,
    /// Name of a theater and of its files; may be given several times
    #[arg(long, value_name = "NAME", value_parser = file_name)]
    name: Vec<String>,
    /// Print the written files as a JSON object
    #[arg(long)]
    json: bool,
}

/// The certificates can be used for these days, and from a day before now on: clocks differ.
const DAYS: u64 = 365;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns a name that is a file name on each system.
fn file_name(text: &str) -> Result<String, String> {
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match text {
        "" => Err("a name has at least one character".to_owned()),
        _ if text.eq_ignore_ascii_case("ca") => Err("the CA's own file is called so".to_owned()),
        _ if text.starts_with(['.', '-']) || !text.chars().all(good) => {
            Err("a name has letters, digits, `-`, `_` and `.`, and does not begin with `.` or `-`".to_owned())
        }
        _ => Ok(text.to_owned()),
    }
}

/// A file to write.
struct File {
    path: PathBuf,
    text: String,
    readers: Readers,
}

/// Writes the certificates, and prints how to use them.
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
        Err(error) => return fail(FAILED, &format!("no certificate can be made: {error}")),
    };
    if args.folder.symlink_metadata().is_ok() && !args.folder.is_dir() {
        return fail(BAD_INPUT, &format!("{} is no folder: name one, or a new one", args.folder.display()));
    }
    // A link is one of them, whatever it leads to.
    if let Some(file) = files.iter().find(|file| file.path.symlink_metadata().is_ok()) {
        let path = file.path.display();
        return fail(BAD_INPUT, &format!("{path} exists already, and is not overwritten: choose another folder"));
    }
    if let Err(error) = write_all(&args.folder, &files) {
        return fail(FAILED, &error);
    }
    if args.json {
        print(&described(&args.folder, &names).to_string());
        return ExitCode::SUCCESS;
    }
    let folder = args.folder.display();
    let first = &names[0];
    print(&format!(
        "wrote {folder}/ca.pem, and a certificate and its key for: {}\n\
         The certificates are for development, and valid for {DAYS} days. The CA's key is not kept: for another theater, write all of them anew.\n\
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
    let mut files = vec![File { path: folder.join("ca.pem"), text: ca.pem(), readers: Readers::All }];
    for name in names {
        let mut theater = params(name, vec!["theater.playhouse".to_owned()])?;
        theater.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        theater.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate()?;
        let certificate = theater.signed_by(&key, &ca)?;
        let path = |end: &str| folder.join(format!("{name}.{end}"));
        files.push(File { path: path("pem"), text: certificate.pem(), readers: Readers::All });
        files.push(File { path: path("key"), text: key.serialize_pem(), readers: Readers::Owner });
    }
    Ok(files)
}

/// Describes the files for programs.
fn described(folder: &Path, names: &[String]) -> serde_json::Value {
    let theaters = names.iter().map(|name| {
        let [identity, certificate, key] = ["", ".pem", ".key"].map(|end| folder.join(format!("{name}{end}")));
        json!({ "name": name, "tls": identity, "certificate": certificate, "key": key })
    });
    json!({ "ca": folder.join("ca.pem"), "days": DAYS, "theaters": theaters.collect::<Vec<_>>() })
}

/// Writes all files or none.
fn write_all(folder: &Path, files: &[File]) -> Result<(), String> {
    let made = !folder.exists();
    let removed = folder.to_owned();
    let remove = move || {
        if made {
            let _it_has_files_of_others = fs::remove_dir(removed);
        }
    };
    // Files in it are created later, and removed before.
    let ((), _removed_by_a_signal) = signals::create(|| fs::create_dir_all(folder), remove)
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut written = Vec::new();
    for file in files {
        match files::create(&file.path, file.text.as_bytes(), file.readers) {
            Ok(file) => written.push(file),
            Err(error) => {
                signals::yield_to_signal();
                drop(written);
                if made {
                    let _ = fs::remove_dir(folder);
                }
                return Err(format!("{error}; nothing was written"));
            }
        }
    }
    files::keep_all(written);
    Ok(())
}
