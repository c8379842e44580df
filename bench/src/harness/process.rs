//! Child processes, each the leader of a group of its own: their end, and their processor time.

use std::io;
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// The variable that tells a process the number of the process that has started it.
pub const PARENT: &str = "PLAYHOUSE_BENCH_PARENT";

/// Returns whether the process that has started this one, and has set [`PARENT`], has ended already. The system sends no signal for an end before the
/// signal was asked for.
#[cfg(target_os = "linux")]
pub(crate) fn is_orphan() -> bool {
    let told: Option<i32> = std::env::var(PARENT).ok().and_then(|number| number.parse().ok());
    told.is_some_and(|told| {
        rustix::process::getppid().map(rustix::process::Pid::as_raw_nonzero).map(i32::from) != Some(told)
    })
}

/// The time within which a process must end after the request.
pub(crate) const END: Duration = Duration::from_secs(5);

/// The first process of a group. When it has ended, the other processes of the group are killed.
pub(crate) struct Leader {
    group: Pid,
    ended: Receiver<io::Result<ExitStatus>>,
}

impl Leader {
    /// Watches a child that was started with `process_group(0)`.
    pub(crate) fn of(mut child: Child) -> Self {
        let group = Pid::from_child(&child);
        let (sender, ended) = channel();
        std::thread::spawn(move || {
            // The kernel keeps the process number reserved until `wait` below.
            let _ = waitid(WaitId::Pid(group), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            kill(group);
            // The receiver may be gone.
            let _ = sender.send(child.wait());
        });
        Self { group, ended }
    }

    /// Returns the exit status if the process ends within `limit`; otherwise kills its group.
    pub(crate) fn end_within(&self, limit: Duration) -> Option<io::Result<ExitStatus>> {
        let ended = self.ended.recv_timeout(limit).ok();
        if ended.is_none() {
            self.kill();
        }
        ended
    }

    /// Kills its group, and waits for its end.
    pub(crate) fn kill(&self) {
        kill(self.group);
        let _ = self.ended.recv_timeout(END);
    }
}

/// Returns the processor time of all threads of a running process, by its number. Returns `None` where the operating system does
/// not report it.
///
/// Linux: `utime` and `stime` of `/proc/PID/stat`, which count hundredths of a second.
pub(crate) fn processor_time(process: &str) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    Some(Duration::from_secs_f64(ticks(&stat)? as f64 / clock_ticks_per_second() as f64))
}

/// Returns the ticks in a line of `/proc/PID/stat`. They are the fields 14 and 15. The name of the program is the second one, in parentheses,
/// and may contain spaces and parentheses.
fn ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11).map(|field| field.parse::<u64>().ok());
    Some(fields.next()?? + fields.next()??)
}

fn kill(group: Pid) {
    // This fails where no process of the group is left.
    let _ = kill_process_group(group, Signal::KILL);
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read};
    use std::os::unix::process::CommandExt;
    use std::process::{ChildStdout, Command, Stdio};

    use super::*;

    /// Starts a shell that runs `script`, and returns its output.
    fn shell(script: &str) -> (Leader, BufReader<ChildStdout>) {
        let mut command = Command::new("sh");
        let started = command.args(["-c", script]).process_group(0).stdout(Stdio::piped()).spawn();
        let mut child = started.unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        (Leader::of(child), out)
    }

    #[test]
    fn a_late_process_is_killed_with_its_group() {
        let (leader, mut out) = shell("tail -f /dev/null & echo here; wait");
        let mut said = String::new();
        out.read_line(&mut said).unwrap();
        assert!(leader.end_within(Duration::from_millis(1)).is_none());
        // The end of the output shows that no process holds the other end.
        out.read_to_string(&mut said).unwrap();
        assert_eq!(said, "here\n");
    }

    #[test]
    fn ticks_are_read_behind_the_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 95 0 0 0 1200 34 5 6 20 0 1 0";
        assert_eq!((ticks(stat), ticks("7 (a) S 1"), ticks("")), (Some(1234), None, None));
    }

    #[test]
    fn the_end_is_reported_and_the_rest_of_the_group_is_killed() {
        let (leader, mut out) = shell("tail -f /dev/null & exit 3");
        let status = leader.end_within(Duration::from_secs(60)).unwrap().unwrap();
        assert_eq!(status.code(), Some(3));
        out.read_to_string(&mut String::new()).unwrap();
    }
}
