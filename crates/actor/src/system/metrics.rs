//! Figures of a system for the `metrics` crate.

use crate::actor::names::ShortType;
use crate::system::System;

impl System {
    /// Passes the present figures to the recorder of the [`metrics`](https://docs.rs/metrics) crate: call it before
    /// each scrape, or at intervals. The call costs some microseconds, and costs the system nothing between calls.
    ///
    /// All figures have the label `system`, the number of the system in its process.
    ///
    /// | name | labels | |
    /// |---|---|---|
    /// | `playhouse_NAME_total` | `worker` | each of the [`Counters`](crate::Counters): `received`, `dead_letters`, `steals`, `parks`, `restarts`, ... |
    /// | `playhouse_actors` | | actors that are alive |
    /// | `playhouse_queued_messages` | `worker` | messages that wait for the worker, estimated from their bytes |
    /// | `playhouse_muted_stages` | `worker` | stages of the worker that are muted, because they have sent to an
    /// overloaded receiver |
    /// | `playhouse_handler_seconds` | `actor`, `message`, `quantile` | if handlers are timed: the median, `0.99`, and
    /// the longest (`1`) |
    /// | `playhouse_handled_total` | `actor`, `message` | if handlers are timed: the number of handled messages |
    #[cfg(feature = "metrics")] // as the module, whose features the reference of `playhouse` does not show
    pub fn record_metrics(&self) {
        let id = self.core().id().to_string();
        let stats = self.stats();
        for (worker, counters) in stats.per_worker.iter().enumerate() {
            let worker = worker.to_string();
            for (name, value) in counters.pairs() {
                let name = format!("playhouse_{name}_total");
                ::metrics::counter!(name, "system" => id.clone(), "worker" => worker.clone()).absolute(value);
            }
        }
        // An actor is counted by the worker that starts it, and again, perhaps by another worker, when it ends.
        let actors = stats.total.spawned.saturating_sub(stats.total.stopped);
        ::metrics::gauge!("playhouse_actors", "system" => id.clone()).set(actors as f64);
        for (worker, state) in self.core().worker_states().iter().enumerate() {
            let labels = [("system", id.clone()), ("worker", worker.to_string())];
            ::metrics::gauge!("playhouse_queued_messages", &labels).set(state.queued as f64);
            ::metrics::gauge!("playhouse_muted_stages", &labels).set(state.muted_stages as f64);
        }
        for times in self.handler_times() {
            let (actor, message) = (ShortType(times.actor).to_string(), ShortType(times.message).to_string());
            let labels = [("system", id.clone()), ("actor", actor), ("message", message)];
            ::metrics::counter!("playhouse_handled_total", &labels).absolute(times.count);
            for (quantile, seconds) in [("0.5", times.quantile(0.5)), ("0.99", times.quantile(0.99)), ("1", times.max)]
            {
                let [system, actor, message] = labels.clone();
                let labels = [system, actor, message, ("quantile", quantile.to_owned())];
                ::metrics::gauge!("playhouse_handler_seconds", &labels).set(seconds.as_secs_f64());
            }
        }
    }
}
