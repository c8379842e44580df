//! Cores, hardware threads and NUMA nodes that the operating system lets this process use.
//!
//! On Linux, they are in files below `/sys/devices/system`: `cpu/online`, `cpu/cpuN/topology/thread_siblings_list` and
//! `node/nodeN/cpulist`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The hardware threads that this process may run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    cpus: Vec<Cpu>,
    /// The number of hardware threads that may be busy at once: fewer where the process has a quota.
    usable: usize,
}

/// A hardware thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cpu {
    /// The lowest-numbered thread of the same core.
    core: usize,
    /// The NUMA node.
    node: usize,
}

/// A number of workers, and its meaning on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// Workers.
    pub workers: usize,
    /// Names such as `all cores`; empty for a number without a meaning of its own.
    pub names: Vec<&'static str>,
}

impl Topology {
    /// Detects this machine. If the operating system reports nothing, each hardware thread is a core, and all are one
    /// node.
    pub fn detect() -> Self {
        // A system has at most 1,024 workers.
        let usable = std::thread::available_parallelism().map_or(1, usize::from).min(1_024);
        let allowed = allowed();
        let may = |cpu| allowed.as_ref().is_none_or(|allowed| allowed.contains(&cpu));
        Self::read(Path::new("/sys/devices/system"), may, usable)
    }

    /// Reads the folder `system`: the CPUs that the process `may` use, of which `usable` may be busy at once.
    fn read(system: &Path, may: impl Fn(usize) -> bool, usable: usize) -> Self {
        let list = |path: String| fs::read_to_string(system.join(path)).ok().and_then(|text| parse_list(&text));
        let nodes = list("node/online".to_owned()).unwrap_or_default();
        let nodes = nodes.into_iter().filter_map(|node| Some((node, list(format!("node/node{node}/cpulist"))?)));
        let nodes: Vec<(usize, BTreeSet<usize>)> = nodes.collect();
        let online = list("cpu/online".to_owned()).unwrap_or_default();
        let mut cpus: Vec<_> = online.into_iter().filter(|&cpu| may(cpu)).collect();
        if cpus.is_empty() {
            cpus = (0..usable).collect();
        }
        let cpus = cpus.into_iter().map(|cpu| {
            let siblings = list(format!("cpu/cpu{cpu}/topology/thread_siblings_list"));
            let core = siblings.and_then(|siblings| siblings.first().copied()).unwrap_or(cpu);
            let node = nodes.iter().find(|(_, cpus)| cpus.contains(&cpu)).map_or(0, |(node, _)| *node);
            Cpu { core, node }
        });
        let cpus: Vec<_> = cpus.collect();
        let usable = usable.min(cpus.len());
        Self { cpus, usable }
    }

    /// Returns the number of hardware threads.
    pub fn threads(&self) -> usize {
        self.cpus.len()
    }

    /// Returns the number of physical cores.
    pub fn cores(&self) -> usize {
        self.cores_where(|_| true)
    }

    /// Returns the NUMA nodes, by the number of cores of each.
    pub fn nodes(&self) -> Vec<usize> {
        let nodes: BTreeSet<_> = self.cpus.iter().map(|cpu| cpu.node).collect();
        nodes.into_iter().map(|node| self.cores_where(|cpu| cpu.node == node)).collect()
    }

    fn cores_where(&self, which: impl Fn(&Cpu) -> bool) -> usize {
        self.cpus.iter().filter(|cpu| which(cpu)).map(|cpu| cpu.core).collect::<BTreeSet<_>>().len()
    }

    /// Returns the number of hardware threads that may be busy at once: all, except where the process has a quota of
    /// processor time.
    pub fn usable(&self) -> usize {
        self.usable
    }

    /// Returns the numbers of workers for a scaling measurement: 1, 2, 4, …, the cores of the largest node, all cores, and
    /// all hardware threads. None is above the number that may be busy at once.
    pub fn counts(&self) -> Vec<Count> {
        let node = self.nodes().into_iter().max().unwrap_or(1);
        let special = [
            (node, "the cores of a node", self.nodes().len() > 1),
            (self.cores(), "all cores", true),
            (self.threads(), "all hardware threads", self.threads() > self.cores()),
            (self.usable, "the quota", self.usable < self.threads()),
        ];
        let special = special.into_iter().filter(|&(_, _, says_something)| says_something);
        let special: Vec<_> = special.map(|(workers, name, _)| (workers, name)).collect();
        let powers = (0..usize::BITS).map(|power| 1 << power).take_while(|&workers| workers <= self.usable);
        let workers: BTreeSet<usize> = powers.chain(special.iter().map(|special| special.0)).collect();
        let counts = workers.into_iter().filter(|&workers| workers <= self.usable).map(|workers| {
            let names = special.iter().filter(|special| special.0 == workers).map(|special| special.1);
            Count { workers, names: names.collect() }
        });
        counts.collect()
    }

    /// Describes the topology in words: `8 cores, 16 hardware threads, 2 NUMA nodes of 4 and 4 cores`.
    pub fn describe(&self) -> String {
        let plural = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let mut words = plural(self.cores(), "core");
        let threads = plural(self.threads(), "hardware thread");
        words += &if self.threads() > self.cores() { format!(", {threads}") } else { ", no SMT".to_owned() };
        let nodes: Vec<_> = self.nodes().iter().map(usize::to_string).collect();
        words += &match &nodes[..] {
            [] | [_] => ", one NUMA node".to_owned(),
            [others @ .., last] => {
                format!(", {} NUMA nodes of {} and {last} cores", nodes.len(), others.join(", "))
            }
        };
        if self.usable < self.threads() {
            words += &format!("; a quota lets {} be busy at one time", plural(self.usable, "hardware thread"));
        }
        words
    }
}

/// Parses a list of the kernel, such as `0-3,8-11`; `None` for another text.
fn parse_list(text: &str) -> Option<BTreeSet<usize>> {
    let mut numbers = BTreeSet::new();
    for range in text.trim().split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        // More than any machine has: not a list of CPUs.
        if last.checked_sub(first)? > 1 << 16 {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

/// Returns the CPUs that the calling thread may use; `None` where the operating system does not report them.
pub(crate) fn allowed() -> Option<BTreeSet<usize>> {
    #[cfg(target_os = "linux")]
    {
        use rustix::thread::{CpuSet, sched_getaffinity};

        let set = sched_getaffinity(None).ok()?;
        Some((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
    }
    #[cfg(not(target_os = "linux"))]
    None
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A folder as the kernel has it, removed at the end.
    struct System(PathBuf);

    impl System {
        fn new(test: &str, files: &[(String, &str)]) -> Self {
            let folder = std::env::temp_dir().join(format!("playhouse-topology-{test}-{}", std::process::id()));
            fs::create_dir_all(&folder).unwrap();
            for (path, text) in files {
                let path = folder.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, format!("{text}\n")).unwrap();
            }
            Self(folder)
        }

        fn read(&self, may: impl Fn(usize) -> bool, usable: usize) -> Topology {
            Topology::read(&self.0, may, usable)
        }
    }

    impl Drop for System {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Two nodes of four cores of two threads, numbered as most machines do: first a thread of each core, then the others.
    fn two_nodes(online: &'static str) -> Vec<(String, &'static str)> {
        const PAIRS: [&str; 8] = ["0,8", "1,9", "2,10", "3,11", "4,12", "5,13", "6,14", "7,15"];
        let siblings = (0..16).map(|cpu| (format!("cpu/cpu{cpu}/topology/thread_siblings_list"), PAIRS[cpu % 8]));
        let others = [
            ("cpu/online", online),
            ("node/online", "0-1"),
            ("node/node0/cpulist", "0-3,8-11"),
            ("node/node1/cpulist", "4-7,12-15"),
        ];
        siblings.chain(others.map(|(path, text)| (path.to_owned(), text))).collect()
    }

    fn workers(topology: &Topology) -> Vec<usize> {
        topology.counts().into_iter().map(|count| count.workers).collect()
    }

    #[test]
    fn two_nodes_of_four_cores_of_two_threads() {
        let system = System::new("two-nodes", &two_nodes("0-15"));
        let topology = system.read(|_| true, 16);
        assert_eq!((topology.threads(), topology.cores(), topology.nodes()), (16, 8, vec![4, 4]));
        assert_eq!(topology.describe(), "8 cores, 16 hardware threads, 2 NUMA nodes of 4 and 4 cores");
        assert_eq!(workers(&topology), [1, 2, 4, 8, 16]);
        let names: Vec<_> = topology.counts().into_iter().map(|count| count.names).collect();
        let special = [vec![], vec![], vec!["the cores of a node"], vec!["all cores"], vec!["all hardware threads"]];
        assert_eq!(names, special);
    }

    #[test]
    fn offline_cpus_do_not_count() {
        // The kernel leaves them out of the lists of siblings and of nodes.
        let mut files = two_nodes("0-2,4-10,12-13");
        for (path, text) in &mut files {
            match &**path {
                "cpu/cpu6/topology/thread_siblings_list" => *text = "6",
                "cpu/cpu7/topology/thread_siblings_list" => *text = "7",
                "node/node0/cpulist" => *text = "0-2,8-10",
                "node/node1/cpulist" => *text = "4-7,12-13",
                _ => {}
            }
        }
        let topology = System::new("offline", &files).read(|_| true, 12);
        assert_eq!((topology.threads(), topology.cores(), topology.nodes()), (12, 7, vec![3, 4]));
        assert_eq!(workers(&topology), [1, 2, 4, 7, 8, 12]);
    }

    #[test]
    fn only_what_the_process_may_run_on_counts() {
        let system = System::new("allowed", &two_nodes("0-15"));
        // One node; the threads of the first two cores and one of the third.
        let topology = system.read(|cpu| [0, 1, 2, 8, 9].contains(&cpu), 5);
        assert_eq!((topology.threads(), topology.cores(), topology.nodes()), (5, 3, vec![3]));
        assert_eq!(workers(&topology), [1, 2, 3, 4, 5]);
        assert_eq!(topology.describe(), "3 cores, 5 hardware threads, one NUMA node");
        // The second threads of two cores are two cores.
        assert_eq!(system.read(|cpu| cpu == 8 || cpu == 12, 2).nodes(), [1, 1]);
    }

    #[test]
    fn a_quota_bounds_the_counts() {
        let topology = System::new("quota", &two_nodes("0-15")).read(|_| true, 6);
        assert_eq!(workers(&topology), [1, 2, 4, 6]);
        assert_eq!(topology.counts()[3].names, ["the quota"]);
        let words = topology.describe();
        assert!(words.ends_with("; a quota lets 6 hardware threads be busy at one time"), "{words}");
    }

    #[test]
    fn without_facts_all_threads_are_cores_of_one_node() {
        let topology = Topology::read(Path::new("/nowhere"), |_| true, 6);
        assert_eq!((topology.threads(), topology.cores(), topology.nodes()), (6, 6, vec![6]));
        assert_eq!(workers(&topology), [1, 2, 4, 6]);
        assert_eq!(topology.counts()[3].names, ["all cores"]);
        assert_eq!(topology.describe(), "6 cores, no SMT, one NUMA node");
        let system = System::new("bare", &[("cpu/online".to_owned(), "0-3"), ("node/online".to_owned(), "0")]);
        let topology = system.read(|_| true, 4);
        assert_eq!((topology.threads(), topology.cores(), topology.nodes()), (4, 4, vec![4]));
    }

    #[test]
    fn lists_are_those_of_the_kernel() {
        let list = |text| parse_list(text).map(Vec::from_iter);
        assert_eq!(list("0-3,8-11\n"), Some(vec![0, 1, 2, 3, 8, 9, 10, 11]));
        assert_eq!(list("5\n"), Some(vec![5]));
        assert_eq!(list("\n"), Some(vec![]));
        assert_eq!([list("0-"), list("3-1"), list("x"), list("0-99999999999")], [None, None, None, None]);
    }

    #[test]
    fn this_machine_has_something_to_run_on() {
        let topology = Topology::detect();
        assert!(0 < topology.usable() && topology.usable() <= topology.threads(), "{topology:?}");
        assert!(topology.cores() <= topology.threads(), "{topology:?}");
        let workers = workers(&topology);
        assert_eq!((workers[0], workers[workers.len() - 1]), (1, topology.usable()), "{topology:?}");
    }
}
