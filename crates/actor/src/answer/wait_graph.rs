//! The graph of waiting actors: finds ask cycles before they hang.
//!
//! If an actor's async handler awaits an ask, the actor handles nothing else until it has the answer. If the asked actor
//! waits, over any number of others, for the asker, no answer can come. Each awaited ask between actors is therefore an
//! *edge* of a graph. The ask whose edge closes a cycle fails at once, with the path.
//!
//! # How a cycle is found
//!
//! The number of an actor's cell leads to a *node*, which holds the actor's edges under a lock of its own. An asker first adds its edge.
//! Then it marks the asked actor as *asked*. An edge closes no cycle if the asked actor has no edges, or if the asker is not asked: the two
//! checks cost no lock and no search. Otherwise the asker searches the graph.
//!
//! The mark of an actor stays until the actor ends. A chain of waiting actors therefore takes one step per edge from whichever end it is
//! made, while each of its actors waits for the first time. A search takes one step per edge that it can reach, and no stack.
//!
//! *No cycle is missed.* An asker that adds an edge writes the number of its edges and the mark of the asked actor with `SeqCst`, and all
//! askers read these numbers and marks with `SeqCst`. The writes of all edges of a cycle are therefore in a single order, and the asker with
//! the last of them sees all others. It finds that it is asked, because its predecessor in the cycle has marked it. Edges of a closed cycle
//! stay, so the search finds a path along them.
//!
//! *No cycle is invented.* A search reads the edges of different actors at different times. An asker that has found a cycle therefore reads
//! all edges of the cycle a second time. An edge that was read twice existed in between. All first readings come before all second ones.
//! All edges thus existed at one moment.
//!
//! *One ask of a cycle fails.* An asker reads a cycle for the second time under a lock of all askers. It takes its own edge back before it
//! releases that lock.
//!
//! *An edge is redirected* when its request is forwarded ([`Reply::forward`](crate::Reply::forward)). It leads to
//! another actor from then on, under another token, and the forwarding thread checks it like a new edge. An edge that
//! was read twice with one token has therefore not been redirected in between. The ask may end before that check, and
//! its edge with it: then its failure comes too late and does nothing.
//!
//! An edge ends with its ask's future. The answer may come earlier, and an answered ask does not count.
//!
//! An edge is added *before* its request is sent. A request that is under way when its ask fails may be handled all the
//! same, ask the next actor, and so on: it would circulate forever, past edges that come too late. An ask whose handler
//! is run on the asker's stack sends nothing. The asker adds its edge when its handler has to wait, or when a handler
//! above it on the stack sends a request, because the asker will then wait.
//!
//! Cycles over several theaters are searched from outside, among asks that have waited for some time: [`waits`],
//! [`fail`]. The search in this module does not follow the edge of an ask whose request has left the system, even if
//! its receiver has migrated into this system since: the receiver may have forwarded the request to another theater.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::iter::once;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::ThreadId;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::actor::ActorId;
use crate::actor::names::Label;
use crate::answer::recall::RequestLocation;
use crate::lock::lock;

thread_local! {
    static POLLED: Cell<Option<ActorId>> = const { Cell::new(None) };
    /// The asks on this thread's stack, the innermost last.
    static ATTEMPTS: RefCell<Vec<Tried>> = const { RefCell::new(Vec::new()) };
}

/// The same for threads whose [`ATTEMPTS`] are destroyed: a simulated system may be run in the destructor of another
/// thread-local.
static LATE_ATTEMPTS: Mutex<Vec<(ThreadId, Vec<Tried>)>> = Mutex::new(Vec::new());

/// Calls `f` with the asks on this thread's stack.
fn with_attempts<R>(f: impl FnOnce(&mut Vec<Tried>) -> R) -> R {
    let mut f = Some(f);
    let mut call = |attempts: &mut Vec<Tried>| (f.take().expect("it is called once"))(attempts);
    match ATTEMPTS.try_with(|attempts| call(&mut attempts.borrow_mut())) {
        Ok(result) => result,
        Err(_) => with_late_attempts(call),
    }
}

#[cold]
fn with_late_attempts<R>(f: impl FnOnce(&mut Vec<Tried>) -> R) -> R {
    let late = || lock(&LATE_ATTEMPTS);
    let this = std::thread::current().id();
    let taken = {
        let mut all = late();
        let at = all.iter().position(|(thread, _)| *thread == this);
        at.map(|at| all.swap_remove(at).1)
    };
    let mut attempts = taken.unwrap_or_default();
    let result = f(&mut attempts);
    if !attempts.is_empty() {
        late().push((this, attempts));
    }
    result
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

/// Returns a guard: while it lives, this thread polls `actor`'s handler.
pub(crate) fn polling(actor: ActorId) -> impl Drop {
    Restore(POLLED.replace(Some(actor)))
}

/// Returns the actor whose async handler this thread polls.
pub(crate) fn polled() -> Option<ActorId> {
    POLLED.get()
}

struct Restore(Option<ActorId>);

impl Drop for Restore {
    fn drop(&mut self) {
        POLLED.set(self.0);
    }
}

/// An awaited ask.
pub(crate) trait Awaited: Send + Sync {
    /// Returns the progress of the request, as far as this system knows. Returns `None` if the ask has an answer, or
    /// its future was dropped.
    fn stage(&self) -> Option<Stage>;

    /// Ends the ask as part of a cycle, if its request can be taken back: if no handler has begun it. `path`: the
    /// actors along the cycle.
    ///
    /// A request in another theater is taken back in that theater, and the ask ends later. It is not taken back if it
    /// was forwarded more than `forwards` times outside of this system.
    fn end(self: Arc<Self>, path: Vec<String>, forwards: u32);
}

/// The progress of a request.
#[derive(Clone, Copy)]
pub enum Stage {
    /// The request waits in a mailbox of this system.
    Queued,
    /// A handler of this system has begun the request.
    Begun,
    /// The request has left this system.
    Away {
        /// A handler has begun the request. Holds the number of forwards outside of this system up to then.
        begun: Option<u32>,
        /// The knowledge of this system about the request.
        whereabouts: RequestLocation,
    },
}

/// A wait of one actor for another.
#[derive(Clone, Copy)]
pub struct Wait {
    /// The actor that waits.
    pub from: ActorId,
    /// The number of this wait among those of `from`. A redirected edge is another wait.
    pub token: u64,
    /// The number of the edge.
    number: u64,
    /// The progress of the request.
    pub stage: Stage,
    to: Label,
}

impl Wait {
    /// Returns the actor that `from` waits for, as far as this system knows: a request that has left may have been
    /// forwarded.
    pub fn to(&self) -> ActorId {
        self.target().id
    }

    fn target(&self) -> Label {
        match self.stage {
            Stage::Away { whereabouts, .. } => whereabouts.to.unwrap_or(self.to),
            Stage::Queued | Stage::Begun => self.to,
        }
    }

    /// Returns whether the request has left this system.
    pub fn is_away(&self) -> bool {
        matches!(self.stage, Stage::Away { .. })
    }

    fn edge(&self) -> Edge {
        Edge { from: self.from, number: self.number }
    }

    /// Returns the label of the actor that `from` waits for.
    pub fn label(&self) -> String {
        self.target().to_string()
    }
}

/// A wait and its ask. The ask of an outer handler on a stack is `None` until that handler is suspended itself.
type WaitAndAsk = (Wait, Option<Arc<dyn Awaited>>);

/// The key of an edge in the graph, valid as long as the edge exists.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edge {
    from: ActorId,
    number: u64,
}

/// A few waits of one actor.
type Waits = SmallVec<[Wait; 1]>;

/// The edges from the actor of one cell, in cache lines of their own.
#[repr(align(128))]
#[derive(Default)]
struct Node {
    /// The number of edges.
    count: AtomicU32,
    edges: Mutex<Edges>,
}

#[derive(Default)]
struct Edges {
    list: SmallVec<[WaitAndAsk; 1]>,
    next_token: u64,
}

impl Node {
    fn lock(&self) -> MutexGuard<'_, Edges> {
        lock(&self.edges)
    }

    fn add(&self, from: ActorId, to: Label, ask: Option<Arc<dyn Awaited>>) -> Waiting {
        let mut edges = self.lock();
        let token = edges.next_token;
        edges.next_token += 1;
        edges.list.push((Wait { from, token, number: token, stage: Stage::Queued, to }, ask));
        // SeqCst: the asker reads the edges of other actors after this store.
        self.count.store(edges.list.len() as u32, Ordering::SeqCst);
        Waiting { edge: Edge { from, number: token }, is_only: edges.list.len() == 1 }
    }

    /// Redirects the edge to another actor. Returns `false` if the edge does not exist any more.
    fn turn(&self, edge: Edge, to: Label) -> bool {
        let mut edges = self.lock();
        let token = edges.next_token;
        let Some((wait, _)) = edges.list.iter_mut().find(|(wait, _)| wait.edge() == edge) else { return false };
        (wait.to, wait.token) = (to, token);
        edges.next_token += 1;
        // SeqCst: the asker reads the edges of other actors after this store, as for a new edge.
        self.count.store(edges.list.len() as u32, Ordering::SeqCst);
        true
    }

    fn remove(&self, edge: Edge) -> Option<WaitAndAsk> {
        let mut edges = self.lock();
        let at = edges.list.iter().position(|(wait, _)| wait.edge() == edge)?;
        let edge = edges.list.swap_remove(at);
        if edges.list.is_empty() {
            // Nodes are never freed. A node therefore keeps no room for the largest number of edges that it ever had.
            edges.list.shrink_to_fit();
        }
        // Relaxed: an asker that reads an old number searches in vain.
        self.count.store(edges.list.len() as u32, Ordering::Relaxed);
        Some(edge)
    }

    fn has_edges(&self) -> bool {
        // SeqCst: the asker reads this after it has added its own edge.
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Returns the waits of some actors whose asks have no answer.
    fn waits(&self, is_wanted: impl Fn(ActorId) -> bool) -> Waits {
        // No lock of an ask is taken under the lock of a node.
        let edges: SmallVec<[WaitAndAsk; 1]> =
            self.lock().list.iter().filter(|(wait, _)| is_wanted(wait.from)).cloned().collect();
        let staged = |(wait, ask): WaitAndAsk| {
            let stage = ask.map_or(Some(Stage::Begun), |ask| ask.stage())?;
            Some(Wait { stage, ..wait })
        };
        edges.into_iter().filter_map(staged).collect()
    }
}

/// The number of nodes per chunk, and of chunks per block.
const CHUNK: usize = 512;
/// The largest number of blocks. Beyond 67,108,864 cells with an awaited ask, several cells share a node.
const BLOCKS: usize = 256;

/// Nodes of cells whose actors began to await asks about at the same time.
struct Chunk {
    /// A node may have edges. The flag changes rarely, because it stays up when the last edge is removed.
    has_edges: AtomicBool,
    nodes: Box<[Node]>,
}

/// The chunks of a block.
type Block = Box<[OnceLock<Chunk>]>;

/// The nodes of the cells whose actors have awaited an ask. Nodes and cells are never freed.
static BLOCKS_OF_NODES: [OnceLock<Block>; BLOCKS] = [const { OnceLock::new() }; BLOCKS];
/// The number of the last node.
static NODES_USED: AtomicU32 = AtomicU32::new(0);
/// The lock of the asker that reads a cycle for the second time.
static JUDGING: Mutex<()> = Mutex::new(());

/// Returns the chunk with this index among all chunks.
fn chunk_at(at: usize) -> &'static Chunk {
    let block = BLOCKS_OF_NODES[at / CHUNK % BLOCKS].get_or_init(|| (0..CHUNK).map(|_| OnceLock::new()).collect());
    block[at % CHUNK].get_or_init(|| Chunk {
        has_edges: AtomicBool::new(false),
        nodes: (0..CHUNK).map(|_| Node::default()).collect(),
    })
}

/// In the number of an actor's cell: another actor has awaited an ask to this actor.
const ASKED: u32 = 1 << 31;
/// In the number of an actor's cell: the number of its node.
const NODE: u32 = ASKED - 1;

/// Marks an actor as asked.
fn mark_as_asked(actor: ActorId) {
    let cell = actor.0.cell_number();
    // SeqCst: this thread reads the edges of other actors, and its own mark, after this.
    if cell.load(Ordering::SeqCst) & ASKED == 0 {
        cell.fetch_or(ASKED, Ordering::SeqCst);
    }
}

fn is_asked(actor: ActorId) -> bool {
    // SeqCst: the asker reads this after it has added its own edge.
    actor.0.cell_number().load(Ordering::SeqCst) & ASKED != 0
}

/// Takes back the mark of an actor that ends. The next actor of its cell has another identity, and no actor waits for
/// it yet.
pub(crate) fn forget_asks(actor: ActorId) {
    let cell = actor.0.cell_number();
    // Relaxed: an ended actor adds no edge. An asker that marks it later makes a search of the next actor longer, and nothing else.
    if cell.load(Ordering::Relaxed) & ASKED != 0 {
        cell.fetch_and(NODE, Ordering::Relaxed);
    }
}

/// Returns the node with the number of a cell, and its chunk. Numbers of nodes begin with 1.
fn node_at(number: u32) -> Option<(&'static Node, &'static Chunk)> {
    let at = (number & NODE).checked_sub(1)? as usize;
    let chunk = chunk_at(at / CHUNK);
    Some((&chunk.nodes[at % CHUNK], chunk))
}

/// Returns the node of the actor's cell, if it has one.
fn node_of(actor: ActorId) -> Option<&'static Node> {
    // SeqCst: the asker reads this after it has added its own edge.
    node_at(actor.0.cell_number().load(Ordering::SeqCst)).map(|(node, _)| node)
}

/// Adds an edge to the node of the actor's cell.
fn add(from: ActorId, to: Label, ask: Option<Arc<dyn Awaited>>) -> Waiting {
    let cell = from.0.cell_number();
    let (node, chunk) = node_at(cell.load(Ordering::Relaxed)).unwrap_or_else(|| {
        let number = NODES_USED.fetch_add(1, Ordering::SeqCst) % NODE + 1;
        // If another thread was faster, its number holds.
        let with_node = |before| (before & NODE == 0).then_some(before | number);
        let before = cell.fetch_update(Ordering::SeqCst, Ordering::SeqCst, with_node);
        node_at(before.err().unwrap_or(number)).expect("numbers begin with 1")
    });
    let waiting = node.add(from, to, ask);
    // SeqCst: this thread sees the flag down, or the thread that lowers it sees the edge.
    if !chunk.has_edges.load(Ordering::SeqCst) {
        chunk.has_edges.store(true, Ordering::SeqCst);
    }
    waiting
}

/// Returns the waits of `actor` whose asks have no answer.
fn waits_of(actor: ActorId) -> Waits {
    #[cfg(test)]
    tests::READINGS.set(tests::READINGS.get() + 1);
    node_of(actor).filter(|node| node.has_edges()).map_or_else(Waits::new, |node| node.waits(|from| from == actor))
}

/// Returns the waits of all actors of the system `system`. Reads the nodes of all chunks that may have edges.
pub fn waits(system: u16) -> Vec<Wait> {
    // While one thread has lowered a flag, no other thread skips that chunk.
    static READING: Mutex<()> = Mutex::new(());
    let _reading = lock(&READING);
    let chunks = (NODES_USED.load(Ordering::SeqCst) as usize).min(BLOCKS * CHUNK * CHUNK).div_ceil(CHUNK);
    let mut waits = Vec::new();
    for chunk in (0..chunks).map(chunk_at).filter(|chunk| chunk.has_edges.swap(false, Ordering::SeqCst)) {
        let mut any = false;
        for node in chunk.nodes.iter().filter(|node| node.has_edges()) {
            any = true;
            waits.extend(node.waits(|from| from.address().system() == system));
        }
        if any {
            chunk.has_edges.store(true, Ordering::SeqCst);
        }
    }
    waits
}

/// Ends the ask that `from` waits for, because it is part of a cycle. It does nothing if a handler has begun the
/// request, or if the request was forwarded more than `forwards` times outside of this system.
pub fn fail(from: ActorId, token: u64, path: Vec<String>, forwards: u32) {
    let waiting = |(wait, ask): &WaitAndAsk| (wait.from == from && wait.token == token).then(|| ask.clone());
    let ask = node_of(from).and_then(|node| node.lock().list.iter().find_map(waiting));
    if let Some(ask) = ask.flatten() {
        ask.end(path, forwards);
    }
}

/// An edge of the graph. Dropping this value removes the edge.
pub(crate) struct Waiting {
    pub(crate) edge: Edge,
    /// The actor had no other edge when this one was added.
    pub(crate) is_only: bool,
}

impl Waiting {
    /// Adds the ask to an edge that has none.
    fn wait_for(&self, ask: Arc<dyn Awaited>) {
        if let Some(node) = node_of(self.edge.from)
            && let Some((_, unknown)) = node.lock().list.iter_mut().find(|(wait, _)| wait.edge() == self.edge)
        {
            *unknown = Some(ask);
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.edge.remove();
    }
}

impl Edge {
    /// Redirects the edge to the actor `to`, because the request is going to be forwarded to it.
    ///
    /// # Errors
    /// Returns the actors along the cycle that the redirected edge closes. The edge is removed.
    pub(crate) fn turn(self, to: Label) -> Result<(), Vec<String>> {
        if node_of(self.from).is_some_and(|node| node.turn(self, to)) { check(self, to) } else { Ok(()) }
    }

    fn remove(self) {
        // The drop of the ask follows the release of the lock.
        let _ask = node_of(self.from).and_then(|node| node.remove(self));
    }
}

struct Tried {
    from: ActorId,
    to: Label,
    edge: Option<Waiting>,
}

/// An ask of an actor, from before its request is sent (or run on this stack) until it has to wait or is answered. The
/// drop of this value ends it.
pub(crate) struct Attempt(());

impl Attempt {
    /// Begins to ask `to`. Returns `None` outside of async handlers.
    pub(crate) fn begin(to: Label) -> Option<Attempt> {
        let from = POLLED.get()?;
        with_attempts(|attempts| attempts.push(Tried { from, to, edge: None }));
        Some(Attempt(()))
    }

    /// Adds the edges of all asks on this stack. This one is the innermost.
    ///
    /// # Errors
    /// Returns the actors along the cycle that the edges would close, from the asked actor back to itself.
    pub(crate) fn note(&self, ask: Arc<dyn Awaited>) -> Result<Waiting, Vec<String>> {
        with_attempts(|attempts| {
            let (innermost, outer) = attempts.split_last_mut().expect("this attempt is the last");
            for tried in outer.iter_mut().filter(|tried| tried.edge.is_none()) {
                tried.edge = Some(note(tried.from, tried.to, None)?);
            }
            let Some(edge) = innermost.edge.take() else { return note(innermost.from, innermost.to, Some(ask)) };
            edge.wait_for(ask);
            Ok(edge)
        })
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let _over = with_attempts(Vec::pop);
    }
}

/// Adds the edge from `from` to `to`.
///
/// # Errors
/// Returns the actors along the cycle that the edge closes, and removes the edge.
fn note(from: ActorId, to: Label, ask: Option<Arc<dyn Awaited>>) -> Result<Waiting, Vec<String>> {
    let waiting = add(from, to, ask);
    check(waiting.edge, to)?;
    Ok(waiting)
}

/// Checks whether an edge that now leads to `to` closes a cycle.
///
/// # Errors
/// Returns the actors along the cycle, and removes the edge.
fn check(edge: Edge, to: Label) -> Result<(), Vec<String>> {
    mark_as_asked(to.id);
    if edge.from != to.id && !(is_asked(edge.from) && node_of(to.id).is_some_and(Node::has_edges)) {
        return Ok(());
    }
    judge(edge, to)
}

/// Searches for a cycle that the edge closes. Removes the edge if the search finds one.
#[cold]
fn judge(edge: Edge, to: Label) -> Result<(), Vec<String>> {
    let from = edge.from;
    if from != to.id && path(to.id, from, &mut waits_of).is_none() {
        return Ok(());
    }
    let judging = lock(&JUDGING);
    let path = if from == to.id { Some(Vec::new()) } else { lasting_path(to.id, from, &mut waits_of) };
    let Some(path) = path else { return Ok(()) };
    edge.remove();
    drop(judging);
    let along = path.iter().map(|wait| wait.to);
    Err(once(to).chain(along).chain(once(to)).map(|label| label.to_string()).collect())
}

/// Returns waits along a path from `start` to `goal`, all of which existed at one moment.
fn lasting_path(start: ActorId, goal: ActorId, waits_of: &mut impl FnMut(ActorId) -> Waits) -> Option<Vec<Wait>> {
    loop {
        let path = path(start, goal, waits_of)?;
        let lasts = |wait: &Wait| waits_of(wait.from).iter().any(|again| again.token == wait.token);
        if path.iter().all(lasts) {
            return Some(path);
        }
    }
}

/// Returns waits along a path from `start` to `goal`, depth first. They were read at different times.
fn path(start: ActorId, goal: ActorId, waits_of: &mut impl FnMut(ActorId) -> Waits) -> Option<Vec<Wait>> {
    let (mut path, mut open) = (Vec::new(), vec![waits_of(start).into_iter()]);
    let mut seen = FxHashSet::from_iter([start]);
    while let Some(waits) = open.last_mut() {
        let Some(wait) = waits.next() else {
            open.pop();
            path.pop();
            continue;
        };
        // A request that has left may have been forwarded to another actor, which this system does not know.
        if wait.is_away() {
            continue;
        }
        if wait.to() == goal {
            path.push(wait);
            return Some(path);
        }
        if seen.insert(wait.to()) {
            path.push(wait);
            open.push(waits_of(wait.to()).into_iter());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;
    use crate::actor::Actor;
    use crate::system::System;

    thread_local! {
        /// The number of nodes that this thread has read in searches.
        pub(super) static READINGS: Cell<usize> = const { Cell::new(0) };
    }

    struct Waiter;
    impl Actor for Waiter {}

    // GUARANTEE: Cycles
    // GUARANTEE: Nesting does not overflow a stack
    #[test]
    fn a_long_chain_takes_a_step_for_each_edge_and_no_stack() {
        const ACTORS: usize = 100_000;
        let chain = || {
            let system = System::builder().workers(1).simulated(0).start().unwrap();
            let actors: Vec<ActorId> = (0..ACTORS).map(|_| system.spawn(Waiter).id()).collect();
            let label = |at: usize| Label::of::<Waiter>(actors[at]);
            // From its end, and from its start: each edge is added with no search.
            for from_end in [true, false] {
                let mut edges = Vec::new();
                for at in 1..ACTORS {
                    let at = if from_end { ACTORS - at } else { at };
                    edges.push(note(actors[at - 1], label(at), None).ok().unwrap());
                    assert_eq!(READINGS.get(), 0, "the chain was walked");
                }
                // A search finds the edge that closes the cycle.
                let closing = note(actors[ACTORS - 1], label(0), None).err().unwrap();
                assert_eq!(closing.len(), ACTORS + 1);
                assert!(READINGS.replace(0) <= 3 * ACTORS);
            }
        };
        std::thread::Builder::new().stack_size(2 << 20).spawn(chain).unwrap().join().unwrap();
    }

    #[test]
    fn an_actor_in_the_cell_of_one_that_was_asked_is_not_asked() {
        let system = System::builder().workers(1).simulated(0).start().unwrap();
        let [asker, asked, _] = actors(&system);
        drop(note(asker, Label::of::<Waiter>(asked), None).ok().unwrap());
        assert!(is_asked(asked) && !is_asked(asker));
        forget_asks(asked);
        assert!(!is_asked(asked));
    }

    /// The actors A, B and C. A has asked B and looks for a path from B to A.
    fn actors(system: &System) -> [ActorId; 3] {
        [(); 3].map(|()| system.spawn(Waiter).id())
    }

    /// The edges that come and go: B to C, C to A, C to B.
    const EDGES: [(usize, usize); 3] = [(1, 2), (2, 0), (2, 1)];

    /// A moment: the token of each edge that exists.
    type Moment = [Option<u64>; 3];

    /// Returns the moments before and after each event. An event turns an edge on or off.
    fn moments(at_first: usize, events: &[usize]) -> Vec<Moment> {
        let mut now: Moment = std::array::from_fn(|edge| (at_first & 1 << edge != 0).then_some(edge as u64));
        let mut moments = vec![now];
        for (incarnation, event) in (3..).zip(events) {
            now[*event] = if now[*event].is_some() { None } else { Some(incarnation) };
            moments.push(now);
        }
        moments
    }

    /// Searches while the moments pass: `passes[n]` moments before reading n. Returns the path and the number of
    /// readings.
    fn search(actors: [ActorId; 3], moments: &[Moment], passes: &[usize]) -> (Option<Vec<Wait>>, usize) {
        let (mut now, mut readings) = (0, 0);
        let mut waits_of = |actor: ActorId| {
            now = (now + passes.get(readings).unwrap_or(&0)).min(moments.len() - 1);
            readings += 1;
            let wait = |(edge, (from, to)): (usize, (usize, usize))| {
                let token = moments[now][edge].filter(|_| actors[from] == actor)?;
                Some(Wait {
                    from: actor,
                    token,
                    number: token,
                    stage: Stage::Queued,
                    to: Label::of::<Waiter>(actors[to]),
                })
            };
            EDGES.into_iter().enumerate().filter_map(wait).collect()
        };
        let path = lasting_path(actors[1], actors[0], &mut waits_of);
        (path, readings)
    }

    #[test]
    fn a_cycle_that_is_found_was_closed_at_one_moment_and_one_that_is_closed_is_found() {
        const EVENTS: u32 = 4;
        let system = System::builder().workers(1).simulated(0).start().unwrap();
        let actors = actors(&system);
        let (mut found, mut not_found) = (0, 0);
        for script in 0..8 * 3_usize.pow(EVENTS) {
            let events: Vec<usize> = (0..EVENTS).map(|event| script / 8 / 3_usize.pow(event) % 3).collect();
            let moments = moments(script % 8, &events);
            let closed = |moment: &Moment| moment[0].is_some() && moment[1].is_some();
            let lasts = moments.iter().all(|moment| closed(moment) && moment[..2] == moments[0][..2]);
            // All orders in which the moments can pass between the first 6 readings.
            let mut passes = [0_usize; 6];
            loop {
                let (path, readings) = search(actors, &moments, &passes);
                if let Some(path) = &path {
                    let tokens: Vec<u64> = path.iter().map(|wait| wait.token).collect();
                    let is_then = |moment: &&Moment| tokens.iter().all(|token| moment.contains(&Some(*token)));
                    assert!(moments.iter().any(|moment| is_then(&moment)), "{moments:?} {passes:?} {tokens:?}");
                    found += 1;
                } else {
                    assert!(!lasts, "{moments:?} {passes:?}");
                    not_found += 1;
                }
                // The entries of `passes` for readings that do not take place make no difference.
                let used = readings.min(passes.len());
                let Some(at) = (0..used).rev().find(|at| passes[..=*at].iter().sum::<usize>() < EVENTS as usize) else {
                    break;
                };
                passes[at] += 1;
                passes[at + 1..].fill(0);
            }
        }
        assert!(found > 1_000 && not_found > 1_000, "{found} found, {not_found} not");
    }

    #[test]
    fn one_of_many_that_close_a_cycle_at_once_fails() {
        struct Never;
        impl Awaited for Never {
            fn stage(&self) -> Option<Stage> {
                Some(Stage::Queued)
            }

            fn end(self: Arc<Self>, _: Vec<String>, _: u32) {}
        }
        const ROUNDS: usize = 5_000;
        let system = System::builder().workers(1).simulated(0).start().unwrap();
        let actors = actors(&system);
        let (barrier, failed) = (Barrier::new(3), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for at in 0..3 {
                let (barrier, failed) = (&barrier, &failed);
                scope.spawn(move || {
                    let to = Label::of::<Waiter>(actors[(at + 1) % 3]);
                    for _ in 0..ROUNDS {
                        barrier.wait();
                        let noted = note(actors[at], to, Some(Arc::new(Never)));
                        failed.fetch_add(noted.is_err().into(), Ordering::Relaxed);
                        barrier.wait();
                        drop(noted);
                        // The marks have to be made again, too. All threads have left `note`.
                        forget_asks(actors[at]);
                    }
                });
            }
        });
        assert_eq!(failed.into_inner() as usize, ROUNDS);
        assert!(waits(system.core().id()).is_empty());
    }
}
