//! Timers and a receive timeout: a patient with a pulse, and a monitor that notices the missing pulse.
//!
//! ```text
//! cargo run -p playhouse-examples --bin timers
//! ```

use std::time::Duration;

use playhouse::prelude::*;
use playhouse::stdout::{Print, Stdout};

/// Beats until it gets the order to stop.
struct Heart {
    monitor: ActorRef<Monitor>,
    pulse: Option<TimerKey>,
}

#[actor]
impl Heart {
    #[started]
    fn begin(&mut self, ctx: &mut Context<Self>) {
        self.pulse = Some(ctx.send_every(Duration::from_millis(800), Contract));
        ctx.send_after(Duration::from_secs(3), Rest);
    }

    #[message(derive(Clone))]
    fn contract(&mut self) {
        self.monitor.tell(Beat);
    }

    #[message]
    fn rest(&mut self, ctx: &mut Context<Self>) {
        self.pulse.take().into_iter().for_each(|pulse| ctx.cancel(pulse));
    }
}

/// Gives an alarm after 2 s without a message.
struct Monitor {
    beats: u32,
    out: ActorRef<Stdout>,
}

#[actor]
impl Monitor {
    #[started]
    fn begin(&mut self, ctx: &mut Context<Self>) {
        ctx.set_receive_timeout(Duration::from_secs(2));
    }

    #[message]
    fn beat(&mut self, ctx: &mut Context<Self>) {
        self.beats += 1;
        self.out.tell(Print::line(format!("{:.1} s: beat {}", ctx.now().as_secs_f64(), self.beats)));
    }

    #[receive_timeout]
    fn alarm(&mut self, ctx: &mut Context<Self>) {
        self.out.tell(Print::line(format!("{:.1} s: no pulse", ctx.now().as_secs_f64())));
        ctx.cancel_receive_timeout();
    }
}

fn main() -> playhouse::Result<()> {
    // Virtual time: the program does not wait.
    let system = System::builder().simulated(1).start()?;
    let out = system.spawn(Stdout::new());
    let monitor = system.spawn(Monitor { beats: 0, out });
    system.spawn(Heart { monitor, pulse: None });
    system.run_until_idle();
    system.shutdown()?;
    Ok(())
}
