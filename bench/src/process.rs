//! Processes that this one starts, each the leader of a group of its own, and how long they may take to end.

use std::io;
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// How long a process may take to end when it has been told to.
pub(crate) const END: Duration = Duration::from_secs(5);

/// The first process of a group. Whoever is left of the group is killed when it has ended.
pub(crate) struct Leader {
    group: Pid,
    ended: Receiver<io::Result<ExitStatus>>,
}

impl Leader {
    /// Of a child that was started with `process_group(0)`.
    pub(crate) fn of(mut child: Child) -> Self {
        let group = Pid::from_child(&child);
        let (said, ended) = channel();
        std::thread::spawn(move || {
            // Until it is waited for in earnest its number is nobody else's.
            let _ = waitid(WaitId::Pid(group), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            kill(group);
            // Nobody may want to know.
            let _ = said.send(child.wait());
        });
        Self { group, ended }
    }

    /// How it has ended, if it has within `limit`; otherwise its group is killed.
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

fn kill(group: Pid) {
    // It fails where nobody is left.
    let _ = kill_process_group(group, Signal::KILL);
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read};
    use std::os::unix::process::CommandExt;
    use std::process::{ChildStdout, Command, Stdio};

    use super::*;

    /// A shell that runs `script`, and what it says.
    fn shell(script: &str) -> (Leader, BufReader<ChildStdout>) {
        let mut command = Command::new("sh");
        let started = command.args(["-c", script]).process_group(0).stdout(Stdio::piped()).spawn();
        let mut child = started.unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        (Leader::of(child), out)
    }

    #[test]
    fn who_does_not_end_in_time_is_killed_with_the_group() {
        let (leader, mut out) = shell("tail -f /dev/null & echo here; wait");
        let mut said = String::new();
        out.read_line(&mut said).unwrap();
        assert!(leader.end_within(Duration::from_millis(1)).is_none());
        // Nobody holds the other end any more.
        out.read_to_string(&mut said).unwrap();
        assert_eq!(said, "here\n");
    }

    #[test]
    fn the_end_is_told_and_the_rest_of_the_group_is_killed() {
        let (leader, mut out) = shell("tail -f /dev/null & exit 3");
        let status = leader.end_within(Duration::from_secs(60)).unwrap().unwrap();
        assert_eq!(status.code(), Some(3));
        out.read_to_string(&mut String::new()).unwrap();
    }
}
