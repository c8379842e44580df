//! Code that `#[warn_needless_clones]` generates. The macro finds names that are not used after their clone. The types
//! decide whether the value itself was cloned, and not a reference or a guard to it. The decision is the choice of a
//! method, so it costs nothing at run time.

use std::marker::PhantomData;

/// The type of an original, as a value.
#[derive(Debug)]
pub struct Original<T>(PhantomData<fn() -> T>);

/// The types of an original and its clone.
#[derive(Debug)]
pub struct Cloned<T, U>(PhantomData<fn() -> (T, U)>);

/// Returns the type of `original`.
#[must_use]
pub fn original<T>(_: &T) -> Original<T> {
    Original(PhantomData)
}

impl<T> Original<T> {
    /// Returns the types of both.
    #[must_use]
    pub fn and<U>(self, _: &U) -> Cloned<T, U> {
        Cloned(PhantomData)
    }
}

/// Chosen if the value itself was cloned.
pub trait Needless: Sized {
    /// Causes the warning.
    #[deprecated(note = "nothing uses the original after this clone, so it can be moved instead")]
    fn cloned(&self) {}
}

/// Chosen if the value was not cloned, or if that is unknown.
pub trait Needed {
    /// Causes no warning.
    fn cloned(&self) {}
}

impl<T: Clone> Needless for Cloned<T, T> {}
impl<T, U> Needed for &Cloned<T, U> {}

// Inherent methods take precedence over those of the traits.
impl<T: ?Sized> Cloned<&T, &T> {
    /// Does nothing: a reference was copied.
    pub fn cloned(&self) {}
}
