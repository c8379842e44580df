//! Bounds the depth at which values that are written or read lie in one another.
//!
//! A codec calls itself for each value within another one, so bytes or values that nest without a bound would overflow
//! the stack. [`Nested`] wraps the codec, the visitors and all that they pass to each other, and counts down. It counts
//! options, lists, maps and enums. Structs, tuples and newtypes need no count: a type that contains itself does so
//! through one of those four.
//!
//! [`NESTING_MAX`] levels fit into the smallest usual stack, 2 MiB, with 8 KiB for each level.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor};
use serde::ser::{self, Serialize, Serializer};

use crate::codec::unreadable;

/// The number of options, lists, maps and enums that may lie in one another.
pub(crate) const NESTING_MAX: u32 = 256;

/// A codec or a part of one, with the number of levels left.
pub(crate) struct Nested<T> {
    inner: T,
    left: u32,
}

impl<T> Nested<T> {
    /// Wraps the outermost level.
    pub(crate) fn new(inner: T) -> Nested<T> {
        Nested { inner, left: NESTING_MAX }
    }
}

/// The error text of a value that nests too deep.
pub(crate) struct TooDeep;

impl fmt::Display for TooDeep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the value is nested too deep: at most {NESTING_MAX} options, lists, maps and enums may lie in one another"
        )
    }
}

fn read_deeper<T, E: de::Error>(left: u32, inner: T) -> Result<Nested<T>, E> {
    match left.checked_sub(1) {
        Some(left) => Ok(Nested { inner, left }),
        None => Err(unreadable(TooDeep)),
    }
}

fn write_deeper<E: ser::Error>(left: u32) -> Result<u32, E> {
    left.checked_sub(1).ok_or_else(|| E::custom(TooDeep))
}

// -- reading ----------------------------------------------------------------------------------------------------------

macro_rules! read_leaves {
    ($($name:ident),*) => {$(
        #[inline]
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.inner.$name(visitor)
        }
    )*};
}

macro_rules! read_choices {
    ($($name:ident),*) => {$(
        #[inline]
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.inner.$name(read_deeper(self.left, visitor)?)
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Nested<D> {
    type Error = D::Error;

    read_leaves!(
        deserialize_bool,
        deserialize_i8,
        deserialize_i16,
        deserialize_i32,
        deserialize_i64,
        deserialize_i128,
        deserialize_u8,
        deserialize_u16,
        deserialize_u32,
        deserialize_u64,
        deserialize_u128,
        deserialize_f32,
        deserialize_f64,
        deserialize_char,
        deserialize_str,
        deserialize_string,
        deserialize_bytes,
        deserialize_byte_buf,
        deserialize_unit,
        deserialize_identifier
    );

    read_choices!(deserialize_any, deserialize_ignored_any, deserialize_option, deserialize_seq, deserialize_map);

    #[inline]
    fn deserialize_unit_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_unit_struct(name, visitor)
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_newtype_struct(name, Nested { inner: visitor, left: self.left })
    }

    #[inline]
    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_tuple(len, Nested { inner: visitor, left: self.left })
    }

    #[inline]
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_tuple_struct(name, len, Nested { inner: visitor, left: self.left })
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_struct(name, fields, Nested { inner: visitor, left: self.left })
    }

    #[inline]
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_enum(name, variants, read_deeper(self.left, visitor)?)
    }

    #[inline]
    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

macro_rules! visit_leaves {
    ($($name:ident: $of:ty),*) => {$(
        #[inline]
        fn $name<E: de::Error>(self, value: $of) -> Result<V::Value, E> {
            self.inner.$name(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Nested<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    visit_leaves!(
        visit_bool: bool, visit_i8: i8, visit_i16: i16, visit_i32: i32, visit_i64: i64, visit_i128: i128, visit_u8: u8,
        visit_u16: u16, visit_u32: u32, visit_u64: u64, visit_u128: u128, visit_f32: f32, visit_f64: f64, visit_char: char,
        visit_str: &str, visit_borrowed_str: &'de str, visit_string: String, visit_bytes: &[u8],
        visit_borrowed_bytes: &'de [u8], visit_byte_buf: Vec<u8>
    );

    #[inline]
    fn visit_none<E: de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    #[inline]
    fn visit_unit<E: de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    #[inline]
    fn visit_some<D: Deserializer<'de>>(self, of: D) -> Result<V::Value, D::Error> {
        self.inner.visit_some(Nested { inner: of, left: self.left })
    }

    #[inline]
    fn visit_newtype_struct<D: Deserializer<'de>>(self, of: D) -> Result<V::Value, D::Error> {
        self.inner.visit_newtype_struct(Nested { inner: of, left: self.left })
    }

    #[inline]
    fn visit_seq<A: SeqAccess<'de>>(self, of: A) -> Result<V::Value, A::Error> {
        self.inner.visit_seq(Nested { inner: of, left: self.left })
    }

    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, of: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(Nested { inner: of, left: self.left })
    }

    #[inline]
    fn visit_enum<A: EnumAccess<'de>>(self, of: A) -> Result<V::Value, A::Error> {
        self.inner.visit_enum(Nested { inner: of, left: self.left })
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Nested<S> {
    type Value = S::Value;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, of: D) -> Result<S::Value, D::Error> {
        self.inner.deserialize(Nested { inner: of, left: self.left })
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Nested<A> {
    type Error = A::Error;

    #[inline]
    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.inner.next_element_seed(Nested { inner: seed, left: self.left })
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Nested<A> {
    type Error = A::Error;

    #[inline]
    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.inner.next_key_seed(Nested { inner: seed, left: self.left })
    }

    #[inline]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.next_value_seed(Nested { inner: seed, left: self.left })
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Nested<A> {
    type Error = A::Error;
    type Variant = Nested<A::Variant>;

    #[inline]
    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Nested<A::Variant>), A::Error> {
        let (found, variant) = self.inner.variant_seed(seed)?;
        Ok((found, Nested { inner: variant, left: self.left }))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Nested<A> {
    type Error = A::Error;

    #[inline]
    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    #[inline]
    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.newtype_variant_seed(Nested { inner: seed, left: self.left })
    }

    #[inline]
    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.inner.tuple_variant(len, Nested { inner: visitor, left: self.left })
    }

    #[inline]
    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.inner.struct_variant(fields, Nested { inner: visitor, left: self.left })
    }
}

// -- writing ----------------------------------------------------------------------------------------------------------

/// A value within another one.
struct Within<'a, T: ?Sized> {
    value: &'a T,
    left: u32,
}

impl<T: Serialize + ?Sized> Serialize for Within<'_, T> {
    #[inline]
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(Nested { inner: to, left: self.left })
    }
}

macro_rules! write_leaves {
    ($($name:ident: $of:ty),*) => {$(
        #[inline]
        fn $name(self, value: $of) -> Result<S::Ok, S::Error> {
            self.inner.$name(value)
        }
    )*};
}

impl<S: Serializer> Serializer for Nested<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Nested<S::SerializeSeq>;
    type SerializeTuple = Nested<S::SerializeTuple>;
    type SerializeTupleStruct = Nested<S::SerializeTupleStruct>;
    type SerializeTupleVariant = Nested<S::SerializeTupleVariant>;
    type SerializeMap = Nested<S::SerializeMap>;
    type SerializeStruct = Nested<S::SerializeStruct>;
    type SerializeStructVariant = Nested<S::SerializeStructVariant>;

    write_leaves!(
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_i128: i128, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_u128: u128, serialize_f32: f32, serialize_f64: f64, serialize_char: char, serialize_str: &str,
        serialize_bytes: &[u8], serialize_unit_struct: &'static str
    );

    #[inline]
    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        // The reader counts it, too.
        write_deeper::<S::Error>(self.left)?;
        self.inner.serialize_none()
    }

    #[inline]
    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        self.inner.serialize_unit()
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        let left = write_deeper(self.left)?;
        self.inner.serialize_some(&Within { value, left })
    }

    #[inline]
    fn serialize_unit_variant(self, name: &'static str, at: u32, variant: &'static str) -> Result<S::Ok, S::Error> {
        // The reader counts it, too.
        write_deeper::<S::Error>(self.left)?;
        self.inner.serialize_unit_variant(name, at, variant)
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, name: &'static str, value: &T) -> Result<S::Ok, S::Error> {
        self.inner.serialize_newtype_struct(name, &Within { value, left: self.left })
    }

    #[inline]
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        at: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let left = write_deeper(self.left)?;
        self.inner.serialize_newtype_variant(name, at, variant, &Within { value, left })
    }

    #[inline]
    fn serialize_seq(self, len: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        let left = write_deeper(self.left)?;
        Ok(Nested { inner: self.inner.serialize_seq(len)?, left })
    }

    #[inline]
    fn serialize_tuple(self, len: usize) -> Result<Self::SerializeTuple, S::Error> {
        Ok(Nested { inner: self.inner.serialize_tuple(len)?, left: self.left })
    }

    #[inline]
    fn serialize_tuple_struct(self, name: &'static str, len: usize) -> Result<Self::SerializeTupleStruct, S::Error> {
        Ok(Nested { inner: self.inner.serialize_tuple_struct(name, len)?, left: self.left })
    }

    #[inline]
    fn serialize_tuple_variant(
        self,
        name: &'static str,
        at: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        let left = write_deeper(self.left)?;
        Ok(Nested { inner: self.inner.serialize_tuple_variant(name, at, variant, len)?, left })
    }

    #[inline]
    fn serialize_map(self, len: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        let left = write_deeper(self.left)?;
        Ok(Nested { inner: self.inner.serialize_map(len)?, left })
    }

    #[inline]
    fn serialize_struct(self, name: &'static str, len: usize) -> Result<Self::SerializeStruct, S::Error> {
        Ok(Nested { inner: self.inner.serialize_struct(name, len)?, left: self.left })
    }

    #[inline]
    fn serialize_struct_variant(
        self,
        name: &'static str,
        at: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        let left = write_deeper(self.left)?;
        Ok(Nested { inner: self.inner.serialize_struct_variant(name, at, variant, len)?, left })
    }

    #[inline]
    fn collect_str<T: fmt::Display + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.inner.collect_str(value)
    }

    #[inline]
    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

/// The parts of lists and tuples: one method for each value.
macro_rules! write_parts {
    ($($of:ident: $part:ident),*) => {$(
        impl<S: ser::$of> ser::$of for Nested<S> {
            type Ok = S::Ok;
            type Error = S::Error;

            #[inline]
            fn $part<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
                self.inner.$part(&Within { value, left: self.left })
            }

            #[inline]
            fn end(self) -> Result<S::Ok, S::Error> {
                self.inner.end()
            }
        }
    )*};
}

write_parts!(
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field
);

/// The fields of structs.
macro_rules! write_fields {
    ($($of:ident),*) => {$(
        impl<S: ser::$of> ser::$of for Nested<S> {
            type Ok = S::Ok;
            type Error = S::Error;

            #[inline]
            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), S::Error> {
                self.inner.serialize_field(name, &Within { value, left: self.left })
            }

            #[inline]
            fn skip_field(&mut self, name: &'static str) -> Result<(), S::Error> {
                self.inner.skip_field(name)
            }

            #[inline]
            fn end(self) -> Result<S::Ok, S::Error> {
                self.inner.end()
            }
        }
    )*};
}

write_fields!(SerializeStruct, SerializeStructVariant);

impl<S: ser::SerializeMap> ser::SerializeMap for Nested<S> {
    type Ok = S::Ok;
    type Error = S::Error;

    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), S::Error> {
        self.inner.serialize_key(&Within { value: key, left: self.left })
    }

    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
        self.inner.serialize_value(&Within { value, left: self.left })
    }

    #[inline]
    fn end(self) -> Result<S::Ok, S::Error> {
        self.inner.end()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::de::DeserializeOwned;
    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::codec::Codec;

    const CODECS: [Codec; 2] = [Codec::Positional, Codec::Named];

    /// All kinds of values through which a type can contain itself.
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Tree {
        Leaf,
        Newtype(Box<Tree>),
        Tuple(u8, Box<Tree>),
        Struct { within: Box<Tree> },
        List(Vec<Tree>),
        Map(BTreeMap<u8, Tree>),
        Option(Option<Box<Tree>>),
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Chain {
        at: u32,
        next: Option<Box<Chain>>,
    }

    fn wrap(kind: usize, tree: Tree) -> Tree {
        match kind {
            0 => Tree::Newtype(Box::new(tree)),
            1 => Tree::Tuple(7, Box::new(tree)),
            2 => Tree::Struct { within: Box::new(tree) },
            3 => Tree::List(vec![tree]),
            4 => Tree::Map(BTreeMap::from([(3, tree)])),
            _ => Tree::Option(Some(Box::new(tree))),
        }
    }

    fn written<T: Serialize>(codec: Codec, value: &T) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        codec.write(value, &mut bytes).map(|()| bytes).map_err(|error| error.to_string())
    }

    fn comes_back<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) {
        for codec in CODECS {
            let bytes = written(codec, value).unwrap();
            assert_eq!(codec.read::<T>(&bytes).as_ref(), Ok(value));
        }
        assert_eq!(written(Codec::Positional, value).unwrap(), postcard::to_extend(value, Vec::new()).unwrap());
        assert_eq!(written(Codec::Named, value).unwrap(), rmp_serde::to_vec_named(value).unwrap());
    }

    fn on_a_small_stack(f: fn()) {
        std::thread::Builder::new().stack_size(2 << 20).spawn(f).unwrap().join().unwrap();
    }

    #[test]
    fn values_that_nest_less_deep_than_they_may_are_written_as_ever() {
        on_a_small_stack(|| {
            for kind in 0..6 {
                // Half as many if a list, a map or an option lies in the enum.
                let levels = if kind < 3 { NESTING_MAX - 1 } else { NESTING_MAX / 2 - 1 };
                comes_back(&(0..levels).fold(Tree::Leaf, |tree, _| wrap(kind, tree)));
            }
            comes_back(
                &(1..NESTING_MAX)
                    .fold(Chain { at: 0, next: None }, |next, at| Chain { at, next: Some(Box::new(next)) }),
            );
        });
    }

    // GUARANTEE: Nesting does not overflow a stack
    #[test]
    fn values_that_nest_too_deep_are_not_written() {
        on_a_small_stack(|| {
            for kind in 0..6 {
                let mut tree = (0..10_000).fold(Tree::Leaf, |tree, _| wrap(kind, tree));
                for codec in CODECS {
                    assert_eq!(written(codec, &tree), Err(TooDeep.to_string()));
                }
                // Its own drop would recurse.
                loop {
                    tree = match tree {
                        Tree::Newtype(within) | Tree::Tuple(_, within) | Tree::Struct { within } => *within,
                        Tree::List(mut all) => all.pop().unwrap(),
                        Tree::Map(all) => all.into_values().next().unwrap(),
                        Tree::Option(within) => *within.unwrap(),
                        Tree::Leaf => break,
                    };
                }
            }
        });
    }

    #[derive(Debug, Serialize, Deserialize)]
    struct List(Vec<List>);

    #[derive(Debug, Serialize, Deserialize)]
    struct Map(BTreeMap<u8, Map>);

    // GUARANTEE: Nesting does not overflow a stack
    #[test]
    fn options_lists_and_maps_that_nest_too_deep_without_enums_are_not_read() {
        fn is_too_deep<T: DeserializeOwned + std::fmt::Debug>(codec: Codec, level: &[u8]) {
            let error = codec.read::<T>(&level.repeat((8 << 20) / level.len())).unwrap_err();
            assert_eq!(error.to_string(), TooDeep.to_string(), "{}, {codec:?}", std::any::type_name::<T>());
        }
        on_a_small_stack(|| {
            is_too_deep::<Chain>(Codec::Positional, &[1, 1]);
            is_too_deep::<List>(Codec::Positional, &[1]);
            is_too_deep::<Map>(Codec::Positional, &[1, 1]);
            is_too_deep::<Chain>(Codec::Named, b"\x82\xa2at\x01\xa4next");
            is_too_deep::<List>(Codec::Named, &[0x91]);
            is_too_deep::<Map>(Codec::Named, &[0x81, 1]);
        });
    }

    // GUARANTEE: Nesting does not overflow a stack
    #[test]
    fn bytes_that_nest_too_deep_are_not_read() {
        on_a_small_stack(|| {
            const LEVELS: usize = 8 << 20;
            // The variant's number, with the bytes in between.
            let positional: [&[u8]; 6] = [&[1], &[2, 7], &[3], &[4, 1], &[5, 1, 3], &[6, 1]];
            for level in positional {
                let mut bytes = level.repeat(LEVELS / level.len());
                bytes.push(0);
                assert_eq!(Codec::Positional.read::<Tree>(&bytes).unwrap_err().to_string(), TooDeep.to_string());
            }
            let once = |kind| {
                let bytes = written(Codec::Named, &wrap(kind, Tree::Leaf)).unwrap();
                let leaf = written(Codec::Named, &Tree::Leaf).unwrap();
                bytes.strip_suffix(&leaf[..]).unwrap().to_vec()
            };
            for level in (0..6).map(once) {
                let bytes = level.repeat(LEVELS / level.len());
                assert_eq!(Codec::Named.read::<Tree>(&bytes).unwrap_err().to_string(), TooDeep.to_string());
            }
            // A field that the type does not know is skipped, at any depth.
            let mut unknown = written(Codec::Named, &Chain { at: 1, next: None }).unwrap();
            unknown[0] += 1;
            unknown.extend([0xa1, b'x']);
            unknown.extend(std::iter::repeat_n(0x91, LEVELS));
            assert_eq!(Codec::Named.read::<Chain>(&unknown).unwrap_err().to_string(), TooDeep.to_string());
        });
    }
}
