//! Who waits for whom: finds ask cycles before they hang.
//!
//! An actor whose async handler awaits an ask handles nothing else until the answer is there. If the actor it asked
//! waits, over any number of others, for itself, no answer can come. Each awaited ask between actors therefore notes an
//! edge here; the edge that would close a cycle fails its ask at once, with the path.
//!
//! No cycle is missed, though most edges are noted under two of the locks only: those of the part of the graph that the
//! edge is in, and of the part that the next would be in. If the one who is asked waits for nobody, then the edge closes
//! no cycle now, and each edge that continues it comes later (both need the lock of that part). So of a cycle whose
//! edges were all noted in this way, each would be older than the next, all around; and of one with others, consider the
//! last that was noted under all locks: what was missing of the cycle then came later, each edge before the next, up to
//! that one, which came before them. So some edge finds the cycle closed, under all locks.
//!
//! Asks between two busy workers, in millions per second: 0.95 with one lock for all edges, 1.01 with these, 1.11 without
//! looking for cycles.
//!
//! An edge is noted *before* its request is sent. A request that is under way when its ask fails may be handled all the
//! same, ask the next actor, and so on: it would go round for ever, past edges that come too late. An ask whose handler
//! is run on the asker's stack sends nothing; it is only pushed on a list of this thread, and noted when something above
//! it on the stack sends (then it will wait), or when its handler has to wait.
//!
//! Cycles over several theaters are looked for from outside, among asks that have waited for some time: [`waits`], [`fail`].

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::hash::{BuildHasher, BuildHasherDefault};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use playhouse_executor::Spread;
use smallvec::SmallVec;

use crate::actor::ActorId;
use crate::names::Label;

thread_local! {
    static POLLED: Cell<Option<ActorId>> = const { Cell::new(None) };
    /// The asks on this thread's stack, the innermost last.
    static ATTEMPTS: RefCell<Vec<Tried>> = const { RefCell::new(Vec::new()) };
}

/// Polls `future` as part of `actor`'s handler.
pub(crate) async fn as_actor<F: Future>(actor: ActorId, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(move |cx| {
        let _polled = polling(actor);
        future.as_mut().poll(cx)
    })
    .await
}

/// While what is returned lives, this thread polls `actor`'s handler.
pub(crate) fn polling(actor: ActorId) -> impl Drop {
    Restore(POLLED.replace(Some(actor)))
}

/// The actor whose async handler this thread polls.
pub(crate) fn polled() -> Option<ActorId> {
    POLLED.get()
}

struct Restore(Option<ActorId>);

impl Drop for Restore {
    fn drop(&mut self) {
        POLLED.set(self.0);
    }
}

/// One edge per awaited ask.
struct Edge {
    to: Label,
    token: u64,
    /// What waits; not known for handlers on the stack of another's.
    ask: Option<Weak<dyn Unanswered>>,
}

/// An ask that can be ended from outside.
pub(crate) trait Unanswered: Send + Sync {
    /// It can never be answered: the actors along the cycle.
    fn end(&self, path: Vec<String>);
}

/// An actor that waits for another.
#[derive(Clone, Copy)]
pub struct Wait {
    /// Who waits.
    pub from: ActorId,
    /// The number of this wait among those of `from`.
    pub token: u64,
    to: Label,
}

impl Wait {
    /// For whom.
    pub fn to(&self) -> ActorId {
        self.to.id
    }

    /// How that one is shown.
    pub fn label(&self) -> String {
        self.to.to_string()
    }
}

/// Who waits for whom, of the actors of the system `system`.
pub fn waits(system: u16) -> Vec<Wait> {
    let mut waits = Vec::new();
    for part in 0..PARTS {
        let part = lock(part);
        for (from, edges) in part.edges.iter().filter(|(from, _)| from.address().system() == system) {
            waits.extend(edges.iter().map(|edge| Wait { from: *from, token: edge.token, to: edge.to }));
        }
    }
    waits
}

/// Ends the ask that `from` waits for, since it is part of a cycle.
pub fn fail(from: ActorId, token: u64, path: Vec<String>) {
    let ask = {
        let part = lock(part_of(from));
        let edge = part.edges.get(&from).and_then(|edges| edges.iter().find(|edge| edge.token == token));
        edge.and_then(|edge| edge.ask.as_ref()?.upgrade())
    };
    if let Some(ask) = ask {
        ask.end(path);
    }
}

/// The edges from some of the actors.
struct Part {
    edges: HashMap<ActorId, SmallVec<[Edge; 1]>, BuildHasherDefault<Spread>>,
    next_token: u64,
}

/// The number of parts, a power of 2. With more parts, two workers use one part at the same time less often. A search for a cycle locks all
/// parts.
const PARTS: usize = 64;

/// A part and its lock, in cache lines of their own.
#[repr(align(128))]
struct Locked(Mutex<Part>);

/// The edges of all systems, since asks go from one to the other. Locks are taken in the order of the parts.
static GRAPH: [Locked; PARTS] =
    [const { Locked(Mutex::new(Part { edges: HashMap::with_hasher(BuildHasherDefault::new()), next_token: 0 })) };
        PARTS];

fn part_of(actor: ActorId) -> usize {
    // The map uses the bits at both ends.
    (BuildHasherDefault::<Spread>::new().hash_one(actor) >> 32) as usize % PARTS
}

fn lock(part: usize) -> MutexGuard<'static, Part> {
    GRAPH[part].0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A noted edge; taken back when dropped.
pub(crate) struct Waiting {
    from: ActorId,
    token: u64,
}

struct Tried {
    from: ActorId,
    to: Label,
    edge: Option<Waiting>,
}

/// An ask of an actor, from before its request is sent (or run on this stack) until it has to wait or is answered. Over
/// when dropped.
pub(crate) struct Attempt(());

impl Attempt {
    /// Begins to ask `to`. None: not in an async handler.
    pub(crate) fn begin(to: Label) -> Option<Attempt> {
        let from = POLLED.get()?;
        ATTEMPTS.with_borrow_mut(|attempts| attempts.push(Tried { from, to, edge: None }));
        Some(Attempt(()))
    }

    /// Notes that everybody on this stack waits; this is the innermost.
    ///
    /// # Errors
    /// The actors along the cycle that this would close, from the one that is asked back to itself.
    pub(crate) fn note(&self, ask: Weak<dyn Unanswered>) -> Result<Waiting, Vec<String>> {
        ATTEMPTS.with_borrow_mut(|attempts| {
            let (innermost, outer) = attempts.split_last_mut().expect("this attempt is the last");
            for tried in outer.iter_mut().filter(|tried| tried.edge.is_none()) {
                tried.edge = Some(note(tried.from, tried.to, None)?);
            }
            innermost.edge.take().map_or_else(|| note(innermost.from, innermost.to, Some(ask)), Ok)
        })
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let _over = ATTEMPTS.with_borrow_mut(Vec::pop);
    }
}

/// Notes that `from` waits for `to`.
fn note(from: ActorId, to: Label, ask: Option<Weak<dyn Unanswered>>) -> Result<Waiting, Vec<String>> {
    let (own, next) = (part_of(from), part_of(to.id));
    {
        let mut low = lock(own.min(next));
        let mut high = (own != next).then(|| lock(own.max(next)));
        let asked = if next <= own { &low } else { high.as_ref().expect("they are two") };
        if from != to.id && !asked.edges.contains_key(&to.id) {
            let asker = if own <= next { &mut low } else { high.as_mut().expect("they are two") };
            return Ok(asker.add(from, to, ask));
        }
    }
    // Whom it asks waits, too: for whom, is looked for while nothing changes.
    let mut parts: [MutexGuard<'_, Part>; PARTS] = std::array::from_fn(lock);
    let mut path = vec![to];
    if from == to.id || leads_to(&parts, to.id, from, &mut path, &mut Vec::new()) {
        drop(parts);
        path.push(to);
        return Err(path.iter().map(Label::to_string).collect());
    }
    Ok(parts[own].add(from, to, ask))
}

fn leads_to(
    parts: &[MutexGuard<'_, Part>; PARTS],
    at: ActorId,
    goal: ActorId,
    path: &mut Vec<Label>,
    seen: &mut Vec<ActorId>,
) -> bool {
    if seen.contains(&at) {
        return false;
    }
    seen.push(at);
    for edge in parts[part_of(at)].edges.get(&at).into_iter().flatten() {
        path.push(edge.to);
        if edge.to.id == goal || leads_to(parts, edge.to.id, goal, path, seen) {
            return true;
        }
        path.pop();
    }
    false
}

impl Part {
    fn add(&mut self, from: ActorId, to: Label, ask: Option<Weak<dyn Unanswered>>) -> Waiting {
        let token = self.next_token;
        self.next_token += 1;
        self.edges.entry(from).or_default().push(Edge { to, token, ask });
        Waiting { from, token }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut part = lock(part_of(self.from));
        if let Some(edges) = part.edges.get_mut(&self.from) {
            edges.retain(|edge| edge.token != self.token);
            if edges.is_empty() {
                part.edges.remove(&self.from);
            }
        }
    }
}
