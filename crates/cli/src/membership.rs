//! The cluster that a theater belongs to, as the command line says it.

use std::path::PathBuf;

use playhouse::{TheaterBuilder, TheaterError};

use crate::certificates;

/// Arguments of all that links with theaters.
#[derive(clap::Args)]
pub struct Membership {
    /// Only theaters with the same name talk to each other
    #[arg(long, value_name = "NAME", default_value = "")]
    cluster: String,
    /// Encrypt all links, and talk only to theaters with a certificate of the same CA; the files are DIR/ca.pem,
    /// DIR/NAME.pem and DIR/NAME.key, as `playhouse certificates DIR --name NAME` makes them
    #[arg(long, value_name = "DIR/NAME", conflicts_with = "plaintext")]
    tls: Option<PathBuf>,
    /// Allow other networks than the loopback: links are NOT encrypted, and everybody on them may talk to who listens there
    #[arg(long)]
    plaintext: bool,
}

impl Membership {
    /// A theater of this cluster.
    ///
    /// # Errors
    /// The certificate cannot be used.
    pub fn of(&self, mut builder: TheaterBuilder) -> Result<TheaterBuilder, TheaterError> {
        builder = builder.cluster(&*self.cluster);
        if self.plaintext {
            builder = builder.plaintext();
        }
        match &self.tls {
            Some(identity) => Ok(builder.tls(certificates::load(identity)?)),
            None => Ok(builder),
        }
    }
}
