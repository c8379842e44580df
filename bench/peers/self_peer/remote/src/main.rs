//! Playhouse with the benchmarks that its peers play in several processes, and nothing else.

fn main() -> std::process::ExitCode {
    playhouse_bench::peers::self_peer::main()
}
