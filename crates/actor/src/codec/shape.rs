//! Shapes of types: the serde data that their `Deserialize` requests.
//!
//! A type is read repeatedly from made-up values only, and its requests are recorded. At each choice, another branch is
//! taken each time: enums show their variants in turn, until all of them were seen. (An earlier version used
//! `serde-reflection`, which does this for enums at the top only. It sees 1 or 2 variants of an enum in a `Vec`, an
//! `Option` or another enum, and most messages with an enum in them were therefore written with names.)
//!
//! Recursion ends at a choice, too: an option, a list or a map that is being read is empty inside of itself, and a
//! variant that is being read is not taken again.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::de::value::U32Deserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use siphasher::sip::SipHasher24;

/// The most types and variants that are read for one fingerprint.
const READS_MAX: u32 = 1_000_000;
/// The greatest depth at which types lie in one another.
const DEPTH_MAX: u32 = 100;

/// Returns a number that differs if the serde data models of two types differ. Returns `None` if that cannot be found
/// out: some hand-written `Deserialize`s inspect the value that they read, or reject made-up ones.
pub(crate) fn fingerprint<T: DeserializeOwned>() -> Option<u64> {
    survey(&|atlas, shape| T::deserialize(Look { atlas, at: String::new(), shape }).is_ok())
}

/// Returns the fingerprint of the type that `look` reads once. `look` returns `false` if the type cannot be read.
fn survey(look: &dyn Fn(&mut Atlas, &mut Shape) -> bool) -> Option<u64> {
    let (mut atlas, mut root) = (Atlas::default(), Shape::Unknown);
    loop {
        let mut shape = Shape::Unknown;
        if !look(&mut atlas, &mut shape) {
            return None;
        }
        root.join(shape).ok()?;
        if atlas.is_whole() {
            let mut hasher = SipHasher24::new();
            format!("{root:?} {:?}", atlas.types).hash(&mut hasher);
            return Some(hasher.finish());
        }
    }
}

/// The error of a type that cannot be read.
#[derive(Debug)]
struct No;

impl fmt::Display for No {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("its shape cannot be found out")
    }
}

impl std::error::Error for No {}

impl Error for No {
    fn custom<T: fmt::Display>(_: T) -> No {
        No
    }
}

/// The request at one position.
#[derive(Debug, PartialEq)]
enum Shape {
    /// No request yet.
    Unknown,
    Leaf(&'static str),
    Option(Box<Shape>),
    Seq(Box<Shape>),
    Map(Box<(Shape, Shape)>),
    Tuple(Vec<Shape>),
    /// A type of the atlas, by its number.
    Type(usize),
}

impl Shape {
    /// Takes over the knowledge of `other`.
    fn join(&mut self, other: Shape) -> Result<(), No> {
        match (self, other) {
            (_, Shape::Unknown) => Ok(()),
            (this @ Shape::Unknown, other) => {
                *this = other;
                Ok(())
            }
            (Shape::Option(this), Shape::Option(other)) | (Shape::Seq(this), Shape::Seq(other)) => this.join(*other),
            (Shape::Map(this), Shape::Map(other)) => {
                this.0.join(other.0)?;
                this.1.join(other.1)
            }
            (Shape::Tuple(this), Shape::Tuple(other)) => join_all(this, other),
            (this, other) if *this == other => Ok(()),
            // The type requests different data at one position.
            _ => Err(No),
        }
    }
}

fn join_all(these: &mut [Shape], others: Vec<Shape>) -> Result<(), No> {
    if these.len() != others.len() {
        return Err(No);
    }
    these.iter_mut().zip(others).try_for_each(|(this, other)| this.join(other))
}

/// A named type: an enum, or another type with one variant without a name.
struct Type {
    name: &'static str,
    variants: Vec<Variant>,
}

impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.name, self.variants)
    }
}

struct Variant {
    name: &'static str,
    /// The names of its fields, and their shapes; `None` for a unit, no names for a tuple.
    fields: Option<(Fields, Vec<Shape>)>,
    reads: u32,
    is_open: bool,
}

type Fields = &'static [&'static str];

impl Variant {
    fn new(name: &'static str) -> Variant {
        Variant { name, fields: None, reads: 0, is_open: false }
    }

    fn join(&mut self, names: Fields, shapes: Vec<Shape>) -> Result<(), No> {
        match &mut self.fields {
            None => {
                self.fields = Some((names, shapes));
                Ok(())
            }
            Some((_, known)) => join_all(known, shapes),
        }
    }
}

impl fmt::Debug for Variant {
    /// Writes the parts in which two equal types have to agree.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.name, self.fields)
    }
}

/// The knowledge of all types that were met.
#[derive(Default)]
struct Atlas {
    types: Vec<Type>,
    /// The numbers by Rust's names of the types: two types of one name may lie in two modules.
    by_name: HashMap<&'static str, usize>,
    /// The options, lists and maps that are being read, by their positions.
    open: HashSet<String>,
    reads: u32,
    depth: u32,
}

impl Atlas {
    fn number_of(&mut self, path: &'static str, name: &'static str, variants: Fields) -> usize {
        *self.by_name.entry(path).or_insert_with(|| {
            let variants = variants.iter().map(|name| Variant::new(name)).collect();
            self.types.push(Type { name, variants });
            self.types.len() - 1
        })
    }

    /// Returns whether all variants were seen.
    fn is_whole(&self) -> bool {
        self.types.iter().flat_map(|known| &known.variants).all(|variant| variant.fields.is_some())
    }
}

/// Reads the data at one position.
struct Look<'a> {
    atlas: &'a mut Atlas,
    /// The last type around the position, and the path from that type.
    at: String,
    shape: &'a mut Shape,
}

impl Look<'_> {
    fn leaf(self, name: &'static str) {
        *self.shape = Shape::Leaf(name);
    }

    /// Starts to read data that may be empty. Returns the path of its parts, and `false` if the data lies inside of
    /// itself, where it is empty.
    fn open(&mut self) -> (String, bool) {
        (format!("{}/", self.at), self.atlas.open.insert(self.at.clone()))
    }

    /// Ends what [`Look::open`] started.
    fn close(&mut self, is_first: bool) {
        if is_first {
            self.atlas.open.remove(&self.at);
        }
    }

    /// Names the type at the position.
    fn name(&mut self, path: &'static str, name: &'static str, variants: Fields) -> usize {
        let number = self.atlas.number_of(path, name, variants);
        *self.shape = Shape::Type(number);
        number
    }

    /// Chooses a variant of the enum: the one that was read least, except those that are being read.
    fn choose(&mut self, path: &'static str, name: &'static str, variants: Fields) -> Result<(usize, usize), No> {
        let number = self.name(path, name, variants);
        let known = self.atlas.types[number].variants.iter_mut().enumerate();
        let (index, variant) =
            known.filter(|(_, variant)| !variant.is_open).min_by_key(|(_, variant)| variant.reads).ok_or(No)?;
        variant.reads += 1;
        variant.is_open = true;
        Ok((number, index))
    }

    /// Reads a named type with one variant.
    fn of_type<'de, V: Visitor<'de>>(
        mut self,
        name: &'static str,
        names: Fields,
        count: usize,
        visitor: V,
    ) -> Result<V::Value, No> {
        let number = self.name(std::any::type_name::<V::Value>(), name, &[""]);
        let mut fields = self.atlas.begin((number, 0), names, count)?;
        let value = visitor.visit_seq(fields.parts(self.atlas))?;
        self.atlas.end(fields)?;
        Ok(value)
    }
}

/// The fields of a variant that is being read.
struct Reading {
    variant: (usize, usize),
    names: Fields,
    shapes: Vec<Shape>,
}

impl Reading {
    fn parts<'a>(&'a mut self, atlas: &'a mut Atlas) -> Parts<'a> {
        let (number, variant) = self.variant;
        Parts { atlas, at: format!("{number}.{variant}."), shapes: &mut self.shapes, next: 0 }
    }
}

impl Atlas {
    /// Starts to read the fields of a variant.
    fn begin(&mut self, variant: (usize, usize), names: Fields, count: usize) -> Result<Reading, No> {
        self.reads += 1;
        self.depth += 1;
        if self.reads > READS_MAX || self.depth > DEPTH_MAX {
            return Err(No);
        }
        Ok(Reading { variant, names, shapes: unknown(count) })
    }

    /// Ends what [`Atlas::begin`] started.
    fn end(&mut self, Reading { variant: (number, variant), names, shapes }: Reading) -> Result<(), No> {
        self.depth -= 1;
        self.types[number].variants[variant].join(names, shapes)
    }
}

fn unknown(count: usize) -> Vec<Shape> {
    (0..count).map(|_| Shape::Unknown).collect()
}

/// Parts in sequence.
struct Parts<'a> {
    atlas: &'a mut Atlas,
    at: String,
    shapes: &'a mut [Shape],
    next: usize,
}

impl Parts<'_> {
    fn next(&mut self) -> Option<Look<'_>> {
        let shape = self.shapes.get_mut(self.next)?;
        let at = format!("{}{}", self.at, self.next);
        self.next += 1;
        Some(Look { atlas: self.atlas, at, shape })
    }
}

impl<'de> SeqAccess<'de> for Parts<'_> {
    type Error = No;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, No> {
        match self.next() {
            Some(look) => seed.deserialize(look).map(Some),
            None => Ok(None),
        }
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.shapes.len() - self.next)
    }
}

/// A map with a single entry.
impl<'de> MapAccess<'de> for Parts<'_> {
    type Error = No;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, No> {
        self.next_element_seed(seed)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, No> {
        self.next_element_seed(seed)?.ok_or(No)
    }
}

/// A variant that was chosen.
struct Choice<'a> {
    atlas: &'a mut Atlas,
    variant: (usize, usize),
}

impl<'de> EnumAccess<'de> for Choice<'_> {
    type Error = No;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self), No> {
        let index: U32Deserializer<No> = (self.variant.1 as u32).into_deserializer();
        Ok((seed.deserialize(index)?, self))
    }
}

impl<'de> VariantAccess<'de> for Choice<'_> {
    type Error = No;

    fn unit_variant(self) -> Result<(), No> {
        let fields = self.atlas.begin(self.variant, &[], 0)?;
        self.atlas.end(fields)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, No> {
        let mut fields = self.atlas.begin(self.variant, &[], 1)?;
        let value = fields.parts(self.atlas).next_element_seed(seed)?.ok_or(No)?;
        self.atlas.end(fields)?;
        Ok(value)
    }

    fn tuple_variant<V: Visitor<'de>>(self, count: usize, visitor: V) -> Result<V::Value, No> {
        self.fields(&[], count, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, names: Fields, visitor: V) -> Result<V::Value, No> {
        self.fields(names, names.len(), visitor)
    }
}

impl Choice<'_> {
    fn fields<'de, V: Visitor<'de>>(self, names: Fields, count: usize, visitor: V) -> Result<V::Value, No> {
        let mut fields = self.atlas.begin(self.variant, names, count)?;
        let value = visitor.visit_seq(fields.parts(self.atlas))?;
        self.atlas.end(fields)?;
        Ok(value)
    }
}

/// Leaves: their names and their made-up values. (Numbers are 1, because some are never 0.)
macro_rules! leaves {
    ($($deserialize:ident $visit:ident $name:literal $value:expr;)*) => {
        $(fn $deserialize<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, No> {
            self.leaf($name);
            visitor.$visit($value)
        })*
    };
}

impl<'de> Deserializer<'de> for Look<'_> {
    type Error = No;

    leaves! {
        deserialize_bool visit_bool "bool" false;
        deserialize_i8 visit_i8 "i8" 1;
        deserialize_i16 visit_i16 "i16" 1;
        deserialize_i32 visit_i32 "i32" 1;
        deserialize_i64 visit_i64 "i64" 1;
        deserialize_i128 visit_i128 "i128" 1;
        deserialize_u8 visit_u8 "u8" 1;
        deserialize_u16 visit_u16 "u16" 1;
        deserialize_u32 visit_u32 "u32" 1;
        deserialize_u64 visit_u64 "u64" 1;
        deserialize_u128 visit_u128 "u128" 1;
        deserialize_f32 visit_f32 "f32" 1.0;
        deserialize_f64 visit_f64 "f64" 1.0;
        deserialize_char visit_char "char" 'a';
        deserialize_str visit_str "str" "";
        deserialize_string visit_str "str" "";
        deserialize_bytes visit_bytes "bytes" &[];
        deserialize_byte_buf visit_bytes "bytes" &[];
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, No> {
        self.leaf("unit");
        visitor.visit_unit()
    }

    fn deserialize_option<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, No> {
        let mut inner = Shape::Unknown;
        let (at, is_first) = self.open();
        let value = match is_first {
            true => visitor.visit_some(Look { atlas: self.atlas, at, shape: &mut inner }),
            false => visitor.visit_none(),
        };
        self.close(is_first);
        if value.is_ok() {
            *self.shape = Shape::Option(Box::new(inner));
        }
        value
    }

    fn deserialize_seq<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, No> {
        let mut inner = [Shape::Unknown];
        let (at, is_first) = self.open();
        let shapes = &mut inner[..usize::from(is_first)];
        let value = visitor.visit_seq(Parts { atlas: self.atlas, at, shapes, next: 0 });
        self.close(is_first);
        let [inner] = inner;
        if value.is_ok() {
            *self.shape = Shape::Seq(Box::new(inner));
        }
        value
    }

    fn deserialize_map<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, No> {
        let mut inner = [Shape::Unknown, Shape::Unknown];
        let (at, is_first) = self.open();
        let shapes = &mut inner[..if is_first { 2 } else { 0 }];
        let value = visitor.visit_map(Parts { atlas: self.atlas, at, shapes, next: 0 });
        self.close(is_first);
        if value.is_ok() {
            *self.shape = Shape::Map(Box::new(inner.into()));
        }
        value
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, count: usize, visitor: V) -> Result<V::Value, No> {
        let mut shapes = unknown(count);
        let parts = Parts { atlas: self.atlas, at: format!("{}/", self.at), shapes: &mut shapes, next: 0 };
        let value = visitor.visit_seq(parts);
        if value.is_ok() {
            *self.shape = Shape::Tuple(shapes);
        }
        value
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(mut self, name: &'static str, visitor: V) -> Result<V::Value, No> {
        let number = self.name(std::any::type_name::<V::Value>(), name, &[""]);
        let fields = self.atlas.begin((number, 0), &[], 0)?;
        let value = visitor.visit_unit()?;
        self.atlas.end(fields)?;
        Ok(value)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, No> {
        self.of_type(name, &[], 1, visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        count: usize,
        visitor: V,
    ) -> Result<V::Value, No> {
        self.of_type(name, &[], count, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        names: Fields,
        visitor: V,
    ) -> Result<V::Value, No> {
        self.of_type(name, names, names.len(), visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        variants: Fields,
        visitor: V,
    ) -> Result<V::Value, No> {
        let variant = self.choose(std::any::type_name::<V::Value>(), name, variants)?;
        let value = visitor.visit_enum(Choice { atlas: self.atlas, variant });
        self.atlas.types[variant.0].variants[variant.1].is_open = false;
        value
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, No> {
        Err(No)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, _: V) -> Result<V::Value, No> {
        Err(No)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, No> {
        Err(No)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::SocketAddr;
    use std::num::NonZeroU16;
    use std::time::Duration;

    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "their shapes count")]
    enum Colour {
        Red,
        Mixed(u8, u8, u8),
        Named { name: String },
    }

    mod before {
        use serde::Deserialize;

        #[derive(Deserialize)]
        #[expect(dead_code, reason = "their shapes count")]
        pub(super) enum Colour {
            Red,
            Mixed(u8, u8, u8),
            Named { name: Option<String> },
        }
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "their shapes count")]
    struct Picture<C> {
        frame: Option<C>,
        colours: Vec<(C, NonZeroU16)>,
        at: SocketAddr,
        taken: Duration,
        tags: BTreeMap<String, C>,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "their shapes count")]
    enum Wall<C> {
        Bare,
        Painted(C),
        Hung { pictures: [Result<Picture<C>, String>; 2] },
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "their shapes count")]
    struct Node<C> {
        next: Option<Box<Node<C>>>,
        children: Vec<Node<C>>,
        term: Term<C>,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "their shapes count")]
    enum Term<C> {
        Sum(Box<Term<C>>, Box<Term<C>>),
        Not(Box<Term<C>>),
        Leaf(C),
    }

    #[derive(Deserialize)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "their shapes count")]
    enum Either {
        Number(u8),
        Text(String),
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "it cannot be made")]
    struct Endless {
        again: Box<Endless>,
    }

    /// Checks that two types that differ in the last variant of an enum deep inside have two fingerprints.
    fn tells_apart<Now: DeserializeOwned, Before: DeserializeOwned>() {
        let (now, before) = (fingerprint::<Now>(), fingerprint::<Before>());
        assert!(now.is_some() && before.is_some() && now != before, "{now:?} {before:?}");
        assert_eq!(now, fingerprint::<Now>());
    }

    #[test]
    fn all_variants_of_all_enums_count_wherever_they_are() {
        tells_apart::<Colour, before::Colour>();
        tells_apart::<Picture<Colour>, Picture<before::Colour>>();
        tells_apart::<Wall<Colour>, Wall<before::Colour>>();
        tells_apart::<Vec<Wall<Colour>>, Vec<Wall<before::Colour>>>();
        tells_apart::<Option<Wall<Wall<Colour>>>, Option<Wall<Wall<before::Colour>>>>();
    }

    #[test]
    fn types_may_be_recursive() {
        tells_apart::<Node<Colour>, Node<before::Colour>>();
        tells_apart::<Term<Colour>, Term<before::Colour>>();
    }

    #[test]
    fn other_things_that_differ() {
        tells_apart::<(u8, u16), (u16, u8)>();
        tells_apart::<[u8; 3], [u8; 4]>();
        tells_apart::<Vec<u8>, Option<u8>>();
        tells_apart::<BTreeMap<u8, u8>, BTreeMap<u8, u16>>();
        tells_apart::<String, Vec<u8>>();
        tells_apart::<(), u8>();
    }

    #[test]
    fn types_of_one_name_and_one_shape_are_alike_wherever_they_are_declared() {
        mod elsewhere {
            use serde::Deserialize;

            #[derive(Deserialize)]
            #[expect(dead_code, reason = "their shapes count")]
            pub(super) enum Colour {
                Red,
                Mixed(u8, u8, u8),
                Named { name: String },
            }
        }
        assert_eq!(fingerprint::<Picture<Colour>>(), fingerprint::<Picture<elsewhere::Colour>>());
    }

    #[test]
    fn a_type_that_needs_a_self_describing_format_has_no_fingerprint() {
        assert_eq!(fingerprint::<Either>(), None);
        assert_eq!(fingerprint::<Vec<Either>>(), None);
    }

    #[test]
    fn an_endless_type_has_no_fingerprint() {
        assert_eq!(fingerprint::<Endless>(), None);
    }

    /// The types of references and of phases, with the names that they had first.
    mod former {
        use std::net::SocketAddr;

        use serde::Deserialize;

        use crate::actor::group::GroupName;

        #[derive(Deserialize)]
        #[expect(dead_code, reason = "their shapes count")]
        pub(super) enum RefName {
            Mine { slot: u64, life: u64, seal: u64 },
            Yours(u32),
            Moved { born: Seat, at: Seat },
            Other { theater: u64, address: SocketAddr, slot: u64, life: u64, seal: u64 },
            Member { group: GroupName, born: Seat, at: Option<Seat> },
        }

        #[derive(Deserialize)]
        #[expect(dead_code, reason = "their shapes count")]
        pub(super) struct Seat {
            theater: u64,
            address: Option<SocketAddr>,
            slot: u64,
            life: u64,
            seal: u64,
        }

        #[derive(Deserialize)]
        pub(super) enum Phase {
            Queued,
            Running,
        }
    }

    /// Theaters of other builds compare these fingerprints, and write by names where they differ.
    #[test]
    fn references_and_phases_have_the_fingerprints_of_their_former_names() {
        let now = [fingerprint::<crate::remote::reference_wire::RefName>(), fingerprint::<crate::AskPhase>()];
        assert!(now.iter().all(Option::is_some), "{now:?}");
        assert_eq!(now, [fingerprint::<former::RefName>(), fingerprint::<former::Phase>()]);
    }
}
