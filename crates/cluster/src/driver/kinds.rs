//! The kinds of virtual actors that were registered in a member.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// A value for each registered type.
#[derive(Default)]
pub(crate) struct Kinds(Mutex<BTreeMap<TypeId, Box<dyn Any + Send>>>);

impl Kinds {
    /// Sets the value of the kind `A`.
    pub(crate) fn set<A: 'static, V: Send + 'static>(&self, value: V) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(TypeId::of::<A>(), Box::new(value));
    }

    /// Returns the value of the kind `A`.
    pub(crate) fn get<A: 'static, V: Copy + 'static>(&self) -> Option<V> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&TypeId::of::<A>())?.downcast_ref().copied()
    }
}
