//! The error of a router without members.

use std::fmt;

/// An error: the router has no living member.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::router::{Router, Routing};
///
/// struct Idle;
/// #[actor]
/// impl Idle {}
///
/// let system = System::start()?;
/// let empty: Router<Idle> = Router::new(&system, Routing::RoundRobin);
/// assert!(empty.pick().unwrap_err().to_string().contains("none was added yet"));
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoMember {
    pub(super) actor: &'static str,
    pub(super) had: u64,
    /// The wanted number of members, if the router is a pool.
    pub(super) size: Option<usize>,
}

impl fmt::Display for NoMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoMember { actor, had, size } = self;
        let actor = actor.split('<').next().and_then(|path| path.rsplit("::").next()).unwrap_or(actor);
        match (size, had) {
            (None, 0) => write!(f, "the router has no {actor} to send to: none was added yet"),
            (None, had) => {
                write!(f, "the router has no {actor} to send to: all {had} that were added have ended or were removed")
            }
            (Some(0), _) => write!(f, "the pool has no {actor} to send to: it was resized to 0"),
            (Some(size), _) => {
                write!(f, "the pool has no {actor} to send to: all {size} have ended and are being replaced, try again")
            }
        }
    }
}

impl std::error::Error for NoMember {}
