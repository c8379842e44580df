//! Signals of the operating system.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The signals that end a program: Ctrl-C and `SIGTERM`.
#[derive(Debug)]
pub struct Signal {
    signals: signal_hook::iterator::Signals,
}

impl Signal {
    /// From now on, the first of these signals is waited for instead of ending the process; a further one ends it at once, with
    /// 128 and the number of the signal as the exit code.
    ///
    /// # Errors
    /// The signals cannot be caught.
    pub fn catch() -> std::io::Result<Signal> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        use signal_hook::flag;

        let signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
        let again = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal only sets the flag.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&again))?;
            flag::register(signal, Arc::clone(&again))?;
        }
        Ok(Signal { signals })
    }

    /// Blocks this thread until one has come, also if it came before.
    pub fn wait(mut self) {
        let _which = self.signals.forever().next();
    }
}
