//! Gossip in which few nodes are popular and few messages take long.

use super::gossip::{Plan, playhouse, threads, tokio};
use crate::scaling::graph::Graph;
use crate::scaling::load::Load;
use crate::scaling::pattern::Pattern;
use crate::scaling::work::Work;

pub(crate) const SKEWED: Pattern = Pattern {
    name: "scaling-skewed",
    op: "message",
    summary: "1,000 actors in a power-law graph pass 200 tokens; each 100th message takes 1 ms instead of the stated work",
    playhouse: |system, watch, load| playhouse(system, watch, &plan(load)),
    tokio: |runtime, watch, load| tokio(runtime, watch, &plan(load)),
    threads: |count, watch, load| threads(count, watch, &plan(load)),
};

/// Plans a run. The long messages add 10 µs to the average message.
fn plan(load: &Load) -> Plan {
    let graph = Graph::power_law(load.size.pick(100, 1_000, 1_000));
    // At smoke size, 2 messages are long.
    let ops = load.ops(10_200).max(200);
    Plan::of_ops(graph, load.size.pick(20, 200, 200), ops, load.work, Some(Work::of_ns(1_000_000)))
}
