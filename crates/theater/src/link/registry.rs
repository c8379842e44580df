//! The messages and actors that this theater and its peers take: by name, and on a link by number.

use std::any::TypeId;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, OnceLock};

use playhouse_actor::ActorId;
use playhouse_actor::wire::{self, Codec, Controls, Handles, MigrationVTable, Spawns, WireError};
use rustc_hash::FxHashMap;

use crate::error::{FindError, PublishError, TheaterError};
use crate::link::frame::{GREETING_BYTES_MAX, KINDS_MAX, Kind, THEATERS_MAX};
use crate::lock::lock;

/// Most bytes of all kinds in their written form: a greeting also has two lists of theaters, and some addresses and
/// names.
const KINDS_BYTES_MAX: usize = GREETING_BYTES_MAX as usize - 2 * 10 * THEATERS_MAX - 4 * 1024;

/// The messages and actors that this theater takes, and its published actors.
pub(crate) struct Registry {
    entries: &'static Entries,
    published: Mutex<HashMap<String, Published>>,
}

struct Published {
    id: ActorId,
    actor: &'static str,
}

/// All entries of the binary.
struct Entries {
    messages: Vec<&'static Handles>,
    spawns: Vec<&'static Spawns>,
    /// The kinds of the messages, and behind them those of the spawns.
    kinds: Vec<Kind>,
    controls: FxHashMap<TypeId, Controls>,
    moves: FxHashMap<TypeId, (MigrationVTable, &'static Spawns)>,
}

impl Entries {
    fn collect() -> Result<Entries, TheaterError> {
        // Sorted by name, because the binary's order depends on the linker, and other theaters learn the numbers.
        let mut messages: Vec<_> = wire::handles().collect();
        messages.sort_by_key(|entry| ((entry.actor_name)(), (entry.message_name)()));
        let mut spawns: Vec<_> = wire::spawns().collect();
        spawns.sort_by_key(|entry| (entry.actor_name)());
        let takes = messages.iter().map(|entry| Kind {
            actor: (entry.actor_name)().to_owned(),
            message: Some((entry.message_name)().to_owned()),
            schema: (entry.schema)(),
        });
        let starts = spawns.iter().map(|entry| Kind {
            actor: (entry.actor_name)().to_owned(),
            message: None,
            schema: (entry.schema)(),
        });
        let kinds: Vec<Kind> = takes.chain(starts).collect();
        let bytes = postcard::to_extend(&kinds, Vec::new()).map_or(usize::MAX, |bytes| bytes.len());
        if kinds.len() > KINDS_MAX || bytes > KINDS_BYTES_MAX {
            let found = format!("{} kinds of messages and actors with names of {bytes} bytes", kinds.len());
            let why = format!("{found}, and other theaters read at most {KINDS_MAX} with {KINDS_BYTES_MAX} bytes");
            return Err(TheaterError::System(why));
        }
        let mut seen = HashSet::new();
        let twice = kinds.iter().filter(|kind| !seen.insert((&kind.actor, &kind.message)));
        let twice: Vec<String> = twice
            .map(|kind| match &kind.message {
                Some(message) => format!("the message {message:?} of the actor {:?}", kind.actor),
                None => format!("the actor {:?}", kind.actor),
            })
            .collect();
        if !twice.is_empty() {
            return Err(TheaterError::Names(twice));
        }
        let of_messages = messages.iter().map(|entry| ((entry.resident)(), entry.controls));
        let of_spawns = spawns.iter().map(|entry| ((entry.resident)(), entry.controls));
        let controls = of_messages.chain(of_spawns).collect();
        let moves = spawns.iter().filter_map(|entry| Some(((entry.resident)(), (entry.moves?, *entry)))).collect();
        Ok(Entries { messages, spawns, kinds, controls, moves })
    }
}

impl Registry {
    /// Creates a registry with all entries of the binary.
    ///
    /// # Errors
    /// Two entries share a name, or there are more than other theaters read.
    pub(crate) fn new() -> Result<Registry, TheaterError> {
        // The theaters of a process share the entries, because the shapes of all types are surveyed for them.
        static ENTRIES: OnceLock<Entries> = OnceLock::new();
        let entries = match ENTRIES.get() {
            Some(entries) => entries,
            None => {
                let entries = Entries::collect()?;
                ENTRIES.get_or_init(|| entries)
            }
        };
        Ok(Registry { entries, published: Mutex::default() })
    }

    /// Returns the list for the other end of a link.
    pub(crate) fn kinds(&self) -> &[Kind] {
        &self.entries.kinds
    }

    pub(crate) fn message(&self, kind: u32) -> Option<&'static Handles> {
        self.entries.messages.get(kind as usize).copied()
    }

    /// Returns the entry by which actors of this type take this message.
    pub(crate) fn message_of(&self, actor: TypeId, message: TypeId) -> Option<&'static Handles> {
        self.entries.messages.iter().copied().find(|entry| ((entry.actor)(), (entry.message)()) == (actor, message))
    }

    pub(crate) fn spawn(&self, kind: u32) -> Option<&'static Spawns> {
        self.entries.spawns.get((kind as usize).checked_sub(self.entries.messages.len())?).copied()
    }

    /// Returns the controls of the actor.
    pub(crate) fn controls(&self, id: ActorId) -> Option<&Controls> {
        self.entries.controls.get(&id.address().resident_type()?)
    }

    /// Ends an arrival buffer whose mail has no receiver.
    pub(crate) fn forget_arrival_buffer(&self, arrival_buffer: ActorId) {
        if let Some(controls) = self.controls(arrival_buffer) {
            (controls.forget)(arrival_buffer);
        }
    }

    /// Returns the functions that migrate the actor, if it is mobile.
    pub(crate) fn migration_vtable(&self, id: ActorId) -> Option<&(MigrationVTable, &'static Spawns)> {
        self.entries.moves.get(&id.address().resident_type()?)
    }

    /// Returns whether actors of this type of resident are mobile.
    pub(crate) fn is_mobile(&self, resident: TypeId) -> bool {
        self.entries.moves.contains_key(&resident)
    }

    /// Publishes `id` as `name`, unless another living actor has that name.
    pub(crate) fn publish(&self, name: String, id: ActorId, actor: &'static str) -> Result<(), PublishError> {
        match self.published().entry(name) {
            Entry::Occupied(entry) if entry.get().id != id && !entry.get().id.address().is_stale() => {
                Err(PublishError { name: entry.key().clone(), actor: entry.get().actor, id: entry.get().id })
            }
            entry => {
                entry.insert_entry(Published { id, actor });
                Ok(())
            }
        }
    }

    pub(crate) fn replace(&self, name: String, id: ActorId, actor: &'static str) {
        self.published().insert(name, Published { id, actor });
    }

    pub(crate) fn unpublish(&self, name: &str) -> bool {
        self.published().remove(name).is_some()
    }

    /// Returns the actor that is published as `name`, if it is an `actor`.
    pub(crate) fn find<R>(
        &self,
        name: &str,
        actor: &str,
        name_of: impl FnOnce(ActorId) -> Result<R, WireError>,
    ) -> Result<R, FindError> {
        let mut published = self.published();
        let unknown = || FindError::Unknown(name.to_owned());
        let found = published.get(name).ok_or_else(unknown)?;
        if found.id.address().is_stale() {
            published.remove(name);
            return Err(unknown());
        }
        if found.actor != actor {
            let (name, expected, found) = (name.to_owned(), actor.to_owned(), found.actor.to_owned());
            return Err(FindError::WrongType { name, expected, found });
        }
        name_of(found.id).map_err(|error| FindError::Unreachable(error.to_string()))
    }

    fn published(&self) -> std::sync::MutexGuard<'_, HashMap<String, Published>> {
        lock(&self.published)
    }

    /// Returns the table of the messages for the theater that takes `kinds`.
    pub(crate) fn table(&self, kinds: &[Kind]) -> Table {
        let codec = |theirs: &Kind, ours: &Kind| {
            if theirs.schema.is_some() && theirs.schema == ours.schema { Codec::Positional } else { Codec::Named }
        };
        let numbers: HashMap<(&str, Option<&str>), u32> =
            kinds.iter().zip(0..).map(|(kind, number)| ((&*kind.actor, kind.message.as_deref()), number)).collect();
        let number = |actor: &'static str, message| numbers.get(&(actor, message)).copied();
        let mut table =
            Table { messages: FxHashMap::default(), spawns: FxHashMap::default(), names: FxHashMap::default() };
        let (messages, spawns) = self.entries.kinds.split_at(self.entries.messages.len());
        for (entry, ours) in self.entries.messages.iter().zip(messages) {
            let names = ((entry.actor_name)(), (entry.message_name)());
            let kind = number(names.0, Some(names.1)).map(|number| {
                table.names.insert(number, names);
                (number, codec(&kinds[number as usize], ours))
            });
            table.messages.insert(((entry.actor)(), (entry.message)()), kind);
        }
        for (entry, ours) in self.entries.spawns.iter().zip(spawns) {
            let kind = number((entry.actor_name)(), None).map(|number| (number, codec(&kinds[number as usize], ours)));
            table.spawns.insert((entry.actor)(), kind);
        }
        table
    }
}

/// The kinds of another theater: its numbers by type. `None`: it does not take that type.
pub(crate) struct Table {
    messages: FxHashMap<(TypeId, TypeId), Option<(u32, Codec)>>,
    spawns: FxHashMap<TypeId, Option<(u32, Codec)>>,
    /// Actor and message of the other theater's numbers, as far as this theater knows them.
    names: FxHashMap<u32, (&'static str, &'static str)>,
}

impl Table {
    pub(crate) fn message(&self, actor: TypeId, message: TypeId, name: &str) -> Result<(u32, Codec), WireError> {
        match self.messages.get(&(actor, message)) {
            Some(Some(found)) => Ok(*found),
            Some(None) => Err(WireError::new(format!("the other theater's actors of this type take no {name}"))),
            None => Err(WireError::new(format!(
                "{name} is no message that the actor takes from other theaters: see `#[actor(remote)]`, and `#[actor(more, remote)]` for a further block"
            ))),
        }
    }

    pub(crate) fn spawn(&self, actor: TypeId, name: &str) -> Result<(u32, Codec), WireError> {
        match self.spawns.get(&actor) {
            Some(Some(found)) => Ok(*found),
            Some(None) => Err(WireError::new(format!("the other theater cannot start a {name}"))),
            None => Err(WireError::new(format!(
                "{name} cannot be started in other theaters: see `#[actor(remote, spawn)]`"
            ))),
        }
    }

    pub(crate) fn names(&self, kind: u32) -> (&'static str, &'static str) {
        self.names.get(&kind).copied().unwrap_or(("?", "?"))
    }
}
