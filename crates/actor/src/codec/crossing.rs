//! The purpose for which a thread writes or reads values.

use std::cell::Cell;

thread_local! {
    static CROSSING: Cell<Crossing> = const { Cell::new(Crossing::Nowhere) };
}

/// Returns the purpose for which this thread writes or reads values.
pub(crate) fn crossing() -> Crossing {
    CROSSING.get()
}

/// The purpose for which a thread writes or reads values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Crossing {
    /// Nothing is written or read.
    Nowhere,
    /// A value for another theater is written or read.
    Theaters,
    /// The shape of a type is read.
    Shape,
}

/// Calls `f`, which writes or reads values for this purpose.
pub(crate) fn during<R>(crossing: Crossing, f: impl FnOnce() -> R) -> R {
    struct Back(Crossing);
    impl Drop for Back {
        fn drop(&mut self) {
            CROSSING.set(self.0);
        }
    }
    let _back = Back(CROSSING.replace(crossing));
    f()
}

/// Calls `f`, which reads the shapes of types.
pub(crate) fn looking_at_shapes<R>(f: impl FnOnce() -> R) -> R {
    during(Crossing::Shape, f)
}
