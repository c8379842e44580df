//! Codecs: the bytes of values outside of a process.

pub(crate) mod crossing;
mod named;
pub(crate) mod nesting;
pub(crate) mod shape;

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::crossing::looking_at_shapes;
use crate::codec::nesting::Nested;

/// The codec of values on the wire.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::wire::Codec;
/// let mut bytes = Vec::new();
/// Codec::Named.write(&("ada", 36), &mut bytes)?;
/// assert_eq!(Codec::Named.read::<(String, u32)>(&bytes)?, ("ada".to_owned(), 36));
/// # Ok::<(), playhouse_actor::wire::WireError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Fields in their order, without names: for 2 sides with the same types (postcard).
    Positional,
    /// Fields by name (MessagePack). Unknown fields are ignored. Missing fields get their defaults, if the type has
    /// some.
    Named,
}

/// The error of a value without a wire form, or of bytes that are not the wire form of the type.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::wire::Codec;
/// let error = Codec::Named.read::<u32>(b"no number").unwrap_err();
/// println!("it cannot be read: {error}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireError(String);

impl WireError {
    /// Returns an error with the text `text`.
    pub fn new(text: impl Into<String>) -> WireError {
        WireError(text.into())
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WireError {}

impl Codec {
    /// Appends `value` to `out`. After an error, the appended bytes are no complete value.
    ///
    /// # Errors
    /// Returns the error of the type's `Serialize`, or an error if more than 256 options, lists, maps and enums lie in
    /// one another.
    pub fn write<T: Serialize>(self, value: &T, out: &mut Vec<u8>) -> Result<(), WireError> {
        match self {
            Codec::Positional => {
                let mut serializer = postcard::Serializer { output: Append(out) };
                match value.serialize(Nested::new(&mut serializer)) {
                    Ok(()) => Ok(()),
                    // This codec drops the text of the type's error, but the other codec keeps it.
                    Err(error) => Err(not_written(error, write_named(value, &mut Vec::new()))),
                }
            }
            Codec::Named => write_named(value, out),
        }
    }

    /// Reads a value from all of `bytes`.
    ///
    /// # Errors
    /// Returns an error if the bytes are not the value's wire form, or if bytes follow it. Also returns an error if
    /// more than 256 options, lists, maps and enums lie in one another.
    pub fn read<T: DeserializeOwned>(self, bytes: &[u8]) -> Result<T, WireError> {
        match self {
            Codec::Positional => {
                take_unreadable();
                let mut deserializer = postcard::Deserializer::from_bytes(bytes);
                match T::deserialize(Nested::new(&mut deserializer)) {
                    Ok(value) => match not_all(deserializer.finalize()) {
                        None => Ok(value),
                        Some(error) => Err(error),
                    },
                    Err(error) => Err(not_positional(error)),
                }
            }
            Codec::Named => named::read(bytes),
        }
    }
}

// Each type that can be written and read calls these functions. They are not inlined, so their code is compiled once.

#[cold]
#[inline(never)]
fn not_positional(error: postcard::Error) -> WireError {
    WireError(take_unreadable().unwrap_or_else(|| error.to_string()))
}

/// Returns the error if the bytes behind the value are not read, or if there are some.
#[inline(never)]
fn not_all(rest: postcard::Result<&[u8]>) -> Option<WireError> {
    match rest {
        Ok(rest) => left_behind(rest),
        Err(error) => Some(not_positional(error)),
    }
}

/// Returns the error if bytes are left behind the value.
fn left_behind(rest: &[u8]) -> Option<WireError> {
    (!rest.is_empty()).then(|| WireError(format!("{} bytes are left behind the value", rest.len())))
}

#[cold]
#[inline(never)]
fn not_written(error: postcard::Error, named: Written) -> WireError {
    named.err().unwrap_or_else(|| WireError(error.to_string()))
}

#[cold]
#[inline(never)]
fn not_named(error: rmp_serde::encode::Error) -> WireError {
    WireError(error.to_string())
}

fn write_named<T: Serialize>(value: &T, out: &mut Vec<u8>) -> Written {
    let mut serializer = rmp_serde::Serializer::new(out).with_struct_map();
    value.serialize(Nested::new(&mut serializer)).map_err(not_named)
}

/// Appends the output of the positional codec, in most cases the few bytes of a number.
struct Append<'a>(&'a mut Vec<u8>);

impl postcard::ser_flavors::Flavor for Append<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        /// Up to this length, single pushes cost less than a call of `memcpy`.
        const FEW: usize = 4;
        if bytes.len() <= FEW {
            bytes.iter().for_each(|byte| self.0.push(*byte));
        } else {
            self.0.extend_from_slice(bytes);
        }
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

thread_local! {
    /// The error text of a type of this crate that could not be read, because the positional codec drops the text.
    static UNREADABLE: std::cell::Cell<Option<String>> = const { std::cell::Cell::new(None) };
}

/// Returns the error of a `Deserialize`.
pub(crate) fn unreadable<E: serde::de::Error>(why: impl fmt::Display) -> E {
    let error = E::custom(&why);
    // In the destructors of a thread's thread-locals it may be destroyed. The codec's own text is then the error.
    let _ = UNREADABLE.try_with(|unreadable| unreadable.set(Some(why.to_string())));
    error
}

fn take_unreadable() -> Option<String> {
    UNREADABLE.try_with(std::cell::Cell::take).ok().flatten()
}

/// The result of writing a value.
pub type Written = Result<(), WireError>;

/// Returns the fingerprint of a type on the wire. `None` if it is unknown.
pub(crate) fn schema_of<T: DeserializeOwned>() -> Option<u64> {
    looking_at_shapes(shape::fingerprint::<T>)
}
