//! The inputs and effects of the machine, and the messages between members.

use std::sync::Arc;
use std::time::Duration;

use super::{Outcome, ReadError, RequestId, Stored};
use crate::view::{MemberId, View};

/// The time of a place's clock, from any start.
pub type Time = Duration;

/// An event that the host passes to the machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// [`Membership::next_tick`](super::Membership::next_tick) has come.
    Tick,
    /// The ledger tells of a change.
    Changed,
    /// The result of [`Effect::Read`]. `Ok(None)`: there is no value under the key.
    Read {
        /// The request.
        id: RequestId,
        /// The value.
        result: Result<Option<Stored>, ReadError>,
    },
    /// The result of [`Effect::Write`].
    Wrote {
        /// The request.
        id: RequestId,
        /// The outcome.
        outcome: Outcome,
    },
    /// A message came.
    Received {
        /// The sender.
        from: MemberId,
        /// The message.
        message: Message,
    },
    /// The probes of a member fail.
    Suspect(MemberId),
    /// A member refuses connections or says that it ends: it is removed without a second vote. Its slots still wait.
    Gone(MemberId),
    /// A suspected member was heard again.
    Trust(MemberId),
    /// The program wants to hand a slot over. Another slot may come back, because owners level the loads.
    HandOver {
        /// The index of the slot.
        slot: usize,
        /// The next owner, an active member.
        to: MemberId,
    },
    /// The program wants to leave the cluster.
    Leave,
}

/// An act that the machine asks of its host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Read the view, linearizably.
    Read {
        /// The request.
        id: RequestId,
    },
    /// Write the view if the ledger still has the expected revision.
    Write {
        /// The request.
        id: RequestId,
        /// The expected revision; 0 for no value.
        expected: u64,
        /// The new value.
        view: Arc<View>,
    },
    /// Send a message.
    Send {
        /// The receiver.
        to: MemberId,
        /// The message.
        message: Message,
    },
    /// Run a slot for users that its epoch protects: their stores refuse each write below the highest epoch that has claimed the slot. The former
    /// owner may run it too, for up to its lease. If the slot is open at an earlier epoch, or closes at one, it goes on at this one.
    Own {
        /// The index of the slot.
        slot: usize,
        /// The epoch of the ownership.
        epoch: u64,
    },
    /// Run a slot for all users: no other member runs it exclusively. [`Effect::Own`] has come before.
    Open {
        /// The index of the slot.
        slot: usize,
        /// The epoch of the ownership.
        epoch: u64,
    },
    /// Close a slot, and report it by [`Membership::closed`](super::Membership::closed).
    Close {
        /// The index of the slot.
        slot: usize,
        /// The epoch of the ownership.
        epoch: u64,
        /// The next owner, or `None` if nobody is left.
        to: Option<MemberId>,
    },
    /// A hand-over is not possible: this member does not run the slot, or the target is not active.
    Refused {
        /// The index of the slot.
        slot: usize,
        /// The target.
        to: MemberId,
    },
    /// The ledger has lost or replaced views that this member has adopted. This member writes nothing until they are back. Reads do not
    /// extend its lease. A person must look.
    Frozen,
    /// This member's part has ended. All of its slots stop at once.
    Ended(End),
}

/// A message between members.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// The sender is at this version. Does the receiver agree?
    Ask {
        /// The version of the sender's view.
        version: u64,
        /// The fingerprint of that view.
        fingerprint: u64,
        /// The time of the sender's clock.
        at: Time,
    },
    /// The sender is at the same view.
    Acknowledge {
        /// The version that was asked for.
        version: u64,
        /// The fingerprint that was asked for.
        fingerprint: u64,
        /// The time of the ask.
        at: Time,
        /// The time since the last read of the ledger that the sender knows of.
        read_age: Option<Duration>,
    },
    /// A view with a higher version than that of an ask.
    View(Arc<View>),
}

/// The reason for the end of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// It has left.
    Left,
    /// The others have declared it dead.
    Removed,
    /// It is so far behind that it cannot check the lineage of the view.
    Behind,
}
