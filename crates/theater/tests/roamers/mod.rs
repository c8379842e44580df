//! Actors that gossip, ask and roam, some in groups, some supervised, some mortal, and a journal of their events.
//!
//! Each pair of a sender and a receiver numbers its messages. The numbers are in the journal, because a restarted sender that has
//! lost its state must continue them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use playhouse_actor::*;
use playhouse_executor::Choices;
use playhouse_theater::Theater;
use serde::{Deserialize, Serialize};

/// The peers of each actor.
const PEERS: usize = 4;

// -- the journal --------------------------------------------------------------------------------------------------------

/// A sender and a receiver.
pub type Pair = (u32, u32);
/// A system and an actor's address in it.
type Location = (u16, ActorId);

/// The events of the actors of one run.
#[derive(Default)]
pub struct Journal {
    /// The last number of each pair.
    sent: BTreeMap<Pair, u64>,
    /// The numbers of each pair, in the order in which the receiver handled them.
    handled: BTreeMap<Pair, Vec<u64>>,
    /// Dead letters, by the type of the message.
    dead: BTreeMap<&'static str, u64>,
    /// The locations of each actor. More than one location is one too many.
    lives: BTreeMap<u32, Vec<Location>>,
    /// The system that each actor was in before its migration, while the migration is in progress.
    left: BTreeMap<u32, u16>,
    /// Actors that end by themselves.
    mortal: BTreeSet<u32>,
    /// The kind of each actor.
    kinds: BTreeMap<u32, &'static str>,
    /// Lives that were one too many, and handlers that ran in a system in which their actor does not live.
    wrong: Vec<String>,
    /// Number of arrivals of each actor.
    moves: BTreeMap<u32, u64>,
    pub stays: u64,
    pub crashes: u64,
    /// Number of unfinished asks of each actor.
    open: BTreeMap<u32, i64>,
    pub asked: u64,
    /// Failed asks: the asker, the asked actor, and the reason.
    failed: Vec<(Pair, AskError)>,
}

static RUNS: Mutex<BTreeMap<u64, Arc<Mutex<Journal>>>> = Mutex::new(BTreeMap::new());

/// Returns the journal of this run.
fn journal_of(run: u64) -> Arc<Mutex<Journal>> {
    Arc::clone(lock(&RUNS).entry(run).or_default())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn location(ctx: &Context<Node>) -> Location {
    (playhouse_executor::current_system().expect("in an actor").id(), ctx.this().id())
}

impl Journal {
    fn lives(&mut self, actor: u32, location: Location) {
        self.left.remove(&actor);
        let lives = self.lives.entry(actor).or_default();
        if !lives.contains(&location) {
            lives.push(location);
        }
        if lives.len() > 1 {
            let wrong = format!("{actor} ({}) lives at {lives:?}", self.kinds[&actor]);
            self.wrong.push(wrong);
        }
    }

    fn leaves(&mut self, actor: u32, location: Location) {
        self.lives.entry(actor).or_default().retain(|at| *at != location);
        self.left.insert(actor, location.0);
    }

    fn handles(&mut self, pair: Pair, number: u64, location: Location) {
        self.handled.entry(pair).or_default().push(number);
        let lives = self.lives.entry(pair.1).or_default();
        if *lives != [location] {
            let wrong = format!("{} handles {number} of {} at {location:?} and lives at {lives:?}", pair.1, pair.0);
            self.wrong.push(wrong);
        }
    }

    fn shown(&self, actor: u32) -> String {
        let moves = self.moves.get(&actor).copied().unwrap_or_default();
        format!("{actor} ({}, moved {moves} times, lives at {:?})", self.kinds[&actor], self.lives.get(&actor))
    }

    fn has_moved(&self, actor: u32) -> bool {
        self.moves.contains_key(&actor)
    }

    /// Returns the number of all arrivals.
    pub fn moves(&self) -> u64 {
        self.moves.values().sum()
    }

    /// Returns the number of messages sent, if each was handled or is a dead letter.
    pub fn settled(&self) -> Option<u64> {
        let sent: u64 = self.sent.values().sum();
        let handled: usize = self.handled.values().map(Vec::len).sum();
        let dead: u64 = self.dead.iter().filter(|(message, _)| **message != "Answered").map(|(_, count)| count).sum();
        (sent == handled as u64 + dead).then_some(sent)
    }

    /// Returns whether immortal actors have unanswered asks.
    pub fn is_any_ask_open(&self) -> bool {
        self.open.iter().any(|(actor, open)| *open != 0 && !self.mortal.contains(actor))
    }

    /// Notes that the theater was killed: none of its actors lives.
    pub fn killed(&mut self, theater: u16) {
        self.lives.values_mut().for_each(|lives| lives.retain(|(at, _)| *at != theater));
    }

    /// Returns the actors that live in one of these theaters, and in no other one.
    pub fn living(&self, theaters: &[u16]) -> BTreeSet<u32> {
        let lives_there = |lives: &[Location]| !lives.is_empty() && lives.iter().all(|(at, _)| theaters.contains(at));
        self.lives.iter().filter(|(_, lives)| lives_there(lives)).map(|(actor, _)| *actor).collect()
    }

    /// Checks that no actor has lived twice at any time.
    pub fn check_lives(&self) {
        // The first errors show the fault.
        assert_eq!(self.wrong[..self.wrong.len().min(5)], [] as [String; 0]);
    }

    /// Checks that no message was handled twice.
    pub fn check_at_most_once(&self) {
        for (pair, numbers) in &self.handled {
            let different: BTreeSet<_> = numbers.iter().collect();
            assert_eq!(different.len(), numbers.len(), "of {pair:?} were handled {numbers:?}");
        }
    }

    /// Checks that each message was handled once, or was sent to an ended actor and is reported once. No other message is
    /// reported, and no ask has failed.
    pub fn check_each_once(&self) {
        self.check_at_most_once();
        let mut undelivered = 0;
        for (pair, sent) in &self.sent {
            let numbers = self.handled.get(pair).map_or(&[][..], |numbers| numbers);
            let missing: Vec<u64> = (1..=*sent).filter(|number| !numbers.contains(number)).collect();
            undelivered += missing.len() as u64;
            let ends = self.mortal.contains(&pair.1);
            let (sender, receiver) = (self.shown(pair.0), self.shown(pair.1));
            assert!(
                ends || missing.is_empty(),
                "from {sender} to {receiver} are missing {missing:?} of {sent}; dead letters: {:?}",
                self.dead
            );
        }
        let mut dead = self.dead.clone();
        // Answers for actors that have ended in other theaters than the one they had asked from. For an actor that ended at home,
        // nothing is reported.
        let too_late = dead.remove("Answered").unwrap_or(0) as i64;
        let open: i64 = self.open.iter().filter(|(actor, _)| self.mortal.contains(actor)).map(|(_, open)| open).sum();
        assert!(too_late <= open, "{too_late} dead letters of answers, and {open} asks of actors that end are open");
        let expected: Vec<_> = (undelivered > 0).then_some(("LastWords", undelivered)).into_iter().collect();
        assert_eq!(dead.into_iter().collect::<Vec<_>>(), expected, "dead letters");
        assert_eq!(self.failed, vec![], "asks that failed");
    }

    /// Checks that each receiver has handled the messages of each sender in the order of sending.
    pub fn check_order(&self) {
        let late: Vec<_> = self.handled.iter().filter(|(_, numbers)| !numbers.is_sorted()).collect();
        assert_eq!(late, vec![], "pairs out of order");
    }

    /// Checks that each ask of these actors has ended, regardless of their migrations.
    pub fn check_no_ask_waits(&self, living: &BTreeSet<u32>) {
        let waits = |actor: u32| self.open.get(&actor).is_some_and(|open| *open != 0);
        let waiting: Vec<_> = living.iter().filter(|actor| waits(**actor)).collect();
        assert_eq!(waiting, Vec::<&u32>::new(), "they wait for answers");
    }

    /// Checks that between those of these actors that have never migrated, each message was handled once and in order.
    pub fn check_those_that_stayed(&self, living: &BTreeSet<u32>) {
        let stayed = |actor: u32| living.contains(&actor) && !self.has_moved(actor);
        for (pair, sent) in self.sent.iter().filter(|((sender, receiver), _)| stayed(*sender) && stayed(*receiver)) {
            let numbers = self.handled.get(pair).map_or(&[][..], |numbers| numbers);
            assert!(numbers.iter().copied().eq(1..=*sent), "of {pair:?} were handled {numbers:?} of {sent}");
        }
    }
}

// -- actors -------------------------------------------------------------------------------------------------------------

/// A peer, from the view of its peers.
#[derive(Clone, Serialize, Deserialize)]
pub struct Peer {
    id: u32,
    mortal: bool,
    actor: ActorRef<Node>,
}

/// The random acts of an actor, each about once in this number of messages that it handles; 0: never.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Habits {
    moves: u64,
    crashes: u64,
    ends: u64,
}

/// Passes gossip on to its peers, asks them, and roams.
#[derive(Clone, Serialize, Deserialize)]
pub struct Node {
    run: u64,
    id: u32,
    peers: Vec<Peer>,
    dice: u64,
    theaters: Vec<SocketAddr>,
    habits: Habits,
    /// The number of the group among those that its founder starts.
    group: Option<u32>,
}

/// A numbered message for an actor that lives until the end.
#[derive(Serialize, Deserialize)]
struct Gossip {
    from: u32,
    number: u64,
    ttl: u32,
}
remote_message!(Gossip -> ());

/// A numbered message for an actor that may have ended.
#[derive(Serialize, Deserialize)]
struct LastWords(Gossip);
remote_message!(LastWords -> ());

/// A numbered message that is answered with its number.
#[derive(Serialize, Deserialize)]
struct Question {
    from: u32,
    number: u64,
}
remote_message!(Question -> u64);

/// The outcome of a question to this actor.
#[derive(Serialize, Deserialize)]
struct Answered {
    of: u32,
    number: u64,
    answer: Result<u64, AskError>,
}
remote_message!(Answered -> ());

#[derive(Serialize, Deserialize)]
struct Meet(Vec<Peer>);
remote_message!(Meet -> ());

/// Begins to gossip, with messages that are passed on this number of times.
#[derive(Serialize, Deserialize)]
struct Begin {
    ttl: u32,
}
remote_message!(Begin -> ());

/// Sends one more message to each peer.
#[derive(Serialize, Deserialize)]
struct Greet;
remote_message!(Greet -> ());

/// Answered with the actor's number.
#[derive(Serialize, Deserialize)]
struct Which;
remote_message!(Which -> u32);

impl Node {
    fn roll(&mut self, sides: u64) -> u64 {
        let mut choices = Choices::new(self.dice);
        self.dice = choices.next();
        self.dice % sides
    }

    /// Returns whether an act with the mean interval `every` happens now.
    fn happens(&mut self, every: u64) -> bool {
        every > 0 && self.roll(every) == 0
    }

    fn any_peer(&mut self) -> Peer {
        let at = self.roll(PEERS as u64) as usize;
        self.peers[at].clone()
    }

    fn journal<R>(&self, write: impl FnOnce(&mut Journal) -> R) -> R {
        write(&mut lock(&journal_of(self.run)))
    }

    fn tell(&self, to: &Peer, ttl: u32) {
        let gossip = Gossip { from: self.id, number: self.number(to.id), ttl };
        if to.mortal { to.actor.tell(LastWords(gossip)) } else { to.actor.tell(gossip) }
    }

    fn number(&self, to: u32) -> u64 {
        self.journal(|journal| {
            let sent = journal.sent.entry((self.id, to)).or_default();
            *sent += 1;
            *sent
        })
    }

    /// Sends a few messages to one peer. The first is passed on, and may be a question to another.
    fn gossip(&mut self, ttl: u32, ctx: &mut Context<Self>) {
        let to = self.any_peer();
        self.tell(&to, ttl);
        for _ in 0..self.roll(3) {
            self.tell(&to, 0);
        }
        let to = self.any_peer();
        if !to.mortal && self.happens(4) {
            let question = Question { from: self.id, number: self.number(to.id) };
            self.journal(|journal| {
                journal.asked += 1;
                *journal.open.entry(self.id).or_default() += 1;
            });
            let (of, number) = (to.id, question.number);
            ctx.ask(to.actor, question).pipe_to_self(move |answer| Answered { of, number, answer });
        }
    }

    fn handled(&mut self, from: u32, number: u64, ctx: &mut Context<Self>) {
        self.journal(|journal| journal.handles((from, self.id), number, location(ctx)));
    }

    fn hear(&mut self, gossip: Gossip, ctx: &mut Context<Self>) {
        self.handled(gossip.from, gossip.number, ctx);
        if gossip.ttl > 0 {
            self.gossip(gossip.ttl - 1, ctx);
        }
        let Habits { moves, crashes, ends } = self.habits;
        if self.happens(moves) {
            let to = self.roll(self.theaters.len() as u64) as usize;
            ctx.migrate_to(self.theaters[to]);
        }
        if self.happens(crashes) {
            self.journal(|journal| journal.crashes += 1);
            ctx.fail(std::io::Error::other("on purpose"));
        } else if self.happens(ends) {
            ctx.stop();
        }
    }
}

impl Actor for Node {
    fn started(&mut self, ctx: &mut Context<Self>) {
        self.journal(|journal| journal.lives(self.id, location(ctx)));
    }

    fn stopped(&mut self, ctx: &mut Context<Self>) {
        self.journal(|journal| journal.leaves(self.id, location(ctx)));
    }

    fn migrating(&mut self, ctx: &mut Context<Self>) {
        self.journal(|journal| journal.leaves(self.id, location(ctx)));
    }

    fn migrated(&mut self, ctx: &mut Context<Self>) {
        self.journal(|journal| {
            *journal.moves.entry(self.id).or_default() += 1;
            journal.lives(self.id, location(ctx));
        });
    }

    fn migration_failed(&mut self, _: MigrateError, ctx: &mut Context<Self>) {
        self.journal(|journal| {
            journal.stays += 1;
            journal.lives(self.id, location(ctx));
        });
    }
}

impl Handler<Gossip> for Node {
    fn handle(&mut self, gossip: Gossip, ctx: &mut Context<Self>) {
        self.hear(gossip, ctx);
    }
}
impl Handler<LastWords> for Node {
    fn handle(&mut self, LastWords(gossip): LastWords, ctx: &mut Context<Self>) {
        self.hear(gossip, ctx);
    }
}
impl Handler<Question> for Node {
    fn handle(&mut self, Question { from, number }: Question, ctx: &mut Context<Self>) -> u64 {
        self.handled(from, number, ctx);
        if self.happens(self.habits.moves) {
            let to = self.roll(self.theaters.len() as u64) as usize;
            ctx.migrate_to(self.theaters[to]);
        }
        number
    }
}
impl Handler<Answered> for Node {
    fn handle(&mut self, Answered { of, number, answer }: Answered, _: &mut Context<Self>) {
        self.journal(|journal| {
            *journal.open.entry(self.id).or_default() -= 1;
            match answer {
                Ok(answer) if answer == number => {}
                Ok(answer) => journal.wrong.push(format!("question {number} was answered with {answer}")),
                Err(why) => journal.failed.push(((self.id, of), why)),
            }
        });
    }
}
impl Handler<Meet> for Node {
    fn handle(&mut self, Meet(peers): Meet, _: &mut Context<Self>) {
        self.peers = peers;
    }
}
impl Handler<Begin> for Node {
    fn handle(&mut self, Begin { ttl }: Begin, ctx: &mut Context<Self>) {
        self.gossip(ttl, ctx);
    }
}
impl Handler<Greet> for Node {
    fn handle(&mut self, _: Greet, _: &mut Context<Self>) {
        for peer in &self.peers {
            self.tell(peer, 0);
        }
    }
}
impl Handler<Which> for Node {
    fn handle(&mut self, _: Which, _: &mut Context<Self>) -> u32 {
        self.id
    }
}
remote!(mobile Node: Gossip, LastWords, Question, Answered, Meet, Begin, Greet, Which);

/// Migrates to a theater and starts actors in it.
#[derive(Serialize, Deserialize)]
struct Founder {
    nodes: Vec<Node>,
}

#[derive(Serialize, Deserialize)]
struct GoTo(SocketAddr);
remote_message!(GoTo -> ());

#[derive(Serialize, Deserialize)]
struct Found;
remote_message!(Found -> Vec<ActorRef<Node>>);

impl Actor for Founder {}
impl Handler<GoTo> for Founder {
    fn handle(&mut self, GoTo(theater): GoTo, ctx: &mut Context<Self>) {
        ctx.migrate_to(theater);
    }
}
impl Handler<Found> for Founder {
    fn handle(&mut self, _: Found, ctx: &mut Context<Self>) -> Vec<ActorRef<Node>> {
        let mut groups = BTreeMap::new();
        let mut start = |node: Node| {
            let placement = match node.group {
                Some(group) => Placement::Group(*groups.entry(group).or_insert_with(|| Group::new(&ctx.system()))),
                None => Placement::Spread,
            };
            ctx.spawn_with(SpawnOptions::new().placement(placement), node)
        };
        std::mem::take(&mut self.nodes).into_iter().map(&mut start).collect()
    }
}
remote!(mobile Founder: GoTo, Found);

// -- a run --------------------------------------------------------------------------------------------------------------

/// Number of actors, and of times that each piece of gossip is passed on.
pub struct Size {
    pub actors: usize,
    pub ttl: u32,
    /// Actors migrate about once in this number of messages, or more rarely by a factor that is drawn; 0: never.
    pub moves_every: u64,
}

/// Actors in some theaters, which have not begun yet.
pub struct Play {
    run: u64,
    nodes: Vec<ActorRef<Node>>,
    supervised: BTreeSet<u32>,
    supervisor: ActorRef<Supervisor>,
    ttl: u32,
}

impl Play {
    /// Starts the actors. References are those of the first theater. No concurrent run has the same number.
    pub fn new(run: u64, theaters: &[Theater], size: &Size, choices: &mut Choices) -> Play {
        let addresses: Vec<SocketAddr> = theaters.iter().filter_map(Theater::address).collect();
        let journal = journal_of(run);
        for theater in theaters {
            let journal = Arc::clone(&journal);
            theater.system().on_dead_letter(move |letter| {
                let name = letter.message.rsplit("::").next().unwrap_or_default();
                *lock(&journal).dead.entry(name).or_default() += 1;
            });
        }
        let policy =
            if choices.one_in(2) { SupervisionPolicy::one_for_one() } else { SupervisionPolicy::one_for_all() };
        let policy = policy.max_restarts(usize::MAX, std::time::Duration::from_secs(1));
        let supervisor = theaters[0].system().spawn(Supervisor::new(policy));
        // In half of the runs all actors are born in one theater.
        let born_at_home = choices.one_in(2);
        let known: Arc<Mutex<BTreeMap<u32, Vec<Peer>>>> = Arc::default();
        let mut founders: Vec<Vec<Node>> = vec![Vec::new(); theaters.len()];
        let mut nodes: BTreeMap<u32, ActorRef<Node>> = BTreeMap::new();
        let mut supervised = BTreeSet::new();
        for id in 0..size.actors as u32 {
            let moves = size.moves_every << choices.below(4);
            let mut node = Node {
                run,
                id,
                peers: Vec::new(),
                dice: choices.next(),
                theaters: addresses.clone(),
                habits: Habits::default(),
                group: None,
            };
            let kind = choices.below(8);
            let kinds =
                ["settled", "settled", "mortal", "of a group", "of a group", "supervised", "roaming", "roaming"];
            lock(&journal).kinds.insert(id, kinds[kind]);
            match kind {
                // It stays in the theater of its birth.
                0 | 1 => {}
                2 => {
                    node.habits = Habits { moves, ends: 30, ..Habits::default() };
                    lock(&journal).mortal.insert(id);
                }
                3 | 4 => {
                    node.habits.moves = moves;
                    node.group = Some(choices.below(2) as u32);
                }
                5 => {
                    node.habits = Habits { moves, crashes: 15, ..Habits::default() };
                    supervised.insert(id);
                    let known = Arc::clone(&known);
                    let factory = move || {
                        node.peers = lock(&known).get(&id).cloned().unwrap_or_default();
                        node.roll(2);
                        node.clone()
                    };
                    let child = ChildSpec::new(id.to_string(), factory);
                    nodes.insert(id, supervisor.ask(child).wait().unwrap().unwrap());
                    continue;
                }
                _ => node.habits.moves = moves,
            }
            let at = if born_at_home { 0 } else { choices.below(theaters.len()) };
            founders[at].push(node);
        }
        for (at, founded) in founders.into_iter().enumerate() {
            let ids: Vec<u32> = founded.iter().map(|node| node.id).collect();
            let founder = theaters[0].system().spawn(Founder { nodes: founded });
            if at > 0 && !ids.is_empty() {
                founder.tell(GoTo(addresses[at]));
            }
            nodes.extend(ids.into_iter().zip(founder.ask(Found).wait().unwrap()));
            founder.stop();
        }
        let nodes: Vec<ActorRef<Node>> = nodes.into_values().collect();
        for (id, node) in nodes.iter().enumerate() {
            let mut others: Vec<usize> = (0..nodes.len()).filter(|other| *other != id).collect();
            let mut draw = || others.swap_remove(choices.below(others.len()));
            let peers: Vec<usize> = (0..PEERS).map(|_| draw()).collect();
            let mortal = |id: u32| lock(&journal).mortal.contains(&id);
            let peer = |at: usize| Peer { id: at as u32, mortal: mortal(at as u32), actor: nodes[at] };
            let peers: Vec<Peer> = peers.into_iter().map(peer).collect();
            lock(&known).insert(id as u32, peers.clone());
            node.ask(Meet(peers)).wait().unwrap();
        }
        Play { run, nodes, supervised, supervisor, ttl: size.ttl }
    }

    /// Lets all immortal actors begin to gossip.
    pub fn begin(&self) {
        self.immortal().for_each(|node| node.tell(Begin { ttl: self.ttl }));
    }

    /// Returns the actors that do not end by themselves.
    fn immortal(&self) -> impl Iterator<Item = ActorRef<Node>> {
        let mortal = self.journal(|journal| journal.mortal.clone());
        (0..).zip(&self.nodes).filter(move |(id, _)| !mortal.contains(id)).map(|(_, node)| *node)
    }

    pub fn journal<R>(&self, look: impl FnOnce(&mut Journal) -> R) -> R {
        look(&mut lock(&journal_of(self.run)))
    }

    /// Checks that each of these actors answers.
    pub fn check_answers(&self, living: &BTreeSet<u32>) {
        for id in living {
            let shown = self.journal(|journal| journal.shown(*id));
            assert_eq!(self.ask(*id), Ok(*id), "of {shown}");
        }
    }

    fn ask(&self, id: u32) -> Result<u32, AskError> {
        let mut node = self.nodes[id as usize];
        if self.supervised.contains(&id) {
            let child = self.supervisor.ask(FindChild::<Node>::new(id.to_string())).wait()?;
            node = child.unwrap_or_else(|| panic!("child {id} is no more"));
        }
        node.ask(Which).wait()
    }

    /// Lets all immortal actors send one more message to each of their peers.
    pub fn greet(&self) {
        self.immortal().for_each(|node| node.tell(Greet));
    }
}

impl Drop for Play {
    fn drop(&mut self) {
        lock(&RUNS).remove(&self.run);
    }
}
