//! What `#[warn_needless_clones]` writes: where it has found that a name is not used after its clone, the types decide here whether
//! the clone was one of the value, and not one behind a reference or a guard. Deciding is choosing a method, so nothing of it is
//! there when the program runs.

use std::marker::PhantomData;

/// The type of an original, as a value.
#[derive(Debug)]
pub struct Original<T>(PhantomData<fn() -> T>);

/// The types of an original and its clone.
#[derive(Debug)]
pub struct Cloned<T, U>(PhantomData<fn() -> (T, U)>);

/// The type of `original`.
#[must_use]
pub fn original<T>(_: &T) -> Original<T> {
    Original(PhantomData)
}

impl<T> Original<T> {
    /// The types of both.
    #[must_use]
    pub fn and<U>(self, _: &U) -> Cloned<T, U> {
        Cloned(PhantomData)
    }
}

/// Chosen where the clone is one of the value.
pub trait Needless: Sized {
    /// The warning.
    #[deprecated(note = "nothing uses the original after this clone, so it can be moved instead")]
    fn cloned(&self) {}
}

/// Chosen where it is not, or who knows.
pub trait Needed {
    /// No warning.
    fn cloned(&self) {}
}

impl<T: Clone> Needless for Cloned<T, T> {}
impl<T, U> Needed for &Cloned<T, U> {}

// Preferred to the traits.
impl<T: ?Sized> Cloned<&T, &T> {
    /// A reference was copied.
    pub fn cloned(&self) {}
}
