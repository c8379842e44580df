//! Names of actors and types in reports.
//!
//! A report has an actor's address and no access to its state, which another thread may be using. This table therefore
//! keeps the names of living actors for reports that print an address. Actors without a name never enter it.

use std::any::type_name;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockWriteGuard};

use crate::actor::{Actor, ActorId};

static NAMES: RwLock<BTreeMap<ActorId, Arc<str>>> = RwLock::new(BTreeMap::new());

fn names_mut() -> RwLockWriteGuard<'static, BTreeMap<ActorId, Arc<str>>> {
    NAMES.write().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the name of the actor `id`, if it has one and is alive.
pub fn name_of(id: ActorId) -> Option<Arc<str>> {
    NAMES.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
}

/// The name of one actor. Reports know it until the last clone of its `Arc` is dropped. The actor holds one clone. Its
/// spawner holds another, until both have recorded the name's owner.
pub(crate) struct Name {
    text: Arc<str>,
    id: OnceLock<ActorId>,
}

impl Name {
    pub(crate) fn new(text: String) -> Arc<Name> {
        Arc::new(Name { text: text.into(), id: OnceLock::new() })
    }

    /// Records the owner of the name. Both the spawner and the actor call this, because either may be ahead of the
    /// other.
    pub(crate) fn belongs_to(&self, id: ActorId) {
        self.id.get_or_init(|| {
            names_mut().insert(id, Arc::clone(&self.text));
            id
        });
    }

    pub(crate) fn text(&self) -> &Arc<str> {
        &self.text
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        if let Some(id) = self.id.get() {
            names_mut().remove(id);
        }
    }
}

/// A type without its module path: `Cache<String>` for `shop::Cache<alloc::string::String>`.
#[derive(Clone, Copy, Debug)]
pub struct ShortType(pub &'static str);

impl fmt::Display for ShortType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_end_of_path = |c: char| !(c.is_alphanumeric() || c == '_' || c == ':');
        for path in self.0.split_inclusive(is_end_of_path) {
            f.write_str(path.rfind("::").map_or(path, |at| &path[at + 2..]))?;
        }
        Ok(())
    }
}

/// An actor in a report: `Account "alice"`, or `Account#1.7f20.0` if it has no name.
#[derive(Clone, Copy)]
pub(crate) struct Label {
    actor: &'static str,
    pub(crate) id: ActorId,
}

impl Label {
    pub(crate) fn of<A: Actor>(id: ActorId) -> Label {
        Label::of_type(type_name::<A>(), id)
    }

    /// Returns the label of an actor of which only the type's name is known, like [`Label::of`].
    pub(crate) fn of_type(actor: &'static str, id: ActorId) -> Label {
        Label { actor, id }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let actor = ShortType(self.actor);
        match name_of(self.id) {
            Some(name) => write!(f, "{actor} {name:?}"),
            None => write!(f, "{actor}{}", self.id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ShortType;

    #[test]
    fn a_type_is_shown_without_its_modules() {
        for (path, short) in [
            ("shop::Till", "Till"),
            ("u8", "u8"),
            ("shop::Cache<alloc::string::String>", "Cache<String>"),
            ("a::B<(a::C, [d::E; 3]), &f::G<h::I>>", "B<(C, [E; 3]), &G<I>>"),
            ("alloc::boxed::Box<dyn a::B + core::marker::Send>", "Box<dyn B + Send>"),
        ] {
            assert_eq!(ShortType(path).to_string(), short);
        }
    }
}
