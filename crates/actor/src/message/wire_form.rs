//! The wire form of a message: the bytes of the message and of its answer outside of a process.

use std::fmt;

use playhouse_executor::contained;
use serde::{Deserialize, Serialize};

use crate::codec::{Codec, WireError, Written, schema_of};
use crate::message::Message;

/// The wire form of a message and of its answer.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::{Message, wire::WireForm};
/// # use serde::{Deserialize, Serialize};
/// #[derive(Serialize, Deserialize)]
/// struct Add(u64);
///
/// impl Message for Add {
///     type Reply = ();
///     const WIRE: Option<WireForm<Self>> = Some(WireForm::named("shop.Add")); // the type may be renamed later
/// }
/// ```
pub struct WireForm<M: Message> {
    name: Option<&'static str>,
    write: fn(&M, Codec, &mut Vec<u8>) -> Written,
    read: fn(&[u8], Codec) -> Result<M, WireError>,
    write_answer: fn(&M::Reply, Codec, &mut Vec<u8>) -> Written,
    read_answer: fn(&[u8], Codec) -> Result<M::Reply, WireError>,
    pub(crate) schema: fn() -> Option<u64>,
}

impl<M: Message> fmt::Debug for WireForm<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WireForm({:?})", self.name())
    }
}

/// A value with a wire form: its type has serde's `Serialize` and `Deserialize`.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::wire::Transferable;
/// # use serde::{Deserialize, Serialize};
/// #[derive(Serialize, Deserialize)]
/// struct Price {
///     cents: u64,
/// }
///
/// fn crosses<T: Transferable>() {}
/// crosses::<Price>();
/// ```
#[diagnostic::on_unimplemented(
    message = "a `{Self}` cannot be sent to other theaters",
    label = "it has no wire form",
    note = "write `#[derive(Serialize, Deserialize)]` at the type. If serde is no dependency of the program: `use playhouse::serde::{{Deserialize, Serialize}};`, and `#[serde(crate = \"playhouse::serde\")]` below the derive",
    note = "`#[message(local)]` is for messages that are sent within a theater only"
)]
pub trait Transferable: Serialize + for<'de> Deserialize<'de> {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + for<'de> Deserialize<'de>> Transferable for T {}

/// Compiles if `T` has a wire form: for the arguments of messages.
#[doc(hidden)]
pub const fn transferable<T: Transferable>() {}

impl<M> WireForm<M>
where
    M: Message<Reply: Transferable> + Transferable,
{
    /// Returns serde's form of the message, with the path of its type as the wire name.
    pub const fn of() -> WireForm<M> {
        WireForm {
            name: None,
            write: |message, codec, out| codec.write(message, out),
            read: |bytes, codec| codec.read(bytes),
            write_answer: |answer, codec, out| codec.write(answer, out),
            read_answer: |bytes, codec| codec.read(bytes),
            schema: || Some(schema_of::<M>()? ^ schema_of::<M::Reply>()?.rotate_left(1)),
        }
    }

    /// Returns the same form as [`WireForm::of`], with the wire name `name`: the type may be renamed or moved later.
    pub const fn named(name: &'static str) -> WireForm<M> {
        WireForm { name: Some(name), ..WireForm::of() }
    }
}

/// User code writes and reads the values. A panic in it is an error of the value, because an asker waits for the answer.
impl<M: Message> WireForm<M> {
    pub(crate) fn write(&self, message: &M, codec: Codec, out: &mut Vec<u8>) -> Written {
        contained(|| (self.write)(message, codec, out)).unwrap_or_else(|| Err(panicked(WRITING)))
    }

    pub(crate) fn read(&self, bytes: &[u8], codec: Codec) -> Result<M, WireError> {
        let read = contained(|| (self.read)(bytes, codec)).unwrap_or_else(|| Err(panicked(READING)));
        read.map_err(|error| unreadable("the message", self.name(), &error))
    }

    pub(crate) fn write_answer(&self, answer: &M::Reply, codec: Codec, out: &mut Vec<u8>) -> Written {
        contained(|| (self.write_answer)(answer, codec, out)).unwrap_or_else(|| Err(panicked(WRITING)))
    }

    pub(crate) fn read_answer(&self, bytes: &[u8], codec: Codec) -> Result<M::Reply, WireError> {
        let read = contained(|| (self.read_answer)(bytes, codec)).unwrap_or_else(|| Err(panicked(READING)));
        read.map_err(|error| unreadable("the answer to", self.name(), &error))
    }

    /// Returns the wire name of the message.
    pub fn name(&self) -> &'static str {
        self.name.unwrap_or_else(std::any::type_name::<M>)
    }
}

const WRITING: &str = "its `Serialize` panicked";
const READING: &str = "its `Deserialize` panicked";

// Each message has calls of these functions. They are not inlined, so that their code is compiled once.

#[cold]
#[inline(never)]
fn panicked(why: &'static str) -> WireError {
    WireError::new(why)
}

#[cold]
#[inline(never)]
fn unreadable(part: &str, message: &str, error: &WireError) -> WireError {
    WireError::new(format!("{part} `{message}` cannot be read: {error}"))
}
