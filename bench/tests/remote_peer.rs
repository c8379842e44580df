//! The start of the other process of a remote benchmark. The test has a process of its own, because the command is set once per
//! process.

use std::process::Command;

use playhouse_bench::harness::remote_peer;
use playhouse_bench::{Size, Steps, registry};

/// Reads its input, and prints an address where no program listens.
const SCRIPT: &str = "read line; echo with-$0-workers 127.0.0.1:9; cat > /dev/null";

#[test]
fn the_remote_peer_has_as_many_workers_as_the_first_process() {
    remote_peer::set_program(|workers| {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT]).arg(workers.to_string());
        command
    });
    let system = playhouse::System::builder().workers(3).start().unwrap();
    for name in ["rpingpong", "rcreate", "rrings-1"] {
        let failure =
            (registry::find(name).unwrap().workload)(&system, Size::Smoke, Steps::NONE).unwrap_err().to_string();
        assert!(failure.contains("with-3-workers"), "{name}: {failure}");
    }
}
