//! The search over all orders: dynamic partial-order reduction.
//!
//! The search runs the program again and again, each time to its end. A stack of *nodes* has an entry for each state
//! along the present run: the deliverable messages, those that must be tried, and those that need not be.
//!
//! The algorithm is Source-DPOR with sleep sets (Abdulla, Aronis, Jonsson, Sagonas: *Optimal dynamic partial order
//! reduction*, POPL 2014, algorithm 1). It follows Flanagan and Godefroid (POPL 2005). Its steps are those of Basset
//! and TransDPOR (kumar ch. 2, reference 40): a delivery with all effects of its handler.
//!
//! After each run, two dependent steps whose order could be reversed are a *race*. To reverse the race, a step must
//! be tried before the first of the two. That step is one with which a run can begin that contains the steps not
//! after the first, and then the second. Nothing is added if such a step is to be tried already.
//!
//! A tried message *sleeps* in the states behind its siblings until a dependent step, because it would lead to known
//! runs before. A run is abandoned if all its enabled messages sleep.
//!
//! Races are searched between all pairs, not only between neighbours. An async handler locks its actor, so a message
//! that waits for its end races with its beginning, and the steps between depend on both.

use super::causality::Causality;
use crate::run::{MessageId, Participant, Scheduler, Step};

/// A state along the present run.
struct Node {
    enabled: Vec<MessageId>,
    /// The messages to try, including the tried ones.
    backtrack: Vec<MessageId>,
    /// The steps that need not be tried, as they were when they were tried.
    sleep: Vec<Step>,
    chosen: MessageId,
}

/// The state of the search between runs.
pub(crate) struct Explorer {
    path: Vec<Node>,
    reduces: bool,
    /// The length of the present run so far.
    depth: usize,
    /// Whether the program has behaved differently in the same state.
    pub(crate) diverged: bool,
}

impl Explorer {
    pub(crate) fn new(reduces: bool) -> Explorer {
        Explorer { path: Vec::new(), reduces, depth: 0, diverged: false }
    }

    /// Begins a run.
    pub(crate) fn begin(&mut self) {
        self.depth = 0;
    }

    fn enter(&mut self, steps: &[Step], enabled: &[MessageId]) -> Option<usize> {
        // A state that was reached before was not abandoned, so its sleeping steps still sleep.
        let sleep: Vec<Step> = match (steps.last(), self.path.last()) {
            (Some(last), Some(node)) if self.reduces => {
                node.sleep.iter().filter(|step| !step.depends_on(last)).cloned().collect()
            }
            _ => Vec::new(),
        };
        let choice = enabled.iter().position(|id| !sleep.iter().any(|asleep| asleep.id == *id))?;
        // The passing of time depends on all other steps, and some of them prevent it, so it is tried wherever it is
        // enabled.
        let tried = |id: &MessageId| !self.reduces || *id == enabled[choice] || id.to == Participant::Clock;
        let backtrack = enabled.iter().copied().filter(tried).collect();
        self.path.push(Node { enabled: enabled.to_vec(), backtrack, sleep, chosen: enabled[choice] });
        Some(choice)
    }

    /// Ends a run with these steps. Returns false if no other run is to be made.
    pub(crate) fn next(&mut self, steps: &[Step]) -> bool {
        if self.reduces {
            self.find_races(steps);
        }
        while let Some(at) = self.path.len().checked_sub(1) {
            let node = &mut self.path[at];
            if let Some(step) = steps.get(at)
                && !node.sleep.iter().any(|asleep| asleep.id == step.id)
            {
                node.sleep.push(step.clone());
            }
            let tried = |id: &MessageId| node.sleep.iter().any(|asleep| asleep.id == *id);
            if let Some(next) = node.backtrack.iter().find(|id| !tried(id)) {
                node.chosen = *next;
                return true;
            }
            self.path.pop();
        }
        false
    }

    fn find_races(&mut self, steps: &[Step]) {
        let causality = Causality::of(steps);
        for second in 0..steps.len() {
            for first in 0..second {
                if is_reversible(steps, &causality, first, second) {
                    self.reverse(steps, &causality, first, second);
                }
            }
        }
    }

    /// Adds a message before `first` that leads to `second` before `first`.
    fn reverse(&mut self, steps: &[Step], causality: &Causality, first: usize, second: usize) {
        let mut before: Vec<usize> = (first + 1..second).filter(|at| !causality.past(*at).contains(first)).collect();
        before.push(second);
        let node = &mut self.path[first];
        // A run can begin with a step that needs none of the steps before it.
        let begins = |(nth, at): (usize, &usize)| {
            let needs = |other: &usize| causality.is_sent_after(*at, *other) || steps[*at].depends_on(&steps[*other]);
            !before[..nth].iter().any(needs)
        };
        let starts = || before.iter().enumerate().filter(|each| begins(*each)).map(|(_, at)| steps[*at].id);
        if starts().any(|id| node.backtrack.contains(&id)) {
            return;
        }
        match starts().find(|id| node.enabled.contains(id)) {
            Some(id) => node.backtrack.push(id),
            // The passing of time is tried already wherever it is enabled.
            None if steps[second].id.to == Participant::Clock => {}
            // Rarely the receiver of `second` was in a handler. Any enabled message may end that handler.
            None => node.backtrack.clone_from(&node.enabled),
        }
    }
}

/// Returns whether `second` might have come before `first`.
fn is_reversible(steps: &[Step], causality: &Causality, first: usize, second: usize) -> bool {
    let (a, b) = (&steps[first], &steps[second]);
    if !a.depends_on(b) || causality.is_sent_after(second, first) || a.id.is_in_channel_of(b.id) {
        return false;
    }
    // Ordinary messages had to wait while the receiver was in a handler, or was not started.
    if a.id.to == b.id.to && !a.was_open && !b.is_control {
        return false;
    }
    // An earlier message of the same channel has to come before `b`.
    !(first + 1..second)
        .any(|between| steps[between].id.is_in_channel_of(b.id) && causality.past(between).contains(first))
}

impl Scheduler for Explorer {
    fn choose(&mut self, steps: &[Step], enabled: &[MessageId]) -> Option<usize> {
        let depth = self.depth;
        self.depth += 1;
        match self.path.get(depth) {
            Some(node) => {
                let choice = enabled.iter().position(|id| *id == node.chosen);
                if choice.is_none() || node.enabled != enabled {
                    self.diverged = true;
                    return None;
                }
                choice
            }
            None => self.enter(steps, enabled),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::future::poll_fn;
    use std::pin::Pin;
    use std::sync::{Arc, Mutex};
    use std::task::Poll;
    use std::time::Duration;

    use playhouse::prelude::*;
    use playhouse_executor::Choices;

    use super::Explorer;
    use crate::check::causality::Causality;
    use crate::run::{ActorNumbers, MessageId, Participant, RunEnd, Scheduler, Step, TimerPolicy, lock, run};

    struct SharedExplorer(Arc<Mutex<Explorer>>);

    impl Scheduler for SharedExplorer {
        fn choose(&mut self, steps: &[Step], enabled: &[MessageId]) -> Option<usize> {
            lock(&self.0).choose(steps, enabled)
        }
    }

    /// The messages of each actor in their order. Two runs with different classes can be told apart.
    type Class = BTreeMap<Participant, Vec<MessageId>>;

    #[derive(Default)]
    struct Seen {
        classes: BTreeSet<Class>,
        results: BTreeSet<String>,
        runs: u64,
        orders: u128,
    }

    /// Returns `None` if there are too many orders.
    fn explore(program: impl Fn(&System) -> String, reduces: bool, runs_max: u64) -> Option<Seen> {
        let numbers: Arc<Mutex<ActorNumbers>> = Arc::default();
        let explorer = Arc::new(Mutex::new(Explorer::new(reduces)));
        let mut seen = Seen::default();
        loop {
            lock(&explorer).begin();
            let ran = run(&program, &numbers, Box::new(SharedExplorer(Arc::clone(&explorer))), TimerPolicy::AnyTime);
            assert!(!lock(&explorer).diverged);
            if let RunEnd::Returned(result) = ran.ended {
                let mut class = Class::new();
                for step in &ran.steps {
                    class.entry(step.id.to).or_default().push(step.id);
                }
                seen.classes.insert(class);
                seen.results.insert(result);
                seen.runs += 1;
                if reduces {
                    seen.orders += Causality::of(&ran.steps).orders();
                }
            }
            if !lock(&explorer).next(&ran.steps) {
                return Some(seen);
            }
            if seen.runs > runs_max {
                return None;
            }
        }
    }

    #[derive(Clone, Debug)]
    enum Act {
        Tell(usize, Vec<Act>),
        Urge(usize, Vec<Act>),
        TellAsync(usize, Vec<Act>),
        Ask(usize, Vec<Act>),
        Both(usize, usize),
        Later(Vec<Act>),
        Kill(usize),
    }

    struct Node {
        all: Vec<ActorRef<Node>>,
        seen: String,
    }

    #[derive(Message)]
    struct Join(Vec<ActorRef<Node>>);

    #[derive(Message)]
    #[message(reply = usize)]
    struct Do(Vec<Act>);

    #[derive(Message)]
    struct Now(Vec<Act>);

    #[derive(Message)]
    #[message(reply = String)]
    struct Report;

    impl Actor for Node {}

    impl Handler<Join> for Node {
        fn handle(&mut self, join: Join, _: &mut Context<Self>) {
            self.all = join.0;
        }
    }

    impl Node {
        fn act(&mut self, act: Act) {
            match act {
                Act::Tell(to, acts) => self.all[to].tell(Now(acts)),
                Act::Urge(to, acts) => self.all[to].tell_urgent(Now(acts)),
                Act::TellAsync(to, acts) => self.all[to].tell(Do(acts)),
                Act::Kill(who) => self.all[who].kill(),
                Act::Ask(..) | Act::Both(..) | Act::Later(..) => {}
            }
        }
    }

    impl Handler<Now> for Node {
        fn handle(&mut self, now: Now, _: &mut Context<Self>) {
            self.seen += "n";
            for act in now.0 {
                self.act(act);
            }
        }
    }

    impl AsyncHandler<Do> for Node {
        async fn handle(&mut self, acts: Do, ctx: &mut Context<Self>) -> usize {
            self.seen += "(";
            for act in acts.0 {
                match act {
                    Act::Ask(to, acts) => {
                        let answer = self.all[to].ask(Do(acts)).await;
                        self.seen += if answer.is_ok() { "+" } else { "-" };
                    }
                    Act::Both(one, other) => {
                        let (mut one, mut other) =
                            (self.all[one].ask(Do(Vec::new())), self.all[other].ask(Do(Vec::new())));
                        let first = poll_fn(|cx| {
                            if Pin::new(&mut one).poll(cx).is_ready() {
                                return Poll::Ready("1");
                            }
                            Pin::new(&mut other).poll(cx).map(|_| "2")
                        });
                        self.seen += first.await;
                    }
                    Act::Later(acts) => {
                        ctx.send_after(Duration::from_secs(1), Now(acts));
                    }
                    act => self.act(act),
                }
            }
            self.seen += ")";
            self.seen.len()
        }
    }

    impl Handler<Report> for Node {
        fn handle(&mut self, _: Report, _: &mut Context<Self>) -> String {
            self.seen.clone()
        }
    }

    const NODES: usize = 3;

    fn acts(choices: &mut Choices, depth: usize, kinds: usize) -> Vec<Act> {
        let mut list = Vec::new();
        for _ in 0..choices.below(if depth == 0 { 2 } else { 3 }) {
            let to = choices.below(NODES);
            let more = if depth == 0 { Vec::new() } else { acts(choices, depth - 1, kinds) };
            list.push(match choices.below(kinds) {
                0 => Act::Tell(to, more),
                1 => Act::Urge(to, more),
                2 => Act::TellAsync(to, more),
                3 => Act::Ask(to, more),
                4 => Act::Both(to, (to + 1) % NODES),
                5 => Act::Later(more),
                _ => Act::Kill(to),
            });
        }
        list
    }

    fn play(system: &System, acts: &[Act]) -> String {
        let all: Vec<_> = (0..NODES).map(|_| system.spawn(Node { all: Vec::new(), seen: String::new() })).collect();
        for node in &all {
            node.tell(Join(all.clone()));
        }
        system.run_until_idle();
        for (at, act) in acts.iter().enumerate() {
            all[at % NODES].tell(Do(vec![act.clone()]));
        }
        system.run_until_idle();
        all.iter().map(|node| node.ask(Report).wait().unwrap_or_else(|error| error.to_string()) + " ").collect()
    }

    /// Compares the classes and results of the search with and without reduction.
    fn compare(kinds: usize, seeds: u64) {
        let seeds = std::env::var("SEEDS").map_or(seeds, |seeds| seeds.parse().expect("SEEDS is a number"));
        let mut compared = 0;
        let (mut all_runs, mut reduced_runs) = (0, 0);
        for seed in 0..seeds {
            let acts = acts(&mut Choices::new(seed), 1, kinds);
            // The beginning has many orders, which all commute. The system is idle after it, so they are taken as
            // one.
            let program = |system: &System| play(system, &acts);
            let Some(reduced) = explore(program, true, 300) else { continue };
            if reduced.orders > 30_000 {
                continue;
            }
            let all = explore(program, false, 40_000).unwrap_or_else(|| panic!("seed {seed}: {}", reduced.orders));
            let missed: Vec<&Class> = all.classes.difference(&reduced.classes).collect();
            assert!(
                missed.is_empty(),
                "seed {seed}: {acts:?}: {} of {}: {:#?}",
                missed.len(),
                all.classes.len(),
                missed[0]
            );
            assert_eq!(all.results, reduced.results, "seed {seed}: {acts:?}");
            if kinds == 2 {
                assert_eq!(u128::from(all.runs), reduced.orders, "seed {seed}: {acts:?}");
                assert_eq!(reduced.runs, all.classes.len() as u64, "seed {seed}: no class twice");
            }
            all_runs += all.runs;
            reduced_runs += reduced.runs;
            compared += 1;
        }
        assert!(compared >= 10, "only {compared} programs were small enough");
        assert!(reduced_runs * 10 < all_runs, "{reduced_runs} instead of {all_runs} is no reduction");
    }

    // GUARANTEE: All orders
    #[test]
    fn the_reduction_misses_nothing_where_actors_tell() {
        compare(2, 60);
    }

    // GUARANTEE: All orders
    #[test]
    fn the_reduction_misses_nothing_where_actors_wait() {
        compare(7, 120);
    }
}
