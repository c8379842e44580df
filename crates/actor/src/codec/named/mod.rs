//! Reads values from MessagePack.
//!
//! rmp-serde writes the values, but its reader compiles 2,000 lines of LLVM IR for each visitor, and each type has
//! several visitors. In this module, [`Cursor`] reads the bytes and knows no types, so it is compiled once. The methods
//! of [`Reader`] and of its parts are compiled for each type, but they are short: each takes one [`Token`] and passes it
//! to the visitor. (`rmpv` and `serde-content` would first build a tree, with an allocation for each list and map.)
//!
//! The module reads what rmp-serde reads, except for 2 kinds of visitors that serde's derive does not write:
//! - Visitors of lists, tuples and structs are not called with numbers and strings.
//! - Integers are passed on as `u64` and `i64`, and those of `u8` as `u8`.
//!
//! Nothing is allocated for a length that the bytes announce. The depth at which values lie in one another is bounded
//! as in [`nesting`](crate::codec::nesting).

use std::fmt::{self, Display};

use rmp::Marker;
use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, Expected, Unexpected, Visitor};

use crate::codec::nesting::{NESTING_MAX, TooDeep};
use crate::codec::{WireError, left_behind};

/// The name of a newtype struct that rmp-serde writes as an extension.
const EXTENSION: &str = rmp_serde::MSGPACK_EXT_STRUCT_NAME;
const NIL: u8 = 0xc0;
const EMPTY_LIST: u8 = 0x90;

/// Reads a value from all of `bytes`.
pub(super) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, WireError> {
    let mut cursor = Cursor { rest: bytes, content: Content::Values };
    match T::deserialize(Reader { cursor: &mut cursor, levels: NESTING_MAX }) {
        Ok(value) => match left_behind(cursor.rest) {
            None => Ok(value),
            Some(error) => Err(error),
        },
        Err(error) => Err(*error.0),
    }
}

// -- compiled once ----------------------------------------------------------------------------------------------------

/// The error of a value that cannot be read, in a box because each visitor moves it.
#[derive(Debug)]
struct Error(Box<WireError>);

#[cold]
#[inline(never)]
fn error(why: &dyn Display) -> Error {
    Error(Box::new(WireError::new(why.to_string())))
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    #[cold]
    fn custom<T: Display>(why: T) -> Error {
        error(&why)
    }
}

/// The next part of a value. All contents have 8 or 16 bytes: a copy of a token would also copy the padding before smaller
/// ones, for which the processor waits longer than for all else that reads a number.
enum Token<'de> {
    Nil,
    False,
    True,
    Unsigned(u64),
    /// A number that was written as a signed one, in most cases a negative one.
    Signed(i64),
    /// The bits of the number.
    F32(u64),
    F64(f64),
    Str(&'de str),
    NotUtf8(&'de [u8]),
    Bytes(&'de [u8]),
    /// The number of the values that follow.
    Seq(usize),
    /// The number of the keys that follow, each with its value.
    Map(usize),
    /// The type of the extension and its data.
    Extension(&'de [u8]),
}

impl Token<'_> {
    /// Returns the error of a visitor that does not accept this token.
    #[cold]
    #[inline(never)]
    fn unexpected(&self, expected: &dyn Expected) -> Error {
        de::Error::invalid_type(
            match *self {
                Token::Nil => Unexpected::Unit,
                Token::False => Unexpected::Bool(false),
                Token::True => Unexpected::Bool(true),
                Token::Unsigned(value) => Unexpected::Unsigned(value),
                Token::Signed(value) => Unexpected::Signed(value),
                Token::F32(bits) => Unexpected::Float(f32::from_bits(bits as u32).into()),
                Token::F64(value) => Unexpected::Float(value),
                Token::Str(value) => Unexpected::Str(value),
                Token::NotUtf8(_) => Unexpected::Other("a string that is not UTF-8"),
                Token::Bytes(value) => Unexpected::Bytes(value),
                Token::Seq(_) => Unexpected::Seq,
                Token::Map(_) => Unexpected::Map,
                Token::Extension(_) => Unexpected::Other("an extension"),
            },
            expected,
        )
    }
}

/// The kind of the bytes that a cursor reads.
#[derive(Clone, Copy)]
enum Content {
    Values,
    /// The data of one value, which is read as a list.
    Data(Data),
}

/// Data of one value.
#[derive(Clone, Copy)]
enum Data {
    /// A byte array. Each byte is a number.
    Bytes,
    /// A list of the next two.
    Extension,
    ExtensionType,
    ExtensionBytes,
}

/// Reads bytes.
struct Cursor<'de> {
    rest: &'de [u8],
    content: Content,
}

impl<'de> Cursor<'de> {
    #[inline]
    fn take(&mut self, len: usize) -> Result<&'de [u8], Error> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or_else(ends_early)?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    fn take_array<const LEN: usize>(&mut self) -> Result<[u8; LEN], Error> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or_else(ends_early)?;
        self.rest = rest;
        Ok(*taken)
    }

    #[inline]
    fn len8(&mut self) -> Result<usize, Error> {
        Ok(u8::from_be_bytes(self.take_array()?).into())
    }

    #[inline]
    fn len16(&mut self) -> Result<usize, Error> {
        Ok(u16::from_be_bytes(self.take_array()?).into())
    }

    #[inline]
    fn len32(&mut self) -> Result<usize, Error> {
        Ok(u32::from_be_bytes(self.take_array()?) as usize)
    }

    fn next(&mut self) -> Result<Token<'de>, Error> {
        match self.content {
            Content::Values => self.next_value(),
            Content::Data(data) => self.next_of_data(data),
        }
    }

    fn next_of_data(&mut self, data: Data) -> Result<Token<'de>, Error> {
        match data {
            Data::Bytes => Ok(Token::Unsigned(u8::from_be_bytes(self.take_array()?).into())),
            Data::Extension => {
                self.content = Content::Data(Data::ExtensionType);
                Ok(Token::Seq(2))
            }
            Data::ExtensionType => {
                self.content = Content::Data(Data::ExtensionBytes);
                Ok(Token::Signed(i8::from_be_bytes(self.take_array()?).into()))
            }
            Data::ExtensionBytes => Ok(Token::Bytes(std::mem::take(&mut self.rest))),
        }
    }

    #[inline]
    fn next_value(&mut self) -> Result<Token<'de>, Error> {
        let [first] = self.take_array()?;
        Ok(match Marker::from_u8(first) {
            Marker::Null => Token::Nil,
            Marker::False => Token::False,
            Marker::True => Token::True,
            Marker::FixPos(value) => Token::Unsigned(value.into()),
            Marker::U8 => Token::Unsigned(u8::from_be_bytes(self.take_array()?).into()),
            Marker::U16 => Token::Unsigned(u16::from_be_bytes(self.take_array()?).into()),
            Marker::U32 => Token::Unsigned(u32::from_be_bytes(self.take_array()?).into()),
            Marker::U64 => Token::Unsigned(u64::from_be_bytes(self.take_array()?)),
            Marker::FixNeg(value) => Token::Signed(value.into()),
            Marker::I8 => Token::Signed(i8::from_be_bytes(self.take_array()?).into()),
            Marker::I16 => Token::Signed(i16::from_be_bytes(self.take_array()?).into()),
            Marker::I32 => Token::Signed(i32::from_be_bytes(self.take_array()?).into()),
            Marker::I64 => Token::Signed(i64::from_be_bytes(self.take_array()?)),
            Marker::F32 => Token::F32(u32::from_be_bytes(self.take_array()?).into()),
            Marker::F64 => Token::F64(f64::from_be_bytes(self.take_array()?)),
            Marker::FixStr(len) => self.str(len.into())?,
            Marker::Str8 => self.len8().and_then(|len| self.str(len))?,
            Marker::Str16 => self.len16().and_then(|len| self.str(len))?,
            Marker::Str32 => self.len32().and_then(|len| self.str(len))?,
            Marker::Bin8 => self.len8().and_then(|len| self.take(len)).map(Token::Bytes)?,
            Marker::Bin16 => self.len16().and_then(|len| self.take(len)).map(Token::Bytes)?,
            Marker::Bin32 => self.len32().and_then(|len| self.take(len)).map(Token::Bytes)?,
            Marker::FixArray(len) => Token::Seq(len.into()),
            Marker::Array16 => self.len16().map(Token::Seq)?,
            Marker::Array32 => self.len32().map(Token::Seq)?,
            Marker::FixMap(len) => Token::Map(len.into()),
            Marker::Map16 => self.len16().map(Token::Map)?,
            Marker::Map32 => self.len32().map(Token::Map)?,
            Marker::FixExt1 => self.extension(1)?,
            Marker::FixExt2 => self.extension(2)?,
            Marker::FixExt4 => self.extension(4)?,
            Marker::FixExt8 => self.extension(8)?,
            Marker::FixExt16 => self.extension(16)?,
            Marker::Ext8 => self.len8().and_then(|len| self.extension(len))?,
            Marker::Ext16 => self.len16().and_then(|len| self.extension(len))?,
            Marker::Ext32 => self.len32().and_then(|len| self.extension(len))?,
            Marker::Reserved => return Err(error(&"no value begins with the byte 0xc1")),
        })
    }

    #[inline]
    fn str(&mut self, len: usize) -> Result<Token<'de>, Error> {
        let bytes = self.take(len)?;
        Ok(std::str::from_utf8(bytes).map_or(Token::NotUtf8(bytes), Token::Str))
    }

    fn extension(&mut self, len: usize) -> Result<Token<'de>, Error> {
        self.take(len.saturating_add(1)).map(Token::Extension)
    }

    /// Returns the first byte of the next value, which remains.
    fn peek(&self) -> Result<u8, Error> {
        self.check_values()?;
        self.rest.first().copied().ok_or_else(ends_early)
    }

    fn check_values(&self) -> Result<(), Error> {
        match self.content {
            Content::Values => Ok(()),
            _ => Err(error(&"a part of a byte array or of an extension is no option, enum or struct")),
        }
    }

    /// Takes the next value if it is `nil`.
    fn take_nil(&mut self) -> Result<bool, Error> {
        let is_nil = self.peek()? == NIL;
        if is_nil {
            self.rest = &self.rest[1..];
        }
        Ok(is_nil)
    }

    /// Takes the next value if it is the value of a unit struct.
    fn take_unit_struct(&mut self) -> Result<bool, Error> {
        let is_unit = matches!(self.rest.first(), Some(&(NIL | EMPTY_LIST))) && matches!(self.content, Content::Values);
        if is_unit {
            self.rest = &self.rest[1..];
        }
        Ok(is_unit)
    }

    /// Takes the start of an enum. Returns `true` if its data follows the variant.
    fn take_enum(&mut self) -> Result<bool, Error> {
        match Marker::from_u8(self.peek()?) {
            Marker::FixMap(_) | Marker::Map16 | Marker::Map32 => match self.next()? {
                Token::Map(1) => Ok(true),
                _ => Err(error(&"the map of an enum must have one entry")),
            },
            _ => Ok(false),
        }
    }

    fn take_i128(&mut self, expected: &dyn Expected) -> Result<i128, Error> {
        match self.next()? {
            Token::Unsigned(value) => Ok(value.into()),
            Token::Signed(value) => Ok(value.into()),
            token @ Token::Bytes(bytes) => {
                bytes.try_into().map(i128::from_be_bytes).map_err(|_| token.unexpected(expected))
            }
            token => Err(token.unexpected(expected)),
        }
    }

    /// Returns the cursor of the value in the newtype struct `name`, if that is another one.
    fn take_newtype(&mut self, name: &str, expected: &dyn Expected) -> Result<Option<Cursor<'de>>, Error> {
        if name != EXTENSION {
            return self.check_values().map(|()| None);
        }
        match self.next()? {
            Token::Extension(of) => Ok(Some(Cursor { rest: of, content: Content::Data(Data::Extension) })),
            token => Err(token.unexpected(expected)),
        }
    }

    /// Takes the next value, which is ignored.
    fn skip(&mut self, levels: u32) -> Result<(), Error> {
        let levels = deeper(levels)?;
        let values = match self.next()? {
            Token::Seq(len) => len as u64,
            Token::Map(len) => 2 * len as u64,
            _ => 0,
        };
        (0..values).try_for_each(|_| self.skip(levels))
    }
}

fn deeper(levels: u32) -> Result<u32, Error> {
    levels.checked_sub(1).ok_or_else(|| error(&TooDeep))
}

#[cold]
#[inline(never)]
fn ends_early() -> Error {
    error(&"the bytes end before the value does")
}

#[cold]
#[inline(never)]
fn too_long(left: usize) -> Error {
    error(&format_args!("a list or map has {left} values more than the type"))
}

#[cold]
#[inline(never)]
fn no_data(expected: &'static str) -> Error {
    de::Error::invalid_type(Unexpected::UnitVariant, &expected)
}

// -- compiled for each type -------------------------------------------------------------------------------------------

impl<'de> Token<'de> {
    /// Passes on a value that has no parts.
    fn leaf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Token::Nil => visitor.visit_unit(),
            Token::False => visitor.visit_bool(false),
            Token::True => visitor.visit_bool(true),
            Token::Unsigned(value) => visitor.visit_u64(value),
            Token::Signed(value) => visitor.visit_i64(value),
            Token::F32(bits) => visitor.visit_f32(f32::from_bits(bits as u32)),
            Token::F64(value) => visitor.visit_f64(value),
            Token::Str(value) => visitor.visit_borrowed_str(value),
            Token::Bytes(value) | Token::NotUtf8(value) => visitor.visit_borrowed_bytes(value),
            Token::Seq(_) | Token::Map(_) | Token::Extension(_) => Err(self.unexpected(&visitor)),
        }
    }
}

/// Reads one value.
struct Reader<'a, 'de> {
    cursor: &'a mut Cursor<'de>,
    /// The number of levels that may lie in the value.
    levels: u32,
}

impl<'de> Reader<'_, 'de> {
    fn deeper(self) -> Result<Self, Error> {
        Ok(Reader { levels: deeper(self.levels)?, ..self })
    }

    /// Passes on the next value, which may be of any type.
    fn any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.cursor.next()? {
            Token::Seq(len) => self.items(len, visitor),
            Token::Map(len) => self.entries(len, visitor),
            Token::Extension(of) => {
                let mut cursor = Cursor { rest: of, content: Content::Data(Data::Extension) };
                visitor.visit_newtype_struct(Reader { cursor: &mut cursor, levels: self.levels })
            }
            token => token.leaf(visitor),
        }
    }

    /// Passes on the next value, which has no parts.
    fn leaf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.cursor.next()?.leaf(visitor)
    }

    /// Passes on the next value, which has parts.
    fn parts<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.cursor.next()? {
            Token::Seq(len) => self.items(len, visitor),
            Token::Map(len) => self.entries(len, visitor),
            Token::Bytes(bytes) => {
                let mut cursor = Cursor { rest: bytes, content: Content::Data(Data::Bytes) };
                visitor.visit_seq(&mut Parts { cursor: &mut cursor, left: bytes.len(), levels: self.levels })
            }
            token => Err(token.unexpected(&visitor)),
        }
    }

    fn items<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Error> {
        let mut parts = Parts { cursor: self.cursor, left: len, levels: self.levels };
        let value = visitor.visit_seq(&mut parts)?;
        match parts.end() {
            None => Ok(value),
            Some(error) => Err(error),
        }
    }

    fn entries<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Error> {
        let mut parts = Parts { cursor: self.cursor, left: len, levels: self.levels };
        let value = visitor.visit_map(&mut parts)?;
        match parts.end() {
            None => Ok(value),
            Some(error) => Err(error),
        }
    }
}

macro_rules! read_as {
    ($($how:ident: $($name:ident)*;)*) => {$($(
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.$how(visitor)
        }
    )*)*};
}

impl<'de> Deserializer<'de> for Reader<'_, 'de> {
    type Error = Error;

    read_as! {
        leaf: deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u16
            deserialize_u32 deserialize_u64 deserialize_f32 deserialize_f64 deserialize_identifier;
        any: deserialize_char deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf deserialize_unit;
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.cursor.next()? {
            // Both codecs pass on each `u8` with this call, so a visitor may lack the others.
            Token::Unsigned(value @ 0..=0xff) => visitor.visit_u8(value as u8),
            token => token.leaf(visitor),
        }
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deeper()?.any(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.cursor.skip(self.levels)?;
        visitor.visit_unit()
    }

    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let value = self.cursor.take_i128(&visitor)?;
        visitor.visit_i128(value)
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let value = self.cursor.take_i128(&visitor)?;
        visitor.visit_u128(value as u128)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let this = self.deeper()?;
        if this.cursor.take_nil()? { visitor.visit_none() } else { visitor.visit_some(this) }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        if self.cursor.take_unit_struct()? { visitor.visit_unit() } else { self.any(visitor) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Error> {
        match self.cursor.take_newtype(name, &visitor)? {
            None => visitor.visit_newtype_struct(self),
            Some(mut of) => visitor.visit_newtype_struct(Reader { cursor: &mut of, levels: self.levels }),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deeper()?.parts(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deeper()?.any(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.parts(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.parts(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.parts(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let reader = self.deeper()?;
        let has_data = reader.cursor.take_enum()?;
        visitor.visit_enum(Variant { reader, has_data })
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// The parts of a list or a map.
struct Parts<'a, 'de> {
    cursor: &'a mut Cursor<'de>,
    /// The number of items, or of entries of a map.
    left: usize,
    levels: u32,
}

impl<'de> Parts<'_, 'de> {
    fn next(&mut self) -> Option<Reader<'_, 'de>> {
        self.left = self.left.checked_sub(1)?;
        Some(self.part())
    }

    fn part(&mut self) -> Reader<'_, 'de> {
        Reader { cursor: self.cursor, levels: self.levels }
    }

    fn size_hint(&self) -> Option<usize> {
        // Each part has a byte at least.
        Some(self.left.min(self.cursor.rest.len()))
    }

    fn end(&self) -> Option<Error> {
        (self.left > 0).then(|| too_long(self.left))
    }
}

impl<'de> de::SeqAccess<'de> for &mut Parts<'_, 'de> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        match self.next() {
            Some(reader) => seed.deserialize(reader).map(Some),
            None => Ok(None),
        }
    }

    fn size_hint(&self) -> Option<usize> {
        Parts::size_hint(self)
    }
}

impl<'de> de::MapAccess<'de> for &mut Parts<'_, 'de> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        match self.next() {
            Some(reader) => seed.deserialize(reader).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(self.part())
    }

    fn size_hint(&self) -> Option<usize> {
        Parts::size_hint(self)
    }
}

/// A variant of an enum.
struct Variant<'a, 'de> {
    reader: Reader<'a, 'de>,
    has_data: bool,
}

impl<'a, 'de> Variant<'a, 'de> {
    fn data(self, expected: &'static str) -> Result<Reader<'a, 'de>, Error> {
        if self.has_data { Ok(self.reader) } else { Err(no_data(expected)) }
    }
}

impl<'de> de::EnumAccess<'de> for Variant<'_, 'de> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Error> {
        let variant = seed.deserialize(Reader { cursor: self.reader.cursor, levels: self.reader.levels })?;
        Ok((variant, self))
    }
}

impl<'de> de::VariantAccess<'de> for Variant<'_, 'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        match self.has_data {
            true if !self.reader.cursor.take_nil()? => Err(error(&"a unit variant has data")),
            _ => Ok(()),
        }
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(self.data("newtype variant")?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.data("tuple variant")?.parts(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, Error> {
        self.data("struct variant")?.parts(visitor)
    }
}

#[cfg(test)]
mod tests;
