//! Groups that move, at a link: see [`crate::journey`].

use std::sync::atomic::AtomicUsize;

use playhouse_actor::away::Berth;
use playhouse_actor::wire::{Coming, Moves, Pack, Spawns};
use playhouse_actor::{GroupName, MigrateError};
use playhouse_executor::Way;

use super::moves::{Guest, Ready, received, unwritable};
use super::*;
use crate::directory::{Company, Far, Held, Return, Unheard};
use crate::moves::Done;
use crate::search::Gone;

/// Members of groups that were sent, and wait for the others.
#[derive(Default)]
pub(super) struct Parties {
    by_journey: FxHashMap<u64, Party>,
    /// Members that are kept, and groups that were refused.
    pub(super) members: usize,
    pub(super) bytes: usize,
}

/// The members of a group that are kept, or that it is refused.
enum Party {
    /// Members that were read, by their numbers, or why one cannot be; with their bytes.
    Kept(FxHashMap<u32, (Result<Guest, String>, usize)>),
    /// It is too much. So says this member.
    Refused(u32),
}

impl Parties {
    /// Returns whether a member of so many bytes is kept of this group.
    fn has_room(&self, of: u64, bytes: usize, bytes_max: usize) -> bool {
        let is_refused = matches!(self.by_journey.get(&of), Some(Party::Refused(_)));
        !is_refused && self.members < MEMBERS_MAX && self.bytes + bytes <= bytes_max
    }

    /// Keeps a member, if its group is not refused. Returns one that was sent before under its number.
    fn keep(&mut self, of: u64, at: u32, guest: Result<Guest, String>, bytes: usize) -> Option<Result<Guest, String>> {
        let party = self.by_journey.entry(of).or_insert_with(|| Party::Kept(FxHashMap::default()));
        let Party::Kept(guests) = party else { return Some(guest) };
        let before = guests.insert(at, (guest, bytes));
        (self.members, self.bytes) = (self.members + 1, self.bytes + bytes);
        let (guest, bytes) = before?;
        (self.members, self.bytes) = (self.members - 1, self.bytes - bytes);
        Some(guest)
    }

    /// Nothing is kept of this group but that. Returns what was.
    fn refuse(&mut self, of: u64, at: u32) -> Option<Party> {
        if matches!(self.by_journey.get(&of), Some(Party::Refused(_))) {
            return None;
        }
        let party = self.remove(of);
        self.by_journey.insert(of, Party::Refused(at));
        self.members += 1;
        party
    }

    fn remove(&mut self, of: u64) -> Option<Party> {
        let party = self.by_journey.remove(&of)?;
        match &party {
            Party::Kept(guests) => {
                self.members -= guests.len();
                self.bytes -= guests.values().map(|(_, bytes)| bytes).sum::<usize>();
            }
            Party::Refused(_) => self.members -= 1,
        }
        Some(party)
    }
}

/// A group that comes, and was read.
pub(crate) struct Guests {
    ask: u64,
    group: GroupName,
    guests: Vec<Guest>,
}

/// What a theater says of a group that was sent to it: where its members are, or which of them does not come, and why.
type Received = Result<Vec<Seat>, (u32, String)>;

/// A member of a group that is frozen, and was written.
pub(crate) struct Packed {
    pub(crate) at: u32,
    pub(crate) id: ActorId,
    pub(crate) moves: Moves,
    born: Far,
}

impl Link {
    // -- leaving --------------------------------------------------------------------------------------------------------

    /// Sends the `at`th member of a group, which is frozen, as part of the journey `of`. In its stage.
    pub(crate) fn pack_member(
        &self,
        (of, at): (u64, u32),
        id: ActorId,
        (moves, entry): (Moves, &'static Spawns),
        pack: &Pack<'_>,
    ) -> Result<Packed, MigrateError> {
        let Ready { kind, codec, border, trunk, born } = self.make_ready(id, entry, pack)?;
        let Far { theater, slot, life, seal, .. } = born;
        let write = |out: &mut Vec<u8>| {
            Head::Member { of, at, kind, codec: codec.into(), theater, slot, life, seal }.write(out)?;
            at_border(&border, || {
                Codec::Positional.write(&trunk, out)?;
                (pack.state)(codec, out)
            })
        };
        let lost = |error| if self.is_lost() { MigrateError::TheaterLost } else { unwritable(error) };
        if self.send(Lane::Normal, write).map_err(lost)? {
            // The other members are written when there is room.
            pause_stage(&self.gate);
        }
        Ok(Packed { at, id, moves, born })
    }

    /// The members that were sent as this journey do not go.
    pub(crate) fn say_apart(&self, of: u64) {
        // It does not matter if it cannot be said: then they are forgotten with the link.
        let _ = self.send(Lane::Normal, |out| Head::Apart { of }.write(out));
    }

    /// The members of a group have been packed, and go.
    pub(crate) fn send_together(self: &Arc<Self>, group: GroupName, of: u64, members: Vec<Packed>, done: Done) {
        {
            let mut leaving = lock(&self.directory.leaving);
            leaving.extend(members.iter().map(|member| (member.id, None)));
        }
        let count = members.len() as u32;
        let link = Arc::clone(self);
        let answer: TakeAnswer = Box::new(move |answer| {
            let received = received::<Received>(answer).and_then(|received| {
                received.map_err(|(at, why)| {
                    let why = MigrateError::Refused(why);
                    match members.get(at as usize) {
                        Some(member) => link.directory.of_member(member.id, why),
                        None => why,
                    }
                })
            });
            link.arrived_there(members, received, done);
        });
        // On an error the answer says it.
        let _ = self.ask_with(answer, Lane::Normal, |ask, out| Head::Together { ask, of, group, count }.write(out));
    }

    /// The other theater has said what has become of them, or is lost.
    fn arrived_there(self: &Arc<Self>, members: Vec<Packed>, received: Result<Vec<Seat>, MigrateError>, done: Done) {
        let ways = received.and_then(|seats| {
            let way = |(member, seat): (&Packed, Seat)| {
                let far = Far { address: self.advertised.or(seat.address), ..Far::from(seat) };
                // They have come there, and die with that theater: then they go on from here.
                let proxy = self.adopt(member.id, &far).map_err(|_| MigrateError::TheaterLost)?;
                Ok((far, Arc::new(proxy) as Arc<dyn Carrier>))
            };
            members.iter().zip(seats).map(way).collect::<Result<Vec<_>, _>>()
        });
        let closable: Vec<Arc<Way>> = members.iter().map(|_| Arc::default()).collect();
        let (ways, back) = {
            // Who comes back finds them on their way, or elsewhere.
            let mut leaving = lock(&self.directory.leaving);
            let back: Vec<Return> = members.iter().filter_map(|member| leaving.remove(&member.id).flatten()).collect();
            let ways = match (ways, back.first()) {
                (Ok(ways), _) => Ok(ways),
                // The theater that they were in for a moment is lost, and they were not.
                (Err(_), Some(back)) => {
                    let at = Far { theater: back.link.incarnation, address: None, slot: 0, life: 0, seal: 0 };
                    Ok(members.iter().map(|_| (at, Arc::new(Gone) as Arc<dyn Carrier>)).collect::<Vec<_>>())
                }
                (Err(why), None) => Err(why),
            };
            for ((member, (at, _)), way) in members.iter().zip(ways.iter().flatten()).zip(&closable) {
                self.directory.note_left(member.id, *at, way);
            }
            (ways, back)
        };
        match &ways {
            Ok(ways) => {
                for ((Packed { id, moves, born, .. }, (_, carrier)), way) in members.iter().zip(ways).zip(closable) {
                    (moves.leave)(*id, Arc::clone(carrier), way);
                    let (link, Far { theater, slot, life, seal, .. }) = (Arc::clone(self), *born);
                    // Behind what has waited for it here.
                    let heard = move || {
                        // It does not matter if it cannot be said: then the other theater hears that the link is lost.
                        let _ = link.send(Lane::Normal, |out| Head::Heard { theater, slot, life, seal }.write(out));
                    };
                    (moves.then)(*id, Box::new(heard));
                }
            }
            Err(why) => members.iter().for_each(|member| (member.moves.stay)(member.id, why.clone())),
        }
        for Return { link, arrival } in back {
            link.let_in(arrival);
        }
        done(ways.map(drop));
    }

    // -- coming ---------------------------------------------------------------------------------------------------------

    pub(super) fn take_member(&self, (of, at): (u64, u32), kind: (u32, Codec), born: Far, bytes: &[u8]) {
        let size = bytes.len() + size_of::<Guest>();
        let bytes_max = MEMBER_WINDOWS_MAX * self.window_bytes + RESERVE_BYTES;
        {
            let mut parties = lock(&self.parties);
            if !parties.has_room(of, size, bytes_max) {
                let party = parties.refuse(of, at);
                if parties.members > 2 * MEMBERS_MAX {
                    self.fault(Fault::Members);
                }
                drop(parties);
                return drop(party);
            }
        }
        let guest = self.may_have(&born).and_then(|()| self.read_actor(kind, born, bytes, true));
        // Only the thread that reads the link keeps members.
        let before = lock(&self.parties).keep(of, at, guest.map_err(|error| error.to_string()), size);
        drop(before);
    }

    pub(super) fn forget_party(&self, of: u64) {
        let party = lock(&self.parties).remove(of);
        drop(party);
    }

    pub(super) fn take_together(&self, ask: u64, of: u64, group: GroupName, count: u32) {
        let party = lock(&self.parties).remove(of);
        let mut guests = match party {
            Some(Party::Kept(guests)) => guests,
            Some(Party::Refused(at)) => {
                let why = "more was sent of groups that move than is kept until they are whole".to_owned();
                return self.say_received(ask, &Received::Err((at, why)));
            }
            None => FxHashMap::default(),
        };
        let guest = |at| match guests.remove(&at) {
            Some((guest, _)) => guest.map_err(|why| (at, why)),
            None => Err((at, "it was not sent".to_owned())),
        };
        match (0..count).map(guest).collect::<Result<Vec<Guest>, _>>() {
            Ok(guests) => self.let_in_together(Guests { ask, group, guests }),
            Err(why) => self.say_received(ask, &Received::Err(why)),
        }
    }

    /// Lets a group in, and says so; where one of them has left here and is not known to have come anywhere, when that is known.
    pub(super) fn let_in_together(&self, company: Guests) {
        let places: Vec<ActorId> = company.guests.iter().filter_map(|guest| self.place_of(&guest.born)).collect();
        {
            let mut leaving = lock(&self.directory.leaving);
            if let Some(place) = places.into_iter().find(|place| leaving.contains_key(place)) {
                leaving.insert(place, Some(Return { link: self.this(), arrival: Arrival::Together(company) }));
                return;
            }
        }
        let ask = company.ask;
        let received: Received = self.install_together(company).map_err(|(at, error)| (at, error.to_string()));
        self.say_received(ask, &received);
    }

    fn install_together(&self, Guests { group, guests, .. }: Guests) -> Result<Vec<Seat>, (u32, WireError)> {
        let house = self.house().ok_or_else(|| (0, WireError::new("it is closing")))?;
        let stage = self.directory.groups().stage_of(group, || self.core.next_stage());
        // Before any of them can go on from here; and who asks which of them are here hears of all or of none.
        let mut unheard = lock(&self.directory.unheard);
        let mut begun: Vec<(ActorId, Coming, Far)> = Vec::new();
        for (guest, at) in guests.iter().zip(0..) {
            let begins = match self.place_of(&guest.born) {
                Some(place) => {
                    let was = self.directory.at(place).unwrap_or(guest.born);
                    house.begin_arrival(place, &guest.moves).map(|coming| (place, coming, was))
                }
                // So that nobody hears of it by another name, it comes to a place here as well.
                None => self.place_beside(group, stage, guest).map(|place| {
                    self.directory.note_moved(place, None);
                    (place, Coming::Freely(Vec::new()), guest.born)
                }),
            };
            match begins {
                Ok(begins) => begun.push(begins),
                Err(error) => {
                    for (place, coming, was) in begun {
                        house.call_off(place, coming, was);
                    }
                    return Err((at, error));
                }
            }
        }
        let company = Arc::new(Company {
            members: begun.iter().map(|(id, ..)| *id).collect(),
            unheard: AtomicUsize::new(begun.len()),
        });
        let held = begun.iter().map(|(id, coming, _)| {
            (*id, if matches!(coming, Coming::Freely(_)) { Held::Ready } else { Held::Turning })
        });
        lock(&self.directory.held).extend(held);
        let mut seats = Vec::new();
        for (guest, (id, coming, _)) in guests.into_iter().zip(begun) {
            (guest.install)(&self.core, Some((id, coming))).map_err(|error| (0, error))?;
            // Relaxed: it is counted only.
            self.directory.came.fetch_add(1, Ordering::Relaxed);
            let company = Some(Arc::clone(&company));
            unheard.insert(guest.born.key(), Unheard { link: self.number, sends: None, company });
            seats.push(self.directory.seat(id, house.listens).map_err(|error| (0, error))?);
        }
        drop(unheard);
        self.note_heard_if_lost();
        Ok(seats)
    }

    /// A place for a member of a group that was never heard of here.
    fn place_beside(&self, group: GroupName, stage: u16, guest: &Guest) -> Result<ActorId, WireError> {
        let id = (guest.entry.place)(&self.core, Berth::Group(stage), Arc::new(Gone));
        self.directory.note(self.incarnation, id, guest.born)?;
        self.directory.groups().join(group, id, (guest.entry.actor_name)());
        Ok(id)
    }
}
