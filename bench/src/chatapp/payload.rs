//! The content of a post.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::graph::{Graph, Walk};

/// The bytes and the objects of a post. All members share both, immutable, by reference count: a large message is sent without a
/// copy. Missing parts are `None`, and cost nothing.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Payload {
    bytes: Option<Arc<[u8]>>,
    graph: Option<Arc<Graph>>,
}

impl Payload {
    /// Creates this number of equal bytes, and a graph of this number of objects, chosen by the post's name.
    pub(super) fn new(post: u64, (size, byte): (u32, u8), objects: u32) -> Payload {
        Payload {
            bytes: (size > 0).then(|| std::iter::repeat_n(byte, size as usize).collect()),
            graph: (objects > 0).then(|| Arc::new(Graph::new(post, objects))),
        }
    }

    /// Returns the same bytes with another graph; for the tests of the check.
    pub(super) fn with_graph(&self, seed: u64, objects: u32) -> Payload {
        Payload { bytes: self.bytes.clone(), ..Payload::new(seed, (0, 0), objects) }
    }

    /// Returns the expected result of a walk through the objects.
    #[inline]
    pub(super) fn made(&self) -> Walk {
        self.graph.as_ref().map_or(Walk::default(), |graph| graph.made())
    }

    /// Looks at each object once.
    #[inline]
    pub(super) fn walk(&self) -> Walk {
        self.graph.as_ref().map_or(Walk::default(), |graph| graph.walk())
    }

    /// Returns a hash of a post's name and content: the length and both ends stand for all bytes, and the result of a walk
    /// for the objects.
    #[inline]
    pub(super) fn content(&self, post: u64, walk: Walk) -> u64 {
        let post = post ^ walk.sum;
        match self.bytes.as_deref() {
            Some(bytes @ [first, .., last]) => {
                post ^ (bytes.len() as u64) << 16 ^ u64::from(*first) << 8 ^ u64::from(*last)
            }
            Some([only]) => post ^ 1 << 16 ^ u64::from(*only),
            _ => post,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_name_the_post_its_bytes_and_its_objects() {
        let content = |post, bytes: &[u8], sum| {
            let payload = Payload { bytes: (!bytes.is_empty()).then(|| bytes.into()), graph: None };
            payload.content(post, Walk { objects: 0, sum })
        };
        let one = content(5, b"ab", 0);
        for other in [content(6, b"ab", 0), content(5, b"ac", 0), content(5, b"a?b", 0), content(5, b"ab", 7)] {
            assert_ne!(one, other);
        }
    }
}
