//! The graph of objects that a post may hold, in addition to its bytes (§6.2, *Size of Messages*).
//!
//! Each object is an allocation of its own behind an `Arc`, and never changes. The poster makes the graph and moves its only
//! reference into the message; the chat gives one more reference to each member. A post with a million objects therefore costs as
//! much to send as a post with one, and no object is copied. The last owner frees it.
//!
//! Object *k* of *n* links to 2*k* + 1 and 2*k* + 2, as far as they exist: each object except the first is linked from an earlier
//! one. An object with links has one more, to one of the objects from 2*k* + 1 on, which is then shared. A hash of the post
//! chooses that object, and the content of each.
//!
//! Every link leads from a level of that tree to a deeper one. There are no cycles, which reference counts could not free, and no
//! path is longer than the number of levels (20 for a million objects): a graph is freed along its paths, on the stack of its
//! last owner.
//!
//! On the wire, a graph is a list of the objects, each with the numbers of its links.

use std::ptr;
use std::sync::Arc;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::scenario::OBJECTS;
use crate::harness::random::mix64;

/// The bytes of memory that an object of a post counts: its content and its two reference counts, without the allocator's part.
pub const OBJECT_BYTES: u32 = 48;

const _: () = assert!(size_of::<Object>() + 2 * size_of::<usize>() <= OBJECT_BYTES as usize);

/// A graph of at least one object.
pub(super) struct Graph {
    first: Arc<Object>,
    made: Walk,
}

struct Object {
    /// The first is 0.
    number: u32,
    content: u32,
    links: [Option<Arc<Object>>; 3],
    #[cfg(test)]
    _life: tests::Life,
}

/// The result of a walk through a graph, each object once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Walk {
    pub objects: u64,
    /// Sum of a hash of each object and its links.
    pub sum: u64,
}

impl Walk {
    fn pass(&mut self, object: &Object) {
        self.objects += 1;
        self.sum = self.sum.wrapping_add(object.hash());
    }
}

/// An object on the wire: its content, and the numbers of its links. The number 0, which no object links to, means no link.
type Plan = (u32, [u32; 3]);

impl Object {
    fn hash(&self) -> u64 {
        let own = mix64(u64::from(self.number) << 32 | u64::from(self.content));
        self.link_numbers().iter().fold(own, |hash, link| mix64(hash ^ u64::from(*link)))
    }

    fn link_numbers(&self) -> [u32; 3] {
        self.links.each_ref().map(|link| link.as_ref().map_or(0, |object| object.number))
    }
}

/// The lowest number that object `number` may link to: the leftmost of those a level deeper.
fn deeper(number: u32) -> u32 {
    2 * number + 1
}

fn plan(seed: u64, objects: u32, number: u32) -> Plan {
    let dice = mix64(seed.wrapping_add(u64::from(number)));
    let left = deeper(number);
    let links = if left < objects {
        let right = if left + 1 < objects { left + 1 } else { 0 };
        let further = left + (((dice >> 32) * u64::from(objects - left)) >> 32) as u32;
        [left, right, further]
    } else {
        [0; 3]
    };
    (dice as u32, links)
}

impl Graph {
    /// Makes a graph of this number of objects, at least one; the same for the same seed.
    pub(super) fn new(seed: u64, objects: u32) -> Graph {
        Graph::build(objects, |number| plan(seed, objects, number))
    }

    /// Makes the objects from the last one to the first, because each needs references to its links.
    fn build(objects: u32, plan: impl Fn(u32) -> Plan) -> Graph {
        let (mut made, mut walk) = (Vec::<Arc<Object>>::with_capacity(objects as usize), Walk::default());
        for number in (0..objects).rev() {
            let (content, links) = plan(number);
            let links = links.map(|link| (link > 0).then(|| Arc::clone(&made[(objects - 1 - link) as usize])));
            #[cfg(test)]
            let _life = tests::Life::begin();
            let object = Object {
                number,
                content,
                links,
                #[cfg(test)]
                _life,
            };
            walk.pass(&object);
            made.push(Arc::new(object));
        }
        let first = made.pop().expect("INVARIANT: a graph has at least one object");
        Graph { first, made: walk }
    }

    /// Returns the expected result of a walk.
    pub(super) fn made(&self) -> Walk {
        self.made
    }

    /// Goes along the links from the first object on, and looks at each object once.
    ///
    /// The position identifies an object: a copy of an object that should be shared counts as one more.
    pub(super) fn walk(&self) -> Walk {
        let mut walk = Walk::default();
        self.visit(|object| walk.pass(object));
        walk
    }

    fn visit<'a>(&'a self, mut look: impl FnMut(&'a Object)) {
        let mut known: Vec<Option<&Object>> = vec![None; self.made.objects as usize];
        let mut ahead: Vec<&Object> = vec![&self.first];
        while let Some(object) = ahead.pop() {
            match known.get_mut(object.number as usize) {
                Some(Some(same)) if ptr::eq(*same, object) => {}
                Some(unknown @ None) => {
                    *unknown = Some(object);
                    ahead.extend(object.links.iter().flatten().map(|link| &**link));
                    look(object);
                }
                Some(Some(_)) | None => look(object),
            }
        }
    }
}

/// A graph on its way to another theater.
#[derive(Serialize, Deserialize)]
struct Sketch {
    /// The poster's object.
    sum: u64,
    objects: Vec<Plan>,
}

impl Sketch {
    fn graph(self) -> Result<Graph, String> {
        let Sketch { sum, objects: plans } = self;
        let objects = plans.len() as u64;
        if objects == 0 || objects > u64::from(*OBJECTS.end()) {
            return Err(format!("a graph has from 1 to {} objects, not {objects}", OBJECTS.end()));
        }
        let objects = objects as u32;
        for (number, (_, links)) in (0..).zip(&plans) {
            let allowed = deeper(number)..objects;
            if let Some(link) = links.iter().find(|link| **link > 0 && !allowed.contains(link)) {
                return Err(format!("object {number} of {objects} cannot link to {link}"));
            }
        }
        let graph = Graph::build(objects, |number| plans[number as usize]);
        Ok(Graph { made: Walk { sum, ..graph.made }, ..graph })
    }
}

impl Serialize for Graph {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut objects = vec![Plan::default(); self.made.objects as usize];
        self.visit(|object| objects[object.number as usize] = (object.content, object.link_numbers()));
        Sketch { sum: self.made.sum, objects }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Graph {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Graph, D::Error> {
        Sketch::deserialize(deserializer)?.graph().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::*;
    use crate::chatapp::{Behaviour, Connectedness, MessageShape, Options, Report, Scenario, run};

    /// Objects made, and living objects. Relaxed: read when no thread makes or frees any.
    static MADE: AtomicI64 = AtomicI64::new(0);
    static ALIVE: AtomicI64 = AtomicI64::new(0);

    /// Counts an object from its birth to its end.
    pub(super) struct Life(());

    impl Life {
        pub(super) fn begin() -> Life {
            MADE.fetch_add(1, Relaxed);
            ALIVE.fetch_add(1, Relaxed);
            Life(())
        }
    }

    impl Drop for Life {
        fn drop(&mut self) {
            ALIVE.fetch_sub(1, Relaxed);
        }
    }

    /// Held by each test that makes objects: they are counted.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wired(graph: &Graph) -> Graph {
        serde_json::from_str(&serde_json::to_string(graph).unwrap()).unwrap()
    }

    /// Returns the number of links to each object.
    fn links_to(graph: &Graph) -> Vec<usize> {
        let mut links_to = vec![0; graph.made.objects as usize];
        graph.visit(|object| object.links.iter().flatten().for_each(|link| links_to[link.number as usize] += 1));
        links_to
    }

    #[test]
    fn a_graph_is_walked_through_from_its_first_object_each_once() {
        let _alone = alone();
        for objects in [1, 2, 3, 4, 7, 8, 100, 1001] {
            let graph = Graph::new(9, objects);
            assert_eq!(graph.walk(), graph.made(), "{objects}");
            assert_eq!(graph.made().objects, u64::from(objects));
            let mut places = HashSet::new();
            graph.visit(|object| assert!(places.insert(ptr::from_ref(object)), "{objects}: {} twice", object.number));
            assert_eq!(places.len(), objects as usize);
        }
    }

    #[test]
    fn objects_are_shared_and_no_path_is_long() {
        let _alone = alone();
        for objects in [2_u32, 3, 50, 1000] {
            let graph = Graph::new(5, objects);
            let links_to = links_to(&graph);
            assert!(links_to[0] == 0 && links_to[1..].iter().all(|links| *links > 0), "{objects}: {links_to:?}");
            let shared = links_to.iter().filter(|links| **links > 1).count() as u32;
            assert!(shared >= objects.div_ceil(6).min(objects - 1), "{shared} of {objects} are shared");
            // By rising level, hence by rising number.
            let mut depth = vec![1; objects as usize];
            let mut all = Vec::new();
            graph.visit(|object| all.push(object));
            all.sort_by_key(|object| object.number);
            for object in all {
                for link in object.links.iter().flatten() {
                    depth[link.number as usize] = depth[link.number as usize].max(depth[object.number as usize] + 1);
                }
            }
            assert_eq!(*depth.iter().max().unwrap(), objects.ilog2() + 1, "{objects}");
        }
    }

    #[test]
    fn another_seed_or_number_makes_another_graph() {
        let _alone = alone();
        let made = |seed, objects| Graph::new(seed, objects).made();
        assert_eq!(made(1, 20), made(1, 20));
        assert_ne!(made(1, 20).sum, made(2, 20).sum);
        assert_ne!(made(1, 20).sum, made(1, 21).sum);
    }

    // GUARANTEE: Graphs in ChatApp's posts
    #[test]
    fn a_walk_notices_what_is_wrong() {
        let _alone = alone();
        let of = |plans: &[Plan]| Graph::build(plans.len() as u32, |number| plans[number as usize]);
        let plans = [(7, [1, 2, 2]), (8, [3, 0, 3]), (9, [0; 3]), (9, [0; 3])];
        let right = of(&plans).walk();
        let mut relinked = plans;
        relinked[0].1[2] = 3;
        assert_eq!(of(&relinked).walk().objects, 4);
        assert_ne!(of(&relinked).walk().sum, right.sum, "a link leads elsewhere");
        let mut rewritten = plans;
        rewritten[3].0 = 10;
        assert_ne!(of(&rewritten).walk().sum, right.sum, "something else is in an object");
        let mut cut = plans;
        cut[0].1 = [1, 0, 0];
        assert_eq!(of(&cut).walk().objects, 3, "an object cannot be reached");
        // A shared object is copied instead: its content, and the links to it, are the same.
        let object = |number, content, links| Arc::new(Object { number, content, links, _life: Life::begin() });
        let last = || object(2, 9, [None, None, None]);
        let copied = object(
            0,
            7,
            [Some(object(1, 8, [Some(object(3, 9, [None, None, None])), None, None])), Some(last()), Some(last())],
        );
        let copied = Graph { first: copied, made: right };
        assert_eq!(copied.walk().objects, 5, "a shared object has a copy");
    }

    #[test]
    fn a_graph_crosses_whole_and_shared() {
        let _alone = alone();
        for objects in [1, 2, 77] {
            let graph = Graph::new(3, objects);
            let crossed = wired(&graph);
            assert_eq!((crossed.made(), crossed.walk()), (graph.made(), graph.made()));
            assert_eq!(links_to(&crossed), links_to(&graph));
        }
    }

    #[test]
    fn invalid_graphs_are_refused() {
        let _alone = alone();
        let error = |objects: &[Plan]| {
            let sketch = Sketch { sum: 0, objects: objects.to_vec() };
            match serde_json::from_str::<Graph>(&serde_json::to_string(&sketch).unwrap()) {
                Ok(_) => panic!("{objects:?} was taken"),
                Err(error) => error.to_string(),
            }
        };
        assert!(error(&[]).contains("from 1 to 1000000 objects, not 0"));
        assert!(error(&[(0, [0; 3]); 1_000_001]).contains("not 1000001"));
        let five = |at: usize, link: u32| {
            let mut plans = [(0, [0; 3]); 5];
            plans[at].1[1] = link;
            error(&plans)
        };
        for (at, link) in [(0, 5), (1, 1), (1, 2), (3, 4)] {
            let said = five(at, link);
            assert!(said.contains(&format!("object {at} of 5 cannot link to {link}")), "{said}");
        }
    }

    fn played(options: &Options) -> Report {
        let scenario = Scenario {
            name: "graphs".to_owned(),
            turns: 12,
            clients: 60,
            directories: 3,
            seed: 3,
            behaviour: Behaviour { new_chat: 15.0, leave: 25.0, post: 50.0 },
            connectedness: Connectedness { befriend: 15.0, invite: 40.0 },
            message: MessageShape { size: 5, objects: 17, history: 2 },
            work: Vec::new(),
        };
        run(&scenario, options, |_| ()).unwrap()
    }

    // GUARANTEE: Graphs in ChatApp's posts
    #[test]
    fn no_object_is_copied_and_each_is_freed() {
        let _alone = alone();
        for workers in [1, 2] {
            let before = (MADE.load(Relaxed), ALIVE.load(Relaxed));
            let report = played(&Options { workers: Some(workers), ..Options::default() });
            assert!(report.check.passed, "{:?}", report.check.problems);
            let posted = report.delivery.posts * 17;
            assert_eq!(MADE.load(Relaxed) - before.0, posted as i64, "{workers} workers: each is made once");
            assert_eq!(ALIVE.load(Relaxed), before.1, "{workers} workers: objects that are left");
            assert!(report.graphs.walked > 2 * posted, "{} of {posted} objects walked", report.graphs.walked);
        }
    }
}
