//! Common parts of the macros: attributes, types, parameters, errors.

pub(crate) mod arguments;
pub(crate) mod attrs;
pub(crate) mod errors;
pub(crate) mod generics;
pub(crate) mod owned;
pub(crate) mod params;
pub(crate) mod wire;
