//! Random actor graphs: actors that send numbered messages to each other, spawn, stop and change their stages, and keep
//! books of all of it. The receiver checks the numbers of each sender, and the books are compared at the end.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use playhouse::prelude::*;

use super::{Dice, Log};

/// The parameters of a run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub seed: u64,
    /// Actors at the start; they may spawn as many again.
    pub nodes: usize,
    /// The approximate number of all messages.
    pub fuel: i64,
    /// `true` if actors are stopped, drained and killed in the middle.
    pub stops: bool,
    /// `true` if one message in eight is urgent.
    pub urgent: bool,
    /// The number of outside threads that send, too.
    pub outsiders: u32,
}

/// The result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// Errors: overtaking, loss, duplicates, two threads in one stage.
    pub wrong: Vec<String>,
    /// Messages handled before `started`.
    pub unstarted: u64,
    pub handled: u64,
    pub dead: u64,
    /// A hash over all messages in the order in which they were handled.
    pub trace: u64,
    pub counters: playhouse::Counters,
}

/// Sender, receiver, and whether the message is urgent.
type Pair = (u32, u32, bool);

#[derive(Default)]
struct Books {
    sent: HashMap<Pair, u64>,
    seen: HashMap<Pair, u64>,
    ended_early: HashSet<u32>,
}

/// The state that the actors of a graph share.
pub struct World {
    plan: Plan,
    stages: usize,
    fuel: AtomicI64,
    next_id: AtomicU32,
    books: Mutex<Books>,
    wrong: Log<String>,
    unstarted: AtomicU64,
    dead: AtomicU64,
    trace: Mutex<u64>,
    over: AtomicBool,
    /// The thread that runs a stage now.
    running: Vec<AtomicU64>,
}

impl World {
    fn books(&self) -> MutexGuard<'_, Books> {
        super::lock(&self.books)
    }
}

fn thread_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static MINE: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    MINE.with(|mine| *mine)
}

#[derive(Clone, Copy)]
pub struct Friend {
    id: u32,
    node: ActorRef<Node>,
}

/// A message of the graph.
#[derive(Message, Clone, Copy)]
pub struct Note {
    from: u32,
    number: u64,
    urgent: bool,
    introduces: Option<Friend>,
}

/// A message that does not fit into the queue and is boxed.
#[derive(Message)]
pub struct BoxedNote {
    note: Note,
    _ballast: [u64; 40],
}

/// An actor of the graph.
pub struct Node {
    id: u32,
    world: Arc<World>,
    dice: Dice,
    friends: Vec<Friend>,
    sent: HashMap<(u32, bool), u64>,
    /// The last number of each sender, and the count.
    seen: HashMap<(u32, bool), (u64, u64)>,
    stage: Option<usize>,
    busy: AtomicBool,
    habit: usize,
}

impl Node {
    fn new(world: &Arc<World>, friends: Vec<Friend>) -> Node {
        let id = world.next_id.fetch_add(1, Ordering::Relaxed);
        Node {
            id,
            world: Arc::clone(world),
            dice: Dice(world.plan.seed ^ (u64::from(id) << 20)),
            friends,
            sent: HashMap::new(),
            seen: HashMap::new(),
            stage: None,
            busy: AtomicBool::new(false),
            habit: 0,
        }
    }

    fn note(&mut self, to: u32, urgent: bool, introduces: Option<Friend>) -> Note {
        let number = self.sent.entry((to, urgent)).or_default();
        *number += 1;
        Note { from: self.id, number: *number, urgent, introduces }
    }

    fn write_to(&mut self, to: Friend) {
        if self.world.fuel.fetch_sub(1, Ordering::Relaxed) <= 0 {
            return;
        }
        let urgent = self.world.plan.urgent && self.dice.one_in(8);
        let introduces = self.dice.one_in(4).then(|| self.some_friend()).flatten();
        let note = self.note(to.id, urgent, introduces);
        match (urgent, self.dice.one_in(5)) {
            (true, true) => to.node.tell_urgent(BoxedNote { note, _ballast: [0; 40] }),
            (true, false) => to.node.tell_urgent(note),
            (false, true) => to.node.tell(BoxedNote { note, _ballast: [0; 40] }),
            (false, false) => to.node.tell(note),
        }
    }

    fn some_friend(&mut self) -> Option<Friend> {
        (!self.friends.is_empty()).then(|| self.friends[self.dice.below(self.friends.len())])
    }

    fn spawn(&mut self, ctx: &mut Context<Self>) {
        if self.world.next_id.load(Ordering::Relaxed) as usize >= 2 * self.world.plan.nodes {
            return;
        }
        let mut friends: Vec<Friend> = (0..4).filter_map(|_| self.some_friend()).collect();
        friends.push(Friend { id: self.id, node: ctx.this() });
        let child = Node::new(&self.world, friends);
        let id = child.id;
        let options = SpawnOptions::new();
        let node = match self.dice.below(5) {
            0 => ctx.spawn_with(options.placement(Placement::Spread), child),
            1 => ctx.spawn_with(options.placement(Placement::Group(ctx.group())), child),
            2 => {
                let stage = self.dice.below(self.world.stages) as u16;
                ctx.spawn_with(options.placement(Placement::Stage(stage)), child)
            }
            _ => ctx.spawn(child),
        };
        let child = Friend { id, node };
        self.friends.push(child);
        // A third actor may know the child before the child's parent does.
        if let Some(third) = self.some_friend().filter(|third| third.id != id) {
            let note = self.note(third.id, false, Some(child));
            third.node.tell(note);
        }
        self.write_to(child);
    }

    fn end_someone(&mut self, ctx: &mut Context<Self>) {
        let victim = self.some_friend();
        match (self.dice.below(4), victim) {
            (0, _) => ctx.stop(),
            (1, Some(victim)) => victim.node.stop(),
            (2, Some(victim)) => victim.node.drain(),
            (3, Some(victim)) => victim.node.kill(),
            _ => {}
        }
    }

    fn receive(&mut self, note: Note, ctx: &mut Context<Self>) {
        let world = Arc::clone(&self.world);
        if self.busy.swap(true, Ordering::SeqCst) {
            world.wrong.push(format!("two handlers of {} at one time", self.id));
        }
        let Some(stage) = self.stage else {
            world.unstarted.fetch_add(1, Ordering::Relaxed);
            self.started(ctx);
            return self.receive_started(note, ctx);
        };
        let before = world.running[stage].swap(thread_number(), Ordering::SeqCst);
        if before != 0 && before != thread_number() {
            world.wrong.push(format!("two threads in stage {stage} at one time"));
        }
        self.receive_started(note, ctx);
        world.running[stage].store(before, Ordering::SeqCst);
    }

    fn receive_started(&mut self, note: Note, ctx: &mut Context<Self>) {
        let world = Arc::clone(&self.world);
        let (last, count) = self.seen.entry((note.from, note.urgent)).or_default();
        *count += 1;
        if note.number != *last + 1 {
            world.wrong.push(format!(
                "{} got number {} from {} (urgent: {}) after {last}",
                self.id, note.number, note.from, note.urgent
            ));
        }
        *last = note.number;
        if self.world.plan.outsiders == 0 {
            let mut trace = world.trace.lock().unwrap();
            let event = (u64::from(self.id) << 40) ^ (u64::from(note.from) << 20) ^ (note.number << 1);
            let event = event ^ u64::from(note.urgent) ^ ((ctx.now().as_nanos() as u64) << 8);
            *trace = (*trace ^ event).wrapping_mul(0x0100_0000_01b3).rotate_left(17);
        }
        if let Some(friend) = note.introduces {
            self.friends.push(friend);
        }
        if self.dice.one_in(20) {
            self.habit = self.dice.below(4);
        }
        if self.dice.one_in(12) {
            self.spawn(ctx);
        }
        for _ in 0..self.dice.below(4) {
            let to = match self.habit {
                0 => self.some_friend(),
                1 => self.friends.first().copied(),
                2 => self.friends.iter().find(|friend| friend.id == note.from).copied(),
                _ => Some(Friend { id: self.id, node: ctx.this() }),
            };
            if let Some(to) = to {
                self.write_to(to);
            }
        }
        if self.world.plan.stops && self.dice.one_in(60) {
            self.end_someone(ctx);
        }
        self.busy.store(false, Ordering::SeqCst);
    }
}

impl Actor for Node {
    fn started(&mut self, ctx: &mut Context<Self>) {
        // The number of the stage is only in the debug form of a group.
        let group = format!("{:?}", ctx.group());
        self.stage = group.chars().filter(char::is_ascii_digit).collect::<String>().parse().ok();
    }
}

impl Handler<Note> for Node {
    fn handle(&mut self, note: Note, ctx: &mut Context<Self>) {
        self.receive(note, ctx);
    }
}

impl Handler<BoxedNote> for Node {
    fn handle(&mut self, boxed: BoxedNote, ctx: &mut Context<Self>) {
        self.receive(boxed.note, ctx);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let mut books = self.world.books();
        for ((to, urgent), count) in self.sent.drain() {
            books.sent.insert((self.id, to, urgent), count);
        }
        for ((from, urgent), (_, count)) in self.seen.drain() {
            books.seen.insert((from, self.id, urgent), count);
        }
        if !self.world.over.load(Ordering::SeqCst) {
            books.ended_early.insert(self.id);
        }
    }
}

fn outsider(world: &World, id: u32, nodes: &[Friend]) {
    let mut dice = Dice(world.plan.seed ^ (u64::from(id) << 32));
    let mut sent: HashMap<(u32, bool), u64> = HashMap::new();
    for _ in 0..world.plan.fuel as u64 / 8 {
        let to = nodes[dice.below(nodes.len())];
        let urgent = world.plan.urgent && dice.one_in(8);
        let number = sent.entry((to.id, urgent)).or_default();
        *number += 1;
        let note = Note { from: id, number: *number, urgent, introduces: None };
        if urgent {
            to.node.tell_urgent(note);
        } else {
            to.node.tell(note);
        }
    }
    let mut books = world.books();
    for ((to, urgent), count) in sent {
        books.sent.insert((id, to, urgent), count);
    }
}

/// Plays `plan` on `system` until it is idle, shuts it down, and compares the books.
pub fn play(system: System, plan: Plan) -> Outcome {
    let world = Arc::new(World {
        plan,
        stages: system.stages(),
        fuel: AtomicI64::new(plan.fuel),
        next_id: AtomicU32::new(0),
        books: Mutex::default(),
        wrong: Log::new(),
        unstarted: AtomicU64::new(0),
        dead: AtomicU64::new(0),
        trace: Mutex::new(0),
        over: AtomicBool::new(false),
        running: (0..system.stages()).map(|_| AtomicU64::new(0)).collect(),
    });
    let counting = Arc::clone(&world);
    system.on_dead_letter(move |letter| {
        if letter.message.ends_with("Note") {
            counting.dead.fetch_add(1, Ordering::Relaxed);
        }
    });
    let mut nodes: Vec<Friend> = Vec::new();
    for _ in 0..plan.nodes {
        let node = Node::new(&world, nodes.clone());
        let id = node.id;
        nodes.push(Friend { id, node: system.spawn(node) });
    }
    let mut dice = Dice(plan.seed);
    let starter = 1_000_000;
    let mut firsts = HashMap::new();
    for _ in 0..plan.nodes {
        let (to, other) = (nodes[dice.below(nodes.len())], nodes[dice.below(nodes.len())]);
        let number = firsts.entry(to.id).or_insert(0u64);
        *number += 1;
        to.node.tell(Note { from: starter, number: *number, urgent: false, introduces: Some(other) });
    }
    world.books().sent.extend(firsts.into_iter().map(|(to, count)| ((starter, to, false), count)));
    std::thread::scope(|scope| {
        for outside in 1..=plan.outsiders {
            let (world, nodes) = (&*world, &nodes[..]);
            scope.spawn(move || outsider(world, starter + outside, nodes));
        }
    });
    system.run_until_idle();
    world.over.store(true, Ordering::SeqCst);
    let report = system.shutdown().expect("nothing is stuck");
    compare(&world, report.undelivered, report.stats.total)
}

fn compare(world: &World, undelivered: u64, counters: playhouse::Counters) -> Outcome {
    let books = world.books();
    let mut wrong = world.wrong.take();
    if undelivered > 0 {
        wrong.push(format!("the idle system had {undelivered} messages left"));
    }
    for (pair, sent) in &books.sent {
        let seen = books.seen.get(pair).copied().unwrap_or(0);
        if seen > *sent || seen < *sent && !books.ended_early.contains(&pair.1) {
            wrong.push(format!("of {pair:?} {sent} were sent and {seen} handled"));
        }
    }
    for (pair, seen) in &books.seen {
        if !books.sent.contains_key(pair) {
            wrong.push(format!("of {pair:?} none were sent and {seen} handled"));
        }
    }
    let (sent, seen): (u64, u64) = (books.sent.values().sum(), books.seen.values().sum());
    let dead = world.dead.load(Ordering::SeqCst);
    if sent != seen + dead {
        wrong.push(format!("{sent} were sent, {seen} handled, {dead} dead"));
    }
    Outcome {
        wrong,
        unstarted: world.unstarted.load(Ordering::SeqCst),
        handled: seen,
        dead,
        trace: *world.trace.lock().unwrap(),
        counters,
    }
}
