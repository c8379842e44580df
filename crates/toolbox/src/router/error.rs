//! A router without members.

use std::fmt;

/// A router has no member that lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoMember {
    pub(super) actor: &'static str,
    pub(super) had: u64,
    /// Of a pool.
    pub(super) size: Option<usize>,
}

impl fmt::Display for NoMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoMember { actor, had, size } = self;
        let actor = actor.split('<').next().and_then(|path| path.rsplit("::").next()).unwrap_or(actor);
        match (size, had) {
            (None, 0) => write!(f, "the router has no {actor} to send to: none was added yet"),
            (None, had) => write!(
                f,
                "the router has no {actor} to send to: of the {had} that were added, all have ended or were removed"
            ),
            (Some(0), _) => write!(f, "the pool has no {actor} to send to: it was resized to 0"),
            (Some(size), _) => {
                write!(f, "the pool has no {actor} to send to: all {size} have ended, and are being replaced")
            }
        }
    }
}

impl std::error::Error for NoMember {}
