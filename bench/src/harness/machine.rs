//! A description of the machine that figures were measured on.

use std::fs;
use std::path::Path;

use super::topology::Topology;

/// A machine where more than this many threads were running or about to, averaged over the last minute, is not quiet.
pub const QUIET_LOAD_MAX: f64 = 0.5;

/// A machine, as the operating system describes it; `None` is a fact that the operating system does not report.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The processor's name, such as `AMD EPYC 9454`.
    pub cpu: Option<String>,
    /// Whether the machine is virtual.
    pub virtual_machine: bool,
    /// The hardware threads that this process may use.
    pub topology: Topology,
    /// Memory in GiB.
    pub memory_gib: Option<f64>,
    /// Name, release and architecture of the operating system, such as `Linux 6.1.0 x86_64`.
    pub system: String,
    /// The policy for the processor's clock, such as `performance`.
    pub governor: Option<String>,
    /// The number of running or runnable threads, averaged over the last minute.
    pub load: Option<f64>,
}

impl Machine {
    /// This one, now.
    pub fn look() -> Self {
        Self::read(Path::new("/"), Topology::detect())
    }

    /// Reads the machine whose root folder is `root`.
    fn read(root: &Path, topology: Topology) -> Self {
        let text = |path: &str| fs::read_to_string(root.join(path)).ok();
        let cpuinfo = text("proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let mut fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
            fields.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
        };
        let memory_kib = text("proc/meminfo").and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
            line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()
        });
        let load = text("proc/loadavg").and_then(|text| text.split(' ').next()?.parse().ok());
        let governor = text("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        Self {
            cpu: field("model name").or_else(|| field("Model")).filter(|name| !name.is_empty()),
            virtual_machine: field("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            topology,
            memory_gib: memory_kib.map(|kib| kib / 1_048_576.0),
            system: system(),
            governor: governor.map(|governor| governor.trim().to_owned()),
            load,
        }
    }

    /// Returns a warning about figures of now, if other programs keep the machine busy.
    pub fn unrest(&self) -> Option<String> {
        let load = self.load.filter(|&load| load > QUIET_LOAD_MAX)?;
        Some(format!(
            "the machine was not quiet: its load average was {load:.2} before anything ran; above {QUIET_LOAD_MAX} others take part"
        ))
    }
}

fn system() -> String {
    #[cfg(unix)]
    {
        let name = rustix::system::uname();
        [name.sysname(), name.release(), name.machine()].map(|part| part.to_string_lossy()).join(" ")
    }
    #[cfg(not(unix))]
    format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(test: &str, files: &[(&str, &str)]) -> Machine {
        let root = std::env::temp_dir().join(format!("playhouse-machine-{test}-{}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let machine = Machine::read(&root, Topology::detect());
        let _ = fs::remove_dir_all(&root);
        machine
    }

    #[test]
    fn a_machine_is_what_its_files_say() {
        let cpuinfo = "processor\t: 0\nmodel\t\t: 2\nmodel name\t: An EPYC: 9\nflags\t\t: fpu hypervisor lm\n";
        let busy = machine(
            "busy",
            &[
                ("proc/cpuinfo", cpuinfo),
                ("proc/meminfo", "MemFree: 1 kB\nMemTotal:       25165824 kB\n"),
                ("proc/loadavg", "0.51 0.40 0.30 1/100 12345\n"),
                ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
            ],
        );
        assert_eq!((busy.cpu.as_deref(), busy.governor.as_deref()), (Some("An EPYC: 9"), Some("performance")));
        assert_eq!((busy.memory_gib, busy.virtual_machine, busy.load), (Some(24.0), true, Some(0.51)));
        assert!(busy.unrest().unwrap().contains("0.51"), "{busy:?}");
        let quiet = machine("quiet", &[("proc/loadavg", "0.50 0.40"), ("proc/cpuinfo", "flags : fpu hypervisor2\n")]);
        assert_eq!((quiet.unrest(), quiet.virtual_machine), (None, false));
    }

    #[test]
    fn missing_facts_are_none() {
        let machine = machine("silent", &[]);
        assert_eq!((&machine.cpu, machine.memory_gib, &machine.governor), (&None, None, &None));
        assert_eq!((machine.unrest(), machine.virtual_machine), (None, false));
        assert!(!machine.system.is_empty());
    }
}
