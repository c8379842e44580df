//! The start of a theater in a simulation.

use std::sync::Arc;

use playhouse_actor::BuildError;

use super::world::World;
use crate::error::TheaterError;
use crate::link::poller::Poller;
use crate::link::registry::Registry;
use crate::migration::drain::begin_drains;
use crate::naming::Identity;
use crate::naming::capability::Capability;
use crate::node::environment::Environment;
use crate::theater::Theater;
use crate::theater::builder::{LINKS, TheaterBuilder, Unfinished, allowed, called_at, compose};
use crate::transport::simulated::SimulatedEvents;

impl TheaterBuilder {
    /// Starts the theater as one of a simulation.
    pub(super) fn start_in(self, world: &World) -> Result<Theater, TheaterError> {
        if self.settings.secrecy.tls().is_some() {
            let why = "encryption is not simulated: remove the certificates";
            return Err(TheaterError::System(why.to_owned()));
        }
        let advertised = self.advertised()?;
        let bound = self.listen.as_deref().map(|address| {
            let resolved = allowed(address, &self.settings.secrecy)?;
            world.bind(resolved).map_err(|error| TheaterError::Io { address: address.to_owned(), error })
        });
        let bound = bound.transpose()?;
        let listens = (bound, bound.map(|bound| called_at(advertised, bound)));
        let registry = Registry::new()?;
        let (seed, incarnation, key) =
            world.choose(|choices| (choices.next(), choices.next(), [choices.next(), choices.next()]));
        let not_started = |error: BuildError| TheaterError::System(error.to_string());
        let (system, on_start) = self.system.simulated(seed).links(LINKS).begin().map_err(not_started)?;
        let steps = world.take_over(system.core()).expect("it is simulated, and has just begun");
        let outside = world.outside();
        let poller = Arc::new(Poller::simulated(Arc::clone(&outside) as Arc<dyn SimulatedEvents>, begin_drains));
        system.core().set_reactor(Arc::clone(&poller) as Arc<dyn playhouse_executor::Reactor>);
        let mut bytes = [0; 16];
        for (part, word) in bytes.chunks_exact_mut(8).zip(key) {
            part.copy_from_slice(&word.to_le_bytes());
        }
        let identity = Identity { incarnation, capability: Capability::new(bytes), simulated: true };
        let inside = (identity, None, Some(Arc::clone(&outside) as Arc<dyn Environment>));
        let theater_core = compose(registry, system, listens, self.settings, (poller, None), inside);
        let unfinished = Unfinished(Some(Arc::clone(&theater_core)));
        if let Some(on_started) = self.on_started {
            on_started(&theater_core)?;
        }
        world.admit(&theater_core, steps, outside, bound);
        on_start.run(&theater_core.system).map_err(not_started)?;
        unfinished.succeed();
        Ok(Theater { theater_core })
    }
}
