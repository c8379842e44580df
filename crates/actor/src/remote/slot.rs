//! The state of a cell that concerns other theaters.

use playhouse_executor::Decided;

use crate::remote::any::AnyActor;

/// The state of a cell that concerns other theaters.
#[derive(Default)]
pub(crate) struct RemoteSlot {
    /// The actors that this one watches. Kept only for mobile actors, because the target theater of a migration watches
    /// them anew.
    pub(crate) watching: Vec<AnyActor>,
    /// The number of the reroute that the actor's stub waits for.
    pub(crate) reroute: Option<u64>,
    /// The end or crash that the hook `migrated` has decided on. It is carried out when the actor begins.
    pub(crate) decided: Option<Decided>,
}

/// The state of a cell with the part that concerns other theaters.
pub(crate) trait HasRemote {
    fn remote(&mut self) -> &mut RemoteSlot;
}
