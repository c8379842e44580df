//! Compares the values that are read with those that rmp-serde reads.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::ops::Range;
use std::time::Duration;

use proptest::prelude::*;
use serde::de::{IgnoredAny, MapAccess, SeqAccess};
use serde::{Deserialize, Serialize, Serializer};

use super::*;
use crate::codec::Codec;
use crate::codec::nesting::Nested;

#[derive(Debug, Serialize, Deserialize)]
struct Record {
    id: u64,
    name: String,
    #[serde(default)]
    tags: Vec<u32>,
    kind: Kind,
    half: Option<f64>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Strict {
    #[serde(rename = "a")]
    first: u8,
    #[serde(skip)]
    #[expect(dead_code, reason = "Debug reads it")]
    skipped: (),
    unit: (),
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Kind {
    Unit,
    Newtype(u32),
    Option(Option<i8>),
    Tuple(i8, String),
    Struct {
        x: u16,
        #[serde(default)]
        y: bool,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct Integers(i8, i16, i32, i64, i128, u8, u16, u32, u64, u128);

#[derive(Debug, Serialize, Deserialize)]
struct Unit;

#[derive(Debug, Serialize, Deserialize)]
struct Newtype(u8);

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Untagged {
    Number(i32),
    Text(String),
    Struct { x: u8 },
    List(Vec<Untagged>),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type")]
enum Internally {
    Unit,
    Newtype(Strict),
    Struct { x: Option<u8> },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", content = "of")]
enum Adjacently {
    Unit,
    Tuple(u8, f32),
}

#[derive(Debug, Serialize, Deserialize)]
struct Flattened {
    id: u8,
    #[serde(flatten)]
    strict: Flat,
    #[serde(flatten)]
    rest: BTreeMap<String, Untagged>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Flat {
    x: i64,
}

#[derive(Debug, Serialize, Deserialize)]
struct FlattenedNumbers {
    #[serde(flatten)]
    rest: BTreeMap<i64, i64>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename = "_ExtStruct")]
struct Extension((i8, Bytes));

#[derive(Debug)]
struct Bytes(Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(of: D) -> Result<Bytes, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = Bytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }

            fn visit_str<E>(self, text: &str) -> Result<Bytes, E> {
                Ok(Bytes(text.into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Bytes, A::Error> {
                let mut bytes = Vec::new();
                while let Some(byte) = items.next_element()? {
                    bytes.push(byte);
                }
                Ok(Bytes(bytes))
            }
        }
        of.deserialize_byte_buf(Visit)
    }
}

/// A number whose visitor accepts `u8` alone.
#[derive(Debug)]
struct Byte(u8);

impl Serialize for Byte {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u8(self.0)
    }
}

impl<'de> Deserialize<'de> for Byte {
    fn deserialize<D: Deserializer<'de>>(of: D) -> Result<Byte, D::Error> {
        struct Visit;
        impl Visitor<'_> for Visit {
            type Value = Byte;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a byte")
            }

            fn visit_u8<E>(self, byte: u8) -> Result<Byte, E> {
                Ok(Byte(byte))
            }
        }
        of.deserialize_u8(Visit)
    }
}

/// Any value, as its visitor sees it.
#[derive(Clone, Debug)]
enum Any {
    Unit,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    F32(f32),
    F64(f64),
    Str(String),
    Bytes(Vec<u8>),
    Seq(Vec<Any>),
    Map(Vec<(Any, Any)>),
    Newtype(Box<Any>),
}

impl Serialize for Any {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Any::Unit => to.serialize_unit(),
            Any::Bool(value) => to.serialize_bool(*value),
            Any::Unsigned(value) => to.serialize_u64(*value),
            Any::Signed(value) => to.serialize_i64(*value),
            Any::F32(value) => to.serialize_f32(*value),
            Any::F64(value) => to.serialize_f64(*value),
            Any::Str(value) => to.serialize_str(value),
            Any::Bytes(value) => to.serialize_bytes(value),
            Any::Seq(items) => to.collect_seq(items),
            Any::Map(entries) => to.collect_map(entries.iter().map(|(key, value)| (key, value))),
            Any::Newtype(of) => to.serialize_newtype_struct("Newtype", of),
        }
    }
}

impl<'de> Deserialize<'de> for Any {
    fn deserialize<D: Deserializer<'de>>(of: D) -> Result<Any, D::Error> {
        macro_rules! visit {
            ($($name:ident $of:ty => $value:expr;)*) => {$(
                fn $name<E: de::Error>(self, value: $of) -> Result<Any, E> {
                    Ok($value(value.into()))
                }
            )*};
        }

        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = Any;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            visit! {
                visit_bool bool => Any::Bool;
                visit_u64 u64 => Any::Unsigned;
                visit_i64 i64 => Any::Signed;
                visit_f32 f32 => Any::F32;
                visit_f64 f64 => Any::F64;
                visit_str &str => Any::Str;
                visit_bytes &[u8] => Any::Bytes;
            }

            fn visit_unit<E>(self) -> Result<Any, E> {
                Ok(Any::Unit)
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(self, of: D) -> Result<Any, D::Error> {
                Any::deserialize(of).map(|of| Any::Newtype(Box::new(of)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Any, A::Error> {
                let mut all = Vec::new();
                while let Some(item) = items.next_element()? {
                    all.push(item);
                }
                Ok(Any::Seq(all))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Any, A::Error> {
                let mut all = Vec::new();
                while let Some(entry) = entries.next_entry()? {
                    all.push(entry);
                }
                Ok(Any::Map(all))
            }
        }
        of.deserialize_any(Visit)
    }
}

/// Reads a value as this module did before it had its own reader.
fn reference<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let mut rest = bytes;
    let mut deserializer = rmp_serde::Deserializer::new(&mut rest);
    deserializer.set_max_depth(usize::MAX);
    let value = T::deserialize(Nested::new(&mut deserializer)).map_err(|error| error.to_string())?;
    if rest.is_empty() { Ok(value) } else { Err("bytes are left behind the value".to_owned()) }
}

fn reads_as_reference<T: DeserializeOwned + Debug>(bytes: &[u8]) {
    match (reference::<T>(bytes), Codec::Named.read::<T>(bytes)) {
        (Ok(reference), Ok(read)) => assert_eq!(format!("{read:?}"), format!("{reference:?}"), "{bytes:02x?}"),
        (Err(_), Err(_)) => {}
        // The reference tells `u16` from `u64`. In the buffer of tagged enums, serde takes `u64` alone for a field.
        (Err(why), Ok(_)) if why.starts_with("invalid type: integer") && why.ends_with("field identifier") => {}
        (Err(why), Ok(_)) if why.starts_with("invalid type: integer") && why.ends_with("expected a byte") => {}
        (reference, read) => {
            panic!("{} of {bytes:02x?}: {read:?}, but the reference is {reference:?}", std::any::type_name::<T>())
        }
    }
}

/// A type with some of its values.
struct Species {
    reads_as_reference: fn(&[u8]),
    written: Vec<Vec<u8>>,
}

fn species<T: Serialize + DeserializeOwned + Debug, const N: usize>(values: [T; N]) -> Species {
    let written = values.iter().flat_map(|value| {
        let mut named = Vec::new();
        Codec::Named.write(value, &mut named).unwrap();
        assert_eq!(format!("{:?}", Codec::Named.read::<T>(&named).unwrap()), format!("{value:?}"));
        // Structs as lists.
        [named, rmp_serde::to_vec(value).unwrap()]
    });
    Species { reads_as_reference: reads_as_reference::<T>, written: written.collect() }
}

fn zoo() -> Vec<Species> {
    let text = || "tëxt".to_owned();
    let strict = |first| Strict { first, skipped: (), unit: () };
    vec![
        species([true, false]),
        species([0_u8, 127, 255]),
        species([0_u16, 300]),
        species([70_000_u32]),
        species([u64::MAX]),
        species([1_u128, u128::MAX]),
        species([i8::MIN, -1, 5]),
        species([i16::MIN]),
        species([i32::MIN]),
        species([i64::MIN, i64::MAX]),
        species([i128::MIN, -3]),
        species([0.5_f32]),
        species([0.1_f64]),
        species(['a', 'ß']),
        species([String::new(), text(), "longer than thirty-one bytes of text".to_owned()]),
        species([Cow::Borrowed("cow")]),
        species([()]),
        species([Unit]),
        species([Newtype(7)]),
        species([Byte(7), Byte(200)]),
        species([vec![Newtype(7), Newtype(200)]]),
        species([Some(Some(3_u8)), None]),
        species([Some(Unit), None]),
        species([vec![Some(text()), None]]),
        species([vec![(), ()]]),
        species([vec![1_u8, 200]]),
        species([[1_u8, 2, 3]]),
        species([(1_u8, -2_i8)]),
        species([(0..20).collect::<Vec<u32>>()]),
        species([vec![Kind::Unit, Kind::Newtype(1)]]),
        species([
            Kind::Unit,
            Kind::Newtype(70_000),
            Kind::Option(None),
            Kind::Option(Some(-1)),
            Kind::Tuple(-1, text()),
            Kind::Struct { x: 1, y: true },
        ]),
        species([BTreeMap::from([("a".to_owned(), 1_u8), ("b".to_owned(), 2)])]),
        species([BTreeMap::from([(-300_i16, vec![1_u8]), (2, vec![])])]),
        species([BTreeMap::from([((1_u8, true), ())])]),
        species([BTreeMap::from([(Kind::Unit, Kind::Newtype(1)), (Kind::Tuple(1, text()), Kind::Unit)])]),
        species([Integers(-1, -300, -70_000, i64::MIN, -1, 1, 300, 70_000, u64::MAX, 1)]),
        species([Record {
            id: 7,
            name: text(),
            tags: vec![1],
            kind: Kind::Struct { x: 1, y: false },
            half: Some(0.5),
        }]),
        species([strict(7)]),
        species([
            Untagged::Number(-7),
            Untagged::Text(text()),
            Untagged::Struct { x: 7 },
            Untagged::List(vec![Untagged::Number(1)]),
        ]),
        species([Internally::Unit, Internally::Newtype(strict(1)), Internally::Struct { x: Some(1) }]),
        species([Adjacently::Unit, Adjacently::Tuple(1, 0.5)]),
        species([Flattened { id: 7, strict: Flat { x: 1 }, rest: BTreeMap::from([(text(), Untagged::Number(1))]) }]),
        species([FlattenedNumbers { rest: BTreeMap::from([(-7, 8), (7, -8)]) }]),
        species([Bytes(vec![]), Bytes(vec![1, 2, 255])]),
        species([Extension((-1, Bytes(vec![1, 2, 3, 4]))), Extension((5, Bytes(vec![1, 2, 3])))]),
        species([Duration::from_millis(1_500)]),
        species([SocketAddr::from(([127, 0, 0, 1], 80))]),
        species([NonZeroU16::MIN]),
        species([Range { start: 1_u8, end: 2 }]),
        species([Ok::<u8, String>(1), Err(text())]),
        species([BTreeSet::from([text()])]),
        species([
            Any::Unit,
            Any::Str(text()),
            Any::Map(vec![(Any::Unsigned(1), Any::Seq(vec![Any::Bytes(vec![1]), Any::Signed(-1)]))]),
        ]),
        Species { reads_as_reference: reads_as_reference::<IgnoredAny>, written: vec![] },
    ]
}

/// The first bytes of values of all kinds.
const FIRSTS: [u8; 43] = [
    0x00, 0x7f, 0x80, 0x81, 0x90, 0x91, 0x92, 0xa0, 0xa1, 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9,
    0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf, 0xd0, 0xd1, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xdb, 0xdc,
    0xdd, 0xde, 0xdf, 0xe0, 0xff,
];

#[test]
fn each_type_is_read_as_rmp_serde_reads_it_from_the_values_of_all_types() {
    let zoo = zoo();
    for Species { reads_as_reference, .. } in &zoo {
        zoo.iter().flat_map(|species| &species.written).for_each(|bytes| reads_as_reference(bytes));
    }
}

#[test]
fn damaged_values_are_read_as_rmp_serde_reads_them() {
    for Species { reads_as_reference, written } in zoo() {
        for bytes in written {
            for at in 0..bytes.len() {
                reads_as_reference(&bytes[..at]);
                reads_as_reference(&[&bytes[..at], &bytes[at + 1..]].concat());
                let mut damaged = bytes.clone();
                for byte in 0..=u8::MAX {
                    damaged[at] = byte;
                    reads_as_reference(&damaged);
                }
                damaged[at] = bytes[at];
                damaged.insert(at, 0);
                for byte in FIRSTS {
                    damaged[at] = byte;
                    reads_as_reference(&damaged);
                }
            }
        }
    }
}

fn any_value() -> impl Strategy<Value = Any> {
    let leaf = prop_oneof![
        Just(Any::Unit),
        any::<bool>().prop_map(Any::Bool),
        any::<u64>().prop_map(Any::Unsigned),
        any::<i64>().prop_map(Any::Signed),
        (-5_i64..5).prop_map(Any::Signed),
        any::<f32>().prop_map(Any::F32),
        any::<f64>().prop_map(Any::F64),
        prop::sample::select(vec!["id", "name", "x", "type", "of", "Unit", "Newtype", "Tuple", "Struct"])
            .prop_map(|text| Any::Str(text.to_owned())),
        "\\PC*".prop_map(Any::Str),
        prop::collection::vec(any::<u8>(), 0..20).prop_map(Any::Bytes),
    ];
    leaf.prop_recursive(4, 40, 6, |of| {
        prop_oneof![
            prop::collection::vec(of.clone(), 0..20).prop_map(Any::Seq),
            prop::collection::vec((of.clone(), of), 0..20).prop_map(Any::Map),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn other_values_are_read_as_rmp_serde_reads_them(value in any_value()) {
        let mut bytes = Vec::new();
        Codec::Named.write(&value, &mut bytes).unwrap();
        zoo().iter().for_each(|species| (species.reads_as_reference)(&bytes));
    }

    #[test]
    fn other_bytes_are_read_as_rmp_serde_reads_them(
        bytes in prop::collection::vec(prop_oneof![prop::sample::select(&FIRSTS[..]), any::<u8>(), 0_u8..4], 0..40),
    ) {
        zoo().iter().for_each(|species| (species.reads_as_reference)(&bytes));
    }

    #[test]
    fn values_with_several_damages_are_read_as_rmp_serde_reads_them(
        value in any::<prop::sample::Index>(),
        damages in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(&FIRSTS[..])), 1..5),
    ) {
        let zoo = zoo();
        let written: Vec<_> = zoo.iter().flat_map(|species| &species.written).collect();
        let mut bytes = value.get(&written).to_vec();
        for (at, byte) in damages {
            *at.get_mut(&mut bytes) = byte;
        }
        zoo.iter().for_each(|species| (species.reads_as_reference)(&bytes));
    }
}

#[test]
fn values_may_be_nested_as_deep_as_before() {
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "Debug reads it")]
    struct Tree(Vec<Tree>);

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "Debug reads it")]
    enum Chain {
        End,
        Next(Box<Chain>),
    }

    for levels in NESTING_MAX as usize - 3..NESTING_MAX as usize + 3 {
        let list = [vec![0x91; levels - 1], vec![0x90]].concat();
        reads_as_reference::<Tree>(&list);
        reads_as_reference::<Any>(&list);
        reads_as_reference::<IgnoredAny>(&list);
        let map = [[0x81, 0xc0].repeat(levels - 1), vec![0x80]].concat();
        reads_as_reference::<Any>(&map);
        reads_as_reference::<IgnoredAny>(&map);
        reads_as_reference::<Chain>(&[[0x81, 1].repeat(levels - 1), vec![0]].concat());
    }
}

#[test]
fn a_list_announces_no_more_items_than_there_are_bytes() {
    for (left, announced) in [(u32::MAX as usize, 2), (1, 1)] {
        let mut cursor = Cursor { rest: &[1, 2], content: Content::Values };
        let parts = &mut Parts { cursor: &mut cursor, left, levels: NESTING_MAX };
        assert_eq!(SeqAccess::size_hint(&parts), Some(announced));
        assert_eq!(MapAccess::size_hint(&parts), Some(announced));
    }
    // Announced are 4,294,967,295 items, entries or bytes.
    for first in [0xdd, 0xdf, 0xdb, 0xc6, 0xc9] {
        let bytes = [first, 0xff, 0xff, 0xff, 0xff, 1, 2];
        let read = Codec::Named.read::<Any>(&bytes).unwrap_err();
        assert_eq!(read.to_string(), "the bytes end before the value does");
        assert!(Codec::Named.read::<IgnoredAny>(&bytes).is_err());
    }
}

#[test]
fn errors_name_the_expected_and_the_found() {
    fn error<T: DeserializeOwned + Debug>(value: impl Serialize) -> String {
        let mut bytes = Vec::new();
        Codec::Named.write(&value, &mut bytes).unwrap();
        Codec::Named.read::<T>(&bytes).unwrap_err().to_string()
    }

    assert_eq!(error::<u32>("x"), "invalid type: string \"x\", expected u32");
    assert_eq!(error::<u8>(300), "invalid value: integer `300`, expected u8");
    assert_eq!(error::<bool>(()), "invalid type: unit value, expected a boolean");
    assert_eq!(error::<String>(7), "invalid type: integer `7`, expected a string");
    assert_eq!(error::<Vec<u8>>(7), "invalid type: integer `7`, expected a sequence");
    assert_eq!(error::<Strict>("x"), "invalid type: string \"x\", expected struct Strict");
    assert_eq!(error::<u128>("x"), "invalid type: string \"x\", expected u128");
    assert_eq!(error::<Strict>(BTreeMap::from([("a", 1)])), "missing field `unit`");
    assert_eq!(error::<Strict>(BTreeMap::from([("b", 1)])), "unknown field `b`, expected `a` or `unit`");
    assert_eq!(error::<(u8, u8)>([1]), "invalid length 1, expected a tuple of size 2");
    assert_eq!(error::<(u8, u8)>([1, 2, 3]), "a list or map has 1 values more than the type");
    assert_eq!(
        error::<Kind>("x"),
        "unknown variant `x`, expected one of `Unit`, `Newtype`, `Option`, `Tuple`, `Struct`"
    );
    assert_eq!(error::<Kind>([1, 2]), "invalid type: sequence, expected variant identifier");
    assert_eq!(error::<Kind>(BTreeMap::from([(1, 1), (2, 2)])), "the map of an enum must have one entry");
    assert_eq!(error::<Kind>("Newtype"), "invalid type: unit variant, expected newtype variant");
    assert_eq!(error::<Kind>(BTreeMap::from([("Unit", 1)])), "a unit variant has data");
    assert_eq!(Codec::Named.read::<u8>(&[]).unwrap_err().to_string(), "the bytes end before the value does");
    assert_eq!(Codec::Named.read::<u8>(&[1, 2]).unwrap_err().to_string(), "1 bytes are left behind the value");
    assert_eq!(Codec::Named.read::<u8>(&[0xc1]).unwrap_err().to_string(), "no value begins with the byte 0xc1");
}
