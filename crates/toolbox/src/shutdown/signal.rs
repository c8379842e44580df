//! Signals of the operating system.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A wait for the signals that end a program: Ctrl-C (`SIGINT`) and `SIGTERM`.
///
/// # Examples
///
/// ```no_run
/// use playhouse::prelude::*;
/// use playhouse::shutdown::{CoordinatedShutdown, Signal};
///
/// let signal = Signal::catch()?;
/// let system = System::start()?;
/// let shutdown = CoordinatedShutdown::new(&system);
/// signal.wait();
/// eprintln!("{}", shutdown.run());
/// system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "ctrl_c")]
#[doc(alias = "SIGTERM")]
#[derive(Debug)]
pub struct Signal {
    signals: signal_hook::iterator::Signals,
}

impl Signal {
    /// Catches these signals from now on. The first signal ends [`wait`](Signal::wait) and not the process. A second
    /// signal ends the process at once, with 128 plus the number of the signal as the exit code.
    ///
    /// # Errors
    /// The signals cannot be caught.
    pub fn catch() -> std::io::Result<Signal> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        use signal_hook::flag;

        let signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
        let again = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // The order of registration lets the first signal only set the flag.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&again))?;
            flag::register(signal, Arc::clone(&again))?;
        }
        Ok(Signal { signals })
    }

    /// Blocks this thread until a signal has come, including one that came before the call.
    pub fn wait(mut self) {
        let _which = self.signals.forever().next();
    }
}
