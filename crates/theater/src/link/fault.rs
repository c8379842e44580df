//! Faults of a peer: it breaks the protocol, and loses the link, because its frames cannot be relied on.

use std::fmt;

use super::*;
use crate::error::TheaterError;
use crate::naming::BadName;

/// Most actors of one theater that the other end of a link calls by numbers at one time. The calling end names and sends actors up to half of it
/// only, because an actor that has migrated must have a number.
pub(super) const HANDLES_MAX: usize = if cfg!(test) { 4 * 1_024 } else { 4 * 1_024 * 1_024 };
/// Most watches of one theater's actors by the other theater at one time. The watching end keeps to half of it, because ended watches may not have
/// reached the actors.
pub(super) const WATCHES_MAX: usize = 2 * HANDLES_MAX;
/// Most members of groups, and refused groups, that a link keeps until their groups are complete.
pub(crate) const MEMBERS_MAX: usize = if cfg!(test) { 1_024 } else { 1024 * 1_024 };
/// Windows that members of groups may take until their groups are complete; [`RESERVE_BYTES`] come on top.
pub(crate) const MEMBER_WINDOWS_MAX: usize = 64;
/// Most shutdown announcements of the other end while an earlier one is not answered: a theater sends one at a time.
pub(crate) const LEAVINGS_MAX: usize = 1_024;

/// The reason for which a link was lost by its peer's fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It breaks the rules of the session.
    Session(session::ProtocolError),
    /// It names an actor as no theater with that actor can.
    Name(BadName),
    /// It gives a meaning to a number that is neither its next one nor a released one.
    Handle { found: Handle, next: usize },
    /// It calls too many actors by numbers.
    Handles,
    /// It has too many watches.
    Watches,
    /// It has sent too many members of groups, and has completed no group.
    Members,
    /// It announces its shutdown too often.
    Leavings,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Session(error) => error.fmt(f),
            Fault::Name(why) => why.fmt(f),
            Fault::Handle { found, next } => {
                write!(
                    f,
                    "the peer gave an actor the number {found}: it must be a released one or the next one, {next}"
                )
            }
            Fault::Handles => write!(f, "the peer gave numbers to more than {HANDLES_MAX} actors"),
            Fault::Watches => write!(f, "the peer has more than {WATCHES_MAX} watches at one time"),
            Fault::Members => {
                write!(f, "the peer sent {MEMBERS_MAX} members of groups, and completed or cancelled no group")
            }
            Fault::Leavings => write!(f, "the peer announced its shutdown more than {LEAVINGS_MAX} times at once"),
        }
    }
}

impl Link {
    /// Notes that the peer breaks the protocol. The reading thread then loses the link, and takes nothing more.
    pub(crate) fn fault(&self, fault: Fault) {
        // The first fault is the cause.
        let _ = self.fault.set(fault);
    }

    /// Returns the rule that the peer has broken, if one.
    pub(crate) fn broken_rule(&self) -> Option<TheaterError> {
        let address = self.address.map_or_else(|| "?".to_owned(), |address| address.to_string());
        self.fault.get().map(|fault| TheaterError::Protocol { address, found: fault.to_string() })
    }

    /// Loses the link for this fault of its peer.
    pub(crate) fn lose_for(&self, fault: Fault) {
        self.fault(fault);
        self.lose_by_fault();
    }

    /// Loses the link for the noted fault of its peer.
    pub(crate) fn lose_by_fault(&self) {
        self.lose();
        if let (Some(node), Some(error)) = (self.node(), self.broken_rule()) {
            node.report(error);
        }
    }
}
