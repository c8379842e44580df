//! Baselines of the workloads that create actors: fjcreate, skynet, fib, creation, send-dynamic.
//!
//! Every actor's state is an allocation of its own; messages find it through a table of numbers.

use super::cells::Cells;
use super::flat::Flat;
use crate::harness::outcome::{Failure, Outcome, check};
use crate::plans::{creation, fib, fjcreate, send, skynet};

/// The actor number of the master, or of the asker, which are no cells.
const MASTER: u32 = u32::MAX;

/// The baseline of `fjcreate`: all actors alive before the first is told to work.
pub(crate) fn fjcreate(plan: &fjcreate::Plan) -> Result<Outcome, Failure> {
    struct Child {
        master: u32,
        result: u64,
    }

    struct State {
        children: Cells<Child>,
        actors: u64,
        employed: u64,
        peak: usize,
        done: u64,
        sum: u64,
    }

    fn create(flat: &mut Flat<State>, me: u32, _: u64) {
        let created = flat.state.children.alive() as u64;
        for _ in created..(created + fjcreate::Plan::SLICE).min(flat.state.actors) {
            flat.state.children.create(Child { master: me, result: 0 });
        }
        flat.state.peak = flat.state.children.alive();
        if (flat.state.peak as u64) < flat.state.actors {
            flat.send(create, me, 0);
        } else {
            flat.send(employ, me, 0);
        }
    }

    fn employ(flat: &mut Flat<State>, me: u32, _: u64) {
        let until = (flat.state.employed + fjcreate::Plan::SLICE).min(flat.state.actors);
        for number in flat.state.employed..until {
            flat.send(work, number as u32, number);
        }
        flat.state.employed = until;
        if until < flat.state.actors {
            flat.send(employ, me, 0);
        }
    }

    fn work(flat: &mut Flat<State>, me: u32, number: u64) {
        let child = flat.state.children.get(me);
        child.result = fjcreate::work(number);
        let (master, result) = (child.master, child.result);
        flat.send(done, master, result);
        flat.state.children.end(me);
    }

    fn done(flat: &mut Flat<State>, _: u32, result: u64) {
        flat.state.sum = flat.state.sum.wrapping_add(result);
        flat.state.done += 1;
    }

    let children = Cells::new();
    let state = State { children, actors: plan.actors, employed: 0, peak: 0, done: 0, sum: 0 };
    let mut flat = Flat::new(state);
    let elapsed = flat.time(|flat| flat.send(create, MASTER, 0));
    check("the actors alive at the peak", plan.actors, flat.state.peak as u64)?;
    check("the acknowledgements", plan.actors, flat.state.done)?;
    check("the sum of the acknowledgements", plan.sum(), flat.state.sum)?;
    Ok(Outcome::new(plan.actors, elapsed))
}

/// The baseline of `skynet`.
pub(crate) fn skynet(plan: &skynet::Plan) -> Result<Outcome, Failure> {
    struct Node {
        parent: u32,
        number: u64,
        leaves: u64,
        sum: u64,
        waiting: u64,
    }

    struct State {
        nodes: Cells<Node>,
        created: u64,
        total: u64,
    }

    fn spawn(flat: &mut Flat<State>, parent: u32, number: u64, leaves: u64) {
        let waiting = skynet::Plan::DEGREE;
        let node = flat.state.nodes.create(Node { parent, number, leaves, sum: 0, waiting });
        flat.state.created += 1;
        flat.send(started, node, 0);
    }

    fn started(flat: &mut Flat<State>, me: u32, _: u64) {
        let node = flat.state.nodes.get(me);
        let (number, leaves) = (node.number, node.leaves / skynet::Plan::DEGREE);
        if leaves == 0 {
            return end(flat, me, number);
        }
        for child in 0..skynet::Plan::DEGREE {
            spawn(flat, me, number + child * leaves, leaves);
        }
    }

    fn sum(flat: &mut Flat<State>, me: u32, sum: u64) {
        if me == MASTER {
            flat.state.total = sum;
            return;
        }
        let node = flat.state.nodes.get(me);
        node.sum += sum;
        node.waiting -= 1;
        if node.waiting == 0 {
            let sum = node.sum;
            end(flat, me, sum);
        }
    }

    fn end(flat: &mut Flat<State>, me: u32, result: u64) {
        let parent = flat.state.nodes.get(me).parent;
        flat.send(sum, parent, result);
        flat.state.nodes.end(me);
    }

    let mut flat = Flat::new(State { nodes: Cells::new(), created: 0, total: 0 });
    let elapsed = flat.time(|flat| spawn(flat, MASTER, 0, plan.leaves));
    check("the actors created", plan.actors(), flat.state.created)?;
    check("the sum of the leaves", plan.sum(), flat.state.total)?;
    Ok(Outcome::new(plan.actors(), elapsed))
}

/// The baseline of `fib`.
pub(crate) fn fib(plan: &fib::Plan) -> Result<Outcome, Failure> {
    struct Fib {
        parent: u32,
        n: u32,
        waiting: u32,
        value: u64,
    }

    struct State {
        fibs: Cells<Fib>,
        created: u64,
        result: u64,
    }

    fn spawn(flat: &mut Flat<State>, parent: u32, n: u32) {
        let fib = flat.state.fibs.create(Fib { parent, n, waiting: 2, value: 0 });
        flat.state.created += 1;
        flat.send(started, fib, 0);
    }

    fn started(flat: &mut Flat<State>, me: u32, _: u64) {
        let n = flat.state.fibs.get(me).n;
        if n < 2 {
            return end(flat, me, u64::from(n));
        }
        spawn(flat, me, n - 1);
        spawn(flat, me, n - 2);
    }

    fn value(flat: &mut Flat<State>, me: u32, value: u64) {
        if me == MASTER {
            flat.state.result = value;
            return;
        }
        let fib = flat.state.fibs.get(me);
        fib.value += value;
        fib.waiting -= 1;
        if fib.waiting == 0 {
            let value = fib.value;
            end(flat, me, value);
        }
    }

    fn end(flat: &mut Flat<State>, me: u32, result: u64) {
        let parent = flat.state.fibs.get(me).parent;
        flat.send(value, parent, result);
        flat.state.fibs.end(me);
    }

    let mut flat = Flat::new(State { fibs: Cells::new(), created: 0, result: 0 });
    let elapsed = flat.time(|flat| spawn(flat, MASTER, plan.n));
    check("the actors created", plan.actors(), flat.state.created)?;
    check("the Fibonacci number", plan.value(), flat.state.result)?;
    Ok(Outcome::new(plan.actors(), elapsed))
}

/// The baseline of `creation`.
pub(crate) fn creation(plan: &creation::Plan) -> Result<Outcome, Failure> {
    struct State {
        children: Cells<u64>,
        left: u64,
        created: u64,
    }

    fn create(flat: &mut Flat<State>, me: u32, _: u64) {
        let slice = flat.state.left.min(creation::Plan::SLICE);
        for _ in 0..slice {
            let child = flat.state.children.create(u64::from(me));
            flat.send(started, child, 0);
        }
        flat.state.left -= slice;
        if flat.state.left > 0 {
            flat.send(create, me, 0);
        }
    }

    fn started(flat: &mut Flat<State>, me: u32, _: u64) {
        let master = *flat.state.children.get(me);
        flat.send(created, master as u32, 0);
    }

    fn created(flat: &mut Flat<State>, _: u32, _: u64) {
        flat.state.created += 1;
    }

    let mut flat = Flat::new(State { children: Cells::new(), left: plan.actors, created: 0 });
    let elapsed = flat.time(|flat| flat.send(create, MASTER, 0));
    check("the actors created", plan.actors, flat.state.created)?;
    Ok(Outcome::new(plan.actors, elapsed))
}

/// The baseline of `send-dynamic`.
pub(crate) fn send_dynamic(plan: &send::Plan) -> Result<Outcome, Failure> {
    struct Runner {
        number: u64,
        sends: u64,
    }

    struct State {
        runners: Cells<Runner>,
        received: u64,
    }

    fn hit(flat: &mut Flat<State>, me: u32, _: u64) {
        let runner = flat.state.runners.get(me);
        let (number, sends) = (runner.number, runner.sends);
        if number < sends {
            let next = flat.state.runners.create(Runner { number: number + 1, sends });
            flat.send(hit, next, 0);
        } else {
            flat.state.received = number;
        }
        flat.state.runners.end(me);
    }

    let mut flat = Flat::new(State { runners: Cells::new(), received: 0 });
    let elapsed = flat.time(|flat| {
        let first = flat.state.runners.create(Runner { number: 1, sends: plan.sends });
        flat.send(hit, first, 0);
    });
    check("the actors that received a message", plan.sends, flat.state.received)?;
    Ok(Outcome::new(plan.sends, elapsed))
}
