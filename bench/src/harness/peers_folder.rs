//! The folder `bench/peers`: where the programs of other actor runtimes are installed.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::outcome::Failure;

/// The name of Playhouse beside the peers.
pub const OURS: &str = "playhouse";

static NAMED: OnceLock<PathBuf> = OnceLock::new();

/// The folder of the peers.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Names the folder that [`find`](Self::find) returns.
    pub fn set(folder: PathBuf) {
        // The first one counts.
        let _ = NAMED.set(folder);
    }

    /// Returns the folder that was [`set`](Self::set); otherwise `bench/peers` in the working directory, in a directory above
    /// it, or in the checkout of this program's build.
    ///
    /// # Errors
    ///
    /// If there is no `install` in it, or no such folder.
    pub fn find() -> Result<Self, Failure> {
        let has_install = |folder: &Path| folder.join("install").is_file();
        if let Some(folder) = NAMED.get() {
            return if has_install(folder) {
                Ok(Self(folder.to_owned()))
            } else {
                Err(Failure::new(format!("{} is not the folder of the peers: it has no `install`", folder.display())))
            };
        }
        let here = std::env::current_dir().unwrap_or_default();
        let above = here.ancestors().map(|folder| folder.join("bench/peers"));
        let built_from = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
        above.chain([built_from]).find(|folder| has_install(folder)).map(Self).ok_or_else(|| {
            Failure::new("the folder of the peers is not found: run this in a checkout, or name it with --peers-dir")
        })
    }

    /// The program of a peer.
    ///
    /// # Errors
    ///
    /// Says how to get it if it is not installed.
    pub fn program(&self, peer: &str) -> Result<PathBuf, Failure> {
        let program = self.0.join("bin").join(peer);
        if program.is_file() {
            return Ok(program);
        }
        let install = self.0.join("install");
        Err(Failure::new(format!("{peer} is not installed; `{} {peer}` gets it", install.display())))
    }
}
