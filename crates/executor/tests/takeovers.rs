//! Takeovers while the operating system refuses their resources. Each test changes the limits of its process, and
//! therefore runs in one of its own.
#![cfg(all(target_os = "linux", not(miri), not(tsan)))]

use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use playhouse_executor::{
    Address, Config, ControlCx, Counters, Crash, Cx, Ending, Envelope, Gate, Resident, StageChoice, SystemCore,
    Undelivered, pause_stage,
};

/// The longest wait for anything.
const LIMIT: Duration = Duration::from_secs(60);
const INSIDE: &str = "PLAYHOUSE_TAKEOVERS_INSIDE";

struct Plain;
impl Resident for Plain {
    type Extra = ();
    fn name() -> &'static str {
        "Plain"
    }
    fn ended(&mut self, _: Option<Box<()>>, _: Ending, _: &mut Cx<Self>) {}
    fn crashed(crash: Crash, _: &mut ControlCx<Self>) {
        panic!("{crash:?}");
    }
}

/// Calls the function in a handler.
struct Do<F>(F);
impl<F: FnOnce() + Send + 'static> Envelope<Plain> for Do<F> {
    fn run(self, _: &mut Plain, _: &mut Cx<Plain>) {
        (self.0)();
    }
    fn bounce(self, why: Undelivered) {
        panic!("{why:?}");
    }
}

/// Runs the test in a process of its own.
fn inside(name: &str, test: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return test();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let status = command.args(["--exact", name, "--nocapture"]).env(INSIDE, "").status().unwrap();
    assert!(status.success(), "{status}");
}

/// Starts a system with 1 worker, and an actor on each of 2 stages.
fn start() -> (Arc<SystemCore>, [Address<Plain>; 2]) {
    let system = SystemCore::start(Config { workers: 1, stages: 2, ..Config::new() }).unwrap();
    let actors = [0, 1].map(|stage| system.spawn(Plain, StageChoice::At(stage), Do(|| ())).ok().unwrap());
    system.run_until_idle();
    (system, actors)
}

/// Blocks a handler of `actor` until the sender sends, or is dropped.
fn block(actor: Address<Plain>) -> Sender<()> {
    let ((open, opened), (entered, is_entered)) = (channel(), channel());
    actor.send(Do(move || {
        entered.send(()).unwrap();
        let _ = opened.recv_timeout(LIMIT);
    }));
    is_entered.recv_timeout(LIMIT).expect("the handler began");
    open
}

/// Asks `actor` for a sign of life.
fn ask(actor: Address<Plain>) -> Receiver<()> {
    let (answer, answered) = channel();
    actor.send(Do(move || answer.send(()).unwrap()));
    answered
}

fn totals(system: &SystemCore) -> Counters {
    let mut total = Counters::default();
    system.counters().iter().for_each(|counters| total.add(counters));
    total
}

fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !is_true() {
        assert!(Instant::now() < deadline, "not within {LIMIT:?}: {what}");
        std::thread::yield_now();
    }
}

/// Sets the limit on address space. `None` sets the largest allowed limit.
fn limit_memory(bytes: Option<u64>) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit(2) and setrlimit(2) use the struct only during the call, and the struct outlives the call.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_AS, &raw mut limit), 0);
        limit.rlim_cur = bytes.unwrap_or(limit.rlim_max);
        assert_eq!(libc::setrlimit(libc::RLIMIT_AS, &raw const limit), 0);
    }
}

// GUARANTEE: A shutdown delivers first
/// A stage waits behind a gate while an actor that begins on it, inside a handler of another stage, is stuck.
#[test]
fn a_system_is_drained_though_a_paused_stage_was_taken_from_its_stuck_worker() {
    let (system, [paused, spawner]) = start();
    let gate = Arc::new(Gate::default());
    gate.close(1);
    let (opens, closed) = (Arc::clone(&gate), Arc::clone(&gate));
    paused.send(Do(move || pause_stage(&closed)));
    // The gulp of the message above has ended when these have been answered.
    for _ in 0..4 {
        ask(spawner).recv_timeout(LIMIT).expect("the other stage goes on");
    }
    let takeovers = totals(&system).takeovers;
    let (open, opened) = channel::<()>();
    let (begun, has_begun) = channel();
    let here = Arc::downgrade(&system);
    let mut opened = Some(opened);
    spawner.send(Do(move || {
        let system = here.upgrade().expect("it runs");
        // One of them begins on each of the two stages, in turn. The second one blocks inside this handler.
        for nth in 0..2 {
            let waits = if nth == 1 { opened.take() } else { None };
            let begun = begun.clone();
            let start = Do(move || {
                begun.send(()).unwrap();
                if let Some(opened) = waits {
                    let _ = opened.recv_timeout(LIMIT);
                }
            });
            assert!(system.spawn(Plain, StageChoice::Near, start).is_ok());
        }
    }));
    has_begun.recv_timeout(LIMIT).expect("an actor has begun");
    wait_until("the worker is taken over", || totals(&system).takeovers > takeovers);
    drop(open);
    opens.open(&system);
    let since = Instant::now();
    system.drain(LIMIT);
    assert!(since.elapsed() < LIMIT / 2, "{:?}", since.elapsed());
    system.run_until_idle();
    assert_eq!(system.end(LIMIT, &mut |_, _, _| {}).1, 0);
}

/// Returns the bytes of address space in use.
fn used_memory() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    // SAFETY: sysconf(3) reads a constant, and takes no pointer.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    pages.split_whitespace().next().unwrap().parse::<u64>().unwrap() * page_bytes
}

// GUARANTEE: A stuck handler stops only itself
#[test]
fn a_stuck_worker_keeps_its_work_until_a_thread_can_be_had() {
    inside("a_stuck_worker_keeps_its_work_until_a_thread_can_be_had", || {
        let (system, [blocked, other]) = start();
        // 4 MiB are less than the stack of a thread.
        limit_memory(Some(used_memory() + (4 << 20)));
        // Some stacks of former threads may be left. The loop uses them up.
        let mut actors = 2;
        while system.spawn(Plain, StageChoice::Dedicated, Do(|| ())).is_ok() {
            actors += 1;
        }
        let takeovers = totals(&system).takeovers;
        let open = block(blocked);
        let answered = ask(other);
        wait_until("a takeover fails", || totals(&system).takeovers_failed == 1);
        assert_eq!(totals(&system).takeovers, takeovers);
        limit_memory(None);
        // The handler is still blocked.
        answered.recv_timeout(LIMIT).expect("the worker got a thread");
        assert!(totals(&system).takeovers > takeovers);
        assert_eq!(totals(&system).takeovers_failed, 1, "each stuck handler is counted once");
        let (answer, answered) = channel();
        let dedicated = system.spawn(Plain, StageChoice::Dedicated, Do(move || answer.send(()).unwrap()));
        assert!(dedicated.is_ok());
        answered.recv_timeout(LIMIT).expect("the dedicated actor got a thread");
        drop(open);
        system.run_until_idle();
        assert_eq!(system.end(LIMIT, &mut |_, _, _| {}), (actors + 1, 0));
    });
}

/// Makes the kernel refuse membarrier(2) to all threads of this process. Returns `false` if the machine does not allow
/// that, or has no such call.
fn forbid_membarrier() -> bool {
    const PRIVATE_EXPEDITED: libc::c_long = 1 << 3;
    let instruction = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut program = [
        // Loads the number of the call.
        instruction((libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, 0, 0, 0),
        instruction((libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16, 0, 1, libc::SYS_membarrier as u32),
        instruction((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        instruction((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: membarrier(2) with command 0 only answers. The kernel copies the filter, which lives during the call.
    unsafe {
        libc::syscall(libc::SYS_membarrier, 0, 0, 0) & PRIVATE_EXPEDITED == PRIVATE_EXPEDITED
            && libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                libc::SECCOMP_FILTER_FLAG_TSYNC,
                &raw const filter,
            ) == 0
    }
}

// GUARANTEE: A stuck handler stops only itself
#[test]
fn workers_change_to_full_fences_when_the_kernel_refuses_the_barrier() {
    inside("workers_change_to_full_fences_when_the_kernel_refuses_the_barrier", || {
        let (system, [blocked, other]) = start();
        if !forbid_membarrier() {
            eprintln!("not tested, for this machine has no membarrier(2), or allows no seccomp filters");
            return;
        }
        let open = block(blocked);
        let answered = ask(other);
        wait_until("a takeover fails", || totals(&system).takeovers_failed >= 1);
        drop(open);
        answered.recv_timeout(LIMIT).expect("the handler has returned");
        wait_until("the worker has full fences", || totals(&system).fence_fallbacks == 1);
        // From now on, the monitor takes over again.
        let takeovers = totals(&system).takeovers;
        let open = block(blocked);
        ask(other).recv_timeout(LIMIT).expect("the worker got a thread");
        assert!(totals(&system).takeovers > takeovers);
        drop(open);
        system.run_until_idle();
        assert_eq!(system.end(LIMIT, &mut |_, _, _| {}), (2, 0));
        // A system that starts later has full fences from the start.
        let (system, [blocked, other]) = start();
        let open = block(blocked);
        ask(other).recv_timeout(LIMIT).expect("the worker got a thread");
        assert_eq!((totals(&system).takeovers_failed, totals(&system).fence_fallbacks), (0, 0));
        drop(open);
        system.run_until_idle();
        assert_eq!(system.end(LIMIT, &mut |_, _, _| {}), (2, 0));
    });
}
