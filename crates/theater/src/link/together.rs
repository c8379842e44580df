//! Groups that move, at a link: see [`crate::journey`].

use std::sync::atomic::AtomicUsize;

use playhouse_actor::away::Berth;
use playhouse_actor::wire::{Coming, Moves, Pack, Spawns};
use playhouse_actor::{GroupName, MigrateError};

use super::moves::{Guest, Ready, received, unwritable};
use super::*;
use crate::directory::{Far, Return};
use crate::moves::{Done, Gone};

/// Members of a group that were read, by their numbers; or why one cannot be.
pub(super) type Party = FxHashMap<u32, Result<Guest, String>>;

/// A group that comes.
pub(crate) struct Company {
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
    /// Its frame, where that cannot be sent yet: the theater that it came from is still to say that it has heard of that.
    held: Option<Vec<u8>>,
}

/// What is sent when all frames of the members have been.
struct Last {
    link: Arc<Link>,
    left: AtomicUsize,
    /// A member's frame could not be sent: why.
    failed: Mutex<Option<WireError>>,
    send: Mutex<Option<Box<dyn FnOnce(Result<(), WireError>) + Send>>>,
}

impl Last {
    /// One more has been sent.
    fn sent(&self, sent: Result<bool, WireError>) {
        if let Err(error) = sent {
            lock(&self.failed).get_or_insert(error);
        }
        // AcqRel: the last one sees what the others have noted.
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1
            && let Some(send) = lock(&self.send).take()
        {
            send(lock(&self.failed).take().map_or(Ok(()), Err));
        }
    }
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
        let is_unheard = lock(&self.directory.unheard).contains_key(&born.key());
        let held = if is_unheard {
            let mut bytes = Vec::new();
            write(&mut bytes).map_err(unwritable)?;
            Some(bytes)
        } else {
            let lost = |error| if self.is_lost() { MigrateError::TheaterLost } else { unwritable(error) };
            self.send(Lane::Normal, write).map_err(lost)?;
            None
        };
        Ok(Packed { at, id, moves, born, held })
    }

    /// The members that were sent as this journey do not go.
    pub(crate) fn say_apart(&self, of: u64) {
        // It does not matter if it cannot be said: then they are forgotten with the link.
        let _ = self.send(Lane::Normal, |out| Head::Apart { of }.write(out));
    }

    /// The members of a group have been packed, and go.
    pub(crate) fn send_together(self: &Arc<Self>, group: GroupName, of: u64, mut members: Vec<Packed>, done: Done) {
        {
            let mut leaving = lock(&self.directory.leaving);
            leaving.extend(members.iter().map(|member| (member.id, None)));
        }
        let held: Vec<((u64, u64, u64), Vec<u8>)> =
            members.iter_mut().filter_map(|member| Some((member.born.key(), member.held.take()?))).collect();
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
        let link = Arc::clone(self);
        let send = move |sent: Result<(), WireError>| {
            if let Err(error) = sent {
                link.say_apart(of);
                return answer(Err(AskError::Unreachable(error.to_string())));
            }
            // On an error the answer says it.
            let _ = link.ask_with(answer, Lane::Normal, |ask, out| Head::Together { ask, of, group, count }.write(out));
        };
        let last = Arc::new(Last {
            link: Arc::clone(self),
            left: AtomicUsize::new(held.len() + 1),
            failed: Mutex::default(),
            send: Mutex::new(Some(Box::new(send))),
        });
        for (born, bytes) in held {
            let last = Arc::clone(&last);
            let send = move || {
                let sent = last.link.send(Lane::Normal, |out| {
                    out.extend_from_slice(&bytes);
                    Ok(())
                });
                last.sent(sent);
            };
            let mut unheard = lock(&self.directory.unheard);
            if let Some(unheard) = unheard.get_mut(&born) {
                unheard.sends = Some(Box::new(send));
            } else {
                drop(unheard);
                send();
            }
        }
        last.sent(Ok(true));
    }

    /// The other theater has said what has become of them, or is lost.
    fn arrived_there(self: &Arc<Self>, members: Vec<Packed>, received: Result<Vec<Seat>, MigrateError>, done: Done) {
        let ways = received.and_then(|seats| {
            let way = |(member, seat): (&Packed, Seat)| {
                let far = Far { address: self.address.or(seat.address), ..Far::from(seat) };
                // They have come there, and die with that theater: then they go on from here.
                let proxy = self.adopt(member.id, &far).map_err(|_| MigrateError::TheaterLost)?;
                Ok((far, Arc::new(proxy) as Arc<dyn Carrier>))
            };
            members.iter().zip(seats).map(way).collect::<Result<Vec<_>, _>>()
        });
        let back: Vec<Return> = {
            let mut leaving = lock(&self.directory.leaving);
            members.iter().filter_map(|member| leaving.remove(&member.id).flatten()).collect()
        };
        let ways = match (ways, back.first()) {
            (Ok(ways), _) => Ok(ways),
            // The theater that they were in for a moment is lost, and they were not.
            (Err(_), Some(back)) => {
                let at = Far { theater: back.link.incarnation, address: None, slot: 0, life: 0, seal: 0 };
                Ok(members.iter().map(|_| (at, Arc::new(Gone) as Arc<dyn Carrier>)).collect())
            }
            (Err(why), None) => Err(why),
        };
        match &ways {
            Ok(ways) => {
                for (Packed { id, moves, born, .. }, (at, carrier)) in members.iter().zip(ways) {
                    let way = Arc::default();
                    self.directory.note_left(*id, *at, &way);
                    (moves.leave)(*id, Arc::clone(carrier), way);
                    // It does not matter if it cannot be said: then the other theater hears that the link is lost.
                    let Far { theater, slot, life, .. } = *born;
                    let _ = self.send(Lane::Normal, |out| Head::Heard { theater, slot, life }.write(out));
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
        let guest = self.read_actor(kind, born, bytes).map_err(|error| error.to_string());
        lock(&self.parties).entry(of).or_default().insert(at, guest);
    }

    pub(super) fn forget_party(&self, of: u64) {
        let party = lock(&self.parties).remove(&of);
        drop(party);
    }

    pub(super) fn take_together(&self, ask: u64, of: u64, group: GroupName, count: u32) {
        let mut party = lock(&self.parties).remove(&of).unwrap_or_default();
        let guest = |at| match party.remove(&at) {
            Some(guest) => guest.map_err(|why| (at, why)),
            None => Err((at, "it was not sent".to_owned())),
        };
        match (0..count).map(guest).collect::<Result<Vec<Guest>, _>>() {
            Ok(guests) => self.let_in_together(Company { ask, group, guests }),
            Err(why) => self.say_received(ask, &Received::Err(why)),
        }
    }

    /// Lets a group in, and says so; where one of them has left here and is not known to have come anywhere, when that is known.
    pub(super) fn let_in_together(&self, company: Company) {
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

    fn install_together(&self, Company { group, guests, .. }: Company) -> Result<Vec<Seat>, (u32, WireError)> {
        let house = self.house().ok_or_else(|| (0, WireError::new("it is closing")))?;
        let stage = self.directory.groups().stage_of(group, || self.core.next_stage());
        // Before any of them can go on from here; and who asks which of them are here hears of all or of none.
        let mut unheard = lock(&self.directory.unheard);
        let mut begun: Vec<(ActorId, Coming, Option<Far>)> = Vec::new();
        for (guest, at) in guests.iter().zip(0..) {
            let begins = match self.place_of(&guest.born) {
                Some(place) => {
                    let was = self.directory.at(place);
                    house.begin_arrival(place, &guest.moves).map(|coming| (place, coming, was))
                }
                // So that nobody hears of it by another name, it comes to a place here as well.
                None => Ok((self.place_beside(group, stage, guest), Coming::Freely(Vec::new()), None)),
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
        let mut seats = Vec::new();
        for (guest, (id, coming, _)) in guests.into_iter().zip(begun) {
            self.directory.note_moved(id, None);
            (guest.install)(&self.core, Some((id, coming))).map_err(|error| (0, error))?;
            // Relaxed: it is counted only.
            self.directory.came.fetch_add(1, Ordering::Relaxed);
            unheard.insert(guest.born.key(), crate::directory::Unheard { link: self.number, sends: None });
            seats.push(self.directory.seat(id, house.listens).map_err(|error| (0, error))?);
        }
        Ok(seats)
    }

    /// A place for a member of a group that was never heard of here.
    fn place_beside(&self, group: GroupName, stage: u16, guest: &Guest) -> ActorId {
        let id = (guest.entry.place)(&self.core, Berth::Group(stage), Arc::new(Gone));
        self.directory.note(id, guest.born);
        self.directory.groups().join(group, id, (guest.entry.actor_name)());
        id
    }
}
