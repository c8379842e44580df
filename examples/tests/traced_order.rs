//! Traced messages, which carry their causes, keep the promises of order. The subscriber is the process's, and the file
//! therefore has one test.

#[path = "../../crates/playhouse/tests/support/mod.rs"]
mod support;

use playhouse::prelude::*;
use support::finishes;
use support::graph::{Plan, play};

#[test]
fn pairs_keep_their_order_where_all_is_traced() {
    tracing::subscriber::set_global_default(tracing_subscriber::registry()).unwrap();
    finishes(|| {
        let _outside = tracing::info_span!("outside").entered();
        for stealing in [Stealing::LongestVictim, Stealing::Random] {
            for (seed, throughput) in [(1, 1), (2, 7), (3, 64)] {
                let builder = System::builder().workers(2).stages(6).stealing(stealing).throughput(throughput);
                let plan = Plan { seed, nodes: 30, fuel: 4_000, stops: true, urgent: true, outsiders: 3 };
                let outcome = play(builder.tracing(true).start().unwrap(), plan);
                assert!(outcome.wrong.is_empty(), "{throughput} per gulp: {:#?}", outcome.wrong);
            }
        }
        let plan = Plan { seed: 5, nodes: 20, fuel: 2_000, stops: true, urgent: true, outsiders: 0 };
        let outcome = play(System::builder().simulated(5).tracing(true).start().unwrap(), plan);
        assert!(outcome.wrong.is_empty(), "simulated: {:#?}", outcome.wrong);
    });
}
