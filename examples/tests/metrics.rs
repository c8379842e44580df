//! Figures for the `metrics` crate.

use std::collections::BTreeMap;

use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use playhouse::prelude::*;

#[derive(Default)]
struct Clerk;

#[actor]
impl Clerk {
    #[message]
    fn stamp(&mut self) {}

    #[message]
    fn fall_over(&mut self) {
        panic!("on purpose");
    }
}

/// Returns the figures by name and labels, without the number of the system. Counters are exact, and gauges are
/// rounded.
fn read(snapshotter: &Snapshotter) -> BTreeMap<String, u64> {
    let all = snapshotter.snapshot().into_vec().into_iter();
    let read = all.map(|(key, _, _, value)| {
        let labels = key.key().labels().filter(|label| label.key() != "system");
        let labels: String = labels.map(|label| format!(" {}={}", label.key(), label.value())).collect();
        let value = match value {
            DebugValue::Counter(value) => value,
            DebugValue::Gauge(value) => value.0 as u64,
            DebugValue::Histogram(_) => panic!("there is none"),
        };
        (format!("{}{labels}", key.key().name()), value)
    });
    read.collect()
}

fn recorded(record: impl FnOnce()) -> BTreeMap<String, u64> {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, record);
    read(&snapshotter)
}

#[test]
fn the_figures_are_those_of_the_system() {
    let system = System::builder().workers(2).handler_times(true).start().unwrap();
    let supervisor = system.spawn(Supervisor::new(SupervisionPolicy::one_for_one()));
    let clerk = supervisor.ask(ChildSpec::new("clerk", Clerk::default)).wait().unwrap().unwrap();
    (0..10).for_each(|_| clerk.tell(Stamp));
    clerk.tell(FallOver);
    clerk.tell(Stamp);
    let gone = system.spawn(Clerk);
    gone.stop();
    system.run_until_idle();
    gone.tell(Stamp);
    system.run_until_idle();

    let figures = recorded(|| system.record_metrics());
    let total = |name: &str| -> u64 {
        let of = figures.iter().filter(|(key, _)| key.starts_with(&format!("playhouse_{name}_total worker=")));
        of.map(|(_, value)| value).sum()
    };
    let stats = system.stats().total;
    for (name, value) in [
        ("received", stats.received),
        ("dead_letters", 1),
        ("crashes", 1),
        ("restarts", 1),
        ("spawned", 3),
        ("stopped", 1),
        ("steals", stats.steals),
    ] {
        assert_eq!(total(name), value, "{name} in {figures:#?}");
    }
    assert_eq!(figures["playhouse_actors"], 2);
    assert_eq!(figures["playhouse_queued_messages worker=0"] + figures["playhouse_queued_messages worker=1"], 0);
    assert_eq!(figures["playhouse_handled_total actor=Clerk message=Stamp"], 11);
    assert!(figures.contains_key("playhouse_handler_seconds actor=Clerk message=Stamp quantile=0.99"), "{figures:#?}");
    assert!(total("parks") > 0);
    system.shutdown().unwrap();
}

#[test]
fn the_figures_of_a_theater_have_its_links() {
    let [here, there] = [(); 2].map(|()| Theater::builder().listen("127.0.0.1:0").start().unwrap());
    let _peer = here.connect(there.address().unwrap()).unwrap();
    let figures = recorded(|| here.record_metrics());
    assert_eq!((figures["playhouse_links state=linked"], figures["playhouse_links state=broken"]), (1, 0));
    let peer = format!("peer={}", there.address().unwrap());
    assert!(figures.contains_key(&format!("playhouse_link_bytes {peer}")), "{figures:#?}");
    assert_eq!(figures["playhouse_migrations_total direction=out"], 0);
    assert!(figures.contains_key("playhouse_actors"));
    here.shutdown().unwrap();
    there.shutdown().unwrap();
}
