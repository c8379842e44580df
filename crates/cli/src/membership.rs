//! The options of a theater's cluster and of its certificates.

use std::path::{Path, PathBuf};

use playhouse::{TheaterBuilder, TheaterError, Tls};

/// Arguments of the commands that link with theaters.
#[derive(clap::Args)]
pub struct Membership {
    /// Name of the cluster; only theaters with the same name link with each other. Without certificates and --plaintext, they also need the same
    /// cookie: ~/.playhouse.cookie, or the file that PLAYHOUSE_COOKIE_FILE names
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    cluster: String,
    /// Encrypt all links, and link only with theaters that have a certificate of the same CA; the files are DIR/ca.pem,
    /// DIR/NAME.pem and DIR/NAME.key, as `playhouse certificates DIR --name NAME` writes them
    #[arg(long, value_name = "DIR/NAME", conflicts_with_all = ["plaintext", "tls_ca", "tls_cert", "tls_key"])]
    tls: Option<PathBuf>,
    /// Certificate of the CA, in PEM; instead of --tls, with --tls-cert and --tls-key
    #[arg(long, value_name = "FILE", conflicts_with = "plaintext", requires_all = ["tls_cert", "tls_key"])]
    tls_ca: Option<PathBuf>,
    /// Certificate of this theater, in PEM, with those between it and the CA's
    #[arg(long, value_name = "FILE", conflicts_with = "plaintext", requires_all = ["tls_ca", "tls_key"])]
    tls_cert: Option<PathBuf>,
    /// Key of this theater's certificate, in PEM and without a password
    #[arg(long, value_name = "FILE", conflicts_with = "plaintext", requires_all = ["tls_ca", "tls_cert"])]
    tls_key: Option<PathBuf>,
    /// Allow other networks than the loopback: links are NOT encrypted, and every program on the network may link with this theater
    #[arg(long)]
    plaintext: bool,
}

impl Membership {
    /// Returns the settings of a theater of this cluster.
    ///
    /// # Errors
    /// The certificates cannot be used.
    pub fn apply(&self, mut builder: TheaterBuilder) -> Result<TheaterBuilder, TheaterError> {
        builder = builder.cluster(&*self.cluster);
        if self.plaintext {
            builder = builder.plaintext();
        }
        Ok(match self.certificates()? {
            Some(certificates) => builder.tls(certificates),
            None => builder,
        })
    }

    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// Returns the protection of the links, for the log.
    pub fn protection(&self) -> &'static str {
        match (self.tls.is_some() || self.tls_cert.is_some(), self.plaintext) {
            (true, _) => "tls",
            (false, true) => "plaintext",
            (false, false) => "loopback",
        }
    }

    fn certificates(&self) -> Result<Option<Tls>, TheaterError> {
        if let Some(identity) = &self.tls {
            return of_folder(identity).map(Some);
        }
        let (Some(ca), Some(certificate), Some(key)) = (&self.tls_ca, &self.tls_cert, &self.tls_key) else {
            return Ok(None);
        };
        let expected = "--tls-ca names the CA's certificate, --tls-cert this theater's certificate and --tls-key its key, all in PEM";
        Tls::from_pem_files(ca, certificate, key).map(Some).map_err(|error| explained(error, expected))
    }
}

/// Reads the files that `--tls DIR/NAME` stands for.
fn of_folder(identity: &Path) -> Result<Tls, TheaterError> {
    if identity.is_dir() {
        return Err(TheaterError::Certificates(format!(
            "{} is a folder, and --tls takes DIR/NAME: {}",
            identity.display(),
            names_in(identity)
        )));
    }
    // A name may have dots in it.
    let with = |end: &str| {
        let mut path = identity.as_os_str().to_owned();
        path.push(end);
        PathBuf::from(path)
    };
    let [ca, certificate, key] = [identity.with_file_name("ca.pem"), with(".pem"), with(".key")];
    let expected = format!(
        "--tls {} reads {}, {} and {}, as `playhouse certificates` writes them",
        identity.display(),
        ca.display(),
        certificate.display(),
        key.display()
    );
    Tls::from_pem_files(ca, certificate, key).map_err(|error| explained(error, &expected))
}

/// Lists the theaters that have a key in the folder.
fn names_in(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let keys = entries.filter(|path| path.extension().is_some_and(|end| end == "key"));
    let mut names: Vec<_> = keys.map(|path| path.with_extension("").display().to_string()).collect();
    names.sort();
    match names.is_empty() {
        true => "no theater has a key in it; `playhouse certificates` writes some".to_owned(),
        false => format!("the folder has {}", names.join(", ")),
    }
}

/// Adds to an error about a file the files that would be right.
fn explained(error: TheaterError, expected: &str) -> TheaterError {
    match error {
        TheaterError::Certificates(why) => TheaterError::Certificates(format!("{why}; {expected}")),
        error => error,
    }
}
