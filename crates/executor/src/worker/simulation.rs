//! The state of a simulated system. `driver/simulated.rs` makes its steps.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use crate::load::mute_deadlocks::MuteDeadlocks;
use crate::policy::choices::Choices;
use crate::sync::turns::{Drive, DriverLock, Turn};

/// A driver of several simulated systems at one time: see [`SystemCore::set_driver`](crate::SystemCore::set_driver).
pub trait Driver: Send + Sync + 'static {
    /// Runs all of them until no work is left, or until `done`. With a time: until that has passed, with all work that
    /// is due in it, or until `done`.
    fn run(&self, time: Option<Duration>, done: &mut dyn FnMut() -> bool);
}

/// The driver's own state.
pub(crate) struct Simulation {
    pub(crate) driving: DriverLock,
    /// The system has been swept. Changes within a turn.
    pub(crate) ended: AtomicBool,
    pub(crate) choices: Mutex<Choices>,
    pub(crate) deadlocks: Mutex<MuteDeadlocks>,
    pub(crate) driver: OnceLock<Arc<dyn Driver>>,
}

impl Simulation {
    /// Takes the driver out, because the system goes.
    pub(crate) fn take_driver(&mut self) -> Option<Arc<dyn Driver>> {
        self.driver.take()
    }

    pub(crate) fn new(seed: u64) -> Simulation {
        Simulation {
            driving: DriverLock::new("a simulated system was asked to run from inside one of its own actors"),
            ended: AtomicBool::new(false),
            choices: Mutex::new(Choices::new(seed)),
            deadlocks: Mutex::default(),
            driver: OnceLock::new(),
        }
    }

    /// Begins the turn in which the system is swept. Returns `None` from inside one of its actors.
    pub(crate) fn last_turn(&self) -> Option<Turn<'_>> {
        let turn = self.driving.try_turn()?;
        self.ended.store(true, Ordering::Relaxed);
        Some(turn)
    }

    /// Takes the right to run the system, unless a thread runs it or the system has been swept.
    pub(crate) fn try_drive(&self) -> Option<Drive<'_>> {
        self.driving.try_drive().filter(|_| !self.has_ended())
    }

    /// Returns whether a [`Driver`] runs the system.
    pub(crate) fn has_driver(&self) -> bool {
        self.driver.get().is_some()
    }

    /// Returns whether the system has been swept.
    pub(crate) fn has_ended(&self) -> bool {
        // Relaxed: it changes within a turn. Outside of one, the caller looks again in its next turn.
        self.ended.load(Ordering::Relaxed)
    }
}
