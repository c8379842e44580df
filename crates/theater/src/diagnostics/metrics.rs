//! Figures of a theater for the `metrics` crate.

use crate::theater::Theater;
use crate::theater::peers::LinkState;

impl Theater {
    /// Passes the present figures to the recorder of the [`metrics`](https://docs.rs/metrics) crate: those of its
    /// [system](playhouse_actor::System::record_metrics), and these, with the label `system`.
    ///
    /// | name | labels | |
    /// |---|---|---|
    /// | `playhouse_links` | `state` | links that are `linked`, and `broken` links, which are called again or wait for a call |
    /// | `playhouse_link_packets` | `peer` | packets that the other end has not acknowledged |
    /// | `playhouse_link_bytes` | `peer` | their bytes |
    /// | `playhouse_migrations_total` | `direction` | actors that have come (`in`) and that have left (`out`) |
    ///
    /// `peer` is the address of the other theater. Theaters that do not listen are summed up as `?`.
    #[cfg(feature = "metrics")] // as the module, whose features the reference of `playhouse` does not show
    pub fn record_metrics(&self) {
        self.system().record_metrics();
        let id = self.system().core().id().to_string();
        let (mut linked, mut broken) = (0_u32, 0_u32);
        let mut under_way = std::collections::BTreeMap::<String, (usize, usize)>::new();
        for peer in self.peers() {
            let state = peer.state();
            *if state.link == LinkState::Linked { &mut linked } else { &mut broken } += 1;
            let peer = peer.address().map_or_else(|| "?".to_owned(), |address| address.to_string());
            let sum = under_way.entry(peer).or_default();
            *sum = (sum.0 + state.packets, sum.1 + state.bytes);
        }
        for (state, links) in [("linked", linked), ("broken", broken)] {
            ::metrics::gauge!("playhouse_links", "system" => id.clone(), "state" => state).set(links);
        }
        for (peer, (packets, bytes)) in under_way {
            let labels = [("system", id.clone()), ("peer", peer)];
            ::metrics::gauge!("playhouse_link_packets", &labels).set(packets as f64);
            ::metrics::gauge!("playhouse_link_bytes", &labels).set(bytes as f64);
        }
        let (came, left) = self.theater_core.directory.migrations();
        for (direction, actors) in [("in", came), ("out", left)] {
            ::metrics::counter!("playhouse_migrations_total", "system" => id.clone(), "direction" => direction)
                .absolute(actors);
        }
    }
}
