//! The view: the one value that the members of a cluster share, and its bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::Hasher;
use std::time::Duration;

use playhouse_actor::wire::{Codec, WireError};
use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher13;

/// The number of predecessors whose fingerprints a view keeps. A member that is further behind cannot check the lineage.
pub const ANCESTORS_MAX: usize = 64;

/// The largest number of slots.
pub const SLOTS_MAX: usize = 1 << 16;

/// The first byte of an encoded view.
const FORMAT: u8 = 1;

/// The incarnation of a theater. A theater that has left or was declared dead joins again as another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MemberId(pub u64);

/// The part that a member takes in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Status {
    /// It owns nothing until every other member has acknowledged a view that contains it.
    Joining,
    /// It owns slots.
    Active,
    /// It hands its slots over, and then removes itself.
    Leaving,
}

/// A row of the view.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Member {
    /// The address of its theater.
    pub address: String,
    /// Its part.
    pub status: Status,
    /// The version of its program.
    pub program: u64,
    /// The members that do not reach it.
    pub accusations: BTreeMap<MemberId, Accusation>,
}

/// The claim of one member that another one is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Accusation {
    /// The version of the view that brought it.
    pub version: u64,
    /// Whether the accused member has answered that it lives.
    pub is_refuted: bool,
}

/// The holder of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Holder<M = MemberId> {
    /// No member; the last one has closed the slot.
    Vacant,
    /// No member; the last one was declared dead.
    Orphaned,
    /// A member that may open the slot at once.
    Owned(M),
    /// A member that waits before it opens the slot, because the last holder was declared dead.
    Inherited(M),
    /// A member that closes the slot for another one.
    Moving {
        /// The owner until it has closed the slot.
        from: M,
        /// The next owner.
        to: M,
    },
}

impl<M> Holder<M> {
    /// Replaces each member.
    fn try_map<N>(self, mut map: impl FnMut(M) -> Option<N>) -> Option<Holder<N>> {
        Some(match self {
            Holder::Vacant => Holder::Vacant,
            Holder::Orphaned => Holder::Orphaned,
            Holder::Owned(owner) => Holder::Owned(map(owner)?),
            Holder::Inherited(owner) => Holder::Inherited(map(owner)?),
            Holder::Moving { from, to } => Holder::Moving { from: map(from)?, to: map(to)? },
        })
    }
}

impl Holder {
    /// Returns the member that may run the slot.
    pub fn owner(self) -> Option<MemberId> {
        match self {
            Holder::Vacant | Holder::Orphaned => None,
            Holder::Owned(owner) | Holder::Inherited(owner) | Holder::Moving { from: owner, .. } => Some(owner),
        }
    }
}

/// A share of the cluster's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Slot<M = MemberId> {
    /// The number of the current ownership. It rises by one whenever the slot gets an owner.
    pub epoch: u64,
    /// The owner, if the slot has one.
    pub holder: Holder<M>,
}

/// The durations of a cluster. They are in the view, because members with different ones would run slots twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Timing {
    /// The time between two reads of the ledger, and between two rounds of asks. A write without a result for this long has an unknown
    /// one.
    pub renew: Duration,
    /// The time for which a member may run without a new proof that it lives. A read without a result for this long is given up.
    pub lease: Duration,
    /// The time for which an heir waits. `wait / lease` is the largest ratio between the rates of two clocks.
    pub wait: Duration,
    /// The time for which the members run on their links alone, after the last one has read the ledger. A member that finds only dead
    /// ones in the ledger waits for it. No value can serve both: a theater cannot tell a cluster without a ledger from a dead one.
    pub outage: Duration,
}

impl Timing {
    /// Returns whether the durations are in order.
    pub(crate) fn is_possible(&self) -> bool {
        Duration::ZERO < self.renew && self.renew < self.lease && self.lease < self.wait
    }

    /// Returns the longest time of this clock in which `time` may pass on another one.
    pub(crate) fn stretch(&self, time: Duration) -> Duration {
        let nanos = time.as_nanos().saturating_mul(self.wait.as_nanos()).div_ceil(self.lease.as_nanos());
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Returns the time between a request that has failed and the next one.
    pub(crate) fn pause(&self) -> Duration {
        self.renew / 4
    }
}

/// The one value under the key `view`.
///
/// INVARIANT: [`View::check`] returns no error. The functions of this file keep it; [`View::decode`] refuses other bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// The random number of the cluster.
    pub cluster: u64,
    /// The durations of all members.
    pub timing: Timing,
    /// The number of writes since the cluster began.
    pub version: u64,
    /// The fingerprints of the last predecessors, the direct one last.
    pub ancestors: Vec<u64>,
    /// All members, joining and leaving ones included.
    pub members: BTreeMap<MemberId, Member>,
    /// All slots.
    pub slots: Vec<Slot>,
}

/// The encoded form: slots name members by their place in the list, which is shorter than an incarnation.
#[derive(Serialize, Deserialize)]
struct Encoded {
    cluster: u64,
    timing: Timing,
    version: u64,
    ancestors: Vec<u64>,
    members: Vec<(MemberId, Member)>,
    slots: Vec<Slot<u32>>,
}

/// The reason why bytes are no view.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ViewError {
    /// The bytes have another format.
    Format {
        /// Their first byte, or `None` if there is none.
        found: Option<u8>,
    },
    /// The codec cannot read the bytes.
    Bytes(WireError),
    /// The value breaks a rule of views.
    Rule(String),
}

impl fmt::Display for ViewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ViewError::Format { found: Some(found) } => write!(f, "a view of format {found}: it must be {FORMAT}"),
            ViewError::Format { found: None } => write!(f, "a view of 0 bytes: it begins with its format, {FORMAT}"),
            ViewError::Bytes(error) => write!(f, "the bytes are no view: {error}"),
            ViewError::Rule(rule) => write!(f, "the view breaks a rule: {rule}"),
        }
    }
}

impl std::error::Error for ViewError {}

impl View {
    /// Returns the first view of a cluster, without members.
    ///
    /// # Panics
    /// If `slots` is not from 1 to [`SLOTS_MAX`].
    pub fn first(cluster: u64, timing: Timing, slots: u32) -> View {
        assert!((1..=SLOTS_MAX).contains(&(slots as usize)), "{slots} slots: from 1 to {SLOTS_MAX} are possible");
        let slots = vec![Slot { epoch: 0, holder: Holder::Vacant }; slots as usize];
        View { cluster, timing, version: 1, ancestors: Vec::new(), members: BTreeMap::new(), slots }
    }

    /// Returns the same view with the next version, or `None` after the last version. `fingerprint` is that of this view.
    pub fn successor(&self, fingerprint: u64) -> Option<View> {
        let version = self.version.checked_add(1)?;
        let excess = (self.ancestors.len() + 1).saturating_sub(ANCESTORS_MAX);
        let kept = self.ancestors.iter().skip(excess).copied();
        let ancestors = kept.chain([fingerprint]).collect();
        Some(View { version, ancestors, ..self.clone() })
    }

    /// Returns whether this view came from the one with this cluster, version and fingerprint, by one or more writes. A view
    /// that lies more than [`ANCESTORS_MAX`] writes back is not recognised.
    pub fn is_after(&self, cluster: u64, version: u64, fingerprint: u64) -> bool {
        let Some(back) = self.version.checked_sub(version) else { return false };
        let index = usize::try_from(back).ok().and_then(|back| self.ancestors.len().checked_sub(back));
        let ancestor = index.and_then(|index| self.ancestors.get(index));
        self.cluster == cluster && ancestor == Some(&fingerprint)
    }

    /// Returns the hash of the bytes of this view, which include the fingerprints of its predecessors.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = SipHasher13::new();
        hasher.write(&self.encode());
        hasher.finish()
    }

    /// Removes members, with their accusations, and gives their slots to active ones.
    ///
    /// Each slot gets at most one new epoch. [`View::check`] therefore bounds the epochs by the version.
    pub fn remove(&mut self, removed: &BTreeSet<MemberId>) {
        self.members.retain(|id, _| !removed.contains(id));
        for member in self.members.values_mut() {
            member.accusations.retain(|accuser, _| !removed.contains(accuser));
        }
        let mut loads = self.loads();
        for slot in &mut self.slots {
            let is_removed = |id: MemberId| removed.contains(&id);
            let holder = match slot.holder {
                Holder::Owned(owner) | Holder::Inherited(owner) if is_removed(owner) => lightest(&mut loads),
                Holder::Moving { from, to } if is_removed(from) && is_removed(to) => lightest(&mut loads),
                Holder::Moving { from, to } if is_removed(from) => Holder::Inherited(to),
                // The owner has perhaps closed the slot already. A new epoch makes it open the slot again.
                Holder::Moving { from, to } if is_removed(to) => Holder::Owned(from),
                _ => continue,
            };
            slot.epoch += u64::from(holder != Holder::Orphaned);
            slot.holder = holder;
        }
    }

    /// Gives a member the slots that have no owner.
    pub fn take_free_slots(&mut self, member: MemberId) {
        for slot in &mut self.slots {
            slot.holder = match slot.holder {
                Holder::Vacant => Holder::Owned(member),
                Holder::Orphaned => Holder::Inherited(member),
                _ => continue,
            };
            slot.epoch += 1;
        }
    }

    /// Returns the number of slots of each active member, those that move to it included.
    pub fn loads(&self) -> BTreeMap<MemberId, usize> {
        let active = self.members.iter().filter(|(_, member)| member.status == Status::Active);
        let mut loads: BTreeMap<MemberId, usize> = active.map(|(id, _)| (*id, 0)).collect();
        for slot in &self.slots {
            let next = if let Holder::Moving { to, .. } = slot.holder { Some(to) } else { slot.holder.owner() };
            if let Some(load) = next.and_then(|next| loads.get_mut(&next)) {
                *load += 1;
            }
        }
        loads
    }

    /// Returns the bytes of this view.
    pub fn encode(&self) -> Vec<u8> {
        let places: BTreeMap<MemberId, u32> = self.members.keys().copied().zip(0..).collect();
        let slot = |slot: &Slot| {
            let holder = slot.holder.try_map(|id| places.get(&id).copied()).expect("a holder is a member");
            Slot { epoch: slot.epoch, holder }
        };
        let encoded = Encoded {
            cluster: self.cluster,
            timing: self.timing,
            version: self.version,
            ancestors: self.ancestors.clone(),
            members: self.members.clone().into_iter().collect(),
            slots: self.slots.iter().map(slot).collect(),
        };
        let mut bytes = vec![FORMAT];
        Codec::Positional.write(&encoded, &mut bytes).expect("its types can all be written");
        bytes
    }

    /// Reads the bytes of a view.
    ///
    /// # Errors
    /// The bytes have another format, are no view, or break a rule of views.
    pub fn decode(bytes: &[u8]) -> Result<View, ViewError> {
        let Some((&FORMAT, bytes)) = bytes.split_first() else {
            return Err(ViewError::Format { found: bytes.first().copied() });
        };
        let encoded: Encoded = Codec::Positional.read(bytes).map_err(ViewError::Bytes)?;
        let ids: Vec<MemberId> = encoded.members.iter().map(|(id, _)| *id).collect();
        if !ids.is_sorted_by(|one, next| one < next) {
            return Err(ViewError::Rule("the members are not in order".to_owned()));
        }
        let slot = |(index, slot): (usize, Slot<u32>)| {
            let holder = slot.holder.try_map(|place| ids.get(place as usize).copied());
            let holder = holder.ok_or_else(|| ViewError::Rule(format!("slot {index}: its holder is no member")))?;
            Ok(Slot { epoch: slot.epoch, holder })
        };
        let view = View {
            cluster: encoded.cluster,
            timing: encoded.timing,
            version: encoded.version,
            ancestors: encoded.ancestors,
            members: encoded.members.into_iter().collect(),
            slots: encoded.slots.into_iter().enumerate().map(slot).collect::<Result<_, _>>()?,
        };
        view.check()?;
        Ok(view)
    }

    /// Checks the rules of views.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), ViewError> {
        let rule = |is_kept: bool, rule: fmt::Arguments<'_>| {
            if is_kept { Ok(()) } else { Err(ViewError::Rule(rule.to_string())) }
        };
        let View { version, .. } = *self;
        rule(self.timing.is_possible(), format_args!("{:?}: 0 < renew < lease < wait must hold", self.timing))?;
        rule(version > 0, format_args!("version 0: the first one is 1"))?;
        let ancestors = usize::try_from(version - 1).map_or(ANCESTORS_MAX, |before| before.min(ANCESTORS_MAX));
        rule(
            self.ancestors.len() == ancestors,
            format_args!("{} ancestors: version {version} has {ancestors}", self.ancestors.len()),
        )?;
        let slots = self.slots.len();
        rule((1..=SLOTS_MAX).contains(&slots), format_args!("{slots} slots: from 1 to {SLOTS_MAX} are possible"))?;
        for (id, member) in &self.members {
            for (accuser, accusation) in &member.accusations {
                let is_other = accuser != id && self.members.contains_key(accuser);
                rule(is_other, format_args!("{id:?} is accused by {accuser:?}: that must be another member"))?;
                rule(accusation.version <= version, format_args!("{id:?}: an accusation of a later version"))?;
            }
        }
        let may_own = |id: MemberId| self.members.get(&id).is_some_and(|member| member.status != Status::Joining);
        for (index, slot) in self.slots.iter().enumerate() {
            rule(
                slot.epoch <= version,
                format_args!("slot {index}: epoch {} is above the version {version}", slot.epoch),
            )?;
            if let Some(owner) = slot.holder.owner() {
                rule(may_own(owner), format_args!("slot {index}: {owner:?} owns it, and has not been active"))?;
                rule(slot.epoch > 0, format_args!("slot {index}: it has an owner and no epoch"))?;
            }
            if let Holder::Moving { from, to } = slot.holder {
                rule(from != to && may_own(to), format_args!("slot {index}: it moves to {to:?}"))?;
            }
        }
        Ok(())
    }
}

/// Returns the active member with the fewest slots as the heir of one more.
fn lightest(loads: &mut BTreeMap<MemberId, usize>) -> Holder {
    let Some((id, load)) = loads.iter_mut().min_by_key(|(_, load)| **load) else { return Holder::Orphaned };
    *load += 1;
    Holder::Inherited(*id)
}
